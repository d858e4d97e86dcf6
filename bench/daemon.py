"""A live daemon on a temporary workspace: started like by a user, observed through /proc, stopped by its pid.

The daemon is used only as a process tree with an HTTP address. Every wait has a deadline, and all processes are ended
when the ``with`` block is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import msgspec

from bench.client import BlockingClient, Connection, encode_request
from signet_actors.cli.eval_run import SECOND_STAGE

START_BUDGET_S: Final = 60.0
STOP_BUDGET_S: Final = 15.0
KILL_BUDGET_S: Final = 5.0
VECTORS_S: Final = 600.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
REPOSITORY: Final = Path(__file__).resolve().parent.parent


class DaemonFailed(Exception):
    """The daemon did not start, answer or stop as expected; the text ends with its output."""


class Address(msgspec.Struct, frozen=True):
    """The address of a daemon, as in its ``.daemon/address``."""

    host: str
    port: int
    pid: int


class StoredVectors(NamedTuple):
    """The first model, the memories, and how many have a vector of it and a second one; None = no second model."""

    model: str
    memories: int
    first: int
    second: int | None

    @property
    def complete(self) -> bool:
        """True if every memory has all its vectors."""
        return min(self.first, self.memories if self.second is None else self.second) >= self.memories


class Daemon:
    """One run of the daemon on ``workspace``.

    ``module`` is the module to run (``supervisor``, or a bench tree with the same children); ``settings`` is the text
    of ``agent.yaml``; ``repository`` contains the daemon's code; ``ready_s`` is the time from the start of the process
    to the first 200 of ``/health/ready``.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        settings: str = "",
        module: str = "supervisor",
        environment: Mapping[str, str] | None = None,
        repository: Path = REPOSITORY,
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.module = module
        self.environment = dict(environment or {})
        self.repository = repository
        self.ready_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._address: Address | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> Address:
        """Return the address; raises DaemonFailed if the daemon does not run."""
        if self._address is None:
            raise DaemonFailed("the daemon is not running")
        return self._address

    def start(self) -> None:
        """Wait until ``/health/ready`` answers 200; raises DaemonFailed after the time limit."""
        self.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.workspace / "agent.yaml").write_text(self.settings)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SIGNET_")}
        environment = {
            **inherited,
            "SIGNET_WORKSPACE": str(self.workspace),
            "SIGNET_PORT": "0",
            "PYTHONPATH": str(self.repository),
            **self.environment,
        }
        began = time.perf_counter()
        deadline = began + START_BUDGET_S
        with self._printed.open("ab") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self.module],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
        while not self._answers():
            if self._process.poll() is not None:
                raise DaemonFailed(f"the daemon left with code {self._process.returncode}: {self._last_words()}")
            if time.perf_counter() > deadline:
                raise DaemonFailed(f"the daemon was not ready within {START_BUDGET_S:.0f} s: {self._last_words()}")
            time.sleep(0.005)
        self.ready_s = time.perf_counter() - began

    @property
    def has_ended(self) -> bool:
        """True if the daemon was started and has exited by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Stop every process of the daemon: drain it, and kill it if that fails."""
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_BUDGET_S)
        except subprocess.TimeoutExpired:
            process.kill()  # its children notice within a heartbeat and exit
            process.wait(KILL_BUDGET_S)

    def get(self, path: str) -> Any:
        """Return the decoded JSON of one GET; raises DaemonFailed unless it is a 200."""
        status, body = self._client().exchange("GET", path)
        if status != 200:
            raise DaemonFailed(f"GET {path} was answered {status}: {body[:200]!r}")
        return msgspec.json.decode(body)

    def wait_for_vectors(self, within_s: float = VECTORS_S) -> str:
        """Wait until every memory has all its vectors and recalls compare them; return the model of the first ones.

        Raises DaemonFailed.
        """
        until = time.monotonic() + within_s
        while True:
            stored = self.vectors()
            if stored.complete and (stored.second is None or self._compares_second()):
                return stored.model
            if time.monotonic() > until:
                raise DaemonFailed(f"after {within_s:.0f} s not every memory has its vectors: {stored}")
            time.sleep(0.1)

    def vectors(self) -> StoredVectors:
        """Return how many memories have which vectors."""
        health = self.get("/api/embeddings/health")
        model = str(health["config"]["model"])
        detail = {check["name"]: check["detail"] for check in health["checks"]}
        first, second = detail["model-drift"]["byModel"].get(model, 0), detail["coverage"].get("second")
        return StoredVectors(model, health["total"], first, second)

    def _compares_second(self) -> bool:
        """Return whether a recall compares second vectors: the model for queries is loaded after the first one."""
        stages = self.get("/api/memory/search?q=vectors")["meta"]["timings"]["stages"]
        return any(stage["name"] == SECOND_STAGE for stage in stages)

    def processes(self) -> dict[str, int]:
        """Return the process id of every process of the daemon by its name."""
        report = self.get("/api/status")
        named = {actor["name"]: actor["pid"] for actor in report["actors"] if actor["pid"] is not None}
        return {"supervisor": self.address.pid, **named}

    def unnamed_processes(self) -> list[int]:
        """Return the ids of the processes that the daemon does not name: the fork server."""
        named = set(self.processes().values())
        try:
            started = Path(f"/proc/{self.address.pid}/task/{self.address.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in started.split() if int(pid) not in named]

    @property
    def _printed(self) -> Path:
        return self.workspace / "printed.txt"

    def _client(self) -> BlockingClient:
        return BlockingClient(self.address.host, self.address.port)

    def _answers(self) -> bool:
        process = self._process
        try:
            address = msgspec.json.decode((self.workspace / ".daemon" / "address").read_bytes(), type=Address)
        except (OSError, msgspec.DecodeError):
            return False
        if process is None or address.pid != process.pid:
            return False  # a file of an earlier run
        self._address = address
        try:
            status, _ = self._client().exchange("GET", "/health/ready")
        except OSError:
            return False
        return status == 200

    def _last_words(self) -> str:
        try:
            return self._printed.read_text(errors="replace")[-2000:]
        except OSError:
            return ""


def leave_on_sigterm() -> None:
    """Make SIGTERM end the program like an exception, so that no daemon and no workspace is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


@contextmanager
def throw_away_workspace() -> Iterator[Path]:
    """Yield a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="signet-bench-", ignore_cleanup_errors=True) as directory:
        yield Path(directory) / "workspace"


