"""Find passwords in another clause than their name: ``the password changed, it's now …``, ``here's the password …``.

Each scanner starts at a literal word and reads a bounded stretch, so scanning takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.generated import is_generated, whole_end
from signet_actors.domain.redaction.named_values import ends_there, secret_end
from signet_actors.domain.redaction.secret_names import (
    NAME_WORDS,
    NAMES_OF_SEVERAL,
    PASSWORD_MARKS,
    SAID,
    is_password_name,
    matches_at,
    secret_names,
)
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 512
_BEFORE: Final = 160
_BESIDE_CHANGE: Final = 48
_NAMES: Final = {
    only: "|".join(map(re.escape, filter(is_password_name, secret_names(ascii_only=only)))).replace(r"\ ", r"[\s_-]")
    for only in (True, False)
}
_VALUE: Final = r"[\"'`*\u201e\u201c\u00ab]{0,3}(?P<value>(?=[^\s\d]{0,40}\d)[^\s\"'`*()<>,;\u201c\u201d\u00bb]{6,64})"
_NOW: Final = "now|currently|again|jetzt|nun|ab\\sjetzt|maintenant|d\u00e9sormais|ahora|agora|adesso|ora"
_IT: Final = (
    r"(?:it|that|the\snew\sone)(?:['\u2019]?s|\sis|\swas\sset\sto)|(?:es|das|dies|das\sneue)\s(?:ist|lautet|hei(?:\u00df|ss)t)"
    r"|(?:c['\u2019]|il\s|ce\s|elle\s)est|(?:la\snueva\s|(?:y\s)?ahora\s)?es|(?:now|jetzt|maintenant|ahora)(?:\sit['\u2019]s|\sist\ses|:)?"
)
_IT_IS: Final = compile_later(
    rf"(?:[,;.:!\u2013\u2014-]|\s(?:and|so|und|et|y))\s{{1,3}}(?:(?:and|so|but|und|et|y)\s)?(?:{_IT})\s(?:(?:{_NOW}):?\s)?{_VALUE}"
)
_DONE: Final = (
    r"changed|rotated|reset|renewed|updated|replaced|regenerated|reissued|swapped|switched|cycled|refreshed|modified|expired|leaked"
    r"|ge(?:\u00e4|a\u0308|ae|a)ndert|zur(?:\u00fc|u\u0308|ue|u)ckgesetzt|erneuert|rotiert|ersetzt|gewechselt|abgelaufen"
    r"|chang(?:\u00e9|e\u0301|e)e?|r(?:\u00e9|e\u0301|e)initialis(?:\u00e9|e\u0301|e)e?|renouvel(?:\u00e9|e\u0301|e)e?|modifi(?:\u00e9|e\u0301|e)e?"
    r"|cambiad[oa]|cambi(?:\u00f3|o\u0301|o)|rotad[oa]|renovad[oa]|actualiz(?:ad[oa]|(?:\u00f3|o\u0301|o))|restablecid[oa]"
)
_IS_DONE: Final = "was|has|is|got|gets|had|wurde|wird|ist|a|fue|ha|est"
_CHANGED: Final = {
    only: compile_later(
        rf"(?:(?<![a-z])|(?=pass))(?:{names})(?!\w)(?:\s[^\s,;.:]{{1,30}}){{0,6}}?\s(?:{_DONE})(?!\w)"
        rf"|(?<!\w)(?:{_DONE})\s(?:[\w'\u2019-]{{1,20}}\s){{0,3}}?(?:{names})(?!\w)"
    )
    for only, names in _NAMES.items()
}
"""What happened to a password, before its new value is told."""
_NO_OWNER: Final = (
    "is|are|was|were|has|have|had|must|should|shall|can|may|might|will|be|to|in|into|with|by|via|from|as|and|or|not|no|if|when|see"
    "|use[sd]?|using|than|version|release|commit|ticket|issue|branch|build|tag|ist|sind|war|wird|wurde|hat|mit|und|oder|siehe|aus"
    "|nach|est|sont|sera|avec|et|ou|voir|dans|es|son|era|con|y|o|ver|en|hash|salt|digest|checksum|policy|rules?|field|form|page"
    "|prompt|hint|reset|manager|column|length|algorithm|type|file|path|url|id|format|regex|host"
)
_OWNER: Final = rf"(?:[ ](?!(?:{_NO_OWNER})[ ])(?:[dl]['\u2019])?[\w.-]{{1,30}}){{1,5}}?"
_BESIDE: Final = {
    only: compile_later(
        rf"(?:(?<![a-z])|(?=pass))(?:(?:{names})[ ]"
        rf"(?:for|of|on|at|f(?:\u00fc|u\u0308|ue)rs?|vo[mn]|zu[mr]|pour|de|du|para|del)"
        rf"|(?:pw|psk|mdp)){_OWNER},?[ ]{_VALUE}"
    )
    for only, names in _NAMES.items()
}
"""The name of a password, whose it is, and its value, without a sign: ``password for the prod db …``."""
_BEGINNINGS_OF_DONE: Final = """
    chang rotat reset new pdat replac regen reissu swap switch cycl refresh modif expire leak
    ndert ckgesetzt erneuert rotiert ersetzt gewechselt abgelaufen initial renouvel
    cambi rotad renovad actualiz restablec
