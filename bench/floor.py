"""The best possible figures of the machine: the same work without processes, HTTP, authorisation or ranking.

They are measured in the same run, on the same file system and with the same texts as the daemon's figures, so that a
ratio to them depends on the daemon and not on the machine.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import apsw
import msgspec
import numpy as np

from bench.figures import Spread, spread
from bench.texts import Asked, Made
from signet_actors.domain.query_words import fts_match
from signet_actors.providers.embedded import DIMENSIONS, EmbeddedEmbedder

_SCHEMA: Final = """
CREATE TABLE memories (seq INTEGER PRIMARY KEY, content TEXT NOT NULL, type TEXT, tags TEXT, created_at TEXT) STRICT;
CREATE VIRTUAL TABLE memories_fts USING fts5 (content, content = 'memories', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TRIGGER memories_ai AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, content) VALUES (new.seq, new.content);
END;
CREATE TABLE history (seq INTEGER PRIMARY KEY, memory_seq INTEGER, event TEXT, new_content TEXT) STRICT;
CREATE TABLE jobs (seq INTEGER PRIMARY KEY, memory_seq INTEGER, status TEXT) STRICT;
"""


_SLAB: Final = 2_000
_BLOCK: Final = 200_000


class WriteFloor(msgspec.Struct, frozen=True):
    """Durable rows per second with that many in each commit, and the time of one commit."""

    rows_per_commit: int
    rows_per_s: float
    commit_ms: Spread


def write_floor(directory: Path, memories: Sequence[Made], *, rows_per_commit: int, budget_s: float) -> WriteFloor:
    """Measure raw SQLite with ``synchronous=FULL`` and the rows of a remember, at most ``budget_s`` seconds."""
    connection = _open(directory / f"write-floor-{rows_per_commit}.db")
    took: list[float] = []
    rows = 0
    began = time.perf_counter()
    for start in range(0, len(memories) - rows_per_commit + 1, rows_per_commit):
        before = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        for made in memories[start : start + rows_per_commit]:
            _insert(connection, made)
        connection.execute("COMMIT")
        took.append((time.perf_counter() - before) * 1000)
        rows += rows_per_commit
        if time.perf_counter() - began > budget_s:
            break
    rate = rows / (time.perf_counter() - began)
    connection.close()
    return WriteFloor(rows_per_commit=rows_per_commit, rows_per_s=rate, commit_ms=spread(took))


class KeywordFloor:
    """Only the FTS5 query of a recall: no filter, no fetch. One index is extended from size to size.

    ``build_budget_s`` limits the total time of building it.
    """

    def __init__(self, path: Path, *, build_budget_s: float) -> None:
        self._connection = _open(path)
        self._left_s = build_budget_s
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def grow_to(self, size: int, memories: Iterator[Made]) -> bool:
        """Return whether the index contains the first ``size`` texts; False if the time was used up before."""
        began = time.perf_counter()
        while self._size < size and time.perf_counter() - began < self._left_s:
            self._connection.execute("BEGIN")
            for made in itertools.islice(memories, min(_SLAB, size - self._size)):
                self._connection.execute(
                    "INSERT INTO memories (content, type, tags, created_at) VALUES (?, ?, ?, ?)",
                    (made.content, made.type, ",".join(made.tags), made.created_at),
                )
                self._size += 1
            self._connection.execute("COMMIT")
        self._left_s -= time.perf_counter() - began
        return self._size >= size

    def measure(self, questions: Sequence[Asked], *, budget_s: float) -> Spread:
        """Run the query of each question once, as many as fit into ``budget_s``."""
        expressions = [expression for asked in questions if (expression := fts_match(asked.body["query"])) is not None]

        def query(at: int) -> None:
            self._connection.execute(
                "SELECT rowid, bm25(memories_fts) FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rank LIMIT 300",
                (expressions[at],),
            ).fetchall()

        return _repeat(query, len(expressions), budget_s)


def vector_floor(count: int, *, repeats: int = 200, budget_s: float = 2.0) -> Spread:
    """Measure the exact nearest neighbours of one float32 query among ``count`` vectors with numpy: product and top
    300.

    Beyond ``_BLOCK`` vectors the product is repeated over the same block, which is larger than any cache: each pass
    reads as much memory as other vectors would, without a load generator of a gigabyte.
    """
    rng = np.random.default_rng(7)
    block = rng.standard_normal((min(count, _BLOCK), DIMENSIONS), dtype=np.float32)
    query = rng.standard_normal(DIMENSIONS, dtype=np.float32)
    pool = min(300, count - 1)
    cosines = np.empty(count, dtype=np.float32)

    def search(_at: int) -> None:
        for begin in range(0, count, len(block)):
            part = cosines[begin : begin + len(block)]
            np.matmul(block[: len(part)], query, out=part)
        best = np.argpartition(-cosines, pool)[:pool]
        best[np.argsort(-cosines[best])]

    return _repeat(search, repeats, budget_s)


def embedding_floor(memories: Sequence[Made], *, budget_s: float = 1.0) -> Spread:
    """Measure the embedding of one text with the embedded model."""
    embedder = EmbeddedEmbedder()
    return _repeat(lambda at: _discard(embedder.embed_query(memories[at].content)), len(memories), budget_s)


def _repeat(action: Callable[[int], None], times: int, budget_s: float) -> Spread:
    took: list[float] = []
    deadline = time.perf_counter() + budget_s
    for at in range(times):
        before = time.perf_counter()
        action(at)
        after = time.perf_counter()
        took.append((after - before) * 1000)
        if after > deadline:
            break
    return spread(took)


def _discard(_value: object) -> None:
    return None


def _open(path: Path) -> apsw.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(_SCHEMA)
    return connection


def _insert(connection: apsw.Connection, made: Made) -> None:
    connection.execute(
        "INSERT INTO memories (content, type, tags, created_at) VALUES (?, ?, ?, ?)",
        (made.content, made.type, ",".join(made.tags), made.created_at),
    )
    seq = connection.last_insert_rowid()
    connection.execute(
        "INSERT INTO history (memory_seq, event, new_content) VALUES (?, 'created', ?)", (seq, made.content)
    )
    connection.execute("INSERT INTO jobs (memory_seq, status) VALUES (?, 'pending')", (seq,))
