"""Our entry among the MCP servers of a settings file: ``{"mcpServers": {"signet": {"command": …}}}``, or in TOML.

An entry named ``signet`` is ours if it starts a program ``signet``, by its absolute path, with ``mcp``: by an isolated
Python or, as earlier releases did, by itself. Another one is left alone: its owner may have chosen another way to reach
the daemon.

Source: docs/guides/mcp.md "Connect your program"; https://developers.openai.com/codex/config-reference "mcp_servers".
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from typing import Any, Final

from signet_actors.cli.harnesses import json_text
from signet_actors.cli.harnesses.hook_settings import program_words
from signet_actors.cli.harnesses.settings_file import Part

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


class ServerEntry(Part):
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
        document = json_text.object_of(text, comments=self._comments)
        for key in self._path(document):
            if key not in document:
                return None
            inner = document[key]
            if not isinstance(inner, dict):
                assert text is not None, "it has something in it"
                raise json_text.InvalidText(
                    json_text.line_of(text, max(0, text.find(f'"{key}"'))), f'"{key}" is not an object in braces'
                )
            document = inner
        return document.get(NAME)

    def installed(self, text: str | None) -> dict[str, Any]:
        entry = self.found(text)
        return entry if is_our_server(entry) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        entry = self.found(text)
        if text is None or not text.strip():
            text = "{}\n"
        elif entry == wanted or (entry is not None and not is_our_server(entry)):
            return text
        else:
            text = self.stripped(text)
        return json_text.inserted(text, self._path(json_text.object_of(text, comments=self._comments)), NAME, wanted)

    def stripped(self, text: str, former: str | None = None) -> str:
        if not self.installed(text):
            return text
        keys = self._path(json_text.object_of(text, comments=self._comments))
        servers = json_text.root_of(text)
        for key in keys:
            servers = json_text.value_of(text, servers, key)
        names = [part.key for part in json_text.parts(text, servers)]
        return json_text.without_empty(json_text.removed(text, servers, names.index(NAME)), keys, former)

    def is_blank(self, text: str) -> bool:
        return not json_text.object_of(text, comments=self._comments)

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


SERVERS: Final = "mcp_servers"
_HEADER: Final = f"[{SERVERS}.{NAME}]"
_LINE_OF_ERROR = re.compile(r"at line (\d{1,9})")


class TomlServer(Part):
    """A table ``[mcp_servers.signet]`` at the end of a settings file in TOML.

    The text is edited by lines, so that comments and order stay; the parser of the standard library then tells whether
    exactly our table has come or gone. If not (an inline table, a text that looks like a header), the file is refused.
    """

    def found(self, text: str | None) -> Any:
        """Return the table named signet, ours or not; None if there is none. Raises InvalidText."""
        servers = _document(text).get(SERVERS)
        return servers.get(NAME) if isinstance(servers, dict) else None

    def installed(self, text: str | None) -> dict[str, Any]:
        table = self.found(text)
        return table if is_our_server(table) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        table = self.found(text)
        if table == wanted or (table is not None and not is_our_server(table)):
            return text or ""
        before = self.stripped(text or "")
        newline = "\r\n" if "\r\n" in before else "\n"
        gap = "" if not before else newline if before.endswith("\n") else 2 * newline
        values = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in wanted.items()]
        after = before + gap + "".join(line + newline for line in (_HEADER, *values))
        servers = _document(before).get(SERVERS, {})
        expected = {**_document(before), SERVERS: {**(servers if isinstance(servers, dict) else {}), NAME: wanted}}
        if _document(after, of_ours=True) != expected:
            raise json_text.InvalidText(before.count("\n") + 1, f"a table {_HEADER} cannot be added at its end")
        return after

    def stripped(self, text: str, former: str | None = None) -> str:
        if not self.installed(text):
            return text
        lines = text.splitlines(keepends=True)
        expected = _document(text)
        del expected[SERVERS][NAME]
        headers = [place for place, line in enumerate(lines) if line.partition("#")[0].strip() == _HEADER]
        for begin in reversed(headers):  # an earlier one may be a part of a text
            above, below = _around_table(lines, begin)
            if not below.strip() and former and not former.endswith("\n"):
                above = above.removesuffix("\n").removesuffix("\r")
            after = above + below
            with contextlib.suppress(json_text.InvalidText):
                found = _document(after)
                if {SERVERS: {}, **found} == expected:
                    return after
        raise json_text.InvalidText(1, f"the table {_HEADER} cannot be told from the rest; remove it by hand")


def _document(text: str | None, *, of_ours: bool = False) -> dict[str, Any]:
    try:
        return tomllib.loads((text or "").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if of_ours:
            raise json_text.InvalidText(1, f"a table {_HEADER} cannot be added at its end ({error})") from None
        line = _LINE_OF_ERROR.search(str(error))
        raise json_text.InvalidText(int(line[1]) if line else 1, f"not valid TOML ({error})", is_json=False) from None


def _around_table(lines: list[str], begin: int) -> tuple[str, str]:
    """Return what stands above the table whose header is this line, without the blank line before it, and below."""
    end = begin + 1
    while end < len(lines) and (not _is_header(lines[end]) or _is_ours(lines[end])):
        end += 1
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1  # they belong to what follows
    if begin and not lines[begin - 1].strip():
        begin -= 1
    return "".join(lines[:begin]), "".join(lines[end:])


def _is_header(line: str) -> bool:
    return line.startswith("[") and line.partition("#")[0].rstrip().endswith("]")


def _is_ours(line: str) -> bool:
    """Return whether the line is the header of our table, or of one in it."""
    name = line.partition("#")[0].strip()
    return name == _HEADER or (name.startswith(f"[{SERVERS}.{NAME}.") and name.endswith("]"))
