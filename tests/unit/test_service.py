"""What `signet service` writes, asks and refuses, before anything runs.

Source: docs/guides/service.md; systemd.service(5), systemd.exec(5), "Quoting" in systemd.syntax(7).
"""

from __future__ import annotations

import os
import plistlib
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.invocation import Invocation
from signet_actors.cli.main import cli
from signet_actors.cli.service_managers import Launchd, Service, Systemd, service_here
from signet_actors.errors import ConfigError
from tests.support.harness_home import make_home
from tests.support.service_manager import calls, install_stand_ins

PROGRAMS = (
    "/home/you/.local/bin/signet",
    "/opt/my tools/bin/signet",
    "/opt/50%/bin/signet",
    "/opt/%h/bin/signet",
    '/opt/a"b/bin/signet',
    "/opt/it's/bin/signet",
    "/opt/back\\slash/bin/signet",
    "/opt/größe/bin/signet",
    "/opt/日本/bin/signet",
    "/opt/a;b#c/bin/signet",
)
VARIABLES = (
    {},
    {"SIGNET_PORT": "3860"},
    {"SIGNET_WORKSPACE": "/home/you/my agents", "SIGNET_HOST": "::1"},
    {"SIGNET_WORKSPACE": '/srv/100%/"x"\\y'},
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_home(tmp_path, monkeypatch).root
    stand_ins = install_stand_ins(root / "stand-ins", "systemctl", "loginctl")
    monkeypatch.setenv("PATH", f"{stand_ins}{os.pathsep}/usr/bin:/bin")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return root


def signet(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["service", *arguments], prog_name="signet", input=typed)


def write_unit(home: Path, *lines: str) -> Path:
    unit = home / ".config/systemd/user/signet.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text("\n".join(("[Service]", *lines, "")))
    return unit


def other_program(home: Path) -> Path:
    program = home / "other" / "signet"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_what_a_unit_was_told_to_run_is_read_back_from_it(tmp_path: Path) -> None:
    for kind in (Systemd, Launchd):
        manager = kind({"HOME": str(tmp_path)})
        manager.file.parent.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            for variables in VARIABLES:
                wanted = Service(program, variables)
                manager.file.write_text(manager.text(wanted), encoding="utf-8")
                assert manager.installed() == wanted


def test_a_program_without_special_characters_stands_as_it_is_in_the_unit() -> None:
    text = Systemd({}).text(Service(PROGRAMS[0], {"SIGNET_PORT": "3860"}))
    assert "\nExecStart=/home/you/.local/bin/signet up\nEnvironment=SIGNET_PORT=3860\n" in text
    assert '\nExecStart="/opt/50%%/bin/signet" up\n' in Systemd({}).text(Service(PROGRAMS[2]))


def test_a_path_that_no_unit_can_hold_is_refused() -> None:
    for name in ("/opt/a\nb/signet", "/opt/\x1b/signet", "/opt/\udcff/signet"):
        with pytest.raises(ConfigError, match="a unit cannot hold"):
            Systemd({}).text(Service(name))


def test_drop_ins_count_and_an_empty_line_takes_the_former_command_away(home: Path) -> None:
    unit = write_unit(home, "ExecStart=%h/.local/bin/signet up", "Environment=SIGNET_PORT=1 A=b")
    manager = Systemd(dict(os.environ))
    assert manager.installed() == Service(f"{home}/.local/bin/signet", {"SIGNET_PORT": "1", "A": "b"})
    drop_in = unit.with_name("signet.service.d") / "override.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nExecStart=\nExecStart=-/opt/bin/signet up\nEnvironment=SIGNET_PORT=2\n")
    assert manager.installed() == Service("/opt/bin/signet", {"SIGNET_PORT": "2", "A": "b"})


