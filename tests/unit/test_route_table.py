"""The route of a path."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest

from signet_actors.gateway.http.route import HttpResponse, Route
from signet_actors.gateway.http.route_table import RouteTable
from signet_actors.gateway.routes import ROUTES
from tests.support.routes import plain_route

TABLE = RouteTable(ROUTES)


async def handler(_: Any) -> HttpResponse:
    return HttpResponse({})


def table(*rows: str) -> RouteTable:
    """A table of routes like ``GET /a/{b}``."""
    return RouteTable([plain_route(*row.split(" "), handler) for row in rows])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.operation.method} {route.path}")
def test_every_route_of_the_table_is_found_at_its_own_path(route: Route) -> None:
    names = re.findall(r"\{(\w+)\}", route.path)
    path = route.path
    for name in names:
        path = path.replace("{" + name + "}", f"a-{name}")
    found = TABLE.find(path)
    assert found is not None
    endpoint, parameters = found
    assert endpoint.route(route.operation.method) is route
    assert parameters == {name: f"a-{name}" for name in names}


def test_a_path_without_parameters_takes_precedence_over_a_pattern() -> None:
    for rows in (("GET /a/{id}", "GET /a/b"), ("GET /a/b", "GET /a/{id}")):
        found = table(*rows).find("/a/b")
        assert found is not None
        assert found[0].path == "/a/b"


@pytest.mark.parametrize("path", ["/a/b/", "//a/b", "/a//b", "/a/b///"])
def test_extra_slashes_are_ignored(path: str) -> None:
    found = table("GET /a/b").find(path)
    assert found is not None
    assert found[0].path == "/a/b"


def test_a_parameter_is_one_path_segment() -> None:
    found = table("GET /a/{id}/c/{d}").find("/a/x.y ü%/c/{d}")
    assert found is not None
    assert found[1] == {"id": "x.y ü%", "d": "{d}"}


def test_an_escaped_slash_is_part_of_the_key_of_a_session_and_of_nothing_else() -> None:
    routes = table("GET /s/{key}", "GET /s/{key}/c", "GET /m/{id}", "GET /a/b")
    for raw, path, parameters in (
        ("/s/a%2Fb", "/s/{key}", {"key": "a/b"}),
        ("/s/a%2fb/c/", "/s/{key}/c", {"key": "a/b"}),
        ("/s/%2Fa%2F%2Fb%2F", "/s/{key}", {"key": "/a//b/"}),
        ("//s/a%2Fc", "/s/{key}", {"key": "a/c"}),
        ("/s/a%252Fb", "/s/{key}", {"key": "a%2Fb"}),
        ("/s/a/c", "/s/{key}/c", {"key": "a"}),
        ("/a%2Fb", "/a/b", {}),
    ):
        found = routes.find(unquote(raw), raw.encode())
        assert found is not None, raw
        assert (found[0].path, found[1]) == (path, parameters), raw
    for raw in ("/m/a%2Fb", "/s/a/b", "/x%2Fb"):
        assert routes.find(unquote(raw), raw.encode()) is None, raw


def test_head_is_served_as_get_and_options_is_not_allowed() -> None:
    found = table("GET /a", "POST /a").find("/a")
    assert found is not None
    endpoint = found[0]
    assert endpoint.route("HEAD") is endpoint.route("GET")
    assert endpoint.route("OPTIONS") is None
    assert endpoint.route("DELETE") is None
    assert endpoint.allow == "GET, HEAD, POST"


def test_dots_in_a_template_are_literal() -> None:
    assert table("GET /{a}/x.json").find("/1/xyjson") is None


@pytest.mark.parametrize("path", ["/", "/a", "/a/", "/a/b/c", "/A/b", "a/b", "", "/a/b/x"])
def test_an_unknown_path_has_no_route(path: str) -> None:
    assert table("GET /a/{id}").find(path) is None
