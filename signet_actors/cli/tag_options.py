"""The options that say which memories a command is about, and the values of ``--tags`` and ``--type``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import click

from signet_actors.cli.invocation import project_option
from signet_actors.cli.presentation import on_terminal, one_line, print_message
from signet_actors.cli.times import SINCE, UNTIL

if TYPE_CHECKING:
    from collections.abc import Callable

_FILTERS: Final = (
    click.option("--type", "type_", metavar="TYPE", help="Only memories of this type."),
    click.option("--tags", "-t", multiple=True, metavar="A,B", help="Only memories with any of these tags."),
    click.option("--who", help="Only memories of this author."),
    click.option("--since", metavar="TIME", type=SINCE, help="Created then or later (ISO time, date, `yesterday`, …)."),
    click.option(
        "--until", metavar="TIME", type=UNTIL, help="Created then or earlier (ISO time, date, `yesterday`, …)."
    ),
    project_option("Only memories of this project."),
    click.option("--scope", help="Only memories of this scope (default: those without a scope)."),
    click.option("--pinned", is_flag=True, default=None, help="Only pinned memories."),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which memories; the command gets them as ``only``, by the names of the API."""

    @functools.wraps(command)
    def filtered(*args: Any, type_: str | None, tags: tuple[str, ...], **given: Any) -> None:
        only = {"type": type_, "tags": split_tags(tags)}
        only |= {name: given.pop(name) for name in ("who", "since", "until", "project", "scope", "pinned")}
        command(*args, only=only, **given)

    return functools.reduce(lambda decorated, option: option(decorated), reversed(_FILTERS), filtered)


def query_of(only: dict[str, Any]) -> dict[str, Any]:
    """Return the filters as parameters of a URL."""
    return {**only, "tags": ",".join(only["tags"] or ()) or None}


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
