"""What the pipeline made of a memory is forgotten and recovered with it, unless somebody relies on it.

Source: docs/pipeline.md "Forgetting"; docs/concepts.md "What happens later".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    Forgotten,
    MemoryPatch,
    ModifyMemory,
    RecoverMemory,
)
from tests.support.pipeline_harness import PipelineHarness, add, configured
from tests.support.store_room import kept_sound

ME = Principal(changed_by="tester")
SOURCE = "Maria Lopez earns 84000 euros a year. She works as a designer in Hamburg"
FACTS = ("Maria Lopez earns 84000 euros a year", "Maria Lopez works as a designer in Hamburg")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path, config=configured(allow_update_delete=True))) as room:
        yield room


def extracted(room: PipelineHarness) -> tuple[str, str, str]:
    source = room.remember(SOURCE)
    made = [one.memory_id for one in room.extract(*map(add, FACTS))]
    assert None not in made
    return (source.id, *made)  # type: ignore[return-value]


def forget(room: PipelineHarness, memory_id: str, **fields: bool) -> Forgotten:
    done: Forgotten = room.ask(ForgetMemory(id=memory_id, reason="wrong", principal=ME, **fields))
    return done


def live(room: PipelineHarness) -> list[str]:
    return [row[0] for row in room.connection.execute("SELECT id FROM memories WHERE is_deleted = 0 ORDER BY seq")]


def test_its_facts_are_forgotten_and_recovered_with_a_memory_as_often_as_one_likes(room: PipelineHarness) -> None:
    source, *facts = extracted(room)
    other = room.remember("The printer is on the third floor").id
    for _ in range(3):
        assert forget(room, source).facts == facts
        assert live(room) == [other]
        assert room.ask(RecoverMemory(id=source, reason="right", principal=ME)).facts == facts
        assert live(room) == [source, *facts, other]


def test_a_fact_that_is_pinned_changed_or_remembered_again_stays(room: PipelineHarness) -> None:
    source, one, two = extracted(room)
    room.ask(ModifyMemory(MemoryPatch(id=one, reason="r", pinned=True), ME))
    assert room.remember(FACTS[1]).id == two
    assert forget(room, source).facts == []
    room.ask(RecoverMemory(id=source, reason="right", principal=ME))
    room.ask(ModifyMemory(MemoryPatch(id=one, reason="r", pinned=False), ME))
    assert forget(room, source).facts == []
    assert live(room) == [one, two]


def test_a_fact_that_was_forgotten_before_its_source_stays_forgotten(room: PipelineHarness) -> None:
    source, one, two = extracted(room)
    assert forget(room, one).facts == []
    room.clock.advance(1000)
    assert forget(room, source).facts == [two]
    assert room.ask(RecoverMemory(id=source, reason="right", principal=ME)).facts == [two]
    assert live(room) == [source, two]


def test_a_batch_reports_each_memory_once_whichever_comes_first(room: PipelineHarness) -> None:
    source, one, two = extracted(room)
    for targets in ((source, one), (one, source)):
        command = ForgetMany(tuple(map(ForgetTarget, targets)), "wrong", ME)
        results = room.ask(command).results
        assert [(each.id, each.status) for each in results] == [(each, "deleted") for each in targets]
        assert [fact for each in results for fact in each.facts] == [two]
        for memory_id in (source, one):
            room.ask(RecoverMemory(id=memory_id, reason="right", principal=ME))
        assert sorted(live(room)) == sorted((source, one, two))


def test_facts_are_erased_with_a_memory_of_the_version_that_was_shown(room: PipelineHarness) -> None:
    source, *facts = extracted(room)
    stale = ForgetMany((ForgetTarget(source, 7),), "wrong", ME, hard=True)
    assert [each.status for each in room.ask(stale).results] == ["version_conflict"]
    assert live(room) == [source, *facts]
    (done,) = room.ask(ForgetMany((ForgetTarget(source, 1),), "wrong", ME, hard=True)).results
    assert (done.status, done.facts) == ("deleted", facts)
    assert room.connection.execute("SELECT count(*) FROM memories").fetchall() == [(0,)]


def test_of_a_summary_the_facts_that_it_says_are_forgotten_with_it(room: PipelineHarness) -> None:
    text = "Maria Lopez earns 84000 euros a year, and the printer works"
    source = room.remember(text, type="session_summary").id
    one, two = (result.memory_id for result in room.extract(*map(add, FACTS)))
    assert forget(room, source).facts == [one]
    assert live(room) == [two]


@pytest.mark.parametrize("hard", [False, True])
def test_a_fact_that_a_summary_states_in_part_stays(room: PipelineHarness, hard: bool) -> None:
    text = "We fixed the printer (nightly backups run at 02:00), and the login works."
    source = room.remember(text, type="session_summary").id
    whole = "The nightly backups run at 02:00 with restic to the NAS in the cellar"
    (fact,) = (result.memory_id for result in room.extract(add(whole)))
    if hard:
        (done,) = room.ask(ForgetMany((ForgetTarget(source, 1),), "wrong", ME, hard=True)).results
        assert (done.status, done.facts) == ("deleted", [])
    else:
        assert forget(room, source).facts == []
    assert live(room) == [fact]
