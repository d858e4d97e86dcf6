"""What ``signet doctor`` finds about the database, its backups, the installed files, connected programs and service.

The writer's own check examines the database in a separate process, because the command line never opens it. While a
daemon runs, ``--deep`` asks it for a backup, because checking the backup checks the database.

Source: docs/reliability.md R18; docs/decisions.md 28; PEP 3147; docs/operations.md "Installation";
docs/guides/service.md.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import signet_actors
from signet_actors.cli.backup_commands import back_up, run_writer_tool, start_writer_tool
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.daemon_process import running_tool
from signet_actors.cli.harnesses.hook_settings import PROGRAM
from signet_actors.cli.harnesses.registry import HARNESSES, Harness
from signet_actors.cli.harnesses.server_entry import NAME
from signet_actors.cli.installed_program import gone_program, installed_program, is_program, other_program, same_program
from signet_actors.cli.presentation import age_text, counted
from signet_actors.cli.service_managers import service_manager
from signet_actors.config.daemon_address import address_from_url, read_logins
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import newest_first
from signet_actors.errors import ErrorCode, ExitCode, SignetError
from signet_actors.runtime.connected_harnesses import read_connected

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """The result of one check. ``remedy`` is empty if there is nothing to do."""

    subject: str
    state: str
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class DoctorContext:
    """What the checks examine. ``config`` is None if it is not valid, ``client`` is None if no daemon listens."""

    workspace: Path
    environment: dict[str, str]
    config: Config | None
    running: bool
    client: DaemonClient | None
    deep: bool = False
    repair: bool = False


CHECK_TIMEOUT_S = 600
SHOWN_FINDINGS = 10
_DAY_MS = 86_400_000


def database_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check the integrity of the database with the writer's own check."""
    places = Workspace(context.workspace)
    database = places.database
    beside = (each for form in (f"{database.name}-*", "aside-*") for each in database.parent.glob(form))
    if not any(map(os.path.lexists, (database, places.database_marker_file, places.backup_dir, *beside))):
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
            "database",
            WARN,
            f"the check took longer than {CHECK_TIMEOUT_S} s",
            "`signet doctor` again, on a quiet machine",
        )
        return
    yield from parse_database_check(checked.returncode, checked.stdout, checked.stderr)


def _check_by_backup(context: DoctorContext, client: DaemonClient) -> Iterator[DoctorFinding]:
    """Check a new backup, which has the database's pages, and the files of vectors, which are in no backup."""
    try:
        end, _ = back_up(client, CHECK_TIMEOUT_S)
    except SignetError as error:
        yield DoctorFinding("database", WARN, f"not checked: {error.detail}", "`signet logs --actor retention`")
        return
    if end.get("success"):
        backed_up = f"{counted(end.get('memories'), 'memory')}; backed up as {end.get('name')}"
        code, result = run_writer_tool(context.environment, "--check-vectors", timeout_s=CHECK_TIMEOUT_S)
        found = [("index", str(text)) for text in result.get("findings") or []]
        if code != ExitCode.OK and not found:
            found = [("index", f"the vector files could not be compared (exit code {code})")]
        yield DoctorFinding("database", OK, backed_up if found else f"intact; {backed_up}")
        yield from _damage(found)
        return
    found = [(str(finding.get("kind")), str(finding.get("text"))) for finding in end.get("findings") or []]
    if not found:
        yield DoctorFinding("database", WARN, f"not checked: {end.get('message')}", "`signet logs --actor retention`")
    yield from _damage(found)


