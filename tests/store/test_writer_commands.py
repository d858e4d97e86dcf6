from __future__ import annotations

import msgspec
import pytest

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import LeaseJobs
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.pipeline import StoreVector
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMany,
    ModifyMemory,
    NewMemory,
    RecoverMemory,
    RememberChunks,
    TemporalEdge,
    Vector,
)
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, raw, remembering

DAY_MS = 86_400_000
ME = Principal(changed_by="tester", actor_type="operator", session_id="s-1", request_id="r-1")


def forget(room: StoreRoom, memory_id: str, **fields: object) -> object:
    return room.ask(ForgetMemory(id=memory_id, reason="test", principal=fields.pop("principal", ME), **fields))  # type: ignore[arg-type]


def test_a_remembered_memory_has_row_vector_history_and_job(room: StoreRoom) -> None:
    answer = room.remember(
        "User prefers vim", vector=[1.0], tags=("editor", "ui"), who="claude-code", principal=ME, project="p"
    )
    assert (answer.embedded, answer.deduped, answer.version) == (True, False, 1)
    assert room.value("SELECT count(*) FROM memories WHERE id = ? AND project = 'p'", answer.id) == 1
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 1
    event = room.connection.execute(
        "SELECT event, new_content, changed_by, actor_type, session_id, request_id FROM memory_history"
    ).fetchall()
    assert event == [("created", "User prefers vim", "tester", "operator", "s-1", "r-1")]
    assert (
        room.value("SELECT status FROM memory_jobs WHERE memory_id = ? AND job_type = 'extract'", answer.id)
        == "pending"
    )
    assert room.value("SELECT extraction_status FROM memories") == "pending"


def test_the_same_content_again_is_the_same_memory(room: StoreRoom) -> None:
    first = room.remember("User prefers vim")
    again = room.remember("user PREFERS vim!!", type="preference", tags=("other",))
    assert (again.id, again.deduped, again.type, again.tags) == (first.id, True, "fact", [])
    assert room.value("SELECT count(*) FROM memories") == 1
    assert room.value("SELECT count(*) FROM memory_history") == 1


@pytest.mark.parametrize(
    "other",
    [{"agent_id": "bob"}, {"visibility": "private"}, {"project": "q"}, {"scope": "s"}],
)
def test_the_same_content_in_another_scope_is_another_memory(room: StoreRoom, other: dict[str, str]) -> None:
    first = room.remember("User prefers vim")
    second = room.remember("User prefers vim", **other)
    assert second.id != first.id
    assert not second.deduped


def test_duplicates_are_found_by_source_id_then_key_then_content(room: StoreRoom) -> None:
    by_source = room.remember("one", source_id="file-1")
    by_key = room.remember("two", idempotency_key="key-1")
    by_content = room.remember("three")
    assert room.remember("three", source_id="file-1", idempotency_key="key-1").id == by_source.id
    assert room.remember("three", idempotency_key="key-1").id == by_key.id
    assert room.remember("three").id == by_content.id


def test_a_source_id_that_is_a_session_never_dedupes(room: StoreRoom) -> None:
    first = room.remember("said first", source_id="session-1", session_bound=True)
    second = room.remember("said second", source_id="session-1", session_bound=True)
    assert first.id != second.id


def test_content_and_key_of_a_forgotten_memory_can_be_used_again(room: StoreRoom) -> None:
    first = room.remember("again and again", idempotency_key="key-1")
    forget(room, first.id)
    second = room.remember("again and again", idempotency_key="key-1")
    assert (second.deduped, second.id != first.id) == (False, True)
    assert room.remember("other text", idempotency_key="key-1").id == second.id


def test_a_repeated_memory_supplies_a_missing_vector(room: StoreRoom) -> None:
    assert not room.remember("late vector").embedded
    assert room.remember("late vector", vector=[1.0]).embedded
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 1


def test_no_job_is_queued_when_the_pipeline_is_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    import msgspec

    config = Config()
    pipeline = msgspec.structs.replace(config.memory.pipeline_v2, enabled=False)
    config = msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))
    room = StoreRoom(tmp_path_factory.mktemp("store"), config=config)
    room.remember("quiet")
    assert room.value("SELECT count(*) FROM memory_jobs WHERE job_type <> 'embed'") == 0
    assert room.value("SELECT extraction_status FROM memories") == "none"
    room.close()


def test_explicit_times_become_temporal_edges(room: StoreRoom) -> None:
    answer = room.remember(
        "the outage",
        created_at="2026-02-21T10:00:00.000Z",
        temporal=(TemporalEdge("occurred", "2026-02-20T15:00:00.000Z", None),),
    )
    edges = room.connection.execute("SELECT subject_id, facet, start_at FROM temporal_edges").fetchall()
    assert edges == [(answer.id, "occurred", "2026-02-20T15:00:00.000Z")]
    assert room.value("SELECT created_at FROM memories") == "2026-02-21T10:00:00.000Z"


