"""Train the order of an episode's rows, and say what it is worth: ``python -m bench.episode_order FILE [--write]``.

FILE is a LoCoMo file. Its turns and its observations are stored and asked in this process with both local models; the
recall itself gives the figures of its best candidates. The gain is cross-validated: each conversation is ordered by
trees that were trained on all others. ``--write`` trains on all and
writes ``signet_actors/domain/ranking/episode_trees.py``.

Source: docs/quality.md "Order within an episode".
"""

from __future__ import annotations

import signet_actors.searcher  # noqa: F401 - first, because it decides about numpy's threads

# isort: split
import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import structlog
from rich.console import Console
from rich.table import Table

from bench.boosted_trees import DEPTH, Ranked, Trees, trained
from bench.figures import circumstances, write_result
from bench.generality import facts_of, joined
from bench.recall_in_process import READ_TIMEOUT_MS, ROWS_PER_COMMIT, Told
from signet_actors.config.schema import Config
from signet_actors.domain.evaluation.bootstrap import differences
from signet_actors.domain.evaluation.locomo import Conversation, question_set, read_conversations
from signet_actors.domain.evaluation.measures import scores
from signet_actors.domain.evaluation.question_set import Question, QuestionSet
from signet_actors.domain.query_words import dense_query
from signet_actors.domain.ranking import episode_order
from signet_actors.domain.temporal.intent import intent_of_query
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import GetCommonWords, Recall
from signet_actors.protocol.writer import NewMemory, Remember, Vector
from signet_actors.providers.embedded import EmbeddedEmbedder
from signet_actors.providers.embedding import Embedder, encode, encode_query
from signet_actors.providers.minilm.embedder import MiniLmEmbedder
from signet_actors.runtime.clock import SystemClock
from signet_actors.searcher import recall as recipe
from signet_actors.searcher.reader import Reader
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.store.sqlite.writer import SqliteWriter
from signet_actors.writer.group_commit import GroupCommit

SCALE: Final = 8.0
LIMIT: Final = 50
OUTPUT: Final = Path(episode_order.__file__).with_name("episode_trees.py")
_SEED: Final = 5


class Recorded(NamedTuple):
    """One question: what its conversation is, the best candidates, and the results of the recall without the stage."""

    agent: str
    evidence: list[frozenset[str]]
    seqs: list[str]
    episodes: Any
    inside: Any
    ranked: Ranked
    found: list[str]


class _Recorder:
    """Stands where a recall orders episodes: keeps the figures, and changes nothing."""

    def __init__(self) -> None:
        self.first: Any = None

    def ordered(self, of: episode_order.Scored, near: Any) -> Any:
        """Keep what the trees would see; return the scores as they are."""
        first = episode_order.best(of.scores, episode_order.ROWS)
        self.first = first, near.episode[first], near.in_conversation[first]
        self.figures, self.scores = episode_order.features(of, near, first), of.scores[first]
        return of.scores


def sets(conversations: Sequence[Conversation]) -> Iterator[tuple[str, QuestionSet]]:
    """Yield what is stored and asked, by name."""
    facts = joined(map(facts_of, conversations))
    yield "chats", question_set(conversations)
    if facts.questions:
        yield "facts in order", facts


def recorded(asked: QuestionSet, embedder: Embedder, directory: Path) -> list[Recorded]:
    """Store the memories, ask, and return what was recorded of each question with rows of conversations."""
    rows_of = _fill(asked, embedder, directory)
    reader = Reader(
        read_engine(directory / "memories.db"), directory / "index", SystemClock(), read_timeout_ms=READ_TIMEOUT_MS
    )
    while not reader.catch_up():
        pass
    recorder, candidates, kept = _Recorder(), recipe._candidates, []
    seen: list[Any] = []

    def noting(*arguments: Any) -> Any:
        seen[:] = [candidates(*arguments)]
        return seen[0]

    ordered = episode_order.ordered
    patches: Any = episode_order, recipe
    patches[0].ordered, patches[1]._candidates = recorder.ordered, noting
    try:
        for question in asked.questions:
            recorder.first = None
            found = _ask(reader, question, embedder)
            if recorder.first is not None:
                first, episodes, inside = recorder.first
                seqs = list(map(str, seen[0][0][first].tolist()))
                evidence = [rows_of[key] for key in question.evidence]
                answers = np.isin(seqs, sorted(frozenset().union(*evidence)))
                ranked = Ranked(recorder.figures, recorder.scores, answers)
                kept.append(Recorded(question.agent or "", evidence, seqs, episodes, inside, ranked, found))
    finally:
        patches[0].ordered, patches[1]._candidates = ordered, candidates
        reader.close()
    return kept


def _ask(reader: Reader, question: Question, embedder: Embedder) -> list[str]:
    """Return the results of a recall as the gateway would ask for it, best first."""
    read, minimum = ReadScope(question.agent or "default"), Config().search.min_score
    intent = intent_of_query(question.text, datetime.now(UTC))
    text = question.text if intent is None else intent.search_text
    with reader.open_snapshot() as snapshot:
        common = recipe.common_words(reader, snapshot, GetCommonWords(read))
        vector, words = encode_query(embedder, dense_query(text, frozenset(common.words)))
        command = Recall(
            query=text,
            read=read,
            limit=LIMIT,
            min_score=minimum,
            vector_model=embedder.model,
            common_words_version=None,
            near_ms=None if intent is None else intent.window,
            words=words,
        )
        found = recipe.recall(reader, snapshot, command, [vector.astype("<f4").tobytes()])
    return [str(row.seq) for row in found.rows]


