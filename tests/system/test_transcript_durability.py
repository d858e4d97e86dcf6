"""Transcripts of each harness are stored once, found, and private, also if processes are killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

END = "/api/hooks/session-end"
FILES = Path(__file__).parents[1] / "unit" / "fixtures" / "transcripts"
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SESSIONS = {
    ".claude/projects/-ferry/claude-code.jsonl": (
        "claude-code",
        "0e9f1d7c-3c1e-4f0e-9a55-6d0c6f1b2a01",
        "how often does the upload worker retry",
        5,
    ),
    ".codex/sessions/codex.jsonl": (
        "codex",
        "019aa5de-7bd4-7c11-8f0e-5a3f1c2d9e01",
        "port of the staging database",
        3,
    ),
    ".local/share/opencode/storage/opencode.json": (
        "opencode",
        "ses_4b1f0a2c7ffeV3p0S5cXh2m1Qe",
        "how long is the price list cached",
        2,
    ),
    ".gemini/tmp/ferry/chats/gemini.jsonl": (
        "gemini",
        "b2c41e90-6f3a-4d27-8c11-9e0d7a5b3f44",
        "how long may a ferry wait for a late bus",
        7,
    ),
    ".gemini/tmp/8f2b9c1d/chats/gemini.json": (
        "gemini",
        "7d1f3c52-0a4b-4c8e-9a55-2f6b1c0d9e21",
        "which table has the sailings",
        3,
    ),
    ".qwen/projects/-home-ada-ferry/chats/qwen.jsonl": (
        "qwen",
        "4f0c2a51-7f2f-4d55-9a51-0d2c1b7e8a10",
        "where is the gangway stored in winter",
        4,
    ),
    ".cursor/projects/home-ada-ferry/agent-transcripts/c0/cursor.jsonl": (
        "cursor",
        None,
        "which pier does the night ferry use",
        5,
    ),
}
FROM_TOOLS = ("school buses", "SAILINGS_TABLE", "Rule 4", "wait in fog", "hook_context", "session_context", "TTL = 900")
"""Of the sessions above, what tools read, what memory supplied and what a program added to a prompt."""


@pytest.fixture(scope="module")
def homed() -> Iterator[LiveDaemon]:
    """A daemon with a home directory in which harnesses have their folders."""
    with live_daemon(started=False, patient=True) as daemon:
        home = daemon.root / "home"
        (home / ".claude" / "projects" / "-ferry").mkdir(parents=True)
        daemon.environ |= {"HOME": str(home), "CODEX_HOME": str(home / ".codex"), "XDG_DATA_HOME": ""}
        daemon.start()
        yield daemon
        assert daemon.faults() == []


def projects(daemon: LiveDaemon) -> Path:
    return daemon.root / "home" / ".claude" / "projects" / "-ferry"


def line(role: str, text: str, **fields: Any) -> str:
    return (
        json.dumps({"type": role, "sessionId": "ignored", "message": {"role": role, "content": text}, **fields}) + "\n"
    )


def end(client: Client, **fields: Any) -> Any:
    return client.post(END, {"harness": "claude-code", **fields}).ok()


def transcript(client: Client, session: str) -> Any:
    return client.get(f"/api/sessions/{session}/transcript", view="turns").ok()


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_of_each_harness_is_stored_read_and_found(homed: LiveDaemon, name: str) -> None:
    form, named, question, count = SESSIONS[name]
    client = homed.agent(f"reader-{form}")
    path = homed.root / "home" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((FILES / path.name).read_bytes())
    session = named or "conversation-of-cursor"
    about = {"transcriptPath": str(path)} if named else {"transcriptPath": str(path), "sessionKey": session}
    answer = end(client, **about)
    assert (answer["format"], answer["sessionKey"], answer["turns"], answer["newTurns"]) == (
        form,
        session,
        count,
        count,
    )
    kept = transcript(client, session)
    assert len(kept["turns"]) == count
    assert [text for text in FROM_TOOLS if text in kept["content"]] == []
    hit, *_ = client.post("/api/sessions/search", {"query": question}).ok()["hits"]
    assert hit["sessionKey"] == session
    assert hit["rank"] == 1
    assert end(client, **about)["newTurns"] == 0


def test_a_session_of_gemini_gets_a_memory_again_after_its_transcript_shows_a_compression(homed: LiveDaemon) -> None:
    client = homed.agent("of-gemini")
    client.remember("The night ferry leaves pier 12 at 23:40")
    source = (FILES / "gemini.jsonl").read_text().splitlines(keepends=True)
    path = homed.root / "home" / ".gemini" / "tmp" / "ferry" / "chats" / "compressed.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"harness": "gemini", "sessionKey": "compressed", "project": "/home/ada/ferry"}

    def hook(name: str, **fields: Any) -> Any:
        """Return the answer of a hook that did its work in its time, which it may not on a busy machine."""
        answers: list[Any] = []

        def is_done() -> bool:
            answers.append(client.post(f"/api/hooks/{name}", {**about, **fields}).ok())
            return "skipped" not in answers[-1]

        eventually(is_done, within_s=60, what=name)
        return answers[-1]

    def asked() -> str:
        return str(hook("user-prompt-submit", userPrompt="from which pier does the night ferry leave?")["inject"])

    def answered(lines: int) -> int:
        path.write_text("".join(source[:lines]))
        return int(hook("session-checkpoint-extract", transcriptPath=str(path))["turns"])

    replaced = next(number for number, line in enumerate(source) if "<state_snapshot>" in line)
    assert "pier 12" in asked()
    assert answered(replaced) == 4
    assert asked() == ""
    assert answered(len(source)) == 7
    assert "pier 12" in asked(), "the model no longer has it"
    assert answered(len(source)) == 7
    assert asked() == ""


def test_stop_and_session_end_store_each_turn_once(homed: LiveDaemon) -> None:
    path = projects(homed) / "growing.jsonl"
    path.write_text(line("user", "first") + line("assistant", "second")[:-15])  # the last line is still being written
    assert end(homed.api, transcriptPath=str(path), sessionKey="growing")["newTurns"] == 1
    path.write_text(line("user", "first") + line("assistant", "second") + line("user", "third"))
    assert end(homed.api, transcriptPath=str(path), sessionKey="growing")["newTurns"] == 2
    assert [turn["content"] for turn in transcript(homed.api, "growing")["turns"]] == ["first", "second", "third"]


def test_a_transcript_is_read_by_its_agent_alone(homed: LiveDaemon) -> None:
    ann, bob = homed.agent("ann"), homed.agent("bob")
    end(ann, transcript="User: the password of the observatory is kept by Nils\nAssistant: noted", sessionKey="of-ann")
    assert ann.get("/api/sessions/of-ann/transcript").status == 200
    for other in (bob, homed.api):
        other.get("/api/sessions/of-ann/transcript").refused(404)
        found = other.post("/api/sessions/search", {"query": "who keeps the password of the observatory"}).ok()
        assert found["hits"] == []
        other.request("DELETE", "/api/sessions/of-ann/transcript").refused(404)
        assert other.recall("password of the observatory")["results"] == []
    assert {one["type"] for one in ann.recall("password of the observatory")["results"]} == {"session_turn"}
    assert ann.listed() == [], "a transcript is no memory"


def test_a_recall_returns_what_was_said_in_the_session_of_a_memory(homed: LiveDaemon) -> None:
    cleo, dora = homed.agent("cleo"), homed.agent("dora")
    talk = "User: Which dock does the barge use?\nAssistant: Dock 7, because dock 3 is too shallow."
    end(cleo, transcript=talk, sessionKey="docks")
    cleo.post("/api/memory/remember", {"content": "The barge uses dock 7"}, x_signet_session_id="docks").ok()
    cleo.remember("The barge is blue", sourceId="docks", transcript=talk)
    found = cleo.post("/api/memory/recall", {"query": "which dock does the barge use", "expand": True}).ok()
    assert found["sources"] == {"docks": talk.replace("\n", "\n\n")}
    assert [result["session_key"] for result in found["results"]] == ["docks", "docks"]
    dora.remember("The barge is old", sourceId="docks")
    assert dora.post("/api/memory/recall", {"query": "barge", "expand": True}).ok()["sources"] == {}


def test_a_timeline_shows_the_sessions_of_a_day_by_their_transcripts(homed: LiveDaemon) -> None:
    edda, other = homed.agent("edda"), homed.agent("finn")
    talk = line("user", "Is the quay flooded?", timestamp="2024-03-02T08:00:00.000Z")
    talk += line("assistant", "No, since noon.", timestamp="2024-03-02T12:30:00.000Z")
    end(edda, transcript=talk, sessionKey="quay", capturedAt="2024-03-02T13:00:00Z")
    body = {"query": "what happened", "time": {"start": "2024-03-02T00:00:00Z", "mode": "timeline"}}
    (row,) = edda.post("/api/memory/recall", body).ok()["results"]
    assert (row["id"], row["type"], row["score"]) == ("temporal:session:quay:session", "session", 0.6)
    assert row["content"] == "User: Is the quay flooded? Assistant: No, since noon."
    assert row["temporal_start_at"] == "2024-03-02T08:00:00.000Z"
    assert row["temporal_end_at"] == "2024-03-02T12:30:00.000Z"
    assert other.post("/api/memory/recall", body).ok()["results"] == []
    body["time"] = {"start": "2024-03-03T00:00:00Z", "mode": "timeline"}
    assert edda.post("/api/memory/recall", body).ok()["results"] == []


def test_a_transcript_that_comes_with_a_memory_is_stored_too(homed: LiveDaemon) -> None:
    client = homed.agent("nils")
    talk = f"User: the crane lifts 9 tons, token {KEY}\nAssistant: noted"
    answer = client.remember("The crane lifts 9 tons", sourceId="session:crane", transcript=talk, project="/p")
    assert answer["redactions"] == ["github-token"]
    stored = transcript(client, "crane")
    assert (stored["format"], stored["project"], len(stored["turns"])) == ("dialogue", "/p", 2)
    assert KEY not in stored["content"]
    client.remember("The crane is red", sourceId="session:crane", transcript=talk)
    assert len(transcript(client, "crane")["turns"]) == 2


def test_no_secret_reaches_the_database_or_the_log(homed: LiveDaemon) -> None:
    path = projects(homed) / "secret.jsonl"
    path.write_text(line("user", f"my token is {KEY}") + line("assistant", f"export GITHUB_TOKEN={KEY}"))
    answer = end(homed.api, transcriptPath=str(path), sessionKey="secret", cwd=f"/tmp/{KEY}")
    assert answer["redacted"] is True
    assert "[REDACTED:github-token]" in transcript(homed.api, "secret")["content"]
    files = [each for each in homed.workspace.rglob("*") if each.is_file()]
    assert files
    assert all(KEY.encode() not in each.read_bytes() for each in files)


def test_a_forgotten_transcript_is_gone_and_stays_gone(homed: LiveDaemon) -> None:
    end(homed.api, transcript="User: the anchorage of the zeppelin\nAssistant: noted", sessionKey="forgotten")
    assert homed.api.request("DELETE", "/api/sessions/forgotten/transcript").ok()["turns"] == 2
    homed.api.get("/api/sessions/forgotten/transcript").refused(404)
    again = end(homed.api, transcript="User: the anchorage of the zeppelin\nAssistant: noted", sessionKey="forgotten")
    assert again["skipped"] is True
    assert homed.api.post("/api/sessions/search", {"query": "zeppelin"}).ok()["hits"] == []


def test_hostile_transcripts_are_answered_and_the_daemon_goes_on(homed: LiveDaemon) -> None:
    huge = projects(homed) / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(100 << 20)
    assert "104857600 bytes" in end(homed.api, transcriptPath=str(huge))["reason"]
    huge.unlink()
    long_line = projects(homed) / "long.jsonl"
    long_line.write_text(
        line("user", "before") + line("user", "x" * 10_000_000)[:5_000_000] + "\n" + line("user", "after")
    )
    stored = end(homed.api, transcriptPath=str(long_line), sessionKey="long")
    assert (stored["turns"], stored["warnings"]) == (2, ["1 lines of the transcript could not be read"])
    (projects(homed) / "bytes.jsonl").write_bytes(bytes(range(256)) * 100)
    assert end(homed.api, transcriptPath=str(projects(homed) / "bytes.jsonl"), sessionKey="bytes")["stored"] is True
    assert "symbolic link" in _through_a_link(homed)
    for path in ("/etc/passwd", f"{homed.workspace}/.daemon/secret", f"{homed.workspace}/memory/memories.db"):
        assert end(homed.api, transcriptPath=path)["skipped"] is True
    assert homed.api.get("/health").status == 200


def _through_a_link(daemon: LiveDaemon) -> str:
    (daemon.root / "outside.jsonl").write_text(line("user", "outside"))
    (projects(daemon) / "link.jsonl").symlink_to(daemon.root / "outside.jsonl")
    reason: str = end(daemon.api, transcriptPath=str(projects(daemon) / "link.jsonl"))["reason"]
    return reason


def conversation(turns: int) -> str:
    return "".join(line("user", f"question {number} " + "about the ferry " * 60) for number in range(turns))


def stored(daemon: LiveDaemon, **fields: Any) -> bool:
    """Return whether the transcript is stored; False asks for a retry."""
    try:
        answer = daemon.api.post(END, {"harness": "claude-code", **fields})
    except (OSError, HTTPException):
        return False
    assert answer.status in {200, 503, 504}, answer.raw
    return answer.status == 200


@pytest.mark.parametrize(
    ("child", "point"),
    [
        ("writer", "writer.before_commit=kill@4/1"),
        ("writer", "writer.after_commit=kill@4/1"),
        ("gateway", "gateway.sent_to_writer=kill@2/1"),
        ("gateway", "gateway.reply_received=kill@3/1"),
    ],
)
def test_a_kill_in_the_middle_loses_and_doubles_nothing_after_the_retry(child: str, point: str) -> None:
    with live_daemon(started=False, patient=True) as daemon:
        fired = daemon.root / "fired"
        daemon.start(SIGNET_SYNC_POINTS=point, SIGNET_SYNC_POINTS_FIRED=str(fired))
        assert not fired.exists()
        talk = conversation(1200)
        eventually(
            lambda: stored(daemon, transcript=talk, sessionKey="s"), within_s=60, what="the transcript is stored"
        )
        assert fired.exists()
        assert daemon.every_process()[child]["incarnation"] > 1
        turns = transcript(daemon.api, "s")["turns"]
        assert [turn["content"].split()[1] for turn in turns] == [str(number) for number in range(1200)]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_captures_of_one_session_at_the_same_time_store_each_turn_once(homed: LiveDaemon) -> None:
    lines = conversation(600).splitlines(keepends=True)
    talks = ["".join(lines[:count]) for count in (300, 450, 600, 600)]

    def capture(talk: str) -> None:
        eventually(lambda: stored(homed, transcript=talk, sessionKey="both"), within_s=60, what="it is stored")

    threads = [threading.Thread(target=capture, args=(talk,)) for talk in talks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    turns = transcript(homed.api, "both")["turns"]
    assert [int(turn["content"].split()[1]) for turn in turns] == list(range(600))


STRANGE = {
    "line feeds": b"\n",
    "blanks": b" \n",
    "empty objects": b"{}\n",
    "unknown records": b'{"type":"progress"}\n',
    "lists": b"[]\n",
    "no JSON": b'{"type":"user"\n',
}


def test_transcripts_of_megabytes_without_words_hold_up_no_other(homed: LiveDaemon) -> None:
    paths = []
    for name, unit in STRANGE.items():
        path = projects(homed) / f"{name}.jsonl"
        path.write_bytes(unit * ((60 << 20) // len(unit)))
        paths.append(path)
    with ThreadPoolExecutor(2) as pool:
        about = [{"harness": "claude-code", "transcriptPath": str(path), "sessionKey": path.stem} for path in paths]
        strange = [pool.submit(homed.api.post, END, fields) for fields in about]
        for number in range(10):
            asked = {"transcript": f"User: {number}?\nAssistant: yes", "sessionKey": f"beside-{number}"}
            assert end(homed.api, **asked)["stored"] is True
        for future in strange:
            answer = future.result()
            assert answer.status == 503 or not answer.json.get("stored"), answer
