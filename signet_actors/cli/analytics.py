"""The command analytics: what the daemon did. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonReply
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import time_text
from signet_actors.cli.tables import Column, print_records

CLASSES: Final = ("remember", "recall", "mutate", "jobs")


def _mean(record: Any) -> str:
    return f"{record['totalLatencyMs'] / max(1, record['calls']):.1f}"


COUNTS: Final = (
    Column("what", "name"),
    Column("calls", right=True),
    Column("errors", right=True),
    Column("mean ms", form=_mean, right=True),
)
ACTORS: Final[tuple[Column | str, ...]] = (
    "actor",
    *(Column(name, right=True) for name in ("remember", "recall", "mutate", "other")),
)
LATENCY: Final = (
    Column("what", "name"),
    *(Column(name, name, lambda value: f"{value:.1f}", right=True) for name in ("p50", "p95", "p99", "mean")),
    Column("count", right=True),
)
PROMPTS: Final[tuple[Column | str, ...]] = (
    "project",
    *(Column(name, right=True) for name in ("prompts", "given", "nothing", "skipped", "characters")),
)
ERRORS: Final = (
    Column("time", "timestamp", time_text),
    Column("code"),
    Column("memory", "memoryId", drop=2),
    Column("actor", drop=1),
    Column("message", wrap=True),
)


def _usage(answer: DaemonReply) -> None:
    endpoints, providers = answer.body["endpoints"], answer.body["providers"]
    counts = [{"name": name, "calls": figures["count"], **figures} for name, figures in endpoints.items()]
    counts += [{"name": f"model {name}", "errors": each["failures"], **each} for name, each in providers.items()]
    counts.sort(key=lambda row: (-row["calls"], row["name"]))
    print_records(COUNTS, counts, none="Nothing is counted yet.")


def _actors(answer: DaemonReply) -> None:
    actors = [{"actor": name, **counts} for name, counts in answer.body["actors"].items()]
    print_records(ACTORS, actors, none="Nothing is counted yet.")


def _errors(answer: DaemonReply) -> None:
    print_records(ERRORS, answer.records("errors"), none="No error is recorded.")


def _latency(answer: DaemonReply) -> None:
    rows = [{"name": name, **answer.body[name]} for name in CLASSES]
    print_records(LATENCY, rows, none="")


def _prompts(answer: DaemonReply) -> None:
    rows = [{**answer.body, "project": "all"}, *answer.records("projects")]
    rows = [{**row, "skipped": sum(row["skipped"].values()), "project": row["project"] or "none"} for row in rows]
    print_records(PROMPTS, rows, none="")


SHOWN: Final[dict[str, tuple[str, Callable[[DaemonReply], None]]]] = {
    "usage": ("usage", _usage),
    "actors": ("usage", _actors),
    "errors": ("errors", _errors),
    "latency": ("latency", _latency),
    "prompts": ("prompts", _prompts),
}
"""The route below ``/api/analytics`` for each choice, and how its answer is printed."""


@command(agent=True)
@click.argument("what", required=False, type=click.Choice(tuple(SHOWN)), default="usage")
def analytics(invocation: Invocation, what: str) -> None:
    """Show what the daemon did: usage, errors, latency or prompts.

    `usage`: requests by route, and calls of models. `actors`: requests by who made them. `errors`: the last ones of the
    pipeline, of vectors and of changes. `latency`: milliseconds of the last 1,000 requests and jobs. `prompts`:
    what came of the agent's prompts of the last 24 hours, by project. On a pipe: columns separated by tabs.
    """
    route, show = SHOWN[what]
    answer = invocation.client().get(f"/api/analytics/{route}")
    if not invocation.has_printed(answer):
        show(answer)
