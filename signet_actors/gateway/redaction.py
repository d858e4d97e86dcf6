"""Secrets are replaced before a text leaves the gateway, so that none is ever committed; see ``domain/redaction``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from signet_actors.domain.normalization import collapsed, sanitize_text, storage_content
from signet_actors.domain.redaction.scan import kinds_of, redact, replace_secrets, secrets_in
from signet_actors.domain.redaction.values import SecretSpan

MAX_CACHED_CHARS: Final = 64
MAX_CACHED_TEXTS: Final = 4096
"""Short texts that are remembered as clean, and how many of them."""

Kinds = tuple[str, ...]
"""The kinds of the secrets that were replaced, each once, in the order of the text; empty where there were none."""

_WORD = re.compile(r"[^\s\ufeff]+")  # what ``collapsed`` separates by one space


class Redactor:
    """Replaces secrets. One serves all requests and threads.

    The short texts that were found clean last (names, tags, projects, which come again with every request) are not
    searched again: they were half of what redaction costs a remember.
    """

    def __init__(self) -> None:
        self._known_clean: set[str] = set()

    def clean(self, text: str) -> tuple[str, Kinds]:
        """``text`` without secrets, and their kinds, even if its white space is collapsed afterwards.

        It is read as it came, because a key block is known by its lines, a command by the end of its line, and
        then on one line, because blanks and line breaks hide a secret from patterns that the next reader of the
        collapsed text sees. What only the second look finds is cut out where it stands: the layout stays.
        """
        if text in self._known_clean:
            return text, ()
        clean, _, kinds = redact(text)
        line = collapsed(clean)
        if line == clean:
            if not kinds and len(text) <= MAX_CACHED_CHARS:
                if len(self._known_clean) >= MAX_CACHED_TEXTS:
                    self._known_clean = set()
                self._known_clean.add(text)
            return clean, kinds
        hidden = secrets_in(line, joined=True)
        if not hidden:
            return clean, kinds
        clean = sanitize_text(clean)  # as the collapsed form is
        return replace_secrets(clean, _map_to_layout(clean, hidden)), tuple(dict.fromkeys(kinds + kinds_of(hidden)))

    def clean_for_storage(self, text: str) -> tuple[str, Kinds]:
        """What ``cleaned`` returns, in storage form."""
        clean, kinds = self.clean(text)
        return storage_content(clean), kinds


def _map_to_layout(text: str, found: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield the secrets in ``collapsed(text)`` by their places in ``text``; a space there is a whole gap here."""
    words = [match.span() for match in _WORD.finditer(text)]
    starts = list(accumulate((end - start + 1 for start, end in words), initial=0))
    for kind, start, end in found:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        within = end - starts[last]
        begin, stop = words[last]
        until = begin + within if within <= stop - begin else words[last + 1][0]
        yield kind, words[first][0] + start - starts[first], until


class RedactionFields(NamedTuple):
    """What an answer says of the secrets that were cut out; both fields are absent where there were none."""

    redacted: Literal[True] | UnsetType
    redactions: list[str] | UnsetType


def redaction_fields(kinds: Kinds) -> RedactionFields:
    """Return the fields of an answer for ``kinds``, in which one may stand several times."""
    return RedactionFields(True, list(dict.fromkeys(kinds))) if kinds else RedactionFields(UNSET, UNSET)
