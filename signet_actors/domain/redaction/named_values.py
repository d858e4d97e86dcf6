"""Find values next to a name: ``password = …``, ``"apiKey": "…"``, ``<password>…</password>``, ``Passwort: …``.

Every step starts at a literal word and reads a bounded stretch, or a run that is not read twice, so scanning takes
linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.redaction.values import (
    MAX_CHECKED_CHARS,
    SecretSpan,
    is_literal_secret,
    is_option_value,
    is_passphrase,
    is_spoken_password,
    is_strong_value,
    is_symbol_password,
    is_value,
    may_be_value,
)
from signet_actors.domain.windowed_search import windowed_matches

NAME_MARKS: Final = (
    *("pass", "pwd", "secret", "token", "key", "credential", "identified by"),
    *("kennwort", "contrase", "senha", "wachtwoord", "\u043fapo\u043b\u044c", "\u5bc6\u7801"),
)
"""In lower case and plain letters. Every text with a name contains at least one of them."""

_REACH: Final = 256
_WORDS_FOR_PASSWORDS: Final = (
    r"pass(?:w(?:or[dt]|d)|phrase|code|e)?|pwd|kennwort|contrase(?:\u00f1|n)a|senha|wachtwoord|identified\sby"
    r"|\u043fapo\u043b\u044c|\u5bc6\u7801"
)
_KEY_OWNERS: Final = "|".join(
    f"(?<={owner}key)|(?<={owner}[_ -]key)"
    for owner in (
        *("api", "auth", "service", "account", "access", "secret", "db", "database", "priv", "private", "client"),
        *("encryption", "signing", "master", "license", "shared", "app", "application", "subscription", "admin"),
    )
)
_NAME = re.compile(
    rf"""(?:(?P<password>{_WORDS_FOR_PASSWORDS})|secret|token|credentials?|key(?:{_KEY_OWNERS})(?>(?:-data)?))[0-9]{{0,2}}+
    (?>(?:\\{{0,8}}+["'`]|&quot;|&\#3[49];)?)\]?+\s{{0,40}}+
    (?:(?P<sign>:=|=>|={{1,3}}+|!==?|:(?!:)|(?<=\s)value=)
      | (?<=\s)(?P<said>(?:is|was|ist|lautet|war|es|est):?)(?=\s) | (?<=\s))
    \s{{0,40}}+""",
    re.VERBOSE,
)
_OPEN_QUOTE = re.compile(r"""(?P<escapes>\\{0,8}+)(?P<mark>["'`])|&quot;|&\#3[49];""")
_STOPS: Final = {mark: re.compile(rf"\s|(?<!\\){mark}") for mark in "\"'`"}
_ESCAPED_STOPS: Final = {mark: re.compile(rf"\s|{mark}") for mark in "\"'`"}
_ENTITY_STOP = re.compile(r"\s|&(?:quot|\#3[49]);")
_BARE_STOP = re.compile(r"""[\s"'`,;|<>\])}]""")
_END_OF_LINE = re.compile(r"[.,;)\]}\"'`]{0,2}[ \t]{0,8}(?:[\r\n]|$)")
_VALUE_ENDS = re.compile(
    r"[,;)\]}]|[ \t]{1,8}(?:[(|/\u2013\u2014-]"
    r"|(?:for|on|at|in|to|of|from|and|or|with|as|if|when|until|but|user|username|login|host|db"
    r"|f\u00fcr|auf|bei|im|zum|zur|und|oder|mit)\b)",
    re.IGNORECASE,
)
"""What comes after ``password: hunter2``, and not after the first noun of a sentence about passwords."""
_PUBLIC_NAMES: Final = (
    *("idempotency", "confirm", "confirmation", "page", "continuation", "cursor", "fencing", "cancel", "next"),
)
_OWNERS: Final = (
    *("auth", "access", "api", "client", "refresh", "bearer", "bot", "user", "db", "root", "admin", "app", "my"),
    *("ssh", "ftp", "smtp", "mail", "pg", "store", "identity"),
)
"""Words that may directly precede a name in lower case: ``authtoken``, ``clientsecret``."""
_SQL_BEFORE: Final = ("with ", "encrypted ", "set ")
_COMPARISONS: Final = ("==", "===", "!=", "!==")
_OPTION_BEFORE = re.compile(r"(?:^|[\s\"'`])--[a-z0-9-]{0,40}$")
_WORDS_OF_PROSE: Final = ("pass",)
"""Used alone, these are names only before ``=`` or a quote: ``PASS: TestLogin2`` is a test result."""
_MAX_PARAMETER_CHARS: Final = 4096
_PASSPHRASES: Final = {mark: re.compile(rf"[^\r\n\\{mark}]{{8,128}}+(?=\\{{0,8}}+{mark})") for mark in "\"'`"}
_PARAMETER_BEFORE = re.compile(r"[?&][\w.-]{0,40}$")
_TRAILING: Final = ".,:\\"
_TRAILING_MARKS: Final = _TRAILING + "!?"
"""``!`` and ``?`` after a value may end the sentence or belong to the password: not checked, but replaced with it."""
_MAX_TRAILING: Final = 8
_CONTEXT_CHARS: Final = 48
_MIN_CREDENTIAL_DIGITS: Final = 16
"""Minimum length of a credential that consists only of digits. A shorter number is a limit or a size."""

_CLOSING_TAG = re.compile(
    r"<\\?/(?:[\w.-]{1,32}+:)?(?P<name>[\w.-]{0,64}?(?P<password>pass(?:w(?:or[dt]|d)|phrase|code)|pwd|kennwort)"
    r"|[\w.-]{0,64}?(?:secret|token|api[_-]?key|accesskey|privatekey|secretkey|credential))>"
)
_CDATA: Final = "<![cdata["


def named_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield kind, start and end of each value next to a name in ``plain``; ``folded`` is the same text in lower case.

    After ``name =``, and in quotes, a value must look like a value. After ``:`` or ``is``, which prose also uses, an
    unquoted value must be unmistakable, unless it is a password at the end of its line; after ``password:`` also a word
    of letters and digits before a comma or a word such as ``for``.
    """
    run_start = run_end = 0  # the last run of characters that may be an unquoted value
    skip_until = 0  # no value begins before this position
    for name in windowed_matches(_NAME, folded, _REACH):
        begin, start = name.start(), name.end()
        if start < skip_until:
            continue
        sign, said = name["sign"], name["said"]
        dashed = folded.find("--", max(0, begin - _CONTEXT_CHARS), begin) >= 0
        opening = _OPEN_QUOTE.match(plain, start)
        if opening is None and not run_start <= start < run_end:
            stop = _BARE_STOP.search(plain, start)
            run_start, run_end = start, stop.start() if stop else len(plain)
            if not dashed and not may_be_value(plain, run_start, trimmed_end(plain, run_start, run_end)):
                skip_until = run_end  # no part of the run has the characters that a value needs
                continue
        before = folded[max(0, begin - _CONTEXT_CHARS) : begin]
        option = dashed and sign in {None, "="} and not said and _OPTION_BEFORE.search(before) is not None
        statement = not sign and not said and (name[0].startswith("identified") or before.endswith(_SQL_BEFORE))
        if not (sign or said or option or statement) or _is_not_secret_name(plain, begin, before, name[0]):
            continue
        kind = "password" if name["password"] else "credential"
        assigned = sign not in {None, ":"}
        word = name["password"] in _WORDS_OF_PROSE and not before[-1:].isalnum() and before[-1:] not in {"_", "-", "."}
        if opening is not None:
            start = opening.end()
            quoted_end = _quoted_end(plain, start, opening)
            if quoted_end is None:
                if name["password"] and sign not in _COMPARISONS and (end := _passphrase_end(plain, start, opening)):
                    skip_until = end
                    yield kind, start, end
                continue
            end = quoted_end
            while end - start > 1 and quoted_end - end < _MAX_TRAILING and plain[end - 1] == "\\":
                end -= 1
            until = end
            accept = is_option_value if option or statement else is_value
            if sign in _COMPARISONS:
                accept = _is_compared_value
            elif said and not name["password"]:
                accept = is_strong_value
        elif statement or sign in _COMPARISONS or (word and not assigned and not option):
            continue
        else:
            end = run_end
            if sign and _PARAMETER_BEFORE.search(before):
                at = plain.find("&", start, min(end, start + _MAX_PARAMETER_CHARS))
                end = at if at >= 0 else end
            until = trimmed_end(plain, start, end)
            ends_line = name["password"] and _ends_line(plain, end)
            spoken = name["password"] and sign == ":" and (until < end or _VALUE_ENDS.match(plain, end) is not None)
            end = secret_end(plain, start, end)
            if option:
                accept = is_option_value if assigned else is_value
            elif assigned or (sign and ends_line):
                accept = is_value
            elif spoken:
                accept = is_spoken_password
                until = end
            else:
                accept = is_strong_value
                if ends_line:
                    until = end
        value = plain[start : min(until, start + MAX_CHECKED_CHARS)]
        if (
            value
            and not (_is_number(value) and (word or (kind == "credential" and len(value) < _MIN_CREDENTIAL_DIGITS)))
            and (
                accept(value)
                or (
                    name["password"]
                    and (assigned or opening)
                    and sign not in _COMPARISONS
                    and is_symbol_password(value)
                )
            )
        ):
            skip_until = end
            yield kind, start, end
        elif opening is None:
            # The values of further names in the same run are parts of this one, and are not checked again.
            skip_until = min(end, start + MAX_CHECKED_CHARS)


def tagged_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the text of each XML element that is named like a secret."""
    for tag in windowed_matches(_CLOSING_TAG, folded, _REACH):
        end = tag.start()
        if plain.endswith("]]>", max(0, end - 3), end):
            end -= 3
            start = folded.rfind(_CDATA, max(0, end - 4096), end) + len(_CDATA)
            if start < len(_CDATA):
                continue
        else:
            start = plain.rfind(">", max(0, end - 4096), end) + 1
        while start < end and plain[start].isspace():
            start += 1
        while start < end and plain[end - 1].isspace():
            end -= 1
        value = plain[start : min(end, start + MAX_CHECKED_CHARS)]
        accept = is_literal_secret if tag["password"] else is_value
        if " " in value:
            accept = is_passphrase
        if start and value and "<" not in value and accept(value):
            yield "password" if tag["password"] else "credential", start, end


def trimmed_end(text: str, start: int, end: int, punctuation: str = _TRAILING_MARKS) -> int:
    """Return ``end`` without the sentence's punctuation after the value."""
    least = max(start + 1, end - _MAX_TRAILING)
    while end > least and text[end - 1] in punctuation:
        end -= 1
    return end


def secret_end(text: str, start: int, end: int) -> int:
    """Return the end of the secret: like ``trimmed_end``, but including ``!`` and ``?``, which may belong to it."""
    return trimmed_end(text, start, end, _TRAILING)


def _is_not_secret_name(plain: str, begin: int, before: str, name: str) -> bool:
    """Return whether the word is part of another word ("compass") or names something public ("page token")."""
    if not before:
        return False
    if before[-1].isalnum() and not name.startswith(("key", "passw", "kennwort")):
        camel = plain[begin - 1].islower() and plain[begin].isupper()
        if not camel and not before.endswith(_OWNERS):
            return True
    return before.rstrip("_- ").endswith(_PUBLIC_NAMES)


def _quoted_end(plain: str, start: int, opening: re.Match[str]) -> int | None:
    """Return the end of the quoted value that begins at ``start``, or None if white space comes before the quote."""
    mark = opening["mark"]
    if mark is None:
        stop = _ENTITY_STOP.search(plain, start)
    else:
        stop = (_ESCAPED_STOPS if opening["escapes"] else _STOPS)[mark].search(plain, start)
    if stop is None or stop[0].isspace():
        # Text without a closing quote is a value only if it is longer than any word.
        end = stop.start() if stop else len(plain)
        return end if end - start >= MAX_CHECKED_CHARS else None
    return stop.start()


def _passphrase_end(plain: str, start: int, opening: re.Match[str]) -> int | None:
    """Return the end of the passphrase of several words that begins at ``start``, or None if there is none."""
    words = _PASSPHRASES[opening["mark"]].match(plain, start) if opening["mark"] else None
    return words.end() if words is not None and is_passphrase(words[0]) else None


def _is_compared_value(value: str) -> bool:
    """Return whether a literal compared with a token is a token itself, not the name of a token type."""
    return is_strong_value(value) and (len(value) >= 20 or not value.isidentifier())


def _is_number(value: str) -> bool:
    return value.replace("_", "").isdecimal()


def _ends_line(plain: str, end: int) -> bool:
    return _END_OF_LINE.match(plain, end) is not None
