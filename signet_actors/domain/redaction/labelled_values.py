"""Find values whose name is not beside them: on the line above, over a list or a section, or in another bracket.

What a password manager copies, ``secrets:`` and ``[secrets]`` with their entries, ``"passwords": ["…"]``, the columns
of an ``INSERT``; also variables that are named by their last part, ``STRIPE_KEY=…``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.named_values import secret_end, trimmed_end
from signet_actors.domain.redaction.secret_names import NAME_WORDS, is_password_name, matches_at
from signet_actors.domain.redaction.values import (
    SecretSpan,
    is_hex_key,
    is_mixed,
    is_random,
    is_random_key,
    is_signed_credential,
    is_signed_password,
    is_spoken_password,
    is_value,
)
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 1024
_PUBLIC: Final = (
    "public|pub|publishable|cache|primary|foreign|sort|sorting|partition|idempotency|row|hot|shortcut|object|lookup|registry"
    "|site|index|candidate|composite|unique|natural|group|map|dict|dedup|event|query|storage|state|hash|session|any|press"
    "|this|no|by|host|translation|message|locale|i18n"
)
"""Whose key is none that opens anything."""
_VARIABLE = compile_later(
    rf"(?<![\w-])(?!(?:[a-z0-9]{{1,30}}_){{0,3}}(?:{_PUBLIC})_(?:[a-z0-9]{{1,30}}_){{0,3}}(?:key|sk)\b)(?P<name>[a-z][a-z0-9]{{1,30}}(?:_[a-z0-9]{{1,30}}){{0,4}}"
    r"_(?:key|pat|sk|auth))[\"']?\]?\s{0,3}(?:[:?]?=|:)\s{0,3}[\"']?(?P<value>[^\s\"'`,;<>(){}\[\]]{12,256})(?![(\[])"
)
"""A variable in snake case or capitals; the value must be irregular."""
_LAST_PARTS: Final = ("_key", "_pat", "_sk", "_auth")
_MANAGED = compile_later(
    r"(?:^|\n)[ \t*#]{0,4}(?:user(?:name)?|login|e-?mail|account|benutzer(?:name)?|utilisateur|usuario)\b"
)
_LABEL: Final = {
    only: compile_later(
        rf"(?:^|\n)[ \t]{{0,6}}(?:[*#-]{{1,3}}[ \t]{{1,4}})?[*]{{0,2}}(?:(?:[\w-]{{1,20}} ){{0,2}}"
        rf"(?P<name>{NAME_WORDS[only]})s?"
        r"|(?:(?:my|our|your|the|new) ){0,2}keys?)[*:]{0,4}"
        r"[ \t]{0,8}\r?\n\s{0,20}[`*\"']{0,3}(?P<value>[^\s`*\"']{5,255}[^\s`*\"':])[`*\"']{0,3}[ \t]{0,8}(?=\r?\n|\Z)"
    )
    for only in (True, False)
}
_SAID_KEY = compile_later(
    r"(?<!\w)(?:(?P<named>the|that|is)|this|use|(?P<given>here(?:['\u2019]?s|\sis)(?:\s(?:the|my|our|your))?|my|our|your|his|her|their))"
    rf"\s(?:(?!(?:{_PUBLIC})\s)[a-z][\w-]{{1,19}}\s)?"
    r"key(?:\sfor\s[^\s:=]{1,30}(?:\s[^\s:=]{1,30}){0,2}?)?[*_]{0,2}(?P<sign>\sis:?|\s?[:=,\u2014\u2192-]"
    r"|(?P<clause>\s(?:you|i|we|they|he|she)(?:\s[a-z]{2,12}){1,2}(?=\s\())|(?=\s))"
    r"\s{1,3}(?(clause)\()[\"'`*]{0,3}(?P<value>[^\s\"'`,;()*]{10,256})"
)
_SERVICE_KEY = compile_later(
    rf"(?<![\w-])(?!(?:{_PUBLIC}|redis|memcached?|s3|gcs|etag|commit|bucket|blob|file|document|md5|sha\d{{0,3}})\s)(?P<owner>[a-z][\w.-]{{2,29}})"
    r"\skey[*_]{0,2}(?:\sis:?|\s?[:=\u2192]|\sist:?)\s{1,3}[\"'`*]{0,3}(?P<value>[0-9a-f]{32}(?:[0-9a-f]{32})?)(?![\w-])"
)
"""The key of a service in hexadecimal digits: ``OpenWeather key: …``, ``prod key: …``."""
_PLACES: Final = ("prod", "production", "staging", "live", "dev", "test", "sandbox")
_QUESTION: Final = {
    only: (
        rf"(?:(?<![a-z0-9-])(?:{NAME_WORDS[only]}|keys?|pins?)(?![a-z0-9_-])(?:[^\n.?\uff1f]|\.(?=\S)){{0,80}}"
        r"(?:\.\s[^\n.?]{0,40}?\b(?:enter|type|provide|send|share|give|paste|use|it)\b[^\n.?]{0,30})?[?\uff1f](?=[\s*_\"')]|\Z)"
        r"|\b(?:need|provide|send|share|give\sme)\b[^\n?]{0,30}:\s?(?:\r?\n[^\n]{1,80}){0,4}?"
        rf"\r?\n[^\n]{{0,60}}?(?:{NAME_WORDS[only]}|key|pin)(?![\w-])"
        rf"|\b(?:enter|paste|provide|type|send|give|share|need|tell)\s[^\n?]{{0,60}}?(?:{NAME_WORDS[only]}|key|pin)(?![\w-])"
    )
    for only in (True, False)
}
_ANSWER: Final = (
    r"(?:(?:it['\u2019]?s|it\sis|sure|yes|ok(?:ay)?|here(?:['\u2019]s)?|das\sist|es\sist|c'est|use|try|take)[,:.]?\s){0,2}"
    r"(?:[`*\"']{0,3}[\w.@+-]{1,64}[`*\"']{0,3}(?:\s?/\s|,\s|:\s|\s\|\s|\s(?:and|und|et|y)\s))?"
    r"[`*\"']{0,3}(?P<value>[^\s`*\"']{6,255})"
)
"""The first word, or after who has it the second: ``anna / …``."""
_ASKED: Final = {
    only: compile_later(
        rf"{question}[^\n?:]{{0,40}}(?=\r?\n))[ \t*_\"')]{{0,6}}(?:\r?\n[ \t]{{0,8}}){{0,2}}"
        rf"(?:(?:user|human|answer|assistant|agent|a):[ \t]{{0,4}})?{_ANSWER}"
    )
    for only, question in _QUESTION.items()
}
"""A question for a secret, and the first word of what follows, which is the answer if it is random."""
_ASKS: Final = {only: compile_later(f"{question})") for only, question in _QUESTION.items()}
_ANSWERS: Final = compile_later(rf"\s{{0,99}}{_ANSWER}", re.IGNORECASE)
MOST_OF_QUESTION: Final = 400
"""So far before its end, a turn may ask for the secret with which the next one begins."""
_OF_PARTS = compile_later(r"\w[:=<>]+\w")
_BRACED = compile_later(r"\b(?:pwd|password)\s?=\s?\{(?P<value>[^{}\s]{6,128})\}")
_SECTION = compile_later(
    r"(?:^|\n)(?P<indent>[ \t]{0,40})(?:\[(?:[\w-]{1,30}\.)?(?:secrets?|credentials)(?:\.[\w.-]{1,40})?\]"
    r"|(?:[\w-]{0,30}[_-])?(?:secrets?|credentials):)[ \t]{0,8}(?:#[^\n]{0,200})?(?=\r?\n)"
)
_SECTION_MARKS: Final = ("secret", "credential")
_SECTION_NAMES: Final = (*_SECTION_MARKS, "credentials")
_ENTRY = compile_later(
    r"(?P<gap>(?>(?:\r?\n[ \t]{0,40}(?:[#;][^\n]{0,400})?(?=\r?\n)){0,20}))"  # blank lines and comments
    r"\r?\n(?P<indent>[ \t]{0,40}(?:-[ \t]{1,8})?)[\"']?(?P<key>[\w. -]{1,64})[\"']?[ \t]{0,8}(?P<sign>[:=])[ \t]{0,8}"
    r"[\"']?(?P<value>[^\s\"']{0,512})(?P<ends>[\"']?,?[ \t]{0,9}(?:[#;]|\r?(?=\n)|\Z))?[^\n]{0,400}"
)
_NAMING: Final = (
    *("name", "user", "login", "host", "file", "path", "version", "type", "role", "store", "source", "target"),
    *("provider", "region", "key", "id", "image"),
)
"""The entries of a section that say whose secrets these are, or where they are kept."""
_LIST: Final = {
    only: compile_later(
        rf"(?P<name>{NAME_WORDS[only]})(?:s[\"']?\s{{0,4}}(?::?=|:)\s{{0,4}}(?:(?:new\s?)?\w{{0,12}}\[\]\s?\w{{0,12}}\s?)?[\[({{]"
        r"|[\"']?\s{0,4}[:=]\s{0,4}\[)"
    )
    for only in (True, False)
}
_ITEM = compile_later(
    r"\s{0,40}(?:[\"']?(?P<key>[\w.-]{1,64})[\"']?\s{0,4}[:=]\s{0,4})?[\"']?(?P<value>[^\s\"',\]})]{1,256})[\"']?\s{0,4}"
    r"(?:,|(?=[\]})])|(?<=[\"']\s)(?=[\"']))"
)
_TOKEN = compile_later(r"[\w+/=.-]{8,256}")
"""What credentials are made of, and the parts of a grammar (``tokens = {…}``) are not."""
_INSERT = compile_later(
    r"\b(?:insert|replace)\s{1,9}(?:(?:ignore|or\s{1,9}[a-z]{5,8})\s{1,9})?into\s{1,9}[\w.\"`\[\]]{1,64}\s{0,9}"
    r"(?:as\s{1,9}\w{1,32}\s{0,9})?\((?P<columns>[^()]{1,512})\)\s{0,9}(?:(?:output|overriding)\s[\w.,*\s]{1,99}?\s)?values?\s{0,9}(?=\()"
)
_SQL_PART = compile_later(
    r"'(?P<single>(?>(?:[^'\\]|\\.|''){0,1024}))'|\"(?P<double>(?>(?:[^\"\\]|\\.|\"\"){0,1024}))\""
    r"|\\{1,3}[\"'](?P<escaped>[^\"'\\]{0,256})\\{1,3}[\"']|(?P<sign>[(),])|[^(),'\"\\]{1,256}|['\"\\]",
    re.DOTALL,
)
"""A string of a row of values (in double quotation marks: MySQL, SQLite), a sign between them, or anything else."""
_COLUMN: Final = compile_later(rf"[\"`\[\s]{{0,9}}\w{{0,40}}?(?P<name>{NAME_WORDS[False]})[\"`\]\s]{{0,9}}")
_VALUE_FIRST: Final = {
    only: compile_later(
        r"(?<![\w.-])[\"']?(?:parameter)?value[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<value>[^\s\"',;<>]{6,256})[\"']?\s{0,4},?\s{0,40}"
        r"[\"']?(?:[a-z]{1,12}_?)?(?:name|key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?[\w./-]{0,60}?"
        rf"(?P<name>{words})[\"']?(?=[\s,}}/]|\Z)"
    )
    for only, words in NAME_WORDS.items()
}
_CHANGED: Final = {
    only: compile_later(
        rf"(?P<name>{words})[\w.-]{{0,20}}[\"']?\s{{0,20}}[:=]\s{{0,4}}\"[^\"\n]{{0,256}}\"\s{{1,4}}-{{1,2}}>\s{{1,4}}\"(?P<value>[^\"\s]{{1,256}})\""
    )
    for only, words in NAME_WORDS.items()
}
"""What a plan of Terraform or a comparison of files sets in place of the former value."""
_NAMED_BEFORE = compile_later(r"(?:name|key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?[^\s\"',]{1,64}[\"']?,?\s{0,40}\Z")
"""The value is that of the name above it, and the name below is the next one."""

_ANCHOR = compile_later(
    r"(?<=\s)&([\w.-]{1,64})\s{1,40}(?:\"([^\"\n]{1,256})\"|'([^'\n]{1,256})'|([^\s\"'{}\[\]&*|>#]\S{0,255}))"
)
_ALIAS: Final = {
    only: compile_later(rf"(?:{words})[\"']?:\s{{1,8}}\*([\w.-]{{1,64}})") for only, words in NAME_WORDS.items()
}


_SHOWN = compile_later(
    r"(?:^|\n)[ \t]{0,8}(?:[^\n]{0,60}?[$#%>\u276f\u279c\u03bb][ \t]{1,3})?(?:sudo\s)?"
    r"(?:(?:go)?pass\sshow|op\sread|op\sitem\sget(?=[^\n]{0,200}field)"
    r"|(?:bw|rbw)\sget|lpass\sshow|keepassxc-cli\sshow|secret-tool\slookup|security\sfind-\w{1,12}-password|argocd\sadmin\sinitial-password"
    r"|kubectl(?=[^\n]{0,300}\.data\.[\w.\\-]{0,30}(?:pass|pwd|token|secret|key))|gcloud\s(?:secrets\sversions\saccess|auth\sprint-\w{1,12}-token)"
    r"|(?:gh|glab)\sauth\stoken|aws\s(?:secretsmanager\sget-secret-value|ssm\sget-parameter)|az\skeyvault\ssecret\sshow"
    r"|vault\s(?:kv\sget|read)(?=[^\n]{0,200}-field)|openssl\srand|pwgen|doppler\ssecrets\sget|chamber\sread"
    r"|(?:cat|terraform\soutput|heroku\sconfig:get|printenv)(?=\s[^\n|]{0,100}(?:secrets/|password|secret|token|api_key)))(?![\w-])"
    r"(?:[^\n]{0,200}\\\r?\n){0,3}[^\n]{0,400}\r?\n[ \t]{0,8}(?P<value>[^\s]{6,512})[ \t]{0,8}(?=\r?\n|\Z)"
)
"""A command that prints a secret, perhaps behind a prompt, and a line of one word below it."""
SHOWN_MARKS: Final = (
    *(
        "pass show",
        "op read",
        "op item",
        "bw get",
        "lpass",
        "keepassxc",
        "secret",
        "find-",
        "argocd",
        "kubectl",
        "gcloud",
    ),
    *("auth token", "vault ", "openssl rand", "pwgen", "ssm get", "password", "token", "chamber read", "api_key"),
)


def shown_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the line below a command that prints a secret: ``pass show nas``, ``openssl rand -hex 16``."""
    for shown in windowed_matches(_SHOWN, folded, 2 * _REACH):
        value = plain[slice(*shown.span("value"))]
        if is_signed_password(value) and not value.isdecimal():
            yield "password", *shown.span("value")


