"""Our entries among the hooks of a settings file: ``{"hooks": {EVENT: [{"matcher": …, "hooks": [HANDLER]}]}}``.

A handler is ours if its command is a program named ``signet-hook``, started by an isolated Python or, as earlier
releases did, by itself. Nothing else is changed, nor its order.

Source: https://code.claude.com/docs/en/hooks; https://developers.openai.com/codex/hooks; https://cursor.com/docs/hooks;
https://opencode.ai/docs/plugins; packages/plugin/src of https://github.com/anomalyco/opencode.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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
from signet_actors.cli.harnesses.settings_file import Part

PROGRAM: Final = "signet-hook"
ISOLATED: Final = "-I"
Groups = dict[str, dict[str, Any]]
"""Our matcher group of each event; in the form of Cursor its handler."""
VERSION: Final = 1


def start_words(program: str) -> list[str]:
    """Return how a program of ours is started: in a virtual environment by its Python, isolated.

    Then no variable of Python and no module in a directory of the user keeps it from starting. Elsewhere its packages
    may be in such a directory, and a bare name, in a plugin, is found on the PATH of any machine.
    """
    directory = os.path.dirname(os.path.realpath(program))
    python = os.path.join(directory, "python")
    if not (os.path.isabs(program) and os.path.isfile(os.path.join(directory, os.pardir, "pyvenv.cfg"))):
        return [program]
    return [python, ISOLATED, program] if os.access(python, os.X_OK) else [program]


def command_words(handler: Any) -> list[str]:
    """Return the command of a handler as an argument list; empty if it is no command, or one that no shell can read."""
    if not isinstance(handler, dict) or handler.get("type") != "command" or not isinstance(handler.get("command"), str):
        return []
    command, arguments = handler["command"], handler.get("args")
    if isinstance(arguments, list):
        return [command, *map(str, arguments)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def started_words(handler: Any) -> list[str]:
    """Return the command of a handler as an argument list, also of one that does not say that it is a command."""
    return command_words({"type": "command", **handler} if isinstance(handler, dict) else handler)


def program_words(words: list[str]) -> list[str]:
    """Return a command from its program on, which an isolated Python starts, or which is started by itself."""
    return words[2:] if words[1:2] == [ISOLATED] else words


def is_ours(handler: Any) -> bool:
    """Return whether the handler runs ``signet-hook``."""
    return os.path.basename("".join(program_words(command_words(handler))[:1])) == PROGRAM


def is_of_other_signet(handler: Any) -> bool:
    """Return whether the handler runs ``signet hook``, as the original Signet installs it."""
    words = command_words(handler)
    return [os.path.basename(words[0]), *words[1:2]] == ["signet", "hook"] if words else False


def handlers(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the event and the handler of each command hook in a valid document."""
    for event, groups in (document.get("hooks") or {}).items():
        for group in groups:
            yield from ((event, handler) for handler in group["hooks"] if isinstance(handler, dict))


