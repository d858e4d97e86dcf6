"""The command doctor: check the installation, and print a remedy with each problem.

It works with and without a running daemon, and changes nothing without ``--repair``. The writer's own check examines
the database in a separate process, because the command line never opens the database. While a daemon runs, ``--deep``
asks it for a backup, because checking the backup checks the database.

Source: docs/architecture.md "Dependency rules" 5; docs/reliability.md R18; docs/decisions.md 28 and 45.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.backup_commands import back_up, run_writer_tool, start_writer_tool
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.daemon_process import refuse_locked, running_tool, supervisor_pid
from signet_actors.cli.disk_findings import disk_findings
from signet_actors.cli.doctor_finding import FAIL, OK, WARN, DoctorContext, DoctorFinding
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.git_findings import git_findings
from signet_actors.cli.harnesses.identity_files import unread_files
from signet_actors.cli.harnesses.registry import HARNESSES, connected_titles
from signet_actors.cli.installation_findings import installation_findings
from signet_actors.cli.invocation import shared_options
from signet_actors.cli.presentation import ask_confirmation, below_home, counted, mark, print_json
from signet_actors.cli.providers import STATUS_PATH, accepts_calls, is_serving, model_remedy, model_text
from signet_actors.cli.status import is_optional_start
from signet_actors.cli.tables import print_wrapped
from signet_actors.cli.times import age_text
from signet_actors.config.daemon_address import recorded_address
from signet_actors.config.load import load_config
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.domain.backups import newest_first
from signet_actors.domain.session_inject import IDENTITY_FILES
from signet_actors.errors import ConfigError, ExitCode, SignetError
from signet_actors.runtime.identity_files import MAX_FILE_BYTES
from signet_actors.runtime.supervision.listener import TakenPort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from signet_actors.cli.invocation import Invocation
    from signet_actors.config.schema import Config

CHECK_TIMEOUT_S = 600
SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
LONGEST_SOCKET = "gateway-search.sock"
MIN_DESCRIPTORS = 512
SHOWN_FINDINGS = 10
_DAY_MS = 86_400_000


@click.command()
@click.option("--deep", is_flag=True, help="Also check every vector and every row against the others.")
@click.option("--repair", is_flag=True, help="Rebuild derived data: indexes, tag rows, vector tables.")
@click.option("--yes", is_flag=True, help="Do not ask before a repair.")
@shared_options
@click.pass_obj
def doctor(invocation: Invocation, deep: bool, repair: bool, yes: bool) -> None:
    """Check the installation and print remedies.

    Exit code 1 if anything fails. Works with and without a running daemon. Changes nothing, except with --repair, which
    needs the daemon stopped, and with --deep while the daemon runs, which makes a backup.
    """
    if repair:
        refuse_locked(invocation.workspace, "a daemon runs on the workspace", "stop it with `signet stop`, then repair")
    if repair and not yes and not ask_confirmation("Rebuild damaged indexes (a copy of the database is kept)?"):
        repair = False
    workspace, environment = invocation.workspace, invocation.environment
    findings: list[DoctorFinding] = []

    def add_finding(found: DoctorFinding) -> None:
        detail, remedy = invocation.advice(found.detail), invocation.advice(found.remedy)
        finding = DoctorFinding(found.subject, found.state, detail, remedy)
        findings.append(finding)
        if invocation.as_json:
            return
        lead = mark(finding.state)
        lead += " " * (2 if len(click.unstyle(lead)) == 1 else 6 - len(click.unstyle(lead)))
        indent = len(click.unstyle(lead))
        text, remedy = below_home(f"{finding.subject}: {detail}", environment), below_home(remedy, environment)
        print_wrapped(text, indent=indent, lead=lead, chop=False)
        if remedy:
            print_wrapped(remedy, indent=indent + 2, lead=f"{' ' * indent}→ ", chop=False)

    config: Config | None = None
    try:
        loaded = load_config(workspace, invocation.settings)
    except ConfigError as error:
        for problem in error.detail.splitlines():
            add_finding(DoctorFinding("configuration", FAIL, problem, "correct it with `signet config edit`"))
    else:
        config = loaded.config
        add_finding(DoctorFinding("configuration", OK, str(loaded.source or "no file, the defaults")))
        for warning in loaded.warnings:
            add_finding(DoctorFinding("configuration", WARN, warning))
    running = False
    try:
        running = lock_held(workspace)
    except ConfigError as error:
        add_finding(DoctorFinding("lock", FAIL, error.detail))
    address = recorded_address(workspace) if running else None
    client = DaemonClient(address, timeout_s=10, retry_window_s=2, environ=environment) if address else None
    if client is not None:
        click.get_current_context().call_on_close(client.close)
    context = DoctorContext(workspace, environment, config, running, client, deep or repair, repair)
    for check in CHECKS:
        for finding in check(context):
            add_finding(finding)
    failed = sum(finding.state == FAIL for finding in findings)
    if invocation.as_json:
        print_json(
            {
                "ok": failed == 0,
                "findings": [
                    {"subject": found.subject, "state": found.state, "detail": found.detail, "remedy": found.remedy}
                    for found in findings
                ],
            }
        )
    if failed:
        click.get_current_context().exit(REFUSED)


def workspace_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the workspace exists and is ours, private and writable."""
    workspace, places = context.workspace, Workspace(context.workspace)
    try:
        found = workspace.stat()
    except FileNotFoundError:
        told = f"{workspace} does not exist yet"
        if names := " and ".join(connected_titles(context.environment)):
            told += f", although {names} {'are' if ' and ' in names else 'is'} connected: was it moved?"
            yield DoctorFinding("workspace", WARN, told, "where it is now: SIGNET_WORKSPACE=DIRECTORY signet start")
        else:
            yield DoctorFinding("workspace", OK, f"{told}; the first start creates it")
        return
    except OSError as error:
        yield DoctorFinding("workspace", FAIL, f"{workspace}: {error.strerror}", "give this user access to it")
        return
    if not stat.S_ISDIR(found.st_mode):
        yield DoctorFinding(
            "workspace", FAIL, f"{workspace} is not a directory", "move it away or set SIGNET_WORKSPACE"
        )
        return
    if found.st_uid != os.getuid():
        yield DoctorFinding(
            "workspace", FAIL, f"{workspace} belongs to user {found.st_uid}", f"chown -R {os.getuid()} {workspace}"
        )
    if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        yield DoctorFinding("workspace", FAIL, f"{workspace} is not writable", f"chmod u+rwx {workspace}")
        return
    open_to_others = [
        path
        for path in (places.daemon_dir, places.secret_file, places.log_dir, places.memory_dir, places.database)
        if path.exists() and path.stat().st_mode & 0o077
    ]
    if found.st_mode & 0o077:
        open_to_others.insert(0, workspace)
    if open_to_others:
        names = " ".join(str(path) for path in open_to_others)
        yield DoctorFinding("workspace", WARN, f"other users may read {names}", f"chmod go-rwx {names}")
    else:
        yield DoctorFinding("workspace", OK, f"{workspace}, private")


