"""The command service: have the service manager of this machine run the daemon.

Source: docs/guides/service.md; docs/cli.md "The daemon".
"""

from __future__ import annotations

import time

import click

from signet_actors.cli import presentation as output
from signet_actors.cli import service_managers
from signet_actors.cli.config import missing_keys
from signet_actors.cli.daemon_process import supervisor_pid
from signet_actors.cli.exit_codes import NOT_RUNNING
from signet_actors.cli.installed_program import is_program, other_program
from signet_actors.cli.invocation import Invocation, command, group
from signet_actors.cli.lifecycle import spinner, stop_daemon, stop_timeout_s, wait_for_service
from signet_actors.config.daemon_address import recorded_address
from signet_actors.config.load import load_config
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.errors import ConfigError, NotFound

READY_S = 120


@group()
def service() -> None:
    """Run the daemon as a service, which starts when you log in.

    A service of your user, by systemd on Linux and by launchd on macOS.
    """


@command(service)
@click.option("--dry-run", "--print", "dry_run", is_flag=True, help="Print what would be written and run; do nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before another installation's service is replaced.")
def install(invocation: Invocation, dry_run: bool, yes: bool) -> None:
    """Install the service, and have it start the daemon now.

    The service runs this `signet` on this workspace, with SIGNET_HOST and SIGNET_PORT of the environment. A daemon that
    runs already is stopped first. Again after an upgrade, it writes the service anew.
    """
    if dry_run:
        _print_plan(invocation)
    else:
        how = "is installed" if install_service(invocation, yes=yes) else "is installed already"
        _print_running(invocation, service_managers.service_manager(invocation.environ), how)


@command(service)
def uninstall(invocation: Invocation) -> None:
    """Stop the daemon, and remove the service. The memories stay."""
    manager = service_managers.service_manager(invocation.environ)
    found = manager.installed()
    if found is None:
        invocation.print_done({"installed": False, "file": str(manager.file)}, "No service is installed.")
        return
    manager.remove()
    invocation.print_done(
        {"installed": False, "file": str(manager.file)},
        f"✓ The service is removed ({output.below_home(manager.file)}), and the daemon has ended.",
    )
    if manager.drop_ins is not None and manager.drop_ins.is_dir():
        output.print_message(f"Your changes of it are still in {manager.drop_ins}.")


@command(service)
def status(invocation: Invocation) -> None:
    """Show whether the service is installed, whether it runs, and what it runs.

    Exit code 3 if it does not run.
    """
    manager = service_managers.service_manager(invocation.environ)
    found = manager.installed()
    state = manager.state()
    if invocation.as_json:
        output.print_json(
            {
                "manager": manager.title,
                "file": str(manager.file),
                "installed": found is not None,
                "startsByItself": state.starts_by_itself,
                "state": state.state,
                "pid": state.pid,
                "program": found.program if found else None,
                "workspace": service_managers.workspace_of(found, invocation) if found else None,
            }
        )
    elif found is None:
        output.print_result("✗ No service is installed: `signet service install` installs it.")
    else:
        start = "starts when you log in" if state.starts_by_itself else "does not start by itself"
        output.print_result(f"✓ installed  {output.below_home(manager.file)} ({start})")
        problem = service_problem(found)
        output.print_result(f"✗ program    {problem}" if problem else f"✓ program    {found.program}")
        output.print_result(f"✓ workspace  {service_managers.workspace_of(found, invocation)}")
        output.print_result(
            f"✓ runs       pid {state.pid}" if state.pid else f"✗ runs not   {state.state}: {manager.log_command}"
        )
    if state.pid is None:
        click.get_current_context().exit(NOT_RUNNING)


def service_problem(found: service_managers.Service) -> str:
    """Return what keeps the service from starting; empty if nothing is known."""
    if is_program(found.program):
        return ""
    return f"{found.program} does not exist → `signet service install`"


