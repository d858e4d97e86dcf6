"""Whether a text says what a memory says: what was forgotten is not told again by the conversation that had it.

Source: docs/concepts.md "What happens later".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from signet_actors.domain.normalization import CJK_RUN, MAYBE_CJK, character_pairs, collapsed
from signet_actors.domain.query_words import without_contractions, words_of
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.temporal.change import names_in, stem
from signet_actors.domain.temporal.full_dates import full_dates, month_number
from signet_actors.domain.temporal.other_languages import MONTHS_IN_ENGLISH
from signet_actors.domain.temporal.relative_dates import MONTH_NAMES

MOST_CHARS: Final = 1500
"""Of a memory the beginning is compared; of a longer text this much at a time, because a long one has most words."""
_MOST: Final = 0.7
"""A text that says the same in other words has so much of a memory's words."""
_TOGETHER: Final = 0.8
"""And several sentences together so much, if it has no number."""
_PART: Final = 0.4
"""And a clause that says nothing else so much."""
_SOME: Final = 0.3
"""One that may say the same has so much."""
_FEW: Final = 3
"""A memory with fewer telling words is said by a sentence with little else."""
_LONG: Final = 200
_SEVERAL: Final = 2
_FACT: Final = 4
"""A sentence of so many words, with a number or a name, tells a fact of a memory that has several."""
_MORE_WORDS: Final = 3
_REWORDED: Final = 0.25
"""A sentence of a forgotten text has so many other words when it comes again, one at least."""
_MOST_REWORDED: Final = 1000
"""Of forgotten sentences so many are looked for in other words, all in their own."""
_MOST_SHARING: Final = 50
"""A word of more forgotten sentences tells none of them from the others."""
_PASSAGE: Final = 6
"""A statement is said by so many sentences in a row at most, one for two of its words."""
_HALF: Final = 0.5
_TELLING: Final = 4
"""What is left of an exchange tells something with so many other words."""
_FRAME_WORDS: Final = """
    please remember remembered note noted store stored save saved keep kept mind ok okay good fine right sure
    understood thanks thank got done agreed now bitte merk merke merken gemerkt notiere notiert gespeichert verstanden
    gut danke klar jetzt note notez retiens retenu compris merci bien recuerda recordado anota anotado guardado
    entendido gracias vale ahora use using never always only
"""
"""What is said around a statement that is to be remembered."""
_DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_DIGIT: Final = re.compile(r"\d")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_MONTH: Final = "|".join(sorted({*MONTHS_IN_ENGLISH, *MONTH_NAMES}, key=len, reverse=True))
_DAY: Final = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?({_MONTH})|({_MONTH})\.?\s(\d{{1,2}})(?:st|nd|rd|th)?)\b",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(r"\b(\d{1,2})(?:(?:[:.](\d\d))?\s?([ap])\.?m|h(\d\d))\b", re.IGNORECASE)
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[.,'\u2019\u00a0\u202f]\d{3}|\x20\d00)+(?!\d)")
"""92,000, 92.000 and 92 000."""
_THOUSAND: Final = re.compile(r"(?<![\d.,])(\d{1,9})k\b", re.IGNORECASE)
_HOUR: Final = re.compile(r"(\d+)(?:am|pm|h)?")
_SENTENCE: Final = re.compile(
    rf"[^.!?;\n]*(?:(?:[.!?;](?!\s)|(?<=\d)\.(?=\x20(?:{_MONTH})\b))[^.!?;\n]*)*[.!?;\n]?\s*", re.IGNORECASE
)
_CLAUSE: Final = re.compile(r"[,:;]\s|\s[-\u2013\u2014]\s|[()\u2014]")
_MOST_CLAUSES: Final = 20
"""Of a sentence; what has more is a list."""
_LABEL: Final = re.compile(r"(?:- )?[\w ]{1,20}:\s*")
_USER: Final = "user"
_USERS: Final = frozenset(
    ("user", "nutzer", "nutzers", "nutzerin", "benutzer", "anwender", "utilisateur", "utilisatrice")
)
"""So a memory calls the user. What is said has a person instead; Spanish needs no pronoun, and so no word of these."""
_PERSONS: Final = """
    i me my mine myself you your yours we us our ours ich mir mich mein meine meinem meinen meiner du dir dich dein
    deine deinem deinen deiner wir uns unser unsere unserem unseren unserer je j me moi mon ma mes tu toi ton tes nous
    notre nos vous votre vos
"""
_SPOKEN: Final = _USERS.union(_PERSONS.split())
_SPANISH_USERS: Final = ("usuario", "usuaria")
_VERBS: Final = {
    **dict.fromkeys(("nutzer", "nutzerin", "benutzer", "anwender"), ("t", "e")),
    **dict.fromkeys(_SPANISH_USERS, ("ae", "o")),
}
"""How the verb after it ends, and how the user says it: wohnt and wohne, vive and vivo."""


class Statement(NamedTuple):
    """The telling words of a text by their stems; which of these are numbers or days, and which are names.

    ``years``: of its full dates. ``others``: its other words. ``first``: the first of its words, often a name.
    """

    words: frozenset[str]
    numbers: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    years: frozenset[int] = frozenset()
    others: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()


NOTHING: Final = Statement(frozenset())


class Former(NamedTuple):
    """What a memory said before an edit, the words of it that the edit took away, and what it says now."""

    said: Statement
    value: frozenset[str]
    now: Statement


class Passage:
    """A text that may be long: what its parts say, which are as long as a memory, its sentences and its clauses."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def parts(self) -> list[Statement]:
        step = MOST_CHARS // 2
        starts = range(0, max(1, len(self._text) - step), step)
        return [_statement(self._text[at : at + MOST_CHARS]) for at in starts]

    @cached_property
    def sentences(self) -> list[Statement]:
        return [_statement(sentence) for sentence in sentences_of(self._text)]

    @cached_property
    def clauses(self) -> list[Statement]:
        return [clause for sentence in sentences_of(self._text) for clause in _clauses(sentence)]


def statement_of(text: str) -> Statement:
    """Return what a memory says. The day on which it was written down counts only if it has no other number."""
    text = text[:MOST_CHARS]
    undated = _statement(_DATE.sub(" ", text), _USERS)
    return undated if undated.numbers else _statement(text, _USERS)


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return what a memory says, and of a long one also what its sentences say, each of which may be told alone."""
    whole, sentences = statement_of(text), sentences_of(text[:MOST_CHARS])
    if len(text) < _LONG or len(sentences) < _SEVERAL:
        return (whole,)
    parts = map(statement_of, sentences)
    return (whole, *(part for part in parts if len(part.words) >= _FACT and part.numbers | part.names))


def says(passage: Passage, said: Statement) -> bool:
    """Return True if the passage says the statement, or if one of its clauses says a part of it and nothing else."""
    return says_most(passage, said) or any(_is_part(clause, said) for clause in passage.clauses)


def says_most(passage: Passage, said: Statement) -> bool:
    """Return True if the passage has most words of the statement, all its numbers and half of its names."""
    return any(_says(each, said) for each in (passage.sentences if len(said.words) < _FEW else passage.parts))


def says_no_more(text: str, said: Statement) -> bool:
    """Return True if the text says the statement, and hardly anything else."""
    one = statement_of(text)
    return _says(one, said) and _more_words(one, said) <= _MORE_WORDS


def without_forgotten(parts: Iterable[str], forgotten: Iterable[str]) -> Iterator[str]:
    """Yield each part of a text without the sentences that say no more than one of the ``forgotten`` texts.

    Empty if hardly anything else is left of it. A line with few words (a heading, the end of a block) is looked for in
    no text. Takes linear time.
    """
    exactly: set[str] = set()
    by_word: dict[str, list[Statement]] = {}
    for at, sentence in enumerate(chain.from_iterable(map(sentences_of, forgotten))):
        said = statement_of(sentence)
        if len(said.words) >= _FEW:
            exactly.add(collapsed(sentence))
            for word in said.words if at < _MOST_REWORDED else ():
                by_word.setdefault(word, []).append(said)

    def is_forgotten(sentence: str) -> bool:
        if collapsed(sentence) in exactly:
            return True
        one = statement_of(sentence) if by_word else NOTHING
        sharing = (by_word.get(word, []) for word in one.words)
        likely = chain.from_iterable(each for each in sharing if len(each) <= _MOST_SHARING)
        return len(one.words) >= _FEW and any(_is_reworded(one, said) for said in likely)

    for part in parts:
        sentences = sentences_of(part)
        kept = [sentence for sentence in sentences if not is_forgotten(sentence)]
        left = part if len(kept) == len(sentences) else "".join(kept).strip()
        yield left if left == part or len(statement_of(left).words) >= _FEW else ""


def may_say(passage: Passage, said: Statement) -> bool:
    """Return True if the passage has a name or a number of the statement and other words of it, too few to be sure."""
    telling = said.names | said.numbers | said.first
    words = said.words - {_USER}
    return any(
        len(part.words & words) >= max(_SEVERAL, _SOME * len(words)) and not part.words.isdisjoint(telling)
        for part in passage.parts
    )


def says_rather(passage: Passage, one: Statement, other: Statement) -> bool:
    """Return True if the passage says ``one``, which is about the same as ``other``, and has as much of it."""
    if len(one.words & other.words) < _HALF * len(one.words) or not says(passage, one):
        return False
    return _most_words(passage, one) >= _most_words(passage, other)


def without_said(text: str, statements: Sequence[Statement], before: str = "", formers: Iterable[Former] = ()) -> str:
    """Return the text without the sentences that say one of these, alone, together or as the answer to ``before``.

    Of what a memory said before an edit, only without those that state it and little else. It is empty if nothing but
    the name of a line is left.
    """
    sentences, known = sentences_of(text), Passage(before)
    told = [_statement(sentence) for sentence in sentences]
    dropped = {at for said in statements for at in _telling(told, known, said)}
    for at, sentence in enumerate(sentences if statements else ()):
        if any(_is_part(clause, said) for clause in _clauses(sentence) for said in statements):
            dropped.add(at)
    dropped.update(at for former in formers for at in _stating(sentences, told, before, former))
    kept: list[str] = []
    for at, sentence in enumerate(sentences):
        if at not in dropped:
            kept.append(sentence)
        elif "\n" in sentence and kept and "\n" not in kept[-1]:
            kept.append("\n")
    left = "".join(kept).strip()
    return "" if _LABEL.fullmatch(f"{left} ") else left


def former_of(said: Statement, now: Statement) -> Former | None:
    """Return what an edit made outdated; None if the memory still has all the words of its former text."""
    return Former(said, said.words - now.words - {_USER}, now) if said.words - now.words - {_USER} else None


def has_former(words: frozenset[str], former: Former) -> bool:
    """Return True if the words have some of the former value, and half of the former text."""
    return not former.value.isdisjoint(words) and len(former.said.words & words) >= _HALF * len(former.said.words)


def tells_more(text: str, formers: Sequence[Former]) -> bool:
    """Return True if the text, which says what memories said before an edit, tells something else too."""
    about = frozenset().union(*(former.said.words | former.now.words for former in formers))
    told = [_statement(sentence) for sentence in sentences_of(text) if not _asks(sentence)]
    return len(frozenset().union(*(each.words for each in told)) - about - _FRAMES) >= _TELLING


def sentences_of(text: str) -> list[str]:
    """Return the sentences and lines of a text, which are the text when they are joined."""
    return [sentence for sentence in _SENTENCE.findall(text) if sentence]


def _telling(told: Sequence[Statement], known: Passage, said: Statement) -> set[int]:
    """Return the numbers of the sentences that say the statement, given what is known from before.

    Of several that say it together, those without which the others do not.
    """
    sharing = [at for at, each in enumerate(told) if (each.words & said.words) - {_USER}]
    if says_most(known, said):
        return set(sharing)
    found: set[int] = set()
    most = min(_PASSAGE, max(2, len(said.words) // 2)) if len(said.words) >= _FEW else 1
    for count in range(1, most + 1):
        for window in zip(*(sharing[at:] for at in range(count)), strict=False):
            parts = [told[at] for at in window]
            if window[-1] - window[0] < _PASSAGE and found.isdisjoint(window) and _say(parts, known, said):
                needed = [at for at in window if not _say([told[one] for one in window if one != at], known, said)]
                found.update(needed or window)
    if found:
        found.update(at for at in sharing if _repeats(told[at], said))
    return found


def _stating(sentences: Sequence[str], told: Sequence[Statement], before: str, former: Former) -> set[int]:
    """Return the numbers of the sentences that state a former value and little else, given what was said before.

    A question states nothing. If what was said before takes the value for granted, an answer to it does not state it.
    """

    def states(sentence: str, statement: Statement) -> bool:
        more = statement.words - former.said.words - former.now.words - _FRAMES
        most = min(_MORE_WORDS, len(former.said.words) // 2)
        return not _asks(sentence) and not former.value.isdisjoint(statement.words) and len(more) <= most

    earlier = [(sentence, _statement(sentence)) for sentence in sentences_of(before)]
    is_presumed = any(not former.value.isdisjoint(each.words) and not states(text, each) for text, each in earlier)
    known = Passage("" if is_presumed else before)
    return {at for at in _telling(told, known, former.said) if states(sentences[at], told[at])}


def _clauses(sentence: str) -> list[Statement]:
    """Return what each clause of a sentence says; nothing of a list."""
    clauses = _CLAUSE.split(sentence)
    return [] if len(clauses) > _MOST_CLAUSES else [_statement(each) for each in clauses]


def _is_part(clause: Statement, said: Statement) -> bool:
    """Return True if all words of the clause are words of the statement, many of them, and not only those of a name.

    One of them is a number if the statement has numbers, and one is a name if it has names. Years are no numbers here.
    """
    words = clause.words - _FRAMES
    numbers = {number for number in said.numbers if not _YEAR.fullmatch(number)}
    telling = [each for each in (numbers, said.names and said.names | said.first) if each]
    return (
        len(words) >= max(_FEW, _PART * len(said.words))
        and words <= said.words
        and not words <= said.names
        and bool(telling)
        and not any(words.isdisjoint(each) for each in telling)
    )


def _asks(sentence: str) -> bool:
    return sentence.rstrip().endswith(("?", "\uff1f"))


def _say(parts: Sequence[Statement], known: Passage, said: Statement) -> bool:
    least = _TOGETHER if len(parts) > 1 and not said.numbers else _MOST
    return _says(_joined(parts), said, least) or _says(_joined([*known.parts, *parts]), said, least)


def _joined(parts: Sequence[Statement]) -> Statement:
    return Statement(*(frozenset().union(*sets) for sets in zip(*parts, strict=True))) if parts else NOTHING


def _repeats(sentence: Statement, said: Statement) -> bool:
    """Return True if the sentence has nothing else than words of the statement, beside a number or name little else."""
    return _more_words(sentence, said) <= (not sentence.words.isdisjoint(said.numbers | said.names))


def _is_reworded(one: Statement, said: Statement) -> bool:
    """Return True if a sentence says the statement with few other words, of which none is a name or a number."""
    more = one.words - said.words - {_USER}
    return (
        _says(one, said)
        and len(more) <= max(1, _REWORDED * len(said.words))
        and more.isdisjoint(one.names | one.numbers)
    )


def _more_words(sentence: Statement, said: Statement) -> int:
    return len(sentence.words - said.words - {_USER})


def _most_words(passage: Passage, said: Statement) -> int:
    return max((len(said.words & each.words) for each in passage.parts), default=0)


def _says(part: Statement, said: Statement, least: float = _MOST) -> bool:
    if len(said.words) < _FEW:
        return bool(said.words) and said.words <= part.words and _more_words(part, said) <= _MORE_WORDS
    return (
        said.numbers <= part.words
        and (not said.years or not part.years or not said.years.isdisjoint(part.years))
        and len(said.names & part.words) >= _HALF * len(said.names)
        and len(said.words & (part.words | part.others)) >= least * len(said.words)
    )


def _statement(text: str, users: frozenset[str] = _SPOKEN) -> Statement:
    """Return what a text says. ``users``: words that mean the user, which are one."""
    plain, years = _plain(text)
    words = words_of(without_contractions(plain))
    stop_words = STOP_WORDS if _USER in words else stop_words_of(words)
    stems: dict[str, None] = {}
    endings = ("", "")
    for word in words:
        if word in users:
            stems[_USER] = None
        elif word not in stop_words and word not in _SPANISH_USERS:
            third, first = endings
            stems[_value(word[:-1] + first if third and word[-1] in third else word)] = None
        if word not in {"no", "se"}:
            endings = _VERBS.get(word, ("", ""))
    stems.pop("0", None)  # 02:00 is also written 2am
    numbers = frozenset(each for each in stems if each.startswith("#") or any(map(str.isnumeric, each)))
    names = frozenset(names_in(plain) & stems.keys() - numbers - {_USER})
    begins = frozenset([each for each in stems if each != _USER][:1])
    if MAYBE_CJK.search(text):
        stems |= dict.fromkeys(pair for run in CJK_RUN.findall(text) for pair in character_pairs(run))
    others = frozenset(map(_value, stop_words.intersection(words)))
    return Statement(frozenset(stems), numbers, names, years, others, begins)


def _plain(text: str) -> tuple[str, frozenset[int]]:
    """Return the text with its days, times of day and thousands each in one form, and the years of its full dates."""
    years: set[int] = set()
    if not _DIGIT.search(text):
        return text, frozenset()
    for found in reversed(full_dates(text)):
        if found.first is not None:
            years.add(found.first.year)
            text = f"{text[: found.start]}{_day(found.first.month, found.first.day)}{text[found.end :]}"
    text = _CLOCK.sub(_time, _DAY.sub(_named_day, text))
    text = _GROUPED.sub(lambda number: "".join(filter(str.isdigit, number[0])), text)
    return _THOUSAND.sub(r"\g<1>000", text), frozenset(years)


def _day(month: int, number: int) -> str:
    return f" d{month:02}{number:02} "


def _named_day(match: re.Match[str]) -> str:
    name = (match[2] or match[3]).lower()
    return _day(month_number(MONTHS_IN_ENGLISH.get(name, name)), int(match[1] or match[4]))


def _time(match: re.Match[str]) -> str:
    hour, minutes, half, after_h = match.groups()
    if half:
        hour = str(int(hour) % 12 + 12 * (half.lower() == "p"))
    return f"{hour}:{minutes or after_h or '00'}"


def _value(word: str) -> str:
    """Return the stem of a word; of one with a digit the whole word, of an hour its number."""
    if not any(map(str.isnumeric, word)):
        return stem(word)
    hour = _HOUR.fullmatch(word)
    return hour[1].lstrip("0") or "0" if hour else word


_FRAMES: Final = _statement(_FRAME_WORDS).words | {_USER}
