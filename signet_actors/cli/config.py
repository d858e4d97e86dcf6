"""The command config: show the effective configuration and its source, and report its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.invocation import shared_options
from signet_actors.cli.presentation import print_json, print_message
from signet_actors.config.load import effective_mapping, load_config
from signet_actors.config.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from signet_actors.cli.invocation import Invocation
    from signet_actors.config.schema import Config


@click.group()
def config() -> None:
    """Show or check the configuration."""


@config.command()
@shared_options
@click.pass_obj
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


@config.command()
@shared_options
@click.pass_obj
def path(invocation: Invocation) -> None:
    """Print the path of the configuration file, even if it does not exist yet."""
    file = Workspace(invocation.workspace).config_file
    if invocation.as_json:
        print_json({"path": str(file), "exists": file.is_file()})
    else:
        click.echo(file)


@config.command()
@shared_options
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Report every problem of the configuration; exit code 78 if there is one."""
    loaded = load_config(invocation.workspace, invocation.settings)
    warnings = [*loaded.warnings, *missing_keys(loaded.config, invocation.settings)]
    if invocation.as_json:
        print_json({"ok": True, "source": str(loaded.source) if loaded.source else None, "warnings": warnings})
        return
    for warning in warnings:
        click.echo(f"warning: {warning}")
    origin = str(loaded.source) if loaded.source else "no configuration file; the defaults"
    click.echo(f"The configuration is valid ({origin}).")


def missing_keys(config: Config, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each unset variable that should hold the API key of a configured provider."""
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
            yield f"{key}: {variable} is not set here; the daemon needs it in the environment that it is started in"


def yaml_lines(mapping: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the mapping as lines of block YAML that ``agent.yaml`` may contain.

    Values are JSON scalars, which are valid YAML. Keys come from our schema and need no quotes.
    """
    for name, value in mapping.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"
