"""Our entry among the MCP servers of a settings file in JSON: ``{"mcpServers": {"signet": {"command": …}}}``.

An entry named ``signet`` is ours if it starts a program ``signet``, by its absolute path, with ``mcp``: by an isolated
Python or, as earlier releases did, by itself. Another one is left alone: its owner may have chosen another way to reach
the daemon.

Source: docs/guides/mcp.md "Connect your program".
"""

from __future__ import annotations

import os
from typing import Any, Final

from signet_actors.cli.harnesses.hook_settings import program_words
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

NAME: Final = "signet"
_OF_ONE_SERVER: Final = frozenset({"type", "command", "url", "enabled"})


def server_words(entry: Any) -> list[str]:
    """Return the command of an entry as an argument list; empty if it starts none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command"), entry.get("args") or []
    words = [
        *(command if isinstance(command, list) else [command]),
        *(arguments if isinstance(arguments, list) else []),
    ]
    return words if all(isinstance(word, str) for word in words) else []


def is_our_server(entry: Any) -> bool:
    """Return whether ``connect`` made the entry."""
    words = program_words(server_words(entry))
    return len(words) > 1 and os.path.isabs(words[0]) and os.path.basename(words[0]) == NAME and words[1] == "mcp"


class ServerEntry:
    """This entry as a part of a settings file.

    ``keys`` lead to the servers. ``inner``: a member of that name that is no server holds them instead, if it is there
    (OpenCode 2). ``comments``: the file may have comments.
    """

    def __init__(self, keys: tuple[str, ...], *, comments: bool, inner: str = "") -> None:
        self._keys = keys
        self._comments = comments
        self._inner = inner

    def found(self, text: str | None) -> Any:
        """Return the entry named ``signet``, ours or not; None if there is none. Raises InvalidText."""
        document = object_of(text, comments=self._comments)
        for key in self._path(document):
            if key not in document:
                return None
            inner = document[key]
            if not isinstance(inner, dict):
                assert text is not None, "it has something in it"
                raise InvalidText(_line_of_key(text, key), f'"{key}" is not an object in braces')
            document = inner
        return document.get(NAME)

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return our entry; an empty one if there is none. Raises InvalidText."""
        entry = self.found(text)
        return entry if is_our_server(entry) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        """Return the text with our wanted entry, unless another one has its name. Raises InvalidText."""
        entry = self.found(text)
        if text is None or not text.strip():
            text = "{}\n"
        elif entry == wanted or (entry is not None and not is_our_server(entry)):
            return text
        else:
            text = self.stripped(text)
        keys = self._path(object_of(text, comments=self._comments))
        container = root_of(text)
        for place, key in enumerate(keys):
            inner = member(text, container, key)
            if inner is None:
                missing: dict[str, Any] = {NAME: wanted}
                for outer in reversed(keys[place + 1 :]):
                    missing = {outer: missing}
                return appended(text, container, missing, key)
            container = inner.value
        return appended(text, container, wanted, NAME)

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our entry, and without what only it filled. Raises InvalidText."""
        if not self.installed(text):
            return text
        keys = self._path(object_of(text, comments=self._comments))
        servers = root_of(text)
        for key in keys:
            servers = value_of(text, servers, key)
        names = [part.key for part in parts(text, servers)]
        return without_empty(removed(text, servers, names.index(NAME)), keys, former)

    def is_pure(self, entries: dict[str, Any]) -> bool:  # noqa: ARG002 - as other parts of settings
        """Return True: an entry starts one program."""
        return True

    def is_blank(self, text: str) -> bool:
        return not object_of(text, comments=self._comments)

    def _path(self, document: dict[str, Any]) -> tuple[str, ...]:
        inner: Any = document
        for key in self._keys:
            inner = inner.get(key) if isinstance(inner, dict) else None
        servers = inner.get(self._inner) if isinstance(inner, dict) and self._inner else None
        return (
            (*self._keys, self._inner)
            if isinstance(servers, dict) and not _OF_ONE_SERVER & set(servers)
            else self._keys
        )


def _line_of_key(text: str, key: str) -> int:
    return line_of(text, max(0, text.find(f'"{key}"')))
