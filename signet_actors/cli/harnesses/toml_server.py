"""Our MCP server in a settings file in TOML: a table ``[mcp_servers.signet]`` at its end.

The text is edited by lines, so that comments and order stay; the standard library's parser then tells whether exactly
our table has come or gone. If not (an inline table, a text that looks like a header), the file is refused.

Source: https://developers.openai.com/codex/config-reference "mcp_servers".
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from typing import Any, Final

from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.cli.harnesses.server_entry import NAME, is_our_server

SERVERS: Final = "mcp_servers"
_HEADER: Final = f"[{SERVERS}.{NAME}]"
_LINE_OF_ERROR = re.compile(r"at line (\d{1,9})")


class TomlServer:
    """This table as a part of a settings file."""

    def found(self, text: str | None) -> Any:
        """Return the table named signet, ours or not; None if there is none. Raises InvalidText."""
        servers = _document(text).get(SERVERS)
        return servers.get(NAME) if isinstance(servers, dict) else None

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return our table; an empty one if there is none. Raises InvalidText."""
        table = self.found(text)
        return table if is_our_server(table) else {}

    def connected(self, text: str | None, wanted: dict[str, Any]) -> str:
        """Return the text with our wanted table, unless another one has its name. Raises InvalidText."""
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
            raise InvalidText(_last_line(before), f"a table {_HEADER} cannot be added at its end")
        return after

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our table, and without the blank line before it. Raises InvalidText."""
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
            with contextlib.suppress(InvalidText):
                found = _document(after)
                if {SERVERS: {}, **found} == expected:
                    return after
        raise InvalidText(1, f"the table {_HEADER} cannot be told from the rest; remove it by hand")

    def is_pure(self, entries: dict[str, Any]) -> bool:  # noqa: ARG002 - as other parts of settings
        """Return True: a table starts one program."""
        return True

    def is_blank(self, text: str) -> bool:
        return not text.strip()


def _document(text: str | None, *, of_ours: bool = False) -> dict[str, Any]:
    try:
        return tomllib.loads((text or "").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if of_ours:
            raise InvalidText(1, f"a table {_HEADER} cannot be added at its end ({error})") from None
        line = _LINE_OF_ERROR.search(str(error))
        raise InvalidText(int(line[1]) if line else 1, f"not valid TOML ({error})", is_json=False) from None


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


def _last_line(text: str) -> int:
    return text.count("\n") + 1
