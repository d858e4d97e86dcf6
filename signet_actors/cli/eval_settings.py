"""The configuration of the daemon that ``signet eval`` measures: the user's, with overrides, without language models.

Only what shapes a recall is taken over. The address, backups, retention and the pipeline of the user's daemon have no
part in it, and the texts must not be sent to a language model.

Source: docs/cli.md "Measuring recall".
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.config import yaml_lines
from signet_actors.config.keys import keys
from signet_actors.config.load import effective_mapping, load_config
from signet_actors.config.schema import Config
from signet_actors.config.suggest import did_you_mean
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PIPELINE = ("memory", "pipelineV2")
TAKEN_OVER: tuple[tuple[str, ...], ...] = (
    ("search",),
    ("embedding",),
    ("searcher",),
    ("agents",),
    ("redaction",),
    (*PIPELINE, "reranker"),
    (*PIPELINE, "guardrails"),
)
"""Sections of the user's configuration that the measured daemon has."""

WITHOUT_MODELS: tuple[tuple[str, ...], ...] = (
    (*PIPELINE, "enabled"),
    (*PIPELINE, "reranker", "useExtractionModel"),
)
"""Switches that are off in the measured daemon."""


class Overrides:
    """Values of keys, given as ``key=value``. ``texts`` are the arguments, in order."""

    def __init__(self, option: str, arguments: Sequence[str]) -> None:
        self.option = option
        self.texts = tuple(arguments)
        self._values = [_parse(option, argument) for argument in arguments]

    def __add__(self, other: Overrides) -> Overrides:
        both = Overrides(other.option, ())
        both.texts = (*self.texts, *other.texts)
        both._values = [*self._values, *other._values]
        return both

    def apply(self, mapping: dict[str, Any]) -> None:
        """Set the values in the mapping of a configuration."""
        for path, value in self._values:
            section = mapping
            for name in path[:-1]:
                section = section.setdefault(name, {})
            section[path[-1]] = value


def measured_mapping(config: Config, overrides: Overrides) -> dict[str, Any]:
    """Return the configuration of the measured daemon as a mapping with the key names of the file."""
    users = effective_mapping(config)
    mapping: dict[str, Any] = {"backup": {"intervalMs": 0}}
    for path in TAKEN_OVER:
        _put(mapping, path, copy.deepcopy(_get(users, path)))
    for path in WITHOUT_MODELS:
        _put(mapping, path, False)
    overrides.apply(mapping)
    return mapping


def settings_text(mapping: Mapping[str, Any], overrides: Overrides, directory: Path) -> str:
    """Return the mapping as the text of ``agent.yaml``. Raises click.UsageError if an override is not valid.

    ``directory`` is an existing directory, in which the text is checked.
    """
    text = "\n".join(yaml_lines(mapping)) + "\n"
    file = directory / CONFIG_FILE_NAME
    file.write_text(text, encoding="utf-8")
    try:
        load_config(directory, {}, strict=True)
    except ConfigError as error:
        problem = error.detail.split("\n", 1)[0].removeprefix(f"{CONFIG_FILE_NAME}: ")
        raise click.UsageError(f"{overrides.option}: {problem}") from error
    finally:
        file.unlink()
    return text


def _parse(option: str, argument: str) -> tuple[tuple[str, ...], Any]:
    """Return path and value of ``key=value``; raise click.UsageError if it is nothing that can be measured."""
    name, equals, text = argument.partition("=")
    if not equals or not text.strip():
        raise click.UsageError(f'{option} {argument}: expected KEY=VALUE, for example "search.alpha=0.6"')
    known = {key.dotted: key.path for key in keys()}
    path = known.get(name)
    if path is None:
        raise click.UsageError(f"{option} {argument}: {name} is no key of the configuration{did_you_mean(name, known)}")
    if path in WITHOUT_MODELS or not any(path[: len(section)] == section for section in TAKEN_OVER):
        raise click.UsageError(f"{option} {argument}: {name} has no effect on what is measured")
    try:
        return path, parse_yaml(text.encode("utf-8", "surrogateescape"))
    except UnreadableYaml as error:
        raise click.UsageError(f"{option} {argument}: {error.problems[0]}") from error


def _get(mapping: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = mapping
    for name in path:
        value = value[name]
    return value


def _put(mapping: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        mapping = mapping.setdefault(name, {})
    mapping[path[-1]] = value
