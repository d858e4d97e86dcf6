"""Names of entities and aspects: the form in which they are compared, and what a pattern of a search is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from signet_actors.domain.graph.names import canonical_name

GENERAL: Final = "general"
"""The group of attributes that name none."""


def containing(text: str) -> str:
    """Return the LIKE pattern, with the escape character ``!``, of canonical names that contain the text literally."""
    escaped = canonical_name(text)
    for character in "!%_":
        escaped = escaped.replace(character, f"!{character}")
    return f"%{escaped}%"


def similarity_key(name: str) -> str:
    """Return what names have in common that probably mean the same: letters and digits, without a plural ``s``."""
    key = "".join(filter(str.isalnum, name.lower().removeprefix("the ")))
    return key[:-1] if len(key) > 4 and key.endswith("s") and not key.endswith("ss") else key


def below(parents: Iterable[tuple[str, str | None]], top: str) -> set[str]:
    """Return ``top`` and all that are below it in the tree of ``(child, parent)``."""
    children: dict[str | None, list[str]] = {}
    for child, parent in parents:
        children.setdefault(parent, []).append(child)
    found, waiting = {top}, [top]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return found
