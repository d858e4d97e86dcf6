from __future__ import annotations

from pathlib import Path
from typing import Any

from signet_actors.config.schema import RosterEntry
from signet_actors.protocol.leases import AdvanceHighWaterMark, ReapLeases
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.transcripts import ForgetTranscript
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, PurgeStep
from tests.golden.make import CONFIG, fill
from tests.support.pipeline_harness import PipelineHarness
from tests.support.store_room import StoreRoom, kept_sound, plan_of

DAY_MS = 86_400_000
LATER = "2026-03-01T00:00:00.000Z"
STEPS = ("graph_links", "embeddings", "tombstones", "pipeline_runs", "history", "completed_jobs", "dead_jobs")


KEPT = {
    "memory_changes": "tells searchers which rows to drop",
    "memory_history": "what happened to it, without its content",
    "memory_jobs": "jobs that have ended or are running, without texts; purged by age",
    "memory_proposals": "that it was proposed, without content and reason",
    "pipeline_runs": "that it was processed",
    "session_recalls": "that a session received the id; deleted with the session's rows",
    "session_summaries": "where the file of a summary is, until retention has removed the file",
}
"""Tables that still name an erased memory, and why."""
SUFFIXES = ("memory_id", "memory_seq")
KEPT_OF_SESSION = {
    "agent_feedback": "how an agent rated memories, without what was said; purged by age",
    "searches": "when it asked and how much it was given, without the words; purged by age",
    "session_contexts": "when it was active, and in which project; purged by age",
    "session_memories": "which memories it was offered; purged by age",
    "session_pauses": "when memory was off for it, so that what was said then is not stored later",
    "session_recalls": "which memories it received; purged by age",
    "session_summaries": "where the file of a summary is, until retention has removed the file",
    "session_transcripts": "its key, so that a later capture stores nothing",
}
"""Tables that still name a session whose transcript was erased, and why."""
SESSION_SUFFIXES = ("session_key", "transcript_seq")


def purge(room: StoreRoom, step: str, *, cutoff: str = LATER, limit: int = 500) -> int:
    return room.ask(PurgeStep(step=step, cutoff=cutoff, limit=limit)).count  # type: ignore[no-any-return]


def forgotten(room: StoreRoom, content: str, **fields: object) -> str:
    memory = room.remember(content, **fields)  # type: ignore[arg-type]
    room.ask(ForgetMemory(id=memory.id, reason="r", principal=Principal()))
    return memory.id


def mention(room: StoreRoom, memory_id: str, entity: str) -> None:
    room.connection.execute(
        "INSERT INTO entities (id, name, canonical_name, entity_type, mentions, created_at, updated_at)"
        " SELECT :entity, :entity, :entity, 'tool', 1 - m.is_deleted, '', '' FROM memories m WHERE m.id = :memory"
        " ON CONFLICT DO UPDATE SET mentions = mentions + excluded.mentions",
        {"entity": entity, "memory": memory_id},
    )
    room.connection.execute(
        "INSERT INTO memory_entity_mentions (memory_id, entity_id, created_at) VALUES (?, ?, '')", (memory_id, entity)
    )


def test_the_ordered_steps_remove_an_expired_tombstone_with_all_its_rows(room: StoreRoom) -> None:
    gone = forgotten(room, "the canary", vector=[1.0], tags=("t",))
    kept = room.remember("alive", vector=[0.0, 1.0])
    mention(room, gone, "bird")
    mention(room, gone, "shared")
    mention(room, kept.id, "shared")
    assert [purge(room, step) for step in STEPS[:3]] == [2, 1, 1]
    assert room.connection.execute("SELECT id FROM memories").fetchall() == [(kept.id,)]
    assert room.connection.execute("SELECT id, mentions FROM entities").fetchall() == [("shared", 1)]
    contents = room.connection.execute(
        "SELECT old_content, new_content FROM memory_history WHERE memory_id = ?", (gone,)
    ).fetchall()
    assert contents == [(None, None), (None, None)]


def test_a_tombstone_waits_for_its_links_and_vectors(room: StoreRoom) -> None:
    memory_id = forgotten(room, "the canary", vector=[1.0])
    mention(room, memory_id, "bird")
    assert purge(room, "tombstones") == 0
    purge(room, "graph_links")
    assert purge(room, "tombstones") == 0
    purge(room, "embeddings")
    assert purge(room, "tombstones") == 1


