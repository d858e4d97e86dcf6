"""Evidence recall on a LoCoMo file through the HTTP API: ``make bench-recall LOCOMO=path/to/file.json``.

Each dialogue turn is one memory (``signet_actors/domain/evaluation/locomo.py``), each question one recall with limit
50, asked when every memory has its vector, and again with keywords only. The score is the share of the turns labelled
as evidence among the first results. Results contain figures only, no text of the data set.

Source: docs/quality.md "How it is measured"; Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM
Agents", ACL 2024.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench.client import Connection, ProtocolError
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, post_json, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from signet_actors.domain.evaluation.locomo import CATEGORIES, Conversation, read_conversations
from signet_actors.domain.evaluation.measures import evidence_recall, ndcg
from signet_actors.domain.evaluation.question_set import Question

LIMIT: Final = 50
KEYWORD_ONLY: Final = "embedding:\n  provider: none\n"
TARGETS: Final = (81.0, 92.0, 62.0)
"""R@10, R@50, nDCG@10 of five conversations with the embedded model."""


class Score(msgspec.Struct, frozen=True):
    """The scores of one question, each in [0, 1]."""

    category: str
    at_10: float
    at_50: float
    ndcg_10: float
    hits: int


class Store:
    """The rows of each turn, learned from the responses to the remember requests."""

    def __init__(self) -> None:
        self._rows: dict[str, frozenset[str]] = {}
        self.chunked = 0
        self.deduped = 0
        self.redacted = 0

    @property
    def size(self) -> int:
        """The number of stored turns."""
        return len(self._rows)

    def learn(self, key: str, reply: Mapping[str, Any]) -> None:
        """Record the rows of the turn that the daemon returned."""
        if "id" in reply:
            ids = frozenset({reply["id"]})
        else:
            ids = frozenset(reply["ids"])
            self.chunked += 1
        self.deduped += bool(reply.get("deduped"))
        self.redacted += bool(reply.get("redacted"))
        self._rows[key] = ids

    def evidence(self, question: Question) -> list[frozenset[str]]:
        """Return the rows of each turn that answers the question; missing turns are left out."""
        return [self._rows[key] for key in question.evidence if key in self._rows]


async def fill(daemon: Daemon, conversations: Sequence[Conversation]) -> Store:
    """Store every turn: conversations concurrently, the turns of each in their order."""
    store = Store()

    async def one(conversation: Conversation) -> None:
        connection = await Connection.open(daemon.address.host, daemon.address.port)
        try:
            for memory in conversation.memories():
                reply = await post_json(daemon, connection, "/api/memory/remember", memory.line)
                store.learn(memory.key, reply)
        finally:
            connection.close()

    await asyncio.gather(*(one(conversation) for conversation in conversations))
    return store


async def ask_all(
    daemon: Daemon, conversations: Sequence[Conversation], store: Store
) -> tuple[list[Score], list[float], dict[str, int]]:
    """Return the score of every question with evidence, the latencies in milliseconds, and responses by method."""
    scores: list[Score] = []
    took: list[float] = []
    methods: dict[str, int] = {}
    connection = await Connection.open(daemon.address.host, daemon.address.port)
    try:
        for conversation in conversations:
            for question in conversation.asked():
                evidence = store.evidence(question)
                if not evidence:
                    continue
                body = {"query": question.text, "limit": LIMIT, "agentId": question.agent}
                before = time.perf_counter()
                reply = await post_json(daemon, connection, "/api/memory/recall", body)
                took.append((time.perf_counter() - before) * 1000)
                methods[reply["method"]] = methods.get(reply["method"], 0) + 1
                found = [result["id"] for result in reply["results"]]
                scores.append(
                    Score(
                        category=question.category,
                        at_10=evidence_recall(found, evidence, 10),
                        at_50=evidence_recall(found, evidence, 50),
                        ndcg_10=ndcg(found, evidence, 10),
                        hits=len(found),
                    )
                )
    finally:
        connection.close()
    return scores, took, methods


class Summary(msgspec.Struct, frozen=True):
    """Means over questions, in per cent."""

    questions: int
    recall_at_10: float
    recall_at_50: float
    ndcg_at_10: float
    no_hit: float


def summary(scores: Sequence[Score]) -> Summary:
    """Return the means; all 0 without questions."""
    count = max(1, len(scores))

    def mean(values: Iterable[float]) -> float:
        return round(100 * sum(values) / count, 2)

    return Summary(
        questions=len(scores),
        recall_at_10=mean(score.at_10 for score in scores),
        recall_at_50=mean(score.at_50 for score in scores),
        ndcg_at_10=mean(score.ndcg_10 for score in scores),
        no_hit=mean(float(score.hits == 0) for score in scores),
    )


def table_of(found: Mapping[str, tuple[list[Score], Spread]]) -> Table:
    """Return a table of search modes and kinds of question."""
    table = Table(title="Evidence recall on LoCoMo, %")
    table.add_column("")
    for name in ("questions", "R@10", "R@50", "nDCG@10", "no hit", "p50 ms", "p95 ms"):
        table.add_column(name, justify="right")
    for way, (scores, took) in found.items():
        whole = summary(scores)
        table.add_row(*_cells(way, whole), f"{took.p50:.2f}", f"{took.p95:.2f}", style="bold")
        for name in CATEGORIES.values():
            part = [score for score in scores if score.category == name]
            if part:
                table.add_row(*_cells(f"  {name}", summary(part)), "", "")
        table.add_section()
    table.add_row("target (fused)", "", *(f"≥ {target:g}" for target in TARGETS), "", "", "")
    return table


def _cells(name: str, figures: Summary) -> tuple[str, ...]:
    return (
        name,
        str(figures.questions),
        f"{figures.recall_at_10:.1f}",
        f"{figures.recall_at_50:.1f}",
        f"{figures.ndcg_at_10:.1f}",
        f"{figures.no_hit:.1f}",
    )


def measure(conversations: Sequence[Conversation], workspace: Path, settings: str, progress: Console) -> dict[str, Any]:
    """Measure both search modes on one workspace, with a restart of the daemon between them."""
    found: dict[str, tuple[list[Score], Spread]] = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        with Daemon(workspace, settings=settings) as daemon:
            began = time.perf_counter()
            store = runner.run(fill(daemon, conversations))
            filled_s = time.perf_counter() - began
            progress.print(
                f"{store.size} turns remembered in {filled_s:.1f} s"
                f" ({store.chunked} as chunks, {store.deduped} equal to an earlier one)",
                highlight=False,
            )
            daemon.wait_for_vectors()
            embedded_s = time.perf_counter() - began
            progress.print(f"every memory has its vector after {embedded_s:.1f} s", highlight=False)
            methods = {}
            scores, took, methods["fused"] = runner.run(ask_all(daemon, conversations, store))
            found["fused"] = scores, spread(took)
        with Daemon(workspace, settings=KEYWORD_ONLY) as daemon:
            scores, took, methods["keyword only"] = runner.run(ask_all(daemon, conversations, store))
            found["keyword only"] = scores, spread(took)
    return {"found": found, "store": store, "methods": methods, "filled_s": filled_s, "embedded_s": embedded_s}


def result_of(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result to be written: figures without any text of the data set."""
    store: Store = measured["store"]
    return {
        "circumstances": circumstances(),
        "turns": store.size,
        "chunked": store.chunked,
        "deduped": store.deduped,
        "redacted": store.redacted,
        "filled_s": round(measured["filled_s"], 2),
        "embedded_s": round(measured["embedded_s"], 2),
        "methods": measured["methods"],
        "ways": {
            way: {
                "all": summary(scores),
                "latency_ms": took,
                "categories": {
                    name: summary([score for score in scores if score.category == name]) for name in CATEGORIES.values()
                },
            }
            for way, (scores, took) in measured["found"].items()
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.locomo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="a LoCoMo JSON file")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="an agent.yaml for the daemon")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        conversations = read_conversations(options.file.read_bytes())
        settings = options.settings.read_text(encoding="utf-8") if options.settings else ""
    except (OSError, ValueError) as error:
        progress.print(f"[red]{error}[/red]", highlight=False)
        return 66
    with throw_away_workspace() as workspace:
        try:
            measured = measure(conversations, workspace, settings, progress)
        except (DaemonFailed, ProtocolError, TimeoutError) as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    console.print(table_of(measured["found"]))
    console.print(str(write_result("locomo", result_of(measured))), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
