"""Memories that say the same are found by text and by vector, and merged into one, each pair as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import ErrorCode
from signet_actors.features.duplicates import reads
from signet_actors.features.duplicates.api import (
    STATS,
    CompareVectors,
    DedupStatsReply,
    FindExact,
    FoundDuplicates,
    FoundPair,
    MergePair,
    NoteCompared,
    PairMerged,
)
from signet_actors.features.repairs.api import EnterRepair
from signet_actors.features.repairs.rules import DEDUPLICATE
from signet_actors.operations.structured import read_structured
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, Caller, Principal, message_of
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, RecoverMemory
from signet_actors.searcher.queries.duplicates import compare
from tests.support.pipeline_harness import PipelineHarness, refused
from tests.support.store_room import kept_sound

ME = Principal("tester")
PORT, REWORDED = "The staging database listens on port 5433", "Our staging database listens on port 5433."


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path)) as room:
        yield room


def near(room: PipelineHarness, text: str, **fields: Any) -> str:
    """Store the text with the vector of all texts about the port."""
    return room.remember(text, vector=fields.pop("vector", [1.0, 0.1]), **fields).id


def found(
    room: PipelineHarness, *, after: int = 0, limit: int = 100, agent: str = "default", threshold: float = 0.92
) -> FoundDuplicates:
    room.reader.catch_up()
    with room.reader.open_snapshot() as view:
        return compare(room.reader, view, CompareVectors(agent, after, threshold, limit)).read(FoundDuplicates)


def pairs(result: FoundDuplicates) -> list[tuple[str, str]]:
    return [(each.pair.kept, each.pair.merged) for each in result.pairs]


def exact(room: PipelineHarness, agent: str = "default") -> FoundDuplicates:
    with room.reader.open_snapshot() as view:
        return reads.find_exact(view, FindExact(agent, 100))


def stats(room: PipelineHarness, agent: str = "default") -> DedupStatsReply:
    with room.reader.open_snapshot() as view:
        return reads.stats(view, message_of(STATS)(caller=Caller(agent), request=OwnAgent()))


def merge(room: PipelineHarness, pair: FoundPair, *, agent: str = "default", first: bool = True) -> bool:
    answer = room.ask(MergePair(pair, agent, ME, planned=3, first=first))
    assert isinstance(answer, Answered), answer
    return answer.read(PairMerged).merged


def live(room: PipelineHarness) -> set[str]:
    return {row[0] for row in room.connection.execute("SELECT id FROM memories WHERE is_deleted = 0")}


def twice(room: PipelineHarness, text: str, **fields: Any) -> list[str]:
    """Store the text twice, as a store can have it whose unique index was lost."""
    room.connection.execute("DROP INDEX IF EXISTS idx_memories_content_hash_unique")
    first = room.remember(text, **fields).id
    second = room.remember(f"{text} again", **fields).id
    room.connection.execute(
        "UPDATE memories SET content_hash = (SELECT o.content_hash FROM memories o WHERE o.id = ?) WHERE id = ?",
        (first, second),
    )
    return [first, second]


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[PipelineHarness]:
    """A store without the index that keeps texts unique."""
    room = PipelineHarness(tmp_path)
    yield room
    room.close()


def test_near_texts_are_merged_with_their_tags_and_a_history(room: PipelineHarness) -> None:
    kept = near(room, REWORDED, tags=("db", "port"), importance=0.7)
    gone = near(room, PORT, tags=("port", "ops"), importance=0.6)
    other = near(room, "Anna prefers tea", vector=[0.0, 1.0])
    (pair,) = found(room).pairs
    assert (pair.pair.kept, pair.pair.merged, pair.pair.kept_content) == (kept, gone, REWORDED)
    assert merge(room, pair)
    assert live(room) == {kept, other}
    assert room.memory(kept, "tags, importance, version") == ('["db","port","ops"]', 0.7, 2)
    event = room.events(kept)[-1]
    assert (event["event"], event["metadata"]["mergedFrom"], event["metadata"]["tags"]) == ("merged", gone, ["ops"])
    assert [one["event"] for one in room.events(gone)] == ["created", "deleted"]
    (recorded,) = room.events("system")
    assert (recorded["reason"], recorded["metadata"]["affected"]) == (DEDUPLICATE, 3)
    assert refused(room.ask(EnterRepair(action=DEDUPLICATE, principal=ME))).code is ErrorCode.RATE_LIMITED
    room.ask(RecoverMemory(id=gone, reason="it was another thing", principal=ME))
    assert live(room) == {kept, gone, other}
    assert found(room).pairs == [], "who recovers it wants both"


def test_equal_texts_are_merged_into_the_more_important_one(broken: PipelineHarness) -> None:
    first, second = twice(broken, PORT)
    broken.connection.execute("UPDATE memories SET importance = 0.9 WHERE id = ?", (second,))
    assert (stats(broken).exact_clusters, stats(broken).exact_excess, stats(broken).total_active) == (1, 1, 2)
    (pair,) = exact(broken).pairs
    assert (pair.pair.kept, pair.pair.merged, pair.pair.similarity) == (second, first, 1.0)
    assert merge(broken, pair)
    assert (stats(broken).exact_excess, live(broken)) == (0, {second})


def test_nothing_is_merged_with_a_pinned_memory(broken: PipelineHarness) -> None:
    ids = twice(broken, PORT)
    broken.connection.execute("UPDATE memories SET pinned = 1 WHERE id = ?", (ids[0],))
    assert (exact(broken).pairs, stats(broken).exact_excess) == ([], 0)


def test_a_pinned_memory_is_left_alone(room: PipelineHarness) -> None:
    near(room, REWORDED, pinned=True)
    near(room, PORT)
    assert found(room).pairs == []


@pytest.mark.parametrize(
    "other",
    [
        {"project": "/srv/other"},
        {"scope": "staging"},
        {"visibility": "private"},
        {"agent_id": "cleo"},
        {"source_type": "markdown"},
        {"source_type": "chunk", "source_id": "g"},
        {"type": "session_summary"},
        {"type": "preference"},
        {"who": "zoe"},
    ],
    ids=str,
)
def test_memories_of_different_places_or_of_a_text_are_not_compared(
    room: PipelineHarness, other: dict[str, Any]
) -> None:
    near(room, REWORDED)
    near(room, PORT, **other)
    assert (found(room).pairs, found(room, agent="cleo").pairs) == ([], [])


def test_another_agents_memories_are_neither_counted_nor_found(broken: PipelineHarness) -> None:
    twice(broken, PORT, agent_id="cleo", visibility="private")
    assert (exact(broken).pairs, stats(broken).total_active, stats(broken).uncompared) == ([], 0, 0)
    (pair,) = exact(broken, "cleo").pairs
    assert not merge(broken, pair, agent="default")
    assert merge(broken, pair, agent="cleo")


def test_texts_below_the_threshold_or_of_another_meaning_stay(room: PipelineHarness) -> None:
    near(room, REWORDED)
    near(room, PORT, vector=[1.0, 0.6])
    near(room, "The staging database listens on port 9999")
    assert found(room).pairs == []
    assert len(found(room, threshold=0.5).pairs) == 1


def test_a_chain_of_duplicates_becomes_one_memory(room: PipelineHarness) -> None:
    first = near(room, "Staging database listens on port 5433", tags=("a",))
    near(room, REWORDED, tags=("b",))
    near(room, PORT, tags=("c",))
    result = found(room)
    assert len(result.pairs) == 2
    assert [merge(room, pair, first=at == 0) for at, pair in enumerate(result.pairs)] == [True, True]
    assert live(room) == {first}
    assert room.value("SELECT tags FROM memories WHERE id = ?", first) == '["a","b","c"]'
    assert len(room.events("system")) == 1


def test_a_comparison_goes_on_where_the_last_one_ended(room: PipelineHarness) -> None:
    near(room, REWORDED)
    near(room, PORT)
    near(room, "The editor of Anna is dark", vector=[0.0, 1.0])
    near(room, "Editor of Anna is dark", vector=[0.0, 1.0])
    first = found(room, limit=1)
    assert (len(first.pairs), first.done) == (1, False)
    rest = found(room, after=first.compared)
    assert (len(rest.pairs), rest.done) == (1, True)
    room.ask(NoteCompared("default", rest.compared))
    assert (exact(room).compared, stats(room).uncompared, exact(room, "cleo").compared) == (rest.compared, 0, 0)
    assert found(room, after=rest.compared).pairs == []
    near(room, "Staging database listens on port 5433")
    assert stats(room).uncompared == 1
    assert len(found(room, after=rest.compared).pairs) == 1


@pytest.mark.parametrize("change", ["edit", "forget", "pin", "forget the other", "move"])
def test_what_has_changed_since_it_was_found_is_not_merged(room: PipelineHarness, change: str) -> None:
    kept, gone = near(room, REWORDED), near(room, PORT)
    (pair,) = found(room).pairs
    if change == "edit":
        room.ask(ModifyMemory(MemoryPatch(gone, "r", content="The database moved"), ME))
    elif change == "pin":
        room.ask(ModifyMemory(MemoryPatch(gone, "r", pinned=True), ME))
    elif change == "move":
        room.connection.execute("UPDATE memories SET visibility = 'private' WHERE id = ?", (gone,))
    else:
        room.ask(ForgetMemory(id=gone if change == "forget" else kept, reason="r", principal=ME))
    before = live(room)
    assert not merge(room, pair)
    assert (live(room), room.events("system")) == (before, [])


def test_a_merge_that_fails_leaves_nothing_of_it(room: PipelineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, gone = near(room, REWORDED, tags=("a",)), near(room, PORT, tags=("b",))
    (pair,) = found(room).pairs

    def fail(*_: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr("signet_actors.writer.commands.duplicates.record", fail)
        refused(room.ask(MergePair(pair, "default", ME, planned=1, first=True)))
    assert live(room) == {kept, gone}
    assert room.memory(kept, "tags, version") == ('["a"]', 1)
    assert [event["event"] for event in room.events(kept)] == ["created"]
    assert merge(room, pair)


def test_what_only_the_merged_memory_stated_counts_no_more_until_it_is_recovered(room: PipelineHarness) -> None:
    near(room, REWORDED)
    stated = read_structured({"entities": [{"source": "staging", "relationship": "runs_on", "target": "Linux"}]})
    gone = near(room, PORT, structured=stated)
    mentions = "SELECT sum(mentions) FROM entities"
    assert room.value(mentions) == 2
    (pair,) = found(room).pairs
    assert merge(room, pair)
    assert room.value(mentions) == 0
    room.ask(RecoverMemory(id=gone, reason=None, principal=ME))
    assert room.value(mentions) == 2
