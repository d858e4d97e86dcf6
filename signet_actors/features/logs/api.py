"""The lines of the daemon's log. Source: docs/compatibility.md "Logs and streams"."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Choice, Clamped, Timestamp
from signet_actors.operations.headers import EVENT_STREAM
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import SelectionText

MAX_STREAM_S: Final = 3600
StreamSeconds = Annotated[
    int,
    Clamped(low=0, high=MAX_STREAM_S),
    Meta(description="The stream ends after so many seconds; a client then connects again, and is checked again"),
]


class LogFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions on lines; all that are given must match."""

    level: (
        Annotated[str, Choice(values=("debug", "info", "warn", "warning", "error")), Meta(description="This and above")]
        | None
    ) = None
    actor: Annotated[SelectionText, Meta(description="About this process; `searcher`: about all of them")] | None = None
    category: Annotated[SelectionText, Meta(description="The same as `actor`")] | None = None
    trace: Annotated[SelectionText, Meta(description="Of the request with this trace id")] | None = None
    text: Annotated[SelectionText, Meta(description="With this text, in any case of its letters")] | None = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: written then or later")] | None = None
    until: Annotated[str, Timestamp(), Meta(description="ISO time: written then or earlier")] | None = None


class ListLogsRequest(LogFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which lines to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Lines to return")] = 100


class FollowLogsRequest(LogFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which new lines to send."""

    seconds: StreamSeconds = MAX_STREAM_S


class LogRecord(msgspec.Struct, frozen=True):
    """A line: ``category`` is the process, ``message`` the event, ``data`` the other members.

    A line that is no JSON, such as the output of a native crash, is an ``error`` whose message is the line.
    """

    timestamp: str
    level: str
    category: str
    message: str
    data: dict[str, Any]


class ListLogsReply(msgspec.Struct, frozen=True):
    """The newest lines that match, the newest first. ``complete`` is false if older lines were not searched."""

    logs: list[LogRecord]
    count: int
    complete: bool


LIST: Final[Operation[ListLogsRequest, ListLogsReply]] = Operation(
    name="logs.list",
    summary="Lines of the daemon's log, the newest first",
    tag="logs",
    paths=("/api/logs", "/api/analytics/logs"),
    request=ListLogsRequest,
    example={"level": "warning", "limit": 10},
    replies={200: ListLogsReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
    description="It reads the log files backwards, at most 16 MB. No line has the text of a memory.",
)
FOLLOW: Final[Operation[FollowLogsRequest, str]] = Operation(
    name="logs.stream",
    summary="New lines of the daemon's log",
    tag="logs",
    paths=("/api/logs/stream",),
    request=FollowLogsRequest,
    example={"seconds": 0},
    replies={200: str, 403: Problem, 503: Problem, **PROBLEMS},
    media_types=(EVENT_STREAM,),
    permission=Permission.ANALYTICS,
    owner_only=True,
    description=(
        'Server-sent events: first `{"type": "connected"}`, then one for each line, in the form of `GET /api/logs`.'
        " A client that does not read is disconnected. At most 16 streams are open; one more gets a 503."
    ),
)
OPERATIONS: Final = (LIST, FOLLOW)
