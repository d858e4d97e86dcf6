"""``signet call``: every operation of the daemon as a command, made from its declaration.

The parameters of the path are arguments, the fields of the request are options. The reply is printed as JSON.

Source: docs/cli.md "Upkeep"; docs/architecture.md "How to add".
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.presentation import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_actors.cli.invocation import Invocation
    from signet_actors.operations.operation import Operation

AGENT_FIELD: Final = "agentId"
_PATH_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class OperationGroup(click.Group):
    """The operations with the surface ``cli`` whose request and reply are JSON, by name; imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the operations."""
        return list(_operations())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command of the operation; None for an unknown name."""
        operation = _operations().get(cmd_name)
        return None if operation is None else _command(operation)


@click.group(cls=OperationGroup)
def call() -> None:
    """Call an operation of the HTTP interface by name, and print its reply as JSON.

    An option has the name of a field of the request. Repeat it to give a list; give an object as JSON.
    """


def _operations() -> Mapping[str, Operation[Any]]:
    from signet_actors.operations.registry import OPERATIONS  # noqa: PLC0415 - slow; only for this command

    return {
        operation.name: operation
        for operation in OPERATIONS
        if "cli" in operation.surfaces and not operation.media_types and operation.lines is None
    }


def _command(operation: Operation[Any]) -> click.Command:
    """Return the command that calls ``operation``."""
    from signet_actors.operations.request_reader import request_schemas  # noqa: PLC0415 - slow; only for this command

    schemas = {name: schema for name, schema in request_schemas(operation.request).items() if name != AGENT_FIELD}
    path = operation.paths[0]

    def run(invocation: Invocation, agent: str | None, **given: Any) -> None:
        fields: dict[str, Any] = {} if agent is None else {AGENT_FIELD: agent}
        for name, schema in schemas.items():
            value = given[_variable(name)]
            if value is not None and value != ():
                fields[name] = _field_value(name, value, schema)
        target = _PATH_PARAMETER.sub(lambda match: quote(given[match[1]], safe=""), path)
        reply = invocation.client().request(
            operation.method,
            target,
            query=None if operation.in_body else fields,
            body=fields if operation.in_body else None,
            changes=operation.has_effect,
        )
        print_json(reply.body)

    command = click.Command(
        operation.name,
        callback=click.pass_obj(run),
        short_help=operation.summary,
        help=f"{operation.summary}: {operation.method} {path}\n\n{operation.description}".strip(),
        params=[
            *(click.Argument([name]) for name in _PATH_PARAMETER.findall(path)),
            *(_option(name, schema) for name, schema in schemas.items()),
        ],
    )
    return shared_options(agent_option(command))


def _variable(name: str) -> str:
    """Return the name of the Python variable for a field."""
    return f"field_{name.replace('-', '_')}"


def _option(name: str, schema: Mapping[str, Any]) -> click.Option:
    """Return the option of a field: ``importance_min`` and ``sourceType`` become --importance-min and --source-type."""
    words = re.sub("([A-Z])", r"-\1", name).lower().replace("_", "-")
    kind = schema.get("type")
    declaration = f"--{words}/--no-{words}" if kind == "boolean" else f"--{words}"
    return click.Option(
        [declaration, _variable(name)],
        default=None,
        multiple=_takes_list(schema),
        metavar=None if kind == "boolean" else (kind or "text").upper() if isinstance(kind, str) else "TEXT",
        help=schema.get("description", ""),
    )


def _takes_list(schema: Mapping[str, Any]) -> bool:
    return any(branch.get("type") == "array" for branch in (schema, *schema.get("anyOf", ())))


def _field_value(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the option's value as the field holds it. Raises ``click.BadParameter``."""
    if _takes_list(schema):
        return [_parsed(name, item) if item[:1] in {"{", "["} else item for item in value]
    kind = schema.get("type")
    if kind in {"integer", "number"} or kind == "object" or "$ref" in schema:
        return _parsed(name, value)
    return value


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{name} is not valid JSON: {error}") from error
