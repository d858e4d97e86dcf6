"""The schema that a database must have: the migrations of this release and the objects that they create.

A database file may contain triggers, views and virtual tables that run without the user's knowledge. So a file from
outside, and the database at each start, is compared object by object with what the migrations up to its version create.

Source: docs/reliability.md R18; https://sqlite.org/security.html.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, NamedTuple

import apsw

from signet_actors.domain.memories import former_type_source
from signet_actors.domain.normalization import content_hash, former_content_hash, normalized_content
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.store.sqlite.connect import open_memory
from signet_actors.store.sqlite.vectors import create_vec_table

BOOKKEEPING: Final = (
    (
        "CREATE TABLE IF NOT EXISTS schema_migrations ("
        " version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE IF NOT EXISTS schema_migrations_audit ("
        " id INTEGER PRIMARY KEY, version INTEGER NOT NULL, started_at TEXT NOT NULL, duration_ms REAL NOT NULL,"
        " sqlite_version TEXT NOT NULL) STRICT"
    ),
)
"""Tables that record the applied migrations; created before the first one."""

_STATISTICS: Final = {
    ("table", "sqlite_stat1"): ("sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4"): ("sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
"""Tables that an ANALYZE by another program creates; they affect only query plans."""

_REGISTRY: Final = ("table", "embedding_models")

_FUNCTIONS: Final[dict[str, Callable[..., str | None]]] = {
    "signet_normalized": normalized_content,
    "signet_hash": content_hash,
    "signet_former_hash": former_content_hash,
    "signet_indexed_beside": indexed_beside,
    "signet_type_source": former_type_source,
}

Objects = dict[tuple[str, str], tuple[str, str | None]]
"""By type and name: the table and the SQL text (None for an index that SQLite creates itself)."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered migration; ``checksum`` is the SHA-256 of its text."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


class Difference(NamedTuple):
    """A deviation from the expected schema; ``text`` is a message for the user.

    ``foreign``: an object was added or changed and may run unknown code. ``derived``: only an index over stored vectors
    is missing, which can be rebuilt.
    """

    text: str
    foreign: bool = False
    derived: bool = False


def load_migrations() -> tuple[Migration, ...]:
    """Return the migrations of this release in order, numbered 1, 2, … without a gap."""
    found = []
    for entry in resources.files("signet_actors.store.sqlite.migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, entry.read_text("utf-8")))
    found.sort(key=lambda migration: migration.version)
    assert [migration.version for migration in found] == list(range(1, len(found) + 1)), "a migration is missing"
    return tuple(found)


def add_functions(connection: apsw.Connection) -> None:
    """Provide the functions by which migrations compute columns again; nothing that is stored may call them."""
    for name, function in _FUNCTIONS.items():
        connection.create_scalar_function(name, function, deterministic=True, flags=apsw.SQLITE_DIRECTONLY)


def schema_version(connection: apsw.Connection) -> int:
    """Return ``PRAGMA user_version``, the number of the last applied migration."""
    return int(connection.pragma("user_version"))


def objects(connection: apsw.Connection) -> Objects:
    """Return every object of the database's schema. Raises apsw errors."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {(kind, name): (table, sql) for kind, name, table, sql in rows}


def differences(connection: apsw.Connection) -> Iterator[Difference]:
    """Yield objects that are added, missing or changed compared with the migrations up to the database's version.

    A schema newer than this release is not compared. Raises apsw errors.
    """
    version = schema_version(connection)
    if version < 0:
        yield Difference(f"schema {version} never existed", foreign=True)
    if not 0 <= version <= len(load_migrations()):
        return
    present, expected = objects(connection), expected_objects(version, ())
    vectors: frozenset[tuple[str, str]] = frozenset()
    if present.get(_REGISTRY) == expected.get(_REGISTRY) is not None:
        rows: list[tuple[Any, ...]] = connection.execute("SELECT id, dimensions FROM embedding_models").fetchall()
        indexed = tuple(
            (number, dimensions) for number, dimensions in rows if ("table", f"vec_embeddings_{number}") in present
        )
        for number, _ in set(rows) - set(indexed):
            yield Difference(f"the search index of embedding model {number} is missing", derived=True)
        try:
            with_vectors = expected_objects(version, indexed)
        except apsw.Error as error:
            yield Difference(f"an embedding model cannot have a search index: {error}", foreign=True)
        else:
            vectors = frozenset(with_vectors.keys() - expected.keys())
            expected = with_vectors
    for key, found in present.items():
        kind, name = key
        if key not in expected:
            if _STATISTICS.get(key) != found:
                yield Difference(f"the {kind} {name} (on {found[0]}) does not belong to schema {version}", foreign=True)
        elif expected[key] != found:
            yield Difference(f"the {kind} {name} differs from the one of schema {version}", foreign=True)
    for key in expected.keys() - present.keys():
        yield Difference(f"the {key[0]} {key[1]} is missing", derived=key in vectors)


@functools.lru_cache(maxsize=16)
def expected_objects(version: int, models: tuple[tuple[int, int], ...]) -> Objects:
    """Return the objects of a schema version, with the search index of each model (number and dimensions).

    The migrations create them in an in-memory database. Raises apsw errors for an impossible model.
    """
    made = open_memory()
    try:
        for statement in BOOKKEEPING if version else ():
            made.execute(statement)
        add_functions(made)
        for migration in load_migrations()[:version]:
            made.execute(migration.sql)
        for number, dimensions in models:
            create_vec_table(made, number, dimensions)
        return objects(made)
    finally:
        made.close()
