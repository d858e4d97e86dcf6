"""The three forms of content: stored, collapsed to one line, and hashed.

Two contents are equal if their normalized forms have the same hash. No form contains anything that SQLite cannot store.

Source: memory-system "Content Normalization".
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from signet_actors.domain.windowed_search import WINDOW, word_windows

_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = ".,!?;:"
BYTE_ORDER_MARK = "\ufeff"
_SLICE = 128
_MARKS = 32
"""Combining characters after a slice that are still normalized with it. Unicode's Stream-Safe Text Format allows 30."""


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
    """Return ``text`` in Unicode's normalization form KC, in linear time.

    ``unicodedata`` takes quadratic time for a run of combining characters. The text is therefore normalized in slices,
    each of which ends before a character that does not combine with the one before it. Only a run of more than some
    thirty combining characters, which no language has, may stay in another order.

    Source: Unicode Standard Annex #15 "Stream-Safe Text Format".
    """
    if len(text) <= _SLICE:
        return unicodedata.normalize("NFKC", text)
    parts = []
    begin = 0
    while begin < len(text):
        end = begin + _SLICE
        last = end + _MARKS
        while end < min(last, len(text)) and _combines_with_previous(text[end]):
            end += 1
        parts.append(unicodedata.normalize("NFKC", text[begin:end]))
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


def normalized_content(text: str) -> str:
    """Return ``text`` collapsed, in lower case, and without trailing ``. , ! ? ; :``; may be empty.

    Uses lower case, not case folding: "Straße" keeps its ß.
    """
    return collapsed(text).lower().rstrip(_TRAILING).strip()


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the normalized form, or of the lower-case collapsed text if that form is empty.

    Texts that differ only in white space, case or final punctuation have the same hash.
    """
    basis = normalized_content(text) or collapsed(text).lower()
    return hashlib.sha256(basis.encode()).hexdigest()
