"""Find the passwords in statements of databases that set one: ``CREATE USER … PASSWORD '…'``, ``IDENTIFIED WITH … BY``.

A statement can set nothing else there, so a plain word counts, too. Each match is bounded: linear time.

Source: MySQL 8.4 Reference Manual "Account Management Statements"; PostgreSQL documentation "CREATE ROLE"; Transact-SQL
reference "CREATE LOGIN"; Oracle Database SQL Language Reference "CREATE USER"; MongoDB manual
"User Management Methods".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.values import SecretSpan, is_set_password, is_signed_password
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 1024
_QUOTED: Final = r"(?:'[^'\n]{0,64}'|\"[^\"\n]{0,64}\")"
_NO_ACCOUNT: Final = (
    r"(?:an?|and|or|with|for|in|on|by|the|to|is|has|via|using|whose|that|names?|accounts?|forms?|pages?|dialogs?|modals?|screens?"
    r"|roles?|commands?|statements?|flows?|passwords?|set|identified|entries|objects?|records?|rows?)"
)
_ACCOUNT: Final = (
    r"(?:'[^'\n]{0,64}'|\\{0,3}\"[^\"\n]{1,64}\"|`[^`\n]{1,64}`|\[[^\]\n]{1,64}\]"
    rf"|(?!{_NO_ACCOUNT}\s)[^\s'\"`;,()\[\]\\]{{1,64}})(?:\s?@\s?(?:'[^'\n]{{0,64}}'|[\"`][^\"`\n]{{0,64}}[\"`]|[\w.%:-]{{1,64}}))?"
)
_OF_ACCOUNT: Final = (
    r"(?:create|alter)\s{1,9}(?:or\s{1,9}replace\s{1,9})?(?:application\s{1,9})?(?:user|role|login)\s{1,9}"
    rf"(?:if\s{{1,9}}(?:not\s{{1,9}})?exists\s{{1,9}})?{_ACCOUNT}"
)
_OPTION: Final = (
    r"\s{1,9}(?:with|(?:no)?(?:login|superuser|createdb|createrole|inherit|replication|bypassrls)|connection\s{1,9}limit\s{1,9}-?\d{1,9}"
    rf"|valid\s{{1,9}}until\s{{1,9}}{_QUOTED}|in\s{{1,9}}(?:role|group)\s{{1,9}}[\w\",]{{1,64}}|for\s{{1,9}}login\s{{1,9}}\S{{1,64}}"
    r"|\w{1,30}\s?=\s?[\w.\[\]\"']{1,64},?)"
)
_STATEMENT = compile_later(
    rf"(?<![\w-])(?:{_OF_ACCOUNT}(?:{_OPTION}){{0,10}}\s{{1,9}}(?:(?:un)?encrypted\s{{1,9}}|hashed\s{{1,9}})?password\s{{0,9}}=?\s{{0,9}}"
    rf"|{_OF_ACCOUNT}\s{{1,9}}identified\s{{1,9}}by\s{{1,9}}(?:{_QUOTED}\s{{1,9}}replace\s{{1,9}})?"
    r"|identified\s{1,9}(?:(?:with|via)\s{1,9}[\"'`]?\w{1,40}[\"'`]?\s{1,9}(?:by|as|using)|by\s{1,9}(?:password|values))\s{1,9}(?:password\s?\(\s?)?"
    rf"|set\s{{1,9}}password\s{{1,9}}(?:for\s{{1,9}}{_ACCOUNT}\s{{0,9}})?=\s{{0,9}}(?:(?:old_)?password\s?\(\s?)?"
    r"|(?:create|update)user[\"']?\s?[(:][^;]{0,300}?[\"'\s,{]pwd[\"']?\s?:\s{0,9}"
    rf"|(?:changeuserpassword|db\.auth)\s?\(\s{{0,9}}{_QUOTED}\s?,\s{{0,9}})"
    r"n?(?:'\\'(?=')|\\{0,3})(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\n]|(?P=quote){2}(?=[^\s;,)])){1,128})(?P=quote)"
)
STATEMENT_MARKS: Final = ("create", "alter", "identified", "set", "updateuser", "userpassword", "db.auth")
_SURE: Final = ("createuser", "updateuser", "changeuser", "db.auth")
_ENDS = compile_later(r"[ \t)\"'`]{0,4};")


def statement_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the passwords that statements set. In small letters and without ``;`` a statement may be a sentence."""
    for found in windowed_matches(_STATEMENT, folded, _REACH):
        start, end = found.span("value")
        while end > start and plain[end - 1] == "\\":
            end -= 1
        before = plain[found.start() : found.start("quote")]
        sure = (
            before[:3].isupper()
            or before.lower().startswith(_SURE)
            or any(mark in before for mark in "'\"`[@=")
            or _ENDS.match(plain, found.end())
        )
        if is_set_password(plain[start:end]) and (sure or is_signed_password(plain[start:end])):
            yield "password", start, end
