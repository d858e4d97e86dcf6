"""The command top: what is drawn of the daemon, and what changed between two drawings. Source: docs/cli.md."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from signet_actors.cli.top import Seen, drawing

if TYPE_CHECKING:
    from click.testing import Result

    from tests.support.scripted_daemon import ScriptedDaemon

WHEN = "2026-11-24T06:00:00.000Z"


def process(name: str, **counters: float) -> dict[str, Any]:
    return {"name": name, "state": "up", "detail": "", "restarts": 1, "counters": counters}


def job(kind: str, pending: int = 0) -> dict[str, Any]:
    return {"kind": kind, "pending": pending, "leased": 0, "dead": 0, "oldestPendingAgeSec": 65.0 if pending else None}


def status(*processes: dict[str, Any]) -> dict[str, Any]:
    return {"status": "running", "uptime": 3700, "db": {"memories": 3}, "actors": list(processes)}


def seen(at: float, *processes: dict[str, Any], domains: dict[str, Any] | None = None) -> Seen:
    return Seen(at, status(*processes), [], domains or {}, [], [])


def drawn(before: Seen, now: Seen, *, problem: str = "") -> str:
    told = io.StringIO()
    Console(file=told, width=120).print(drawing(before, now, problem=problem))
    return told.getvalue()


def answer(daemon: ScriptedDaemon) -> None:
    daemon.on("GET", "/api/status", status(process("gateway", rss_bytes=72_000_000.0, cpu_seconds=1.0)))
    daemon.on("GET", "/api/pipeline/status", {"jobs": [job("extract", 2), job("embed")]})
    daemon.on("GET", "/api/diagnostics", {"timestamp": WHEN, "queue": {"status": "degraded"}, "provider": None})
    daemon.on("GET", "/api/harnesses", {"harnesses": [{"name": "codex", "last_seen": None}]})
    memory = {"id": "m1", "created_at": WHEN, "who": "codex", "content": "The build needs\x1b[2J Java 21"}
    daemon.on("GET", "/api/memories", {"memories": [memory]})


def test_a_pipe_gets_one_drawing(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    answer(daemon)
    said = signet("top")
    assert said.exit_code == 0
    rows = [line.split() for line in said.stdout.splitlines() if line]
    assert ["gateway", "up", "72", "MB", "1"] in rows
    assert ["extract", "2", "0", "0", "1", "min", "5", "s"] in rows
    assert ["codex", "never"] in rows
    assert "queue: degraded" in said.stdout
    assert "embed" not in said.stdout
    assert "\x1b" not in said.stdout
    assert "The build needs" in said.stdout


def test_json_is_what_was_read(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    answer(daemon)
    read = json.loads(signet("top", "--json").stdout)
    assert read["domains"] == {"queue": {"status": "degraded"}}
    assert [row["id"] for row in read["newest"]] == ["m1"]


def test_cpu_time_and_requests_are_those_between_two_drawings() -> None:
    before = seen(10.0, process("gateway", cpu_seconds=5.0, requests=100.0), process("writer", cpu_seconds=9.0))
    now = seen(12.0, process("gateway", cpu_seconds=5.5, requests=130.0), process("writer", cpu_seconds=0.2))
    text = drawn(before, now)
    assert "15.0 requests a second" in text
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert "25 %" in lines["gateway"]
    assert "10 %" in lines["writer"], "it was restarted, so its counter began anew"


def test_a_daemon_that_does_not_answer_is_told_with_what_was_known() -> None:
    before = seen(10.0, process("gateway", cpu_seconds=5.0))
    text = drawn(before, before, problem="no daemon answers")
    assert "no daemon answers" in text
    assert "running" not in text
    assert "gateway" in text
