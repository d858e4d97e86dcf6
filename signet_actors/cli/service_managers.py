"""systemd and launchd: the unit that runs the daemon for this user, and the commands that install and remove it.

The units are in ``service_units``, as they are for an installation in ``~/.local/bin``. Only the program and its
environment variables differ from machine to machine.

Source: systemd.service(5), systemd.exec(5), systemctl(1); launchd.plist(5), launchctl(1); docs/guides/service.md.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers.expat import ExpatError

from signet_actors.cli.installed_program import installed_program, is_program
from signet_actors.cli.invocation import Invocation
from signet_actors.cli.presentation import home_of, reporting
from signet_actors.config.workspace import DEFAULT_WORKSPACE_NAME, WORKSPACE_VARIABLE
from signet_actors.errors import ConfigError, NotFound, SignetError, Unavailable
from signet_actors.runtime.file_draft import replace_file

LISTEN_VARIABLES: Final = ("SIGNET_HOST", "SIGNET_PORT")
UNITS: Final = Path(__file__).with_name("service_units")
CALL_LIMIT_S: Final = 240
"""More than ``TimeoutStartSec`` of the unit."""
BOOT_OUT_S: Final = 30
POLL_S: Final = 0.2
_PLAIN = re.compile(r"[\w@+=:,./-]{1,4096}")
_PREFIXES: Final = "-@:+!|"
"""What may stand before the program in ``ExecStart``."""


@dataclass(frozen=True)
class Service:
    """What a service runs: the program ``signet`` with the command ``up``, and these environment variables."""

    program: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ServiceState:
    """What the manager says: ``state`` in its own words. ``pid`` is None if the daemon does not run."""

    pid: int | None
    state: str
    starts_by_itself: bool
    has_failed: bool = False


class _Manager:
    """Without its ``program``, its units can be read and made, but nothing else."""

    def __init__(self, environ: Mapping[str, str], program: str = "") -> None:
        self._environ = environ
        self._program = program


class Systemd(_Manager):
    """The manager of the user's services on Linux."""

    title = "systemd"
    log_command = "journalctl --user -u signet -n 20"
    name = "signet.service"

    @property
    def file(self) -> Path:
        """The unit."""
        configured = self._environ.get("XDG_CONFIG_HOME", "")
        directory = Path(configured) if configured.startswith("/") else home_of(self._environ) / ".config"
        return directory / "systemd" / "user" / self.name

    @property
    def drop_ins(self) -> Path:
        """The directory of the user's changes of the unit."""
        return self.file.with_name(f"{self.name}.d")

    @property
    def commands(self) -> list[str]:
        """The commands that `signet service install` runs after it has written the unit."""
        calls = ("daemon-reload", f"enable {self.name}", f"restart {self.name}")
        return [*(f"systemctl --user {call}" for call in calls), "loginctl enable-linger"]

    def text(self, service: Service) -> str:
        """Return the unit that runs this service. Raises ConfigError."""
        template = (UNITS / self.name).read_text(encoding="utf-8")
        command = "ExecStart=%h/.local/bin/signet up\n"
        assert command in template, "the unit has this line"
        variables = " ".join(_unit_word(f"{name}={value}") for name, value in service.variables.items())
        return template.replace(
            command,
            f"ExecStart={_unit_word(service.program)} up\n" + (f"Environment={variables}\n" if variables else ""),
        )

    def installed(self) -> Service | None:
        """Return what the unit and its drop-ins run; None if there is no unit. Raises ConfigError."""
        commands: list[str] = []
        variables: dict[str, str] = {}
        if not self.file.exists():
            return None
        for path in (self.file, *sorted(self.drop_ins.glob("*.conf"))):
            for line in _text_of(path).splitlines():
                name, _, value = line.strip().partition("=")
                if name == "ExecStart":
                    commands = [*commands, value] if value.strip() else []
                elif name == "Environment":
                    pairs = [word.partition("=") for word in self._words(path, value)]
                    variables = {**variables, **{name: given for name, _, given in pairs}} if pairs else {}
        words = self._words(self.file, commands[-1]) if commands else []
        return _service_of(self.file, words, variables)

    def state(self) -> ServiceState:
        """Return the state of the service. Raises Unavailable if systemd does not answer."""
        names = "MainPID,ActiveState,SubState,Result,UnitFileState"
        lines = self._run("show", f"--property={names}", self.name).splitlines()
        said = dict(line.split("=", 1) for line in lines if "=" in line)
        pid, state = said.get("MainPID", "0"), said.get("ActiveState", "unknown")
        has_failed = state == "failed" or said.get("SubState") == "auto-restart"
        return ServiceState(
            int(pid) if pid.isdigit() and pid != "0" else None,
            f"{state} ({said.get('Result')})" if has_failed else state,
            said.get("UnitFileState", "").startswith("enabled"),
            has_failed,
        )

    def start(self, text: str) -> None:
        """Write the unit, and start it now and at each login. Raises ConfigError, Unavailable."""
        _write(self.file, text)
        self._run("daemon-reload")
        self._run("enable", self.name)
        self.restart()

    def restart(self) -> None:
        """Start the service as it is installed, again if it runs. Raises Unavailable."""
        self._run("restart", self.name)

    def stays_after_logout(self) -> bool:
        """Have the user's services run also while the user is not logged in; return whether they do."""
        program = shutil.which("loginctl", path=self._environ.get("PATH"))
        if program is None:
            return False
        return _called([program, "enable-linger"], self._environ).returncode == 0

    def remove(self) -> None:
        """Stop the service, and remove the unit. Raises ConfigError, Unavailable."""
        self._run("disable", "--now", self.name)
        with reporting(self.file, "removed"):
            self.file.unlink(missing_ok=True)
        self._run("daemon-reload")

    def _run(self, *arguments: str) -> str:
        done = _called([self._program, "--user", *arguments], self._environ)
        if done.returncode == 0:
            return done.stdout
        said = " ".join(done.stderr.split())
        if "bus" in said or "booted" in said:
            raise Unavailable(
                f"systemd does not answer for this user ({said.rstrip('.')}). After su or sudo, log in as the user, or"
                " `export XDG_RUNTIME_DIR=/run/user/$(id -u)`. In a container there is none; what starts the container"
                " starts the daemon"
            )
        raise Unavailable(f"`systemctl --user {' '.join(arguments)}` failed: {said}. `{self.log_command}` shows more")

    def _words(self, path: Path, value: str) -> list[str]:
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise ConfigError(f"{path} cannot be read: {error}") from None
        home = str(home_of(self._environ))
        return [re.sub("%[h%]", lambda match: home if match[0] == "%h" else "%", word) for word in words]


