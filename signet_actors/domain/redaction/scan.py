"""The secrets of a text are found and replaced by ``[REDACTED:<kind>]``.

Patterns and names only, never entropy: a false alarm would destroy what the user wanted to remember. A scanner runs
only where one of its literal marks occurs, which keeps ordinary text within some microseconds, and none takes more than
linear time.

Source: docs/security.md "Where the specification is unsafe"; OWASP Logging Cheat Sheet "Data to exclude".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from signet_actors.domain.redaction import commands
from signet_actors.domain.redaction.letters import plain_letters
from signet_actors.domain.redaction.named_values import NAME_MARKS, named_values, tagged_values
from signet_actors.domain.redaction.token_formats import (
    AWS_SECRET,
    AWS_SECRET_CHARS,
    CONTEXT_CHARS,
    FORMATS,
    WORD_CHARS,
    TokenFormat,
    is_aws_secret,
)
from signet_actors.domain.redaction.values import SecretSpan
from signet_actors.errors import ErrorCode, InvalidRequest

MAX_SECRETS: Final = 10_000
"""Secrets in one text. What holds more is a dump, not a memory, and is refused whole."""

_SCANNERS: Final = 4
"""How often one secret may be found: by its form, by its name, by the command and by the header around it."""


class Redacted(NamedTuple):
    """A text without its secrets, how many there were, and their kinds in the order of the text, each once."""

    text: str
    found: int
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """Return ``text`` with each secret replaced; what surrounds it stays, because it is the memory. Idempotent.

    Raises InvalidRequest for a text with more than ``MAX_SECRETS`` secrets.
    """
    found = secrets_in(text)
    return Redacted(replace_secrets(text, found), len(found), kinds_of(found))


def secrets_in(text: str, *, joined: bool = False) -> list[SecretSpan]:
    """Return the secrets of ``text`` in order, none overlapping another; raise as ``redact``.

    In a text whose lines were ``joined`` to one, commands and password files are not looked for: where one of them
    ends cannot be seen there.
    """
    plain = plain_letters(text)
    found: list[SecretSpan] = []
    for kind, start, end in _secrets(plain.text, joined=joined):
        found.append((kind, *plain.span(start, end)))
        if len(found) > _SCANNERS * MAX_SECRETS:
            raise _too_many_secrets()
    if not found:
        return found
    taken = _without_overlaps(found, len(text))
    if len(taken) > MAX_SECRETS:
        raise _too_many_secrets()
    return taken


def replace_secrets(text: str, found: Iterable[SecretSpan]) -> str:
    """Return ``text`` with a mark in place of each secret; these are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for kind, start, end in found:
        parts += (text[at:start], f"[REDACTED:{kind}]")
        at = end
    if not parts:
        return text
    parts.append(text[at:])
    return "".join(parts)


def kinds_of(found: Iterable[SecretSpan]) -> tuple[str, ...]:
    """Return the kinds of the secrets, each once, in their order."""
    return tuple(dict.fromkeys(kind for kind, _, _ in found))


def _too_many_secrets() -> InvalidRequest:
    return InvalidRequest(
        f"the text holds more than {MAX_SECRETS} secrets", code=ErrorCode.PAYLOAD_TOO_LARGE, field="content"
    )


def _without_overlaps(found: list[SecretSpan], size: int) -> list[SecretSpan]:
    """Of overlapping secrets the longest, of equally long ones the first; in order of the text."""
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
    """Return ``plain`` in lower case, character by character: no position moves."""
    folded = plain.lower()
    if len(folded) != len(plain):
        folded = "".join([low if len(low := char.lower()) == 1 else char for char in plain])
    return folded


def _secrets(plain: str, *, joined: bool) -> Iterator[SecretSpan]:
    folded = lower_case(plain)
    if "-----BEGIN" in plain or "Private-Lines:" in plain:
        yield from commands.key_blocks(plain)
    for form, mark in _formats_in(plain, folded):
        yield from tokens(form, mark, plain, folded)
    if any(mark in folded for mark in NAME_MARKS):
        yield from named_values(plain, folded)
        if "</" in plain or "<\\/" in plain:
            yield from tagged_values(plain, folded)
    if "://" in plain:
        yield from commands.address_passwords(plain)
    if "bearer" in folded or "authorization" in folded:
        yield from commands.header_tokens(plain, folded)
    if "cookie" in folded or "sess" in folded or "connect.sid" in folded or ".aspx" in folded:
        yield from commands.cookies(plain, folded)
    if joined:
        return
    if " -" in plain or "\t-" in plain or "login" in folded:
        yield from commands.command_options(plain, folded)
    if ":" in plain and plain.count(":") >= 4:
        yield from commands.password_file_lines(plain)


def tokens(form: TokenFormat, mark: str, plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the tokens of ``form`` that are known by ``mark``."""
    match = form.pattern.match
    at = plain.find(mark)
    while at >= 0:
        found = None if not form.back and _is_inside(form, plain, at) else match(plain, at)
        if found is None:
            at = plain.find(mark, at + 1)
            continue
        start, end = at, found.end()
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
    """Return whether a longer run goes on at ``start``: no token begins there, and no run is read twice."""
    return start > 0 and plain[start - 1] in form.glue and plain[start] in WORD_CHARS


def _in_context(form: TokenFormat, folded: str, start: int, end: int) -> bool:
    if not form.context:
        return True
    begin = max(0, start - CONTEXT_CHARS)
    return any(folded.find(word, begin, end + CONTEXT_CHARS) >= 0 for word in form.context)


def _aws_secret_near(plain: str, start: int, end: int) -> Iterator[SecretSpan]:
    """The secret access key that stands beside its id."""
    for match in AWS_SECRET.finditer(plain, max(0, start - AWS_SECRET_CHARS), end + AWS_SECRET_CHARS):
        if is_aws_secret(match[0]):
            yield "aws-key", *match.span()


def _formats_by_prefilter() -> tuple[tuple[str, tuple[tuple[str, TokenFormat], ...]], ...]:
    """All marks with their forms, under a character that the marks hold and most texts do without, or under ""."""
    groups: dict[str, list[tuple[str, TokenFormat]]] = {}
    for form in FORMATS:
        for mark in form.marks:
            gate = next((char for char in "_-" if char in mark), "")
            groups.setdefault(gate, []).append((mark, form))
    return tuple((gate, tuple(marks)) for gate, marks in groups.items())


_FORMATS_BY_PREFILTER: Final = _formats_by_prefilter()


def _formats_in(plain: str, folded: str) -> Iterable[tuple[TokenFormat, str]]:
    """The forms that a mark calls for, with the mark."""
    called = []
    for gate, marks in _FORMATS_BY_PREFILTER:
        if gate in plain:
            called += [(form, mark) for mark, form in marks if mark in plain]
    return [(form, mark) for form, mark in called if not form.context or any(word in folded for word in form.context)]