def backup_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that there is a recent verified backup."""
    places = Workspace(context.workspace)
    if not places.database.exists():
        return
    now_ms = int(time.time() * 1000)
    try:
        names = newest_first(os.listdir(places.backup_dir), now_ms=now_ms)
    except FileNotFoundError:
        names = []
    except OSError as error:
        detail = f"{places.backup_dir} cannot be used: {error.strerror}"
        yield DoctorFinding("backup", FAIL, detail, "move or delete it, then `signet backup`")
        return
    every_ms = context.config.backup.interval_ms if context.config else 0
    problem = None
    if context.client is not None:
        with suppress(SignetError):
            problem = (context.client.get("/api/status").body.get("retention") or {}).get("backupProblem")
    if problem:
        remedy = "when its cause is mended, `signet backup` makes one at once"
        yield DoctorFinding("backup", WARN, f"the last one could not be made: {problem}", remedy)
    if not names and not problem:
        try:
            is_new = now_ms - places.secret_file.stat().st_mtime * 1000 < _DAY_MS  # it is made once
        except OSError:
            is_new = True
        state = OK if every_ms and is_new else WARN
        yield DoctorFinding(
            "backup", state, "no backup exists yet", "`signet backup` makes one" if state == WARN else ""
        )
    if not names:
        return
    age_ms = now_ms - names[0].made_ms
    detail = f"{len(names)}, the newest {age_text(age_ms / 1000)} ({names[0].name})"
    if ahead := [found.name for found in names if found.is_ahead_of(now_ms)]:
        detail = f"{len(ahead)} of {len(names)} have a name in the future ({ahead[0]})"
        remedy = "check the clock; if it is right, run `signet backup`; `signet restore NAME` restores one of these"
        yield DoctorFinding("backup", WARN, detail, remedy)
        return
    late = every_ms and age_ms > 3 * every_ms and context.running
    yield DoctorFinding("backup", WARN if late else OK, detail, "`signet backup` makes one now" if late else "")


_REMEDIES = {
    "structure": "`signet restore latest` (the current file is kept)",
    "index": "`signet doctor --repair` with the daemon stopped",
    "content": "compare it with a backup; `signet restore latest` restores all, `signet edit ID` corrects this memory",
    "rows": "`signet restore latest`, or report this error",
    "unchecked": "the database was not checked: free disk space or give access, then run `signet doctor` again",
}


def _damage(found: list[tuple[str, str]], remedies: Mapping[str, str] = _REMEDIES) -> Iterator[DoctorFinding]:
    """Yield a finding for each kind and text, the first ones of each kind with its remedy."""
    seen: set[str] = set()
    for kind, text in found[:SHOWN_FINDINGS]:
        remedy = "" if kind in seen else remedies.get(kind, remedies["structure"])
        yield DoctorFinding("database", FAIL, text, remedy)
        seen.add(kind)
    if len(found) > SHOWN_FINDINGS:
        more = counted(len(found) - SHOWN_FINDINGS, "more finding")
        yield DoctorFinding("database", FAIL, f"{more} of this kind")


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
    if exit_code == 0:
        intact = f"intact; {counted(memories, 'memory')}"
        yield DoctorFinding("database", OK, f"{found[0]}; the first start creates it" if found else intact)
        return
    remedy = {
        ExitCode.CONFIG: "set SIGNET_WORKSPACE to a separate directory; the file was not changed",
        ExitCode.IN_USE: "wait for the other check or daemon to end",
    }.get(exit_code)
    if remedy is None:
        yield from _damage(list(zip(kinds, found, strict=False)))
    else:
        yield from _damage([("structure", text) for text in found], {"structure": remedy})


def installation_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check what an installation has left on the machine: its modules, its entries in settings, its service."""
    yield from _module_findings()
    yield from _path_findings(context)
    yield from _connection_findings(context)
    yield from _service_findings(context)


def token_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that others can have a token where one is needed, and that the stored ones are accepted."""
    config = context.config
    if context.client is not None and config is not None and config.auth.mode != "local":
        with suppress(SignetError):
            if config.gateway.trusted_proxies and not context.client.get("/api/auth/tokens", limit=1).body.get("total"):
                told = f"auth.mode is {config.auth.mode} and a proxy is named, but no token was ever issued"
                yield DoctorFinding("access", WARN, told, "`signet token create --role agent`")
    for url, token in read_logins(context.environment).items():
        bearer = {"Authorization": f"Bearer {token}"}
        try:
            with closing(DaemonClient(address_from_url(url), timeout_s=5, retry_window_s=0, headers=bearer)) as client:
                client.get("/api/auth/whoami")
        except SignetError as error:
            if error.code is ErrorCode.UNAUTHORIZED:
                told = f"{url} does not accept the stored token: {error.detail}"
                yield DoctorFinding("login", WARN, told, f"`signet login {url}`, or `signet logout {url}`")
            else:
                yield DoctorFinding("login", OK, f"{url} cannot be asked now ({error.detail})")
        else:
            yield DoctorFinding("login", OK, f"{url} accepts the stored token")


def _module_findings() -> Iterator[DoctorFinding]:
    """Check that the modules are compiled; if the interpreter keeps none, every start compiles all of them anew."""
    own = [module.__spec__ for name, module in sys.modules.items() if name.partition(".")[0] == signet_actors.__name__]
    if not any(spec.cached and Path(spec.cached).is_file() for spec in own if spec is not None):
        package = shlex.quote(str(Path(signet_actors.__file__).parent))
        unset = "env -u PYTHONDONTWRITEBYTECODE -u PYTHONPYCACHEPREFIX"
        yield DoctorFinding(
            "installation",
            WARN,
            "its modules are not compiled, so each command and each process takes twice as long to start",
            f"as the owner of the files: `{unset} {shlex.quote(sys.executable)} -m compileall -q {package}`",
        )


def _path_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that there is no second `signet` on PATH: which one a terminal runs depends on the terminal."""
    ours = installed_program("signet", context.environment)
    directories = filter(os.path.isabs, context.environment.get("PATH", "").split(os.pathsep))
    for path in (os.path.join(directory, "signet") for directory in directories):
        if is_program(path) and not same_program(path, ours):
            told = f"another program signet is on PATH: {path}; this one is {ours}"
            yield DoctorFinding("installation", WARN, told, "remove one of the two, or use their whole paths")
            return


