"""Lines that are broken between parts, and commands that stay in one piece.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

from typing import Final

import pytest
from rich.cells import cell_len

from signet_actors.cli.presentation import wrap, wrap_message, wrap_parts
from signet_actors.cli.tables import field_lines

SENTENCES: Final = (
    ("running", "44 memories", "2 sessions", "last backup just now", "Claude Code connected"),
    ("running, degraded", "1 memory", "last backup 3 min ago", "no agent connected (`signet setup`)"),
    ("running", "12,345 memories", "120 sessions", "Claude Code, Codex, Gemini CLI connected"),
    ("01a22637-75dc-7754-b8d1", "decision", "7 min ago", "see the newer 01a22637-7601-77aa-b8d1", "project shop"),
    ("01a22637-760d-77aa-b8d1", "fact", "just now", "pinned", "orderdesk-notes/02-ports.md", "ports, hosts"),
    ("01a22637-760d", "préférence", "gestern", "Überweisung/fällig.md", "straße, größe"),
    ("01a22637-760d", "факт", "just now", "развёртывание", "порты"),
    ("session 0b7d8a52-3f0e", "2 days ago", "orderdesk"),
    ("one",),
    ("", "only this", ""),
)
COMMANDS: Final = (
    "no agent connected (`signet setup`)",
    "off, needs a model (`signet providers`)",
    "it is not valid, so a restart would fail; correct it with `signet config edit`",
    "déjà vu: it is not valid, so a restart would fail; correct it with `signet config edit`",
    "… `ollama pull qwen3:4b` gets one, then `signet restart` takes it",
    "none: install Ollama and `ollama pull qwen3:4b`, or `signet config set embedding.provider none`",
    'Similar: "Tests run with `pytest -k…" (now). If that is no longer true: `signet edit 01a22637-75f5 --content "…"`',
    'Similar: "`" (now). If that is no longer true: `signet edit 01a22637-75f5-7d23-94d3 --content "…"`',
    "stop it with `signet stop`, or choose another workspace with `SIGNET_WORKSPACE=DIRECTORY signet start`",
    "the memory tools are missing; `signet connect claude-code --check` says more",
    "ein Gerät; `signet connect claude-code --check` sagt mehr über das, was fehlt",
    "`signet logs --level error` shows the cause",
)


@pytest.mark.parametrize("width", [43, 46, 52, 60, 72, 78, 79, 80, 81, 100])
def test_a_line_of_parts_is_broken_between_them_and_never_within_one(width: int) -> None:
    for parts in SENTENCES:
        lines = wrap_parts(parts, width)
        assert max(map(cell_len, lines)) <= width, lines
        assert " ".join(lines).split(" · ") == [part for part in parts if part]
        assert all(any(part in line for line in lines) for part in parts), lines


@pytest.mark.parametrize("width", [56, 60, 64, 72, 80, 100])
def test_a_command_between_backquotes_is_never_broken(width: int) -> None:
    for text in COMMANDS:
        command = text[text.rindex("`", 0, text.rindex("`")) : text.rindex("`") + 1]
        for lines in (
            wrap(text, width),
            wrap(text, width, chop=False),
            wrap_message(text, width).split("\n"),
            list(field_lines([("to get one", text, False)], width, lambda shown, **_: shown, 2)),
        ):
            assert any(command in line for line in lines), (width, lines)
        assert " ".join(wrap(text, width)) == text


def test_text_between_two_commands_is_broken_like_any_other() -> None:
    assert wrap("`a b` and some words and more of them and `c d` e", 20) == [
        "`a b` and some words",
        "and more of them and",
        "`c d` e",
    ]
    assert wrap("a ` b and some words ` and more", 12) == ["a ` b and", "some words `", "and more"]
