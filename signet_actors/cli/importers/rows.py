"""The rows of another program's SQLite database, read by a process of the writer's tool: no SQL runs here.

Source: docs/architecture.md "Dependency rules" 5 and 7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from signet_actors.cli.importers.source import DATABASE_MAGIC, MAX_JSON_BYTES, NotThisFormat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def is_database(path: Path) -> bool:
    """Return whether the file begins like a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(DATABASE_MAGIC)) == DATABASE_MAGIC
    except OSError:
        return False


def rows_of(path: Path, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of those tables that the database has.

    Raises NotThisFormat if it cannot be read, or is too large to be held in memory.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for table, row in each_row(path, tables, most_bytes=MAX_JSON_BYTES):
        rows = found.setdefault(table, [])
        if row is not None:
            rows.append(row)
    return found


def each_row(
    path: Path, tables: Sequence[str], *, most_bytes: int | None = None
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each row with its table, table by table; first None for each table that the database has.

    Raises NotThisFormat if it cannot be read, or if its rows have more than ``most_bytes``.
    """
    read_bytes = 0
    tool = [sys.executable, "-P", "-m", "signet_actors.writer", "--rows", str(path.absolute()), "--parent"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [*tool, str(os.getpid()), *(part for table in tables for part in ("--table", table))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as reader,
    ):
        try:
            assert reader.stdout is not None
            for text in reader.stdout:
                read_bytes += len(text)
                if most_bytes is not None and read_bytes > most_bytes:
                    raise NotThisFormat(f"{path} has more than {most_bytes // 2**20} MiB of text")
                table, row = json.loads(text)
                yield table, row
            failed = reader.wait() != 0
        finally:
            reader.kill()
        if failed:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            raise NotThisFormat(f"{path} cannot be read: {said[-1] if said else 'the reading process failed'}")
