"""Context in recall: episodes, their coherence, the flags of texts, and what they change in the ranking."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.domain.ranking import episode_order
from signet_actors.domain.ranking.episode_order import FEATURES
from signet_actors.domain.ranking.text_flags import SAYS_LITTLE, subject_code, text_flags
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, RecoverMemory
from signet_actors.searcher.coherence import Gate
from signet_actors.searcher.episodes import NONE
from signet_actors.searcher.reader import IN_QUERY, Reader, Step
from signet_actors.searcher.row_flags import FILE_NAME
from tests.support.store_room import DIMENSIONS, StoreRoom

ME = Principal()
START = datetime(2025, 3, 1, 12, tzinfo=UTC)


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def synced(reader: Reader) -> Reader:
    with reader.open_snapshot() as snapshot:
        reader.sync(snapshot)
        for leg in list(reader.vector_legs()) or [reader.vector_leg(snapshot, "test-model", DIMENSIONS)]:
            assert leg is None or leg.complete
        reader.sync_context(snapshot)
        while not reader.context_complete:
            reader.sync_context(snapshot)
    return reader


def live_rows(room: StoreRoom) -> list[Any]:
    return room.connection.execute(
        "SELECT m.seq, m.agent_id, coalesce(m.scope, ''), coalesce(m.project, ''), coalesce(m.session_id, ''),"
        " unixepoch(m.created_at), e.vector FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
        " WHERE m.is_deleted = 0 ORDER BY m.agent_id, 3, 4, 5, 6, m.seq"
    ).fetchall()


def expected_episodes(room: StoreRoom) -> list[list[int]]:
    """The episodes of all live rows as the documentation describes them."""
    episodes: list[list[int]] = []
    before = None
    for seq, *place, second, _ in live_rows(room):
        if before is None or before[0] != place or second - before[1] > 1800:
            episodes.append([])
        episodes[-1].append(seq)
        before = place, second
    return sorted(episodes)


def expected_coherence(room: StoreRoom) -> dict[int, float]:
    """The coherence of each row's episode; -inf for an episode without two neighbouring vectors."""
    rows = {row[0]: row for row in live_rows(room)}
    vectors = {seq: np.frombuffer(row[-1], np.float32) for seq, row in rows.items() if row[-1] is not None}
    found: dict[int, float] = {}
    groups: dict[tuple[str, str, str], list[list[int]]] = {}
    for episode in expected_episodes(room):
        groups.setdefault(tuple(rows[episode[0]][1:4]), []).append(episode)
    for episodes in groups.values():
        of_group = [vectors[seq] for episode in episodes for seq in episode if seq in vectors]
        chance = float(np.square(np.mean(of_group, axis=0)).sum()) if of_group else 0.0
        cosines = [
            [float(vectors[a] @ vectors[b]) for a, b in pairwise(episode) if {a, b} <= set(vectors)]
            for episode in episodes
        ]
        every = [cosine for of_episode in cosines for cosine in of_episode]
        typical = float(np.mean(every)) if every else chance
        for episode, own in zip(episodes, cosines, strict=True):
            coherence = (sum(own) + 5 * typical) / (len(own) + 5) - chance if own else -np.inf
            found |= dict.fromkeys(episode, coherence)
    return found


def found_episodes(reader: Reader) -> list[list[int]]:
    """The episodes that the reader knows, each read along its links."""
    episodes = reader.episodes
    members: dict[int, list[int]] = {}
    for seq in np.flatnonzero(episodes.episode[: reader.columns.size] != NONE).tolist():
        members.setdefault(int(episodes.episode[seq]), []).append(seq)
    walked = []
    for number, rows in members.items():
        inside = set(rows)
        (first,) = (seq for seq in rows if int(episodes.left[seq]) not in inside)
        walk, seq = [], first
        while seq in inside:
            walk.append(seq)
            assert episodes.episode[seq] == number
            seq = int(episodes.right[seq])
        assert len(walk) == len(rows)
        walked.append(walk)
    return sorted(walked)