def cpu_ms(pid: int) -> float:
    """Return the CPU time of the process (user and system, all threads, in clock ticks); 0 if it has exited."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return ticks_of(stat) * 1000 / _TICKS


def ticks_of(stat: str) -> int:
    """Return user and system ticks of a line of ``/proc/<pid>/stat``; the name may contain spaces and brackets."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def pss_bytes(pid: int) -> int:
    """Return the proportional set size: private pages plus a share of each shared page; 0 if it cannot be read."""
    try:
        return pss_of(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0


def pss_of(rollup: str) -> int:
    """Return the ``Pss:`` line of ``smaps_rollup`` in bytes."""
    for line in rollup.splitlines():
        name, _, value = line.partition(":")
        if name == "Pss":
            return int(value.split()[0]) * 1024
    return 0


async def post_json(daemon: Daemon, connection: Connection, path: str, body: Mapping[str, Any]) -> Any:
    """Return the decoded response of a POST. Raises ``DaemonFailed`` if it is not a 200."""
    host = f"{daemon.address.host}:{daemon.address.port}"
    status, answer = await connection.exchange(encode_request("POST", path, host=host, body=msgspec.json.encode(body)))
    if status != 200:
        raise DaemonFailed(f"POST {path} was answered {status}: {answer[:200]!r}")
    return msgspec.json.decode(answer)
