"""Whether memory works, and what is wrong, in sentences: what the page and ``signet status`` show first.

Source: docs/guides/dashboard.md "Today", "Health".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from signet_actors.config.schema import Config
from signet_actors.domain.providers import NO_PROVIDER
from signet_actors.domain.retention import FIRST_CLOCK
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.features.diagnostics.api import Finding, Verdict
from signet_actors.features.searches.api import LastPrompts, SearchRow
from signet_actors.gateway.status.readiness import HEALTHY
from signet_actors.gateway.status.replies import Part, Replies
from signet_actors.gateway.status.snapshot import DaemonSnapshot
from signet_actors.operations.status import RetentionReport
from signet_actors.protocol.control import STARTING, UP, ChildState

ASKED: Final[tuple[Part, ...]] = ("queues", "writer", "retention", "extractor", "decider")
"""The parts from which they are made."""
DAY_MS: Final = 86_400_000
SILENT_MS: Final = 7 * DAY_MS
HARNESS_CHARS: Final = 30
SERVED_BY_ANOTHER: Final = "claimed"
"""Why a hook did nothing while memory works: the session has its memories from another program."""
HOOKS: Final = {
    "session_start": ("hooks.sessionStart.enabled", "sessions are given nothing at their start"),
    "user_prompt_submit": ("hooks.userPromptSubmit.enabled", "prompts are given no memories"),
    "session_end": ("hooks.sessionEnd.enabled", "what is said in sessions is not kept"),
}
"""The key of each hook, and what its being off means."""
MAX_DEAD: Final = 5
"""Causes of dead jobs that are listed."""
_UNITS: Final = (("y", 31_557_600), ("mo", 2_629_800), ("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


class SeenHarness(NamedTuple):
    """A connected harness. ``seen_ms``: its last hook since the daemon's start, milliseconds since 1970."""

    id: str
    name: str
    seen_ms: int | None


def verdict(snapshot: DaemonSnapshot, prompts: LastPrompts | None) -> Verdict:
    """Return whether memory works. ``prompts``: None if the caller may not know of them."""
    if snapshot.readiness.status != HEALTHY:
        detail = snapshot.readiness.detail or snapshot.readiness.status
        return Verdict(level="bad", word="Not everything works", sentence=_sentence(detail))
    if prompts is None:
        return Verdict(level="none", word="Ready", sentence="The daemon is healthy.")
    last, given = prompts.last, prompts.last_given
    if last is None:
        return Verdict(level="none", word="Ready", sentence="No prompt has come yet.")
    now_ms = snapshot.now_ms
    program = (last.harness or "a program")[:HARNESS_CHARS]
    came = f"The last prompt came {_ago(last, now_ms)} from {program}: {last.outcome}."
    proof = ""
    if given is not None and given.id != last.id:
        proof = f" Before it, {_ago(given, now_ms)}, one was {given.outcome}."
    if now_ms - (epoch_ms(last.at) or 0) > SILENT_MS:
        word = "Silent"
    else:
        word = "Working" if last.skipped in {None, SERVED_BY_ANOTHER} else "Not asked"
    return Verdict(level="ok" if word == "Working" else "warn", word=word, sentence=f"{came}{proof}")


def findings(
    snapshot: DaemonSnapshot, harnesses: Sequence[SeenHarness], installed_ms: int, prompts: LastPrompts | None
) -> list[Finding]:
    """Return what is wrong, the worst first.

    ``installed_ms``: when the workspace was made. ``prompts``: None if the caller may not know of them.
    """
    replies, children = snapshot.replies, snapshot.children
    known = {f"{child.role}: {child.state}" for child in children}
    found = [
        *_of_writer(replies),
        *_of_processes(children),
        *_of_retention(replies.retention, snapshot.config, snapshot.now_ms - installed_ms),
        *_of_settings(snapshot),
        *_of_jobs(replies),
        *(_warning(note) for note in snapshot.notes if note not in known),
        *_of_harnesses(harnesses, prompts, snapshot.now_ms, snapshot.started_at_ms),
    ]
    return sorted(found, key=lambda one: one.severity != "bad")


