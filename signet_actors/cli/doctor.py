"""The command doctor: check the installation, and print a remedy with each problem.

It works with and without a running daemon, and changes nothing without ``--repair``.

Source: docs/architecture.md "Dependency rules" 5; docs/reliability.md R18; docs/decisions.md 28 and 45.
"""

from __future__ import annotations

import errno
import os
import resource
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from signet_actors.cli import daemon_process
from signet_actors.cli import pipeline as pipeline_command
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.doctor_findings import (
    FAIL,
    OK,
    WARN,
    DoctorContext,
    DoctorFinding,
    backup_findings,
    database_findings,
    installation_findings,
    token_findings,
)
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.harnesses.identity_files import unread_files
from signet_actors.cli.harnesses.registry import HARNESSES, connected_titles
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import ask_confirmation, below_home, counted, mark, print_json, size_text
from signet_actors.cli.status import LOW_DISK_BYTES, is_optional_start
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.daemon_address import recorded_address
from signet_actors.config.load import load_config
from signet_actors.config.schema import Config
from signet_actors.config.shared_storage import ADVICE, shared_storage
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.domain.session_inject import IDENTITY_FILES
from signet_actors.errors import ConfigError, SignetError
from signet_actors.hook.spool import REJECTED_ENDING, Spool, was_put_off
from signet_actors.runtime.identity_files import MAX_FILE_BYTES
from signet_actors.runtime.socket_uids import listener_uids
from signet_actors.runtime.supervision.listener import MAX_PORT, TakenPort

SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
LONGEST_SOCKET = "gateway-search.sock"
MIN_DESCRIPTORS = 512
FULL_DISK_BYTES = 64_000_000
EDIT_CONFIG = "correct it with `signet config edit`"
USE_AUTO = "`signet config set embedding.provider auto`"


@command()
@click.option("--deep", is_flag=True, help="Also check every vector and every row against the others.")
@click.option("--repair", is_flag=True, help="Rebuild derived data: indexes, tag rows, vector tables.")
@click.option("--yes", is_flag=True, help="Do not ask before a repair.")
def doctor(invocation: Invocation, deep: bool, repair: bool, yes: bool) -> None:
    """Check the installation and print remedies.

    Exit code 1 if anything fails. Works with and without a running daemon. Changes nothing, except with --repair, which
    needs the daemon stopped, and with --deep while the daemon runs, which makes a backup.
    """
    if repair:
        daemon_process.refuse_locked(
            invocation.workspace, "a daemon runs on the workspace", "stop it with `signet stop`, then repair"
        )
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
        text, remedy = below_home(f"{finding.subject}: {detail}"), below_home(remedy)
        print_wrapped(text, indent=indent, lead=lead, chop=False)
        if remedy:
            print_wrapped(remedy, indent=indent + 2, lead=f"{' ' * indent}→ ", chop=False)

    config: Config | None = None
    try:
        loaded = load_config(workspace, invocation.settings)
    except ConfigError as error:
        for problem in error.detail.splitlines():
            add_finding(DoctorFinding("configuration", FAIL, problem, EDIT_CONFIG))
    else:
        config = loaded.config
        add_finding(DoctorFinding("configuration", OK, str(loaded.source or "no file, the defaults")))
        if loaded.source is not None and not loaded.source.stat().st_size:
            add_finding(
                DoctorFinding("configuration", WARN, "the file is empty: the defaults are in effect", EDIT_CONFIG)
            )
        for warning in loaded.warnings:
            add_finding(DoctorFinding("configuration", WARN, warning, EDIT_CONFIG))
    running = False
    try:
        running = lock_held(workspace)
    except ConfigError as error:
        add_finding(DoctorFinding("lock", FAIL, error.detail, "move it away; `signet start` makes a new one"))
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
        print_json({"ok": failed == 0, "findings": [asdict(found) for found in findings]})
    if failed:
        click.get_current_context().exit(REFUSED)


