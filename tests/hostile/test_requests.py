"""Generated requests against every route: each has one response without a 5xx, and stored memories are unchanged.

Source: docs/reliability.md R24; docs/security.md "Attack table".
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_actors.errors import ErrorCode
from signet_actors.gateway.routes import ROUTES
from signet_actors.operations.headers import EVENT_STREAM
from tests.hostile.conftest import CANARY, KEEPER, SEED, scale
from tests.support.hostile_requests import Attacker, HostileRequest, known_error
from tests.support.live_daemon import LiveDaemon
from tests.support.raw_http import RawConnection, RawReply

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600)]

REQUESTS = scale(2_000, 400_000)
CONNECTIONS = 4
BUSY_PAUSE_S = 2.0
HERE = "tests/hostile/test_requests.py"
CODES = frozenset(ErrorCode)
WITHOUT_MODEL = b'"error":"Synthesis worker not running'
"""docs/compatibility.md "MEMORY.md": 503 without a model, and this daemon has none."""
ONLY = os.environ.get("SIGNET_HOSTILE_ONLY")
"""The number of one request of the seed, to send it alone."""


def complaint(request: HostileRequest, reply: RawReply) -> str | None:
    """Return what is wrong with this response, or None."""
    headers, body = reply.headers, reply.body
    if reply.status >= 500 and not (reply.status == 503 and WITHOUT_MODEL in body):
        return "a fault"
    if not 200 <= reply.status < 300 and reply.status < 400:
        return "neither done nor refused"
    if len(headers.get(b"x-signet-trace-id", b"")) < 16:
        return "no trace id"
    if headers.get(b"x-content-type-options") != b"nosniff":
        return "a browser may guess its type"
    if any(name.startswith(b"access-control-") or name == b"x-injected" for name in headers):
        return "a header that no answer has"
    if CANARY.encode() in body or b"root:" in body:
        return "somebody else's content"
    if request.method == b"HEAD":
        return None
    if reply.status >= 400:
        if headers.get(b"content-type") != b"application/json":
            return "a refusal that is not JSON"
        why = known_error(body, CODES)
        return None if why is None else f"not the documented error body: {why}"
    if headers.get(b"content-type") == b"application/json":
        try:
            body.decode()
        except UnicodeDecodeError:
            return "not UTF-8"
    return None


class RequestRun:
    """Distributes the requests to some connections; records each failure with the command that repeats it."""

    def __init__(self, daemon: LiveDaemon, attacker: Attacker, numbers: Sequence[int]) -> None:
        self._daemon = daemon
        self._attacker = attacker
        self._numbers = iter(numbers)
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.mild: Counter[int] = Counter()
        self.problems: list[str] = []

    def run(self) -> None:
        threads = [threading.Thread(target=self._attack) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _attack(self) -> None:
        with RawConnection(self._daemon.port) as connection:
            while (number := self._next()) is not None and len(self.problems) < 10:
                request = self._attacker.request(number)
                try:
                    reply = self._outcome(connection, request)
                    problem = complaint(request, reply)
                except (AssertionError, OSError) as error:
                    connection.close()
                    problem, reply = f"{type(error).__name__}: {error}", None
                with self._lock:
                    if reply is not None:
                        self.statuses[reply.status] += 1
                        if request.mild:
                            self.mild[reply.status] += 1
                    if problem is not None:
                        self.problems.append(told(number, request, reply, problem))

    def _outcome(self, connection: RawConnection, request: HostileRequest) -> RawReply:
        """Return the response; a daemon that had no time for the request is asked once more."""
        for pause_s in (BUSY_PAUSE_S, None):
            reply = connection.exchange(request.encoded(), without_body=request.method == b"HEAD")
            if reply.status not in {503, 504} or WITHOUT_MODEL in reply.body or pause_s is None:
                break
            time.sleep(pause_s)  # as long as a client waits, not a synchronisation
        return reply

    def _next(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)


def told(number: int, request: HostileRequest, reply: RawReply | None, problem: str) -> str:
    again = f"SIGNET_HOSTILE_SEED={SEED} SIGNET_HOSTILE_ONLY={number} python -m pytest {HERE}"
    answer = None if reply is None else (reply.status, reply.body[:300])
    return f"{problem}: {request.what}\n  sent {request.encoded()[:600]!r}\n  got {answer}\n  again: {again}"


def test_no_generated_request_causes_a_5xx_or_changes_stored_memories(default_daemon: LiveDaemon) -> None:
    prey = default_daemon.agent("mallory-0")
    ids = [prey.remember(f"Prey number {number}")["id"] for number in range(30)]
    ids += [row["id"] for row in default_daemon.agent(KEEPER).listed()]  # used by others, they must look missing
    ending = [route for route in ROUTES if EVENT_STREAM not in route.operation.media_types]  # a stream has no end
    attacker = Attacker(ending, ids, SEED)
    attacked_daemon = RequestRun(default_daemon, attacker, [int(ONLY)] if ONLY else range(REQUESTS))
    attacked_daemon.run()
    print(f"seed {SEED}: {attacked_daemon.statuses.total()} answers {dict(sorted(attacked_daemon.statuses.items()))}")
    print(f"unchanged requests {dict(sorted(attacked_daemon.mild.items()))}")
    assert attacked_daemon.problems == [], "\n".join(attacked_daemon.problems)
    if not ONLY:
        assert attacked_daemon.statuses.total() == REQUESTS
        assert attacked_daemon.mild[200] > attacked_daemon.mild.total() / 3, (
            "the valid requests must be valid, or the others prove little"
        )
        refused = sum(count for status, count in attacked_daemon.statuses.items() if status >= 400)
        assert refused > REQUESTS / 4, "too few of the attacks were any"
    notes = default_daemon.root / "codex" / "memories" / "extensions" / "ad_hoc" / "notes"
    strays = {path for path in default_daemon.root.rglob("*") if path.is_file()} - set(
        owned(default_daemon.workspace, notes)
    )
    assert strays == {default_daemon.root / "terminal"}, "a file outside its place"


def owned(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*")]
