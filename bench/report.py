"""The table of a run: each figure with its target and its floor. Source: docs/performance.md "Targets"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.cpu_usage import LOAD_GENERATOR
from bench.figures import Spread
from bench.floor import WriteFloor

RECALL_CLIENTS: Final = (1, 8, 32)
IMPORT_TARGET_PER_S: Final = 8_000
LEAST_CPU_MS: Final = 0.01
RECALL_TARGETS: Final[dict[int, tuple[float, float, float]]] = {
    1_000: (2, 5, 800),
    10_000: (3, 8, 500),
    100_000: (6, 15, 300),
    1_000_000: (20, 50, 80),
}
"""p50 and p95 in milliseconds at one client, requests per second at eight; with the model ``embedded``."""
READY_TARGETS_S: Final[dict[int, float]] = {0: 2, 1_000: 2, 10_000: 2, 100_000: 4}
PSS_TARGETS_MB: Final[dict[int, float]] = {1_000: 250, 10_000: 250, 100_000: 600}


class Line(msgspec.Struct, frozen=True):
    """One line of the table. ``floor`` is the machine's best figure; ``limit`` and ``least`` are the target."""

    figure: str
    measured: float
    unit: str
    limit: float | None = None
    least: float | None = None
    floor: float | None = None

    @property
    def met(self) -> bool | None:
        """Return whether the target is met; None without one."""
        if self.limit is not None:
            return self.measured <= self.limit
        if self.least is not None:
            return self.measured >= self.least
        return None


def lines_of(found: dict[str, Any]) -> list[Line]:
    """Return the figures of a run that have a target or explain those that have one."""
    lines: list[Line] = []
    floors = found["floors"]
    write_floors: dict[int, WriteFloor] = {floor.rows_per_commit: floor for floor in floors.get("write", ())}
    lines += [
        Line(f"import to {int(name):,} memories", done["per_s"], "/s", least=IMPORT_TARGET_PER_S)
        for name, done in found["imports"].items()
    ]
    for name, writes in found["writes"].items():
        clients = int(name)
        took: Spread = writes["latency_ms"]
        floor = write_floors.get(clients)
        rate, p50, p99 = (floor.rows_per_s, floor.commit_ms.p50, floor.commit_ms.p99) if floor else (None, None, None)
        label = f"remember, {clients} client{'s' if clients > 1 else ''}"
        lines += [
            Line(label, writes["per_s"], "/s", least=1800 if clients == 16 else None, floor=rate),
            Line(f"{label}, p50", took.p50, "ms", limit=2 if clients == 1 else None, floor=p50),
            Line(f"{label}, p95", took.p95, "ms"),
            Line(f"{label}, p99", took.p99, "ms", limit=10 if clients == 1 else None, floor=p99),
            Line(f"{label}, rows per commit", writes["rows_per_commit"], ""),
            *_cpu_lines(label, writes["cpu_ms_per_remember"]),
        ]
    for name, figures in found["sizes"].items():
        lines += _recall_lines(int(name), figures, floors)
    mixed = found["mixed"]
    lines += [
        Line(f"mixed load ({mixed['clients']} clients, 80 % recall)", mixed["per_s"], "/s"),
        Line("mixed load, recall p95", mixed["recall_ms"].p95, "ms"),
        Line("mixed load, remember p95", mixed["remember_ms"].p95, "ms"),
        Line("mixed load, /health p99", mixed["health_ms"].p99, "ms", limit=50, floor=_p99(floors.get("health_ms"))),
    ]
    lines += [
        Line(f"ready, {int(name):,} memories", seconds, "s", limit=READY_TARGETS_S.get(int(name)))
        for name, seconds in found["ready_s"].items()
    ]
    return lines