def daemon_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the daemon is ready; if not, report what is known about the reason."""
    if url := context.environment.get("SIGNET_DAEMON_URL"):
        told = f"SIGNET_DAEMON_URL is set: hooks and commands use {url}, not a daemon of this workspace"
        yield DoctorFinding("daemon", WARN if context.running else OK, told, "unset it" if context.running else "")
    if not context.running:
        if names := " and ".join(connected_titles(context.environment)):
            told = f"not running: {names} {'have' if ' and ' in names else 'has'} no memory until it does"
            yield DoctorFinding("daemon", WARN, told, "`signet start` starts it")
        else:
            yield DoctorFinding("daemon", OK, "not running (`signet start` starts it)")
        return
    if (tool := running_tool(context.workspace)) is not None:
        yield DoctorFinding("daemon", WARN, f"not running, but {tool} is", "wait until it has ended")
        return
    pid = supervisor_pid(context.workspace)
    process = "it" if pid is None else f"pid {pid}"  # in a container the supervisor is process 1, which may be any
    if context.client is None:
        yield DoctorFinding(
            "daemon", WARN, f"{process} runs but does not listen yet", "wait a moment; see `signet logs`"
        )
        return
    try:
        ready = context.client.get("/health/ready")
        ready.confirm("ready", True)
    except SignetError as error:
        yield DoctorFinding(
            "daemon",
            FAIL,
            f"{process} is not ready: {error.detail.removeprefix('Not ready: ')}",
            "see `signet status` and `signet logs --level warning`",
        )
    else:
        yield DoctorFinding("daemon", OK, f"ready at {context.client.address}{'' if pid is None else f' ({process})'}")
        if ready.body.get("status") == "degraded":
            yield DoctorFinding("daemon", WARN, f"degraded: {ready.body.get('detail')}", "see `signet status`")
    try:
        actors = context.client.get("/api/status").records("actors")
    except SignetError as error:
        yield DoctorFinding("daemon", WARN, f"no status: {error.detail}", "signet logs --actor gateway")
        return
    for actor in actors:
        name, state, detail = actor.get("name"), actor.get("state"), actor.get("detail")
        if is_optional_start(actor):
            yield DoctorFinding("daemon", OK, f"{name} is starting (optional)")
        elif state != "up":
            told = f"{name} is {state}: {detail}" if detail else f"{name} is {state}"
            remedy = "wait some seconds, and check again" if state == "starting" else f"signet logs --actor {name}"
            yield DoctorFinding("daemon", WARN, told, remedy)


def port_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the port is free for the daemon, unless it runs."""
    if context.config is None or context.running:
        return
    host, port = context.config.gateway.host, context.config.gateway.port
    if context.environment.get("SIGNET_PORT") == "0":
        yield DoctorFinding("port", OK, "any free port")
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                taken = TakenPort(host, port)
                yield DoctorFinding("port", FAIL, f"{host}:{port} is in use by {taken.holder}", taken.remedy)
            else:
                yield DoctorFinding(
                    "port", FAIL, f"{host}:{port}: {error.strerror}", "set gateway.host to a loopback address"
                )
            return
    yield DoctorFinding("port", OK, f"{host}:{port} is free")


