"""The commands token, login and logout: issue tokens for a daemon, and use one on this machine.

Source: docs/compatibility.md "Authentication"; docs/guides/team.md; XDG Base Directory Specification.
"""

from __future__ import annotations

import ipaddress
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from signet_actors.cli import presentation as output
from signet_actors.cli.connection import DaemonClient, DaemonReply
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command, group, page_options, project_option
from signet_actors.cli.memory_rows import is_complete, named_if_unknown, the_one
from signet_actors.cli.tables import Column, print_records
from signet_actors.config.daemon_address import TOKEN_VARIABLES, Address, address_from_url, logins_file, read_logins
from signet_actors.errors import ErrorCode, InvalidRequest, RequestRefused, SignetError
from signet_actors.operations.request_path import fill_path
from signet_actors.runtime.file_draft import replace_file

ROLES: Final = ("admin", "operator", "agent", "readonly")
TOKENS: Final = "/api/auth/tokens"
KEYS: Final = "/api/auth/api-keys"
PAGE: Final = 1000
MAX_TOKEN_CHARS: Final = 8192
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400}


def _scope_text(scope: Mapping[str, Any]) -> str:
    """Return what a token is limited to; the scope of an administrator, which is ignored, is shown all the same."""
    return ", ".join(f"{limit} {value}" for limit, value in scope.items() if value)


COLUMNS: Final = (
    "id",
    Column("name", form=lambda row: "" if row.get("name") == f"token:{row.get('id')}" else row.get("name")),
    Column("role", form=lambda row: "key" if row.get("kind") == "api_key" else row.get("role")),
    Column("scope", form=lambda row: _scope_text(row.get("scope") or {})),
    Column("created", "createdAt", output.time_text, drop=1),
    Column("expires", form=lambda row: output.time_text(row.get("expiresAt")) or "never"),
    Column("revoked", "revokedAt", output.time_text),
)


class _Duration(click.ParamType[int]):
    """A time like ``90m``, ``12h`` or ``30d``, in seconds."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds. Raises BadParameter."""
        number, unit = value[:-1], _SECONDS.get(value[-1:])
        if unit is None or not (number.isascii() and number.isdigit() and 0 < int(number) < PAGE):
            self.fail(f"{value!r} is no time; it should look like 90m, 12h or 30d", param, ctx)
        return int(number) * unit


@group()
def token() -> None:
    """Issue, list, replace and revoke tokens of this daemon."""


@command(token)
@click.option("--role", type=click.Choice(ROLES), required=True, help="What its bearer may do.")
@click.option("--agent", metavar="NAME", help="It acts as this agent only.")
@project_option("It reads and changes memories of this project only.")
@click.option("--user", metavar="NAME", help="It reads and changes memories of this author only.")
@click.option("--name", metavar="TEXT", help="Names its bearer in the history.")
@click.option("--days", type=click.IntRange(1, 365), metavar="N", help="Expires after so many days.")
@click.option(
    "--ttl",
    type=_Duration(),
    metavar="TIME",
    help="Expires after this time, as 90m, 12h or 30d (default: auth.defaultTokenTtlSeconds, a week).",
)
def create(
    invocation: Invocation,
    role: str,
    agent: str | None,
    project: str | None,
    user: str | None,
    name: str | None,
    days: int | None,
    ttl: int | None,
) -> None:
    """Issue a token and print it, once: the daemon does not keep it."""
    if days is not None and ttl is not None:
        raise click.UsageError("give either --days or --ttl")
    scope = {key: value for key, value in (("project", project), ("agent", agent), ("user", user)) if value is not None}
    seconds = days * _SECONDS["d"] if days else ttl
    answer = invocation.client().send(
        "POST", "/api/auth/token", {"role": role, "scope": scope, "name": name, "ttlSeconds": seconds}
    )
    limits = f", limited to {_scope_text(scope)}" if scope else ""
    _print_secret(invocation, answer, answer.text("token"), f"role {role}{limits}", answer.body)


