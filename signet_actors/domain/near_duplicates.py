"""Whether a text that a hook wants to store says the same as a memory, in the same words.

Source: docs/compatibility.md "Hooks and sessions".
Departs: the reference daemon takes a text for a duplicate if a memory has 70 % of its words. That loses what the rest
says: "may deploy" and "may not deploy", "on Mondays" and "on Tuesdays" share more.
"""

from __future__ import annotations

import re
import string
from itertools import islice
from typing import Final

from signet_actors.domain.normalization import comparable

MIN_CHARS: Final = 3
"""Shorter words are not searched for."""
SEARCHED_WORDS: Final = 10
_AROUND_WORDS: Final = string.punctuation + "\u2018\u2019\u201c\u201d\u2026"
_APOSTROPHES: Final = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb`", '\'\'\'\'""""""')
_OPENING: Final = re.compile(r"(?:please |bitte )?(?:note:? (?:that )?|beachten: )|please |bitte ")
_FIRST_LETTER: Final = re.compile(r"(?<!^ )\b[^\W\d_]")
"""That of a word, which tells where a sentence begins. First behind a number it is that of a unit: 5 mW, 5 MW."""
# Punctuation at the end of a sentence or of a part of it; of dots after a slash only one, because of ./...
_SENTENCE_END: Final = re.compile(r"(?:(?<=[^\W_])[.,:\u2026\u3001\u3002]+|(?<=[^\s.,;:!?])[.,:])$")
_MARKS: Final = frozenset({",", ":"})
_VALUE: Final = re.compile(r"""(?<!\w)(["'])(?=[^\w\s"'`]*\w)([^\s"'`]+)\1(?!\w)""")
"""One word in quotation marks as code has them: ``the value is 'x'``."""
_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_QUOTED: Final = re.compile(r"""(?<!\w)(["'])([^\w"']{0,8})\1(?!\w)""")
"""A sign in quotation marks, which is what the text is about: ``the separator is ","``."""
_ANSWERS: Final = frozenset(("yes,", "no,", "ja,", "nein,", "oui,", "non,", "s\u00ed,", "nee,", "doch,"))
"""Answers before a comma. Without it, "no deploy" says something else than "no, deploy"."""
_ARTICLES: Final = frozenset(("the", "our", "also"))
_GERMAN_ARTICLES: Final = frozenset(("der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "auch"))
_GERMAN: Final = frozenset(
    ("der", "das", "und", "ist", "sind", "nicht", "ein", "eine", "f\u00fcr", "auf", "mit", "wir")
)
_BEFORE_A: Final = frozenset(
    (
        *("is", "are", "was", "were", "be", "has", "have", "had", "needs", "uses", "gets", "and", "or", "not", "than"),
        *("with", "in", "on", "of", "for", "to", "as", "by", "from", "at"),
    )
)
"""After other words, "a" may be a name: team a."""


def search_text(text: str) -> str:
    """Return the words by which memories that the text may repeat are searched for."""
    words = filter(None, (word.strip(_AROUND_WORDS) for word in text.lower().split()))
    counted = (word for word in dict.fromkeys(words) if len(word) >= MIN_CHARS)
    return " ".join(islice(counted, SEARCHED_WORDS))


def repeats(text: str, memory: str) -> bool:
    """Return whether both say the same in the same words and signs, in the same order.

    What differs only in articles, quotation marks around several words, the punctuation of sentences, white space, the
    case of first letters or code points is the same. A question is no statement, and whatever else may be a sign, an
    operator, a unit, a version, a name or a path counts: also a semicolon, which separates commands, what is in
    brackets, and capitals within a word.
    """
    given = _statement(text)
    return bool(given) and given == _statement(memory)


def _statement(text: str) -> list[str]:
    """Return the words and signs that count."""
    line = comparable(text, str.lower if text.isupper() else _with_small_initials)
    line = _VALUE.sub("\u2039\\2\u203a", line).translate(_APOSTROPHES).replace(" ?", "?")
    line = _QUOTED.sub(lambda sign: f"`{sign[2].replace(' ', '`')}`", line)
    if line.count('"') % 2 == 0:
        line = line.replace('"', "")
    opening = _OPENING.match(line)
    line = _BRACKETS.sub(lambda inside: inside[0].replace(" ", "`"), line)
    words = [_without_punctuation(word) for word in line[opening.end() if opening else 0 :].split()]
    words = [word for word in words if word and word not in _MARKS]
    if words:
        words[-1] = words[-1].rstrip("!;")
    articles = _GERMAN_ARTICLES if not _GERMAN.isdisjoint(words) else _ARTICLES
    return [word for at, word in enumerate(words) if word and not _is_filler(words, at, articles)]


def _with_small_initials(text: str) -> str:
    return _FIRST_LETTER.sub(lambda letter: letter[0].lower(), text)


def _is_filler(words: list[str], at: int, articles: frozenset[str]) -> bool:
    """Return whether the word may come or go without a change of what is said. Negations, verbs, tenses may not."""
    if at + 1 == len(words) or not words[at + 1][:1].isalnum():
        return False  # no article: schalte es ein
    if words[at] in ("a", "an"):
        return articles is _ARTICLES and (at == 0 or words[at - 1] in _BEFORE_A)
    return words[at] in articles


def _without_punctuation(word: str) -> str:
    """Return the word without the quotation marks around it and the punctuation after it."""
    if word in _ANSWERS or (word.count("'") == 1 and word[:-1].isdigit()):  # 5' is a length
        return word
    return _SENTENCE_END.sub("", word.strip("'")).rstrip("'")
