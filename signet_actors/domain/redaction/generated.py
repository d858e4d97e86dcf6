"""Recognise passwords that a program made of letters, digits and punctuation, and where they end.

Punctuation ends a value in code and in sentences, and stands anywhere in such a password. It is told from code by
changes that no name, number or expression has: ``aB9``, ``7k``, ``)x``, ``a^b``, ``;)``.
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.lazy_patterns import compile_later

BARE_STOP = compile_later(r"""[\s"'`,;|<>\])}\u2018-\u201f\u00bb\u203a\u3000-\u9fff\uac00-\ud7a3]""")
_LEAST_CHARS: Final = 8
_WORD = compile_later(r"[!-~]{8,64}(?![!-~])")
_ODD = compile_later(
    r"[a-z][A-Z](?![a-z]{2})|[A-Z]{2}[a-z](?![a-z])|[0-9](?=[A-Za-z])|[)\]}>](?=[A-Za-z0-9])"
    r"|(?<=[A-Za-z0-9])[!$^~](?=[A-Za-z0-9])"
    r"|[^\w\s](?=[^\w\s])(?!(?<=\()\)|(?<=[)\]}\"'`])[)\]}\[(,;.:\"'`]|(?<=[(\[{,=:.])[\"'(\[{)\]}`$*]"
    r"|(?<=[-=])>|(?<=[=!<>:+*-])=|(?<=([:&|.*/-]))\1|(?<=<)[/%!?]|(?<=[/*%?])>|(?<=\\)[\"'\\])"
)
_SURE: Final = 3
_WORDS: Final = (
    compile_later(r"[A-Za-z][a-z]{3}|[A-Z]{4}|[0-9]{5}|[a-z]{3}[(\[]"),
    compile_later(r"[A-Za-z][a-z]{5}|[A-Z]{6}|[0-9]{6}|[a-z]{4}[(\[]"),
)
"""What is in no password with one and with two such changes."""
_CAPITAL = compile_later("[A-Z]")
_SMALL = compile_later("[a-z]")
_DIGIT = compile_later("[0-9]")
_SIGN = compile_later(r"[^\w\s./:+,;-]")
_LEAST_KINDS: Final = 3
_JOINED_WORDS = compile_later(r"[A-Za-z][a-z]{2,8}(?:[-0-9!@#$%^&*()+~][A-Za-z][a-z]{2,8}){3,9}")
_LETTERS = compile_later("[a-z]+")
_NAMING: Final = """
    about account admin and api app are ask auth available banner base button cache change changed check cluster config
    confirm container credential credentials creds current data database default demo dev disabled empty enabled enter
    env example expired field file first for forgot form free from generated get group hash here hidden hide host image
    infra init input instance internal item job key keys label last length link local login main manager master max
    migration min mount must need never new next node none not note now old one only optional page path per pod policy
    prod production project read ref replace required reset root rotate rules same sample secret secrets see
    server service session set shared show some staging store stored strength system team test text that the then this
    toggle token two type unset use user users validation value vault version volume was web will with word words write
    you your password passwords passwd passphrase
"""
_OF_NAMES: Final = frozenset(_NAMING.split())
"""Words of names of things, of placeholders and of sentences that hyphens join; a password of them is not found."""
_MADE_UP = compile_later(
    r"\w{4}\|\w{4}|\)\$[\"']|[\])]\{\d|\A[A-Za-z]{0,2}[\"'].{0,64}[\"']|\$[\w-]{1,12}\$|\[REDACTED|://|\*\*\*|\.\.\.|\{[a-zA-Z_.]{2,64}\}|\$\{\w|%\(\w"
    r"|</?(?:[a-z]\w{0,15}|[A-Z][a-z]\w{4,15})>|\w\.[A-Za-z][a-z]{2}|[\w)\]]\[\w{1,2}\]|[=-]>|[aA]-[zZ]|0-9|\(\?[:=!<P]|\\[wdsWDSbnu]|@v?\d{1,5}\.\d"
    r"|(?<![A-Za-z0-9])[A-Za-z]?[a-z_]{4,30}+(?>(?:[A-Z][a-z]{2,20}+){0,4})\d?[(\[=]"
)
"""A hash, a mark, an address, a template, a pattern, a version or a call."""
_OPENING: Final = "[({<"
_CLOSING: Final = "\"'`,;|<>])}"
_OPENED = compile_later(r"(?:-{0,2}\w{0,16}=?[\"'`]|[\[({<])[\"'`]?[^\s\"'`,;|<>\])}\[({]{0,64}[\"'`,;|<>\])}.]{1,64}")
"""A list, a call or a string with one value."""
_UNCLOSED = compile_later(r"([\"'`])(?![^\n]{0,256}?\1)")
_ENDS = compile_later(r"(?:[\"'`][)\]},;.:]{0,4})?\Z")
"""The end of a string around the sentence of the value."""
_CODE_BEHIND = compile_later(
    r"[^\w\s@#$%^&+~=]{0,64}\Z|[\"'`)\]}>]{0,4}[,;|&]{1,2}[\"'`(\[{]{0,2}[A-Za-z_][\w.-]{0,30}[\"'`]?[:=(]"
    r"|[,;|](?:[A-Za-z][a-z]{2,30}|[\d.:]{1,40})(?![\w!@#$%^&*])|</?[a-z][a-z0-9]{0,15}(?:/?>|\Z)"
    r"|[\"'`)\]}]{1,4}\.[a-z]{2}|[\"'`)\]}]{1,4}[,;:]|[\"'`][)\]}]"
)
"""What follows a value without a blank: only punctuation, the next field or cell, a tag, or more of an expression."""


