"""The hooks: their answers, what they accept, and that they answer with 200 even if their work fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.hooks_schema import HooksConfig, UserPromptSubmitConfig
from signet_actors.config.pipeline_schema import MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, GatewayConfig, RedactionConfig
from signet_actors.domain.extraction.proposals import Candidate
from signet_actors.errors import Busy, OutcomeUnknown, Unavailable
from signet_actors.features.session_memories.api import ACCEPTANCE_RULE, FEEDBACK, FeedbackReply
from signet_actors.gateway.routes.hooks import MAX_PROMPTS
from signet_actors.gateway.sessions.table import CLAIM_MS
from signet_actors.protocol.control import TreeChanged
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Answered, message_of
from signet_actors.protocol.searcher import (
    CandidatesFound,
    FindCandidates,
    GetMemory,
    IdsResolved,
    MemoryFound,
    Recall,
    ResolveIds,
)
from signet_actors.protocol.sessions import (
    FindSessionStart,
    GetSession,
    RecordSessions,
    SessionFound,
    SessionsRecorded,
    SessionStartFound,
    SetBypass,
)
from signet_actors.protocol.transcripts import ExpandSessions, StoreTurns, TranscriptStored
from signet_actors.protocol.writer import Remember, RememberChunks, Remembered, TouchMemories
from tests.actor.test_memory_routes_recall import found, row
from tests.support.memory_api import EVERYBODY_UP, NOW_MS, MemoryApi, memory

START = "/api/hooks/session-start"
PROMPT = "/api/hooks/user-prompt-submit"
REMEMBER = "/api/hooks/remember"
RECALL = "/api/hooks/recall"
BEFORE = "/api/hooks/pre-compaction"
AFTER = "/api/hooks/compaction-complete"
BODIES: dict[str, dict[str, Any]] = {
    START: {"harness": "codex"},
    PROMPT: {"harness": "codex", "userMessage": "which editor does the user prefer?"},
    REMEMBER: {"harness": "codex", "content": "The user prefers vim"},
    RECALL: {"harness": "codex", "query": "editor"},
    BEFORE: {"harness": "codex"},
    AFTER: {"harness": "codex", "summary": "We chose vim."},
}
SHORT = "id 01a208b3-2318-7802"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ID = "01a208b3-2318-7802-8a5f-bc64ce92bc22"


def remembered(command: Any) -> Remembered:
    new = command.memory
    return Remembered(ID, new.type, list(new.tags), new.pinned, new.importance, new.content, True, False, 1)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script |= {
        Recall: lambda query: found(*(() if (7, 1) in query.received else (row(id=ID, seq=7, relevance=0.9),))),
        GetSession: SessionFound(),
        FindSessionStart: SessionStartFound([], [memory(id=ID)], {ID: (7, 1)}),
        Remember: remembered,
        RecordSessions: SessionsRecorded(),
        SetBypass: SessionsRecorded(),
        StoreTurns: TranscriptStored(added=0),
    }
    return made


def post(api: MemoryApi, path: str, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    answer = api.request("POST", path, {**BODIES[path], **fields}, headers)
    assert answer.status == 200, answer.raw
    return answer.json


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (START, {}, "harness is required"),
        (START, {"harness": " "}, "harness is required"),
        (START, {"harness": 5}, "harness is required"),
        (START, {"harness": "codex", "claimOnly": True}, "runtimePath is required"),
        (PROMPT, {"harness": "codex"}, "harness and userMessage or userPrompt are required"),
        (PROMPT, {"userMessage": "x"}, "harness and userMessage or userPrompt are required"),
        (PROMPT, {"prompt": "x"}, "harness and userMessage or userPrompt are required"),
        (REMEMBER, {"harness": "codex", "content": " "}, "harness and content are required"),
        (REMEMBER, {"content": "x"}, "harness and content are required"),
        (RECALL, {"harness": "codex"}, "harness and query are required"),
        (BEFORE, {}, "harness is required"),
        (AFTER, {"harness": "codex"}, "harness and summary are required"),
    ],
)
def test_only_a_missing_required_field_is_refused(api: MemoryApi, path: str, body: Any, error: str) -> None:
    answer = api.request("POST", path, body)
    assert (answer.status, answer.json["error"]) == (400, error)


@pytest.mark.parametrize("path", BODIES)
def test_any_other_wrong_type_counts_as_absent_and_is_named(api: MemoryApi, path: str) -> None:
    odd = {"project": 5, "sessionKey": ["s"], "agentId": {}, "runtimePath": "other"}
    if path == RECALL:
        odd |= {"limit": "many", "aggregateBudget": "huge"}
    body = post(api, path, **odd)
    assert "skipped" not in body
    for name in odd:
        assert any(warning.startswith(f"{name} must be ") for warning in body["warnings"]), name


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("fields", "headers", "named"),
    [
        ({"agentId": "a/b"}, {}, "agentId"),
        ({"agent_id": "a" * 999}, {}, "agent_id"),
        ({}, {"x-signet-agent-id": "a/b"}, "x-signet-agent-id"),
        ({"sessionKey": "k" * 501}, {}, "sessionKey"),
        ({}, {"x-signet-session-key": "agent:a/b:c"}, "x-signet-session-key"),
        ({"changed_by": "a\nb"}, {}, "changed_by"),
        ({"scope": "s" * 501}, {}, "scope"),
    ],
)
def test_a_name_of_the_caller_that_is_not_valid_counts_as_absent(
    api: MemoryApi, path: str, fields: dict[str, str], headers: dict[str, str], named: str
) -> None:
    body = post(api, path, headers, **fields)
    assert "skipped" not in body
    (warning,) = [warning for warning in body["warnings"] if warning.startswith(named)]
    assert warning.endswith("; the value is ignored")
    assert api.request("GET", "/api/sessions").json["count"] == 0


@pytest.mark.parametrize("redact", [True, False])
def test_a_secret_in_the_type_of_a_memory_counts_as_absent(tmp_path: Path, redact: bool) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=redact)))
    api.bus.script[Remember] = remembered
    body = post(api, REMEMBER, type=SECRET.lower())
    assert body["saved"] is True
    assert (api.bus.only(Remember).body.memory.type == SECRET.lower()) is not redact
    assert ("warnings" in body) is redact


def test_a_content_that_is_too_long_is_skipped_with_a_reason(api: MemoryApi) -> None:
    body = post(api, REMEMBER, content="x" * 1_000_001)
    assert (body["saved"], body["skipped"], body["reason"]) == (False, True, "payload_too_large")
    assert body["warnings"] == ["content must be at most 1000000 bytes; it is not stored"]
    assert api.bus.asked == []


def test_no_secret_in_the_names_of_a_session_is_stored_even_if_memories_keep_theirs(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=False)))
    api.bus.script |= {
        GetSession: SessionFound(),
        FindSessionStart: SessionStartFound([], [memory(id=ID)], {ID: (7, 1)}),
        RecordSessions: SessionsRecorded(),
        SetBypass: SessionsRecorded(),
    }

    async def start_and_store() -> None:
        body = {"harness": f"codex {SECRET}", "sessionKey": SECRET, "project": f"/p/{SECRET}"}
        await api.requested("POST", START, json.dumps(body).encode(), {})
        await api.requested("POST", f"/api/sessions/{SECRET}/bypass", b'{"enabled": true}', {})
        await api.state.ledger.flush()

    asyncio.run(start_and_store())
    stored = [sent.body for sent in api.bus.asked if isinstance(sent.body, RecordSessions | SetBypass)]
    assert {type(each) for each in stored} == {RecordSessions, SetBypass}
    assert SECRET not in str(stored)
    assert "codex" in str(stored)


@pytest.mark.parametrize("path", BODIES)
def test_a_body_is_read_whatever_its_content_type_and_an_empty_session_key_is_none(api: MemoryApi, path: str) -> None:
    assert "skipped" not in post(api, path, {"content-type": "text/plain"}, sessionKey="")
    assert api.request("GET", "/api/sessions").json == {"sessions": [], "count": 0}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("failure", [Unavailable("away"), Busy("full"), RuntimeError("a bug"), OutcomeUnknown()])
def test_a_hook_answers_200_when_no_other_process_answers(api: MemoryApi, path: str, failure: Exception) -> None:
    api.bus.script = dict.fromkeys((Recall, GetSession, FindSessionStart, Remember, RecordSessions), failure)
    body = post(api, path, sessionKey="s")
    if path == BEFORE and not isinstance(failure, RuntimeError):
        assert body["guidelines"]  # it needs nothing but the text
        return
    code = "internal" if isinstance(failure, RuntimeError) else failure.code.value  # type: ignore[attr-defined]
    assert (body["skipped"], body["reason"]) == (True, code)
    assert body.get("inject", "") == ""
    assert not body.get("saved")


@pytest.mark.parametrize("path", [START, PROMPT, RECALL])
def test_a_hook_answers_200_in_its_time_when_a_searcher_does_not(tmp_path: Path, path: str) -> None:
    api = MemoryApi(tmp_path, config=Config(gateway=GatewayConfig(request_timeout_ms=1000)))

    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    api.bus.ask_searcher = hang  # type: ignore[method-assign]
    body = post(api, path, sessionKey="s")
    assert (body["skipped"], body["reason"]) == (True, "timeout")


@pytest.mark.parametrize("path", BODIES)
def test_no_hook_does_anything_with_the_header_that_switches_hooks_off(api: MemoryApi, path: str) -> None:
    body = post(api, path, {"x-signet-no-hooks": "1"}, sessionKey="s")
    assert (body["skipped"], body["reason"]) == (True, "no_hooks")
    assert api.bus.asked == api.bus.told == []


@pytest.mark.parametrize("path", BODIES)
def test_a_session_that_another_path_has_claimed_gets_nothing(api: MemoryApi, path: str) -> None:
    post(api, START, {"x-signet-runtime-path": "plugin"}, sessionKey="session:s")
    asked = len(api.bus.asked)
    body = post(api, path, sessionKey="s", runtimePath="legacy")
    assert {
        name: body[name] for name in ("skipped", "duplicateRuntimePath", "claimedBy", "sessionKnown", "reason")
    } == {
        "skipped": True,
        "duplicateRuntimePath": True,
        "claimedBy": "plugin",
        "sessionKnown": True,
        "reason": "claimed",
    }
    assert len(api.bus.asked) == asked
    assert "skipped" not in post(api, path, sessionKey="s"), "a caller without a path does not conflict"
    header = {"x-signet-runtime-path": "plugin"}
    assert "skipped" not in post(api, path, header, sessionKey="s", runtimePath="legacy"), "the header wins"
    api.clock.now_ms += CLAIM_MS
    assert "skipped" not in post(api, path, sessionKey="s", runtimePath="legacy"), "the claim has expired"


def test_a_session_is_claimed_without_anything_else(api: MemoryApi) -> None:
    assert post(api, START, sessionKey="s", claimOnly=True, runtimePath="plugin")["sessionKnown"] is True
    (session,) = api.request("GET", "/api/sessions").json["sessions"]
    assert (session["key"], session["runtimePath"], session["bypassed"]) == ("s", "plugin", False)
    assert [type(sent.body) for sent in api.bus.asked] == [GetSession]


@pytest.mark.parametrize("path", BODIES)
def test_a_bypassed_session_gets_nothing_until_it_is_switched_on_again(api: MemoryApi, path: str) -> None:
    post(api, START, sessionKey="s")
    assert api.request("POST", "/api/sessions/s/bypass", {"enabled": True}).json == {"key": "s", "bypassed": True}
    assert api.bus.only(SetBypass).body.bypassed
    asked = [sent for sent in api.bus.asked if not isinstance(sent.body, RecordSessions)]
    body = post(api, path, sessionKey="s")
    assert (body["bypassed"], body["skipped"], body["reason"]) == (True, True, "bypassed")
    assert [sent for sent in api.bus.asked if not isinstance(sent.body, RecordSessions)] == asked
    assert api.request("GET", "/api/sessions/s").json["bypassed"] is True
    api.request("POST", "/api/sessions/s/bypass", {"enabled": False})
    again = post(api, path, sessionKey="s")
    assert again.get("reason") == ("bypassed" if path == AFTER else None), "a summary tells what was said then, too"


@pytest.mark.parametrize(("failure", "status"), [(Unavailable("away"), 503), (OutcomeUnknown(), 504)])
def test_a_bypass_that_is_not_on_disk_is_not_answered_with_200(api: MemoryApi, failure: Exception, status: int) -> None:
    post(api, START, sessionKey="s")
    api.bus.script[SetBypass] = failure
    assert api.request("POST", "/api/sessions/s/bypass", {"enabled": True}).status == status
    assert api.request("GET", "/api/sessions/s").json["bypassed"] is False


def test_an_unknown_field_of_a_bypass_is_named(api: MemoryApi) -> None:
    post(api, START, sessionKey="s")
    body = api.request("POST", "/api/sessions/s/bypass", {"enabled": True, "enable": False}).json
    assert body == {"key": "s", "bypassed": True, "warnings": ["unknown field: enable (did you mean enabled?)"]}


def test_the_requests_about_a_session(api: MemoryApi) -> None:
    post(api, START, sessionKey="session:agent:alice:main")
    path = "/api/sessions/agent:alice:main"
    shown = api.request("GET", path).json
    assert shown["claimedAt"] == "2026-02-21T10:00:00.000Z"
    assert shown["expiresAt"] == "2026-02-21T14:00:00.000Z"
    api.clock.now_ms += 1000
    renewed = api.request("POST", f"{path}/renew").json
    assert (renewed["renewed"], renewed["expiresAt"]) == (True, "2026-02-21T14:00:01.000Z")
    for method, target, body in (
        ("GET", "/api/sessions/unknown", None),
        ("POST", "/api/sessions/unknown/renew", None),
        ("POST", "/api/sessions/unknown/bypass", {"enabled": "true"}),
    ):
        answer = api.request(method, target, body)
        assert (answer.status, answer.json["error"]) == (404, "Session not found")
    for enabled in ("true", 1, None):
        answer = api.request("POST", f"{path}/bypass", {"enabled": enabled})
        assert (answer.status, answer.json["error"]) == (400, "enabled (boolean) is required")


def test_a_session_starts_with_what_it_should_know_and_then_gets_a_reminder(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    (tmp_path / "IDENTITY.md").write_text("name: Ada\n")
    first = post(api, START, sessionKey="s", project="/p")
    assert first["identity"] == {"name": "Ada"}
    assert first["sessionKnown"] is False
    assert first["inject"].startswith('[memory active | signet recall "\u2026" | signet remember "\u2026"]\n\n')
    assert "## Agent Instructions\nBe brief.\n" in first["inject"]
    assert f"- User prefers vim keybindings [preference, editor] ({SHORT}) (Feb 21, 2026)" in first["inject"]
    assert first["memories"] == [
        {
            "id": ID,
            "content": "User prefers vim keybindings",
            "type": "preference",
            "importance": 0.9,
            "created_at": "2026-02-21T10:00:00.000Z",
        }
    ]
    assert api.bus.told == [TouchMemories((ID,), "injected")]
    asked = api.bus.only(FindSessionStart).body
    assert (asked.project, asked.now_ms, asked.session_key) == ("/p", NOW_MS, "s")
    second = post(api, START, sessionKey="s", project="/p")
    assert (second["memories"], second["identity"], second["sessionKnown"]) == ([], {"name": "Agent"}, True)
    assert second["inject"] == first["inject"].split("\n")[0]


def test_a_start_tells_its_stable_part_from_the_rest(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    first = post(api, START, sessionKey="s", project="/p")
    assert first["stableSystemPrompt"] == "## Agent Instructions\nBe brief."
    assert first["dynamicContext"] == first["inject"].replace(first["stableSystemPrompt"] + "\n\n", "")
    assert post(api, START, sessionKey="other")["contextHash"] == first["contextHash"]
    assert "notifications" not in first
    reminder = post(api, START, sessionKey="s", project="/p")
    assert reminder["dynamicContext"] == reminder["inject"]
    prompt = post(api, PROMPT, sessionKey="s-2", userPrompt="which editor")
    assert prompt["dynamicContext"] == prompt["inject"] != ""
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    assert post(api, START, sessionKey="third")["contextHash"] != first["contextHash"]


def test_a_start_names_the_sessions_of_the_project_that_are_going_on(api: MemoryApi) -> None:
    post(api, START, sessionKey="peer", project="/p")
    post(api, START, sessionKey="off", project="/p")
    post(api, START, sessionKey="elsewhere", project="/q")
    post(api, START, sessionKey="other-agent", project="/p", agentId="ben")
    post(api, START, sessionKey="ended", project="/p")
    api.state.sessions.end("ended", None)
    api.request("POST", "/api/sessions/off/bypass", {"enabled": True})
    api.clock.now_ms += 5 * 60_000
    inject = post(api, START, sessionKey="s", project="/p")["inject"]
    assert "## Active Peer Sessions\n- codex, session peer, active 5m ago\n\n" in inject
    assert "Peer" not in post(api, START, sessionKey="alone", project="/r")["inject"]
    api.clock.now_ms += 5 * 60_000 + 1
    assert "session peer" not in post(api, START, sessionKey="later", project="/p")["inject"]


def test_a_start_says_what_is_wrong_with_memory(api: MemoryApi) -> None:
    api.bus.tree = TreeChanged(
        [msgspec.structs.replace(each, state="restarting") if each.role == "writer" else each for each in EVERYBODY_UP]
    )
    began = post(api, START, sessionKey="s")
    line = "[signet: memory does not work now, because writer is being restarted]"
    assert f"\n\n## Signet Status\n{line}" in began["inject"]
    assert [item["message"] for item in began["notifications"]["items"]] == [line]
    assert api.request("POST", "/api/hooks/notifications", {"sessionKey": "s"}).json["inject"] == "", "it was told"


def test_a_harness_limits_the_text_and_nothing_to_say_is_empty(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("word " * 4000)
    assert len(post(api, START, maxInjectChars=24_000)["inject"]) > 9000
    short = post(api, START, maxInjectChars=1000)["inject"]
    assert len(short) <= 1000
    assert "## From Memory: Preferences and Decisions" in short
    (tmp_path / "AGENTS.md").unlink()
    api.bus.script[FindSessionStart] = SessionStartFound([], [])
    assert post(api, START)["inject"] == ""


def test_a_new_epoch_starts_in_full_again(api: MemoryApi) -> None:
    full = post(api, START, sessionKey="s")["inject"]
    assert post(api, START, sessionKey="s", source="resume")["inject"] != full
    assert post(api, START, sessionKey="s", source="compact")["inject"] == full
    assert post(api, AFTER, sessionKey="s")["contextEpoch"] == 1, "the start has begun the epoch of this compaction"
    assert post(api, AFTER, sessionKey="s")["contextEpoch"] == 2
    assert post(api, START, sessionKey="s", source="compact")["inject"] == full
    assert post(api, AFTER, sessionKey="s")["contextEpoch"] == 3, (
        "the start after a compaction began no epoch of its own"
    )


def constrained(*texts: str) -> SessionStartFound:
    """Return what a start finds if these are all constraints."""
    found_ = [memory(id=f"{ID[:-1]}{at}", content=text, type="constraint") for at, text in enumerate(texts)]
    return SessionStartFound(found_, [], {each.id: (at, 1) for at, each in enumerate(found_)})


def test_a_resume_tells_the_constraints_that_the_start_did_not_know_within_its_limits(api: MemoryApi) -> None:
    known = ("Never push to main", "Never deploy on Fridays")
    api.bus.script[FindSessionStart] = constrained(*known)
    post(api, START, sessionKey="s")
    banner = post(api, START, sessionKey="s", source="resume")["inject"]
    assert "Active Constraints" not in banner
    long = "Never call the billing API " + "from a test of the harbour " * 30
    api.bus.script[FindSessionStart] = constrained(*known, "Never eat the stock", long)
    api.bus.script[FindSessionStart], found_ = Unavailable("away"), api.bus.script[FindSessionStart]
    assert post(api, START, sessionKey="s", source="resume")["inject"] == banner, "no searcher answers"
    api.bus.script[FindSessionStart] = found_
    key = {"idempotency-key": "k"}
    told, again = (post(api, START, key, sessionKey="s", source="resume", maxInjectChars=900)["inject"] for _ in "ab")
    assert "Never eat the stock" in told
    assert "Never call the billing API" in told
    assert all(text not in told for text in known)
    assert len(told) <= 900
    assert "Never eat the stock" in again
    assert all(text not in again for text in known), "a retry is no new start"
    assert post(api, START, sessionKey="s", source="resume")["inject"] == banner, "also what was cut is told once"


def test_a_start_after_a_compaction_begins_an_epoch_for_a_session_that_had_prompts_only(api: MemoryApi) -> None:
    assert post(api, PROMPT, sessionKey="s")["inject"] != ""
    assert post(api, PROMPT, sessionKey="s")["inject"] == ""
    assert post(api, START, sessionKey="s", source="compact")["memories"] != []
    recalled = api.request("POST", "/api/memory/recall", {"query": "editor", "sessionKey": "s"}).json
    assert recalled["meta"]["dedupe"]["contextEpoch"] == 1
    assert (recalled["results"], recalled["meta"]["dedupe"]["enabled"]) == ([], True)


def test_a_prompt_gets_the_relevant_memories_of_its_project_and_of_none(api: MemoryApi) -> None:
    body = post(api, PROMPT, project="/p", sessionKey="s")
    assert body["inject"] == (
        f"[signet:recall | 1 from memory]\n- User prefers vim keybindings [preference, editor] ({SHORT}) (Feb 21, 2026)"
    )
    assert (body["memoryCount"], body["engine"], body["sessionKnown"]) == (1, "hybrid", False)
    assert body["queryTerms"] == ["editor", "user", "prefer"]
    asked = api.bus.only(Recall).body
    assert asked.query == "which editor does the user prefer?"
    assert asked.filters == Filters(project="/p", or_no_project=True, importance_min=0.3)
    assert asked.min_relevance == pytest.approx(0.4), "what is nearly as relevant as the best"
    assert api.bus.told == [TouchMemories((ID,), "injected")]


def rated(*, accepted: int, rejected: int) -> Answered:
    return Answered(msgspec.json.encode(FeedbackReply(recorded=accepted, accepted=accepted, rejected=rejected)))


def test_feedback_that_comes_with_a_prompt_is_recorded(api: MemoryApi) -> None:
    api.bus.script |= {ResolveIds: IdsResolved([[ID]]), message_of(FEEDBACK): rated(accepted=1, rejected=0)}
    body = post(api, PROMPT, sessionKey="session:s", memory_feedback={ID[:18]: 0.5, "odd": "much"})
    assert [warning.split(":")[0] for warning in body["warnings"]] == ["memory_feedback"], "the invalid entry"
    assert body["memoryCount"] == 1
    asked = api.bus.only(message_of(FEEDBACK)).body
    assert (asked.caller.agent_id, asked.request.session_key, asked.request.ratings) == ("default", "s", {ID: 0.5})
    api.bus.script[message_of(FEEDBACK)] = rated(accepted=0, rejected=1)
    rejected = post(api, PROMPT, userMessage="ok", sessionKey="s", memory_feedback={ID: 1})
    assert rejected["warnings"] == [f"memory_feedback: 1 not counted; {ACCEPTANCE_RULE}"]


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"memory_feedback": {ID: 1}}, "memory_feedback needs a sessionKey; it is ignored"),
        ({"memory_feedback": "useful", "sessionKey": "s"}, "memory_feedback must be an object"),
        ({"memory_feedback": {ID: 1}, "sessionKey": "s"}, "memory_feedback is not known to be stored: away"),
    ],
)
def test_a_prompt_is_answered_whatever_becomes_of_its_feedback(
    api: MemoryApi, fields: dict[str, Any], warning: str
) -> None:
    api.bus.script[message_of(FEEDBACK)] = Unavailable("away")
    body = post(api, PROMPT, **fields)
    assert (body["memoryCount"], "skipped" in body) == (1, False)
    assert [one[: len(warning)] for one in body["warnings"]] == [warning]


def test_a_memory_is_offered_once_in_an_epoch_by_all_ways_together(api: MemoryApi) -> None:
    assert post(api, START, sessionKey="s")["memories"]
    assert post(api, PROMPT, sessionKey="s")["inject"] == ""
    assert post(api, RECALL, sessionKey="s")["results"] == []
    recalled = api.request("POST", "/api/memory/recall", {"query": "editor", "sessionKey": "session:s"})
    assert recalled.json["results"] == []
    assert post(api, PROMPT, sessionKey="other")["inject"] != ""
    assert post(api, AFTER, sessionKey="s")["success"] is True
    assert post(api, PROMPT, sessionKey="s")["inject"] != ""


@pytest.mark.parametrize(
    ("path", "kind"), [(START, FindSessionStart), (PROMPT, Recall), (RECALL, Recall), ("/api/memory/recall", Recall)]
)
def test_memories_of_an_answer_that_was_not_sent_are_returned_again(api: MemoryApi, path: str, kind: type) -> None:
    body = {"harness": "codex", "sessionKey": "s", "userPrompt": "which editor?", "query": "editor"}
    answer = api.bus.script[kind]

    def leave(query: Any) -> Any:
        api.is_disconnected = True
        return answer(query) if callable(answer) else answer

    api.bus.script[kind] = leave
    api.request("POST", path, body)
    api.is_disconnected, api.bus.script[kind] = False, answer
    returned = api.request("POST", path, body).json
    assert ID in str(returned) or SHORT in str(returned)
    assert "vim" not in str(api.request("POST", path, body).json), "that response was sent"


def test_a_retry_of_a_start_without_memories_gets_the_same_text(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    api.bus.script[FindSessionStart] = SessionStartFound([], [])
    first, again = (post(api, START, {"idempotency-key": "k"}, sessionKey="s")["inject"] for _ in range(2))
    assert "Be brief." in first
    assert again == first
    assert post(api, START, {"idempotency-key": "other"}, sessionKey="s")["inject"] != first


def test_a_prompt_without_a_project_gets_nothing_that_belongs_to_one(api: MemoryApi) -> None:
    post(api, PROMPT)
    assert api.bus.only(Recall).body.filters == Filters(no_project=True, importance_min=0.3)


def test_a_prompt_without_a_subject_asks_no_searcher(api: MemoryApi) -> None:
    assert post(api, PROMPT, userMessage="ok") == {"inject": "", "memoryCount": 0, "queryTerms": []}
    assert api.bus.asked == []


@pytest.mark.parametrize("name", ["userMessage", "user_message", "userPrompt", "prompt"])
def test_a_prompt_has_several_names(api: MemoryApi, name: str) -> None:
    answer = api.request("POST", PROMPT, {"harness": "x", name: "which editor?"})
    assert answer.json["memoryCount"] == 1


def test_prompts_can_be_switched_off_and_configured(tmp_path: Path) -> None:
    off = MemoryApi(
        tmp_path, config=Config(hooks=HooksConfig(user_prompt_submit=UserPromptSubmitConfig(enabled=False)))
    )
    assert post(off, PROMPT) == {"inject": "", "memoryCount": 0, "engine": "disabled"}
    settings = UserPromptSubmitConfig(recall_limit=3, max_inject_chars=130, min_score=0.7)
    api = MemoryApi(tmp_path, config=Config(hooks=HooksConfig(user_prompt_submit=settings)))
    api.bus.script[Recall] = found(
        *(row(id=f"{number}{ID[1:]}", seq=number, content="x" * 60, relevance=0.9) for number in range(3))
    )
    body = post(api, PROMPT)
    asked = api.bus.only(Recall).body
    assert asked.min_relevance == pytest.approx(0.56), "what is nearly as relevant as the best"
    assert body["memoryCount"] == 1


@pytest.mark.parametrize(
    ("relevances", "count"), [((0.49, 0.48), 0), ((0.5, 0.41), 2), ((0.56, 0.46, 0.44), 2), ((0.9, 0.5, 0.49), 2)]
)
def test_what_is_nearly_as_relevant_as_the_best_memory_is_given_with_it(
    api: MemoryApi, relevances: tuple[float, ...], count: int
) -> None:
    rows = (
        row(id=f"{number}{ID[1:]}", seq=number, content=f"{number}", relevance=relevance)
        for number, relevance in enumerate(relevances)
    )
    api.bus.script[Recall] = found(*rows)
    assert post(api, PROMPT)["memoryCount"] == count


def test_prompts_that_wait_for_their_session_keep_no_other_session_waiting(api: MemoryApi) -> None:
    async def ask(key: str) -> Any:
        body = {**BODIES[PROMPT], "sessionKey": key}
        return (await api.requested("POST", PROMPT, json.dumps(body).encode(), {})).json

    async def scenario() -> None:
        context = await api.state.ledger.context("slow", "default", trace_id="t")
        await context.lock.acquire()
        waiting = [asyncio.create_task(ask("slow")) for _ in range(MAX_PROMPTS)]
        await asyncio.sleep(0.1)
        other = await ask("other")
        context.lock.release()
        await asyncio.gather(*waiting)
        assert other["memoryCount"] == 1

    asyncio.run(scenario())


def test_what_a_failed_hook_had_found_counts_as_not_received(api: MemoryApi) -> None:
    api.bus.script[Recall] = lambda query: found(
        *(() if (7, 1) in query.received else (row(id=ID, seq=7, session_id="former"),))
    )
    api.bus.script[ExpandSessions] = RuntimeError("a fault")
    assert post(api, RECALL, sessionKey="s", expand=True)["reason"] == "internal"
    assert [result["id"] for result in post(api, RECALL, sessionKey="s")["results"]] == [ID]
    assert post(api, RECALL, sessionKey="s")["results"] == []


def test_only_what_the_text_shows_counts_as_received(tmp_path: Path) -> None:
    settings = UserPromptSubmitConfig(max_inject_chars=150)
    api = MemoryApi(tmp_path, config=Config(hooks=HooksConfig(user_prompt_submit=settings)))
    api.bus.script |= {
        GetSession: SessionFound(),
        Recall: found(
            *(row(id=f"{number}{ID[1:]}", seq=number, content="x" * 60, relevance=0.9) for number in range(3))
        ),
    }
    shown = [post(api, PROMPT, sessionKey="s")["inject"] for _ in range(4)]
    assert [[f"(id {number}" in text for number in range(3)].index(True) for text in shown[:3]] == [0, 1, 2]
    assert shown[3] == ""


def test_more_than_eight_prompts_at_once_get_nothing(api: MemoryApi) -> None:
    release = asyncio.Event()
    answers = api.bus.ask_searcher

    async def held(request: Any, **more: Any) -> Any:
        if isinstance(request, Recall):
            await release.wait()
        return await answers(request, **more)

    async def all_at_once() -> list[Any]:
        api.bus.ask_searcher = held  # type: ignore[method-assign]
        raw = b'{"harness": "x", "userMessage": "which editor?"}'
        tasks = [asyncio.ensure_future(api.requested("POST", PROMPT, raw, {})) for _ in range(9)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        release.set()
        await asyncio.wait(tasks)
        return [task.result().json for task in (*done, *(set(tasks) - done))]

    first, *others = asyncio.run(all_at_once())
    assert (first["skipped"], first["reason"], first["inject"]) == (True, "busy", "")
    assert all(body["memoryCount"] == 1 for body in others)


def test_a_hook_remembers_like_the_api_and_names_the_harness_and_the_session(api: MemoryApi) -> None:
    body = post(api, REMEMBER, content="critical: [Ops]: Deploy on Mondays", sessionKey="s", idempotencyKey="k")
    assert (body["saved"], body["id"], body["deduped"], body["tags"]) == (True, ID, False, "ops")
    sent = api.bus.only(Remember).body
    assert (sent.memory.who, sent.memory.idempotency_key, sent.memory.pinned) == ("codex", "k", True)
    assert sent.principal.session_id == "s"


def test_a_hook_does_not_remember_while_memories_are_frozen(tmp_path: Path) -> None:
    frozen = MemoryConfig(pipeline_v2=PipelineV2Config(mutations_frozen=True))
    api = MemoryApi(tmp_path, config=Config(memory=frozen))
    body = post(api, REMEMBER)
    assert (body["saved"], body["skipped"], body["reason"]) == (False, True, "mutations_frozen")


def test_a_hook_recalls_like_the_api(api: MemoryApi) -> None:
    body = post(api, RECALL, project="/p", limit=3)
    assert body["results"] == body["memories"]
    assert (body["count"], body["query"], body["meta"]["noHits"]) == (1, "editor", False)
    assert api.bus.only(Recall).body.filters.project == "/p"
    api.bus.script[Recall] = found()
    assert post(api, RECALL)["message"] == "No matching memories found."


def test_before_a_compaction_the_model_is_told_what_to_store(api: MemoryApi) -> None:
    body = post(api, BEFORE)
    assert body["summaryPrompt"].startswith(
        "Pre-compaction memory flush. Store durable memories now.\n\n<guidelines>\n"
    )
    assert body["instructions"] == body["guidelines"]
    assert "- User prefers vim keybindings" in body["guidelines"]


def test_a_summary_is_stored_without_prefixes_and_without_what_memory_injected(api: MemoryApi) -> None:
    block = f'[signet:recall | query="x" | results=1 | engine=hybrid]\n- old ({SHORT}) (Feb 21, 2026)\n'
    summary = f"critical: We chose vim.\n\n{block}"
    body = post(api, AFTER, summary=summary, sessionKey="s", project="/p")
    assert (body["success"], body["memoryId"], body["contextEpoch"]) == (True, ID, 1)
    new = api.bus.only(Remember).body.memory
    assert new.content == "critical: We chose vim."
    assert (new.type, new.importance, new.who, new.pinned) == ("session_summary", 0.8, "system", False)
    assert (new.tags, new.project, new.visibility) == (("session", "summary", "codex"), "/p", "private")


def test_memories_that_a_compaction_names_count_as_shown_to_the_model(api: MemoryApi) -> None:
    assert "- User prefers vim keybindings" in post(api, BEFORE, sessionKey="s")["guidelines"]
    assert TouchMemories((ID,), "injected") in api.bus.told


REPEATED = {"content": "The user prefers vim keybindings", "project": "/p", "sessionKey": "s"}


def with_candidate(api: MemoryApi, **fields: Any) -> None:
    held = memory(id=ID, content="User prefers vim keybindings", **fields)
    api.bus.script |= {
        FindCandidates: CandidatesFound([Candidate(ID, 1, held.type, held.content)]),
        GetMemory: MemoryFound(held),
    }


def test_what_a_memory_says_already_is_not_stored_again(api: MemoryApi) -> None:
    with_candidate(api)
    body = post(api, REMEMBER, **REPEATED)
    assert (body["id"], body["deduped"], body["saved"]) == (ID, True, True)
    assert body["content"] == "User prefers vim keybindings"
    asked = api.bus.only(FindCandidates).body
    assert (asked.text, asked.agent_id, asked.visibility, asked.project) == (
        "the user prefers vim keybindings",
        "default",
        "global",
        "/p",
    )
    assert api.bus.only(GetMemory).body.read == ReadScope("default")
    assert not any(isinstance(sent.body, Remember) for sent in api.bus.asked)


@pytest.mark.parametrize("content", ["The user prefers emacs keybindings", "The user prefers vim 9 keybindings"])
def test_a_text_that_may_correct_a_memory_is_stored(api: MemoryApi, content: str) -> None:
    with_candidate(api)
    body = post(api, REMEMBER, **{**REPEATED, "content": content})
    assert (body["content"], body["deduped"]) == (content, False)


def test_a_retry_gets_the_writers_first_reply(api: MemoryApi) -> None:
    with_candidate(api, idempotency_key="k")
    assert post(api, REMEMBER, **REPEATED, idempotencyKey="k")["deduped"] is False
    assert post(api, REMEMBER, {"idempotency-key": "other"}, **REPEATED)["deduped"] is False
    assert post(api, REMEMBER, **REPEATED, idempotencyKey="other")["deduped"] is True


def test_a_memory_is_stored_if_it_cannot_be_found_out_whether_it_is_known(api: MemoryApi) -> None:
    with_candidate(api)
    api.bus.script[FindCandidates] = Unavailable("away")
    assert post(api, REMEMBER, **REPEATED)["deduped"] is False


def test_a_summary_is_not_stored_while_a_person_confirms_what_is_stored(tmp_path: Path, api: MemoryApi) -> None:
    review = MemoryApi(tmp_path, config=Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(confirm="review"))))
    review.bus.script |= api.bus.script
    post(review, START, sessionKey="s")
    body = post(review, AFTER, sessionKey="s")
    assert (body["success"], body["skipped"], body["reason"]) == (False, True, "review")
    assert not any(isinstance(sent.body, Remember) for sent in review.bus.asked)
    assert post(review, PROMPT, sessionKey="s")["inject"] != "", "a new epoch has begun all the same"
    assert post(review, REMEMBER, sessionKey="s")["saved"] is True, "an agent that stores something has decided itself"


def test_a_summary_that_arrives_late_is_stored_and_begins_no_epoch(api: MemoryApi) -> None:
    late = {"x-signet-late": "1"}
    post(api, START, sessionKey="s")
    body = post(api, AFTER, late, sessionKey="s", idempotencyKey="hook-1")
    assert (body["success"], body["memoryId"], body["contextEpoch"]) == (True, ID, 0)
    assert api.bus.only(Remember).body.memory.idempotency_key == "hook-1"
    assert post(api, PROMPT, sessionKey="s")["inject"] == "", "the session has the memory"
    assert post(api, START, sessionKey="s", source="compact")["memories"]
    post(api, AFTER, late, sessionKey="s")
    assert post(api, AFTER, sessionKey="s")["contextEpoch"] == 1, "the start has begun the epoch of this compaction"


def test_a_new_epoch_begins_even_if_the_summary_cannot_be_stored(api: MemoryApi) -> None:
    post(api, START, sessionKey="s")
    api.bus.script[Remember] = Unavailable("away")
    assert post(api, AFTER, sessionKey="s")["success"] is False
    assert post(api, PROMPT, sessionKey="s")["inject"] != ""


def test_the_summary_of_an_erased_session_is_not_stored(api: MemoryApi) -> None:
    api.bus.script[StoreTurns] = TranscriptStored(added=0, forgotten=True)
    body = post(api, AFTER, sessionKey="s", summary="The user has quuxitis.")
    assert (body["success"], body["skipped"], body["reason"]) == (False, True, "forgotten")
    assert not any(isinstance(sent.body, Remember | RememberChunks) for sent in api.bus.asked)
    assert post(api, AFTER, summary="Of no session.")["success"] is True


def test_a_summary_is_kept_for_later_while_it_is_not_known_whether_its_session_was_erased(api: MemoryApi) -> None:
    api.bus.script[StoreTurns] = Unavailable()
    assert post(api, AFTER, sessionKey="s")["reason"] == "unavailable"


def test_a_compaction_of_which_no_end_is_reported_begins_the_epoch_before_it(api: MemoryApi) -> None:
    post(api, START, sessionKey="s")
    assert post(api, PROMPT, sessionKey="s")["inject"] == ""
    post(api, BEFORE, sessionKey="s")
    assert post(api, PROMPT, sessionKey="s")["inject"] == "", "its end will be reported"
    post(api, BEFORE, sessionKey="s", beginsEpoch=True)
    assert post(api, PROMPT, sessionKey="s")["inject"] != ""
    assert post(api, PROMPT, sessionKey="s")["inject"] == ""


def test_a_long_summary_is_stored_as_chunks(api: MemoryApi) -> None:
    api.bus.script[RememberChunks] = Unavailable("away")
    post(api, AFTER, summary="We moved the login form to the new router. " * 40)
    assert len(api.bus.only(RememberChunks).body.chunks) > 1
