"""The rule by which the programs find the daemon, and which token of the environment it gets.

Source: docs/cli.md "Which daemon".
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from signet_actors.cli.invocation import Invocation
from signet_actors.cli.main import cli
from signet_actors.client import DaemonUnreachable
from signet_actors.client.location import Location
from signet_actors.config import daemon_address
from signet_actors.errors import DaemonNotRunning, InvalidRequest
from signet_actors.hook import daemon as hook_daemon
from tests.support.held_workspace import held_workspace, write_address
from tests.support.scripted_daemon import ScriptedDaemon

NO_DAEMON: Final = "no daemon"
"""Also of a command that finds a port there: it asks which workspace is served, and sends nothing else."""
INVALID: Final = "not valid"
URL: Final = {"SIGNET_DAEMON_URL": "https://Memory.example/x/"}
HERE: Final = {"SIGNET_HOST": "::1", "SIGNET_PORT": " 4000 "}
RUNS, KILLED, ABSENT = "a daemon runs", "it was killed", "none was started"
CASES: Final = [
    (ABSENT, URL | HERE, "https://memory.example:443/x"),
    (RUNS, URL, "https://memory.example:443/x"),
    (KILLED, URL, "https://memory.example:443/x"),
    (RUNS, {}, "http://127.0.0.1:4100"),
    (RUNS, HERE, "http://127.0.0.1:4100"),
    (RUNS, {"SIGNET_PORT": "0"}, "http://127.0.0.1:4100"),
    (RUNS, {"SIGNET_DAEMON_URL": ""}, "http://127.0.0.1:4100"),
    (KILLED, {}, NO_DAEMON),
    (KILLED, HERE, NO_DAEMON),
    (KILLED, {"SIGNET_PORT": "0"}, NO_DAEMON),
    (KILLED, {"SIGNET_PORT": "4100"}, NO_DAEMON),
    (ABSENT, HERE, NO_DAEMON),
    (ABSENT, {"SIGNET_PORT": "4000"}, NO_DAEMON),
    (ABSENT, {"SIGNET_HOST": "0.0.0.0"}, NO_DAEMON),
    (ABSENT, {"SIGNET_HOST": "box", "SIGNET_PORT": ""}, NO_DAEMON),
    (ABSENT, {"SIGNET_HOST": "box", "SIGNET_PORT": "0"}, NO_DAEMON),
    (ABSENT, {"SIGNET_PORT": "0"}, NO_DAEMON),
    (ABSENT, {}, NO_DAEMON),
    (ABSENT, {"SIGNET_WORKSPACE": "/nonexistent"}, NO_DAEMON),
    (ABSENT, {"SIGNET_DAEMON_URL": ""}, NO_DAEMON),
    (ABSENT, {"SIGNET_DAEMON_URL": "memory.example:1"}, "http://memory.example:1"),
    (ABSENT, {"SIGNET_DAEMON_URL": "HTTP://[::1]:2/"}, "http://[::1]:2"),
    (ABSENT, {"SIGNET_DAEMON_URL": "http://h:0"}, "http://h:80"),
    *(
        (RUNS, {"SIGNET_DAEMON_URL": url}, INVALID)
        for url in ("ftp://h", "http://a@h:1", "http://:1", "http://h:99999", "http://h:1?a=b", "http://h#x", "::")
    ),
]


def state(workspace: Path, name: str) -> AbstractContextManager[None]:
    workspace.mkdir()
    if name == RUNS:
        (workspace / "memory").mkdir()
        return held_workspace(workspace, 4100)
    if name == KILLED:
        write_address(workspace, 4100)
    return nullcontext()


def by_hook(environ: dict[str, str], workspace: Path) -> str:
    try:
        return str(hook_daemon.find_daemon(environ, str(workspace)))
    except hook_daemon.NoAnswer as none:
        return NO_DAEMON if "no daemon runs" in str(none) else INVALID


def by_client(environ: dict[str, str], _workspace: Path) -> str:
    try:
        return str(Location(environ=environ).address())
    except DaemonUnreachable:
        return NO_DAEMON
    except InvalidRequest:
        return INVALID


def by_command(environ: dict[str, str], _workspace: Path) -> str:
    invocation = Invocation(environ=environ)
    try:
        found = invocation.address()
        assert invocation.address_of_programs() == found
    except DaemonNotRunning:
        return NO_DAEMON
    except InvalidRequest:
        return INVALID
    return str(found) if found.trusted else NO_DAEMON


def test_a_port_of_the_environment_is_one_that_a_command_asks_for_its_workspace(tmp_path: Path) -> None:
    for environ, expected in (
        (HERE, "http://[::1]:4000"),
        ({"SIGNET_PORT": "4000"}, "http://127.0.0.1:4000"),
        ({"SIGNET_HOST": "0.0.0.0"}, "http://127.0.0.1:3850"),
        ({"SIGNET_HOST": "box", "SIGNET_PORT": ""}, "http://box:3850"),
        ({}, "http://127.0.0.1:3850"),
    ):
        found = Invocation(environ={"HOME": str(tmp_path), **environ}).address()
        assert (str(found), found.trusted) == (expected, False)
    for port in ("65536", "x", "٣"):
        with pytest.raises(InvalidRequest, match="is not a port"):
            Invocation(environ={"HOME": str(tmp_path), "SIGNET_PORT": port}).address()


@pytest.mark.parametrize(("daemon", "environ", "expected"), CASES)
@pytest.mark.parametrize("find", [by_hook, by_client, by_command])
def test_every_program_finds_the_same_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find: object, daemon: str, environ: dict[str, str], expected: str
) -> None:
    assert callable(find)
    monkeypatch.setattr(hook_daemon, "_is_other_users_port", lambda _port: False)
    monkeypatch.setattr(hook_daemon, "_is_locked", lambda _directory: daemon == RUNS)  # the database's lock
    workspace = tmp_path / ".agents"
    with state(workspace, daemon):
        found = find({"HOME": str(tmp_path), "SIGNET_WORKSPACE": str(workspace), **environ}, workspace)
    assert found == expected


@pytest.mark.parametrize(
    ("environ", "here", "there"),
    [
        ({}, None, None),
        ({"SIGNET_API_KEY": "k"}, "k", "k"),
        ({"SIGNET_API_KEY": "k", "SIGNET_TOKEN": "t"}, "t", "t"),
        ({"SIGNET_TOKEN": "t", "SIGNET_DAEMON_URL": "http://Here:1/"}, "t", None),
        ({"SIGNET_TOKEN": "t", "SIGNET_DAEMON_URL": "http://here:1/other"}, None, None),
        ({"SIGNET_TOKEN": "t", "SIGNET_DAEMON_URL": "ftp://here:1"}, None, None),
    ],
)
def test_a_token_beside_a_url_goes_to_no_other_daemon(
    environ: dict[str, str], here: str | None, there: str | None
) -> None:
    for host, expected in (("here", here), ("there", there)):
        assert daemon_address.token_for(daemon_address.Address(host, 1), environ) == expected
        assert hook_daemon.token_for(hook_daemon.Address(host, 1), environ) == (expected or "")


def given(home: Path, **environ: str) -> dict[str, str | None]:
    unset = dict.fromkeys(("SIGNET_HOST", "SIGNET_PORT", "SIGNET_WORKSPACE", "SIGNET_API_KEY"))
    return {**unset, "HOME": str(home), **environ}


def test_a_command_uses_the_daemon_and_the_token_of_the_environment(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}, "total": 0})
    environ = given(tmp_path, SIGNET_DAEMON_URL=daemon.url, SIGNET_TOKEN="abc.def")
    result = CliRunner().invoke(cli, ["list", "--json"], env=environ)
    assert result.exit_code == 0, result.output
    assert [asked.headers["authorization"] for asked in daemon.asked] == ["Bearer abc.def"]


def test_a_workspace_that_is_named_has_its_own_daemon_also_beside_a_url(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    environ = given(tmp_path, SIGNET_DAEMON_URL="http://127.0.0.1:1", SIGNET_TOKEN="abc.def")
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}, "total": 0})
    workspace = tmp_path / "work"
    workspace.mkdir()
    with held_workspace(workspace, daemon.port):
        result = CliRunner().invoke(cli, ["--workspace", str(workspace), "list", "--json"], env=environ)
    assert result.exit_code == 0, result.output
    assert "authorization" not in daemon.asked[0].headers, "the token is for the daemon of the URL"


def test_a_token_that_cannot_be_a_header_is_not_shown(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    environ = given(tmp_path, SIGNET_DAEMON_URL=daemon.url, SIGNET_TOKEN="abc\nx-signet-actor: root")
    result = CliRunner().invoke(cli, ["list"], env=environ)
    assert (result.exit_code, daemon.asked) == (1, []), result.output
    assert "SIGNET_TOKEN" in result.output
    assert "root" not in result.output


def test_the_server_of_the_tools_uses_the_daemon_of_the_hooks(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    """`signet connect` adds --workspace to both commands."""
    installed = Invocation(workspace_option=str(tmp_path), environ={"SIGNET_DAEMON_URL": daemon.url})
    assert str(installed.address_of_programs()) == daemon.url == by_hook(dict(installed.environ), tmp_path)


def test_the_alias_of_the_hook_program_takes_a_url(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    done = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "--url", daemon.url, "hook", "session-start"],
        input="{}",
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "known\n"
