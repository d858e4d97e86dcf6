"""`signet setup` on a terminal and with `--yes`: from an empty home directory to an agent that remembers.

Source: docs/cli.md "Harnesses".
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support import past_sessions
from tests.support.documentation import Home, empty_home
from tests.support.multilingual import HAS_MODEL

pytestmark = pytest.mark.system
QUESTIONS = (
    "Connect Cursor? [Y/n]: ",
    "Connect OpenCode? [Y/n]: ",
    "Import notes, a directory of Markdown files? [y/N]: ",
    "Directory: ",
    "For which project? (Enter: all): ",
    "Bring in 1 past session",
    "Have the daemon start whenever you log in? [Y/n]: ",
)


@pytest.fixture
def home() -> Iterator[Home]:
    with empty_home("docs/cli.md") as home:
        yield home


def files(home: Home) -> dict[str, bytes | None]:
    """Return every file of the home directory, but for the state of the service manager."""
    return {
        name: path.read_bytes() if path.is_file() else None
        for path in home.root.rglob("*")
        if not (name := str(path.relative_to(home.root))).startswith((".stand-in", "bench/"))
    }


def test_the_first_run_ends_with_an_agent_that_gets_the_memories_of_the_user(home: Home) -> None:
    past_sessions.claude_code(home.root)
    notes = home.root / "my notes"
    notes.mkdir()
    (notes / "ports.md").write_text("# Ports\n\nThe staging database listens on port 5433.\n")
    (home.root / ".agents").mkdir(mode=0o700)
    (home.root / ".agents" / "AGENTS.md").write_text("Answer in German.\n")
    (home.root / ".config/systemd/user").mkdir(parents=True)
    (home.root / ".cache").mkdir()
    before = files(home)
    answers = ["", "n", "", "y", str(notes), "shop", "y", ""]
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
    assert "5433" in home.command("signet list --project shop")
    assert "pid" in home.command("signet service status")
    again = home.command("signet setup", ["n"])
    assert "Connect Cursor? [Y/n]: n" in again
    assert "There is nothing to do." in again
    kept = files(home)
    assert "nothing was removed" in home.command("signet uninstall", ["n"])
    assert set(files(home)) >= {name for name in kept if ".daemon/" not in name}
    said = home.command("signet uninstall --data", ["y"])
    assert "Do this, and delete the memories for good? [y/N]: y" in said
    assert [line.split(" ", 1)[1].split("(")[0].strip() for line in said.splitlines() if line.startswith("- ")] == [
        "stop and remove the service",
        "disconnect Claude Code",
        "disconnect OpenCode",
        "delete ~/.cache/signet",
        "DELETE YOUR MEMORIES: memory, .daemon in ~/.agents",
    ], said
    assert "✓ Done" in said
    assert files(home) == before
    assert "There is nothing to remove." in home.command("signet uninstall --yes")


def test_without_questions_everything_is_done_that_enter_answers_and_then_nothing_is_left_to_do(home: Home) -> None:
    home.environment["PATH"] = home.environment["PATH"].partition(":")[2]  # without a service manager that answers
    said = home.command("signet setup --yes < /dev/null")
    assert "?" not in said
    assert [line[:12].rstrip() for line in said.splitlines() if line[0] in "✓!✗"] == [
        "✓ daemon",
        "✓ Cursor",
        "✓ OpenCode",
        "! service",
    ]
    assert "none, so after a reboot: `signet start`" in said
    assert "There is nothing to do." in home.command("signet setup --yes < /dev/null")
    states = json.loads(home.command("signet setup --json"))["harnesses"]
    assert {row["state"] for row in states} == {"connected"}
    home.command("signet stop")
    checked = home.command("signet connect --check; echo code $?")
    assert "✗ start       the agent gets no memory: no daemon" in checked
    assert "code 3" in checked
    assert "✓" not in checked


def test_the_model_of_a_hundred_languages_is_proposed_where_most_memories_are_not_in_english(home: Home) -> None:
    home.environment["PATH"] = home.environment["PATH"].partition(":")[2]
    home.command("signet setup --yes < /dev/null")
    for number in range(12):
        home.command(f'signet remember "Der Schrank {number} steht in Raum {number} und ist immer abgeschlossen"')
    assert "most memories are not in English" in home.command("signet doctor")
    declined = home.command("signet setup", ["n"])
    assert "Most memories are not in English. Use the model of a hundred languages" in declined
    assert "! languages" in declined
    assert "multilingual" not in home.command("signet config show")
    if HAS_MODEL:
        taken = home.command("signet setup", ["y"])
        assert "✓ languages" in taken
        assert 'provider: "multilingual"' in home.command("signet config show")
        assert "Most memories" not in home.command("signet setup --yes < /dev/null")
