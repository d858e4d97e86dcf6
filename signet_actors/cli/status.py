"""The commands status and version: show what runs, what is stored, and why jobs wait.

Source: architecture.txt "GET /api/status"; docs/reliability.md R22; docs/decisions.md 14.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from signet_actors import __version__
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import (
    counted,
    full_time_text,
    mark,
    on_terminal,
    one_line,
    size_text,
    terminal_width,
    time_text,
    wrap_parts,
)
from signet_actors.cli.tables import Column, print_fields, print_records, print_wrapped
from signet_actors.config.shared_storage import ADVICE, shared_storage
from signet_actors.domain.providers import NO_PROVIDER
from signet_actors.domain.retention import FIRST_CLOCK
from signet_actors.errors import ConfigError, RequestRefused

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient

STORED = (
    ("memories", "memories"),
    ("deleted, recoverable", "tombstones"),
    ("vectors", "embeddings"),
    ("agents", "agents"),
    ("sessions", "sessions"),
)
LOW_DISK_BYTES = 1_000_000_000
ACCESS = {
    "team": "auth.mode is team: all but the user that runs the daemon need a token",
    "hybrid": "auth.mode is hybrid: other machines need a token",
}
OPTIONAL = frozenset(("extractor", "decider", "quarantine"))
"""Processes without which everything but the extraction of facts works."""


@command()
@click.option("--verbose", "-v", is_flag=True, help="Also every process, and what is stored.")
def status(invocation: Invocation, verbose: bool) -> None:
    """Show whether the daemon runs, what it holds, and what is wrong.

    On a pipe: as with --verbose, the processes separated by tabs. Exit code 3 when no daemon runs.
    """
    client = invocation.client(timeout_s=10)
    answer = client.get("/api/status")
    answer.text("status")
    actors = answer.records("actors")
    if invocation.has_printed(answer):
        return
    body: dict[str, Any] = answer.body
    body["access"] = _access(client)
    body["verdict"] = _verdict(client)
    body["address"] = f"{'https' if client.address.secure else 'http'}://{body.get('host')}:{body.get('port')}"
    verbose = verbose or not on_terminal()
    if verbose:
        _print_processes(body, actors)
    else:
        _print_sentence(invocation, body)
    for remark in (*_problems(body, verbose=verbose), *_configuration(invocation), *_storage(invocation)):
        print_wrapped(invocation.advice(remark), indent=2, chop=False)


def _print_sentence(invocation: Invocation, body: dict[str, Any]) -> None:
    health = str((body.get("health") or {}).get("status") or "")
    state = ", ".join(part for part in (str(body.get("status")), "" if health == "healthy" else health) if part)
    stored: dict[str, Any] = body.get("db") or {}
    backup = (body.get("retention") or {}).get("lastBackupAt")
    parts = [
        state,
        counted(stored["memories"], "memory") if "memories" in stored else "",
        counted(stored["sessions"], "session") if stored.get("sessions") else "",
        f"last backup {time_text(backup)}" if backup else "",
        _connected(invocation) if invocation.uses_workspace_daemon else "",
    ]
    is_well = body.get("status") == "running" and health in {"", "healthy"}
    first, *more = wrap_parts(map(one_line, parts), terminal_width() - 2)
    for line in (f"{mark('up' if is_well else 'down')} {first}", *(f"  {line}" for line in more)):
        click.echo(invocation.advice(line))
    named = ((body.get("providerResolution") or {}).get("extraction") or {}).get("resolved")
    facts = "off, needs a model (`signet providers`)" if _without_model(body) else None
    if facts is None and named != NO_PROVIDER:
        facts = named
    print_fields(
        (
            ("memory", body["verdict"]),
            ("address", body["address"]),
            ("workspace", body.get("agentsDir")),
            ("access", body["access"]),
            ("version", f"{body.get('version')}, up {duration(body.get('uptime'))}"),
            ("facts", facts),
            ("disk", _low_disk(invocation)),
            ("problem", body.get("detail")),
        ),
        indent=2,
    )


def _access(client: DaemonClient) -> str | None:
    """Return who needs a token; None if nobody does."""
    try:
        return ACCESS.get(str(client.get("/api/auth/whoami").body.get("mode")))
    except RequestRefused:
        return None


def _verdict(client: DaemonClient) -> str | None:
    """Return whether memory works, in a word and a sentence; None if the daemon does not tell."""
    try:
        told: dict[str, Any] = client.get("/api/diagnostics/findings").body.get("verdict") or {}
    except RequestRefused:
        return None
    return f"{told['word']}. {told['sentence']}" if told.get("word") else None


def _connected(invocation: Invocation) -> str:
    from signet_actors.cli.harnesses.registry import connected_titles  # noqa: PLC0415 - only for the sentence

    names = ", ".join(connected_titles(invocation.environ))
    return f"{names} connected" if names else "no agent connected (`signet setup`)"


def _low_disk(invocation: Invocation) -> str | None:
    if not invocation.uses_workspace_daemon:
        return None
    free = shutil.disk_usage(invocation.workspace).free
    return f"{size_text(free)} free; a full disk refuses changes" if free < LOW_DISK_BYTES else None


def _print_processes(body: dict[str, Any], actors: list[dict[str, Any]]) -> None:
    health: dict[str, Any] = body.get("health") or {}
    state = ", ".join(str(word) for word in (body.get("status"), health.get("status")) if word)
    print_fields(
        (
            ("daemon", f"{state}, version {body.get('version')}, up {duration(body.get('uptime'))}"),
            ("memory", body["verdict"]),
            ("address", body["address"]),
            ("workspace", body.get("agentsDir")),
            ("access", body["access"]),
            ("problem", body.get("detail")),
        )
    )
    if actors:
        click.echo()
    print_records(PROCESSES, actors)
    click.echo()
    print_fields(_stored(body))


def is_optional_start(actor: dict[str, Any]) -> bool:
    """Return whether the process starts without which everything but the extraction of facts works."""
    return actor.get("state") == "starting" and actor.get("name") in OPTIONAL


def _state(actor: dict[str, Any]) -> str:
    return f"{actor.get('state')}{' (optional)' if on_terminal() and is_optional_start(actor) else ''}"


PROCESSES = (
    Column("process", "name"),
    Column("state", form=_state),
    Column("pid", drop=2, right=True),
    Column("incarnation", drop=1, right=True),
    Column("restarts", right=True),
    Column("detail", wrap=True),
)


def _stored(body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    stored: dict[str, Any] = body.get("db") or {}
    for label, name in STORED:
        count = stored.get(name)
        yield label, f"{count} (of all agents)" if name == "memories" and count is not None else count
    if stored:
        wal = (body.get("writer") or {}).get("walBytes")
        log = f" and {size_text(wal)} of write-ahead log" if wal else ""
        yield "database", f"{size_text(stored.get('bytes'))}{log}, schema {stored.get('schemaVersion')}"
    yield "newest backup", full_time_text((body.get("retention") or {}).get("lastBackupAt"))
    embedding: dict[str, Any] = body.get("embedding") or {}
    second = f", then {embedding['second']}" if embedding.get("second") else ""
    yield "embedding", " ".join(str(embedding[name]) for name in ("provider", "model") if embedding.get(name)) + second
    if _without_model(body):
        yield "facts", "off, needs a model (`signet providers`)"
    jobs: dict[str, Any] | None = body.get("jobs")
    if jobs is not None:
        names = {"pending": "waiting for a model"} if _without_model(body) else {}
        yield (
            "jobs",
            ", ".join(f"{count} {names.get(state, state)}" for state, count in jobs.items() if count) or "none",
        )
        yield "oldest job", full_time_text(body.get("oldestPendingJob"))


def _configuration(invocation: Invocation) -> Iterator[str]:
    """Yield what is wrong with the workspace's configuration, which may have changed since the daemon loaded it."""
    if not invocation.uses_workspace_daemon:
        return
    from signet_actors.config.load import load_config  # noqa: PLC0415 - not for the daemon at an address

    try:
        warnings = load_config(invocation.workspace, invocation.settings).warnings
    except ConfigError:
        warnings = ["it is not valid, so a restart would fail; correct it with `signet config edit`"]
    yield from (f"configuration: {warning}" for warning in warnings)


