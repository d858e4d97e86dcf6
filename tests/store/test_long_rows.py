"""A long row costs the text index no more than its beginning, whatever it consists of and whatever becomes of it."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from pathlib import Path

import pytest

from signet_actors.domain.normalization import content_hash
from signet_actors.domain.written_forms import INDEXED_CHARS, indexed_beside
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    RecoverMemory,
)
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.writer.check import check_database
from tests.support.store_room import SetClock, StoreRoom

GOLDEN = Path(__file__).parents[1] / "golden"
CHARS = 200_000
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def words(length: int) -> str:
    return " ".join(map("".join, itertools.islice(itertools.product(LETTERS, repeat=length), CHARS // (length + 1))))


def letters(first: int, last: int, between: str = "") -> str:
    span = last - first
    return between.join(chr(first + (at * 7919) % span) for at in range(CHARS // (1 + len(between))))


TEXTS = {
    "words of three letters": words(3),
    "words of four letters": words(4),
    "Chinese": letters(0x4E00, 0x9FFF),
    "Chinese in lines": letters(0x4E00, 0x9FFF, "\n"),
    "rare Chinese": letters(0x20000, 0x2A000),
    "Korean": letters(0xAC00, 0xD7A3),
    "Korean words": letters(0xAC00, 0xD7A3, " "),
    "Japanese": letters(0x3041, 0x30FF),
    "half-width": letters(0xFF66, 0xFF9D),
    "compatibility forms": "\u6f22 " + letters(0x3300, 0x33FF),
    "Cyrillic letters": letters(0x400, 0x4FF, " "),
    "emoji": letters(0x1F300, 0x1F5FF),
    "emoji in sentences": letters(0x1F300, 0x1F5FF, " so "),
    "umlauts": " ".join(f"gr\u00f6\u00dfe{number}" for number in range(CHARS // 10)),
    "names in camel case": " ".join(f"crashLoopBack{number}" for number in range(CHARS // 16)),
    "numbers": " ".join(map(str, range(CHARS // 6))),
    "hashes": " ".join(f"{number:040x}" for number in range(CHARS // 41)),
    "punctuation between words": ",".join(f"w{number}" for number in range(CHARS // 6)),
    "one long word": "x" * CHARS,
    "one word": "word " * (CHARS // 5),
    "Thai": letters(0xE01, 0xE2E),
    "accents": "e\u0301" * (CHARS // 2),
}


def indexed_bytes(room: StoreRoom) -> int:
    return int(room.value("SELECT sum(length(term) * cnt) FROM memories_fts_terms") or 0)


@pytest.mark.parametrize("kind", TEXTS)
def test_no_text_has_more_in_the_index_than_its_beginning(room: StoreRoom, kind: str) -> None:
    room.remember(TEXTS[kind])
    assert 0 < indexed_bytes(room) < 11 * INDEXED_CHARS
    assert room.value("SELECT length(content) FROM memories") > 9 * INDEXED_CHARS


def found(room: StoreRoom, word: str) -> bool:
    return bool(room.recall(word).rows)


def long_text(first: str, last: str) -> str:
    return f"The {first} is first. " + "filler " * (CHARS // 7) + f"and the {last} is last"


def test_the_beginning_of_a_long_memory_is_found_by_its_words_through_all_changes(room: StoreRoom) -> None:
    people = Principal()
    memory = room.remember(long_text("heron", "osprey"))
    assert (found(room, "heron"), found(room, "osprey")) == (True, False)
    room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", content=long_text("kestrel", "owl")), people))
    assert [found(room, word) for word in ("heron", "kestrel", "owl")] == [False, True, False]
    room.ask(ForgetMemory(id=memory.id, reason="r", principal=people))
    assert indexed_bytes(room) == 0
    room.ask(RecoverMemory(id=memory.id, reason="r", principal=people))
    assert [found(room, word) for word in ("kestrel", "owl")] == [True, False]
    room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", content="The stork is all"), people))
    assert [found(room, word) for word in ("kestrel", "stork")] == [False, True]
    room.ask(ModifyMemory(MemoryPatch(id=memory.id, reason="r", content=long_text("robin", "wren")), people))
    room.ask(ForgetMany((ForgetTarget(memory.id),), "r", people, hard=True))
    assert indexed_bytes(room) == 0


def test_an_upgrade_takes_the_rest_of_long_memories_out_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    shutil.copyfile(GOLDEN / "schema-19.sqlite", path)
    connection = open_writer(path, busy=lambda calls: False)
    texts = ["Chinese", "names in camel case", "umlauts"]
    rows = [long_text("heron", "osprey"), *(TEXTS[kind] for kind in texts), "The short one names an osprey"]
    rows += [f"{text} deleted" for text in rows]
    for number, text in enumerate(rows):
        deleted = number >= len(rows) // 2
        connection.execute(
            "INSERT INTO memories (id, type, content, normalized_content, content_hash, content_sha256, cjk,"
            " importance, created_at, updated_at, is_deleted, deleted_at)"
            " VALUES (?, 'fact', ?, '', ?, ?, ?, 0.5, '', '', ?, ?)",
            (
                f"long-{number}",
                text,
                content_hash(text),
                hashlib.sha256(text.encode()).digest(),
                indexed_beside(text),
                deleted,
                "" if deleted else None,
            ),
        )
        connection.execute(
            "INSERT INTO memory_history (id, memory_id, event, new_content, changed_by, created_at)"
            " VALUES (?, ?, 'created', ?, 'daemon', '')",
            (f"long-{number}", f"long-{number}", text),
        )
    migrate(connection, path, SetClock())
    sql = "SELECT m.id FROM memories_fts f JOIN memories m ON m.seq = f.rowid WHERE memories_fts MATCH ? ORDER BY m.seq"
    assert connection.execute(sql, ("heron",)).fetchall() == [("long-0",)]
    assert connection.execute(sql, ("osprey",)).fetchall() == [("long-4",)]
    sizes = "SELECT max(length(m.cjk)) FROM memories m WHERE m.id LIKE 'long-%'"
    assert connection.execute(sizes).get < 6 * INDEXED_CHARS
    connection.close()
    assert check_database(path, deep=True).findings == []
