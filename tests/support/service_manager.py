"""Stand-ins for ``systemctl``, ``loginctl`` and ``launchctl``: they keep their calls, and run what the unit says.

They know the calls that Signet makes, and refuse others. The state is in ``~/.stand-in``; the processes are real.
"""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
NO_BUS = "Failed to connect to bus: No medium found"
END_S = 60


def install_stand_ins(directory: Path, *names: str) -> Path:
    """Write programs of these names into the directory, and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(
            f"#!{sys.executable} -S\nimport sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
            f"from tests.support.service_manager import main; main({name!r}, sys.argv[1:])\n"
        )
        (directory / name).chmod(0o755)
    return directory


def calls(home: Path) -> list[str]:
    """Return the calls that were made, but for those that only look."""
    path = home / ".stand-in" / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if " show " not in line and " print " not in line]


class StandIn:
    """The state of a stand-in, in a file, and the process of the service."""

    def __init__(self, home: Path) -> None:
        self.directory = home / ".stand-in"
        self.directory.mkdir(exist_ok=True)
        self.path = self.directory / "state.json"
        self.state: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {"pid": 0}

    def save(self, **more: Any) -> None:
        self.state |= more
        self.path.write_text(json.dumps(self.state))

    def pid(self) -> int:
        """Return the pid of the service; 0 if it does not run."""
        pid = int(self.state["pid"])
        return pid if pid and Path(f"/proc/{pid}/cmdline").is_file() and _runs(pid) else 0

    def run(self, words: list[str], variables: dict[str, str]) -> None:
        environ = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
        with (self.directory / "output").open("ab") as output:
            process = subprocess.Popen(
                words, env=environ | variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        self.save(pid=process.pid)
        process.returncode = 0  # it outlives this program

    def end(self) -> None:
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + END_S
            while self.pid() and time.monotonic() < deadline:
                time.sleep(0.05)
        self.save(pid=0)


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def systemctl(stand_in: StandIn, home: Path, arguments: list[str]) -> int:
    """Answer as ``systemctl --user`` does."""
    file = home / ".config/systemd/user/signet.service"
    match arguments:
        case ["--user", "show", _, "signet.service"]:
            pid = stand_in.pid()
            print(f"MainPID={pid}\nActiveState={'active' if pid else 'inactive'}")
            print(f"UnitFileState={'enabled' if stand_in.state.get('enabled') else 'disabled'}")
        case ["--user", "daemon-reload"]:
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            parser.optionxform = str  # type: ignore[assignment, method-assign]
            parser.read(file)
            stand_in.save(unit=dict(parser["Service"]) if file.exists() else None)
        case ["--user", "enable", "signet.service"]:
            stand_in.save(enabled=True)
        case ["--user", "restart", "signet.service"]:
            stand_in.end()
            unit = stand_in.state["unit"]
            pairs = [word.partition("=") for word in shlex.split(unit.get("Environment", ""))]
            stand_in.run(shlex.split(unit["ExecStart"]), {name: value for name, _, value in pairs})
        case ["--user", "disable", "--now", "signet.service"]:
            stand_in.end()
            stand_in.save(enabled=False)
        case _:
            return 64
    return 0


def launchctl(stand_in: StandIn, home: Path, arguments: list[str]) -> int:
    """Answer as ``launchctl`` does."""
    domain = f"gui/{os.getuid()}"
    service = f"{domain}/org.signet.actors"
    match arguments:
        case ["print", name] if name == service:
            if not stand_in.state.get("loaded"):
                print("Could not find service", file=sys.stderr)
                return 113
            pid = stand_in.pid()
            print(f"{name} = {{\n\tstate = {'running' if pid else 'not running'}")
            print(f"\tpid = {pid}" if pid else "\tlast exit code = 0")
        case ["enable", name] if name == service:
            pass
        case ["bootstrap", name, path] if name == domain and not stand_in.state.get("loaded"):
            agent = plistlib.loads(Path(path).read_bytes())
            stand_in.run(agent["ProgramArguments"], agent.get("EnvironmentVariables", {}))
            stand_in.save(loaded=True)
        case ["kickstart", "-k", name] if name == service and stand_in.state.get("loaded"):
            stand_in.end()
            agent = plistlib.loads((home / "Library/LaunchAgents/org.signet.actors.plist").read_bytes())
            stand_in.run(agent["ProgramArguments"], agent.get("EnvironmentVariables", {}))
        case ["bootout", name] if name == service and stand_in.state.get("loaded"):
            stand_in.end()
            stand_in.save(loaded=False)
        case _:
            print("Bootstrap failed: 5: Input/output error", file=sys.stderr)
            return 5
    return 0


def main(name: str, arguments: list[str]) -> None:
    """Answer one call."""
    home = Path(os.environ["HOME"])
    stand_in = StandIn(home)
    with (stand_in.directory / "calls").open("a") as file:
        file.write(f"{shlex.join([name, *arguments])}\n")
    if (stand_in.directory / "no-bus").exists():
        sys.exit(f"{NO_BUS}\n")
    if name == "loginctl":
        sys.exit(0 if arguments == ["enable-linger"] else 64)
    sys.exit({"systemctl": systemctl, "launchctl": launchctl}[name](stand_in, home, arguments))