def test_dry_run_prints_the_unit_and_the_commands_and_does_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(home.rglob("*"))
    for option in ("--dry-run", "--print"):
        shown = signet("install", option)
        assert shown.exit_code == 0
        assert f"# {home}/.config/systemd/user/signet.service\n" in shown.stdout
        assert "Type=notify\n" in shown.stdout
        assert "$ systemctl --user enable signet.service\n" in shown.stdout
    assert sorted(home.rglob("*")) == before
    monkeypatch.setenv("PATH", str(home))
    shown = signet("install", "--dry-run")
    assert "neither systemd nor launchd" in shown.stderr
    assert "Type=notify\n" in shown.stdout
    monkeypatch.setenv("PATH", str(install_stand_ins(home / "mac", "launchctl")))
    shown = signet("install", "--dry-run")
    assert f"$ launchctl bootstrap gui/{os.getuid()} " in shown.stdout
    plistlib.loads(shown.stdout.partition("\n")[2].partition("$ ")[0].encode())


def test_without_a_service_manager_the_message_says_what_to_do_instead(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    for command in ("install", "uninstall", "status"):
        refused = signet(command)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "neither systemd nor launchd" in refused.stderr
        assert "@reboot signet start" in refused.stderr


def test_a_systemd_that_does_not_answer_this_user_is_explained_and_nothing_is_written(home: Path) -> None:
    (home / ".stand-in").mkdir()
    (home / ".stand-in" / "no-bus").touch()
    for command in ("install", "status"):
        refused = signet(command)
        assert refused.exit_code == 4
        assert "No medium found" in refused.stderr
        assert "XDG_RUNTIME_DIR" in refused.stderr
    assert not (home / ".config/systemd").exists()


def test_the_service_of_another_installation_or_workspace_is_not_replaced_without_a_question(home: Path) -> None:
    other = other_program(home)
    for lines, question in (
        ((f"ExecStart={other} up",), f"The service runs another installation ({other}); replace it? [y/N]"),
        (
            (f"ExecStart={shlex.quote('/gone/signet')} up", "Environment=SIGNET_WORKSPACE=/srv/x"),
            "serves the workspace",
        ),
    ):
        unit = write_unit(home, *lines)
        before = unit.read_text()
        for typed in ("n\n", "", None):
            refused = signet("install", typed=typed)
            assert refused.exit_code == 1
            assert question in refused.stderr
            assert "the service was not changed" in refused.stderr
            assert (unit.read_text(), calls(home)) == (before, [])


def test_a_unit_of_another_program_is_left_alone(home: Path) -> None:
    unit = write_unit(home, "ExecStart=/usr/bin/something --else")
    before = unit.read_text()
    for command in ("install", "uninstall", "status"):
        refused = signet(command)
        assert refused.exit_code == 78
        assert f"{unit} does not run `signet up`" in refused.stderr
    assert unit.read_text() == before


def test_status_says_that_the_program_of_the_service_is_gone(home: Path) -> None:
    write_unit(home, "ExecStart=/gone/signet up")
    shown = signet("status")
    assert shown.exit_code == 3
    assert "✗ program    /gone/signet does not exist → `signet service install`" in shown.stdout
    assert "✗ runs not   inactive" in shown.stdout


def test_the_service_starts_the_daemon_only_of_its_own_workspace_and_address(home: Path) -> None:
    def is_of_service(**variables: str) -> bool:
        return service_here(Invocation(environ={**os.environ, **variables})) is not None

    program, work = other_program(home), f"{home}/work"
    write_unit(home, f"ExecStart={program} up", f"Environment=SIGNET_PORT=3860 SIGNET_WORKSPACE={work}")
    assert is_of_service(SIGNET_WORKSPACE=work)
    assert is_of_service(SIGNET_WORKSPACE=work, SIGNET_PORT="3860")
    assert not is_of_service(SIGNET_WORKSPACE=work, SIGNET_PORT="3861")
    assert not is_of_service(SIGNET_WORKSPACE=work, SIGNET_HOST="::1")
    assert not is_of_service()
    write_unit(home, f"ExecStart={program} up")
    assert is_of_service()
    assert not is_of_service(PATH="/usr/bin/none"), "there is no service manager"
    (home / ".stand-in" / "no-bus").touch()
    assert not is_of_service(), "systemd does not answer"
    (home / ".stand-in" / "no-bus").unlink()
    program.unlink()
    assert not is_of_service(), "its program is gone"
