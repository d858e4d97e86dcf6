"""JSON calls to one HTTP server, each bounded in time and in bytes.

A call has one deadline from the first byte sent to the last one read: a timeout per read lets a server that drips a
byte a second hold a call for ever. The body is counted while it comes and never unpacked, so that neither a 200 with a
gigabyte nor a small one that inflates to it is held. Redirects are not followed: a prompt goes to the server that the
configuration names and to no other. Proxy settings of the environment count for other machines only.

The library is imported when the first server is to be called: a process that found nobody to call carries 9 MB less.

Source: memory-pipeline.txt "Provider Abstraction" (status and the first 200 characters of the body);
docs/reliability.md R11; docs/decisions.md 27.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from signet_actors.config.checks import is_loopback
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.log_sanitizing import drop_if_echoed, on_one_line, sanitize

if TYPE_CHECKING:
    import httpx

MAX_RETRY_AFTER_MS: Final = 3_600_000
CONNECT_TIMEOUT_S: Final = 5.0
"""A machine that is switched off answers nothing at all; that is not worth the deadline of a generation."""
_ERROR_BODY_BYTES: Final = 4096
_UNAVAILABLE_STATUSES: Final = frozenset({502, 503, 504})
"""What a proxy or a loading server says in the provider's place."""
_PRIVATE_FIELDS: Final = ("prompt", "messages", "content", "input")
_REFUSED_STATUSES: Final = frozenset({401, 403, 404})

T = TypeVar("T")


def preload() -> None:
    """Import what the first call would: for an interpreter that stands by."""
    import httpx  # noqa: PLC0415 - see the module

    httpx.AsyncClient(trust_env=False, transport=httpx.AsyncHTTPTransport(trust_env=False))
    for module in ("anyio", "anyio._backends._asyncio"):
        with suppress(ImportError):
            import_module(module)


class HttpCalls:
    """Calls below ``endpoint``, with ``key`` as bearer token when there is one. One event loop only.

    ``name`` is how error messages call the server.
    """

    def __init__(self, name: str, endpoint: str, *, key: str | None = None, max_bytes: int) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._name = name
        self._key = key
        self._max_bytes = max_bytes
        secure = self.endpoint.startswith("https:")
        headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "signet-actors"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        import httpx  # noqa: PLC0415 - see the module

        try:
            self._client = httpx.AsyncClient(
                headers=headers,
                follow_redirects=False,
                trust_env=not is_loopback(urlsplit(self.endpoint).hostname or ""),
                # Certificates are loaded at some cost and only where there is one to check.
                verify=httpx.create_ssl_context() if secure else False,
                timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
                limits=httpx.Limits(max_keepalive_connections=4, keepalive_expiry=5.0),
            )
        # A proxy of a kind that is not supported, a certificate file that is not there: all from the environment.
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            raise self._error(
                ProviderErrorKind.REFUSED,
                f"cannot be called with the proxy or certificates of the environment ({error})",
            ) from error

    async def close(self) -> None:
        """No connection is left."""
        await self._client.aclose()

    async def post(self, path: str, body: Any, shape: type[T], *, timeout_ms: int) -> T:
        """The server's answer to ``body`` as ``shape``. Raises ``ProviderError``."""
        return await self._call("POST", path, body, shape, timeout_ms)

    async def get(self, path: str, shape: type[T], *, timeout_ms: int) -> T:
        """What the server has under ``path`` as ``shape``. Raises ``ProviderError``."""
        return await self._call("GET", path, None, shape, timeout_ms)

    async def _call(self, method: str, path: str, body: Any, shape: type[T], timeout_ms: int) -> T:
        url = f"{self.endpoint}{path}"
        headers = {"content-type": "application/json"} if body is not None else {}
        import httpx  # noqa: PLC0415 - see the module

        try:
            async with (
                asyncio.timeout(timeout_ms / 1000),
                self._client.stream(
                    method, url, content=None if body is None else msgspec.json.encode(body), headers=headers
                ) as response,
            ):
                if response.status_code != HTTPStatus.OK:
                    said = drop_if_echoed(await self._error_body(response), _texts(body))
                    raise self._status_error(response, said)
                content = await self._content(response)
        except TimeoutError as error:
            raise self._error(ProviderErrorKind.TIMEOUT, f"gave no answer within {timeout_ms} ms") from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise self._error(
                ProviderErrorKind.UNAVAILABLE, f"cannot be reached at {self.endpoint} ({_describe(error)})"
            ) from error
        except httpx.HTTPError as error:
            # The request was taken up, and may itself be what broke the server.
            raise self._error(ProviderErrorKind.HTTP, f"broke the connection off ({_describe(error)})") from error
        except RuntimeError as error:  # what the library says of a client that has been closed
            raise self._error(ProviderErrorKind.UNAVAILABLE, "is not called any more") from error
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise self._error(ProviderErrorKind.REFUSED, f"cannot be called ({type(error).__name__})") from error
        try:
            return msgspec.json.decode(content, type=shape)
        # Neither of the last two is a msgspec error, and both come from what a server sent.
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            told = on_one_line(response.headers.get("content-type", "no content type"))[:60]
            raise self._error(
                ProviderErrorKind.MALFORMED, f"answered with something that is not the expected JSON ({told})"
            ) from error

    async def _content(self, response: httpx.Response) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise self._error(ProviderErrorKind.MALFORMED, "packed its answer although it was asked not to")
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > self._max_bytes:
                raise self._error(ProviderErrorKind.MALFORMED, f"answered with more than {self._max_bytes} bytes")
            parts.append(part)
        return b"".join(parts)

    async def _error_body(self, response: httpx.Response) -> str:
        """The beginning of an error's body, as text."""
        begun = b""
        async for part in response.aiter_raw():
            begun += part[:_ERROR_BODY_BYTES]
            if len(begun) >= _ERROR_BODY_BYTES:
                break
        return sanitize(begun, self._key)

    def _status_error(self, response: httpx.Response, said: str) -> ProviderError:
        status = response.status_code
        detail = f"answered {status}" + (f": {said}" if said else "")
        retry_after_ms = _retry_after_ms(response.headers.get("retry-after"))
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            kind = ProviderErrorKind.RATE_LIMITED
        elif status in _UNAVAILABLE_STATUSES:
            kind = ProviderErrorKind.UNAVAILABLE
        elif status in _REFUSED_STATUSES:
            kind = ProviderErrorKind.REFUSED
        else:
            kind = ProviderErrorKind.HTTP
        return ProviderError(kind, f"{self._name} {detail}", retry_after_ms=retry_after_ms, status=status)

    def _error(self, kind: ProviderErrorKind, words: str) -> ProviderError:
        return ProviderError(kind, f"{self._name} {words}")


def _texts(body: Any) -> Iterator[str]:
    """What a request's body says that is somebody's: prompts, and texts to embed."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, list | tuple):
        for value in body:
            yield from _texts(value)
    elif isinstance(body, dict):
        for name in _PRIVATE_FIELDS:
            yield from _texts(body.get(name))


def _describe(error: Exception) -> str:
    """What an HTTP library's error says; these speak of sockets and protocols, never of contents."""
    said = on_one_line(str(error))[:80]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _retry_after_ms(value: str | None) -> int | None:
    """``Retry-After`` in either of its forms, at most an hour; None when there is none that makes sense."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(int(value.strip()[:9]) * 1000, MAX_RETRY_AFTER_MS)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a megabyte that few servers make use of

    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    wait_ms = int((moment - datetime.now(UTC)).total_seconds() * 1000)
    return max(0, min(wait_ms, MAX_RETRY_AFTER_MS))
