"""The caches of a searcher follow every commit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from signet_actors.domain.query_words import fts_match
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import FindCandidates, FindSimilar, Recall
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    RecoverMemory,
    Vector,
)
from signet_actors.searcher import postings
from signet_actors.searcher import reader as reader_module
from signet_actors.searcher.legs import vector as vector_leg
from signet_actors.searcher.legs.vector import IndexIncomplete, VectorLeg
from signet_actors.searcher.postings import MATCH, TAG
from signet_actors.searcher.queries import candidates
from signet_actors.searcher.queries.embeddings import find_similar
from signet_actors.searcher.reader import AT_START, BETWEEN_QUERIES, IN_QUERY, Reader
from signet_actors.searcher.recall import recall
from signet_actors.store.read_policy import conjunction, matching, readable
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, raw

ME = Principal()
AGENTS = ("default", "alice", "bob", "carol")
WORDS = ("apple", "pear", "plum", "fig", "KA-7", "src/main.py", "common")
READS = tuple(ReadScope(agent, scope) for agent in AGENTS for scope in (None, "room"))
FILTERS = (
    Filters(),
    Filters(project="p"),
    Filters(project="q", type="rule"),
    Filters(tags=("red",)),
    Filters(tags=("red", "blue"), pinned=True),
    Filters(tags=(*(f"tag{index}" for index in range(30)), "blue")),
    Filters(importance_min=0.5, since="2026-01-02T00:00:00.000Z"),
)


def ids(answer: Any) -> list[str]:
    return [row.id for row in answer.rows]


class History:
    """Changes of every kind, at random."""

    def __init__(self, room: StoreRoom, seed: int) -> None:
        self.room = room
        self.rng = random.Random(seed)
        self.alive: list[str] = []
        self.forgotten: list[str] = []

    def step(self) -> None:
        rng, room = self.rng, self.room
        action = rng.random()
        if action < 0.45 or not self.alive:
            self.alive.append(
                room.remember(
                    f"{self.words()} {rng.random()}",
                    vector=self.vector() if rng.random() < 0.8 else None,
                    type=rng.choice(("rule", "fact")),
                    tags=tuple(rng.sample(("red", "blue", "tag3"), rng.randint(0, 2))),
                    pinned=rng.random() < 0.5,
                    importance=rng.random(),
                    project=rng.choice((None, "p", "q")),
                    scope=rng.choice((None, None, "room")),
                    agent_id=rng.choice(AGENTS),
                    visibility=rng.choice(("global", "private")),
                    created_at=f"2026-01-0{rng.randint(1, 4)}T00:00:00.000Z",
                ).id
            )
        elif action < 0.6:
            text = f"{self.words()} {rng.random()}"
            patch = MemoryPatch(id=self.one(), reason="r", content=text, vector=Vector(MODEL, DIMENSIONS, 0))
            room.ask(ModifyMemory(patch, ME), [raw(self.vector())])
        elif action < 0.7:
            changed: dict[str, Any] = {"type": rng.choice(("rule", "fact")), "pinned": rng.random() < 0.5}
            if rng.random() < 0.5:
                changed["tags"] = (rng.choice(("red", "blue")),)
            room.ask(ModifyMemory(MemoryPatch(id=self.one(), reason="r", **changed), ME))
        elif action < 0.82:
            memory_id = self.alive.pop(rng.randrange(len(self.alive)))
            room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME, force=True))
            self.forgotten.append(memory_id)
        elif action < 0.9 and self.forgotten:
            memory_id = self.forgotten.pop(rng.randrange(len(self.forgotten)))
            room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME))
            self.alive.append(memory_id)
        elif action < 0.95:
            memory_id = self.alive.pop(rng.randrange(len(self.alive)))
            room.ask(ForgetMany(targets=(ForgetTarget(memory_id),), reason="r", principal=ME, hard=True))
        else:
            policy = rng.choice((("shared", None), ("isolated", None), ("group", "team"), ("group", "other")))
            room.connection.execute(
                "INSERT INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
                " VALUES (?, '', ?, ?, '', '') ON CONFLICT DO UPDATE SET read_policy = excluded.read_policy,"
                " policy_group = excluded.policy_group",
                (rng.choice(AGENTS), *policy),
            )

    def one(self) -> str:
        return self.rng.choice(self.alive)

    def words(self) -> str:
        return " ".join(self.rng.sample(WORDS, self.rng.randint(1, 4)))

    def vector(self) -> list[float]:
        return [self.rng.gauss(0, 1) for _ in range(DIMENSIONS)]


@pytest.mark.parametrize("seed", range(3))
def test_masks_words_and_lengths_equal_sql_after_any_history(room: StoreRoom, seed: int) -> None:
    history = History(room, seed)
    for step in range(120):
        history.step()
        if step % 5:
            continue
        with room.reader.open_snapshot() as view:
            room.reader.sync(view)
            for read in READS:
                for filters in FILTERS:
                    where, bindings = conjunction(
                        ("m.is_deleted = 0", {}), readable(view, read), matching(view.dialect, filters)
                    )
                    truth = {seq for (seq,) in view.rows(f"SELECT m.seq FROM memories m WHERE {where}", bindings)}
                    admitted = room.reader.allowed_rows(view, read, filters)
                    assert set(np.flatnonzero(admitted).tolist()) == truth, (step, read, filters)
            allowed = room.reader.allowed_rows(view, ReadScope(), Filters())
            for query in WORDS:
                hits = room.reader.keyword.search(view, query, allowed, pool=10_000)
                found = view.rows("SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", (fts_match(query),))
                truth = {seq for (seq,) in found if allowed[seq]}
                assert set(hits.seqs.tolist()) == truth, (step, query)
                assert (hits.strengths > 0).all()
            columns = room.reader.columns
            rows = view.rows("SELECT seq, content FROM memories WHERE is_deleted = 0")
            lengths = {seq: len(view.stem(content)) for seq, content in rows}
            assert {seq: int(columns.tokens[seq]) for seq in lengths} == lengths
            assert (columns.indexed_rows, columns.indexed_tokens) == (len(lengths), sum(lengths.values()))


def test_a_list_of_rows_is_extended_by_new_ones_and_read_once(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    read = postings._read

    def counted(view: Any, kind: Any, key: str, least: int) -> Any:
        if key == '"apple"':
            asked.append((key, least))
        return read(view, kind, key, least)

    monkeypatch.setattr(postings, "_read", counted)
    first = room.remember("apple one")
    assert ids(room.recall("apple")) == [first.id]
    room.recall("apple")
    assert asked == [('"apple"', 0)]
    second = room.remember("apple two")
    assert set(ids(room.recall("apple"))) == {first.id, second.id}
    room.ask(ModifyMemory(MemoryPatch(id=first.id, reason="r", importance=0.1), ME))
    assert set(ids(room.recall("apple"))) == {first.id, second.id}
    assert [least for _, least in asked] == [0, 2]
    room.ask(ModifyMemory(MemoryPatch(id=first.id, reason="r", content="pear one"), ME))
    assert ids(room.recall("apple")) == [second.id]
    assert [least for _, least in asked] == [0, 2, 0]


def test_cached_lists_are_bounded(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_CACHED_ROWS", 25)
    for index in range(10):
        room.remember(f"apple pear plum fig {index}", tags=("red",))
    with room.reader.open_snapshot() as view:
        room.reader.sync(view)
        for word in ("apple", "pear", "plum", "fig", "apple"):
            assert len(room.reader.postings.lookup(view, MATCH, f'"{word}"')) == 10
            assert room.reader.postings._rows <= 25
        assert len(room.reader.postings.lookup(view, TAG, "red")) == 10
        assert room.reader.postings._rows == sum(len(rows) for rows, _ in room.reader.postings._cache.values())


def test_a_query_cannot_change_a_cached_mask(room: StoreRoom) -> None:
    first = room.remember("apple one", vector=[1.0])
    room.remember("apple two", vector=[1.0, 0.1])
    with room.reader.open_snapshot() as view:
        room.reader.sync(view)
        mask = room.reader.allowed_rows(view, ReadScope(), Filters())
        with pytest.raises(ValueError, match="read-only"):
            mask[1] = False
        assert find_similar(room.reader, view, FindSimilar(first.id, ReadScope(), k=5)).rows
    assert len(room.recall("apple", vector=[1.0]).rows) == 2


def test_a_reader_that_missed_very_many_changes_starts_over(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signet_actors.searcher.columns._MAX_CHANGES", 3)
    memory = room.remember("apple", vector=[1.0])
    for index in range(30):
        room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", type=f"type{index}"), ME))
        assert ids(room.recall("apple", vector=[1.0], filters=Filters(type=f"type{index}"))) == [memory.id]
    assert len(room.reader.columns.changed) <= 12  # three, four for each row, and the last one


class TestFirstPass:
    @pytest.fixture
    def filled(self, room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> StoreRoom:
        """A store that counts as large, so that signs choose the candidates."""
        monkeypatch.setattr(vector_leg, "_WHOLE_PRODUCT_BELOW", 0)
        monkeypatch.setattr(vector_leg, "_PROJECTION_BELOW", 1)
        monkeypatch.setattr(vector_leg, "_EXACT_BELOW", 0)
        monkeypatch.setattr(vector_leg, "_CANDIDATES_MIN", 0)
        monkeypatch.setattr(vector_leg, "_CANDIDATES_PER_HIT", 6)
        monkeypatch.setattr(vector_leg, "_ROWS_PER_CANDIDATE", 10_000)
        rng = random.Random(3)
        for index in range(400):
            kind = "rule" if index % 10 == 0 else "fact"
            room.remember(f"row {index}", vector=[rng.gauss(0, 1) for _ in range(DIMENSIONS)], type=kind)
        return room

    @staticmethod
    def nearest(reader: Reader, query: list[float], pool: int, filters: Filters = Filters()) -> list[int]:  # noqa: B008
        with reader.open_snapshot() as view:
            reader.sync(view)
            leg = reader.vector_leg(view, MODEL, DIMENSIONS)
            assert leg is not None
            allowed = reader.allowed_rows(view, ReadScope(), filters)
            found = leg.search(view, reader.columns, np.frombuffer(raw(query), np.float32), allowed, pool=pool)
        assert (np.diff(found.cosines) <= 0).all()
        return found.seqs.tolist()

    @staticmethod
    def truth(room: StoreRoom, query: list[float], pool: int, kind: str = "%") -> list[int]:
        rows = room.connection.execute(
            "SELECT m.seq, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
            " WHERE m.is_deleted = 0 AND m.type LIKE ?",
            (kind,),
        ).fetchall()
        wanted = np.frombuffer(raw(query), np.float32)
        scored = [
            (float(np.frombuffer(vector, np.float32) @ wanted), seq)
            for vector_seq, vector in rows
            for seq in (vector_seq,)
        ]  # type: ignore[call-overload]
        return [seq for _, seq in sorted(scored, reverse=True)[:pool]]  # type: ignore[misc]

    def test_its_answer_is_nearly_that_of_an_exact_scan(self, filled: StoreRoom) -> None:
        rng = random.Random(4)
        shares = []
        for _ in range(30):
            query = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
            found, truth = self.nearest(filled.reader, query, 20), self.truth(filled, query, 20)
            assert len(found) == 20
            shares.append(len(set(found) & set(truth)) / 20)
        assert np.mean(shares) >= 0.9  # eight dimensions are eight bits; test_sign_codes.py has real widths

    def test_a_filter_that_admits_few_is_answered_exactly(self, filled: StoreRoom) -> None:
        query = [1.0, -1.0, 0.5]
        assert self.nearest(filled.reader, query, 20, Filters(type="rule")) == self.truth(filled, query, 20, "rule")
        assert self.nearest(filled.reader, query, 5, Filters(type="rule"))[:2] == self.truth(filled, query, 2, "rule")

    def test_it_follows_every_kind_of_change(self, filled: StoreRoom) -> None:
        query = [1.0, 1.0]
        near = filled.remember("near", vector=query)
        seq = filled.value("SELECT seq FROM memories WHERE id = ?", near.id)
        assert self.nearest(filled.reader, query, 5)[0] == seq
        far = MemoryPatch(id=near.id, reason="r", content="far", vector=Vector(MODEL, DIMENSIONS, 0))
        filled.ask(ModifyMemory(far, ME), [raw([-1.0, -1.0])])
        assert seq not in self.nearest(filled.reader, query, 5)
        assert self.nearest(filled.reader, [-1.0, -1.0], 5)[0] == seq
        filled.ask(ForgetMemory(id=near.id, reason="r", principal=ME))
        assert seq not in self.nearest(filled.reader, [-1.0, -1.0], 5)
        filled.ask(RecoverMemory(id=near.id, reason="r", principal=ME))
        recovered = filled.value("SELECT embedding_seq FROM memories WHERE id = ?", near.id) is not None
        assert (seq in self.nearest(filled.reader, [-1.0, -1.0], 5)) == recovered

    def test_equal_vectors_by_the_hundred_do_not_become_candidates_by_the_hundred(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for index in range(300):
            filled.remember(f"the same {index}", vector=[1.0, 1.0])
        compared: list[int] = []
        products = VectorLeg._products

        def counted(leg: VectorLeg, rows: Any, query: Any) -> Any:
            compared.append(len(rows))
            return products(leg, rows, query)

        monkeypatch.setattr(VectorLeg, "_products", counted)
        assert len(self.nearest(filled.reader, [1.0, 1.0], 5)) == 5
        assert max(compared) == 30

    def test_a_file_that_grows_fourfold_gets_a_new_centre_and_forgets_no_vector(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_leg, "_PROJECTION_BELOW", 16)
        rng = random.Random(6)
        with filled.reader.open_snapshot() as view:
            filled.reader.sync(view)
            leg = filled.reader.vector_leg(view, MODEL, DIMENSIONS)
        assert leg is not None
        spans = set()
        for index in range(700):
            query = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
            filled.remember(f"more {index}", vector=query)
            if index % 50 == 0:
                assert self.nearest(filled.reader, query, 5)[0] == filled.value("SELECT max(seq) FROM memories")
                assert leg._encoded is not None
                spans.add(leg._encoded.span)
        assert spans == {256, 1024}
        shares = []
        for _ in range(20):
            query = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
            shares.append(len(set(self.nearest(filled.reader, query, 20)) & set(self.truth(filled, query, 20))) / 20)
        assert np.mean(shares) >= 0.85  # of 1,100 rows in eight bits

    def test_a_file_that_outgrows_components_gets_signs_and_forgets_no_vector(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_leg, "_WHOLE_PRODUCT_BELOW", 8)
        monkeypatch.setattr(vector_leg, "_PROJECTION_BELOW", 512)
        rng = random.Random(8)
        with filled.reader.open_snapshot() as view:
            filled.reader.sync(view)
            leg = filled.reader.vector_leg(view, MODEL, DIMENSIONS)
        assert leg is not None
        kinds = []
        for index in range(400):
            query = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
            filled.remember(f"more {index}", vector=query)
            if index % 25 == 0:
                assert self.nearest(filled.reader, query, 5)[0] == filled.value("SELECT max(seq) FROM memories")
                assert leg._encoded is not None
                kinds.append(type(leg._encoded.codes).__name__)
        assert list(dict.fromkeys(kinds)) == ["Projection", "BinaryCodes"]
        assert set(self.nearest(filled.reader, query, 20)) & set(self.truth(filled, query, 20))

    def test_new_codes_are_computed_in_steps_while_the_former_ones_answer(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_leg, "_PROJECTION_BELOW", 4)
        monkeypatch.setattr(reader_module, "IN_QUERY", IN_QUERY._replace(codes=64))
        fresh = filled.open_reader()
        while not fresh.catch_up():
            pass
        rng = random.Random(7)
        for index in range(700):
            filled.remember(f"more {index}", vector=[rng.gauss(0, 1) for _ in range(DIMENSIONS)])
        steps = 0
        done = False
        while not done:
            done = fresh.catch_up(AT_START._replace(codes=64))
            steps += 1
            query = filled.value("SELECT vector FROM embeddings WHERE seq = 1")
            assert self.nearest(fresh, np.frombuffer(query, np.float32).tolist(), 5)[0] == 1
        assert steps > 3
        fresh.close()

    def test_a_memory_of_a_small_scope_is_found_before_its_code_is_computed(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_leg, "STORED_BELOW", 0)
        monkeypatch.setattr(vector_leg, "_EXACT_BELOW", 8)
        monkeypatch.setattr(reader_module, "IN_QUERY", IN_QUERY._replace(codes=1))
        newest = filled.remember("mine", vector=[1.0, 1.0], project="mine")
        fresh = filled.open_reader()
        fresh.catch_up(BETWEEN_QUERIES._replace(codes=64))
        assert fresh.pending > 0
        seq = filled.value("SELECT seq FROM memories WHERE id = ?", newest.id)
        assert self.nearest(fresh, [1.0, 1.0], 5, Filters(project="mine")) == [seq]
        fresh.close()

    def test_what_must_be_whole_waits_until_an_import_is_indexed(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_leg, "STORED_BELOW", 0)
        monkeypatch.setattr(vector_leg, "_MAX_MISSING_READS", 5)
        first = filled.value("SELECT id FROM memories WHERE seq = 1")
        filled.remember("elsewhere", vector=[1.0], project="small")
        for file in filled.index_dir.glob("*.vectors"):
            file.unlink()
        monkeypatch.setattr(reader_module, "IN_QUERY", IN_QUERY._replace(vectors=10))
        fresh = filled.open_reader()
        fact = FindCandidates("row 5", "default", "global", None, None, vector_model=MODEL, min_score=0)
        with fresh.open_snapshot() as view:
            with pytest.raises(IndexIncomplete):
                candidates.find(fresh, view, fact, [raw([1.0, 1.0])])
            with pytest.raises(IndexIncomplete):
                find_similar(fresh, view, FindSimilar(first, ReadScope(), k=5))
            few = candidates.find(fresh, view, structs.replace(fact, project="small"), [raw([1.0, 1.0])])
            assert len(few.candidates) == 1
        while not fresh.catch_up():
            pass
        with fresh.open_snapshot() as view:
            assert candidates.find(fresh, view, fact, [raw([1.0, 1.0])]).candidates
            assert find_similar(fresh, view, FindSimilar(first, ReadScope(), k=5)).rows
        fresh.close()

    def test_nothing_is_pending_while_the_stored_vectors_are_searched(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fresh = filled.open_reader()
        for file in filled.index_dir.glob("*.vectors"):
            file.unlink()
        monkeypatch.setattr(reader_module, "IN_QUERY", IN_QUERY._replace(vectors=10))
        fresh.catch_up(BETWEEN_QUERIES._replace(vectors=10))
        assert self.nearest(fresh, [1.0, 1.0], 20) == self.truth(filled, [1.0, 1.0], 20)
        assert [leg.pending for leg in fresh.vector_legs()] == [0]
        fresh.close()

    def test_an_older_snapshot_keeps_the_vectors_that_were_current_in_it(self, filled: StoreRoom) -> None:
        memory = filled.remember("near", vector=[1.0, 1.0])
        assert self.nearest(filled.reader, [1.0, 1.0], 3)[0] == 401  # the shared file holds the first vector
        old, new = filled.open_reader(), filled.open_reader()
        with old.open_snapshot() as view:
            assert view.value("SELECT count(*) FROM memories") == 401
            patch = MemoryPatch(id=memory.id, reason="r", content="far", vector=Vector(MODEL, DIMENSIONS, 0))
            filled.ask(ModifyMemory(patch, ME), [raw([-1.0, -1.0])])
            assert new.catch_up()  # and now also the later one
            old.sync(view)
            command = Recall(query="zzz", read=ReadScope(), limit=3, vector_model=MODEL)
            assert ids(recall(old, view, command, [raw([1.0, 1.0])]))[0] == memory.id
        assert self.nearest(old, [-1.0, -1.0], 3)[0] == filled.value("SELECT seq FROM memories WHERE id = ?", memory.id)
        old.close()
        new.close()

    def test_a_file_that_grows_while_it_is_mapped_is_followed(
        self, filled: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("signet_actors.searcher.vector_matrix._GROW_BYTES", 8192)
        other = filled.open_reader()
        (path,) = filled.index_dir.glob("*.vectors") if list(filled.index_dir.glob("*.vectors")) else (None,)
        assert path is None or path.unlink() is None
        rng = random.Random(5)
        for index in range(300):
            query = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
            filled.remember(f"more {index}", vector=query)
            if index % 20 == 0:
                seq = filled.value("SELECT max(seq) FROM memories")
                assert self.nearest(filled.reader, query, 5)[0] == seq
                assert self.nearest(other, query, 5)[0] == seq
        other.close()
