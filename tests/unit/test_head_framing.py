"""The checks of a request's head, without a parser and without a socket."""

from __future__ import annotations

import httptools
import pytest

from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.framing import (
    BUSY,
    MAX_HEADERS,
    NOT_HTTP,
    SERVER_FAULT,
    Framing,
    HeadTracker,
    RequestRejected,
    check_head,
    parser_rejection,
)

LIMITS = ConnectionLimits(header_bytes=1000, body_bytes=5000)
Headers = list[tuple[bytes, bytes]]


@pytest.mark.parametrize(
    ("headers", "framing"),
    [
        ([], Framing(0, False)),
        ([(b"content-length", b"12")], Framing(12, False)),
        ([(b"content-length", b"5000")], Framing(5000, False)),
        ([(b"transfer-encoding", b" Chunked ")], Framing(0, True)),
        ([(b"expect", b"100-Continue"), (b"content-length", b"1")], Framing(1, False)),
    ],
)
def test_a_valid_head_gives_the_length_of_its_body(headers: Headers, framing: Framing) -> None:
    assert check_head("1.1", b"/a", headers, LIMITS) == framing


@pytest.mark.parametrize(
    ("version", "target", "headers", "status"),
    [
        ("2.0", b"/", [], 400),
        ("0.9", b"/", [], 400),
        ("1.1", b"*", [], 400),
        ("1.1", b"http://a/", [], 400),
        ("1.1", b"", [], 400),
        ("1.1", b"/", [(b"content-length", b"1"), (b"content-length", b"1")], 400),
        ("1.1", b"/", [(b"content-length", b"+1")], 400),
        ("1.1", b"/", [(b"content-length", b"")], 400),
        ("1.1", b"/", [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")], 400),
        ("1.1", b"/", [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], 400),
        ("1.1", b"/", [(b"transfer-encoding", b"gzip, chunked")], 400),
        ("1.1", b"/", [(b"transfer-encoding", b"")], 400),
        ("1.1", b"/", [(b"content-length", b"5001")], 413),
        ("1.1", b"/", [(b"expect", b"")], 417),
        ("1.1", b"/", [(b"expect", b"100-continue"), (b"expect", b"tea")], 417),
        ("1.1", b"/", [(b"expect", b"tea"), (b"expect", b"100-continue")], 417),
    ],
)
def test_a_head_that_two_parsers_could_read_differently_is_refused(
    version: str, target: bytes, headers: Headers, status: int
) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_head(version, target, headers, LIMITS)
    assert refused.value.rejection.status == status


def test_the_deadline_of_a_head_starts_with_its_first_byte() -> None:
    head = HeadTracker()
    assert head.is_empty
    head.fed += 2
    assert not head.is_empty
    head.begin()
    head.finish()
    assert not head.is_empty
    assert not head.expected
    head.await_next()
    assert head.is_empty


def test_the_size_limit_counts_each_head_separately() -> None:
    head = HeadTracker()
    for _ in range(3):
        head.begin()
        head.count(600, LIMITS)
        head.count_header(b"n" * 200, b"v" * 196, LIMITS)
        with pytest.raises(RequestRejected) as refused:
            head.count(1, LIMITS)
        assert refused.value.rejection.status == 431


def test_the_number_of_headers_is_limited() -> None:
    head = HeadTracker()
    head.begin()
    for _ in range(MAX_HEADERS):
        head.count_header(b"a", b"", LIMITS)
    with pytest.raises(RequestRejected):
        head.count_header(b"a", b"", LIMITS)


def test_an_unfinished_head_is_bounded_and_a_body_is_not_parsed_as_one() -> None:
    head = HeadTracker()
    head.fed = 1000
    assert not head.is_too_large(LIMITS)
    head.fed += 1
    assert head.is_too_large(LIMITS)
    head.finish()
    assert not head.is_too_large(LIMITS)


def parser_error(data: bytes, fault: Exception | None = None) -> httptools.HttpParserError:
    """What the parser raises, with a callback that raises ``fault``."""

    class Callbacks:
        def on_headers_complete(self) -> None:
            if fault is not None:
                raise fault

    with pytest.raises(httptools.HttpParserError) as raised:
        httptools.HttpRequestParser(Callbacks()).feed_data(data)
    return raised.value


def test_parser_errors_are_distinguished() -> None:
    whole = b"GET / HTTP/1.1\r\n\r\n"
    assert parser_rejection(parser_error(b"nonsense\r\n\r\n")) is NOT_HTTP
    assert parser_rejection(parser_error(whole, RequestRejected(BUSY))) is BUSY
    assert parser_rejection(parser_error(whole, httptools.HttpParserInvalidURLError())) is NOT_HTTP
    assert parser_rejection(parser_error(whole, KeyError("a fault of ours"))) is SERVER_FAULT
