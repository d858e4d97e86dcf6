from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.errors import InvalidRequest
from signet_actors.protocol.embeddings import ExportEmbeddings, GetEmbeddingHealth
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import (
    FindByPrefix,
    FindForgetCandidates,
    FindSimilar,
    GetCommonWords,
    GetHistory,
    GetJob,
    GetMemory,
    LegacySearch,
    ListAuthors,
    ListMemories,
    Recall,
)
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, MemoryPatch, ModifyMemory, Vector
from signet_actors.searcher.legs.keyword import TermFrequencies
from signet_actors.searcher.queries import embeddings, forget, memories, stats
from signet_actors.searcher.reader import Step
from signet_actors.searcher.recall import common_words, recall
from signet_actors.store.engine import ReadTimeout
from signet_actors.store.reads import memories as reads
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, plan_of, raw

ME = Principal()


def ids(answer: Any) -> list[str]:
    return [row.id for row in answer.rows]


class TestRanking:
    def test_a_natural_question_finds_its_answer_by_words_alone(self, room: StoreRoom) -> None:
        room.remember("The kitchen has a new oven")
        answer = room.remember("The staging database listens on port 5433")
        found = room.recall("which port does the staging database listen on?", min_score=0.1)
        assert ids(found)[0] == answer.id
        assert (found.method, found.rows[0].source, found.rows[0].score) == ("keyword", "keyword", 1.0)

    def test_a_memory_with_other_words_is_found_by_its_vector(self, room: StoreRoom) -> None:
        room.remember("unrelated", vector=[0.0, 0.0, 1.0])
        alike = room.remember("automobile", vector=[1.0, 0.1])
        found = room.recall("car", vector=[1.0], min_score=0.1)
        assert ids(found) == [alike.id]
        assert (found.method, found.rows[0].source) == ("hybrid", "vector")

    def test_a_keyword_match_outside_the_vector_pool_gets_its_true_cosine(self, room: StoreRoom) -> None:
        both = room.remember("car words", vector=[1.0])
        word = room.remember("car words again", vector=[0.0, 1.0])
        found = room.recall("car words", vector=[1.0])
        assert ids(found) == [both.id, word.id]
        assert found.rows[0].source == "hybrid"
        assert found.rows[1].source == "keyword"

    def test_reciprocal_rank_fusion_is_the_alternative(self, room: StoreRoom) -> None:
        both = room.remember("car words", vector=[1.0])
        room.remember("something else", vector=[0.0, 1.0])
        assert ids(room.recall("car", vector=[1.0], fusion="rrf"))[0] == both.id

    @pytest.mark.parametrize(
        ("content", "near_miss", "query"),
        [
            ("Fixed in KA-6 yesterday", "Fixed in KA-61 yesterday, KA 6 times", "KA-6"),
            ("see read_config for that", "see read_configs for that, read config often", "what does read_config do"),
            ("edit src/app/main.py first", "edit src/app/main.pyc first, main app", "src/app/main.py"),
            ("it fails with E0412 at link", "it fails with E04125 at link", "E0412"),
        ],
    )
    def test_an_identifier_is_matched_exactly(self, room: StoreRoom, content: str, near_miss: str, query: str) -> None:
        for index in range(30):
            room.remember(f"fixed link config number {index} read main app", vector=[1.0, index])
        room.remember(near_miss, vector=[1.0])
        exact = room.remember(content, vector=[0.0, 0.0, 1.0])
        assert ids(room.recall(query, vector=[1.0]))[0] == exact.id
        assert ids(room.recall(query))[0] == exact.id

    def test_an_identifier_is_first_also_beside_a_row_with_the_best_possible_score(self, room: StoreRoom) -> None:
        for index in range(30):
            room.remember(f"remark {index}", vector=[1.0, index])
        exact = room.remember("KA-6 is fixed", vector=[0.0, 0.0, 1.0])
        other = room.remember(
            "the plan of the review in the harbour", vector=[1.0], created_at="2025-05-03T09:00:00.000Z"
        )
        day = 1_746_230_400_000  # 2025-05-03
        found = room.recall("KA-6 review plan harbour", vector=[1.0], near_ms=(day, day + 86_400_000))
        scores = {row.id: row.score for row in found.rows}
        assert scores[other.id] == 1.0
        assert ids(found)[0] == exact.id

    @pytest.mark.parametrize("query", ["数据库", "データベース", "데이터베이스", "库"])
    def test_text_without_spaces_is_findable(self, room: StoreRoom, query: str) -> None:
        room.remember("nothing of it")
        found = room.remember("我们使用PostgreSQL数据库。 データベースは速い。 데이터베이스가 빠르다")
        assert ids(room.recall(query)) == [found.id]

    @pytest.mark.parametrize(
        "query",
        ['"', "a-b", "*", "NEAR(a b)", "(" * 300, "AND OR NOT", "col:value", "\x00", "' OR 1=1 --", "the and of"],
    )
    def test_no_query_is_ever_syntax(self, room: StoreRoom, query: str) -> None:
        room.remember("a quiet row")
        room.recall(query)

    def test_min_score_and_limit_apply(self, room: StoreRoom) -> None:
        for index in range(20):
            room.remember(f"apple {'pear ' * index}", vector=[1.0, index / 10])
        everything = room.recall("apple pear", vector=[1.0], limit=50)
        assert len(everything.rows) == 20
        few = room.recall("apple pear", vector=[1.0], limit=50, min_score=0.8)
        assert 0 < len(few.rows) < 20
        assert all(row.score >= 0.8 for row in few.rows)
        assert len(room.recall("apple pear", vector=[1.0], limit=3).rows) == 3

    def test_stages_are_timed(self, room: StoreRoom) -> None:
        room.remember("apple", vector=[1.0])
        names = [stage.name for stage in room.recall("apple", vector=[1.0]).timings]
        assert names == ["admit", "memory_fts", "vector_knn", "fusion", "priors", "context", "final_rank"]


