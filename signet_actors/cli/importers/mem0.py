"""Memories of mem0: the JSON of ``Memory.get_all`` or of the platform's API.

Source: docs/transfer.md "Other formats"; the API reference of mem0 "Get memories".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signet_actors.cli.importers.source import Findings, Line, NotThisFormat, line, read_json, tags_of

WANTED = "write the reply of mem0's get_all into a file: json.dump(memory.get_all(…), file)"


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Yield the memories of the file; raise NotThisFormat if it is not a reply of mem0."""
    reply = read_json(path, WANTED)
    found = reply.get("results", reply.get("memories")) if isinstance(reply, dict) else reply
    if not isinstance(found, list) or not all(_is_memory(one) or _is_empty(one) for one in found):
        raise NotThisFormat(f"{path} is not a list of mem0's memories, each with `id` and `memory`; {WANTED}")
    if isinstance(reply, dict):
        _refuse_page(path, reply, len(found))
    for number, one in enumerate(found, 1):
        place = f"{path}: the memory {one['id']}" if one and "id" in one else f"{path}: the memory number {number}"
        if _is_empty(one):
            findings.warnings.append(f"{place} is left out: it has no text")
            continue
        metadata = one["metadata"] if isinstance(one.get("metadata"), dict) else {}
        tags = findings.tags(place, "metadata.tags", metadata.get("tags"))
        yield line(
            one["memory"],
            tags=tags_of(findings.tags(place, "categories", one.get("categories")), tags),
            who=findings.text(place, "user_id", one.get("user_id")),
            sessionId=findings.text(place, "run_id", one.get("run_id")),
            createdAt=findings.time(place, created_at=one.get("created_at")),
            updatedAt=findings.time(place, updated_at=one.get("updated_at")),
            sourceType="mem0",
            sourceId=f"mem0:{one['id']}",
        )


def _refuse_page(path: Path, reply: dict[str, Any], given: int) -> None:
    """Raise NotThisFormat if the reply says that there are more memories than it contains."""
    count = reply.get("count")
    if reply.get("next") or (isinstance(count, int) and count > given):
        raise NotThisFormat(
            f"{path} is one page of a reply, with {given} of {count if isinstance(count, int) else 'more'} memories:"
            " ask for each page (page=1, page=2, … until `next` is null), and write the `results` of all of them as one"
            " JSON list"
        )


def _is_empty(one: Any) -> bool:
    """Return whether this is an entry without text: ``memory`` is null or blank, or nothing at all is in it."""
    if not one:
        return one is None or isinstance(one, dict)
    text = one.get("memory", "no text member") if isinstance(one, dict) else "not an entry"
    return text is None or (isinstance(text, str) and not text.strip())


def _is_memory(one: Any) -> bool:
    return isinstance(one, dict) and "id" in one and isinstance(one.get("memory"), str) and bool(one["memory"].strip())
