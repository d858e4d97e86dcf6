"""Our plugin of OpenCode: a whole file that is ours, told from others by its first line.

The hooks that it runs are a table in it, in JSON on one line, so that they can be read back without JavaScript.

Source: https://opencode.ai/docs/plugins; packages/plugin/src of https://github.com/anomalyco/opencode.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

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
    """This file as a part of the settings. A file of the same name that is not ours is left alone."""

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
