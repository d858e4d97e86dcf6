"""Which dependency between two entities a stated relation implies.

Source: knowledge-graph.txt "Entity Dependencies"; docs/decisions.md 68.
"""

from __future__ import annotations

from typing import Final

RELATED_TO: Final = "related_to"
MAX_RELATION_CHARS: Final = 100
_WORDS: Final = {
    "uses": "use used using utilizes employs runs runs_on built_with built_on written_in implemented_in powered_by",
    "depends_on": "depends_on depends requires needs relies_on imports calls consumes blocked_by",
    "part_of": "part_of belongs_to member_of component_of contained_in included_in subset_of in",
    "owns": "owns maintains manages leads created built wrote authored developed responsible_for",
    "works_with": "works_with works_on works_at works_for collaborates_with employed_by contributes_to",
    "replaces": "replaces replaced supersedes migrated_from switched_from",
}
_TYPE_OF: Final = {word: kind for kind, words in _WORDS.items() for word in (kind, *words.split())}


def relation_type(relationship: str) -> str:
    """Return the relationship in its stored form: lower case, words joined by underscores."""
    return "_".join(relationship.lower().replace("-", " ").replace("_", " ").split())[:MAX_RELATION_CHARS]


def dependency_type(relation: str) -> str:
    """Return the type of the dependency that a stored relation implies; ``related_to`` for one without a type."""
    return _TYPE_OF.get(relation.removeprefix("is_").removeprefix("was_"), RELATED_TO)


def dependency_strength(confidence: float, mentions: int) -> float:
    """Return the strength of a dependency from the mean confidence and the number of statements, in [0, 1].

    Each further statement takes a tenth of what is missing to 1.
    """
    return round(1.0 - (1.0 - min(max(confidence, 0.0), 1.0)) * 0.9 ** (max(mentions, 1) - 1), 6)