def change_something(room: StoreRoom, rng: random.Random, known: list[str], number: int) -> None:
    kind = rng.choice(["remember"] * 6 + ["modify", "forget", "forget", "recover", "recover"]) if known else "remember"
    if kind == "remember":
        answer = room.remember(
            f"Ann: number {number}, is it?" if rng.random() < 0.3 else f"row {number} of yesterday",
            agent_id=rng.choice("ab"),
            project=rng.choice([None, "p"]),
            created_at=at(rng.choice([number, rng.randrange(2000)]) * rng.choice([1, 1, 17])),
            vector=None if rng.random() < 0.1 else [rng.gauss(1, 0.6) for _ in range(DIMENSIONS)],
        )
        known.append(answer.id)
        return
    target = rng.choice(known)
    if kind == "modify":
        patch = MemoryPatch(id=target, reason="r", content=f"Bob: changed {number}", vector=None)
        room.ask(ModifyMemory(patch, ME))
    elif kind == "forget":
        room.ask(ForgetMemory(target, "r", ME))
    else:
        room.ask(RecoverMemory(target, "r", ME))


@pytest.mark.parametrize("seed", range(6))
def test_episodes_coherence_and_flags_follow_every_kind_of_change(room: StoreRoom, seed: int) -> None:
    rng, known = random.Random(seed), []
    follower = synced(room.reader)
    for number in range(160):
        change_something(room, rng, known, number)
        if rng.random() < 0.4 and number < 150:
            continue
        synced(follower)
        assert found_episodes(follower) == expected_episodes(room)
        for seq, coherence in expected_coherence(room).items():
            if abs(coherence - 0.04) > 1e-6:
                assert follower.open_episodes(follower.episodes.episode[[seq]])[0] == (coherence >= 0.04)
        for seq, content in room.connection.execute("SELECT seq, content FROM memories WHERE is_deleted = 0"):
            record = follower.flags.records[seq]
            assert (record["flags"], record["subject"]) == text_flags(content)
    late = synced(room.open_reader())
    assert found_episodes(late) == found_episodes(follower)
    late.close()


def test_a_large_change_is_placed_in_steps(room: StoreRoom) -> None:
    step = Step(vectors=9, codes=9, flags=6, places=7, coherence=5, graph=9, tags=9)
    rng, known = random.Random(3), []
    change_something(room, rng, known, 0)
    synced(room.reader)
    for number in range(1, 90):
        change_something(room, rng, known, number)
    with room.reader.open_snapshot() as snapshot:
        room.reader.sync(snapshot)
        room.reader.sync_context(snapshot, step)
    assert not room.reader.context_complete
    assert room.reader.pending > 0
    while not room.reader.catch_up(step):
        pass
    assert room.reader.pending == 0
    assert found_episodes(room.reader) == expected_episodes(room)
    for seq, coherence in expected_coherence(room).items():
        if abs(coherence - 0.04) > 1e-6:
            assert room.reader.open_episodes(room.reader.episodes.episode[[seq]])[0] == (coherence >= 0.04)


def test_recall_answers_without_a_usable_vector_file(room: StoreRoom) -> None:
    conversation(room)
    assert room.recall("colour", vector=[0.0, 0.0, 1.0]).rows
    (file,) = room.index_dir.glob("*.vectors")
    file.unlink()
    file.mkdir()
    for number in range(3):
        room.remember(f"another colour {number}", vector=[0.0, 0.0, 1.0])
        assert len(room.recall("colour", vector=[0.0, 0.0, 1.0], min_score=0.1).rows) >= number + 2


def test_a_text_that_cannot_be_read_stops_no_other_recall(room: StoreRoom) -> None:
    damaged, sound = room.remember("Ann: how are you?"), room.remember("Bob: the gala was great")
    room.connection.execute("UPDATE memories SET content = CAST(x'416e6eff3a' AS TEXT) WHERE id = ?", (damaged.id,))
    room.reader.close()
    (room.index_dir / FILE_NAME).unlink(missing_ok=True)
    room.reader = room.open_reader()
    while not room.reader.catch_up():
        pass
    assert [row.id for row in room.recall("gala", min_score=0.5).rows] == [sound.id]
    room.connection.execute("UPDATE memories SET content = 'Ann: how are you?' WHERE id = ?", (damaged.id,))


