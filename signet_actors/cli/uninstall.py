"""The command uninstall: take everything out of this machine that an installation has put there.

Source: docs/guides/service.md "Uninstall"; docs/cli.md "Harnesses".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import signet_actors
from signet_actors.cli.connect import disconnect_harness, is_connected
from signet_actors.cli.daemon_process import supervisor_pid
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.cli.import_progress import cache_directory
from signet_actors.cli.installed_program import other_program
from signet_actors.cli.invocation import command
from signet_actors.cli.lifecycle import stop_daemon, stop_timeout_s
from signet_actors.cli.presentation import (
    ask_confirmation,
    below_home,
    print_json,
    print_message,
    print_result,
    size_text,
)
from signet_actors.cli.service_managers import service_manager
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.errors import ConfigError, ErrorCode, RequestRefused, SignetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from signet_actors.cli.invocation import Invocation


_DATABASE: Final = r"memories\.db(\.incoming)?(-wal|-shm|-journal)?"
_IN_MEMORY: Final = (
    r"MEMORY\.backup-\d{8}T\d{9}Z(-edited)?\.md(\.new)?",
    r"synthesis\.json(\.new)?",
    _DATABASE,
    r"memories\.db-runs",
    rf"aside-\d+/{_DATABASE}",
    r"backups/memories-\d{8}T\d{9}Z-schema-\d{1,6}\.db(\.partial(-\w+)?)?",
    r"harnesses\.json(\.new)?",
    r"spool/\d+-[^/]*\.json(\.rejected|\.\d+\.draft)?",
    r"\d[^/]*\.md",
)
_IN_DAEMON: Final = (
    r"address ballast claims\.json index(/.*)? integrity-check lock logs(/.*)? owner-token pid poison-commands.*"
    r" previous(/.*)? refusal restore run(/.*)? secret suspect writer\.lock database"
)
_MADE: Final = tuple(
    re.compile(path, re.DOTALL)
    for path in (
        r"agent\.yaml",
        *(rf"agents/[^/]+/memory/{name}" for name in _IN_MEMORY[:2]),
        *(rf"memory/{name}" for name in _IN_MEMORY),
        *(rf"\.daemon/{name}" for name in _IN_DAEMON.split(" ")),
    )
)
"""The files that the daemon and the commands make. The mark that the workspace is ours comes last."""
_DIRECTORIES: Final = tuple(
    f"{within}/{name}"
    for within, names in (("memory", "backups spool"), (".daemon", "index logs previous run"))
    for name in names.split()
)
_PLACES: Final = ("agent.yaml", "agents/*/memory/*", "memory/*", "memory/*/*", ".daemon/**/*")
_SUMMARY: Final = b'---\nsession: "'
"""How the file of a session's summary begins."""
_MOST_NAMED: Final = 10
"""The files that lie among ours come first."""


@dataclass
class Plan:
    """What will be done, each with its words before it is done, and what stays."""

    steps: list[tuple[str, Callable[[], object]]] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)


