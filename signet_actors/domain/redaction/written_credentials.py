"""Find credentials that are written down without a name beside each value.

``creds: admin / …`` and lists of such pairs, ``root:…``, PINs, recovery codes, passphrases of plain words, Wi-Fi codes,
and base64 blobs beside a key word. Each scanner reads the text once.

Source: ZXing wiki "Barcode Contents" for Wi-Fi codes; Discord Developer Docs, "Reference" for bots; RFC 4648
section 4 for base64.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.generated import BARE_STOP, is_generated, whole_end
from signet_actors.domain.redaction.letter_pairs import groups_of_four
from signet_actors.domain.redaction.named_values import CLOSE, TAG, ends_there, secret_end, trimmed_end
from signet_actors.domain.redaction.secret_names import (
    ACCOUNTS,
    LANGUAGES,
    NAME_WORDS,
    PAIR_WORDS,
    RECOVERY_WORDS,
    SAID,
    WORDS_FOR_PHRASES,
    is_password_name,
    secret_names,
    words_of,
)
from signet_actors.domain.redaction.values import (
    BLOB_END,
    MAX_CHECKED_CHARS,
    SecretSpan,
    has_digit,
    has_placeholder,
    is_base64_blob,
    is_hex_key,
    is_id_or_place,
    is_irregular,
    is_passphrase,
    is_recovery_code,
    is_seed_phrase,
    is_signed_credential,
    is_signed_password,
    is_spoken_password,
    is_token,
    is_users_password,
    is_word_and_number,
    may_be_real_token,
    may_be_value,
)
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 1024
_SIGN: Final = r"(?:[:=\u2192\u2014(]|-{1,2}>|(?:is|are|ist|lautet|est|es|\u00e9|\u00e8|sind|sont|son)(?=\s))"
_OPEN: Final = rf"(?>(?:[*_~]{{1,3}}|{TAG}|[\s\"'`\u201e\u201c\u00ab\u300c]){{0,8}})"


def _pair_words(*, ascii_only: bool) -> str:
    return "|".join(map(re.escape, words_of(PAIR_WORDS, ascii_only=ascii_only))).replace("/", r"\s?/\s?")


def _any_of(words: str) -> str:
    return "|".join(map(re.escape, words_of(words, ascii_only=False))).replace(r"\ ", "[ _-]")


_OF: Final = (
    rf"(?P<of>[ ]\([^()\r\n]{{1,40}}\)|[ ](?:{SAID[False].joiners})[ ][^\s:=|()]{{1,30}}"
    rf"(?:[ ][^\s:=|()]{{1,30}}){{0,3}}?)?"
    rf"{CLOSE}\s{{0,3}}"
)
"""What may stand between a word and its sign: ``(GitHub)``, ``for the router``."""
_NO_SIGN: Final = r"(?(of)(?!)|(?<=\s))"
_PAIR = {
    only: compile_later(
        rf"(?<!\w)(?:{_pair_words(ascii_only=only)})(?:{_OF}(?P<sign>{_SIGN})|(?=\s)(?!\s(?:cred|detail))){_OPEN}"
    )
    for only in (True, False)
}
_DEFAULT_BEFORE = compile_later(r"(?<!\w)(?:default|initial|factory|standard)[ -](?:[a-z-]{1,20} )?\Z")
_SURE_PAIR: Final = compile_later(r"cred|zugangsdaten|anmeldedaten|logindaten|identifiant|inloggegevens")
"""These need no sign before ``admin:Winter2025``."""
_ACCOUNT = compile_later(
    rf"(?:{_any_of(ACCOUNTS)}|(?:user(?:name)?|(?:be)?nutzer|utilisateur|usuario):? [\w.@-]{{1,32}})"
    rf"[\"'`*]{{0,3}}(?:(?P<no_path>:|[ ]/[ ])|[ ]?/[ ]?)[\"'`*]{{0,3}}(?=[^\s/:])"
)
_INSIDE: Final = tuple("_./@:\\-")
"""After one of these, ``admin`` is a part of a path, an address or a name."""
_ACCOUNT_MARKS: Final = (
    *("user", "nutzer", "utilisateur", "usuario", "admin", "root", "guest", "gast", "pi:", "pi/", "pi /"),
)
_TO_LOG_IN = compile_later(
    r"(?<=\s)(?:to (?:log|sign)[ -]?(?:in|on)(?:to)?|zum (?:anmelden|einloggen|login)|pour (?:se connecter|entrer)"
    r"|para (?:entrar|acceder|iniciar|el login)|per (?:accedere|entrare))(?!\w)"
)
_LOGINS: Final = ("log", "sign", "anmeld", "meld", "conne", "sesi", "entra", "accede")
_PURPOSES: Final = ("to log", "to sign", "zum ", "pour se ", "pour entrer", "para ", "per acc", "per entr")
_PAIR_BEFORE = compile_later(
    r"(?:^|\s)[\"'`*]{0,3}(?P<user>[\w.@+-]{1,32})[\"'`*]{0,3}(?:(?P<apart> [/:] )| ?[/:] ?)[\"'`*]{0,3}"
    r"(?P<value>[^\s/:\"'`*]{6,64})[\"'`*]{0,3}\s\Z"
)
_VERSIONS = compile_later(r"[A-Za-z]{1,32}[\d.]{1,5}/[A-Za-z]{1,32}[\d.]{1,3}")
_LOGGED_IN = compile_later(
    r"(?<!\w)(?:(?:log(?:ged|ging|s)?|sign(?:ed|ing|s)?)[ -]?(?:in|on)(?:to)?(?: [\w.-]{1,30}){0,4}? (?:with|as|using)"
    r"|(?:log-?in|anmeld\w{1,6}|einlogg\w{1,3}|melde?n? (?:dich|sie sich)) mit|conne(?:ct|x)\w{1,5}(?:-\w{3,4})? avec"
    r"|(?:sesi(?:\u00f3|o\u0301?)n|entra\w{0,3}|accede\w{0,2}) con)"
    r" (?:user(?:name)? )?[\"'`*]{0,3}(?P<user>[\w+-]{1,64}|[\w.+-]{1,64}@[\w.-]{1,64})[\"'`*]{0,3}"
    r"(?: ?[/:] ?|(?P<apart> (?:and|with|und|mit|et|avec|y|con|e) ))[\"'`*]{0,3}"
    r"(?P<value>[^\s/:\"'`*]{6,64})(?![/:\w])(?> an\b)?"
)
_USER = compile_later(
    r"[ \t]{0,16}(?:[-*+\u2022][ \t]{1,3}|\d{1,2}[.)][ \t]{1,3})?[\"'`*_]{0,3}[^\s\"'`*:/|,;=]{1,64}[\"'`*]{0,3}"
    r"(?:(?P<glued>:(?=\S))|[ \t]{0,3}(?://|[:/|]|->|\u2192)[ \t]{0,3}"
    r"|[ \t]{0,3}(?P<loose>[,;]|(?<=\s)(?:and|und|et|y|e)(?=\s)|(?<=\s))[ \t]{0,3})"
    r"[\"'`*_]{0,3}"
)
_LINE_END = compile_later(r"[^\r\n]{0,200}(?:\r?\n|$)")
_PASSWORDS = {
    only: "|".join(map(re.escape, filter(is_password_name, secret_names(ascii_only=only)))) for only in (True, False)
}
_PASSWORD_NAMED = {
    only: compile_later(rf"(?:(?<![a-z])|(?=pass))(?:{names})(?![a-rt-z])|\.login\(")
    for only, names in _PASSWORDS.items()
}
"""The name of a password, not as the end of a word, or a call that logs in."""
_SAYS: Final = (
    r"(?:\s?(?:[:=\u2014\u2192(]|-{1,2}>|=>)|['\u2019]s(?:\snow)?(?=\s)"
    r"|\s(?:is|was|ist|lautet|est|es|\u00e9|\u00e8)(?:\s(?:now|jetzt|maintenant|ahora))?:?(?=\s))"
)
_BESIDE: Final = r"[\s\"'`*<\u201e\u201c\u00ab]{0,6}"
_PAT = compile_later(
    r"pat(?<!\wpat)(?<![a-z0-9]-pat)s?(?!\w)(?:\s(?:for|of|on|in|from|to|f\u00fcr|pour|para)\s[^\s:=]{1,30}(?:\s[^\s:=]{1,30}){0,2}?)?"
    rf"[\"'`*_)\]]{{0,4}}(?:{_SAYS}|,?(?=\s)){_BESIDE}(?P<value>[a-z0-9+/=._~-]{{20,256}})"
)
"""A personal access token without a form of its own, as Azure DevOps, Jira and Bitbucket have issued them."""
_DONE: Final = (
    r"leaked|exposed|compromised|stolen|rotated|revoked|changed|reset|renewed|updated|replaced|regenerated|reissued|recreated"
    r"|committed|pushed|published|posted|printed|logged|lost|expired|invalid(?:ated)?|disabled|wrong|rejected|blocked|ge\u00e4ndert"
    r"|geleakt|zur\u00fcckgesetzt|erneuert|rotiert|ersetzt|abgelaufen|chang\u00e9e?|r\u00e9initialis\u00e9e?|renouvel\u00e9e?|expir\u00e9e?"
    r"|cambiad[oa]|filtrad[oa]|rotad[oa]|caducad[oa]|renovad[oa]"
    r"|generated|created|issued|assigned|generiert|erzeugt|erstellt|vergeben|g\u00e9n\u00e9r\u00e9e?|cr\u00e9\u00e9e?|generad[oa]|cread[oa]"
)
_NEW: Final = (
    r"(?:new|old|former|current|updated|correct|right|actual|real|neue[sr]?|alte[sr]?|aktuelle[sr]?|nouveau|nouvelle|ancien(?:ne)?"
    r"|nuev[oa]|vieja?|anterior|nuov[oa]|nov[oa]|nieuwe)(?:\s(?:one|value|wert|valeur|valor))?"
)
_TOLD_LATER = compile_later(
    rf"(?<![\w-])(?:(?:{_DONE})(?:\s[^\s:=(]{{1,20}}){{0,4}}?|{_NEW}|it|neu|nouveau){_SAYS}{_BESIDE}"
    r"(?=[^\s]{6})(?P<value>[^\s\"'`*()<>]{1,255})"
)
"""What is said of a secret stands between its name and its value: ``The key was leaked: …``, ``… New one: …``."""
_NAMED = {only: compile_later(rf"(?<![a-z])(?:{NAME_WORDS[only]}|key|pat)s?(?!\w)") for only in (True, False)}
_BEFORE_TOLD: Final = 160
_LEAST_CHARS: Final = 6
_CONTEXT_CHARS: Final = 48
_VERB_LAST: Final = [each for each in LANGUAGES.values() if each.after]
_SAID_LAST = compile_later(
    rf"(?:{_any_of(' '.join(each.names for each in _VERB_LAST))})(?:\s[^\s:=|()]{{1,30}}){{0,3}}?\s[\"'`\u00ab\u201c]?"
    rf"(?P<value>[^\s\"'`\u00ab\u00bb\u201c\u201d\u2019]{{6,128}})[\"'`\u00bb\u201d\u2019\s]"
    rf"{{1,2}}(?:{_any_of(' '.join(each.after for each in _VERB_LAST))})(?!\w)"
)
"""The verb of some languages comes last: ``parola … dir``."""
_PIN = compile_later(
    r"(?<!\w)(?:(?P<sure>puk|passcode|(?:karten|handy)-pin|(?:my|our|card|sim|phone|bank|door|voicemail) pin"
    r"|t(?:\u00fc|u\u0308|ue)rcode"
    r"|digicode|(?:handy|iphone|tresor)[ -]?code|(?:door|gate|garage|keypad|lockbox|unlock)[ -]code)"
    r"|(?P<alone>pin)|pin[ -]?(?:code|number|nummer)|code pin"
    r"|geheimzahl|\u6697\u8a3c\u756a\u53f7|code de (?:la )?porte"
    r"|c(?:\u00f3|o\u0301?)digo de (?:la )?(?:puerta|entrada|alarma)"
    r"|(?:the|your|his|her|die|[dms]eine?|unsere?|mon|ton|son|le|mi|tu|su|el|meu|o|mio|il) (?:[a-z]{2,12} )?pin)"
    rf"{_OF}(?:(?P<sign>{_SIGN}|\u306f){_OPEN}|(?(sure){_NO_SIGN}|(?!)))"
    r"(?P<value>\d{4,8})(?![\w-]|[.:]\d| ?(?:[\u00b5cmk]?m|ms|px|m?[av]|[kmg]?hz|of|lines|times)\b)"
)
_HARDWARE = compile_later(
    r"\b(?:led|gpio|input|output|arduino|esp\w{0,6}|data|clock|header|connector|board|servo|sensor|digital|analog)\s\Z"
)
_PIN_MARKS: Final = ("pin", "puk", "rcode", "passcode", "digicode", "geheimzahl", "\u6697\u8a3c\u756a\u53f7", "digo de")
_DOORS: Final = ("door", "gate", "garage", "keypad", "lockbox", "unlock", "porte", "handy", "iphone", "tresor")
_NUMBER: Final = r"(?:\d{1,2}[.):]?[ ])?"
_BETWEEN_WORDS = compile_later(r"[^a-z]+")
_PASSPHRASE = compile_later(
    rf"(?:{_any_of(WORDS_FOR_PHRASES)}){_OF}"
    rf"(?:{_SIGN}|{_NO_SIGN}(?=[\"'`\u201e\u201c\u00ab]|[a-z]{{3,12}}-)){_OPEN}"
    rf"(?P<value>{_NUMBER}[a-z]{{3,12}}+(?:(?:-|,?\s{{1,4}}+){_NUMBER}[a-z]{{3,12}}+){{3,24}})"
    r"(?=[ ]?[\"'`\u201c\u201d\u00bb](?!\w)|[*_~.!]{0,4}(?:</[a-z]{1,10}>)?[ \t]{0,9}(?:[\r\n]|$))"
)
_OTP = compile_later(
    r"(?:(?:[th]?otp|2fa|mfa|a2f|authenticator(?:[ -]app)?|two-factor)"
    r"(?P<part>[ _-]?(?:seed|secret|(?:(?:setup|secret)[ _-]?)?key|schl(?:\u00fc|u\u0308?|ue)ssel|geheimnis))?"
    r"|(?P<word>cl(?:\u00e9|e\u0301?)|clave|secreto?|semilla|graine|chave|chiave|seed)"
    r" (?:(?:for|de|del|pour) )?(?:totp|otp|2fa|mfa|a2f))"
    rf"{_OF}(?:{_SIGN}|{_NO_SIGN}){_OPEN}"
    r"(?P<value>[a-z2-7]{4}(?:[ -][a-z2-7]{4}){3,15}|[a-z2-7]{16,128}={0,6})(?![\w=])"
)
_RECOVERY = compile_later(rf"(?:{_any_of(RECOVERY_WORDS)}){_OF}(?:(?P<sign>{_SIGN})|{_NO_SIGN}){_OPEN}")
_BEFORE_CODE: Final = r"[\s,;/|*\u2022`\"'+\[({-]{0,12}(?:\d{1,2}[.)] {1,3})?(?:(?:and|und|et|y|e|or) )?[`\"'*]{0,3}"
_GROUPS = compile_later(
    rf"{_BEFORE_CODE}(?P<code>(?=(?:[A-Z ]{{0,9}}\d){{2}})(?=[\d ]{{0,9}}[A-Z])[A-Z0-9]{{4,5}}"
    r"(?: [A-Z0-9]{4,5}){2,7})(?![\w@:=-]|[./]\w)"
)
"""A code in groups of capitals and digits: ``4F7K 9QXZ 2MNB``."""
_CODE = compile_later(
    rf"{_BEFORE_CODE}"
    r"(?P<code>\d{4} \d{4}|[a-z0-9]{4,12}(?:-[a-z0-9]{4,12}){0,7})(?![\w@:=-]|[./]\w)"
)
_RECOVERY_MARKS: Final = (
    *("recover", "rescue", "one-time", "sicherung", "sauvegarde", "backup", "back-up", "scratch", "emergenc", "2fa"),
    *("mfa", "wieder", "notfall", "ersatz", "secours", "r\xe9cup", "re\u0301cup", "recup", "respaldo", "herstel"),
)
_MAX_CODES: Final = 64
_BOT_TOKEN = compile_later(
    r"(?<![\w.-])([MNO][DTjz](?:[A-Za-z0-9]{21,22}|[A-Za-z0-9]{24}))\.[\w-]{6}\.[\w-]{27,60}(?![\w-])"
)
_WIFI = compile_later(r"wifi:(?:[^\n]{0,160};)?p:(?P<value>(?:\\.|[^;\\\n]){1,128})(?=;)")
_BLOB = compile_later(
    rf"(?<![a-z0-9])(?<!public[ _-])(?<!host[ _-])(?:auth|key|base64|b64|blob|basic){CLOSE}"
    rf"\s{{0,3}}[:=]{_OPEN}(?P<value>[a-z0-9+/]{{24,256}})"
)

_UUID_SERVICES: Final = (
    *(
        "pinecone",
        "heroku",
        "postmark",
        "coinmarketcap",
        "hubspot",
        "helius",
        "deepl",
        "vapi",
        "exa",
        "scaleway",
        "logz",
    ),
    *("loggly", "logentries", "companies house", "codacy", "bitrise", "weaviate", "meilisearch", "qdrant", "mailgun"),
    *("infracost", "newscatcher", "mixpanel", "vercel", "zerobounce"),
)
"""Services whose keys are UUIDs, or are given such."""
_UUID_MARKS: Final = tuple(each if len(each) > len("exa") else f"{each} " for each in _UUID_SERVICES)
_UUID_KEY = compile_later(
    rf"(?<![\w-])(?:(?:{'|'.join(_UUID_SERVICES)})(?:['\u2019]s)?\s(?:[a-z]{{2,10}}\s){{0,2}}?(?:api[_-]?)?(?:key|token)"
    rf"|(?:key|token)\sfor\s(?:the\s|our\s|my\s)?(?:{'|'.join(_UUID_SERVICES)}))"
    r"(?:\s(?:is|was|ist|est|es)(?:\snow)?|\s?(?:[:=,\u2192\u2013\u2014-]|->))?\s[\"'`*(]{0,3}"
    r"(?P<value>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?::(?:fx|[0-9a-f]{32}))?)(?![\w:-])"
)


def uuid_keys(folded: str) -> Iterator[SecretSpan]:
    """Yield the UUIDs that services issue as keys: ``pinecone key …``."""
    if not any(mark in folded for mark in _UUID_MARKS):
        return
    for found in windowed_matches(_UUID_KEY, folded, _REACH):
        if may_be_real_token(found["value"]):
            yield "credential", *found.span("value")


def pair_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the passwords of ``creds: user / password``, and of the lines of a list below such a word."""
    done = 0
    for pair in windowed_matches(_PAIR[folded.isascii()], folded, _REACH):
        at = pair.end()
        if pair.start() < done:
            continue
        default = _DEFAULT_BEFORE.search(folded, max(0, pair.start() - 40), pair.start()) is not None
        default = default and not plain[at : at + 1].isupper()  # GitHub / Office365
        while user := _USER.match(plain, at):
            start = user.end()
            stop = BARE_STOP.search(plain, start, start + _REACH)
            run = stop.start() if stop else min(len(plain), start + _REACH)
            end = secret_end(plain, start, run)
            while end > start and plain[end - 1] in "*_~":
                end -= 1
            until = trimmed_end(plain, start, end)
            value = plain[start : min(until, start + MAX_CHECKED_CHARS)]
            loose, blank = user["loose"] is not None or not pair["sign"], user["loose"] == ""
            done = start + len(value)  # further words in the same run are parts of this value
            sure = not loose or (
                user["loose"] is None
                and (
                    (default and "/" not in value)
                    or "@" in user[0]
                    or ((user["glued"] or pair[0].startswith("creds")) and _SURE_PAIR.match(pair[0]))
                )
            )
            if may_be_value(plain, start, start + len(value)) and (
                (not blank and (pair["sign"] or user["glued"]) and is_signed_credential(value))
                or (sure and is_signed_password(value))
                or (blank and is_users_password(plain[start:end] if pair["sign"] else value, path=True))
                or (
                    not (pair["sign"] or user["loose"] is not None)
                    and is_users_password(plain[start:end], path=not user["glued"])
                )
            ):
                yield "password", start, end
            line = _LINE_END.match(plain, start)
            if not pair["sign"] or blank or line is None or line.end() == len(plain):
                break
            at = line.end()
        done = max(done, at)


