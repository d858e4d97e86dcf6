"""``python -m tests.golden.make``: a database as this release writes it, to be kept for good.

Run once at each release whose schema is new, and commit what it writes: ``schema-N.sqlite`` and ``schema-N.json``, the
memories that every later release must find in it. A file that is there is never written again.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, MemoryPatch, ModifyMemory
from signet_actors.store.migrate import schema_version
from signet_actors.store.online_backup import backup
from tests.support.store_room import StoreRoom

HERE = Path(__file__).parent
COLUMNS = "id, content, type, tags, importance, pinned, agent_id, visibility, scope, is_deleted, version"


def fill(room: StoreRoom) -> None:
    """Every kind of row that the schema can hold and this release can write."""
    rng = random.Random(11)
    people = Principal()
    for number in range(30):
        memory = room.remember(
            f"Golden memory number {number} says {rng.choice(('zebra', 'quartz', 'velvet'))} to whoever upgrades",
            vector=[rng.gauss(0, 1) for _ in range(8)] if number % 4 else None,
            tags=("golden", f"n{number % 5}"),
            pinned=number % 10 == 0,
            agent_id="cleo" if number % 6 == 0 else "default",
            visibility="private" if number % 6 == 0 else "global",
            scope="scope" if number % 9 == 0 else None,
            idempotency_key=f"key-{number}" if number % 7 == 0 else None,
        )
        room.clock.advance(60_000)
        if number % 5 == 1:
            patch = MemoryPatch(id=memory.id, reason="revised", content=f"Golden memory number {number}, revised")
            room.ask(ModifyMemory(patch=patch, principal=people))
        if number % 8 == 3:
            room.ask(ForgetMemory(id=memory.id, reason="outdated", principal=people))
        if number == 29:
            room.ask(ForgetMany(targets=(ForgetTarget(memory.id),), reason="for good", principal=people, hard=True))
    room.remember("日本語の記憶 and a café, naïve as it is")
    room.connection.execute("UPDATE memory_jobs SET status = 'completed', completed_at = created_at WHERE seq % 3 = 0")
    room.connection.execute("UPDATE memory_jobs SET status = 'dead', failed_at = created_at WHERE seq % 7 = 0")


def rows(connection: Any) -> list[list[Any]]:
    """The memories, as the JSON file keeps them."""
    return [list(row) for row in connection.execute(f"SELECT {COLUMNS} FROM memories ORDER BY seq")]


def main() -> int:
    """The exit code; 1 when the golden database of this schema is there already."""
    with tempfile.TemporaryDirectory() as directory:
        room = StoreRoom(Path(directory))
        schema = schema_version(room.connection)
        target = HERE / f"schema-{schema}.sqlite"
        if target.exists():
            sys.stderr.write(f"{target} is there already and stays as it is\n")
            room.close()
            return 1
        fill(room)
        target.with_suffix(".json").write_text(json.dumps(rows(room.connection), ensure_ascii=False, indent=0) + "\n")
        backup(room.connection, target, room.clock)
        target.chmod(0o644)
        room.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
