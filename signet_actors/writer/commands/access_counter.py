"""Access counts: sent by the gateway, coalesced in memory, and written with a later commit.

A crash may lose the last second of them: no reply promised them. Injections are counted separately and do not restart
the importance decay.

Source: memory-system.txt "Importance Decay"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from signet_actors.protocol.writer import TouchMemories
from signet_actors.store.writes import memories as memory_rows
from signet_actors.writer.command_context import CommandContext

MAX_PENDING = 10_000
FLUSH_LIMIT = 500


@dataclass(slots=True)
class AccessCounter:
    """Counts by memory id since the last flush; when the counter is full, further ids are dropped and counted."""

    recalled: dict[str, int] = field(default_factory=dict)
    injected: dict[str, int] = field(default_factory=dict)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.recalled) + len(self.injected)

    def add(self, command: TouchMemories) -> None:
        counts = self.injected if command.kind == "injected" else self.recalled
        for memory_id in command.ids:
            if memory_id in counts or len(self) < MAX_PENDING:
                counts[memory_id] = counts.get(memory_id, 0) + 1
            else:
                self.dropped += 1

    def flush(self, context: CommandContext) -> int:
        """Write at most ``FLUSH_LIMIT`` of the oldest pending counts; return the number of rows.

        The counts leave memory with this call: if the transaction fails, they are lost.
        """
        touched = 0
        while self.recalled and touched < FLUSH_LIMIT:
            memory_id = next(iter(self.recalled))
            count = self.recalled.pop(memory_id)
            memory_rows.count_recalls(context.tx, memory_id, count, last_accessed=context.now)
            touched += 1
        while self.injected and touched < FLUSH_LIMIT:
            memory_id = next(iter(self.injected))
            count = self.injected.pop(memory_id)
            memory_rows.count_injections(context.tx, memory_id, count)
            touched += 1
        return touched