class TestOddQueries:
    def test_a_thousand_identifiers_are_a_query_like_any_other(self, room: StoreRoom) -> None:
        room.remember("see a7 for that", vector=[1.0])
        assert room.recall(" ".join(f"a{index}" for index in range(2000)), vector=[1.0]).rows

    def test_forty_thousand_tags_are_a_filter_like_any_other(self, room: StoreRoom) -> None:
        room.remember("tagged", tags=("t39999",))
        filters = Filters(tags=tuple(f"t{index}" for index in range(40_000)))
        assert len(room.recall("tagged", filters=filters).rows) == 1

    def test_min_score_applies_with_an_exact_identifier(self, room: StoreRoom) -> None:
        room.remember("KA-6 is done", vector=[1.0])
        for index in range(20):
            room.remember(f"done {'with other things ' * index}", vector=[1.0, index])
        found = room.recall("is KA-6 done", vector=[1.0], min_score=0.4, limit=50)
        assert all(row.score >= 0.4 for row in found.rows)
        assert found.rows[0].content == "KA-6 is done"


class TestFilters:
    def test_a_filtered_query_fills_its_limit_from_a_small_part_of_the_store(self, room: StoreRoom) -> None:
        commands = []
        for index in range(1200):
            wanted = index % 100 == 0
            commands.append((f"apple number {index}", {"type": "rule" if wanted else "fact"}))
        for content, fields in commands:
            room.remember(content, vector=[1.0, random.Random(content).random()], **fields)
        for vector in (None, [1.0]):
            found = room.recall("apple", vector=vector, limit=12, filters=Filters(type="rule"))
            assert len(found.rows) == 12
            assert {row.type for row in found.rows} == {"rule"}

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            (Filters(type="rule"), {"b"}),
            (Filters(tags=("red",)), {"a"}),
            (Filters(tags=("red", "blue")), {"a", "b"}),
            (Filters(tags=("green",)), set()),
            (Filters(who="bob"), {"b"}),
            (Filters(pinned=True), {"a"}),
            (Filters(pinned=False), {"b", "c"}),
            (Filters(importance_min=0.8), {"a", "b"}),
            (Filters(since="2026-01-02T00:00:00.000Z"), {"b", "c"}),
            (Filters(until="2026-01-02T00:00:00.000Z"), {"a", "b"}),
            (Filters(project="p"), {"c"}),
            (Filters(source_type="note"), {"c"}),
            (Filters(type="rule", who="nobody"), set()),
        ],
    )
    def test_each_filter_applies_in_every_leg(self, room: StoreRoom, filters: Filters, expected: set[str]) -> None:
        day = "2026-01-0{}T00:00:00.000Z"
        room.remember("apple a", vector=[1.0], tags=("red",), pinned=True, importance=0.9, created_at=day.format(1))
        room.remember("apple b", vector=[1.0], tags=("blue",), type="rule", who="bob", created_at=day.format(2))
        room.remember(
            "apple c", vector=[1.0], importance=0.1, project="p", source_type="note", created_at=day.format(3)
        )
        for query, vector in (("apple", None), ("apple", [1.0]), ("car", [1.0])):
            found = room.recall(query, vector=vector, filters=filters)
            assert {row.content[-1] for row in found.rows} == expected, (query, vector)
        with room.reader.open_snapshot() as view:
            listed = memories.list_memories(room.reader, view, ListMemories(ReadScope(), filters))
        assert {memory.content[-1] for memory in listed.memories} == expected
        assert listed.matching == len(expected)


