"""The tokens that `signet login` stores: who reads them, for which daemon, and how they are kept.

Source: docs/guides/team.md "On the other machine"; docs/cli.md "A team"; docs/security.md.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.main import cli
from signet_actors.client import Client
from signet_actors.config import daemon_address
from signet_actors.config.daemon_address import address_from_url, logins_file, read_logins
from signet_actors.hook import daemon as hook_daemon
from signet_actors.operations.auth import WHO_AM_I
from tests.support.held_workspace import held_workspace
from tests.support.scripted_daemon import ScriptedDaemon

OWNER = "ab12" * 16
WHO = {"sub": "Ada", "role": "agent", "scope": {"agent": "ada"}, "jti": "1", "kid": "2", "iat": 1, "exp": 2}


class Machine:
    """A user's home directory, and commands in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {"HOME": str(home), "SIGNET_WORKSPACE": str(home / ".agents")}
        self.file = home / ".config" / "signet" / "logins.json"

    def signet(self, *arguments: str, stdin: str | None = None, **more: str) -> Result:
        unset = dict.fromkeys(("SIGNET_TOKEN", "SIGNET_API_KEY", "SIGNET_DAEMON_URL", "XDG_CONFIG_HOME"))
        return CliRunner().invoke(cli, arguments, input=stdin, env={**unset, **self.environ, **more})

    def log_in(self, url: str, token: str = "t.s") -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({**read_logins(self.environ), str(address_from_url(url)): token}))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def accepting(daemon: ScriptedDaemon) -> ScriptedDaemon:
    daemon.on("GET", "/api/auth/whoami", {"authenticated": True, "claims": WHO, "mode": "team"})
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}, "total": 0})
    return daemon


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def authorizations(daemon: ScriptedDaemon) -> list[str | None]:
    return [asked.headers.get("authorization") for asked in daemon.asked]


def test_a_login_is_stored_for_its_daemon_where_only_the_user_can_read_it(
    accepting: ScriptedDaemon, machine: Machine
) -> None:
    machine.file.parent.mkdir(parents=True, mode=0o755)
    machine.file.write_text('{"https://other.example:443": "o"}')
    machine.file.chmod(0o644)
    done = machine.signet("login", accepting.url, "--token-stdin", stdin="  t.s\n")
    assert done.exit_code == 0, done.output
    assert "as Ada, role agent, limited to agent ada" in done.output
    assert "t.s" not in done.output
    assert json.loads(machine.file.read_text()) == {"https://other.example:443": "o", accepting.url: "t.s"}
    assert (mode(machine.file), mode(machine.file.parent)) == (0o600, 0o700)
    assert authorizations(accepting) == ["Bearer t.s"]
    assert machine.signet("--url", accepting.url, "list").exit_code == 0
    assert authorizations(accepting)[1:] == ["Bearer t.s"]
    assert machine.signet("logout", accepting.url).exit_code == 0
    assert json.loads(machine.file.read_text()) == {"https://other.example:443": "o"}
    assert machine.signet("logout", accepting.url).exit_code == 1
    machine.signet("--url", accepting.url, "list")
    assert authorizations(accepting)[2:] == [None]


def test_the_user_configuration_directory_is_that_of_the_environment(
    accepting: ScriptedDaemon, machine: Machine
) -> None:
    elsewhere = machine.home / "config"
    assert (
        machine.signet("login", accepting.url, "--token-stdin", stdin="t.s", XDG_CONFIG_HOME=str(elsewhere)).exit_code
        == 0
    )
    assert (elsewhere / "signet" / "logins.json").exists()
    assert not machine.file.exists()
    assert logins_file({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}) == Path("/h/.config/signet/logins.json")


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (401, {"error": "token revoked", "code": "unauthorized"}, "token revoked"),
        (200, {"authenticated": False, "claims": None, "mode": "local"}, "needs no token"),
        (200, {"hello": 1}, "does not come from a Signet daemon"),
        (404, {"error": "Not found"}, "Not found"),
    ],
)
def test_a_token_that_the_daemon_does_not_accept_is_not_stored(
    daemon: ScriptedDaemon, machine: Machine, status: int, answer: dict[str, Any], told: str
) -> None:
    daemon.on("GET", "/api/auth/whoami", answer, status=status)
    done = machine.signet("login", daemon.url, "--token-stdin", stdin="t.s")
    assert (done.exit_code, machine.file.exists()) == (1, False)
    assert told in done.output
    assert "t.s" not in done.output


@pytest.mark.parametrize("given", ["", "\n", "a b", "ä", "x" * 9000])
def test_what_cannot_be_a_token_is_not_sent(accepting: ScriptedDaemon, machine: Machine, given: str) -> None:
    done = machine.signet("login", accepting.url, "--token-stdin", stdin=given)
    assert (done.exit_code, accepting.asked) == (1, [])


def test_without_a_terminal_a_token_is_not_asked_for(accepting: ScriptedDaemon, machine: Machine) -> None:
    done = machine.signet("login", accepting.url, stdin="t.s")
    assert (done.exit_code, accepting.asked) == (2, [])
    assert "--token-stdin" in done.output


