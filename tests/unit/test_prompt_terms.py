"""What a prompt is about: worked examples of docs/compatibility.md, and metadata of harnesses."""

from __future__ import annotations

import pytest

from signet_actors.domain.prompt_terms import MAX_TERMS, prompt_terms, without_metadata


@pytest.mark.parametrize(
    ("prompt", "terms"),
    [
        (
            "What did we decide about the KA-6 pre-compaction hook?",
            ("ka-6", "pre-compaction", "decide", "pre", "compaction", "hook"),
        ),
        ("Please use the 2024 database 42 times", ("database", "times")),
        ("ok", ()),
        ("", ()),
        ("Wo liegen die Daten der Anwendung?", ("liegen", "daten", "anwendung")),
    ],
)
def test_terms_are_hyphenated_names_and_then_telling_words(prompt: str, terms: tuple[str, ...]) -> None:
    assert prompt_terms(prompt).terms == terms


def test_the_assistants_last_message_supplies_at_most_as_many_terms_and_at_least_two() -> None:
    said = "We migrate the billing tables next"
    assert prompt_terms("ok", said).terms == ("migrate", "billing")
    assert prompt_terms("restore router", said).terms == ("restore", "router", "migrate", "billing")
    assert prompt_terms("restore login router", said).terms[3:] == ("migrate", "billing", "tables")


def test_a_prompt_with_a_subject_is_searched_for_without_the_assistants_words() -> None:
    found = prompt_terms("restore the\n login router", "We migrate the billing tables next")
    assert found.search_text == "restore the login router"
    assert prompt_terms("go on", "We migrate the billing tables").search_text == "migrate billing"
    assert prompt_terms("ok", "").search_text == ""


def test_of_a_long_prompt_the_first_terms_count() -> None:
    words = [f"subject{index}" for index in range(40)]
    found = prompt_terms(" ".join(words))
    assert found.terms == tuple(words[:MAX_TERMS])
    assert found.search_text == " ".join(words[:MAX_TERMS])


def test_metadata_and_mentions_are_not_part_of_a_prompt() -> None:
    block = 'Conversation info (untrusted metadata):\n```json\n{"sender": "mallory"}\n```\n'
    assert without_metadata(f"{block}\n<@123> fix the login") == "fix the login"
    assert without_metadata(f"hello\n{block}{block}world") == "hello\n\n\nworld"
    assert without_metadata("what is untrusted metadata?") == "what is untrusted metadata?"
    about = f"untrusted metadata {'is a word ' * 20}```code```"
    assert without_metadata(about) == about
