"""Which part of a long text is shown."""

from __future__ import annotations

import pytest

from signet_actors.domain.transcripts.excerpts import excerpt, exchange, shortened_conversation
from signet_actors.domain.transcripts.turns import conversation, turns_of_conversation

FILLER = "The daemon of the harbour writes each ship into its log and sends it to the office. " * 8
TURNS = [("user", "Why is the crane slow?", False), ("assistant", f"{FILLER}The belt of the crane is worn.", False)]


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        (f"{FILLER}The crane has a worn belt. {FILLER}", ["crane", "belt"], "The crane has a worn belt."),
        (f"The crane is new. {FILLER}The belt of the crane is worn. {FILLER}", ["crane", "belt"], "The belt of the"),
        (f"The crane was slow. {FILLER}The crane is fast now. {FILLER}", ["crane"], "The crane is fast now."),
        (f"{FILLER}Wir haben Riemen gewechselt. {FILLER}", ["wechseln", "riemens"], "Riemen gewechselt"),
        (f"{FILLER}{'x' * 500} crane {FILLER}", ["crane"], "crane The daemon"),
        (f"{FILLER}Fin", ["submarine"], "The daemon of the harbour"),
        (f"{'ship ' * 3000}anchor {FILLER}", ["ship", "anchor"], "anchor The daemon"),
    ],
)
def test_the_part_with_most_of_the_words_is_shown(text: str, words: list[str], shown: str) -> None:
    assert shown in excerpt(text, words, 120)
    assert len(excerpt(text, words, 120)) <= 124


def test_of_an_answer_the_part_is_shown_that_has_what_the_question_asks_beside_its_subject() -> None:
    answer = f"{FILLER}The crane was moved in May. {FILLER}Its belt is worn. {FILLER}"
    asked = exchange([("user", "Look at the crane", False), ("assistant", answer, False)], ["crane", "belt"], 200)
    assert asked.startswith("User: Look at the crane\n\nAssistant: ")
    assert "Its belt is worn." in asked


def test_a_conversation_is_shortened_turn_by_turn() -> None:
    shown = shortened_conversation(conversation(TURNS), ["belt"], 160)
    assert shown.startswith("User: Why is the crane slow? Assistant: … ")
    assert "The belt of the crane is worn." in shown
    assert shortened_conversation("User: short", [], 160) == "User: short"


@pytest.mark.parametrize(
    "turns",
    [
        TURNS,
        [("text", "a note\n\nwith two paragraphs", False)],
        [("user", "one\n\ntwo", False), ("assistant", "three\n\n- four\n\nfive", False), ("user", "six", False)],
    ],
)
def test_a_conversation_is_read_as_it_was_written(turns: list[tuple[str, str, bool]]) -> None:
    assert turns_of_conversation(conversation(turns)) == turns
