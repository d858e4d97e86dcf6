"""The command config: show, check, change and describe the configuration.

Source: docs/cli.md "Maintenance"; docs/configuration.md.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from signet_actors.cli.edited_text import edited_text
from signet_actors.cli.invocation import Invocation, command, group
from signet_actors.cli.presentation import counted, print_json, print_message, print_result, printable, reporting
from signet_actors.config.load import InvalidConfig, effective_mapping, load_config, restart_values
from signet_actors.config.schema import Config
from signet_actors.config.suggest import closest
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.errors import ConfigError, SignetError
from signet_actors.runtime.file_draft import replace_file


@group()
def config() -> None:
    """Show, check or change the configuration."""


@command(config)
def show(invocation: Invocation) -> None:
    """Print the effective configuration, including defaults, as YAML (or JSON)."""
    loaded = load_config(invocation.workspace, invocation.settings)
    for warning in loaded.warnings:
        print_message(f"warning: {warning}")
    mapping = effective_mapping(loaded.config)
    if invocation.as_json:
        print_json(mapping)
    else:
        for line in yaml_lines(mapping):
            click.echo(line)


@command(config)
def path(invocation: Invocation) -> None:
    """Print the path of the configuration file, even if it does not exist yet."""
    file = Workspace(invocation.workspace).config_file
    invocation.print_done({"path": str(file), "exists": file.is_file()}, str(file))


@command(config)
def check(invocation: Invocation) -> None:
    """Report every problem of the configuration; exit code 78 if there is one."""
    try:
        loaded = load_config(invocation.workspace, invocation.settings, strict=True)
    except InvalidConfig as invalid:
        for warning in invalid.warnings:
            print_message(f"warning: {warning}")
        raise
    warnings = [*loaded.warnings, *missing_keys(loaded.config, invocation.settings)]
    if invocation.as_json:
        print_json({"ok": True, "source": str(loaded.source) if loaded.source else None, "warnings": warnings})
        return
    for warning in warnings:
        print_result(printable(f"warning: {warning}"))
    origin = str(loaded.source) if loaded.source else "no configuration file; the defaults"
    but = f", with {counted(len(warnings), 'warning')}" if warnings else ""
    print_result(f"The configuration is valid{but} ({origin}).")


@command(config, "set")
@click.argument("key")
@click.argument("value")
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Set a key of agent.yaml; comments and other keys stay.

    KEY is a path such as `search.alpha`, VALUE is YAML. A value that is not valid changes nothing (exit code 78).
    """
    from signet_actors.config.yaml_edit import with_value  # noqa: PLC0415 - only here

    path = key.split(".")
    _refuse_unknown(effective_mapping(Config()), path)
    file = Workspace(invocation.workspace).config_file
    before = _read(file)
    try:
        after = with_value(before, path, parse_yaml(value.encode()))
    except UnreadableYaml as error:
        raise ConfigError("\n".join(error.problems)) from error
    checked_config(after)
    _replace(file, before, after)
    told = f"is set. {_how_to_apply(invocation.workspace, before, after)}"
    if after == before:
        told = "has this value already; nothing was changed."
    invocation.print_done({"path": str(file), "key": key, "changed": after != before}, f"{file}: {key} {told}")


@command(config)
def edit(invocation: Invocation) -> None:
    """Open agent.yaml in $EDITOR; the result is stored only if it is valid (else exit code 78).

    A text that cannot be stored is kept in a file of its own, which the message names.
    """
    file = Workspace(invocation.workspace).config_file
    before = _read(file)
    instead = "there is no terminal for an editor: use `signet config set KEY VALUE`, or set EDITOR"
    with edited_text(before, ".yaml", instead=instead, target=file) as after:
        if after != before:
            checked_config(after)
            _replace(file, before, after)
    if invocation.as_json:
        print_json({"path": str(file), "changed": after != before})
    elif after != before:
        print_result(f"{file} is stored. {_how_to_apply(invocation.workspace, before, after)}")
    else:
        print_message("Nothing changed.")


