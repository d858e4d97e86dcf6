"""The command bench: measure the daemon's speed on this machine, in a temporary workspace.

Leaving the ``with`` block of ``temporary_daemon`` stops the daemon and deletes the workspace, also after SIGTERM and
SIGHUP: it may hold a copy of the user's memories. After SIGKILL the daemon ends, too, but the workspace is left.

The clients are threads of this process, so the figures for several clients are a lower bound. ``bench/`` of the
source tree has a load generator with exact figures and comparisons with the raw disk.

Source: docs/performance.md "Write targets" and "Recall targets".
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

import click

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.edited_text import exit_on_signals
from signet_actors.cli.invocation import Invocation, command, group
from signet_actors.cli.lifecycle import launch, wait_until_ready
from signet_actors.cli.presentation import print_json, print_message
from signet_actors.cli.tables import print_table
from signet_actors.config.daemon_address import Address, recorded_address
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.errors import Unavailable

CLIENTS = 8
STORE_S = 240.0
DURABLE_WRITES = 200
_VOCABULARY = """
adapter alert archive backlog balance banner batch branch budget buffer cache cadence channel checkout cipher cluster
column commit compiler consumer counter cursor daemon deadline delta deploy digest dispatch driver editor endpoint
engine export fallback feature filter fixture gateway handler header import index ingest invoice ledger limiter linker
listener loader locale mailbox marker matrix merge migration mirror module monitor mutex notebook offset operator parser
partition patch pipeline plugin policy profile proxy quota queue reader recovery refund region registry release replica
report resolver retry rollout router runner sandbox schema searcher session shard signal snapshot socket stream sweep
switch tenant thread ticket timer token tracker transport trigger tunnel updater vault vector verifier version watcher
"""
_WORDS = tuple(_VOCABULARY.split())


@group()
def bench() -> None:
    """Measure how fast the daemon is on this machine."""


@command(bench)
@click.option(
    "--memories", type=click.IntRange(50, 20_000), default=1000, show_default=True, help="Memories to store first."
)
@click.option(
    "--seconds", type=click.FloatRange(0.5, 60), default=3.0, show_default=True, help="Duration of each measurement."
)
def quick(invocation: Invocation, memories: int, seconds: float) -> None:
    """Start a daemon on a temporary workspace, load it for some seconds, and print the measurements.

    Your own workspace is neither read nor changed. For comparison, the time of one durable write to this disk is
    measured as well.
    """
    with temporary_daemon(invocation.environ) as daemon:
        daemon.start()
        address = daemon.address
        print_message(f"storing {memories} memories …")
        texts = list(islice(_memories(7), memories))
        shares = [_remember_steps(texts[start::CLIENTS]) for start in range(CLIENTS)]
        stored = _run_clients(shares, address, STORE_S)
        print_message(f"measuring for {seconds:g} s each …")
        one_remember = _run_clients([_remember_steps(_memories(8, memories))], address, seconds)
        one_recall = _run_clients([_recall_steps(_queries(8, memories))], address, seconds)
        many = [_recall_steps(_queries(9 + client, memories)) for client in range(CLIENTS)]
        recalled = _run_clients(many, address, seconds)
        durable_write_ms = _durable_write_ms(daemon.workspace)
    if invocation.as_json:
        figures = {
            "ready_s": round(daemon.ready_s, 3),
            "remember_per_s": round(stored.per_s, 1),
            "remember_ms": one_remember.spread_ms,
            "recall_ms": one_recall.spread_ms,
            "recall_per_s": round(recalled.per_s, 1),
            "durable_write_ms": round(durable_write_ms, 3),
        }
        print_json({"memories": memories, "clients": CLIENTS, "cores": os.cpu_count(), **figures})
        return
    rows = [
        ("ready after start", f"{daemon.ready_s:.2f} s"),
        (f"remembers, {CLIENTS} clients", f"{stored.per_s:.0f}/s"),
        ("remember, 1 client", _format_spread(one_remember.spread_ms)),
        ("recall, 1 client", _format_spread(one_recall.spread_ms)),
        (f"recalls, {CLIENTS} clients", f"{recalled.per_s:.0f}/s"),
        ("one durable write to this disk", f"p50 {durable_write_ms:.2f} ms"),
    ]
    print_table(("", "measured"), rows)


Step = Callable[[DaemonClient], object]


class _Measurement:
    """Latencies in milliseconds, and the total time of all clients together."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.failures: list[BaseException] = []
        self.took_s = 0.0

    @property
    def per_s(self) -> float:
        return len(self.latencies_ms) / self.took_s

    @property
    def spread_ms(self) -> dict[str, float]:
        return spread(self.latencies_ms)