def labelled_values(plain: str, folded: str, names: Sequence[int]) -> Iterator[SecretSpan]:
    """Yield the values below, in and under a name, and those before ``"name": "DB_PASSWORD"``."""
    ascii_only = folded.isascii()
    for found in windowed_matches(_LABEL[ascii_only], folded, _REACH) if "\n" in plain else ():
        value = plain[slice(*found.span("value"))]
        if not found["name"]:
            if is_random_key(value):
                yield "credential", *found.span("value")
            continue
        password = is_password_name(found["name"])
        managed = password and _MANAGED.search(folded, max(0, found.start() - 200), found.start()) is not None
        if (managed or found["name"] != "pass") and (is_spoken_password if managed else is_signed_credential)(value):
            yield "password" if password else "credential", *found.span("value")
    for pair in windowed_matches(_VALUE_FIRST[ascii_only], folded, _REACH) if "value" in folded else ():
        password = is_password_name(pair["name"])
        if not _NAMED_BEFORE.search(folded, max(0, pair.start() - 160), pair.start()) and (
            is_signed_password if password else is_signed_credential
        )(plain[slice(*pair.span("value"))]):
            yield "password" if password else "credential", *pair.span("value")
    for change in windowed_matches(_CHANGED[ascii_only], folded, _REACH) if '" -' in plain else ():
        password = is_password_name(change["name"])
        if (is_signed_password if password else is_signed_credential)(plain[slice(*change.span("value"))]):
            yield "password" if password else "credential", *change.span("value")
    done = 0  # what stands in one list or section is not read again as another
    for name in matches_at(_LIST[ascii_only], folded, names) if any(map(plain.count, "[({")) else ():
        password = is_password_name(name["name"])
        for item in _run(_ITEM, plain, name.end()) if name.start() >= done else ():
            done = item.end()
            quoted = plain[item.start("value") - 1] in "\"'"
            entry = item["key"] and name["name"] in _SECTION_NAMES
            if (quoted or ":" in name[0]) and (
                (is_spoken_password(item["value"]) if password else entry and _is_entry(item["key"], item["value"]))
                or (
                    (name["name"] != "token" or _TOKEN.fullmatch(item["value"])) and is_signed_credential(item["value"])
                )
            ):
                yield "password" if password else "credential", *item.span("value")
    done = 0
    for section in windowed_matches(_SECTION, folded, _REACH) if any(map(folded.count, _SECTION_MARKS)) else ():
        ini = "[" in section[0]
        for entry in _run(_ENTRY, plain, section.end()) if section.start() >= done else ():
            if (entry["gap"] and entry["sign"] == ":") if ini else len(entry["indent"]) <= len(section["indent"]):
                break
            done = entry.end()
            if is_signed_credential(entry["value"]) or (
                entry["ends"] is not None and _is_entry(entry["key"], entry["value"])
            ):
                yield "credential", *entry.span("value")


