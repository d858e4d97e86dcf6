"""The name that was probably meant by one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MIN_SIMILARITY = 0.6


def closest(written: str, known: Iterable[str]) -> str | None:
    """The known name most like ``written``, letter case and underscores aside; None when none is like it."""
    plain = {_plain(name): name for name in known}
    found = difflib.get_close_matches(_plain(written), plain, n=1, cutoff=_MIN_SIMILARITY)
    return plain[found[0]] if found else None


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` to be put behind a message, or nothing."""
    name = closest(written, known)
    return f'; did you mean "{name}"?' if name is not None else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
