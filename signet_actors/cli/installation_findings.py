"""What `signet doctor` says about the installed files, the connected programs and the service.

Source: PEP 3147; docs/operations.md "Installation"; docs/guides/service.md.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import signet_actors
from signet_actors.cli.doctor_finding import FAIL, OK, WARN, DoctorContext, DoctorFinding
from signet_actors.cli.harnesses.hook_settings import PROGRAM
from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.cli.harnesses.server_entry import NAME
from signet_actors.cli.installed_program import gone_program, installed_program, is_program, other_program, same_program
from signet_actors.cli.service_managers import service_manager
from signet_actors.errors import SignetError
from signet_actors.runtime.connected_harnesses import read_connected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from signet_actors.cli.harnesses.registry import Harness


def installation_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check what an installation has left on the machine: its modules, its entries in settings, its service."""
    yield from _module_findings()
    yield from _path_findings(context)
    yield from _connection_findings(context)
    yield from _service_findings(context)


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
