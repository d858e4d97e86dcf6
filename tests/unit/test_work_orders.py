"""Which prompts order work, and which words tell what it is about. Source: docs/guides/hooks.md "Each prompt"."""

from __future__ import annotations

import pytest

from signet_actors.domain.query_words import words_of
from signet_actors.domain.work_orders import orders_work, tells_subject

ORDERS = {
    "please review my changes": ["please", "my"],
    "write a test for the parser": ["a", "for", "the", "parser"],
    "Can you add a button to delete a row?": ["can", "you", "a", "to", "a", "row"],
    "fix the type errors": ["the"],
    "now refactor the settings page": ["now", "the", "settings"],
    "let's rename the variable foo to bar": ["let", "s", "the", "foo", "to", "bar"],
    "and then update the readme": ["and", "then", "the", "readme"],
    "Bitte behebe die Fehler": ["bitte", "die"],
    "erkläre die Anmeldung": ["die", "anmeldung"],
    "ajoute un bouton au panier": ["un", "au", "panier"],
    "corrige las pruebas del carrito": ["las", "del", "carrito"],
}
OTHERS = (
    "why is the build failing?",
    "what did we decide about the parser?",
    "the tests are flaky again",
    "which file has the settings?",
    "wie heißt die Klasse?",
    "où est le bouton?",
    "",
    "thanks",
)


@pytest.mark.parametrize("prompt", ORDERS)
def test_an_order_is_about_what_is_not_in_every_order(prompt: str) -> None:
    assert orders_work(prompt)
    assert [word for word in words_of(prompt) if tells_subject(word)] == ORDERS[prompt]


@pytest.mark.parametrize("prompt", OTHERS)
def test_questions_and_statements_are_no_orders(prompt: str) -> None:
    assert not orders_work(prompt)
