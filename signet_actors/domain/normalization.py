"""The three forms of content: stored, collapsed to one line, and hashed.

Two contents are equal if their normalized forms have the same hash. No form contains anything that SQLite cannot store.

Source: memory-system "Content Normalization".
"""

from __future__ import annotations

import hashlib
import re

from signet_actors.domain.windowed_search import WINDOW, word_windows

_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = ".,!?;:"
BYTE_ORDER_MARK = "\ufeff"


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
