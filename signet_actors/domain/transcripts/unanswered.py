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
from signet_actors.domain.versions import AROUND, DAYS_AND_MONTHS, STATES, is_ordinal
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
_LEAST_PLAIN_WORDS: Final = 3
"""Of a plain question: "what changed?" is none."""
_TIME_WITHIN: Final = 5
"""Words behind the verb in which a day or a time is that of what is spoken of."""
_TABLE: Final = """
    what what which was welche welcher welches wie quel quelle qué cuál
    where where wo wohin où dónde
    who who whose wer wem wen qui quién
    when when wann quand cuándo
    amount how wie
    amounts many much long often big large high viel viele lange oft groß hoch teuer
    may may can could should must darf dürfen kann können soll sollen muss müssen
    openers and so but also ok hey do you know can could tell remind me und sag mir weißt du
    we i we ich wir man
    fillers light use used using live lives benutzen nutzen verwenden liegt liegen heißt steht
    pointers this that these those it you diese dieser dieses diesen diesem du a an ein eine
    vague next first last left status problem difference today tomorrow yesterday nächstes zuerst heute gestern
    articles the our your der die das unser unsere le la notre el nuestro nuestra
    is is are ist sind heißt est es
    as as als
    keep keep store have hold host hired haben
    places on in at to under behind inside auf im am bei unter hinter sur dans à en sous
    kept hosted stored kept located saved
    verbs_where got moved lives live goes go belongs belong liegt liegen steht está
    verbs_when got moved starts begins happens beginnt startet commence empieza
    verbs_amount takes lasts costs dauert kostet
    dated moved planned scheduled postponed delayed next every le prévue prévu geplant
    times today tomorrow daily weekly tonight heute morgen täglich jeden pm uhr heures
    polite please bitte we wir do can use nutze benutze verwende
    rules never always only avoid don't not nie niemals immer nur nicht
    persons i it you ich du
    verdicts allowed forbidden banned prohibited verboten erlaubt
    unfinished installed working done installiert fertig
"""
_OF: Final = {name: frozenset(words) for name, *words in map(str.split, _TABLE.strip().splitlines())}
"""The words of each kind of question, and those that tell what is a plain one, and what answers it."""
_KINDS: Final = {word: kind for kind in ("amount", "what", "where", "who", "when", "may") for word in _OF[kind]}
_LITTLE: Final = ASKING_WORDS.union(_KINDS, *map(_OF.__getitem__, ("openers", "amounts", "we", "fillers")))
_NO_SUBJECT: Final = STATES | THINGS | _OF["vague"]


def plain_question(prompt: str) -> tuple[str, str] | None:
    """Return the kind of a plain question and its only telling word; None for any other prompt.

    It does not point to something here ("this crate"), and asks of no kind ("a mutex"), state or thing of all work.
    """
    words = words_of(prompt.lower()) if len(prompt) <= _MOST_PLAIN_CHARS else []
    begin, *rest = [*dropwhile(_OF["openers"].__contains__, words), ""]
    kind = _KINDS.get(begin) or ("may" if begin in _OF["we"] and words[0] in _KINDS else None)
    if kind is None or not _OF["pointers"].isdisjoint(rest) or (kind == "may" and _OF["we"].isdisjoint(words[1:2])):
        return None
    if begin in _OF["amount"]:
        kind = "amount" if not _OF["amounts"].isdisjoint(rest) else "what"
    if begin == "how" and kind == "what":  # "how is the wiki?"
        return None
    telling = {word for word in words if len(word) > 1 and word not in stop_words_of(words) | _LITTLE}
    word = telling.pop() if len(telling) == 1 and len(words) >= _LEAST_PLAIN_WORDS else ""
    return (kind, word) if word.isalpha() and _NO_SUBJECT.isdisjoint((word, word.removesuffix("s"))) else None


def answers_question(asked: tuple[str, str], said: Sequence[tuple[str, str]]) -> bool:
    """Return whether ``said`` (role, text) answers: a statement of the user, or the answer to a question."""
    questions = {plain_question(text): text for role, text in said if role == "user"}
    is_asked = all(question or is_question(text) for question, text in questions.items())
    texts = [text for role, text in said if (role == "user") != is_asked]
    marked = [(role, f"{text}?" if role == "user" and is_asked else text) for role, text in said]
    sentences = [sentence.strip() for text in texts for sentence in sentences_of(text)]
    is_named = asked in questions  # "Maria." answers the question itself
    return not tells_nothing(marked) and any(_answers(each, *asked, is_named=is_named) for each in sentences)


