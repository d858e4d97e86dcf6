"""The isolation benchmark: rows to purge, lost memories, and the reported ratio."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from bench.figures import spread
from bench.isolation import lines_of, lost


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


def test_an_acknowledged_memory_that_is_absent_or_deleted_is_lost(database: tuple[Path, apsw.Connection]) -> None:
    path, _ = database
    assert lost(path, {"kept"}) == 0
    assert lost(path, {"kept", "forgotten", "never-stored"}) == 2
    assert lost(path, set()) == 0


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
