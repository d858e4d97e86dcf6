"""The isolation benchmark: rows to purge, lost memories, and the reported ratio."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from bench.figures import spread
from bench.floor import KeywordFloor, vector_floor
from bench.isolation import MOST_DOOMED, SWEEP_EVERY_S, SWEEP_ROWS, age_forgotten, doomed_rows, lines_of, lost
from bench.texts import Made, Texts


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[Path, apsw.Connection]]:
    """The columns of the store that the benchmark touches."""
    path = tmp_path / "memories.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE memories (id TEXT, is_deleted INTEGER NOT NULL, deleted_at TEXT)")
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    connection.execute("INSERT INTO memories VALUES ('kept', 0, NULL), ('forgotten', 1, ?)", (now,))
    yield path, connection
    connection.close()


def test_only_forgotten_memories_are_made_older_and_past_the_shortest_retention(
    database: tuple[Path, apsw.Connection],
) -> None:
    path, connection = database
    age_forgotten(path)
    moments = dict(connection.execute("SELECT id, deleted_at FROM memories"))
    assert moments["kept"] is None
    assert datetime.fromisoformat(moments["forgotten"]) < datetime.now(UTC) - timedelta(hours=1)


def test_an_acknowledged_memory_that_is_absent_or_deleted_is_lost(database: tuple[Path, apsw.Connection]) -> None:
    path, _ = database
    assert lost(path, {"kept"}) == 0
    assert lost(path, {"kept", "forgotten", "never-stored"}) == 2
    assert lost(path, set()) == 0


def test_there_are_enough_rows_to_purge_for_every_sweep() -> None:
    assert doomed_rows(2, 10.0) == 2 * round(10 / SWEEP_EVERY_S) * SWEEP_ROWS
    assert doomed_rows(1, 0.1) == SWEEP_ROWS
    assert doomed_rows(1000, 1000.0) == MOST_DOOMED


def phase(recall_p95: float, **more: Any) -> dict[str, Any]:
    """The figures of one phase."""
    took = spread([recall_p95])
    return {
        "per_s": 100.0,
        "recall_ms": took,
        "remember_ms": took,
        "health_ms": took,
        "health_failed": [],
        "refused": 0,
        "failed": 0,
        **more,
    }


def upkeep(purged: int) -> dict[str, Any]:
    """What the disturbances of one turn did."""
    answered = {"latency_ms": spread([1.0]), "refused": 0, "failed": []}
    return {"purged_rows": purged, "imported_lines": 10, "backups_seen": 1, "sweeps": answered, "scrapes": answered}


def test_the_disturbed_phase_is_compared_with_the_same_load_alone() -> None:
    found = {
        "alone": phase(10.0, failed=1),
        "disturbed": phase(25.0, failed=2),
        "upkeep": [upkeep(5), upkeep(7)],
        "acknowledged": 1000,
        "lost": 0,
    }
    lines = {line.figure: line for line in lines_of(found)}
    ratio = lines["recall p95, times alone"]
    assert (ratio.measured, ratio.met) == (2.5, False)
    assert lines["recall p95"].floor == 10
    assert (lines["/health p99"].met, lines["failed"].measured, lines["failed"].met) == (True, 3, False)
    assert lines["lost of 1,000 acknowledged"].met is True
    assert lines["rows purged meanwhile (vectors, memories)"].measured == 12


def test_the_keyword_floor_extends_its_index_and_stops_when_its_time_is_over(tmp_path: Path) -> None:
    texts = Texts(2)

    def stream(source: Texts) -> Iterator[Made]:
        while True:
            yield source.memory()

    known = [Texts(2).memory()]
    questions = [Texts(2, stream=1).question(known[0], filtered=False)]
    with KeywordFloor(tmp_path / "floor.db", build_budget_s=60) as floor:
        assert floor.grow_to(50, stream(texts))
        assert floor.grow_to(120, stream(texts))
        assert floor.measure(questions, budget_s=5).count == 1
    connection = apsw.Connection(str(tmp_path / "floor.db"))
    (stored,) = connection.execute("SELECT content FROM memories WHERE seq = 1").fetchone() or ("",)
    assert connection.execute("SELECT count(*) FROM memories_fts").fetchone() == (120,)
    connection.close()
    assert stored == known[0].content
    with KeywordFloor(tmp_path / "late.db", build_budget_s=0) as late:
        assert not late.grow_to(50, stream(texts))


def test_the_vector_floor_repeats_its_block_for_more_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.floor._BLOCK", 64)
    assert vector_floor(1000, repeats=2).count == 2
    assert vector_floor(50, repeats=2).count == 2
