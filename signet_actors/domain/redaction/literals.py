"""Patterns, in folded text, for what may stand between the name of a secret and its literal in source code."""

from __future__ import annotations

from typing import Final

_ARGUMENT: Final = r"(?:[^()\n]{0,80}?\b(?:default|value)\s?=\s?)"
_MAKERS: Final = (
    r"secret(?:str|bytes|string|value)|password|secure(?:string)?|field|str(?:ing)?|bytes|getbytes|(?<=[.:])(?:from|new)|some|ptr|b64decode|md5|sha\d{0,3}|(?:en)?crypt|hashbytes"
    r"|atob|unsafeplaintext"
)
WRAPPED: Final = (
    rf"(?>(?:(?:new\s)?(?:[\w.:]{{1,30}}[.:])?(?:(?:{_MAKERS})\s?\((?:'\w{{1,12}}',\s?)?{_ARGUMENT}?|\w{{1,16}}(?:field|column)\s?\({_ARGUMENT})"
    r"(?=[bru]{0,2}[\"'`]|secret)"
    r"|\$\{(?!(?:env|file|ssm|secrets?|vault|sops|param|self|opt|cf):)[\w.]{1,60}(?::[-=]?|[-=])(?=[^\s{}$])|\(\s{0,9}(?=[bru]{0,2}[\"'`])"
    r"|[\w.]{1,40}(?:\([^()\n]{0,60}\)|\[[^\[\]\n]{0,60}\])?\s(?:or|\|\||\?\?)\s(?=[\"'`])"
    r"|(?:\{[^{}]{0,120}?)?[\"']?(?:\w{0,12}value|plaintext|default)[\"']?\s{0,4}[:=]\s{0,4}){0,2})"
    r"(?>(?:(?:[bul]|u8|br|rb)(?=[\"'])|(?:[bu]?[rf]{1,2}|[@$]{1,2})(?=[\"'][^\\{\[(\n]{1,256}[\"']))?)"
)
"""``SecretStr("…``, ``${DB_PASSWORD:-…``, ``args.password or "…``, ``{"value": "…``, ``b"…``, ``("…``, or nothing.

A format or a regular expression with its signs is no value.
"""
TYPE: Final = (
    r":\s{0,2}&?(?:'[a-z]{1,12}\s)?[a-z][\w.<>\[\]?&]{0,40}?(?:\s?[,|]\s?[\w.\[\]()=]{1,40}){0,3}\s{0,2}"
    rf"(?==\s{{0,2}}{WRAPPED}[\"'`])"
)
"""The type of a variable: ``apiKey: string = "…"``, ``let password: &str = "…"``."""
