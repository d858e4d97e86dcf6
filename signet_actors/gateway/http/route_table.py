"""The route of a path: an index of the declared routes. Source: docs/architecture.md "Messages"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.routing import compile_path

from signet_actors.gateway.http.route import Route

_SLASHES: Final = re.compile("//+")
_ESCAPED_SLASH: Final = re.compile(b"%2[fF]")
_KEPT_SLASH: Final = "\x1f"
"""Stands for an escaped one; no path has this character."""
_NO_PARAMETERS: Final[Mapping[str, str]] = {}


class Endpoint:
    """All routes of one path. ``allow``: its Allow header; ``writes``: methods with an effect of their own."""

    __slots__ = ("_routes", "allow", "path", "writes")

    def __init__(self, path: str, routes: Sequence[Route]) -> None:
        self.path = path
        self._routes = {route.operation.method: route for route in routes}
        operations = {method: route.operation for method, route in self._routes.items()}
        self.writes = frozenset(name for name, each in operations.items() if each.has_effect and not each.performs)
        self.allow = ", ".join(sorted({*self._routes, *(("HEAD",) if "GET" in self._routes else ())}))

    def route(self, method: str) -> Route | None:
        """Return the route for ``method``, where HEAD counts as GET; None if the path has no such method."""
        return self._routes.get("GET" if method == "HEAD" else method)


class RouteTable:
    """An index of ``routes``, built once.

    Paths without parameters are looked up. The others are matched in table order, with patterns that Starlette
    compiles. Starlette's own router tries every pattern of the table, which would cost more than most handlers.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        by_path: dict[str, list[Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, []).append(route)
        self._plain: dict[str, Endpoint] = {}
        self._patterns: list[tuple[re.Pattern[str], Endpoint]] = []
        for path, served in by_path.items():
            endpoint = Endpoint(path, served)
            if "{" in path:
                self._patterns.append((compile_path(path)[0], endpoint))
            else:
                self._plain[path] = endpoint

    def find(self, path: str, raw: bytes = b"") -> tuple[Endpoint, Mapping[str, str]] | None:
        """Return the endpoint at the unescaped ``path`` and its path parameters, or None.

        Trailing and repeated slashes are ignored. A path without parameters takes precedence over a pattern. A slash
        that is escaped in ``raw``, the path as it was sent, may be part of the key of a session.
        """
        endpoint = self._plain.get(path)
        if endpoint is None:
            path = _SLASHES.sub("/", path).rstrip("/") or "/"
            endpoint = self._plain.get(path)
        if endpoint is not None:
            return endpoint, _NO_PARAMETERS
        if _ESCAPED_SLASH.search(raw):
            kept = unquote_to_bytes(_ESCAPED_SLASH.sub(_KEPT_SLASH.encode(), raw)).decode("utf-8", "replace")
            found = self._in_patterns(_SLASHES.sub("/", kept).rstrip("/"))
            if found is not None and all(name == "key" for name, value in found[1].items() if _KEPT_SLASH in value):
                return found[0], {name: value.replace(_KEPT_SLASH, "/") for name, value in found[1].items()}
        return self._in_patterns(path)

    def _in_patterns(self, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        matches = ((pattern.match(path), endpoint) for pattern, endpoint in self._patterns)
        return next(((endpoint, match.groupdict()) for match, endpoint in matches if match is not None), None)
