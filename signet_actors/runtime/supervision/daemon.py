"""One run of the daemon: acquire what the supervisor needs, run it, release everything.

The order is: configuration, directories, workspace lock, removal of stale sockets, listening port, pid and address
files, control socket, children. Only the holder of the workspace lock binds or removes anything.

Source: docs/reliability.md R10; docs/messaging.md rules 13 to 15; docs/decisions.md 28.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from signet_actors.config.load import LoadedConfig
from signet_actors.config.shared_storage import ADVICE, shared_storage
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError, ExitCode, WorkspaceLocked
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import check_log_file, configure_logging
from signet_actors.runtime.messaging.envelope import new_counters
from signet_actors.runtime.messaging.sockets import (
    LOCAL_SOCKET,
    make_private_directory,
    new_bus_key,
    remove_directory,
    remove_stale_sockets,
    socket_directory,
)
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.processes.descriptor_limit import raise_limit, raise_process_limit
from signet_actors.runtime.processes.signals import has_terminal, signal_pipe, unblock_all
from signet_actors.runtime.processes.terminal import open_standard_streams, write_line
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.control_socket import ControlSocket
from signet_actors.runtime.supervision.daemon_files import DaemonFiles
from signet_actors.runtime.supervision.listener import open_listener, open_local_listener, with_address
from signet_actors.runtime.supervision.reload import loader_that_logs
from signet_actors.runtime.supervision.sd_notify import Notifier
from signet_actors.runtime.supervision.supervisor import RETRY_FAILED_MS, Supervisor
from signet_actors.runtime.supervision.workspace_lock import WorkspaceLock


def run_supervisor(
    tree: Sequence[ChildSpec],
    workspace: Path,
    load: Callable[[], LoadedConfig],
    *,
    port: int | None = None,
    console: bool = False,
    retry_failed_ms: int = RETRY_FAILED_MS,
) -> int:
    """Run the daemon on ``workspace`` until it stops; return its exit code.

    ``load`` reads the configuration (again at each SIGHUP); ``port`` overrides the configured one, 0 = any free one.
    With ``console`` the daemon also stops when its terminal is closed, unless SIGHUP was ignored at its start (nohup).
    Nothing is bound, removed or started before the configuration is valid and the workspace lock is held.
    """
    os.umask(0o077)
    open_standard_streams()
    unblock_all()
    directories = Workspace(Path(os.path.realpath(workspace)))
    lock = WorkspaceLock(directories)
    try:
        raise_limit()
        raise_process_limit()
        loaded = load()
        directories.ensure()
        directories.refuse_irregular_files()
        lock.acquire()
        directories.refusal_file.unlink(missing_ok=True)
    except ConfigError as error:
        write_line(error.detail)
        _note_refusal(directories, error.detail)
        return ExitCode.CONFIG
    except WorkspaceLocked as error:
        write_line(error.detail)
        return ExitCode.IN_USE
    except OSError as error:
        write_line(f"the workspace {workspace} cannot be used: {error}")
        return ExitCode.CONFIG
    files = DaemonFiles(directories, lock)
    ends_with_terminal = console and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and has_terminal()
    # From here on a stop signal is handled in the loop: everything that was opened is released.
    with signal_pipe() as signals:
        try:
            return _run_locked(tree, files, loaded, load, port, console, retry_failed_ms, signals, ends_with_terminal)
        except ConfigError as error:
            write_line(error.detail)
            _note_refusal(directories, error.detail)
            return ExitCode.CONFIG
        except OSError as error:
            write_line(f"the daemon cannot use {workspace}: {error}")
            return ExitCode.IO_ERROR
        finally:
            files.remove()
            lock.release()


def _note_refusal(directories: Workspace, detail: str) -> None:
    """Leave hooks a note of why the configuration is refused."""
    with contextlib.suppress(OSError):  # there is no such directory before the first start
        directories.refusal_file.write_text(detail, errors="replace")


def _run_locked(
    tree: Sequence[ChildSpec],
    files: DaemonFiles,
    loaded: LoadedConfig,
    load: Callable[[], LoadedConfig],
    port: int | None,
    console: bool,
    retry_failed_ms: int,
    signals: int,
    ends_with_terminal: bool,
) -> int:
    """Open the listener and the control socket, run the supervisor, close them; return its exit code."""
    workspace, config = files.workspace.root, loaded.config
    sockets = socket_directory(workspace)
    make_private_directory(sockets)
    remove_stale_sockets(sockets)
    clock = SystemClock()
    boot = ChildContext(
        name="supervisor",
        role="supervisor",
        incarnation=1,
        boot_id=secrets.token_hex(8),
        supervisor_pid=os.getpid(),
        workspace=str(workspace),
        socket_dir=str(sockets),
        config=config,
        console=console,
        started_at_ms=clock.wall_ms(),
        bus_key=new_bus_key(),
    )
    check_log_file(files.workspace.log_dir)
    former = files.former_run()
    log = configure_logging(boot)
    gateway = config.gateway
    with contextlib.ExitStack() as stack:
        stack.callback(remove_directory, sockets)
        listener = stack.enter_context(
            open_listener(gateway.host, gateway.port if port is None else port, gateway.listen_backlog, workspace)
        )
        bound = listener.getsockname()[1]
        local = stack.enter_context(open_local_listener(sockets / LOCAL_SOCKET, gateway.listen_backlog))
        running = with_address(config, gateway.host, bound)
        if former is not None:
            log.warning("former_run_ended_without_stop", **former._asdict())
        files.write(gateway.host, bound, socket=local.getsockname(), tls=bool(gateway.tls_certificate))
        shared = shared_storage(workspace)
        if shared is not None:
            log.warning("workspace_on_shared_storage", found=f"the workspace {shared}", remedy=ADVICE)
        log.info("listening", host=gateway.host, port=bound, pid=os.getpid())
        counters = new_counters()
        control = stack.enter_context(contextlib.closing(ControlSocket(boot, log, counters, clock)))
        supervisor = Supervisor(
            tree,
            running,
            boot,
            control=control,
            counters=counters,
            clock=clock,
            rng=random.Random(),
            log=log,
            listen_fds=(listener.fileno(), local.fileno()),
            load=loader_that_logs(load, loaded, log),
            notifier=Notifier(os.environ),
            retry_failed_ms=retry_failed_ms,
            daemon_files=files,
            ends_with_terminal=ends_with_terminal,
        )
        scheme = "https" if gateway.tls_certificate else "http"
        shown_host = f"[{gateway.host}]" if ":" in gateway.host else gateway.host
        supervisor.on_serving = lambda: write_line(
            f"Signet listens on {scheme}://{shown_host}:{bound} (workspace {workspace})"
        )
        code = supervisor.run(signals)
        if supervisor.exit_reason:
            write_line(supervisor.exit_reason)
        if code == ExitCode.PROVIDER_CONFIG:
            _note_refusal(files.workspace, supervisor.exit_reason)
        log.info("stopped", code=code)
        return code