def test_a_first_seen_agent_is_registered_as_shared_and_a_known_policy_stays(room: StoreRoom) -> None:
    room.remember("hers", agent_id="alice")
    assert room.value("SELECT read_policy FROM agents WHERE id = 'alice'") == "shared"
    room.connection.execute("UPDATE agents SET read_policy = 'isolated' WHERE id = 'alice'")
    room.group.row_cache.clear()
    room.remember("hers too", agent_id="alice")
    assert room.value("SELECT read_policy FROM agents WHERE id = 'alice'") == "isolated"


def test_a_patch_changes_row_index_vector_and_history(room: StoreRoom) -> None:
    memory = room.remember("old text about cats", vector=[1.0], tags=("a", "b"))
    patch = MemoryPatch(
        id=memory.id,
        reason="wrong",
        content="new text about dogs",
        tags=("b", "c"),
        importance=0.5,
        vector=Vector(MODEL, DIMENSIONS, 0),
    )
    answer = room.ask(ModifyMemory(patch, ME), [raw([0.0, 1.0])])
    assert (answer.status, answer.current_version, answer.new_version) == ("updated", 1, 2)
    assert (answer.content_changed, answer.embedded) == (True, True)
    assert room.recall("cats").rows == []
    assert [row.id for row in room.recall("dogs").rows] == [memory.id]
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 1
    old, new = room.connection.execute(
        "SELECT old_content, new_content FROM memory_history WHERE event = 'updated'"
    ).fetchone() or ("", "")
    assert (old, new) == ("old text about cats", "new text about dogs")


def test_a_changed_content_without_a_vector_loses_the_stale_one(room: StoreRoom) -> None:
    memory = room.remember("old text", vector=[1.0])
    answer = room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", content="new text"), ME))
    assert (answer.status, answer.embedded) == ("updated", False)
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 0
    assert room.value("SELECT count(*) FROM embeddings") == 0


def test_every_outcome_of_a_patch_has_its_status(room: StoreRoom) -> None:
    memory = room.remember("first")
    room.remember("second")

    def status(**fields: object) -> str:
        fields.setdefault("id", memory.id)
        return room.ask(ModifyMemory(MemoryPatch(reason="r", **fields), ME)).status  # type: ignore[arg-type, no-any-return]

    assert status(type="fact") == "no_changes"
    assert status(content="second.") == "duplicate_content_hash"
    assert status(type="rule", if_version=7) == "version_conflict"
    assert status(id="nobody", type="rule") == "not_found"
    assert status(type="rule", if_version=1) == "updated"
    forget(room, memory.id)
    assert status(type="fact") == "deleted"


@pytest.mark.parametrize("kind", ["agent", "pipeline"])
def test_only_a_person_unpins_a_memory(room: StoreRoom, kind: str) -> None:
    memory = room.remember("pinned", pinned=True)
    unpin = MemoryPatch(id=memory.id, reason="r", pinned=False, content="changed")
    robot = Principal(changed_by="bot", actor_type=kind)
    assert room.ask(ModifyMemory(unpin, robot)).status == "autonomous_unpin_denied"
    assert room.value("SELECT content FROM memories") == "pinned"
    kept = MemoryPatch(id=memory.id, reason="r", pinned=True, content="changed")
    assert room.ask(ModifyMemory(kept, robot)).status == "updated"
    assert room.ask(ModifyMemory(unpin, ME)).status == "updated"
    assert room.ask(ModifyMemory(unpin, robot)).status == "no_changes", "it is not pinned any more"


def test_a_batch_applies_its_valid_patches(room: StoreRoom) -> None:
    first, second = room.remember("first"), room.remember("second")
    patches = (
        MemoryPatch(id=first.id, reason="r", content="second"),
        MemoryPatch(id="nobody", reason="r", type="rule"),
        MemoryPatch(id=second.id, reason="r", type="rule"),
    )
    answer = room.ask(ModifyMany(patches, ME))
    assert [item.status for item in answer.results] == ["duplicate_content_hash", "not_found", "updated"]


