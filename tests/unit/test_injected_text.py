"""Text injected by session-start and recall is removed; the user's text around it stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.chunking import distinct_chunks
from signet_actors.domain.extraction.injected_text import (
    HEADINGS,
    OPENINGS,
    InjectedParts,
    injected_parts,
    own_text,
    without_injected,
)
from signet_actors.domain.normalization import storage_content
from signet_actors.domain.session_inject import IdentityFile, Line, Peer, session_start
from signet_actors.domain.windowed_search import WINDOW
from signet_actors.features.checkpoints.rules import recovery_text
from signet_actors.hook.injected_text import fitted
from tests.support.model_answers import notes

RECALL = '[signet:recall | query="which port? [ops]" | results=2 | engine=hybrid]'
ITEMS = "- The gateway listens on port 3850 [ops] (Nov 2, 2026)\n- The metrics are on port 9090 (Oct 30, 2026)"
FEEDBACK = "<memory-feedback>\nRate these memories: {}\n</memory-feedback>"
BLOCK = f"{RECALL}\n{ITEMS}\n{FEEDBACK}"
BEFORE = "User: which port does the gateway use?"
AFTER = "Assistant: it is 3850.\nUser: then move it to 3851."
SESSION_START = """[memory active | /remember | /recall]
[since last session: 3 new memories, 1 sessions captured, last active 2h ago]
# Current Date & Time
Sunday, November 22, 2026 at 5:40 PM (UTC)

## Agent Instructions
Answer in short sentences.
- Use four spaces.

## Working Memory
The gateway is being moved.

## Relevant Memories (auto-loaded | scored by importance x recency | 2 results)
- The gateway listens on port 3850 [ops] (Nov 2, 2026)
- The metrics are on port 9090 (Oct 30, 2026)

## Signet Status

## Active Constraints
- Never delete the vault.
"""


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_recall_block_is_removed_from_a_transcript() -> None:
    assert without_injected(f"{BEFORE}\n{BLOCK}\n{AFTER}") == (f"{BEFORE}\n{AFTER}", 2)


def test_a_recall_block_is_removed_from_a_single_line() -> None:
    assert without_injected(one_line(f"{BEFORE}\n{BLOCK}\n{AFTER}")) == (one_line(f"{BEFORE}\n{AFTER}"), 2)


def test_blocks_injected_at_session_start_are_removed_from_a_transcript() -> None:
    cut, count = without_injected(f"{SESSION_START}\n{BEFORE}\n{AFTER}")
    assert cut == f"{BEFORE}\n{AFTER}"
    assert count >= 6


@pytest.mark.parametrize("shape", [str, one_line], ids=["lines", "one line"])
@pytest.mark.parametrize("mark", [RECALL, "[memory active | /remember | /recall]"])
def test_a_note_that_begins_with_a_mark_keeps_the_users_text(mark: str, shape: object) -> None:
    note = "The gateway was moved to port 3851 in December because of the firewall."
    text = f"{mark}\n{note}"
    assert without_injected(text if shape is str else one_line(text)) == (note, 1)


def test_a_note_that_begins_with_a_block_keeps_the_text_after_it() -> None:
    note = "I moved it to 3851 yesterday. The firewall knows."
    for text in (f"{BLOCK}\n{note}", one_line(f"{BLOCK}\n{note}"), one_line(f"{RECALL}\n{ITEMS}\n{note}")):
        assert without_injected(text)[0] == note


def test_the_users_list_after_a_block_stays() -> None:
    own = "- Move the gateway to 3851\n- Tell Noor about it"
    assert without_injected(f"{RECALL}\n{ITEMS}\n\n{own}") == (own, 1)
    assert without_injected(f"My list:\n{own}\n{BLOCK}\nDone.")[0] == f"My list:\n{own}\nDone."


def test_items_without_dates_end_with_their_sentence_in_one_line() -> None:
    text = f"{RECALL} - The gateway listens on port 3850. - The metrics are on port 9090. I moved both yesterday."
    assert without_injected(text) == ("I moved both yesterday.", 1)


def test_the_date_header_is_removed_with_its_date() -> None:
    assert without_injected("# Current Date & Time\nSunday, November 22, 2026 at 5:40 PM (UTC)\nMove the gateway.") == (
        "Move the gateway.",
        1,
    )
    date = "# Current Date & Time Sunday, November 22, 2026 at 5:40 PM (UTC)"
    assert without_injected(f"[memory active | /remember | /recall] {date} Move it.") == ("Move it.", 2)


OWN_SECTIONS = """## Working Memory
The team decided to use Postgres 17.
Anna owns the rollout.