class Launchd(_Manager):
    """The manager of the user's agents on macOS."""

    title = "launchd"
    log_command = "signet logs"
    name = "org.signet.actors"
    drop_ins = None

    def __init__(self, environ: Mapping[str, str], program: str = "") -> None:
        super().__init__(environ, program)
        self._domain = f"gui/{os.getuid()}"

    @property
    def file(self) -> Path:
        """The property list."""
        return home_of(self._environ) / "Library" / "LaunchAgents" / f"{self.name}.plist"

    @property
    def commands(self) -> list[str]:
        """The commands that `signet service install` runs after it has written the property list."""
        calls = (f"enable {self._domain}/{self.name}", f"bootstrap {self._domain} {shlex.quote(str(self.file))}")
        return [f"launchctl {call}" for call in calls]

    def text(self, service: Service) -> str:
        """Return the property list that runs this service."""
        agent = plistlib.loads((UNITS / f"{self.name}.plist").read_bytes())
        agent["ProgramArguments"][0] = service.program
        if service.variables:
            agent["EnvironmentVariables"] = dict(service.variables)
        return plistlib.dumps(agent, sort_keys=False).decode()

    def installed(self) -> Service | None:
        """Return what the property list runs; None if there is none. Raises ConfigError."""
        if not self.file.exists():
            return None
        try:
            agent = plistlib.loads(_text_of(self.file).encode())
            words, variables = list(agent["ProgramArguments"]), dict(agent.get("EnvironmentVariables") or {})
        except (plistlib.InvalidFileException, ExpatError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{self.file} cannot be read as a property list ({error})") from None
        return _service_of(self.file, words, variables)

    def state(self) -> ServiceState:
        """Return the state of the service."""
        done = _called([self._program, "print", f"{self._domain}/{self.name}"], self._environ)
        if done.returncode:
            return ServiceState(None, "not loaded", starts_by_itself=False)
        said = dict(re.findall(r"^\s{0,40}(state|pid|last exit code) = (\S{1,99})", done.stdout, re.MULTILINE))
        pid, state = said.get("pid", ""), said.get("state", "unknown")
        code = said.get("last exit code", "0").rstrip(":")
        has_failed = not pid and code.isdigit() and code != "0"
        return ServiceState(
            int(pid) if pid.isdigit() else None,
            f"{state} (exit code {code})" if has_failed else state,
            starts_by_itself=True,
            has_failed=has_failed,
        )

    def start(self, text: str) -> None:
        """Write the property list, and start it now and at each login. Raises ConfigError, Unavailable."""
        self._boot_out()
        _write(self.file, text)
        self._run("enable", f"{self._domain}/{self.name}")
        self.restart()

    def restart(self) -> None:
        """Start the service as it is installed, again if it runs. Raises Unavailable."""
        if self.state().state == "not loaded":
            self._run("bootstrap", self._domain, str(self.file))
        else:
            self._run("kickstart", "-k", f"{self._domain}/{self.name}")

    def stays_after_logout(self) -> bool:
        """Return False: agents of a user end with the login."""
        return False

    def remove(self) -> None:
        """Stop the service, and remove the property list. Raises ConfigError, Unavailable."""
        self._boot_out()
        with reporting(self.file, "removed"):
            self.file.unlink(missing_ok=True)

    def _boot_out(self) -> None:
        """End the service if it is loaded, and wait until it is gone: before that, a bootstrap fails."""
        if self.state().state == "not loaded":
            return
        self._run("bootout", f"{self._domain}/{self.name}")
        deadline = time.monotonic() + BOOT_OUT_S
        while self.state().state != "not loaded":
            if time.monotonic() > deadline:
                raise Unavailable("launchd does not end the service; try again in a moment")
            time.sleep(POLL_S)

    def _run(self, *arguments: str) -> None:
        done = _called([self._program, *arguments], self._environ)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            raise Unavailable(f"`launchctl {' '.join(arguments)}` failed: {said}")


ServiceManager = Systemd | Launchd


def service_manager(environ: Mapping[str, str]) -> ServiceManager:
    """Return the service manager of this machine. Raises NotFound if it has none that we know."""
    for kind, name in ((Launchd, "launchctl"), (Systemd, "systemctl")):
        program = shutil.which(name, path=environ.get("PATH"))
        if program is not None:
            return kind(environ, program)
    raise NotFound(
        "this machine has neither systemd nor launchd. In a container, what starts the container starts the daemon; "
        "elsewhere a line of `crontab -e` does: @reboot signet start, with the whole path of signet"
    )


def wanted_service(invocation: Invocation) -> Service:
    """Return the service of this installation and this workspace."""
    workspace = str(invocation.workspace)
    variables = {name: value for name in LISTEN_VARIABLES if (value := invocation.environ.get(name))}
    if workspace != str(home_of(invocation.environ) / DEFAULT_WORKSPACE_NAME):
        variables = {WORKSPACE_VARIABLE: workspace, **variables}
    return Service(installed_program("signet", invocation.environ), variables)


def workspace_of(found: Service, invocation: Invocation) -> str:
    return found.variables.get(WORKSPACE_VARIABLE) or str(home_of(invocation.environ) / DEFAULT_WORKSPACE_NAME)


def service_here(invocation: Invocation) -> ServiceManager | None:
    """Return the manager of the installed service if that runs the daemon that the environment means, and answers."""
    try:
        manager = service_manager(invocation.environ)
        found = manager.installed()
        if found is None or not is_program(found.program) or not _serves(found, invocation):
            return None
        manager.state()
    except SignetError:  # a unit that the user has made, or no login session
        return None
    return manager


def _serves(found: Service, invocation: Invocation) -> bool:
    """Return whether the service would run the daemon that the environment means."""
    given = {name: invocation.environ[name] for name in LISTEN_VARIABLES if invocation.environ.get(name)}
    is_here = workspace_of(found, invocation) == str(invocation.workspace)
    return is_here and all(found.variables.get(name) == value for name, value in given.items())


def _service_of(path: Path, words: list[str], variables: dict[str, str]) -> Service:
    if len(words) < 2 or words[-1] != "up":
        raise ConfigError(f"{path} does not run `signet up`; it stays as it is")
    return Service(words[0].lstrip(_PREFIXES), variables)


def _called(command: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command. Raises Unavailable if it does not end."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CALL_LIMIT_S,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{shlex.join(command)}` did not end within {CALL_LIMIT_S} s") from None
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error.strerror}") from None


def _unit_word(text: str) -> str:
    """Return the text as one word of a unit. Raises ConfigError for what no unit can hold."""
    if not text.isprintable():
        raise ConfigError(f"{text!r} has a character that a unit cannot hold")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return text if _PLAIN.fullmatch(text) else f'"{escaped}"'


def _text_of(path: Path) -> str:
    with reporting(path, "read"):
        return path.read_text(encoding="utf-8", errors="surrogateescape")


def _write(path: Path, text: str) -> None:
    with reporting(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
