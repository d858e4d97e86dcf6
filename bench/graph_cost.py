"""What the knowledge graph costs a searcher: ``python -m bench.graph_cost --memories 100000``.

A store as of ``bench.recall_in_process`` gets a made-up graph of 20,000 entities whose names are words of the texts,
with 200,000 mentions, 100,000 attributes and 40,000 edges of each kind. Measured are the memory and the CPU time of the
index, and the CPU time of each recall with and without it, alternately. Nearly every question names some of the
entities, which is the dear case; the questions that name none are counted apart.
"""

from __future__ import annotations

import signet_actors.searcher  # noqa: F401 - first, because it decides about numpy's threads

# isort: split
import argparse
import gc
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.figures import circumstances, spread, write_result
from bench.recall_in_process import READ_TIMEOUT_MS, Question, answer, fill, prepare
from bench.texts import Texts
from signet_actors.domain.ranking.stage_settings import Traversal
from signet_actors.providers.embedded import EmbeddedEmbedder
from signet_actors.runtime.clock import SystemClock
from signet_actors.searcher.graph.graph_index import GraphIndex
from signet_actors.searcher.reader import AT_START, Reader
from signet_actors.store.sqlite.reader import read_engine

ENTITIES: Final = 20_000
MENTIONS: Final = 200_000
ATTRIBUTES: Final = 100_000
EDGES: Final = 40_000
ASPECTS: Final = 2
_NOW: Final = "2026-01-01T00:00:00.000Z"
_WORD: Final = re.compile("[a-z]{4,}")
_SAMPLED: Final = 20_000
_WORDS: Final = 8_000


def make_graph(path: Path, seed: int) -> None:
    """Store a made-up graph in the database of a store; few entities have most of the links."""
    rng = random.Random(seed)
    with closing(sqlite3.connect(path)) as connection, connection:
        if connection.execute("SELECT count(*) FROM entities WHERE entity_type = 'concept'").fetchone()[0]:
            return
        memories = [memory for (memory,) in connection.execute("SELECT id FROM memories ORDER BY seq")]
        texts = connection.execute("SELECT content FROM memories LIMIT ?", (_SAMPLED,))
        words = Counter(word for (text,) in texts for word in set(_WORD.findall(text.lower())))
        frequent = [word for word, _ in words.most_common(_WORDS)]
        names: dict[str, None] = {}
        while len(names) < ENTITIES:
            names[" ".join(rng.choice(frequent) for _ in range(rng.choice((1, 2, 2, 3))))] = None

        def chosen() -> int:
            return int(ENTITIES * rng.random() ** 2)

        def pairs() -> list[tuple[Any, ...]]:
            found = {(chosen(), chosen()) for _ in range(EDGES)}
            return [(f"edge-{a}-{b}", f"e{a}", f"e{b}", rng.random(), _NOW, _NOW) for a, b in found if a != b]

        def put(table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)

        stamped = "created_at, updated_at"
        entities = [(f"e{at}", name, name, "concept", "default", _NOW, _NOW) for at, name in enumerate(names)]
        put("entities", f"id, name, canonical_name, entity_type, agent_id, {stamped}", entities)
        aspects = [
            (f"a{entity}-{at}", f"e{entity}", "default", f"aspect {at}", f"aspect {at}", rng.random(), _NOW, _NOW)
            for entity in range(ENTITIES)
            for at in range(ASPECTS)
        ]
        put("entity_aspects", f"id, entity_id, agent_id, name, canonical_name, weight, {stamped}", aspects)
        mentions = {(rng.choice(memories), f"e{chosen()}") for _ in range(MENTIONS)}
        put("memory_entity_mentions", "memory_id, entity_id, created_at", [(*each, _NOW) for each in mentions])
        stated = []
        for at in range(ATTRIBUTES):
            entity, kind = chosen(), "constraint" if at % 50 == 0 else "attribute"
            of = (f"f{at}", f"e{entity}", f"a{entity}-{at % ASPECTS}", "default", rng.choice(memories))
            stated.append((*of, "a fact", kind, rng.random(), "structured", _NOW, _NOW, _NOW))
        columns = "id, entity_id, aspect_id, agent_id, memory_id, content, kind, importance, source, source_at"
        put("entity_attributes", f"{columns}, {stamped}", stated)
        columns = f"id, source_entity_id, target_entity_id, strength, {stamped}"
        put("relations", f"{columns}, relation_type", [(*each, "related_to") for each in pairs()])
        put(
            "entity_dependencies",
            f"{columns}, agent_id, dependency_type",
            [(*each, "default", "uses") for each in pairs()],
        )
        connection.execute(
            "UPDATE entities SET mentions ="
            " (SELECT count(*) FROM memory_entity_mentions x WHERE x.entity_id = entities.id)"
        )


def index_cost(reader: Reader) -> dict[str, float]:
    """Return the CPU seconds that an index takes to be read, and its private memory in MB."""
    with reader.open_snapshot() as view:
        reader.columns.sync(view)
    before, began, index, steps = _private_mb(), time.process_time(), GraphIndex(), 0
    while not index.complete:
        with reader.open_snapshot() as view:
            index.sync(view, max_rows=AT_START.graph)
        steps += 1
    return {"cpu_s": round(time.process_time() - began, 2), "steps": steps, "mb": round(_private_mb() - before, 1)}


def _private_mb() -> float:
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def measure(reader: Reader, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the CPU milliseconds of recalls with and without the graph, by whether the question names an entity."""
    took: dict[str, list[float]] = {}
    for at, question in enumerate(questions):
        with_graph = msgspec.structs.replace(
            question, command=msgspec.structs.replace(question.command, graph=Traversal(), beside=True)
        )
        pair = [("without", question), ("with", with_graph)]
        cpu, names = {}, False
        for name, asked in pair if at % 2 else pair[::-1]:
            before = time.process_time()
            found = answer(reader, asked)
            cpu[name] = (time.process_time() - before) * 1000
            names = names or bool(found.entities)
        for name, value in cpu.items():
            took.setdefault(f"{name}, {'names' if names else 'names no'} entity", []).append(value)
    return {name: {"questions": len(values), "cpu_ms": spread(values)} for name, values in sorted(took.items())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.graph_cost", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--store", type=Path, help="a directory to keep the store in; default: a throw-away one")
    options = parser.parse_args(arguments)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 120)
    embedder = EmbeddedEmbedder()
    with ExitStack() as stack:
        directory = options.store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-")))
        known = fill(directory, options.memories, options.seed, embedder, progress)
        make_graph(directory / "memories.db", options.seed)
        engine = read_engine(directory / "memories.db")
        reader = Reader(engine, directory / "index", SystemClock(), read_timeout_ms=READ_TIMEOUT_MS)
        stack.callback(reader.close)
        index = index_cost(reader)
        while not reader.catch_up():
            pass
        questions = prepare(reader, embedder, Texts(options.seed + 1).questions(known, options.questions + 50))
        measure(reader, questions[:50])
        found = {"index": index, "recalls": measure(reader, questions[50:]), "circumstances": circumstances()}
    console.print(f"index: {index}", highlight=False)
    for name, figures in found["recalls"].items():
        console.print(f"{name}: {figures}", highlight=False)
    console.print(str(write_result("graph-cost", found)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
