"""A long row costs the text index no more than its beginning, and many of them are not read for nothing."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.memories import DERIVED
from signet_actors.domain.normalization import content_hash
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.domain.transcripts.turns import PIECE_CHARS
from signet_actors.domain.written_forms import INDEXED_CHARS, MAX_TURN_WORDS, indexed_beside
from signet_actors.errors import ReplyTooLong
from signet_actors.features.session_summaries import reads as session_summaries
from signet_actors.features.session_summaries.api import EXPAND, ExpandSummaryRequest
from signet_actors.gateway.transcript_capture import capture, with_terms
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal, message_of
from signet_actors.protocol.searcher import FindByPrefix, GetHistory, GetMemory, LegacySearch, ListMemories
from signet_actors.protocol.transcripts import ForgetTranscript, SearchSessions, StoreTurns
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RecoverMemory,
    RememberChunks,
)
from signet_actors.searcher.queries import memories, transcripts
from signet_actors.store.reads import contents
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.writer.check import check_database
from tests.support.store_room import SetClock, StoreRoom, connection_of

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


def stored_turn(room: StoreRoom, text: str) -> None:
    """Store the text as the first row of a turn, as the gateway does."""
    part = capture(json.dumps([{"role": "user", "content": text}]).encode(), Redactor(), lambda: None).parts[0]
    room.ask(StoreTurns("s", "default", "json", with_terms(part[:1], lambda: None)))
    room.connection.execute("CREATE VIRTUAL TABLE temp.turn_words USING fts5vocab('main', 'session_turns_fts', 'col')")


def found_turns(room: StoreRoom, query: str) -> int:
    with room.reader.open_snapshot() as view:
        return len(transcripts.search(view, SearchSessions(query, ReadScope(), 20)).sessions)


@pytest.mark.parametrize("kind", TEXTS)
def test_no_row_of_a_turn_has_more_derived_words_in_the_index_than_the_first(room: StoreRoom, kind: str) -> None:
    stored_turn(room, TEXTS[kind])
    assert room.value("SELECT count(*) FROM temp.turn_words WHERE col = 'cjk'") <= MAX_TURN_WORDS
    assert room.value("SELECT count(*) FROM temp.turn_words WHERE col = 'content'") > 0


@pytest.mark.parametrize("kind", ["Chinese", "Korean", "Japanese", "rare Chinese"])
def test_the_beginning_of_a_long_turn_is_found_in_any_script(room: StoreRoom, kind: str) -> None:
    stored_turn(room, TEXTS[kind])
    assert found_turns(room, TEXTS[kind][4_000:4_002]) == 1


REPEATED = {
    "Chinese": "\u6570\u636e\u5e93\u5728\u7aef\u53e3\u4e94\u56db\u4e09\u4e8c\u3002",
    "Japanese": "\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u9ad8\u3044\u3002",
    "Korean": "\ud654\uc694\uc77c\uc5d0 \ud68c\uc758\uac00 \uc788\ub2e4. ",
    "umlauts": "Die Gr\u00f6\u00dfe der T\u00fcr. ",
    "names": "the crashLoopBackOff of it. ",
    "emoji": "\U0001f680 is up. ",
}


@pytest.mark.parametrize("kind", REPEATED)
def test_a_long_turn_of_a_common_vocabulary_is_indexed_to_its_end(room: StoreRoom, kind: str) -> None:
    sentence, last = REPEATED[kind], "\u7eff\u8336\u5728\u53a8\u623f"
    text = sentence * (PIECE_CHARS // len(sentence) - 1) + last
    stored_turn(room, text)
    assert room.value("SELECT cjk FROM session_turns") == indexed_beside(text)
    assert found_turns(room, "\u53a8\u623f") == 1


def test_an_erased_turn_leaves_no_word_in_the_index(room: StoreRoom) -> None:
    stored_turn(room, TEXTS["Chinese"])
    room.ask(ForgetTranscript("s", "default", Principal()))
    assert room.value("SELECT count(*) FROM temp.turn_words") == 0


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


@pytest.fixture
def megabytes(room: StoreRoom) -> list[str]:
    """Nine memories of a megabyte, parts of a long text that were made longer; they say whether one was read."""
    parts = tuple(f"Part {number} of the long text." for number in range(9))
    stored = room.ask(RememberChunks(NewMemory("\n".join(parts), "fact", 0.5), parts, Principal()))
    for number, memory_id in enumerate(stored.ids):
        patch = MemoryPatch(id=memory_id, reason="r", content=f"{number} " + "x" * 990_000)
        room.ask(ModifyMemory(patch, Principal()))
    return list(stored.ids)


def test_a_reply_that_would_be_too_long_is_refused_before_a_content_is_read(
    room: StoreRoom, megabytes: list[str]
) -> None:
    read, page = ReadScope(), {"limit": 9, "offset": 0}
    patch = MemoryPatch(id=megabytes[0], reason="r", content="y" * 990_000)
    for number in range(5):
        room.ask(ModifyMemory(msgspec.structs.replace(patch, content=f"{number} {patch.content}"), Principal()))
    statements: list[str] = []

    def note(_cursor: Any, sql: str, _bindings: Any) -> bool:
        statements.append(sql)
        return True

    connection_of(room.reader.engine).exec_trace = note
    with room.reader.open_snapshot() as view:
        for ask in (
            lambda: memories.list_memories(room.reader, view, ListMemories(read, **page)),
            lambda: memories.list_memories(room.reader, view, ListMemories(read, most_used=True, **page)),
            lambda: memories.legacy_search(view, LegacySearch(None, read, limit=9)),
            lambda: memories.legacy_search(view, LegacySearch("1 OR 2 OR 3 OR 4 OR 5 OR 6 OR 7 OR 8", read, limit=9)),
            lambda: memories.find_by_prefix(view, FindByPrefix(megabytes[0][:6], read, limit=9)),
            lambda: memories.get_history(view, GetHistory(megabytes[0], read, limit=99)),
            lambda: contents.memories_by_seq(view, read, Filters(), [*range(1, 10)]),
        ):
            with pytest.raises(ReplyTooLong, match="smaller limit"):
                ask()
        assert not [sql for sql in statements if re.search(r"(?<!octet_length\()[mh]\.\w*content\b", sql)]
        shorter = memories.list_memories(room.reader, view, ListMemories(read, limit=8, offset=0))
        assert [memory.id for memory in shorter.memories] == megabytes[:0:-1]


def test_what_has_no_room_beside_a_memory_is_left_out_of_the_reply(room: StoreRoom, megabytes: list[str]) -> None:
    with room.reader.open_snapshot() as view:
        found = memories.get_memory(view, GetMemory(megabytes[7], ReadScope(), with_parts=True))
        assert found.memory is not None
        assert found.memory.id == megabytes[7]
        assert found.parts is not None
        assert [memory_id for memory_id, _ in found.parts] == megabytes
        assert [content is None for _, content in found.parts] == [False] * 6 + [True] * 3
    summary = room.remember("Session summary: a long text").id
    room.connection.execute(
        "UPDATE memories SET source_type = ?, source_id = ? WHERE id <> ?", (DERIVED, summary, summary)
    )
    room.connection.execute(
        "INSERT INTO session_summaries (memory_id, session_key, agent_id, earliest_at, latest_at, created_at)"
        " VALUES (?, 's', 'default', '', '', '')",
        (summary,),
    )
    asked = message_of(EXPAND)(request=ExpandSummaryRequest(id=summary))
    with room.reader.open_snapshot() as view:
        linked = session_summaries.expand(view, asked).linked_memories
        assert [memory.id for memory in linked] == megabytes[::-1]
        assert [memory.content is None for memory in linked] == [False] * 6 + [True] * 3


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
