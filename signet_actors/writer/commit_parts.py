"""Splits the commands that wait into commits of bounded work.

Source: docs/reliability.md "The writer's loop".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import AdvanceHighWaterMark, ReapLeases
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline import ReconcileJobs
from signet_actors.protocol.writer import PurgeStep, WriterCommand
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.writer.group_commit import failure_for_unstarted

BACKGROUND_COMMANDS: Final = (PurgeStep, ReapLeases, ReconcileJobs, AdvanceHighWaterMark)
"""Periodic commands that are repeated later anyway. Their deadlines do not follow from ``requestTimeoutMs``, so they do
not limit how long a batch waits for a lock."""
COMMIT_BYTES: Final = 1 << 20
"""The messages of one commit are at most this long together, unless it is a single one."""


def commit_parts(
    commands: Sequence[Incoming[WriterCommand]], most_commands: int
) -> Iterator[Sequence[Incoming[WriterCommand]]]:
    """Split the commands into commits of bounded work. A command that was sent before gets a commit of its own."""
    part: list[Incoming[WriterCommand]] = []
    size = 0
    for incoming in commands:
        alone = incoming.header.attempt > 1
        if part and (alone or len(part) >= most_commands or size + incoming.nbytes > COMMIT_BYTES):
            yield part
            part, size = [], 0
        part.append(incoming)
        size += incoming.nbytes
        if alone:
            yield part
            part, size = [], 0
    if part:
        yield part


def earliest_deadline_ns(part: Sequence[Incoming[WriterCommand]]) -> int | None:
    """Return the earliest deadline of the callers that wait for ``part``; None if no caller waits."""
    return min(
        (
            incoming.header.deadline_ns
            for incoming in part
            if incoming.header.deadline_ns and not isinstance(incoming.body, BACKGROUND_COMMANDS)
        ),
        default=None,
    )


def reply_to_unstarted(commands: Sequence[Incoming[WriterCommand]], *, begun: int) -> None:
    """Refuse the commands after the first ``begun``, because the disk failed while these were committed.

    A message that was delivered twice may be among those that were begun; then its outcome is unknown.
    """
    known = {incoming.header.message_id for incoming in commands[:begun]}
    for incoming in commands[begun:]:
        if incoming.header.message_id in known:
            incoming.reply(Failure(ErrorCode.OUTCOME_UNKNOWN, "the disk failed; the outcome is unknown"))
        else:
            incoming.reply(failure_for_unstarted(incoming, "the writer had to stop", retry_after_ms=1000))
