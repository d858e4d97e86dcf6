"""Find secrets in a text and replace them by ``[REDACTED:<kind>]``.

Only patterns and names are used, never entropy, because a false positive would destroy the user's text. A scanner runs
only if one of its literal marks occurs, so ordinary text takes a few microseconds. Every scanner takes linear time.

Source: docs/security.md "Where the specification is unsafe"; OWASP Logging Cheat Sheet "Data to exclude".
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.normalization import collapsed, sanitize_text, storage_content
from signet_actors.domain.redaction import commands, written_credentials
from signet_actors.domain.redaction.clauses import values_in_clauses, values_of_several
from signet_actors.domain.redaction.kubernetes import MANIFEST_MARK, manifest_values
from signet_actors.domain.redaction.labelled_values import (
    SHOWN_MARKS,
    aliased_values,
    inserted_values,
    keys_by_last_part,
    labelled_values,
    said_keys,
    shown_values,
)
from signet_actors.domain.redaction.letters import PlainText, plain_letters
from signet_actors.domain.redaction.line_prefixes import without_line_prefixes
from signet_actors.domain.redaction.lists import listed_values
from signet_actors.domain.redaction.named_values import named_values, tagged_values
from signet_actors.domain.redaction.said_values import values_said_first, values_to_use
from signet_actors.domain.redaction.secret_names import ASCII_MARKS, HEADING_MARKS, PAIR_MARKS, name_starts
from signet_actors.domain.redaction.statements import STATEMENT_MARKS, statement_values
from signet_actors.domain.redaction.tables import column_values
from signet_actors.domain.redaction.token_format import CONTEXT_CHARS, WORD_CHARS, TokenFormat
from signet_actors.domain.redaction.token_formats import AWS_SECRET, AWS_SECRET_CHARS, FORMATS, is_aws_secret
from signet_actors.domain.redaction.url_parameters import PARAMETER_MARKS, parameter_values
from signet_actors.domain.redaction.values import SecretSpan, is_app_password, is_random
from signet_actors.errors import ErrorCode, InvalidRequest

MAX_SECRETS: Final = 10_000
"""Maximum secrets in one text. A text with more is a dump rather than a memory, and is rejected."""

MAX_CACHED_CHARS: Final = 64
MAX_CACHED_TEXTS: Final = 4096
"""Size of the cache of short texts that are known to be clean, and the length of such a text."""

Kinds = tuple[str, ...]
"""The kinds of the secrets that were replaced, without duplicates, in the order of the text."""

_WORD = compile_later(r"[^\s\ufeff]+")  # the words that ``collapsed`` joins by one space

_MARK: Final = "[REDACTED:{kind}]"
_PERCENT: Final = compile_later("%[2-7][0-9A-Fa-f]")
_TELLING: Final = compile_later(r"[\d!@#$%^&*+=?~]")
_LEAST_REPEATED: Final = 6
_MOST_REPEATED: Final = 50
"""Different secrets of a text whose further places are looked for."""
_ESCAPE_CHARS: Final = 32
_ESCAPE_END = compile_later(
    r"(?:(?:\x1b|\\x1b|\\033|\\e|\\u001b|\^\[)\[[0-9;?]{0,16}[a-z]|\[[0-9;]{1,16}m"
    r"|\\(?:[abefnrtv0]|[0-7]{3}|x[0-9a-f]{2}|u[0-9a-f]{4}|u\{[0-9a-f]{1,6}\})|[%=][0-9a-f]{2})\Z",
    re.IGNORECASE,
)
"""A colour of a terminal, or a character that is written by its number: no part of a word, although letters end it."""

_NAME_BEFORE: Final = compile_later(r"[A-Za-z0-9][._-]?\Z")
_NAME_BEHIND: Final = compile_later(r"[._-]?[A-Za-z0-9]")
_UUID_HYPHENS: Final = 4
_SCANNERS: Final = 4
"""How many scanners may find the same secret: by its format, by its name, by a command, and by a header."""


class Redacted(NamedTuple):
    """A text without its secrets, the number of secrets, and their distinct kinds in text order."""

    text: str
    found: int
    kinds: Kinds


def redact(text: str, known: dict[str, str] | None = None) -> Redacted:
    """Return ``text`` with each secret replaced and the rest unchanged. Idempotent.

    A secret that was recognised once is replaced wherever else it stands ("I have set it to …"). ``known`` receives
    such secrets with their kinds, for other texts (``without_known``). Raises InvalidRequest for a text with more than
    ``MAX_SECRETS`` secrets.
    """
    found = secrets_in(text)
    if found:
        values = _telling(text, found)
        found = _without_overlaps([*found, *_repeated(text, values)], len(text))
        if known is not None:
            known |= {value: kind for value, kind in values.items() if value not in known}
    return Redacted(replace_secrets(text, found), len(found), kinds_of(found))


def secrets_in(text: str, *, joined: bool = False) -> list[SecretSpan]:
    """Return the secrets of ``text`` in order and without overlaps. Raises like ``redact``.

    Where something stands before the lines, such as their numbers, the text is also searched without it. If the lines
    were ``joined`` into one, that is not done, and commands and password files are not searched for, because their
    ends cannot be determined.
    """
    plain = plain_letters(text)
    found: list[SecretSpan] = []
    spans: Iterator[SecretSpan] = (
        (kind, *plain.span(start, end)) for kind, start, end in _secrets(plain.text, joined=joined)
    )
    if "%" in text and _PERCENT.search(text):
        # In an address, a sign of the password is written by its number because it would end it.
        spans = itertools.chain(spans, _secrets(text, joined=joined))
    if not joined:
        spans = itertools.chain(spans, _without_prefixes(plain))
    for span in spans:
        found.append(span)
        if len(found) > 2 * _SCANNERS * MAX_SECRETS:
            raise _too_many_secrets()
    if not found:
        return found
    taken = _without_overlaps(found, len(text))
    if len(taken) > MAX_SECRETS:
        raise _too_many_secrets()
    return taken


def _without_prefixes(plain: PlainText) -> Iterator[SecretSpan]:
    for block in without_line_prefixes(plain.text):
        for kind, start, end in _secrets(block.text, joined=False):
            yield kind, *plain.span(*block.span(start, end))


def without_known(text: str, known: Mapping[str, str]) -> str:
    """Return ``text`` without the secrets that were recognised in other texts: a mark of its kind in place of each."""
    values = {value: known[value] for value in sorted(known, key=len, reverse=True) if value in text}
    found = sorted(_repeated(text, values), key=lambda span: (span[1], -span[2]))
    return replace_secrets(text, _without_overlaps(found, len(text))) if found else text


def _telling(text: str, found: Sequence[SecretSpan]) -> dict[str, str]:
    """Return the kinds of the secrets that are no ordinary word or number: random, or with a digit or a sign."""
    kinds = {text[start:end]: kind for kind, start, end in reversed(found)}
    telling = (
        value
        for value in kinds
        if len(value) >= _LEAST_REPEATED
        and (is_app_password(value) or (_TELLING.search(value) and any(map(str.isalpha, value))))
    )
    return {value: kinds[value] for value in itertools.islice(telling, _MOST_REPEATED)}


def _repeated(text: str, values: Mapping[str, str]) -> Iterator[SecretSpan]:
    """Yield all places of these secrets; of one that is not random, not those in a name: ``postgres16-alpine``."""
    for value, kind in values.items():
        random = is_random(value)
        at = text.find(value)
        while at >= 0:
            end = at + len(value)
            if random or not _is_in_name(text, at, end):
                yield kind, at, end
            at = text.find(value, end)


def _is_in_name(text: str, start: int, end: int) -> bool:
    if _NAME_BEHIND.match(text, end):
        return True
    is_behind_name = _NAME_BEFORE.search(text, max(0, start - 2), start) is not None
    return is_behind_name and _ESCAPE_END.search(text, max(0, start - _ESCAPE_CHARS), start) is None


def replace_secrets(text: str, found: Iterable[SecretSpan]) -> str:
    """Return ``text`` with each secret replaced by its mark. The secrets are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for kind, start, end in found:
        parts += (text[at:start], _MARK.format(kind=kind))
        at = end
    if not parts:
        return text
    parts.append(text[at:])
    return "".join(parts)


