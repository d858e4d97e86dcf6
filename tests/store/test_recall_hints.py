"""Hints at recall: memories are found by them, they are not added up, and read policies apply."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import StoreHints
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, MemoryPatch, ModifyMemory
from signet_actors.searcher.legs import hints as hints_leg
from tests.support.pipeline_harness import PipelineHarness, configured
from tests.support.store_room import kept_sound

ME = Principal()
WORDS = ("port", "oven", "staging", "kitchen", "deploy", "garden")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path, config=configured(hints=True))) as room:
        yield room


def hint(room: PipelineHarness, *hints: str) -> None:
    """The oldest memory that waits for its hints has these."""
    job = room.take("prospective_index")
    assert room.ask(StoreHints(job.id, job.lease_id, hints)).count == len(hints)


def hint_only(room: PipelineHarness, content: str, *hints: str, **fields: Any) -> str:
    memory_id = room.remember(content, **fields).id
    hint(room, *hints)
    return memory_id


def ids(answer: Any) -> list[str]:
    return [row.id for row in answer.rows]


def sources(answer: Any) -> list[str]:
    return [row.source for row in answer.rows]


def strengths(room: PipelineHarness, query: str) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:
    """What the content says, what the hints say, and what recall makes of both, by row."""
    with room.reader.open_snapshot() as view:
        room.reader.sync(view)
        allowed = room.reader.allowed_rows(view, ReadScope(), Filters())
        content = room.reader.keyword.search(view, query, allowed, pool=100)
        room.reader.hints.sync(view)
        seqs, worth = room.reader.hints.search(view, query, allowed, pool=100)
        merged = room.reader.hints.merge_into(view, query, allowed, content, pool=100)
    return (
        dict(zip(content.seqs.tolist(), content.strengths.tolist(), strict=True)),
        dict(zip(seqs.tolist(), worth.tolist(), strict=True)),
        dict(zip(merged.seqs.tolist(), merged.strengths.tolist(), strict=True)),
    )


def test_a_memory_is_found_by_a_question_that_shares_no_word_with_it(room: PipelineHarness) -> None:
    hint_only(room, "Noor prefers four spaces", "What indentation width is wanted?")
    port = hint_only(room, "5433 it is", "Which port does the staging database use?")
    found = room.recall("staging port", hints=True, min_score=0.1)
    assert (ids(found), sources(found), found.method) == ([port], ["hint"], "keyword")
    assert ids(room.recall("staging port")) == []


def test_a_hint_beside_a_vector_is_hybrid(room: PipelineHarness) -> None:
    memory = hint_only(room, "5433 it is", "Which port does staging use?", vector=[1.0])
    found = room.recall("staging port", vector=[1.0], hints=True)
    assert (ids(found), sources(found)) == ([memory], ["hybrid"])


def test_a_store_without_hints_is_not_searched_for_any(room: PipelineHarness) -> None:
    room.remember("a staging port")
    stages = [stage.name for stage in room.recall("port", hints=True).timings]
    assert stages == ["admit", "memory_fts", "fusion", "priors", "context", "final_rank"]
    hint(room, "Which port?")
    stages = [stage.name for stage in room.recall("port", hints=True).timings]
    assert stages == ["admit", "memory_fts", "hint_fts", "fusion", "priors", "context", "final_rank"]


@pytest.mark.parametrize("seed", range(12))
def test_no_hint_makes_a_memory_stronger_than_the_hint_itself_or_adds_to_its_content(
    room: PipelineHarness, seed: int
) -> None:
    rng = random.Random(seed)

    def text(least: int = 1) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(least, 8)))

    for number in range(30):
        questions = {text() for _ in range(rng.randint(1, 4))}
        hint_only(room, f"{text()} {number}", *questions)
    for _ in range(10):
        content, hints, merged = strengths(room, text())
        expected = {row: max(content.get(row, 0.0), hints.get(row, 0.0)) for row in content | hints}
        assert merged == pytest.approx(expected)


def test_a_matching_hint_does_not_add_to_matching_content(
    room: PipelineHarness,
) -> None:
    asked_about = hint_only(room, "the staging port is open", "the staging port is open")
    plain = hint_only(room, "the staging port is shut", "nothing of the kind")
    found = room.recall("staging port", hints=True)
    assert ids(found) == [plain, asked_about], "equal scores, so the newer one comes first"
    assert found.rows[0].score == found.rows[1].score


def test_a_memory_scores_as_its_best_hint_and_not_as_their_sum(room: PipelineHarness) -> None:
    hint_only(room, "many", *(f"about the port {word}" for word in WORDS[1:]))
    hint_only(room, "one", "port about the oven")
    _, hints, _ = strengths(room, "port")
    many, one = hints.values()
    assert many == pytest.approx(one)


def test_hints_match_only_for_agents_that_may_read_the_memory(room: PipelineHarness) -> None:
    room.connection.execute(
        "INSERT INTO agents (id, name, read_policy, created_at, updated_at) VALUES ('alice', 'a', 'isolated', '', '')"
    )
    hint_only(room, "mine", "Which port?", agent_id="default", visibility="private")
    alices = hint_only(room, "hers", "Which port?", agent_id="alice", visibility="private")
    scoped = hint_only(room, "elsewhere", "Which port?", scope="room")
    project = hint_only(room, "of a project", "Which port?", project="p", type="rule", tags=("red",))
    assert ids(room.recall("port", hints=True, read=ReadScope("alice"))) == [alices]
    assert ids(room.recall("port", hints=True, read=ReadScope("default", "room"))) == [scoped]
    for filters in (Filters(project="p"), Filters(type="rule"), Filters(tags=("red",))):
        assert ids(room.recall("port", hints=True, filters=filters)) == [project]


def test_hints_of_a_forgotten_or_changed_memory_are_deleted(room: PipelineHarness) -> None:
    gone = hint_only(room, "gone", "Which port?")
    erased = hint_only(room, "erased", "Which port?")
    edited = hint_only(room, "old", "Which port?")
    kept = hint_only(room, "kept", "Which port?")
    assert len(ids(room.recall("port", hints=True))) == 4
    room.ask(ForgetMemory(id=gone, reason="r", principal=ME))
    room.ask(ForgetMany(targets=(ForgetTarget(erased),), reason="r", principal=ME, hard=True))
    room.ask(ModifyMemory(MemoryPatch(id=edited, reason="r", content="new"), ME))
    assert ids(room.recall("port", hints=True)) == [kept]


def test_new_hints_of_a_memory_replace_the_old_ones(room: PipelineHarness) -> None:
    memory = hint_only(room, "5433", "Which port?")
    assert ids(room.recall("port", hints=True)) == [memory]
    room.ask(ModifyMemory(MemoryPatch(id=memory, reason="r", content="5434"), ME))
    hint(room, "Which harbour?")
    assert ids(room.recall("port", hints=True)) == []
    assert ids(room.recall("harbour", hints=True)) == [memory]


def test_hints_without_spaces_are_found(room: PipelineHarness) -> None:
    memory = hint_only(room, "5433", "データベースのポートは")
    assert ids(room.recall("ポート", hints=True)) == [memory]


def test_a_word_in_too_many_hints_is_searched_in_the_content_only(
    room: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints_leg, "TERM_AT_LEAST", 3)
    for number in range(6):
        hint_only(room, f"row {number}", f"what of user {number}?")
    rare = hint_only(room, "the answer", "user and oven?")
    for _ in range(2):
        assert ids(room.recall("user oven", hints=True)) == [rare]
        assert ids(room.recall("user", hints=True)) == []


def test_the_best_results_are_reranked_by_their_vectors(room: PipelineHarness) -> None:
    strong = room.remember("port port staging", vector=[0.1, 1.0]).id
    alike = room.remember("port of call", vector=[1.0]).id
    question = {"vector": [1.0], "alpha": 0.05}
    assert ids(room.recall("port staging", **question)) == [strong, alike]
    reranked = room.recall("port staging", rerank_top=20, **question)
    first = {row.id: row.score for row in room.recall("port staging", **question).rows}
    cosines = {strong: 0.1 / np.hypot(0.1, 1.0), alike: 1.0}
    for row in reranked.rows:
        assert row.score == pytest.approx(0.7 * first[row.id] + 0.3 * cosines[row.id], abs=1e-5)


def test_an_exact_identifier_stays_first_after_reranking(room: PipelineHarness) -> None:
    exact = room.remember("fixed in KA-6", vector=[0.0, 1.0]).id
    for number in range(5):
        room.remember(f"KA fixed 6 times {number}", vector=[1.0, number / 10])
    assert ids(room.recall("KA-6", vector=[1.0], rerank_top=20))[0] == exact


HINTED = (
    ("The airship shed stands at Lakehurst", "hangar location question", "hangar location question"),
    ("5433 it is", "Which port does the staging database use?", "which port has the staging database?"),
    ("Noor prefers four spaces", "What indentation width is wanted?", "what indentation width is wanted"),
    ("Petersen kümmert sich darum", "Wer pflegt den Fahrplan der Fähre?", "wer pflegt den Fahrplan der Fähre?"),
    ("Ask Marisol on Fridays", "¿Quién calcula la nómina del taller?", "¿quién calcula la nómina?"),
    ("王工每周五", "图书馆的备份脚本由谁运行", "图书馆的备份脚本由谁运行"),
    ("Blue folder, second shelf", "Where are the lease contracts of the garage?", "lease contracts of the garage"),
    ("It restarts by itself", "Why does the crawler stop at night?", "why does the crawler stop at night?"),
)
UNHINTED = (
    "latest score of the football world cup",
    "which colour has the save button?",
    "the garage needs a new door and a lamp",
    "wie hoch ist der Turm in Paris?",
    "¿quién ganó el partido de ayer?",
    "why does the printer print at noon?",
    "port of Rotterdam and its cranes",
    "会议室的钥匙在哪里",
)


def test_a_stored_hint_that_answers_makes_its_memory_relevant(room: PipelineHarness) -> None:
    stored = [hint_only(room, content, question) for content, question, _ in HINTED]
    for memory, (_, _, query) in zip(stored, HINTED, strict=True):
        first, *others = room.recall(query, hints=True).rows
        assert (first.id, first.relevance >= 0.5) == (memory, True), query
        assert [row.content for row in others if row.relevance >= 0.5] == [], query
        assert ids(room.recall(query, hints=True, min_relevance=0.5)) == [memory]


def test_a_hint_that_shares_only_some_words_makes_no_memory_relevant(room: PipelineHarness) -> None:
    for content, question, _ in HINTED:
        hint_only(room, content, question)
    found = {query: ids(room.recall(query, hints=True, min_relevance=0.5)) for query in UNHINTED}
    assert [query for query, rows in found.items() if rows] == []


def test_the_stronger_of_content_and_hint_is_the_relevance(room: PipelineHarness) -> None:
    room.remember("The staging database listens on port 5433")
    hint(room, "Who broke the kitchen oven?")
    without = room.recall("staging database port").rows[0].relevance
    assert room.recall("staging database port", hints=True).rows[0].relevance == without
    assert room.recall("who broke the kitchen oven?", hints=True).rows[0].relevance >= 0.5
