"""The values of ``--tags``."""

from __future__ import annotations


def split_tags(tags: tuple[str, ...]) -> list[str] | None:
    """Return the tags of repeated and comma-separated options; None if no option was given."""
    if not tags:
        return None
    return [tag.strip() for option in tags for tag in option.split(",") if tag.strip()]
