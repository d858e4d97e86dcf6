"""The values of ``--tags`` and ``--type``."""

from __future__ import annotations

from signet_actors.cli.presentation import on_terminal, one_line, print_message


def split_tags(tags: tuple[str, ...]) -> list[str] | None:
    """Return the tags of repeated and comma-separated options; None if no option was given."""
    if not tags:
        return None
    return [tag.strip() for option in tags for tag in option.split(",") if tag.strip()]


def print_unusual_type(given: str | None) -> None:
    """Tell a person that a memory has got a type that is none of the known ones, perhaps by mistake."""
    if given is None or not on_terminal():
        return
    import difflib  # noqa: PLC0415 - only for a type that is given

    from signet_actors.domain.memories import MEMORY_TYPES  # noqa: PLC0415 - likewise

    if given.strip().lower() not in MEMORY_TYPES:
        close = difflib.get_close_matches(given.strip().lower(), MEMORY_TYPES, n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        print_message(f"{one_line(given)} is an unknown type.{meant} Known: {', '.join(MEMORY_TYPES)}.")
