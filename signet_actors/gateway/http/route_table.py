"""The route table, indexed: which endpoint a path means, and what its parameters are.

Paths without parameters are looked up; the others are matched in the order of the table by the patterns that
Starlette compiles. Trying every pattern of the table, as Starlette's own router does, would cost more than most
handlers.

Source: docs/architecture.md "Messages"; docs/decisions.md 40.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.routing import compile_path

from signet_actors.gateway.http.route import Route

_SLASHES: Final = re.compile("//+")
_NO_PARAMETERS: Final[Mapping[str, str]] = {}


class Endpoint:
    """Everything that is served at one path. ``allow`` is the value of an Allow header."""

    __slots__ = ("_routes", "allow", "path")

    def __init__(self, path: str, routes: Sequence[Route]) -> None:
        self.path = path
        self._routes = {route.method: route for route in routes}
        self.allow = ", ".join(sorted({*self._routes, *(("HEAD",) if "GET" in self._routes else ())}))

    def route(self, method: str) -> Route | None:
        """The route for ``method``, where HEAD is a GET; None when the path knows no such method."""
        return self._routes.get("GET" if method == "HEAD" else method)


class RouteTable:
    """An index over ``routes``, made once."""

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

    def find(self, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        """The endpoint at ``path`` (unescaped) and its path parameters; None when nothing is served there.

        A trailing slash and doubled slashes do not count. A path without parameters beats a pattern.
        """
        endpoint = self._plain.get(path)
        if endpoint is None:
            path = _SLASHES.sub("/", path).rstrip("/") or "/"
            endpoint = self._plain.get(path)
        if endpoint is not None:
            return endpoint, _NO_PARAMETERS
        for pattern, patterned in self._patterns:
            match = pattern.match(path)
            if match is not None:
                return patterned, match.groupdict()
        return None