def _recall_lines(size: int, figures: dict[str, Any], floors: dict[str, Any]) -> list[Line]:
    p50, p95, rate = RECALL_TARGETS.get(size, (None, None, None))
    alone, many, most = (figures[f"{clients} clients"] for clients in RECALL_CLIENTS)
    least = _recall_floor(floors, size)
    label = f"recall at {size:,}"
    kinds: dict[str, Spread] = alone["by_kind_ms"]
    beside = figures.get("beside second vectors")
    return [
        *(
            ()
            if beside is None
            else (
                Line(f"second vectors at {size:,}, no requests", figures["second_vectors_per_s"], "/s", least=250),
                Line(f"{label}, while second vectors are made, p50", beside["latency_ms"].p50, "ms"),
                Line(f"{label}, while second vectors are made, p95", beside["latency_ms"].p95, "ms"),
            )
        ),
        Line(f"{label}, p50", alone["latency_ms"].p50, "ms", limit=p50, floor=least and least[0]),
        Line(f"{label}, p95", alone["latency_ms"].p95, "ms", limit=p95, floor=least and least[1]),
        Line(f"{label}, p99", alone["latency_ms"].p99, "ms"),
        *(
            Line(f"{label}, {kind}, {name}", value, "ms")
            for kind, took in kinds.items()
            for name, value in (("p50", took.p50), ("p95", took.p95))
        ),
        Line(f"{label}, 8 clients", many["per_s"], "/s", least=rate),
        Line(f"{label}, 8 clients, p95", many["latency_ms"].p95, "ms"),
        Line(f"{label}, 8 clients, /health p99", many["health_ms"].p99, "ms", limit=50),
        Line(f"{label}, 32 clients", most["per_s"], "/s"),
        Line(f"{label}, 32 clients, p95", most["latency_ms"].p95, "ms"),
        Line(f"{label}, 32 clients, refused", most["refused"], ""),
        *_cpu_lines(label, alone["cpu_ms_per_recall"]),
        Line(f"identifiers first at {size:,}", _share(alone, many, most), "%", least=100),
        Line(f"idle CPU at {size:,}", figures["idle_cpu_percent"], "% of a core", limit=1),
        Line(f"memory (PSS) at {size:,}", figures["pss_bytes"]["sum"] / 1e6, "MB", limit=PSS_TARGETS_MB.get(size)),
    ]


def _cpu_lines(label: str, each: dict[str, float]) -> list[Line]:
    """Return the CPU time of each process that used any."""
    return [
        Line(f"{label}, CPU of {name}", spent, "ms each")
        for name, spent in each.items()
        if name != LOAD_GENERATOR and spent >= LEAST_CPU_MS
    ]


def _recall_floor(floors: dict[str, Any], size: int) -> tuple[float, float] | None:
    """Return p50 and p95 of FTS5 query, exact vector scan and one round trip together; None if one was not measured."""
    parts = floors.get(str(size))
    if parts is None or parts["keyword_ms"] is None:
        return None
    spreads: list[Spread] = [parts["keyword_ms"], parts["vector_ms"], floors["health_ms"]]
    return sum(took.p50 for took in spreads), sum(took.p95 for took in spreads)


def _p99(took: Spread | None) -> float | None:
    return None if took is None else took.p99


def _share(*phases: dict[str, Any]) -> float:
    asked = sum(phase["identifiers"] for phase in phases)
    return 100.0 * sum(phase["identifiers first"] for phase in phases) / asked if asked else 100.0


def show(
    lines: Sequence[Line],
    console: Console,
    *,
    title: str = "Signet under load",
    floor: str = "the same work without the daemon, same run",
) -> None:
    """Print the table; ``floor`` describes its column."""
    table = Table(title=title, caption=f"floor: {floor}")
    table.add_column("figure")
    for name in ("measured", "target", "floor", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("")
    for line in lines:
        target = "" if line.met is None else f"≤ {line.limit:g}" if line.limit is not None else f"≥ {line.least:g}"
        ratio = ""
        if line.floor:
            larger, smaller = sorted((line.floor, line.measured), reverse=True)
            ratio = f"{larger / smaller:.1f}" if smaller else ""
        verdict = {None: "", True: "[green]met[/green]", False: "[red]missed[/red]"}[line.met]
        least = f"{line.floor:,.2f}" if line.floor else ""
        table.add_row(line.figure, f"{line.measured:,.2f} {line.unit}".rstrip(), target, least, ratio, verdict)
    console.print(table)
