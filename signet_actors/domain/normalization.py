"""The forms of content: stored, collapsed to one line, hashed, and CJK text as pairs of characters for the text index.

Two contents are equal if their normalized forms have the same hash. No form contains anything that SQLite cannot store.

Source: memory-system "Content Normalization".
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from array import array
from collections.abc import Callable
from functools import lru_cache
from operator import add
from typing import Literal

from signet_actors.domain.windowed_search import WINDOW, word_windows

_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = ".,!;:\u2026\u3002"
# What is not seen: joiners matter in emoji and in scripts of Asia, not beside letters of Europe.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u180e\u200b\u200e\u200f\u2060-\u2064\ufe0e\ufe0f\ufeff]+"
    "|(?<=[\x00-\u052f])[\u200c\u200d]+|(?<![\u200c\u200d])[\u200c\u200d]++(?=[\x00-\u052f]|\\Z)"
)
_FULL_WIDTH = {0x37E: "?", 0x61F: "?", 0x3000: " ", **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Characters that no line that is shown has: they control a terminal, end a line, show text in another order, or hide
it (tags, which models read)."""
# A path, a flag, a name with digits or marks: its case matters.
_CASED = re.compile(r"(?<!\S)(?:-{1,2}[^\W\d_]|[^\s\d_/\\@#$=~.]*(?:[\d_/\\@#$=~]|\.(?=\w)))\S*")
BYTE_ORDER_MARK = "\ufeff"
_SLICE = 128
_MARKS = 32
"""Combining characters after a slice that are still normalized with it. Unicode's Stream-Safe Text Format allows 30."""

# Scripts written without spaces, or whose words unicode61 does not separate. The first class also has conjoining
# jamo and half-width forms, which NFKC turns into characters of the second class.
_HAN_KANA_HANGUL = (
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003fffd"
)
_MAX_PAIRS = 500_000
_UTF_32 = f"utf-32-{sys.byteorder[0]}e"
_CJK_PUNCTUATION = tuple(zip("\uff0c\uff01\uff1f\uff1a\uff1b\uff08\uff09", ",!?:;()", strict=True))
"""What Chinese and Japanese sentences have instead of ASCII signs; all that most of them need to be normalized."""
"""A megabyte of CJK text has 350,000. Compatibility signs, which NFKC expands, may have more; these are not indexed."""
MAYBE_CJK = re.compile(f"[{_HAN_KANA_HANGUL}\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\ud7b0-\ud7fb\uff66-\uffdc]")
CJK_RUN = re.compile(f"[{_HAN_KANA_HANGUL}]+")
_CJK_OR_NOT = re.compile(f"([{_HAN_KANA_HANGUL}]+)")


def sanitize_text(text: str) -> str:
    """Return ``text`` without NUL and lone surrogates, so that it can be encoded as UTF-8. White space is kept.

    NUL is dropped because SQLite and FTS5 read text only up to it. A lone surrogate, which JSON permits but UTF-8 does
    not, becomes U+FFFD.
    """
    text = text.replace("\x00", "")
    if not text.isascii():
        try:
            text.encode()  # takes a quarter of the time of a regex search
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", text)
    return text


