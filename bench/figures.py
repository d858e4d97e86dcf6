"""Figures of a run: percentiles, and where and when they were measured."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

RESULTS: Final = Path(__file__).resolve().parent / "results"
_REPOSITORY: Final = RESULTS.parent.parent


class Spread(msgspec.Struct, frozen=True):
    """Latencies of one phase in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    worst: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the ``ordered`` values do not exceed (nearest rank); 0 for
    none.
    """
    if not ordered:
        return 0.0
    rank = -(-len(ordered) * share // 1)  # ceiling
    return ordered[min(len(ordered), max(1, int(rank))) - 1]


def spread(latencies_ms: Sequence[float]) -> Spread:
    """Return the percentiles of a phase."""
    ordered = sorted(latencies_ms)
    return Spread(
        count=len(ordered),
        p50=percentile(ordered, 0.50),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        worst=ordered[-1] if ordered else 0.0,
    )


def circumstances() -> dict[str, Any]:
    """Return machine, time, revision, command and load, to be written with every result."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", *_module_and_arguments()]),
        "revision": _git("rev-parse", "--short", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--", "signet_actors", "supervisor.py")),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def write_result(name: str, result: dict[str, Any]) -> Path:
    """Write ``result`` to a file in ``bench/results``; return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    return path


def _module_and_arguments() -> list[str]:
    program = Path(sys.argv[0])
    return [f"{program.parent.name}.{program.stem}", *sys.argv[1:]]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(_REPOSITORY), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
