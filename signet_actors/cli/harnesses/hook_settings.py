"""Our entries among the hooks of a settings file: ``{"hooks": {EVENT: [{"matcher": …, "hooks": [HANDLER]}]}}``.

A handler is ours if its command is a program named ``signet-hook``, started by an isolated Python or, as earlier
releases did, by itself. Nothing else is changed, nor its order.

Source: https://opencode.ai/docs/plugins; https://code.claude.com/docs/en/hooks; https://developers.openai.com/codex/hooks.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PROGRAM: Final = "signet-hook"
ISOLATED: Final = "-I"
Groups = dict[str, dict[str, Any]]
"""Our matcher group of each event."""


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


def document_of(text: str | None, *, comments: bool = False) -> dict[str, Any]:
    """Return the document; an empty one for no text. Raises InvalidText if its hooks have another form."""
    document = object_of(text, comments=comments)
    if document:
        assert text is not None, "it has something in it"
        _check_form(text, document)
    return document


def _ours(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the groups that have a handler of ours, by event."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event, groups in (document.get("hooks") or {}).items():
        ours = [group for group in groups if any(map(is_ours, group["hooks"]))]
        if ours:
            found[event] = ours
    return found


def _hooks(text: str) -> int:
    return value_of(text, root_of(text), "hooks")


def _check_form(text: str, document: dict[str, Any]) -> None:
    """Raise InvalidText, with the line, if the hooks do not have the form of the harness."""
    hooks = document.get("hooks")
    if "hooks" not in document:
        return
    start = _hooks(text)
    if not isinstance(hooks, dict):
        raise InvalidText(line_of(text, start), '"hooks" is not an object in braces')
    for event, groups in hooks.items():
        place = value_of(text, start, event)
        if not isinstance(groups, list):
            raise InvalidText(line_of(text, place), f"the hooks of {event[:50]} are not a list in brackets")
        for group, part in zip(groups, parts(text, place), strict=True):
            if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
                raise InvalidText(line_of(text, part.start), f'an entry of {event[:50]} has no list "hooks"')
            value_of(text, part.start, "hooks")


class HookGroups:
    """These hooks as a part of a settings file, which may have comments if ``comments``."""

    def __init__(self, *, comments: bool) -> None:
        self._comments = comments

    def installed(self, text: str | None) -> Groups:
        """Return our entries as they are in the text. Raises InvalidText."""
        return {event: groups[0] for event, groups in _ours(document_of(text, comments=self._comments)).items()}

    def connected(self, text: str | None, wanted: Groups) -> str:
        """Return the text with exactly our wanted entries. Raises InvalidText."""
        document = document_of(text, comments=self._comments)
        if text is None or not text.strip():
            text = "{}\n"
        elif _ours(document) == {event: [group] for event, group in wanted.items()}:
            return text
        else:
            text = self.stripped(text)
        if member(text, root_of(text), "hooks") is None:
            return appended(text, root_of(text), {event: [group] for event, group in wanted.items()}, "hooks")
        for event, group in wanted.items():
            hooks = _hooks(text)
            groups = member(text, hooks, event)
            text = appended(text, hooks, [group], event) if groups is None else appended(text, groups.value, group)
        return text

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our entries, and without what only they filled. Raises InvalidText."""
        document = document_of(text, comments=self._comments)
        if not _ours(document):
            return text
        for event, groups in document["hooks"].items():
            for place in reversed(range(len(groups))):
                ours = [number for number, handler in enumerate(groups[place]["hooks"]) if is_ours(handler)]
                array = value_of(text, _hooks(text), event)
                if ours and len(ours) == len(groups[place]["hooks"]):
                    text = removed(text, array, place)
                    continue
                for number in reversed(ours):
                    group = parts(text, value_of(text, _hooks(text), event))[place].start
                    text = removed(text, value_of(text, group, "hooks"), number)
            if any(is_ours(handler) for group in groups for handler in group["hooks"]):
                text = without_empty(text, ("hooks", event), former)
        return text

    def is_pure(self, entries: Groups) -> bool:
        return all(is_ours(handler) for group in entries.values() for handler in group["hooks"])

    def is_blank(self, text: str) -> bool:
        return not document_of(text, comments=self._comments)


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


class PluginFile:
    """Our plugin of OpenCode: a whole file that is ours, told from others by its first line; others are left alone.

    The hooks that it runs are a table in it, in JSON on one line, so that they can be read back without JavaScript.
    """

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return the handler of each event; empty if the file is not ours."""
        if text is None or not is_our_plugin(text):
            return {}
        lines = [line.removeprefix(_TABLE) for line in text.splitlines() if line.startswith(_TABLE)]
        try:
            found = json.loads(lines[0])
        except (IndexError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        """Return our file with the wanted handlers, unless another file is there."""
        if text is not None and text.strip() and not is_our_plugin(text):
            return text
        return HEAD + source("opencode", hooks=wanted)

    def stripped(self, text: str, former: str | None = None) -> str:  # noqa: ARG002 - as other parts of settings
        """Return the empty text for our file."""
        return "" if is_our_plugin(text) else text

    def is_pure(self, entries: dict[str, Any]) -> bool:  # noqa: ARG002 - as other parts of settings
        """Return True: the whole file is ours."""
        return True

    def is_blank(self, text: str) -> bool:
        return not text.strip()


def source(program: str, **tables: Any) -> str:
    """Return the source of the plugin of this program; each table becomes the constant of its name in capitals."""
    text = "\n".join((JAVASCRIPT / f"{name}.js").read_text(encoding="utf-8") for name in ("sessions", program))
    for name, table in tables.items():
        empty = f"const {name.upper()} = {{}}\n"
        assert text.count(empty) == 1, "the source has the constant"
        text = text.replace(empty, f"const {name.upper()} = {json.dumps(table, ensure_ascii=False)}\n")
    return text


def is_our_plugin(text: str) -> bool:
    """Return whether ``connect`` made the file."""
    return text.startswith(MARK)
