"""``python -m tests.golden.make``: write a database of the current schema, which is kept permanently.

Run once for each migration, when ``fill`` writes rows of its new tables, and commit its files: ``schema-N.sqlite`` and
``schema-N.json``, the memories that every later release must find in it. An existing file is never overwritten; delete
those of a migration that you are still changing.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from signet_actors.config.schema import RosterEntry
from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.permissions import Role
from signet_actors.domain.transcripts.turns import Turn, stored_turns
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.features.aggregate_recall.api import AnswerSource, SaveAnswer
from signet_actors.features.analytics.api import EndpointUsage, MinuteFigures, StoreFigures, Totals
from signet_actors.features.audit.api import AuditEvent, RecordEvents
from signet_actors.features.auth_tokens.api import RevokeToken, StoredToken, StoreToken
from signet_actors.features.projection.api import Points, Projection, StoreProjection
from signet_actors.features.searches.api import ConsideredMemory, RecordSearches, Search
from signet_actors.features.session_memories.api import FEEDBACK, FeedbackRequest
from signet_actors.features.session_scores.api import SessionScore, StoreScore
from signet_actors.features.skills.api import RECORD, SkillInvocationRequest
from signet_actors.features.telemetry.api import StoreEvents, TelemetryEvent
from signet_actors.operations.pipeline import LatencyReport
from signet_actors.operations.structured import read_structured
from signet_actors.protocol.leases import FailJob
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.pipeline import ApproveProposal, RecordUsage, ReserveCalls, StoreHints
from signet_actors.protocol.session_summaries import RecordNote, StoreSummary
from signet_actors.protocol.sessions import OfferedMemory, RecordSessions, ReturnedMemory, SessionContext, SetBypass
from signet_actors.protocol.transcripts import CapturedTurn, ForgetTranscript, StoreTurns
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RememberChunks,
)
from signet_actors.store.sqlite.migrate import schema_version
from signet_actors.store.sqlite.online_backup import backup
from tests.support.pipeline_harness import PipelineHarness, add, change, configured, undo_run
from tests.support.store_room import recording

HERE = Path(__file__).parent
CONFIG = configured(allow_update_delete=True, hints=True)
COLUMNS = "id, content, type, tags, importance, pinned, agent_id, visibility, scope, is_deleted, version"

TOKENS_AT = "2026-01-01T00:00:00.000Z"


def fill(room: PipelineHarness) -> None:
    """Every kind of row that the schema can hold and this release can write."""
    rng = random.Random(11)
    people = Principal()
    for number in range(30):
        memory = room.remember(
            f"Golden memory number {number} says {rng.choice(('zebra', 'quartz', 'velvet'))} to whoever upgrades",
            vector=[rng.gauss(0, 1) for _ in range(8)] if number % 4 else None,
            tags=("golden", f"n{number % 5}"),
            pinned=number % 10 == 0,
            agent_id="cleo" if number % 6 == 0 else "default",
            visibility="private" if number % 6 == 0 else "global",
            scope="scope" if number % 9 == 0 else None,
            idempotency_key=f"key-{number}" if number % 7 == 0 else None,
        )
        room.clock.advance(60_000)
        if number % 5 == 1:
            patch = MemoryPatch(id=memory.id, reason="revised", content=f"Golden memory number {number}, revised")
            room.ask(ModifyMemory(patch=patch, principal=people))
        if number % 8 == 3:
            room.ask(ForgetMemory(id=memory.id, reason="outdated", principal=people))
        if number == 29:
            room.ask(ForgetMany(targets=(ForgetTarget(memory.id),), reason="for good", principal=people, hard=True))
    stated = {
        "entities": [{"source": "Signet", "relationship": "uses", "target": "ZeroMQ"}, {"name": "Ada"}],
        "aspects": [{"entity": "Signet", "aspect": "store", "attributes": ["one file", "no server"]}],
        "hints": ["where does Signet keep memories?"],
    }
    room.remember("Golden memory of the graph: Signet keeps one file", structured=read_structured(stated))
    row = StoredToken(id="0a1b2c", kind="token", name="Ada", role=Role.AGENT, agent_id="ada", created_at=TOKENS_AT)
    room.ask(StoreToken(row=msgspec.structs.replace(row, expires_at=TOKENS_AT)))
    room.ask(StoreToken(row=msgspec.structs.replace(row, id="0a1b2d", kind="api_key", secret_hash=b"0" * 32)))
    room.ask(RevokeToken(id="0a1b2d", kind="api_key"))
    room.remember("日本語の記憶 and a café, naïve as it is")
    for name, source in (("one", "golden.md"), ("other", None)):
        parts = tuple(f"Golden part {number}\n\tof the {name} long text." for number in range(3))
        whole = NewMemory("\n".join(parts), "fact", 0.5, source_type="file", source_id=source)
        stored = room.ask(RememberChunks(whole, parts, people))
    room.ask(ForgetMemory(id=stored.ids[1], reason="outdated", principal=people))
    room.sync_roster(RosterEntry("retired", "group", "golden"))
    room.remember("A golden memory of an agent that was removed", agent_id="retired")
    room.sync_roster()
    keep_transcripts(room)
    keep_checkpoints(room)
    answer_from_memories(room)
    carry_out(room)


def answer_from_memories(room: PipelineHarness) -> None:
    """An answer made from two memories, one of which it cites."""
    made_from = [room.remember(f"A golden memory that an answer is made from, {word}") for word in ("cited", "shown")]
    sources = tuple(AnswerSource(memory.id, 1, cited=number == 0) for number, memory in enumerate(made_from))
    answer = NewMemory("A golden answer", "fact", 0.5, tags=("aggregate", "recall"), idempotency_key="aggregate:golden")
    room.ask(SaveAnswer(memory=answer, sources=sources, read=ReadScope(), principal=Principal(), made_by={}))


def keep_transcripts(room: PipelineHarness) -> None:
    """Transcripts: of two agents, with a turn in several pieces, and a forgotten one."""
    long = "a line of a golden log\n" * 1500
    turns = [Turn("user", "Where is the golden ferry?", "2026-01-01T09:00:00.000Z"), Turn("assistant", long)]
    for agent, session in (("default", "golden"), ("cleo", "golden"), ("default", "forked"), ("default", "forgotten")):
        said = stored_turns(turns, str, ("question", "answer"))
        rows = [CapturedTurn(*row[:4], indexed_beside(row.text), *row[4:]) for row in said]
        room.ask(StoreTurns(session, agent, "codex", tuple(rows), harness="codex", project="golden"))
    room.ask(ForgetTranscript("forgotten", "default", Principal()))


def keep_checkpoints(room: PipelineHarness) -> None:
    """A checkpoint of a session that goes on, and one of a session that ended."""
    goes_on: dict[str, Any] = {"queries": ("golden ferry",), "project": "/golden"}
    room.ask(recording("golden", "golden-1", "periodic", "- Prompts: 10, 5 min", 10, **goes_on))
    ended: dict[str, Any] = {"agent": "cleo", "harness": "codex", "ended": True}
    room.ask(recording("golden", "golden-2", "session_end", "- Prompts: 1 in all, 0 min", 1, **ended))


def carry_out(room: PipelineHarness) -> None:
    """Jobs in every state, a run of each kind of outcome, one that was undone, reviews, hints and usage."""
    people = Principal()
    first, second, third, failing, dying, *_ = room.take_all(limit=8)
    room.report(first, add("Golden fact of the first"), add("Golden guess", confidence=0.2), mode="shadow")
    changed = room.remember("A golden memory that a run changes", vector=[1.0, 2.0])
    doubted = room.remember("A golden memory that a run doubts", vector=[2.0, 1.0])
    room.report(
        second,
        add("Golden fact of the second"),
        change("update", "A golden memory that a run has changed", (changed.id, 1)),
        change("delete", "A golden memory that no run doubts", (doubted.id, 1), contradiction=True),
        shown=((), (changed.id,), (doubted.id, changed.id)),
        entities=(EntityTriple("golden", "is", "kept", 0.9),),
        vectors=([3.0, 1.0], [1.0, 3.0], None),
        rejected_counts={"question": 2},
    )
    waiting = room.value("SELECT id FROM memory_proposals WHERE review_state = 'pending'")
    room.report(third, add("Golden fact of the third"), run_id="undone")
    room.ask(undo_run("undone", people))
    room.ask(ApproveProposal(waiting, people))
    room.ask(FailJob(failing.id, failing.lease_id, "the model said nothing", "EXTRACTION_PARSE_FAIL"))
    totals = Totals(since="2026-01-01", endpoints={"GET /golden": EndpointUsage(2, 1, 3.5)}, samples={"recall": [900]})
    figures = {name: LatencyReport(count=1, mean=0.9) for name in ("remember", "recall", "mutate")}
    minute = MinuteFigures(minute="2026-01-01T00:01:00.000Z", requests=2, errors=1, **figures)
    room.ask(StoreFigures(totals=totals, minute=minute))
    room.ask(StoreEvents(events=(TelemetryEvent("2026-01-01T00:01:00.000Z", "memories.recall", {"ms": 1.5}),)))
    for _ in range(3):
        room.ask(FailJob(dying.id, dying.lease_id, "the model said nothing"))
        room.clock.advance(31_000)
        again = [job for job in room.take_all() if job.id == dying.id]
        dying = again[0] if again else dying
    hinted = room.take("prospective_index")
    room.ask(StoreHints(hinted.id, hinted.lease_id, ("What is golden?", "何が金色ですか")))
    reserved = room.ask(ReserveCalls("scripted", calls=3, tokens=900, model="qwen3:4b"))
    room.ask(RecordUsage("scripted", "qwen3:4b", reserved.day, tokens_in=700, tokens_out=90, reserved_tokens=900))
    began = "2026-01-01T00:00:00.000Z"
    session = SessionContext("golden-session", "default", began, began, 1, "codex", "/golden", 1, "first")
    returned = ReturnedMemory("golden-session", "default", 1, changed.id, request_key="first")
    offered = OfferedMemory("golden-session", "default", changed.id, "session_start", 1, was_injected=True, hits=1)
    room.ask(RecordSessions((session,), (returned,), (offered,)))
    room.ask(SetBypass("golden-paused", "default", began, bypassed=True))
    (secret,) = stored_turns([Turn("user", "This golden secret was said while memory was off", "2027-01-01")], str)
    row = CapturedTurn(secret.basis, secret.number, secret.role, secret.text, None, secret.said_at)
    room.ask(StoreTurns("golden-paused", "default", "codex", (row,)))
    room.ask(SetBypass("golden-paused", "default", began, bypassed=False))
    said = [Turn(role, f"{number} " + "golden words " * 10) for number in range(6) for role in ("user", "assistant")]
    turns = tuple(
        CapturedTurn(row.basis, row.number, row.role, row.text) for row in stored_turns(said, clean=lambda text: text)
    )
    room.ask(StoreTurns("golden-summary", "default", "json", turns, harness="codex", project="/golden", ended=True))
    room.ask(StoreTurns("golden-open", "default", "json", turns, harness="codex", project="/golden", then="goes_on"))
    ended = room.take("summarize")
    room.ask(StoreSummary(ended.id, ended.lease_id, "Session summary: Golden\n\nGolden words were said."))
    scored = room.take("score_session")
    score = SessionScore(0.75, 0.5, 1, 0, "Golden reasons", {changed.id: 0.5})
    report = StoreScore(job_id=scored.id, lease_id=scored.lease_id, score=score, recalled=1, judged=(changed.id,))
    room.ask(report)
    room.ask(RecordNote(ended.id, ended.lease_id, "2026-01-01-golden.md", "0" * 64))
    rating = FeedbackRequest(session_key="golden-session", ratings={changed.id: 0.5})
    room.ask(message_of(FEEDBACK)(caller=Caller(principal=people), request=rating))
    use = SkillInvocationRequest(harness="codex", skill="golden-skill", success=False, duration_ms=7)
    room.ask(message_of(RECORD)(request=use))
    points = Points("pca", [1], [[1.5, -2.5]], [])
    room.ask(StoreProjection("default", 2, Projection(points, 1, 1)))
    event = AuditEvent(created_at=began, kind="change", actor="golden", outcome="done", detail={"operation": "golden"})
    room.ask(RecordEvents(events=(event, event)))
    considered = ConsideredMemory(room.value(f"SELECT seq FROM memories WHERE id = '{changed.id}'"), 1, 0.75, "given")
    asked = {"session_key": "golden-summary", "context_epoch": 1, "project": "/golden", "harness": "codex"}
    found = {"prompt": "what is golden?", "given": 1, "characters": 90, "duration_ms": 4.5, "answered": True}
    search = Search(
        id="golden-search",
        created_at=began,
        kind="prompt",
        agent_id="default",
        memories=(considered,),
        **asked,
        **found,
    )
    room.ask(RecordSearches(searches=(search,)))


def rows(connection: Any) -> list[list[Any]]:
    """The memories, as the JSON file keeps them."""
    return [list(row) for row in connection.execute(f"SELECT {COLUMNS} FROM memories ORDER BY seq")]


def main() -> int:
    """The exit code; 1 when the golden database of this schema is there already."""
    with tempfile.TemporaryDirectory() as directory:
        room = PipelineHarness(Path(directory), config=CONFIG)
        schema = schema_version(room.connection)
        target = HERE / f"schema-{schema}.sqlite"
        if target.exists():
            sys.stderr.write(f"{target} is there already and stays as it is\n")
            room.close()
            return 1
        fill(room)
        target.with_suffix(".json").write_text(json.dumps(rows(room.connection), ensure_ascii=False, indent=0) + "\n")
        backup(room.connection, target, room.clock)
        target.chmod(0o644)
        room.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