def account_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the passwords of ``admin / …`` and ``root:…``, and of ``… / … to log in``."""
    signed = "/" in plain or ":" in plain
    if signed and any(mark in folded for mark in _ACCOUNT_MARKS):
        for account in windowed_matches(_ACCOUNT, folded, _REACH):
            start = account.end()
            if (before := folded[account.start() - 1 : account.start()]).isalnum() or before in _INSIDE:
                continue
            stop = BARE_STOP.search(plain, start, start + _REACH)
            end = secret_end(plain, start, stop.start() if stop else min(len(plain), start + _REACH))
            while end > start and plain[end - 1] in "*_~":
                end -= 1
            if end - start <= MAX_CHECKED_CHARS and is_users_password(plain[start:end], path=not account["no_path"]):
                yield "password", start, end
    if signed and any(mark in folded for mark in _PURPOSES):
        for purpose in windowed_matches(_TO_LOG_IN, folded, _REACH):
            near = max(0, purpose.start() - 2 * _CONTEXT_CHARS)
            if pair := _PAIR_BEFORE.search(plain, near, purpose.start()):
                yield from _login_password(plain, pair, spoken=pair["apart"] is not None)
    if any(mark in folded for mark in _LOGINS):
        for pair in windowed_matches(_LOGGED_IN, folded, _REACH):
            if not pair["apart"]:
                yield from _login_password(plain, pair, spoken=ends_there(plain, pair.end()))
            elif is_users_password(plain[slice(*pair.span("value"))], path=True) or is_irregular(pair["value"]):
                yield "password", pair.start("value"), secret_end(plain, *pair.span("value"))


def _login_password(plain: str, pair: re.Match[str], *, spoken: bool) -> Iterator[SecretSpan]:
    """Yield the value after a user and a slash; ``spoken``: it is no part of a path or of a sentence."""
    start, end = pair.span("value")
    value = plain[start : trimmed_end(plain, start, end)]
    if is_hex_key(value) or (
        not is_id_or_place(value)
        and (
            is_users_password(plain[start:end], path=True)
            or is_irregular(value)
            or (
                (is_word_and_number(value) or (spoken and is_spoken_password(value)))
                and not (plain[pair.start("user")].isupper() and value[0].isupper())  # GitHub / Office365
                and not _VERSIONS.fullmatch(f"{pair['user']}/{value}")  # gpt4 / claude3
            )
        )
    ):
        yield "password", start, secret_end(plain, start, end)


def app_passwords(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield app passwords in groups of four letters and digits that are near the name of a password, or in a login."""
    for start, end in groups_of_four(plain):
        around = folded[max(0, start - 2 * _CONTEXT_CHARS) : start], folded[end : end + _CONTEXT_CHARS]
        if any(_PASSWORD_NAMED[each.isascii()].search(each) for each in around):
            yield "password", start, end