def storage_content(text: str) -> str:
    """Return ``text`` in the form in which content is stored. Idempotent.

    Line ends (CRLF, CR) become LF. Leading blank lines, trailing white space and NUL are dropped. All else is kept,
    including the indentation of the first line. A text without visible characters becomes empty.

    Departs: the specification collapses each run of white space to a space, which destroys code, YAML and Markdown.
    """
    text = sanitize_text(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if BYTE_ORDER_MARK in text and not collapsed(text):
        return ""
    return without_blank_ends(text)


def compatibility_form(text: str) -> str:
    """Return ``text`` in Unicode's normalization form KC, in linear time."""
    for sign, plain in _CJK_PUNCTUATION:
        text = text.replace(sign, plain)
    return _normal_form("NFKC", text)


def _normal_form(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return ``text`` in a composed normalization form of Unicode, in linear time.

    ``unicodedata`` takes quadratic time for a run of combining characters. The text is therefore normalized in slices,
    each of which ends before a character that does not combine with the one before it. Only a run of more than some
    thirty combining characters, which no language has, may stay in another order.

    Source: Unicode Standard Annex #15 "Stream-Safe Text Format".
    """
    if len(text) <= _SLICE:
        return unicodedata.normalize(form, text)
    parts = []
    begin = 0
    while begin < len(text):
        end = begin + _SLICE
        last = end + _MARKS
        while end < min(last, len(text)) and _combines_with_previous(text[end]):
            end += 1
        piece = text[begin:end]
        # The check is forty times as fast, and nearly all text that is not compressed for a screen passes it.
        parts.append(piece if unicodedata.is_normalized(form, piece) else unicodedata.normalize(form, piece))
        begin = end
    return "".join(parts)


def _combines_with_previous(char: str) -> bool:
    """Return True for combining marks, the vowels and finals of Hangul, and the half-width forms of both."""
    return (
        unicodedata.combining(char) != 0
        or "\u1160" <= char <= "\u11ff"
        or "\uff9e" <= char <= "\uffdc"
        or unicodedata.category(char) == "Mc"
    )


def without_blank_ends(text: str) -> str:
    """Return ``text`` without leading blank lines and trailing white space."""
    indentation = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, indentation) + 1 :].rstrip()


def collapsed(text: str) -> str:
    """Return ``text`` on one line: sanitized, trimmed, each run of Unicode white space one space. Idempotent.

    This form is hashed, embedded, and shown where there is room for only one line. No-break spaces and the byte-order
    mark count as white space.
    """
    text = sanitize_text(text).replace(BYTE_ORDER_MARK, " ")
    if len(text) <= WINDOW:
        return " ".join(text.split())
    return " ".join(filter(None, (" ".join(piece.split()) for piece in word_windows(text))))


def comparable(text: str, lowered: Callable[[str], str] = str.lower) -> str:
    """Return ``text`` collapsed, in form NFC, without invisible characters, full-width letters as ordinary ones.

    Words are ``lowered`` (not folded: "Straße" keeps its ß); what may be a path, a flag or a name keeps its case.
    """
    text = collapsed(text)
    if not text.isascii():
        text = _INVISIBLE.sub("", _normal_form("NFC", text.translate(_FULL_WIDTH)))
        text = " ".join(text.split())
    parts: list[str] = []
    end = 0
    for cased in _CASED.finditer(text):
        parts += (lowered(text[end : cased.start()]), cased[0])
        end = cased.end()
    return "".join((*parts, lowered(text[end:])))


@lru_cache(maxsize=1)
def normalized_content(text: str) -> str:
    """Return ``comparable`` text without trailing ``. , ! ; :``; may be empty.

    A write needs it for its hash and for its row, some 100 ms each for a megabyte; so the last result is kept.

    Departs: the specification also drops a final question mark, which makes a question and a statement one memory,
    and the case of everything, which makes one path of two. It compares code points, so one text could be stored twice.
    """
    return comparable(text).rstrip(_TRAILING).strip()


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the normalized form, or of the comparable text if that form is empty.

    Texts that differ only in white space, final punctuation, code points, or the case of words have the same hash.
    """
    basis = normalized_content(text) or comparable(text)
    return hashlib.sha256(basis.encode()).hexdigest()


def former_content_hash(text: str) -> str:
    """Return the hash that releases with schema 16 and less computed; rows that no upgrade could change have it."""
    line = collapsed(text).lower()
    return hashlib.sha256((line.rstrip(".,!?;:").strip() or line).encode()).hexdigest()


def cjk_bigrams(text: str) -> str | None:
    """Return the CJK text of ``text`` as it is indexed in the column ``cjk``, or None if it contains none.

    This makes parts of words findable in scripts without spaces. Each run of Han, Hiragana, Katakana or Hangul
    becomes its overlapping character pairs followed by its last character, so a query of a single character finds every
    occurrence. Other text adjacent to a run ("使用PostgreSQL数据库") is separated from it, because unicode61 would read
    everything as one word. NFKC unifies compatibility forms (half-width katakana, decomposed Hangul).
    """
    text = sanitize_text(text)
    if not MAYBE_CJK.search(text):
        return None
    text = compatibility_form(text)
    parts: list[str] = []
    pairs = 0
    for token in text.split():
        if pairs > _MAX_PAIRS:
            break
        between_runs = _CJK_OR_NOT.split(token)
        if len(between_runs) == 1:
            continue
        paired = _paired(token)
        begin = 0
        for at, part in enumerate(between_runs):
            if at % 2:
                chars = min(len(part), max(1, _MAX_PAIRS - pairs))
                pairs += chars
                parts.append(paired[3 * begin : 3 * (begin + chars) - 2])
            elif has_token(part):
                parts.append(part)
            begin += len(part)
    return " ".join(parts) or None


def _paired(text: str) -> str:
    """Return each character of ``text`` with its successor and a space: ``ab bc cd d``. A pair by itself takes long."""
    chars = array("I", text.encode(_UTF_32))
    paired = array("I", [ord(" ")]) * (3 * len(chars) - 2)
    paired[0::3] = chars
    paired[1::3] = chars[1:]
    return paired.tobytes().decode(_UTF_32)


def character_pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else list(map(add, run, run[1:]))


def has_token(text: str) -> bool:
    return any(map(str.isalnum, text))