class TestReadPolicies:
    @pytest.fixture
    def shared(self, room: StoreRoom) -> StoreRoom:
        for agent, policy, group in (
            ("alice", "shared", None),
            ("bob", "isolated", None),
            ("carol", "group", "team"),
            ("dave", "group", "team"),
        ):
            room.connection.execute(
                "INSERT INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, '', '')",
                (agent, agent, policy, group),
            )
            for visibility in ("global", "private"):
                room.remember(f"apple of {agent} {visibility}", vector=[1.0], agent_id=agent, visibility=visibility)
        room.remember("apple of nobody in particular", vector=[1.0])
        room.remember("apple in a scope", vector=[1.0], scope="room-1")
        return room

    @pytest.mark.parametrize(
        ("read", "expected", "scoped"),
        [
            (
                ReadScope(),
                {"alice global", "bob global", "carol global", "dave global", "in particular"},
                {"a scope"},
            ),
            (
                ReadScope("alice"),
                {"alice global", "alice private", "bob global", "carol global", "dave global", "in particular"},
                {"a scope"},
            ),
            (ReadScope("bob"), {"bob global", "bob private"}, set()),
            (ReadScope("carol"), {"carol global", "carol private", "dave global"}, set()),
            (ReadScope("stranger"), set(), set()),
            (
                ReadScope(scope="room-1"),
                {"a scope"},
                {"alice global", "bob global", "carol global", "dave global", "in particular"},
            ),
        ],
    )
    def test_searches_respect_the_scope_and_access_by_id_only_the_policy(
        self, shared: StoreRoom, read: ReadScope, expected: set[str], scoped: set[str]
    ) -> None:
        """``scoped``: what the policy admits and only the scope keeps out of searches and lists."""

        def short(contents: Any) -> set[str]:
            return {" ".join(content.split()[-2:]) for content in contents}

        assert short(row.content for row in shared.recall("apple", read=read, limit=50).rows) == expected
        assert short(row.content for row in shared.recall("car", vector=[1.0], read=read, limit=50).rows) == expected
        with shared.reader.open_snapshot() as view:
            listed = memories.list_memories(shared.reader, view, ListMemories(read))
            legacy = memories.legacy_search(view, LegacySearch("apple", read, limit=50))
            exported, _ = embeddings.export(view, ExportEmbeddings(read))
            candidates = forget.candidates(view, FindForgetCandidates(read, query="apple", limit=50))
            everything = {memory.id: memory for memory in listed.memories}
            assert short(memory.content for memory in listed.memories) == expected
            assert short(memory.content for memory, _ in legacy.rows) == expected
            assert short(row.memory.content for row in exported.rows) == expected
            assert {candidate.id for candidate in candidates.candidates} == set(everything)
            for memory_id, content in view.rows("SELECT id, content FROM memories"):
                seen = bool(short([content]) & (expected | scoped))
                assert (memories.get_memory(view, GetMemory(memory_id, read)).memory is not None) == seen
                assert (memories.get_history(view, GetHistory(memory_id, read)).events is not None) == seen
                job = view.value("SELECT id FROM memory_jobs WHERE memory_id = ?", (memory_id,))
                assert (memories.get_job(view, GetJob(job, read)).job is not None) == seen
                similar = embeddings.find_similar(shared.reader, view, FindSimilar(memory_id, read, k=50)).rows
                assert (similar is not None) == seen
                if similar is not None:
                    assert {memory.id for memory, _ in similar} == set(everything) - {memory_id}
            authors = memories.list_authors(view, ListAuthors(read)).values
            assert authors == []

    def test_archived_memories_are_never_returned(self, room: StoreRoom) -> None:
        memory = room.remember("apple", vector=[1.0])
        room.connection.execute("UPDATE memories SET visibility = 'archived' WHERE id = ?", (memory.id,))
        assert room.recall("apple", vector=[1.0]).rows == []