def _storage(invocation: Invocation) -> Iterator[str]:
    shared = shared_storage(invocation.workspace) if invocation.uses_workspace_daemon else None
    if shared is not None:
        yield f"storage: the workspace {shared}, where a database is not safe; {ADVICE}"


def _without_model(body: dict[str, Any]) -> bool:
    """Return whether no model extracts facts. If the extractor does not respond, that is unknown."""
    chosen = ((body.get("providerResolution") or {}).get("extraction") or {}).get("resolved")
    unknown = any(str(note).startswith("extractor") for note in body.get("notes") or [])
    return bool(chosen == NO_PROVIDER and not unknown)


def _problems(body: dict[str, Any], *, verbose: bool) -> Iterator[str]:
    """Yield the reasons why something waits or is refused; what is so in every first hour only if ``verbose``."""
    if body.get("mutationsFrozen"):
        yield "frozen: changes are refused (memory.pipelineV2.mutationsFrozen)"
    if (body.get("writer") or {}).get("storageFull"):
        yield "full: the disk is full; changes are refused until space is free; recall still works"
    damage = (body.get("writer") or {}).get("damage")
    if damage:
        yield f"damaged: {one_line(damage)}"
    retention: dict[str, Any] = body.get("retention") or {}
    if retention.get("backupProblem"):
        yield f"backup: {one_line(retention['backupProblem'])}"
    for finding in retention.get("scrubFindings") or []:
        yield f"damaged: {one_line(finding)}"
    suspended = retention.get("suspendedReason")
    if suspended and (verbose or not str(suspended).startswith(FIRST_CLOCK)):
        yield f"retention: {one_line(suspended)}"
    is_starting = any(map(is_optional_start, body.get("actors") or []))
    for reason in () if is_starting else body.get("waiting") or []:
        if not _without_model(body) or "embed: " in reason:  # embeddings need no language model
            yield f"waiting: {one_line(reason)}"
    for note in body.get("notes") or []:
        if str(note) in {f"{name}: starting" for name in OPTIONAL}:
            continue
        yield f"unknown: {one_line(note)}"


@command()
def version(invocation: Invocation) -> None:
    """Print the version."""
    invocation.print_done({"version": __version__, "python": platform.python_version()}, f"signet {__version__}")


def duration(seconds: Any) -> str:
    """Return the seconds in readable form, such as ``2 h 5 min``."""
    if not isinstance(seconds, int | float):
        return "?"
    whole = int(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