## Identity
Our brand colour is teal.
"""


@pytest.mark.parametrize(
    ("lead", "left"),
    [
        ("The hooks print [memory active | 3 results].", "The hooks print ."),
        ("The hooks print [memory active | 3 results]", "The hooks print"),
        ("[memory active | 3 results] is what the hooks print.", "is what the hooks print."),
        (f"{BLOCK}\nNow my own notes.", "Now my own notes."),
        (f"{RECALL}\n{ITEMS}\n\n## My plan\nMove it.", "## My plan\nMove it."),
    ],
)
def test_the_users_sections_stay_if_a_mark_is_elsewhere(lead: str, left: str) -> None:
    cut, _ = without_injected(f"{lead}\n\n{OWN_SECTIONS}")
    assert cut.split() == f"{left}\n\n{OWN_SECTIONS}".split()


def test_sections_directly_after_a_mark_are_removed() -> None:
    long = "Assistant: it is on the list of things to do.\n" * 3
    for lead in ("[memory active | x]", f"{BEFORE}\n[memory active | x]", f"{long}User: [memory active | x]"):
        cut, _ = without_injected(f"{lead}\n\n{OWN_SECTIONS}\n{AFTER}")
        assert cut.split() == f"{lead.removesuffix('[memory active | x]')}\n{AFTER}".split()


@pytest.mark.parametrize("heading", ["Plugin Context", "Available Secrets"])
def test_the_users_list_under_a_heading_of_hooks_stays(heading: str) -> None:
    note = f"## {heading}\n- Anna keeps the list in the vault"
    assert without_injected(note) == (note, 0)
    assert without_injected(f"[memory active | x]\n\n{note}\n\nMy note.")[0] == "My note."


def test_layout_around_a_block_is_kept() -> None:
    code = "def port():\n    # which one\n    return 3850"
    assert without_injected(f"{code}\n\n{BLOCK}\n\n    indented\n\ttab")[0] == f"{code}\n    indented\n\ttab"


@pytest.mark.parametrize(
    "text",
    [
        "We renamed the heading ## Active Constraints in the template yesterday.",
        "## Identity\nThe identity provider is Keycloak.",
        "The section # Current Date & Time comes first in what the hook injects.",
        "Memories are marked with [signet:recall and a list.",
    ],
)
def test_a_note_that_only_mentions_our_headings_is_unchanged(text: str) -> None:
    assert without_injected(text) == (text, 0)


@pytest.mark.parametrize("opening", [opening for opening in OPENINGS if opening.startswith("[")])
def test_a_mark_ends_before_the_next_one_begins(opening: str) -> None:
    whole = f"{opening} 1]"
    assert without_injected(f"{opening} is written\n{opening} {whole} here") == (
        f"{opening} is written\n{opening} here",
        1,
    )


@pytest.mark.parametrize(
    "mark", [RECALL, "[memory active | /remember | /recall]", "<memory-feedback>1</memory-feedback>"]
)
def test_a_mark_anywhere_in_a_long_text_is_removed(mark: str) -> None:
    for length in (*range(WINDOW - len(mark) - 2, WINDOW + 2), *range(2 * WINDOW - 9, 2 * WINDOW + 9)):
        before, after = "a" * (length - 1), "z" * (2 * WINDOW)
        assert without_injected(f"{before}\n{mark}\n{after}") == (f"{before}\n{after}", 1)


@pytest.mark.parametrize("note", notes("clean_notes.txt"))
def test_a_text_without_injected_blocks_is_unchanged(note: str) -> None:
    assert without_injected(f"  - {note}\n") == (f"  - {note}\n", 0)


@given(st.lists(st.sampled_from([*BLOCK.split("\n"), *SESSION_START.split("\n"), "User: a", "b.", "- c", "  d", ""])))
def test_no_text_raises_and_no_text_is_added(lines: list[str]) -> None:
    for text in ("\n".join(lines), one_line("\n".join(lines))):
        cut, _ = without_injected(text)
        assert set(storage_content(cut).split()) <= set(text.split())


@pytest.mark.parametrize(
    "piece",
    [
        RECALL + " ",
        '[signet:recall | query="',
        "[signet:recall | ",
        "<memory-feedback>",
        "<memory-feedback>\n",
        "# Current Date & Time ",
        "# Current Date & Time\n",
        f"{RECALL} - ",
        "## Working Memory\n",
        "## Active Constraints\n- x\n",
        "- a (Nov 2, 2026) ",
        "text [memory active | x]",
        "text\n[memory active | x]\n",
        "- ",
        "\n",
    ],
)
def test_the_time_is_linear_in_the_length_of_the_text(piece: str) -> None:
    text = f"[memory active | x]{RECALL} " + piece * (400_000 // len(piece))
    began = time.process_time()
    without_injected(text)
    assert time.process_time() - began < 20.0


WORKING_MEMORY = """\
# Current Date & Time
Saturday, November 28, 2026 at 5:40 PM (UTC)

