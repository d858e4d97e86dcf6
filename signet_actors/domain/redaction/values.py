"""Decide whether a piece of text is a secret, or only a placeholder, a reference or a word of prose."""

from __future__ import annotations

import binascii
import re
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.letter_pairs import has_random_letters, is_random_letters

SecretSpan = tuple[str, int, int]
"""A secret in a text: kind, start and end."""

MAX_CHECKED_CHARS: Final = 256
"""Number of characters of a value that are checked."""

_DIGIT = compile_later(r"[0-9]")
_LOWER = compile_later(r"[a-z]")
_UPPER = compile_later(r"[A-Z]")
_SPECIAL = compile_later(r"[^A-Za-z0-9_./\-]")
_LETTER_OR_DIGIT = compile_later(r"[^\W_]")
_WORD_MARK = compile_later(r"[-_/]")
_TOKEN_LIKE = compile_later(r"[A-Za-z0-9+/=_\-]{20,256}+")

_PLACEHOLDER = compile_later(
    r"(?:x{3,256}+|\*{3,256}+|\.{3,256}+|-{3,256}+|pass(?:word|wort|wd|phrase|code)?|kennwort|pwd|secret|token"
    r"|changeme|change[-_]me|example|sample|redacted|hidden|masked|encrypted|required|optional|string|value|text|empty"
    r"|1password|none|null|nil|true|false|undefined|todo|tbd|here|test|user|username|root|admin|foo|bar|baz|file|env|prompt|stdin"
    r"|flag|option|argument|parameter"
    r"|your(?:[-_ ]|$).{0,256}|my[-_ ].{0,256})[.,;:!?)\]}]{0,4}",
    re.IGNORECASE,
)
_PLACEHOLDER_PARTS: Final = (
    *("example", "placeholder", "redacted", "dummy", "changeme", "***", "....", "<", "\u2026", "${", "{{", "%("),
)
"""In lower case. Searched one by one, because a single pattern of them takes twenty times as long."""
_YOUR = compile_later(r"(?<![a-z])your[-_]")
_STAND_IN = compile_later(
    r"(?:(?:new|old|your|my|the|an?|db|user|root|admin|app|some|strong|secure|long|random|current|very|plain|put|enter|type|insert)"
    r"[-_ ]?){0,4}(?:pass(?:words?|wd|wort|phrase)?|pwd|pw|secret|kennwort|mot[-_ ]?de[-_ ]?passe"
    r"|contrase(?:\u00f1|n\u0303|n)a|clave|senha)"
    r"(?:[-_ ]?(?:goes[-_ ])?(?:here|value|string|text|hash))?|(?-i:[A-Z]{2,40}(?:_[A-Z]{1,40}){1,6})",
    re.IGNORECASE,
)
"""What stands for the password of a statement: ``new_password``, ``PASSWORD_HERE``."""
_IN_STATEMENT = compile_later(
    r"\A(?:[:&]{1,2}\w{1,64}|\?|%s|%\(\w{1,64}\)s)\Z|[#%$]?\{[^{}]{0,64}\}|[\"'`]\s{0,9}(?:[+.&]|\|\|)\s|\s[+.&]\s{0,9}[\"'`]"
)
"""A parameter of a statement, or a string that a program puts together."""
_REFERENCE = compile_later(
    r"(?:arn|urn):.{0,256}"
    r"|\d{4}-\d\d-\d\d(?:[T_].{0,40})?"
    r"|(?>(?:[\w.@-]{1,99}+/){1,20})[\w@-]{0,99}(?:\.[\w@-]{1,99}){0,9}\.[a-z]\w{0,4}"
    r"|[\w.-]{1,99}\.(?:pem|key|crt|cer|p12|pfx|jks|asc|gpg|pub|json|ya?ml|toml|ini|env|txt|md|py|[jt]sx?|go|rs|sh)"
    r"|[a-z_.-]{1,99}="
    r"|(?:ctrl|control|alt|option|shift|cmd|command|meta|super|win|fn)[+].{0,40}",
    re.IGNORECASE,
)
"""A resource name, a date, a file, the next name in a list, or a key combination."""
_AFTER_SYMBOL = compile_later(
    r"\$[A-Z_][A-Z0-9_]{0,256}|\$[A-Za-z_]{0,256}+\d?[A-Za-z_]{0,256}+|\$\w{1,256}+[-:/.\[>(].{0,256}"  # $NAME, $a->b
    r"|@[^A-Z]{0,256}|@.{0,256}/.{0,256}|#[0-9A-Fa-f]{1,256}+|[@#$]\d{1,256}+"  # @file, @scope/Name, #1234, $1
)
"""A reference that begins with a symbol."""
_PHRASE = compile_later(r"[A-Za-z0-9]{1,40}+(?>(?: [A-Za-z0-9]{1,40}+){2,24})")
_WORD_WITH_DIGITS = compile_later(r"[A-Za-z]{1,20}+\d{1,9}+[A-Za-z]{1,20}+\d{1,9}+[A-Za-z]{0,20}+")  # Tr0ub4dor
_TEXT_ABOUT_PASSWORDS: Final = """
    a admin again always an and any are argon as at bcrypt be been before but by can cannot change changed char
    character characters check config confirm confirmation current default digit digits do does email empty
    encrypted enter env exactly expired expires failed fails field file flow for forgot form from generated has hash
    hashed hashes have if in incorrect input into invalid is it its key label least length letter letters link
    logged login long mail match max maximum may min minimum mismatch missing most must my never new no not number
    numbers of off old on only optional or our page passphrase password passwords pick plain plaintext policy prompt
    provide random read repeat required reset rotate rotated rules salt salted secret see sent set short should so
    special store stored string strong symbol symbols text than that the then this to token too type update updated
    use used user users value variable vault was weak were when will with without word words wrong you your
    bitte eingeben falsch haben ist kennwort mindestens muss nicht passwort wiederholen zeichen
    contenir doit est merci moins obligatoire saisir votre
    contener debe es incorrecta letras menos obligatoria por repita tener tu
"""
_CAPITALS_AND_NUMBER = compile_later(r"[A-Z][a-z]{2,11}(?:[-_.][A-Z][a-z]{2,11}){1,4}[-_.]\d{2,6}")
_LEAST_SIGNS: Final = 3
_WORDS_ABOUT_PASSWORDS: Final = frozenset(_TEXT_ABOUT_PASSWORDS.split())
"""Words of messages about passwords. A passphrase in lower case contains none of them."""
_MOST_OF_PASSWORD: Final = 4
_MOST_OF_VALUE: Final = 8
_SIGN_IN_WORD = compile_later(r'[^\W\d][^\w\s]?[,;"|][^\W\d]|\d[,;"|][^\W\d]|[^\W\d][,;"|]\d')
"""A sign that separates cells or ends them, between letters: neither a number nor a clause."""
_WORD_END = compile_later(r"[\s,;\"|]+")
_SEED_WORDS: Final = (12, 15, 18, 21, 24)
_BASE64 = compile_later(r"[A-Za-z0-9+/]{40}")
_CASE_CHANGE: Final = compile_later("[a-z][A-Z]")
_TWO_CAPITALS: Final = compile_later("[A-Z][A-Z]")
_LEAST_CASE_CHANGES: Final = 2
_SAME_CHARACTER = compile_later(r"([A-Za-z0-9])\1{5}")
_ALGORITHM = compile_later(
    r"(?:sha|md|base|utf|aes|des|hs|rs|es|ps|ed|rsa|argon|bcrypt|scrypt|pbkdf|hmac|oauth|http|tls|fido)[-_]?\d[-\w]{0,20}"
    r"|v?\d{1,9}(?:\.\d{1,9}){1,6}(?:[-+][\w.]{0,20})?|v\d{1,4}(?:(?:alpha|beta|rc)\d{1,2}|[-+][\w.]{0,20})?",
    re.IGNORECASE,
)
_WORDS_AND_NUMBER = compile_later(r"[A-Za-z]{1,256}+\d[-\w]{0,256}+")  # OAuth2Bearer
_WORDS_AND_INDEX = compile_later(r"[A-Za-z]{1,40}+(?>(?:[-_./][A-Za-z]{1,40}+){0,12})[-_./]?\d{1,6}")  # cache-server-12
_COUNTED_OR_NUMBERED = compile_later(
    r"\d[\d.,]{0,20}+[+%]?|\d{1,3}+-?[A-Za-z]{1,20}+(?>(?:-[A-Za-z]{1,20}+){0,4})"  # 90,000, 10-digit, 16chars
    r"|[A-Za-z]{1,40}+(?>(?:[-_./][A-Za-z]{1,40}+){0,12})[-_./]\d{1,6}"  # OPS-1234, cache-server-12
    r"|(?:\d{1,6}(?:\.\d{1,3})?(?:[mun]?s|[mhdwy]|[kmgt]i?b?)){1,5}"  # 24h30m, 512Mi
    r"|(?:level|step|page|chapter|section|part|rule|line|team|user|server|node|room|phase|python|postgres|ubuntu|debian"
    r"|windows|office|staging|production|prod|cluster|region|zone|host|mysql|redis|release|field|column|option|input|button|param|n?varchar|char|u?int|float)\d{1,6}",
    re.IGNORECASE,
)
"""A quantity, or a noun with its number."""
_NAME_IN_CODE = compile_later(
    r"[A-Z][A-Z0-9]{0,99}+(?>(?:_[A-Z0-9]{1,99}+){1,20})"  # GITHUB_TOKEN_2
    r"|[A-Za-z][a-z]{0,99}+\d?(?>(?:_[a-z]{1,99}+\d?){1,20})"  # openai_api_key2
    r"|[A-Za-z_]\w{0,99}+(?>(?:(?:\.|::|->|\?\.)[A-Za-z_]\w{0,99}+){1,20})"  # settings.api_key, process.env.KEY2
    r"|[A-Za-z_][\w.:]{0,99}+[(\[].{0,256}"  # os.environ["KEY2"], token_hex(32)
)


