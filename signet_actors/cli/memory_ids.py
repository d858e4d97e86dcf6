"""The ids that the user types: the first characters of an id name its memory, and an error names the id.

Source: docs/cli.md "Memories"; docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.exit_codes import USAGE
from signet_actors.cli.presentation import one_line, print_message
from signet_actors.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_actors.cli.connection import DaemonClient

MIN_PREFIX_CHARS = 6
SHOWN_CANDIDATES = 10


class UnusableId(click.ClickException):
    """Wrong usage, but not of the command's syntax: the id is too short, or begins several ids, which are listed."""

    exit_code = USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's signature
        """Print the message to standard error."""
        print_message(f"signet: {self.message}")


def full_id(client: DaemonClient, given: str, *, agent: str | None, deleted: bool = False) -> str:
    """Return the id that begins with ``given``, or ``given`` itself if there is none.

    Live memories are preferred, or deleted ones with ``deleted``. Raises UnusableId if several of those begin with it,
    or if it has fewer than ``MIN_PREFIX_CHARS`` characters.
    """
    if len(given) < MIN_PREFIX_CHARS:
        raise UnusableId(
            f"{one_line(given) or 'an empty text'} is too short for an id: give at least its first {MIN_PREFIX_CHARS}"
            " characters (`signet list` shows the ids)"
        )
    if _is_complete(given):
        return given
    found = _beginning_with(client, given, agent, deleted=deleted) or _beginning_with(
        client, given, agent, deleted=not deleted
    )
    if not found or given in found:
        return given
    if len(found) > 1:
        raise UnusableId(_ambiguous(given, found))
    return next(iter(found))


def _beginning_with(client: DaemonClient, given: str, agent: str | None, *, deleted: bool) -> dict[str, Any]:
    """Return the texts of the memories whose ids begin with ``given``, by id; one more than an error shows."""
    query = {"prefix": given, "limit": SHOWN_CANDIDATES + 1, "deleted": deleted, "agentId": agent}
    try:
        found = client.get("/api/memories/by-prefix", **query).records("memories")
    except RequestRefused as refused:
        if refused.code in {ErrorCode.NOT_FOUND, ErrorCode.INVALID_REQUEST}:  # no such operation, or no such id
            return {}
        raise
    return {str(memory["id"]): memory.get("content") for memory in found}


@contextlib.contextmanager
def named_if_unknown(given: str, *, kind: str = "memory") -> Iterator[None]:
    """Name the id if the daemon does not find it."""
    try:
        yield
    except RequestRefused as refused:
        if refused.code is not ErrorCode.NOT_FOUND:
            raise
        why = "unknown, deleted, or another agent's" if kind == "memory" else "unknown, or another agent's"
        detail = f"the {kind} {one_line(given)} was not found ({why})"
        raise RequestRefused(detail, code=refused.code, answer=refused.answer) from refused


def _is_complete(given: str) -> bool:
    try:
        return str(uuid.UUID(given)) == given
    except ValueError:
        return False


def _ambiguous(given: str, found: dict[str, Any]) -> str:
    several = f"more than {SHOWN_CANDIDATES}" if len(found) > SHOWN_CANDIDATES else str(len(found))
    shown = [f"  {one_line(id_)}  {one_line(text, 60)}" for id_, text in list(found.items())[:SHOWN_CANDIDATES]]
    more = ["  …"] * (len(found) > SHOWN_CANDIDATES)
    needed = len(given) + 1
    while len({id_[:needed] for id_ in found}) < len(found):
        needed += 1
    advice = f"the ids of {several} memories begin with {one_line(given)}; give at least {needed} characters:"
    return "\n".join([advice, *shown, *more])
