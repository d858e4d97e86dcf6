"""SQL statements are in ``signet_actors/store/`` and in ``reads.py`` and ``writes.py`` of features, nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "signet_actors"

_STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|WITH)\b.*\bFROM\b|(?:INSERT|REPLACE)\b.*\bINTO\b|UPDATE\b.*\bSET\b|DELETE\s+FROM\b|PRAGMA\b"
    r"|(?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+|VIRTUAL\s+|TEMP\s+)?(?:TABLE|INDEX|TRIGGER|VIEW)\b)",
    re.DOTALL,
)


def statements(source: str) -> list[str]:
    """Return the string literals of the module that are SQL statements; a value in an f-string counts as a word."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    ]
    texts += [
        "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)  # type: ignore[misc]
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    ]
    return [text for text in texts if _STATEMENT.match(text)]


OF_FEATURES = [*PACKAGE.glob("features/*/reads.py"), *PACKAGE.glob("features/*/writes.py")]


def test_no_other_module_contains_a_statement() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in {*PACKAGE.rglob("*.py")}.difference(PACKAGE.glob("store/**/*.py"), OF_FEATURES)
        if statements(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "planted",
    [
        'tx.one("SELECT seq FROM memories WHERE id = ?", (memory_id,))',
        'SQL = f"SELECT {columns} FROM memories m WHERE {predicate}"',
        'tx.execute("INSERT OR IGNORE INTO memory_tags (tag) VALUES (?)", (tag,))',
        'tx.execute(f"UPDATE memories SET {assignments} WHERE seq = ?", values)',
        'tx.execute("DELETE FROM memories WHERE seq = ?", (seq,))',
        'connection.execute("PRAGMA data_version")',
        'connection.execute(f"CREATE VIRTUAL TABLE {table} USING vec0(embedding)")',
        'SQL = """\n    SELECT * FROM (\n"""',
    ],
)
def test_a_planted_statement_is_found(planted: str) -> None:
    assert len(statements(planted)) == 1


@pytest.mark.parametrize("text", ["Select one from the list", "UPDATE the roster", "CREATED", "INSERT", "DELETE"])
def test_prose_is_not_reported_as_a_statement(text: str) -> None:
    assert statements(f"{text!r}") == []


def test_the_statements_of_the_store_are_recognised() -> None:
    assert statements((PACKAGE / "store" / "reads" / "memories.py").read_text(encoding="utf-8"))


_ENGINES_OWN = re.compile(
    r"\?|'\$|json_|_fts\b|\bMATCH\b|\bPRAGMA\b|\bsqlite_|\browid\b|\bgroup_concat\b|\bINSERT\s+OR\b|\bREPLACE\b|\bGLOB\b"
    r"|\bINDEXED\b|\bunixepoch\b|\bstrftime\b|\bbm25\b|\bvec_|\brandomblob\b|\+(?=[\w:])|\bmax\([^()]*,|\bmin\([^()]*,"
    r"|\bIS(\s+NOT)?\s+(?!NULL\b|NOT\b|DISTINCT\b)"
)
"""What SQLite understands in a statement and PostgreSQL does not; a name after ``IS`` compares only there."""


@pytest.mark.parametrize("kind", ["reads", "writes"])
def test_a_shared_statement_has_nothing_of_one_engine(kind: str) -> None:
    found = {
        f"{path}: {text}"
        for path in (*PACKAGE.glob(f"store/{kind}/*.py"), *PACKAGE.glob(f"features/*/{kind}.py"))
        for text in sql_literals(path.read_text(encoding="utf-8"))
        if _ENGINES_OWN.search(text)
    }
    assert found == set()


def sql_literals(source: str) -> list[str]:
    """Return the string literals of the module, but for docstrings and names."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and " " in node.value
    ]


@pytest.mark.parametrize(
    "planted",
    [
        "SELECT m.seq FROM memories m WHERE m.id = ?",
        "SELECT m.seq FROM memories m WHERE m.id IN (SELECT value FROM json_each(:ids))",
        "SELECT s.seq FROM sqlite_sequence s WHERE s.name = :name",
        "SELECT f.rank FROM memories_fts f WHERE memories_fts MATCH :match",
        "INSERT OR IGNORE INTO memory_tags (tag) VALUES (:tag)",
        "UPDATE entities SET mentions = max(0, mentions - 1) WHERE id = :id",
        "SELECT h.metadata ->> '$.reason' FROM memory_history h",
        "SELECT m.seq FROM memories m WHERE +m.agent_id = :agent_id",
        "SELECT j.seq FROM memory_jobs j INDEXED BY idx_memory_jobs_leased",
        "SELECT j.seq FROM memory_jobs j WHERE j.error IS NOT :error",
        "SELECT e.rowid FROM embeddings e",
    ],
)
def test_what_only_sqlite_understands_is_found(planted: str) -> None:
    assert _ENGINES_OWN.search(planted)


@pytest.mark.parametrize(
    "shared",
    [
        "SELECT j.seq FROM memory_jobs j WHERE j.error IS NOT DISTINCT FROM :error OR j.error IS NOT NULL",
        "UPDATE memories SET version = version + 1 WHERE seq = :seq",
        "SELECT max(m.seq), coalesce(max(m.version), 0) FROM memories m",
        "SELECT h.metadata ->> 'reason' FROM memory_history h",
    ],
)
def test_what_both_engines_understand_is_no_finding(shared: str) -> None:
    assert _ENGINES_OWN.search(shared) is None


def connections(source: str) -> list[str]:
    """Return the attributes of the module that hold a connection."""
    return [
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in {"connection", "_connection"}
    ]


@pytest.mark.parametrize("user", ["writer", "searcher", "features", "store/reads", "store/writes"])
def test_no_connection_leaves_the_engine(user: str) -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in (PACKAGE / user).rglob("*.py")
        if connections(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "planted",
    ["self.connection = open_writer(path)", "tx.connection.changes()", "self.engine._connection.execute(sql)"],
)
def test_a_planted_connection_is_found(planted: str) -> None:
    assert len(connections(planted)) == 1
