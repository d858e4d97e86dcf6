"""A session belongs to where it began, whichever directory its agent goes to: its project, and whether it is kept.

Source: docs/guides/hooks.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.bus_harness import eventually
from tests.support.harness_home import PROGRAM
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


Hear = Callable[[Talk, str], object]
HEARD: dict[str, Hear] = {
    "a start": lambda one, there: one.hook("session-start", there, source="startup"),
    "a start that names the file": lambda one, there: one.reports("session-start", there, source="resume"),
    "a prompt": lambda one, there: one.hook("user-prompt-submit", there, userPrompt="Where is the ferry?"),
    "a prompt that names the file": lambda one, there: one.reports("user-prompt-submit", there, userPrompt="Where?"),
    "a start and prompts": lambda one, there: (
        one.hook("session-start", there),
        *(one.hook("user-prompt-submit", there, userPrompt=f"Where is ferry {number}?") for number in range(3)),
    ),
    "a late summary": lambda one, there: one.hook("compaction-complete", there, True, summary="They spoke."),
    "a skill": lambda one, there: one.hook("skill-invocation", there, skill="sail"),
    "a recall": lambda one, there: one.hook("recall", there, query="Where is the ferry?"),
    "a turn whose file is missing": lambda one, there: one.hook(
        KEEP, there, transcriptPath=str(one.file.with_name("missing.jsonl")), reason="turn"
    ),
}
"""What the daemon hears first of a session that began elsewhere while it was away."""


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_session_stays_in_the_project_in_which_it_began(
    daemon: LiveDaemon, empty_rooms: Callable[[], Client], beginning: str
) -> None:
    agent = empty_rooms()
    for name, report in REPORTS.items():
        one = talk(daemon, agent, "/srv/quay")
        BEGINNINGS[beginning](one)
        one.says("The ferry is at pier four", "/srv/quay")
        report(one, "/srv/depot")
        one.says("It leaves at noon", "/srv/depot")
        one.reports(END, "/srv/depot", reason="other")
        assert one.project == "/srv/quay", name
    listed = agent.get("/api/sessions/past", project="/srv/depot").ok()
    assert listed["total"] == 0
    assert agent.get("/api/sessions/past", project="/srv/quay").ok()["total"] == len(REPORTS)


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


FIELDS: Final = {"harness", "content", "sessionKey", "session_key", "project", "transcript", "sourceId"}
REMEMBER: Final = "/api/memory/remember"
HOOK: Final = "/api/hooks/remember"
HOME: Final = os.path.expanduser("~")
QUAY: Final = os.path.realpath("/srv/quay")
STORED: Final = (
    # the session began in, the path, how the session is named, what the body says else, the project of the memory
    ("/srv/quay", REMEMBER, "sessionKey", {}, QUAY),
    ("/srv/quay", REMEMBER, "session_key", {}, QUAY),
    ("/srv/quay", REMEMBER, "a header", {}, QUAY),
    ("/srv/quay", REMEMBER, "sessionKey", {"project": None}, QUAY),
    ("/srv/quay", REMEMBER, "sessionKey", {"transcript": "User: Hoist it", "sourceId": "hoisted"}, QUAY),
    ("/srv/quay", "/api/memory/save", "sessionKey", {}, QUAY),
    ("/srv/quay", "/api/hook/remember", "a header", {}, QUAY),
    ("/srv/quay", HOOK, "sessionKey", {}, QUAY),
    ("/srv/quay", HOOK, "a header", {}, QUAY),
    ("/srv/quay/", REMEMBER, "sessionKey", {}, QUAY),
    (f"{HOME}/quay", REMEMBER, "sessionKey", {}, os.path.realpath(f"{HOME}/quay")),
    # a memory can be one of no project, or of another one
    ("/srv/quay", REMEMBER, "sessionKey", {"project": ""}, None),
    ("/srv/quay", REMEMBER, "a header", {"project": " "}, None),
    ("/srv/quay", HOOK, "sessionKey", {"project": ""}, None),
    ("/srv/quay", REMEMBER, "sessionKey", {"project": "/srv/depot"}, os.path.realpath("/srv/depot")),
    ("/srv/quay", REMEMBER, "a header", {"project": "depot"}, "depot"),
    ("/srv/quay", HOOK, "sessionKey", {"project": "/srv/depot"}, os.path.realpath("/srv/depot")),
    # without a session, or without a directory of its own
    ("/srv/quay", REMEMBER, "", {}, None),
    ("/srv/quay", REMEMBER, "sessionKey", {"sessionKey": "of-nobody"}, None),
    ("/srv/quay", HOOK, "sessionKey", {"sessionKey": "of-nobody"}, None),
    (None, REMEMBER, "sessionKey", {}, None),
    (HOME, REMEMBER, "sessionKey", {}, None),
    ("~", REMEMBER, "a header", {}, None),
    ("/", REMEMBER, "sessionKey", {}, None),
    ("/", HOOK, "sessionKey", {}, None),
)


def test_a_memory_that_names_no_project_belongs_to_that_of_its_session(daemon: LiveDaemon, room: Client) -> None:
    wrong = []
    for number, (began, path, named, said, expected) in enumerate(STORED):
        one = talk(daemon, room, "")
        one.hook("session-start", began)
        body = {"harness": "cursor", "content": f"Flag {number} is hoisted at noon", named: one.key, **said}
        headers = {"x_signet_session_key": one.key} if named == "a header" else {}
        stored = room.post(path, {name: value for name, value in body.items() if name in FIELDS}, **headers).ok()
        project = room.memory(stored["id"])["project"]
        wrong += [(began, path, named, said, project)] if project != expected else []
    assert wrong == []


def test_a_memory_does_not_belong_to_the_project_of_a_session_of_another_agent(
    daemon: LiveDaemon, empty_rooms: Callable[[], Client]
) -> None:
    one, other = talk(daemon, empty_rooms(), "/srv/quay"), empty_rooms()
    one.hook("session-start", "/srv/quay")
    assert other.memory(other.remember("A flag", sessionKey=one.key)["id"])["project"] is None


def test_a_memory_belongs_to_where_its_session_began_also_if_the_agent_has_moved(
    daemon: LiveDaemon, room: Client
) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.says("Hoist the flag", "/srv/quay")
    one.reports("user-prompt-submit", "/srv/depot", userPrompt="Hoist the flag")
    assert room.memory(room.remember("The flag is blue", sessionKey=one.key)["id"])["project"] == QUAY
    past = talk(daemon, room, "/srv/quay")
    past.says("Hoist the flag", "/srv/quay")
    past.reports(END, "/srv/quay", reason="backfill")
    assert room.memory(room.remember("The flag is torn", sessionKey=past.key)["id"])["project"] == QUAY


@pytest.mark.parametrize("heard", HEARD)
def test_a_session_that_began_while_the_daemon_was_away_belongs_to_where_its_transcript_begins(
    daemon: LiveDaemon, empty_rooms: Callable[[], Client], heard: str
) -> None:
    agent = empty_rooms()
    for name, report in REPORTS.items():
        one = talk(daemon, agent, "/srv/quay")
        one.says("The ferry is at pier four", "/srv/quay")
        HEARD[heard](one, "/srv/depot")
        one.says("It leaves at noon", "/srv/depot")
        report(one, "/srv/depot")
        assert one.project == "/srv/quay", name
        done = one.hook("compaction-complete", "/srv/depot", summary=f"Ferry {one.key} leaves.")
        assert agent.memory(done["memoryId"])["project"] == "/srv/quay", name


def test_a_past_session_belongs_to_where_its_transcript_begins(daemon: LiveDaemon, room: Client) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.hook("session-start", "/srv/quay")
    one.says("The ferry is at pier four", "/srv/depot")
    one.reports(END, "/srv/depot", reason="backfill")
    assert one.project == "/srv/depot"


def test_a_transcript_that_tells_no_directory_changes_nothing(daemon: LiveDaemon, room: Client) -> None:
    silent: dict[str, Callable[[Talk], object]] = {
        "no directory": lambda one: one.says("The ferry is at pier four", None),
        "an empty one": lambda one: one.says("The ferry is at pier four", ""),
        "one that is too long": lambda one: one.says("The ferry is at pier four", "/srv/" + "x" * 9_000),
        "far behind": lambda one: [
            one.says(f"Ferry {number}", None if number < 60 else "/srv/depot") for number in range(70)
        ],
    }
    for name, write in silent.items():
        one = talk(daemon, room, "/srv/quay")
        one.hook("session-start", "/srv/quay")
        write(one)
        one.reports(END, "/srv/depot", reason="other")
        assert one.project == "/srv/quay", name


def test_a_transcript_is_asked_once_where_its_session_began(daemon: LiveDaemon, room: Client) -> None:
    one = talk(daemon, room, "/srv/quay")
    one.says("The ferry is at pier four", "/srv/quay")
    one.reports("user-prompt-submit", "/srv/depot", userPrompt="Where is the ferry?")
    one.file.write_text("")
    one.says("The ferry is at pier five", "/srv/depot")
    one.reports("user-prompt-submit", "/srv/depot", userPrompt="And now?")
    one.reports(KEEP, "/srv/depot", reason="turn")
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


def test_a_session_that_began_elsewhere_while_the_daemon_was_away_stays_out(
    choosy: tuple[LiveDaemon, str, str],
) -> None:
    daemon, inside, outside = choosy
    for heard, report in product(HEARD, REPORTS):
        for began, there in ((inside, outside), (outside, inside)):
            one = talk(daemon, daemon.agent("default"), began)
            one.says(f"My tax debt of {one.key[-4:]} is private", began)
            HEARD[heard](one, there)
            REPORTS[report](one, there)
            is_kept = began == inside
            assert (one.project is not None) is is_kept, (heard, report, began)
            prompt = one.hook("user-prompt-submit", there, userPrompt="What is my debt?")
            assert (prompt.get("reason") == "other_project") is not is_kept, (heard, report, began)
            made = one.agent.get(f"/api/checkpoints/{one.key}").ok()["checkpoints"]
            assert is_kept or not (made and "names the file" in heard), (heard, report)
            assert is_kept or "debt" not in json.dumps(made), (heard, report)


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
    environ = {name: value for name, value in daemon.environment().items() if name != "SIGNET_PORT"}
    for began, there in ((inside, outside), (outside, inside)):
        one = talk(daemon, daemon.agent("default"), began)
        one.says("My tax debt is 7710 euros", began)
        for name, where in (("session-start", began), (KEEP, there), (END, there)):
            event = {"session_id": one.key, "cwd": where, "transcript_path": str(one.file), "reason": "other"}
            subprocess.run(
                [sys.executable, "-c", PROGRAM, name, "--harness", "claude-code"],
                input=json.dumps(event).encode(),
                env=environ,
                check=True,
                timeout=60,
            )
        assert ("7710" in text_of(one)) is (began == inside), began
    assert not list((daemon.workspace / "memory" / "spool").glob("*.json"))


def test_the_hook_program_tells_where_a_session_began_while_the_daemon_was_away(
    choosy: tuple[LiveDaemon, str, str],
) -> None:
    daemon, inside, outside = choosy
    talks = [
        (talk(daemon, daemon.agent("default"), began), there) for began, there in ((inside, outside), (outside, inside))
    ]

    def run(one: Talk, name: str, where: str) -> str:
        event = {"session_id": one.key, "cwd": where, "transcript_path": str(one.file), "prompt": "What is my debt?"}
        environ = {name: value for name, value in daemon.environment().items() if name != "SIGNET_PORT"}
        command = [sys.executable, "-c", PROGRAM, name, "--harness", "claude-code", "--json"]
        done = subprocess.run(
            command, input=json.dumps(event), env=environ, check=True, timeout=60, text=True, capture_output=True
        )
        return done.stdout

    daemon.stop()
    for one, _ in talks:
        run(one, "session-start", one.began)
        one.says("My tax debt is 7711 euros", one.began)
        run(one, "user-prompt-submit", one.began)
    daemon.start()
    daemon.wait_ready()
    for one, there in talks:
        assert ("other_project" in run(one, "user-prompt-submit", there)) is (one.began == outside)
        one.says("I pay it in May", there)
        run(one, "checkpoint", there)
        run(one, "session-end", there)
        assert ("7711" in text_of(one)) is (one.began == inside), one.began
