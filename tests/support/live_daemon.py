"""A real daemon on its own workspace: the real supervisor and children, with HTTP on a port chosen by the kernel.

Every process of a daemon has a mark in its environment, which its children inherit. Tests use it to check that no
process is left, even after the supervisor was killed. Nothing here waits for a fixed time: it waits for a state, with a
timeout.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import apsw

from signet_actors.store.sqlite.connect import open_reader, open_writer
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.store_room import broken_invariants

MARK = "SIGNET_TEST_MARK"
CLIENT_WAIT_S = 60.0
COMMAND_WAIT_S = 120.0
"""Timeouts against hanging, never a measurement."""

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1

living: list[LiveDaemon] = []
"""Daemons that are started and not yet stopped. A failing test shows their logs."""


def _die_with_the_tests() -> None:
    """Make the kernel kill the supervisor, and with it its children, if the test process is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@dataclass(frozen=True)
class Answer:
    """An HTTP response with its whole body."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    def ok(self) -> Any:
        """Return the body of a 200."""
        assert self.status == 200, (self.status, self.raw[:2000])
        return self.json

    def refused(self, expected: int, /, **fields: Any) -> Any:
        """Return the body of an error with this HTTP status: JSON with an error text, a code, and these ``fields``."""
        assert self.status == expected, (self.status, self.raw[:2000])
        assert self.headers["content-type"] == "application/json"
        body = self.json
        assert isinstance(body["error"], str)
        assert body["error"]
        assert isinstance(body["code"], str)
        assert {name: body.get(name) for name in fields} == fields
        return body


class Client:
    """HTTP client of one daemon, acting as ``headers`` say. Opens a connection per request."""

    def __init__(self, daemon: LiveDaemon, headers: Mapping[str, str] | None = None) -> None:
        self.daemon = daemon
        self.headers = dict(headers or {})

    def acting(self, **headers: str) -> Client:
        """Return a client with further headers; ``x_signet_actor`` means ``x-signet-actor``."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(self.daemon, {**self.headers, **more})

    def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = CLIENT_WAIT_S,
    ) -> Answer:
        """Send one request; a ``body`` of bytes is sent unchanged, any other as JSON. Raises OSError, HTTPException."""
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**({} if raw is None else {"Content-Type": "application/json"}), **self.headers, **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=timeout)
        try:
            connection.request(method, target, raw, sent)
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def get(self, target: str, **parameters: Any) -> Answer:
        query = "&".join(f"{quote(name)}={quote(str(value))}" for name, value in parameters.items())
        return self.request("GET", f"{target}?{query}" if query else target)

    def post(self, target: str, body: Any = None, **headers: str) -> Answer:
        return self.request("POST", target, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def remember(self, content: str, **fields: Any) -> Any:
        """Send a remember that must be accepted, and return the response."""
        return self.post("/api/memory/remember", {"content": content, **fields}).ok()

    def forget(self, **wish: Any) -> Any:
        """Preview and confirm a batch forget, and return the response."""
        token = self.post("/api/memory/forget", wish).ok()["confirmToken"]
        body = {"reason": "r", **wish, "mode": "execute", "confirm_token": token}
        return self.post("/api/memory/forget", body).ok()

    def memory(self, memory_id: str, **parameters: Any) -> Any:
        return self.get(f"/api/memory/{memory_id}", **parameters).ok()

    def recall(self, query: str, **fields: Any) -> Any:
        return self.post("/api/memory/recall", {"query": query, **fields}).ok()

    def recalled(self, query: str, **fields: Any) -> list[str]:
        """Return the recalled ids, best first."""
        return [row["id"] for row in self.recall(query, **fields)["results"]]

    def listed(self) -> list[dict[str, Any]]:
        """Return every live memory that this client may read."""
        rows: list[dict[str, Any]] = []
        while True:
            page = self.get("/api/memories", limit=1000, offset=len(rows)).ok()
            rows += page["memories"]
            if len(rows) >= page["total"]:
                return rows


LATE = ("decider", "extractor", "quarantine")
ONE_VECTOR = "\nembedding: {provider: embedded}\n"
"""Tests that are not about embedding need no second process that loads a model."""
WITHOUT_PIPELINE = """
memory:
  pipelineV2:
    enabled: false
    embeddingTracker: {enabled: false}
"""
"""Starts two processes fewer, for tests with another subject."""


class LiveDaemon:
    """A workspace and the daemon that runs on it, if any. Several daemons may run on it one after the other."""

    def __init__(
        self,
        root: Path,
        *,
        config: str = "",
        environ: Mapping[str, str] | None = None,
        name: str = "w",
        pipeline: bool = False,
        patient: bool = False,
    ) -> None:
        self.root = root
        self.workspace = root / name
        self.environ = dict(environ or {})
        self.command = [sys.executable, "-m", "tests.support.patient_daemon" if patient else "supervisor"]
        self.mark = secrets.token_hex(8)
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.workspace.mkdir(mode=0o700, exist_ok=True)
        if not pipeline and "memory:" not in config:
            config += WITHOUT_PIPELINE
        if "embedding:" not in config:
            config += ONE_VECTOR
        if config:
            self.configure(config)

    @property
    def database(self) -> Path:
        return self.workspace / "memory" / "memories.db"

    @property
    def api(self) -> Client:
        return Client(self)

    @property
    def owner(self) -> Client:
        """A client that proves, where a token is needed, that it is of the user that runs the daemon."""
        file = self.workspace / ".daemon" / "owner-token"
        return Client(self, {"x-signet-owner-token": file.read_text()} if file.exists() else None)

    def agent(self, name: str) -> Client:
        return Client(self, {"x-signet-agent-id": name})

    def configure(self, text: str) -> None:
        (self.workspace / "agent.yaml").write_text(text, encoding="utf-8")

    # Starting and stopping

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of this daemon's processes: little of the tests' own, and the mark."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {
            **inherited,
            "PYTHONPATH": str(REPOSITORY),
            "SIGNET_WORKSPACE": str(self.workspace),
            "SIGNET_PORT": "0",
            "CODEX_HOME": str(self.root / "codex"),
            MARK: self.mark,
            **self.environ,
            **more,
        }

    def launch(self, **more: str) -> subprocess.Popen[bytes]:
        """Start the program without waiting for it to become a daemon."""
        with (self.root / "terminal").open("ab") as terminal:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment(**more),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509 - nothing but a system call, before any thread's lock
            )
        if self not in living:
            living.append(self)
        return self.process

    def start(self, **more: str) -> Self:
        """Start the daemon and wait until it serves."""
        process = self.launch(**more)
        eventually(lambda: process.poll() is not None or self.is_ready(), within_s=60, what="ready")
        assert process.poll() is None, f"exited with {process.returncode}:\n{self.terminal()}"
        return self

    def is_ready(self) -> bool:
        """Return whether every process is up and the address of this start is known."""
        try:
            address = json.loads((self.workspace / ".daemon" / "address").read_bytes())
        except (OSError, ValueError):
            return False
        if self.process is None or address["pid"] != self.process.pid:
            return False
        self.port = address["port"]
        with contextlib.suppress(OSError, http.client.HTTPException):
            health = self.api.request("GET", "/health", timeout=5).json
            return health["status"] == "healthy"  # type: ignore[no-any-return]
        return False

    def health(self) -> dict[str, Any]:
        """Return ``/health``, also before the daemon is ready; empty while there is no response."""
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, KeyError):
            address = json.loads((self.workspace / ".daemon" / "address").read_bytes())
            self.port = address["port"]
            return self.api.request("GET", "/health", timeout=5).json  # type: ignore[no-any-return]
        return {}

    def wait_ready(self, *, within_s: float = 60) -> None:
        eventually(self.is_ready, within_s=within_s, what="ready again")

    def refused_start(self, **more: str) -> tuple[int, str]:
        """Return the exit code and the output of a start that must fail."""
        said = len(self.terminal())
        process = self.launch(**more)
        code = process.wait(CLIENT_WAIT_S)
        self.gone()
        return code, self.terminal()[said:]

    def stop(self) -> int:
        """Send SIGTERM and return the exit code; no process may be left."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(CLIENT_WAIT_S)
        self.gone()
        return code

    def gone(self) -> None:
        """Wait until no process of this daemon is left."""
        eventually(lambda: not self.processes(), within_s=CLIENT_WAIT_S, what="no process left over")
        if self in living:
            living.remove(self)

    def close(self) -> None:
        """Stop the daemon, and kill remaining processes by pid. Raises if one survived an orderly stop."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                code = self.stop()
                assert code == 0, f"stopped with {code}:\n{self.terminal()}"
            self.gone()
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait(CLIENT_WAIT_S)
            if self in living:
                living.remove(self)

    # Processes

    def processes(self) -> list[int]:
        """Return every running process with this daemon's mark, including orphans."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def every_process(self) -> dict[str, dict[str, Any]]:
        """Return every child by name, as reported by ``/api/status``."""
        return {actor["name"]: actor for actor in self.owner.get("/api/status").ok()["actors"]}

    def actors(self) -> dict[str, dict[str, Any]]:
        """Like ``every_process``, without the processes that start only after the daemon has served for a moment."""
        return {name: actor for name, actor in self.every_process().items() if name not in LATE}

    def children(self) -> dict[str, int]:
        """Return the pid of each of ``actors`` by name."""
        return {name: actor["pid"] for name, actor in self.actors().items()}

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send signal ``number`` to the child and return its pid; to the next one if it ends just now."""

        def killed() -> int:
            pid: int = self.every_process()[name]["pid"]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                return pid
            return 0

        return int(eventually(killed, what=f"a process {name}"))

    def kill_supervisor(self) -> None:
        """Kill only the supervisor, and wait until no process of the daemon is left."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(CLIENT_WAIT_S)

    # Output and data

    def terminal(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.root / "terminal").read_text(errors="replace")
        return ""

    def log(self) -> list[dict[str, Any]]:
        """Return every line of the daemon's log."""
        lines = []
        for path in sorted((self.workspace / ".daemon" / "logs").glob("*.log*")):
            for line in path.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    lines.append(json.loads(line))
        return lines

    def faults(self) -> list[dict[str, Any]]:
        """Return log lines that indicate a bug: an unexpected exception."""
        return [line for line in self.log() if line.get("event") in {"request_failed", "command_failed"}]

    def report(self) -> str:
        """Return the end of the log, for a test that failed."""
        tail = "\n".join(json.dumps(line) for line in self.log()[-60:])
        return f"{self.terminal()[-4000:]}\n{tail}"

    def read(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database while the daemon runs."""
        connection = open_reader(self.database)
        try:
            return connection.execute(sql, bindings).fetchall()
        finally:
            connection.close()

    def edit(self, sql: str, *bindings: Any) -> None:
        """Change the database of the stopped daemon, for example to simulate age."""
        assert not self.processes()
        connection = open_writer(self.database, busy=lambda calls: False)
        try:
            connection.execute(sql, bindings)
        finally:
            connection.close()

    def broken_invariants(self) -> list[str]:
        """Return the invariants that a copy of the stopped daemon's database violates."""
        assert not self.processes()
        copy = Path(tempfile.mkdtemp(dir=self.root)) / "memories.db"
        for path in self.database.parent.glob(f"{self.database.name}*"):
            shutil.copyfile(path, copy.with_name(path.name))
        connection = open_writer(copy, busy=lambda calls: False)
        try:
            return broken_invariants(connection)
        finally:
            connection.close()


def run_signet(
    daemon: LiveDaemon, *arguments: str, environ: Mapping[str, str] | None = None, **given: Any
) -> subprocess.CompletedProcess[Any]:
    """Run the command line on the workspace of the daemon, whatever its exit code; its output is text.

    ``environ``: further variables. ``given``: further arguments of ``subprocess.run``.
    """
    usual: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        [sys.executable, "-P", "-m", "signet_actors.cli", *arguments],
        env=daemon.environment(**(environ or {})),
        check=False,
        **{**usual, "cwd": daemon.root, "text": True, "timeout": COMMAND_WAIT_S, **given},
    )


