"""An answered request leaves no reference cycle that would keep its body in memory."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from signet_actors.domain.permissions import Permission
from signet_actors.gateway.http.route import Call, HttpResponse
from tests.support.edge import RunningEdge
from tests.support.routes import plain_route

REQUESTS = 300


async def counted(call: Call[Any]) -> HttpResponse:
    return HttpResponse({"length": len(call.json_object())})


def test_answered_requests_leave_no_reference_cycles(tmp_path: Path) -> None:
    route = plain_route("POST", "/test/count", counted, Permission.REMEMBER)
    with RunningEdge([route], tmp_path) as edge, edge.connect() as connection:

        def ask(count: int) -> None:
            for _ in range(count):
                connection.sendall(b"POST /test/count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
                assert b" 200 " in connection.recv(65536)
            edge.log_lines.clear()

        ask(20)
        gc.collect()
        gc.disable()
        try:
            ask(REQUESTS)
            found = gc.collect()
        finally:
            gc.enable()
    assert found < REQUESTS, "every request leaves something that only the collector can free"
