# ruff: noqa: RUF001  the letters of other languages are meant
"""Find values in what people ask for: ``use … for the password``, ``put … into DB_PASSWORD``, ``is … the password?``.

Each scanner starts at a name and reads a bounded stretch on both sides of it, so scanning takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.generated import is_generated, whole_end
from signet_actors.domain.redaction.named_values import ends_there, secret_end
from signet_actors.domain.redaction.secret_names import ADVERBS, NAME_WORDS, any_of, is_password_name, matches_at

_COPULAS: Final = """
    is was isn't isn’t wasn't wasn’t as at ist war als est n'est n’est comme es era como é è come should·be must·be
    would·be might·be used·to·be has·to·be that's that’s
"""
_ENTERING: Final = """
    use uses used using enter entered entering type typed typing try tried take took put puts store stored save saved
    set add added write wrote paste pasted copy copied export pick choose insert give give·it go·with answer it's it’s
    nimm nehme nehmen benutz benutze benutzen verwende verwenden nutz nutze nutzen gib tippe trag schreib speicher
    setz probier utilise utilisez utiliser utilisons mets mettez mettre entre entrez tape tapez saisis saisir
    saisissez prends essaie écris stocke ajoute colle copie usa usar usamos utiliza utilizar utilizamos pon poner
    escribe introduce mete ingresa guarda añade prueba pega
"""
_FILLERS: Final = """
    just then please so simply always you can could i we let's let’s dann einfach bitte immer alors simplement toujours
    luego entonces siempre
"""
_ASKING: Final = """
    ask asks asked asking prompt prompts prompted prompting want wants wanted need needs request requests require
    requires fragt gefragt verlangt will demande veut pide piden solicita pregunta
