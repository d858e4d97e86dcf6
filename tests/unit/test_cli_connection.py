"""How the command line finds the daemon, and how it handles missing and invalid responses."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.invocation import Invocation
from signet_actors.cli.main import cli
from signet_actors.config.daemon_address import Address, address_from_url
from signet_actors.errors import DaemonNotRunning, ErrorCode, InvalidRequest, OutcomeUnknown, RequestRefused
from signet_actors.operations.headers import retry_after_ms
from tests.support.held_workspace import held_workspace, write_address
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STORED = {"id": "m1", "type": "fact", "tags": None, "embedded": True, "deduped": False}


@pytest.fixture
def client(daemon: ScriptedDaemon) -> Iterator[DaemonClient]:
    connected = DaemonClient(address_from_url(daemon.url), timeout_s=60)  # a busy machine may pause for seconds
    yield connected
    connected.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:3850", "http://127.0.0.1:3850"),
        ("localhost:1", "http://localhost:1"),
        ("http://[::1]:2/", "http://[::1]:2"),
        ("https://memory.example/signet/", "https://memory.example:443/signet"),
    ],
)
def test_an_address_is_read_from_a_url(url: str, shown: str) -> None:
    assert str(address_from_url(url)) == shown


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:99999", "http://[::1"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        address_from_url(url)


def test_the_address_file_of_the_running_daemon_wins_over_the_configuration(tmp_path: Path) -> None:
    with held_workspace(tmp_path, 41000):
        write_address(tmp_path, 41000, host="0.0.0.0")
        found = Invocation(workspace_option=str(tmp_path), environ={"SIGNET_PORT": "41001"}).address()
    assert (found.host, found.port, found.trusted) == ("127.0.0.1", 41000, True)


@pytest.mark.parametrize("note", ["", "{", "[]", '{"host": "x"}', '{"host": "x", "port": "y"}'])
def test_without_an_address_file_the_port_of_the_environment_is_used_and_its_daemon_verified(
    tmp_path: Path, note: str
) -> None:
    (tmp_path / ".daemon").mkdir()
    (tmp_path / ".daemon" / "address").write_text(note)
    found = Invocation(workspace_option=str(tmp_path), environ={"SIGNET_PORT": "41001"}).address()
    assert (found.host, found.port, found.trusted) == ("127.0.0.1", 41001, False)


def test_without_a_daemon_the_command_ends_with_3_and_the_remedy(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["list"], env={"SIGNET_WORKSPACE": str(tmp_path), "SIGNET_PORT": str(free_port())})
    assert result.exit_code == 3
    assert result.stderr == f"signet: no daemon runs on {tmp_path}. Start it with `signet start`.\n"


def test_a_workspace_of_another_user_is_said_to_be_unreadable_not_invalid(tmp_path: Path) -> None:
    CliRunner().invoke(
        cli, ["list"], env={"SIGNET_WORKSPACE": str(tmp_path), "SIGNET_PORT": str(free_port())}
    )  # imports
    tmp_path.chmod(0)
    user = os.geteuid()
    try:
        os.seteuid(user or 65534)  # root may read everything
        result = CliRunner().invoke(cli, ["list"], env={"SIGNET_WORKSPACE": str(tmp_path)})
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o700)
    assert result.exit_code == 3
    assert f"this user cannot read {tmp_path}" in result.stderr
    assert "--url" in result.stderr
    assert "not valid" not in result.stderr


@pytest.mark.parametrize(
    ("health", "url_helps"), [({"status": "healthy", "agentsDir": "/somebody/else"}, True), ({"page": 1}, False)]
)
def test_a_start_is_not_advised_on_a_port_that_is_taken(
    daemon: ScriptedDaemon, tmp_path: Path, health: dict[str, object], url_helps: bool
) -> None:
    daemon.on("GET", "/health", health)
    result = CliRunner().invoke(cli, ["--workspace", str(tmp_path), "list"], env={"SIGNET_PORT": str(daemon.port)})
    assert (result.exit_code, f"`--url {daemon.url}`" in result.stderr) == (3, url_helps), result.stderr
    assert f"on another port: `SIGNET_PORT={daemon.port + 1} signet --workspace {tmp_path} start`." in result.stderr


def test_another_workspace_s_daemon_on_the_configured_port_gets_no_write(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    daemon.on("GET", "/health", {"status": "healthy", "agentsDir": "/somebody/else"})
    daemon.on("POST", "/api/memory/remember", STORED)
    (tmp_path / "agent.yaml").write_text(f"gateway:\n  port: {daemon.port}\n")
    result = CliRunner().invoke(
        cli, ["remember", "x"], env={"SIGNET_WORKSPACE": str(tmp_path), "SIGNET_PORT": None, "SIGNET_HOST": None}
    )
    assert result.exit_code == 3, result.output
    assert "/somebody/else" in result.stderr
    assert [asked.path for asked in daemon.asked] == ["/health"]


def test_another_workspace_s_daemon_on_the_port_of_the_environment_gets_no_write(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    daemon.on("GET", "/health", {"status": "healthy", "agentsDir": "/somebody/else"})
    daemon.on("POST", "/api/memory/remember", STORED)
    result = CliRunner().invoke(
        cli, ["--workspace", str(tmp_path), "remember", "x"], env={"SIGNET_PORT": str(daemon.port), "SIGNET_HOST": None}
    )
    assert result.exit_code == 3, result.output
    assert "/somebody/else" in result.stderr
    assert [asked.path for asked in daemon.asked] == ["/health"]


def test_the_workspace_of_an_explicit_url_is_not_verified(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    daemon.on("POST", "/api/memory/remember", STORED)
    result = CliRunner().invoke(
        cli, ["--workspace", str(tmp_path), "--url", f"http://127.0.0.1:{daemon.port}", "remember", "x"]
    )
    assert result.exit_code == 0, result.output
    assert [asked.path for asked in daemon.asked] == ["/api/memory/remember"]


def test_the_address_file_of_a_killed_daemon_is_verified(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    write_address(tmp_path, daemon.port)
    daemon.on("GET", "/health", {"status": "healthy", "agentsDir": "/somebody/else"})
    daemon.on("POST", "/api/memory/remember", STORED)
    result = CliRunner().invoke(cli, ["--workspace", str(tmp_path), "remember", "x"])
    assert result.exit_code == 3, result.output
    assert "/somebody/else" in result.stderr
    assert [asked.path for asked in daemon.asked] == ["/health"]


def test_the_address_file_of_the_running_daemon_needs_no_verification(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    daemon.on("POST", "/api/memory/remember", STORED)
    with held_workspace(tmp_path, daemon.port):
        result = CliRunner().invoke(cli, ["--workspace", str(tmp_path), "remember", "x"])
    assert result.exit_code == 0, result.output
    assert [asked.path for asked in daemon.asked] == ["/api/memory/remember"]


def test_a_busy_response_is_retried_after_its_retry_time_within_the_limit(
    daemon: ScriptedDaemon, client: DaemonClient
) -> None:
    daemon.on("POST", "/x", {"error": "busy", "code": "busy"}, status=503, headers={"Retry-After": "0.05"})
    daemon.on("POST", "/x", {"ok": True})
    assert client.send("POST", "/x", {"a": 1}).body == {"ok": True}
    first, second = daemon.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_a_long_retry_time_is_reported_to_the_caller(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    daemon.on("POST", "/x", {"error": "busy", "code": "busy"}, status=503, headers={"Retry-After": "60"})
    with pytest.raises(RequestRefused) as refused:
        client.send("POST", "/x", {})
    assert refused.value.code is ErrorCode.BUSY
    assert len(daemon.asked) == 1


def test_a_request_is_not_retried_while_mutations_are_frozen(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    body = {"error": "Mutations are frozen (kill switch active)", "code": "mutations_frozen"}
    daemon.on("POST", "/x", body, status=503, headers={"Retry-After": "0.01"})
    with pytest.raises(RequestRefused):
        client.send("POST", "/x", {})
    assert len(daemon.asked) == 1


def test_a_request_on_a_broken_connection_is_retried_with_the_same_key(
    daemon: ScriptedDaemon, client: DaemonClient
) -> None:
    daemon.on("POST", "/x", drop=True)
    daemon.on("POST", "/x", {"ok": True})
    assert client.send("POST", "/x", {}).body == {"ok": True}
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 1


def test_a_write_without_a_response_has_an_unknown_outcome(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    daemon.on("POST", "/x", drop=True)
    with pytest.raises(OutcomeUnknown):
        client.send("POST", "/x", {})
    assert len(daemon.asked) == 2


def test_a_write_that_is_not_answered_in_time_has_an_unknown_outcome(daemon: ScriptedDaemon) -> None:
    daemon.on("POST", "/x", hang=True)
    hurried = DaemonClient(address_from_url(daemon.url), timeout_s=0.2)
    with pytest.raises(OutcomeUnknown):
        hurried.send("POST", "/x", {})
    hurried.close()


def test_a_failed_read_is_unavailable(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    daemon.on("GET", "/x", drop=True)
    with pytest.raises(RequestRefused) as refused:
        client.get("/x")
    assert refused.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "invalid_request", 1),
        (404, None, 1),
        (409, "conflict", 1),
        (409, None, 1),
        (429, "rate_limited", 4),
        (500, "internal", 1),
        (503, "busy", 4),
        (503, "mutations_frozen", 4),
        (503, None, 4),
        (504, "outcome_unknown", 5),
        (504, None, 5),
        (507, "storage_full", 4),
    ],
)
def test_exit_codes_follow_the_response(daemon: ScriptedDaemon, status: int, code: str | None, exit_code: int) -> None:
    body = {"error": "Because", **({"code": code} if code else {})}
    daemon.on("POST", "/api/memory/remember", body, status=status)
    result = CliRunner().invoke(cli, ["--url", daemon.url, "remember", "x"])
    assert result.exit_code == exit_code
    assert result.stderr.startswith("signet: Because.")
    assert result.stderr.count("\n") == 1


def test_a_response_that_is_not_json_is_an_error_response(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    daemon.on("GET", "/x", b"<html>bad gateway</html>", status=502)
    with pytest.raises(RequestRefused) as refused:
        client.get("/x")
    assert refused.value.detail == "the daemon answered 502 Bad Gateway"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (302, {"id": "m1"}),
        (304, b""),
        (200, b""),
        (204, b""),
        (200, b"null"),
        (200, b"[]"),
        (200, b"3"),
        (200, b'"done"'),
        (200, b"{"),
        (200, b"<html></html>"),
        (200, b"\xff\xfe"),
        (200, b"[" * 100_000),
    ],
)
def test_only_a_2xx_with_a_json_object_is_a_success(
    daemon: ScriptedDaemon, client: DaemonClient, status: int, body: object
) -> None:
    for method in ("GET", "POST", "DELETE"):
        daemon.on(method, "/x", body, status=status)
    with pytest.raises(RequestRefused, match="does not come from a Signet daemon") as read:
        client.get("/x")
    with pytest.raises(RequestRefused, match="does not come from a Signet daemon") as asked:
        client.ask("/x", {})
    with pytest.raises(RequestRefused, match="does not come from a Signet daemon") as changed:
        client.send("DELETE", "/x", {})
    assert read.value.code is asked.value.code is ErrorCode.MISDIRECTED_REQUEST
    assert changed.value.code is ErrorCode.OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("inf", None),
        ("-inf", None),
        ("nan", None),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("0", 0),
        ("1.5", 1500),
        ("1e300", 3_600_000),
        ("9" * 400, None),
    ],
)
def test_retry_after_is_a_bounded_number_or_nothing(header: str | None, wait_ms: int | None) -> None:
    assert retry_after_ms(header) == wait_ms


@pytest.mark.parametrize("wait", ["inf", "nan", "-5", "1e300"])
def test_an_invalid_retry_after_is_ignored(daemon: ScriptedDaemon, wait: str) -> None:
    daemon.on(
        "POST", "/api/memory/remember", {"error": "Busy", "code": "busy"}, status=503, headers={"Retry-After": wait}
    )
    result = CliRunner().invoke(cli, ["--url", daemon.url, "remember", "x"])
    assert (result.exit_code, result.stderr.count("\n")) == (4, 1), result.output
    assert len(daemon.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"error": ["a"], "code": ["b"], "status": {"c": 1}, "field": 3},
        {"error": "two\nlines \x1b[31m", "code": None},
        [],
        None,
        b"",
    ],
)
def test_a_malformed_error_response_is_one_printable_line(daemon: ScriptedDaemon, body: object) -> None:
    daemon.on("POST", "/api/memory/remember", body, status=400)
    result = CliRunner().invoke(cli, ["--url", daemon.url, "remember", "x"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
    assert "\x1b" not in result.stderr


def test_a_change_behind_a_broken_proxy_has_an_unknown_outcome(daemon: ScriptedDaemon, client: DaemonClient) -> None:
    daemon.on("POST", "/x", b"<html>bad gateway</html>", status=502)
    with pytest.raises(RequestRefused) as refused:
        client.send("POST", "/x", {})
    assert refused.value.code is ErrorCode.OUTCOME_UNKNOWN
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 1


def test_a_read_by_post_has_no_unknown_outcome(daemon: ScriptedDaemon) -> None:
    daemon.on("POST", "/api/memory/recall", drop=True)
    assert CliRunner().invoke(cli, ["--url", daemon.url, "recall", "x"]).exit_code == 4


def test_an_invalid_host_name_is_unreachable() -> None:
    assert CliRunner().invoke(cli, ["--url", "http://a..b:1", "list"]).exit_code == 3


def test_an_unreachable_explicit_address_is_reported() -> None:
    lonely = DaemonClient(Address("127.0.0.1", free_port()))
    with pytest.raises(DaemonNotRunning, match="no daemon answers at"):
        lonely.get("/health")
