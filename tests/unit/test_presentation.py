"""What commands print."""

from __future__ import annotations

import pytest

from signet_actors.cli.memory_rows import print_memories


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("✓ ready", b"ok ready"),
        ("✗ gone → start", b"fail gone -> start"),
        ("● running · 3", b"* running - 3"),
        ("a…", b"a..."),
        ("──", b"--"),
        ("Caf\u00e9 \u6771", b"Caf\\xe9 \\u6771"),
    ],
)
def test_a_terminal_without_our_signs_shows_words(text: str, shown: bytes) -> None:
    assert text.encode("ascii", errors="signet") == shown


def test_an_entry_of_a_timeline_is_printed_with_the_id_of_its_memory_or_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"id": "m1", "content": "a result"},
        {"id": "m2", "content": "one of that time", "subject_type": "memory", "subject_id": "m2"},
        {"id": "temporal:memory:m3:captured", "content": "an entry", "subject_type": "memory", "subject_id": "m3"},
        {"id": "temporal:session:s1:session", "content": "a session", "subject_type": "session", "subject_id": "s1"},
    ]
    print_memories(rows)
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(cells[0], cells[-1]) for cells in printed] == [
        ("m1", "a result"),
        ("m2", "one of that time"),
        ("m3", "an entry"),
        ("s1", "a session"),
    ]
