"""Past sessions of other programs, stored in a live daemon by ``signet backfill``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli import backfill
from signet_actors.cli.main import cli
from tests.support import past_sessions as homes
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system
EXPORTS = homes.FIXTURES / "exports"


@dataclass
class Person:
    """A home on the machine of the daemon, and an agent of its own in the daemon."""

    daemon: LiveDaemon
    home: Path
    agent: str
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Result:
        environ = {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "SIGNET_WORKSPACE": str(self.daemon.workspace),
            "CODEX_HOME": "",
            "CLAUDE_CONFIG_DIR": "",
            "XDG_DATA_HOME": "",
            **self.environ,
        }
        return CliRunner(env=environ).invoke(cli, ["--agent", self.agent, "backfill", *arguments])

    def backfill(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        result = self.run("--yes", "--json", *arguments)
        assert result.exit_code == exit_code, (result.stdout, result.stderr, result.exception)
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    def turns(self, key: str) -> list[tuple[str, str, str | None]]:
        reply = self.daemon.agent(self.agent).get(f"/api/sessions/{key}/transcript", view="turns").ok()
        return [(turn["role"], turn["content"], turn["at"]) for turn in reply["turns"]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def daemon(home: Path) -> Iterator[LiveDaemon]:
    with live_daemon(environ={"HOME": str(home), "CODEX_HOME": ""}, patient=True) as daemon:
        yield daemon


@pytest.fixture
def person(daemon: LiveDaemon, home: Path, request: pytest.FixtureRequest) -> Iterator[Person]:
    """A person whose home, which is also the daemon's, is empty at the beginning."""
    moved = home / "old"
    yield Person(daemon, home, f"of-{abs(hash(request.node.name))}")
    moved.mkdir(exist_ok=True)
    for number, path in enumerate(sorted(home.iterdir())):
        if path != moved:
            path.rename(moved / f"{request.node.name[:60]}-{number}")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "LONGEST_PAUSE_S", 0.0)


def test_sessions_of_three_programs_are_stored_once_with_their_times_and_projects(person: Person) -> None:
    homes.claude_code(person.home)
    homes.codex(person.home)
    homes.opencode_database(person.home)
    first = person.backfill()
    assert (first["stored"], first["nothingNew"], first["leftOut"]) == (4, 0, [])
    assert person.turns(homes.OPENCODE) == [
        ("user", "How long is the price list cached?", "2026-11-20T10:00:00.000Z"),
        ("assistant", "For 15 minutes.", "2026-11-20T10:00:05.000Z"),
    ]
    assert person.turns(homes.CLAUDE)[0] == (
        "user",
        "How often does the upload worker retry?",
        "2026-11-20T09:00:00.000Z",
    )
    client = person.daemon.agent(person.agent)
    found = client.post("/api/sessions/search", {"query": "staging database port", "project": homes.PROJECT}).ok()
    assert [hit["sessionKey"] for hit in found["hits"]][:1] == [homes.CODEX]
    again = person.backfill()
    assert (again["stored"], again["unchanged"]) == (0, 4)
    (person.home / ".cache").rename(person.home / "cache-lost")
    once_more = person.backfill()
    assert (once_more["stored"], once_more["nothingNew"], once_more["newTurns"]) == (0, 4, 0)


def test_sessions_that_were_stored_in_a_database_that_is_gone_are_stored_again(person: Person) -> None:
    homes.claude_code(person.home)
    assert person.backfill()["stored"] == 1
    (progress,) = (person.home / ".cache" / "signet").glob("backfill-*.json")
    another = Person(person.daemon, person.home, f"{person.agent}-in-a-new-database")
    name = hashlib.sha256(f"{person.daemon.workspace}\0{another.agent}".encode()).hexdigest()
    progress.rename(progress.with_name(f"backfill-{name[:32]}.json"))
    told = another.backfill()
    assert (told["stored"], told["unchanged"]) == (1, 0)
    assert another.turns(homes.CLAUDE)


