"""What was asked and given is kept for each agent, and leaves no word of what is erased."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from signet_actors.config.schema import RosterEntry
from signet_actors.domain.timestamps import iso
from signet_actors.errors import InvalidRequest
from signet_actors.features.diagnostics.api import HealthFigures, MeasureHealth
from signet_actors.features.diagnostics.reads import measured
from signet_actors.features.searches.api import (
    LIST,
    ConsideredMemory,
    FindSessions,
    ListSearchesReply,
    ListSearchesRequest,
    Outcome,
    RecordSearches,
    Search,
)
from signet_actors.features.searches.reads import _SESSIONS
from signet_actors.features.searches.reads import listed as read_listed
from signet_actors.features.searches.reads import sessions as read_sessions
from signet_actors.features.searches.rules import GIVEN, WORDS
from signet_actors.operations.sessions import ListSessionsRequest
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.transcripts import CapturedTurn, ForgetTranscript, StoreTurns
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    PurgeStep,
    RecoverMemory,
)
from tests.support.store_room import StoreRoom

AT = "2026-01-01T00:00:00.000Z"
DAY_MS = 86_400_000


def seq_of(room: StoreRoom, memory_id: str) -> int:
    return int(room.value("SELECT seq FROM memories WHERE id = ?", memory_id))


def considered(room: StoreRoom, memory_id: str, outcome: Any = "given", relevance: float | None = 0.75) -> Any:
    return ConsideredMemory(seq_of(room, memory_id), 1, relevance, outcome)


def record(room: StoreRoom, number: int, **fields: Any) -> None:
    fields.setdefault("kind", "prompt")
    fields.setdefault("agent_id", "default")
    fields.setdefault("created_at", AT)
    room.ask(RecordSearches(searches=(Search(id=f"search-{number}", **fields),)))


def listed(room: StoreRoom, agent: str = "default", **wanted: Any) -> ListSearchesReply:
    asked = message_of(LIST)(caller=Caller(agent), request=ListSearchesRequest(**wanted))
    with room.reader.open_snapshot() as snapshot:
        return read_listed(snapshot, asked)


def captured(room: StoreRoom, session: str) -> None:
    turn = CapturedTurn(b"k" * 16, 0, "user", "which port has staging?")
    room.ask(StoreTurns(session, "default", "json", (turn,)))


def erase(room: StoreRoom, memory_id: str) -> None:
    room.ask(ForgetMany((ForgetTarget(memory_id),), "r", Principal(), hard=True))


def test_a_prompt_is_listed_with_what_became_of_each_memory_and_what_it_says_now(room: StoreRoom) -> None:
    one, two = room.remember("Staging listens on port 5433").id, room.remember("Production listens on 5432").id
    record(
        room,
        1,
        session_key="s",
        context_epoch=0,
        project="/shop",
        harness="codex",
        prompt="which port?",
        given=1,
        characters=80,
        duration_ms=7.25,
        memories=(considered(room, one), considered(room, two, "received", None)),
    )
    (row,) = listed(room).searches
    assert (row.at, row.kind, row.session_key, row.number, row.project, row.harness) == (
        *(AT, "prompt", "s", 1),
        *("/shop", "codex"),
    )
    assert (row.prompt, row.given, row.characters, row.ms, row.skipped) == ("which port?", 1, 80, 7.25, None)
    assert [(each.id, each.given, each.outcome, each.relevance) for each in row.memories] == [
        (one, True, "given", 0.75),
        (two, False, "received", None),
    ]
    assert row.memories[0].content == "Staging listens on port 5433"
    assert "already had it" in row.memories[1].why


def test_a_memory_that_was_changed_or_forgotten_since_says_so(room: StoreRoom) -> None:
    one, two = room.remember("Staging listens on port 5433").id, room.remember("Production listens on 5432").id
    record(room, 1, memories=(considered(room, one), considered(room, two)))
    for port in (5434, 5435):
        patch = MemoryPatch(id=one, reason="r", content=f"Staging listens on port {port}")
        room.ask(ModifyMemory(patch=patch, principal=Principal()))
    room.ask(ForgetMemory(id=two, reason="r", principal=Principal()))
    changed, forgotten = listed(room).searches[0].memories
    assert (changed.changed, changed.content) == (True, "Staging listens on port 5435")
    assert changed.content_then == "Staging listens on port 5433"
    assert (forgotten.forgotten, forgotten.content, forgotten.content_then) == (True, None, None)
    about = ConsideredMemory(seq_of(room, one), 2, 0.5, "given")
    record(room, 2, created_at="2030-01-01T00:00:00.000Z", memories=(about,))
    assert listed(room).searches[0].memories[0].content_then == "Staging listens on port 5434"
    room.ask(ForgetMemory(id=one, reason="r", principal=Principal()))
    assert listed(room, session=None).searches[1].memories[0].content_then is None, "it is forgotten"
    assert "5433" not in str(listed(room))


def edit(room: StoreRoom, memory_id: str, **fields: Any) -> None:
    room.ask(ModifyMemory(patch=MemoryPatch(id=memory_id, reason="r", **fields), principal=Principal()))


def then(room: StoreRoom) -> list[str | None]:
    return [row.memories[0].content_then for row in listed(room).searches]


def test_words_that_the_history_no_longer_has_are_not_replaced_by_others(room: StoreRoom) -> None:
    one = room.remember("port 1").id
    record(room, 1, memories=(considered(room, one),))
    room.clock.advance(1000)
    edit(room, one, content="port 2")
    record(room, 2, memories=(ConsideredMemory(seq_of(room, one), 2, 0.5, "given"),))
    room.clock.advance(1000)
    purged_until = iso(room.clock.wall_ms())
    edit(room, one, tags=("harbour",))
    edit(room, one, content="port 3")
    assert then(room) == ["port 2", "port 1"]
    room.ask(PurgeStep(step="history", cutoff=purged_until, limit=100))
    assert then(room) == ["port 2", None]
    room.ask(PurgeStep(step="history", cutoff="2100-01-01T00:00:00.000Z", limit=1))
    assert then(room) == [None, None], "the edit of the tags made a version, too"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(("edit", "tag", "search", "forget and recover", "purge one")), max_size=14))
def test_what_a_memory_said_then_is_what_was_given_or_nothing(steps: list[str]) -> None:
    with TemporaryDirectory() as directory:
        room = StoreRoom(Path(directory))
        one = room.remember("text 0").id
        given_texts: list[str] = []
        is_purged = False
        for number, step in enumerate(steps, 1):
            room.clock.advance(1000)
            if step == "edit":
                edit(room, one, content=f"text {number}")
            elif step == "tag":
                edit(room, one, tags=(f"tag{number}",))
            elif step == "search":
                version, text = room.connection.execute("SELECT content_version, content FROM memories").fetchone()
                about = ConsideredMemory(seq_of(room, one), version, 0.5, "given")
                record(room, number, memories=(about,))
                given_texts.insert(0, text)
            elif step == "purge one":
                room.ask(PurgeStep(step="history", cutoff="2100-01-01T00:00:00.000Z", limit=1))
                is_purged = True
            else:
                room.ask(ForgetMemory(id=one, reason="r", principal=Principal()))
                room.ask(RecoverMemory(id=one, reason="r", principal=Principal()))
        now = room.value("SELECT content FROM memories")
        for told, text in zip(then(room), given_texts, strict=True):
            assert told in {None, text}
            assert (told is None) <= (is_purged or text == now)
        room.close()


def test_each_outcome_has_words() -> None:
    assert set(WORDS) == set(get_args(Outcome)) > GIVEN


def test_a_search_is_stored_once_however_often_it_is_sent(room: StoreRoom) -> None:
    one = room.remember("one").id
    for _ in range(2):
        record(room, 1, memories=(considered(room, one),))
    assert [len(row.memories) for row in listed(room).searches] == [1]


def test_filters_and_pages_return_the_latest_first(room: StoreRoom) -> None:
    for number in range(6):
        record(
            room,
            number,
            session_key="s" if number % 2 else "t",
            kind="recall" if number == 5 else "prompt",
            given=number % 3,
            project="/shop" if number < 2 else None,
            created_at=f"2026-01-0{number + 1}T00:00:00.000Z",
        )
    assert [row.id for row in listed(room, limit=2).searches] == ["search-5", "search-4"]
    page = listed(room, limit=4)
    assert page.next == "2026-01-03T00:00:00.000Z search-2"
    assert [row.id for row in listed(room, limit=4, before=page.next).searches] == ["search-1", "search-0"]
    assert [row.number for row in listed(room, session="s", kind="prompt").searches] == [2, 1]
    assert [row.id for row in listed(room, no_hits=True).searches] == ["search-3", "search-0"]
    assert [row.id for row in listed(room, no_hits=False, project="/shop").searches] == ["search-1"]
    assert [row.id for row in listed(room, since="2026-01-05T00:00:00.000Z").searches] == ["search-5", "search-4"]
    assert listed(room, session="unknown").count == 0
    record(room, 6, session_key="signet-check-1")
    assert [row.id for row in listed(room, checks=False, limit=1).searches] == ["search-5"]
    assert [row.id for row in listed(room, checks=True).searches] == ["search-6"]
    assert listed(room).count == 7


def test_a_page_goes_on_where_its_cursor_was_also_when_that_search_is_deleted(room: StoreRoom) -> None:
    room.sync_roster(RosterEntry(name="cleo"))
    for number in range(4):
        record(room, number, created_at=f"2026-01-0{number + 1}T00:00:00.000Z")
    record(room, 9, agent_id="cleo")
    first = listed(room, limit=2)
    room.ask(PurgeStep(step="session_memories", cutoff="2026-01-01T12:00:00.000Z", limit=10))
    assert [row.id for row in listed(room, before=first.next).searches] == ["search-1"]
    room.ask(PurgeStep(step="session_memories", cutoff="2026-01-04T00:00:00.000Z", limit=10))
    assert listed(room, before=first.next).count == 0
    assert [row.id for row in listed(room, before="2026-01-05T00:00:00.000Z search-8").searches] == ["search-3"]
    assert listed(room, before="search-3").count == 0, "an id alone is a cursor, too"


@pytest.mark.parametrize("cursor", ["", "nothing", "search-9", "not-a-time search-7", "2026-01-05T00:00:00.000Z"])
def test_what_is_no_cursor_is_refused(room: StoreRoom, cursor: str) -> None:
    record(room, 1)
    record(room, 9, agent_id="cleo")
    with pytest.raises(InvalidRequest, match="`next` of a page"):
        listed(room, before=cursor)


def test_an_agent_reads_its_own_searches_and_no_memory_that_it_may_not_read(room: StoreRoom) -> None:
    room.sync_roster(RosterEntry(name="cleo", read_policy="isolated"))
    secret = room.remember("A private note of the default agent", visibility="private").id
    record(room, 1, prompt="asked by default")
    record(room, 2, agent_id="cleo", prompt="asked by cleo", memories=(considered(room, secret),))
    assert [row.prompt for row in listed(room).searches] == ["asked by default"]
    (row,) = listed(room, "cleo").searches
    assert (row.prompt, row.memories) == ("asked by cleo", [])


def kept(room: StoreRoom, agent: str = "default", **wanted: Any) -> list[tuple[str, str, str]]:
    asked = FindSessions(agent_id=agent, request=ListSessionsRequest(state="all", **wanted))
    with room.reader.open_snapshot() as snapshot:
        return [(row.key, row.started_at, row.last_active_at) for row in read_sessions(snapshot, asked).sessions]


def test_sessions_of_which_only_searches_are_kept_are_those_of_the_agent(room: StoreRoom) -> None:
    room.sync_roster(RosterEntry(name="cleo"))
    at = [f"2026-01-0{day}T00:00:00.000Z" for day in range(1, 8)]
    asked = (("default", "b"), ("cleo", "a"), ("cleo", "b"), ("default", "c"), ("default", "b"), ("default", None))
    for number, (agent, session) in enumerate(asked):
        record(room, number, agent_id=agent, session_key=session, created_at=at[number])
    assert kept(room) == [("b", at[0], at[4]), ("c", at[3], at[3])]
    assert kept(room, limit=1) == [("b", at[0], at[4])]
    assert kept(room, before=f"{at[4]} b") == [("c", at[3], at[3])]
    assert kept(room, "cleo") == [("b", at[2], at[2]), ("a", at[1], at[1])]
    assert kept(room, "nobody") == []


def test_the_list_of_sessions_reads_the_first_and_the_last_search_of_each(room: StoreRoom) -> None:
    for number in range(5000):
        room.connection.execute(
            "INSERT INTO searches (id, created_at, kind, agent_id, session_key, given, characters, duration_ms)"
            " VALUES (?, ?, 'prompt', 'default', ?, 0, 0, 0)",
            (f"id-{number}", AT, f"session-{number % 2}"),
        )
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    values = {"agent_id": "default", "check": "-", "project": None, "active": None, "key": "", "limit": 10}
    room.connection.set_progress_handler(count, 100)
    assert len(room.connection.execute(_SESSIONS, values).fetchall()) == 2
    room.connection.set_progress_handler(None)
    assert steps < 50, "of 5,000 rows two of each session are read"


def test_the_words_of_a_session_go_with_its_transcript_and_do_not_come_back(room: StoreRoom) -> None:
    one = room.remember("Staging listens on port 5433").id
    captured(room, "s")
    record(room, 1, session_key="s", prompt="which port?", given=1, memories=(considered(room, one),))
    record(room, 2, session_key="other", prompt="kept")
    room.ask(ForgetTranscript("s", "default", Principal()))
    record(room, 3, session_key="s", prompt="sent before the erasure, stored after it")
    assert {row.id: row.prompt for row in listed(room).searches} == {
        "search-1": None,
        "search-2": "kept",
        "search-3": None,
    }
    assert listed(room, session="s").searches[-1].memories[0].id == one, "what it was given is kept"


def test_the_words_of_a_session_go_with_a_transcript_that_expires(room: StoreRoom) -> None:
    captured(room, "s")
    record(room, 1, session_key="s", prompt="which port?")
    room.ask(PurgeStep(step="transcripts", cutoff="2027-01-01T00:00:00.000Z", limit=10))
    assert listed(room).searches[0].prompt is None


def test_a_session_without_a_transcript_can_be_erased_by_its_key(room: StoreRoom) -> None:
    record(room, 1, session_key="s", prompt="which port?")
    assert room.ask(ForgetTranscript("s", "default", Principal())).found
    record(room, 2, session_key="s", prompt="a later prompt of it")
    assert [row.prompt for row in listed(room).searches] == [None, None]


def test_old_searches_are_deleted_with_their_rows(room: StoreRoom) -> None:
    one = room.remember("one").id
    for number in range(3):
        at = f"2026-01-0{number + 1}T00:00:00.000Z"
        record(room, number, created_at=at, memories=(considered(room, one),))
    step = PurgeStep(step="session_memories", cutoff="2026-01-03T00:00:00.000Z", limit=10)
    assert room.ask(step).count == 2
    assert [row.id for row in listed(room).searches] == ["search-2"]
    assert room.value("SELECT count(*) FROM search_rows") == 1


def test_the_oldest_searches_beyond_the_bound_are_deleted_in_small_steps(room: StoreRoom) -> None:
    one = room.remember("one").id
    search = structs.replace(room.group.config.search, ledger_rows=3)
    room.group.config = structs.replace(room.group.config, search=search)
    for number in range(8):
        record(room, number, memories=(considered(room, one),))
    assert health(room).ledger_rows == 8
    step = PurgeStep(step="session_memories", cutoff="2025-01-01T00:00:00.000Z", limit=5)
    steps = [room.ask(step) for _ in range(4)]
    assert [(done.count, done.more) for done in steps] == [(2, True), (2, True), (1, False), (0, False)]
    assert [row.id for row in listed(room).searches] == ["search-7", "search-6", "search-5"]
    assert room.value("SELECT count(*) FROM search_rows") == 3
    assert health(room).ledger_rows == 3


def test_a_search_with_more_memories_than_a_step_may_delete_goes_in_one(room: StoreRoom) -> None:
    about = tuple(considered(room, room.remember(f"memory {number}").id) for number in range(6))
    for number in range(2):
        record(room, number, memories=about)
    step = PurgeStep(step="session_memories", cutoff="2027-01-01T00:00:00.000Z", limit=3)
    assert [room.ask(step).count for _ in range(3)] == [1, 1, 0]
    assert room.value("SELECT count(*) FROM search_rows") == 0


def test_the_bound_counts_what_is_kept_where_a_clock_was_set_back(room: StoreRoom) -> None:
    search = structs.replace(room.group.config.search, ledger_rows=3)
    room.group.config = structs.replace(room.group.config, search=search)
    days = (5, 1, 1, 1, 5, 5, 5)
    for number, day in enumerate(days):
        record(room, number, created_at=f"2026-01-0{day}T00:00:00.000Z", agent_id="noisy" if number == 6 else "default")
    step = PurgeStep(step="session_memories", cutoff="2026-01-02T00:00:00.000Z", limit=3)
    assert room.ask(step).count == 3, "those of the wrong day"
    assert health(room).ledger_rows == 4
    assert room.ask(step).count == 1, "the bound is over all agents"
    assert health(room).ledger_rows == 3
    assert [row.id for row in listed(room).searches] == ["search-5", "search-4"]
    assert room.ask(step).count == 0


def health(room: StoreRoom) -> HealthFigures:
    with room.reader.open_snapshot() as view:
        return measured(view, MeasureHealth("2026-01-01T00:00:00.000Z"))


NAMES = ("zebra", "quartz", "velvet", "onyx")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.sampled_from(NAMES), st.sampled_from("ab")),
            st.tuples(st.just("ask late"), st.sampled_from(NAMES), st.sampled_from("ab")),
            st.tuples(st.just("erase"), st.sampled_from(NAMES), st.just("")),
            st.tuples(st.just("forget and purge"), st.sampled_from(NAMES), st.just("")),
            st.tuples(st.just("erase session"), st.just(""), st.sampled_from("ab")),
        ),
        max_size=12,
    )
)
def test_what_is_erased_leaves_no_word_whatever_came_before(steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as directory:
        room = StoreRoom(Path(directory))
        ids = {word: room.remember(f"The {word} is on the shelf").id for word in NAMES}
        seqs = {word: seq_of(room, memory_id) for word, memory_id in ids.items()}
        gone: set[str] = set()
        silent: set[str] = set()
        for number, (step, word, session) in enumerate(steps):
            if step == "ask" and word not in gone:
                about = ConsideredMemory(seqs[word], 1, 0.5, "given")
                record(room, number, session_key=session, prompt=f"where is the {word}? {session}", memories=(about,))
            elif step == "ask late":  # the memory may be erased meanwhile
                about = ConsideredMemory(seqs[word], 1, None, "received")
                record(room, number, session_key=session, prompt=f"and the {word}? {session}", memories=(about,))
            elif step == "erase":
                erase(room, ids[word])
                gone.add(word)
            elif step == "forget and purge":
                room.ask(ForgetMemory(id=ids[word], reason="r", principal=Principal()))
                room.clock.advance(60 * DAY_MS)
                for name in ("graph_links", "embeddings", "tombstones"):
                    room.ask(PurgeStep(step=name, cutoff="2030-01-01T00:00:00.000Z", limit=100))
                gone.add(word)
            elif step == "erase session":
                room.ask(ForgetTranscript(session, "default", Principal(), is_captured=True))
                silent.add(session)
            kept = str(room.connection.execute("SELECT * FROM searches").fetchall())
            kept += str(room.connection.execute("SELECT * FROM search_rows").fetchall())
            assert not [each for each in gone if each in kept or ids[each] in kept]
            prompts = room.connection.execute("SELECT session_key, prompt FROM searches").fetchall()
            assert all(prompt is None for key, prompt in prompts if key in silent)
        room.close()