def kinds_of(found: Iterable[SecretSpan]) -> tuple[str, ...]:
    """Return the distinct kinds of the secrets in order."""
    return tuple(dict.fromkeys(kind for kind, _, _ in found))


def _too_many_secrets() -> InvalidRequest:
    return InvalidRequest(
        f"the text holds more than {MAX_SECRETS} secrets", code=ErrorCode.PAYLOAD_TOO_LARGE, field="content"
    )


def _without_overlaps(found: list[SecretSpan], size: int) -> list[SecretSpan]:
    """Return the longest of overlapping secrets, or the first of equally long ones, in text order."""
    found.sort(key=lambda span: span[1] - span[2])
    covered = bytearray(size)
    taken: list[SecretSpan] = []
    for kind, start, end in found:
        if covered.find(1, start, end) < 0:
            covered[start:end] = b"\x01" * (end - start)
            taken.append((kind, start, end))
    taken.sort(key=lambda span: span[1])
    return taken


def lower_case(plain: str) -> str:
    """Return ``plain`` in lower case, character by character, so that positions do not change."""
    folded = plain.lower()
    if len(folded) != len(plain):
        folded = "".join([low if len(low := char.lower()) == 1 else char for char in plain])
    return folded


def _secrets(plain: str, *, joined: bool) -> Iterator[SecretSpan]:
    folded = lower_case(plain)
    if "PRIVATE KEY" in plain or "Private-" in plain:
        yield from commands.key_blocks(plain)
    for form, mark in _formats_in(plain, folded):
        yield from tokens(form, mark, plain, folded)
    named = not folded.isascii() or any(mark in folded for mark in ASCII_MARKS)
    if named or ".login(" in folded:
        yield from written_credentials.app_passwords(plain, folded)
    if named:
        names = name_starts(folded)
        yield from named_values(plain, folded, names, joined=joined)
        yield from keys_by_last_part(plain, folded)
        yield from said_keys(plain, folded)
        yield from written_credentials.values_told_later(plain, folded)
        yield from values_in_clauses(plain, folded, joined=joined)
        yield from values_of_several(plain, folded, names)
        if plain.count("-") >= _UUID_HYPHENS:
            yield from written_credentials.uuid_keys(folded)
        if any(mark in folded for mark in STATEMENT_MARKS) and ("'" in plain or '"' in plain):
            yield from statement_values(plain, folded)
        if "insert" in folded or "replace" in folded:
            yield from inserted_values(plain, folded)
        if not joined:
            yield from labelled_values(plain, folded, names)
        if "</" in plain or "<\\/" in plain:
            yield from tagged_values(plain, folded)
        if "&" in plain and "*" in plain:
            yield from aliased_values(plain, folded)
        yield from values_said_first(plain, folded, names)
        yield from values_to_use(plain, folded, names)
        yield from written_credentials.other_values(plain, folded)
        if not joined:
            yield from column_values(plain, folded)
    if "=" in plain and ("?" in plain or "&" in plain) and any(mark in folded for mark in PARAMETER_MARKS):
        yield from parameter_values(plain, folded)
    if "pat" in folded:
        yield from written_credentials.access_tokens(plain, folded)
    if plain.count(".") > 1:
        yield from written_credentials.bot_tokens(plain)
    if "://" in plain:
        yield from commands.address_passwords(plain)
    if ")/" in plain:
        yield from commands.data_source_passwords(plain)
    if "bearer" in folded or "authorization" in folded:
        yield from commands.header_tokens(plain, folded)
    if " -b " in plain or any(mark in folded for mark in commands.COOKIE_MARKS):
        yield from commands.cookies(plain, folded)
    if joined:
        return
    yield from written_credentials.codes(plain, folded)
    if "\n" in plain and (not folded.isascii() or any(mark in folded for mark in HEADING_MARKS)):
        yield from listed_values(plain, folded)
    if not folded.isascii() or any(mark in folded for mark in PAIR_MARKS):
        yield from written_credentials.pair_values(plain, folded)
    yield from written_credentials.account_values(plain, folded)
    if MANIFEST_MARK in plain:
        yield from manifest_values(plain)
    if any(mark in folded for mark in commands.OPTION_MARKS):
        yield from commands.command_options(plain, folded)
    if ":" in plain and plain.count(":") >= 4:
        yield from commands.password_file_lines(plain)
    if any(mark in folded for mark in commands.PAIR_MARKS):
        yield from commands.auth_pairs(plain, folded)
    if any(mark in folded for mark in commands.ARGUMENT_MARKS) and "(" in plain:
        yield from commands.arguments(plain, folded)
    if "\n" in plain and any(mark in folded for mark in SHOWN_MARKS):
        yield from shown_values(plain, folded)
    if "=" in plain:
        yield from commands.variables(plain)


