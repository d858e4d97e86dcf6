"""The commands up, start, stop and restart, which start and stop the daemon.

The supervisor runs in a fresh interpreter with ``-P``, so that a file in the working directory with the name of one of
our modules is never run instead of it.

Source: docs/reliability.md R10 and R19; docs/operations.md "Exit codes".
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from signet_actors import errors
from signet_actors.cli import daemon_process
from signet_actors.cli import presentation as output
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.service_managers import ServiceManager, service_here
from signet_actors.cli.status import ACCESS
from signet_actors.config.daemon_address import recorded_address
from signet_actors.config.load import load_config
from signet_actors.config.regular_file import open_regular
from signet_actors.config.workspace import WORKSPACE_VARIABLE, Workspace
from signet_actors.config.workspace_holder import lock_held

SUPERVISOR = (sys.executable, "-P", "-m", "signet_actors.supervisor")
TIED = (
    "import os, signal; from signet_actors.runtime.processes.parent_death import die_with_supervisor as tie;"
    "words = {1}; tie({0}, signal.SIGTERM) and os.execv(words[0], words)"
)
POLL_S = 0.05
SHOWN_LOG_LINES = 12
STOP_CONTAINER = "stop that: `podman stop NAME`, `docker stop NAME`, or the service that runs it"
STOP_MARGIN_S = 10.0
UNNAMED_HOLDER_S = 3.0
"""A daemon that has just taken the workspace writes its pid within this time."""
KILL_AFTER_S = 3.0
"""With ``--now`` the supervisor has this long to end its processes before it is killed."""


@command()
def up(invocation: Invocation) -> None:
    """Run the daemon in the foreground.

    Its log goes to the terminal too; Ctrl-C, or closing the terminal, stops it cleanly. For a service manager (systemd,
    launchd, a container) this is the command to run.
    """
    workspace = invocation.workspace
    advice = "stop it with `signet stop`, or choose another workspace with SIGNET_WORKSPACE"
    daemon_process.refuse_locked(workspace, f"a daemon runs on {workspace} already", advice)
    load_config(workspace, invocation.settings)
    sys.stdout.flush()
    command = [*SUPERVISOR, "--console"]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # else an exception that is raised now is lost
    os.execve(command[0], command, invocation.environment)  # noqa: S606 - no shell is wanted


@command()
@click.option("--timeout", type=click.FloatRange(1), default=120, show_default=True, help="Seconds to wait for ready.")
def start(invocation: Invocation, timeout: float) -> None:
    """Start the daemon in the background and wait until it is ready.

    Does nothing if a daemon runs already. If the daemon fails to start, the reason is printed, and the exit code is the
    daemon's own.
    """
    _print_started(invocation, invocation.workspace, start_daemon(invocation, timeout))


@command()
@click.option("--timeout", type=click.FloatRange(1), help="Seconds to wait (default: the drain time and a margin).")
@click.option("--now", is_flag=True, help="Stop at once, without finishing running work.")
def stop(invocation: Invocation, timeout: float | None, now: bool) -> None:
    """Stop the daemon after it has finished running work."""
    workspace = invocation.workspace
    pid = stop_daemon(workspace, timeout or stop_timeout_s(invocation), now=now)
    told = f"No daemon runs on {workspace}." if pid is None else f"Stopped (pid {pid})."
    invocation.print_done({"stopped": pid is not None, "pid": pid}, told)


@command()
@click.option("--timeout", type=click.FloatRange(1), default=120, show_default=True, help="Seconds to wait for ready.")
def restart(invocation: Invocation, timeout: float) -> None:
    """Stop the daemon if it runs, then start it."""
    load_config(invocation.workspace, invocation.settings)  # an error in the file must not stop the daemon
    Workspace(invocation.workspace).refuse_other_owner()  # nor may a user that could not start it again
    if daemon_process.supervisor_pid(invocation.workspace) == 1:
        raise errors.Unavailable(
            "nothing was stopped: the daemon is process 1 of this container; restart the container"
        )
    pid = stop_daemon(invocation.workspace, stop_timeout_s(invocation))
    if pid is not None and not invocation.as_json:
        output.print_result(f"Stopped (pid {pid}).")
    _print_started(invocation, invocation.workspace, start_daemon(invocation, timeout))


def start_daemon(invocation: Invocation, timeout: float) -> str:
    """Start the daemon unless it runs, and wait until it is ready; return how that went.

    A service that is installed for the workspace starts it, so that its manager knows the daemon. If it does not start,
    prints why, and ends the command with the daemon's exit code.
    """
    workspace = invocation.workspace
    began = time.monotonic()
    if lock_held(workspace):
        wait_until_ready(workspace, None, began + timeout)
        return "already runs"
    for warning in load_config(workspace, invocation.settings).warnings:
        output.print_message(f"warning: {warning}")
    from signet_actors.cli.harnesses.registry import connected_titles  # noqa: PLC0415 - slow; only for a start

    named = invocation.environment.get(WORKSPACE_VARIABLE)  # who names a directory means it
    is_new = not named and Workspace(workspace).is_unused
    if is_new and (names := " and ".join(connected_titles(invocation.environ))):
        state = "has only reports of hooks" if workspace.exists() else "does not exist"
        output.print_message(
            f"{workspace} {state}, although {names} {'are' if ' and ' in names else 'is'} connected: a new,"
            " empty workspace is made. If yours was moved, stop this daemon, then"
            " `SIGNET_WORKSPACE=DIRECTORY signet start`."
        )
    if (manager := service_here(invocation)) is not None:
        with spinner("Starting the service"):
            manager.restart()
            wait_for_service(workspace, manager, began + timeout)
        return f"ready in {time.monotonic() - began:.1f} s, as a service"
    child, start_log = launch(workspace, invocation.environment)
    try:
        with spinner("Starting the daemon"):
            ended = wait_until_ready(workspace, child, began + timeout)
    except errors.Unavailable:
        _print_tail(invocation, start_log)
        raise
    finally:
        if child.returncode is None:
            child.returncode = 0  # it outlives this command; avoid Popen's warning about a running child
    if ended == errors.ExitCode.IN_USE and lock_held(workspace):  # another `signet start` was faster
        wait_until_ready(workspace, None, began + timeout)
    elif ended is not None:
        output.print_message(f"signet: the daemon did not start (exit code {ended}).")
        _print_tail(invocation, start_log)
        details = f"More details are in {start_log.parent}; `signet doctor` looks for the cause."
        output.print_message(invocation.advice(details))
        click.get_current_context().exit(ended)
    is_ours = daemon_process.supervisor_pid(workspace) == child.pid
    return f"ready in {time.monotonic() - began:.1f} s" if is_ours else "already runs"


def launch(
    workspace: Path, environment: Mapping[str, str], *, ends_with_this: bool = False
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a supervisor for the workspace in its own session; return its process and the file with its output.

    ``ends_with_this``: it stops when this process ends, however that is (on Linux).
    """
    places = Workspace(workspace)
    places.ensure()
    places.refuse_irregular_files()
    start_log = places.log_dir / "start.log"
    with output.reporting(start_log, "written"):
        descriptor = open_regular(start_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    try:
        child = subprocess.Popen(
            [*SUPERVISOR[:2], "-c", TIED.format(os.getpid(), list(SUPERVISOR))] if ends_with_this else list(SUPERVISOR),
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            cwd=workspace,
            env={**environment, WORKSPACE_VARIABLE: str(workspace)},  # a relative path would be taken from ``cwd``
            start_new_session=True,
        )
    except BlockingIOError as error:
        raise errors.ConfigError(
            "no more processes may run for this user: end some, or raise the limit (`ulimit -u`)"
        ) from error
    finally:
        os.close(descriptor)
    return child, start_log


def wait_until_ready(workspace: Path, child: subprocess.Popen[bytes] | None, deadline: float) -> int | None:
    """Wait until the daemon is ready and return None; return its exit code if it exits before.

    Raises Unavailable at the deadline. Without a ``child``, raises DaemonNotRunning if the daemon exits, and
    WorkspaceLocked if the holder of the workspace is no daemon of it.
    """
    last = "it does not respond yet"
    unnamed_until = min(time.monotonic() + UNNAMED_HOLDER_S, deadline - POLL_S)
    while time.monotonic() < deadline:
        if child is not None and (ended := child.poll()) is not None:
            return ended if ended > 0 else 1
        if child is None and not lock_held(workspace):
            raise errors.DaemonNotRunning(f"the daemon on {workspace} has just exited")
        if child is None and (tool := daemon_process.running_tool(workspace)) is not None:
            raise errors.WorkspaceLocked(tool.refusal(workspace))
        if child is None and time.monotonic() > unnamed_until and daemon_process.supervisor_pid(workspace) is None:
            raise errors.WorkspaceLocked(
                f"another process holds {workspace} or its database, and it is not a daemon of this workspace;"
                " it may be a restore, a check, or the daemon of a workspace that shares the database"
            )
        address = recorded_address(workspace)
        if address is not None and address.trusted:  # not one that a daemon left behind that crashed
            client = DaemonClient(address, timeout_s=2, retry_window_s=0)
            try:
                client.get("/health/ready").confirm("ready", True)
            except errors.SignetError as error:
                last = error.detail
                if errors.DATABASE_DAMAGED in last:
                    raise errors.Unavailable(f"the daemon runs, but it is not ready: {last}") from error
            else:
                return None
            finally:
                client.close()
        time.sleep(POLL_S)
    raise errors.Unavailable(f"the daemon was not ready in time ({last}); it is still starting, see `signet logs`")


def wait_for_service(workspace: Path, manager: ServiceManager, deadline: float) -> None:
    """Wait until the daemon of the service is ready. Raises Unavailable, DaemonNotRunning, WorkspaceLocked."""
    while not lock_held(workspace):
        state = manager.state()
        if state.has_failed or time.monotonic() > deadline:
            raise errors.Unavailable(f"the service does not start ({state.state}); `{manager.log_command}` shows why")
        time.sleep(POLL_S)
    wait_until_ready(workspace, None, deadline)


def _print_started(invocation: Invocation, workspace: Path, how: str) -> None:
    """Print where the daemon listens. That it runs is a success, even if standard output takes nothing."""
    address, pid = recorded_address(workspace), daemon_process.supervisor_pid(workspace)
    try:
        body = {"running": True, "pid": pid, "url": str(address), "workspace": str(workspace)}
        is_ready = "is " if how.startswith("ready") else ""
        invocation.print_done(body, f"The daemon {is_ready}{how}: {address} (pid {pid}, {workspace})")
        if access := ACCESS.get(_auth_mode(invocation)):
            output.print_message(f"{access} (`signet token create`).")
        if not is_ready and daemon_process.changed_since_start(workspace):
            output.print_message(
                f"warning: {daemon_process.CHANGED_SINCE_START}: `signet restart` loads the present one."
            )
    except output.OutputFailed as error:
        output.discard_output()
        output.print_message(f"The daemon runs (pid {pid}), but standard output cannot be written: {error.strerror}.")


def _print_tail(invocation: Invocation, start_log: Path) -> None:
    try:
        lines = start_log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return
    for line in lines[-SHOWN_LOG_LINES:]:
        output.print_message(f"  {output.printable(invocation.advice(line))}")


def _auth_mode(invocation: Invocation) -> str:
    try:
        return load_config(invocation.workspace, invocation.settings).config.auth.mode
    except errors.SignetError:
        return "local"


def stop_timeout_s(invocation: Invocation) -> float:
    """Return the configured drain time and a margin; a configuration error does not prevent a stop."""
    try:
        drain_ms = load_config(invocation.workspace, invocation.settings).config.supervision.drain_ms
    except errors.SignetError:
        drain_ms = 5000
    return drain_ms / 1000 + STOP_MARGIN_S


def stop_daemon(workspace: Path, timeout: float, *, now: bool = False) -> int | None:
    """Stop the daemon; return its pid once its lock is free, None if none ran. Raises WorkspaceLocked for a tool."""
    deadline = time.monotonic() + timeout
    if not lock_held(workspace):
        return None
    pid = daemon_process.supervisor_pid(workspace)
    while pid is None:  # the daemon is just starting (its pid is not written yet) or just exiting
        if not lock_held(workspace):
            return None
        if (tool := daemon_process.running_tool(workspace)) is not None:
            raise errors.WorkspaceLocked(f"no daemon was stopped: {tool.refusal(workspace)}")
        if daemon_process.is_in_container(workspace):
            raise errors.Unavailable(
                f"nothing was stopped: the daemon on {workspace} runs in a container; {STOP_CONTAINER}"
            )
        if time.monotonic() > deadline:
            raise errors.Unavailable(
                f"nothing was stopped: {workspace} is locked, but the supervisor was not found. If the daemon runs in a"
                f" container, {STOP_CONTAINER}"
            )
        time.sleep(POLL_S)
        pid = daemon_process.supervisor_pid(workspace)
    if pid == 1:
        output.print_message("The daemon is process 1 of this container, which ends with it.")
    _signal(pid, signal.SIGTERM)
    if now:
        time.sleep(POLL_S)
        _signal(pid, signal.SIGTERM)
    kill_at = time.monotonic() + min(KILL_AFTER_S, timeout / 2) if now else None
    with spinner("Stopping the daemon"):
        while lock_held(workspace):
            if kill_at is not None and time.monotonic() > kill_at and daemon_process.supervisor_pid(workspace) == pid:
                _signal(pid, signal.SIGKILL)  # it is stopped or hangs; its processes exit with it
                kill_at = None
            if time.monotonic() > deadline:
                advice = "" if now else "; `signet stop --now` does not wait for running work"
                raise errors.Unavailable(f"the daemon (pid {pid}) is still stopping{advice}")
            time.sleep(POLL_S)
    return pid


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to the supervisor, which may have exited. Raises Unavailable if it belongs to another user."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise errors.Unavailable(f"the daemon (pid {pid}) belongs to another user") from error


@contextlib.contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a spinner if standard error is a terminal."""
    if not output.can_animate():
        yield
        return
    with output.console(stderr=True).status(f"{text} …"):
        yield
