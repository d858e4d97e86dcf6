"""Access counts: sent by the gateway, coalesced in memory, and written by the housekeeping commit.

A crash may lose the last second of them: no reply promised them. Injections are counted separately and do not restart
the importance decay.

Source: memory-system.txt "Importance Decay"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from signet_actors.protocol.writer import TouchMemories
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import memories as memory_rows

MAX_PENDING = 10_000
FLUSH_LIMIT = 500


@dataclass(slots=True)
class AccessCounter:
    """``pending``: counts by memory id and kind since the last flush; ``dropped``: ids for which it was full."""

    pending: dict[tuple[str, str], int] = field(default_factory=dict)
    dropped: int = 0

    def add(self, command: TouchMemories) -> None:
        for memory_id in command.ids:
            key = memory_id, command.kind
            if key in self.pending or len(self.pending) < MAX_PENDING:
                self.pending[key] = self.pending.get(key, 0) + 1
            else:
                self.dropped += 1

    def flush(self, context: CommandContext) -> int:
        """Write at most ``FLUSH_LIMIT`` of the oldest pending counts; return the number of rows.

        The counts leave memory with this call: if the transaction fails, they are lost.
        """
        oldest = list(islice(self.pending, FLUSH_LIMIT))
        for memory_id, kind in oldest:
            count = self.pending.pop((memory_id, kind))
            if kind == "injected":
                memory_rows.count_injections(context.tx, memory_id, count)
            else:
                memory_rows.count_recalls(context.tx, memory_id, count, last_accessed=context.now)
        return len(oldest)