def tokens(form: TokenFormat, mark: str, plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the tokens of ``form`` that start with ``mark``."""
    match = form.pattern.match
    at = plain.find(mark)
    while at >= 0:
        begin = at + len(mark) if form.after_mark else at
        found = None if not form.back and _is_inside(form, plain, at) else match(plain, begin)
        if found is None:
            at = plain.find(mark, at + 1)
            continue
        start, end = begin, found.end()
        while at - start < form.back_chars and start and plain[start - 1] in form.back:
            start -= 1
        inside = bool(form.back) and _is_inside(form, plain, start)
        if not inside and form.accept(plain[start:end]) and _in_context(form, folded, start, end):
            if form.ends is not None and (rest := form.ends.match(plain, end)):
                end = rest.end()
            yield form.kind, start, end
            if form.kind == "aws-key":
                yield from _aws_secret_near(plain, start, end)
        at = plain.find(mark, end)


def _is_inside(form: TokenFormat, plain: str, start: int) -> bool:
    """Return whether ``start`` is inside a longer run of characters, where no token starts. No run is read twice."""
    return (
        start > 0
        and plain[start - 1] in form.glue
        and plain[start] in WORD_CHARS
        and _ESCAPE_END.search(plain, max(0, start - _ESCAPE_CHARS), start) is None
    )


def _in_context(form: TokenFormat, folded: str, start: int, end: int) -> bool:
    if not form.context:
        return True
    begin = max(0, start - CONTEXT_CHARS)
    return any(folded.find(word, begin, end + CONTEXT_CHARS) >= 0 for word in form.context)


def _aws_secret_near(plain: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Yield the secret access key close to its key id."""
    for match in AWS_SECRET.finditer(plain, max(0, start - AWS_SECRET_CHARS), end + AWS_SECRET_CHARS):
        if is_aws_secret(match[0]):
            yield "aws-key", *match.span()


def _formats_by_prefilter() -> tuple[tuple[str, tuple[tuple[str, TokenFormat], ...]], ...]:
    """Return all marks with their formats, grouped by a character that the marks contain and most texts do not.

    Marks without such a character are grouped under "".
    """
    groups: dict[str, list[tuple[str, TokenFormat]]] = {}
    for form in FORMATS:
        for mark in form.marks:
            gate = next((char for char in "_-" if char in mark), "")
            groups.setdefault(gate, []).append((mark, form))
    return tuple((gate, tuple(marks)) for gate, marks in groups.items())


_FORMATS_BY_PREFILTER: Final = _formats_by_prefilter()


def _formats_in(plain: str, folded: str) -> Iterable[tuple[TokenFormat, str]]:
    """Return the formats whose mark occurs in the text, with the mark."""
    formats = []
    for gate, marks in _FORMATS_BY_PREFILTER:
        if gate in plain:
            formats += [(form, mark) for mark, form in marks if mark in plain]
    return [(form, mark) for form, mark in formats if not form.context or any(word in folded for word in form.context)]


class Redactor:
    """Replaces secrets in texts. One instance serves all requests and threads.

    Short texts that were clean (names, tags, projects, which repeat with every request) are cached and not searched
    again: they took half of the time of redaction in a remember.
    """

    def __init__(self) -> None:
        self.known_clean: set[str] = set()

    def clean(self, text: str, known: dict[str, str] | None = None) -> tuple[str, Kinds]:
        """Return ``text`` without secrets, even after its white space is collapsed, and the kinds of the secrets.

        The text is searched twice. First as it came, because line ends delimit a key block and a command. Then on one
        line, because white space hides a secret from the patterns. A secret that only the second search finds is cut
        out at its position in the layout. ``known``: see ``redact``.
        """
        if text in self.known_clean:
            return text, ()
        clean, _, kinds = redact(text, known)
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
