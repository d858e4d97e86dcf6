"""The forms of a content: as it is stored, on one line, and as it is hashed.

Two contents are equal exactly when their normalised forms hash alike. Nothing that SQLite cannot hold gets through.

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
    """``text`` encodes to UTF-8 and holds no NUL; white space is untouched.

    NUL is dropped because SQLite and FTS5 read text as ending there; a lone surrogate, which JSON can spell but
    UTF-8 cannot, becomes U+FFFD.
    """
    text = text.replace("\x00", "")
    if not text.isascii():
        try:
            text.encode()  # a quarter of the time that a search takes
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", text)
    return text


def storage_content(text: str) -> str:
    """Return ``text`` in the form in which content is stored. Idempotent.

    Line ends (CRLF, CR) become LF, leading blank lines and trailing white space are dropped, and so is NUL. All else
    stays, the indentation of the first line too. A text without any visible character is empty.

    Departs: the specification collapses each run of white space to a space, which destroys code, YAML and Markdown.
    """
    text = sanitize_text(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if BYTE_ORDER_MARK in text and not collapsed(text):
        return ""
    return without_blank_ends(text)


def without_blank_ends(text: str) -> str:
    """Return ``text`` without its leading blank lines and its trailing white space."""
    indentation = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, indentation) + 1 :].rstrip()


def collapsed(text: str) -> str:
    """Return ``text`` on one line: safe, trimmed, each run of Unicode white space one space. Idempotent.

    This is the form that is hashed, embedded and shown where there is one line for it. No-break spaces and the
    byte-order mark count as white space.
    """
    text = sanitize_text(text).replace(BYTE_ORDER_MARK, " ")
    if len(text) <= WINDOW:
        return " ".join(text.split())
    return " ".join(filter(None, (" ".join(piece.split()) for piece in word_windows(text))))


def normalized_content(text: str) -> str:
    """Return ``text`` collapsed, lower-cased, and without its trailing run of ``. , ! ? ; :``; may be empty.

    Lower case, not case folding: "Straße" keeps its ß.
    """
    return collapsed(text).lower().rstrip(_TRAILING).strip()


def content_hash(text: str) -> str:
    """Return the SHA-256 (hex) of the normalised form, or of the collapsed text in lower case where that is empty.

    Texts that differ only in white space, case or final punctuation hash alike.
    """
    basis = normalized_content(text) or collapsed(text).lower()
    return hashlib.sha256(basis.encode()).hexdigest()
