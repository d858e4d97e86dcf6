"""What Claude Code, Codex and OpenClaw keep as memory by themselves, in their real formats."""

from __future__ import annotations

from pathlib import Path

from tests.support.foreign_memories import written

SESSION = "0e9f1d7c-3c1e-4f0e-9a55-6d0c6f1b2a01"
SHOWN = "- Never deploy on Fridays. [ops] (id 019f2c1b-3f2a-7c1e) (Jan 2, 2026)"
"""A memory as it is shown to an agent, which has copied it into its notes."""

CLAUDE_INDEX = """# Memory Index

- [Upload retries](upload-retries.md) — the worker tries 5 times
- **[Reviews](feedback_reviews.md)** — what a review must have
- [The port](gone.md) — staging listens on 5433

## Build

Run `make wheel` before the tests.
"""
CLAUDE_FACT = f"""---
name: upload-retries
description: How often the upload worker retries, and why
metadata:
  node_type: memory
  type: project
  originSessionId: {SESSION}
  modified: 2026-07-29T13:16:34.420Z
---

The upload worker retries 5 times with a pause of 2 s, as the harbour's network drops at each tide.

**Why:** three tries lost uploads in May.
"""
CLAUDE_FEEDBACK = """---
name: Reviews name a test
description: Every review must name the test that fails without the change
type: feedback
---
Every review names the test that fails without the change.
"""
CODEX_HANDBOOK = """# Task Group: Ferry timetable
scope: publishing the timetable
applies_to: cwd=/home/ada/ferry; reuse_rule=safe in this checkout

## Task 1: publish the feed, success

### rollout_summary_files

- rollout_summaries/2026-04-22T13-49-36-w0BD-feed.md (cwd=/home/ada/ferry, rollout_path=/home/ada/.codex/sessions/x.jsonl, updated_at=2026-04-22T14:31:33+00:00, thread_id=019db574)

### keywords

- GTFS, feed, publish.sh

## User preferences

- when publishing, the user asked: "never on a Sunday" [Task 1]

## Reusable knowledge

- `publish.sh --dry-run` prints the feed without uploading it [Task 1]

# Task Group: Reports
scope: shared workflow
applies_to: cwd=unknown; reuse_rule=everywhere

## User preferences

- keep reports to one page [Task 1]
"""  # noqa: E501 - a line of the real format
CODEX_SUMMARY = """v1

## User Profile

Ada runs the ferry's servers.

## What's in Memory

- Ferry timetable: GTFS, feed
"""
OPENCLAW = f"""# Long-term memory

- Ada likes short answers. <!-- trigger: answers --> <!-- importance: 8 -->
{SHOWN}

## Servers

The backup runs at 03:00.
"""


def claude(home: Path, project: Path) -> Path:
    """Add the memory of a project, and return its folder."""
    name = "".join(char if char.isalnum() else "-" for char in str(project))
    folder = home / ".claude" / "projects" / name / "memory"
    folder.mkdir(parents=True)
    written(folder / "MEMORY.md", CLAUDE_INDEX)
    written(folder / "upload-retries.md", CLAUDE_FACT)
    written(folder / "feedback_reviews.md", CLAUDE_FEEDBACK)
    return folder


def codex(home: Path) -> Path:
    """Add the memory of Codex, and return its folder."""
    folder = home / ".codex" / "memories"
    for name, text in {
        "MEMORY.md": CODEX_HANDBOOK,
        "memory_summary.md": CODEX_SUMMARY,
        "raw_memories.md": "# Raw Memories\n\nnot consolidated\n",
        "rollout_summaries/2026-04-22T13-49-36-w0BD-feed.md": "the session in short\n",
        "extensions/ad_hoc/notes/01JC-note.md": "a note, perhaps of Signet\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        written(folder / name, text)
    return folder


def openclaw(home: Path) -> Path:
    """Add the workspace of OpenClaw's first agent, and return it."""
    workspace = home / ".openclaw" / "workspace"
    workspace.mkdir(parents=True)
    written(workspace / "MEMORY.md", OPENCLAW)
    written(workspace / "AGENTS.md", "# Instructions\n\nBe kind.\n")
    return workspace
