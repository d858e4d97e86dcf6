"""Attacks on a daemon that serves a team: on its tokens, on the names by which it is reached, and through proxies.

Source: docs/security.md "Attack table"; docs/compatibility.md "Authentication"; docs/guides/team.md.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import msgspec
import pytest

from signet_actors.domain.tokens import sign, verify
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, LiveDaemon, live_daemon
from tests.support.raw_http import HANG_S, split_reply
from tests.support.team import TEAM, UNLIMITED, Team, team_daemon
from tests.system.test_listeners import OverUnixSocket, is_served
from tests.system.test_other_users import ASK_ALL

pytestmark = pytest.mark.system

CANARY = "The canary sings at dawn"
TRUSTED = "gateway: {trustedProxies: [127.0.0.1], allowedHosts: [signet.example.com]}\n"


@pytest.fixture(scope="module", params=["team", "hybrid"])
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    with team_daemon(request.param) as running:
        running.owner.remember(CANARY)
        yield running


@pytest.fixture(autouse=True)
def nothing_changed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did, the memories are as before, and no process died."""
    team = request.getfixturevalue("team") if "team" in request.fixturenames else None
    if team is None:
        yield
        return
    before, children = team.owner.listed(), team.daemon.children()
    yield
    assert (team.owner.listed(), team.daemon.children()) == (before, children)


def exchanged(daemon: LiveDaemon, *lines: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """Return status and everything that is received for a request of these lines."""
    length = [b"Content-Length: %d" % len(body)] if body else []
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"\r\n".join([*lines, *length, b"Connection: close", b"", b""]) + body)
        received = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += part
    reply = split_reply(bytes(received))
    assert reply is not None, received
    return reply[0].status, bytes(received)


# The names and the pages from which a request comes


HOSTS = (
    *("evil.example", "0.0.0.0", "[::]", "localhost.evil.example", "127.0.0.1.nip.io", "127.1", "2130706433", "0x7f.1"),
    *("localhost.", "LOCALHOST:1", "127.0.0.1@evil.example", "evil.example#127.0.0.1", "127.0.0.1:80:80", ""),
)


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_is_not_the_daemons_is_not_answered_with_or_without_a_token(team: Team, host: str) -> None:
    for caller in (team.nobody, team.owner, team.bearer("admin")):
        for target in ("/api/memories", "/health", "/api/auth/whoami"):
            answer = caller.request("GET", target, headers={"Host": host})
            assert answer.status in {400, 421}, (host, target)
            assert CANARY.encode() not in answer.raw


PAGES = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://127.0.0.1"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Mode": "navigate", "Origin": "http://evil.example", "Content-Type": "text/plain"},
    {"Sec-Fetch-Site": "cross-site", "Content-Type": "application/x-www-form-urlencoded"},
)


@pytest.mark.parametrize("page", PAGES)
def test_a_foreign_page_gets_nothing_even_with_the_users_token(team: Team, page: dict[str, str]) -> None:
    for caller in (team.nobody, team.bearer("admin"), team.owner):
        for method, target, body in (
            ("GET", "/api/memories", None),
            ("POST", "/api/memory/remember", b'{"content": "planted"}'),
            ("POST", "/api/auth/token", b'{"role": "admin"}'),
            ("DELETE", "/api/auth/tokens/x", None),
        ):
            answer = caller.request(method, target, body, page)
            assert answer.status in {401, 403, 415}, (page, target)
            assert CANARY.encode() not in answer.raw
            assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_an_upgrade_opens_no_socket(team: Team) -> None:
    upgrade = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: AAAA")
    for origin in (b"Origin: http://evil.example", b"X-Nothing: x"):
        lines = (b"GET /api/memories HTTP/1.1", b"Host: 127.0.0.1", *upgrade, origin)
        status, received = exchanged(team.daemon, *lines)
        mode = team.nobody.get("/api/memories").status
        assert status in {403, 400, mode}
        assert b"101 " not in received.split(b"\r\n")[0]
        assert origin.startswith(b"X-") or CANARY.encode() not in received


# Tokens that are not those that were issued


