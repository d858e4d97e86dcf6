"""Markdown that an agent keeps as its own memory, without what Signet wrote into it: that would be stored once more.

Signet shows memories to agents, which copy them into their notes, and makes ``MEMORY.md`` of its own workspace, which
may be that of the agent, too.

Source: docs/transfer.md "The memories of your agents"; docs/decisions.md 17.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from signet_actors.cli.importers.markdown import MARKDOWN, Note, notes
from signet_actors.domain import working_memory
from signet_actors.domain.extraction.injected_text import without_injected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from signet_actors.cli.importers.findings import Findings

_SHOWN_ID: Final = re.compile(r"\(id [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\)")
"""The beginning of an id, as it stands in each line of a memory that was shown to an agent."""


def agent_notes(path: Path, findings: Findings) -> Iterator[Note]:
    """Yield the file, or the Markdown below the directory, without what Signet wrote; count that in ``findings``."""
    for note in notes(path, MARKDOWN, findings):
        body, parts = without_signet(note.body)
        findings.of_signet += parts
        yield replace(note, body=body)


def without_signet(text: str) -> tuple[str, int]:
    """Return the text without what Signet wrote, and how many parts that were."""
    own, made = working_memory.split(text)
    own, injected = without_injected(own)
    lines = own.split("\n")
    kept = [line for line in lines if _SHOWN_ID.search(line) is None]
    return "\n".join(kept), bool(made) + injected + len(lines) - len(kept)
