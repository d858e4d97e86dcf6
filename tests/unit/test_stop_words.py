"""Stop words of the language of a query."""

from __future__ import annotations

import pytest

from signet_actors.domain.query_words import match_terms


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Wo liegen die Daten der alten Datenbank?", {"liegen", "daten", "alten", "datenbank"}),
        ("Welcher Port ist für den Server gesetzt?", {"port", "server", "gesetzt"}),
        ("Quel est le mot de passe du serveur ?", {"mot", "passe", "serveur"}),
        ("¿Cuál es el puerto de la base de datos?", {"puerto", "base", "datos"}),
        ("when did the server die?", {"server", "die"}),
        ("what is the des key for", {"des", "key"}),
        ("die", {"die"}),
        ("der die das", {"der", "die", "das"}),
        ("son of the tax office", {"son", "tax", "office"}),
    ],
)
def test_only_telling_words_are_searched(query: str, words: set[str]) -> None:
    assert set(match_terms(query).phrases) == words