"""
_DONE_MARKS: Final = tuple(_BEGINNINGS_OF_DONE.split())
_CLAUSE_ENDS: Final = compile_later(
    r"[\"'`*]{0,3}\s(?:now|again|instead|from|since|as|until|starting|today|jetzt|ab|seit|ein|an|sein|maintenant|ahora|desde|a)\b"
)
_AND: Final = r"[\"'`*]{0,3}(?:\s?[,;.&+])?\s{0,3}(?:(?:and|und|et|y|e|or|plus)\s{1,3})?"
_LABEL: Final = (
    r"(?:(?:the|our|das|die|den|la|le|el|los)\s)?(?!(?:and|und|et|y|e|is|are|was|the)\s)\w[\w.-]{0,23}"
    r"(?:\s(?!(?:and|und|et|y|e|is|are|was|ist|est|es)\s)[\w.-]{1,24}){0,2}?"
)
_PLACE: Final = r"(?:for|on|at|in|f(?:\u00fc|u\u0308|ue)r|auf|pour|sur|para|en)"
_LISTED: Final = {
    only: compile_later(
        rf"(?:(?<![a-z])|(?=pass))(?P<name>(?P<many>{NAMES_OF_SEVERAL[only]})|{words})(?P<plural>s|es)?(?!\w)(?=\s|:)"
        rf"(?P<are>(?:(?:\s{_PLACE}(?:\s[^\s:,;.]{{1,20}}){{1,6}}?)?\s(?:are|were|sind|sont|son)(?:\snow)?:?"
        r"|(?(many)|(?(plural)|(?!)))(?:\s?:|\s[\u2013\u2014-](?=\s))))?"
    )
    for only, words in NAME_WORDS.items()
}
"""The name of secrets and perhaps its verb, before several of them."""
_FOR_EACH = compile_later(
    rf"{_AND}{_PLACE}\s{_LABEL}(?:\s?(?P<sign>[:=]|->|\u2192)|,?\s(?:it['\u2019]s|is|ist|est|c'est|es))\s{{0,3}}{_VALUE}"
)
_LABELLED = compile_later(rf"{_AND}(?P<label>{_LABEL})\s?[:=]\s{{0,3}}{_VALUE}")
_OF_EACH = compile_later(
    rf"{_AND}{_VALUE}[\"'`*]{{0,3}}(?:\s{_PLACE}\s{_LABEL}(?=[\s,;.!]|\Z)|\s?\([^()\n]{{1,30}}\))?"
)
_OF: Final = {
    only: rf"(?:\s(?:{SAID[only].joiners}|{_IS_DONE}|{_DONE}|haben?|hab|hat)(?:\s[^\s,;:=()]{{1,30}}){{0,8}}?)?"
    for only in (True, False)
}
_FROM: Final = {"from", "von", "desde", "da"}
_FROM_TO: Final = {
    only: compile_later(
        rf"(?P<name>{words})(?:s|es)?(?!\w)(?:{_OF[only]}\s(?:from|von|vom|de|desde|da)\s[\"'`*\u201e\u201c]{{0,3}}"
        rf"(?P<from>[^\s\"'`*()<>,;\u201c\u201d]{{4,64}})[\"'`*\u201c\u201d]{{0,3}}|(?P<of>{_OF[only]}))"
        r"\s(?:(?P<sure>to|into|zu|\u00e0|a)|auf|in|nach|en|por|par|per)\s[\"'`*\u201e\u201c]{0,3}(?P<to>[^\s\"'`*()<>,;\u201c\u201d]{1,64})"
    )
    for only, words in NAME_WORDS.items()
}
_CHANGING = compile_later(
    r"(?<!\w)(?:chang|rotat|reset|switch|replac|renew|updat|modif|(?:ge)?(?:\u00e4|a\u0308|ae)nder|wechs|ersetz|(?:um)?(?:ge)?stell"
    r"|(?:ge)?setz|set(?!\w)|mis(?!\w)|met(?:s|tre)?(?!\w)|pus[eo]|poner|remplac|cambi|actualiz|reemplaz|sostitu|troc|alter)"
)
"""``change the password of the app user from … to …``"""
_LABELS: Final = """
    hash salt digest checksum policy rule rules field form page prompt hint reset manager column length algorithm type
    file path url id version format regex source host server name example totp otp 2fa mfa pin