def workspace_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the workspace exists and is ours, private and writable."""
    workspace, places = context.workspace, Workspace(context.workspace)
    quoted = shlex.quote(str(workspace))
    names = " and ".join(connected_titles(context.environment)) if places.is_unused else ""
    if names:
        told = f"{workspace} {'has only reports of hooks' if workspace.exists() else 'does not exist yet'}"
        told += f", although {names} {'are' if ' and ' in names else 'is'} connected: was it moved?"
        yield DoctorFinding("workspace", WARN, told, "where it is now: SIGNET_WORKSPACE=DIRECTORY signet start")
    try:
        found = workspace.stat()
    except FileNotFoundError:
        if not names:
            yield DoctorFinding("workspace", OK, f"{workspace} does not exist yet; the first start creates it")
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
            "workspace", FAIL, f"{workspace} belongs to user {found.st_uid}", f"`sudo chown -R {os.getuid()} {quoted}`"
        )
    if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        yield DoctorFinding("workspace", FAIL, f"{workspace} is not writable", f"`chmod u+rwx {quoted}`")
        return
    open_to_others = [
        path
        for path in (places.daemon_dir, places.secret_file, places.log_dir, places.memory_dir, places.database)
        if path.exists() and path.stat().st_mode & 0o077
    ]
    if found.st_mode & 0o077:
        open_to_others.insert(0, workspace)
    if open_to_others:
        names = " ".join(shlex.quote(str(path)) for path in open_to_others)
        yield DoctorFinding("workspace", WARN, f"other users may read {names}", f"`chmod go-rwx {names}`")
    else:
        yield DoctorFinding("workspace", OK, f"{workspace}, private")


def daemon_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the daemon is ready; if not, report what is known about the reason."""
    if url := context.environment.get("SIGNET_DAEMON_URL"):
        told = f"SIGNET_DAEMON_URL is set: hooks and commands use {url}, not a daemon of this workspace"
        yield DoctorFinding(
            "daemon", WARN if context.running else OK, told, "`unset SIGNET_DAEMON_URL`" if context.running else ""
        )
    if not context.running:
        if names := " and ".join(connected_titles(context.environment)):
            told = f"not running: {names} {'have' if ' and ' in names else 'has'} no memory until it does"
            yield DoctorFinding("daemon", WARN, told, "`signet start` starts it")
        else:
            yield DoctorFinding("daemon", OK, "not running (`signet start` starts it)")
        return
    if (tool := daemon_process.running_tool(context.workspace)) is not None:
        yield DoctorFinding("daemon", WARN, f"not running, but {tool} is", "wait until it has ended")
        return
    pid = daemon_process.supervisor_pid(context.workspace)
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
        if daemon_process.changed_since_start(context.workspace):
            yield DoctorFinding(
                "daemon", WARN, daemon_process.CHANGED_SINCE_START, "`signet restart` loads the present one"
            )
        if ready.body.get("status") == "degraded":
            yield DoctorFinding("daemon", WARN, f"degraded: {ready.body.get('detail')}", "see `signet status`")
    try:
        actors = context.client.get("/api/status").records("actors")
    except SignetError as error:
        yield DoctorFinding("daemon", WARN, f"no status: {error.detail}", "`signet logs --actor gateway`")
        return
    for actor in actors:
        name, state, detail = actor.get("name"), actor.get("state"), actor.get("detail")
        if is_optional_start(actor):
            yield DoctorFinding("daemon", OK, f"{name} is starting (optional)")
        elif state != "up":
            told = f"{name} is {state}: {detail}" if detail else f"{name} is {state}"
            remedy = "wait some seconds, and check again" if state == "starting" else f"`signet logs --actor {name}`"
            yield DoctorFinding("daemon", WARN, told, remedy)


