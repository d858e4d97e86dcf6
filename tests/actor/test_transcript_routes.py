"""The routes of transcripts: what they read, what they ask writer and searchers, and when they answer 200 anyway."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.schema import Config, RedactionConfig, TranscriptsConfig
from signet_actors.errors import StorageFull, Unavailable
from signet_actors.gateway.routes import transcripts as routes
from signet_actors.protocol.sessions import GetSession, SessionFound
from signet_actors.protocol.transcripts import (
    CapturePosition,
    ForgetTranscript,
    FoundSession,
    GetTranscript,
    SearchSessions,
    SessionsFound,
    StoredTranscript,
    StoreTurns,
    TranscriptForgotten,
    TranscriptFound,
    TranscriptStored,
    TranscriptTurn,
)
from tests.support.memory_api import Answer, MemoryApi

END = "/api/hooks/session-end"
KEEP = "/api/hooks/session-checkpoint-extract"
TALK = "User: Where is the ferry?\nAssistant: At the pier"
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path, config=Config(transcripts=TranscriptsConfig(max_file_bytes=65_536)))
    made.bus.script[GetSession] = SessionFound()
    made.bus.script[StoreTurns] = lambda request: TranscriptStored(added=len(request.turns))
    return made


def end(api: MemoryApi, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    return api.request("POST", END, {"harness": "claude-code", **fields}, headers)


def stored(api: MemoryApi) -> StoreTurns:
    found: StoreTurns = api.bus.only(StoreTurns).body
    return found


def stores(api: MemoryApi) -> list[StoreTurns]:
    return [sent.body for sent in api.bus.asked if isinstance(sent.body, StoreTurns)]


def skipped(answer: Answer) -> str:
    assert answer.status == 200
    assert answer.json["memoriesSaved"] == 0
    assert answer.json["skipped"] is True
    reason: str = answer.json["reason"]
    return reason


def test_a_transcript_in_the_body_is_stored_and_answered(api: MemoryApi) -> None:
    answer = end(api, transcript=TALK, sessionKey="s-1", cwd="/home/ada/ferry", reason="logout")
    assert answer.status == 200
    assert answer.json == {
        "memoriesSaved": 0,
        "queued": False,
        "stored": True,
        "sessionKey": "s-1",
        "format": "dialogue",
        "turns": 2,
        "newTurns": 2,
    }
    command = stored(api)
    assert (command.session_key, command.agent_id, command.harness) == ("s-1", "default", "claude-code")
    assert command.project == "/home/ada/ferry"
    assert [(turn.role, turn.content) for turn in command.turns] == [
        ("user", "Where is the ferry?"),
        ("assistant", "At the pier"),
    ]


def test_a_file_in_the_workspace_is_read(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(TALK)
    assert end(api, transcriptPath=str(tmp_path / "log.txt"), sessionKey="s").json["stored"] is True


@pytest.mark.parametrize("path", ["/etc/passwd", "relative.jsonl", "/nonexistent/x.jsonl"])
def test_a_path_outside_the_roots_is_a_200_that_stores_nothing(api: MemoryApi, path: str) -> None:
    assert "transcriptPath" in skipped(end(api, transcriptPath=path, sessionKey="s"))
    assert [store.turns for store in stores(api)] == [()], "only the end is noted"
    assert api.state.counters.transcripts_skipped == 1


def test_a_file_that_is_too_long_is_a_200_that_says_so(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(b"x" * 65_537)
    reason = skipped(end(api, transcriptPath=str(tmp_path / "log.txt")))
    assert reason == "the transcript has 65537 bytes; at most 65536 are read (transcripts.maxFileBytes)"


def test_a_required_field_that_is_missing_is_a_400(api: MemoryApi) -> None:
    answer = api.request("POST", END, {"transcript": TALK})
    assert (answer.status, answer.json["error"]) == (400, "harness is required")


def test_an_invalid_field_counts_as_absent(api: MemoryApi) -> None:
    answer = end(api, transcript=TALK, sessionKey="s", capturedAt="yesterday", cwd=5)
    assert answer.json["stored"] is True
    assert len(answer.json["warnings"]) == 2
    assert stored(api).captured_at is None


def claim(api: MemoryApi, path: str) -> None:
    api.state.sessions.enter("s", path)


def test_a_path_that_did_not_claim_the_session_stores_nothing_and_does_not_release_it(api: MemoryApi) -> None:
    claim(api, "plugin")
    answer = end(api, transcript=TALK, sessionKey="s", runtimePath="legacy")
    assert skipped(answer) == "claimed"
    assert (answer.json["duplicateRuntimePath"], answer.json["claimedBy"]) == (True, "plugin")
    assert stores(api) == []
    session = api.state.sessions.find("s")
    assert session is not None
    assert session.path == "plugin"


def test_the_end_releases_the_claim_and_an_end_after_it_is_a_duplicate(api: MemoryApi) -> None:
    claim(api, "plugin")
    headers = {"x-signet-runtime-path": "plugin"}
    assert end(api, headers, transcript=TALK, sessionKey="session:s").json["stored"] is True
    assert api.state.sessions.find("s") is None
    answer = end(api, headers, transcript=TALK, sessionKey="s")
    assert skipped(answer) == "ended"
    assert (answer.json["duplicateSessionEnd"], answer.json["endedBy"]) == (True, "plugin")
    assert end(api, transcript=TALK, sessionKey="s").json["stored"] is True, "a caller without a path is accepted"


def test_too_many_turns_are_a_200_that_says_so(api: MemoryApi) -> None:
    reason = skipped(end(api, transcript="User: a\nAssistant: b\n" * 25_001, sessionKey="s"))
    assert reason == "the conversation has more than 50000 turns, so it is not stored"
    assert [store.turns for store in stores(api)] == [()], "only the end is noted"


def test_the_turns_are_hashed_in_a_thread(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed_in: list[str] = []
    name_of = routes._session_of

    def session_of(call: Any, found: Any) -> str:
        hashed_in.append(threading.current_thread().name)
        return name_of(call, found)

    monkeypatch.setattr(routes, "_session_of", session_of)
    assert end(api, transcript=TALK).json["stored"] is True
    assert [name.startswith("long-text") for name in hashed_in] == [True]


@pytest.mark.parametrize("path", ["plugin", None])
def test_a_capture_after_an_answer_of_the_agent_stores_and_ends_nothing(api: MemoryApi, path: str | None) -> None:
    claim(api, "plugin")
    headers = {"x-signet-runtime-path": path} if path else {}
    for _ in range(2):
        body = {"harness": "claude-code", "transcript": TALK, "sessionKey": "s"}
        kept = api.request("POST", "/api/hooks/session-checkpoint-extract", body, headers)
        assert kept.json["stored"] is True
    session = api.state.sessions.find("s")
    assert session is not None
    assert session.path == "plugin"


def test_a_session_whose_transcript_was_not_stored_has_not_ended(api: MemoryApi) -> None:
    claim(api, "plugin")
    api.bus.script[StoreTurns] = Unavailable()
    assert end(api, transcript=TALK, sessionKey="s", runtimePath="plugin").status == 503
    assert api.state.sessions.find("s") is not None


@pytest.mark.parametrize("path", [END, KEEP])
@pytest.mark.parametrize(("fields", "late", "epoch"), [({}, "", 1), ({"reason": "backfill"}, "", 0), ({}, "1", 0)])
def test_what_the_model_lost_begins_an_epoch_unless_the_session_is_past_or_the_report_late(
    api: MemoryApi, path: str, fields: dict[str, str], late: str, epoch: int
) -> None:
    said = {"id": "a", "timestamp": "2026-11-22T08:00:00.000Z", "type": "user", "content": [{"text": "Go"}]}
    lines = ({"sessionId": "s", "projectHash": "8f2b"}, said, {"$rewindTo": "gone"})
    body = {"harness": "gemini", "sessionKey": "s", "transcript": "\n".join(map(json.dumps, lines)), **fields}
    assert api.request("POST", path, body, {"x-signet-late": late}).json["stored"] is True
    context = api.state.ledger.loaded("s", "default")
    assert context is not None
    assert context.epoch == epoch


def test_a_bypassed_session_stores_nothing(api: MemoryApi) -> None:
    api.state.sessions.enter("s", None).session.bypassed = True
    answer = end(api, transcript=TALK, sessionKey="s")
    assert skipped(answer) == "bypassed"
    assert answer.json["bypassed"] is True
    assert [store.is_off for store in stores(api)] == [True], "only by what its copies are known"


@pytest.mark.parametrize("fields", [{}, {"transcript": "  "}, {"transcript": None, "transcriptPath": ""}])
def test_nothing_to_read_is_a_200_that_says_so(api: MemoryApi, fields: dict[str, Any]) -> None:
    assert "neither" in skipped(end(api, **fields))


def test_hooks_that_are_off_store_nothing(api: MemoryApi) -> None:
    assert skipped(end(api, {"x-signet-no-hooks": "1"}, transcript=TALK)) == "no_hooks"
    assert api.state.counters.transcripts_skipped == 0
    assert stores(api) == []


@pytest.mark.parametrize("path", [END, KEEP])
@pytest.mark.parametrize(
    ("transcript", "turns", "reason"),
    [
        ('{"type":"summary","summary":"x"}', 0, "no words of a user or an agent are found in the transcript"),
        ('{"role":"user","content":[{"type":"voice"}]}\nhalf', 0, "(format json, an end that is being written)"),
        ('{"role":"user","content":[]}\nbad\n{"role":"user","content":[]}\n', 0, "1 lines that cannot be read"),
        ("User: [memory active | /remember]\nAssistant: [memory active | /remember]", 2, "what memory had injected"),
    ],
)
def test_a_transcript_with_nothing_to_store_is_answered_and_logged_as_not_stored(
    api: MemoryApi, path: str, transcript: str, turns: int, reason: str
) -> None:
    answer = api.request("POST", path, {"harness": "cursor", "transcript": transcript, "sessionKey": "s"})
    assert (answer.status, answer.json["stored"], answer.json["turns"]) == (200, False, turns)
    assert reason in answer.json["reason"]
    assert "skipped" not in answer.json, "a retry of the hook would be useless"
    assert [store.turns for store in stores(api)] == ([()] if path == END else []), "only the end is noted"
    assert api.state.counters.transcripts_skipped == 1


def test_messages_may_be_sent_as_json(api: MemoryApi) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]
    assert end(api, transcript=messages, sessionKey="s").json["turns"] == 2
    assert end(api, transcript={"messages": messages}, sessionKey="s").json["format"] == "json"
    assert "neither" in skipped(end(api, transcript=7, sessionKey="s"))


def test_a_body_of_another_content_type_is_read(api: MemoryApi) -> None:
    answer = end(api, {"content-type": "text/plain"}, transcript=TALK, sessionKey="s")
    assert answer.json["stored"] is True


@pytest.mark.parametrize(
    ("fields", "session", "agent"),
    [
        ({"sessionKey": "session:s-1"}, "s-1", "default"),
        ({"sessionKey": "", "sessionId": "s-2"}, "s-2", "default"),
        ({"sessionKey": "agent:ann:main"}, "agent:ann:main", "ann"),
        ({"sessionKey": "s-3", "agentId": "bob"}, "s-3", "bob"),
        ({"sessionId": "agent:bob:x"}, "agent:bob:x", "default"),
        ({"sessionId": "agent:bob:x", "agentId": "ann"}, "agent:bob:x", "ann"),
        ({"sessionKey": "s-4", "agentId": "a/b"}, "s-4", "default"),
    ],
)
def test_the_session_and_its_agent(api: MemoryApi, fields: dict[str, str], session: str, agent: str) -> None:
    end(api, transcript=TALK, **fields)
    assert (stored(api).session_key, stored(api).agent_id) == (session, agent)


def test_the_session_is_the_one_that_the_transcript_names(api: MemoryApi) -> None:
    line = {"type": "user", "sessionId": "from-the-file", "message": {"role": "user", "content": "hi"}}
    assert end(api, transcript=json.dumps(line)).json["sessionKey"] == "from-the-file"


def test_a_transcript_is_not_stored_for_the_agent_that_it_names_itself(api: MemoryApi) -> None:
    line = {"type": "user", "sessionId": "agent:bob:x", "message": {"role": "user", "content": "hi"}}
    assert end(api, transcript=json.dumps(line)).json["sessionKey"] == "agent:bob:x"
    assert stored(api).agent_id == "default"
    assert {sent.body.agent_id for sent in api.bus.asked if isinstance(sent.body, GetSession)} == {"default"}


@pytest.mark.parametrize("where", ["header", "transcript", "sessionId"])
def test_a_bypass_holds_wherever_the_session_is_named(api: MemoryApi, where: str) -> None:
    api.bus.script[GetSession] = lambda query: SessionFound(bypassed=query.session_key == "off")
    line = {"type": "user", "sessionId": "off", "message": {"role": "user", "content": "hi"}}
    talk = json.dumps(line) if where == "transcript" else TALK
    headers = {"x-signet-session-key": "off"} if where == "header" else {}
    fields = {"sessionId": "off"} if where == "sessionId" else {}
    assert skipped(end(api, headers, transcript=talk, **fields)) == "bypassed"
    assert [store.is_off for store in stores(api)] == [True]


@pytest.mark.parametrize("failure", [Unavailable(), None])
def test_nothing_is_stored_while_it_is_not_known_whether_the_session_is_bypassed(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    api.bus.script[GetSession] = failure
    if failure is None:

        async def hang(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(api.bus, "ask_searcher", hang)
    assert end(api, transcript=TALK, sessionKey="s").status == 503
    line = {"type": "user", "sessionId": "in-the-file", "message": {"role": "user", "content": "hi"}}
    assert end(api, transcript=json.dumps(line)).status == 503
    assert stores(api) == []


def test_a_defect_loses_no_transcript_and_without_one_the_end_is_answered_as_every_hook(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(api.state.checkpoints, "end", fail)
    assert end(api, transcript=TALK, sessionKey="s").status == 500, "the client keeps it, and sends it again"
    assert skipped(end(api, sessionKey="s")) == "internal"


@pytest.mark.parametrize(("failure", "reason"), [(Unavailable(), "unavailable"), (None, "timeout")])
def test_an_end_without_a_transcript_is_answered_in_its_time(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, failure: Exception | None, reason: str
) -> None:
    async def end_checkpoint(*_: Any, **__: Any) -> Any:
        if failure is not None:
            raise failure
        await asyncio.Event().wait()

    monkeypatch.setattr(api.state.checkpoints, "end", end_checkpoint)
    monkeypatch.setattr(routes, "END_BUDGET_MS", 100)
    assert skipped(end(api, sessionKey="s")) == reason


def test_a_retry_without_a_session_has_the_same_name(api: MemoryApi) -> None:
    first, again = (end(api, transcript=TALK).json["sessionKey"] for _ in range(2))
    assert first == again
    assert end(api, transcript=f"{TALK}\nUser: more").json["sessionKey"] != first
    keyed = [end(api, transcript=talk, idempotencyKey="k").json["sessionKey"] for talk in (TALK, f"{TALK}\nUser: more")]
    assert keyed[0] == keyed[1] != first


def test_secrets_are_removed_before_the_writer_sees_them_also_if_memories_keep_theirs(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=False)))
    api.bus.script[GetSession] = SessionFound()
    api.bus.script[StoreTurns] = TranscriptStored(added=1)
    answer = end(api, transcript=f"User: my token is {KEY}\nAssistant: ok", sessionKey="s")
    assert KEY not in str(api.bus.asked)
    assert answer.json["redacted"] is True
    assert answer.json["redactions"] == ["github-token"]


@pytest.mark.parametrize("memories", [True, False])
def test_a_secret_in_a_field_is_removed_whatever_holds_for_memories(tmp_path: Path, memories: bool) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=memories)))
    api.bus.script |= {GetSession: SessionFound(), StoreTurns: TranscriptStored(added=2)}
    line = {"type": "user", "sessionId": f"s {KEY}", "message": {"role": "user", "content": "hi"}}
    for fields in ({"transcript": TALK, "sessionKey": KEY}, {"transcript": TALK, "sessionId": KEY}):
        end(api, cwd=f"/tmp/{KEY}", **fields)
    end(api, transcript=json.dumps(line), project=KEY)
    api.request("POST", END, {"harness": f"codex {KEY}", "transcript": TALK}, {"x-signet-session-key": KEY})
    assert len(stores(api)) == 4
    assert KEY not in str(api.bus.asked)


def test_an_unknown_format_is_stored_and_said(api: MemoryApi) -> None:
    answer = end(api, transcript="a note of a future program", sessionKey="s")
    assert answer.json.get("format") == "text", answer.json
    assert answer.json["warnings"] == ["the format of the transcript is not known; it is stored as text"]


def test_a_long_transcript_is_sent_in_parts_that_follow_each_other(api: MemoryApi) -> None:
    talk = "".join(json.dumps({"role": "user", "content": f"{n} " + "word " * 1000}) + "\n" for n in range(120))
    ends: list[CapturePosition] = []

    def store(request: StoreTurns) -> TranscriptStored:
        ends.append(CapturePosition(7, request.turns[-1].basis))
        return TranscriptStored(added=len(request.turns), position=ends[-1])

    api.bus.script[StoreTurns] = store
    answer = end(api, transcript=talk, sessionKey="s")
    parts = stores(api)
    assert len(parts) > 1
    assert answer.json["newTurns"] == 120
    assert [part.previous for part in parts] == [None, *ends[:-1]]


def test_a_forgotten_session_stores_nothing(api: MemoryApi) -> None:
    api.bus.script[StoreTurns] = TranscriptStored(added=0, forgotten=True)
    assert skipped(end(api, transcript=TALK, sessionKey="s")) == "forgotten"


@pytest.mark.parametrize(("failure", "status"), [(Unavailable(), 503), (StorageFull(), 507)])
def test_what_could_not_be_stored_is_not_answered_with_200(api: MemoryApi, failure: Exception, status: int) -> None:
    api.bus.script[StoreTurns] = failure
    assert end(api, transcript=TALK, sessionKey="s").status == status


def test_a_transcript_of_which_a_part_is_stored_asks_for_a_retry(api: MemoryApi) -> None:
    def first_only(request: StoreTurns) -> Any:
        position = CapturePosition(0, b"")
        return TranscriptStored(added=1, position=position) if request.previous is None else Unavailable()

    api.bus.script[StoreTurns] = first_only
    talk = "".join(json.dumps({"role": "user", "content": f"{n} " + "word " * 1000}) + "\n" for n in range(120))
    answer = end(api, transcript=talk, sessionKey="s")
    assert (answer.status, answer.json["code"]) == (504, "outcome_unknown")


# Reading, searching, forgetting

HEAD = StoredTranscript(
    "s", "default", "codex", None, "codex", "2026-11-20T09:00:00.000Z", "2026-11-20T10:00:00.000Z", 2
)
TURNS = [
    TranscriptTurn(1, "user", "Where is ", "2026-11-20T09:00:00.000Z", continues=False),
    TranscriptTurn(2, "user", "the ferry?", "2026-11-20T09:00:00.000Z", continues=True),
    TranscriptTurn(3, "assistant", "At the pier", None, continues=False),
]


def test_a_transcript_is_returned_as_text_and_as_turns(api: MemoryApi) -> None:
    api.bus.script[GetTranscript] = TranscriptFound(transcript=HEAD, turns=TURNS)
    text = api.request("GET", "/api/sessions/s/transcript").json
    assert (text["sessionKey"], text["agentId"]) == ("s", "default")
    assert text["content"] == "User: Where is the ferry?\n\nAssistant: At the pier"
    assert "turns" not in text
    assert "nextCursor" not in text
    turns = api.request("GET", "/api/sessions/s/transcript?view=turns").json["turns"]
    assert turns == [
        {"role": "user", "content": "Where is the ferry?", "at": "2026-11-20T09:00:00.000Z"},
        {"role": "assistant", "content": "At the pier", "at": None},
    ]


@pytest.mark.parametrize(("name", "limit"), [("MAX_REPLY_BYTES", 15), ("MAX_REPLY_ROWS", 2)])
def test_a_transcript_is_read_page_by_page_up_to_a_limit(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(routes, name, limit)

    def page(request: GetTranscript) -> TranscriptFound:
        turns = TURNS[request.after : request.after + 1]
        return TranscriptFound(HEAD, turns, None if request.after == 2 else request.after + 1)

    api.bus.script[GetTranscript] = page
    first = api.request("GET", "/api/sessions/s/transcript").json
    assert (first["content"], first["nextCursor"]) == ("User: Where is the ferry?", 2)
    rest = api.request("GET", "/api/sessions/s/transcript?after=2").json
    assert rest["content"] == "Assistant: At the pier"
    assert "nextCursor" not in rest


def test_a_transcript_that_is_not_there_is_a_404(api: MemoryApi) -> None:
    api.bus.script[GetTranscript] = TranscriptFound(transcript=None)
    answer = api.request("GET", "/api/sessions/s/transcript")
    assert (answer.status, answer.json["error"]) == (404, "Transcript not found")


def test_the_agent_of_a_session_key_reads_its_transcript(api: MemoryApi) -> None:
    api.bus.script[GetTranscript] = TranscriptFound(transcript=HEAD)
    api.request("GET", "/api/sessions/agent:ann:main/transcript")
    api.request("GET", "/api/sessions/agent:ann:main/transcript?agentId=bob")
    assert [sent.body.read.agent_id for sent in api.bus.asked] == ["ann", "bob"]


def test_a_search_has_the_documented_shape(api: MemoryApi) -> None:
    hit = FoundSession("s", "default", "codex", "/p", "2026-11-20T10:00:00.000Z", "user", None, "the ferry")
    api.bus.script[SearchSessions] = SessionsFound(sessions=[hit])
    body = {"query": "ferry", "currentSessionKey": "session:now", "project": "/p", "limit": 99}
    answer = api.request("POST", "/api/sessions/search", body)
    assert answer.json["query"] == "ferry"
    assert answer.json["count"] == 1
    wanted = {
        "sessionKey": "s",
        "project": "/p",
        "updatedAt": "2026-11-20T10:00:00.000Z",
        "excerpt": "the ferry",
        "rank": 1,
    }
    assert wanted.items() <= answer.json["hits"][0].items()
    query = api.bus.only(SearchSessions).body
    assert (query.limit, query.without, query.project) == (20, "now", "/p")
    assert api.request("POST", "/api/sessions/search", {}).status == 400


def test_forgetting_a_long_transcript_goes_on_after_the_request_has_ended(api: MemoryApi) -> None:
    """Else the transcript is not found any more, and most of its text is still stored."""
    steps = iter([*([TranscriptForgotten(1000, more=True)] * 5), TranscriptForgotten(7, more=False)])
    answered: Any = api.bus.ask_writer

    async def given_up() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slowly(request: Any, **more: Any) -> Any:
            begun.set()
            await asyncio.sleep(0)
            reply = await answered(request, **more)
            if not reply.more:
                ended.set()
            return reply

        api.bus.script[ForgetTranscript] = lambda _: next(steps)
        api.bus.ask_writer = slowly  # type: ignore[method-assign]
        request = asyncio.create_task(api.requested("DELETE", "/api/sessions/s/transcript", b"", {}))
        await begun.wait()
        request.cancel()
        await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(given_up())
    assert next(steps, None) is None


REMEMBERED = {"content": "the ferry sails", "sourceId": "s", "transcript": TALK}


@pytest.mark.parametrize(
    ("path", "body", "reads"),
    [
        (END, {"harness": "claude-code", "sessionKey": "s", "transcript": TALK}, "transcript_capture"),
        (END, {"harness": "claude-code", "sessionId": "s", "transcript": TALK}, "transcript_capture"),
        (KEEP, {"harness": "claude-code", "sessionKey": "s", "transcript": TALK}, "transcript_capture"),
        ("/api/memory/remember", REMEMBERED, "routes.remember"),
    ],
)
def test_a_transcript_that_is_forgotten_while_it_is_read_is_marked(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], reads: str
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    module = importlib.import_module(f"signet_actors.gateway.{reads}")
    read: Any = module.capture_for

    def held(*given: Any) -> Any:
        reading.set()
        assert go_on.wait(60)
        return read(*given)

    monkeypatch.setattr(module, "capture_for", held)
    api.bus.script[ForgetTranscript] = TranscriptForgotten(0, more=False)

    async def forgotten_meanwhile() -> None:
        sent = asyncio.create_task(api.requested("POST", path, json.dumps(body).encode(), {}))
        await asyncio.to_thread(reading.wait, 60)
        for session in ("s", "another"):
            await api.requested("DELETE", f"/api/sessions/{session}/transcript", b"", {})
        go_on.set()
        await sent
        await api.requested("DELETE", "/api/sessions/s/transcript", b"", {})

    asyncio.run(forgotten_meanwhile())
    asked = [sent.body for sent in api.bus.asked if isinstance(sent.body, ForgetTranscript)]
    assert [(one.session_key, one.is_captured) for one in asked] == [("s", True), ("another", False), ("s", False)]


def test_forgetting_goes_on_until_nothing_is_left(api: MemoryApi) -> None:
    steps = iter([TranscriptForgotten(1000, more=True), TranscriptForgotten(7, more=False)])
    api.bus.script[ForgetTranscript] = lambda _: next(steps)
    answer = api.request("DELETE", "/api/sessions/s/transcript")
    assert answer.json == {"sessionKey": "s", "turns": 1007, "success": True}
    api.bus.script[ForgetTranscript] = TranscriptForgotten(0, more=False, found=False)
    assert api.request("DELETE", "/api/sessions/s/transcript").status == 404
