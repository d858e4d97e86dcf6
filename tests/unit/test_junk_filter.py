"""Echoes of recall and texts that are not facts are rejected with a reason; ordinary notes are not."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import signet_actors
from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.injected_text import HEADINGS, without_injected
from signet_actors.domain.extraction.junk_filter import (
    PROMPT_EXAMPLES,
    InjectedMemories,
    JunkReason,
    filter_junk,
    junk_reason,
)
from tests.support.model_answers import notes

CLEAN = notes("clean_notes.txt")
JUNK = [line.replace("\\n", "\n").split("|", 1) for line in notes("junk_texts.txt")]
anything = st.text(st.characters(exclude_categories=()), max_size=300)


def fact(content: str) -> Fact:
    return Fact(content, "fact", 0.9)


def test_at_most_one_clean_note_in_a_hundred_is_rejected() -> None:
    rejected = [(note, reason) for note in CLEAN if (reason := junk_reason(note))]
    assert len(CLEAN) >= 150
    assert len(rejected) <= len(CLEAN) / 100, rejected


def test_no_clean_note_counts_as_an_echo_of_another() -> None:
    halves = (CLEAN[::2], CLEAN[1::2])
    for half, others in (halves, halves[::-1]):
        injected = InjectedMemories(others)
        assert [note for note in half if injected.echo_reason(note)] == []


@pytest.mark.parametrize(("reason", "text"), JUNK, ids=[text[:40] for _, text in JUNK])
def test_junk_is_rejected_with_its_reason(reason: str, text: str) -> None:
    assert junk_reason(text) == reason


MARKS = [
    '[signet:recall | query="x" | results=2]',
    "[memory active | /remember | /recall]",
    "[since last session: 3 new memories]",
    "[END OF SIGNET CONTEXT]",
    "<memory-feedback>",
    "</memory-feedback>",
    "## Relevant Memories (auto-loaded | 2 results)",
    "## From Memory: Used Before",
]


@pytest.mark.parametrize("mark", [*MARKS, *HEADINGS])
def test_a_fact_with_a_recall_mark_is_an_echo(mark: str) -> None:
    assert (without_injected(mark) == ("", 1)) is (mark in MARKS or mark.startswith("## From Memory"))
    assert junk_reason(f"The gateway was moved to port 3851.\n{mark}") is JunkReason.ECHO_MARKED


def test_every_reason_of_the_quality_gate_has_examples() -> None:
    shown = Counter(reason for reason, _ in JUNK)
    compared = {JunkReason.ECHO_EXACT, JunkReason.ECHO_NEAR, JunkReason.REPEATED, JunkReason.PROMPT_EXAMPLE}
    assert set(shown) == set(JunkReason) - compared
    assert min(shown.values()) >= 5


@given(anything)
def test_no_text_raises(text: str) -> None:
    reason = junk_reason(text)
    assert reason is None or reason in JunkReason
    InjectedMemories([text]).echo_reason(text)


@pytest.mark.parametrize("text", ["a " * 50_000, "<" * 100_000, "(" * 100_000, "at " + "a" * 100_000, "- \n" * 30_000])
def test_only_the_beginning_of_a_long_text_is_checked(text: str) -> None:
    began = time.process_time()
    junk_reason(text)
    assert time.process_time() - began < 20.0


KNOWN = (
    "Noor prefers four spaces over tabs in the editor.",
    "The staging database is db-stage-2 and is wiped every Sunday night.",
    "The cache is enabled in production.",
    "The team moved from Postgres to SQLite last year.",
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KNOWN[0], JunkReason.ECHO_EXACT),
        ("noor prefers  four spaces over tabs in the editor!", JunkReason.ECHO_EXACT),
        ("Noor prefers four spaces over tabs in her editors", JunkReason.ECHO_NEAR),
        ("Noor preferred four spaces over tabs", JunkReason.ECHO_NEAR),
        ("The user's staging database is db-stage-2, wiped every Sunday night", JunkReason.ECHO_NEAR),
        ("Noor prefers two spaces over tabs in the editor.", None),
        ("The staging database is db-stage-3 and is wiped every Sunday night.", None),
        ("The staging database is db-stage-2 and is wiped every Monday night.", None),
        ("The cache is not enabled in production.", None),
        ("The cache is disabled in production.", None),
        ("The team moved from SQLite to Postgres last year.", None),
        ("The team has moved.", None),
        ("Tabs.", None),
    ],
)
def test_a_repetition_is_an_echo_and_a_new_fact_is_not(text: str, reason: JunkReason | None) -> None:
    assert InjectedMemories(KNOWN).echo_reason(text) is reason


def test_the_latest_five_hundred_injected_texts_count() -> None:
    texts = [f"Service number {i} listens on port {8000 + i}" for i in range(600)]
    injected = InjectedMemories(texts)
    assert injected.echo_reason(texts[0]) is None
    assert injected.echo_reason(texts[599]) is JunkReason.ECHO_EXACT


def test_an_example_of_the_prompt_is_rejected_unless_the_memory_contains_it() -> None:
    copied = fact(PROMPT_EXAMPLES[0])
    rejected = filter_junk([copied], "Anna likes tea with milk and reads in the evening")
    assert [junk.reason for junk in rejected.rejected] == [JunkReason.PROMPT_EXAMPLE]
    said = filter_junk([copied], "We use Traefik, not Caddy, in the homelab: Caddy was losing its certificates.")
    assert said.kept == (copied,)


def test_the_examples_are_those_of_the_prompt() -> None:
    prompt = Path(signet_actors.__file__).parent / "extractor" / "prompts" / "extraction.txt"
    assert tuple(re.findall(r'"content": "([^".]+\.)"', prompt.read_text(encoding="utf-8"))) == PROMPT_EXAMPLES


def test_junk_is_separated_from_facts_with_its_reason() -> None:
    facts = [fact("What is the port of the gateway?"), fact("The gateway listens on port 3850")]
    result = filter_junk(facts, "a note")
    assert result.kept == (facts[1],)
    assert [(junk.fact, junk.reason) for junk in result.rejected] == [(facts[0], JunkReason.QUESTION)]


def test_repeated_facts_of_a_run_are_rejected_and_new_ones_kept() -> None:
    said = [
        "The staging database runs on port 5433.",
        "The staging database is running on port 5433!",
        "The staging database's port is 5433.",
        "The staging database does not run on port 5433.",
        "The staging database runs on port 5433 behind a tunnel.",
        "The staging database runs on port 5434.",
    ]
    sorted_ = filter_junk([fact(text) for text in said], "")
    assert [(junk.fact.content, junk.reason) for junk in sorted_.rejected] == [(said[1], JunkReason.REPEATED)]
    assert [kept.content for kept in sorted_.kept] == [said[0], *said[2:]]


@pytest.mark.parametrize(
    "text",
    [
        "<task-notification> The build b27a792 completed with exit code 0.",
        "<bash-stdout>The port of the staging database is 5433</bash-stdout>",
        "<ide_opened_file>The user opened the file dock.py in the IDE.</ide_opened_file>",
        "<user_shell_command> git status was run on the branch main",
        "Caveat: The messages below were generated by the user while running local commands.",
        "[Request interrupted by user] during the migration of the database.",
    ],
)
def test_what_a_program_writes_into_a_conversation_is_no_fact(text: str) -> None:
    assert junk_reason(text) is JunkReason.TOOL_OUTPUT


@pytest.mark.parametrize(
    "text",
    [
        "The parser drops `<task-notification>` records of Claude Code.",
        "Skills of Codex stand in <skill> elements.",
        "Caveat: the staging database is restarted each night at two.",
    ],
)
def test_a_fact_about_what_programs_write_is_kept(text: str) -> None:
    assert junk_reason(text) is None
