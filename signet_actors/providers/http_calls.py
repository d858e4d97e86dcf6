"""JSON calls to one HTTP server, each bounded in time and size.

One deadline covers the whole call; a timeout per read would let a slow server hold a call for ever. The body is bounded
while it streams, and may not be compressed. Redirects are not followed, so a prompt goes only to the configured server.
Proxies of the environment are for remote hosts only. httpx (9 MB) is imported at the first use.

Source: memory-pipeline.txt "Provider Abstraction" (status, first 200 characters of the body); docs/reliability.md R11;
docs/decisions.md 27.
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
"""Connecting has a shorter timeout than a generation, because a machine that is switched off does not answer at all."""
_ERROR_BODY_BYTES: Final = 4096
_UNAVAILABLE_STATUSES: Final = frozenset({502, 503, 504})
"""Statuses that a proxy or a server that is still loading returns in place of the provider."""
_PRIVATE_FIELDS: Final = ("prompt", "messages", "content", "input")
_REFUSED_STATUSES: Final = frozenset({401, 403, 404})

T = TypeVar("T")


def preload() -> None:
    """Import the modules that the first call needs; for a standby process."""
    import httpx  # noqa: PLC0415 - see the module

    httpx.AsyncClient(trust_env=False, transport=httpx.AsyncHTTPTransport(trust_env=False))
    for module in ("anyio", "anyio._backends._asyncio"):
        with suppress(ImportError):
            import_module(module)


class HttpCalls:
    """A client of the server ``name`` below ``endpoint``, with ``key`` as bearer token. For one event loop."""

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
                # Loading certificates is slow, so do it for https only.
                verify=httpx.create_ssl_context() if secure else False,
                timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
                limits=httpx.Limits(max_keepalive_connections=4, keepalive_expiry=5.0),
            )
        # An unsupported kind of proxy or a missing certificate file, both from environment variables.
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            raise self._error(
                ProviderErrorKind.REFUSED,
                f"cannot be called with the proxy or certificates from the environment variables ({error})",
            ) from error

    async def close(self) -> None:
        await self._client.aclose()

    async def post(self, path: str, body: Any, shape: type[T], *, timeout_ms: int, max_bytes: int | None = None) -> T:
        """POST ``body`` as JSON and decode at most ``max_bytes`` as ``shape``. Raises ``ProviderError``."""
        return await self._call("POST", path, body, shape, timeout_ms, max_bytes)

    async def get(self, path: str, shape: type[T], *, timeout_ms: int) -> T:
        """GET ``path`` and decode the response as ``shape``. Raises ``ProviderError``."""
        return await self._call("GET", path, None, shape, timeout_ms)

    async def _call(
        self, method: str, path: str, body: Any, shape: type[T], timeout_ms: int, max_bytes: int | None = None
    ) -> T:
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
                content = await self._content(response, self._max_bytes if max_bytes is None else max_bytes)
        except TimeoutError as error:
            raise self._error(ProviderErrorKind.TIMEOUT, f"did not respond within {timeout_ms} ms") from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise self._error(
                ProviderErrorKind.UNAVAILABLE, f"cannot be reached at {self.endpoint} ({_describe(error)})"
            ) from error
        except httpx.HTTPError as error:
            # The server accepted the request, and the request itself may have crashed it.
            raise self._error(
                ProviderErrorKind.HTTP, f"closed the connection before its response was complete ({_describe(error)})"
            ) from error
        except RuntimeError as error:  # raised by httpx when the client has been closed
            raise self._error(ProviderErrorKind.UNAVAILABLE, "is no longer used") from error
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise self._error(ProviderErrorKind.REFUSED, f"cannot be called ({type(error).__name__})") from error
        try:
            return msgspec.json.decode(content, type=shape)
        # The last two are not msgspec errors, but content from the server can cause them.
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            told = on_one_line(response.headers.get("content-type", "no content type"))[:60]
            raise self._error(
                ProviderErrorKind.MALFORMED, f"responded with something other than the expected JSON ({told})"
            ) from error

    async def _content(self, response: httpx.Response, max_bytes: int) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise self._error(ProviderErrorKind.MALFORMED, "compressed its response although the request forbids it")
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > max_bytes:
                raise self._error(ProviderErrorKind.MALFORMED, f"responded with more than {max_bytes} bytes")
            parts.append(part)
        return b"".join(parts)

    async def _error_body(self, response: httpx.Response) -> str:
        """Return the beginning of an error response's body, sanitized."""
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
    """Yield the user's texts in a request body: prompts, and texts to embed."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, list | tuple):
        for value in body:
            yield from _texts(value)
    elif isinstance(body, dict):
        for name in _PRIVATE_FIELDS:
            yield from _texts(body.get(name))


def _describe(error: Exception) -> str:
    """Describe an error of the HTTP library; such errors mention sockets and protocols, never contents."""
    said = on_one_line(str(error))[:80]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _retry_after_ms(value: str | None) -> int | None:
    """Parse ``Retry-After`` in either of its forms, at most an hour; None if it is missing or invalid."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(int(value.strip()[:9]) * 1000, MAX_RETRY_AFTER_MS)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - costs a megabyte and is rarely needed

    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    wait_ms = int((moment - datetime.now(UTC)).total_seconds() * 1000)
    return max(0, min(wait_ms, MAX_RETRY_AFTER_MS))