"""
_ARTICLES: Final = "the|my|our|your|its|das|dein|mein|unser|le|la|el|il|o|a"
_FOR: Final = "for as für fürs als pour comme para como"
_WORD: Final = r"[^\s,;:()]{0,29}[^\s.,;:()]"
_IN_NAME: Final = r"[\"'`*$]{0,3}[\w-]{0,30}"
_QUOTES: Final = r"[\"'`*\u201e\u201c\u00ab]{0,3}"
_ENTER: Final = any_of(_ENTERING, bare=True)
_SAID_BEFORE = compile_later(
    rf"\s(?:(?:{any_of(_COPULAS)})(?:\s(?:{ADVERBS}))?"
    r"|(?:when|if|where)\s(?:it\s|you\s(?:are\s)?)?(?:ask|prompt|want)(?:s|ed)?(?:\sfor)?)\s"
    rf"(?:(?:{_ARTICLES})\s)?(?:[\w-]{{1,20}}\s){{0,2}}\Z"
)
_USED_BEFORE = compile_later(
    rf"\s(?:(?P<sign>(?:<-|->|=|[\u2190\u2192])\s|\()|(?P<asked>(?:(?:{ADVERBS})\s)?(?:{_ARTICLES})\s)"
    rf"|(?:(?:to|in|into|an|zu|dans|a|en)\s(?:{_WORD}\s){{1,3}}?)?"
    rf"(?:{any_of(_FOR + ' in into to under unter ins dans sous en')})\s)(?:{_WORD}\s){{0,4}}?{_IN_NAME}\Z"
)
"""What stands between a value and its name: ``for the db``, ``to .env as``, ``=``, ``still the right``."""
_ENTERED = compile_later(rf"(?<!\w)(?:{_ENTER})\s{_QUOTES}\Z")
_ASKED = compile_later(rf"(?<!\w)(?:{any_of(_COPULAS)})\s{_QUOTES}\Z")
_WHOSE = compile_later(
    r"\s(?:my|our|dein|mein|unser|wi-?fi|wlan|sudo|root|admin|ssh|router|guest|vpn|nas)\s(?:[\w-]{1,20}\s)?\Z"
)
_LAST_NAME = {only: compile_later(rf"(?P<name>{NAME_WORDS[only]})s?(?!\w)") for only in (True, False)}
_FOR_BEFORE = compile_later(
    rf"(?<!\w)(?:(?:{any_of(_FOR)})\s(?:{_WORD}\s){{0,4}}?{_IN_NAME}|(?:{any_of(_ASKING)})\s[^\n.;:]{{0,40}}?)\Z"
)
_TOLD: Final = {
    only: compile_later(
        rf"(?P<name>{words})s?(?!\w)(?:(?P<given>,?\s(?:that\s)?(?:you|i|we|they|he|she)\s(?:gave|sent|told|shared|mentioned|used?)"
        r"(?:\s(?:me|us|here|earlier|before|yesterday|today)){0,2}|,?\sdas\s(?:du|ihr|sie)\s(?:mir|uns)\s(?:gegeben|geschickt)\s"
        r"ha(?:st|bt|ben),?|\sque\s(?:tu|vous)\sm['’](?:as|avez)\s(?:donn|envoy)(?:é|e\u0301|e)e?|\sque\sme\s(?:diste|dio|enviaste))"
        rf"|(?:\s{_WORD}){{0,5}}?\s?(?:[,;:.–—-]{{1,2}}|\s(?:and|so|und|et|y))?\s(?:(?:{any_of(_FILLERS)})\s){{0,3}}"
        rf"(?:(?P<verb>{_ENTER})(?:\sin)?)?)\s?{_QUOTES}(?<=[\s\"'`*„“«])(?P<value>[^\s\"'`*()<>,;“”»]{{6,256}})"
        r"(?(given)|(?(verb)|(?=[\"'`*]{0,3}\s(?:verwenden|benutzen|nutzen|nehmen|eingeben|eintragen)\b)))"
    )
    for only, words in NAME_WORDS.items()
}
"""``for the password, use …``, ``the password you gave me …``"""
_ENDS = compile_later(
    r"[\"'`*]{0,3}(?:[.!?]\s|\s(?:please|any\s?more|now|again|instead|field|box|when|because|bitte|sein|ein|an)\b)"
)
_NEAR: Final = 64
_VERB_CHARS: Final = 16
_LONG_CHARS: Final = 16
_AROUND: Final = "*_~`\"',.:()<>[]\u201c\u201d\u201e\u00ab\u00bb"
_ALGORITHMS: Final = ("pbkdf2", "argon2", "hmacsha", "oauth2", "bcrypt", "scrypt", "sha256", "sha512", "aes256")


def values_said_first(plain: str, folded: str, names: Sequence[int]) -> Iterator[forms.SecretSpan]:
    """Yield the values of ``… is the password``, ``use … for the token`` and ``put … into DB_PASSWORD``."""
    for name in matches_at(_LAST_NAME[folded.isascii()], folded, names):
        near, after = max(0, name.start() - _NEAR), name.end()
        password = is_password_name(name["name"])
        said = _SAID_BEFORE.search(folded, near, name.start())
        if said and (not said[0].startswith(" at ") or folded.startswith(" prompt", after)):
            start, end = _word_before(plain, said.start())
            if _is_said(plain, folded, start, end, after, said[0], password=password):
                yield "password" if password else "credential", start, end
                continue
        if used := _USED_BEFORE.search(folded, near, name.start()):
            start, end = _word_before(plain, used.start())
            verb = (_ASKED if used["asked"] else _ENTERED).search(folded, max(0, start - _VERB_CHARS), start)
            told = password and verb is not None
            if (verb or used["sign"]) and _is_told(plain[start:end], password=told, ends=_ends(plain, after)):
                yield "password" if password else "credential", start, end


def _word_before(plain: str, end: int) -> tuple[int, int]:
    begin = max(0, end - forms.MAX_CHECKED_CHARS)
    blanks = ((plain.rfind(blank, begin, end), len(blank)) for blank in (" ", "\n", "\t", "\\n"))
    start = max((at + size for at, size in blanks if at >= 0), default=0)
    while start < end and plain[start] in _AROUND:
        start += 1
    while start < end and plain[end - 1] in _AROUND:
        end -= 1
    return start, end


def _is_said(plain: str, folded: str, start: int, end: int, after: int, said: str, *, password: bool) -> bool:
    value = plain[start:end]
    if forms.is_signed_credential(value) or forms.is_id_or_place(value) or not ends_there(plain, after):
        return forms.is_signed_credential(value)
    entered = password and _ENTERED.search(folded, max(0, start - _VERB_CHARS), start)
    return forms.is_word_and_number(value) or (bool(entered or _WHOSE.search(said)) and forms.is_spoken_password(value))


def values_to_use(plain: str, folded: str, names: Sequence[int]) -> Iterator[forms.SecretSpan]:
    """Yield the values of ``for the password use …`` and ``the password you gave me …``."""
    for name in matches_at(_TOLD[folded.isascii()], folded, names):
        start, end = name.span("value")
        end = secret_end(plain, start, whole_end(plain, start, end))
        password = is_password_name(name["name"])
        if (name["given"] or _FOR_BEFORE.search(folded, max(0, name.start() - _NEAR), name.start())) and _is_told(
            plain[start:end], password=password, ends=not name["verb"] or _ends(plain, end)
        ):
            yield "password" if password else "credential", start, end


def _ends(plain: str, end: int) -> bool:
    return ends_there(plain, end) or _ENDS.match(plain, end) is not None


def _is_told(value: str, *, password: bool, ends: bool) -> bool:
    """Return whether ``value`` is a secret and no algorithm, product or name; ``ends``: the clause goes no further."""
    if value.lower().startswith(_ALGORITHMS):
        return False
    long = len(value) >= _LONG_CHARS or not value.isalnum()
    sure = (long and forms.is_random(value)) or forms.is_dense(value) or is_generated(value)
    return sure or (ends and (forms.is_hex_key(value) or (password and forms.is_told_password(value))))
