"""Keep the log directory within its limits; only the supervisor does this.

A full file is renamed to ``daemon-<day>.<n>.log``; the processes notice by its inode and open a new one. Files that are
too old are removed, then the oldest beyond the total size.
"""

from __future__ import annotations

from pathlib import Path

from signet_actors.config.schema import LoggingConfig
from signet_actors.runtime.logging.configuration import log_path

_DAY_MS = 86_400_000


def rotate_logs(directory: Path, limits: LoggingConfig, wall_ms: int) -> None:
    """Bring the directory within ``limits``; today's file is never removed."""
    current = log_path(directory, wall_ms)
    try:
        if current.stat().st_size >= limits.max_file_bytes:
            current.rename(_next_name(current))
    except FileNotFoundError:
        pass
    oldest_ms = wall_ms - limits.retention_days * _DAY_MS
    found: list[tuple[float, int, Path]] = []
    for path in directory.glob("daemon-*.log"):
        try:
            facts = path.stat()
        except FileNotFoundError:
            continue
        found.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in found)
    for mtime, size, path in sorted(found):
        if path == current or (mtime * 1000 >= oldest_ms and total <= limits.max_total_bytes):
            continue
        path.unlink(missing_ok=True)
        total -= size


def _next_name(current: Path) -> Path:
    number = 1
    while (candidate := current.with_name(f"{current.stem}.{number}.log")).exists():
        number += 1
    return candidate
