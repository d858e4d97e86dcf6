"""Where the Python client looks for the daemon, and what it shows as its identity.

Source: docs/guides/python.md "Where the daemon is"; docs/security.md "Local mode".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.client import Client, DaemonUnreachable, Limits
from signet_actors.client.encoding import HttpReply
from signet_actors.client.exchange import Caller, Exchange, Loss, Lost, Pause, Send
from signet_actors.client.http_transport import make_caller
from signet_actors.client.location import Location
from signet_actors.errors import ConfigError, InvalidRequest
from signet_actors.operations.health import LIVE
from signet_actors.operations.import_export import EXPORT_MEMORIES
from signet_actors.operations.memories import LIST_MEMORIES
from tests.support.held_workspace import held_workspace, write_address

TOKEN = "0123456789abcdef" * 4


def place(home: Path, **environ: str) -> str:
    """The address that a client without arguments finds."""
    return str(Location(environ={"HOME": str(home), **environ}).address())


def workspace_in(home: Path) -> Path:
    workspace = home / ".agents"
    workspace.mkdir()
    return workspace


@pytest.mark.parametrize(
    "environ",
    [{}, {"SIGNET_PORT": "4000"}, {"SIGNET_HOST": "::1", "SIGNET_PORT": "4000"}, {"SIGNET_WORKSPACE": "/nonexistent"}],
)
def test_without_a_daemon_on_the_workspace_no_port_is_tried(tmp_path: Path, environ: dict[str, str]) -> None:
    """The daemon of another workspace may listen there."""
    workspace = environ.get("SIGNET_WORKSPACE", tmp_path / ".agents")
    with pytest.raises(DaemonUnreachable, match=f"no daemon runs on {workspace}"):
        place(tmp_path, **environ)


def test_the_environment_names_another_address(tmp_path: Path) -> None:
    environ = {"SIGNET_DAEMON_URL": "https://memory.example/x/", "SIGNET_PORT": "1"}
    assert place(tmp_path, **environ) == "https://memory.example:443/x"


def test_the_address_of_the_running_daemon_is_used(tmp_path: Path) -> None:
    with held_workspace(workspace_in(tmp_path), 4100):
        assert place(tmp_path, SIGNET_PORT="4000") == "http://127.0.0.1:4100"
        assert place(tmp_path, SIGNET_DAEMON_URL="http://127.0.0.1:4200") == "http://127.0.0.1:4200"


def test_an_argument_wins_over_the_environment(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "SIGNET_DAEMON_URL": "http://127.0.0.1:4200"}
    assert str(Location("localhost:1", environ=environ).address()) == "http://localhost:1"
    with held_workspace(workspace_in(tmp_path), 4100):
        assert str(Location(workspace=tmp_path / ".agents", environ=environ).address()) == "http://127.0.0.1:4100"


def test_nothing_is_sent_to_the_address_of_a_killed_daemon(tmp_path: Path) -> None:
    """The daemon of another workspace, or another program, may listen there by now."""
    workspace = workspace_in(tmp_path)
    write_address(workspace, 4100)
    with pytest.raises(DaemonUnreachable, match=f"no daemon runs on {workspace}"):
        place(tmp_path)


def test_a_workspace_that_is_named_has_its_own_daemon_or_none(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachable, match=f"no daemon runs on {tmp_path}"):
        Location(workspace=tmp_path, environ={}).address()


def test_a_daemon_on_any_free_port_is_found_by_its_address_file_only(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    with pytest.raises(DaemonUnreachable, match=f"no daemon runs on {workspace}"):
        place(tmp_path, SIGNET_PORT="0")
    with held_workspace(workspace, 4100):
        assert place(tmp_path, SIGNET_PORT="0") == "http://127.0.0.1:4100"


@pytest.mark.parametrize(
    ("url", "environ", "named"),
    [
        ("ftp://x", {}, "url 'ftp://x'"),
        (None, {"SIGNET_DAEMON_URL": "http://x:99999"}, "SIGNET_DAEMON_URL"),
    ],
)
def test_an_address_that_is_none_is_refused_when_the_client_is_made(
    url: str | None, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidRequest, match=named):
        Location(url, environ=environ)


def test_a_workspace_that_cannot_be_one_is_refused_when_the_client_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SIGNET_WORKSPACE"):
        place(tmp_path, SIGNET_WORKSPACE="~nobody-of-this-name/x")


def test_a_daemon_that_came_back_at_another_port_is_found(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    location = Location(environ={"HOME": str(tmp_path)})
    live: Any = b'{"status": "live", "uptime": 1.0}'
    with held_workspace(workspace, 4100):
        exchange = Caller(location).call(LIVE)
        assert sent(exchange).url == "http://127.0.0.1:4100/health/live"
    assert isinstance(exchange.send(Lost(Loss.BROKEN, "it was killed")), Pause)
    with held_workspace(workspace, 4101):
        again = exchange.send(None)
        assert isinstance(again, Send)
        assert again.url == "http://127.0.0.1:4101/health/live"
        with pytest.raises(StopIteration):
            exchange.send(HttpReply(200, {}, live))


def sent(exchange: Exchange[Any]) -> Send:
    step = next(exchange)
    assert isinstance(step, Send)
    return step


# Identity


@pytest.mark.parametrize(
    ("token", "environ", "expected"),
    [
        (None, {}, None),
        (None, {"SIGNET_API_KEY": "k"}, "k"),
        (None, {"SIGNET_TOKEN": "t", "SIGNET_API_KEY": "k"}, "t"),
        (None, {"SIGNET_TOKEN": "", "SIGNET_API_KEY": "k"}, "k"),
        ("mine", {"SIGNET_TOKEN": "t"}, "mine"),
        ("", {"SIGNET_TOKEN": "t"}, None),
    ],
)
def test_the_token_of_the_argument_wins_over_those_of_the_environment(
    token: str | None, environ: dict[str, str], expected: str | None
) -> None:
    assert Location("localhost:1", environ=environ).credential(token) == expected


def test_the_token_beside_a_url_of_the_environment_goes_to_that_daemon_only(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "SIGNET_DAEMON_URL": "https://memory.example", "SIGNET_TOKEN": "t"}
    assert Location(environ=environ).credential(None) == "t"
    assert Location("https://memory.example/", environ=environ).credential(None) == "t"
    assert Location("http://127.0.0.1:3850", environ=environ).credential(None) is None
    assert Location(workspace=tmp_path, environ=environ).credential(None) is None
    assert Location(workspace=tmp_path, environ=environ).credential("given") == "given"


def identity(**given: str) -> dict[str, str]:
    arguments = dict.fromkeys(("token", "agent", "session", "actor", "actor_type"))
    caller = make_caller(Location("localhost:1"), Limits(), **{**arguments, **given})
    headers = sent(caller.call(LIVE)).headers
    return {name: value for name, value in headers.items() if name.startswith(("x-signet", "authorization"))}


def test_each_request_names_agent_session_and_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_TOKEN", "t")
    named = identity(agent="Ärger", session="agent:a:1", actor="crew", actor_type="harness")
    named.pop("x-signet-request-id")
    assert named == {
        "authorization": "Bearer t",
        "x-signet-agent-id": "Ärger",
        "x-signet-session-key": "agent:a:1",
        "x-signet-session-id": "agent:a:1",
        "x-signet-actor": "crew",
        "x-signet-actor-type": "harness",
    }


def test_the_history_names_the_client_if_the_program_has_no_name() -> None:
    named = identity(token="")
    assert (named["x-signet-actor"], named["x-signet-actor-type"]) == ("python-client", "sdk")
    assert "authorization" not in named


@pytest.mark.parametrize("argument", ["agent", "session", "actor", "token"])
def test_a_value_that_would_be_a_second_header_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match="header") as refused:
        Client("localhost:1", **{argument: "a\r\nx-signet-actor: root"})  # type: ignore[arg-type]
    assert argument != "token" or "root" not in str(refused.value)


def test_the_token_of_the_owner_goes_only_to_the_daemon_of_the_workspace(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    location = Location(environ={"HOME": str(tmp_path)})
    with held_workspace(workspace, 4100):
        (workspace / ".daemon" / "owner-token").write_text(TOKEN)
        assert sent(Caller(location).call(EXPORT_MEMORIES)).headers["x-signet-owner-token"] == TOKEN
        assert sent(Caller(location).call(LIST_MEMORIES)).headers["x-signet-owner-token"] == TOKEN
        elsewhere = Caller(Location("http://127.0.0.1:4100"))
        assert "x-signet-owner-token" not in sent(elsewhere.call(EXPORT_MEMORIES)).headers
