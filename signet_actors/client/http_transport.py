"""What both clients share of httpx: the options, and what its exceptions mean.

Proxies and ``.netrc`` are not used: the daemon is on this machine, refuses requests through a proxy, and must be the
only one to receive its token.

Source: docs/decisions.md 41.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from signet_actors.client.encoding import HttpReply
from signet_actors.client.exchange import Caller, Limits, Loss, Lost, Send
from signet_actors.client.location import Location
from signet_actors.errors import InvalidRequest

MAX_CONNECTIONS: Final = 100
MAX_REPLY_BYTES: Final = 64 * 1024 * 1024
PHASES: Final = ("pool", "connect", "write", "read")
MIN_WAIT_S: Final = 0.001
DEFAULT_ACTOR: Final = "python-client"
DEFAULT_ACTOR_TYPE: Final = "sdk"


def make_caller(
    location: Location,
    limits: Limits,
    *,
    token: str | None,
    agent: str | None,
    session: str | None,
    actor: str | None,
    actor_type: str | None,
) -> Caller:
    """Return the caller with the headers of this identity. Raises ValueError for a value that no header can have."""
    secret = location.credential(token)
    given = {
        "authorization": None if secret is None else f"Bearer {secret}",
        "x-signet-agent-id": agent,
        "x-signet-session-key": session,
        "x-signet-session-id": session,
        "x-signet-actor": DEFAULT_ACTOR if actor is None else actor,
        "x-signet-actor-type": DEFAULT_ACTOR_TYPE if actor_type is None else actor_type,
    }
    headers = {name: value.strip() for name, value in given.items() if value is not None}
    for name, value in headers.items():
        if not value.isprintable():
            shown = "the token" if name == "authorization" else f"{name} {value!r}"
            raise ValueError(f"{shown} has a character that a header cannot have")
    return Caller(location, limits, headers, has_token=token is not None or secret is not None)


def client_options(location: Location) -> dict[str, Any]:
    """Return the options of an httpx client. Without TLS it loads no certificates, which takes 40 ms."""
    return {"verify": location.secure, "trust_env": False, "follow_redirects": False, "limits": connections()}


def connections() -> httpx.Limits:
    return httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS)


def build_request(client: httpx.Client | httpx.AsyncClient, send: Send) -> httpx.Request:
    """Return the request; header values are sent as UTF-8. Raises InvalidRequest for a URL that httpx cannot use."""
    headers = [(name.encode(), value.encode()) for name, value in send.headers.items()]
    headers.append((b"accept-encoding", b"identity"))  # the body is read as it comes
    extensions = {"timeout": TimeLeft(time.monotonic() + send.timeout_s)}
    try:
        return client.build_request(send.method, send.url, headers=headers, content=send.body, extensions=extensions)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"{send.url} is not a URL ({error})") from error


class TimeLeft(Mapping[str, float]):
    """The timeouts of a request for httpx: each phase (``pool``, ``connect``, ``write``, ``read``) may take what the
    earlier ones have left of its time.
    """

    def __init__(self, ends_s: float) -> None:
        self._ends_s = ends_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._ends_s

    def __getitem__(self, phase: str) -> float:
        return max(self._ends_s - time.monotonic(), MIN_WAIT_S)

    def __iter__(self) -> Iterator[str]:
        return iter(PHASES)

    def __len__(self) -> int:
        return len(PHASES)


class Body:
    """The body of a response while it is read: its chunks, the time by which it must end, and its size."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._time_left: TimeLeft = response.request.extensions["timeout"]
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Add a chunk. Raises httpx.ReadTimeout and httpx.ReadError: httpx limits only the wait for each chunk."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._time_left.is_over:
            raise httpx.ReadTimeout("the response did not end in time")
        if self._size > MAX_REPLY_BYTES:
            raise httpx.ReadError("the response is too large")

    def reply(self) -> HttpReply:
        """Return the whole response."""
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return HttpReply(self._response.status_code, headers, b"".join(self._chunks))


def lost(error: httpx.RequestError, url: str) -> Lost:
    """Return what a failed request means: whether the daemon may have received it. Raises an error of our making."""
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        raise error
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Lost(Loss.NOT_SENT, f"no daemon answers at {address}")
    if isinstance(error, httpx.PoolTimeout):
        return Lost(Loss.NO_CONNECTION, f"all {MAX_CONNECTIONS} connections to {address} were in use")
    if isinstance(error, httpx.TimeoutException):
        return Lost(Loss.TIMED_OUT, f"no answer in time from {address}")
    return Lost(Loss.BROKEN, f"the connection to {address} was lost")