def test_every_outcome_of_a_deletion_has_its_status(room: StoreRoom) -> None:
    plain, pinned = room.remember("plain"), room.remember("pinned", pinned=True)
    robot = Principal(changed_by="bot", actor_type="agent")
    assert forget(room, "nobody").status == "not_found"  # type: ignore[attr-defined]
    assert forget(room, plain.id, if_version=2).status == "version_conflict"  # type: ignore[attr-defined]
    assert forget(room, pinned.id).status == "pinned_requires_force"  # type: ignore[attr-defined]
    assert forget(room, pinned.id, force=True, principal=robot).status == "autonomous_force_denied"  # type: ignore[attr-defined]
    assert forget(room, pinned.id, force=True).status == "deleted"  # type: ignore[attr-defined]
    assert forget(room, plain.id, principal=robot).status == "deleted"  # type: ignore[attr-defined]
    assert forget(room, plain.id).status == "already_deleted"  # type: ignore[attr-defined]


def test_a_forgotten_memory_leaves_every_index_and_returns_on_recovery(room: StoreRoom) -> None:
    memory = room.remember("the canary sings", vector=[1.0])
    forget(room, memory.id)
    assert room.recall("canary", vector=[1.0]).rows == []
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 0
    answer = room.ask(RecoverMemory(id=memory.id, reason="oops", principal=ME))
    assert (answer.status, answer.new_version, answer.retention_days) == ("recovered", 3, 30)
    assert [row.source for row in room.recall("canary", vector=[1.0]).rows] == ["hybrid"]
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 1


def test_every_outcome_of_a_recovery_has_its_status(room: StoreRoom) -> None:
    def recover(memory_id: str, **fields: object) -> str:
        return room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME, **fields)).status  # type: ignore[arg-type, no-any-return]

    memory, other = room.remember("first"), room.remember("second")
    assert recover("nobody") == "not_found"
    assert recover(memory.id) == "not_deleted"
    forget(room, memory.id)
    forget(room, other.id)
    assert recover(memory.id, if_version=1) == "version_conflict"
    room.remember("second")
    assert recover(other.id) == "duplicate_content_hash"
    room.clock.advance(30 * DAY_MS + 1)
    assert recover(memory.id) == "retention_expired"


def test_a_hard_delete_keeps_events_without_content(room: StoreRoom) -> None:
    memory = room.remember("a secret canary", vector=[1.0], tags=("x",), pinned=True)
    answer = room.ask(
        ForgetMany(targets=(ForgetTarget(memory.id, 1), ForgetTarget("nobody")), reason="r", principal=ME, hard=True)
    )
    assert [item.status for item in answer.results] == ["deleted", "not_found"]
    for table in ("memories", "embeddings", "vec_embeddings_1", "memory_tags", "memory_jobs"):
        assert room.value(f"SELECT count(*) FROM {table}") == 0, table
    events = room.connection.execute("SELECT event, old_content, new_content FROM memory_history").fetchall()
    assert events == [("created", None, None), ("deleted", None, None)]


def test_a_batch_deletes_exactly_the_given_versions(room: StoreRoom) -> None:
    first, second = room.remember("first"), room.remember("second")
    room.ask(ModifyMemory(MemoryPatch(id=second.id, reason="r", type="rule"), ME))
    answer = room.ask(
        ForgetMany(targets=(ForgetTarget(first.id, 1), ForgetTarget(second.id, 1)), reason="r", principal=ME)
    )
    assert [item.status for item in answer.results] == ["deleted", "version_conflict"]


def test_another_agents_private_memory_looks_like_a_missing_one(room: StoreRoom) -> None:
    hers = room.remember("hers alone", agent_id="alice", visibility="private")
    for read, status in ((ReadScope("bob"), "not_found"), (ReadScope(), "not_found"), (ReadScope("alice"), "updated")):
        patch = MemoryPatch(id=hers.id, reason="r", type="rule")
        assert room.ask(ModifyMemory(patch, ME, read)).status == status
    assert forget(room, hers.id, read=ReadScope("bob")).status == "not_found"  # type: ignore[attr-defined]