def _is_entry(key: str, value: str) -> bool:
    """Return whether the value of ``secrets: {db: …}`` is a secret, and not the name of one or of a place."""
    simple = value.rstrip("!?").isalnum() and not key.rstrip().lower().endswith(_NAMING)
    return is_signed_credential(value) or (simple and is_signed_password(value))


def said_keys(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the values of ``here's the key: …``, answers to questions, and ``PWD={…}`` in addresses of data sources."""
    for found in windowed_matches(_SAID_KEY, folded, _REACH) if "key" in folded else ():
        start = found.start("value")
        end = trimmed_end(plain, start, found.end("value"))
        value = plain[start:end]
        if not found["sign"]:
            opens = not found["named"] and (is_hex_key(value) or (is_mixed(value) and is_random(value)))
        else:
            opens = _opens_something(value) if found["given"] else is_random(value)
        if opens:
            yield "credential", start, end
    for found in windowed_matches(_SERVICE_KEY, folded, _REACH) if " key" in folded else ():
        if plain[found.start("owner")].isupper() or found["owner"] in _PLACES:
            yield "credential", *found.span("value")
    asks = "?" in plain or "\uff1f" in plain or "\n" in plain
    for found in windowed_matches(_ASKED[folded.isascii()], folded, _REACH) if asks else ():
        if end := _answer_end(plain, *found.span("value")):
            yield "credential", found.start("value"), end
    for found in windowed_matches(_BRACED, folded, _REACH) if "={" in folded or "= {" in folded else ():
        if _opens_something(plain[slice(*found.span("value"))]):
            yield "password", *found.span("value")


def answered_secret(asked: str, answer: str) -> str:
    """Return the secret with which a turn begins if the one before it asks for one; empty if there is none."""
    found = _ANSWERS.match(answer)
    if found is None or not (end := _answer_end(answer, *found.span("value"))):
        return ""
    folded = asked[-MOST_OF_QUESTION:].lower()
    return answer[found.start("value") : end] if _ASKS[folded.isascii()].search(folded) else ""


def _answer_end(plain: str, start: int, end: int) -> int:
    """Return the end of a random word, with or without the signs behind it; 0 if it is not random."""
    ends = (secret_end(plain, start, end), trimmed_end(plain, start, end))
    return next((at for at in ends if is_random(plain[start:at]) or is_hex_key(plain[start:at])), 0)


def _opens_something(value: str) -> bool:
    if _OF_PARTS.search(value):  # a key of Redis or of a map: session:1234:data
        return False
    return is_random(value) or (value.islower() and is_signed_credential(value))


def _run(pattern: re.Pattern[str], plain: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the matches that follow each other from ``at``."""
    while found := pattern.match(plain, at):
        yield found
        at = found.end()


def keys_by_last_part(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the irregular values of ``STRIPE_KEY=…`` and ``GITHUB_PAT: …``."""
    for found in windowed_matches(_VARIABLE, folded, _REACH) if any(map(folded.count, _LAST_PARTS)) else ():
        value = plain[slice(*found.span("value"))]
        if is_signed_credential(value) and (value.isalnum() or plain[found.start() : found.end("name")].isupper()):
            yield "credential", *found.span("value")


def aliased_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the values of YAML that a name refers to by their anchor: ``x: &pw hunter2`` and ``password: *pw``."""
    aliases = {alias[1] for alias in windowed_matches(_ALIAS[folded.isascii()], folded, _REACH)}
    for anchor in windowed_matches(_ANCHOR, plain, _REACH) if aliases else ():
        if anchor[1].lower() in aliases and is_value(anchor[anchor.lastindex or 0]):
            yield "credential", *anchor.span(anchor.lastindex or 0)


def inserted_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield what ``INSERT INTO users (name, password) VALUES …`` puts into a column with such a name."""
    done = 0
    for insert in windowed_matches(_INSERT, folded, _REACH):
        if insert.start() < done:
            continue
        columns = [_COLUMN.fullmatch(column) for column in insert["columns"].split(",")]
        if not any(columns):
            continue
        depth, name, names = 0, None, iter(columns)
        for part in _run(_SQL_PART, plain, insert.end()):
            done, sign, value = part.end(), part["sign"], part.lastgroup or "sign"
            if not (depth or sign in {"(", ","} or part[0].isspace()):
                break
            depth += (sign == "(") - (sign == ")")
            if depth == 1 and sign in {"(", ","}:
                names = iter(columns) if sign == "(" else names
                name = next(names, None)
            elif name and value != "sign" and is_value(part[value]):  # also the first string of ``MD5('…', …)``
                yield "password" if is_password_name(name["name"]) else "credential", *part.span(value)
                name = None