def _answers(sentence: str, kind: str, asked: str, *, is_named: bool) -> bool:
    """Return whether a clause of a statement answers; ``is_named``: the question has named the word, it need not."""
    words = words_of(sentence.lower())
    if not words or len(sentence) > _MOST_PLAIN_CHARS or words[0] in _KINDS or sentence.endswith("?"):
        return False
    if kind != "may" and words[0] not in _OF["we"] and orders_work(sentence):
        return False
    forms = {asked, f"{asked}s", f"{asked}n", asked.removesuffix("s")}
    for clause in sentence.replace("\u2019", "'").replace(": ", " is ").split(", "):
        said = [word for token in clause.split() if (word := token.strip(AROUND))]
        at = next((at for at, word in enumerate(said) if word.lower() in forms), None)
        if _says(kind, said, at) if at is not None else is_named and _may_answer(kind, said):
            return True
    return False


def _may_answer(kind: str, said: Sequence[str]) -> bool:
    """Return whether the answer to a question, which does not name what was asked for, has what its kind asks for."""
    if kind == "may":
        words = {word.lower() for word in said}
        return not words.isdisjoint(_OF["rules"] | _NEGATIONS) and words.isdisjoint(_OF["unfinished"])
    return kind not in _HAS or any(map(_HAS[kind], said))


def _says(kind: str, said: Sequence[str], at: int) -> bool:
    """Return whether a clause whose word ``at`` names what was asked for says of it what the kind asks for."""
    words = [word.lower() for word in said]
    before, behind = words[:at], words[at + 1 :]
    is_subject = not before or (len(before) == 1 and before[0] in _OF["articles"])
    if kind == "may":
        return _is_rule(words, behind, is_subject=is_subject)
    if is_subject and behind:
        is_said = behind[0] in _OF["is"] | _OF.get(f"verbs_{kind}", frozenset())
        return is_said and _is_value(kind, said[at + 2 :])
    is_ours = bool(before) and before[0] in _OF["we"] and not _OF["keep"].isdisjoint(before[1:2])
    if is_ours and kind == "amount":
        return _is_amount(before[-1])
    if is_ours and kind in {"where", "when"}:
        return _is_value(kind, said[at + 1 :])
    is_name = (
        (is_ours and before[-1] in _OF["as"])
        or (  # "we hired Maria as …", "Maria is our …"
            not _OF["is"].isdisjoint(before[-2:-1]) and before[-1] in _OF["articles"]
        )
    )
    return kind == "who" and not behind and is_name and any(map(_is_name, said[:at]))


def _is_value(kind: str, said: Sequence[str]) -> bool:
    """Return whether what stands behind a verb is what the kind asks for, and no state."""
    first = said[0] if said else ""
    if not first or not ((STATES - _OF["places"]) | _NEGATIONS).isdisjoint(said[:3]):
        return False
    if kind == "when":
        return (_is_time(first) or first in _OF["places"] | _OF["dated"]) and any(map(_is_time, said[:_TIME_WITHIN]))
    if kind == "where":
        place, *rest = [*said[first in _OF["kept"] :], ""]
        is_address = "/" in place or ("." in place and place.rpartition(".")[2].isalpha())
        return is_address or (place in _OF["places"] and not any(map(_is_time, rest[:2])))
    if first in _OF["places"]:
        return False
    return (
        any(map(_HAS[kind], said[: 1 + (kind == "amount")]))
        if kind in _HAS
        else first not in _KINDS and not first.endswith(("ed", "ing"))
    )


def _is_rule(words: Sequence[str], behind: Sequence[str], *, is_subject: bool) -> bool:
    """Return whether a clause allows or forbids: "never use …", "… is not allowed"; not "… is not installed"."""
    if not THINGS.isdisjoint(behind[:1]) or not _OF["unfinished"].isdisjoint(words):
        return False
    if is_subject:
        return not _OF["is"].isdisjoint(behind[:1]) and not _OF["verdicts"].isdisjoint(behind)
    if not _OF["persons"].isdisjoint(words):
        return False
    begin = next(dropwhile(_OF["polite"].__contains__, words), "")
    return begin in _OF["rules"] or (orders_work(" ".join(words)) and not _OF["rules"].isdisjoint(words))


def _is_name(word: str) -> bool:
    return word[0].isupper() and word.lower() not in STOP_WORDS | _TAGS


def _is_time(word: str) -> bool:
    """Return whether the word is a day, a month, a date or a time of the clock; not the verb "may"."""
    if is_ordinal(word) or (word != "may" and word.lower() in DAYS_AND_MONTHS | _OF["times"]):
        return True
    number = word.lower().removesuffix("am").removesuffix("pm")
    parts = number.replace(":", "-").split("-")
    return all(map(str.isdecimal, parts)) and (len(parts) > 1 or number != word.lower())


def _is_amount(word: str) -> bool:
    return word.lstrip("$\u20ac\u00a3")[:1].isdecimal()


_HAS: Final = {"who": _is_name, "when": _is_time, "amount": _is_amount}


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
