"""What the checks of a database find.

The kind of a finding decides what follows: *structure*, no read can be trusted and writes must stop; *index*, derived
data that can be rebuilt; *content*, a row that differs from what was stored; *rows*, rows contradict each other. Errors
of the disk, of memory or of a lock are no findings: they raise ``CheckIncomplete``.

Source: docs/reliability.md R18.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.errors import CheckIncomplete

STRUCTURE: Final = "structure"
INDEX: Final = "index"
CONTENT: Final = "content"
ROWS: Final = "rows"
UNCHECKED: Final = "unchecked"
"""In the output of ``--check`` only: the text says why the check could not be carried out."""


HISTORY_PURGED: Final = "history_purged"
"""Key in ``store_meta`` that is there once events of the history were purged by their age."""
MOST_FINDINGS: Final = 200
"""A check stops after this many findings; more would not change what follows."""


class Finding(NamedTuple):
    """``kind`` is one of the four constants above, ``text`` is a message for the user."""

    kind: str
    text: str


def is_structural(findings: list[Finding]) -> bool:
    """Return True if no read of this file can be trusted."""
    return any(finding.kind == STRUCTURE for finding in findings)


def incomplete(error: BaseException) -> CheckIncomplete:
    """Return the exception for a check that ``error``, one of ``UNCHECKABLE``, has stopped."""
    return CheckIncomplete(f"could not be checked: {type(error).__name__}: {error}")