@command(token)
@click.argument("token_id", metavar="ID")
def rotate(invocation: Invocation, token_id: str) -> None:
    """Replace a token by a new one with the same rights, and print that."""
    client = invocation.client()
    token_id, is_key = _found(client, token_id)
    if is_key:
        raise InvalidRequest(f"{token_id} is an API key; make a new one with `signet token key`, then revoke this one")
    with named_if_unknown(token_id, kind="token"):
        answer = client.send("POST", fill_path(f"{TOKENS}/{{id}}/rotate", {"id": token_id}), {})
    _print_secret(
        invocation, answer, answer.text("token"), f"in the place of {token_id}, which is revoked", answer.body
    )


@command(token)
@click.argument("name")
@click.option("--connector", metavar="NAME", help="What uses it, as the name of a harness.")
@click.option("--agent", metavar="NAME", help="It acts as this agent only.")
def key(invocation: Invocation, name: str, connector: str | None, agent: str | None) -> None:
    """Issue an API key for a program, which may remember and recall, and print it, once."""
    answer = invocation.client().send("POST", KEYS, {"name": name, "connector": connector, "agentId": agent})
    issued: dict[str, Any] = answer.body.get("apiKey") or {}
    secret = issued.get("key")
    if not isinstance(secret, str):
        raise answer.malformed("no key")
    about = f"an API key{f', limited to agent {agent}' if agent else ''}"
    _print_secret(invocation, answer, secret, about, issued)


def _print_secret(
    invocation: Invocation, answer: DaemonReply, secret: str, about: str, issued: Mapping[str, Any]
) -> None:
    """Print the token alone on standard output, so that it can be piped, and about it on standard error."""
    if invocation.has_printed(answer):
        return
    output.print_result(secret)
    expires = output.full_time_text(issued.get("expiresAt"))
    output.print_message(f"{issued.get('id')}: {about}; {f'expires {expires}' if expires else 'does not expire'}.")


@command(token, "list")
@page_options(1000, "tokens")
def list_tokens(invocation: Invocation, limit: int, offset: int) -> None:
    """List tokens and API keys, newest first.

    On a pipe: id, name, role, scope, created, expires, revoked; separated by tabs.
    """
    answer = invocation.client().get(TOKENS, limit=limit, offset=offset or None)
    found = answer.records("tokens")
    if not invocation.has_printed(answer):
        print_records(COLUMNS, found, none="There are no tokens.")


@command(token)
@click.argument("token_ids", metavar="ID...", nargs=-1, required=True)
def revoke(invocation: Invocation, token_ids: tuple[str, ...]) -> None:
    """Revoke tokens or API keys: they are refused from now on."""
    client = invocation.client()
    for token_id, is_key in [_found(client, given) for given in token_ids]:
        with named_if_unknown(token_id, kind="token"):
            done = client.send("DELETE", fill_path(f"{KEYS if is_key else TOKENS}/{{id}}", {"id": token_id}), {})
        invocation.print_done(done, f"Revoked {output.one_line(token_id)}.")


def _found(client: DaemonClient, given: str) -> tuple[str, bool]:
    """Return the id of the token that begins with ``given``, and whether it is an API key. Raises UnusableId."""
    is_complete(given, shown_by="signet token list")
    rows: list[dict[str, Any]] = []
    while True:
        page = client.get(TOKENS, limit=PAGE, offset=len(rows) or None)
        rows += page.records("tokens")
        if not page.records("tokens") or len(rows) >= page.body.get("total", 0):
            break
    keys = {str(row["id"]) for row in rows if row.get("kind") == "api_key"}
    beginning = [row for row in rows if str(row["id"]).startswith(given)]
    valid = [row for row in beginning if not row.get("revokedAt")]
    token_id = the_one(given, {str(row["id"]): row.get("name") for row in valid or beginning}, "tokens")
    return token_id, token_id in keys


