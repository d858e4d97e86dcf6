"""Turns of a session are stored once and in order, read by their owner, found by their words, and erased for good."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signet_actors.domain.retention import STEPS
from signet_actors.domain.timestamps import iso
from signet_actors.domain.transcripts.turns import PIECE_CHARS, Role, Turn, conversation, stored_turns
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.errors import ErrorCode
from signet_actors.features.checkpoints.api import CheckpointRecorded
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.sessions import SetBypass
from signet_actors.protocol.transcripts import (
    CapturedTurn,
    ExpandSessions,
    ForgetTranscript,
    GetTranscript,
    ListSpans,
    SearchSessions,
    StoreTurns,
    TranscriptForgotten,
    TranscriptStored,
)
from signet_actors.protocol.writer import PurgeStep
from signet_actors.searcher.queries import transcripts
from tests.support.store_room import StoreRoom, plan_of, recording

A, B, C = Turn("user", "Where is the ferry?"), Turn("assistant", "At the pier"), Turn("user", "Thanks")


def captured(turns: Sequence[Turn]) -> tuple[CapturedTurn, ...]:
    return tuple(
        CapturedTurn(row.basis, row.number, row.role, row.text, indexed_beside(row.text), row.said_at, row.continues)
        for row in stored_turns(turns, lambda text: text)
    )


def store(room: StoreRoom, *turns: Turn, session: str = "s", agent: str = "default", **fields: Any) -> Any:
    command = StoreTurns(session, agent, "claude-code", captured(turns), **fields)
    return room.ask(command)


def text_of(room: StoreRoom, session: str = "s", agent: str = "default") -> str | None:
    with room.reader.open_snapshot() as view:
        found = transcripts.get(view, GetTranscript(session, ReadScope(agent)))
    if found.transcript is None:
        return None
    return conversation([(turn.role, turn.content, turn.continues) for turn in found.turns])


def turns_of(room: StoreRoom, session: str = "s") -> list[Turn]:
    with room.reader.open_snapshot() as view:
        found = transcripts.get(view, GetTranscript(session, ReadScope()))
    return [Turn(cast(Role, turn.role), turn.content, turn.said_at) for turn in found.turns]


def found(room: StoreRoom, query: str, *, agent: str = "default", limit: int = 20, **fields: Any) -> list[str]:
    with room.reader.open_snapshot() as view:
        hits = transcripts.search(view, SearchSessions(query, ReadScope(agent), limit, **fields))
    return [hit.session_key for hit in hits.sessions]


def test_turns_are_stored_in_order_and_a_repetition_adds_nothing(room: StoreRoom) -> None:
    assert store(room, A, B).added == 2
    assert store(room, A, B).added == 0
    assert text_of(room) == "User: Where is the ferry?\n\nAssistant: At the pier"


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("back_ms", "off_ms", "is_reported"),
    [
        (back_ms, off_ms, is_reported)
        for back_ms in (20_000, HOUR_MS, 30 * 24 * HOUR_MS)
        for off_ms in (1_000, 30_000, 2 * HOUR_MS)
        for is_reported in (True, False)
        if is_reported or off_ms + 10_000 < back_ms  # else nothing tells that it was set back
    ],
)
def test_what_was_said_while_memory_was_off_stays_out_if_the_clock_was_set_back(
    room: StoreRoom, back_ms: int, off_ms: int, is_reported: bool
) -> None:
    def said(content: str) -> Turn:
        room.clock.advance(10_000)
        return Turn("user", content, iso(room.clock.wall_ms()))

    turns = [said("before")]
    store(room, *turns)
    room.clock.advance(10_000)
    room.ask(SetBypass("s", "default", iso(room.clock.wall_ms()), bypassed=True))
    room.clock.wall -= back_ms
    turns.append(said("off"))
    if is_reported:
        store(room, *turns)
    room.clock.advance(off_ms)
    room.ask(SetBypass("s", "default", iso(room.clock.wall_ms()), bypassed=False))
    turns.append(said("after"))
    store(room, *turns)
    assert text_of(room) == "User: before\n\nUser: after"
    store(room, *turns, session="a fork")
    assert text_of(room, "a fork") == "User: before\n\nUser: after"


def test_a_longer_capture_adds_what_is_new(room: StoreRoom) -> None:
    store(room, A)
    assert store(room, A, B, C).added == 2
    assert text_of(room) == "User: Where is the ferry?\n\nAssistant: At the pier\n\nUser: Thanks"


def test_a_shorter_capture_loses_nothing(room: StoreRoom) -> None:
    store(room, A, B, C)
    assert store(room, B).added == 0
    later = Turn("assistant", "You are welcome")
    store(room, C, later)
    assert text_of(room) == (
        "User: Where is the ferry?\n\nAssistant: At the pier\n\nUser: Thanks\n\nAssistant: You are welcome"
    )


def test_a_last_turn_that_grew_replaces_its_shorter_form(room: StoreRoom) -> None:
    store(room, A, Turn("assistant", "At the"))
    assert store(room, A, B, C).added == 2
    assert text_of(room) == "User: Where is the ferry?\n\nAssistant: At the pier\n\nUser: Thanks"
    assert found(room, "pier") == ["s"]


def test_a_turn_that_begins_like_the_one_before_it_is_a_turn_of_its_own(room: StoreRoom) -> None:
    first, second = Turn("user", "yes"), Turn("user", "yes, do it")
    store(room, A, first)
    store(room, A, first, second)
    assert text_of(room) == "User: Where is the ferry?\n\nUser: yes\n\nUser: yes, do it"


def test_a_long_turn_that_grew_is_whole(room: StoreRoom) -> None:
    line = "a line of the log of the ferry\n"
    short = line * (PIECE_CHARS // len(line) * 2) + "half"
    long = f"{short} of a line\n{line * 1000}end"
    store(room, Turn("text", short))
    store(room, Turn("text", long))
    assert text_of(room) == long


def test_the_parts_of_a_capture_make_one_transcript(room: StoreRoom) -> None:
    rows = captured([A, Turn("user", "yes"), Turn("user", "yes, do it")])
    for _ in range(2):  # the second time is a retry of the whole capture
        part = room.ask(StoreTurns("s", "default", "codex", rows[:2]))
        assert isinstance(part, TranscriptStored)
        room.ask(StoreTurns("s", "default", "codex", rows[2:], previous=part.position))
    assert text_of(room) == "User: Where is the ferry?\n\nUser: yes\n\nUser: yes, do it"


SESSIONS = itertools.count()
YES, NO, DONE, OK = Turn("user", "yes"), Turn("user", "no"), Turn("assistant", "done"), Turn("assistant", "ok")


@pytest.mark.parametrize(
    ("stored", "captured_later", "expected"),
    [
        ([YES, DONE, YES], [YES, OK, YES], [YES, DONE, YES, OK, YES]),
        ([YES, YES], [DONE, YES], [YES, YES, DONE, YES]),
        ([A, DONE, YES], [YES, YES], [A, DONE, YES, YES]),
        ([YES, DONE, YES], [YES, Turn("user", "yes, do it")], [YES, DONE, YES, Turn("user", "yes, do it")]),
        ([A, B, YES], [Turn("user", "yes, do it"), OK], [A, B, YES, Turn("user", "yes, do it"), OK]),
        ([YES, DONE, Turn("user", "ye")], [DONE, YES, OK], [YES, DONE, YES, OK]),
        ([A, YES], [B, C, YES], [A, YES, B, C, YES]),
    ],
)
def test_equal_turns_without_times_are_kept_if_only_the_end_is_captured_again(
    room: StoreRoom, stored: list[Turn], captured_later: list[Turn], expected: list[Turn]
) -> None:
    store(room, *stored)
    for _ in range(2):  # a repetition adds nothing
        store(room, *captured_later)
        assert turns_of(room) == expected
    assert store(room, *expected).added == 0, "nor does a capture of the whole session"


def test_the_end_of_a_session_may_be_captured_in_parts(room: StoreRoom) -> None:
    store(room, *[YES, DONE] * 5, A, YES)
    rows = captured([A, YES, *[YES, OK] * 4])
    for _ in range(2):
        previous = None
        for at in range(0, len(rows), 3):
            part = room.ask(StoreTurns("s", "default", "codex", rows[at : at + 3], previous=previous))
            assert isinstance(part, TranscriptStored)
            previous = part.position
    assert turns_of(room) == [*[YES, DONE] * 5, A, YES, *[YES, OK] * 4]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.sampled_from([YES, NO, DONE, OK]), max_size=12), st.data())
def test_any_captures_of_the_ends_of_a_session_make_up_the_whole(
    room: StoreRoom, said: list[Turn], data: st.DataObject
) -> None:
    said = [each for number, turn in enumerate(said) for each in (turn, Turn("user", f"turn {number}"))]
    session, end = f"session-{next(SESSIONS)}", 0
    while end < len(said):
        begin = data.draw(st.integers(0, max(0, end - 2)))
        end = data.draw(st.integers(end + 1, len(said)))
        store(room, *said[begin:end], session=session)
        assert turns_of(room, session) == said[:end]


def test_the_end_of_a_very_long_session_is_compared_with_its_last_turns(room: StoreRoom) -> None:
    turns = [
        Turn("user" if number % 2 == 0 else "assistant", f"Turn {number} of the harbour") for number in range(3000)
    ]
    for begin in range(0, len(turns), 500):
        store(room, *turns[: begin + 500])
    more = [Turn("user", "And the ferry?"), Turn("assistant", "It sails.")]
    assert store(room, *turns[-5:], *more).added == 2
    assert store(room, *turns[100:140]).added == 0, "long known, although far from the end"
    assert store(room, *turns[-800:], *more).added == 0
    assert room.connection.execute("SELECT count(*) FROM session_turns").get == 3002


def test_two_agents_may_use_one_session_key_and_read_only_their_own(room: StoreRoom) -> None:
    store(room, A, agent="ann")
    store(room, B, agent="bob")
    assert text_of(room, agent="ann") == "User: Where is the ferry?"
    assert text_of(room, agent="bob") == "Assistant: At the pier"
    assert text_of(room) is None, "the agent `default`, whose read policy is `shared`, reads no private row of another"
    assert found(room, "ferry pier", agent="ann") == ["s"]
    assert found(room, "ferry pier") == []


def test_the_best_session_comes_first_and_each_once(room: StoreRoom) -> None:
    store(room, Turn("user", "the ferry"), Turn("user", "a ferry"), Turn("user", "bread"), session="two", project="p")
    store(room, Turn("user", "the ferry to the island of Hven leaves from the pier"), session="one")
    store(room, Turn("user", "bread and butter"), session="none")
    assert found(room, "ferry to the island of Hven") == ["one", "two"]
    assert found(room, "ferry", limit=1) in (["one"], ["two"])
    assert found(room, "ferry", session_key="two") == ["two"]
    assert found(room, "ferry", without="two") == ["one"]
    assert found(room, "ferry", project="p") == ["two"]
    assert found(room, "zeppelin") == []
    assert found(room, '"') == []


def test_turns_in_a_script_without_spaces_are_found(room: StoreRoom) -> None:
    store(room, Turn("user", "データベースのポートは何番ですか"))
    assert found(room, "ポート") == ["s"]


def test_a_transcript_is_read_in_pages(room: StoreRoom) -> None:
    store(room, *(Turn("user", f"{number} {'x' * 1000}") for number in range(100)))
    numbers: list[int] = []
    after: int | None = 0
    while after is not None:
        with room.reader.open_snapshot() as view:
            page = transcripts.get(view, GetTranscript("s", ReadScope(), after=after, max_bytes=10_000))
        assert 1 <= len(page.turns) <= 10
        numbers += [int(turn.content.split()[0]) for turn in page.turns]
        after = page.next
    assert numbers == list(range(100))


def test_a_page_has_a_limit_of_rows_too(room: StoreRoom) -> None:
    store(room, *(Turn("user", str(number)) for number in range(40)))
    with room.reader.open_snapshot() as view:
        first = transcripts.get(view, GetTranscript("s", ReadScope(), max_rows=33))
        assert first.next is not None
        rest = transcripts.get(view, GetTranscript("s", ReadScope(), after=first.next))
    assert [turn.content for turn in (*first.turns, *rest.turns)] == [str(number) for number in range(40)]
    assert (len(first.turns), rest.next) == (33, None)


def test_a_forgotten_transcript_is_erased_and_not_stored_again(room: StoreRoom) -> None:
    store(room, A, B, project="secret-project")
    assert room.ask(ForgetTranscript("s", "ann", Principal())) == TranscriptForgotten(0, more=False, found=False)
    assert room.ask(ForgetTranscript("s", "default", Principal())) == TranscriptForgotten(2, more=False)
    assert text_of(room) is None
    assert found(room, "ferry") == []
    assert store(room, A, B, C) == TranscriptStored(added=0, forgotten=True)
    assert text_of(room) is None
    assert room.value("SELECT count(*) FROM session_turns") == 0
    assert room.value("SELECT project FROM session_transcripts") is None
    room.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"ferry" not in room.path.read_bytes()


def test_a_session_that_is_forgotten_while_its_first_capture_is_read_is_not_stored(room: StoreRoom) -> None:
    assert not room.ask(ForgetTranscript("s", "default", Principal())).found
    assert store(room, A, session="other").added == 1
    assert room.ask(ForgetTranscript("s", "default", Principal(), is_captured=True)) == TranscriptForgotten(
        0, more=False
    )
    assert store(room, A, B) == TranscriptStored(added=0, forgotten=True)
    assert store(room, A, B, agent="ann").added == 2
    assert text_of(room) is None


def test_a_session_with_checkpoints_alone_is_forgotten_too(room: StoreRoom) -> None:
    checkpoint = recording("s", "c", "explicit", "- Recent prompt: where is the ferry?", 1)
    assert room.ask(checkpoint).read(CheckpointRecorded).stored
    assert room.ask(ForgetTranscript("s", "default", Principal())) == TranscriptForgotten(0, more=False)
    assert room.value("SELECT count(*) FROM session_checkpoints") == 0
    assert room.ask(checkpoint).read(CheckpointRecorded) == CheckpointRecorded(stored=False)
    assert store(room, A, B) == TranscriptStored(added=0, forgotten=True)


def test_a_long_transcript_is_erased_in_steps(room: StoreRoom) -> None:
    store(room, *(Turn("user", f"{number} {'word ' * 4000}") for number in range(60)))
    first = room.ask(ForgetTranscript("s", "default", Principal()))
    assert first.more
    assert text_of(room) is None, "what is left of it cannot be read"
    steps = 1
    while room.ask(ForgetTranscript("s", "default", Principal())).more:
        steps += 1
    assert steps > 1
    assert room.value("SELECT count(*) FROM session_turns") == 0


def test_retention_erases_what_an_interrupted_forget_left(room: StoreRoom) -> None:
    store(room, *(Turn("user", f"{number} {'word ' * 4000}") for number in range(60)))
    room.ask(ForgetTranscript("s", "default", Principal()))
    assert room.value("SELECT count(*) FROM session_turns") > 0
    while room.ask(PurgeStep("transcripts", "1970-01-01T00:00:00.000Z", 500)).more:
        pass
    assert room.value("SELECT count(*) FROM session_turns") == 0
    assert room.value("SELECT count(*) FROM session_transcripts") == 1, "its key stays, so that it is not stored again"


@pytest.mark.parametrize("actor_type", ["agent", "pipeline"])
def test_an_autonomous_actor_cannot_erase_a_transcript(room: StoreRoom, actor_type: str) -> None:
    store(room, A)
    answer = room.ask(ForgetTranscript("s", "default", Principal(actor_type=actor_type)))
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.FORBIDDEN
    assert text_of(room) is not None


def test_a_transcript_is_purged_after_its_last_new_turn(room: StoreRoom) -> None:
    store(room, A, session="old")
    store(room, A, session="continued")
    room.clock.advance(10 * 86_400_000)
    store(room, A, B, session="continued")
    cutoff = iso(room.clock.wall_ms() - 86_400_000)
    assert "transcripts" in {step.name for step in STEPS}
    purged = room.ask(PurgeStep("transcripts", cutoff, 500))
    assert (purged.count, purged.more) == (1, False)
    assert text_of(room, "old") is None
    assert text_of(room, "continued") == "User: Where is the ferry?\n\nAssistant: At the pier"


def test_a_late_capture_has_its_time_but_is_kept_as_long_as_others(room: StoreRoom) -> None:
    store(room, A, captured_at="2025-05-01T10:00:00.000Z")
    assert room.value("SELECT created_at FROM session_transcripts") == "2025-05-01T10:00:00.000Z"
    assert room.value("SELECT updated_at FROM session_transcripts") == iso(room.clock.wall_ms())


def expanded(room: StoreRoom, query: str, *sessions: tuple[str, str], agent: str = "default") -> dict[str, str]:
    with room.reader.open_snapshot() as view:
        reply = transcripts.expand(view, ExpandSessions(sessions, ReadScope(agent), query, max_chars=200))
    return {each.session_key: each.text for each in reply.excerpts}


def test_a_session_is_expanded_to_the_turns_around_the_one_that_matches(room: StoreRoom) -> None:
    filler = [Turn("user", f"word {number} " * 10) for number in range(20)]
    store(room, *filler, A, B, *filler, session="long")
    store(room, A, B, session="short")
    text = expanded(room, "where does the ferry leave", ("default", "long"), ("default", "short"))
    assert text["short"] == "User: Where is the ferry?\n\nAssistant: At the pier"
    assert text["short"] in text["long"]
    assert len(text["long"]) <= 200 + 4 * len("\n\nAssistant: ")
    assert expanded(room, "zeppelin", ("default", "short")) == {"short": text["short"]}, "its beginning"


def test_a_session_is_expanded_for_its_agent_alone_and_not_when_it_is_forgotten(room: StoreRoom) -> None:
    store(room, A, session="s", agent="ann")
    assert expanded(room, "ferry", ("ann", "s"), agent="ann") != {}
    assert expanded(room, "ferry", ("bob", "s"), ("default", "s"), agent="ann") == {}
    assert expanded(room, "ferry", ("ann", "s"), agent="bob") == {}
    assert expanded(room, "ferry", ("ann", "s")) == {}, "a shared read policy reads no private row of another agent"
    room.ask(ForgetTranscript("s", "ann", Principal()))
    assert expanded(room, "ferry", ("ann", "s"), agent="ann") == {}


def spans(room: StoreRoom, start: str, end: str, agent: str = "default", **fields: Any) -> list[tuple[str, str, str]]:
    with room.reader.open_snapshot() as view:
        listed = transcripts.spans(room.reader, view, ListSpans(start, end, ReadScope(agent), limit=10, **fields)).spans
    return [(span.session_key, span.start, span.text) for span in listed]


def test_sessions_are_listed_by_what_was_said_in_a_window(room: StoreRoom) -> None:
    morning, evening = "2025-12-30T09:00:00.000Z", "2025-12-30T21:00:00.000Z"
    captured = {"captured_at": "2025-12-31T08:00:00.000Z"}
    store(room, Turn("user", "the ferry", morning), Turn("assistant", "left", evening), session="timed", **captured)
    store(room, A, B, session="untimed", project="p", **captured)
    store(room, A, session="of another", agent="ann", **captured)
    day, next_day = "2025-12-30T00:00:00.000Z", "2025-12-31T00:00:00.000Z"
    end = "2026-01-01T00:00:00.000Z"
    assert spans(room, day, next_day) == [("timed", morning, "User: the ferry Assistant: left")]
    assert [key for key, _, _ in spans(room, next_day, end)] == ["untimed"]
    assert spans(room, end, "2027-01-01T00:00:00.000Z") == []
    assert [key for key, _, _ in spans(room, day, end)] == ["untimed", "timed"]
    assert [key for key, _, _ in spans(room, day, end, words="left")] == ["timed"]
    assert [key for key, _, _ in spans(room, day, end, project="p")] == ["untimed"]
    assert [key for key, _, _ in spans(room, day, end, agent="ann")] == ["of another"]


def test_no_statement_reads_a_whole_table(room: StoreRoom) -> None:
    from signet_actors.store.reads import transcripts as reads
    from signet_actors.store.writes import transcripts as writes

    statements = [
        writes._FIND,
        writes._BY_KEY,
        writes._LAST,
        writes._IN_ORDER,
        writes._FIRST_KEYS,
        writes._SIZES,
        writes._EXPIRED,
        reads._TURNS,
        reads._TURNS_BEFORE,
        reads._TURNS_FROM,
    ]
    for statement in statements:
        steps = plan_of(room.connection, statement)
        assert all("SCAN" not in step and "TEMP B-TREE" not in step for step in steps), (statement, steps)


def test_the_index_of_turns_is_rebuilt_by_a_repair(room: StoreRoom, tmp_path: Path) -> None:
    store(room, A)
    room.connection.execute("INSERT INTO session_turns_fts (session_turns_fts) VALUES ('delete-all')")
    assert found(room, "ferry") == []
    assert "the index of transcripts was rebuilt" in room.engine.repair_indexes()
    assert found(room, "ferry") == ["s"]
