"""Access tracking: sent by the gateway, coalesced in memory, written with a later commit.

Losing the last second of it in a crash is allowed: no answer promised it. Injected memories are counted apart and do
not restart the decay clock.

Source: memory-system.txt "Importance Decay"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from signet_actors.protocol.writer import TouchMemories
from signet_actors.writer.command_context import CommandContext

MAX_PENDING = 10_000
FLUSH_LIMIT = 500


@dataclass(slots=True)
class AccessCounter:
    """Counts by memory id since the last flush; bounded, what does not fit is dropped and counted."""

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
        """The oldest pending counts, at most ``FLUSH_LIMIT`` rows, are in the transaction; returns rows touched.

        The counts leave memory with this call: when the transaction fails, they are lost.
        """
        touched = 0
        while self.recalled and touched < FLUSH_LIMIT:
            memory_id = next(iter(self.recalled))
            count = self.recalled.pop(memory_id)
            context.tx.execute(
                "UPDATE memories SET access_count = access_count + ?, last_accessed = ? WHERE id = ?",
                (count, context.now, memory_id),
            )
            touched += 1
        while self.injected and touched < FLUSH_LIMIT:
            memory_id = next(iter(self.injected))
            count = self.injected.pop(memory_id)
            context.tx.execute(
                "UPDATE memories SET injected_count = injected_count + ? WHERE id = ?", (count, memory_id)
            )
            touched += 1
        return touched