class HookGroups(Part):
    """These hooks as a part of a settings file, which may have comments if ``comments``.

    ``flat``: the form of Cursor, ``{"version": 1, "hooks": {EVENT: [HANDLER]}}``, in which a handler without a type is
    a command.
    """

    def __init__(self, *, comments: bool, flat: bool = False) -> None:
        self._comments = comments
        self._flat = flat

    def installed(self, text: str | None) -> Groups:
        return {event: entries[0] for event, entries in self._ours(self.document(text)).items()}

    def connected(self, text: str | None, wanted: Groups) -> str:
        entries = {event: [entry] for event, entry in wanted.items()}
        document = self.document(text)
        if text is None or not text.strip():
            text = "{}\n"
        elif self._ours(document) == entries:
            return text
        else:
            text = self.stripped(text)
        root = root_of(text)
        if self._flat and member(text, root, "version") is None:
            text = appended(text, root, VERSION, "version")
        if member(text, root, "hooks") is None:
            return appended(text, root, entries, "hooks")
        for event, entry in wanted.items():
            hooks = _hooks(text)
            there = member(text, hooks, event)
            text = appended(text, hooks, [entry], event) if there is None else appended(text, there.value, entry)
        return text

    def stripped(self, text: str, former: str | None = None) -> str:
        document = self.document(text)
        if not self._ours(document):
            return text
        for event, entries in document["hooks"].items():
            for place in reversed(range(len(entries))):
                found = self._handlers(entries[place])
                ours = [number for number, handler in enumerate(found) if is_ours(handler)]
                array = value_of(text, _hooks(text), event)
                if ours and len(ours) == len(found):
                    text = removed(text, array, place)
                    continue
                for number in reversed(ours):
                    group = parts(text, value_of(text, _hooks(text), event))[place].start
                    text = removed(text, value_of(text, group, "hooks"), number)
            if any(is_ours(handler) for entry in entries for handler in self._handlers(entry)):
                text = without_empty(text, ("hooks", event), former)
        is_our_version = self._flat and "version" not in object_of(former or '{"version": 1}', comments=True)
        if is_our_version and object_of(text, comments=True).get("version") == VERSION:
            root = root_of(text)
            names = [part.key for part in parts(text, root)]
            text = without_empty(removed(text, root, names.index("version")), (), former)
        return text

    def is_pure(self, entries: Groups) -> bool:
        return all(is_ours(handler) for entry in entries.values() for handler in self._handlers(entry))

    def is_blank(self, text: str) -> bool:
        return self.document(text) in ({}, {"version": VERSION} if self._flat else {})

    def handler_of(self, entry: dict[str, Any]) -> dict[str, Any]:
        return entry if self._flat else next(handler for handler in entry["hooks"] if is_ours(handler))

    def document(self, text: str | None) -> dict[str, Any]:
        """Return the document; an empty one for no text. Raises InvalidText if its hooks have another form."""
        document = object_of(text, comments=self._comments)
        if "hooks" not in document:
            return document
        assert text is not None, "it has something in it"
        hooks, start = document["hooks"], _hooks(text)
        if not isinstance(hooks, dict):
            raise InvalidText(line_of(text, start), '"hooks" is not an object in braces')
        for event, entries in hooks.items():
            place = value_of(text, start, event)
            if not isinstance(entries, list):
                raise InvalidText(line_of(text, place), f"the hooks of {event[:50]} are not a list in brackets")
            for group, part in () if self._flat else zip(entries, parts(text, place), strict=True):
                if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
                    raise InvalidText(line_of(text, part.start), f'an entry of {event[:50]} has no list "hooks"')
                value_of(text, part.start, "hooks")
        return document

    def _handlers(self, entry: Any) -> list[Any]:
        if self._flat:
            return [{"type": "command", **entry}] if isinstance(entry, dict) else []
        found: list[Any] = entry["hooks"]
        return found

    def _ours(self, document: dict[str, Any]) -> dict[str, list[Any]]:
        events = (document.get("hooks") or {}).items()
        found = {
            event: [entry for entry in entries if any(map(is_ours, self._handlers(entry)))] for event, entries in events
        }
        return {event: ours for event, ours in found.items() if ours}


def _hooks(text: str) -> int:
    return value_of(text, root_of(text), "hooks")


JAVASCRIPT: Final = Path(__file__).with_name("javascript")
MARK: Final = "// Signet: made by `signet connect opencode`"
HEAD: Final = f"""\
{MARK}, which writes it anew; `signet disconnect opencode` removes the whole file.
//
// It tells the Signet daemon of this machine, by the program signet-hook, what happens in a session, and adds what
// comes back to the system prompt. It never throws, prints nothing, and waits for nothing longer than the limits below.
// OpenCode 1 (from 1.3.4 on) calls `server`, OpenCode 2 calls `setup`.

"""
_TABLE: Final = "const HOOKS = "


class PluginFile(Part):
    """Our plugin of OpenCode: a whole file that is ours, told from others by its first line; others are left alone.

    The hooks that it runs are a table in it, in JSON on one line, so that they can be read back without JavaScript.
    """

    def installed(self, text: str | None) -> dict[str, Any]:
        if text is None or not is_our_plugin(text):
            return {}
        lines = [line.removeprefix(_TABLE) for line in text.splitlines() if line.startswith(_TABLE)]
        try:
            found = json.loads(lines[0])
        except (IndexError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        if text is not None and text.strip() and not is_our_plugin(text):
            return text
        return HEAD + source("opencode", hooks=wanted)

    def stripped(self, text: str, former: str | None = None) -> str:  # noqa: ARG002 - as other parts of settings
        return "" if is_our_plugin(text) else text


def source(program: str, **tables: Any) -> str:
    """Return the source of the plugin of this program; each table becomes the constant of its name in capitals."""
    text = "\n".join((JAVASCRIPT / f"{name}.js").read_text(encoding="utf-8") for name in ("sessions", program))
    for name, table in tables.items():
        empty = f"const {name.upper()} = {{}}\n"
        assert text.count(empty) == 1, "the source has the constant"
        text = text.replace(empty, f"const {name.upper()} = {json.dumps(table, ensure_ascii=False)}\n")
    return text


def is_our_plugin(text: str) -> bool:
    return text.startswith(MARK)
