"""Texts are equal exactly when their normalised forms hash alike, and nothing that SQLite cannot hold gets through.

Source: memory-system.txt "Content Normalization"; wire.md section 3 "Content normalisation".
"""

from __future__ import annotations

import hashlib
import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = ".,!?;:"


def safe_text(text: str) -> str:
    """``text`` encodes to UTF-8 and holds no NUL; white space is untouched.

    NUL is dropped because SQLite and FTS5 read text as ending there; a lone surrogate, which JSON can spell but
    UTF-8 cannot, becomes U+FFFD.
    """
    if text.isascii() and "\x00" not in text:
        return text
    if _UNSTORABLE.search(text) is None:
        return text
    return _SURROGATE.sub("\ufffd", text.replace("\x00", ""))


def storage_content(text: str) -> str:
    """The form in which content is stored: safe, trimmed, each run of Unicode white space one space.

    No-break spaces and the byte-order mark count as white space, as they do for the reference daemon.
    Idempotent.
    """
    return " ".join(safe_text(text).replace("\ufeff", " ").split())


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