def spread(took_ms: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile of latencies, in milliseconds."""
    ordered = sorted(took_ms)
    late = ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]
    return {"p50": round(ordered[len(ordered) // 2], 2), "p95": round(late, 2)}


def _format_spread(spread_ms: dict[str, float]) -> str:
    return f"p50 {spread_ms['p50']:.1f} ms, p95 {spread_ms['p95']:.1f} ms"


def _run_clients(clients: list[Iterator[Step]], address: Address, seconds: float) -> _Measurement:
    """Run each client in a thread with its own connection, and return what they measured; raise the first error."""
    found = _Measurement()
    began = time.perf_counter()
    until = began + seconds

    def run(steps: Iterator[Step]) -> None:
        client = DaemonClient(address)
        try:
            for step in steps:
                before = time.perf_counter()
                if before >= until:
                    return
                step(client)
                found.latencies_ms.append((time.perf_counter() - before) * 1000)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the main thread
            found.failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(steps,)) for steps in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if found.failures:
        raise found.failures[0]
    found.took_s = time.perf_counter() - began
    return found


def _remember_steps(texts: Iterable[str]) -> Iterator[Step]:
    for text in texts:
        yield partial(DaemonClient.send, method="POST", path="/api/memory/remember", body={"content": text})


def _recall_steps(questions: Iterable[str]) -> Iterator[Step]:
    for question in questions:
        yield partial(DaemonClient.ask, path="/api/memory/recall", body={"query": question, "limit": 10})


def _memories(seed: int, first: int = 0) -> Iterator[str]:
    rng = random.Random(seed)
    for number in count(first):
        word, *rest = rng.choices(_WORDS, k=rng.randint(12, 30))
        yield f"{word.capitalize()} {' '.join(rest)}, see BENCH-{number}."


def _queries(seed: int, memories: int) -> Iterator[str]:
    """Yield queries: one in four is an identifier, the others are three words of the vocabulary."""
    rng = random.Random(seed)
    for number in count():
        if number % 4:
            yield f"what about the {' '.join(rng.choices(_WORDS, k=3))}?"
        else:
            yield f"BENCH-{rng.randrange(memories)}"


def _durable_write_ms(directory: Path) -> float:
    took_ms = []
    with (directory / "floor").open("wb", buffering=0) as file:
        for _ in range(DURABLE_WRITES):
            before = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took_ms.append((time.perf_counter() - before) * 1000)
    return sorted(took_ms)[DURABLE_WRITES // 2]


START_S = 60.0
STOP_S = 15.0
SHOWN_OUTPUT_CHARS = 500


class TemporaryDaemon:
    """A daemon in a temporary directory. ``ready_s`` is the time of its last start in seconds."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self.workspace = directory / "workspace"
        self.ready_s = 0.0
        self._environ = {name: value for name, value in environ.items() if not name.startswith("SIGNET_")}
        self._child: subprocess.Popen[bytes] | None = None
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        """Return the address of the running daemon; raise Unavailable if it does not run."""
        if self._address is None:
            raise Unavailable("the temporary daemon does not run")
        return self._address

    def start(self, settings: str = "") -> None:
        """Start the daemon with this text as ``agent.yaml``; raise Unavailable if it does not become ready."""
        self.workspace.mkdir(mode=0o700, exist_ok=True)
        (self.workspace / CONFIG_FILE_NAME).write_text(settings, encoding="utf-8")
        began = time.perf_counter()
        environ = {**self._environ, "SIGNET_WORKSPACE": str(self.workspace), "SIGNET_PORT": "0"}
        self._child, start_log = launch(self.workspace, environ, ends_with_this=True)
        ended = wait_until_ready(self.workspace, self._child, time.monotonic() + START_S)
        self._address = recorded_address(self.workspace)
        if ended is not None or self._address is None:
            output = start_log.read_text(errors="replace")[-SHOWN_OUTPUT_CHARS:]
            raise Unavailable(f"the temporary daemon did not start: {output}")
        self.ready_s = time.perf_counter() - began

    def clear(self) -> None:
        shutil.rmtree(self.workspace)

    def stop(self) -> None:
        """Stop the daemon if it runs: let it finish, and kill it if that fails."""
        child, self._child, self._address = self._child, None, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(STOP_S)


@contextlib.contextmanager
def temporary_daemon(environ: Mapping[str, str]) -> Iterator[TemporaryDaemon]:
    """Yield a daemon that is not started yet, and remove every trace of it afterwards."""
    with exit_on_signals(), tempfile.TemporaryDirectory(prefix="signet-", ignore_cleanup_errors=True) as directory:
        daemon = TemporaryDaemon(Path(directory), environ)
        try:
            yield daemon
        finally:
            daemon.stop()
