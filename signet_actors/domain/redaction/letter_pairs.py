"""Tell letters that a program drew at random from words, names of hosts and variables, and abbreviations.

In random letters most neighbours are seldom beside each other in the languages that people write.

Source: Claude Shannon, "Prediction and Entropy of Printed English" (1951), on digram frequencies; Google Account Help,
"Sign in with app passwords"; WordPress Developer Resources, "Application Passwords".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 128
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_LEVELS: Final = (
    "44554353424757140767541133742181207207126006536000407041700871641280053650002372249221711423720553521033"
    "43553343523658230876332322712276218006117006466010207102904471252561065460003081128101712544710636513030"
    "63656351224658631576240103801481106053247101427100018121811272451471055662104082248221813733620045520040"
    "85128110700352760143600030725773726143155101674300433455434242466845076554411370227314600611750845500030"
    "31020100200501111322921000734582427044447204565310336261722471543265116852203371218114701322610655512042"
    "54556443524667350776221113801190008002037003313100308133810480231572045140005063637403701341570238411341"
    "7465624352566666057643402382238011803435620125624054"
)
"""How often a letter stands behind another one: 26 digits for each first letter, from 0 (never) to 9; 5 is chance.

``round(5 + 1.2 * log2(26 * share))``, cut off at both ends, of 400,000 different words of 19 languages in Latin letters
(accents removed) and of the names in the source code of 300 libraries.
"""
_CHANCE: Final = 5
_LEVEL_OF: Final = {
    first + second: int(_LEVELS[26 * row + column]) - _CHANCE
    for row, first in enumerate(_LETTERS)
    for column, second in enumerate(_LETTERS)
}
_MOST_OF_RANDOM: Final = -0.46
"""The mean level of pairs in random letters is below this in 96 of 100 cases with 16 letters (-1.8 in the middle), and
in 2 of 1,000 words.
"""
_LEAST_LETTERS: Final = 10
"""Without abbreviations; with them, a value has at least 12."""
_LEAST_DIFFERENT: Final = 7
_RUN = compile_later(r"[A-Za-z]{12,256}")
_ABBREVIATIONS = compile_later(
    r"https?|html?|smtp|imap|ldap|s?ftp|rtmp|mqtt?|amqp|json|yaml|xml|xhr|css|php|rpc|jdbc|odbc|dbms|p?gsql|mysql|sql|psycopg"
    r"|pwd|pass|pkg|cfg|conf|ctrl|mgmt|msg|btn|txt|img|src|dst|tmp|str|jwt|rsa|dsa|aes|hmac|sha|tls|ssl|ssh|gpg|pgp|pem"
    r"|pfx|crt|csr|bcrypt|scrypt|pbkdf|kdf|hash|oauth|saml|aws|gcp|gke|eks|kube|k?ctl|vpc|dns|tcp|udp|nginx|wsgi|asgi|gtk"
    r"|cpp|gcc|llvm|cuda|gpu|cpu|lib|utf|ascii|uuid|guid|ulid|param|attr|func|async|sync|ptr|len|idx|hdr|grp|usr"
    r"|mem|n?cpy|n?cmp|abcde?|efgh|fghij|ijkl|klmno|mnop|pqrst|qrst|uvwxy?|qwert[yz]?|asdf|zxcv"
)
"""Parts of names of variables and hosts that are not written like words, and rows of a keyboard."""
_FOURS = compile_later(r"(?<![\w@./-])[A-Za-z0-9]{4}(?:[ \u00a0-][A-Za-z0-9]{4}(?!\w)){3,15}(?![\w@]|[./-]\w)")
"""Groups of four, as Google (four of letters), WordPress (six) and Fastmail (four) show app passwords."""
_BETWEEN_FOURS = compile_later(r"[ \u00a0-]")
_CHANGE = compile_later(r"[A-Za-z](?=[0-9])|(?P<odd>[a-z](?=[A-Z])|[0-9](?=[A-Za-z]))")
"""``odd``: as in no word with its number: ``ipv4``."""
_HEX = compile_later(r"[0-9a-fA-F]{16,64}")


def is_random_letters(value: str) -> bool:
    """Return whether ``value`` has letters alone, at least 12, and they are in no words."""
    return _RUN.fullmatch(value) is not None and _are_random((value,))


def has_random_letters(text: str, start: int, end: int) -> bool:
    """Return whether the first long run of letters in ``text[start:end]`` is in no words."""
    run = _RUN.search(text, start, end)
    return run is not None and _are_random((run[0],))


def groups_of_four(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of what is written like an app password in groups, and is in no words."""
    for run in windowed_matches(_FOURS, text, _REACH):
        groups = _BETWEEN_FOURS.split(run[0])
        windows = [(size, at) for size in (6, 4) for at in range(len(groups) - size + 1)]
        found = [(size, at) for size, at in windows if _is_app_password(groups[at : at + size])]
        if found:
            size, at = min(found, key=lambda window: (-window[0], _level(groups[window[1] : window[1] + window[0]])))
            start = run.start() + 5 * at
            yield start, start + 5 * size - 1


def _is_app_password(groups: list[str]) -> bool:
    joined = "".join(groups)
    changes = [change["odd"] for group in groups for change in _CHANGE.finditer(group)]
    if joined.isalpha():
        return (len(groups) == 4 or any(changes)) and _are_random(groups)
    return 4 * len(changes) >= 3 * len(groups) and any(changes) and _HEX.fullmatch(joined) is None


def _are_random(parts: Sequence[str]) -> bool:
    return (
        len(set("".join(parts).lower())) >= _LEAST_DIFFERENT
        and sum(len(piece) for part in parts for piece in _ABBREVIATIONS.split(part.lower())) >= _LEAST_LETTERS
        and _level(parts) < _MOST_OF_RANDOM
    )


def _level(parts: Sequence[str]) -> float:
    """Return the mean level of the pairs of letters, without those of abbreviations; 0 if there are none."""
    pieces = (piece for part in parts for piece in _ABBREVIATIONS.split(part.lower()))
    levels = [_LEVEL_OF.get(a + b, 0) for piece in pieces for a, b in pairwise(piece)]
    return sum(levels) / max(1, len(levels))