@pytest.mark.parametrize("url", ["http://signet.example:80", "signet.example", "http://10.0.0.5:3850"])
def test_a_token_goes_to_another_machine_in_plain_text_only_if_the_user_insists(machine: Machine, url: str) -> None:
    done = machine.signet("login", url, "--token-stdin", stdin="t.s")
    assert done.exit_code == 1
    assert "--insecure" in done.output


def test_the_token_of_the_environment_wins_over_a_login(accepting: ScriptedDaemon, machine: Machine) -> None:
    machine.log_in(accepting.url)
    machine.signet("--url", accepting.url, "list", SIGNET_TOKEN="e.s")
    assert authorizations(accepting) == ["Bearer e.s"]
    done = machine.signet("login", accepting.url, "--token-stdin", stdin="t.s", SIGNET_TOKEN="e.s")
    assert "SIGNET_TOKEN is set here" in done.output


URLS = ("http://127.0.0.1:3850", "https://memory.example", "https://memory.example:8443/signet", "http://[::1]:3850")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("other", URLS)
def test_hooks_and_commands_find_the_same_login_and_no_other(machine: Machine, url: str, other: str) -> None:
    machine.log_in(url)
    expected = "t.s" if url == other else ""
    environ = {**machine.environ, "SIGNET_DAEMON_URL": other}
    address = hook_daemon.find_daemon(environ, str(machine.home))
    headers = hook_daemon.headers_of({}, "codex", environ, address)
    assert headers.get("Authorization", "") == (f"Bearer {expected}" if expected else "")
    assert read_logins(environ).get(str(address_from_url(other)), "") == expected


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"http://h:1": 3}', '{"http://h:1": "a\\nb"}', '{"http://h:1": "ä"}']
)
def test_a_file_that_holds_no_token_is_no_login(machine: Machine, content: str) -> None:
    machine.file.parent.mkdir(parents=True)
    machine.file.write_text(content)
    assert read_logins(machine.environ) == {}
    address = hook_daemon.find_daemon({"SIGNET_DAEMON_URL": "http://h:1"}, "/")
    assert hook_daemon.login_for(address, machine.environ) == ""


def test_the_own_workspace_needs_no_login_and_gets_none(accepting: ScriptedDaemon, machine: Machine) -> None:
    workspace = machine.home / ".agents"
    workspace.mkdir()
    machine.log_in(accepting.url)
    with held_workspace(workspace, accepting.port):
        (workspace / ".daemon" / "owner-token").write_text(OWNER)
        assert machine.signet("list").exit_code == 0
        with Client(workspace=workspace) as client:
            client.call(WHO_AM_I)
    for asked in accepting.asked:
        assert asked.headers["x-signet-owner-token"] == OWNER
        assert "authorization" not in asked.headers


def test_the_token_of_the_owner_never_goes_to_an_address_that_a_url_names(
    accepting: ScriptedDaemon, machine: Machine
) -> None:
    workspace = machine.home / ".agents"
    workspace.mkdir()
    with held_workspace(workspace, accepting.port):
        (workspace / ".daemon" / "owner-token").write_text(OWNER)
        machine.signet("--url", accepting.url, "list")
        machine.signet("list", SIGNET_DAEMON_URL=accepting.url)
        machine.signet("login", accepting.url, "--token-stdin", stdin="t.s")
    assert len(accepting.asked) == 3
    assert not any("x-signet-owner-token" in asked.headers for asked in accepting.asked)


def test_neither_token_goes_to_a_program_that_does_not_hold_the_workspace(
    accepting: ScriptedDaemon, machine: Machine
) -> None:
    workspace = machine.home / ".agents"
    workspace.mkdir()
    machine.log_in(accepting.url)
    with held_workspace(workspace, accepting.port):
        (workspace / ".daemon" / "owner-token").write_text(OWNER)
    accepting.on("GET", "/health", {"agentsDir": str(workspace)})  # only claims to serve it
    assert machine.signet("list").exit_code == 3
    assert accepting.asked
    for asked in accepting.asked:
        assert not {"authorization", "x-signet-owner-token"} & set(asked.headers)


def test_the_python_client_takes_the_given_token_then_the_login(
    accepting: ScriptedDaemon, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SIGNET_TOKEN", "SIGNET_API_KEY", "SIGNET_DAEMON_URL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(machine.home))
    machine.log_in(accepting.url)
    for token in (None, "mine", ""):
        with Client(accepting.url, token=token) as client:
            client.call(WHO_AM_I)
    monkeypatch.setenv("SIGNET_TOKEN", "e.s")
    with Client(accepting.url) as client:
        client.call(WHO_AM_I)
    assert authorizations(accepting) == ["Bearer t.s", "Bearer mine", None, "Bearer e.s"]


