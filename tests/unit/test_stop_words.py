"""Stop words of the language of a query."""

from __future__ import annotations

import pytest

from signet_actors.domain.query_words import match_terms, words_of
from signet_actors.domain.stop_words import mostly_foreign


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


FOREIGN = (
    "Wir sichern die Datenbank jede Nacht auf einen Rechner in Helsinki.",
    "Der Export ist kaputt, weil die Liste leer ist.",
    "Le serveur de test redémarre chaque nuit.",
    "On ne peut pas ouvrir la page sans mot de passe.",
    "El informe semanal se manda los viernes.",
    "La clave de la API caduca en marzo.",
    "Резервный генератор проверяют в первый вторник месяца.",
    "Ключи хранятся в сейфе.",
    "本番環境へのデプロイは金曜日には行わない。",
    "仓库的温度计每小时校准一次。",
    "서버는 매일 밤 다시 시작됩니다",
    "يعاد تشغيل الخادم كل ليلة",
    "ξεκινά πάλι κάθε βράδυ",
    "Zdjęcia produktów muszą mieć białe tło oraz przynajmniej tysiąc pikseli szerokości.",
    "Sunucu dün gece yeniden durdu, çünkü bellek yavaş yavaş doldu ve kimse görmedi.",
)
ENGLISH = (
    "The staging database listens on port 5433.",
    "Nadia wants pull requests under 400 changed lines.",
    "We keep money as integer cents.",
    "Deploys happen on Tuesdays only.",
    "Anna is allergic to nuts.",
    "In der Regel is a German phrase that we do not use in the docs.",
    "The client in Zürich pays by invoice.",
)
NEITHER = ("npm run build", "ORD-2291: checkout hangs", "5433", "", "https://example.org/a/b?c=d", "TODO fix login")
"""Texts whose language cannot be told."""


def test_the_language_of_most_texts_is_told_by_their_stop_words_and_letters() -> None:
    for text in FOREIGN:
        assert mostly_foreign([words_of(text)] * 10), text
    for text in (*ENGLISH, *NEITHER):
        assert not mostly_foreign([words_of(text)] * 50), text


def test_few_texts_or_as_many_english_ones_show_no_other_language() -> None:
    foreign, english = ([words_of(text) for text in texts] for texts in (FOREIGN[:10], ENGLISH))
    neither = [words_of(text) for text in NEITHER]
    assert not mostly_foreign(foreign[:9])
    assert mostly_foreign([*foreign, *english, *neither, *neither])
    assert not mostly_foreign([*foreign, *english, *english])
    assert not mostly_foreign([])
