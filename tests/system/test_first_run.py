"""`signet setup` on a terminal and with `--yes`: from an empty home directory to an agent that remembers.

Source: docs/cli.md "Harnesses".
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support import past_sessions
from tests.support.documentation import Home, empty_home

pytestmark = pytest.mark.system
QUESTIONS = (
    "Connect Cursor? [Y/n]: ",
    "Connect OpenCode? [Y/n]: ",
    "Import notes, a directory of Markdown files? [y/N]: ",
    "Directory: ",
    "Bring in 1 past session",
    "Have the daemon start whenever you log in? [Y/n]: ",
)


@pytest.fixture
def home() -> Iterator[Home]:
    with empty_home("docs/cli.md") as home:
        yield home


def test_the_first_run_ends_with_an_agent_that_gets_the_memories_of_the_user(home: Home) -> None:
    past_sessions.claude_code(home.root)
    notes = home.root / "my notes"
    notes.mkdir()
    (notes / "ports.md").write_text("# Ports\n\nThe staging database listens on port 5433.\n")
    answers = ["", "n", "", "y", str(notes), "y", ""]
    said = home.command("signet setup", answers)
    print(said)
    places = [said.index(question) for question in ("Connect Claude Code? [Y/n]: ", *QUESTIONS)]
    assert places == sorted(places), said
    summary = said[said.index("✓ daemon") :].splitlines()
    assert [line[:14].rstrip() for line in summary if line[0] in "✓!✗"] == [
        "✓ daemon",
        "✓ Claude Code",
        "! Cursor",
        "✓ OpenCode",
        "✓ notes",
        "✓ sessions",
        "✓ service",
    ], said
    assert "Next: `signet connect --check`, then a new session of Claude Code or OpenCode." in " ".join(said.split())
    warnings = home.command("signet logs --level warning")
    checked = home.command("signet connect --check")
    assert checked.count("✓ tools") == 2, checked
    assert "✗" not in checked
    assert home.command("signet logs --level warning") == warnings
    assert "There are no deleted memories." in home.command("signet list --deleted | cat")
    assert "5433" in home.command('signet recall "port of the staging database"')
    assert "pid" in home.command("signet service status")
    again = home.command("signet setup", ["n"])
    assert "Connect Cursor? [Y/n]: n" in again
    assert "There is nothing to do." in again


def test_without_questions_everything_is_done_that_enter_answers_and_then_nothing_is_left_to_do(home: Home) -> None:
    home.environment["PATH"] = home.environment["PATH"].partition(":")[2]  # without a service manager that answers
    said = home.command("signet setup --yes < /dev/null")
    assert "?" not in said
    assert [line[:12].rstrip() for line in said.splitlines() if line[0] in "✓!✗"] == [
        "✓ daemon",
        "✓ Cursor",
        "✓ OpenCode",
    ]
    assert "There is nothing to do." in home.command("signet setup --yes < /dev/null")
    states = json.loads(home.command("signet setup --json"))["harnesses"]
    assert {row["state"] for row in states} == {"connected"}
    home.command("signet stop")
    checked = home.command("signet connect --check; echo code $?")
    assert "✗ start   the agent gets no memory: no daemon" in checked
    assert "code 3" in checked
    assert "✓" not in checked
