"""Fields that several requests share, and the mark of documented fields that have no effect yet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.normalization import sanitize_text
from signet_actors.operations import field_types as types

NOT_YET: Final = "notYet"
ONLY_FOR: Final = "onlyFor"

Offset = Annotated[int, types.Clamped(low=0, high=types.MAX_OFFSET), Meta(description="Records to skip")]
LongText = Annotated[str, types.Text(max_chars=types.MAX_TEXT_CHARS)]
Importance = Annotated[float, types.Number(low=0, high=1)]
SelectionText = Annotated[str, types.Text(secret=types.SecretRule.KEEP)]
"""A text that selects memories and is not stored."""
_TRANSCRIPT = "The file of the transcript, below the workspace or a folder of a harness"
TranscriptPath = Annotated[str, types.Text(secret=types.SecretRule.KEEP, max_chars=4096), Meta(description=_TRANSCRIPT)]

MAX_RATINGS: Final = 200
MAX_RATINGS_CHARS: Final = MAX_RATINGS * types.MAX_NAME_CHARS
TYPE_FOR_MODELS: Final = "One word, such as fact, preference, decision, learning, issue or rule"
"""What a model reads about the type of a memory."""


@dataclass(frozen=True, kw_only=True)
class Ratings(types.FieldType):
    """An object with a score for each memory id. Scores are clamped to -1 and 1, invalid entries skipped."""

    argument: ClassVar[types.ArgumentForm] = types.ArgumentForm.JSON

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "minProperties": 1, "maxProperties": MAX_RATINGS}

    def read(self, given: types.Given) -> Any:
        value = _object_in(given.value) if isinstance(given.value, str) else given.value
        if not isinstance(value, dict):
            raise given.invalid("must be an object with a score for each memory id")
        if len(value) > MAX_RATINGS:
            raise given.invalid(f"must have at most {MAX_RATINGS} entries")
        scores = {_memory_id(name): clamped_score(types.number_of(score)) for name, score in value.items()}
        ratings = {name: score for name, score in scores.items() if name and score is not None}
        if not ratings:
            raise given.invalid("must have a memory id with a score between -1 and 1")
        skipped = len(value) - len(ratings)
        if skipped:
            given.warnings.append(
                f"{given.name}: {skipped} invalid {'entry is' if skipped == 1 else 'entries are'} skipped"
            )
        return ratings


def _object_in(text: str) -> object:
    """Return what the text is in JSON, in which some clients send an object; None for other text."""
    try:
        return msgspec.json.decode(text) if len(text) <= MAX_RATINGS_CHARS else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _memory_id(name: str) -> str:
    return sanitize_text(name).strip() if len(name) <= types.MAX_NAME_CHARS else ""


def clamped_score(value: object) -> float | None:
    """Return the score within -1 and 1, None if it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(max(-1.0, min(1.0, value)))


class NoFields(msgspec.Struct, frozen=True):
    """A request without fields of its own."""


class AgentField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent of a request. The gateway settles it (``Call``)."""

    agent_id: Annotated[
        str | None,
        types.CallerField(),
        Meta(description="The agent on whose behalf the caller acts; also the header x-signet-agent-id"),
    ] = msgspec.field(default=None, name="agentId")


class AgentFields(AgentField, frozen=True, kw_only=True, omit_defaults=True):
    """The agent and the scope of a request that reads memories. The gateway settles them (``Call``)."""

    scope: Annotated[
        str | None,
        types.CallerField(),
        Meta(description="Only memories of this scope; default: those without a scope. Access by id ignores it"),
    ] = None


SINCE_FOR_MODELS: Final = "Created then or later: an ISO time, a date, or words such as yesterday or last week"
UNTIL_FOR_MODELS: Final = "Created then or earlier, the day that it names included"


class FilterFields(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions on the memories that an agent reads; all that are given must match."""

    type: Annotated[str, types.MemoryType(secret=types.SecretRule.KEEP), Meta(description="Memory type")] | None = None
    tags: Annotated[
        tuple[str, ...],
        types.Tags(secret=types.SecretRule.KEEP),
        Meta(description="An array, or separated by commas; memories with any of these tags"),
    ] = ()
    who: Annotated[SelectionText, Meta(description="Author")] | None = None
    pinned: Annotated[bool | None, types.Flag(), Meta(description="true: only pinned memories")] = None
    importance_min: Annotated[Importance, Meta(description="Smallest importance")] | None = None
    since: Annotated[str, types.Timestamp(), Meta(description="ISO time: created then or later")] | None = None
    until: Annotated[str, types.Timestamp(), Meta(description="ISO time: created then or earlier")] | None = None
    project: Annotated[SelectionText, Meta(description="Project")] | None = None
    source_type: (
        Annotated[SelectionText, Meta(description="Kind of source; also finds the chunks of texts of that kind")] | None
    ) = None


class CallerFields(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Fields that any request may contain. The gateway settles them for every operation (``Call``)."""

    session_key: Annotated[str | None, types.CallerField(), Meta(description="The session of the caller")] = (
        msgspec.field(default=None, name="sessionKey")
    )
    changed_by: Annotated[
        str | None,
        types.CallerField(in_query=False),
        Meta(description="Author of the change; also the header x-signet-actor"),
    ] = None


def not_yet(what: str, *only_for: str) -> Meta:
    """Mark a documented field that is accepted and has no effect in this release.

    A request that uses it gets the warning ``<field> <what>``. With ``only_for``, only these values (or a list with one
    of them) have no effect.
    """
    return Meta(description=f"This field {what}.", extra={NOT_YET: what, ONLY_FOR: only_for})