def install_service(invocation: Invocation, *, yes: bool) -> bool:
    """Install the service, start it, and wait until the daemon is ready; return False if nothing was to be done.

    Raises NotFound, ConfigError, Unavailable, and RequestRefused if the user does not want it.
    """
    manager = service_managers.service_manager(invocation.environ)
    wanted, found, state = service_managers.wanted_service(invocation), manager.installed(), manager.state()
    if not is_program(wanted.program):
        raise ConfigError(f"{wanted.program} is not a program; install Signet first")
    config = load_config(invocation.workspace, invocation.settings).config
    Workspace(invocation.workspace).refuse_other_owner()
    text = manager.text(wanted)
    is_same = found is not None and manager.file.read_text(encoding="utf-8", errors="replace") == text
    if is_same and state.pid is not None:
        return False
    if found is not None and not yes:
        _refuse_unless_wanted(found, wanted, invocation)
    if lock_held(invocation.workspace) and (pid := supervisor_pid(invocation.workspace)) != state.pid:
        stop_daemon(invocation.workspace, stop_timeout_s(invocation))
        if not invocation.as_json:
            output.print_message(f"Stopped the daemon (pid {pid}); the service starts it again.")
    with spinner("Starting the service"):
        manager.start(text)
        stays = manager.stays_after_logout()
        wait_for_service(invocation.workspace, manager, time.monotonic() + READY_S)
    if not _has_environment_file(manager):
        for line in missing_keys(config, (manager.installed() or wanted).variables, "for the service"):
            output.print_message(f'{line}: docs/guides/service.md, "Keys of model servers".')
    if isinstance(manager, service_managers.Systemd) and not stays:
        output.print_message("The daemon ends when you log out: `loginctl enable-linger` was refused.")
    return True


def _has_environment_file(manager: service_managers.ServiceManager) -> bool:
    """Return whether the user gives the service variables in a file, which this user may be unable to read."""
    drop_ins = () if manager.drop_ins is None else manager.drop_ins.glob("*.conf")
    return any("EnvironmentFile=" in path.read_text(encoding="utf-8", errors="replace") for path in drop_ins)


def _refuse_unless_wanted(
    found: service_managers.Service, wanted: service_managers.Service, invocation: Invocation
) -> None:
    """Ask before the service of another installation or workspace is replaced. Raises RequestRefused."""
    questions = []
    if other := other_program([found.program], invocation.environ):
        questions.append(f"The service runs another installation ({other}); replace it?")
    if (served := service_managers.workspace_of(found, invocation)) != service_managers.workspace_of(
        wanted, invocation
    ):
        questions.append(f"The service serves the workspace {served}; replace it by {invocation.workspace}?")
    for question in questions:
        output.require_confirmation(question, "the service was not changed")


def _print_running(invocation: Invocation, manager: service_managers.ServiceManager, how: str) -> None:
    address, pid = recorded_address(invocation.workspace), supervisor_pid(invocation.workspace)
    body = {"installed": True, "file": str(manager.file), "pid": pid, "url": str(address)}
    invocation.print_done(
        body,
        f"✓ The service {how}: {output.below_home(manager.file)}\n"
        f"✓ The daemon runs and starts by itself: {address} (pid {pid})",
    )


def _print_plan(invocation: Invocation) -> None:
    """Print the unit, and the commands that would be run; for systemd where there is no manager."""
    try:
        manager = service_managers.service_manager(invocation.environ)
    except NotFound as error:
        manager = service_managers.Systemd(invocation.environ)
        output.print_message(f"{error.detail}. For systemd:")
    text = manager.text(service_managers.wanted_service(invocation))
    if invocation.as_json:
        output.print_json({"file": str(manager.file), "text": text, "commands": manager.commands})
        return
    output.print_result(f"# {manager.file}")
    click.echo(output.printable(text))
    for line in manager.commands:
        output.print_result(f"$ {line}")