def spellings(token: str) -> Iterator[str]:
    """Yield other texts that could be taken for the token."""
    payload, _, mac = token.partition(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    last = mac[-1]
    for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        if other != last:
            yield f"{payload}.{mac[:-1]}{other}"
    yield from (f"{payload}=.{mac}", f"{payload}.{mac}=", f"{payload}.{mac}==", f"{payload}.{mac}.", f".{mac}")
    yield from (f"{payload}.", payload, f"{payload}..{mac}", f"{payload}.{mac}.{mac}", f"{payload}%2e{mac}")
    yield from (token.replace("-", "+"), token.replace("_", "/"), token.upper(), token.lower(), token[::-1])
    yield from (f"{token}\u00a0", f"\u00e9{token}", f"{token}\u00ad", f"{payload}.{'A' * 43}", f"{payload}.{mac[:42]}")
    for changed in ({"role": "admin"}, {"scope": {}}, {"exp": 2**40}, {"jti": "x"}, {"alg": "none"}, {"kid": "x"}):
        text = json.dumps({**claims, **changed}, separators=(",", ":")).encode()
        yield f"{base64.urlsafe_b64encode(text).rstrip(b'=').decode()}.{mac}"
    header = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    yield from (
        f"{header}.{payload}.",
        f"{header}.{payload}.{mac}",
        "null",
        "undefined",
        "signet__",
        "signet_a_",
        "x" * 4096,
    )


def test_no_other_spelling_of_a_token_is_accepted(team: Team) -> None:
    issued = team.issue("agent", agent="ada")["token"]
    accepted = []
    for text in spellings(issued):
        if text == issued:
            continue
        answer = team.with_token(text).request("GET", "/api/auth/whoami")
        assert answer.status in {400, 401}, (text, answer.raw)
        accepted += [text] if answer.status == 200 else []
    assert accepted == []
    assert team.with_token(issued).get("/api/auth/whoami").ok()["authenticated"] is True


def test_a_token_of_another_secret_and_a_signed_one_that_was_not_issued_are_refused(team: Team) -> None:
    issued = team.issue("admin")["token"]
    secret = (team.daemon.workspace / ".daemon" / "token-secret").read_bytes()
    claims = verify(secret, issued, int(time.time()))
    team.with_token(sign(secrets.token_bytes(32), claims)).get("/api/memories").refused(401, error="invalid signature")
    for changed in ({"jti": "0" * 18}, {"jti": ""}, {"jti": claims.jti.upper()}):
        forged = sign(secret, msgspec.structs.replace(claims, **changed))
        team.with_token(forged).get("/api/memories").refused(401, error="token revoked")


def test_an_api_key_needs_its_whole_secret_and_its_own_id(team: Team) -> None:
    keys = [
        team.owner.post("/api/auth/api-keys", {"name": "a program"}).json["apiKey"]["key"].split("_") for _ in range(2)
    ]
    (_, first, secret), (_, second, _) = keys
    wrong = (
        *(
            f"signet_{second}_{secret}",
            f"signet_{first}_{secret[:-1]}",
            f"signet_{first}_{secret}0",
            f"signet_{first}_",
        ),
        *(f"signet_{first}_{secret.upper()}", f"SIGNET_{first}_{secret}", f"signet_{first.upper()}_{secret}"),
        *(f"signet__{secret}", f"signet_{first}_{secret}_", f"signet_unknown_{secret}"),
    )
    for text in wrong:
        team.with_token(text).get("/api/memories").refused(401)
    assert team.with_token(f"signet_{first}_{secret}").get("/api/memories").status == 200


def test_a_token_elsewhere_than_in_one_header_is_no_token(team: Team) -> None:
    token = team.issue("admin")["token"]
    anonymous = team.nobody.get("/api/auth/tokens").status
    assert anonymous in {200, 401}
    for name in ("token", "access_token", "authorization", "Authorization", "bearer", "api_key"):
        answer = team.nobody.get("/api/auth/whoami", **{name: token})
        assert answer.status == 401 or answer.json["authenticated"] is False
    for header in ("X-Authorization", "Proxy-Authorization", "X-Api-Key", "Cookie"):
        answer = team.nobody.request("GET", "/api/auth/whoami", headers={header: f"Bearer {token}"})
        assert answer.status == 401 or answer.json["authenticated"] is False
    line = b"Authorization: Bearer " + token.encode()
    start = (b"GET /api/auth/whoami HTTP/1.1", b"Host: 127.0.0.1")
    assert exchanged(team.daemon, *start, line)[0] == 200
    assert exchanged(team.daemon, *start, line, line)[0] == 400
    assert exchanged(team.daemon, *start, line, b"authorization: Bearer a.b")[0] == 400
    assert exchanged(team.daemon, *start, b"Authorization: Bearer a.b,", b" Bearer " + token.encode())[0] in {400, 401}
    owner = b"x-signet-owner-token: " + team.owner.headers["x-signet-owner-token"].encode()
    assert exchanged(team.daemon, *start, owner, owner)[0] == 400
    assert exchanged(team.daemon, *start, owner, b"Authorization: Bearer a.b")[0] == 401, "a sent token counts"


@pytest.mark.parametrize("size", [4_097, 70_000, 1_000_000])
def test_a_very_long_header_is_refused(team: Team, size: int) -> None:
    line = b"Authorization: Bearer " + b"a" * size
    status, received = exchanged(team.daemon, b"GET /api/memories HTTP/1.1", b"Host: 127.0.0.1", line)
    assert status in {400, 401, 431}
    assert CANARY.encode() not in received


@pytest.mark.parametrize("name", ["a\r\nX-Injected: 1", "a\nb", "a\x00b", "a\u2028b", "a\x7fb", "a\x85b"])
def test_a_name_of_several_lines_is_refused_or_told_in_one(team: Team, name: str) -> None:
    for target, body in (("token", {"role": "agent"}), ("api-keys", {})):
        answer = team.owner.post(f"/api/auth/{target}", {**body, "name": name})
        assert not [each for each in answer.headers if "injected" in each]
        if answer.status != 400:
            assert answer.status in {200, 201}
            names = [row["name"] for row in team.owner.get("/api/auth/tokens").ok()["tokens"]]
            assert all(each.isprintable() for each in names)


@pytest.mark.parametrize("killed", [False, True])
def test_a_revoked_token_is_not_accepted_again_also_after_a_kill(team: Team, killed: bool) -> None:
    with team_daemon() if killed else contextlib.nullcontext(team) as serving:
        _replay_while_revoked(serving, killed=killed)


def _replay_while_revoked(team: Team, *, killed: bool) -> None:
    tokens = [team.issue("agent", agent="ada") for _ in range(3)]
    stop = threading.Event()
    accepted_after: list[str] = []
    revoked_at: dict[str, float] = {}

    def replay(issued: dict[str, str]) -> None:
        caller = team.with_token(issued["token"])
        while not stop.is_set():
            sent_at = time.monotonic()
            with contextlib.suppress(OSError, http.client.HTTPException):
                if caller.get("/api/auth/whoami").status == 200 and sent_at > revoked_at.get(issued["id"], sent_at):
                    accepted_after.append(issued["id"])

    threads = [threading.Thread(target=replay, args=(each,)) for each in tokens]
    for each in threads:
        each.start()
    try:
        for number, issued in enumerate(tokens):
            if number == 1:
                team.owner.post(f"/api/auth/tokens/{issued['id']}/rotate").ok()
            else:
                team.owner.request("DELETE", f"/api/auth/tokens/{issued['id']}").ok()
            revoked_at[issued["id"]] = time.monotonic()
            if killed and number == 0:
                team.daemon.kill("gateway")
                team.daemon.wait_ready()
        for _ in range(200):
            team.owner.get("/health")
    finally:
        stop.set()
        for each in threads:
            each.join(HANG_S)
    assert accepted_after == []


# Proxies and other machines


def through_proxy(team: Team, headers: dict[str, str], token: str | None = None) -> Answer:
    sent = {"Host": "signet.example.com", **headers, **({"Authorization": f"Bearer {token}"} if token else {})}
    return team.nobody.request("GET", "/api/memories", headers=sent)


LIES = (
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-For": "127.0.0.1, 127.0.0.1"},
    {"X-Forwarded-For": "203.0.113.7, ::1"},
    {"X-Real-IP": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1;host=localhost;proto=https"},
    {"Via": "1.1 localhost", "Host": "localhost"},
    {"X-Forwarded-Host": "localhost", "X-Forwarded-Proto": "https", "Host": "127.0.0.1"},
    {},
)


@pytest.fixture(scope="module", params=["team", "hybrid"])
def proxied(request: pytest.FixtureRequest) -> Iterator[Team]:
    """A daemon behind a proxy of this machine, so that every request could be one of another machine."""
    with team_daemon(request.param, UNLIMITED + TRUSTED) as running:
        running.owner.remember(CANARY)
        yield running


@pytest.mark.parametrize("headers", LIES)
def test_no_header_of_a_trusted_proxy_makes_a_caller_one_of_this_machine(
    proxied: Team, headers: dict[str, str]
) -> None:
    answer = through_proxy(proxied, headers)
    answer.refused(401, error="authentication required")
    assert through_proxy(proxied, headers, proxied.issue("readonly")["token"]).status == 200
    if headers:  # the owner's token is for programs of this machine, and a proxy may have been told it
        through_proxy(proxied, {**proxied.owner.headers, **headers}).refused(401)


@pytest.mark.parametrize("headers", [lie for lie in LIES if lie and "Host" not in lie])
def test_a_proxy_that_is_not_trusted_is_refused_with_every_token(team: Team, headers: dict[str, str]) -> None:
    for caller in (team.nobody, team.owner, team.bearer("admin")):
        answer = caller.request("GET", "/api/memories", headers=headers)
        answer.refused(403)
        assert CANARY.encode() not in answer.raw


PEER = """
import http.client, json, sys
host, port = sys.argv[1], int(sys.argv[2])
for line in sys.stdin:
    target, headers = json.loads(line)
    try:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        connection.request("GET", target, None, headers)
        response = connection.getresponse()
        print(json.dumps([response.status, response.read().decode("utf-8", "replace")]))
    except OSError as error:
        print(json.dumps([0, str(error)]))
    sys.stdout.flush()
"""


class Network:
    """Another machine: a network namespace with one cable to this one."""

    def __init__(self) -> None:
        number = os.getpid() % 200 + 20
        self.name, self.cable = f"sgt{os.getpid()}", f"sgt{os.getpid() % 100000}"
        self.here, self.there = f"10.213.{number}.1", f"10.213.{number}.2"

    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            pytest.skip("making a network namespace needs root")
        made = self._run("ip", "netns", "add", self.name)
        if made.returncode:
            pytest.skip(f"a network namespace cannot be made: {made.stderr.decode().strip()}")
        for words in (
            ["link", "add", f"{self.cable}a", "type", "veth", "peer", "name", f"{self.cable}b", "netns", self.name],
            ["addr", "add", f"{self.here}/24", "dev", f"{self.cable}a"],
            ["link", "set", f"{self.cable}a", "up"],
            ["-n", self.name, "addr", "add", f"{self.there}/24", "dev", f"{self.cable}b"],
            ["-n", self.name, "link", "set", f"{self.cable}b", "up"],
        ):
            done = self._run("ip", *words)
            if done.returncode:
                self.__exit__()
                pytest.skip(f"a cable cannot be made: {done.stderr.decode().strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._run("ip", "link", "del", f"{self.cable}a")
        self._run("ip", "netns", "del", self.name)

    def asked(self, port: int, requests: list[tuple[str, dict[str, str]]]) -> list[tuple[int, str]]:
        """Return status and body of each request of the other machine, status 0 if it could not connect."""
        lines = "".join(json.dumps(each) + "\n" for each in requests).encode()
        words = ["ip", "netns", "exec", self.name, sys.executable, "-c", PEER, self.here, str(port)]
        done = subprocess.run(words, input=lines, capture_output=True, timeout=120, check=True)
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    @staticmethod
    def _run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(words, capture_output=True, timeout=30, check=False)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.mark.parametrize("trusted", [False, True], ids=["not trusted", "trusted"])
@pytest.mark.parametrize("mode", ["team", "hybrid"])
def test_a_request_of_another_machine_counts_as_one_whatever_it_says(
    network: Network, mode: str, trusted: bool
) -> None:
    here, proxy = network.here, network.there if trusted else "192.0.2.1"
    gateway = f"gateway: {{host: {here}, trustedProxies: [{proxy}], allowedHosts: [{here}]}}\n"
    with daemon_at(here, mode, gateway) as daemon:
        token = by_owner(daemon, "/api/auth/token", {"role": "readonly"})["token"]
        hosts = itertools.product(("localhost", "127.0.0.1", here), LIES[:5])
        asked: list[tuple[str, dict[str, str]]] = [
            *(("/api/memories", {**lie, "Host": host}) for host, lie in hosts),
            ("/api/memories", {"Host": here, **daemon.owner.headers}),
            ("/api/memories", {"Host": here, "Authorization": "Bearer a.b"}),
            ("/health", {"Host": here}),
            ("/api/memories", {"Host": here, "Authorization": f"Bearer {token}"}),
        ]
        port = json.loads((daemon.workspace / ".daemon" / "address").read_bytes())["port"]
        *refused, health, bearer = network.asked(port, asked)
        assert {status for status, _ in refused} <= {401, 403, 421}
        assert CANARY not in str(refused)
        assert (health[0], bearer[0]) == ((200, 200) if trusted else (403, 403))
        assert (CANARY in bearer[1]) is trusted


@contextlib.contextmanager
def daemon_at(host: str, mode: str, gateway: str) -> Iterator[LiveDaemon]:
    """Run a daemon that listens on ``host`` beside its Unix socket, with one memory."""
    with live_daemon(config=TEAM.format(mode=mode) + UNLIMITED + gateway, started=False) as daemon:
        daemon.launch()
        eventually(lambda: is_served(lambda: OverUnixSocket(daemon)), within_s=60)
        by_owner(daemon, "/api/memory/remember", {"content": CANARY})
        yield daemon


def by_owner(daemon: LiveDaemon, target: str, body: dict[str, str]) -> Any:
    """Return the reply to a request of the owner over the Unix socket."""
    with contextlib.closing(OverUnixSocket(daemon)) as connection:
        headers = {"Content-Type": "application/json", **daemon.owner.headers}
        connection.request("POST", target, json.dumps(body), headers)
        response = connection.getresponse()
        assert response.status == 200
        return json.loads(response.read())


def test_wrong_tokens_are_slowed_down_and_lock_nobody_out() -> None:
    limits = "  rateLimits: {wrongTokens: {max: 5}}\n"
    with team_daemon(more=limits + TRUSTED) as team:
        token = team.issue("readonly")["token"]
        via, other = {"X-Forwarded-For": "192.0.2.1, 203.0.113.7"}, {"X-Forwarded-For": "203.0.113.7, 203.0.113.8"}
        assert [through_proxy(team, via, "a.b").status for _ in range(6)] == [401] * 5 + [429]
        refused = through_proxy(team, {"X-Forwarded-For": "203.0.113.7"}, "signet_a_b")
        assert 0 < refused.refused(429, error="rate limit exceeded")["retryAfter"] <= 60_000
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert through_proxy(team, via, token).status == 200, "a valid token is accepted from the same address"
        through_proxy(team, other, "a.b").refused(401)
        through_proxy(team, via).refused(401, error="authentication required")
        team.with_token("a.b").get("/api/memories").refused(401)
        assert team.owner.get("/api/memories").status == 200


def test_an_autonomous_actor_stays_one_whatever_its_headers_say(team: Team) -> None:
    pinned = team.owner.remember("The pinned canary stays", pinned=True)["id"]
    for caller in (team.bearer("agent"), team.bearer("readonly"), team.key()):
        for kind in ("operator", "human", "user", "daemon", "sdk", "OPERATOR ", ""):
            actor = caller.acting(x_signet_actor_type=kind, x_signet_actor="owner")
            for target in (f"/api/memory/{pinned}?force=true", f"/api/memory/{pinned}"):
                answer = actor.request("DELETE", target, {"reason": "r", "force": True, "changed_by": "owner"})
                assert answer.status in {403, 409}, (kind, answer.raw)
            answer = actor.post(
                "/api/memory/forget", {"ids": [pinned], "mode": "execute", "force": True, "reason": "r"}
            )
            assert answer.status in {400, 403}, (kind, answer.raw)
            assert actor.post("/api/memory/review-queue/x/approve", {}).status in {403, 404}
            for method, target in (
                ("GET", "/api/config"),
                ("POST", "/api/config"),
                ("POST", "/api/auth/token"),
                ("GET", "/api/auth/tokens"),
                ("POST", "/api/repair/retention-sweep"),
            ):
                actor.request(method, target, {} if method == "POST" else None).refused(403)
    assert team.owner.memory(pinned)["pinned"] == 1
    assert team.owner.request("DELETE", f"/api/memory/{pinned}", {"reason": "r", "force": True}).status == 200


def test_another_user_of_the_machine_needs_a_token_and_keeps_to_it(team: Team) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    token = team.issue("agent", agent="ada")["token"]
    script = ASK_ALL.split("for line")[0] + PEER[PEER.index("for line") :].replace("host, port", '"127.0.0.1", port')
    asked: list[tuple[str, dict[str, str]]] = [
        ("/api/memories", {}),
        ("/api/auth/tokens", {}),
        ("/api/config", {"x-signet-owner-token": "0" * 64}),
        ("/api/memories", {"Authorization": "Bearer a.b"}),
        ("/api/memories", {"Authorization": f"Bearer {token}"}),
        ("/api/config", {"Authorization": f"Bearer {token}"}),
    ]
    lines = "".join(json.dumps(each) + "\n" for each in asked).encode()
    words = [sys.executable, "-c", script, str(team.daemon.port)]
    done = subprocess.run(words, input=lines, capture_output=True, timeout=60, check=True)
    *refused, own, config = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert {status for status, _ in refused} <= {401, 403}
    assert CANARY not in str(refused)
    assert (own[0], config[0]) == (200, 403)
