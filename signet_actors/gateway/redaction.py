"""Redaction of secrets before a text leaves the gateway, so that no secret is committed; see ``domain/redaction``."""

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
"""Size of the cache of short texts that are known to be clean, and the length of such a text."""

Kinds = tuple[str, ...]
"""The kinds of the secrets that were replaced, without duplicates, in the order of the text."""

_WORD = re.compile(r"[^\s\ufeff]+")  # the words that ``collapsed`` joins by one space


class Redactor:
    """Replaces secrets in texts. One instance serves all requests and threads.

    Short texts that were clean (names, tags, projects, which repeat with every request) are cached and not searched
    again: they took half of the time of redaction in a remember.
    """

    def __init__(self) -> None:
        self.known_clean: set[str] = set()

    def clean(self, text: str) -> tuple[str, Kinds]:
        """Return ``text`` without secrets, even after its white space is collapsed, and the kinds of the secrets.

        The text is searched twice. First as it came, because line ends delimit a key block and a command. Then on one
        line, because white space hides a secret from the patterns. A secret that only the second search finds is cut
        out at its position in the layout.
        """
        if text in self.known_clean:
            return text, ()
        clean, _, kinds = redact(text)
        line = collapsed(clean)
        if line == clean:
            if not kinds and len(text) <= MAX_CACHED_CHARS:
                if len(self.known_clean) >= MAX_CACHED_TEXTS:
                    self.known_clean = set()
                self.known_clean.add(text)
            return clean, kinds
        hidden = secrets_in(line, joined=True)
        if not hidden:
            return clean, kinds
        clean = sanitize_text(clean)  # the collapsed form is sanitized too
        return replace_secrets(clean, _map_to_layout(clean, hidden)), tuple(dict.fromkeys(kinds + kinds_of(hidden)))

    def clean_for_storage(self, text: str) -> tuple[str, Kinds]:
        """Return the result of ``clean`` with the text in storage form."""
        clean, kinds = self.clean(text)
        return storage_content(clean), kinds


def _map_to_layout(text: str, found: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield the secrets in ``collapsed(text)`` with their positions in ``text``; one space there is a gap of any width
    here.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    starts = list(accumulate((end - start + 1 for start, end in words), initial=0))
    for kind, start, end in found:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        within = end - starts[last]
        begin, stop = words[last]
        until = begin + within if within <= stop - begin else words[last + 1][0]
        yield kind, words[first][0] + start - starts[first], until


class RedactionFields(NamedTuple):
    """Response fields about redacted secrets; both are absent if there were none."""

    redacted: Literal[True] | UnsetType
    redactions: list[str] | UnsetType


def redaction_fields(kinds: Kinds) -> RedactionFields:
    """Return the response fields for ``kinds``, which may contain duplicates."""
    return RedactionFields(True, list(dict.fromkeys(kinds))) if kinds else RedactionFields(UNSET, UNSET)
