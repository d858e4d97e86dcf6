"""Parse a model's summary of a session, and remove from it what must not be stored.

Source: docs/compatibility.md "Summaries of sessions"; docs/decisions.md 17, 19, 26.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.extraction.injection_detector import InjectionKind, detect_injection
from signet_actors.domain.extraction.junk_filter import JunkReason, junk_reason
from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.normalization import sanitize_text

MIN_SUMMARY_CHARS: Final = 40
MAX_SUMMARY_CHARS: Final = 4_000
MAX_TITLE_CHARS: Final = 80
_KEYS: Final = ("title", "summary")
_MAX_RAW_CHARS: Final = 4 * MAX_SUMMARY_CHARS
_MAX_LINES: Final = 200
_ABOUT_SPEAKERS: Final = ("the user", "user ", "the assistant", "assistant ", "the ai ")


class SessionSummary(Struct, frozen=True):
    """A summary as it may be stored; ``suspicious`` counts the lines that were removed because they gave orders."""

    title: str
    summary: str
    suspicious: int = 0


def parse_session_summary(answer: str | bytes, *said_by_user: str) -> SessionSummary | None:
    """Return the summary in a model's answer, None if it contains none of use. Never raises.

    Left out: what memory injected into the session, and lines that look like an instruction to an agent which the user
    did not give in any part of the session. A summary that is only the courtesy of an assistant is none.
    """
    output = read_json(answer, _KEYS)
    if not output.found or not isinstance(output.value, dict):
        return None
    title, summary = output.value.get("title"), output.value.get("summary")
    if not isinstance(summary, str):
        return None
    text = without_injected(sanitize_text(summary)[:_MAX_RAW_CHARS])[0]
    lines = text.splitlines()[:_MAX_LINES]
    kept = [line.rstrip() for line in lines if not _is_instruction(line, said_by_user)]
    text = _cut("\n".join(kept).strip())
    if len(text) < MIN_SUMMARY_CHARS or _is_junk(text):
        return None
    name = short(without_injected(sanitize_text(title))[0], MAX_TITLE_CHARS) if isinstance(title, str) else ""
    if _is_instruction(name, said_by_user):
        name = ""
    return SessionSummary(name, text, len(lines) - len(kept))


def _is_junk(text: str) -> bool:
    """Return whether the text is no summary. Unlike a fact, a summary may begin with what the user asked for."""
    reason = junk_reason(text)
    if reason is JunkReason.ASSISTANT_BOILERPLATE:
        return not text.lower().startswith(_ABOUT_SPEAKERS)
    return reason is not None


def _is_instruction(line: str, said_by_user: tuple[str, ...]) -> bool:
    """Return whether the line looks like an instruction. An open task may begin with a verb, but not be a habit."""
    bare = line.strip().lstrip("-*#> ")
    return bool(bare) and all(_is_suspicious(bare, said) for said in said_by_user or ("",))


def _is_suspicious(bare: str, said_by_user: str) -> bool:
    kind = detect_injection(bare, said_by_user)
    if kind is InjectionKind.IMPERATIVE:
        kind = detect_injection(f"Noted: {bare}", said_by_user)
    return kind is not None


def _cut(text: str) -> str:
    """Return at most ``MAX_SUMMARY_CHARS`` of the text, cut after a line or a word."""
    if len(text) <= MAX_SUMMARY_CHARS:
        return text
    end = max(text.rfind("\n", 0, MAX_SUMMARY_CHARS), MAX_SUMMARY_CHARS // 2)
    end = end if end > MAX_SUMMARY_CHARS // 2 else text.rfind(" ", 0, MAX_SUMMARY_CHARS)
    return f"{text[: end if end > 0 else MAX_SUMMARY_CHARS].rstrip()} …"