def is_joined_passphrase(value: str) -> bool:
    """Return whether ``value`` is made of words as a password manager joins them: ``gravel-tumbler-oxide-lantern``."""
    return _JOINED_WORDS.fullmatch(value) is not None and _OF_NAMES.isdisjoint(_LETTERS.findall(value.lower()))


def is_generated(value: str) -> bool:
    """Return whether ``value`` is a password of mixed characters that no person and no code would write."""
    odd = len(_ODD.findall(value)) if len(value) >= _LEAST_CHARS else 0
    mixed = (
        odd > 0
        and sum(kind.search(value) is not None for kind in (_CAPITAL, _SMALL, _DIGIT, _SIGN)) >= _LEAST_KINDS
        and (odd >= _SURE or _WORDS[odd - 1].search(value) is None)
        and _MADE_UP.search(value) is None
    )
    return mixed or ("-" not in value and is_joined_passphrase(value))


def is_generated_at(plain: str, start: int, end: int, *, quoted: bool) -> bool:
    """Return whether there is a generated password in ``plain``, and no opened list or call of which it is a part."""
    alone = quoted or plain[start] not in _OPENING or plain[end : end + 1] not in tuple(_CLOSING)
    return alone and is_generated(plain[start:end])


def is_quote_of_value(plain: str, start: int) -> bool:
    """Return whether the quotation mark at ``start`` is one of a generated password, and is not closed on its line."""
    word = _WORD.match(plain, start)
    return word is not None and _UNCLOSED.match(plain, start) is not None and is_generated(word[0])


def whole_end(plain: str, start: int, stop: int) -> int:
    """Return the end of the generated password that begins at ``start`` and goes on behind ``stop``, else ``stop``.

    It ends at the next blank; the punctuation of its sentence is not parted from it.
    """
    word = _WORD.match(plain, start)
    if word is None or word.end() <= stop or _OPENED.fullmatch(word[0]):
        return stop
    if not (is_generated(word[0]) or is_joined_passphrase(word[0].rstrip(_CLOSING + ".:"))):
        return stop
    behind = plain[stop : word.end()]
    if _CODE_BEHIND.match(behind) and len(_ODD.findall(behind)) <= 1:
        return stop
    ends = _ENDS.search(behind)
    return stop + ends.start() if ends else word.end()


def bare_end(plain: str, start: int) -> int:
    """Return the end of the value without quotation marks at ``start``."""
    stop = BARE_STOP.search(plain, start)
    return whole_end(plain, start, stop.start()) if stop else len(plain)
