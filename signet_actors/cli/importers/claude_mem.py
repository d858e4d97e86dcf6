"""Memories of claude-mem: the JSON that its export script writes, or its database ``claude-mem.db``.

Observations, summaries of sessions and active directives become memories; prompts do not.

Source: docs/transfer.md "Other formats"; the schema and the export format of claude-mem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signet_actors.cli.importers import source

WANTED = "export from claude-mem with its script export-memories, or give its database, ~/.claude-mem/claude-mem.db"
SUMMARY_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def memories(path: Path, findings: source.Findings) -> Iterator[source.Line]:
    """Yield the memories of the file; raise NotThisFormat if it does not come from claude-mem."""
    if source.is_database(path):
        tables = source.rows_of(path, ("observations", "session_summaries", "directives"))
        if "observations" not in tables or "session_summaries" not in tables:
            raise source.NotThisFormat(f"{path} is a database, but not one of claude-mem; {WANTED}")
        found = {"observations": tables["observations"], "summaries": tables["session_summaries"]}
        directives = tables.get("directives", [])
    else:
        found, directives = source.read_json(path, WANTED), []
        if not isinstance(found, dict) or not all(_is_rows(found.get(name)) for name in ("observations", "summaries")):
            raise source.NotThisFormat(f"{path} is not an export of claude-mem; {WANTED}")
    for row in found["observations"]:
        yield from _observation(row, findings)
    for row in found["summaries"]:
        yield from _summary(row, findings)
    for row in directives:
        if row.get("status", "active") == "active" and row.get("content"):
            place = f"claude-mem:directive:{row.get('id')}"
            yield source.line(str(row["content"]), **_about(row, place, findings), type="rule", tags=["directive"])


def _observation(row: Mapping[str, Any], findings: source.Findings) -> Iterator[source.Line]:
    facts = [f"- {fact}" for fact in source.listed(row.get("facts"))]
    parts = [row.get(name) for name in ("title", "subtitle", "narrative", "text")]
    content = "\n".join([str(part).strip() for part in parts if part] + facts)
    if content.strip():
        kind = str(row.get("type") or "")
        tags = source.tags_of([kind], source.listed(row.get("concepts")))
        place = f"claude-mem:observation:{row.get('id')}"
        yield source.line(content, **_about(row, place, findings), type=source.type_of(kind), tags=tags)


def _summary(row: Mapping[str, Any], findings: source.Findings) -> Iterator[source.Line]:
    told = [(name, str(row[name]).strip()) for name in SUMMARY_PARTS if row.get(name)]
    if told:
        content = "\n".join(f"{name.replace('_', ' ')}: {text}" for name, text in told)
        place = f"claude-mem:summary:{row.get('id')}"
        yield source.line(content, **_about(row, place, findings), type="session_summary", tags=["session-summary"])


def _about(row: Mapping[str, Any], place: str, findings: source.Findings) -> dict[str, Any]:
    session = row.get("memory_session_id")
    return {
        "project": row.get("merged_into_project") or row.get("project"),
        "sessionId": session if isinstance(session, str) else None,
        "createdAt": findings.time(place, created_at=row.get("created_at")),
        "who": "claude-mem",
        "sourceType": "claude-mem",
        "sourceId": f"{place}:{row.get('created_at_epoch')}",
    }


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)