def _of_writer(replies: Replies) -> Iterator[Finding]:
    writer = replies.writer
    if writer is not None and writer.damage:
        yield _defect(writer.damage, "signet doctor")
    if writer is not None and writer.storage_full:
        yield _defect("the disk is full: nothing is stored until there is room", "signet doctor")


def _of_processes(children: Sequence[ChildState]) -> Iterator[Finding]:
    for child in children:
        if child.state != UP and not (child.state == STARTING and not child.restarts):
            detail = f": {child.detail}" if child.detail else ""
            yield _defect(f"the process {child.name} is {child.state}{detail}", f"signet logs --actor {child.name}")


def _of_retention(retention: RetentionReport | None, config: Config, age_ms: int) -> Iterator[Finding]:
    if retention is None:
        return
    reason = retention.suspended_reason
    if reason and not reason.startswith(FIRST_CLOCK):  # as it should be in the first hour
        yield _warning(f"old data is not purged: {reason}", "signet doctor")
    if retention.backup_problem:
        yield _defect(f"the last backup failed: {retention.backup_problem}", "signet backup")
    elif retention.last_backup_at is None and (age_ms > DAY_MS or not config.backup.interval_ms):
        yield _warning("there is no backup yet", "signet backup")
    for text in retention.scrub_findings:
        yield _defect(text, "signet doctor")


def _of_settings(snapshot: DaemonSnapshot) -> Iterator[Finding]:
    for hook in (name for name in HOOKS if not getattr(snapshot.config.hooks, name).enabled):
        key, what = HOOKS[hook]
        yield _warning(f"{what}: {key} is false", f"signet config set {key} true")
    if snapshot.config.memory.pipeline_v2.mutations_frozen:
        yield _warning("changes are frozen by memory.pipelineV2.mutationsFrozen", "signet config show")
    if snapshot.embedder is None and snapshot.config.embedding.provider != NO_PROVIDER:
        told = "the model for meanings does not answer: memories are found by words only"
        yield _warning(told, "signet doctor")


def _of_jobs(replies: Replies) -> Iterator[Finding]:
    for dead in () if replies.queues is None else replies.queues.dead_causes[:MAX_DEAD]:
        jobs = "1 job" if dead.count == 1 else f"{dead.count:,} jobs"
        told = f"{jobs} of the kind {dead.kind} failed for good: {dead.cause}"
        yield _warning(told, "signet repair requeue-dead")


def _of_harnesses(
    harnesses: Sequence[SeenHarness], prompts: LastPrompts | None, now_ms: int, started_ms: int
) -> Iterator[Finding]:
    """One that was not heard since the start is told of when the record has it, else after a day with prompts."""
    heard = {} if prompts is None else prompts.heard
    waited = prompts is not None and prompts.last is not None and now_ms - started_ms > DAY_MS
    for one in dict.fromkeys(harnesses):
        seen_ms = one.seen_ms if one.seen_ms is not None else epoch_ms(heard.get(one.id, ""))
        if seen_ms is not None and now_ms - seen_ms > SILENT_MS:
            told = f"{one.name} was not heard for {_span(now_ms - seen_ms)}"
        elif seen_ms is None and waited:
            told = f"{one.name} was never heard: nothing has come from it since the daemon started"
        else:
            continue
        yield _warning(told, f"signet connect {one.id} --check")


def _defect(text: str, command: str) -> Finding:
    return Finding(severity="bad", text=_sentence(text), command=command)


def _warning(text: str, command: str | None = None) -> Finding:
    return Finding(severity="warn", text=_sentence(text), command=command)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def _ago(search: SearchRow, now_ms: int) -> str:
    ms = now_ms - (epoch_ms(search.at) or 0)
    return "just now" if ms < 5000 else f"{_span(ms)} ago"


def _span(ms: int) -> str:
    seconds = ms // 1000
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds // size} {unit}"
