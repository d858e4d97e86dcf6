from __future__ import annotations

import configparser
import plistlib
from pathlib import Path

import pytest

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode

OPS = Path(__file__).resolve().parents[2] / "ops"


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(OPS / "systemd" / name)
    return parser["Service"]


@pytest.mark.parametrize("name", ["signet.service", "signet-system.service"])
def test_a_unit_does_not_restart_after_a_final_exit_code(name: str) -> None:
    service = unit(name)
    assert set(service["RestartPreventExitStatus"].split()) == {str(ExitCode.IN_USE), str(ExitCode.CONFIG)}
    assert service["Type"] == "notify"
    assert service["ExecStart"].endswith("/bin/signet up")
    assert service["UMask"] == "0077"


@pytest.mark.parametrize("name", ["signet.service", "signet-system.service"])
def test_the_stop_timeout_of_a_unit_exceeds_that_of_the_daemon(name: str) -> None:
    service, supervision = unit(name), Config().supervision
    assert int(service["TimeoutStartSec"]) * 1000 > supervision.start_timeout_ms
    assert int(service["TimeoutStopSec"]) * 1000 > supervision.drain_ms
    assert int(service["WatchdogSec"]) * 1000 > 2 * supervision.heartbeat_ms * supervision.liveness


def test_the_launch_agent_runs_the_supervisor_and_restarts_only_failures() -> None:
    with (OPS / "launchd" / "org.signet.actors.plist").open("rb") as file:
        agent = plistlib.load(file)
    assert agent["ProgramArguments"][0].endswith("/bin/signet")
    assert agent["ProgramArguments"][1:] == ["up"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["Umask"] == 0o077


def test_the_container_file_installs_locked_packages_and_runs_the_supervisor_without_root() -> None:
    lines = (OPS / "container" / "Containerfile").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("COPY ") and not line.startswith("COPY --from=build "):
            for source in line.split()[1:-1]:
                assert (OPS.parent / source).exists(), source
    assert any("--require-hashes -r requirements.lock" in line for line in lines)
    last_stage = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "USER signet" in last_stage
    assert lines[-1] == 'CMD ["signet", "up"]'
    ignored = (OPS.parent / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv"} <= set(ignored)


def test_the_quadlet_file_runs_the_container_of_the_guide_and_does_not_restart_after_a_final_exit_code() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(OPS / "container" / "signet.container")
    container, service = parser["Container"], parser["Service"]
    guide = (OPS.parent / "docs" / "guides" / "service.md").read_text(encoding="utf-8")
    workspace = container["Volume"].replace("%h", "~")
    run = f"--name {container['ContainerName']} --network {container['Network']} --userns {container['UserNS']}"
    assert f"{run} -v {workspace} {container['Image'].removeprefix('localhost/').removesuffix(':latest')}\n" in guide
    assert set(service["RestartPreventExitStatus"].split()) == {str(ExitCode.IN_USE), str(ExitCode.CONFIG)}
    assert int(service["TimeoutStartSec"]) * 1000 > Config().supervision.start_timeout_ms
