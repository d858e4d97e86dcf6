"""Fields that several requests share, and the mark of documented fields that have no effect yet."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.operations.field_types import (
    MAX_OFFSET,
    MAX_TEXT_CHARS,
    CallerField,
    Clamped,
    Flag,
    MemoryType,
    Number,
    SecretRule,
    Tags,
    Text,
    Timestamp,
)

NOT_YET: Final = "notYet"
ONLY_FOR: Final = "onlyFor"

Offset = Annotated[int, Clamped(low=0, high=MAX_OFFSET), Meta(description="Records to skip")]
LongText = Annotated[str, Text(max_chars=MAX_TEXT_CHARS)]
Importance = Annotated[float, Number(low=0, high=1)]
SelectionText = Annotated[str, Text(secret=SecretRule.KEEP)]
"""A text that selects memories and is not stored."""
_TRANSCRIPT = "The file of the transcript, below the workspace or a folder of a harness"
TranscriptPath = Annotated[str, Text(secret=SecretRule.KEEP, max_chars=4096), Meta(description=_TRANSCRIPT)]

TYPE_FOR_MODELS: Final = "One word, such as fact, preference, decision, learning, issue or rule"
"""What a model reads about the type of a memory."""


class NoFields(msgspec.Struct, frozen=True):
    """A request without fields of its own."""


class AgentField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent of a request. The gateway settles it (``Call``)."""

    agent_id: Annotated[
        str | None,
        CallerField(),
        Meta(description="The agent on whose behalf the caller acts; also the header x-signet-agent-id"),
    ] = msgspec.field(default=None, name="agentId")


class AgentFields(AgentField, frozen=True, kw_only=True, omit_defaults=True):
    """The agent and the scope of a request that reads memories. The gateway settles them (``Call``)."""

    scope: Annotated[
        str | None,
        CallerField(),
        Meta(description="Only memories of this scope; default: those without a scope. Access by id ignores it"),
    ] = None


SINCE_FOR_MODELS: Final = "Created then or later: an ISO time, a date, or words such as yesterday or last week"
UNTIL_FOR_MODELS: Final = "Created then or earlier, the day that it names included"


class FilterFields(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions on the memories that an agent reads; all that are given must match."""

    type: Annotated[str, MemoryType(secret=SecretRule.KEEP), Meta(description="Memory type")] | None = None
    tags: Annotated[
        tuple[str, ...],
        Tags(secret=SecretRule.KEEP),
        Meta(description="An array, or separated by commas; memories with any of these tags"),
    ] = ()
    who: Annotated[SelectionText, Meta(description="Author")] | None = None
    pinned: Annotated[bool | None, Flag(), Meta(description="true: only pinned memories")] = None
    importance_min: Annotated[Importance, Meta(description="Smallest importance")] | None = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: created then or later")] | None = None
    until: Annotated[str, Timestamp(), Meta(description="ISO time: created then or earlier")] | None = None
    project: Annotated[SelectionText, Meta(description="Project")] | None = None
    source_type: Annotated[SelectionText, Meta(description="Kind of source")] | None = None


class CallerFields(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Fields that any request may contain. The gateway settles them for every operation (``Call``)."""

    session_key: Annotated[str | None, CallerField(), Meta(description="The session of the caller")] = msgspec.field(
        default=None, name="sessionKey"
    )
    changed_by: Annotated[
        str | None,
        CallerField(in_query=False),
        Meta(description="Author of the change; also the header x-signet-actor"),
    ] = None


def not_yet(what: str, *only_for: str) -> Meta:
    """Mark a documented field that is accepted and has no effect in this release.

    A request that uses it gets the warning ``<field> <what>``. With ``only_for``, only these values (or a list with one
    of them) have no effect.
    """
    return Meta(description=f"This field {what}.", extra={NOT_YET: what, ONLY_FOR: only_for})
