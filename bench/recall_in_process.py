"""The CPU time of a recall in a searcher, in this process: ``python -m bench.recall_in_process --memories N``.

``bench.load`` measures the waiting time of a client; this program measures the CPU time of a recall by stage, also on a
busy machine: it calls the recall directly on a store that the writer's own commands have filled. The questions are
those of ``bench.load``. The results are checked as well: an identifier must be found first, and the vector leg's
candidates are compared with those of an exact scan.

A store of a million memories takes a quarter of an hour to fill: ``--store`` keeps it for further runs.
"""

from __future__ import annotations

import signet_actors.searcher  # noqa: F401 - first, because it decides about numpy's threads

# isort: split
import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import structlog
from rich.console import Console
from rich.table import Table

from bench.figures import Spread, circumstances, spread, write_result
from bench.texts import Asked, Made, Texts
from signet_actors.config.schema import Config
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import dense_query
from signet_actors.protocol.header import Header
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.pipeline import FindUnembedded, SecondVector, StoreSecondVectors, UnembeddedFound
from signet_actors.protocol.searcher import GetCommonWords, Recall, Recalled
from signet_actors.protocol.writer import NewMemory, Remember, Vector
from signet_actors.providers.embedded import DIMENSIONS, MODEL, EmbeddedEmbedder
from signet_actors.providers.minilm.embedder import MiniLmEmbedder
from signet_actors.runtime.clock import SystemClock
from signet_actors.searcher import recall as recipe
from signet_actors.searcher.reader import Reader
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.store.sqlite.writer import SqliteWriter
from signet_actors.writer.group_commit import GroupCommit

ROWS_PER_COMMIT: Final = 500
SAMPLE: Final = 20_000
"""The maximum number of memories with questions, evenly chosen."""
JUDGED: Final = 100
READ_TIMEOUT_MS: Final = 120_000


class Told:
    """A command for the writer, and its reply."""

    def __init__(self, body: Any, frames: Sequence[bytes], number: int) -> None:
        self.body = body
        self.frames = frames
        self.header = Header(f"fill-{number}", "fill", "bench", 1, 0, 1, "bench")
        self.answer: Any = None

    def reply(self, body: Any, frames: Sequence[bytes] = ()) -> None:  # noqa: ARG002 - a mailbox's signature
        """Raise ValueError for a failure."""
        if isinstance(body, Failure):
            raise ValueError(f"could not fill the store: {body.detail}")  # noqa: TRY004 - no caller's mistake
        self.answer = body


def fill(
    directory: Path,
    memories: int,
    seed: int,
    embedder: EmbeddedEmbedder,
    progress: Console,
    second: MiniLmEmbedder | None = None,
) -> list[Made]:
    """Fill the store in ``directory`` with the first ``memories`` texts of ``seed``; return a sample of them."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "memories.db"
    clock = SystemClock()
    connection = open_writer(path, busy=lambda calls: calls < 100)
    try:
        migrate(connection, path, clock)
        connection.execute("INSERT OR IGNORE INTO store_meta (key, value) VALUES ('database_id', 'bench')")
        (there,) = connection.execute("SELECT count(*) FROM memories").fetchone() or (0,)
        if there not in {0, memories}:
            raise RuntimeError(f"{path} holds {there} memories")
        engine = SqliteWriter(connection)
        group = GroupCommit(engine, clock, random.Random(seed), Config(), "bench", structlog.get_logger())
        texts = Texts(seed)
        sample: list[Made] = []
        batch: list[Told] = []
        every = max(1, memories // SAMPLE)
        for number in range(memories):
            made = texts.memory()
            if number % every == 0:
                sample.append(made)
            if there:
                continue
            memory = NewMemory(
                content=made.content,
                type=made.type,
                importance=0.5,
                tags=made.tags,
                project=made.project,
                created_at=made.created_at,
                vector=Vector(MODEL, DIMENSIONS, 0, embedder.token_codes.of_text(made.content)),
            )
            frame = embedder.embed_query(made.content).astype("<f4").tobytes()
            batch.append(Told(Remember(memory, Principal()), [frame], number))
            if len(batch) == ROWS_PER_COMMIT or number == memories - 1:
                group.commit(batch)
                batch = []
                connection.execute("DELETE FROM request_replies")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                if (number + 1) % 50_000 == 0:
                    progress.print(f"[dim]{number + 1:,} memories[/dim]", highlight=False)
        if second is not None:
            add_second_vectors(group, second)
        return sample
    finally:
        connection.close()


def add_second_vectors(group: GroupCommit, embedder: MiniLmEmbedder) -> None:
    """Store a second vector of each memory that has none."""
    after, is_left = 0, True
    while is_left:
        asked = Told(FindUnembedded(after, ROWS_PER_COMMIT), [], -1)
        group.commit([asked])
        found: UnembeddedFound = asked.answer
        vectors, frames = [], []
        for text in found.texts:
            frames.append(embedder.embed_text(collapsed(text.content)).astype("<f4").tobytes())
            codes = embedder.token_codes.of_text(text.content)
            vectors.append(SecondVector(text.memory_id, text.content_hash, codes))
        group.commit([Told(StoreSecondVectors(vectors), frames, -2)])
        after, is_left = found.next, found.more


class Question(msgspec.Struct, frozen=True):
    """A query as the gateway would send it to a searcher."""

    command: Recall
    frames: list[bytes]
    identifier: str | None


def prepare(
    reader: Reader, embedder: EmbeddedEmbedder, asked: Sequence[Asked], second: MiniLmEmbedder | None = None
) -> list[Question]:
    """Return the questions with their vectors, without the scope's common words."""
    with reader.open_snapshot() as view:
        common = recipe.common_words(reader, view, GetCommonWords(ReadScope()))
    questions = []
    for one in asked:
        tags = one.body.get("tags")
        query = dense_query(one.body["query"], frozenset(common.words))
        command = Recall(
            query=one.body["query"],
            read=ReadScope(),
            filters=Filters(
                type=one.body.get("type"), tags=(tags,) if tags is not None else (), since=one.body.get("since")
            ),
            limit=one.body["limit"],
            vector_model=MODEL,
            common_words_version=common.version,
            words=tuple(embedder.token_codes.of_query(query)),
        )
        vectors = [embedder.embed_query(query)]
        if second is not None:
            vectors.append(second.embed_query(query))
            words = tuple(second.token_codes.of_query(query))
            command = msgspec.structs.replace(
                command, former_model=second.model, prefers_former=True, former_words=words
            )
        questions.append(Question(command, [vector.astype("<f4").tobytes() for vector in vectors], one.identifier))
    return questions


