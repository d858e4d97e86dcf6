"""The directories that may be a workspace, and the daemon that a command uses.

Source: docs/operations.md "Files"; docs/guides/service.md; docs/cli.md.
"""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.harness_home import PROGRAM
from tests.support.live_daemon import LiveDaemon, live_daemon, private_root

pytestmark = pytest.mark.system

REPOSITORY = Path(__file__).parents[2]
OPS = REPOSITORY / "ops"


def unit(name: str) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read(OPS / "systemd" / name)
    return ["-m", "signet_actors", *parser["Service"]["ExecStart"].split()[1:]]


def launch_agent() -> list[str]:
    with (OPS / "launchd" / "org.signet.actors.plist").open("rb") as file:
        return ["-m", "signet_actors", *plistlib.load(file)["ProgramArguments"][1:]]


def container() -> list[str]:
    command = (OPS / "container" / "Containerfile").read_text(encoding="utf-8").splitlines()[-1]
    return ["-m", "signet_actors", *json.loads(command.removeprefix("CMD "))[1:]]


WAYS = {
    "signet start": ["-m", "signet_actors.cli", "start", "--timeout", "20"],
    "signet up": ["-m", "signet_actors.cli", "up"],
    "python -m supervisor": ["-m", "supervisor"],
    "systemd, one user": unit("signet.service"),
    "systemd, system": unit("signet-system.service"),
    "launchd": launch_agent(),
    "container": container(),
}


@pytest.fixture
def root() -> Iterator[Path]:
    root = private_root()
    yield root
    shutil.rmtree(root)


@pytest.fixture
def system_directory() -> Iterator[Path]:
    """A directory of the machine that nothing depends on; as it was afterwards, also where the test fails."""
    found = next(path for path in map(Path, ("/srv", "/media", "/mnt")) if path.is_dir())
    before = found.stat().st_mode
    present = set(found.iterdir())
    yield found
    if found.stat().st_mode != before:
        found.chmod(stat.S_IMODE(before))
    for path in set(found.iterdir()) - present:
        shutil.rmtree(path)


def started(way: str, workspace: Path, root: Path) -> tuple[int | None, str]:
    """The exit code and what was said; None where it came up, which is ended again."""
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    environ |= {"PYTHONPATH": str(REPOSITORY), "SIGNET_WORKSPACE": str(workspace), "SIGNET_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, *WAYS[way]],
        env=environ,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        return None, ""
    return process.returncode, said


@pytest.mark.parametrize("way", WAYS)
def test_a_system_directory_is_refused_and_not_changed(way: str, system_directory: Path, root: Path) -> None:
    before = system_directory.stat()
    content = set(system_directory.iterdir())
    code, said = started(way, system_directory, root)
    after = system_directory.stat()
    assert (code, after.st_mode, after.st_uid) == (78, before.st_mode, before.st_uid), said
    assert set(system_directory.iterdir()) == content
    assert "is a system directory" in said


@pytest.mark.parametrize("way", WAYS)
def test_a_link_in_place_of_a_directory_of_the_daemon_is_refused(way: str, root: Path) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (root / "w" / ".daemon").mkdir(parents=True)
    (root / "w" / ".daemon" / "index").symlink_to(elsewhere)
    code, said = started(way, root / "w", root)
    assert code == 78, said
    assert "is a symbolic link" in said
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def test_a_command_for_a_workspace_without_a_daemon_sends_nothing_to_another_daemon_on_its_port() -> None:
    with live_daemon() as daemon:
        other = daemon.root / "other"
        other.mkdir()
        ran = subprocess.run(
            [sys.executable, "-m", "signet_actors.cli", "--workspace", str(other), "remember", "Meant for another"],
            env=daemon.environment(SIGNET_PORT=str(daemon.port)),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 3, ran.stderr
        assert str(daemon.workspace) in ran.stderr
        assert daemon.api.listed() == []


def test_hooks_and_clients_of_a_stopped_daemon_send_nothing_to_the_daemon_of_another_workspace() -> None:
    with live_daemon(patient=True) as personal:
        personal.api.remember("Personal: my therapist is Dr. Rossi, appointment every Thursday")
        work = LiveDaemon(personal.root, name="work", patient=True).start()
        try:
            assert work.stop() == 0
            environ = work.environment(SIGNET_PORT=str(personal.port))

            def ran(*command: str, **event: str) -> str:
                given = json.dumps({"session_id": "w-1", "cwd": "/srv/shop", **event})
                done = subprocess.run(
                    [sys.executable, "-P", *command],
                    input=given,
                    env=environ,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=60,
                )
                return done.stdout + done.stderr

            def hook(name: str, **event: str) -> str:
                return ran("-c", PROGRAM, name, "-H", "claude-code", "--workspace", str(work.workspace), **event)

            started = hook("session-start", hook_event_name="SessionStart", source="startup")
            assert f"no memory in this session, because no daemon runs on {work.workspace}" in started
            assert hook("user-prompt-submit", prompt="when is my therapist appointment?") == ""
            hook("compaction-complete", compact_summary="The price of the Falcon merger is 40 million")
            assert '"spooled": true' in hook("remember", content="Acme's CFO is Lee")
            hook("user-prompt-submit", session_id="w-2", prompt="[signet off] between us")
            program = "from signet_actors.client import Client; print(Client().{})"
            for call in ("recall('therapist appointment')", "remember('work: the secret of Acme')"):
                assert f"no daemon runs on {work.workspace}" in ran("-c", program.format(call))

            assert [memory["content"][:9] for memory in personal.api.listed()] == ["Personal:"]
            assert [personal.api.get(f"/api/sessions/{key}").status for key in ("w-1", "w-2")] == [404, 404]
            work.start()
            eventually(lambda: len(work.api.listed()) == 2, what="what waited is stored in its own workspace")
            assert work.api.get("/api/sessions/w-2").ok()["bypassed"] is True
            assert len(personal.api.listed()) == 1
        finally:
            work.close()


def test_backups_and_checks_work_in_a_symlinked_workspace(root: Path) -> None:
    with live_daemon() as daemon:
        link = root / "link"
        link.symlink_to(daemon.root)
        environ = {**daemon.environment(), "SIGNET_WORKSPACE": str(link / daemon.workspace.name)}
        assert daemon.stop() == 0
        daemon.start(SIGNET_WORKSPACE=environ["SIGNET_WORKSPACE"])

        def signet(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-P", "-m", "signet_actors.cli", *arguments]
            return subprocess.run(
                command, env=environ, cwd=root, capture_output=True, text=True, check=False, timeout=120
            )

        daemon.api.remember("Before the backup")
        done = signet("backup")
        assert done.returncode == 0, done.stderr
        daemon.api.remember("After the backup")
        assert daemon.stop() == 0
        done = signet("doctor", "--deep")
        assert done.returncode == 0, done.stdout
        done = signet("restore", "latest", "--yes")
        assert done.returncode == 0, done.stderr


def test_a_relative_workspace_is_the_same_for_every_start_method(root: Path) -> None:
    environ = {**os.environ, "SIGNET_WORKSPACE": "ws", "SIGNET_PORT": "0"}

    def signet(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "signet_actors.cli", *arguments]
        return subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=False, timeout=120)

    try:
        done = signet("start")
        assert done.returncode == 0, done.stderr
        assert (root / "ws" / "memory" / "memories.db").exists()
        assert not (root / "ws" / "ws").exists()
    finally:
        stopped = signet("stop")
    assert (stopped.returncode, "Stopped" in stopped.stdout) == (0, True)
