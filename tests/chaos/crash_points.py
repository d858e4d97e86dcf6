"""Groups of sync points that fire in one daemon, and the requests that make the code reach them.

A point that ends a process fires in its own incarnation (``@hit/incarnation``), so that one daemon passes all points of
an actor, one crash after the other. A point that does not end it fires in the first incarnation.

Source: docs/reliability.md "Sync points".
"""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_actors.runtime.sync_points import NAMES
from tests.chaos.traffic import Book, Traffic, traffic_on
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.log_tail import LogTail

ACTIONS = ("kill", "stop", "raise", "sleep")
CONFIG = """
searcher:
  processes: 2
supervision:
  settledMs: 0
  budgets:
    writer: {restarts: 100, windowMs: 60000}
    searcher: {restarts: 100, windowMs: 60000}
    gateway: {restarts: 100, windowMs: 60000}
    retention: {restarts: 100, windowMs: 60000}
"""
"""Restart budgets are not tested here: only a crash before the child is ready counts, and no budget ends the daemon."""


@dataclass(frozen=True)
class Group:
    """The sync points of one process, each with the hit on which it fires; ``drive`` makes the code reach those that
    the traffic does not reach.
    """

    child: str
    points: dict[str, int]
    drive: Callable[[LiveDaemon], None] | None = None
    survives_raise: bool = False
    """An exception at these points fails one request and ends no process."""


def _note(daemon: LiveDaemon) -> None:
    """Write a note and check that it is on disk exactly once and complete."""
    key = "one note, asked for again and again"

    def written() -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = daemon.api.post("/api/memory/codex-native-note", {"content": "Written once"}, Idempotency_Key=key)
            return answer.status == 200 and Path(answer.json["path"]).read_text(encoding="utf-8") == "Written once\n"
        return False

    eventually(written, within_s=60, what="the note is written")
    notes = daemon.root / "codex" / "memories" / "extensions" / "ad_hoc" / "notes"
    assert len([path for path in notes.iterdir() if path.suffix == ".md"]) == 1


def _memory_file(daemon: LiveDaemon) -> None:
    """Write ``MEMORY.md``; whatever happens, it is whole, and what a person wrote stands in it once."""
    path = daemon.workspace / "MEMORY.md"
    if not path.exists():
        path.write_text("# By hand\n", encoding="utf-8")
    text = f"- begun {secrets.token_hex(8)}\n- ended"
    _try(daemon, "POST", "/api/hooks/synthesis/complete", {"content": text})
    own, _, made = path.read_text(encoding="utf-8").partition("<!-- signet:")
    assert own.strip() == "# By hand"
    assert not made or made.endswith("\n- ended\n")


def _sweep(daemon: LiveDaemon) -> None:
    _try(daemon, "POST", "/api/repair/retention-sweep", {})


def _sweep_and_fill(daemon: LiveDaemon) -> None:
    """Write until the log reaches the size of a checkpoint."""
    _sweep(daemon)
    if fired(daemon)[-1:] == ["writer.after_first_reply"]:
        for _ in range(8):
            _try(daemon, "POST", "/api/memory/remember", {"content": f"{secrets.token_hex(8)} " * 4000})


def _status_and_files(daemon: LiveDaemon) -> None:
    _try(daemon, "GET", "/api/status", None)
    if "gateway.sent_to_retention" in fired(daemon):
        _note(daemon)
    if "fs.note_renamed" in fired(daemon):
        _memory_file(daemon)


def _try(daemon: LiveDaemon, method: str, target: str, body: Any) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        daemon.api.request(method, target, body, timeout=3)


GROUPS: dict[str, Group] = {
    "writer": Group(
        "writer",
        {
            "writer.dequeued": 9,
            "writer.after_begin": 9,
            "writer.mid_batch": 9,
            "writer.before_commit": 9,
            "writer.after_commit": 9,
            "writer.after_first_reply": 9,
            "writer.before_checkpoint": 1,
            "maintenance.mid_step": 1,
        },
        _sweep_and_fill,
    ),
    "searcher": Group(
        "searcher-1",
        {
            "searcher.dequeued": 9,
            "searcher.snapshot_open": 9,
            "searcher.fts_done": 9,
            "searcher.vec_done": 9,
            "searcher.before_reply": 9,
        },
    ),
    "gateway": Group(
        "gateway",
        {
            "gateway.accepted": 9,
            "gateway.header_read": 9,
            "gateway.body_half": 9,
            "gateway.validated": 9,
            "gateway.sent_to_writer": 9,
            "gateway.reply_received": 9,
            "gateway.before_response": 9,
            "gateway.mid_response": 9,
            "gateway.sent_to_retention": 1,
            "fs.note_tmp_written": 1,
            "fs.note_renamed": 1,
            "fs.memory_file_written": 1,
            "fs.memory_file_replaced": 1,
        },
        _status_and_files,
        survives_raise=True,
    ),
    "retention": Group("retention", {"retention.dequeued": 1, "maintenance.between_steps": 1}, _sweep),
}
SUPERVISOR_POINTS = tuple(name for name in NAMES if name.startswith("supervisor."))
START_POINTS = ("writer.mid_migration",)
"""These points are reached before the process is ready."""
BACKUP_POINTS = ("writer.mid_backup", "backup.before_rename")
STOP_POINTS = ("writer.mid_checkpoint",)
"""These points are reached while the process stops."""