def socket_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check the length of the socket paths against the kernel's limit; longer ones use a short directory."""
    path = os.path.join(Workspace(Path(os.path.realpath(context.workspace))).run_dir, LONGEST_SOCKET)
    length = len(os.fsencode(path))
    if length <= SOCKET_PATH_BYTES:
        yield DoctorFinding("sockets", OK, f"paths of up to {length} bytes, the kernel allows {SOCKET_PATH_BYTES}")
    else:
        detail = f"a path would have {length} bytes (limit {SOCKET_PATH_BYTES}); a short private directory is used"
        yield DoctorFinding("sockets", OK, detail)


def descriptor_findings(_context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that a process may open enough files and connections."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < MIN_DESCRIPTORS:
        yield DoctorFinding("open files", WARN, f"at most {soft} per process", "ulimit -n 4096 before `signet start`")
    else:
        yield DoctorFinding(
            "open files", OK, "no limit" if soft == resource.RLIM_INFINITY else f"up to {soft} per process"
        )


def database_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check the integrity of the database with the writer's own check."""
    database = Workspace(context.workspace).database
    if not database.exists():
        yield DoctorFinding("database", OK, f"{database} does not exist yet; the first start creates it")
        return
    if context.running:
        if context.deep and context.client is not None:
            yield from _check_by_backup(context, context.client)
            return
        tool = running_tool(context.workspace)
        checked_at_start = "in use by the daemon, which checked it at start; --deep checks it completely"
        yield DoctorFinding("database", OK, f"in use by {tool}, not checked" if tool else checked_at_start)
        return
    more = [*(["--deep"] if context.deep else []), *(["--repair"] if context.repair else [])]
    try:
        checked = start_writer_tool(context.environment, "--check", *more, timeout_s=CHECK_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        yield DoctorFinding(
            "database", WARN, f"the check took longer than {CHECK_TIMEOUT_S} s", "run it again on a quiet machine"
        )
        return
    yield from parse_database_check(checked.returncode, checked.stdout, checked.stderr)


def _check_by_backup(context: DoctorContext, client: DaemonClient) -> Iterator[DoctorFinding]:
    """Check a new backup, which has the database's pages, and the files of vectors, which are in no backup."""
    try:
        end, _ = back_up(client, CHECK_TIMEOUT_S)
    except SignetError as error:
        yield DoctorFinding("database", WARN, f"not checked: {error.detail}", "signet logs --actor retention")
        return
    if end.get("success"):
        backed_up = f"{counted(end.get('memories'), 'memory', 'memories')}; backed up as {end.get('name')}"
        code, result = run_writer_tool(context.environment, "--check-vectors", timeout_s=CHECK_TIMEOUT_S)
        found = [("index", str(text)) for text in result.get("findings") or []]
        if code != ExitCode.OK and not found:
            found = [("index", f"the vector files could not be compared (exit code {code})")]
        yield DoctorFinding("database", OK, backed_up if found else f"intact; {backed_up}")
        yield from _damage(found)
        return
    found = [(str(finding.get("kind")), str(finding.get("text"))) for finding in end.get("findings") or []]
    if not found:
        yield DoctorFinding("database", WARN, f"not checked: {end.get('message')}", "signet logs --actor retention")
    yield from _damage(found)


def backup_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that there is a recent verified backup."""
    places = Workspace(context.workspace)
    if not places.database.exists():
        return
    now_ms = int(time.time() * 1000)
    try:
        names = newest_first(os.listdir(places.backup_dir), now_ms=now_ms)
    except OSError:
        names = []
    every_ms = context.config.backup.interval_ms if context.config else 0
    if not names:
        try:
            is_new = now_ms - places.secret_file.stat().st_mtime * 1000 < _DAY_MS  # it is made once
        except OSError:
            is_new = True
        state = OK if every_ms and is_new else WARN
        yield DoctorFinding(
            "backup", state, "no backup exists yet", "`signet backup` makes one" if state == WARN else ""
        )
        return
    age_ms = now_ms - names[0].made_ms
    detail = f"{len(names)}, the newest {age_text(age_ms / 1000)} ({names[0].name})"
    if ahead := [found.name for found in names if found.is_ahead_of(now_ms)]:
        detail = f"{len(ahead)} of {len(names)} have a name in the future ({ahead[0]})"
        remedy = "check the clock; if it is right, run `signet backup`; `signet restore NAME` restores one of these"
        yield DoctorFinding("backup", WARN, detail, remedy)
        return
    late = every_ms and age_ms > 3 * every_ms and context.running
    yield DoctorFinding(
        "backup", WARN if late else OK, detail, "`signet status` shows why no newer one was made" if late else ""
    )


_REMEDIES = {
    "structure": "`signet restore latest` (the current file is kept)",
    "index": "`signet doctor --repair` with the daemon stopped",
    "content": "compare it with a backup; `signet restore latest` restores all, `signet edit` corrects this memory",
    "rows": "`signet restore latest`, or report this error",
    "unchecked": "the database was not checked: free disk space or give access, then run `signet doctor` again",
}


def _damage(found: list[tuple[str, str]]) -> Iterator[DoctorFinding]:
    seen: set[str] = set()
    for kind, text in found[:SHOWN_FINDINGS]:
        yield DoctorFinding("database", FAIL, text, "" if kind in seen else _REMEDIES.get(kind, _REMEDIES["structure"]))
        seen.add(kind)
    if len(found) > SHOWN_FINDINGS:
        yield DoctorFinding("database", FAIL, _more(found))


def _more(found: Sequence[object]) -> str:
    return f"{counted(len(found) - SHOWN_FINDINGS, 'more finding')} of this kind"


def parse_database_check(exit_code: int, output: str, errors: str) -> Iterator[DoctorFinding]:
    """Yield the findings from the output of the writer's check: a JSON object, or the error of a check that failed."""
    try:
        result: dict[str, Any] = json.loads(output)
        found: list[str] = result["findings"]
        memories: int = result["memories"]
        kinds: list[str] = result.get("kinds") or ["structure"] * len(found)
        repaired: list[str] = result.get("repaired") or []
    except (ValueError, KeyError, TypeError):
        last = errors.strip().splitlines()[-1:] or ["no output"]
        yield DoctorFinding(
            "database", FAIL, f"the check failed (exit code {exit_code}): {last[0]}", "report this error"
        )
        return
    for text in repaired:
        yield DoctorFinding("database", OK, f"repaired: {text}")
    if exit_code == 0 and not found:
        yield DoctorFinding("database", OK, f"intact; {counted(memories, 'memory', 'memories')}")
        return
    remedy = {
        ExitCode.CONFIG: "set SIGNET_WORKSPACE to a separate directory; the file was not changed",
        ExitCode.IN_USE: "wait for the other check or daemon to end",
    }.get(exit_code)
    if remedy is None:
        yield from _damage(list(zip(kinds, found, strict=False)))
        return
    for text in found[:SHOWN_FINDINGS]:
        yield DoctorFinding("database", FAIL, text, remedy)
        remedy = ""
    if len(found) > SHOWN_FINDINGS:
        yield DoctorFinding("database", FAIL, _more(found))


def provider_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the configured embedding provider works."""
    if context.config is None:
        return
    configured = context.config.embedding.provider
    if configured == "none":
        yield DoctorFinding("embedding", WARN, "off: recall uses keywords only", "set embedding.provider to auto")
        return
    if context.client is None:
        yield DoctorFinding("embedding", OK, f"{configured} (checked only while the daemon runs)")
        return
    try:
        body: dict[str, Any] = context.client.get("/api/embeddings/status").body
    except SignetError as error:
        yield DoctorFinding("embedding", WARN, f"no answer: {error.detail}", "signet logs --actor gateway")
        return
    model = f"{body.get('provider')} {body.get('model')}, {body.get('dimensions')} dimensions"
    if body.get("available"):
        yield DoctorFinding("embedding", OK, model)
    else:
        reason = body.get("error") or "not available"
        yield DoctorFinding(
            "embedding",
            WARN,
            f"{model}: {reason}",
            "until it is available, memories are stored and recall uses keywords only",
        )


def model_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Report the model that extracts facts.

    Having no model is not a fault, because everything else works without one.
    """
    if context.config is None:
        return
    pipeline = context.config.memory.pipeline_v2
    if not pipeline.enabled:
        yield DoctorFinding("model", OK, "not needed: memory.pipelineV2.enabled is false")
        return
    if context.client is None:
        yield DoctorFinding("model", OK, f"{pipeline.extraction.provider} (checked only while the daemon runs)")
        return
    try:
        body = context.client.get(STATUS_PATH).body
    except SignetError as error:
        yield DoctorFinding("model", WARN, f"no answer: {error.detail}", "signet logs --actor extractor")
        return
    model: dict[str, Any] | None = (body.get("providers") or {}).get("extraction")
    if model is None:
        is_starting = any(str(note).endswith("starting") for note in body.get("notes") or [])
        waits = "not known yet: the extractor is starting (optional)"
        yield (
            DoctorFinding("model", OK, waits)
            if is_starting
            else DoctorFinding("model", WARN, "the extractor does not respond; jobs wait", "signet status")
        )
    elif model.get("name") == "none":
        yield DoctorFinding("model", OK, "none (optional, extracts facts)", model_remedy(model))
    elif accepts_calls(model):
        yield DoctorFinding("model", OK, str(model_text(model)))
    else:
        remedy = "`signet providers` shows details" + ("" if is_serving(model) else f"; {model_remedy(model)}")
        yield DoctorFinding("model", WARN, f"{model_text(model)}; jobs wait", remedy)


def harness_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the connected harnesses read the files that have the identity files; say where hooks work."""
    if context.config is not None and (chosen := context.config.projects.only):
        yield DoctorFinding("projects", OK, f"hooks work in {', '.join(chosen)} only (projects.only)")
    for file in IDENTITY_FILES:
        path = context.workspace / file.name
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            yield DoctorFinding("identity", WARN, f"{path} is longer than 1 MB: only its beginning is read")
    for harness in HARNESSES:
        for unread in unread_files(context.workspace, harness, context.environment):
            yield DoctorFinding("harness", WARN, unread)


CHECKS: tuple[Callable[[DoctorContext], Iterator[DoctorFinding]], ...] = (
    workspace_findings,
    daemon_findings,
    port_findings,
    socket_findings,
    disk_findings,
    descriptor_findings,
    installation_findings,
    database_findings,
    backup_findings,
    provider_findings,
    model_findings,
    harness_findings,
    git_findings,
)
