"""Which files of the workspace the daemon commits, and which must never be in a repository.

Source: docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import pytest

from signet_actors.domain.workspace_git import (
    EXCLUDE_BEGIN,
    EXCLUDE_END,
    EXCLUDED,
    commit_message,
    is_private,
    is_versioned,
    with_block,
    without_credentials,
)


@pytest.mark.parametrize(
    "path",
    [
        *("AGENTS.md", "MEMORY.md", "agents/bob/SOUL.md", "memory/2026-11-24-login-form.md", "notes/long/plan.md"),
        *("skills/review/SKILL.md", "name with spaces.md", "über.md", "agent.yaml", "memory.md", "secret.md"),
    ],
)
def test_markdown_and_the_configuration_are_committed(path: str) -> None:
    assert is_versioned(path)
    assert not is_private(path)


@pytest.mark.parametrize(
    "path",
    [
        *("memory/memories.db", "memory/memories.db-wal", ".daemon/secret", ".daemon/previous/AGENTS.md", "agent.yml"),
        *(".secrets/key.md", "secrets/key.md", "memory/spool/1.json", "memory/backups/x.md", ".hidden.md", ".git/x.md"),
        *("memory/MEMORY.backup-20261124T060000000Z.md", "agents/bob/memory/MEMORY.backup-1.md", "exports/a/b.md"),
        *("memory/harnesses.json", "memory/synthesis.json", "notes.txt", "nested/", "memory"),
        *("Secrets/key.md", "SPOOL/x.md", "Agents/bob/Memory/x.md", "sub/agent.yaml", "Agent.yaml", "Backups/x.md"),
    ],
)
def test_nothing_else_is_committed(path: str) -> None:
    assert not is_versioned(path)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "memory/memories.db",
            "memory/memories.db-wal",
            ".daemon/secret",
            "secrets/a",
            "memory/spool/1.json",
            "x/.env",
        ),
        *(
            "Memory/spool/x.json",
            "MEMORY/memories.DB",
            ".Daemon/token",
            ".DAEMON/x.md",
            "Secrets/a.md",
            "x/.ENV",
            "A.Db",
        ),
        *("\u017fecrets/a", ".dae\u200dmon/token", "mem\u00adory/x.json", ".secre\ufeffts/a", "x.sqlite3", "X.SQLITE"),
    ],
)
def test_private_files_are_known(path: str) -> None:
    assert is_private(path)


def test_the_exclusions_are_renewed_and_the_other_lines_stay() -> None:
    first = with_block("# mine\n*.tmp\n", EXCLUDED)
    assert first.startswith("# mine\n*.tmp\n" + EXCLUDE_BEGIN)
    assert with_block(first, EXCLUDED) == first
    old = f"a\n{EXCLUDE_BEGIN}\n/former/\n{EXCLUDE_END}\nb\n"
    assert with_block(old, EXCLUDED) == "a\nb\n" + first.removeprefix("# mine\n*.tmp\n")
    assert EXCLUDE_BEGIN in with_block(f"{EXCLUDE_BEGIN}\nthe end is missing\n", EXCLUDED).split("missing\n")[1]


def test_a_message_has_the_time_and_the_files() -> None:
    assert commit_message(["AGENTS.md"], "2026-11-24T06:00:00Z") == "Auto-commit 2026-11-24T06:00:00Z: AGENTS.md\n"
    several = commit_message(["A.md", "B.md", "C.md"], "2026-11-24T06:00:00Z")
    assert several == "Auto-commit 2026-11-24T06:00:00Z: A.md and 2 more\n\nA.md\nB.md\nC.md\n"
    assert len(commit_message(["x" * 500], "2026-11-24T06:00:00Z").splitlines()[0]) < 120


def test_the_message_of_a_large_commit_lists_a_hundred_files_and_fits_into_one_argument() -> None:
    message = commit_message([f"notes/{number}.md" for number in range(3000)], "2026-11-24T06:00:00Z")
    subject, _, *listed = message.splitlines()
    assert subject == "Auto-commit 2026-11-24T06:00:00Z: notes/0.md and 2999 more"
    assert listed == [*(f"notes/{number}.md" for number in range(100)), "and 2900 more"]
    hundred = commit_message(["A.md"] * 100, "2026-11-24T06:00:00Z")
    assert hundred.splitlines()[2:] == ["A.md"] * 100
    assert len(commit_message(["𝄞" * 1000] * 3000, "2026-11-24T06:00:00Z").encode()) < 128 * 1024


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://ada:token@example.org/x.git", "https://example.org/x.git"),
        (
            "could not read from 'https://to@ken@example.org/a@b' now",
            "could not read from 'https://example.org/a@b' now",
        ),
        ("git@example.org:x.git", "git@example.org:x.git"),
        ("/srv/x.git", "/srv/x.git"),
        ("https://", "https://"),
    ],
)
def test_no_credentials_are_shown(given: str, expected: str) -> None:
    assert without_credentials(given) == expected


def test_our_part_of_the_excluded_files_leaves_every_other_line_as_it_is() -> None:
    above = (
        "",
        "a\n",
        "*.log\r\n",
        "a\r\nb\r\n",
        "x\n\n",
        "\n",
        "a\x0cb\n",
        "a\u2028b\n",
        "a\x85b\n",
        "\udcff\n",
        "# c \t\n",
    )
    for text in above:
        made = with_block(text, EXCLUDED)
        assert made == f"{text}{made.removeprefix(text)}"
        assert with_block(made, EXCLUDED) == made, "once is enough"
        for below in ("b\n", "b\r\n", "\n", "a\x1cb\n"):
            assert with_block(made + below, EXCLUDED) == with_block(text + below, EXCLUDED)
            windows = made.removeprefix(text).replace("\n", "\r\n")
            assert with_block(text + windows + below, EXCLUDED) == with_block(text + below, EXCLUDED)
    assert with_block("no line break", EXCLUDED).startswith("no line break\n# signet: begin")