def test_sessions_of_gemini_are_stored_with_their_times_and_what_its_hook_stored_is_not_stored_again(
    person: Person,
) -> None:
    path = homes.gemini(person.home)
    client = person.daemon.agent(person.agent)
    hooked = {"harness": "gemini", "sessionKey": homes.GEMINI, "transcriptPath": str(path)}
    client.post("/api/hooks/session-checkpoint-extract", hooked).ok()
    client.post("/api/hooks/session-end", hooked).ok()
    told = person.backfill("gemini")
    assert (told["stored"], told["newTurns"], told["nothingNew"], told["leftOut"]) == (1, 3, 1, [])
    assert len(person.turns(homes.GEMINI)) == 7
    assert person.turns(homes.GEMINI_FORMER)[0] == ("user", "Which table has the sailings?", "2026-11-20T10:00:00.500Z")
    (hit,) = client.post("/api/sessions/search", {"query": "may a ferry wait for a late bus"}).ok()["hits"][:1]
    assert hit["sessionKey"] == homes.GEMINI


def test_a_session_that_went_on_is_sent_again_and_adds_what_is_new(person: Person) -> None:
    path = homes.claude_code(person.home)
    person.backfill()
    before = person.turns(homes.CLAUDE)
    said = {"role": "user", "content": "And who approves the change?"}
    record = {"type": "user", "message": said, "sessionId": homes.CLAUDE, "timestamp": "2026-11-20T12:00:00.000Z"}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    told = person.backfill()
    assert (told["stored"], told["newTurns"], told["unchanged"]) == (1, 1, 0)
    assert person.turns(homes.CLAUDE) == [*before, ("user", said["content"], record["timestamp"])]


def test_secrets_in_past_sessions_are_never_stored(person: Person) -> None:
    path = homes.claude_code(person.home)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    content = {"role": "user", "content": f"Use the token {secret} for the mirror."}
    with path.open("a", encoding="utf-8") as file:
        record = {"type": "user", "message": content, "timestamp": "2026-11-20T12:00:00.000Z"}
        file.write(json.dumps(record) + "\n")
    assert person.backfill()["redacted"] == 1
    assert not any(secret in text for _, text, _ in person.turns(homes.CLAUDE))


def test_a_file_that_the_daemon_may_not_read_is_sent_as_what_was_said(person: Person) -> None:
    homes.claude_code(person.home)
    (person.home / ".claude").rename(person.home / "elsewhere")
    person.environ["CLAUDE_CONFIG_DIR"] = str(person.home / "elsewhere")
    person.backfill()
    sent = person.turns(homes.CLAUDE)
    (person.home / "elsewhere").rename(person.home / ".claude")
    (person.home / ".cache").rename(person.home / "cache-lost")
    person.environ.clear()
    told = person.backfill()
    assert (told["stored"], told["nothingNew"]) == (0, 1)
    assert person.turns(homes.CLAUDE) == sent


def test_a_long_session_is_sent_in_parts_and_stored_whole(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "PART_CHARS", 1)
    homes.opencode_files(person.home)
    assert person.backfill()["newTurns"] == 2
    assert [text for _, text, _ in person.turns(homes.OPENCODE)] == [
        "How long is the price list cached?",
        "For 15 minutes.",
    ]


def test_conversations_of_claude_and_chatgpt_are_stored_with_their_times(person: Person) -> None:
    assert person.backfill("--export", str(EXPORTS / "claude.json"))["newTurns"] == 3
    assert person.backfill("--export", str(EXPORTS / "chatgpt.json"))["newTurns"] == 3
    assert person.backfill("--export", str(EXPORTS / "chatgpt.json"))["unchanged"] == 1
    assert person.turns("6788e2c8-2f1c-8001-9a3e-0c6f5f7d1b10") == [
        ("system", "Title: Fares in winter", "2025-01-15T12:30:00.250Z"),
        ("user", "Which fare applies in winter?", "2025-01-15T12:30:01.000Z"),
        ("assistant", "The winter fare is 12 euros.", "2025-01-15T12:30:30.000Z"),
    ]
    assert person.turns("6f1c1f6e-9d1b-4b7e-8f0a-2b9f3a7d1c01")[2][2] == "2025-03-02T15:59:31.000Z"


