"""Tell a question that got no answer from what was said, and what answers a plain one ("who is our designer?").

Given to an agent, a question without an answer tells it nothing.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import dropwhile
from typing import Final

from signet_actors.domain.query_words import words_of
from signet_actors.domain.ranking.relevance import ASKING_WORDS
from signet_actors.domain.said_again import sentences_of
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.versions import DAYS_AND_MONTHS, STATES
from signet_actors.domain.work_orders import THINGS, orders_work

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
_MOST_PLAIN_CHARS: Final = 200
_IN_FRONT: Final = 2
"""Behind an article, so many words stand at most before the word that is spoken of."""
_TABLE: Final = """
    what what which where how was welche welcher welches wo wohin wie quel quelle où qué cuál dónde
    who who whose wer wem wen qui quién
    when when wann quand cuándo
    may may can could should must darf dürfen kann können soll sollen muss müssen
    leads and so but also ok hey do you know can could tell remind me und sag mir weißt du
    amounts many much long often big large high viele viel lange oft groß hoch teuer
    askers i we ich wir man
    light use used using live lives benutzen nutzen verwenden liegt liegen heißt steht
    pointers this these that those it you diese dieser dieses diesen diesem du a an ein eine
    vague next first last left status problem difference today tomorrow yesterday nächstes zuerst heute gestern
    beside on in at for with to from of by about auf für mit von vom zum im am beim bei über
    articles the our der die das unser unsere le la notre el nuestro nuestra
    is is are ist sind heißt est es
    rules always only must avoid allowed forbidden nie niemals immer nur verboten erlaubt
    soon today tomorrow next every daily weekly heute morgen täglich jeden
"""
_OF: Final = {name: frozenset(words) for name, *words in map(str.split, _TABLE.strip().splitlines())}
"""The words of each kind of question, and those that tell what is a plain one, and what answers it."""
_KINDS: Final = {word: kind for kind in ("what", "who", "when", "may") for word in _OF[kind]}
_LITTLE: Final = ASKING_WORDS.union(_KINDS, *map(_OF.__getitem__, ("leads", "amounts", "askers", "light")))
_NO_SUBJECT: Final = STATES | THINGS | _OF["vague"]
_HAS: Final = {"may": _NEGATIONS | _OF["rules"], "when": DAYS_AND_MONTHS | _OF["soon"]}
"""What an answer has; that of "when" a number instead."""


def asked_of(prompt: str) -> tuple[str, str] | None:
    """Return the kind of a plain question and its only telling word; None for any other prompt.

    It does not point to something here ("this crate"), and asks of no kind ("a mutex"), state or thing of all work.
    """
    words = words_of(prompt.lower()) if len(prompt) <= _MOST_PLAIN_CHARS else []
    begin, *rest = [*dropwhile(_OF["leads"].__contains__, words), ""]
    kind = _KINDS.get(begin) or ("may" if begin in _OF["askers"] and words[0] in _KINDS else None)
    if kind is None or not _OF["pointers"].isdisjoint(rest) or (kind == "may" and _OF["askers"].isdisjoint(words[1:2])):
        return None
    kind = "when" if begin in {"how", "wie"} and not _OF["amounts"].isdisjoint(words) else kind
    telling = {word for word in words if len(word) > 1 and word not in stop_words_of(words) | _LITTLE}
    word = telling.pop() if len(telling) == 1 and len(words) > len(("what", "changed")) else ""
    return (kind, word) if word.isalpha() and _NO_SUBJECT.isdisjoint((word, word.removesuffix("s"))) else None


def tells(asked: tuple[str, str], said: Sequence[tuple[str, str]]) -> bool:
    """Return whether ``said`` (role, text) answers: a statement of the user, or the answer to a question."""
    questions = {asked_of(text): text for role, text in said if role == "user"}
    is_asked = all(asks or is_question(text) for asks, text in questions.items())
    word = "" if asked in questions else asked[1]
    texts = [text for role, text in said if (role == "user") != is_asked]
    marked = [(role, f"{text}?" if role == "user" and is_asked else text) for role, text in said]
    sentences = [sentence.strip() for text in texts for sentence in sentences_of(text)]
    return not tells_nothing(marked) and any(_answers(each, *asked, word) for each in sentences)


def _answers(sentence: str, kind: str, asked: str, needed: str) -> bool:
    """Return whether a statement answers, if it has the word ``needed``."""
    words = words_of(sentence.lower())
    forms = {asked, f"{asked}s", f"{asked}n", asked.removesuffix("s")}
    at = next((at for at, each in enumerate(words) if each in forms), -1)
    is_said = bool(words) and len(sentence) <= _MOST_PLAIN_CHARS and words[0] not in _KINDS and sentence[-1] != "?"
    if not is_said or (needed and at < 0):
        return False
    behind = words[at + 1] if needed and at + 1 < len(words) else ""
    if behind in THINGS or (kind != "may" and words[0] not in _OF["askers"] and orders_work(sentence)):
        return False
    is_asserted = at == 0 or behind in _OF["is"]
    is_spoken_of = is_asserted or words[0] in _OF["askers"] or (at <= _IN_FRONT and words[0] in _OF["articles"])
    if kind == "who":
        names = [token.lower() for token in sentence.split()[bool(needed) :] if token[:1].isupper()]
        is_named = not all(each in STOP_WORDS or each.startswith(asked) for each in names)
        return is_asserted or (is_named and (is_spoken_of or not needed or not _OF["is"].isdisjoint(words)))
    if kind != "may" and needed and not (is_spoken_of and _OF["beside"].isdisjoint(words[max(0, at - 2) : at])):
        return False
    return kind == "what" or not _HAS[kind].isdisjoint(words) or (kind == "when" and any(map(str.isdigit, sentence)))


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
