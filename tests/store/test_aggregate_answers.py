"""Answers of aggregate recalls in the store: who may read them, and that none outlives what it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.features.aggregate_recall.api import AnswerSaved, AnswerSource, SaveAnswer
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    PurgeStep,
    RecoverMemory,
)
from tests.support.pipeline_harness import PipelineHarness, add, configured

LATER = "2100-01-01T00:00:00.000Z"


@pytest.fixture
def room(tmp_path: Path) -> Any:
    room = PipelineHarness(tmp_path, config=configured(hints=True))
    yield room
    room.close()


def save(
    room: PipelineHarness,
    *sources: Any,
    text: str = "The answer",
    key: str | None = None,
    version: int = 1,
    agent: str = "default",
    **read: Any,
) -> AnswerSaved:
    made_from = tuple(AnswerSource(source.id, version, cited=not at) for at, source in enumerate(sources))
    memory = NewMemory(text, "fact", 0.5, agent_id=agent, idempotency_key=key or text)
    command = SaveAnswer(
        memory=memory, sources=made_from, read=ReadScope(agent, **read), principal=Principal(), made_by={}
    )
    return room.ask(command).read(AnswerSaved)  # type: ignore[no-any-return]


def column(room: PipelineHarness, memory_id: str | None, name: str) -> Any:
    return room.value(f"SELECT {name} FROM memories WHERE id = '{memory_id}'")


def forget(room: PipelineHarness, memory: Any) -> Any:
    return room.ask(ForgetMemory(memory.id, "x", Principal()))


def recover(room: PipelineHarness, memory_id: str | None) -> Any:
    return room.ask(RecoverMemory(memory_id or "", "x", Principal()))


@pytest.mark.parametrize(
    ("fields", "read", "expected"),
    [
        ([{}, {}], {}, ("global", None, None)),
        ([{}, {"visibility": "private"}], {}, ("private", None, None)),
        ([{"project": "/p"}, {"project": "/p"}], {}, ("global", "/p", None)),
        ([{"project": "/p"}, {"project": "p"}], {}, ("global", None, None)),
        ([{"project": "/p"}, {}], {}, ("global", None, None)),
        ([{"scope": "s"}, {"scope": "s"}], {"scope": "s"}, ("global", None, "s")),
    ],
)
def test_who_may_read_an_answer_follows_from_its_sources(
    room: PipelineHarness, fields: list[dict[str, Any]], read: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    sources = [room.remember(f"source {number}", **each) for number, each in enumerate(fields)]
    saved = save(room, *sources, **read)
    assert tuple(column(room, saved.id, name) for name in ("visibility", "project", "scope")) == expected
    assert column(room, saved.id, "who") == "aggregate-recall"
    assert saved.source_ids == [sources[0].id]


def test_only_a_token_for_the_memories_of_one_user_names_this_user(room: PipelineHarness) -> None:
    sources = [room.remember(f"source {number}", who="ada") for number in range(2)]
    assert column(room, save(room, *sources).id, "who") == "aggregate-recall"
    assert column(room, save(room, *sources, text="other", user="ada").id, "who") == "ada"


@pytest.mark.parametrize(
    "read", [{"agent": "alone"}, {"scope": "s"}, {"project": "/other"}, {"user": "ada"}, {"version": 2}]
)
def test_nothing_is_saved_unless_every_source_is_what_the_model_was_shown(
    room: PipelineHarness, read: dict[str, Any]
) -> None:
    sources = [room.remember(f"source {number}", project="/p", visibility="private") for number in range(2)]
    assert save(room, *sources, **read) == AnswerSaved()
    forget(room, sources[1])
    assert save(room, *sources) == save(room) == AnswerSaved()
    assert room.value("SELECT count(*) FROM aggregate_sources") == 0


def test_an_answer_that_two_requests_gave_is_forgotten_with_a_source_of_either(room: PipelineHarness) -> None:
    one, two = room.remember("one"), room.remember("two")
    saved, again = save(room, one, key="a"), save(room, two, key="b")
    assert (again.id, again.deduped) == (saved.id, True)
    forget(room, two)
    assert column(room, saved.id, "is_deleted") == 1


def test_an_answer_in_the_words_of_a_memory_is_that_memory(room: PipelineHarness) -> None:
    one, two = room.remember("one"), room.remember("two")
    saved = save(room, one, two, text="two")
    assert (saved.id, saved.deduped) == (two.id, True)
    forget(room, one)
    assert column(room, two.id, "is_deleted") == 0


def test_a_memory_with_the_words_of_an_answer_takes_its_place(room: PipelineHarness) -> None:
    source = room.remember("one")
    saved = save(room, source)
    own = room.remember("The answer")
    assert (own.deduped, own.id != saved.id, column(room, saved.id, "is_deleted")) == (False, True, 1)
    assert save(room, source).id == own.id, "which then answers"


@pytest.mark.parametrize("way", ["a fact", "an edit", "a recovery"])
def test_words_that_a_memory_gets_otherwise_take_the_place_of_an_answer(room: PipelineHarness, way: str) -> None:
    source = room.remember("one")
    other = room.remember("The answer" if way == "a recovery" else "a note of which something is made")
    forget(room, other) if way == "a recovery" else None
    saved = save(room, source)
    assert saved.id != other.id
    if way == "a fact":
        job = next(job for job in room.take_all() if job.memory_id == other.id)
        (applied,) = room.report(job, add("The answer")).results
        assert (applied.outcome, applied.memory_id != saved.id) == ("created", True)
    elif way == "an edit":
        patch = MemoryPatch(other.id, "x", content="The answer")
        assert room.ask(ModifyMemory(patch, Principal())).status == "updated"
    else:
        assert recover(room, other.id).status == "recovered"
    assert column(room, saved.id, "is_deleted") == 1
    assert room.value("SELECT count(*) FROM memories WHERE content = 'The answer' AND is_deleted = 0") == 1


def test_the_answer_gets_a_vector_and_no_other_job(room: PipelineHarness) -> None:
    saved = save(room, room.remember("one"))
    jobs = room.connection.execute("SELECT job_type FROM memory_jobs WHERE memory_id = ?", (saved.id,)).fetchall()
    assert [kind for (kind,) in jobs] in ([], ["embed"])
    assert column(room, saved.id, "extraction_status") == "none"


@pytest.mark.parametrize("hard", [False, True])
def test_nothing_of_an_answer_is_left_when_a_source_is_gone(room: PipelineHarness, hard: bool) -> None:
    one, two = room.remember("one"), room.remember("two")
    saved = save(room, one, two)
    other = save(room, two, text="another answer")
    if hard:
        room.ask(ForgetMany((ForgetTarget(one.id),), "x", Principal(), hard=True))
    else:
        forget(room, one)
        assert column(room, saved.id, "is_deleted") == 1
        for step in ("embeddings", "tombstones"):
            room.ask(PurgeStep(step=step, cutoff=LATER, limit=1))
    assert column(room, saved.id, "count(*)") == 0
    assert room.value("SELECT count(*) FROM memory_history WHERE 'The answer' IN (old_content, new_content)") == 0
    assert room.value("SELECT group_concat(memory_id || source_id) FROM aggregate_sources") == f"{other.id}{two.id}"
    assert column(room, other.id, "is_deleted") == 0


def test_an_answer_is_live_only_while_all_its_sources_are(room: PipelineHarness) -> None:
    one, two = room.remember("one"), room.remember("two")
    saved = save(room, one, two)
    assert forget(room, one).facts == [saved.id]
    assert forget(room, two).facts == []
    assert recover(room, saved.id).status == "source_missing"
    assert recover(room, one.id).facts == []
    assert recover(room, two.id).facts == [saved.id]
    room.ask(ForgetMemory(saved.id or "", "x", Principal()))
    forget(room, one)
    assert recover(room, one.id).facts == [], "it was forgotten for itself"
    assert recover(room, saved.id).status == "recovered"


def test_nothing_is_stored_that_is_made_of_a_memory_of_another_agent(room: PipelineHarness) -> None:
    saved = save(room, room.remember("mine"), room.remember("theirs", agent_id="wide"))
    assert (saved.id, saved.foreign) == (None, True)
    assert room.value("SELECT count(*) FROM memories") == 2
