"""Recall with a number of clients: latencies by kind of question, CPU by process, stages, and identifier hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bench.closed_loops import Answered
from bench.cpu_usage import CpuUsage
from bench.figures import Spread, spread
from bench.loaded_daemon import WARM_UP, LoadedDaemon, must_have_worked
from bench.texts import Asked

QUESTIONS: Final = 8_000
KINDS: Final = ("unfiltered", "filtered", "natural questions", "identifiers")


class RecallMetaPart(msgspec.Struct):
    """The part of a recall's ``meta`` that is read."""

    timings: dict[str, Any]


class RecalledPart(msgspec.Struct):
    """The part of a result that is read."""

    content: str


class RecallPart(msgspec.Struct):
    """The part of a recall response that is read."""

    results: list[RecalledPart]
    meta: RecallMetaPart


def kinds_of(asked: Asked) -> tuple[str, str]:
    """Return whether the question has a filter, and whether it is an identifier, as two of ``KINDS``."""
    return (
        "filtered" if asked.filtered else "unfiltered",
        "natural questions" if asked.identifier is None else "identifiers",
    )


def latencies_by_kind(asked: Sequence[Asked], took: Iterable[tuple[int, float]]) -> dict[str, Spread]:
    """Return the latencies of each kind. ``took`` are indices into ``asked`` and milliseconds, in any order.

    Every request counts twice: with or without a filter, and as a question or an identifier.
    """
    sorted_out: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for at, latency_ms in took:
        for kind in kinds_of(asked[at]):
            sorted_out[kind].append(latency_ms)
    return {kind: spread(latencies) for kind, latencies in sorted_out.items()}


def judged(asked: Sequence[Asked], answers: Iterable[tuple[int, bytes]]) -> Mapping[str, Any]:
    """Return hits and stages of the responses, each given with the index of its question.

    ``identifiers first`` counts only queries that are only an identifier and have no filter.
    """
    stages: dict[str, list[float]] = {}
    counts = {"identifiers": 0, "identifiers first": 0, "no hit": 0}
    for at, body in answers:
        answer = msgspec.json.decode(body, type=RecallPart)
        for stage in answer.meta.timings["stages"]:
            stages.setdefault(stage["name"], []).append(stage["durationMs"])
        counts["no hit"] += not answer.results
        identifier = asked[at].identifier
        if identifier is not None and asked[at].body["query"] == identifier and not asked[at].filtered:
            counts["identifiers"] += 1
            counts["identifiers first"] += bool(answer.results) and identifier in answer.results[0].content
    return {"stages_ms": {name: spread(values) for name, values in stages.items()}, **counts}


def measure_recall(subject: LoadedDaemon, clients: int, seconds: float) -> dict[str, Any]:
    """Return the figures of one phase; raises DaemonFailed when a request fails. Call ``warm_up`` before."""
    asked = subject.questions(QUESTIONS)
    requests = [subject.recall_of(question) for question in asked]
    usage = CpuUsage(subject.daemon.processes())
    answered, health = Answered(keep_bodies=True), Answered()
    with usage.measured():
        subject.load(requests, clients, seconds, answered, health)
    must_have_worked(answered, f"recall with {clients} clients")
    count = len(answered.latencies_ms)
    subject.say(f"recall, {subject.size:,} memories, {clients} clients: {count} requests in {usage.wall_s:.1f} s")
    return {
        "latency_ms": spread(answered.latencies_ms),
        "by_kind_ms": latencies_by_kind(asked, zip(answered.at, answered.latencies_ms, strict=True)),
        "per_s": round(count / usage.wall_s, 1),
        "cpu_ms_per_recall": usage.each(count),
        "health_ms": spread(health.latencies_ms),
        "refused": answered.refused,
        **judged(asked, zip(answered.at, answered.bodies, strict=True)),
    }


def warm_up(subject: LoadedDaemon, seconds: float) -> None:
    """Send recalls until every searcher has answered some."""
    subject.load(subject.recalls(WARM_UP), 4, seconds)
