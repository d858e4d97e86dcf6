"""Token similarity: the codes beside each vector, and what they change in the ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from signet_actors.domain.ranking import fusion
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.searcher import Recall, Recalled
from signet_actors.protocol.writer import MemoryPatch, ModifyMemory, NewMemory, Remember, Vector
from signet_actors.providers.embedded import DIMENSIONS, MODEL, EmbeddedEmbedder
from signet_actors.searcher.recall import recall
from tests.store.test_spellings import EMOJI, LETTERS
from tests.support.store_room import StoreRoom

EMBEDDER = EmbeddedEmbedder()
CODES = EMBEDDER.token_codes
ME = Principal()

NOTES = [
    "the physician moved the appointment to Friday",
    "an appointment with the tax office in May",
    "the appointment book is in the drawer",
    "lunch with Noor at noon",
    "the kettle was repaired",
]


def vector_of(text: str, codes: bytes | None) -> tuple[Vector, list[bytes]]:
    return Vector(MODEL, DIMENSIONS, 0, codes), [EMBEDDER.embed_query(text).astype("<f4").tobytes()]


def store(room: StoreRoom, text: str, *, codes: bool = True) -> str:
    vector, frames = vector_of(text, CODES.of_text(text) if codes else None)
    answer = room.ask(Remember(NewMemory(content=text, type="fact", importance=0.5, vector=vector), ME), frames)
    assert not isinstance(answer, Failure), answer
    return str(answer.id)


def ask(room: StoreRoom, query: str, *, tokens: bool = True, **fields: Any) -> Recalled:
    words = tuple(CODES.of_query(query)) if tokens else ()
    command = Recall(query=query, read=ReadScope(), vector_model=MODEL, words=words, **fields)
    with room.reader.open_snapshot() as snapshot:
        return recall(room.reader, snapshot, command, [EMBEDDER.embed_query(query).astype("<f4").tobytes()])


def scores(found: Recalled) -> dict[str, float]:
    return {row.content: row.score for row in found.rows}


def test_a_memory_with_a_synonym_of_a_rare_word_gains(room: StoreRoom) -> None:
    for note in NOTES:
        store(room, note)
    without, found = (ask(room, "appointment with the doctor", tokens=tokens) for tokens in (False, True))
    other = NOTES[2]
    assert found.rows[0].content == NOTES[0]
    assert scores(found)[NOTES[0]] - scores(found)[other] > scores(without)[NOTES[0]] - scores(without)[other]
    assert "token_similarity" in [stage.name for stage in found.timings]
    assert "token_similarity" not in [stage.name for stage in without.timings]


OTHERS = [
    *("The staging database listens on port 5433", "We deploy on Fridays", "Ada owns the billing service"),
    *("The shop closes at eight", "Tests run with pytest -q", "The invoice job runs at night", "Bob prefers tea"),
    *("The warehouse robots charge at night", "Use tabs in Makefiles", "The API key is rotated monthly"),
    *("The lease of the flat ends in May", "The mirror is in Frankfurt", "Backups are kept for 30 days"),
    *("The strategy is to ship small", "Aerodynamics tests run on Monday", "Streets are closed on Sunday"),
    *("\U0001f426 marks an experiment", "\U0001f426", "Der Kellner bringt die Rechnung", "Les notes sont en haut"),
]


@pytest.mark.parametrize(("content", "queries"), [*LETTERS, *EMOJI])
def test_a_word_that_the_encoder_knows_in_no_such_form_does_not_count_against_its_memory(
    room: StoreRoom, content: str, queries: tuple[str, ...]
) -> None:
    for text in (*OTHERS, content):
        store(room, text)
    for query in queries:
        rows = ask(room, query).rows
        assert rows[0].content == content, query
        assert len(rows) == 1 or rows[0].score > rows[1].score, query


def test_memories_without_codes_keep_their_scores(room: StoreRoom) -> None:
    for note in NOTES:
        store(room, note, codes=note in NOTES[3:])
    without, found = (ask(room, "appointment with the doctor", tokens=tokens) for tokens in (False, True))
    assert set(scores(found)) == set(scores(without))
    for note in NOTES[:3]:
        assert scores(found)[note] == pytest.approx(scores(without)[note])


def test_a_memory_that_is_modified_has_the_codes_of_its_new_text(room: StoreRoom) -> None:
    memory_id = store(room, "lunch at noon")
    text = "dinner at eight"
    vector, frames = vector_of(text, CODES.of_text(text))
    answer = room.ask(ModifyMemory(MemoryPatch(memory_id, "moved", content=text, vector=vector), ME), frames)
    assert not isinstance(answer, Failure), answer
    held = room.connection.execute("SELECT token_codes FROM embeddings").fetchall()
    assert [bytes(codes) for (codes,) in held] == [CODES.of_text(text)]


def test_only_what_exceeds_the_median_counts() -> None:
    base, likeness = np.array([0.8, 0.6, 0.4, 0.2]), np.array([0.5, 0.9, 0.7, np.nan])
    points = fusion.token_points(likeness)
    mixed = fusion.with_tokens(base, points, np.array([True, True, True, False]))
    assert mixed == pytest.approx(0.7 * base + 0.3 * np.array([0, 1, 0, 0]))
    unknown = fusion.with_tokens(base, points, np.ones(4, np.bool_))
    assert unknown == pytest.approx([*mixed[:3], base[3]])
    for alone in (np.full(4, np.nan), np.array([0.9, np.nan, np.nan, np.nan])):
        assert fusion.with_tokens(base, fusion.token_points(alone), np.ones(4, np.bool_)) == pytest.approx(base)


@pytest.mark.parametrize("codes", [b"\x01", bytes(2 * 65), bytes(2 * 20_000)])
def test_codes_that_no_encoder_made_fail_no_recall(room: StoreRoom, codes: bytes) -> None:
    for note in NOTES:
        store(room, note)
    room.connection.execute("UPDATE embeddings SET token_codes = ? WHERE seq = 1", (codes,))
    assert set(scores(ask(room, "appointment with the doctor"))) >= set(NOTES[:3])


def test_the_codes_of_a_long_query_are_bounded() -> None:
    words = CODES.of_query(" ".join(f"{number:x}" * 20 for number in range(10**9, 10**9 + 64)))
    assert sum(len(codes) for _, codes in words) <= 2 * 64
