"""Turn a question into search terms: words without stop words, identifiers as phrases, CJK text as bigrams.

Queries run against ``memories_fts(content, cjk)`` with the tokenizer ``porter unicode61 remove_diacritics 2``. User
text never becomes FTS5 syntax: every term is a quoted string.

Source: docs/decisions.md 8; docs/quality.md rules 3 and 4; docs/compatibility.md "Worked examples: query words".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from signet_actors.domain import normalization
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.written_forms import emoji_terms, is_hash, same_spellings, words_of_name

MAX_QUERY_CHARS = 20_000
"""The rest of a longer query is ignored."""

MAX_TERMS = 64
MAX_SPELLED = 24
"""The phrases of a query that are searched in other spellings too."""
MAX_JOINED_CHARS = 200
"""In this part of a query two words in a row may be one name (user service: UserService)."""
MAX_IDENTIFIER_PARTS = 32
"""An identifier with more parts becomes words: the cost of a phrase grows with its length times the text's."""

_AREAS_OF_ZONES = ("africa", "america", "asia", "atlantic", "australia", "europe", "pacific")
"""The first part of the name of a time zone."""


class QueryTerms(NamedTuple):
    """The terms of a query, without duplicates, in text order.

    ``words`` are lower-case. ``identifiers`` keep their case. ``cjk`` are runs of Han, Hiragana, Katakana or Hangul.
    """

    words: tuple[str, ...]
    identifiers: tuple[str, ...]
    cjk: tuple[str, ...]


# don't, she's, we'll: the part after the apostrophe is a stop word, and so is a whole negation.
_CONTRACTION = re.compile(r"(?<!\w)([^\W\d_]{1,40})['\u2019](t|s|m|d|re|ve|ll)(?!\w)", re.IGNORECASE)
# Everything except white space and punctuation that no identifier contains. Combining marks stay with their letters.
_PIECE = re.compile(
    r"""[^\s!"$%&'()*,;<=>?\[\]^`{|}\u00a1\u00a7\u00ab\u00b7\u00bb\u00bf\u2000-\u206f\u3000-\u303f\uff01-\uff0f]+"""
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_QUANTITY = re.compile(
    r"\d+(?:st|nd|rd|th|s|am|pm|h|hr|hrs|min|mins|ms|k|m|b|bn|x|kg|g|km|cm|mm|kb|mb|gb|tb|px|y|yo|d|w)", re.IGNORECASE
)
_TICKET = re.compile(r"[A-Z][A-Z0-9]*-\d+")
# camelCase, or three capitalized parts. Two parts may be a brand (YouTube), which is an ordinary word.
_CAMEL = re.compile(r"[a-z]{2,}[A-Z][^\W_]*|(?:[A-Z]+[a-z]+){3,}[A-Z]*")
_WORD_OF_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_INNER_CAPITAL = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]")
_HYPHENATED_QUANTITY = re.compile(r"\d+(?:-[a-z]+)+")


def query_terms(text: str) -> QueryTerms:
    """Return the terms of ``text``. Stop words are removed unless nothing else would remain.

    Source: docs/decisions.md 8.
    """
    text = _truncated(text)
    cjk: tuple[str, ...] = ()
    if normalization.MAYBE_CJK.search(text):
        text = normalization.compatibility_form(text)
        cjk = tuple(dict.fromkeys(normalization.CJK_RUN.findall(text)))
        text = normalization.CJK_RUN.sub(" ", text)
    words: list[str] = []
    identifiers: dict[str, str] = {}
    for piece in _pieces(without_contractions(text)):
        if _is_identifier(piece) and len(words_of(piece)) <= MAX_IDENTIFIER_PARTS:
            identifiers.setdefault(piece.lower(), piece)
            words.extend(_words_of_hyphenated(piece))
        else:
            words.extend(words_of(piece))
    stop_words = stop_words_of(words)
    telling = tuple(dict.fromkeys(word for word in words if word not in stop_words))
    if not telling and not identifiers and not cjk:
        telling = tuple(dict.fromkeys(words_of(text)))
    return QueryTerms(telling, tuple(identifiers.values()), cjk)


