"""``signet call``: every operation of the daemon as a command, made from its declaration.

The parameters of the path are arguments, the fields of the request are options. The reply is printed as JSON.

Source: docs/cli.md "Maintenance"; docs/architecture.md "How to add".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from signet_actors.cli.invocation import AGENT, SHARED, Invocation, group
from signet_actors.cli.presentation import print_json

if TYPE_CHECKING:
    from msgspec import Struct

    from signet_actors.operations.operation import Operation
    from signet_actors.operations.request_reader import RequestField

AGENT_FIELD: Final = "agentId"


class OperationGroup(click.Group):
    """The operations with the surface ``cli`` whose request and reply are JSON, by name; imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_operations())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command of the operation; None for an unknown name."""
        operation = _operations().get(cmd_name)
        return None if operation is None else _command(operation)


@group(cls=OperationGroup)
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
    from signet_actors.operations import request_path, request_reader  # noqa: PLC0415 - slow; only for this command

    request: type[Struct] = operation.request
    schemas = request_reader.request_schemas(request)
    fields = [field for field in request_reader.request_fields(request) if field.spellings[0] != AGENT_FIELD]
    path = operation.paths[0]

    def run(invocation: Invocation, **given: Any) -> None:
        values: dict[str, Any] = {} if invocation.agent is None else {AGENT_FIELD: invocation.agent}
        for field in fields:
            value = given[_variable(field.name)]
            if value is not None and value != ():
                values[field.spellings[0]] = _field_value(field, value, in_query=not operation.in_body)
        target = request_path.fill_path(path, given)
        reply = invocation.client().request(
            operation.method,
            target,
            query=None if operation.in_body else values,
            body=values if operation.in_body else None,
            changes=operation.has_effect,
        )
        print_json(reply.body)

    return click.Command(
        operation.name,
        callback=click.pass_obj(run),
        short_help=operation.summary,
        help=f"{operation.summary}: {operation.method} {path}\n\n{operation.description}".strip(),
        params=[
            *(click.Argument([name]) for name in request_path.PARAMETER.findall(path)),
            *(_option(field, schemas[field.spellings[0]].get("description", "")) for field in fields),
            AGENT,
            *SHARED,
        ],
    )


def _variable(name: str) -> str:
    return f"field_{name}"


def _option(field: RequestField, description: str) -> click.Option:
    """Return the option of a field: ``importance_min`` and ``sourceType`` become --importance-min and --source-type."""
    words = re.sub("([A-Z])", r"-\1", field.spellings[0]).lower().replace("_", "-")
    form = field.type.argument.value
    return click.Option(
        [f"--{words}/--no-{words}" if form == "flag" else f"--{words}", _variable(field.name)],
        default=None,
        multiple=form in {"list", "json_list"},
        metavar=None if form == "flag" else "VALUE",
        help=description,
    )


def _field_value(field: RequestField, value: Any, *, in_query: bool) -> Any:
    """Return the option's value as the field is sent. Raises ``click.BadParameter``."""
    match field.type.argument.value:
        case "list":
            return ",".join(value) if in_query else list(value)
        case "json_list":
            return [_parsed(field.name, item) for item in value]
        case "json" if not in_query:
            return _parsed(field.name, value)
        case _:
            return value


def _parsed(name: str, text: str) -> Any:
    """Return the JSON value of ``text``; a text that is no JSON stays a text, unless it begins like an object."""
    try:
        return json.loads(text)
    except ValueError as error:
        if text[:1] not in {"{", "["}:
            return text
        raise click.BadParameter(f"{name} is not valid JSON: {error}") from error