def answer(reader: Reader, question: Question) -> Recalled:
    """Run one recall."""
    with reader.open_snapshot() as view:
        return recipe.recall(reader, view, question.command, question.frames)


def measure(reader: Reader, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the CPU milliseconds of each stage and in total, and how many identifiers were first."""
    stages: dict[str, list[float]] = {}
    whole: list[float] = []
    waited: list[float] = []
    asked = first = 0
    for question in questions:
        before, began = time.process_time(), time.perf_counter()
        found = answer(reader, question)
        whole.append((time.process_time() - before) * 1000)
        waited.append((time.perf_counter() - began) * 1000)
        for stage in found.timings:
            stages.setdefault(stage.name, []).append(stage.duration_ms)
        if question.identifier is not None:
            asked += 1
            first += bool(found.rows) and question.identifier in found.rows[0].content
    return {
        "stages": {name: spread(values) for name, values in stages.items()},
        "mean_ms": {name: round(sum(values) / len(values), 3) for name, values in {**stages, "whole": whole}.items()},
        "cpu_ms": spread(whole),
        "wall_ms": spread(waited),
        "identifiers": asked,
        "identifiers_first": first,
    }


def vector_overlap(reader: Reader, questions: Sequence[Question]) -> dict[str, float]:
    """Return the share (per cent) of an exact scan's best 10 and best 200 permitted rows that the vector leg finds."""
    at_10: list[float] = []
    at_200: list[float] = []
    for question in questions:
        with reader.open_snapshot() as view:
            reader.sync(view)
            leg = reader.vector_leg(view, MODEL, DIMENSIONS)
            if leg is None:
                return {}
            allowed = reader.allowed_rows(view, question.command.read, question.command.filters)
            query = np.frombuffer(question.frames[0], np.float32)
            found = leg.search(view, reader.columns, query, allowed, pool=200).seqs
            seqs = np.flatnonzero(allowed)
            cosines: npt.NDArray[np.float64] = leg.cosines(view, reader.columns, query, seqs)
        best = seqs[np.argsort(-np.nan_to_num(cosines, nan=-2.0), kind="stable")]
        at_10.append(float(np.isin(best[:10], found[:10]).mean()) if len(best) else 1.0)
        at_200.append(float(np.isin(best[:200], found).mean()) if len(best) else 1.0)
    return {"at 10": round(100 * float(np.mean(at_10)), 2), "at 200": round(100 * float(np.mean(at_200)), 2)}


def table_of(memories: int, found: dict[str, Any]) -> Table:
    """Return a table of stages and percentiles."""
    table = Table(title=f"CPU milliseconds of a recall in a searcher, {memories:,} memories")
    for name in ("stage", "p50", "p95", "mean"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    rows: dict[str, Spread] = {**found["stages"], "whole": found["cpu_ms"]}
    for name, took in rows.items():
        table.add_row(name, f"{took.p50:.3f}", f"{took.p95:.3f}", f"{found['mean_ms'][name]:.3f}")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall_in_process", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--second", action="store_true", help="with second vectors, as the provider auto makes them")
    parser.add_argument("--store", type=Path, help="a directory to keep the store in; default: a throw-away one")
    options = parser.parse_args(arguments)
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    recipe.perf_counter = time.process_time  # type: ignore[attr-defined]  # stages in CPU time
    embedder, second = EmbeddedEmbedder(), MiniLmEmbedder() if options.second else None
    with ExitStack() as stack:
        directory = options.store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-")))
        known = fill(directory, options.memories, options.seed, embedder, progress, second)
        before = time.process_time()
        engine = read_engine(directory / "memories.db")
        reader = Reader(engine, directory / "index", SystemClock(), read_timeout_ms=READ_TIMEOUT_MS)
        stack.callback(reader.close)
        while not reader.catch_up():
            pass
        caught_up_s = time.process_time() - before
        asked = Texts(options.seed + 1).questions(known, options.questions + 50)
        questions = prepare(reader, embedder, asked, second)
        for question in questions[:50]:
            answer(reader, question)
        found = {
            **measure(reader, questions[50:]),
            "memories": options.memories,
            "caught_up_cpu_s": round(caught_up_s, 3),
            "vector_overlap": vector_overlap(reader, questions[:JUDGED]),
            "circumstances": circumstances(),
        }
    console.print(table_of(options.memories, found))
    console.print(
        f"identifiers first {found['identifiers_first']}/{found['identifiers']}, vector leg against an exact scan"
        f" {found['vector_overlap']} %, caught up in {caught_up_s:.2f} s of CPU, wall p50 {found['wall_ms'].p50:.2f}"
        f" p95 {found['wall_ms'].p95:.2f} ms",
        highlight=False,
    )
    console.print(str(write_result("recall", found)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
