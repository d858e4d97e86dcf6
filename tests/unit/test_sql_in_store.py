"""SQL statements are in ``signet_actors/store/`` and nowhere else."""

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


def test_no_module_outside_the_store_contains_a_statement() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "store" and statements(path.read_text(encoding="utf-8"))
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