class TestFlagsFile:
    def test_a_damaged_or_removed_file_is_computed_again(self, room: StoreRoom) -> None:
        for number in range(20):
            room.remember(f"Ann: {number} apples?")
        synced(room.reader)
        file = room.index_dir / FILE_NAME
        content = bytearray(file.read_bytes())
        content[12 * 5 : 12 * 9] = b"\xff" * 48
        file.write_bytes(bytes(content))
        for _ in range(2):
            reader = synced(room.open_reader())
            assert set(reader.flags.records["subject"][1:21].tolist()) == {subject_code("ann")}
            reader.close()
            file.unlink()

    def test_flags_do_not_need_the_file(self, room: StoreRoom, tmp_path: Path) -> None:
        (room.index_dir / FILE_NAME).unlink()
        (room.index_dir / FILE_NAME).mkdir()
        room.remember("Ann: how many apples?")
        reader = synced(room.open_reader())
        assert reader.flags.records["subject"][1] == subject_code("ann")
        reader.close()


def conversation(room: StoreRoom) -> dict[str, str]:
    """Three coherent conversations on three days; only one row of the third has the word of the question."""
    texts = {
        "weather": (0, ["It rains", "Take an umbrella", "I did so"], [1.0]),
        "music": (3000, ["The concert was loud", "Really loud", "My ears hurt"], [0.0, 1.0]),
        "colour": (6000, ["What is your favourite colour?", "Teal, always", "Good choice"], [0.0, 0.0, 1.0]),
    }
    stored = {}
    for minutes, lines, vector in texts.values():
        for number, text in enumerate(lines):
            stored[text] = room.remember(text, created_at=at(minutes + number), vector=vector).id
    return stored


def near(start: datetime, end: datetime | None = None) -> tuple[int, int]:
    """The window from ``start`` to ``end``, or of a day, in milliseconds."""
    end = end or start + timedelta(days=1)
    return round(start.timestamp() * 1000), round(end.timestamp() * 1000)