def armed(group: Group, action: str) -> tuple[str, int]:
    """Return the value of ``SIGNET_SYNC_POINTS``, and the incarnation that serves when all points have fired."""
    argument = {"kill": "kill", "stop": "stop:0", "raise": "raise:EIO", "sleep": "sleep:200"}[action]
    if action == "sleep" or (action == "raise" and group.survives_raise):
        return ";".join(f"{point}={argument}@{hit}/1" for point, hit in group.points.items()), 1
    entries = [
        f"{point}={argument}@{hit}/{incarnation}"
        for incarnation, (point, hit) in enumerate(group.points.items(), start=1)
    ]
    return ";".join(entries), len(entries) + 1


def fired(daemon: LiveDaemon) -> list[str]:
    """Return the points that have fired, in order."""
    with contextlib.suppress(FileNotFoundError):
        return [line.split()[0] for line in (daemon.root / "fired").read_text(encoding="ascii").splitlines()]
    return []


def environment(daemon: LiveDaemon, points: str) -> dict[str, str]:
    return {"SIGNET_SYNC_POINTS": points, "SIGNET_SYNC_POINTS_FIRED": str(daemon.root / "fired")}


def run_group(group: Group, action: str, *, seed: int = 0) -> Book:
    """Fire every point of the group under traffic, check that the daemon recovers and stops in order, and return the
    book.

    ``raise`` raises an exception that cannot occur there; the daemon then answers 500 to the affected request.
    """
    points, last_incarnation = armed(group, action)
    with live_daemon(config=CONFIG, started=False) as daemon:
        daemon.start(**environment(daemon, points))
        tail = LogTail(daemon.workspace)
        faulty = frozenset({500}) if action == "raise" else frozenset[int]()
        with traffic_on(daemon, seed=seed, faulty=faulty) as traffic:

            def all_fired() -> bool:
                if group.drive is not None:
                    group.drive(daemon)
                return set(fired(daemon)) == set(group.points)

            eventually(all_fired, within_s=150, what=f"all points of {group.child} fired")
            tail.incarnation(group.child, last_incarnation)
            book = settle(daemon, traffic)
        assert action == "raise" or 500 not in traffic.statuses
        stop_soundly(daemon, unforeseen=action == "raise")
        return book


def settle(daemon: LiveDaemon, traffic: Traffic) -> Book:
    """Wait until the daemon serves again, and stop the clients after they know the outcome of their last steps."""
    daemon.wait_ready()
    traffic.progress()
    traffic.stop()
    return traffic.check()


def stop_soundly(daemon: LiveDaemon, *, unforeseen: bool = False) -> None:
    """Stop the daemon in order; check that the store is sound and the log has no internal error."""
    assert daemon.stop() == 0, daemon.terminal()
    assert daemon.broken_invariants() == []
    if not unforeseen:
        assert daemon.faults() == []


def run_supervisor(action: str, *, seed: int = 0) -> Book:
    """Fire the fault at each point of the supervisor, in as many starts of one workspace.

    If the fault ended the supervisor, no process may be left and the next start must work; otherwise it must stop in
    order.
    """
    argument = {"kill": "kill", "stop": "stop:0", "raise": "raise:EIO", "sleep": "sleep:200"}[action]
    with live_daemon(config=CONFIG) as daemon, traffic_on(daemon, seed=seed) as traffic:
        for point in SUPERVISOR_POINTS:
            assert daemon.stop() == 0
            (daemon.root / "fired").unlink(missing_ok=True)
            _start_into(daemon, point, argument, action)
            if daemon.process is None or daemon.process.poll() is not None:
                daemon.gone()
                daemon.start()
            traffic.progress(10)
        book = settle(daemon, traffic)
        stop_soundly(daemon)
        return book


def _start_into(daemon: LiveDaemon, point: str, argument: str, action: str) -> None:
    """Start the daemon with the fault at ``point``; it must exit or serve."""
    while_starting = point in {"supervisor.before_spawn", "supervisor.after_spawn_before_ready"}
    hit = 3 if while_starting else 1
    spawned = len(daemon.log())
    process = daemon.launch(**environment(daemon, f"{point}={argument}@{hit}"))
    if not while_starting:
        daemon.wait_ready()
        if point in {"supervisor.on_sigterm", "supervisor.mid_shutdown"}:
            process.send_signal(signal.SIGTERM)
        else:
            tail = LogTail(daemon.workspace)
            tail.look()
            os.kill(tail.incarnations["searcher-1"].pid, signal.SIGKILL)
    eventually(lambda: fired(daemon) == [point], within_s=60, what=f"{point} fired")
    if action == "stop":
        eventually(lambda: _state(process.pid) == "T", what="stopped")
        os.kill(process.pid, signal.SIGCONT)
    ends = action == "kill" or point in {"supervisor.on_sigterm", "supervisor.mid_shutdown"}
    if action == "raise" and point == "supervisor.before_spawn":  # as if there were no memory for another process
        eventually(lambda: any(line["event"] == "spawn_failed" for line in daemon.log()[spawned:]), what="no spawn")
    elif action == "raise":
        ends = True
    if ends:
        code = process.wait(30)
        assert code == {"kill": -signal.SIGKILL, "raise": 1}.get(action, 0), daemon.terminal()
    else:
        daemon.wait_ready()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
