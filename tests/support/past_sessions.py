"""The home of a person who has used four programs that run agents, with sessions in their real formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.foreign_memories import database

FIXTURES = Path(__file__).resolve().parents[1] / "unit" / "fixtures"
CLAUDE = "0e9f1d7c-3c1e-4f0e-9a55-6d0c6f1b2a01"
CODEX = "019aa5de-7bd4-7c11-8f0e-5a3f1c2d9e01"
CODEX_FORMER = "5973b6c0-94b8-487b-a530-2aeb6098ae0e"
GEMINI = "b2c41e90-6f3a-4d27-8c11-9e0d7a5b3f44"
GEMINI_FORMER = "7d1f3c52-0a4b-4c8e-9a55-2f6b1c0d9e21"
QWEN = "4f0c2a51-7f2f-4d55-9a51-0d2c1b7e8a10"
OPENCODE = "ses_4b1f0a2c7ffeV3p0S5cXh2m1Qe"
PROJECT = "/home/ada/ferry"


def claude_code(home: Path) -> Path:
    """Add the session of Claude Code, and that of a subagent of it."""
    folder = home / ".claude" / "projects" / "-home-ada-ferry"
    path = _copy("claude-code.jsonl", folder / f"{CLAUDE}.jsonl")
    _copy("claude-code.jsonl", folder / "agent-1f2e3d4c.jsonl")
    return path


def codex(home: Path) -> None:
    """Add a session of Codex of today with those of two subagents, and one of an earlier release."""
    folder = home / ".codex" / "sessions"
    path = _copy("codex.jsonl", folder / "2026" / "11" / "21" / f"rollout-2026-11-21T10-00-00-{CODEX}.jsonl")
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": CODEX, "depth": 1}}}
    for key, source in ((f"{CODEX[:-1]}2", {"source": spawned}), (f"{CODEX[:-1]}3", {"thread_source": "subagent"})):
        described = json.loads(first)
        described["payload"] |= {"id": key, **source}
        subagent = path.with_name(f"rollout-2026-11-21T10-01-00-{key}.jsonl")
        subagent.write_text(f"{json.dumps(described)}\n{first}\n{rest}", encoding="utf-8")
    _copy("codex-former.jsonl", folder / "2025" / "08" / "07" / f"rollout-2025-08-07T17-24-21-{CODEX_FORMER}.jsonl")


def gemini(home: Path) -> Path:
    """Add a session of Gemini CLI of today with that of a subagent, and one of an earlier release."""
    folder = home / ".gemini" / "tmp" / "ferry"
    path = _copy("gemini.jsonl", folder / "chats" / f"session-2026-11-22T08-00-{GEMINI[:8]}.jsonl")
    (folder / ".project_root").write_text(PROJECT)
    _copy("gemini.jsonl", folder / "chats" / GEMINI / "3c0ffee0-0000-4000-8000-000000000001.jsonl")
    first, _, rest = path.read_text().partition("\n")
    subagent = {**json.loads(first), "sessionId": "3c0ffee0", "kind": "subagent"}
    (folder / "chats" / "session-2026-11-22T08-01-3c0ffee0.jsonl").write_text(f"{json.dumps(subagent)}\n{rest}")
    former = home / ".gemini" / "tmp" / "8f2b9c1de04a7761" / "chats"
    _copy("gemini.json", former / f"session-2026-11-20T10-00-{GEMINI_FORMER[:8]}.json")
    return path


def qwen(home: Path) -> Path:
    """Add a session of Qwen Code, and that of a subagent of it."""
    folder = home / ".qwen" / "projects" / "-home-ada-ferry"
    _copy("qwen.jsonl", folder / "subagents" / QWEN / "agent-general-purpose-call_1.jsonl")
    return _copy("qwen.jsonl", folder / "chats" / f"{QWEN}.jsonl")


def _opencode_export() -> dict[str, Any]:
    export: dict[str, Any] = json.loads((FIXTURES / "transcripts" / "opencode.json").read_text(encoding="utf-8"))
    return export


def opencode_database(home: Path, **more: Any) -> None:
    """Add the database of OpenCode 1.2 or newer, with a session and that of its subagent."""
    export = _opencode_export()
    info = {**export["info"], **more}
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    session = {
        "id": info["id"],
        "project_id": info["projectID"],
        "parent_id": None,
        "slug": info["slug"],
        "directory": info["directory"],
        "title": info["title"],
        "version": info["version"],
        "time_created": info["time"]["created"],
        "time_updated": info["time"]["updated"],
    }
    messages, parts = [], []
    for message in reversed(export["messages"]):
        about = dict(message["info"])
        name, of_session = about.pop("id"), about.pop("sessionID")
        created = about["time"]["created"]
        times = {"time_created": created, "time_updated": created}
        messages.append({"id": name, "session_id": of_session, **times, "data": json.dumps(about)})
        for part in message["parts"]:
            data = {key: value for key, value in part.items() if key not in {"id", "sessionID", "messageID"}}
            row = {"id": part["id"], "message_id": name, "session_id": of_session, **times, "data": json.dumps(data)}
            parts.append(row)
    subagent = {**session, "id": "ses_sub", "parent_id": info["id"]}
    database(folder / "opencode.db", session=[session, subagent], message=messages, part=parts)


def opencode_files(home: Path, **more: Any) -> None:
    """Add the files that OpenCode wrote before 1.2."""
    export = _opencode_export()
    storage = home / ".local" / "share" / "opencode" / "storage"
    info = {**export["info"], **more}
    _write(storage / "session" / info["projectID"] / f"{info['id']}.json", info)
    for message in export["messages"]:
        about = message["info"]
        _write(storage / "message" / info["id"] / f"{about['id']}.json", about)
        for part in message["parts"]:
            _write(storage / "part" / about["id"] / f"{part['id']}.json", part)


def _copy(name: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(FIXTURES / "transcripts" / name, path)
    return path


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