class MatchTerms(NamedTuple):
    """The terms of an expression over ``memories_fts``: ``phrases`` match both columns, ``pairs`` only ``cjk``.

    A phrase is raw text; the most specific comes first. A pair is one or two characters; a single character is a
    prefix. ``identifiers`` are the phrases that are a whole identifier of the query, in lower case; ``parts`` are the
    words of each. ``spellings`` are other ways to write a phrase, which count like it. ``emoji`` are the phrases that
    stand for emoji.
    """

    phrases: tuple[str, ...]
    pairs: tuple[str, ...]
    identifiers: tuple[str, ...] = ()
    parts: Mapping[str, Sequence[str]] = {}
    spellings: Mapping[str, Sequence[str]] = {}
    emoji: tuple[str, ...] = ()

    def expressions(self, phrase: str) -> list[str]:
        """Return the FTS5 expressions whose rows have the phrase in one of its spellings, that of itself first."""
        found = [phrase_expression(phrase), *map(phrase_expression, self.spellings.get(phrase, ()))]
        return [*found, f"{found[0]} *"] if is_hash(phrase) else found


def match_terms(text: str, *, max_terms: int = MAX_TERMS) -> MatchTerms:
    """Return the terms of ``text`` for FTS5, at most ``max_terms``.

    Identifiers come first (also the last part of a path alone, and without a line number), then words, then CJK
    bigrams. Bigrams match only the column ``cjk``. Words and identifiers match both columns, because ``cjk`` contains
    the words adjacent to CJK text.
    """
    terms = query_terms(text)
    plain: dict[str, None] = {}
    for identifier in terms.identifiers:
        plain.setdefault(identifier.lower())
        tail = re.split(r"[/\\]", identifier)[-1]
        for part in (tail, tail.partition(":")[0] if "." in tail else tail):
            if len(part) > 2 and normalization.has_token(part):
                plain.setdefault(part.lower())
    plain.update(dict.fromkeys(terms.words))
    emoji = () if text.isascii() else tuple(dict.fromkeys(emoji_terms(text[:MAX_QUERY_CHARS])))
    plain.update(dict.fromkeys(emoji))
    phrases = tuple(plain)[:max_terms]
    pairs = tuple(dict.fromkeys(pair for run in terms.cjk for pair in normalization.character_pairs(run)))
    identifiers = tuple(identifier.lower() for identifier in terms.identifiers)
    parts = {identifier.lower(): identifier_parts(identifier) for identifier in terms.identifiers[:max_terms]}
    pairs = pairs[: max_terms - len(phrases)]
    return MatchTerms(phrases, pairs, identifiers, parts, _spellings(text, terms, phrases), emoji)


def _spellings(text: str, terms: QueryTerms, phrases: Sequence[str]) -> dict[str, list[str]]:
    """Return other ways to write the phrases: by themselves, names by their words, and two words as one."""
    found = {phrase: [*same_spellings(phrase)] for phrase in phrases[:MAX_SPELLED]}
    for piece in _pieces(text) if _INNER_CAPITAL.search(text) else ():
        if piece.lower() in found and (words := words_of_name(piece)):
            found[piece.lower()].append(" ".join(words))
    telling = set(terms.words)
    words = words_of(text[:MAX_JOINED_CHARS])
    for first, second in pairwise(words):
        if first != second and first.isalnum() and second.isalnum() and (first in telling or second in telling):
            for word in (first, second):
                if word in found and min(len(first), len(second)) > 1:
                    found[word].append(first + second)
    return {phrase: others for phrase, others in found.items() if others}


def phrase_expression(phrase: str) -> str:
    """Return the FTS5 expression for rows that contain ``phrase``. Source: docs/decisions.md 8 (escaping)."""
    return _quoted(phrase)


def derived_expression(term: str) -> str:
    """Return the FTS5 expression for rows that are found by ``term`` without containing it: ``indexed_beside``."""
    return f"cjk : {_quoted(term)}"


def pair_expression(pair: str) -> str:
    """Return the FTS5 expression for rows that contain a pair of ``MatchTerms.pairs``."""
    # A single character is a prefix query. The index also contains the last character of each run.
    return f"{derived_expression(pair)} *" if len(pair) == 1 else derived_expression(pair)


def zone_expression(place: str = "") -> str:
    """Return the FTS5 expression for rows that name a time zone (Europe/Berlin): any, or that of ``place``."""
    return " OR ".join(f'NEAR("{area}" {_quoted(place)}, 1)' if place else area for area in _AREAS_OF_ZONES)


def fts_expression(terms: MatchTerms) -> str | None:
    """Return an FTS5 expression for rows with any of the terms, or None if there are no terms.

    Source: docs/decisions.md 8 (escaping); docs/quality.md rule 4 (OR).
    """
    parts = [*map(phrase_expression, terms.phrases), *(f"({pair_expression(pair)})" for pair in terms.pairs)]
    others = dict.fromkeys(other for phrase in terms.phrases for other in terms.expressions(phrase)[1:])
    return " OR ".join((*parts, *islice(others, max(0, MAX_TERMS - len(parts))))) or None


