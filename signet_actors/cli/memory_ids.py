"""The ids that the user types: the first characters suffice if no other id begins so, and an error names the id.

Source: docs/cli.md "Memories"; docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.exit_codes import USAGE
from signet_actors.cli.presentation import one_line, print_message
from signet_actors.cli.times import time_text
from signet_actors.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_actors.cli.connection import DaemonClient

MIN_PREFIX_CHARS = 6
SHOWN_CANDIDATES = 10
_BY_PREFIX = "/api/memories/by-prefix"
_PIPELINE_NAMES = {
    "run": ("runs", "signet pipeline runs"),
    "job": ("jobs", "signet logs"),
    "proposal": ("proposals", "signet review list"),
}
"""What the ids of each kind are called, and the command that shows them."""


class UnusableId(click.ClickException):
    """Wrong usage, but not of the command's syntax: the id is too short, or begins several ids, which are listed."""

    exit_code = USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's signature
        """Print the message to standard error."""
        print_message(f"signet: {self.message}")


def full_id(client: DaemonClient, given: str, *, deleted: bool = False) -> str:
    """Return the id of a memory that begins with ``given``, or ``given`` itself if there is none.

    Live memories are preferred, or deleted ones with ``deleted``. Raises UnusableId if several of those begin with it,
    or if it has fewer than ``MIN_PREFIX_CHARS`` characters.
    """

    def beginning(*, deleted: bool) -> dict[str, Any]:
        query = {"prefix": given, "limit": SHOWN_CANDIDATES + 1, "deleted": deleted}
        return {str(memory["id"]): memory.get("content") for memory in _found(client, _BY_PREFIX, query, "memories")}

    if _is_complete(given, shown_by="signet list"):
        return given
    return _the_one(given, beginning(deleted=deleted) or beginning(deleted=not deleted), "memories")


def full_pipeline_id(client: DaemonClient, given: str, *kinds: str) -> str:
    """Return the id of a run, job or proposal that begins with ``given``, or ``given`` itself if there is none.

    ``kinds`` are those of the operation; an earlier one is preferred. Raises UnusableId like ``full_id``.
    """
    names, command = _PIPELINE_NAMES[kinds[-1]]
    if _is_complete(given, shown_by=command):
        return given
    for kind in kinds:
        query = {"kind": kind, "prefix": given, "limit": SHOWN_CANDIDATES + 1}
        rows = _found(client, "/api/pipeline/by-prefix", query, "found")
        if rows:
            return _the_one(given, {str(row["id"]): _about(row) for row in rows}, names)
    return given


def _is_complete(given: str, *, shown_by: str) -> bool:
    """Return whether ``given`` is a whole id. Raises UnusableId if it is too short for the beginning of one."""
    if len(given) < MIN_PREFIX_CHARS:
        raise UnusableId(
            f"{one_line(given) or 'an empty text'} is too short for an id: give at least its first {MIN_PREFIX_CHARS}"
            f" characters (`{shown_by}` shows the ids)"
        )
    try:
        return str(uuid.UUID(given)) == given
    except ValueError:
        return False


def _the_one(given: str, found: dict[str, Any], names: str) -> str:
    """Return the only id of ``found`` (texts by id), or ``given`` if there is none or it is one of them.

    Raises UnusableId if there are several.
    """
    if not found or given in found:
        return given
    if len(found) > 1:
        raise UnusableId(_ambiguous(given, found, names))
    return next(iter(found))


def _found(client: DaemonClient, path: str, query: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return client.get(path, **query).records(name)
    except RequestRefused as refused:
        if refused.code in {ErrorCode.NOT_FOUND, ErrorCode.INVALID_REQUEST}:  # no such operation, or no such id
            return []
        raise


def _about(row: dict[str, Any]) -> str:
    """Return when it was made and what it is about."""
    about = row.get("about")
    return f"{time_text(row.get('createdAt'))}, {'(erased)' if about is None else about}"


@contextlib.contextmanager
def named_if_unknown(given: str, *, kind: str = "memory") -> Iterator[None]:
    """Name the id if the daemon does not find it."""
    try:
        yield
    except RequestRefused as refused:
        if refused.code is not ErrorCode.NOT_FOUND:
            raise
        why = "unknown, deleted, or another agent's" if kind == "memory" else "unknown, or another agent's"
        why = refused.detail.partition("not found: ")[2] or why
        detail = f"the {kind} {one_line(given)} was not found ({why})"
        raise RequestRefused(detail, code=refused.code, answer=refused.answer) from refused


def _ambiguous(given: str, found: dict[str, Any], names: str) -> str:
    several = f"more than {SHOWN_CANDIDATES}" if len(found) > SHOWN_CANDIDATES else str(len(found))
    shown = [f"  {one_line(id_)}  {one_line(text, 60)}" for id_, text in list(found.items())[:SHOWN_CANDIDATES]]
    more = ["  …"] * (len(found) > SHOWN_CANDIDATES)
    needed = len(given) + 1
    while len({id_[:needed] for id_ in found}) < len(found):
        needed += 1
    advice = f"the ids of {several} {names} begin with {one_line(given)}; give at least {needed} characters:"
    return "\n".join([advice, *shown, *more])