@command()
@click.option("--data", is_flag=True, help="Also delete the memories and everything else that the daemon keeps.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def uninstall(invocation: Invocation, data: bool, yes: bool) -> None:
    """Take Signet out of this machine: service, daemon, connected programs.

    Shows what it will do, and asks. The memories stay, unless --data is given. The program itself is removed last, by
    the command that is printed.
    """
    plan = _plan(invocation, data=data)
    if not invocation.as_json:
        for text, _ in plan.steps:
            print_result(f"- {text}")
        for text in plan.stays:
            print_result(f"Stays: {text}")
    question = "Do this, and delete the memories for good?" if data else "Do this?"
    if plan.steps and not yes and not ask_confirmation(question):
        raise RequestRefused("nothing was removed", code=ErrorCode.CONFIRM_REQUIRED)
    failed = [f"{text}: {problem}" for text, step in plan.steps if (problem := _problem(step))]
    last = _removal()
    if invocation.as_json:
        steps = [text for text, _ in plan.steps]
        print_json({"steps": steps, "failed": failed, "stays": plan.stays, "last": last})
    else:
        for text in failed:
            print_message(f"✗ {text}")
        print_result("There is nothing to remove." if not plan.steps else "✓ Done" if not failed else "✗ Not complete")
        print_result(f"Last, remove the program: {last}")
    if failed:
        click.get_current_context().exit(REFUSED)


def _plan(invocation: Invocation, *, data: bool) -> Plan:
    """Return what there is to do. Raises ConfigError if the data is not ours to delete."""
    plan, environ, workspace = Plan(), invocation.environ, invocation.workspace
    of_service = None
    with contextlib.suppress(SignetError):  # no service manager, or a unit that the user has made
        manager = service_manager(environ)
        found, file = manager.installed(), below_home(str(manager.file), environ)
        if found is not None and (other := other_program([found.program], environ)):
            plan.stays.append(f"the service {file}, which runs another installation ({other})")
        elif found is not None:
            plan.steps.append((f"stop and remove the service ({file})", manager.remove))
            of_service = manager.state().pid
    if lock_held(workspace) and (pid := supervisor_pid(workspace)) != of_service:
        plan.steps.append((f"stop the daemon (pid {pid})", lambda: stop_daemon(workspace, stop_timeout_s(invocation))))
    for harness in HARNESSES:
        if not is_connected(harness, invocation):
            continue
        if other := other_program(harness.installed_programs(environ), environ):
            plan.stays.append(f"the connection of {harness.title}, by another installation ({other})")
            continue
        step = (f"disconnect {harness.title}", lambda harness=harness: disconnect_harness(invocation, harness))
        plan.steps.append(step)
    cache = cache_directory(environ)
    if cache.is_dir():
        text = f"delete {below_home(str(cache), environ)} (how far imports have come)"
        plan.steps.append((text, lambda: shutil.rmtree(cache)))
    from signet_actors.runtime.messaging.sockets import socket_directory  # noqa: PLC0415 - loads ZeroMQ

    sockets = socket_directory(invocation.workspace)  # below /tmp if the path of the workspace is long
    if sockets.is_dir() and not sockets.is_relative_to(os.path.realpath(invocation.workspace)):
        plan.steps.append(
            (f"delete {sockets} (sockets of the daemon)", lambda: shutil.rmtree(sockets, ignore_errors=True))
        )
    _plan_data(invocation, plan, data=data)
    return plan


def _plan_data(invocation: Invocation, plan: Plan, *, data: bool) -> None:
    places = Workspace(invocation.workspace)
    made = _made(places.root)
    if not made:
        return
    shown, size = (
        below_home(str(places.root), invocation.environ),
        size_text(sum(path.lstat().st_size for path in made)),
    )
    if not data:
        plan.stays.append(f"your memories in {shown} ({size}); `signet uninstall --data` deletes them")
        return
    if not places.database_marker_file.exists():
        told = f"{places.root} was not made by this program, which leaves {places.database_marker_file}"
        raise ConfigError(f"{told}; nothing was removed")
    names = ", ".join(dict.fromkeys(path.relative_to(places.root).parts[0] for path in made))
    plan.steps.append((f"DELETE YOUR MEMORIES: {names} in {shown} ({size})", lambda: _delete(places.root)))
    directories = _directories(places.root, made)
    known = directories.union(made)
    found = (path for directory in directories for path in directory.iterdir() if path not in known)
    others = sorted((str(path.relative_to(places.root)) for path in found), key=lambda name: ("/" not in name, name))
    if others:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        plan.stays.append(f"other files in {shown}: {', '.join(others[:_MOST_NAMED])}{more}")


def _made(root: Path) -> list[Path]:
    """Return the files that this program has made below the workspace, but for what a person writes, too."""
    found = [path for place in _PLACES for path in sorted(root.glob(place)) if _is_file(path)]
    order = {path: number for path in found if (number := _number(path.relative_to(root))) is not None}
    within = [path for path in sorted(order, key=order.__getitem__) if not _is_below_link(path, root)]
    return [path for path in within if not path.name[0].isdigit() or path.suffix != ".md" or _is_summary(path)]


def _number(path: Path) -> int | None:
    """Return which pattern of what is made the path has; None if it has none."""
    return next((number for number, made in enumerate(_MADE) if made.fullmatch(str(path))), None)


def _is_file(path: Path) -> bool:
    return path.is_symlink() or not path.is_dir()


def _is_below_link(path: Path, root: Path) -> bool:
    return any((root / inner).is_symlink() for inner in path.relative_to(root).parents[:-1])


def _directories(root: Path, made: Iterable[Path]) -> set[Path]:
    """Return the directories that have files of ours, or are made for them."""
    empty = {root / name for name in _DIRECTORIES if (root / name).is_dir() and not (root / name).is_symlink()}
    return empty | {root / inner for path in (*made, *empty) for inner in path.relative_to(root).parents}


def _is_summary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SUMMARY)) == _SUMMARY
    except OSError:
        return False


def _delete(root: Path) -> None:
    """Delete what was made, and the directories in which nothing else is. Raises OSError, ConfigError."""
    if lock_held(root):
        raise ConfigError("the daemon still runs")
    paths = _made(root)
    for path in paths:
        path.unlink()
    for directory in sorted(_directories(root, paths), reverse=True):
        with contextlib.suppress(OSError):  # the user's files are in it
            directory.rmdir()


def _problem(step: Callable[[], object]) -> str:
    """Take the step; return why it failed, empty if it did not."""
    try:
        step()
    except SignetError as error:
        return error.detail
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _removal() -> str:
    """Return how the program is removed, by the way in which it was installed."""
    prefix, package = Path(sys.prefix), Path(signet_actors.__file__).parent
    if "uv" in prefix.parts and "tools" in prefix.parts:
        return "uv tool uninstall signet-actors"
    if "pipx" in prefix.parts:
        return "pipx uninstall signet-actors"
    if not package.is_relative_to(prefix):
        return f"delete the checkout {package.parent}"
    return f"delete the environment {prefix}" if sys.prefix != sys.base_prefix else "pip uninstall signet-actors"