def port_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the port is free for the daemon, unless it runs, and that ``localhost`` leads nowhere else."""
    if context.config is None:
        return
    host, port = context.config.gateway.host, context.config.gateway.port
    if listener_uids(port, "::1") - {os.geteuid()}:
        other = port + 1 if port < MAX_PORT else port - 1
        yield DoctorFinding(
            "port",
            WARN,
            f"a program of another user listens on [::1]:{port}, and may get what is sent to localhost:{port}",
            f"name 127.0.0.1:{port} in its place, or choose another port: `signet config set gateway.port {other}`",
        )
    if context.running:
        return
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
                taken = TakenPort(host, port, context.workspace)
                yield DoctorFinding("port", FAIL, f"{host}:{port} is in use by {taken.holder}", taken.remedy)
            else:
                yield DoctorFinding(
                    "port", FAIL, f"{host}:{port}: {error.strerror}", "`signet config set gateway.host 127.0.0.1`"
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
        yield DoctorFinding("open files", WARN, f"at most {soft} per process", "`ulimit -n 4096`, then `signet start`")
    else:
        yield DoctorFinding(
            "open files", OK, "no limit" if soft == resource.RLIM_INFINITY else f"up to {soft} per process"
        )


def provider_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the configured embedding provider works."""
    if context.config is None:
        return
    configured = context.config.embedding.provider
    if configured == "none":
        yield DoctorFinding("embedding", WARN, "off: recall uses keywords only", USE_AUTO)
        return
    if context.client is None:
        yield DoctorFinding("embedding", OK, f"{configured} (checked only while the daemon runs)")
        return
    try:
        body: dict[str, Any] = context.client.get("/api/embeddings/status").body
    except SignetError as error:
        yield DoctorFinding("embedding", WARN, f"no answer: {error.detail}", "`signet logs --actor gateway`")
        return
    model = f"{body.get('provider')} {body.get('model')}, {body.get('dimensions')} dimensions"
    if body.get("second"):
        model += f"; better vectors of {body['second']} follow"
    if body.get("available"):
        yield DoctorFinding("embedding", OK, model)
    else:
        problem = str(body.get("error") or "not available")
        told = f"{model}: {problem}; until that is mended, what needs a vector is found by its words only"
        is_own = configured in ("auto", "embedded")
        remedy = "`signet logs --actor gateway`" if is_own else f"start its server, or use the built-in one: {USE_AUTO}"
        if "embedding.dimensions" in problem:
            true_width = problem.rpartition("set it to ")[2].partition(",")[0]
            set_to = f" {true_width}" if true_width.isdigit() else ""
            remedy = f"`signet config set embedding.dimensions{set_to or ' NUMBER'}`, or another embedding.model"
        elif " answered 429" in problem:
            remedy = f"wait, or `signet restart` asks its server again at once; or use the built-in one: {USE_AUTO}"
        elif " answered 4" in problem:
            remedy = (
                f"its server refuses: `signet config show` has what it is asked; or use the built-in one: {USE_AUTO}"
            )
        elif "embedding.apiKeyEnv" in problem:
            remedy = f"set the variable where the daemon is started, then `signet restart`; or {USE_AUTO}"
        elif configured == "multilingual":
            remedy = f"`signet setup` downloads it, then `signet restart`; or {USE_AUTO}"
        yield DoctorFinding("embedding", WARN, told, remedy)
    with suppress(SignetError):  # a hint
        if configured in pipeline_command.MODELS_OF_ENGLISH and pipeline_command.are_mostly_foreign(context.client):
            remedy = "`signet setup` offers a model for that"
            yield DoctorFinding("languages", OK, "most memories are not in English", remedy)


def model_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Report the model that extracts facts. To have none is no fault: everything else works without it."""
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
        body = context.client.get(pipeline_command.STATUS_PATH).body
    except SignetError as error:
        yield DoctorFinding("model", WARN, f"no answer: {error.detail}", "`signet logs --actor extractor`")
        return
    model: dict[str, Any] | None = (body.get("providers") or {}).get("extraction")
    if model is None:
        is_starting = any(str(note).endswith("starting") for note in body.get("notes") or [])
        waits = "not known yet: the extractor is starting (optional)"
        yield (
            DoctorFinding("model", OK, waits)
            if is_starting
            else DoctorFinding("model", WARN, "the extractor does not respond; jobs wait", "`signet status`")
        )
    elif model.get("name") == "none":
        yield DoctorFinding("model", OK, "none (optional, extracts facts)", pipeline_command.model_remedy(model))
    elif pipeline_command.accepts_calls(model):
        yield DoctorFinding("model", OK, str(pipeline_command.model_text(model)))
    else:
        remedy = "`signet providers` shows details" + (
            "" if pipeline_command.is_serving(model) else f"; {pipeline_command.model_remedy(model)}"
        )
        yield DoctorFinding("model", WARN, f"{pipeline_command.model_text(model)}; jobs wait", remedy)


def harness_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the connected harnesses read the files that have the identity files; say where hooks work."""
    if context.config is not None and (chosen := context.config.projects.only):
        yield DoctorFinding("projects", OK, f"hooks work in {', '.join(chosen)} only (projects.only)")
    for file in IDENTITY_FILES:
        path = context.workspace / file.name
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            yield DoctorFinding("identity", WARN, f"{path} is over 1 MB: only its beginning is read", "shorten it")
    for harness in HARNESSES:
        for unread in unread_files(context.workspace, harness, context.environment):
            yield DoctorFinding("harness", WARN, unread)


