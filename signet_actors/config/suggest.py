"""Suggest the known name that an unknown name was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MIN_SIMILARITY = 0.6


def closest(written: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``written``, ignoring case and separators, or None if none is similar."""
    plain = {_plain(name): name for name in known}
    found = difflib.get_close_matches(_plain(written), plain, n=1, cutoff=_MIN_SIMILARITY)
    return plain[found[0]] if found else None


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "x"?`` to append to a message, or an empty string."""
    name = closest(written, known)
    return f'; did you mean "{name}"?' if name is not None else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
