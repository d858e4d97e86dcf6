"""The caches of recall are bounded and follow changes of read policies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import GetCommonWords
from signet_actors.searcher import postings
from signet_actors.searcher.recall import common_words
from tests.support.store_room import StoreRoom, connection_of


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    room = StoreRoom(tmp_path)
    yield room
    room.close()


def test_words_without_rows_do_not_fill_the_cache(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_CACHED_LISTS", 19)
    room.remember("a single memory")
    for number in range(50):
        room.recall(f"absentee{number}x")
    assert len(room.reader.postings._cache) < 20


def test_an_idle_searcher_releases_its_pages_and_answers_as_before(room: StoreRoom) -> None:
    for number in range(200):
        room.remember(f"falcon note {number} " + "of some length " * 20)
    while not room.reader.catch_up():
        pass
    before = [row.id for row in room.recall("falcon 77").rows]
    kept_bytes, _ = connection_of(room.reader.engine).status(apsw.SQLITE_DBSTATUS_CACHE_USED)
    room.reader.drop_cached_pages()
    left_bytes, _ = connection_of(room.reader.engine).status(apsw.SQLITE_DBSTATUS_CACHE_USED)
    assert left_bytes < kept_bytes / 4
    assert [row.id for row in room.recall("falcon 77").rows] == before


def test_an_agent_with_a_changed_group_does_not_get_the_common_words_of_the_old_one(room: StoreRoom) -> None:
    for number in range(120):
        room.remember(f"falcon note {number}", agent_id="ann", visibility="global")
        room.remember(f"heron note {number}", agent_id="bob", visibility="global")
    insert = (
        "INSERT OR REPLACE INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
        " VALUES (?1, ?1, 'group', ?2, '', '')"
    )
    for agent, group in (("ann", "birds of prey"), ("bob", "waders"), ("eve", "birds of prey")):
        room.connection.execute(insert, (agent, group))

    def words() -> list[str]:
        with room.reader.open_snapshot() as view:
            return common_words(room.reader, view, GetCommonWords(ReadScope(agent_id="eve"))).words

    assert "falcon" in words()
    room.connection.execute("UPDATE agents SET policy_group = 'waders' WHERE id = 'eve'")
    assert "falcon" not in words()
    assert "heron" in words()
