"""Which turn of a session is which prompt. Source: docs/guides/hooks.md "A session, prompt by prompt"."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.features.conversation.api import MOST_SEARCHES, MOST_TURNS
from signet_actors.features.conversation.rules import ALIKE_CHARS, Said, Sought, head_of, joined, new_words, seems_used
from signet_actors.features.searches.rules import HEAD_CHARS, head

TIMES = [f"2026-11-30T10:00:{second:02}.000Z" for second in range(60)]
HEADS = st.sampled_from(["", "ok", "ok go on", "which port?", "a" * ALIKE_CHARS])


@given(
    st.lists(st.builds(Said, st.none() | st.sampled_from(TIMES), HEADS), max_size=12),
    st.lists(st.builds(Sought, st.sampled_from(TIMES), HEADS), max_size=12),
)
def test_each_turn_and_each_search_is_in_one_row_and_prompts_are_at_turns_that_begin_alike(
    said: list[Said], sought: list[Sought]
) -> None:
    rows = joined(said, sought)
    assert [turn for turn, _ in rows if turn is not None] == list(range(len(said)))
    assert sorted(search for _, search in rows if search is not None) == list(range(len(sought)))
    both = [(turn, search) for turn, search in rows if turn is not None and search is not None]
    assert both == sorted(both, key=lambda row: row[1])
    assert all(sought[search].head == said[turn].head != "" for turn, search in both)
    assert len(both) == most_pairs([turn.head for turn in said], [search.head for search in sought])


def most_pairs(turns: list[str], prompts: list[str]) -> int:
    """Return the length of a longest common subsequence, by the table of all beginnings."""
    table = [[0] * (len(prompts) + 1) for _ in range(len(turns) + 1)]
    for place, turn in enumerate(turns):
        for number, prompt in enumerate(prompts):
            longer = max(table[place][number + 1], table[place + 1][number])
            table[place + 1][number + 1] = table[place][number] + 1 if turn == prompt != "" else longer
    return table[-1][-1]


@pytest.mark.parametrize(
    ("said", "sought", "found"),
    [
        (["which port is it?"], ["which port", "which port is it?"], [(0, 1)]),
        (["port?", "friday?", "go on"], ["go on", "port?", "friday?", "go on"], [(0, 1), (1, 2), (2, 3)]),
        (["a"], ["a", "b", "a"], [(0, 0)]),
        (["b", "a"] * 300, ["x", *["b", "a"] * 300], [(at, at + 1) for at in range(600)]),
    ],
)
def test_a_prompt_that_the_transcript_lacks_takes_no_other_ones_turn(
    said: list[str], sought: list[str], found: list[tuple[int, int]]
) -> None:
    rows = joined([Said(None, head) for head in said], [Sought(TIMES[0], head) for head in sought])
    assert [row for row in rows if None not in row] == found


def test_of_prompts_that_are_alike_the_one_nearest_in_time_has_the_turn() -> None:
    sought = [Sought(TIMES[at], "go on") for at in (10, 20, 30)]
    assert [row for row in joined([Said(TIMES[at + 1], "go on") for at in (20, 30)], sought) if None not in row] == [
        (0, 1),
        (1, 2),
    ]
    assert joined([Said(TIMES[at], "go on") for at in (1, 9, 40)], sought[:1]) == [(0, None), (1, 0), (2, None)]
    assert (1, 0) in joined([Said(TIMES[at], "go on") for at in (9, 19)], sought[1:2])


def test_what_belongs_to_no_turn_stands_before_what_is_later() -> None:
    said = [Said(TIMES[1], "which port?"), Said(TIMES[3], ""), Said(None, ""), Said(TIMES[9], "")]
    sought = [Sought(TIMES[0], ""), Sought(TIMES[1], "which port?"), Sought(TIMES[5], "lost"), Sought(TIMES[20], "")]
    assert joined(said, sought) == [(None, 0), (0, 1), (1, None), (2, None), (None, 2), (3, None), (None, 3)]
    assert joined([], [Sought(TIMES[0], "")] * 3) == [(None, 0), (None, 1), (None, 2)], "also at the same time"


def test_the_beginning_that_is_kept_of_a_prompt_is_found_in_its_turn() -> None:
    words = "  On which\n\n port\tdoes the staging database listen, and since when, and why?  " * 20
    assert head_of(head(words)) == head_of(words[:600])
    assert len(head(words) or "") > HEAD_CHARS // 2
    assert head_of(" " * 500 + words) == head_of(words), "also behind much white space"


@pytest.mark.parametrize("heads", ["a", "ab", "abcdefghijklmnopqrstuvwxyz"])
def test_the_longest_session_is_joined_in_seconds(heads: str) -> None:
    rng = random.Random(heads)
    said = [Said(TIMES[0], rng.choice(heads)) for _ in range(MOST_TURNS)]
    sought = [Sought(TIMES[number % 60], rng.choice(heads)) for number in range(MOST_SEARCHES)]
    began = time.perf_counter()
    rows = joined(said, sought)
    assert len(rows) < MOST_TURNS + MOST_SEARCHES
    assert time.perf_counter() - began < 10, "a busy machine needs a part of that"


@pytest.mark.parametrize(
    ("memory", "prompt", "answer", "used"),
    [
        ("The staging database listens on port 5433", "which port?", "It is 5433.", True),
        ("The staging database listens on port 5433", "is it 5433?", "It is 5433.", False),
        ("The frontend is deployed by Grace", "who?", "Grace has deployed the frontend.", True),
        ("The frontend is deployed by Grace", "who has Grace?", "Grace is away.", False),
        ("The frontend is deployed by Grace", "who?", "Somebody does that.", False),
        ("Rechnungen: Größe und Straße", "was?", "Die Größe der Straße.", True),
        ("The billing service is written in Ruby", "in which language is the billing service?", "In Ruby.", True),
        ("The billing service is written in Ruby", "is the billing service in Ruby?", "Ruby, yes.", False),
        ("The billing service is written in Ruby", "what now?", "We should look at Ruby again later today.", False),
        ("The billing service is written in Ruby", "what now?", "Yes.", False),
    ],
)
def test_an_answer_seems_to_use_what_it_has_enough_new_words_or_a_number_of(
    memory: str, prompt: str, answer: str, used: bool
) -> None:
    assert seems_used(memory, new_words(answer, prompt)) is used
