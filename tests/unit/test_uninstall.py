"""What `signet uninstall` plans and leaves, and what `signet doctor` says of connections and a service that are broken.

Source: docs/guides/service.md "Uninstall"; docs/troubleshooting.md.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.harnesses.registry import CLAUDE_CODE, CODEX, CURSOR, GEMINI, HARNESSES, OPENCODE, VSCODE
from signet_actors.cli.main import cli
from signet_actors.config.daemon_address import logins_file
from signet_actors.runtime.messaging.sockets import socket_directory
from tests.support.harness_home import Home, make_home
from tests.support.service_manager import calls, install_stand_ins


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = make_home(tmp_path, monkeypatch)
    home.install_signet()
    stand_ins = install_stand_ins(home.root / "stand-ins", "systemctl", "loginctl")
    monkeypatch.setenv("PATH", f"{home.program.parent}{os.pathsep}{stand_ins}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(home.program.with_name("python")))
    monkeypatch.setenv("SIGNET_PORT", "0")
    return home


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="signet", input=typed)


def other_installation(home: Home) -> Path:
    other = home.install(home.root / "other" / "bin")
    other.with_name("signet").write_bytes(other.read_bytes())
    other.with_name("signet").chmod(0o755)
    return other


def write_unit(home: Home, program: Path) -> Path:
    unit = home.root / ".config/systemd/user/signet.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(f"[Service]\nExecStart={program} up\n")
    return unit


def findings(home: Home) -> dict[str, tuple[str, str, str]]:
    rows = json.loads(run("doctor", "--json").stdout)["findings"]
    subjects = {"service", *(harness.name for harness in HARNESSES)}
    return {row["subject"]: (row["state"], row["detail"], row["remedy"]) for row in rows if row["subject"] in subjects}


def test_doctor_names_each_connection_and_service_whose_program_is_gone(home: Home) -> None:
    assert findings(home) == {}
    other = other_installation(home)
    for harness in (CLAUDE_CODE, CODEX, GEMINI, CURSOR, OPENCODE, VSCODE):
        assert run("connect", harness.name, "--command", str(other)).exit_code == 0
    server = other.with_name("signet")
    write_unit(home, server)
    second = {name: (state, detail.partition(" (")[0]) for name, (state, detail, _) in findings(home).items()}
    hooked = (CLAUDE_CODE, CODEX, GEMINI, CURSOR, OPENCODE)
    warned = ("warn", "runs another installation")
    assert second == dict.fromkeys(("service", "vscode", *(one.name for one in hooked)), warned)
    other.unlink()
    server.unlink()
    assert findings(home) == {
        "service": ("fail", f"its program {server} does not exist", "`signet service install`"),
        "vscode": ("fail", f"its program of the memory tools, {server} does not exist", "`signet connect vscode`"),
        **{one.name: ("fail", f"its hook {other} does not exist", f"`signet connect {one.name}`") for one in hooked},
    }
    assert run("doctor").exit_code == 1
    for harness in (*hooked, VSCODE):
        assert run("connect", harness.name).exit_code == 0
    write_unit(home, home.program.with_name("signet"))
    assert {state for state, *_ in findings(home).values()} == {"ok"}


def test_doctor_names_a_second_signet_on_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[str]:
        rows = json.loads(run("doctor", "--json").stdout)["findings"]
        return [row["detail"] for row in rows if "on PATH" in row["detail"]]

    ours, other = home.program.with_name("signet"), other_installation(home).with_name("signet")
    link = home.root / "links" / "signet"
    link.parent.mkdir()
    link.symlink_to(ours)
    monkeypatch.setenv("PATH", f"{link.parent}{os.pathsep}{os.environ['PATH']}")
    assert told() == [], "a link to it is no other one"
    monkeypatch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
    assert told() == [f"another program signet is on PATH: {other}; this one is {ours}"]


def test_uninstall_shows_its_plan_asks_and_leaves_the_memories_and_other_installations(home: Home) -> None:
    before = home.files()
    run("connect", "codex")
    other = other_installation(home)
    run("connect", "gemini", "--command", str(other))
    unit = write_unit(home, home.program.with_name("signet"))
    memory = home.root / ".agents/memory/memories.db"
    memory.write_bytes(b"x" * 30_500)
    connected = home.files()
    for typed in ("n\n", ""):
        refused = run("uninstall", typed=typed)
        assert refused.exit_code == 1
        assert "nothing was removed" in refused.stderr
        assert (home.files(), calls(home.root)) == (connected | stand_in(home), [])
    done = run("uninstall", typed="y\n")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:4] == [
        f"- stop and remove the service ({unit})",
        "- disconnect Codex",
        f"Stays: the connection of Gemini CLI, by another installation ({other})",
        f"Stays: your memories in {home.root}/.agents (31 kB); `signet uninstall --data` deletes them",
    ]
    assert "✓ Done\n" in done.stdout
    assert "Last, remove the program: " in done.stdout
    assert calls(home.root)[0] == "systemctl --user disable --now signet.service"
    assert memory.exists()
    run("disconnect", "gemini")
    left = {name for name in home.files() if name not in before and not name.startswith((".stand-in", "other"))}
    assert left == {".agents", ".agents/memory", ".agents/memory/memories.db"} | {
        name for name in left if name.startswith(".config")
    }


def test_sockets_outside_of_the_workspace_are_removed_and_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_WORKSPACE", str(home.root / ("deep" * 30)))
    sockets = socket_directory(home.root / ("deep" * 30))
    assert run("uninstall", "--yes").stdout.startswith("There is nothing to remove.")
    sockets.mkdir()
    done = run("uninstall", "--yes")
    assert f"- delete {sockets} (sockets of the daemon)\n" in done.stdout
    assert not sockets.exists()


def test_the_tokens_of_logins_are_removed_and_named_and_never_shown(home: Home) -> None:
    logins = logins_file(os.environ)
    assert home.root in logins.parents
    logins.parent.mkdir(parents=True)
    logins.write_text('{"https://signet.example:443": "t.s"}')
    done = run("uninstall", "--yes")
    assert done.exit_code == 0, done.output
    assert "tokens of `signet login`" in done.output
    assert "t.s" not in done.output
    assert not logins.exists()


def stand_in(home: Home) -> dict[str, bytes | None]:
    return {name: content for name, content in home.files().items() if name.startswith(".stand-in")}


def test_the_database_of_another_program_is_not_deleted(home: Home) -> None:
    database = home.root / ".agents/memory/memories.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"SQLite format 3")
    refused = run("uninstall", "--data", "--yes")
    assert refused.exit_code == 78
    assert f"{home.root}/.agents was not made by this program" in refused.stderr
    assert "nothing was removed" in refused.stderr
    assert database.exists()


OURS: Final = (
    *("agent.yaml", "agents/bob/memory/synthesis.json", "agents/bob/memory/MEMORY.backup-20261129T010203004Z.md"),
    *("memory/memories.db", "memory/memories.db-wal", "memory/memories.db-runs"),
    *(
        "memory/memories.db-shm",
        "memory/memories.db-journal",
        "memory/memories.db.incoming",
        "memory/memories.db.incoming-wal",
    ),
    *("memory/backups/memories-20261128T010203004Z-schema-24.db", "memory/aside-1764403200000/memories.db-wal"),
    *(
        "memory/backups/memories-20261128T010203004Z-schema-24.db.partial",
        "memory/MEMORY.backup-20261128T010203004Z-edited.md",
    ),
    "memory/backups/memories-20261128T010203004Z-schema-24.db.partial-journal",
    *(
        "memory/aside-17/memories.db",
        "memory/spool/01764403200000000000-9f86d081.json",
        "memory/spool/01764403200000000000-9f86d081-12.json.rejected",
        "memory/harnesses.json",
    ),
    *("memory/synthesis.json", "memory/MEMORY.backup-20261128T010203004Z.md", "memory/2026-11-28-ferry.md"),
    *(
        ".daemon/database",
        ".daemon/secret",
        ".daemon/lock",
        ".daemon/writer.lock",
        ".daemon/logs/daemon-2026-11-28.log",
    ),
    *(
        ".daemon/index/384.vec",
        ".daemon/previous/AGENTS.md",
        ".daemon/claims.json",
        ".daemon/ballast",
        ".daemon/suspect",
    ),
)
THEIRS: Final = (
    *(
        "AGENTS.md",
        "MEMORY.md",
        "notes.txt",
        "agents/bob/AGENTS.md",
        "agents/bob/memory/notes.md",
        "hooks/agent-memory.js",
    ),
    *(
        "memory/2016-notes.md",
        "memory/2026-11-28-standup.md",
        "memory/MEMORY.md",
        "memory/todo.txt",
        "memory/memories.db.bak",
    ),
    *(
        "memory/backups/my-own.db",
        "memory/backups/memories.db",
        "memory/backups/memories-20261128.db",
        "memory/backups/x/a.db",
    ),
    *("memory/backups/memories-20261128T010203004Z-schema-24.db.mine", "memory/backups/before-memories-20261128.db"),
    *("memory/backups/memories-20261128T010203004Z-schema-24.db-copy", "memory/aside-1764403200000/why.txt"),
    *(
        "memory/aside-mine/memories.db",
        "memory/aside-/memories.db",
        "memory/aside-17-old/memories.db",
        "memory/aside-9",
    ),
    *("memory/MEMORY.backup-mine.md", "memory/MEMORY.backup-2026-11-28.md", "memory/MEMORY.backup-.md"),
    *("memory/MEMORY.backup-20261128T010203004Z-mine.md", "memory/MEMORY.backup-20261128T010203004Z.md.bak"),
    *("memory/memories.db-mine", "memory/memories.db-wal.old", "memory/memories.db.gz", "memory/my-memories.db"),
    *("memory/spool/notes.txt", "memory/spool/draft.json", "memory/spool/old/a.json", "memory/synthesis.json.mine"),
    *("agents/bob/memory/memories.db", "agents/bob/memory/MEMORY.backup-1.md", "agents/bob/backups/a.db"),
    *("memory/notes/a.md", ".daemon/lock.txt", ".daemon/auth/token", "transcripts/s.jsonl", ".git/config"),
)


def fill(home: Home, names: Iterable[str]) -> None:
    for name in names:
        path = home.root / ".agents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('---\nsession: "s-1"\n---\n' if name in OURS else "# Mine\n")


def names_in(home: Home) -> set[str]:
    root = home.root / ".agents"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_only_what_this_program_has_made_is_deleted_and_what_stays_is_named(home: Home) -> None:
    fill(home, (*OURS, *THEIRS))
    done = run("uninstall", "--data", "--yes")
    assert done.exit_code == 0, done.output
    assert f"DELETE YOUR MEMORIES: agent.yaml, agents, memory, .daemon in {home.root}/.agents (" in done.stdout
    (stays,) = [line for line in done.stdout.splitlines() if line.startswith("Stays: other files in")]
    first = (
        ".daemon/auth, .daemon/lock.txt, agents/bob/AGENTS.md, agents/bob/backups, agents/bob/memory/MEMORY.backup-1.md"
    )
    assert stays.startswith(f"Stays: other files in {home.root}/.agents: {first}, ")
    assert stays.endswith(" more")
    assert names_in(home) == set(THEIRS)


def test_the_users_own_files_among_ours_are_named_and_stay(home: Home) -> None:
    fill(home, (*OURS, "memory/backups/my-own.db", "memory/aside-mine/a", "memory/MEMORY.backup-mine.md", "notes.txt"))
    done = run("uninstall", "--data", "--yes")
    names = "memory/MEMORY.backup-mine.md, memory/aside-mine, memory/backups/my-own.db, notes.txt"
    assert f"Stays: other files in {home.root}/.agents: {names}\n" in done.stdout
    assert len(names_in(home)) == 4


def test_empty_directories_that_were_made_go_too(home: Home) -> None:
    fill(home, OURS)
    for name in ("memory/backups", "memory/spool", ".daemon/index", ".daemon/run", ".daemon/logs"):
        directory = home.root / ".agents" / name
        for file in directory.iterdir() if directory.exists() else ():
            file.unlink()
        directory.mkdir(exist_ok=True)
    assert run("uninstall", "--data", "--yes").exit_code == 0
    assert not (home.root / ".agents").exists()


def test_what_is_only_ours_leaves_no_directory(home: Home) -> None:
    fill(home, OURS)
    assert run("uninstall", "--data", "--yes").exit_code == 0
    assert not (home.root / ".agents").exists()


def test_without_the_mark_of_a_workspace_that_the_daemon_has_used_nothing_is_deleted(home: Home) -> None:
    for name in set(OURS) - {".daemon/database"}:
        fill(home, (name, *THEIRS))
    before = names_in(home)
    for _ in range(2):
        assert run("uninstall", "--data", "--yes").exit_code == 78
        assert names_in(home) == before


def test_what_a_link_leads_to_is_not_deleted(home: Home, tmp_path: Path) -> None:
    for name in ("memory", "backups"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memories.db").touch()
    fill(home, (".daemon/database",))
    (home.root / ".agents" / "memory").symlink_to(tmp_path / "memory")
    assert run("uninstall", "--data", "--yes").exit_code == 0
    fill(home, (".daemon/database",))
    (home.root / ".agents" / "memory").unlink(missing_ok=True)
    (home.root / ".agents" / "memory").mkdir()
    (home.root / ".agents" / "memory" / "backups").symlink_to(tmp_path / "backups")
    assert run("uninstall", "--data", "--yes").exit_code == 0
    assert [(tmp_path / name / "memories.db").exists() for name in ("memory", "backups")] == [True, True]


def test_without_anything_to_remove_it_says_so_and_how_the_program_goes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prefix, command in (
        ("/home/you/.local/share/uv/tools/signet-actors", "uv tool uninstall signet-actors"),
        ("/home/you/.local/share/pipx/venvs/signet-actors", "pipx uninstall signet-actors"),
        ("/home/you/venv", f"delete the checkout {Path(__file__).parents[2]}"),
        (str(Path(__file__).parents[2]), f"delete the environment {Path(__file__).parents[2]}"),
    ):
        monkeypatch.setattr(sys, "prefix", prefix)
        done = run("uninstall")
        assert done.stdout == f"There is nothing to remove.\nLast, remove the program: {command}\n"
        assert json.loads(run("uninstall", "--json").stdout) == {
            "steps": [],
            "failed": [],
            "stays": [],
            "last": command,
        }