def _fill(asked: QuestionSet, embedder: Embedder, directory: Path) -> dict[str, frozenset[str]]:
    """Store the memories; return the rows of each. Memories with the same text share a row."""
    connection = open_writer(directory / "memories.db", busy=lambda calls: calls < 100)
    clock = SystemClock()
    place_of: dict[tuple[object, ...], str] = {}
    try:
        migrate(connection, directory / "memories.db", clock)
        connection.execute("INSERT OR IGNORE INTO store_meta (key, value) VALUES ('database_id', 'bench')")
        group = GroupCommit(
            SqliteWriter(connection), clock, random.Random(_SEED), Config(), "bench", structlog.get_logger()
        )
        batch: list[Told] = []
        places: dict[str, str] = {}
        for number, memory in enumerate(asked.memories):
            places[memory.key] = place_of.setdefault(memory.identity(), str(number))
            if places[memory.key] == str(number):
                batch.append(_remember(memory.line, embedder, number))
            if len(batch) == ROWS_PER_COMMIT:
                group.commit(batch)
                batch = []
        group.commit(batch)
        found = connection.execute("SELECT source_id, seq FROM memories").fetchall()
        rows = {str(place): str(seq) for place, seq in found}
    finally:
        connection.close()
    return {key: frozenset({rows[place]}) for key, place in places.items()}


def _remember(line: Any, embedder: Embedder, number: int) -> Told:
    vectors, (codes,) = encode(embedder, [line["content"]])
    memory = NewMemory(
        content=line["content"],
        type="fact",
        importance=0.5,
        agent_id=line["agentId"],
        visibility=line["visibility"],
        source_id=str(number),
        created_at=line.get("createdAt"),
        vector=Vector(embedder.model, embedder.dimensions, 0, codes),
    )
    return Told(Remember(memory, Principal()), [vectors[0].astype("<f4").tobytes()], number)


def cross_validated(everything: dict[str, list[Recorded]]) -> dict[str, list[Any]]:
    """Return the differences of R@10, R@50 and nDCG@10 by set, each conversation ordered by trees of all others."""
    agents = sorted({one.agent for part in everything.values() for one in part})
    of_others = {
        agent: trained([one.ranked for part in everything.values() for one in part if one.agent != agent], SCALE)
        for agent in agents
    }
    return {
        name: differences(
            [scores(one.found, one.evidence, LIMIT) for one in part],
            [scores(reordered(one, of_others[one.agent]), one.evidence, LIMIT) for one in part],
        )
        for name, part in everything.items()
    }


def reordered(one: Recorded, trees: Trees) -> list[str]:
    """Return the results of a question with the rows of each episode in the order of ``trees``."""
    worth = SCALE * one.ranked.scores + episode_order.sums(one.ranked.figures, trees)
    shown = set(one.found)
    rows = [at for at in np.flatnonzero(one.inside).tolist() if one.seqs[at] in shown]
    places: dict[int, list[int]] = {}
    for at in rows:
        places.setdefault(int(one.episodes[at]), []).append(at)
    place_of = {seq: place for place, seq in enumerate(one.found)}
    found = list(one.found)
    for members in places.values():
        slots = sorted(place_of[one.seqs[at]] for at in members)
        for slot, at in zip(slots, sorted(members, key=lambda at: -worth[at]), strict=True):
            found[slot] = one.seqs[at]
    return found


def module_of(trees: Trees) -> str:
    """Return the text of the module with the trees."""
    head = OUTPUT.read_text(encoding="utf-8").partition('TREES: Final = """\n')
    lines = []
    for compared, thresholds, leaves in zip(*trees, strict=True):
        lines.append(" ".join(map(str, compared)) + "  " + " ".join(f"{value:.4g}" for value in thresholds))
        lines.append(" ".join(f"{value:.4g}" for value in leaves))
    return head[0] + head[1] + "\n".join(lines) + '\n"""\n'


def table_of(found: dict[str, list[Any]]) -> Table:
    """Return a table of the gains."""
    table = Table(title=f"Order within an episode, trees of depth {DEPTH}: gain, cross-validated by conversation")
    for name in ("", "R@10", "R@50", "nDCG@10"):
        table.add_column(name, justify="right" if name else "left")
    for name, gains in found.items():
        cells = (f"{100 * one.mean:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f})" for one in gains[1:])
        table.add_row(name, *cells)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be trained."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.episode_order", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path, help="a LoCoMo JSON file")
    parser.add_argument("--write", action="store_true", help="write the trees of all conversations")
    options = parser.parse_args(arguments)
    conversations = read_conversations(options.file.read_bytes())
    everything: dict[str, list[Recorded]] = {}
    for embedder in (EmbeddedEmbedder(), MiniLmEmbedder()):
        for name, asked in sets(conversations):
            with tempfile.TemporaryDirectory(prefix="signet-bench-") as directory:
                found_in = recorded(asked, embedder, Path(directory))
            if found_in:
                everything[f"{name}, {embedder.provider}"] = found_in
    if options.write:
        trees = trained([one.ranked for part in everything.values() for one in part], SCALE)
        OUTPUT.write_text(module_of(trees), encoding="utf-8")
    found = cross_validated(everything)
    Console(width=None if sys.stdout.isatty() else 120).print(table_of(found))
    print(write_result("episode-order", {"circumstances": circumstances(), "found": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