## Working Memory
 # What matters now
The gateway is being moved. Noor is in charge of it.

 ## Temporal Index
- (2026-11-28) (id 01a208ae-6943-73ae) The editor of the homelab is vim.
- (2026-11-27) (id 01a208ae-6e0f-7883) The vault is backed up at night.
"""


@pytest.mark.parametrize("injected", [BLOCK, SESSION_START, one_line(BLOCK), WORKING_MEMORY])
@pytest.mark.parametrize("before", [BEFORE, f"- {BEFORE}\n", ""])
@pytest.mark.parametrize("after", [AFTER, "Noor moved the firewall to the cellar on Monday.", ""])
def test_the_chunks_of_a_text_keep_only_what_the_whole_text_keeps(injected: str, before: str, after: str) -> None:
    text = storage_content(f"{before}\n{injected}\n{after}")
    for target in range(20, len(text), 13):
        chunks = distinct_chunks(text, target)
        parts = (InjectedParts("hash", spans) for spans in injected_parts(text, chunks))
        own = [own_text(chunk, "hash", part)[0] for chunk, part in zip(chunks, parts, strict=True)]
        assert "".join("".join(own).split()) == "".join(without_injected(text)[0].split()), target


def test_a_chunk_that_was_edited_is_read_by_its_own_marks() -> None:
    parts = InjectedParts("former", [(0, 13)])
    assert own_text("The vault is open.", "former", parts) == ("open.", 1)
    assert own_text("The vault is open.", "newer", parts) == ("The vault is open.", 0)


@pytest.mark.parametrize("before", ["", "Some words. ", "User: ", "As the hook said: "])
def test_a_start_that_ends_with_a_file_is_removed_and_the_words_around_it_stay(before: str) -> None:
    file = IdentityFile("MEMORY.md", "## Working Memory", 4000, 3)
    start = session_start(
        files=[(file, "## Head\n- Ada edits with vim\n\nProse of the file.")],
        constraints=(),
        preferred=(),
        used=(),
        since=None,
    )
    assert without_injected(f"{before}{start.text}\n\nNoor moved the firewall.")[0] == (
        f"{before.strip()}\nNoor moved the firewall.".strip()
    )
    assert without_injected(f"{start.dynamic}\n\nNoor moved the firewall.")[0] == "Noor moved the firewall."


def test_a_sentence_about_the_banner_removes_no_section_of_the_user() -> None:
    text = "The line [memory active | x] comes first.\n\n## Soul\nMy own words."
    assert without_injected(text)[0].endswith("## Soul\nMy own words.")


MEMORY = Line("01a2256a-11f9-7c81-8000-000000000000", "Never push to main", ("git",), "2026-11-29T03:00:00.000Z")
LONG = MEMORY._replace(content="Release:\n```\nmake release\n```", tags=())
SAID = "The last session of this project (claude-code) ended Nov 29, 2026 at 04:00:"
GIVEN = {
    "constraints": {"constraints": [MEMORY, LONG]},
    "constraints, some left out": {"constraints": [MEMORY], "all_constraints": 4},
    "preferences": {"preferred": [MEMORY, LONG]},
    "what was used": {"used": [MEMORY, MEMORY]},
    "a summary": {"last_session": [MEMORY._replace(content="Fixed the login. " * 60)]},
    "the last session": {"recovery": recovery_text(SAID, "- Last prompt: fix it\n- Last answer: done", 2000)},
    "peers": {"constraints": [MEMORY], "peers": [Peer("s-2", "codex", 60_000)]},
    "a status": {"constraints": [MEMORY], "status": ["- memories are found by words only"]},
    "all": {"constraints": [LONG], "preferred": [MEMORY], "used": [MEMORY], "since": "[since last session: 1 new]"},
}
OWN_TEXTS = (
    "1. rename the module\n2. run the tests",
    "1) rename the module\n2) run the tests",
    "10. rename the module",
    "- rename the module\n- run the tests",
    "* rename the module\n* run the tests",
    "\u2022 rename the module",
    "- rename the module\n  and its tests\n- run them",
    "8. Current Work:\n   - Editing login.py",
    "   8. Current Work:\n   Editing login.py",
    "    def login():\n        return True",
    "please rename the module",
    "Please:\n1. rename the module\n2. run the tests",
    "## Task\n1. rename the module",
    "### Files\n- login.py\n- tests/test_login.py",
    "- [ ] rename the module\n- [x] run the tests",
    "- 2026-11-29: rename the module",
    "- rename it (see the older id)",
    "1. due on Monday (Nov 30, 2026)",
    "```\n- name: build\n```",
    "| a | b |\n| - | - |",
    "> 1. quoted",
    "- one\n\n- two\n\n1. three",
)


def start_with(**sections: object) -> str:
    empty = {"files": (), "constraints": (), "preferred": (), "used": (), "since": None, "has_tools": True}
    return session_start(session_key="s-1", **{**empty, **sections}).text  # type: ignore[arg-type]


@pytest.mark.parametrize("sections", GIVEN.values(), ids=GIVEN)
def test_what_a_person_writes_behind_a_start_stays_and_the_start_is_removed_wholly(sections: dict[str, object]) -> None:
    start = start_with(**sections)
    assert without_injected(start)[0] == ""
    for own in OWN_TEXTS:
        for gap in ("\n\n", "\n\n\n", "\n \n"):
            assert without_injected(f"{start}{gap}{own}")[0] == own.lstrip(), own
            assert without_injected(f"{own}\n\n{start}{gap}{own}")[0] == f"{own}\n{own}".lstrip(), own
    assert without_injected(f"{start}\n1. rename the module")[0] == "1. rename the module"
    assert without_injected(one_line(f"{start}\n1. rename the module"))[0].endswith("rename the module")


@pytest.mark.parametrize(
    "text",
    [
        "[memory active | x]\n\n## Active Constraints\n- Never push\n- Use tabs",
        "[memory active | x]\n## Active Constraints\n\n- Never push\n- Use tabs",
        "[memory active | x]\n## Active Constraints\n- Never push (Nov 2, 2026)\n\n- Use tabs [style] (Nov 3, 2026)",
        "## Active Constraints\n- Never push (id 01a2256a) (Nov 2, 2026)\n\n- Use tabs (id 01a2256b) (Nov 3, 2026)",
        "## From Memory: Used Before\n- a\n  | x |\n  - nested\n- b",
        f"{RECALL}\n1. The gateway listens on 3850\n\n2. The metrics are on 9090",
        "## Relevant Memories (auto-loaded | scored | 2 results)\n- a\n\n- b",
    ],
)
def test_lists_of_this_and_earlier_releases_are_removed_wholly(text: str) -> None:
    assert without_injected(text)[0] == ""
    assert without_injected(f"{text}\n\n1. mine")[0] == "1. mine"


GENERIC = [heading for heading in HEADINGS if not heading.startswith("## From Memory")]
BODIES = (
    "- the budget is 10 ms\n- no GPU",
    "\n- the budget is 10 ms\n\n- no GPU",
    "1. the budget is 10 ms",
    "The budget is 10 ms.",
    "- due on Monday (Nov 30, 2026)\n- no GPU",
    "* never push (see the id 01a2256a)",
    "Sunday is the day of the release.",
    "2026-11-29",
    "{{ date }}",
    "",
)


@pytest.mark.parametrize("heading", GENERIC)
def test_what_a_person_writes_under_a_heading_like_ours_stays_word_for_word(heading: str) -> None:
    for body in BODIES:
        own = f"{heading}\n{body}".rstrip()
        for text in (own, f"Here is the design.\n\n{own}\n\nGo", f"User: {own}", f"> {own}", f"```\n{own}\n```"):
            assert without_injected(text) == (text, 0)
        hooked = f"<hook_context>{start_with(constraints=[MEMORY])}\n</hook_context>"
        for before in (BLOCK, f"{RECALL}\n{ITEMS}", hooked):
            left = without_injected(f"{before}\n\n{own}")[0]
            assert left.removeprefix("<hook_context>\n</hook_context>").strip() == own
        assert without_injected(f"It prints [memory active | x]\n\n{own}")[0] == f"It prints\n{own}"


@pytest.mark.parametrize("sections", GIVEN.values(), ids=GIVEN)
def test_a_start_is_removed_wholly_in_each_form_in_which_it_is_quoted(sections: dict[str, object]) -> None:
    start = start_with(**sections, files=[(IdentityFile("SOUL.md", "## Soul", 400, 7), "# Who\n- kind\n\nand brief")])
    for text in (
        start,
        start.replace("\n", "\r\n").replace("\r", ""),
        f"User: {start}",
        f"1. Request:\n   cranes\n\n{start}",
        f"<hook_context>{start}\n</hook_context>",
        f"# Notes\n\n{start}\n\n{start}",
        fitted(start, 20_000, count_bytes=True),
        fitted(start, len(start) - 40, count_bytes=False),
    ):
        left = without_injected(text)[0]
        for word in (
            "memory active",
            "Never push",
            "release",
            "Fixed",
            "fix it",
            "s-2",
            "by words only",
            "kind",
            "## ",
        ):
            assert word not in left, text


def test_a_section_of_memories_is_recognised_where_its_beginning_was_cut_off() -> None:
    start = start_with(
        constraints=[MEMORY, LONG], preferred=[MEMORY], used=[MEMORY], recovery=recovery_text(SAID, "- x", 99)
    )
    for heading in ("## Active Constraints", "## From Memory: Preferences and Decisions"):
        rest = start[start.index(heading) :]
        assert without_injected(f"…20 tokens truncated…\n{rest}\n\n1. mine")[0] == "…20 tokens truncated…\n1. mine"
