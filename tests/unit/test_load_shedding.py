"""Which requests are admitted by their heads; and the bytes of prebuilt rejections."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from signet_actors.errors import ErrorCode
from signet_actors.gateway.app import Application
from signet_actors.gateway.http.responses import CACHE_TTL_NS, EncodedResponse, ResponseCache
from signet_actors.gateway.http.route_table import RouteTable
from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.server import load_shedding
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.framing import (
    BUSY,
    MAX_PLAIN_BYTES,
    Framing,
    PrebuiltBusyResponse,
    RequestRejected,
    rejection_response,
    response_bytes,
)
from signet_actors.gateway.server.load_shedding import LARGE_BODY_BYTES, MAX_STATUS_PROBES, ServerContext

NO_BODY = Framing(0, False)
ONE = ConnectionLimits(max_in_flight=1)


def full() -> ServerContext:
    """A read and a change are inside, and there is room for no other."""
    server_context = ServerContext(ONE, lambda: "trace", lambda method, path: method != b"GET")
    for method in (b"GET", b"POST"):
        inside = load_shedding.admit(server_context, ONE, method, b"/a", NO_BODY, is_served=True)
        assert inside is not None
        assert inside.complete_body(ONE)
    return server_context


def test_without_free_slots_a_short_request_is_shed_and_a_large_upload_stopped() -> None:
    server_context = full()
    assert load_shedding.admit(server_context, ONE, b"GET", b"/a", NO_BODY, is_served=True) is None
    assert load_shedding.admit(server_context, ONE, b"POST", b"/a", Framing(10, False), is_served=True) is None
    for framing in (Framing(LARGE_BODY_BYTES + 1, False), Framing(0, True)):
        with pytest.raises(RequestRejected) as refused:
            load_shedding.admit(server_context, ONE, b"POST", b"/a", framing, is_served=True)
        assert refused.value.rejection is BUSY


@pytest.mark.parametrize("target", [b"/health", b"/health?full=1", b"/health/ready"])
@pytest.mark.parametrize("is_served", [True, False])
def test_health_requests_are_always_admitted(target: bytes, is_served: bool) -> None:
    server_context = full()
    for _ in range(100):
        assert load_shedding.admit(server_context, ONE, b"GET", target, NO_BODY, is_served=is_served) is not None


@pytest.mark.parametrize("path", sorted(load_shedding.STATUS_PATHS))
@pytest.mark.parametrize("is_served", [True, False])
def test_status_probes_are_admitted_up_to_their_limit(path: bytes, is_served: bool) -> None:
    server_context = full()
    asked = [
        load_shedding.admit(server_context, ONE, b"GET", path, NO_BODY, is_served=is_served)
        for _ in range(MAX_STATUS_PROBES)
    ]
    assert [one.probe_path for one in asked if one is not None] == [path] * MAX_STATUS_PROBES
    if is_served:
        assert load_shedding.admit(server_context, ONE, b"GET", path, NO_BODY, is_served=True) is None
    else:
        with pytest.raises(RequestRejected):
            load_shedding.admit(server_context, ONE, b"GET", path, NO_BODY, is_served=False)
    (other,) = load_shedding.STATUS_PATHS - {path}
    assert load_shedding.admit(server_context, ONE, b"GET", other, NO_BODY, is_served=is_served) is not None
    for one in asked:
        assert one is not None
        one.release()
        one.release()
        assert load_shedding.admit(server_context, ONE, b"GET", path, NO_BODY, is_served=is_served) is not None
    assert server_context.admission.status_probes[path] == MAX_STATUS_PROBES


@pytest.mark.parametrize(
    ("method", "target", "framing"),
    [
        (b"POST", b"/metrics", NO_BODY),
        (b"GET", b"/metrics", Framing(1, False)),
        (b"GET", b"/metrics/x", NO_BODY),
        (b"POST", b"/health", Framing(1, False)),
        (b"GET", b"/healthy", NO_BODY),
    ],
)
def test_other_requests_are_not_status_probes(method: bytes, target: bytes, framing: Framing) -> None:
    assert load_shedding.admit(full(), ONE, method, target, framing, is_served=True) is None


def test_with_free_slots_a_status_probe_is_an_ordinary_request() -> None:
    server_context = ServerContext(ConnectionLimits(), lambda: "trace")
    admitted = load_shedding.admit(server_context, server_context.limits, b"GET", b"/metrics", NO_BODY, is_served=True)
    assert admitted is not None
    assert (admitted.is_limited, admitted.probe_path) == (True, b"")


def test_an_overflow_connection_may_only_send_status_probes() -> None:
    server_context = ServerContext(ConnectionLimits(), lambda: "trace")
    with pytest.raises(RequestRejected):
        load_shedding.admit(server_context, server_context.limits, b"GET", b"/a", NO_BODY, is_served=False)
    assert server_context.rejections.connections == 1


def test_under_overload_short_requests_are_deferred_except_status_probes() -> None:
    server_context = full()
    assert load_shedding.should_defer(server_context, ONE, b"GET /a HTTP/1.1\r\n")
    assert not load_shedding.should_defer(server_context, ONE, b"GET /a HTTP/1.1\r\n" + b"x" * MAX_PLAIN_BYTES)
    for path in (b"/health", *load_shedding.STATUS_PATHS):
        assert not load_shedding.should_defer(server_context, ONE, b"GET " + path + b" HTTP/1.1\r\n")
    assert not load_shedding.should_defer(ServerContext(ONE, lambda: "trace"), ONE, b"GET /a HTTP/1.1\r\n")


PLAIN = b"%s /a HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(("full_class", "other"), [(b"GET", b"POST"), (b"POST", b"GET")])
def test_only_what_is_of_a_full_class_is_refused_unparsed(full_class: bytes, other: bytes) -> None:
    server_context = ServerContext(ONE, lambda: "trace", lambda method, path: method != b"GET")
    assert not load_shedding.should_shed(server_context, ONE, PLAIN % full_class)
    inside = load_shedding.admit(server_context, ONE, full_class, b"/a", NO_BODY, is_served=True)
    assert inside is not None
    assert inside.complete_body(ONE)
    assert load_shedding.should_shed(server_context, ONE, PLAIN % full_class)
    assert not load_shedding.should_shed(server_context, ONE, PLAIN % other)
    assert not load_shedding.should_shed(server_context, ONE, b"\r\n" + PLAIN % full_class), "left to the parser"
    inside.release()
    assert not load_shedding.should_shed(server_context, ONE, PLAIN % full_class)


def test_status_probes_are_routes_that_change_nothing() -> None:
    served = {route.path.encode(): route for route in ROUTES if route.operation.method == "GET"}
    for path in (b"/health", b"/health/live", b"/health/ready", *load_shedding.STATUS_PATHS):
        assert not served[path].operation.has_effect


def test_the_route_table_decides_whether_a_request_is_a_write() -> None:
    edge = Application(cast("Any", SimpleNamespace(log=None, clock=None)), ROUTES)
    for route in ROUTES:
        path = route.path.replace("{id}", "x").replace("{file}", "x").encode()
        # Each operation that another one performs is admitted as a request of its own.
        expected = route.operation.has_effect and not route.operation.performs
        assert edge.has_effect(route.operation.method.encode(), path) == expected, route
    assert edge.has_effect(b"POST", b"/api/memory/%72emember")
    assert not edge.has_effect(b"POST", b"/no/such/path\xff%ff")
    assert not edge.has_effect(b"PUT", b"/api/memory/remember")


def test_every_write_route_waits_for_the_writer_or_a_file() -> None:
    table = RouteTable(ROUTES)
    assert table.find("/api/memory/recall") is not None
    edge = Application(cast("Any", SimpleNamespace(log=None, clock=None)), ROUTES)
    assert not edge.has_effect(b"POST", b"/api/memory/recall")
    assert edge.has_effect(b"POST", b"/api/memory/remember")


def test_a_recent_response_is_reused_and_an_old_one_is_not() -> None:
    recent = ResponseCache()
    answer = EncodedResponse(200, {}, b"{}")
    assert recent.get("/metrics", CACHE_TTL_NS // 2) is None
    recent.store("/metrics", answer, 1_000)
    assert recent.get("/metrics", 1_000 + CACHE_TTL_NS - 1) is answer
    assert recent.get("/metrics", 1_000 + CACHE_TTL_NS) is None
    assert recent.get("/api/status", 1_000) is None


def test_the_prebuilt_rejection_equals_the_ordinary_one() -> None:
    busy = PrebuiltBusyResponse()
    rng = random.Random(1)
    for second in range(3):
        default = [(b"date", b"second %d" % second)]
        for _ in range(2):
            trace = f"{rng.random()}"
            headers, body = rejection_response(BUSY, trace)
            last = [line for line in headers if line[0] != b"x-signet-trace-id"]
            whole = [*last, (b"x-signet-trace-id", trace.encode())]
            wanted = response_bytes(503, default, whole, body, keep_alive=True, head_only=False)
            assert busy.render(default, trace) == wanted


def test_a_rejection_closes_its_connection_and_omits_its_body_for_head() -> None:
    told = response_bytes(404, [(b"date", b"x")], [(b"content-length", b"2")], b"{}", keep_alive=False, head_only=True)
    assert told == b"HTTP/1.1 404 Not Found\r\ndate: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    assert rejection_response(BUSY, "t")[1] == b'{"error":"%s","code":"%s"}' % (
        BUSY.detail.encode(),
        ErrorCode.BUSY.encode(),
    )
