"""Checkpoints of sessions: what one says, how two of them become one, and the text for a session that goes on.

A checkpoint never quotes a memory: it has the ids of those that the session stored, so that what is forgotten is
nowhere else. Source: memory-pipeline.txt "Session Checkpoints".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from signet_actors.domain.exact_names import file_names
from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.extraction.injection_detector import detect_injection
from signet_actors.domain.memories import infer_type
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.program_text import said_by_user
from signet_actors.domain.session_inject import harmless
from signet_actors.domain.text_cut import beginning_of, end_of
from signet_actors.features.checkpoints.api import CONTEXT_CHARS

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
_SHOWN_QUERIES: Final = 8
END_CHARS: Final = 300
"""Of the last prompt of a session, and of the last answer."""
_LAST_OF: Final = {"user": "Last prompt", "assistant": "Last answer", "system": "Summary", "text": "Last part"}
_PROMPT: Final = "- Recent prompt: "
_MOST_FILES: Final = 8
_EARLIER_ANSWERS: Final = 2
_MOST_DECISIONS: Final = 3
_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u3002])\s+")
_UNTOLD: Final = ("- Searched memory for: ", "- Memories stored: ")
_MINUTE_MS: Final = 60_000
_CUT: Final = "…"
RECOVERY_HEADING: Final = "## Session Recovery Context"


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
    lines += [f"{_PROMPT}{prompt}" for prompt in draft.prompts]
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


def tells_work(turns: Sequence[tuple[str, str]], digest_text: str = "") -> bool:
    """Return whether more is known of a session than one prompt: an answer, several prompts, or what its harness says.

    ``turns``: roles and texts. ``digest_text``: of its last checkpoint.
    """
    if any(role != "user" for role, _ in turns):
        return True
    noted = digest_text.splitlines()
    return "- Context: " in digest_text or sum(line.startswith(_PROMPT) for line in noted) > 1


def last_words(turns: Sequence[tuple[str, str]], digest_text: str = "", *, is_newer: bool = False) -> str:
    """Return the last prompt and the last answer as lines, and the files that the turns (role and text) name.

    ``digest_text``: of the session's last checkpoint; what the harness says of the session counts, and if it
    ``is_newer`` than the turns, its last prompt. Left out is what looks like an instruction to an agent that the user
    did not give.
    """
    noted = digest_text.splitlines()
    prompts = [line.removeprefix(_PROMPT) for line in noted if line.startswith(_PROMPT)]
    last = {"user": prompts[-1]} if prompts and (is_newer or not turns) else {}
    said_by_user = " ".join(text for role, text in turns if role == "user")
    for role, text in reversed(turns):
        line = "" if role in last else _told(role, text, said_by_user)
        if line:
            last[role] = line
    lines = [line for line in noted if line.startswith("- Context: ")]
    lines += [f"- {name}: {_both_ends(last[role])}" for role, name in _LAST_OF.items() if role in last]
    named = (name for _, text in turns for name in file_names(without_injected(text)[0]))
    files = latest(named, _MOST_FILES)
    return "\n".join([*lines, f"- Files: {', '.join(files)}"] if files else lines)


def work_so_far(turns: Sequence[tuple[str, str]], digest_text: str, chars: int) -> str:
    """Return the checkpoint of a session that goes on, then what its agent decided and answered last, and the files.

    What makes it longer than ``chars`` is left out: the older prompts, then earlier answers, then decisions.
    """
    noted = digest_text.splitlines()
    known = ("- Summary: ", "- Last prompt: ") if _PROMPT in digest_text else ("- Summary: ",)
    last = [line for line in last_words(turns).splitlines() if not line.startswith(known)]
    said_by_user = " ".join(text for role, text in turns if role == "user")
    answers = [line for role, text in turns if role == "assistant" and (line := _told(role, text, said_by_user))]
    earlier = [f"- Earlier answer: {_both_ends(line)}" for line in answers[-1 - _EARLIER_ANSWERS : -1]]
    sentences = [sentence for line in answers for sentence in _SENTENCE_END.split(line)]
    shown = " ".join([*earlier, *last])
    decisions = (one for one in sentences if infer_type(one) == "decision" and one not in shown)
    decided = [f"- Decided: {_cut(one, PROMPT_CHARS)}" for one in latest(decisions, _MOST_DECISIONS)]
    lines = [*noted, *decided, *earlier, *last]
    for spare in (*[line for line in noted if line.startswith(_PROMPT)][:-1], *earlier, *decided):
        if len("\n".join(lines)) > chars:
            lines.remove(spare)
    return "\n".join(lines)


def _told(role: str, text: str, said_by_user: str) -> str:
    """Return a turn on one line; empty if it looks like an instruction to an agent that the user did not give."""
    line = collapsed(without_injected(text)[0])
    return line if role == "user" or detect_injection(f"Noted: {line}", said_by_user) is None else ""


def _both_ends(line: str) -> str:
    """Return a line of at most ``END_CHARS`` characters: what was done stands first, what is left to do last."""
    half = (END_CHARS - 3) // 2
    return (
        line if len(line) <= END_CHARS else f"{beginning_of(line, half).rstrip()} {_CUT} {end_of(line, half).lstrip()}"
    )


def recovery_text(said: str, digest_text: str, chars: int, *, heading: str = RECOVERY_HEADING) -> str:
    """Return the section for a session that goes on, at most ``chars`` long: as many whole lines as fit.

    ``said`` tells whose checkpoint it is. Nothing in it can end the block in which a harness shows it.
    """
    lines = [heading]
    room = chars - len(heading)
    for line in (f"- {said}", *digest_text.splitlines()):
        shown = harmless(line)
        room -= len(shown) + 1
        if room < 0:
            break
        if not line.startswith(_UNTOLD):
            lines.append(shown)
    return "\n".join(lines) if len(lines) > 1 else ""


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - len(_CUT)].rstrip() + _CUT


def _span(ms: int) -> str:
    minutes = max(0, ms) // _MINUTE_MS
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
