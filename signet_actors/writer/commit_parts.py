"""Splits the commands that wait into commits of bounded work.

Source: docs/reliability.md "The writer's loop".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.messaging.mailbox import Incoming

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