class TestFollowing:
    def test_an_acknowledged_memory_is_found_by_the_next_recall(self, room: StoreRoom) -> None:
        other = room.open_reader()
        for index in range(50):
            memory = room.remember(f"token{index}x", vector=[1.0, index])
            assert ids(room.recall(f"token{index}x"))[0] == memory.id
            assert memory.id in ids(room.recall("nothing", vector=[1.0, index], limit=60))
            with other.open_snapshot() as view:
                command = Recall(query="nothing", read=ReadScope(), limit=60, vector_model=MODEL)
                assert memory.id in ids(recall(other, view, command, [raw([1.0, index])]))
        other.close()

    def test_changes_of_known_rows_are_applied(self, room: StoreRoom) -> None:
        first = room.remember("apple one", vector=[1.0])
        second = room.remember("apple two", vector=[1.0])
        assert len(room.recall("apple", vector=[1.0]).rows) == 2
        room.ask(ModifyMemory(MemoryPatch(id=first.id, reason="r", type="rule"), ME))
        assert ids(room.recall("apple", vector=[1.0], filters=Filters(type="rule"))) == [first.id]
        room.ask(
            ModifyMemory(MemoryPatch(id=first.id, reason="r", content="pear", vector=Vector(MODEL, DIMENSIONS, 0)), ME),
            [raw([0.0, 1.0])],
        )
        found = room.recall("pear", vector=[0.0, 1.0])
        assert (ids(found)[0], found.rows[0].source) == (first.id, "hybrid")
        assert ids(room.recall("car", vector=[1.0], min_score=0.5)) == [second.id]
        room.ask(ForgetMemory(id=second.id, reason="r", principal=ME))
        assert room.recall("apple", vector=[1.0], min_score=0.1).rows == []
        room.ask(ForgetMany(targets=(ForgetTarget(first.id),), reason="r", principal=ME, hard=True))
        assert room.recall("pear", vector=[0.0, 1.0]).rows == []

    def test_a_reader_that_missed_truncated_changes_starts_over(self, room: StoreRoom) -> None:
        memory = room.remember("apple", vector=[1.0])
        room.recall("apple")
        room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", type="rule"), ME))
        room.connection.execute("DELETE FROM memory_changes")
        assert ids(room.recall("apple", filters=Filters(type="rule"))) == [memory.id]

    def test_columns_equal_sql_after_any_history(self, room: StoreRoom) -> None:
        rng = random.Random(5)
        alive: list[str] = []
        for step in range(300):
            action = rng.random()
            if action < 0.6 or not alive:
                alive.append(room.remember(f"m {step}", vector=[rng.random(), 1.0], type=rng.choice("ab")).id)
            elif action < 0.8:
                patch = MemoryPatch(id=rng.choice(alive), reason="r", importance=rng.random(), type=rng.choice("abc"))
                room.ask(ModifyMemory(patch, ME))
            else:
                memory_id = alive.pop(rng.randrange(len(alive)))
                hard = rng.random() < 0.5
                room.ask(ForgetMany(targets=(ForgetTarget(memory_id),), reason="r", principal=ME, hard=hard))
            if step % 7 == 0:
                with room.reader.open_snapshot() as view:
                    room.reader.sync(view)
                    for kind in "abc":
                        admitted = room.reader.allowed_rows(view, ReadScope(), Filters(type=kind, importance_min=0.4))
                        rows = view.rows(
                            "SELECT seq FROM memories WHERE is_deleted = 0 AND type = ? AND importance >= 0.4", (kind,)
                        )
                        assert set(np.flatnonzero(admitted).tolist()) == {seq for (seq,) in rows}