class TestChunks:
    def chunks(self, room: StoreRoom, texts: list[str], *, key: str | None = None) -> object:
        memory = NewMemory(content=" ".join(texts), type="fact", importance=0.8, idempotency_key=key)
        vectors = tuple(Vector(MODEL, DIMENSIONS, index) for index in range(len(texts)))
        return room.ask(
            RememberChunks(memory, tuple(texts), ME, vectors), [raw([1.0, index]) for index in range(len(texts))]
        )

    def test_all_chunks_are_rows_of_one_group(self, room: StoreRoom) -> None:
        answer = self.chunks(room, ["one.", "two.", "three."])
        assert len(set(answer.ids)) == 3  # type: ignore[attr-defined]
        rows = room.connection.execute("SELECT source_type, source_id FROM memories").fetchall()
        assert rows == [("chunk", answer.group_id)] * 3  # type: ignore[attr-defined]

    def test_a_retry_with_the_key_returns_the_group(self, room: StoreRoom) -> None:
        first = self.chunks(room, ["one.", "two."], key="k")
        again = self.chunks(room, ["one.", "two."], key="k")
        assert (again.ids, again.group_id, again.deduped) == (first.ids, first.group_id, True)  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("before", "texts", "said"),
        [
            (["one.", "two."], ["one.", "other."], "different chunked content"),
            (["one.", "two."], ["one."], "different chunked content"),
            (["one."], ["one.", "two."], "different chunked content"),
        ],
    )
    def test_the_key_with_other_content_is_a_conflict(
        self, room: StoreRoom, before: list[str], texts: list[str], said: str
    ) -> None:
        self.chunks(room, before, key="k")
        failure = self.chunks(room, texts, key="k")
        assert isinstance(failure, Failure)
        assert failure.code is ErrorCode.CONFLICT
        assert said in failure.detail

    def test_a_key_is_either_for_chunks_or_for_a_small_memory(self, room: StoreRoom) -> None:
        room.remember("small", idempotency_key="small-key")
        refused = self.chunks(room, ["one.", "two."], key="small-key")
        assert isinstance(refused, Failure)
        assert "non-chunk content" in refused.detail
        self.chunks(room, ["one.", "two."], key="chunk-key")
        command, frames = remembering("small again", idempotency_key="chunk-key")
        refused = room.ask(command, frames)
        assert isinstance(refused, Failure)
        assert "chunked content" in refused.detail

    def test_a_chunk_that_exists_refuses_all_and_leaves_nothing(self, room: StoreRoom) -> None:
        room.remember("two.")
        refused = self.chunks(room, ["one.", "two."])
        assert isinstance(refused, Failure)
        assert refused.detail == "chunk content already exists"
        assert room.value("SELECT count(*) FROM memories") == 1


class TestExactlyOnce:
    def test_a_repeated_message_gets_the_first_answer(self, room: StoreRoom) -> None:
        command, frames = remembering("once", vector=[1.0])
        first = room.ask(command, frames, message_id="m")
        forget(room, first.id)
        again = room.ask(command, frames, message_id="m")
        assert again == first
        assert room.value("SELECT count(*) FROM memories") == 1

    def test_twins_in_one_batch_act_once(self, room: StoreRoom) -> None:
        command, frames = remembering("once")
        twins = [room.asked(command, frames, message_id="m") for _ in range(2)]
        room.group.commit(twins)
        assert twins[0].answer == twins[1].answer
        assert not twins[1].answer.deduped

    def test_a_repeated_answer_says_whether_there_is_a_vector_now(self, room: StoreRoom) -> None:
        remember, _ = remembering("embedded later")
        first = room.ask(remember, message_id="remember")
        assert not first.embedded
        patch = MemoryPatch(id=first.id, reason="r", content="changed and embedded later")
        one, many = ModifyMemory(patch, ME), ModifyMany((patch, MemoryPatch(id="nobody", reason="r", pinned=True)), ME)

        def embed(memory_id: str) -> None:
            jobs = room.ask(LeaseJobs(kinds=("embed",), limit=1, lease_ms=60_000)).jobs
            (job,) = [job for job in jobs if job.memory_id == memory_id]
            stored = StoreVector(job.id, job.lease_id, job.subject.content_hash, MODEL, DIMENSIONS)
            assert room.ask(stored, [raw([1.0])]).stored

        embed(first.id)
        assert room.ask(remember, message_id="remember") == msgspec.structs.replace(first, embedded=True)
        changed = room.ask(one, message_id="one")
        assert (changed.content_changed, changed.embedded) == (True, False)
        assert not room.ask(remember, message_id="remember").embedded, "its vector went with its content"
        embed(first.id)
        assert room.ask(one, message_id="one") == msgspec.structs.replace(changed, embedded=True)
        batch = room.ask(many, message_id="many")
        assert [result.status for result in batch.results] == ["no_changes", "not_found"]
        assert room.ask(many, message_id="many") == batch, "nothing is said of a vector where nothing was embedded"
        assert room.ask(ForgetMany((ForgetTarget(first.id),), "r", ME, hard=True)).results[0].status == "deleted"
        assert not room.ask(remember, message_id="remember").embedded
        assert not room.ask(one, message_id="one").embedded

    def test_a_clients_key_works_across_messages_and_refuses_another_body(self, room: StoreRoom) -> None:
        first = room.remember("once", idempotency=Idempotency("client-key", "digest-1"))
        again = room.remember("once", idempotency=Idempotency("client-key", "digest-1"))
        assert again == first
        command, _ = remembering("other", idempotency=Idempotency("client-key", "digest-2"))
        refused = room.ask(command)
        assert isinstance(refused, Failure)
        assert refused.code is ErrorCode.IDEMPOTENCY_CONFLICT