def access_tokens(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the personal access tokens of ``PAT: …``."""
    for found in windowed_matches(_PAT, folded, _REACH):
        start = found.start("value")
        end = trimmed_end(plain, start, found.end("value"))
        if is_token(plain[start:end]):
            yield "credential", start, end


def values_told_later(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the values of ``the token was leaked: …`` and ``the password was changed. The new one is …``."""
    for found in windowed_matches(_TOLD_LATER, folded, _REACH):
        start, end = found.span("value")
        end = secret_end(plain, start, whole_end(plain, start, end))
        value = plain[start : trimmed_end(plain, start, end)]
        sure = is_token(value) or is_generated(value)
        if end - start < _LEAST_CHARS:
            continue
        if not sure and not (is_users_password(plain[start:end], path=False) or is_signed_credential(value)):
            continue
        before = folded[max(0, found.start() - _BEFORE_TOLD) : found.start()]
        if _PASSWORD_NAMED[before.isascii()].search(before):
            yield "password", start, end
        elif sure and _NAMED[before.isascii()].search(before):
            yield "credential", start, end


def bot_tokens(plain: str) -> Iterator[SecretSpan]:
    """Yield the tokens of Discord bots, which begin with the number of the bot in base64."""
    for token in windowed_matches(_BOT_TOKEN, plain, _REACH):
        if binascii.a2b_base64(token[1] + "=" * (-len(token[1]) % 4)).isdigit():
            yield "discord-token", *token.span()


def other_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield passwords of Wi-Fi codes, and base64 blobs beside a key word."""
    if "wifi:" in folded:
        for found in windowed_matches(_WIFI, folded, _REACH):
            yield "password", *found.span("value")
    if any(verb in folded for each in _VERB_LAST for verb in each.after.split()):
        for found in windowed_matches(_SAID_LAST, folded, _REACH):
            if is_spoken_password(plain[slice(*found.span("value"))]):
                yield "password", *found.span("value")
    for found in windowed_matches(_BLOB, folded, _REACH):
        start, end = found.span("value")
        if (
            is_base64_blob(plain[start:end])
            and not has_placeholder(plain[start:end])
            and (rest := BLOB_END.match(plain, end))
        ):
            yield "credential", start, rest.end()


def codes(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield PINs, passphrases of plain words, recovery codes, and the secrets of one-time passwords."""
    coded = "code" in folded
    if any(mark in folded for mark in _PIN_MARKS) or (coded and any(door in folded for door in _DOORS)):
        for found in windowed_matches(_PIN, folded, _REACH):
            sign = found["sign"] or ""
            if _HARDWARE.search(folded, max(0, found.start() - 16), found.start()):
                continue
            named = not found["alone"] or sign.isalpha() or plain[found.start() : found.end("alone")] == "PIN"
            if named and (sign or ends_there(plain, found.end())):
                yield "password", *found.span("value")
    if "phrase" in folded or "frase" in folded or "mnemonic" in folded:
        for found in windowed_matches(_PASSPHRASE, folded, _REACH):
            start, end = found.span("value")
            while end > start and not _is_phrase(folded[start:end]):  # the lines below may be others
                end = max(start, folded.rfind("\n", start, end))
            if end > start:
                yield "password", start, end
    if any(mark in folded for mark in ("otp", "2fa", "mfa", "a2f", "authenticator", "two-factor")):
        for found in windowed_matches(_OTP, folded, _REACH):
            start, end = found.span("value")
            if has_digit(plain[start:end]) or (plain[start:end].isupper() and (found["part"] or found["word"])):
                yield "credential", start, end
    if (coded or "codi" in folded or "key" in folded or not folded.isascii()) and any(
        mark in folded for mark in _RECOVERY_MARKS
    ):
        for found in windowed_matches(_RECOVERY, folded, _REACH):
            yield from _recovery_codes(plain, folded, found)


def _is_phrase(written: str) -> bool:
    """Return whether words, on one line or below each other and perhaps numbered, are a passphrase or a seed phrase."""
    return is_seed_phrase(_BETWEEN_WORDS.sub(" ", written).strip()) or is_passphrase(written.replace("-", " "))


def _recovery_codes(plain: str, folded: str, name: re.Match[str]) -> Iterator[SecretSpan]:
    spans: list[tuple[int, int]] = []
    at = name.end()
    while len(spans) < _MAX_CODES and (code := _GROUPS.match(plain, at) or _CODE.match(folded, at)):
        alike = spans and "-" in code["code"] and len(code["code"]) == spans[-1][1] - spans[-1][0]
        if not (alike or is_recovery_code(code["code"])):
            break
        spans.append(code.span("code"))
        at = code.end()
    first = plain[slice(*spans[0])] if spans else ""
    alone = "-" in first and (name["sign"] or (ends_there(plain, at) and len(set(map(len, first.split("-")))) == 1))
    if len(spans) > 1 or alone or (spans and name["sign"] and ends_there(plain, at)):
        for span in spans:
            yield "credential", *span
