"""Tell a question that got no answer from what was said.

Given to an agent, such a question tells it nothing.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from signet_actors.domain.query_words import words_of
from signet_actors.domain.said_again import sentences_of
from signet_actors.domain.stop_words import stop_words_of

_MOST_CHARS: Final = 600
"""A longer text is taken for more than a question, or than a missing answer."""
_REQUEST_WORDS: Final = """
    can could would will please remember note kannst könntest könnten bitte merke peux pourrais puedes podrías
"""
_REQUESTS: Final = frozenset(_REQUEST_WORDS.split())
"""A question that begins so may tell what to remember."""
_TAG_WORDS: Final = "right correct ok okay yes oder richtig stimmt korrekt non no verdad vale"
_TAGS: Final = frozenset(_TAG_WORDS.split())
"""A question that ends so is a statement."""
_NEGATION_WORDS: Final = """
    no not nothing none never cannot couldn can don didn haven isn wasn doesn unable without
    nicht nichts kein keine keinen keinerlei weder leider ne n pas rien aucun aucune nada ningún ninguna tampoco
"""
_NEGATIONS: Final = frozenset(_NEGATION_WORDS.split())
_FINDING_WORDS: Final = """
    find found finding know information info record records memory memories mention mentions mentioned trace clue idea
    finden gefunden finde weiß weiss bekannt informationen angaben angabe hinweis hinweise eintrag ahnung
    trouvé trouve trouver sais informations idée encontré encuentro encontrar sé información
"""
_FINDING: Final = frozenset(_FINDING_WORDS.split())
_OFFER_WORDS: Final = "sorry let ll leid leider désolé siento"
_OFFERS: Final = frozenset(_OFFER_WORDS.split())
_FILLING_WORDS: Final = """
    t s d ll m ve re sorry let look check search moment unfortunately afraid currently yet project repository repo
    session earlier specific available anything have has see sure answer notes note
    leider tut leid dazu darüber davon hierzu projekt nachsehen schaue mal ich habe es hat gibt
    désolé là dessus je j ai sur siento lo sobre eso he
"""
_FILLING: Final = frozenset(_FILLING_WORDS.split())


def tells_nothing(said: Sequence[tuple[str, str]]) -> bool:
    """Return whether ``said`` (role, text) is nothing but a user's questions, and answers that know nothing of them."""
    questions = [text for role, text in said if role == "user"]
    if not questions or not all(map(is_question, questions)):
        return False
    asked = frozenset(word for text in questions for word in words_of(text))
    return all(_is_no_answer(text, asked) for role, text in said if role != "user")


def is_question(text: str) -> bool:
    """Return whether each sentence of the text only asks."""
    if len(text) > _MOST_CHARS:
        return False
    sentences = [sentence.strip() for sentence in sentences_of(text) if sentence.strip()]
    return bool(sentences) and all(map(_asks, sentences))


def _asks(sentence: str) -> bool:
    words = words_of(sentence)
    return sentence.endswith(("?", "\uff1f")) and bool(words) and words[0] not in _REQUESTS and words[-1] not in _TAGS


def _is_no_answer(text: str, asked: Collection[str]) -> bool:
    if len(text) > _MOST_CHARS:
        return False
    return all(_asks(each.strip()) or _knows_nothing(each, asked) for each in sentences_of(text) if each.strip())


def _knows_nothing(sentence: str, asked: Collection[str]) -> bool:
    """Return whether the sentence says that nothing was found, or what is done about it, and no word besides."""
    words = frozenset(words_of(sentence))
    if (words.isdisjoint(_NEGATIONS) or words.isdisjoint(_FINDING)) and words.isdisjoint(_OFFERS):
        return False
    return words <= stop_words_of(words) | _NEGATIONS | _FINDING | _FILLING | frozenset(asked)
