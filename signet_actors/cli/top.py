"""The command top: the daemon at work, drawn again every few seconds. Source: docs/cli.md."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from signet_actors.cli import presentation as output
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.status import duration
from signet_actors.errors import SignetError

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from signet_actors.cli.connection import DaemonClient

NEWEST: Final = 5
_CHARS: Final = 160
_PIPE_WIDTH: Final = 240
_WELL: Final = frozenset(("healthy", "unknown"))


class Seen(NamedTuple):
    """What the daemon told at ``at`` (seconds of a clock that only goes forward)."""

    at: float
    status: dict[str, Any]
    jobs: list[dict[str, Any]]
    domains: dict[str, Any]
    harnesses: list[dict[str, Any]]
    newest: list[dict[str, Any]]


@command(agent=True)
@click.option(
    "--every", type=click.FloatRange(0.5, 60), default=2.0, show_default=True, help="Seconds between two drawings."
)
def top(invocation: Invocation, every: float) -> None:
    """Show the daemon at work, until Ctrl-C.

    Its processes with CPU time and memory, the jobs that wait, what is not well, the programs that ask, and the newest
    memories. On a pipe, and with --json, it is shown once.
    """
    client = invocation.client(timeout_s=10)
    seen = read(client)
    if invocation.as_json:
        output.print_json({name: value for name, value in seen._asdict().items() if name != "at"})
        return
    if not output.on_terminal():
        output.console().print(drawing(seen, seen), width=_PIPE_WIDTH)
        return
    from rich.live import Live  # noqa: PLC0415 - slow; needed only on a terminal

    with Live(drawing(seen, seen), console=output.console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            before = seen
            try:
                seen = read(client)
            except SignetError as error:
                live.update(drawing(seen, seen, problem=output.one_line(error)), refresh=True)
            else:
                live.update(drawing(before, seen), refresh=True)


def read(client: DaemonClient) -> Seen:
    """Read everything that is drawn. Raises SignetError."""
    return Seen(
        time.monotonic(),
        client.get("/api/status").body,
        client.get("/api/pipeline/status").records("jobs"),
        {name: part for name, part in client.get("/api/diagnostics").body.items() if isinstance(part, dict)},
        client.get("/api/harnesses").records("harnesses"),
        client.get("/api/memories", limit=NEWEST).records("memories"),
    )


def drawing(before: Seen, seen: Seen, *, problem: str = "") -> Group:
    """Return what is drawn. CPU time and requests are those since ``before``; ``problem`` replaces the state."""
    from rich.console import Group  # noqa: PLC0415 - slow; needed only here

    elapsed = seen.at - before.at
    return Group(*_parts(before, seen, elapsed, problem))


def _parts(before: Seen, seen: Seen, elapsed: float, problem: str) -> Iterator[RenderableType]:
    status, db = seen.status, seen.status.get("db") or {}
    unwell = [name for name, part in seen.domains.items() if part["status"] not in _WELL]
    state = "down" if problem or status["status"] != "running" else "warn" if unwell else "up"
    requests = _rate(before, seen, elapsed, "gateway", "requests")
    sentence = [
        problem or f"{status['status']}, up {duration(status['uptime'])}",
        output.counted(db.get("memories", 0), "memory"),
        *([f"{requests:.1f} requests a second"] if elapsed else []),
        *(f"{name}: {seen.domains[name]['status']} (`signet doctor`)" for name in unwell),
    ]
    yield f"{output.mark(state)} {', '.join(map(output.one_line, sentence))}\n"
    yield _table(("process", "state", "CPU", "memory", "restarts"), _processes(before, seen, elapsed))
    yield ""
    waiting = [job for job in seen.jobs if job["pending"] or job["leased"] or job["dead"]]
    if waiting:
        yield _table(
            ("jobs", "wait", "run", "dead", "oldest"),
            ((job["kind"], *(str(job[name]) for name in ("pending", "leased", "dead")), _age(job)) for job in waiting),
        )
        yield ""
    if seen.harnesses:
        yield _table(("program", "asked last"), ((each["name"], _time(each["last_seen"])) for each in seen.harnesses))
        yield ""
    yield _table(
        ("newest", "by", "memory"),
        ((_time(row["created_at"]), row["who"] or "", output.one_line(row["content"], _CHARS)) for row in seen.newest),
    )


def _processes(before: Seen, seen: Seen, elapsed: float) -> Iterator[tuple[str, ...]]:
    for actor in seen.status["actors"]:
        cpu = _rate(before, seen, elapsed, actor["name"], "cpu_seconds")
        yield (
            actor["name"],
            actor["state"] if not actor["detail"] else f"{actor['state']}: {actor['detail']}",
            f"{100 * cpu:.0f} %" if elapsed else "",
            output.size_text(int(actor["counters"]["rss_bytes"])) if "rss_bytes" in (actor["counters"] or {}) else "",
            str(actor["restarts"]),
        )


def _rate(before: Seen, seen: Seen, elapsed: float, process: str, counter: str) -> float:
    """Return by how much a counter of a process grew in a second; a process that was restarted begins anew."""
    now, then = (_counter(each, process, counter) for each in (seen, before))
    return (now - then if now >= then else now) / elapsed if elapsed else 0.0


def _counter(seen: Seen, process: str, counter: str) -> float:
    found = [actor for actor in seen.status["actors"] if actor["name"] == process]
    return float((found[0]["counters"] or {}).get(counter, 0.0)) if found else 0.0


def _age(job: dict[str, Any]) -> str:
    age = job["oldestPendingAgeSec"]
    return "" if age is None else duration(age)


def _time(value: Any) -> str:
    return output.time_text(value) if value else "never"


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - slow; needed only here

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title != titles[-1])
    for row in rows:
        table.add_row(*map(output.one_line, row))
    return table