def _connection_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check the settings of the harnesses that are connected, those of the environment and those that were noted."""
    rows = read_connected(context.workspace)
    for harness in HARNESSES:
        noted = [row.settings for row in rows if row.harness == harness.name]
        for settings in dict.fromkeys([str(harness.settings(context.environment).path), *noted]):
            yield from _connection_of(context, harness, settings, is_noted=settings in noted)


def _connection_of(
    context: DoctorContext, harness: Harness, settings: str, *, is_noted: bool
) -> Iterator[DoctorFinding]:
    """Check that the entries are there, that their programs exist, and that these are of this installation."""
    environ = harness.environ_of(settings, context.environment)
    moved = (
        f"{harness.moved_by}={shlex.quote(environ[harness.moved_by])} " if environ is not context.environment else ""
    )
    connect = f"{moved}signet connect {harness.name}"
    try:
        programs, missing = harness.installed_programs(environ), harness.missing_events(environ)
        here = os.path.realpath(context.workspace)
        elsewhere = [path for path in harness.installed_workspaces(environ) if os.path.realpath(path) != here]
        notes = harness.notes(environ) if programs else []
    except SignetError as error:
        if is_noted:
            problem = error.detail.removesuffix(". Nothing was changed")
            yield DoctorFinding(harness.name, FAIL, problem, f"correct it, then `{connect}`")
        return
    if not programs:
        if is_noted:
            told = f"no longer connected: {settings} has no entries of Signet"
            yield DoctorFinding(harness.name, WARN, told, f"`{connect}`, or `{moved}signet disconnect {harness.name}`")
        return
    for note in notes:
        yield DoctorFinding(harness.name, WARN, note.removesuffix("."), f"correct it, then `{connect} --check`")
    if gone := gone_program(programs):
        names = {PROGRAM: "hook", NAME: "program of the memory tools,"}
        told = f"its {names.get(os.path.basename(gone), 'program')} {gone} does not exist"
        yield DoctorFinding(harness.name, FAIL, told, f"`{connect}`")
    elif missing:
        told = f"{settings} has no hook of Signet for {' and '.join(missing)}"
        yield DoctorFinding(harness.name, WARN, told, f"`{connect}`")
    elif elsewhere:
        told = f"it is connected to another workspace, {elsewhere[0]}"
        yield DoctorFinding(harness.name, WARN, told, f"to connect it to this one: `{connect}`")
    else:
        yield _of_this_installation(context, harness.name, "connected", programs, connect)


def _service_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the program of the service exists, and is that of this installation."""
    try:
        manager = service_manager(context.environment)
        found = manager.installed()
    except SignetError:  # there is none, or one that the user has made
        return
    if found is None:
        return
    if gone_program([found.program]):
        yield DoctorFinding("service", FAIL, f"its program {found.program} does not exist", "`signet service install`")
    else:
        yield _of_this_installation(
            context, "service", f"installed: {manager.file}", [found.program], "signet service install"
        )


def _of_this_installation(
    context: DoctorContext, subject: str, text: str, programs: Sequence[str], command: str
) -> DoctorFinding:
    other = other_program(programs, context.environment)
    if not other:
        return DoctorFinding(subject, OK, text)
    return DoctorFinding(subject, WARN, f"runs another installation ({other})", f"to use this one: `{command}`")