@command()
@click.argument("named", metavar="[URL]", required=False)
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option("--insecure", is_flag=True, help="Also to another machine without TLS, where others can read the token.")
def login(invocation: Invocation, named: str | None, token_stdin: bool, insecure: bool) -> None:
    """Store a token for the daemon at URL, for all programs of this user.

    Without URL: for the daemon that other commands use. The token is asked for without being shown, checked, and stored
    in a file that only you can read.
    """
    address = _address(invocation, named)
    if not (address.secure or insecure or _is_loopback(address.host)):
        raise InvalidRequest(
            f"{address} is another machine and has no TLS: whoever is on the way could read the token;"
            " use an https address, or --insecure"
        )
    secret = _read_token(address, token_stdin=token_stdin)
    body = _whoami(address, secret).body
    if body.get("mode") == "local":
        raise InvalidRequest(f"the daemon at {address} needs no token (auth.mode is local); nothing was stored")
    logins = {**read_logins(invocation.environ), str(address): secret}
    _write(invocation, logins)
    claims: dict[str, Any] = body.get("claims") or {}
    limits = _scope_text(claims.get("scope") or {})
    who = f"{claims.get('sub')}, role {claims.get('role')}{f', limited to {limits}' if limits else ''}"
    invocation.print_done(
        {"url": str(address), **body}, f"Logged in at {address} as {output.one_line(who) if claims else 'an API key'}."
    )
    for name in TOKEN_VARIABLES:
        if invocation.environ.get(name):
            output.print_message(f"warning: {name} is set here, and wins over this login.")
            break


@command()
@click.argument("named", metavar="[URL]", required=False)
def logout(invocation: Invocation, named: str | None) -> None:
    """Remove the token that is stored for the daemon at URL. It stays valid: `signet token revoke` ends it."""
    address = _address(invocation, named)
    logins = read_logins(invocation.environ)
    is_stored = logins.pop(str(address), None) is not None
    if is_stored:
        _write(invocation, logins)
        invocation.print_done({"url": str(address)}, f"Logged out at {address}.")
        return
    known = f" (there are for {', '.join(map(output.one_line, logins))})" if logins else ""
    output.print_message(f"signet: no token is stored for {address}{known}.")
    click.get_current_context().exit(REFUSED)


def _address(invocation: Invocation, url: str | None) -> Address:
    return address_from_url(url, given_by="URL") if url else invocation.address()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_token(address: Address, *, token_stdin: bool) -> str:
    """Return the token. Raises UsageError without input, InvalidRequest for a text that is none."""
    if token_stdin:
        given = sys.stdin.read(MAX_TOKEN_CHARS)
    elif not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal: give the token there, with --token-stdin")
    else:
        given = click.prompt(f"Token for {address}", hide_input=True, err=True)
    given = given.strip()
    if not given or not (given.isascii() and given.isprintable()) or " " in given or len(given) >= MAX_TOKEN_CHARS:
        raise InvalidRequest("that is no token; `signet token create` prints one")
    return given


def _whoami(address: Address, secret: str) -> DaemonReply:
    """Return who the daemon says that the bearer of this token is. Raises SignetError."""
    client = DaemonClient(address, timeout_s=10, headers={"Authorization": f"Bearer {secret}"})
    try:
        answer = client.get("/api/auth/whoami")
        answer.text("mode")
    except RequestRefused as refused:
        if refused.code is not ErrorCode.UNAUTHORIZED:
            raise
        detail = f"the daemon at {address} does not accept this token ({refused.detail}); nothing was stored"
        raise InvalidRequest(detail) from refused
    finally:
        client.close()
    return answer


def _write(invocation: Invocation, logins: Mapping[str, str]) -> None:
    """Store the logins, in a directory and a file that only this user can read. Raises SignetError."""
    path = logins_file(invocation.environ)
    with output.reporting(path, "written", SignetError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        replace_file(path, json.dumps(logins, indent=2).encode() + b"\n")