def signet(daemon: LiveDaemon, *arguments: str, exit_code: int = 0) -> str:
    """Return what the command prints; it must end with ``exit_code``."""
    done = run_signet(daemon, *arguments)
    assert done.returncode == exit_code, (arguments, done.stdout, done.stderr)
    return str(done.stdout)


def private_root() -> Path:
    """Create a new directory with a path short enough for sockets below it."""
    return Path(tempfile.mkdtemp(prefix="sgt-", dir="/tmp"))


def remove_tree(directory: Path) -> None:
    """Remove a directory, also one in which a running process creates files meanwhile."""

    def removed() -> bool:
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)
            return True
        return False

    eventually(removed, what=f"{directory} is removed")


@contextlib.contextmanager
def live_daemon(
    *,
    config: str = "",
    environ: Mapping[str, str] | None = None,
    started: bool = True,
    pipeline: bool = False,
    patient: bool = False,
) -> Iterator[LiveDaemon]:
    """Run a daemon for the duration of a block; print the end of its log if the block fails.

    Afterwards none of its processes and files are left. A ``patient`` daemon gives a hook seconds to do its work,
    however busy the machine is. A test of what a hook does beside a process that is stopped needs the real limits.
    """
    root = private_root()
    daemon = LiveDaemon(root, config=config, environ=environ, pipeline=pipeline, patient=patient)
    try:
        if started:
            daemon.start()
        yield daemon
    except BaseException:
        print(daemon.report())
        raise
    finally:
        try:
            daemon.close()
        finally:
            shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def foreign_lock(path: Path) -> Iterator[None]:
    """Hold a write lock on the database from another program, as ``sqlite3`` in a terminal would."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()
