"""A session belongs to where it began, whichever directory its agent goes to: its project, and whether it is kept.

Source: docs/guides/hooks.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.bus_harness import eventually
from tests.support.harness_home import LONG_LIMITS
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

NUMBERS = count()
KEEP, END = "session-checkpoint-extract", "session-end"


class Talk(NamedTuple):
    """A session of one agent. ``file``: its transcript, as Claude Code writes it."""

    agent: Client
    key: str
    file: Path
    began: str

    def says(self, text: str, cwd: str | None) -> None:
        record: dict[str, Any] = {"type": "user", "sessionId": self.key, "message": {"role": "user", "content": text}}
        self.file.parent.mkdir(exist_ok=True)
        with self.file.open("a") as file:
            file.write(json.dumps(record if cwd is None else {**record, "cwd": cwd}) + "\n")

    def hook(self, name: str, project: str | None, late: bool = False, **fields: Any) -> Any:
        body = {"harness": "claude-code", "sessionKey": self.key, "project": project, **fields}
        headers = {"x-signet-late": "1"} if late else {}
        return self.agent.post(f"/api/hooks/{name}", body, **headers).ok()

    def reports(self, name: str, project: str | None, **more: Any) -> Any:
        return self.hook(name, project, transcriptPath=str(self.file), **more)

    @property
    def project(self) -> str | None:
        answer = self.agent.get(f"/api/sessions/{self.key}/transcript")
        return answer.ok()["project"] if answer.status == 200 else None


def talk(daemon: LiveDaemon, agent: Client, began: str) -> Talk:
    key = f"00000000-0000-4000-8000-{next(NUMBERS):012}"
    return Talk(agent, key, daemon.workspace / "transcripts" / f"{key}.jsonl", began)


Begin = Callable[[Talk], object]
BEGINNINGS: dict[str, Begin] = {
    "its start": lambda one: one.hook("session-start", one.began, source="startup"),
    "a prompt": lambda one: one.hook("user-prompt-submit", one.began, userPrompt="Where is the ferry?"),
    "its first report": lambda one: (
        one.says("Where is the ferry?", None),
        one.reports(KEEP, one.began, reason="turn"),
    ),
    "its transcript": lambda one: one.says("Where is the ferry?", one.began),
}
Report = Callable[[Talk, str], object]
REPORTS: dict[str, Report] = {
    "a turn": lambda one, there: one.reports(KEEP, there, reason="turn"),
    "its end": lambda one, there: one.reports(END, there, cwd=there, reason="other"),
    "its end by its directory": lambda one, there: one.reports(END, None, cwd=there, reason="other"),
    "a clear": lambda one, there: one.reports(END, there, reason="clear"),
    "a compaction": lambda one, there: (one.reports("pre-compaction", there), one.reports(KEEP, there)),
    "a late turn": lambda one, there: one.reports(KEEP, there, late=True, reason="turn"),
    "a late end": lambda one, there: one.reports(END, there, late=True, reason="other"),
    "another start": lambda one, there: (one.hook("session-start", there, source="resume"), one.reports(KEEP, there)),
    "a prompt": lambda one, there: (one.hook("user-prompt-submit", there, userPrompt="And?"), one.reports(END, there)),
}


def later_than(beginning: str) -> list[str]:
    """Return the reports that do not tell of a beginning themselves: a start or prompt counts more than a file."""
    return [name for name in REPORTS if beginning != "its transcript" or name not in ("another start", "a prompt")]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_session_stays_in_the_project_in_which_it_began(
    daemon: LiveDaemon, empty_rooms: Callable[[], Client], beginning: str
) -> None:
    agent = empty_rooms()
    reports = {name: report for name, report in REPORTS.items() if name in later_than(beginning)}
    for name, report in reports.items():
        one = talk(daemon, agent, "/srv/quay")
        BEGINNINGS[beginning](one)
        one.says("The ferry is at pier four", "/srv/quay" if beginning == "its transcript" else None)
        report(one, "/srv/depot")
        one.says("It leaves at noon", "/srv/depot")
        one.reports(END, "/srv/depot", reason="other")
        assert one.project == "/srv/quay", name
    listed = agent.get("/api/sessions/past", project="/srv/depot").ok()
    assert listed["total"] == 0
    assert agent.get("/api/sessions/past", project="/srv/quay").ok()["total"] == len(reports)


def test_what_is_stored_of_a_session_that_moved_belongs_to_its_project(daemon: LiveDaemon, room: Client) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.hook("session-start", "/srv/quay")
    one.says("The ferry is at pier four", "/srv/quay")
    done = one.hook("compaction-complete", "/srv/depot", summary="The ferry Bluefinch was greased.")
    assert room.memory(done["memoryId"])["project"] == "/srv/quay"
    one.hook("user-prompt-submit", "/srv/depot", userPrompt="Which ferry was greased at the quay?")
    made = room.post("/api/checkpoints", {"sessionKey": one.key, "project": "/srv/depot", "harness": "x"}).ok()
    assert made["stored"] is True
    one.reports(END, "/srv/depot", reason="other")
    kept = room.get(f"/api/checkpoints/{one.key}").ok()["checkpoints"]
    assert {row["project"] for row in kept} == {"/srv/quay"}
    there = talk(daemon, room, "/srv/depot").hook("session-start", "/srv/depot")["inject"]
    assert "ferry" not in there
    assert "pier four" in talk(daemon, room, "/srv/quay").hook("session-start", "/srv/quay")["inject"]


def test_the_start_counts_more_than_the_transcript(daemon: LiveDaemon, room: Client) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.hook("session-start", "/srv/quay")
    one.says("The ferry is at pier four", "/srv/depot")
    one.reports(END, "/srv/depot", reason="backfill")
    assert one.project == "/srv/quay"


def test_a_session_of_the_past_that_goes_on_elsewhere_stays_in_its_project(daemon: LiveDaemon, room: Client) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.says("The ferry is at pier four", "/srv/quay")
    one.reports(END, "/srv/quay", reason="backfill")
    one.hook("session-start", "/srv/depot", source="resume")
    one.says("It leaves at noon", "/srv/depot")
    one.reports(KEEP, "/srv/depot", reason="turn")
    done = one.hook("compaction-complete", "/srv/depot", summary="The ferry leaves at noon.")
    assert (one.project, room.memory(done["memoryId"])["project"]) == ("/srv/quay", "/srv/quay")


@pytest.fixture(scope="module")
def choosy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveDaemon, str, str]]:
    """A daemon whose hooks work in one part of a repository only; that part, and a directory beside it."""
    root = tmp_path_factory.mktemp("repository")
    for name in (".git", "app", "private"):
        (root / name).mkdir()
    only = f"projects: {{only: [{root / 'app'}]}}\n"
    with live_daemon(config=only, patient=True) as daemon:
        yield daemon, str(root / "app"), str(root / "private")


def test_whether_a_session_is_kept_is_decided_where_it_began(choosy: tuple[LiveDaemon, str, str]) -> None:
    daemon, inside, outside = choosy
    talks: list[tuple[Talk, str, str]] = []
    for number, (beginning, report) in enumerate(product(BEGINNINGS, REPORTS)):
        if report not in later_than(beginning):
            continue
        for began, there in ((inside, outside), (outside, inside)):
            one = talk(daemon, daemon.agent("default"), began)
            BEGINNINGS[beginning](one)
            one.says(f"My tax debt is {number} euros", began)
            REPORTS[report](one, there)
            talks.append((one, there, f"{beginning}, {report}"))
            assert (one.project is not None) is (began == inside), (beginning, report, began)
    eventually(lambda: unstored(daemon, talks) == 0, what="the beginnings are on disk")
    daemon.stop()
    daemon.start()
    daemon.wait_ready()
    for one, there, how in talks:
        one.says("That is all for now", there)
        answer = one.reports(KEEP, there, reason="turn")
        assert (answer.get("reason") == "other_project") is (one.began == outside), (how, answer)
        assert (one.project is not None) is (one.began == inside), how
        assert ("That is all" in text_of(one)) is (one.began == inside), how


def unstored(daemon: LiveDaemon, talks: list[tuple[Talk, str, str]]) -> int:
    kept = {key for (key,) in daemon.read("SELECT session_key FROM session_contexts WHERE project IS NOT NULL")}
    return sum(one.key not in kept for one, _, _ in talks)


def text_of(one: Talk) -> str:
    answer = one.agent.get(f"/api/sessions/{one.key}/transcript")
    return answer.ok()["content"] if answer.status == 200 else ""


def test_the_hook_program_keeps_nothing_of_a_session_that_began_elsewhere(
    choosy: tuple[LiveDaemon, str, str],
) -> None:
    daemon, inside, outside = choosy
    program = f"{LONG_LIMITS}\nfrom signet_actors.hook.program import main; main()"
    environ = {name: value for name, value in daemon.environment().items() if name != "SIGNET_PORT"}
    for began, there in ((inside, outside), (outside, inside)):
        one = talk(daemon, daemon.agent("default"), began)
        one.says("My tax debt is 7710 euros", began)
        for name, where in (("session-start", began), (KEEP, there), (END, there)):
            event = {"session_id": one.key, "cwd": where, "transcript_path": str(one.file), "reason": "other"}
            subprocess.run(
                [sys.executable, "-c", program, name, "--harness", "claude-code"],
                input=json.dumps(event).encode(),
                env=environ,
                check=True,
                timeout=60,
            )
        assert ("7710" in text_of(one)) is (began == inside), began
    assert not list((daemon.workspace / "memory" / "spool").glob("*.json"))