def test_nothing_is_stored_without_a_yes_nor_by_a_dry_run(person: Person) -> None:
    homes.claude_code(person.home)
    homes.codex(person.home)
    refused = person.run()
    assert (refused.exit_code, "nothing was stored" in refused.stderr) == (1, True)
    assert "claude-code: 1 session, " in refused.stderr
    shown = json.loads(person.run("--dry-run", "--json").stdout)
    assert [(row["source"], row["project"], row["sessions"]) for row in shown["found"]] == [
        ("claude-code", homes.PROJECT, 1),
        ("codex", None, 1),
        ("codex", homes.PROJECT, 1),
    ]
    person.daemon.agent(person.agent).get(f"/api/sessions/{homes.CLAUDE}/transcript").refused(404)


def test_options_choose_by_source_time_and_directory(person: Person) -> None:
    homes.claude_code(person.home)
    homes.codex(person.home)

    def found(*arguments: str) -> int:
        rows = json.loads(person.run("--dry-run", "--json", *arguments).stdout)["found"]
        return sum(row["sessions"] for row in rows)

    assert found("codex") == 2
    assert (found("--project", "/home/ada"), found("--project", "/home/ada/other")) == (2, 0)
    assert (found("--since", "2020-01-01"), found("--since", "2999-01-01")) == (3, 0)


def test_a_running_session_is_left_to_its_own_hook(person: Person) -> None:
    path = homes.claude_code(person.home)
    client = person.daemon.agent(person.agent)
    about = {"harness": "claude-code", "sessionKey": homes.CLAUDE, "runtimePath": "plugin"}
    client.post("/api/hooks/session-start", about).ok()
    assert person.backfill()["running"] == 1
    ended = client.post("/api/hooks/session-end", {**about, "transcriptPath": str(path)}).ok()
    assert ended["stored"] is True


def test_an_erased_transcript_stays_erased_and_the_others_are_compared_again(person: Person) -> None:
    homes.claude_code(person.home)
    homes.opencode_files(person.home)
    person.backfill("opencode")
    person.backfill("claude-code")
    client = person.daemon.agent(person.agent)
    client.request("DELETE", f"/api/sessions/{homes.CLAUDE}/transcript").ok()
    with (person.home / ".claude/projects/-home-ada-ferry" / f"{homes.CLAUDE}.jsonl").open("a") as file:
        file.write("{}\n")
    told = person.backfill(exit_code=1)
    assert (told["stored"], told["nothingNew"]) == (0, 1)
    assert [left["session"] for left in told["leftOut"]] == [f"claude-code {homes.CLAUDE}"]
    client.get(f"/api/sessions/{homes.CLAUDE}/transcript").refused(404)


def test_an_interrupted_backfill_continues(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    homes.codex(person.home)
    sent = backfill.until_known
    monkeypatch.setattr(backfill, "until_known", lambda send: _interrupted(sent(send)))
    interrupted = person.run("--yes")
    assert (interrupted.exit_code, "the same command continues" in interrupted.stderr) == (130, True)
    monkeypatch.undo()
    told = person.backfill()
    assert told["stored"] + told["nothingNew"] == 2


def _interrupted(_reply: object) -> Any:
    raise KeyboardInterrupt


def test_without_a_daemon_a_dry_run_works_and_a_backfill_says_what_to_do(person: Person, tmp_path: Path) -> None:
    homes.claude_code(person.home)
    person.environ["SIGNET_WORKSPACE"] = str(tmp_path / "other")
    person.environ["SIGNET_PORT"] = "1"
    shown = person.run("--dry-run")
    assert (shown.exit_code, shown.stdout.split("\t")[:3]) == (0, ["claude-code", homes.PROJECT, "1"])
    refused = person.run("--yes")
    assert (refused.exit_code, "no daemon runs on" in refused.stderr) == (3, True)