@command(config)
def schema(_invocation: Invocation) -> None:
    """Print the JSON Schema of agent.yaml, for editors.

    With the YAML language server: `# yaml-language-server: $schema=PATH` in the first line of the file.
    """
    described = msgspec.json.schema(Config)
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "agent.yaml"}
    print_json({**named, **_with_portable_patterns(described)})


def _with_portable_patterns(described: Any) -> Any:
    r"""Return the schema with ``$`` for Python's ``\Z``, which the patterns of JSON Schema do not have."""
    if isinstance(described, dict):
        return {
            name: value.replace(r"\Z", "$")
            if name == "pattern" and isinstance(value, str)
            else _with_portable_patterns(value)
            for name, value in described.items()
        }
    return [_with_portable_patterns(item) for item in described] if isinstance(described, list) else described


def _refuse_unknown(known: Any, path: list[str]) -> None:
    """Raise click.UsageError if the path does not lead to a single value of the configuration."""
    for depth, name in enumerate(path):
        if not isinstance(known, dict) or name not in known:
            near = closest(name, known) if isinstance(known, dict) else None
            hint = "" if near is None else f'; did you mean "{".".join((*path[:depth], near))}"?'
            raise click.UsageError(f"there is no key {'.'.join(path[: depth + 1])!r}{hint}")
        known = known[name]
    if isinstance(known, dict) and known:
        raise click.UsageError(f"{'.'.join(path)!r} is a section; give one of its keys: {', '.join(known)}")


def checked_config(text: str) -> Config:
    """Return the text as a configuration; raise ConfigError, with every problem, if it is not a valid one."""
    with tempfile.TemporaryDirectory() as directory:
        Workspace(Path(directory)).config_file.write_text(text, encoding="utf-8")
        try:
            return load_config(Path(directory), {}, strict=True).config
        except InvalidConfig as error:
            raise ConfigError(error.detail) from None  # not that of the workspace


def _how_to_apply(workspace: Path, before: str, after: str) -> str:
    """Return how the daemon, if one runs, takes the changed file: by itself if no restart is needed."""
    if not lock_held(workspace):
        return "The daemon reads it when it starts."
    try:
        restart = restart_values(checked_config(before)) != restart_values(checked_config(after))
    except ConfigError:  # the earlier file was not valid, so what the daemon uses is not known
        restart = True
    if restart:
        return "A restart of the daemon applies it: `signet restart`, or by the service manager that started it."
    return "The running daemon applies it within two seconds."


def _read(file: Path) -> str:
    """Return the text of the file, empty if there is none.

    Raises ConfigError if it cannot be read, or if it belongs to another user, for whom ``_replace`` would lock it.
    """
    try:
        owned = file if file.exists() else file.parent
        owner = owned.stat().st_uid if owned.exists() else os.geteuid()
        if owner != os.geteuid():
            raise ConfigError(f"{owned} belongs to another user (uid {owner}); run the command as that user")
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _replace(file: Path, before: str, after: str) -> None:
    """Replace the file, or the target of the link; its mode stays. Raises ConfigError, SignetError if it changed."""
    if _read(file) != before:
        raise SignetError(f"{file} was changed by another program in the meantime, and was left as it is")
    with reporting(file, "written"):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(file.resolve(), after.encode(), durable=True, keep_mode=True)


def missing_keys(config: Config, environment: Mapping[str, str], where: str = "here") -> Iterator[str]:
    """Yield a warning for each variable that is unset ``where`` but should hold a configured provider's API key."""
    extraction, embedding = config.memory.pipeline_v2.extraction, config.embedding
    for key, variable, used in (
        ("embedding.apiKeyEnv", embedding.api_key_env, embedding.provider == "openai"),
        (
            "memory.pipelineV2.extraction.apiKeyEnv",
            extraction.api_key_env,
            extraction.provider in {"openai", "claude-code", "opencode"},
        ),
    ):
        if used and variable and not environment.get(variable, "").strip():
            yield f"{key}: {variable} is not set {where}; the daemon needs it in the environment that it is started in"


def yaml_lines(mapping: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the mapping as lines of block YAML; its values are JSON scalars, which are valid YAML."""
    for name, value in mapping.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"
