"""Checkpoints of sessions: what makes one, what it says, who may read it, and that hooks answer without it.

A real daemon serves the requests; the windows of time and what a store that fails does to them are tested with a
scripted bus.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.pipeline_schema import ContinuityConfig
from signet_actors.errors import Unavailable
from signet_actors.features.checkpoints.api import CheckpointRecorded, RecordCheckpoint, StoredCheckpoint
from signet_actors.gateway.sessions.checkpoints import RETRY_MS, WINDOW_MS, SessionCheckpoints
from signet_actors.gateway.sessions.ledger import RecallLedger
from signet_actors.gateway.sessions.session_secrets import SessionSecrets
from signet_actors.protocol.message import Answered
from signet_actors.protocol.sessions import GetSession, SessionFound
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon
from tests.support.memory_api import RecordingBus, SetClock

HERE = "/home/ada/shop"
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
RECOVERY = "## Session Recovery Context"
CONFIG = "memory: {pipelineV2: {continuity: {promptInterval: 3, maxCheckpointsPerSession: 4}}}\n"


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config=CONFIG, patient=True) as started:
        yield started
        assert started.faults() == []


def hook(client: Client, name: str, **fields: Any) -> Any:
    return client.post(f"/api/hooks/{name}", {"harness": "claude-code", "project": HERE, **fields}).ok()


def of_session(client: Client, key: str, **query: Any) -> list[dict[str, Any]]:
    found = client.get(f"/api/checkpoints/{key}", **query).ok()
    assert found["count"] == len(found["checkpoints"])
    return found["checkpoints"]  # type: ignore[no-any-return]


def begin(client: Client, key: str, project: str, **fields: Any) -> str:
    return str(hook(client, "session-start", sessionKey=key, project=project, **fields)["inject"])


def work(client: Client, key: str, project: str) -> None:
    begin(client, key, project)
    hook(client, "user-prompt-submit", userPrompt=f"paint the {key} shed", sessionKey=key, project=project)


def test_a_periodic_checkpoint_is_made_after_the_configured_number_of_prompts(daemon: LiveDaemon) -> None:
    hook(daemon.api, "remember", content="The form uses formkit", sessionKey="periodic")
    hook(daemon.api, "recall", query="which port has staging?", sessionKey="periodic")
    for text in ("fix the login form", "and its tests", "then deploy the shop"):
        assert of_session(daemon.api, "periodic") == []
        hook(daemon.api, "user-prompt-submit", userPrompt=text, sessionKey="periodic")
    eventually(lambda: of_session(daemon.api, "periodic"), what="the checkpoint")
    (one,) = of_session(daemon.api, "periodic")
    assert (one["trigger"], one["prompt_count"], one["harness"]) == ("periodic", 3, "claude-code")
    assert (one["project"], one["project_normalized"], one["agent_id"]) == (HERE, HERE, "default")
    assert "- Recent prompt: then deploy the shop" in one["digest"]
    assert json.loads(one["memory_queries"])[0] == "which port has staging?"
    (remembered,) = json.loads(one["recent_remembers"])
    assert daemon.api.memory(remembered)["content"] == "The form uses formkit"
    assert "formkit" not in json.dumps(one), "a checkpoint does not copy memories"


def test_the_checkpoint_before_a_compaction_is_on_disk_when_the_hook_answers(daemon: LiveDaemon) -> None:
    hook(daemon.api, "user-prompt-submit", userPrompt="fix the login form", sessionKey="compacted")
    answer = hook(daemon.api, "pre-compaction", sessionKey="compacted", sessionContext="half done", messageCount=80)
    assert answer["guidelines"]
    (one,) = of_session(daemon.api, "compacted")
    assert (one["id"], one["trigger"], one["prompt_count"]) == (answer["checkpointId"], "pre_compaction", 1)
    assert "- Context: 80 messages. half done" in one["digest"]


def test_triggers_within_the_window_make_one_checkpoint(daemon: LiveDaemon) -> None:
    hook(daemon.api, "user-prompt-submit", userPrompt="fix the login form", sessionKey="window")
    first = hook(daemon.api, "pre-compaction", sessionKey="window")["checkpointId"]
    hook(daemon.api, "user-prompt-submit", userPrompt="and its tests", sessionKey="window")
    second = daemon.api.post("/api/checkpoints", {"sessionKey": "window", "context": "noted"}).ok()
    (one,) = of_session(daemon.api, "window")
    assert first == second["id"] == one["id"]
    assert (one["trigger"], one["prompt_count"], second["stored"]) == ("explicit", 2, True)
    assert "login form" in one["digest"]
    assert "and its tests" in one["digest"]


def test_the_end_of_a_session_makes_a_checkpoint_and_an_end_by_clear_does_not(daemon: LiveDaemon) -> None:
    talk = "User: fix the form\nAssistant: done"
    for key, reason in (("ended", "logout"), ("cleared", "clear")):
        hook(daemon.api, "user-prompt-submit", userPrompt="fix the login form", sessionKey=key)
        hook(daemon.api, "session-end", sessionKey=key, transcript=talk, reason=reason)
    (one,) = of_session(daemon.api, "ended")
    assert (one["trigger"], one["prompt_count"]) == ("session_end", 1)
    assert "- Prompts: 1 in all" in one["digest"]
    assert of_session(daemon.api, "cleared") == []


def test_the_end_of_a_session_without_a_transcript_is_noted_too(daemon: LiveDaemon) -> None:
    assert hook(daemon.api, "session-end", sessionKey="bare")["skipped"] is True
    assert [one["trigger"] for one in of_session(daemon.api, "bare")] == ["session_end"]


def test_a_project_lists_the_checkpoints_of_its_sessions_the_newest_first(daemon: LiveDaemon) -> None:
    for key in ("one", "two"):
        daemon.api.post("/api/checkpoints", {"sessionKey": f"listed-{key}", "project": "/home/ada/listed/"}).ok()
    for path in ("/api/checkpoints", "/api/sessions/checkpoints"):
        found = daemon.api.get(path, project="/home/ada/listed").ok()
        assert [one["session_key"] for one in found["checkpoints"]] == ["listed-two", "listed-one"]
    assert daemon.api.get("/api/checkpoints", project="/home/ada/listed", limit=1).ok()["count"] == 1
    assert daemon.api.get("/api/checkpoints", project="/home/ada").ok() == {"checkpoints": [], "count": 0}
    assert daemon.api.get("/api/checkpoints").refused(400)["error"] == "project query parameter required"


def test_an_agent_reads_its_own_checkpoints_alone(daemon: LiveDaemon) -> None:
    daemon.agent("bob").post("/api/checkpoints", {"sessionKey": "shared", "project": "/home/bob"}).ok()
    assert of_session(daemon.api, "shared") == []
    assert daemon.api.get("/api/checkpoints", project="/home/bob").ok()["count"] == 0
    assert len(of_session(daemon.agent("bob"), "shared")) == 1
    daemon.api.post("/api/checkpoints", {"sessionKey": "agent:bob:main"}).ok()
    assert len(of_session(daemon.api, "agent:bob:main")) == 1, "the key names the agent"


def test_no_secret_reaches_a_checkpoint(daemon: LiveDaemon) -> None:
    hook(daemon.api, "user-prompt-submit", userPrompt=f"my token is {KEY}", sessionKey="secret", project=f"/tmp/{KEY}")
    hook(daemon.api, "recall", query=f"who made {KEY}?", sessionKey="secret")
    hook(daemon.api, "pre-compaction", sessionKey="secret", sessionContext=f"export GITHUB_TOKEN={KEY}")
    (one,) = of_session(daemon.api, "secret")
    assert "[REDACTED:github-token]" in one["digest"]
    files = [each for each in daemon.workspace.rglob("*") if each.is_file()]
    assert all(KEY.encode() not in each.read_bytes() for each in files)


SAID = (
    *(f"my token is {KEY}", f"GITHUB_TOKEN={KEY}", f"use {KEY} for it", f"mein Token: {KEY}", f"{KEY}"),
    *("password: xK9vQ2mWz7Lp", "password is xK9vQ2mWz7Lp", "the password is xK9vQ2mWz7Lp", "DB_PASSWORD=xK9vQ2mWz7Lp"),
    *("Passwort: xK9vQ2mWz7Lp", 'api_key = "xK9vQ2mWz7LpR4tY"', "mysql -u root -pxK9vQ2mWz7Lp shop"),
)


NAMED = ("the db password: xK9mQ2vL7pZ1", "DB_PASSWORD=xK9mQ2vL7pZ1 make up", "Das Passwort lautet xK9mQ2vL7pZ1")
LATER = (
    "so xK9mQ2vL7pZ1 does not work, try it with the other user",
    "wie oft habe ich xK9mQ2vL7pZ1 jetzt eingegeben?",
    "put `xK9mQ2vL7pZ1` into .env",
    "grep -r xK9mQ2vL7pZ1 .",
    "(xK9mQ2vL7pZ1)",
    '{"err": "bad login\\\\nxK9mQ2vL7pZ1"}',
    "\x1b[31mxK9mQ2vL7pZ1\x1b[0m in red",
    "login%3DxK9mQ2vL7pZ1 and -pxK9mQ2vL7pZ1",
)


def test_a_value_that_may_be_a_name_as_well_is_none_in_later_texts_of_its_session(daemon: LiveDaemon) -> None:
    named = ("POSTGRES_PASSWORD=postgres16", "password: test123", "MYSQL_PASSWORD=mysql8.0")
    later = ("image: postgres16-alpine", "the test1234 suite of test123", "MySQL is mysql8.0.36", "run postgres16 here")
    key = "names"
    for text in (*named, *later):
        hook(daemon.api, "user-prompt-submit", userPrompt=text, sessionKey=key)
    turns = "".join(f"User: {text}\nAssistant: Noted.\n" for text in later)
    keep(daemon.api, key, transcript=turns)
    kept = daemon.api.get(f"/api/sessions/{key}/transcript").ok()["content"]
    assert all(text in kept for text in later), kept
    whole = "".join(f"User: {text}\nAssistant: Noted.\n" for text in (*named, *later[:3]))
    keep(daemon.api, "names-2", transcript=whole)
    kept = daemon.api.get("/api/sessions/names-2/transcript").ok()["content"]
    assert all(text in kept for text in (later[0], "the test1234 suite of", later[2])), kept


@pytest.mark.parametrize("named", NAMED)
def test_a_secret_stays_one_in_later_texts_of_its_session(daemon: LiveDaemon, named: str) -> None:
    key = f"knows-{NAMED.index(named)}"
    keep(daemon.api, key, transcript=f"User: {named}\nAssistant: Noted.")
    for text in (named, *LATER):
        reply = hook(daemon.api, "user-prompt-submit", userPrompt=text, sessionKey=key)
        assert "xk9m" not in json.dumps(reply).lower()
    hook(daemon.api, "recall", query="who made xK9mQ2vL7pZ1?", sessionKey=key)
    hook(daemon.api, "pre-compaction", sessionKey=key, sessionContext="xK9mQ2vL7pZ1 is wrong")
    (one,) = of_session(daemon.api, key)
    assert "xk9m" not in json.dumps(one).lower()
    assert one["digest"].count("[REDACTED:") >= len(LATER)
    for text in LATER:  # what the program still has of the session begins after its name
        keep(daemon.api, key, transcript=f"User: {text}\nAssistant: I tried xK9mQ2vL7pZ1.")
    kept = daemon.api.get(f"/api/sessions/{key}/transcript").ok()
    assert "xk9m" not in json.dumps(kept).lower()
    keep(daemon.api, f"other-than-{key}", transcript="User: what is xK9mQ2vL7pZ1?\nAssistant: A name.")
    other = daemon.api.get(f"/api/sessions/other-than-{key}/transcript").ok()
    assert "xK9mQ2vL7pZ1" in json.dumps(other), "nothing names it there"


QUESTION = "I cannot log in. What is the staging password?"
ANSWERED = (
    "xK9mQ2vL7pA1",
    "`xK9mQ2vL7pA2`",
    "it's xK9mQ2vL7pA3",
    "Tr0ub4dor&3xK9m",
    "xK9mQ2vL7pA5 and the user is anna",
)


@pytest.mark.parametrize("answer", ANSWERED)
def test_what_answers_the_question_of_the_turn_before_is_stored_nowhere(daemon: LiveDaemon, answer: str) -> None:
    key = f"asked-{ANSWERED.index(answer)}"
    asked = f"User: deploy the shop\nAssistant: {QUESTION}\n"
    keep(daemon.api, key, transcript=asked)  # at the end of its turn; then comes the prompt
    replies = [hook(daemon.api, "user-prompt-submit", userPrompt=answer, sessionKey=key)]
    told = {"lastAssistantMessage": QUESTION, "sessionKey": f"{key}-told"}
    replies.append(hook(daemon.api, "user-prompt-submit", userPrompt=answer, **told))
    for each in (key, f"{key}-told"):
        hook(daemon.api, "pre-compaction", sessionKey=each)
    keep(daemon.api, f"{key}-file", transcript=f"{asked}User: {answer}\nAssistant: Thanks.\n")
    kept = daemon.api.get(f"/api/sessions/{key}-file/transcript").ok()["content"]
    assert "[REDACTED:credential]" in kept
    seen = [*replies, kept, of_session(daemon.api, key), of_session(daemon.api, f"{key}-told")]
    assert "xk9m" not in json.dumps(seen).lower()
    keep(daemon.api, f"{key}-other", transcript=f"User: go\nAssistant: Which branch?\nUser: {answer}\nAssistant: Ok.\n")
    other = daemon.api.get(f"/api/sessions/{key}-other/transcript").ok()["content"]
    assert answer in other, "nothing asks for a secret there"


@pytest.mark.parametrize(
    "prompts",
    [
        ("the staging db password: %s", "so %s does not work there, try the other user"),
        ("so %s does not work there, try the other user", "the staging db password: %s"),
    ],
    ids=["told first", "told afterwards"],
)
def test_no_word_of_a_password_stays_in_the_searches_of_a_checkpoint(
    daemon: LiveDaemon, prompts: tuple[str, str]
) -> None:
    secret = "Str0ng!Passw0rd#2024"
    key = f"searched-{prompts[0][:2]}"
    for prompt in prompts:
        reply = hook(daemon.api, "user-prompt-submit", userPrompt=prompt % secret, sessionKey=key)
    if prompts[0].startswith("the"):
        assert "passw0rd" not in json.dumps(reply).lower(), "the search has none of it either"
    hook(daemon.api, "pre-compaction", sessionKey=key)
    (one,) = of_session(daemon.api, key)
    seen = json.dumps(one).lower()
    assert [part for part in ("str0ng", "passw0rd") if part in seen] == []
    assert "work try user" in one["memory_queries"]


@pytest.mark.parametrize("half", [4096, 20_000], ids=["the kept beginning", "the kept ends"])
def test_no_part_of_a_secret_at_a_cut_reaches_terms_or_checkpoints(daemon: LiveDaemon, half: int) -> None:
    for number, said in enumerate(SAID):
        secret = KEY if KEY in said else "xK9vQ2mWz7Lp"
        for kept in range(1, len(said), 7):  # so much of it is before the cut at the beginning, or cut off at the end
            key = f"cut-{half}-{number}-{kept}"
            first = "deploy the shop".ljust(half - kept, "\u2003") + said  # a checkpoint shows it as one blank
            last = said[kept:] + " how do we deploy the harbour crane?"
            middle = " and the quay" * 4000
            prompt = first + middle + " " + said[:kept] + last.ljust(half, "\u2003")
            reply = hook(daemon.api, "user-prompt-submit", userPrompt=prompt, sessionKey=key)
            daemon.api.post("/api/checkpoints", {"sessionKey": key}).ok()
            seen = json.dumps([reply["queryTerms"], of_session(daemon.api, key)]).lower()
            parts = {secret[at : at + 6].lower() for at in range(len(secret) - 5)}
            assert not [part for part in parts if part in seen], (said, kept)
            assert "deploy" in seen


def test_a_session_whose_key_holds_a_secret_is_found_where_memories_keep_their_secrets() -> None:
    with live_daemon(config="redaction: {memories: false}\n", patient=True) as daemon:
        daemon.api.remember("The form uses formkit", type="decision")
        hook(daemon.api, "session-start", sessionKey=KEY)
        hook(daemon.api, "pre-compaction", sessionKey=KEY, sessionContext="the login form")
        (checkpoint,) = of_session(daemon.api, KEY)
        assert KEY not in json.dumps(checkpoint)
        assert daemon.api.get(f"/api/sessions/{KEY}/memories").ok()["memories"]


def test_a_bypassed_session_has_no_checkpoints(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", sessionKey="off")
    daemon.api.post("/api/sessions/off/bypass", {"enabled": True}).ok()
    for name, fields in (("user-prompt-submit", {"userPrompt": "x"}), ("pre-compaction", {}), ("session-end", {})):
        assert hook(daemon.api, name, sessionKey="off", **fields)["bypassed"] is True
    made = daemon.api.post("/api/checkpoints", {"sessionKey": "off"}).ok()
    assert (made["stored"], made["reason"]) == (False, "bypassed")
    assert of_session(daemon.api, "off") == []


def test_what_a_session_does_while_it_is_bypassed_is_in_no_checkpoint(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", sessionKey="off-and-on")
    daemon.api.post("/api/sessions/off-and-on/bypass", {"enabled": True}).ok()
    asked = {"query": "the name of my doctor", "content": "The harbour has three cranes", "sessionKey": "off-and-on"}
    for path in ("/api/memory/recall", "/api/memory/remember"):
        assert daemon.api.post(path, asked).status == 403
    hook(daemon.api, "recall", query="the name of my doctor", sessionKey="off-and-on")
    hook(daemon.api, "remember", content="The harbour has three cranes", sessionKey="off-and-on")
    daemon.api.post("/api/sessions/off-and-on/bypass", {"enabled": False}).ok()
    daemon.api.post("/api/checkpoints", {"sessionKey": "off-and-on"}).ok()
    (one,) = of_session(daemon.api, "off-and-on")
    assert (json.loads(one["memory_queries"]), json.loads(one["recent_remembers"])) == ([], [])


@pytest.mark.parametrize("key", ["talked", KEY[:-1] + "9"])
def test_forgetting_a_session_leaves_nothing_of_it(daemon: LiveDaemon, key: str) -> None:
    daemon.api.post("/api/checkpoints", {"sessionKey": key, "context": "the name of my doctor"}).ok()
    daemon.api.recall("the name of my doctor", sessionKey=key)
    forgotten = daemon.api.request("DELETE", f"/api/sessions/{key}/transcript").ok()
    assert forgotten["turns"] == 0
    assert of_session(daemon.api, key) == []
    made = daemon.api.post("/api/checkpoints", {"sessionKey": key}).ok()
    assert (made["stored"], made["reason"]) == (False, "forgotten")


def test_a_checkpoint_without_a_session_is_refused(daemon: LiveDaemon) -> None:
    refused = daemon.api.post("/api/checkpoints", {"sessionKey": "named", "changed_by": {}})
    assert (refused.status, refused.json["field"]) == (400, "changed_by")
    assert daemon.api.post("/api/checkpoints", {"harness": "x"}).refused(400)["error"] == "sessionKey is required"


def test_the_recovery_text_keeps_to_its_configured_length() -> None:
    with live_daemon(config="memory: {pipelineV2: {continuity: {recoveryBudgetChars: 200}}}\n", patient=True) as daemon:
        hook(daemon.api, "pre-compaction", sessionKey="s", sessionContext="word " * 300)
        text = begin(daemon.api, "s", HERE, source="compact")
        assert len(text[text.index(RECOVERY) :]) <= 200


def test_without_continuity_nothing_is_noted() -> None:
    with live_daemon(
        config="memory: {pipelineV2: {continuity: {enabled: false, promptInterval: 1}}}\n", patient=True
    ) as daemon:
        hook(daemon.api, "user-prompt-submit", userPrompt="fix the login form", sessionKey="s")
        assert "checkpointId" not in hook(daemon.api, "pre-compaction", sessionKey="s")
        made = daemon.api.post("/api/checkpoints", {"sessionKey": "s"}).ok()
        assert (made["stored"], made["reason"]) == (False, "disabled")
        assert RECOVERY not in begin(daemon.api, "s", HERE, source="compact")
        assert daemon.stop() == 0
        assert daemon.read("SELECT count(*) FROM session_checkpoints") == [(0,)]


def test_a_session_goes_on_with_its_checkpoint_after_a_compaction(daemon: LiveDaemon) -> None:
    work(daemon.api, "green", "/home/ada/green")
    hook(daemon.api, "pre-compaction", sessionKey="green", sessionContext="the door is left")
    after = begin(daemon.api, "green", "/home/ada/green", source="compact")
    assert f"{RECOVERY}\n- The context of this session was compacted." in after
    assert "- Recent prompt: paint the green shed" in after
    assert "- Context: the door is left" in after


def test_after_a_compaction_an_agent_is_told_what_it_had_done_in_a_turn_that_no_hook_has_reported(
    daemon: LiveDaemon,
) -> None:
    """Claude Code compacts in the middle of a turn: only the file has what the agent did in it."""
    key, project = "8d1c", "/home/ada/router"
    begin(daemon.api, key, project)
    hook(daemon.api, "user-prompt-submit", userPrompt="move the login form", sessionKey=key, project=project)

    def line(role: str, text: str, number: int) -> str:
        message = {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}
        about = {"type": role, "sessionId": key, "uuid": f"{key}-{number}", "cwd": project}
        return json.dumps(about | {"message": message, "timestamp": f"2026-02-03T10:00:0{number}.000Z"})

    steps = ("I decided to keep the old route until May.", "It is in src/login.py now.", "tests/test_login.py fails.")
    said = [line("user", "move the login form", 0), *(line("assistant", text, at + 1) for at, text in enumerate(steps))]
    said.append(line("assistant", f"The door key is {KEY}. Next is the logout form.", 5))
    path = daemon.workspace / "session.jsonl"
    path.write_text("\n".join(said) + "\n")
    hook(daemon.api, "pre-compaction", sessionKey=key, project=project, transcriptPath=str(path))
    assert [one["trigger"] for one in of_session(daemon.api, key)] == ["pre_compaction"]
    after = begin(daemon.api, key, project, source="compact")
    told = after[after.index(RECOVERY) :].split("\n\n")[0].splitlines()
    assert re.fullmatch(r"- The context of this session was compacted. Its work until \w{3} \d+, \d{4} at .*:", told[1])
    assert told[2] == f"- Project: {project}"
    assert told[4:] == [
        "- Recent prompt: move the login form",
        f"- Decided: {steps[0]}",
        f"- Earlier answer: {steps[1]}",
        f"- Earlier answer: {steps[2]}",
        told[-2],
        "- Files: src/login.py, tests/test_login.py",
    ]
    assert told[-2].startswith("- Last answer: The door key is [REDACTED")
    assert told[-2].endswith("Next is the logout form.")
    again = keep(daemon.api, key, transcriptPath=str(path), project=project)
    assert again["newTurns"] == 0, "the turns were stored once"
    resumed = begin(daemon.api, key, project, source="resume")
    assert "- Recent prompt: move the login form" in resumed
    assert "answer" not in resumed, "a resumed conversation still has them"


@pytest.mark.parametrize("path", ["/etc/passwd", "/nonexistent/session.jsonl"])
def test_a_transcript_that_cannot_be_read_hinders_no_compaction(daemon: LiveDaemon, path: str) -> None:
    key = f"unread-{len(path)}"
    work(daemon.api, key, HERE)
    assert hook(daemon.api, "pre-compaction", sessionKey=key, transcriptPath=path)["checkpointId"]
    assert f"paint the {key} shed" in begin(daemon.api, key, HERE, source="compact")


def test_a_compaction_that_was_only_reported_afterwards_is_recovered_from_too(daemon: LiveDaemon) -> None:
    work(daemon.api, "late", "/home/ada/late")
    hook(daemon.api, "compaction-complete", summary="We painted.", sessionKey="late", project="/home/ada/late")
    assert "paint the late shed" in begin(daemon.api, "late", "/home/ada/late")


def test_a_resumed_session_gets_the_reminder_and_its_checkpoint(daemon: LiveDaemon) -> None:
    work(daemon.api, "blue", "/home/ada/blue")
    resumed = begin(daemon.api, "blue", "/home/ada/blue", source="resume")
    assert "This session goes on." in resumed
    assert "paint the blue shed" in resumed


@pytest.mark.parametrize("source", ["resume", "compact"])
def test_a_session_that_goes_on_never_gets_the_checkpoint_of_another(daemon: LiveDaemon, source: str) -> None:
    project = f"/home/ada/{source}-shared"
    work(daemon.api, f"other-{source}", project)
    assert RECOVERY not in begin(daemon.api, f"own-{source}", project, source=source)
    nameless = hook(daemon.api, "session-start", project=project, source=source)
    assert RECOVERY not in nameless["inject"]
    assert RECOVERY in begin(daemon.api, f"new-{source}", project)


def test_a_new_session_gets_the_checkpoint_of_one_of_its_project_that_did_not_end(daemon: LiveDaemon) -> None:
    work(daemon.api, "red", "/home/ada/red")
    new = begin(daemon.api, "red-2", "/home/ada/red/")
    assert f"{RECOVERY}\n- The last session of this project (claude-code), active until " in new
    assert ", has not reported its end:\n- Last prompt: paint the red shed" in new
    assert "Peer" not in new, "it is named once"
    assert begin(daemon.api, "red-2", "/home/ada/red").count(RECOVERY) == 0, "a second start is a reminder"
    assert RECOVERY not in begin(daemon.api, "red-3", "/home/ada/red", source="clear")
    assert RECOVERY not in begin(daemon.api, "red-4", "/home/ada/other")
    assert RECOVERY not in begin(daemon.agent("bob"), "red-5", "/home/ada/red")


def test_a_session_with_whose_work_another_went_on_is_no_peer_until_its_next_hook(daemon: LiveDaemon) -> None:
    def compact(session: str) -> str:
        hook(daemon.api, "pre-compaction", sessionKey=session, project=project)
        return begin(daemon.api, session, project, source="compact")

    project = "/home/ada/pink"
    work(daemon.api, "pink", project)
    assert "paint the pink shed" in begin(daemon.api, "pink-2", project)
    work(daemon.api, "pink-2", project)
    after = compact("pink-2")
    assert "Its work until" in after
    assert "Peer" not in after
    work(daemon.api, "pink", project)
    assert "- claude-code, session pink, active 0m ago" in compact("pink-2")


@pytest.mark.parametrize("reason", ["logout", "clear"])
def test_the_last_words_of_a_session_that_reported_its_end_are_given(daemon: LiveDaemon, reason: str) -> None:
    project = f"/home/ada/{reason}"
    work(daemon.api, f"over-{reason}", project)
    hook(daemon.api, "pre-compaction", sessionKey=f"over-{reason}", project=project)
    hook(daemon.api, "session-end", sessionKey=f"over-{reason}", project=project, reason=reason)
    new = begin(daemon.api, f"new-{reason}", project)
    assert RECOVERY not in new
    assert "## From Memory: Last Session\n- The last session of this project (claude-code) ended " in new
    assert f"- Last prompt: paint the over-{reason} shed" in new


TALK = "User: paint the shed green\nAssistant: " + "I painted one board after the other. " * 20


def keep(client: Client, key: str, **fields: Any) -> Any:
    return hook(client, "session-checkpoint-extract", sessionKey=key, **fields)


def test_the_end_of_a_turn_stores_the_transcript_and_a_checkpoint_and_the_session_goes_on(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", sessionKey="turn", runtimePath="plugin")
    hook(daemon.api, "user-prompt-submit", userPrompt="paint the shed green", sessionKey="turn", runtimePath="plugin")
    answer = keep(daemon.api, "turn", transcript=TALK, runtimePath="plugin")
    assert (answer["stored"], answer["turns"], answer["newTurns"], answer["queued"]) == (True, 2, 2, True)
    (one,) = of_session(daemon.api, "turn")
    assert (one["id"], one["trigger"], one["prompt_count"]) == (answer["checkpointId"], "agent", 1)
    assert "painted one board" in daemon.api.get("/api/sessions/turn/transcript").ok()["content"]
    assert daemon.api.get("/api/sessions/turn").ok()["runtimePath"] == "plugin", "the claim holds"
    again = keep(daemon.api, "turn", transcript=TALK, runtimePath="plugin")
    assert (again["stored"], again["newTurns"], again["queued"], "checkpointId" in again) == (True, 0, False, False)


def test_short_turns_are_stored_and_make_a_checkpoint_together(daemon: LiveDaemon) -> None:
    said = "User: go on\nAssistant: " + "so I did. " * 30
    first = keep(daemon.api, "short", transcript=said)
    assert (first["newTurns"], "checkpointId" in first) == (2, False)
    second = keep(daemon.api, "short", transcript=f"{said}\n{said.replace('go on', 'and more')}")
    assert (second["newTurns"], "checkpointId" in second) == (2, True)


def test_the_end_of_a_turn_is_answered_with_200_whatever_is_missing(daemon: LiveDaemon) -> None:
    refused = daemon.api.post("/api/hooks/session-checkpoint-extract", {"harness": "x", "transcript": TALK})
    assert refused.refused(400)["error"] == "harness and sessionKey are required"
    assert keep(daemon.api, "none")["skipped"] is True
    outside = keep(daemon.api, "none", transcriptPath="/etc/passwd")
    assert (outside["skipped"], outside["stored"]) == (True, False)
    assert "outside the workspace" in outside["reason"]
    keep(daemon.api, "gone", transcript=TALK)
    daemon.api.request("DELETE", "/api/sessions/gone/transcript").ok()
    forgotten = keep(daemon.api, "gone", transcript=TALK)
    assert (forgotten["skipped"], forgotten["stored"], forgotten["reason"]) == (True, False, "forgotten")
    hook(daemon.api, "session-start", sessionKey="claimed", runtimePath="plugin")
    assert keep(daemon.api, "claimed", transcript=TALK, runtimePath="legacy")["claimedBy"] == "plugin"


RECORDED = Answered(msgspec.json.encode(CheckpointRecorded(stored=True)))


class Noted:
    """Session checkpoints over a scripted bus, with a clock that only a test advances."""

    def __init__(self, **settings: Any) -> None:
        self.bus = RecordingBus({RecordCheckpoint: RECORDED, GetSession: SessionFound()})
        self.clock = SetClock()
        self.made = SessionCheckpoints(
            self.bus,  # type: ignore[arg-type]
            RecallLedger(self.bus, self.clock, structlog.get_logger()),  # type: ignore[arg-type]
            self.clock,
            structlog.get_logger(),
            iter(map(str, range(1000))).__next__,
            lambda: ContinuityConfig(**settings),
            lambda text, _: text,
            SessionSecrets(),
        )

    def prompt(self, key: str = "s", text: str = "x") -> None:
        self.made.prompted(key, "default", harness="codex", project="/p", text=text)

    @property
    def stored(self) -> list[StoredCheckpoint | None]:
        return [sent.body.checkpoint for sent in self.bus.asked if isinstance(sent.body, RecordCheckpoint)]


def run(scenario: Callable[[Noted], Any], **settings: Any) -> None:
    async def whole() -> None:
        noted = Noted(**settings)
        noted.made._schedule = lambda: None  # type: ignore[method-assign]
        await scenario(noted)

    asyncio.run(whole())


def test_a_periodic_checkpoint_is_stored_when_its_window_of_2500_ms_has_passed() -> None:
    async def scenario(noted: Noted) -> None:
        noted.prompt(text="first")
        noted.clock.now_ms += WINDOW_MS - 1
        assert await noted.made.store_due() == pytest.approx(0.001)
        noted.prompt(text="second")
        noted.clock.now_ms += 1
        await noted.made.store_due()
        (one,) = noted.stored
        assert one is not None
        assert (WINDOW_MS, one.prompt_count) == (2500, 2)
        noted.prompt(text="third")
        noted.clock.now_ms += WINDOW_MS
        await noted.made.store_due()
        assert [each.prompt_count for each in noted.stored if each] == [2, 1]

    run(scenario, prompt_interval=1)


def test_a_periodic_checkpoint_is_made_after_the_configured_time_if_something_happened() -> None:
    async def scenario(noted: Noted) -> None:
        noted.prompt()
        assert await noted.made.store_due() == pytest.approx(60)
        noted.clock.now_ms += 60_000
        await noted.made.store_due()
        noted.clock.now_ms += WINDOW_MS
        assert await noted.made.store_due() is None
        assert [each.trigger for each in noted.stored if each] == ["periodic"]
        noted.clock.now_ms += 600_000
        assert await noted.made.store_due() is None
        assert len(noted.stored) == 1, "nothing happened since"

    run(scenario, time_interval_ms=60_000)


def test_a_checkpoint_that_cannot_be_stored_is_tried_again_with_what_happened_since() -> None:
    async def scenario(noted: Noted) -> None:
        noted.bus.script[RecordCheckpoint] = Unavailable("away")
        noted.prompt()
        assert await noted.made.make_soon("s", "default", "pre_compaction") is None
        noted.clock.now_ms += WINDOW_MS
        assert await noted.made.store_due() == RETRY_MS / 1000
        noted.prompt()
        noted.made.searched("s", "default", "harbour")
        assert await noted.made.make_soon("s", "default", "pre_compaction") is None
        noted.bus.script[RecordCheckpoint] = RECORDED
        noted.clock.now_ms += WINDOW_MS
        assert await noted.made.store_due() is None
        last = noted.stored[-1]
        assert last is not None
        assert (last.id, last.prompt_count, last.memory_queries) == ("0", 2, '["harbour"]')

    run(scenario)


def test_the_end_of_a_session_is_stored_later_if_the_writer_is_away() -> None:
    async def scenario(noted: Noted) -> None:
        noted.bus.script[RecordCheckpoint] = Unavailable("away")
        noted.prompt()
        assert await noted.made.end("s", "default", harness="codex", project="/p", cleared=True) is None
        noted.bus.script[RecordCheckpoint] = RECORDED
        noted.clock.now_ms += RETRY_MS
        await noted.made.store_due()
        last = noted.bus.asked[-1].body
        assert (last.checkpoint, last.ended) == (None, True)
        assert await noted.made.store_due() is None

    run(scenario)


def test_nothing_is_stored_of_a_session_whose_bypass_is_read_only_later() -> None:
    async def scenario(noted: Noted) -> None:
        noted.bus.script[GetSession] = Unavailable("away")
        noted.prompt(text="the name of my doctor")
        assert await noted.made.make_soon("s", "default", "pre_compaction") is None
        noted.bus.script[GetSession] = SessionFound(bypassed=True)
        noted.clock.now_ms += RETRY_MS + WINDOW_MS
        assert await noted.made.store_due() is None
        await noted.made.stop()
        assert noted.stored == []

    run(scenario)


def test_what_happened_is_stored_when_the_daemon_stops() -> None:
    async def scenario(noted: Noted) -> None:
        noted.prompt("a")
        noted.prompt("b")
        await noted.made.stop()
        assert [sent.body.session_key for sent in noted.bus.asked if isinstance(sent.body, RecordCheckpoint)] == [
            "a",
            "b",
        ]

    run(scenario)
