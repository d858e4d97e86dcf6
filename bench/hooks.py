"""How long the hooks take, and what the record of a session costs a recall: ``python -m bench.hooks``.

One client on one connection asks for recalls without a session and, in turn, in a session that receives more and more;
then for starts of sessions and for prompts. ``--model`` adds a model server that hangs or takes a second for each call,
and jobs that wait for it. The targets are for 10,000 memories on a quiet machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.loaded_daemon import LoadedDaemon, must_have_worked
from bench.model_server import model_server
from bench.pipeline import DRAIN_BUDGET_S, QUEUE_CLIENTS, settings
from bench.texts import PROJECTS, Made, Texts

TARGETS: Final = {"session-start": "p95 ≤ 60 ms", "user-prompt-submit": "p95 ≤ 15 ms", "recall in a session": "p50 + 1"}
RECALL: Final = "/api/memory/recall"
WARM_UP: Final = 30
JOBS: Final = 500
MODELS: Final = {"hangs": 30.0, "slow": 1.0}
"""Seconds that each call of the model takes."""

Request = tuple[str, str, dict[str, Any]]
"""The kind of a request, its path and its body."""


class Asker:
    """One client on one connection."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=60)
        self.latencies_ms: dict[str, list[float]] = {}
        self.skipped = 0

    def ask(self, kind: str, path: str, body: Mapping[str, Any]) -> None:
        """Send the request and note how long its answer took. Raises DaemonFailed."""
        raw = json.dumps(body).encode()
        began = time.perf_counter()
        self._connection.request("POST", path, raw, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        answer = response.read()
        self.latencies_ms.setdefault(kind, []).append((time.perf_counter() - began) * 1000)
        if response.status != 200:
            raise DaemonFailed(f"{kind}: {response.status} {answer[:200]!r}")
        self.skipped += b'"skipped":true' in answer


def requests(known: Sequence[Made], texts: Texts, count: int) -> Iterator[Request]:
    """Yield ``count`` requests of each kind."""
    queries = [asked.body["query"] for asked in texts.questions(list(known), 2 * count)]
    for at, query in enumerate(queries[:count]):
        yield "recall", RECALL, {"query": query}
        yield "recall in a session", RECALL, {"query": query, "sessionKey": f"recalls-{at % 5}"}
    for at in range(count):
        session = {"harness": "bench", "project": PROJECTS[0], "sessionKey": f"start-{at}"}
        yield "session-start", "/api/hooks/session-start", session
    for at, query in enumerate(queries[count:]):
        prompt = {"harness": "bench", "project": PROJECTS[0], "sessionKey": f"prompts-{at % 5}", "userPrompt": query}
        yield "user-prompt-submit", "/api/hooks/user-prompt-submit", prompt


def measure(daemon: Daemon, memories: int, count: int, *, jobs: int, seed: int, progress: Console) -> dict[str, Any]:
    """Return the figures at this number of memories, beside ``jobs`` of the pipeline. Raises DaemonFailed."""
    subject = LoadedDaemon(daemon, seed=seed, console=progress)
    subject.grow_to(memories)
    if jobs:
        must_have_worked(subject.load(subject.remembers(jobs), QUEUE_CLIENTS, DRAIN_BUDGET_S), "queueing")
    stored = Texts(seed)
    known = [stored.memory() for _ in range(min(memories, 2000))]
    asked = Texts(seed, stream=1)
    address = daemon.address
    for kind, path, body in requests(known, asked, WARM_UP):
        Asker(address.host, address.port).ask(kind, path, {**body, "sessionKey": "warm-up"})
    asker = Asker(address.host, address.port)
    for request in requests(known, asked, count):
        asker.ask(*request)
    found: dict[str, Any] = {kind: spread(latencies) for kind, latencies in asker.latencies_ms.items()}
    return {**found, "skipped": asker.skipped}


def show(found: Mapping[str, Any], console: Console) -> None:
    """Print the table."""
    table = Table(title="Hooks, one client (ms)", caption=f"{found['skipped']} answered without doing anything")
    for column in ("request", "count", "p50", "p95", "p99", "worst", "target"):
        table.add_column(column, justify="left" if column in {"request", "target"} else "right")
    for kind, took in found.items():
        if isinstance(took, Spread):
            figures = (f"{value:.2f}" for value in (took.p50, took.p95, took.p99, took.worst))
            table.add_row(kind, str(took.count), *figures, TARGETS.get(kind, ""))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.hooks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=300, help="requests of each kind")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--model", choices=sorted(MODELS), help=f"{JOBS} jobs wait for a model that is so")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    result: dict[str, Any] = {"circumstances": circumstances(), "options": vars(options)}
    jobs = JOBS if options.model else 0
    with ExitStack() as stack:
        workspace = stack.enter_context(throw_away_workspace())
        configured = ""
        if options.model:
            configured = settings("ollama", stack.enter_context(model_server(MODELS[options.model])))
        try:
            with Daemon(workspace, settings=configured) as daemon:
                result["hooks"] = measure(
                    daemon, options.memories, options.count, jobs=jobs, seed=options.seed, progress=progress
                )
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    result["load_average_after"] = os.getloadavg()[0]
    console = Console(width=None if sys.stdout.isatty() else 120)
    show(result["hooks"], console)
    console.print(str(write_result("hooks", result)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
