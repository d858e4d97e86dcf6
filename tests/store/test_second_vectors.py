"""The better vectors that follow the first ones: which memories lack one, and what a recall makes of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from signet_actors.config import embedding_models
from signet_actors.config.schema import EMBEDDED_DIMENSIONS, EMBEDDED_MODEL, MINILM_DIMENSIONS, MINILM_MODEL
from signet_actors.domain.ranking import fusion
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.pipeline import FindUnembedded, SecondVector, StoreSecondVectors, UnembeddedFound
from signet_actors.protocol.searcher import Recall, Recalled
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, NewMemory, Remember, Vector
from signet_actors.searcher.recall import recall
from tests.support.store_room import StoreRoom

ME = Principal()


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vector is computed here, so the runtime of the model need not exist for this platform."""
    monkeypatch.setattr(embedding_models, "_has_onnxruntime", lambda: True)


def unit(dimensions: int, *parts: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    vector = np.zeros(dimensions, np.float32)
    vector[: len(parts)] = parts
    return vector / np.float32(np.linalg.norm(vector))


def at(dimensions: int, cosine: float) -> bytes:
    """A vector with this cosine to the query, which is the first axis."""
    return unit(dimensions, cosine, (1 - cosine**2) ** 0.5).tobytes()


def first_vector(cosine: float) -> tuple[Vector, list[bytes]]:
    return Vector(EMBEDDED_MODEL, EMBEDDED_DIMENSIONS, 0, b""), [at(EMBEDDED_DIMENSIONS, cosine)]


def store(room: StoreRoom, text: str, cosine: float = 0.5) -> str:
    vector, frames = first_vector(cosine)
    answer = room.ask(Remember(NewMemory(content=text, type="fact", importance=0.5, vector=vector), ME), frames)
    assert not isinstance(answer, Failure), answer
    return str(answer.id)


def lacking(room: StoreRoom, after: int = 0, limit: int = 100) -> UnembeddedFound:
    found = room.ask(FindUnembedded(after, limit))
    assert isinstance(found, UnembeddedFound), found
    return found


def store_second(room: StoreRoom, found: UnembeddedFound, cosines: Sequence[float] | None = None) -> int:
    vectors = [SecondVector(text.memory_id, text.content_hash, b"") for text in found.texts]
    frames = [at(MINILM_DIMENSIONS, cosine) for cosine in cosines or [0.5] * len(vectors)]
    stored = room.ask(StoreSecondVectors(vectors), frames)
    assert not isinstance(stored, Failure), stored
    return int(stored.stored)


def ask(room: StoreRoom, query: str = "anything", *, second: bool = True) -> Recalled:
    frames = [unit(EMBEDDED_DIMENSIONS, 1).tobytes()]
    command = Recall(query=query, read=ReadScope(), vector_model=EMBEDDED_MODEL, limit=100)
    if second:
        command = Recall(
            query=query,
            read=ReadScope(),
            vector_model=EMBEDDED_MODEL,
            former_model=MINILM_MODEL,
            prefers_former=True,
            limit=100,
        )
        frames.append(unit(MINILM_DIMENSIONS, 1).tobytes())
    with room.reader.open_snapshot() as snapshot:
        return recall(room.reader, snapshot, command, frames)


def test_each_memory_is_found_until_it_has_a_second_vector_of_its_present_words(room: StoreRoom) -> None:
    ids = [store(room, f"note {number}") for number in range(5)]
    first = lacking(room, limit=2)
    assert ([text.memory_id for text in first.texts], first.more) == (ids[:2], True)
    rest = lacking(room, first.next, limit=10)
    assert ([text.memory_id for text in rest.texts], rest.more) == (ids[2:], False)
    assert store_second(room, lacking(room)) == 5
    assert lacking(room).texts == []
    assert lacking(room, rest.next).texts == []
    vector, frames = first_vector(0.4)
    room.ask(ModifyMemory(MemoryPatch(ids[1], "moved", content="another note", vector=vector), ME), frames)
    again = lacking(room)
    assert [(text.memory_id, text.content) for text in again.texts] == [(ids[1], "another note")]
    assert [text.memory_id for text in lacking(room, rest.next).texts] == [ids[1]], "new words come after all others"


def test_a_memory_that_changed_or_went_meanwhile_gets_no_vector_of_its_former_words(room: StoreRoom) -> None:
    changed, gone, same = (store(room, f"note {number}") for number in range(3))
    found = lacking(room)
    vector, frames = first_vector(0.4)
    room.ask(ModifyMemory(MemoryPatch(changed, "moved", content="another note", vector=vector), ME), frames)
    room.ask(ForgetMemory(gone, "wrong", ME))
    assert store_second(room, found) == 1
    rows = room.connection.execute("SELECT source_id FROM embeddings WHERE model = ?", (MINILM_MODEL,)).fetchall()
    assert rows == [(same,)]
    assert store_second(room, found) == 1, "storing it again changes nothing"
    assert room.connection.execute("SELECT count(*) FROM embeddings WHERE model = ?", (MINILM_MODEL,)).fetchone() == (
        1,
    )


def test_without_the_provider_auto_no_memory_lacks_a_second_vector(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(room, "a note")
    monkeypatch.setattr(embedding_models, "_has_onnxruntime", lambda: False)
    assert lacking(room).texts == []


def test_a_recall_counts_memories_by_their_second_vectors(room: StoreRoom) -> None:
    cosines = [number / 50 for number in range(30)]
    ids = [store(room, f"thing {number}", cosine) for number, cosine in enumerate(cosines)]
    assert ask(room).rows[0].id == ids[-1]
    assert store_second(room, lacking(room), cosines[::-1]) == 30
    found = ask(room)
    assert found.rows[0].id == ids[0]
    assert found.second_spaces == ((MINILM_MODEL, MINILM_DIMENSIONS),)
    assert found.stale_spaces == ()
    assert ask(room, second=False).rows[0].id == ids[-1], "without a vector of the query in time"


def test_a_memory_that_has_no_second_vector_yet_stands_where_its_first_one_puts_it(room: StoreRoom) -> None:
    cosines = [number / 50 for number in range(30)]
    ids = [store(room, f"thing {number}", cosine) for number, cosine in enumerate(cosines)]
    assert store_second(room, lacking(room), [0.3 * cosine for cosine in cosines]) == 30
    between, best = store(room, "newer thing", 0.411), store(room, "newest thing", 0.9)
    order = [row.id for row in ask(room).rows]
    assert order[0] == best
    assert order.index(ids[21]) < order.index(between) < order.index(ids[20])


def test_the_former_words_of_a_memory_do_not_count(room: StoreRoom) -> None:
    cosines = [number / 50 for number in range(30)]
    ids = [store(room, f"thing {number}", cosine) for number, cosine in enumerate(cosines)]
    store_second(room, lacking(room), cosines[::-1])
    vector, frames = first_vector(0.01)
    room.ask(ModifyMemory(MemoryPatch(ids[0], "moved", content="moved", vector=vector), ME), frames)
    order = [row.id for row in ask(room).rows]
    assert ids[0] not in order[:10]
    assert order[0] == ids[1]


def test_few_second_vectors_change_nothing(room: StoreRoom) -> None:
    cosines = [number / 50 for number in range(30)]
    for number, cosine in enumerate(cosines):
        store(room, f"thing {number}", cosine)
    before = [(row.id, row.score) for row in ask(room).rows]
    store_second(room, lacking(room, limit=10), [0.9] * 10)
    assert [(row.id, row.score) for row in ask(room).rows] == before


def test_in_another_language_relevance_is_measured_by_the_first_vectors(room: StoreRoom) -> None:
    cosines = [number / 50 for number in range(30)]
    for number, cosine in enumerate(cosines):
        store(room, f"thing {number}", cosine)
    store_second(room, lacking(room), cosines[::-1])
    for query, is_english in (
        ("where is the key of the cellar?", True),
        ("cellar key", True),
        ("wo ist der Schlüssel für den Keller?", False),
        ("où est la clé de la cave?", False),
        ("¿dónde está la llave del sótano?", False),
    ):
        measured = {row.id: row.relevance for row in ask(room, query).rows}
        by_first = {row.id: row.relevance for row in ask(room, query, second=False).rows}
        shared = measured.keys() & by_first.keys()
        assert len(shared) > 10
        same = all(measured[memory] == by_first[memory] for memory in shared)
        assert same is not is_english, query


def test_cosines_of_two_models_come_to_one_scale() -> None:
    none = np.nan
    rising = np.linspace(0.0, 0.8, 25)
    for preferred, other, expected in (
        ([none] * 3, [0.1, 0.2, none], [0.1, 0.2, none]),
        ([0.5, none, 0.4], [0.1, 0.2, none], [0.1, 0.2, 0.4]),
        ([*(rising / 2), none], [*rising, rising[7]], [*(rising / 2), rising[7] / 2]),
        ([*(rising / 2), none], [*rising, 0.5 * (rising[7] + rising[8])], [*(rising / 2), (rising[7] + rising[8]) / 4]),
        ([*(rising / 2), none], [*rising, -0.3], [*(rising / 2), 0.0]),
        ([*(rising / 2), none, none], [*rising, 0.9, none], [*(rising / 2), 0.45, none]),
        ([*rising, 0.7], [*rising, none], [*rising, 0.7]),
    ):
        mixed = fusion.on_one_scale(np.array(preferred), np.array(other))
        assert mixed == pytest.approx(np.array(expected), nan_ok=True)