class TestRanking:
    def test_the_answer_beside_a_matching_question_is_found(self, room: StoreRoom) -> None:
        stored = conversation(room)
        found = [
            row.id for row in room.recall("which colour is the favourite?", vector=[0, 0, 0, 1.0], min_score=0.1).rows
        ]
        assert found[:2] == [stored["What is your favourite colour?"], stored["Teal, always"]]

    def test_without_context_only_what_matches_is_found(self, room: StoreRoom) -> None:
        stored = conversation(room)
        rows = room.recall(
            "which colour is the favourite?", vector=[0, 0, 0, 1.0], min_score=0.1, context=False, priors=False
        ).rows
        assert [row.id for row in rows] == [stored["What is your favourite colour?"]]

    def test_neighbours_that_have_nothing_in_common_are_no_context(
        self, room: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [f"fact {number} about topic{number}" for number in range(60)]
        stored = {
            text: room.remember(text, created_at=at(number / 60), vector=np.eye(DIMENSIONS)[number % DIMENSIONS]).id
            for number, text in enumerate(rows)
        }
        query = [0.0] * (DIMENSIONS - 1) + [0.001]
        found = room.recall("topic30", vector=query, alpha=0.0, min_score=0.5)
        assert [row.id for row in found.rows] == [stored["fact 30 about topic30"]]
        monkeypatch.setattr("signet_actors.searcher.reader.OTHER", Gate(prior_pairs=5, least=-1.0))
        with closing(room.open_reader()) as room.reader:
            ungated = room.recall("topic30", vector=query, alpha=0.0, min_score=0.5)
        assert len(ungated.rows) == 3, "the gate makes the difference"

    def test_a_row_that_the_caller_may_not_read_is_no_context(self, room: StoreRoom) -> None:
        stored = conversation(room)
        question, answer = stored["What is your favourite colour?"], stored["Teal, always"]
        room.connection.execute("UPDATE memories SET visibility = 'archived' WHERE id = ?", (question,))
        rows = room.recall("which colour is the favourite?", vector=[0, 0, 0, 1.0]).rows
        assert {row.id: row.score for row in rows}.get(answer, 0.0) == 0.0
        assert question not in [row.id for row in rows]

    def test_rows_of_the_day_that_a_query_names_rank_higher(self, room: StoreRoom) -> None:
        early = room.remember("we met the plumber", created_at="2025-03-01T10:00:00.000Z")
        for number in range(250):
            room.remember(f"the day before, {number}", created_at="2025-06-06T10:00:00.000Z")
        late = room.remember("we met the plumber again", created_at="2025-06-07T10:00:00.000Z")
        day, march = near(datetime(2025, 6, 7, tzinfo=UTC)), near(datetime(2025, 3, 1, tzinfo=UTC))
        assert [row.id for row in room.recall("plumber", near_ms=day, min_score=0.1).rows] == [late.id, early.id]
        assert [row.id for row in room.recall("plumber", near_ms=march, min_score=0.1).rows] == [early.id, late.id]
        assert late.id in [row.id for row in room.recall("unheard", near_ms=day, limit=10).rows], "before other days"

    def test_every_day_of_a_longer_time_counts_as_the_day_itself(self, room: StoreRoom) -> None:
        days = {
            day: room.remember(f"the plumber came, {day}", created_at=f"2025-06-{day:02}T23:59:59.999Z").id
            for day in (1, 8, 9, 10, 11, 20)
        }
        start, end = datetime(2025, 6, 8, tzinfo=UTC), datetime(2025, 6, 10, tzinfo=UTC)
        rows = room.recall("plumber", near_ms=near(start, end), context=False, priors=False).rows
        scores = {day: next(row.score for row in rows if row.id == id_) for day, id_ in days.items()}
        best = 1.3
        expected = {8: 0.3, 9: 0.3, 10: 0.24, 11: 0.12, 1: 0.09, 20: 0.0}
        assert {day: round(score * best - 1, 2) for day, score in scores.items()} == pytest.approx(expected, abs=0.05)
        assert scores[8] == scores[9]

    def test_a_time_of_many_days_adds_no_candidates(self, room: StoreRoom) -> None:
        room.remember("we met the plumber", created_at="2025-06-07T10:00:00.000Z")
        start = datetime(2025, 6, 1, tzinfo=UTC)
        assert len(room.recall("unheard", near_ms=near(start, start + timedelta(days=8))).rows) == 1
        assert room.recall("unheard", near_ms=near(start, start + timedelta(days=9))).rows == []

    def test_the_subject_that_a_query_names_is_preferred(self, room: StoreRoom) -> None:
        for number in range(6):
            room.remember(f"Ann: I like painting number {number}")
            room.remember(f"Bob: I like painting number {number}")
        rows = room.recall("what does Bob like painting?", limit=6).rows
        assert all(row.content.startswith("Bob") for row in rows)
        both = room.recall("do Ann and Bob like painting?", limit=12).rows
        neither = room.recall("do Ann and Bob like painting?", limit=12, priors=False).rows
        assert [(row.id, row.score) for row in both] == [(row.id, row.score) for row in neither]

    def test_a_new_subject_of_many_rows_counts_when_their_flags_are_up_to_date(self, room: StoreRoom) -> None:
        changed = [room.remember(f"Ann: I like painting number {number}").id for number in range(12)]
        for number in range(6):
            room.remember(f"Bob: I like painting number {number}")
        room.recall("what does Bob like painting?")
        for number, memory in enumerate(changed):
            room.ask(ModifyMemory(MemoryPatch(memory, "r", content=f"Cid: I like painting number {number}"), ME))
        step = IN_QUERY._replace(flags=5)
        for _ in range(4):
            with room.reader.open_snapshot() as snapshot:
                room.reader.sync(snapshot)
                room.reader.sync_context(snapshot, step)
                room.reader.known_subject(snapshot, ReadScope(), None, "what does Cid like painting?")
        rows = room.recall("what does Cid like painting?", limit=12).rows
        assert all(row.content.startswith("Cid") for row in rows)

    def test_when_prefers_rows_with_a_time_and_a_question_is_no_answer(self, room: StoreRoom) -> None:
        room.remember("the boiler repair, shall we do it?")
        room.remember("the boiler repair went well")
        timed = room.remember("the boiler repair was last week")
        rows = room.recall("when was the boiler repair?").rows
        assert rows[0].id == timed.id
        assert rows[-1].content.endswith("?")

    def test_the_rows_of_an_episode_exchange_their_scores_if_switched_on(
        self, room: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = conversation(room)
        episode = {stored[text] for text in ("What is your favourite colour?", "Teal, always", "Good choice")}
        # Trees that turn the order of all rows round.
        monkeypatch.setattr(episode_order, "sums", lambda figures: 100.0 * figures[:, FEATURES.index("rank")])
        query = {"query": "which colour is the favourite, it rains?", "vector": [0.5, 0.0, 0.5, 0.5]}
        plain, learned = (room.recall(**query, episode_order=on).rows for on in (False, True))
        assert [row.score for row in plain] == [row.score for row in learned]
        first, turned = ([row.id for row in rows if row.id in episode] for rows in (plain, learned))
        assert turned == first[::-1]
        assert [row.id in episode for row in plain] == [row.id in episode for row in learned]

    def test_two_searchers_give_the_same_answer(self, room: StoreRoom) -> None:
        conversation(room)
        other = room.open_reader()
        mine, room.reader = room.recall("colour", vector=[0, 0.5, 0.5]), other
        theirs = room.recall("colour", vector=[0, 0.5, 0.5])
        assert [(row.id, row.score) for row in mine.rows] == [(row.id, row.score) for row in theirs.rows]


def test_the_flags_of_a_text() -> None:
    assert text_flags("Ann: did you see it?") == (1 | SAYS_LITTLE, subject_code("ann"))
    assert text_flags('"Really?" she said, two days ago')[0] & ~SAYS_LITTLE == 1 | 2 | 4
    assert text_flags("2024: nothing")[1] == 0
    assert text_flags("The end")[1] == 0, "a stop word is no name"
    assert text_flags("Monday: lunch")[0] == SAYS_LITTLE, "a speaker's name is not a time"
    assert text_flags("May I?")[0] == 1 | SAYS_LITTLE, "may is no month here"


SAY_LITTLE = [
    *(
        "test test",
        "fixed the bug",
        "hm, vielleicht später",
        "lunch thursday?",
        "TODO ask about the thing",
        "wip",
        "ok",
    ),
    *("will do it tomorrow", "asdf", "See above.", "note to self", "der Fehler ist weg", "à voir", "esto no"),
    *("and again", "the same as before", "ping", "please ignore", "erledigt", "Danke!"),
]
SAY_SOMETHING = [
    *(
        "port 5433",
        "User prefers vim keybindings",
        "Use pnpm, never npm",
        "The API key rotates monthly",
        "CI needs Node 22",
    ),
    *("never push to main, open a merge request", "Redis listens on 6379", "Deploys happen on Thursdays in Berlin"),
    *("明日は休みです", "数据库在这里", "서버는 저기 있다"),
    *("Rechnungen gehen montags heraus an Kunden", "Jonas reviews frontend changes", "v2"),
]


def test_a_text_with_two_telling_words_at_most_says_little() -> None:
    assert [text for text in SAY_LITTLE if not text_flags(text).flags & SAYS_LITTLE] == []
    assert [text for text in SAY_SOMETHING if text_flags(text).flags & SAYS_LITTLE] == []


def test_a_memory_that_says_little_is_relevant_by_its_words_alone(room: StoreRoom) -> None:
    room.remember("fixed the bug", vector=[0, 0, 1.0])
    room.remember("fixed the bug in the import of the parcels", vector=[0, 0, 1.0])
    near = {row.content: row.relevance for row in room.recall("fixed something unheard of", vector=[0, 0, 1.0]).rows}
    assert near["fixed the bug"] < near["fixed the bug in the import of the parcels"]
    own = room.recall("was the bug fixed?", vector=[0, 0, 1.0]).rows
    assert own[0].relevance > 0.5