def test_a_tombstone_inside_its_window_stays(room: StoreRoom) -> None:
    forgotten(room, "recent", vector=[1.0])
    for step in STEPS[:3]:
        assert purge(room, step, cutoff="2025-12-31T00:00:00.000Z") == 0


def test_a_step_purges_at_most_its_limit_and_reports_more(room: StoreRoom) -> None:
    for index in range(5):
        forgotten(room, f"memory {index}")
    answer = room.ask(PurgeStep(step="tombstones", cutoff=LATER, limit=2))
    assert (answer.count, answer.more) == (2, True)
    assert purge(room, "tombstones", limit=10) == 3


def test_content_forgotten_and_remembered_again_survives_the_purge_with_its_vector(room: StoreRoom) -> None:
    forgotten(room, "twice told", vector=[1.0])
    again = room.remember("twice told", vector=[1.0])
    for step in STEPS[:3]:
        purge(room, step)
    assert [row.id for row in room.recall("twice told", vector=[1.0]).rows] == [again.id]
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 1


def test_old_history_and_ended_jobs_are_purged_and_pending_jobs_stay(room: StoreRoom) -> None:
    for content, status, column in (
        ("a", "completed", "completed_at"),
        ("b", "dead", "failed_at"),
        ("c", "pending", ""),
    ):
        memory = room.remember(content, vector=[1.0])
        if column:
            room.connection.execute(
                f"UPDATE memory_jobs SET status = ?, {column} = '2026-01-02T00:00:00.000Z' WHERE memory_id = ?",
                (status, memory.id),
            )
    assert [purge(room, step) for step in ("completed_jobs", "dead_jobs")] == [1, 1]
    assert room.connection.execute("SELECT status FROM memory_jobs").fetchall() == [("pending",)]
    # History of live memories is purged too if it is older than its window; put the event back for the invariants.
    rows = room.connection.execute("SELECT * FROM memory_history").fetchall()
    assert purge(room, "history", cutoff="2026-01-01T00:00:00.001Z") == 3
    marks = ", ".join("?" * len(rows[0]))
    for row in rows:
        room.connection.execute(f"INSERT INTO memory_history VALUES ({marks})", row)


def test_a_job_with_an_expired_lease_is_requeued_or_dead(room: StoreRoom) -> None:
    first, last, held = (room.remember(text, vector=[1.0]) for text in ("first", "last", "held"))
    for memory, attempts, boot, expires_ns in (
        (first, 1, "boot", room.clock.mono_ns - 1),
        (last, 3, "boot", room.clock.mono_ns - 1),
        (held, 1, "boot", room.clock.mono_ns + 1),
    ):
        room.connection.execute(
            "UPDATE memory_jobs SET status = 'leased', lease_id = 'l', attempts = ?, lease_boot = ?,"
            " lease_expires_ns = ? WHERE memory_id = ?",
            (attempts, boot, expires_ns, memory.id),
        )
    answer = room.ask(ReapLeases())
    assert (answer.requeued, answer.dead) == (1, 1)
    states = dict(room.connection.execute("SELECT memory_id, status FROM memory_jobs").fetchall())  # type: ignore[arg-type]
    assert states == {first.id: "pending", last.id: "dead", held.id: "leased"}
    assert "last attempt" in room.value("SELECT error FROM memory_jobs WHERE status = 'dead'")


def test_a_lease_of_an_earlier_daemon_run_counts_as_expired(room: StoreRoom) -> None:
    room.remember("orphaned", vector=[1.0])
    room.connection.execute(
        "UPDATE memory_jobs SET status = 'leased', lease_id = 'l', attempts = 1, lease_boot = 'before',"
        " lease_expires_ns = ?",
        (1 << 62,),
    )
    assert room.ask(ReapLeases()).requeued == 1


def test_advancing_the_high_water_mark_returns_the_previous_one(room: StoreRoom) -> None:
    first = room.ask(AdvanceHighWaterMark(now="2026-01-01T00:00:00.000Z"))
    second = room.ask(AdvanceHighWaterMark(now="2027-01-01T00:00:00.000Z", suspected_jump_since="x", accept=False))
    third = room.ask(AdvanceHighWaterMark(now="2026-01-02T00:00:00.000Z"))
    assert (first.previous, first.suspected_jump_since) == (None, None)
    assert (second.previous, second.suspected_jump_since) == ("2026-01-01T00:00:00.000Z", None)
    assert (third.previous, third.suspected_jump_since) == ("2026-01-01T00:00:00.000Z", "x")


