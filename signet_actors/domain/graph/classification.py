"""Which aspect of an entity each of its facts belongs to, as a model says: what it is asked, and its answer.

Source: memory-pipeline.txt "Structural Classification".
Departs: the answer is an object with the array, because servers that enforce a schema want an object; an array is read
too. A fact that the model leaves out stays unclassified until the entity gets another one.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.graph.names import ENTITY_TYPES, canonical_name
from signet_actors.domain.normalization import collapsed, sanitize_text

MAX_ASPECT_CHARS: Final = 60
MAX_ASPECTS_SHOWN: Final = 40
KINDS: Final = ("attribute", "constraint")
ASPECT_SUGGESTIONS: Final = {
    "person": ("preferences", "role", "skills", "relationships", "location", "background", "communication"),
    "project": ("architecture", "technology", "status", "decisions", "conventions", "dependencies", "deployment"),
    "system": ("architecture", "configuration", "deployment", "dependencies", "performance", "security", "status"),
    "tool": ("usage", "configuration", "version", "capabilities", "limitations", "integration"),
    "concept": ("definition", "usage", "examples", "relationships", "principles"),
    "skill": ("proficiency", "usage", "tools", "learning", "experience"),
    "task": ("status", "priority", "requirements", "deadline", "progress", "decisions"),
    "unknown": ("general", "properties", "usage", "relationships", "status"),
}
"""Names of aspects that an entity of the type often has."""
_KEYS: Final = ("facts", "type")
_MAX_ITEMS_READ: Final = 200


class Assignment(Struct, frozen=True):
    """The fact with this place in the prompt, from 1, belongs to the ``aspect``."""

    i: int
    aspect: str
    kind: Literal["attribute", "constraint"]


class Classified(Struct, frozen=True):
    """What of an answer is usable. ``entity_type`` is None if the model was not asked for it, or said no known one."""

    assignments: tuple[Assignment, ...] = ()
    entity_type: str | None = None


def suggested_aspects(entity_type: str) -> tuple[str, ...]:
    """Return names of aspects to suggest for an entity of the type."""
    return ASPECT_SUGGESTIONS.get(entity_type, ASPECT_SUGGESTIONS["unknown"])


def parse_classification(answer: str | bytes, count: int, *, asks_type: bool) -> Classified | None:
    """Return what the answer says about ``count`` facts, None if it says nothing usable about any. Never raises.

    The first usable entry about a fact counts.
    """
    said = read_json(answer, _KEYS).value
    entity_type = said.get("type") if isinstance(said, dict) and asks_type else None
    items = (
        next((said[key] for key in ("facts", "classifications") if key in said), None)
        if isinstance(said, dict)
        else said
    )
    found: dict[int, Assignment] = {}
    for item in items[:_MAX_ITEMS_READ] if isinstance(items, list) else ():
        assignment = _assignment(item, count)
        if assignment is not None:
            found.setdefault(assignment.i, assignment)
        if asks_type and entity_type is None and isinstance(item, dict):
            entity_type = item.get("type")
    if not found:
        return None
    known = entity_type.strip().lower() if isinstance(entity_type, str) else ""
    return Classified(tuple(found.values()), known if known in ENTITY_TYPES else None)


def _assignment(item: object, count: int) -> Assignment | None:
    if not isinstance(item, dict):
        return None
    number, aspect, kind = item.get("i"), item.get("aspect"), item.get("kind")
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count or kind not in KINDS:
        return None
    name = collapsed(sanitize_text(aspect)) if isinstance(aspect, str) else ""
    if not canonical_name(name) or len(name) > MAX_ASPECT_CHARS:
        return None
    return Assignment(number, name, kind)