"""
_OTHER_LABELS: Final = frozenset(_LABELS.split())


def values_of_several(plain: str, folded: str, names: Sequence[int]) -> Iterator[forms.SecretSpan]:
    """Yield each of ``password for staging: …, for prod: …``, and of ``the passwords are … for staging and …``."""
    if not forms.has_digit(plain):
        return
    only = folded.isascii()
    for name in matches_at(_LISTED[only], folded, names):
        values: list[forms.SecretSpan] = []
        password, at, alone = is_password_name(name["name"]), name.end(), False
        while True:
            of_each = None
            for_each = _FOR_EACH.match(folded, at)
            labelled = None if for_each else _LABELLED.match(folded, at)
            if not (for_each or labelled) and (name["are"] or values):
                of_each = _OF_EACH.match(folded, at)
            each = for_each or labelled or of_each
            if each is None or "\n" in each[0]:
                break
            start, end = each.span("value")
            end = secret_end(plain, start, end)
            value = plain[start:end]
            sure = forms.is_token(value) if not password else forms.is_unmistakable(value) or forms.is_dense(value)
            if labelled:
                sure = sure and _OTHER_LABELS.isdisjoint(labelled["label"].split())
            elif for_each and for_each["sign"]:
                sure = sure or (forms.is_signed_password(value) if password else forms.is_signed_credential(value))
            elif password:
                sure = sure or forms.is_told_password(value)
            if not sure:
                break
            values.append(("password" if password else "credential", start, end))
            alone = alone or of_each is None
            at = max(end, of_each.end() if of_each else end)
        if alone or len(values) > 1:
            yield from values
    for found in matches_at(_FROM_TO[only], folded, names):
        if not found["from"] and not _FROM.isdisjoint(found["of"].split()):
            continue
        password = is_password_name(found["name"])
        before, behind = max(0, found.start() - _BESIDE_CHANGE), found.end() + _BESIDE_CHANGE
        if _CHANGING.search(folded, before, found.start("to")) or _CHANGING.search(folded, found.end(), behind):
            of_place = not (found["from"] or (found["sure"] and not found["of"]))
            accept = (_is_told if of_place else forms.is_signed_password) if password else forms.is_token
            for start, stop in {found.span("from"), found.span("to")} - {(-1, -1)}:
                end = secret_end(plain, start, whole_end(plain, start, stop))
                if accept(plain[start:end]):
                    yield "password" if password else "credential", start, end


def values_in_clauses(plain: str, folded: str, *, joined: bool) -> Iterator[forms.SecretSpan]:
    """Yield the passwords that the clause after their name tells, or that end the clause with their name."""
    only = folded.isascii()
    if only and not any(mark in folded for mark in PASSWORD_MARKS):
        return
    for found in windowed_matches(_IT_IS, folded, _REACH) if any(mark in folded for mark in _DONE_MARKS) else ():
        end = _told_end(plain, found)
        if end and _CHANGED[only].search(folded, max(0, found.start() - _BEFORE), found.start() + 1):
            yield "password", found.start("value"), end
    for found in windowed_matches(_BESIDE[only], folded, _REACH) if forms.has_digit(plain) and not joined else ():
        if end := _told_end(plain, found):
            yield "password", found.start("value"), end


def _told_end(plain: str, found: re.Match[str]) -> int:
    """Return the end of the password that a clause ends with; 0 if it is none."""
    start, end = found.span("value")
    end = secret_end(plain, start, whole_end(plain, start, end))
    behind = max(end, found.end())
    ends = ends_there(plain, behind) or _CLAUSE_ENDS.match(plain, behind)
    return end if ends and _is_told(plain[start:end]) else 0


def _is_told(value: str) -> bool:
    return forms.is_told_password(value) or is_generated(value)
