"""Memories of other programs, as these write them: by their documented formats and schemas."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

UUID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
NOTE = """---
title: Deployments
tags: [ops, "C++"]
date: 2026-01-02
project: orderdesk
author: noor
---
Read this before a release.

# When

Never on Fridays.

## Exceptions

```sh
# this is no heading
make release
```

Setext heading
--------------

Below it.

# Empty

## 例外

緊急時のみ。
"""
COFFEE = """---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]
permalink: coffee-brewing-methods
---

# Coffee Brewing Methods

Two ways, compared.

## Observations
- [method] Pour over provides more flavor clarity
- [decision] Water at 93 degrees #brewing (since May)
- [ ] a task
- [x] a done task
- [a link](https://example.com)

## Relations
- relates_to [[Coffee Bean Origins]]
- [[Only a link]]
"""
MEM0: dict[str, Any] = {
    "results": [
        {
            "id": UUID,
            "memory": "Likes pizza",
            "hash": "ab",
            "metadata": {"tags": ["home"]},
            "categories": ["food"],
            "created_at": "2026-01-02T10:00:00.123456-08:00",
            "updated_at": None,
            "user_id": "alice",
            "run_id": "run-7",
        }
    ]
}
OBSERVATION: dict[str, Any] = {
    "id": 7,
    "memory_session_id": "session-1",
    "project": "orderdesk",
    "type": "decision",
    "title": "Retry with backoff",
    "subtitle": None,
    "narrative": "The payment provider fails in bursts.",
    "facts": '["at most 5 times", "with jitter"]',
    "concepts": '["trade-off"]',
    "created_at": "2026-01-02T10:00:00.000Z",
    "created_at_epoch": 1767348000000,
}
SUMMARY: dict[str, Any] = {
    "id": 3,
    "memory_session_id": "session-1",
    "project": "orderdesk",
    "request": "Make payments robust",
    "learned": "Bursts last a minute",
    "next_steps": "",
    "created_at": "2026-01-02T11:00:00.000Z",
    "created_at_epoch": 1767351600000,
}


def database(path: Path, **tables: list[dict[str, Any]]) -> Path:
    """A database with these tables, whose columns are the members of the first row."""
    connection = sqlite3.connect(path)
    for name, rows in tables.items():
        columns = ", ".join(f'"{column}"' for column in rows[0])
        connection.execute(f"CREATE TABLE {name} ({columns})")
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {name} VALUES ({marks})", tuple(row.values()))
    connection.commit()
    connection.close()
    return path


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


REFERENCE_ROW: dict[str, Any] = {
    "id": UUID,
    "type": "preference",
    "category": "x",
    "content": "User prefers vim",
    "confidence": 1.0,
    "importance": 0.9,
    "source_id": "s1",
    "source_type": "manual",
    "tags": '["editor", "C++"]',
    "who": "claude-code",
    "why": None,
    "project": None,
    "is_deleted": 0,
    "pinned": 1,
    "access_count": 4,
    "created_at": "2026-02-21T10:00:00.000Z",
    "embedding": b"\x00\x01",
}