def fts_match(text: str, *, max_terms: int = MAX_TERMS) -> str | None:
    """Return the ``fts_expression`` of the terms of ``text``."""
    return fts_expression(match_terms(text, max_terms=max_terms))


def dense_query(text: str, common_words: Collection[str]) -> str:
    """Return ``text`` without the ``common_words`` (lower-case), or unchanged if only stop words would remain.

    Source: docs/quality.md rule 3 (worth +6.0 and +3.8 points of evidence recall at 10).
    """
    if not common_words:
        return text
    kept: list[str] = []
    telling = False
    stop_words = stop_words_of(words_of(text))
    for token in text.split():
        words = words_of(_CONTRACTION.sub(_expand, token))
        if words and all(word in common_words for word in words):
            continue
        kept.append(token)
        telling = (
            telling or any(word not in stop_words for word in words) or bool(normalization.MAYBE_CJK.search(token))
        )
    return " ".join(kept) if telling else text


def identifier_parts(identifier: str) -> list[str]:
    """Return the words of an identifier ("getUserName", "user_name.py"), without short ones and stop words."""
    parts = (word.lower() for part in _WORD_OF_CAMEL.split(identifier) for word in words_of(part))
    return [word for word in dict.fromkeys(parts) if len(word) > 2 and word.isalpha() and word not in STOP_WORDS]


def search_words(token: str) -> tuple[str, ...]:
    """Return under which terms ``match_terms`` may have put the ``token`` of a query (text without white space)."""
    piece = token.strip("!\"$%&'()*,;<=>?[]^`{|}:+").rstrip("./\\:@#~+-").lower()
    return (piece, *words_of(_CONTRACTION.sub(_expand, token)), *emoji_terms(token))


def without_contractions(text: str) -> str:
    """Return the text without what follows the apostrophe in she's and we'll; don't is left out."""
    return _CONTRACTION.sub(_expand, text)


def _truncated(text: str) -> str:
    return normalization.sanitize_text(text[:MAX_QUERY_CHARS])


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _expand(match: re.Match[str]) -> str:
    """Return the word before the apostrophe of a contraction, and nothing for a negation such as "don't"."""
    word, rest = match[1], match[2]
    return " " if rest.lower() == "t" and word.lower().endswith("n") else f"{word} "


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of ``text`` that may be an identifier, without surrounding punctuation."""
    for piece in _PIECE.findall(text):
        stripped = piece.strip(":+").rstrip("./\\:@#~+-")
        if stripped and normalization.has_token(stripped):
            yield stripped


def _is_identifier(piece: str) -> bool:
    if piece.isalnum():
        if piece.isalpha():
            return _CAMEL.fullmatch(piece) is not None
        return not piece.isdecimal() and any(map(str.isalpha, piece)) and _QUANTITY.fullmatch(piece) is None
    if "_" in piece or "@" in piece or "::" in piece or piece.startswith("--"):
        return True
    has_digit = any(map(str.isdigit, piece))
    if "/" in piece or "\\" in piece:
        marks = piece.count("/") + piece.count("\\")
        return has_digit or "." in piece or "~" in piece or marks > 1 or piece[0] in "/\\"
    if "." in piece:
        inner = piece.lstrip(".")
        return "." in inner and inner.lower() not in {"e.g", "i.e"}
    if ":" in piece:
        return has_digit or piece.count(":") > 1
    if "-" in piece or "#" in piece:
        return has_digit and _HYPHENATED_QUANTITY.fullmatch(piece) is None  # a 20-year-old is prose
    return False


def _words_of_hyphenated(piece: str) -> list[str]:
    """Return the words of a hyphenated name that may be prose ("covid-19-related"); none for a ticket id."""
    if "-" not in piece or _TICKET.fullmatch(piece) or re.search(r"[_./\\:@#]", piece) or piece.startswith("-"):
        return []
    return [word for word in words_of(piece) if len(word) > 2 and word.isalpha()]


def words_of(text: str) -> list[str]:
    """Return the runs of letters and digits in lower case. Combining marks belong to their letters."""
    lower = text.lower()
    if lower.isascii():
        return _ASCII_WORD.findall(lower)
    words: list[str] = []
    current: list[str] = []
    for char in lower:
        if char.isalnum() or (current and unicodedata.category(char)[0] == "M"):
            current.append(char)
        elif current:
            words.append("".join(current))
            current.clear()
    if current:
        words.append("".join(current))
    return words