class TestVectorFile:
    @pytest.fixture
    def filled(self, room: StoreRoom) -> StoreRoom:
        rng = random.Random(3)
        for index in range(300):
            room.remember(f"row {index}", vector=[rng.gauss(0, 1) for _ in range(DIMENSIONS)])
        return room

    def nearest(self, room: StoreRoom, reader: Any, query: list[float]) -> list[str]:
        with reader.open_snapshot() as view:
            command = Recall(query="zzz", read=ReadScope(), limit=20, vector_model=MODEL)
            return ids(recall(reader, view, command, [raw(query)]))

    def truth(self, room: StoreRoom, query: list[float]) -> list[str]:
        rows = room.connection.execute(
            "SELECT m.id, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq WHERE m.is_deleted = 0"
        ).fetchall()
        scored = [
            (float(np.frombuffer(vector, np.float32) @ np.frombuffer(raw(query), np.float32)), memory_id)  # type: ignore[call-overload]
            for memory_id, vector in rows
        ]
        return [memory_id for score, memory_id in sorted(scored, reverse=True)[:20]]  # type: ignore[misc]

    def test_two_readers_share_one_file_and_agree_with_the_exact_answer(self, filled: StoreRoom) -> None:
        other = filled.open_reader()
        for query in ([1.0], [0.0, 1.0], [1.0, -1.0, 0.5]):
            expected = self.truth(filled, query)
            assert self.nearest(filled, filled.reader, query) == expected
            assert self.nearest(filled, other, query) == expected
        assert len(list(filled.index_dir.glob("*.vectors"))) == 1
        other.close()

    @pytest.mark.parametrize("damage", ["header", "records", "truncated", "foreign", "empty", "removed"])
    def test_a_damaged_file_is_set_aside_and_rebuilt(self, filled: StoreRoom, damage: str) -> None:
        self.nearest(filled, filled.reader, [1.0])
        (path,) = filled.index_dir.glob("*.vectors")
        if damage == "header":
            with path.open("r+b") as file:
                file.write(b"X" * 40)
        elif damage == "records":
            with path.open("r+b") as file:
                file.seek(4096 + 40)
                file.write(b"\xff" * 8)
        elif damage == "truncated":
            os.truncate(path, 4096 + 100)
        elif damage == "foreign":
            content = bytearray(path.read_bytes())
            struct.pack_into("36s", content, 8, b"another-database")
            path.write_bytes(content)
        elif damage == "empty":
            os.truncate(path, 0)
        else:
            path.unlink()
        fresh = filled.open_reader()
        assert self.nearest(filled, fresh, [1.0, 1.0]) == self.truth(filled, [1.0, 1.0])
        assert fresh.catch_up()
        fresh.close()
        # The reader that had mapped the old file continues with the new one.
        filled.remember("one more", vector=[1.0, 1.0])
        assert self.nearest(filled, filled.reader, [1.0, 1.0]) == self.truth(filled, [1.0, 1.0])

    def test_while_the_file_is_built_queries_use_the_stored_vectors(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fresh = filled.open_reader()
        with fresh.open_snapshot() as view:
            leg = fresh.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            monkeypatch.setattr(leg, "sync", lambda *_, **__: None)
            leg.complete = False
            assert self.truth(filled, [1.0, 2.0]) == ids(
                recall(
                    fresh,
                    view,
                    Recall(query="zzz", read=ReadScope(), limit=20, vector_model=MODEL),
                    [raw([1.0, 2.0])],
                )
            )
        fresh.close()

    def test_a_full_disk_makes_a_query_slower_but_does_not_fail_it(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.pwrite", full)
        fresh = filled.open_reader()
        filled.remember("one more", vector=[1.0, 1.0])
        assert self.nearest(filled, fresh, [1.0, 1.0]) == self.truth(filled, [1.0, 1.0])
        assert not fresh.catch_up()
        assert all(leg.error for leg in fresh.vector_legs())
        monkeypatch.undo()
        assert fresh.catch_up()
        fresh.close()

    def test_a_short_write_is_not_counted_as_data(self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nearest(filled, filled.reader, [1.0])
        pwrite = os.pwrite
        monkeypatch.setattr("os.pwrite", lambda fd, data, at: pwrite(fd, data[: len(data) // 2], at))
        filled.remember("one more", vector=[1.0, 1.0])
        assert self.nearest(filled, filled.reader, [1.0, 1.0]) == self.truth(filled, [1.0, 1.0])
        monkeypatch.undo()
        assert filled.reader.catch_up()
        assert self.nearest(filled, filled.reader, [1.0, 1.0]) == self.truth(filled, [1.0, 1.0])

    def test_keyword_rows_keep_their_cosine_after_a_rebuild(self, filled: StoreRoom) -> None:
        self.nearest(filled, filled.reader, [1.0])
        first = filled.value("SELECT id FROM memories ORDER BY seq LIMIT 1")
        filled.ask(ForgetMany(targets=(ForgetTarget(first),), reason="r", principal=ME, hard=True))
        (path,) = filled.index_dir.glob("*.vectors")
        path.unlink()
        filled.remember("row again", vector=[1.0, 1.0])
        seqs = np.array([seq for (seq,) in filled.connection.execute("SELECT seq FROM memories")], np.int64)  # type: ignore[misc]
        query = np.frombuffer(raw([1.0, 1.0]), np.float32)
        with filled.reader.open_snapshot() as view:
            filled.reader.sync(view)
            leg = filled.reader.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            cosines = leg.cosines(view, filled.reader.columns, query, seqs)
        for seq, cosine in zip(seqs.tolist(), cosines.tolist(), strict=True):
            vector = filled.value(
                "SELECT e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq WHERE m.seq = ?", seq
            )
            assert cosine == pytest.approx(float(np.frombuffer(vector, np.float32) @ query), abs=1e-6)

    def test_a_file_of_mostly_dead_records_is_rebuilt(self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("signet_actors.searcher.vector_matrix.DEAD_ALLOWED", 10)
        keep = filled.value("SELECT id FROM memories LIMIT 1")
        doomed = [i for (i,) in filled.connection.execute("SELECT id FROM memories WHERE id <> ?", (keep,))]
        targets = tuple(ForgetTarget(str(memory_id)) for memory_id in doomed)
        filled.ask(ForgetMany(targets=targets, reason="r", principal=ME, hard=True))
        assert self.nearest(filled, filled.reader, [1.0]) == [keep]
        with filled.reader.open_snapshot() as view:
            leg = filled.reader.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            assert leg.matrix.count == 1

    def test_a_large_store_is_searched_as_far_as_its_file_goes(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("signet_actors.searcher.legs.vector.STORED_BELOW", 10)
        monkeypatch.setattr("signet_actors.searcher.legs.vector._MAX_MISSING_READS", 5)
        monkeypatch.setattr(
            "signet_actors.searcher.reader.IN_QUERY",
            Step(vectors=15, codes=9, flags=9, places=9, coherence=9, graph=9, tags=9),
        )
        count = filled.value("SELECT count(*) FROM memories")
        fresh = filled.open_reader()
        command = Recall(query="zzz", read=ReadScope(), vector_model=MODEL, limit=count)
        seen: list[tuple[int, int]] = []
        while not seen or seen[-1][1]:
            with fresh.open_snapshot() as view:
                found = recall(fresh, view, command, [raw([1.0, 2.0])])
            seen.append((len(found.rows), found.pending))
            fresh.columns.version = None  # as after another commit
        fresh.close()
        assert seen[-1] == (count, 0)
        assert [rows for rows, _ in seen] == sorted(rows for rows, _ in seen)
        assert len(seen) > 3
        assert seen[0][0] < count

    def test_a_small_scope_is_searched_completely_while_the_file_is_built(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("signet_actors.searcher.legs.vector._SCAN_K", 10)
        mine = filled.remember("mine alone", vector=[-1.0], agent_id="me", visibility="private")
        fresh = filled.open_reader()
        with fresh.open_snapshot() as view:
            leg = fresh.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            monkeypatch.setattr(leg, "sync", lambda *_, **__: None)
            leg.complete = False
            command = Recall(query="zzz", read=ReadScope("me"), filters=Filters(importance_min=0.1), vector_model=MODEL)
            found = recall(fresh, view, command, [raw([-1.0])])
        assert ids(found)[0] == mine.id
        fresh.close()

    def test_many_missing_records_are_appended_in_steps(self, filled: StoreRoom) -> None:
        fresh = filled.open_reader()
        with fresh.open_snapshot() as view:
            leg = fresh.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            leg.matrix.path.unlink()
            assert not leg.matrix.sync(view, max_rows=100)
            assert leg.matrix.count == 100
            assert not leg.matrix.sync(view, max_rows=100)
            assert leg.matrix.sync(view, max_rows=100)
            assert leg.matrix.count == 300
        fresh.close()


class TestCommonWords:
    def test_words_of_a_fifth_of_the_scope_are_common_and_stop_words_are_not_listed(self, room: StoreRoom) -> None:
        for index in range(200):
            room.remember(f"Caroline said the thing{index} {'twice' if index % 4 == 0 else ''}", agent_id="a")
        with room.reader.open_snapshot() as view:
            words = common_words(room.reader, view, GetCommonWords(ReadScope("a")))
            assert set(words.words) == {"caroline", "said", "twice"}
            assert common_words(room.reader, view, GetCommonWords(ReadScope("b"))).words == []

    def test_words_of_other_projects_are_not_common_in_a_project_and_beside_it(self, room: StoreRoom) -> None:
        for index in range(200):
            room.remember(f"Caroline said the thing{index}", project="/elsewhere")
            room.remember(f"Melanie saw the place{index}", project="/here" if index % 2 else None)
        scopes = (Filters(project="/here"), Filters(project="/here", or_no_project=True), Filters(no_project=True))
        with room.reader.open_snapshot() as view:
            for projects in scopes:
                words = common_words(room.reader, view, GetCommonWords(ReadScope(), projects))
                assert set(words.words) == {"melanie", "saw"}

    def test_a_small_scope_has_no_common_words(self, room: StoreRoom) -> None:
        for index in range(99):
            room.remember(f"Caroline said thing{index}")
        with room.reader.open_snapshot() as view:
            assert common_words(room.reader, view, GetCommonWords(ReadScope())).words == []

    def test_a_recall_returns_the_common_words_if_the_callers_are_outdated(self, room: StoreRoom) -> None:
        for index in range(120):
            room.remember(f"Caroline number{index}", vector=[1.0, index])
        first = room.recall("Caroline", vector=[1.0]).common_words
        assert first is not None
        assert first.words == ["caroline"]
        again = room.recall("Caroline", vector=[1.0], common_words_version=first.version)
        assert again.common_words is None


class TestPruning:
    def test_frequent_terms_are_left_out_when_the_store_is_large(self, room: StoreRoom) -> None:
        for index in range(60):
            room.remember(f"common words everywhere plus rare{index // 20} unique{index}")
        frequencies = TermFrequencies()
        with room.reader.open_snapshot() as view:
            frequencies.resize(60)
            assert frequencies.prune(view, ["common", "rare1", "everywhere"], budget=100) == (
                "common",
                "rare1",
                "everywhere",
            )
            frequencies._rows = 1000
            assert frequencies.prune(view, ["common", "rare1", "everywhere"], budget=30) == ("rare1",)
            assert frequencies.prune(view, ["common"], budget=5) == ("common",)
            assert frequencies.prune(view, ["common", "missing", "rare1"], budget=90) == ("common", "missing", "rare1")


def test_a_read_past_its_deadline_is_interrupted(room: StoreRoom) -> None:
    for index in range(300):
        room.remember(f"apple {index}")

    class Running:
        def __init__(self) -> None:
            self.ns = 0

        def wall_ms(self) -> int:
            return 0

        def monotonic_ns(self) -> int:
            self.ns += 1_000_000
            return self.ns

    room.reader.clock = Running()
    with pytest.raises(ReadTimeout), room.reader.open_snapshot(deadline_ns=2_000_000) as view:
        view.rows("SELECT count(*) FROM memories a, memories b, memories c")


def test_a_broken_legacy_expression_is_a_bad_request(room: StoreRoom) -> None:
    room.remember("apple")
    with room.reader.open_snapshot() as view:
        assert len(memories.legacy_search(view, LegacySearch("app*", ReadScope())).rows) == 1
        for bad in ('"', "a AND", "(", "nocolumn:x", "*"):
            with pytest.raises(InvalidRequest):
                memories.legacy_search(view, LegacySearch(bad, ReadScope()))


def test_a_legacy_expression_without_a_useful_bound_is_a_bad_request(room: StoreRoom) -> None:
    room.remember("apple")
    many = [f"word{index}" for index in range(65)]
    expensive = (
        " ".join(many),
        "+".join(["a"] * 3500),
        " ".join(f"{letter}*" for letter in "etaoinshrdlu" * 200),
        f"NEAR({' '.join(many[:9])}, 999999)",
        "running run runs ran running run",  # one word of the index, five times
        "\ue000 " * 5,  # a word to the index's tokenizer, if not to Python
    )
    with room.reader.open_snapshot() as view:
        for expression in expensive:
            with pytest.raises(InvalidRequest, match="q must have") as refused:
                memories.legacy_search(view, LegacySearch(expression, ReadScope()))
            assert refused.value.field == "q"
        with pytest.raises(InvalidRequest):
            memories.legacy_search(view, LegacySearch("(" * 2000 + "apple" + ")" * 2000, ReadScope()))
        columns = "{" + "content " * 900 + "} : apple"
        assert len(memories.legacy_search(view, LegacySearch(columns, ReadScope())).rows) == 1


def test_the_beginning_of_an_id_finds_what_access_by_id_finds(room: StoreRoom) -> None:
    scopes = {
        "aabbcc-1": None,
        "aabbcc-2": "other",
        "aabbcc-3": None,
        "aabbcd-4": None,
        "AABBCC-5": None,
        "aabbc": None,
    }
    stored = {memory_id: room.remember(memory_id, scope=scope).id for memory_id, scope in scopes.items()}
    room.ask(ForgetMemory(id=stored["aabbcc-3"], reason="r", principal=ME))
    room.connection.execute("UPDATE memories SET visibility = 'archived' WHERE id = ?", (stored["aabbcc-1"],))
    rename = "UPDATE memories SET id = ? WHERE id = ?"
    for memory_id, old in stored.items():
        room.connection.execute(rename, (memory_id, old))

    def found(prefix: str, agent: str = "default", limit: int = 10, deleted: bool | None = None) -> list[str]:
        with room.reader.open_snapshot() as view:
            query = FindByPrefix(prefix, ReadScope(agent_id=agent), limit, deleted)
            return [memory.id for memory in memories.find_by_prefix(view, query).memories]

    assert found("aabbcc") == ["aabbcc-2", "aabbcc-3"]
    assert found("aabbc") == ["aabbc", "aabbcc-2", "aabbcc-3", "aabbcd-4"]
    assert found("aabbc", limit=1) == ["aabbc"]
    assert found("aabbcd-4") == ["aabbcd-4"]
    assert found("aabbcc", deleted=False) == ["aabbcc-2"]
    assert found("aabb", deleted=True, limit=1) == ["aabbcc-3"]
    assert found("aabb%") == found("aabbcc*") == found("zz") == []
    assert found("aabbcc", agent="another") == []
    for memory_id, old in stored.items():
        room.connection.execute(rename, (old, memory_id))
    for state in (reads._LIVE, reads._DELETED):
        steps = plan_of(room.connection, reads._BY_PREFIX.format(f"m.id >= :first AND m.id < :last AND {state}"))
        assert steps == ["SEARCH m USING INDEX sqlite_autoindex_memories_1 (id>? AND id<?)"]


def test_counts_of_health_and_store(room: StoreRoom, tmp_path: Path) -> None:
    room.remember("with", vector=[1.0])
    room.remember("without")
    gone = room.remember("gone", vector=[1.0])
    room.ask(ForgetMemory(id=gone.id, reason="r", principal=ME))
    with room.reader.open_snapshot() as view:
        health = embeddings.health(view, GetEmbeddingHealth(MODEL, DIMENSIONS))
        assert (health.memories, health.embedded, health.by_model) == (2, 1, {MODEL: 1})
        assert (health.stale, health.orphaned, health.vec_missing, health.null_vectors) == (0, 0, 0, 0)
        counted = stats.store_stats(room.reader, view)
    # An extraction for each, and a vector for the one that has none.
    assert (counted.memories, counted.tombstones, counted.jobs) == (2, 1, {"pending": 4})