def test_a_refusal_says_which_token_would_do(daemon: ScriptedDaemon, machine: Machine) -> None:
    told = {
        "role 'readonly' lacks 'modify' permission": "with the role agent, operator or admin (`signet --url",
        "role 'agent' lacks 'admin' permission": "with the role admin (`signet --url",
        "scope restricted to project '/shop'": "a token without this limit",
        "In local mode only requests from this machine are accepted": "accepted.\n",
    }
    for detail in told:
        daemon.on("GET", "/api/memories", {"error": detail, "code": "forbidden"}, status=403)
    daemon.on("GET", "/api/memories", {"error": "token expired", "code": "unauthorized"}, status=401)
    for expected in told.values():
        done = machine.signet("--url", daemon.url, "list")
        assert done.exit_code == 1
        assert expected in done.output
    assert f"`signet --url {daemon.url} login`" in machine.signet("--url", daemon.url, "list").output


def test_a_client_of_a_command_keeps_the_token_of_the_environment_out_of_other_daemons(machine: Machine) -> None:
    environ = {**machine.environ, "SIGNET_DAEMON_URL": "https://memory.example", "SIGNET_TOKEN": "e.s"}
    there, here = (
        DaemonClient(address_from_url(url), environ=environ) for url in ("https://memory.example", "http://[::1]:1")
    )
    assert there.headers["Authorization"] == "Bearer e.s"
    assert "Authorization" not in here.headers
    assert daemon_address.token_for(here.address, environ) is None


# Issuing


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--role", "readonly"], {"role": "readonly", "scope": {}}),
        (
            ["--role", "agent", "--agent", "ada", "--project", "shop", "--user", "Ada", "--name", "laptop"],
            {"role": "agent", "scope": {"agent": "ada", "project": "shop", "user": "Ada"}, "name": "laptop"},
        ),
        (["--role", "agent", "--days", "2"], {"role": "agent", "scope": {}, "ttlSeconds": 172_800}),
        (["--role", "agent", "--ttl", "90m"], {"role": "agent", "scope": {}, "ttlSeconds": 5400}),
        (["--role", "agent", "--ttl", "12h"], {"role": "agent", "scope": {}, "ttlSeconds": 43_200}),
    ],
)
def test_a_token_is_printed_alone_and_about_it_on_standard_error(
    daemon: ScriptedDaemon, machine: Machine, options: list[str], body: dict[str, Any]
) -> None:
    daemon.on("POST", "/api/auth/token", {"token": "t.s", "expiresAt": "2027-01-01T00:00:00.000Z", "id": "9f86d0"})
    done = machine.signet("--url", daemon.url, "token", "create", *options)
    assert (done.exit_code, done.stdout) == (0, "t.s\n"), done.output
    assert f"9f86d0: role {body['role']}" in done.stderr
    assert "expires 2027-01-01" in done.stderr
    assert daemon.asked[0].body == body


@pytest.mark.parametrize("ttl", ["12", "h", "0h", "-1h", "1w", "1000d", "१h", ""])
def test_a_time_that_is_none_is_wrong_usage(daemon: ScriptedDaemon, machine: Machine, ttl: str) -> None:
    done = machine.signet("--url", daemon.url, "token", "create", "--role", "agent", "--ttl", ttl)
    assert (done.exit_code, daemon.asked) == (2, [])


def test_a_token_or_a_key_is_revoked_by_the_beginning_of_its_id(daemon: ScriptedDaemon, machine: Machine) -> None:
    rows = [
        {"id": "aaaaaa11", "kind": "token", "name": "one"},
        {"id": "aaaaaa22", "kind": "api_key", "name": "two"},
        {"id": "bbbbbb33", "kind": "api_key", "name": "three"},
        {"id": "bbbbbb44", "kind": "token", "name": "gone", "revokedAt": "2026-01-01T00:00:00.000Z"},
    ]
    daemon.on("GET", "/api/auth/tokens", {"tokens": rows, "total": 4})
    daemon.on("DELETE", "/api/auth/api-keys/bbbbbb33", {"id": "bbbbbb33", "revokedAt": "2026-01-01T00:00:00.000Z"})
    daemon.on("DELETE", "/api/auth/tokens/aaaaaa11", {"id": "aaaaaa11", "revokedAt": "2026-01-01T00:00:00.000Z"})
    daemon.on("DELETE", "/api/auth/tokens/unknown-id", {"error": "Token not found", "code": "not_found"}, status=404)
    done = machine.signet("--url", daemon.url, "token", "revoke", "bbbbbb", "aaaaaa11")
    assert (done.exit_code, done.stdout) == (0, "Revoked bbbbbb33.\nRevoked aaaaaa11.\n"), done.output
    several = machine.signet("--url", daemon.url, "token", "revoke", "aaaaaa")
    assert (several.exit_code, "aaaaaa22" in several.output) == (2, True)
    assert machine.signet("--url", daemon.url, "token", "revoke", "bbb").exit_code == 2
    unknown = machine.signet("--url", daemon.url, "token", "revoke", "unknown-id")
    assert (unknown.exit_code, "the token unknown-id was not found" in unknown.output) == (1, True)
    key = machine.signet("--url", daemon.url, "token", "rotate", "bbbbbb")
    assert (key.exit_code, "is an API key" in key.output) == (1, True)
    assert [asked.path for asked in daemon.asked if asked.method == "DELETE"] == [
        "/api/auth/api-keys/bbbbbb33",
        "/api/auth/tokens/aaaaaa11",
        "/api/auth/tokens/unknown-id",
    ]
