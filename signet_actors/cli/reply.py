"""A reply of the daemon: its checks, and how it is printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from signet_actors.cli.presentation import on_terminal, one_line, print_bytes, print_json
from signet_actors.cli.tables import print_wrapped
from signet_actors.errors import ErrorCode, RequestRefused

SHOWN_ERROR_CHARS = 500


@dataclass(frozen=True)
class DaemonReply:
    """A 2xx reply of the daemon with a JSON object. ``raw`` is the body as received; ``changes``: it answers a change.

    ``next_cursor`` is set if the reply is a page of lines and more pages follow; then ``body`` is empty.
    """

    status: int
    raw: bytes
    body: dict[str, Any]
    changes: bool = False
    next_cursor: str | None = None

    @property
    def warnings(self) -> list[str]:
        """The daemon's warnings, one line each, about parts of the request that had no effect."""
        found = self.body.get("warnings")
        items = found if isinstance(found, list) else []
        return [one_line(warning, SHOWN_ERROR_CHARS) for warning in items if isinstance(warning, str)]

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the member ``name``, a list of objects; raise RequestRefused if it is missing or anything else."""
        found = self.body.get(name)
        if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
            raise self.malformed(f"no list of {name}")
        return found

    def text(self, name: str) -> str:
        """Return the member ``name``, a non-empty string; raise RequestRefused if it is missing or anything else."""
        found = self.body.get(name)
        if not isinstance(found, str) or not found:
            raise self.malformed(f"no {name}")
        return found

    def confirm(self, name: str, *words: str | bool) -> None:
        """Raise RequestRefused unless the member ``name`` has one of the given values."""
        value = self.body.get(name)
        if not any(type(value) is type(word) and value == word for word in words):
            raise self.malformed(f"{name} is not {' or '.join(json.dumps(word) for word in words)}")

    def malformed(self, why: str) -> RequestRefused:
        """Return the error for this reply, which lacks the form that the API specifies."""
        return invalid_reply(why, changes=self.changes, answer=self.raw)


def invalid_reply(why: str, *, changes: bool, answer: bytes = b"") -> RequestRefused:
    """Return the error for a reply that no Signet daemon sends. After a change its outcome is unknown."""
    return RequestRefused(
        f"the answer does not come from a Signet daemon ({why})",
        code=ErrorCode.OUTCOME_UNKNOWN if changes else ErrorCode.MISDIRECTED_REQUEST,
        answer=answer,
    )


def print_answer(answer: DaemonReply) -> None:
    """Print the daemon's reply as JSON: indented on a terminal, unchanged on a pipe."""
    if on_terminal() and answer.body is not None:
        print_json(answer.body)
    else:
        print_bytes(answer.raw.rstrip(b"\n") + b"\n")


def print_relations(run: DaemonReply) -> None:
    """Print the relations between entities that the pipeline's run found, one per line, if they are still stored."""
    for one in run.body.get("entities") or []:
        print_wrapped(f"relation: {one.get('source')} {one.get('relationship')} {one.get('target')}", indent=2)