def test_due_rows_are_found_by_index_without_scanning(room: StoreRoom) -> None:
    mention(room, forgotten(room, "the canary", vector=[1.0]), "bird")
    asked: list[str] = []

    def note(_cursor: Any, sql: str, _bindings: Any) -> bool:
        asked.append(sql)
        return True

    room.connection.exec_trace = note
    for step in (*STEPS, "provider_usage", "sessions", "session_memories"):
        purge(room, step)
    room.group.housekeep()
    room.connection.exec_trace = None
    looked = [sql for sql in asked if sql.startswith(("SELECT", "DELETE", "UPDATE"))]
    tombstones = [sql for sql in looked if "m.deleted_at < :cutoff" in sql]
    assert (len(tombstones), len(looked) > 20) == (3, True)
    for sql in looked:
        plan = plan_of(room.connection, sql)
        assert not [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step], (sql, plan)
        assert sql not in tombstones or plan[0].startswith("SEARCH m USING INDEX idx_memories_deleted_at"), plan


def tables_about(room: StoreRoom, suffixes: tuple[str, ...]) -> dict[str, list[str]]:
    """Each table with columns whose names end so, and these columns; `fill` has written rows of every table."""
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    columns = {
        table: [row[1] for row in room.connection.execute(f"PRAGMA table_info({table})")]
        for (table,) in room.connection.execute(sql).fetchall()
    }
    about = {table: [name for name in names if name.endswith(suffixes)] for table, names in columns.items()}
    about = {table: names for table, names in about.items() if names}
    empty = [table for table in about if not room.value(f"SELECT count(*) FROM {table}")]
    assert empty == [], "`fill` of tests/golden/make.py writes rows of every table"
    return about


def test_an_erased_memory_is_named_only_where_that_must_be_kept(tmp_path: Path) -> None:
    with kept_sound(PipelineHarness(tmp_path, config=CONFIG)) as room:
        fill(room)
        room.sync_roster(RosterEntry("retired"))  # only what is readable can be forgotten
        about = tables_about(room, SUFFIXES)
        for memory_id, agent in room.connection.execute(
            "SELECT id, agent_id FROM memories WHERE NOT is_deleted"
        ).fetchall():
            target, read = ForgetTarget(memory_id), ReadScope(agent_id=agent)
            room.ask(ForgetMany(targets=(target,), reason="r", principal=Principal(), hard=True, read=read))
        assert room.value("SELECT count(*) FROM memories WHERE NOT is_deleted") == 0
        naming = {
            table
            for table, names in about.items()
            for name in names
            if room.value(
                f"SELECT count(*) FROM {table} WHERE {name} NOT IN"
                f" (SELECT {'seq' if name.endswith('seq') else 'id'} FROM memories)"
            )
        }
    assert naming == set(KEPT), (
        "delete the rows in `remove_row` of writer/commands/memory_changes.py, or say here why not"
    )


def test_an_erased_session_is_named_only_where_that_must_be_kept(tmp_path: Path) -> None:
    with kept_sound(PipelineHarness(tmp_path, config=CONFIG)) as room:
        fill(room)
        about = tables_about(room, SESSION_SUFFIXES)
        of_agents = [table for table, names in about.items() if "session_key" in names and table != "session_pauses"]
        sessions = " UNION ".join(f"SELECT session_key, agent_id FROM {table}" for table in of_agents)
        for key, agent in room.connection.execute(sessions).fetchall():
            while room.ask(ForgetTranscript(key, agent, Principal())).more:
                pass
        naming = {table for table in about if room.value(f"SELECT count(*) FROM {table}")}
    assert naming == set(KEPT_OF_SESSION), (
        "add the table to `_ERASED_WITH_IT` of store/writes/transcripts.py, or say here why not"
    )


def test_a_session_whose_transcript_has_expired_is_erased_with_its_scores(tmp_path: Path) -> None:
    with kept_sound(PipelineHarness(tmp_path, config=CONFIG)) as room:
        fill(room)
        while room.ask(PurgeStep(step="transcripts", cutoff="2028-01-01T00:00:00.000Z", limit=500)).more:
            pass
        assert room.value("SELECT count(*) FROM session_transcripts") == 0
        ((key, agent),) = room.connection.execute("SELECT session_key, agent_id FROM session_scores").fetchall()
        assert room.ask(ForgetTranscript(key, agent, Principal())).found
        assert room.value("SELECT count(*) FROM session_scores") == 0
        assert room.value("SELECT session_key FROM session_transcripts WHERE forgotten_at IS NOT NULL") == key
        assert room.ask(ForgetTranscript("unknown", agent, Principal())).found is False