def _not_of_owner(spool: str, workspace: Path) -> str | None:
    """Return the directory of the reports, or the one above it, if the workspace's owner does not own all of it."""
    above = os.path.dirname(spool)
    if not os.path.isdir(above):
        return None
    owner = os.stat(workspace).st_uid
    if os.lstat(above).st_uid != owner:
        return above
    if not os.path.isdir(spool):
        return None
    if os.lstat(spool).st_uid != owner:
        return spool
    with os.scandir(spool) as files:
        return spool if any(file.stat(follow_symlinks=False).st_uid != owner for file in files) else None


def report_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Report what hooks could not deliver, and that was set aside."""
    spool = Spool(str(context.workspace))
    logs = "`signet logs --level warning` says why"
    try:
        if foreign := _not_of_owner(spool.directory, context.workspace):
            owner = os.stat(context.workspace)
            remedy = f"`sudo chown -R {owner.st_uid}:{owner.st_gid} {shlex.quote(foreign)}`"
            told = f"{foreign} has files of another user, as of hooks that ran with sudo: they are not sent"
            yield DoctorFinding("reports", FAIL, told, remedy)
            return
        waiting, rejected = spool.waiting(), spool.rejected()
    except OSError as error:
        told = f"{spool.directory}: {error.strerror}; what hooks report while the daemon is away is lost"
        quoted = shlex.quote(spool.directory)
        yield DoctorFinding("reports", FAIL, told, f"`mv {quoted} {quoted}.old`; the next report makes a new one")
        return
    if waiting:
        what = counted(len(waiting), "report of a hook waits", "reports of hooks wait")
        failed = context.running and any(map(was_put_off, waiting))
        told = f"{what} in {spool.directory}{', because sending failed' if failed else ' for the daemon'}"
        yield DoctorFinding("reports", WARN if failed else OK, told, logs if failed else "")
    if rejected:
        what = counted(len(rejected), "report of a hook was", "reports of hooks were")
        told = f"{what} set aside: {spool.directory}/*{REJECTED_ENDING} (deleted 7 days later)"
        yield DoctorFinding("reports", WARN, told, f"{logs}; remove the ending to have one sent again, or delete it")


def disk_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the disk has room for the database and its clean-up."""
    directory = context.workspace
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    detail = f"{size_text(free)} free"
    if free < FULL_DISK_BYTES:
        yield DoctorFinding("disk", FAIL, detail, "free some space: a full disk refuses writes, recall still works")
    elif free < LOW_DISK_BYTES:
        yield DoctorFinding("disk", WARN, detail, "free some space soon")
    else:
        yield DoctorFinding("disk", OK, detail)
    shared = shared_storage(context.workspace)
    if shared is not None:
        yield DoctorFinding("disk", WARN, f"the workspace {shared}", ADVICE)


def git_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the daemon can commit the workspace, if it is configured to."""
    if context.config is None or not (context.config.git.enabled and context.config.git.auto_commit):
        return
    if shutil.which("git", path=context.environment.get("PATH")) is None:
        remedy = "install git, or switch it off: `signet config set git.autoCommit false`"
        yield DoctorFinding("git", WARN, "git is not installed; the workspace is not committed", remedy)
    elif context.client is None:
        yield DoctorFinding("git", OK, "the workspace is committed while the daemon runs")
    else:
        try:
            body = context.client.get("/api/git/status").body
        except SignetError as error:
            yield DoctorFinding("git", WARN, f"no answer: {error.detail}", "`signet logs --actor retention`")
            return
        problem, last = body.get("problem"), body.get("lastCommit") or {}
        if problem:
            remedy = f"`git -C {shlex.quote(str(context.workspace))} status` shows more"
            yield DoctorFinding("git", WARN, f"the workspace is not committed: {problem}", remedy)
        else:
            yield DoctorFinding(
                "git", OK, f"last commit {last['at']}" if last.get("at") else "nothing is committed yet"
            )


CHECKS: tuple[Callable[[DoctorContext], Iterator[DoctorFinding]], ...] = (
    workspace_findings,
    daemon_findings,
    port_findings,
    token_findings,
    socket_findings,
    disk_findings,
    descriptor_findings,
    installation_findings,
    database_findings,
    backup_findings,
    provider_findings,
    model_findings,
    harness_findings,
    report_findings,
    git_findings,
)
