"""Messages about the answers of aggregate recalls. Their request is that of a recall (``operations/recall.py``).

Source: memory-api.txt "POST /api/memory/recall"; docs/guides/aggregate-recall.md.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.operations.operation import Operation
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, KeyedRequest, Principal
from signet_actors.protocol.writer import NewMemory


class AnswerSource(msgspec.Struct, frozen=True):
    """A memory that the model was shown, in the words that it has since ``content_version``.

    ``cited``: the answer names it as its source.
    """

    id: str
    content_version: int
    cited: bool


class AnswerSaved(msgspec.Struct, frozen=True):
    """The answer that is stored, which may be an earlier one; ``id`` None: it is not stored.

    ``foreign``: because a source is of another agent; else because one was changed or forgotten.
    """

    id: str | None = None
    content: str = ""
    deduped: bool = False
    source_ids: list[str] = []
    foreign: bool = False


class SaveAnswer(KeyedRequest[Answered], frozen=True, kw_only=True, tag="aggregate_recall.save"):
    """Store an answer as a memory, and what it was made from; replied to with ``AnswerSaved``.

    Who may read the memory follows from its sources. ``made_by``: budget and model, for its history.
    """

    memory: NewMemory
    sources: tuple[AnswerSource, ...]
    read: ReadScope
    principal: Principal
    made_by: dict[str, str]


OPERATIONS: Final[tuple[Operation[Any], ...]] = ()
