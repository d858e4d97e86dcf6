"""Our hooks in a file of Cursor: ``{"version": 1, "hooks": {EVENT: [{"command": …}]}}``.

Source: https://cursor.com/docs/hooks.
"""

from __future__ import annotations

from typing import Any, Final

from signet_actors.cli.harnesses.hook_settings import is_ours
from signet_actors.cli.harnesses.json_text import (
    InvalidText,
    appended,
    line_of,
    member,
    object_of,
    parts,
    removed,
    root_of,
    value_of,
    without_empty,
)

VERSION: Final = 1


class FlatHooks:
    """These hooks as a part of a settings file. The entry of an event is the handler itself."""

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return our entries by event. Raises InvalidText."""
        found: dict[str, Any] = {}
        for event, entries in _events(text).items():
            ours = [entry for entry in entries if _is_ours(entry)]
            if ours:
                found[event] = ours[0]
        return found

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        """Return the text with exactly our wanted entries. Raises InvalidText."""
        if {event: [entry] for event, entry in wanted.items()} == _ours(text) and text is not None:
            return text
        text = self.stripped(text) if text is not None and text.strip() else "{}\n"
        root = root_of(text)
        if member(text, root, "version") is None:
            text = appended(text, root, VERSION, "version")
        if member(text, root, "hooks") is None:
            return appended(text, root, {event: [entry] for event, entry in wanted.items()}, "hooks")
        for event, entry in wanted.items():
            hooks = value_of(text, root, "hooks")
            entries = member(text, hooks, event)
            text = appended(text, hooks, [entry], event) if entries is None else appended(text, entries.value, entry)
        return text

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our entries, and without what only they filled. Raises InvalidText."""
        root = root_of(text)
        ours = _ours(text)
        for event in ours:
            entries = _events(text)[event]
            for place in reversed(range(len(entries))):
                if _is_ours(entries[place]):
                    text = removed(text, value_of(text, value_of(text, root, "hooks"), event), place)
            text = without_empty(text, ("hooks", event), former)
        is_our_version = bool(ours) and "version" not in object_of(former or '{"version": 1}', comments=True)
        if is_our_version and object_of(text, comments=True).get("version") == VERSION:
            names = [part.key for part in parts(text, root)]
            text = without_empty(removed(text, root, names.index("version")), (), former)
        return text

    def is_pure(self, entries: dict[str, Any]) -> bool:  # noqa: ARG002 - as other parts of settings
        """Return True: an entry has one command."""
        return True

    def is_blank(self, text: str) -> bool:
        """Return whether nothing but the version is in the text. Raises InvalidText."""
        return object_of(text, comments=True) in ({}, {"version": VERSION})


def _events(text: str | None) -> dict[str, list[Any]]:
    """Return the hooks by event. Raises InvalidText if they have another form."""
    document = object_of(text, comments=True)
    if "hooks" not in document:
        return {}
    assert text is not None, "it has something in it"
    start = value_of(text, root_of(text), "hooks")
    hooks = document["hooks"]
    if not isinstance(hooks, dict):
        raise InvalidText(line_of(text, start), '"hooks" is not an object in braces')
    for event, entries in hooks.items():
        if not isinstance(entries, list):
            place = value_of(text, start, event)
            raise InvalidText(line_of(text, place), f"the hooks of {event[:50]} are not a list in brackets")
    return hooks


def _is_ours(entry: Any) -> bool:
    """Return whether the entry runs ``signet-hook``. An entry without a type is a command."""
    return isinstance(entry, dict) and is_ours({"type": "command", **entry})


def _ours(text: str | None) -> dict[str, list[Any]]:
    found = {event: [entry for entry in entries if _is_ours(entry)] for event, entries in _events(text).items()}
    return {event: ours for event, ours in found.items() if ours}
