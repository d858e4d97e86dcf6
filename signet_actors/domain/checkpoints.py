"""Checkpoints of sessions: what one says, how two of them become one, and the text for a session that goes on.

A checkpoint never quotes a memory: it has the ids of those that the session stored, so that what is forgotten is
nowhere else. Source: memory-pipeline.txt "Session Checkpoints".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.extraction.injection_detector import detect_injection
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.program_text import said_by_user
from signet_actors.domain.session_inject import harmless

CheckpointTrigger = Literal["periodic", "pre_compaction", "session_end", "agent", "explicit"]
"""What made the checkpoint: a number of prompts or a time, a compaction, the end of the session, the end of the agent's
turn, or a request of its own.
"""
MAX_QUERIES: Final = 20
MAX_REMEMBERS: Final = 10
"""Of one checkpoint; the latest count."""
RECENT_PROMPTS: Final = 5
PROMPT_CHARS: Final = 200
QUERY_CHARS: Final = 100
CONTEXT_CHARS: Final = 1000
_SHOWN_QUERIES: Final = 8
_TURN_CHARS: Final = 400
_TURN_NAMES: Final = {"user": "Recent prompt", "assistant": "Answer", "system": "Summary"}
_MINUTE_MS: Final = 60_000
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a checkpoint will say. ``prompt_count`` is since the previous one, ``all_prompts`` since the session began.

    ``prompts``: the latest ones, without secrets. ``remembers``: ids of memories. ``context``: what the harness says
    about the session.
    """

    trigger: CheckpointTrigger
    project: str | None = None
    prompt_count: int = 0
    all_prompts: int = 0
    duration_ms: int = 0
    prompts: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()
    context: str | None = None

    def merged(self, later: Draft) -> Draft:
        """Return one checkpoint for both: that of ``later``, with all queries and memories, and the sum of prompts."""
        return replace(
            later,
            project=later.project or self.project,
            prompt_count=self.prompt_count + later.prompt_count,
            prompts=later.prompts or self.prompts,
            queries=latest((*self.queries, *later.queries), MAX_QUERIES),
            remembers=latest((*self.remembers, *later.remembers), MAX_REMEMBERS),
            context=later.context or self.context,
        )


def latest(items: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the last ``most`` different items, each where it came first."""
    return tuple(dict.fromkeys(items))[-most:]


def normalized_project(project: str | None) -> str | None:
    """Return the path of a project in the one form by which its checkpoints are found; None for a blank one."""
    text = (project or "").strip()
    return posixpath.normpath(text) if text else None


def prompt_line(text: str) -> str:
    """Return the user's part of a prompt on one line, cut to ``PROMPT_CHARS``; empty if programs wrote all of it."""
    return _cut(collapsed(without_injected(said_by_user(text))[0]), PROMPT_CHARS)


def digest(draft: Draft) -> str:
    """Return the Markdown text of a checkpoint. That of the end of a session counts all its prompts."""
    count = draft.all_prompts if draft.trigger == "session_end" else draft.prompt_count
    lines = [f"- Project: {draft.project}"] if draft.project else []
    lines.append(f"- Prompts: {count}{' in all' if draft.trigger == 'session_end' else ''}, {_span(draft.duration_ms)}")
    lines += [f"- Recent prompt: {prompt}" for prompt in draft.prompts]
    if draft.queries:
        lines.append(f"- Searched memory for: {'; '.join(draft.queries[-_SHOWN_QUERIES:])}")
    if draft.remembers:
        lines.append(f"- Memories stored: {len(draft.remembers)}")
    if draft.context:
        lines.append(f"- Context: {_cut(collapsed(draft.context), CONTEXT_CHARS)}")
    return "\n".join(lines)


def says_nothing(digest_text: str) -> bool:
    """Return whether a checkpoint tells of nothing that happened."""
    return all(line.startswith(("- Project: ", "- Prompts: 0")) for line in digest_text.splitlines())


def last_words(turns: Sequence[tuple[str, str]]) -> str:
    """Return the turns (role and text) as lines: the beginning of each, the end of a text without known speakers.

    Left out is what looks like an instruction to an agent that the user did not give.
    """
    said_by_user = " ".join(text for role, text in turns if role == "user")
    lines = []
    for role, text in turns:
        line = collapsed(without_injected(text)[0])
        if not line or (role != "user" and detect_injection(f"Noted: {line}", said_by_user) is not None):
            continue
        if role == "text":
            lines.append(f"- Last part: {_CUT if len(line) > CONTEXT_CHARS else ''}{line[-CONTEXT_CHARS:]}")
        else:
            lines.append(f"- {_TURN_NAMES[role]}: {_cut(line, _TURN_CHARS)}")
    return "\n".join(lines)


def recovery_text(said: str, digest_text: str, chars: int, *, from_end: bool = False) -> str:
    """Return the section for a session that goes on, at most ``chars`` long: as many whole lines as fit.

    ``said`` tells whose checkpoint it is. ``from_end``: the last lines count. Nothing in it can end the block in which
    a harness shows it.
    """
    heading, order = "## Session Recovery Context", -1 if from_end else 1
    lines: list[str] = []
    room = chars - len(heading)
    for line in (f"- {said}", *digest_text.splitlines()[::order]):
        shown = harmless(line)
        room -= len(shown) + 1
        if room < 0:
            break
        lines.append(shown)
    return "\n".join([heading, lines[0], *lines[1:][::order]]) if lines else ""


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - len(_CUT)].rstrip() + _CUT


def _span(ms: int) -> str:
    minutes = max(0, ms) // _MINUTE_MS
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
