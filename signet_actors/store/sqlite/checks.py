"""All checks of a database, shared by the tests, ``signet doctor``, the daily scrub and the backup verification.

``integrity_check`` does not verify unindexed columns, so contents are compared with their checksums and hashes, and
vectors with their copies in ``vec0``.

Source: docs/reliability.md R18 and "Invariants".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import apsw

from signet_actors.domain.graph.names import CHUNK_GROUP
from signet_actors.domain.jobs import MAX_DELAY_MS
from signet_actors.domain.normalization import content_hash, former_content_hash
from signet_actors.errors import CheckIncomplete
from signet_actors.store.findings import (
    CONTENT,
    HISTORY_PURGED,
    INDEX,
    MOST_FINDINGS,
    ROWS,
    STRUCTURE,
    Finding,
    incomplete,
)
from signet_actors.store.sqlite.errors import UNCHECKABLE
from signet_actors.store.sqlite.page_checks import is_unread_page
from signet_actors.store.sqlite.schema import differences, load_migrations
from signet_actors.store.sqlite.vector_checks import sequence_errors, vector_errors


class Invariant(NamedTuple):
    """A query for rows that violate an invariant. It applies from schema version ``since`` on."""

    kind: str
    name: str
    sql: str
    since: int = 1


NO_HISTORY_PURGED: Final = (
    "EXISTS (SELECT 1 FROM memory_history WHERE seq = 1)"
    f" AND NOT EXISTS (SELECT 1 FROM store_meta WHERE key = '{HISTORY_PURGED}')"
)
"""SQL condition: no history was purged. Earlier releases noted no purge. It begins with the oldest event, which is the
first one unless the clock was wrong."""

MAX_COUNT: Final = 1 << 53
"""The highest allowed count: the next one must still be exact in SQLite and in every JSON parser."""
MAX_COLUMN: Final = (1 << 31) - 1
"""The highest number in a column of a searcher."""
MAX_FIELD_BYTES: Final = 1 << 20
"""Far above the limit for requests; a row with a longer field could not be returned in a reply."""
_SHORT_FIELDS: Final = (
    "id type category content_hash source_type source_id source_path runtime_path idempotency_key session_id tags who"
    " why project scope agent_id deleted_at extraction_model embedding_model last_accessed created_at updated_at"
    " updated_by"
)
_LENGTHS: Final = ", ".join(f"coalesce(octet_length({name}), 0)" for name in _SHORT_FIELDS.split())

_SHORT_TEXTS: Final = " || ' ' || ".join(f"coalesce({name}, '')" for name in _SHORT_FIELDS.split())

INVARIANTS: Final[tuple[Invariant, ...]] = (
    Invariant(
        ROWS,
        "two live memories in one scope have the same content",
        (
            "SELECT agent_id, visibility, project, scope, content_hash FROM memories WHERE is_deleted = 0"
            " GROUP BY 1, 2, coalesce(project, ''), coalesce(scope, ''), 5 HAVING count(*) > 1"
        ),
    ),
    Invariant(
        ROWS,
        "a memory has no created event in its history",
        (
            f"SELECT m.id FROM memories m WHERE {NO_HISTORY_PURGED} AND NOT EXISTS"
            " (SELECT 1 FROM memory_history h WHERE h.memory_id = m.id AND h.event = 'created')"
        ),
    ),
    Invariant(
        ROWS,
        "a memory's version does not match its history",
        (
            f"SELECT m.id FROM memories m WHERE {NO_HISTORY_PURGED} AND m.version <> 1 +"
            " (SELECT count(*) FROM memory_history h"
            " WHERE h.memory_id = m.id AND h.event IN ('updated', 'deleted', 'recovered', 'merged'))"
        ),
    ),
    Invariant(
        ROWS,
        "two memories in one scope have the same idempotency key",
        (
            "SELECT idempotency_key FROM memories WHERE idempotency_key IS NOT NULL"
            " GROUP BY agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), idempotency_key"
            " HAVING count(*) > 1"
        ),
    ),
    Invariant(
        ROWS,
        "a pending job has no attempts left",
        "SELECT id FROM memory_jobs WHERE status = 'pending' AND attempts >= max_attempts",
    ),
    Invariant(
        ROWS,
        "an entity mention refers to a missing memory",
        (
            "SELECT x.memory_id FROM memory_entity_mentions x LEFT JOIN memories m ON m.id = x.memory_id"
            " WHERE m.id IS NULL"
        ),
    ),
    Invariant(
        ROWS,
        "an entity's mention count is wrong",
        (
            "SELECT e.id FROM entities e WHERE e.mentions <>"
            " (SELECT count(*) FROM memory_entity_mentions x LEFT JOIN memories m ON m.id = x.memory_id"
            f" WHERE x.entity_id = e.id AND (m.is_deleted = 0 OR e.entity_type = '{CHUNK_GROUP}'))"
        ),
    ),
    Invariant(
        ROWS,
        "the graph has something of a missing memory",
        (
            "SELECT x.memory_id FROM (SELECT a.memory_id FROM entity_attributes a"
            " UNION SELECT s.memory_id FROM memory_relation_mentions s) x"
            " WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = x.memory_id)"
        ),
        since=26,
    ),
    Invariant(
        INDEX,
        "an embedding refers to a missing memory",
        (
            "SELECT e.seq FROM embeddings e LEFT JOIN memories m ON m.id = e.source_id"
            " WHERE e.source_type = 'memory' AND m.id IS NULL"
        ),
    ),
    Invariant(
        INDEX,
        "a memory refers to a missing vector or one of another memory",
        (
            "SELECT m.id FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
            " WHERE m.embedding_seq IS NOT NULL AND (e.seq IS NULL OR e.source_id <> m.id)"
        ),
    ),
    Invariant(
        INDEX,
        "a memory's vector was computed from another content",
        (
            "SELECT m.id FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
            " WHERE e.content_hash <> m.content_hash"
        ),
    ),
    Invariant(
        ROWS,
        "a memory's tags are not a list of strings",
        (
            "SELECT m.id FROM memories m WHERE CASE WHEN json_valid(m.tags) THEN json_type(m.tags) <> 'array'"
            " OR EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.type <> 'text') ELSE 1 END"
        ),
    ),
    Invariant(
        ROWS,
        "a memory has a count that is out of range",
        (
            f"SELECT id FROM memories WHERE version NOT BETWEEN 1 AND {MAX_COUNT}"
            f" OR update_count NOT BETWEEN 0 AND {MAX_COUNT} OR access_count NOT BETWEEN 0 AND {MAX_COUNT}"
            f" OR injected_count NOT BETWEEN 0 AND {MAX_COUNT}"
        ),
    ),
    Invariant(
        ROWS,
        "a memory has its words since a version that it never had",
        f"SELECT id FROM memories WHERE content_version NOT BETWEEN 1 AND min(version, {MAX_COLUMN})",
        since=19,
    ),
    Invariant(
        ROWS,
        "a memory has a field that is too long",
        f"SELECT substr(id, 1, 40) FROM memories WHERE max({_LENGTHS}) > {MAX_FIELD_BYTES}",
    ),
    Invariant(
        INDEX,
        "a memory's tags differ from its tag rows",
        (
            # Both halves look a tag up by its key, (tag, memory_seq); tag rows have no index of memories.
            "SELECT m.id FROM memories m JOIN json_each(m.tags) j"
            " WHERE NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.tag = j.value AND t.memory_seq = m.seq)"
            " UNION SELECT m.id FROM memory_tags t CROSS JOIN memories m ON m.seq = t.memory_seq"
            " WHERE t.tag NOT IN (SELECT j.value FROM json_each(m.tags) j)"
        ),
    ),
    Invariant(
        INDEX,
        "a tag row refers to a missing memory",
        "SELECT t.tag FROM memory_tags t LEFT JOIN memories m ON m.seq = t.memory_seq WHERE m.seq IS NULL",
    ),
    Invariant(
        ROWS,
        "a job has more attempts than allowed",
        "SELECT id FROM memory_jobs WHERE attempts < 0 OR attempts > max_attempts",
        since=2,
    ),
    Invariant(
        ROWS,
        "a job has an incomplete lease, or a lease without being leased",
        (
            "SELECT id FROM memory_jobs WHERE (status = 'leased') <> (lease_id IS NOT NULL)"
            " OR (status = 'leased') <> (lease_boot IS NOT NULL)"
            " OR (status = 'leased') <> (lease_expires_ns IS NOT NULL)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "an ended job has no end time",
        (
            "SELECT id FROM memory_jobs WHERE (status = 'completed' AND completed_at IS NULL)"
            " OR (status = 'dead' AND failed_at IS NULL)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a job's next attempt is too far in the future",
        (
            "SELECT id FROM memory_jobs WHERE available_at IS NOT NULL AND (status <> 'pending'"
            f" OR available_at > strftime('%Y-%m-%dT%H:%M:%fZ', updated_at, '+{MAX_DELAY_MS // 1000} seconds'))"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a memory has two open jobs of one kind",
        (
            "SELECT memory_id, job_type FROM memory_jobs WHERE status IN ('pending', 'leased')"
            " AND memory_id IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a pipeline run belongs to a job that did not complete",
        (
            "SELECT r.id FROM pipeline_runs r JOIN memory_jobs j ON j.id = r.job_id"
            " WHERE j.status <> 'completed' OR j.job_type <> 'extract' OR j.memory_id IS NOT r.memory_id"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a pipeline run's number of proposals is wrong",
        (
            "SELECT r.id FROM pipeline_runs r WHERE"
            " r.proposals <> (SELECT count(*) FROM memory_proposals p WHERE p.run_id = r.id AND p.job_id = r.job_id)"
            " OR r.proposals <> (SELECT coalesce(sum(c.value), 0) FROM json_each(r.counts) c)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a proposal has no event in the history",
        (
            f"SELECT p.id FROM memory_proposals p WHERE {NO_HISTORY_PURGED} AND NOT EXISTS"
            " (SELECT 1 FROM memory_history h WHERE h.job_id = p.job_id AND h.id = p.history_id)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a change by a pipeline run is missing from the memory's history",
        (
            f"SELECT p.id FROM memory_proposals p WHERE {NO_HISTORY_PURGED}"
            " AND p.outcome IN ('created', 'updated', 'deleted') AND NOT EXISTS (SELECT 1 FROM memory_history h"
            " WHERE h.job_id = p.job_id AND h.id = p.history_id AND h.memory_id = p.result_memory_id"
            " AND h.event = p.outcome)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a review's state contradicts its decision time or its outcome",
        (
            "SELECT id FROM memory_proposals WHERE (review_state IS NOT NULL AND review_state <> 'pending')"
            " <> (reviewed_at IS NOT NULL) OR (review_state = 'pending') <> (outcome IN ('review', 'blocked')"
            " AND review_state IS NOT NULL) OR (outcome = 'review' AND review_state IS NULL)"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a proposal is marked as undone, but its pipeline run is not",
        (
            "SELECT p.id FROM memory_proposals p JOIN pipeline_runs r ON r.id = p.run_id"
            " WHERE (p.outcome = 'undone' OR p.undo_note IS NOT NULL) AND r.undone_at IS NULL"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a proposal's reason may quote an erased memory",
        (
            "SELECT p.id FROM shown_memories s JOIN memory_proposals p ON p.seq = s.proposal_seq"
            " LEFT JOIN memories m ON m.seq = s.memory_seq WHERE m.seq IS NULL"
        ),
        since=3,
    ),
    Invariant(
        INDEX,
        "a hint refers to a missing or deleted memory",
        (
            "SELECT h.seq FROM memory_hints h LEFT JOIN memories m ON m.id = h.memory_id AND m.seq = h.memory_seq"
            " WHERE m.id IS NULL OR m.is_deleted = 1"
        ),
        since=2,
    ),
    Invariant(
        ROWS,
        "a turn belongs to no transcript",
        (
            "SELECT u.seq FROM session_turns u LEFT JOIN session_transcripts t ON t.seq = u.transcript_seq"
            " WHERE t.seq IS NULL"
        ),
        since=7,
    ),
)
"""All invariants; each holds after every committed transaction."""

TEXT_INDEXES: Final = (("memories_fts", 1), ("memory_hints_fts", 2), ("session_turns_fts", 7))
"""Each text index and the first schema version that has it."""


def scrub(
    connection: apsw.Connection, *, deep: bool = True, heartbeat: Callable[[], None] = lambda: None
) -> list[Finding]:
    """Return what is wrong with the database, at most ``MOST_FINDINGS`` findings; empty if it is intact.

    Without ``deep``: only the schema's objects, structure, foreign keys, text indexes, and the checksums of contents.
    ``connection`` must be writable: FTS5 runs its integrity check through an INSERT that changes nothing. Raises
    ``CheckIncomplete``.
    """
    try:
        found, foreign = schema_findings(connection)
    except UNCHECKABLE as error:
        raise incomplete(error) from error
    except apsw.Error as error:
        return [Finding(STRUCTURE, f"the schema cannot be read: {type(error).__name__}: {error}")]
    if foreign:
        return found  # further checks could execute triggers or views that the file contains
    for check in (*_SHALLOW, *(_DEEP if deep else ())):
        found += _guarded(check(connection), "a check could not read the database")
        heartbeat()
        if len(found) >= MOST_FINDINGS:
            break
    return found[:MOST_FINDINGS]


def _guarded(check: Iterator[Finding], what: str, *, missing: str = STRUCTURE) -> Iterator[Finding]:
    """Yield the findings of a check; an error while it reads becomes a finding of structure.

    ``missing`` is the kind of the finding if a table or column is missing. Raises ``CheckIncomplete``.
    """
    try:
        yield from islice(check, MOST_FINDINGS)
    except UNCHECKABLE as error:
        raise incomplete(error) from error
    except (apsw.Error, UnicodeDecodeError) as error:
        kind = missing if isinstance(error, apsw.SQLError) else STRUCTURE
        yield Finding(kind, f"{what}: {type(error).__name__}: {error}")


def schema_findings(connection: apsw.Connection) -> tuple[list[Finding], bool]:
    """Return what is wrong with the schema, and whether an object was added or changed and so may run unknown code.

    Raises apsw errors of the disk or a lock, because they do not mean that the file is damaged.
    """
    found: list[Finding] = []
    foreign = False
    try:
        if (encoding := connection.pragma("encoding")) != "UTF-8":
            found.append(Finding(STRUCTURE, f"texts are stored as {encoding}, not as UTF-8"))
        for difference in islice(differences(connection), MOST_FINDINGS):
            found.append(Finding(INDEX if difference.derived else STRUCTURE, difference.text))
            foreign = foreign or difference.foreign
    except (apsw.IOError, apsw.BusyError, apsw.FullError, apsw.NoMemError):
        raise
    except (apsw.Error, UnicodeDecodeError) as error:
        found.append(Finding(STRUCTURE, f"the schema cannot be read: {type(error).__name__}: {error}"))
    return found, foreign


def _structure(connection: apsw.Connection) -> Iterator[Finding]:
    for (verdict,) in connection.execute("PRAGMA integrity_check"):
        if verdict != "ok":
            text = str(verdict)
            if is_unread_page(text):
                raise CheckIncomplete(f"could not be checked: {text}")
            derived = "vec_embeddings" in text or any(index in text for index, _ in TEXT_INDEXES)
            yield Finding(INDEX if derived else STRUCTURE, text)


def _foreign_keys(connection: apsw.Connection) -> Iterator[Finding]:
    for row in connection.execute("PRAGMA foreign_key_check"):
        yield Finding(ROWS, f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}")


def _text_index(connection: apsw.Connection) -> Iterator[Finding]:
    for index, since in TEXT_INDEXES:
        if _schema(connection) < since:
            continue
        try:
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        except UNCHECKABLE:
            raise
        except apsw.Error as error:
            yield Finding(INDEX, f"the text index {index} does not match its rows: {error}")


def _schema(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def _contents(connection: apsw.Connection) -> Iterator[Finding]:
    for memory_id, content, checksum, digest, fields in connection.execute(
        "SELECT CAST(id AS BLOB), CAST(content AS BLOB), content_sha256, CAST(content_hash AS BLOB),"
        f" CAST({_SHORT_TEXTS} AS BLOB) FROM memories"
    ):
        name = "?" if memory_id is None else memory_id.decode(errors="replace")
        if memory_id is None or content is None:  # both columns are NOT NULL, so the page is torn
            yield Finding(STRUCTURE, f"memory {name} has no {'id' if memory_id is None else 'content'}")
        elif hashlib.sha256(content).digest() != checksum:
            yield Finding(CONTENT, f"memory {name}: the content does not match its checksum")
        elif content_hash(text := content.decode()).encode() != digest and former_content_hash(text).encode() != digest:
            yield Finding(CONTENT, f"memory {name}: the content does not match its hash")
        elif not _is_utf8(fields):
            yield Finding(ROWS, f"memory {name}: a field is no valid text")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _invariants(connection: apsw.Connection) -> Iterator[Finding]:
    schema = _schema(connection)
    for kind, name, sql, since in INVARIANTS:
        if schema >= since:
            yield from _guarded(_rows_of(connection, kind, name, sql), name)


def _rows_of(connection: apsw.Connection, kind: str, name: str, sql: str) -> Iterator[Finding]:
    for row in connection.execute(sql):
        yield Finding(kind, f"{name}: {row}")


def _vectors(connection: apsw.Connection) -> Iterator[Finding]:
    """Check that each vector has its length, is finite, and equals its copy in ``vec0``.

    Exactly the vectors of live memories must have such a copy.
    """
    tables: dict[tuple[str, int], str] = {
        (model, dimensions): f"vec_embeddings_{number}"
        for number, model, dimensions in connection.execute("SELECT id, model, dimensions FROM embedding_models")
    }
    for (model, dimensions), table in tables.items():
        found = (Finding(INDEX, text) for text in vector_errors(connection, model, dimensions, table))
        yield from _guarded(found, f"the vectors of {model}", missing=INDEX)
    unknown = connection.execute(
        "SELECT count(*) FROM embeddings e WHERE NOT EXISTS"
        " (SELECT 1 FROM embedding_models x WHERE x.model = e.model AND x.dimensions = e.dimensions)"
    ).get
    if unknown:
        yield Finding(INDEX, f"{unknown} vectors belong to a model that is not registered")


def _sequences(connection: apsw.Connection) -> Iterator[Finding]:
    for text in sequence_errors(connection):
        yield Finding(INDEX, text)


def _migrations(connection: apsw.Connection) -> Iterator[Finding]:
    """Check that the recorded migrations are those of this release up to the file's schema version."""
    version = _schema(connection)
    known = load_migrations()
    if not 0 < version <= len(known):
        return
    recorded = dict(connection.execute("SELECT version, checksum FROM schema_migrations"))
    expected = {migration.version: migration.checksum for migration in known[:version]}
    for number in sorted(recorded.keys() ^ expected.keys()):
        yield Finding(
            STRUCTURE, f"the schema version and the table schema_migrations disagree about migration {number}"
        )
    for number in sorted(recorded.keys() & expected.keys()):
        if recorded[number] != expected[number]:
            yield Finding(STRUCTURE, f"migration {number} was applied with a different text than in this release")


_SHALLOW = (_structure, _migrations, _sequences, _foreign_keys, _text_index, _contents)
_DEEP = (_invariants, _vectors)
