"""The description of a public token format, and how one is declared.

A token is found by a literal mark (``str.find``); its pattern is then matched at that position only. Each pattern is a
bounded run, and the search continues after the characters read, so scanning takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.values import may_be_real_token

MAX: Final = 4096
ALNUM: Final = "[A-Za-z0-9]"
WORD: Final = "[A-Za-z0-9_-]"
HEX: Final = "[a-f0-9]"
ALNUM_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
WORD_CHARS: Final = ALNUM_CHARS + "_-"


@dataclass(frozen=True, slots=True)
class TokenFormat:
    """A documented token format.

    ``pattern`` is matched where a mark is found. ``back`` lists characters before the mark that belong to the token, at
    most ``back_chars`` of them. If ``context`` is given, one of its words (lower case) must occur within
    ``CONTEXT_CHARS`` of the token, because harmless text can have the same format. ``accept`` checks the token.
    ``ends`` matches the rest of a token after its pattern. A token never starts directly after a character of ``glue``,
    because that would be inside another run; behind a hyphen or an underscore most may: ``of-ghp_…``. With
    ``after_mark`` the token begins after the mark, which is kept.
    """

    kind: str
    document: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = may_be_real_token
    context: tuple[str, ...] = ()
    back: str = ""
    back_chars: int = 0
    ends: re.Pattern[str] | None = None
    glue: str = ALNUM_CHARS
    after_mark: bool = False


CONTEXT_CHARS: Final = 100
TOKEN_END: Final = compile_later(r"[A-Za-z0-9_-]*+")
BASE64_END: Final = compile_later(r"[A-Za-z0-9+/=_-]*+")
DIGITS: Final = "0123456789"
HEX_CHARS: Final = "0123456789abcdef"


def token_format(
    kind: str,
    document: str,
    pattern: str,
    *marks: str,
    accept: Callable[[str], bool] = may_be_real_token,
    context: tuple[str, ...] = (),
    back: str = "",
    back_chars: int = 0,
    ends: re.Pattern[str] | None = TOKEN_END,
    glue: str = ALNUM_CHARS,
    after_mark: bool = False,
) -> TokenFormat:
    """Return the format of the tokens that begin with one of ``marks``."""
    return TokenFormat(
        kind, document, marks, compile_later(pattern), accept, context, back, back_chars, ends, glue, after_mark
    )
