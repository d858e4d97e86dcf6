"""Texts are equal exactly when their normalised forms hash alike, and nothing that SQLite cannot hold gets through.

Source: memory-system.txt "Content Normalization"; wire.md section 3 "Content normalisation".
"""

from __future__ import annotations

import hashlib
import re

from signet_actors.domain.text_windows import WINDOW, word_windows

_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = ".,!?;:"


def safe_text(text: str) -> str:
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
    """The form in which content is stored: safe, trimmed, each run of Unicode white space one space.

    No-break spaces and the byte-order mark count as white space, as they do for the reference daemon.
    Idempotent.
    """
    text = safe_text(text).replace("\ufeff", " ")
    if len(text) <= WINDOW:
        return " ".join(text.split())
    return " ".join(filter(None, (" ".join(piece.split()) for piece in word_windows(text))))


def normalized_content(storage: str) -> str:
    """``storage`` lower-cased, without its trailing run of ``. , ! ? ; :``; may be empty.

    Lower case, not case folding: "Straße" keeps its ß.
    """
    return storage.lower().rstrip(_TRAILING).strip()


def content_hash(storage: str) -> str:
    """SHA-256 (hex) of the normalised form, or of the lower-cased text where that is empty.

    ``storage`` must be in storage form.
    """
    basis = normalized_content(storage) or storage.lower()
    return hashlib.sha256(basis.encode()).hexdigest()
