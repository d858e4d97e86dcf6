"""The service of the user: the real programs, a real daemon, and stand-ins for systemd and launchd.

Source: docs/guides/service.md.
"""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_daemon import private_root
from tests.support.service_manager import calls, install_stand_ins

pytestmark = pytest.mark.system
SIGNET = str(Path(sys.executable).with_name("signet"))


class User:
    """A user with a home directory, and one of the service managers."""

    def __init__(self, root: Path, *managers: str) -> None:
        self.root = root
        self.environ = {
            "HOME": str(root),
            "PATH": f"{install_stand_ins(root / 'stand-in-bin', *managers)}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SIGNET_PORT": "0",
        }

    def signet(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [SIGNET, *arguments], env=self.environ, cwd=self.root, capture_output=True, text=True, timeout=300,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def root() -> Iterator[Path]:
    root = private_root()
    yield root
    environ = {**os.environ, "HOME": str(root), "SIGNET_WORKSPACE": str(root / "my agents")}
    for workspace in (".agents", "my agents"):
        environ["SIGNET_WORKSPACE"] = str(root / workspace)
        subprocess.run([SIGNET, "stop", "--now"], env=environ, check=False, capture_output=True, timeout=60)
    shutil.rmtree(root, ignore_errors=True)


def test_systemd_runs_the_daemon_of_this_workspace_and_takes_over_one_that_runs_already(root: Path) -> None:
    user = User(root, "systemctl", "loginctl")
    workspace = root / "my agents"  # with a space, as a path in a unit may have
    user.environ["SIGNET_WORKSPACE"] = str(workspace)
    assert "No service is installed" in user.signet("service", "status", code=3)
    user.signet("start")
    user.signet("remember", "The staging database listens on port 5433")
    said = user.signet("service", "install")
    unit = root / ".config/systemd/user/signet.service"
    assert "the service starts it again" in said
    assert f"✓ The service is installed: {unit}" in said
    text = unit.read_text()
    assert f"ExecStart={SIGNET} up\n" in text
    assert f'Environment="SIGNET_WORKSPACE={workspace}" SIGNET_PORT=0\n' in text
    assert calls(root) == [
        "systemctl --user daemon-reload",
        "systemctl --user enable signet.service",
        "systemctl --user restart signet.service",
        "loginctl enable-linger",
    ]
    pid = json.loads((root / ".stand-in/state.json").read_text())["pid"]
    status = json.loads(user.signet("service", "status", "--json"))
    assert (status["pid"], status["startsByItself"], status["workspace"]) == (pid, True, str(workspace))
    assert f"✓ runs       pid {pid}" in user.signet("service", "status")
    assert "5433" in user.signet("recall", "port of staging")
    assert "is installed already" in user.signet("service", "install")
    assert len(calls(root)) == 4, "nothing was done again"
    assert "as a service" in user.signet("restart")
    assert calls(root)[4:] == ["systemctl --user restart signet.service"]
    assert "✓ runs       pid" in user.signet("service", "status")
    unit.with_name("signet.service.d").mkdir()
    said = user.signet("service", "uninstall")
    assert "The service is removed" in said
    assert "Your changes of it are still in" in said
    assert not unit.exists()
    assert calls(root)[5:] == [
        "systemctl --user disable --now signet.service",
        "systemctl --user daemon-reload",
    ]
    assert "No daemon runs" in user.signet("stop")
    assert "No service is installed" in user.signet("service", "uninstall")


def test_launchd_runs_the_daemon_and_is_given_a_changed_agent_only_after_the_former_has_ended(root: Path) -> None:
    user = User(root, "launchctl")
    file = root / "Library/LaunchAgents/org.signet.actors.plist"
    assert f"✓ The service is installed: {file}" in user.signet("service", "install")
    agent = plistlib.loads(file.read_bytes())
    assert agent["ProgramArguments"] == [SIGNET, "up"]
    assert agent["EnvironmentVariables"] == {"SIGNET_PORT": "0"}
    assert "✓ runs       pid" in user.signet("service", "status")
    user.signet("stop")
    assert "as a service" in user.signet("start")
    user.environ["SIGNET_HOST"] = "127.0.0.1"
    user.signet("service", "install")
    domain = f"gui/{os.getuid()}"
    begin = [f"launchctl enable {domain}/org.signet.actors", f"launchctl bootstrap {domain} {file}"]
    end = f"launchctl bootout {domain}/org.signet.actors"
    again = f"launchctl kickstart -k {domain}/org.signet.actors"
    assert calls(root) == [*begin, again, end, *begin]
    user.signet("service", "uninstall")
    assert calls(root)[-1] == end
    assert not file.exists()
    assert "No daemon runs" in user.signet("stop")


def test_an_installation_names_the_keys_that_the_service_does_not_have(root: Path) -> None:
    user = User(root, "systemctl", "loginctl")
    user.environ["SIGNET_ABSENT_KEY"] = "only in this shell"
    (root / ".agents").mkdir(mode=0o700)
    (root / ".agents" / "agent.yaml").write_text(
        "embedding: {provider: openai, model: text-embedding-3-small, dimensions: 1536, apiKeyEnv: SIGNET_ABSENT_KEY}\n"
    )
    missing = "embedding.apiKeyEnv: SIGNET_ABSENT_KEY is not set for the service"
    assert missing in " ".join(user.signet("service", "install").split())
    drop_in = root / ".config/systemd/user/signet.service.d/override.conf"
    drop_in.parent.mkdir()
    for lines, is_named in (("Environment=SIGNET_ABSENT_KEY=k", False), ("EnvironmentFile=%h/signet.env", False)):
        user.signet("stop")
        drop_in.write_text(f"[Service]\n{lines}\n")
        assert (missing in " ".join(user.signet("service", "install").split())) is is_named, lines
    user.signet("service", "uninstall")
