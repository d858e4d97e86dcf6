"""When the Python client sends a request again, and what it raises, without any I/O.

Source: docs/reliability.md "HTTP outcomes"; docs/guides/python.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from signet_actors.client import daemon_calls, memory_calls
from signet_actors.client.encoding import HttpReply
from signet_actors.client.errors import (
    ClientError,
    Conflicting,
    DaemonFailed,
    DaemonUnreachable,
    DoesNotExist,
    InvalidReply,
    JobNotEnded,
    NoReply,
    NotPermitted,
    Refused,
    TemporarilyRefused,
)
from signet_actors.client.exchange import Caller, Exchange, Limits, Loss, Lost, Pause, Send
from signet_actors.client.location import Location
from signet_actors.operations.health import HEALTH, READY
from signet_actors.operations.identity import GET_IDENTITY
from signet_actors.operations.import_export import MAX_LINES, MemoryLine
from signet_actors.operations.recall import RECALL, RecallRequest
from signet_actors.operations.remember import REMEMBER, RememberReply, RememberRequest
from signet_actors.operations.repair import BACK_UP

T = TypeVar("T")
USUAL = Limits()
STORED = {
    "id": "m1",
    "type": "fact",
    "tags": None,
    "pinned": False,
    "importance": 0.8,
    "content": "x",
    "embedded": True,
    "deduped": False,
}
IDENTITY = {"name": "Ada", "description": None, "creature": None, "vibe": None, "source": []}
NOT_SENT, BROKEN, TIMED_OUT = (
    Lost(loss, f"it was {loss.value}") for loss in (Loss.NOT_SENT, Loss.BROKEN, Loss.TIMED_OUT)
)


def reply(body: Any, status: int = 200, **headers: str) -> HttpReply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpReply(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


def refusal(status: int, code: str = "busy", **headers: str) -> HttpReply:
    return reply({"error": "a sentence", "code": code}, status, **headers)


@dataclass
class Daemon:
    """Answers with the scripted outcomes, the last of them again and again. Each takes ``takes_s`` of a fake clock."""

    outcomes: list[HttpReply | Lost]
    takes_s: float = 0.0
    now_s: float = 1000.0
    sent: list[Send] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def caller(self, limits: Limits = USUAL, location: Location | None = None) -> Caller:
        here = Location("http://127.0.0.1:3850") if location is None else location
        return Caller(here, limits, clock=lambda: self.now_s, jitter=lambda: 0.5)

    def perform(self, exchange: Exchange[T]) -> T:
        try:
            step = next(exchange)
            while True:
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    self.now_s += step.seconds
                    step = exchange.send(None)
                    continue
                self.sent.append(step)
                outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
                self.now_s += step.timeout_s if outcome is TIMED_OUT else self.takes_s
                step = exchange.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    @property
    def keys(self) -> list[str | None]:
        return [send.headers.get("idempotency-key") for send in self.sent]


def remember(daemon: Daemon, limits: Limits = USUAL) -> Any:
    return daemon.perform(daemon.caller(limits).call(REMEMBER, RememberRequest(content="x")))


def read(daemon: Daemon, limits: Limits = USUAL) -> Any:
    return daemon.perform(daemon.caller(limits).call(GET_IDENTITY))


def back_up(daemon: Daemon, limits: Limits = USUAL) -> Any:
    return daemon.perform(daemon.caller(limits).call(BACK_UP))


@pytest.mark.parametrize(
    "failure", [NOT_SENT, BROKEN, TIMED_OUT, refusal(503, retry_after="1"), refusal(504), refusal(429)]
)
def test_a_change_is_repeated_under_the_key_of_its_first_attempt(failure: HttpReply | Lost) -> None:
    daemon = Daemon([failure, failure, reply(STORED)])
    assert remember(daemon, Limits(attempt_s=5)) == RememberReply("m1", "fact", None, False, 0.8, "x", True, False)
    assert len(daemon.sent) == 3
    assert len(set(daemon.keys)) == 1
    assert daemon.keys[0]
    assert {send.body for send in daemon.sent} == {b'{"content":"x"}'}


def test_a_client_without_a_free_connection_has_sent_nothing() -> None:
    """docs/reliability.md "HTTP outcomes": the outcome is unknown only if the daemon may have received the request."""
    daemon = Daemon([Lost(Loss.NO_CONNECTION, "all 100 connections are in use"), reply(STORED)])
    assert remember(daemon).id == "m1"
    daemon = Daemon([Lost(Loss.NO_CONNECTION, "all 100 connections are in use")], takes_s=10)
    with pytest.raises(TemporarilyRefused, match=r"^all 100 connections are in use; nothing was sent$") as raised:
        remember(daemon)
    assert raised.value.code == "busy"
    assert len(daemon.sent) > 1


def test_two_calls_have_different_keys_and_a_read_has_none() -> None:
    daemon = Daemon([reply(STORED), reply(STORED), reply(IDENTITY)])
    remember(daemon)
    remember(daemon)
    read(daemon)
    first, second, third = daemon.keys
    assert first != second
    assert third is None


@pytest.mark.parametrize("failure", [BROKEN, TIMED_OUT, refusal(504, "outcome_unknown")])
def test_a_change_that_the_daemon_knows_by_no_key_is_not_repeated_if_it_may_have_been_applied(
    failure: HttpReply | Lost,
) -> None:
    daemon = Daemon([failure])
    with pytest.raises(NoReply):
        back_up(daemon)
    assert len(daemon.sent) == 1


@pytest.mark.parametrize("failure", [NOT_SENT, refusal(503, retry_after="1")])
def test_such_a_change_is_repeated_if_it_was_certainly_not_applied(failure: HttpReply | Lost) -> None:
    daemon = Daemon([failure, BROKEN])
    with pytest.raises(NoReply):
        back_up(daemon)
    assert len(daemon.sent) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, NotPermitted),
        (403, NotPermitted),
        (404, DoesNotExist),
        (409, Conflicting),
        (413, Refused),
        (500, DaemonFailed),
        (507, DaemonFailed),
    ],
)
@pytest.mark.parametrize("act", [remember, read])
def test_an_answer_that_a_repetition_would_get_again_is_raised_at_once(
    status: int, kind: type[ClientError], act: Callable[[Daemon], Any]
) -> None:
    daemon = Daemon([refusal(status, "forbidden")])
    with pytest.raises(kind) as raised:
        act(daemon)
    assert type(raised.value) is kind
    assert len(daemon.sent) == 1


def test_an_error_has_status_code_field_ids_and_the_sentence_of_the_daemon() -> None:
    body = {"error": "Version conflict", "code": "conflict", "field": "if_version", "currentVersion": 4}
    daemon = Daemon([reply(body, 409, x_signet_trace_id="t1")])
    with pytest.raises(Conflicting, match=r"^Version conflict$") as raised:
        remember(daemon)
    error = raised.value
    assert (error.status, error.code, error.field, error.trace_id) == (409, "conflict", "if_version", "t1")
    assert error.request_id == daemon.keys[0] == daemon.sent[0].headers["x-signet-request-id"]
    assert error.body["currentVersion"] == 4


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_request"), (502, "outcome_unknown"), (418, "conflict"), (507, "storage_full")]
)
def test_an_error_page_of_another_program_becomes_an_error_with_the_code_of_its_status(status: int, code: str) -> None:
    daemon = Daemon([reply(b"<html>", status)])
    with pytest.raises(ClientError, match=f"answered {status}") as raised:
        remember(daemon)
    assert raised.value.code == code


def test_the_daemon_is_given_the_time_that_it_asks_for() -> None:
    daemon = Daemon([refusal(503, retry_after="7"), reply(STORED)])
    remember(daemon)
    assert daemon.pauses == [7.0]


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_is_longer_than_the_call_may_take_is_raised_at_once(status: int) -> None:
    daemon = Daemon([refusal(status, "mutations_frozen", retry_after="60")])
    with pytest.raises(TemporarilyRefused) as raised:
        remember(daemon)
    assert (raised.value.retry_after_ms, raised.value.code) == (60_000, "mutations_frozen")
    assert daemon.pauses == []


def test_without_such_a_time_the_waits_grow_up_to_a_bound() -> None:
    daemon = Daemon([BROKEN] * 8 + [reply(IDENTITY)])
    read(daemon)
    assert daemon.pauses == sorted(daemon.pauses)
    assert daemon.pauses[0] <= 0.1
    assert daemon.pauses[-1] <= 2.0


@pytest.mark.parametrize("failure", [BROKEN, TIMED_OUT, refusal(503), refusal(504), refusal(429, retry_after="1")])
@pytest.mark.parametrize("act", [remember, read])
def test_a_call_ends_within_its_time(failure: HttpReply | Lost, act: Callable[..., Any]) -> None:
    daemon = Daemon([failure], takes_s=0.5)
    with pytest.raises(ClientError):
        act(daemon, Limits(total_s=20, attempt_s=6))
    assert daemon.now_s <= 1020.5
    assert all(send.timeout_s <= 6 for send in daemon.sent)
    assert len(daemon.sent) > 2


def test_no_attempt_may_last_beyond_the_end_of_the_call() -> None:
    daemon = Daemon([TIMED_OUT])
    with pytest.raises(NoReply):
        remember(daemon, Limits(total_s=10, attempt_s=8))
    assert sum(send.timeout_s for send in daemon.sent) + sum(daemon.pauses) <= 10


def test_a_daemon_that_never_listens_is_reported_after_the_time_of_a_restart() -> None:
    daemon = Daemon([NOT_SENT])
    with pytest.raises(DaemonUnreachable, match="signet start"):
        remember(daemon, Limits(total_s=30, start_s=5))
    assert 1003 < daemon.now_s <= 1005


def test_a_daemon_that_was_there_is_waited_for_as_long_as_the_call_may_take() -> None:
    daemon = Daemon([BROKEN, *[NOT_SENT] * 12, reply(IDENTITY)])
    read(daemon, Limits(total_s=30, start_s=5))
    assert daemon.now_s > 1010


@pytest.mark.parametrize("later", [NOT_SENT, refusal(503, retry_after="1"), refusal(429)])
def test_a_change_that_was_lost_stays_unknown_whatever_becomes_of_its_repetitions(later: HttpReply | Lost) -> None:
    daemon = Daemon([BROKEN, later])
    with pytest.raises(NoReply, match="whether the change was applied is unknown"):
        remember(daemon)


def test_a_change_that_was_lost_and_then_refused_is_refused() -> None:
    """The daemon would have repeated its first answer, if it had applied the change."""
    daemon = Daemon([BROKEN, refusal(409, "conflict")])
    with pytest.raises(Conflicting):
        remember(daemon)


def test_a_read_without_an_answer_says_nothing_of_a_change() -> None:
    daemon = Daemon([BROKEN])
    with pytest.raises(NoReply) as raised:
        read(daemon)
    assert raised.value.detail == "it was broken"
    assert raised.value.code == "unavailable"


def test_a_recall_is_a_read_although_it_is_a_post() -> None:
    assert RECALL.method == "POST"
    daemon = Daemon([refusal(400)])
    with pytest.raises(Refused):
        daemon.perform(daemon.caller().call(RECALL, RecallRequest(query="x")))
    assert daemon.keys == [None]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"name": 3}', b"<html>"])
def test_a_reply_of_another_form_is_no_reply_of_a_daemon(body: bytes) -> None:
    daemon = Daemon([reply(body)])
    with pytest.raises(InvalidReply):
        read(daemon)
    assert len(daemon.sent) == 1


def test_a_redirection_is_not_followed() -> None:
    daemon = Daemon([reply(b"", 307, location="http://elsewhere/")])
    with pytest.raises(InvalidReply):
        remember(daemon)
    assert len(daemon.sent) == 1


def test_a_daemon_that_is_not_ready_answers_with_what_is_missing() -> None:
    body = {"ready": False, "status": "unhealthy", "notUp": ["writer"], "detail": "the writer is down"}
    daemon = Daemon([reply(body, 503, retry_after="1")])
    ready = daemon.perform(daemon.caller().call(READY))
    assert (ready.ready, ready.not_up) == (False, ["writer"])
    assert len(daemon.sent) == 1


def test_warnings_of_the_daemon_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    daemon = Daemon([reply({**IDENTITY, "warnings": ["unknown field: x"]})])
    read(daemon)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("signet_actors.client", "identity.get: unknown field: x")
    ]


@pytest.mark.parametrize("status", ["completed", "dead"])
def test_a_job_is_waited_for_until_it_has_ended(status: str) -> None:
    daemon = Daemon([reply(job_in("pending")), reply(job_in("leased")), reply(job_in(status))])
    ended = daemon.perform(daemon_calls.wait_for_job(daemon.caller(), "j1"))
    assert ended.status == status
    assert len(daemon.sent) == 3
    assert daemon.pauses == sorted(daemon.pauses)


def test_a_job_that_does_not_end_in_time_is_reported() -> None:
    daemon = Daemon([reply(job_in("pending"))])
    with pytest.raises(JobNotEnded, match="j1 is pending after 5 s"):
        daemon.perform(daemon_calls.wait_for_job(daemon.caller(), "j1", timeout_s=5))
    assert daemon.now_s == pytest.approx(1005)


def job_in(status: str) -> dict[str, Any]:
    absent = ("memory_id", "document_id", "next_attempt_at", "last_error", "last_error_code", "error", "leased_at")
    counts = dict.fromkeys(("attempt_count", "attempts", "max_attempts"), 1)
    times = {"completed_at": None, "failed_at": None, "created_at": "t", "updated_at": "t"}
    return {"id": "j1", "job_type": "extract", "status": status, **dict.fromkeys(absent), **counts, **times}


def lines_of(count: int, chars: int = 5) -> Iterable[MemoryLine]:
    return (MemoryLine(content=f"{number:05}" + "x" * chars) for number in range(count))


def test_an_import_is_sent_in_parts_and_its_reply_counts_all_memories() -> None:
    refused = {"line": 3, "error": "bad", "code": "invalid_request"}
    parts = [{"imported": 499, "deduped": 1, "redacted": 0, "refused": [refused], "receipt": "r"}] * 3
    daemon = Daemon([reply(part) for part in parts])
    done = daemon.perform(memory_calls.import_memories(daemon.caller(), lines_of(1200)))
    assert [(send.body or b"").count(b"\n") + 1 for send in daemon.sent] == [500, 500, 200]
    assert max((send.body or b"").count(b"\n") + 1 for send in daemon.sent) <= MAX_LINES
    assert (done.imported, done.deduped) == (1497, 3)
    assert [line.line for line in done.refused] == [3, 503, 1003]
    assert len(set(daemon.keys)) == 3
    assert {send.headers["content-type"] for send in daemon.sent} == {"application/x-ndjson"}


def test_long_memories_are_imported_in_smaller_parts() -> None:
    daemon = Daemon([reply({"imported": 1, "deduped": 0, "redacted": 0, "refused": []})])
    daemon.perform(memory_calls.import_memories(daemon.caller(), lines_of(5, 300_000)))
    assert len(daemon.sent) == 5


def test_one_part_of_an_import_may_take_all_the_time() -> None:
    daemon = Daemon([reply({"imported": 1, "deduped": 0, "redacted": 0, "refused": []})])
    daemon.perform(memory_calls.import_memories(daemon.caller(Limits(total_s=90, attempt_s=5)), lines_of(1)))
    assert daemon.sent[0].timeout_s == 90


def test_a_page_of_an_export_has_its_memories_and_the_place_of_the_next_page() -> None:
    head, line = {"format": "signet-memories", "version": 1}, {"content": "x", "tags": ["a"], "createdAt": "t"}
    body = b"".join(json.dumps(each).encode() + b"\n" for each in (head, line))
    daemon = Daemon([reply(body, x_signet_next_cursor="77"), reply(json.dumps(line).encode())])
    page = daemon.perform(memory_calls.export_page(daemon.caller()))
    assert page.memories == [MemoryLine(content="x", tags=["a"], created_at="t")]
    assert page.next == 77
    last = daemon.perform(memory_calls.export_page(daemon.caller(), after=77))
    assert (len(last.memories), last.next) == (1, None)
    assert daemon.sent[1].url.endswith("/api/memory/export?after=77&limit=500")


def test_health_is_called_without_a_body() -> None:
    daemon = Daemon([refusal(404)])
    with pytest.raises(DoesNotExist):
        daemon.perform(daemon.caller().call(HEALTH))
    assert (daemon.sent[0].method, daemon.sent[0].url, daemon.sent[0].body) == (
        "GET",
        "http://127.0.0.1:3850/health",
        None,
    )
