"""The rows of another program's SQLite database, read by a process of the writer's tool: no SQL runs here.

Source: docs/architecture.md "Dependency rules" 5 and 7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.importers.source import DATABASE_MAGIC, NotThisFormat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TIMEOUT_S: Final = 600


def is_database(path: Path) -> bool:
    """Return whether the file begins like a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(DATABASE_MAGIC)) == DATABASE_MAGIC
    except OSError:
        return False


def rows_of(path: Path, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of those tables that the database has; raise NotThisFormat if it cannot be read."""
    tool = [sys.executable, "-P", "-m", "signet_actors.writer", "--rows", str(path.absolute()), "--parent"]
    ran = subprocess.run(
        [*tool, str(os.getpid()), *(part for table in tables for part in ("--table", table))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise NotThisFormat(f"{path} cannot be read: {said[-1] if said else 'the reading process failed'}")
    found: dict[str, list[dict[str, Any]]] = {}
    for text in ran.stdout.splitlines():
        table, row = json.loads(text)
        rows = found.setdefault(table, [])
        if row is not None:
            rows.append(row)
    return found
