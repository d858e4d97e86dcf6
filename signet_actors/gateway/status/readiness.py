"""Readiness of the daemon: a pure function of the process tree and of earlier results, so that health sends no message.

Source: docs/reliability.md R22, "Supervision policy"; docs/compatibility.md "Health and status".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from signet_actors.errors import DATABASE_DAMAGED
from signet_actors.protocol.control import STARTING, STOPPING, UP, ChildState

HEALTHY = "healthy"
DEGRADED = "degraded"
UNHEALTHY = "unhealthy"

_SLOW_SYNC_S = 1.0
_WORDS = {STARTING: "is starting", STOPPING: "is stopping", "restarting": "is being restarted", "failed": "has failed"}


@dataclass(frozen=True, slots=True)
class Readiness:
    """The state of the daemon for a caller.

    - ``status``: healthy if everything is up; unhealthy if memories cannot be written or cannot be read; degraded
      otherwise, which includes a damaged but readable database, a full or slow disk, a log that another program lets
      grow, and failing requests to actors.
    - ``ready``: memories can be written and read, even if by fewer processes, and this is known.
    - ``not_up``: every process that is not up, except the gateway.
    - ``missing``: roles that no process serves now.
    """

    status: str
    ready: bool
    not_up: tuple[str, ...]
    missing: tuple[str, ...]
    storage_full: bool
    detail: str


def readiness(
    children: Sequence[ChildState],
    *,
    draining: bool,
    silent_ms: int | None = None,
    unanswered: Mapping[str, str] = MappingProxyType({}),
    storage_full: bool = False,
    notes: Sequence[str] = (),
    warning: str = "",
    failure: str = "",
) -> Readiness:
    """Return what can be done now, and in words what cannot.

    - ``silent_ms``: how long the supervisor has been silent, None if not too long. Its last report may be outdated
      then, and no process is restarted.
    - ``unanswered``: by role, why its requests are not answered although it is up.
    - ``storage_full``: the last write was refused because the disk was full.
    - ``notes``: other problems of the latest requests.
    - ``warning``, ``failure``: the supervisor's messages about the whole daemon. With a failure, nothing that is stored
      or read now can be trusted.
    """
    others = [child for child in children if child.role != "gateway"]
    down = [
        child
        for child in others
        if child.state != UP and not _is_first_start(child) and not _is_stopping_optional(child)
    ]
    up = [child.role for child in others if child.state == UP]
    missing = [role for role in ("writer", "searcher") if role not in up]
    writer = [child.counters for child in others if child.role == "writer" and child.state == UP]
    unresponsive = [role for role in unanswered if role not in missing]
    full = storage_full or any(counters.get("storage_full") for counters in writer)
    silent = [] if silent_ms is None else ["supervisor"]
    reported = [*silent, *(child.name for child in down)]
    displaced = any(counters.get("displaced") for counters in writer)
    damaged = any(child.counters.get("damaged") for child in others if child.state == UP)
    scrubbed = any(child.counters.get("scrub_findings") for child in others)
    unknown = [role for role in missing if not any(child.role == role for child in others)]
    sentences = [f"the supervisor has sent no message for {silent_ms} ms"] if silent else []
    sentences += [_sentence(child) for child in down] + [f"{role} has not reported yet" for role in unknown]
    if displaced and not failure:
        sentences.append(
            "a file of the database was removed, renamed, replaced or truncated: writes are refused; the log names it"
            " (database_displaced)"
        )
    if damaged:
        sentences.append(
            f"{DATABASE_DAMAGED}: writes are refused, and only undamaged data is read (see `signet doctor --deep`);"
            " run `signet stop`, then `signet doctor --repair`, or, if no index is damaged, `signet restore latest`"
        )
    elif scrubbed:
        sentences.append("the last check of the database found damage (see `signet doctor --deep`)")
    sentences += [unanswered[role] for role in unresponsive]
    if full:
        sentences.append(
            "the disk is full: writes are refused, reads still work; free disk space, and writes resume automatically"
        )
    sync_s = max((child.counters.get("sync_seconds", 0) for child in others if child.state == UP), default=0)
    slow = sync_s >= _SLOW_SYNC_S
    if slow:
        sentences.append(f"the disk is slow: a sync takes {sync_s:.0f} s; writes wait for it, or are answered 504")
    blocked = any(counters.get("wal_blocked") for counters in writer)
    if blocked:
        sentences.append(
            "another program has an open read transaction on the database, so its write-ahead log grows with every"
            " write: end that program, such as a database browser or sqlite3; the log then shrinks by itself"
        )
    reports = [text for child in others for text in _reports(child.counters)]
    sentences += [*notes, *reports]
    sentences += [text for text in (failure, warning) if text]
    if draining:
        sentences.append("the daemon is shutting down")
    if missing or unresponsive or displaced or failure:
        status = UNHEALTHY
    elif down or draining or silent or damaged or scrubbed or full or slow or blocked or notes or reports or warning:
        status = DEGRADED
    else:
        status = HEALTHY
    return Readiness(
        status=status,
        ready=not (missing or unresponsive or draining or silent or displaced or damaged or full or failure),
        not_up=(*reported, *unknown),
        missing=(*missing, *unresponsive),
        storage_full=full,
        detail="; ".join(sentences),
    )


def _reports(counters: Mapping[str, float]) -> Iterator[str]:
    """Yield that the last backup was not made, nothing is embedded, or what became of the reports of hooks."""
    if counters.get("backup_problem"):
        yield "the last backup could not be made (`signet status` says why)"
    if counters.get("embedding_away"):
        yield "embedding does not work, so new memories are found by their words only (`signet doctor` says why)"
    if counters.get("reports_unusable"):
        yield "memory/spool cannot be used: while the daemon is away, reports of hooks are lost (see `signet doctor`)"
    for name, state in (("reports_waiting", "waiting, because sending failed"), ("reports_rejected", "set aside")):
        if count := int(counters.get(name, 0)):
            are = "report of a hook is" if count == 1 else "reports of hooks are"
            yield f"{count} {are} {state} (`signet doctor` says more)"


def _is_first_start(child: ChildState) -> bool:
    """Return True for an optional process in its first start, which begins when the core processes serve."""
    return not child.core and child.state == STARTING and child.restarts == 0


def _is_stopping_optional(child: ChildState) -> bool:
    """Return True for an optional process that is stopping on request. A drain of all processes is ``draining``."""
    return not child.core and child.state == STOPPING


def _sentence(child: ChildState) -> str:
    words = f"{child.name} {_WORDS.get(child.state, f'is {child.state}')}"
    return f"{words} ({child.detail})" if child.detail else words