_WORD_AND_NUMBER = compile_later(r"[A-Z][a-z]{2,19}+\d{2,6}|[A-Za-z]{3,20}+\d{3,6}")  # Winter2025
_DIGIT_FOR_LETTER = compile_later(r"[a-z]\d{1,3}(?=[a-z])")  # h0rse
_KEY_CHARS: Final = 20
_ALL_KINDS: Final = 4
_ULID = compile_later(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_SYMBOL = compile_later(r"[!$%^&+?]")
_SYMBOL_OF_NO_PATH = compile_later(r"[!@$%^&*+]")
_PART_OF_PATH = compile_later(r"[:/.=(){}\[\]#]|@v?\d")
_BASE64_CHARS: Final = 16
_BASE64_TEXT = compile_later(r"[A-Za-z0-9+/]{16,4096}+={0,2}")
_CHANGES = compile_later(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_ID_OR_PLACE = compile_later(
    r"[0-9a-f-]{7,64}|0x[0-9a-f]{1,40}"  # a commit, a digest, a UUID or an address
    r"|[\w./\\-]{1,200}\.[a-z]\w{0,4}[:#].{0,256}"  # login.tsx:42
    r"|[\w.+-]{1,99}@[\w-]{1,99}(?:\.[\w-]{1,99}){1,5}"
    r"|[\w.-]{1,99}:\d{1,5}|[$\w.-]{1,99}=.{1,256}",
    re.IGNORECASE,
)

_HEX = compile_later(r"(?=\d*[a-f])[0-9a-f]{16,64}")
_HEX_KEY_CHARS: Final = (16, 32, 48, 64)
_PARAMETER_CHARS: Final = 32

BLOB_END = compile_later(
    r"[A-Za-z0-9+/]*+={0,2}"
    r"(?>(?:(?<=[A-Za-z0-9+/]{40})[ \t]{0,16}\r?\n[ \t]{0,16}"
    r"(?:[A-Za-z0-9+/]{16,512}+={0,2}|[A-Za-z0-9+/]{2,15}+={1,2})(?=\s|$)){0,400})"
)
"""The rest of a blob, also on the lines that it is wrapped into."""


def has_digit(text: str) -> bool:
    """Return whether ``text`` contains an ASCII digit."""
    return _DIGIT.search(text) is not None


def may_be_real_token(token: str) -> bool:
    """Return whether ``token``, which has a provider's format, may have been issued by that provider.

    False for a documented example, a mask, a repeated character, or a token of letters that may be words.
    """
    return (
        (_DIGIT.search(token) is not None or _are_random_letters(token))
        and not has_placeholder(token)
        and "0123456789abcdef" not in token
        and _SAME_CHARACTER.search(token) is None
    )


def _are_random_letters(token: str) -> bool:
    """Return whether capitals and small letters change as they do in no words, written together or not."""
    changes, pairs = len(_CASE_CHANGE.findall(token)), len(_TWO_CAPITALS.findall(token))
    if changes < _LEAST_CASE_CHANGES:
        return False
    return pairs >= _LEAST_CASE_CHANGES or (5 if pairs else 4) * changes >= len(token)


def has_placeholder(value: str) -> bool:
    """Return whether part of ``value`` marks it as a placeholder."""
    folded = value.lower()
    for part in _PLACEHOLDER_PARTS:
        if part in folded:
            return True
    return "xxxxx" in value or "XXXXX" in value or ("your" in folded and _YOUR.search(folded) is not None)


def is_value(value: str) -> bool:
    """Return whether the text after ``password=`` is a value: no placeholder, reference, path or plain word."""
    # Cheap checks first: a text may contain very many names without a real value.
    shaped = _DIGIT.search(value) is not None or _kinds(value) >= 3
    shaped = shaped or is_base64_text(value) or is_random_letters(value)
    return len(value) >= 6 and shaped and is_literal_secret(value)


def is_literal_secret(value: str) -> bool:
    """Return whether text in the position of a secret is one, even a plain word, but no placeholder or reference."""
    return (
        len(value) >= 4
        and (value[0] not in "/~.$<{%([@&*#" or _is_base64_key(value))
        and not value.startswith("--")
        and "://" not in value
        and not has_placeholder(value)
        and _PLACEHOLDER.fullmatch(value) is None
        and _REFERENCE.fullmatch(value) is None
        and (_NAME_IN_CODE.fullmatch(value) is None or _has_random_part(value))
        and not (len(value) < 20 and _ALGORITHM.fullmatch(value))
        and not (len(value) < 8 and value.isdecimal())
        and _LETTER_OR_DIGIT.search(value) is not None
    )


def _has_random_part(value: str) -> bool:
    """Return whether a part between dots is random, as in the tokens of bots: ``MTk4NjIyNDgz.Cl2FMQ.ZnCjm1XVW7``."""
    return any(is_irregular(part) and len(_CHANGES.findall(part)) * 4 >= len(part) for part in value.split("."))


def _is_base64_key(value: str) -> bool:
    """Return whether a value that begins with a slash is a 40-character key and not a path."""
    return len(value) == 40 and _BASE64.fullmatch(value) is not None and _kinds(value) >= 3


def is_option_value(value: str) -> bool:
    """Return whether a password option's value is a real one, not a name in capitals that stands for the value."""
    return is_literal_secret(value) and not (value.isupper() and value.isalpha()) and not value.startswith("-")


def is_strong_value(value: str) -> bool:
    """Return whether ``value`` can hardly be anything but a secret; used after ``:``, which may be a colon in prose."""
    if is_base64_text(value):
        return True
    if not is_value(value) or _WORDS_AND_INDEX.fullmatch(value):
        return False
    if is_random_letters(value):
        return True
    if len(value) >= 20 and has_digit(value) and _TOKEN_LIKE.fullmatch(value):
        return len(_WORD_MARK.findall(value)) <= 4 or _kinds(value) >= 3
    return len(value) >= 8 and _kinds(value) >= 3 and _WORDS_AND_NUMBER.fullmatch(value) is None


def is_irregular(value: str) -> bool:
    """Return whether letters and digits change as they do in no word, name or number: ``HBloC8595PFK``."""
    return len(value) >= 10 and value.isalnum() and has_digit(value) and len(_CHANGES.findall(value)) >= 3


def is_mixed(text: str) -> bool:
    """Return whether ``text`` has capitals, small letters and digits, as base64 has and words have not."""
    return all(kind.search(text) for kind in (_LOWER, _UPPER, _DIGIT))


def is_unmistakable(value: str) -> bool:
    """Return whether ``value``, beside a name without a sign, is a secret, and not an id, a file or an address."""
    if is_id_or_place(value) or not is_value(value):
        return False
    return (
        is_irregular(value)
        or is_base64_text(value)
        or is_random_letters(value)
        or (
            is_strong_value(value)
            and _LOWER.search(value) is not None
            and (len(_CHANGES.findall(value)) >= 3 or _SPECIAL.search(value) is not None)
        )
    )


def is_random(value: str) -> bool:
    """Return whether ``value`` can be no name, path or sentence, so that beside the word *key* it is a secret."""
    if ":" in value or not is_unmistakable(value):
        return False
    dense = len(_CHANGES.findall(value)) * 4 >= len(value)
    return (
        dense
        or is_random_letters(value)
        or (_SYMBOL_OF_NO_PATH.search(value) is not None and not _PART_OF_PATH.search(value))
    )


def is_app_password(value: str) -> bool:
    """Return whether ``value`` is letters that a program drew at random, also in groups: ``otli efva kqot ckrt``."""
    return is_random_letters("".join(value.split()))


def is_no_name(value: str) -> bool:
    """Return whether a recognised secret is one in other texts, too, where it may be a part of a name: no fixture."""
    return is_random(value) or is_app_password(value) or (_kinds(value) == _ALL_KINDS and is_strong_value(value))


def is_random_key(value: str) -> bool:
    """Return whether ``value``, which may be the key of a row as well, is a random one and as long as a credential."""
    return len(value) >= _KEY_CHARS and is_random(value) and _ULID.fullmatch(value) is None


def is_token(value: str) -> bool:
    """Return whether ``value`` can be nothing but a key or a token, however little is said of it."""
    return (
        is_random(value)
        or is_hex_key(value)
        or (len(value) >= _KEY_CHARS and is_irregular(value) and not is_id_or_place(value) and is_value(value))
    )


def is_id_or_place(value: str) -> bool:
    """Return whether ``value`` is a digest, a UUID, a line of a file, an address or a host with its port."""
    return _ID_OR_PLACE.fullmatch(value) is not None


def is_hex_key(value: str) -> bool:
    """Return whether ``value`` is a key in hexadecimal digits, as ``openssl rand -hex`` makes it; a commit has 40."""
    return len(value) in _HEX_KEY_CHARS and _HEX.fullmatch(value) is not None and is_value(value)


def is_signed_credential(value: str) -> bool:
    """Return whether ``value``, beside a name, is a secret, also in hexadecimal digits."""
    return is_unmistakable(value) or is_hex_key(value)


def is_signed_password(value: str) -> bool:
    """Return whether a password after an arrow, a dash or the bar of a table is one, and not the id of a row."""
    is_known = is_hex_key(value) or _CAPITALS_AND_NUMBER.fullmatch(value) is not None
    return is_spoken_password(value) and (is_known or not is_id_or_place(value))


def is_base64_text(value: str) -> bool:
    """Return whether ``value`` is base64 of readable text: of ``user:password``, of JSON, of a key file."""
    if len(value) < _BASE64_CHARS or len(value) % 4 or _BASE64_TEXT.fullmatch(value) is None:
        return False
    decoded = binascii.a2b_base64(value)
    return decoded.isascii() and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in decoded)


def is_base64_blob(value: str) -> bool:
    """Return whether ``value`` is base64 of text or of binary data, not a path or a name."""
    irregular = _kinds(value) >= 3 and has_digit(value) and len(_CHANGES.findall(value)) * 6 >= len(value)
    return irregular or is_base64_text(value)


def is_spoken_password(value: str) -> bool:
    """Return whether a word after ``password:``, before other words, is a value and not the first word of prose.

    ``hunter2`` and ``Sunny-Day-2024`` are; ``10-digit``, ``OPS-1234``, ``cache-server-12`` and ``ask`` are not.
    """
    if is_strong_value(value) or _CAPITALS_AND_NUMBER.fullmatch(value) is not None:
        return True
    return is_value(value) and _DIGIT.search(value) is not None and _COUNTED_OR_NUMBERED.fullmatch(value) is None


def is_word_and_number(value: str) -> bool:
    """Return whether ``value`` is a word and a number, as many passwords are before their ``!``: ``Winter2025``."""
    return (
        _WORD_AND_NUMBER.fullmatch(value) is not None
        and _COUNTED_OR_NUMBERED.fullmatch(value) is None
        and is_value(value)
    )


def is_told_password(value: str) -> bool:
    """Return whether a word that another clause tells of a password is one, and no product, version or name.

    ``xK93mmQp``, ``d3pl0y-now`` and ``MyDogRex2019`` are; ``OAuth2Proxy``, ``Angular17`` and ``db-host-12`` are not.
    """
    checked = value.rstrip("!?")
    if _PART_OF_PATH.search(value) or not is_signed_password(checked):
        return False
    if _WORDS_AND_INDEX.fullmatch(checked):
        return is_word_and_number(checked) and (checked != value or checked[-3:].isdecimal())
    return (
        len(_DIGIT_FOR_LETTER.findall(checked)) >= 2
        or (is_mixed(checked) and len(_CHANGES.findall(checked)) >= 3)
        or _SYMBOL_OF_NO_PATH.search(checked) is not None
    )


def is_set_password(value: str) -> bool:
    """Return whether what a statement sets as the password is one, even a word, and no parameter or placeholder."""
    if value[:1] in {"@", "#", "$"}:
        return is_symbol_password(value)
    return (
        len(value) >= 4
        and not has_placeholder(value)
        and _PLACEHOLDER.fullmatch(value) is None
        and _STAND_IN.fullmatch(value) is None
        and _IN_STATEMENT.search(value) is None
        and _LETTER_OR_DIGIT.search(value) is not None
    )


def is_quoted_aside(value: str) -> bool:
    """Return whether a quoted word in brackets behind the name of a password is one, and no rule: ``min-8-chars``."""
    return is_signed_password(value) and not _are_about_passwords(value.split("-"))


def is_dense(value: str) -> bool:
    """Return whether capitals, small letters and digits change at every second character: ``xK93mmQp``."""
    dense = value.isalnum() and is_mixed(value) and 2 * len(_CHANGES.findall(value)) >= len(value) >= 8
    return dense and is_signed_password(value)


def is_random_parameter(value: str) -> bool:
    """Return whether the value of ``?key=`` is a random one, not the key of an object: hexadecimal digits, or mixed."""
    if len(value) >= _PARAMETER_CHARS and is_hex_key(value):
        return may_be_real_token(value)
    words = _PART_OF_PATH.search(value) is not None or _ULID.fullmatch(value) is not None
    return len(value) >= _BASE64_CHARS and not words and is_mixed(value) and is_random(value)


def is_users_password(value: str, *, path: bool) -> bool:
    """Return whether ``value`` after ``admin:``, or after ``admin/`` (``path``), is no part of a path or a name.

    The ``!`` after a word and a number is that of a password: ``Winter2025!``.
    """
    checked = value.rstrip("!?")
    if not is_value(checked) or is_id_or_place(checked) or _PART_OF_PATH.search(value):
        return False
    if checked != value and is_word_and_number(checked):
        return True
    if len(checked) >= 8 and _kinds(checked) == 4 and _SYMBOL_OF_NO_PATH.search(checked):
        return True
    if path:
        return len(checked) >= 10 and checked.isalnum() and len(_DIGIT_FOR_LETTER.findall(checked)) >= 2
    return is_irregular(checked) or (len(checked) >= 8 and _kinds(checked) >= 3 and _SYMBOL.search(checked) is not None)


def is_recovery_code(code: str) -> bool:
    """Return whether a word in a list of recovery codes is one: six digits and more, or mixed groups."""
    if (number := code.replace(" ", "")).isdecimal():
        return 6 <= len(number) <= 12
    return (
        len(_DIGIT.findall(code)) >= 2
        and ("-" in code or len(_CHANGES.findall(code)) >= 2)
        and is_value(code)
        and _COUNTED_OR_NUMBERED.fullmatch(code) is None
    )


def is_symbol_password(value: str) -> bool:
    """Return whether a value that begins with a symbol is a password, not a variable, file, number or color."""
    return value[0] in "@#$" and is_value(value[1:]) and _AFTER_SYMBOL.fullmatch(value) is None


def is_passphrase(value: str) -> bool:
    """Return whether quoted words are a passphrase and not a message about passwords."""
    words = value.split(" ")
    if is_password_with_blanks(words):
        return True
    if _PHRASE.fullmatch(value) is None:
        return False
    if any(_WORD_WITH_DIGITS.fullmatch(word) and not word.islower() for word in words):
        return True
    return (
        value.islower()
        and _WORDS_ABOUT_PASSWORDS.isdisjoint(words)
        and (words[-1].isdecimal() or (len(words) >= 4 and not has_digit(value)))
    )


def is_password_with_blanks(words: list[str]) -> bool:
    """Return whether a few words are a password: one of them is no word, and none is of a message about passwords."""
    return (
        len(words) <= _MOST_OF_PASSWORD
        and not _are_about_passwords(words)
        and any(has_digit(word) and is_spoken_password(word) and not is_id_or_place(word) for word in words)
    )


def is_value_with_blanks(value: str) -> bool:
    """Return whether quoted words after ``API_TOKEN=`` are its value: letters and digits, and no text about it."""
    words = value.split(" ")
    return is_passphrase(value) or (
        len(words) <= _MOST_OF_VALUE
        and _kinds(value) >= 3
        and has_digit(value)
        and is_literal_secret(value)
        and not _are_about_passwords(words)
    )


def is_password_of_parts(value: str) -> bool:
    """Return whether a quoted cell is a password by the sign within its words: ``pa,ss word``, ``a"b;c``."""
    words = _WORD_END.split(value.lower())
    about = sum(word in _WORDS_ABOUT_PASSWORDS for word in words)
    return _SIGN_IN_WORD.search(value) is not None and is_literal_secret(value) and 2 * about < len(words)


def _are_about_passwords(words: list[str]) -> bool:
    return not _WORDS_ABOUT_PASSWORDS.isdisjoint(word.lower().rstrip(".,:;!?") for word in words)


def is_seed_phrase(value: str) -> bool:
    """Return whether words are the seed phrase of a wallet: as many, and as long, as BIP-39 has them."""
    words = value.split(" ")
    return len(words) in _SEED_WORDS and all(
        3 <= len(word) <= 8 and word.isalpha() and word.islower() for word in words
    )


def may_be_value(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]``, or any part of it, has the characters that a value needs."""
    if _DIGIT.search(text, start, end) or text.count("-", start, end) >= _LEAST_SIGNS:
        return True
    if len(_SPECIAL.findall(text, start, end)) >= _LEAST_SIGNS:
        return True
    if _UPPER.search(text, start, end) is None or _LOWER.search(text, start, end) is None:
        return has_random_letters(text, start, end)
    return (
        end - start >= _BASE64_CHARS
        or has_random_letters(text, start, end)
        or _SPECIAL.search(text, start, end) is not None
    )


def is_url_password(value: str) -> bool:
    """Return whether the password part of a URL is a password, not a placeholder or a port."""
    return (
        not value.startswith(("[", "<", "$", "{", "*"))
        and (value[:1] != "%" or _CHARACTER_CODE.match(value) is not None)
        and _PLACEHOLDER.fullmatch(value) is None
        and not has_placeholder(value)
        and _PORT.match(value) is None
    )


_CHARACTER_CODE = compile_later("%[2-7][0-9A-Fa-f]")
_PORT = compile_later(r"\d{1,5}[?#,;]")


def _kinds(value: str) -> int:
    """Return the number of character classes used: lower case, upper case, digits, others."""
    return sum(kind.search(value) is not None for kind in (_LOWER, _UPPER, _DIGIT, _SPECIAL))
