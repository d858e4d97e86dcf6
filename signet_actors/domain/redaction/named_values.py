"""Find values next to a name: ``password = …``, ``"apiKey": "…"``, ``<password>…</password>``, ``Passwort: …``.

Every step starts at a literal word and reads a bounded stretch, or a run that is not read twice, so scanning takes
linear time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import generated
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.literals import TYPE, WRAPPED
from signet_actors.domain.redaction.secret_names import ADVERBS, NAME_WORDS, SAID, Said, is_password_name, matches_at
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 1024
TAG: Final = r"(?:</?[a-z][a-z0-9]{0,9}(?:\s[^<>\n]{0,40})?>|\[/?[bi]\]|&nbsp;)"
_NAMELY: Final = (
    rf"(?:{ADVERBS}|i\.e\.|namely|(?:which|that)\sis|also|n(?:\u00e4|a\u0308)mlich|das\sist|das\shei(?:\u00df|ss)t|c'est-\u00e0-dire"
    r"|soit|es\sdecir|o\ssea)"
)
_RELATIVES: Final = (
    "that|which|i|we|you|they|he|she|it|our|the|my|used|needed|required|stored|given|generated|issued|created|currently"
    "|den|die|das|welche[nrs]?|wir|ich|que|qu|lo|che"
)
"""What begins a clause between a name and its verb: ``the API key we use for CI is …``."""
_EMPHASIS: Final = "[*_~]{1,3}"
_ENDS: Final = r"\]\u201c\u201d\u2019\u00bb\u300d\u300f\u3011"
CLOSE: Final = rf"(?>(?:\\{{0,8}}+[\"'`]|&quot;|&\#3[49];|{_EMPHASIS}|{TAG}|[{_ENDS}]){{0,4}})"
"""What may stand between a name and its sign: quotation marks, emphasis, the ends of tags and brackets."""

_COMMENT: Final = r"\#[ ][^\n]{0,80}\n[ \t]{0,20}(?=[^\s:=]{6,256}[ \t]{0,9}(?:\n|\Z))"
"""What is noted beside a name: the value stands alone on the next line."""
_YAML_PROPERTY: Final = r"(?<=\s)(?:&(?!(?:mut|dyn|str|self)\b)[\w.-]{1,64}|!![a-z]{1,16})(?=\s)"
"""The anchor of a value in YAML, by which others refer to it, or its type."""


def _name_pattern(words: str, said: Said) -> str:
    return rf"""(?P<name>{words})(?:{said.owns})?(?:(?P<plural>s\b)|[0-9]{{0,2}}+)
        (?>(?:[\s_-]?(?:confirm(?:ation)?|repeat|again|verify)\b)?)(?P<s>['\u2019]s(?:\s(?:{ADVERBS}))?(?=\s))?
        (?>(?:[\s_-](?:blob|data|string|value|base|base64|b64|(?:env(?:ironment)?\s)?variable|env\svar)\b){{0,2}})
        (?P<owner>[ ]\([^()\r\n]{{1,40}}\)(?=[*_]{{0,3}}\s?[:=])
          | [ ]\((?:[^()\r\n\d]{{1,40}}|[^()\s]{{1,5}})\)(?=[*_]{{0,3}}[ ](?:{said.verbs})[ :])
          | [ ]for(?:[ ]key)?[ ](?:'[^'\n]{{1,99}}'|"[^"\n]{{1,99}}")(?=:)
          | (?<!pass)(?:[ ](?:root|admin|ssh))?[ ](?:{said.joiners})[ ][^\s:=|()]{{1,30}}
             (?:[ ][^\s:=|()]{{1,30}}){{0,3}}?
          | (?<!pass)(?!,[ ]{_NAMELY}[ ]),?[ ](?:{said.joiners}|(?P<clause>{_RELATIVES}))
             (?>(?:['\u2019][^\s:=|(),;]{{1,30}})?)(?:[ ][^\s:=|(),;]{{1,30}}){{0,8}}?(?:,?(?=[ ](?:{said.verbs})[ :])
              |(?(clause),?(?=[ ]\([^\s()]{{6,64}}\))|(?!))|(?(clause)(?=,[ ][^\s,]{{6,64}},[ ])|(?!)))
          | (?:[ ][^\s:=|()]{{1,30}}){{1,4}}?(?=[ ](?:{said.free})[ ]) | [\u0e00-\u0e7f]{{1,40}}?(?=(?:{said.glued})))?
        (?P<whose>
            [ ](?:(?:f\u00fcr|for|of|vom|de|du|del|der)[ ](?:(?:das|den|the|la|le|el)[ ])?)?
            (?:wi-?fi|wlan|root|admin|sudo|ssh|router|routeur)\b)?
        {CLOSE}(?>(?:[ ]?\[(?:\d{{0,4}}|none|\*{{4,20}}\w{{0,4}})\])?)
        (?>(?:[ ]\([^()\r\n]{{1,80}}\)(?=\s?[:=]))?)(?>(?:{TYPE})?)
        \s{{0,40}}+
        (?:(?P<sign>(?:\?\??|\|\|)=|\?\?(?=\s?["'`])|:-(?=[^\s}}]{{4,256}}\}})|:=|=>|={{2}}>|={{1,3}}+|!==?|:(?!:)|(?<=\s)value=|(?<=["'])/?>|-{{1,2}}>
            | [\u2190-\u21ff\u27f0-\u27ff\u2794-\u27be\u25b6\u25ba]|[._]{{3,40}}|\u2026
            | (?<!\s)/(?=[^\s/=:]{{6,64}}(?:[\s,;)]|$))
            | (?<=\s)[\u2013\u2022\u00b7-]{{1,2}}(?=\s)|\u2014|[|\u2502]{{1,2}}
            | ,?\s{{0,20}}+["'`]?(?:parameter)?value["'`]?\s{{0,4}}[:=]|--(?:body|value)[ =]|\((?=["'`])
            | \{{(?:[^{{}}]{{0,200}}\s)?default\s{{0,4}}=
            | (?<=["'`]),(?:[^()"'`\n]{{0,60}}?\bdefault\s?=)?(?=\s?["'`])
            | ,\swith(?:\s=>|:)(?=\s["'`]) | <{{3}}(?=\s?["']?[^\s:"']{{4,64}}["'\s])
            | (?<=["'`])\)(?:\.(?:fill|type|send_?keys|setvalue|val)\((?=["'`])|\s(?:or|\|\||\?\?)(?=\s["'`]))
            | (?<![\s"'`]),(?>(?:\s{_NAMELY},?)?)(?=\s[^\s,]{{4,64}}(?:,(?:\s|\Z)|\.?\n|\.?\Z))
            | (?<=\s)[(\[](?:(?:{ADVERBS}|value|default):?(?=\s))?|[\u3010\u300c\u300e\u300a]
            | {said.glued})
          | (?:(?<=\s)|,\s(?=c'est\s))(?P<said>(?:
              (?:(?:{ADVERBS})\s)?(?:{said.verbs})(?:(?>,?)\s(?:{ADVERBS})(?>,?)(?=\s)){{0,2}}
            | (?(owner)(?:to|with)(?!\s[^\s:=]{{1,30}}[:=])|(?:to|as|with)))(?:\s?:)?)(?=\s)
          | (?(owner)(?!)|(?<=[\s>])))
        :?(?>(?:{_EMPHASIS}(?=\s))?)\s{{0,40}}+(?>(?:{_COMMENT})?){WRAPPED}
        (?>(?:(?:{TAG}|\|(?=[ ])|[-+*\u2022](?=[ ][^\s-])|[`~]{{3}}[\w-]{{0,12}}(?=\s)|[|>][-+]?(?=\s{{0,9}}\n)|``(?!`)
            | {_YAML_PROPERTY}
            | [\u201e\u201c\u201a\u2018\u00ab\u2039\u300c\u300e\u3010])
          \s{{0,40}}+){{0,4}})
        (?P<mark>(?>(?:{_EMPHASIS}(?=[^\s*_~]))?))"""


_NAME: Final = {only: compile_later(_name_pattern(words, SAID[only]), re.VERBOSE) for only, words in NAME_WORDS.items()}
_OPEN_QUOTE = compile_later(r"""(?P<escapes>\\{0,8}+)(?P<mark>["'`])(?:(?P=mark){2}(?=[^\s"'`]))?|&quot;|&\#3[49];""")
_STOPS: Final = {mark: compile_later(rf"\s|(?<!\\){mark}") for mark in "\"'`"}
_ESCAPED_STOPS: Final = {mark: compile_later(rf"\s|{mark}") for mark in "\"'`"}
_ENTITY_STOP = compile_later(r"\s|&(?:quot|\#3[49]);")
_END_OF_LINE = compile_later(r"[.,;)\]}\"'`*_~]{0,5}(?:</[a-z0-9]{1,10}>){0,3}[ \t|]{0,8}(?:[\r\n]|$)")
_VALUE_ENDS = compile_later(
    r"[,;)\]}\u201c-\u201e\u00bb\u3000-\u9fff\uac00-\ud7a3]|</|[*_~]{1,3}[\s.,;]|[ \t]{1,8}(?:[(|/\u2013\u2014-]"
    r"|(?:for|on|at|in|to|of|from|and|or|with|as|if|when|until|but|user|username|login|host|db"
    r"|f\u00fcr|auf|bei|im|zum|zur|und|oder|mit|works|geht|funktioniert|marche|funciona|\u3067\u3059|\uc785\ub2c8\ub2e4)\b"
    r"|[a-z][\w-]{0,20}\s?[:=])",
    re.IGNORECASE,
)
"""What comes after ``password: hunter2``, and not after the first noun of a sentence about passwords."""
_PUBLIC_NAMES: Final = (
    *("idempotency", "confirm", "confirmation", "page", "continuation", "cursor", "fencing", "cancel", "next"),
)
_OWNERS: Final = (
    *("auth", "access", "api", "client", "refresh", "bearer", "bot", "user", "db", "root", "admin", "app", "my"),
    *("ssh", "ftp", "smtp", "mail", "pg", "store", "identity", "bind", "csrf", "xsrf"),
)
"""Words that may directly precede a name in lower case: ``authtoken``, ``clientsecret``."""
_SQL_BEFORE: Final = ("with ", "encrypted ", "set ")
_SQL_ACCOUNT_BEFORE = compile_later(
    r"(?:(?:create|alter|replace|set)\s+(?:user|role|profile)\s+(?:if\s+(?:not\s+)?exists\s+)?"
    r"|(?:connect|grant\s[^;\n]{1,24})\s+to\s+|\b(?:to|user|role)\s+(?=['\"`]|[^\s@]{1,32}@)|['\"`],\s*)"
    r"(?!(?:accounts?|entries|objects?|records?|rows?)\s)"
    r"['\"`]?[\w$.%*-]{1,32}['\"`]?(?:@['\"`]?[\w.%:*-]{0,32}['\"`]?)?\s+\Z"
)
"""The account of a statement, ``create user anna`` or ``to 'anna'@'%'``, and not the noun of a sentence."""
_COMPARISONS: Final = ("==", "===", "!=", "!==")
_ASSIGNMENTS: Final = frozenset(
    {":=", "=>", "=", "value=", ">", "/>", ":-", "?=", "??", "??=", "||=", "<<<", *_COMPARISONS}
)
_EMPHASES: Final = ("***", "**", "__", "*", "_", "~~")
_APPOSITIONS: Final = (",", "(")
_IS_SAID = compile_later(
    r"[,)]{1,2}+\s(?:is|was|has|had|will|must|should|shall|can|may|might|needs?|expires?d?|changes?d?|changed|works?|worked"
    r"|opens?|unlocks?|protects?|applies|gets|got|belongs|stopped|stays|remains|no longer|never"
    r"|ist|war|hat|wird|wurde|muss|soll|sollte|darf|kann|gilt|l(?:\u00e4|a\u0308)uft|funktioniert|geht|bleibt|geh(?:\u00f6|o\u0308)rt"
    r"|steht|est|\u00e9tait|e\u0301tait|a|sera|doit|devra|peut|expire|marche|fonctionne|reste|change|ne"
    r"|es|era|fue|ha|ser\u00e1|debe|puede|caduca|vence|funciona|cambia|sigue|queda|no"
    r"|va|deve|scade|funziona)\b"
)
"""What is said of a password whose value stands between commas or in brackets: ``the password, hunter2, must …``."""
_BRACKETS: Final = ("(", "[", "\u3010", "\u300c", "\u300e", "\u300a")
_ASIDE_BEFORE = compile_later(r"(?<![^\s\"'`])[(\[][^()\[\]\n]{0,40}\Z")
_ASIDE_END = compile_later(r"[\"'`]{0,3}[)\],;]")
"""Around a password in brackets: ``ssh … (pw "…")``."""
_DEFINE_BEFORE = compile_later(r"#define\s{1,8}\w{0,40}\Z")
_OPTION_BEFORE = compile_later(r"(?:^|[\s\"'`])--[a-z0-9-]{0,40}$")
_WORDS_OF_PROSE: Final = ("pass",)
"""In capitals and alone, these are names only before ``=`` or a quote: ``PASS: TestLogin2`` is a test result."""
_PASS_OWNERS: Final = (
    *("root ", "admin ", "user ", "db ", "ftp ", "ssh ", "wifi ", "wi-fi ", "wlan ", "sudo ", "mail ", "router "),
    "server ",
)
_IN_PATH: Final = ("/", "-", "_", ".")
_BETWEEN_TWO: Final = (", ", "/ ", " and ", " und ")
_WIFI: Final = ("wifi", "wi-fi", "wlan", "wpa", "wpa2", "wpa3", "network", "hotspot")
_SHORT_NAMES: Final = ("pw", "psk", "mdp")
"""Without a sign, these are in no sentence about passwords."""
_ACCOUNT_BEFORE = compile_later(
    r"(?<!\w)(?:(?:sudo|root|admin|wi-?fi|wlan|ssh|ftp|smtp|vpn|nas|pi|zip|pdf|master|router|database|db|server|user|login|e?mail|e-mail)"
    r"(?:'s)?[ -](?:(?:with|mit|avec|con)\s)?"
    r"|root|sudo|wlan|(?:user(?:name)?|ssh|login|account|ssid|wi-?fi|wlan|benutzer(?:name)?|nutzer|konto|utilisateur|identifiant"
    r"|compte|usuario|cuenta|utente"
    r"|(?:(?:log|sign)\w{0,4}[ -]?in(?:to)?(?:\s[\w.-]{1,20}){0,2}"
    r"|anmeld\w{1,6}|melde?n?(?:\s\w{2,4}){0,2})\s(?:as|with|using|als))"
    r"(?:\s?[:=]|\s(?:is|ist|est|es))?\s[^\s:=]{1,32}[\s,;/]{1,3}(?:(?:and|with|using|und|mit|et|avec|y|con|e)\s)?"
    r"(?:the\s|dem\s)?"
    r"|[\w.+-]{1,64}@[\w-]{1,32}(?:\.[\w-]{1,32}){1,4}[\s,;/]{1,3}(?:(?:and|with|und|mit|et|avec|y|con|e)\s)?"
    r"(?:the\s|dem\s)?"
    r"|(?:us(?:e[ds]?|ing)|try|enter|type|with|nimm|nutzen?|benutzen?|gib|mit|utilise[rz]?|essaie|avec|usa|prueba|con)\s"
    r"(?:(?:the|my|our|old|new|das|dem|le|el|la)\s){0,2})\Z"
)
"""Whose the password is, or that it is used, before its name and no sign: ``sudo password``, ``try password``."""
_MAX_PARAMETER_CHARS: Final = 4096
_PHRASES: Final = {mark: compile_later(rf"[^\r\n\\{mark}]{{8,128}}+(?=\\{{0,8}}+{mark})") for mark in "\"'`"}
_PARAMETER_BEFORE = compile_later(r"[?&][\w.-]{0,40}$")
_NAME_SIGNS: Final = "-_."
_TRAILING: Final = ".,:\\"
_TRAILING_MARKS: Final = _TRAILING + "!?"
"""``!`` and ``?`` after a value may end the sentence or belong to the password: not checked, but replaced with it."""
_MAX_TRAILING: Final = 8
_CONTEXT_CHARS: Final = 48
_COMPOUND_CHARS: Final = 8
"""Names of this length are also found at the end of a word: ``Nutzerkennwort``."""
_MIN_CREDENTIAL_DIGITS: Final = 16
"""Minimum length of a credential that consists only of digits. A shorter number is a limit or a size."""

_REPLACED = compile_later(r"(?:replac|swap|chang|updat|overwrit|ersetz|remplac|reemplaz|sostitu)[^\n.]{0,40}\Z")
_PART_OF_CODE = compile_later(r"\[\d{1,4}\]|some\s?\($|value[\"']?\s{0,4}:")
"""A token of a lexer or of a design, rather than one that opens something, may stand here."""

_CLOSING_TAG = compile_later(
    r"<\\?/(?:[\w.-]{1,32}+:)?(?P<name>[\w.-]{0,64}?(?P<password>pass(?:w(?:or[dt]|d)|phrase|code)|pwd|kennwort)"
    r"|[\w.-]{0,64}?(?:secret|token|api[_-]?key|accesskey|privatekey|secretkey|credential))>"
)
_CDATA: Final = "<![cdata["


def named_values(plain: str, folded: str, names: Sequence[int], *, joined: bool) -> Iterator[forms.SecretSpan]:
    """Yield kind, start and end of each value next to one of ``names`` in ``plain``; ``folded`` is it in lower case.

    After ``name =``, and in quotes, a value must look like a value. After ``:`` or ``is``, which prose also uses, an
    unquoted value must be unmistakable, unless it is a password at the end of its line; after ``password:`` also a word
    of letters and digits before a comma or a word such as ``for``. Arrows, dashes and the bars of a table are read like
    ``:``. In brackets, and without any sign, only what cannot be a word or an id is a value. Marks of emphasis and tags
    around the name, the sign and the value mean nothing. In a text whose lines were ``joined``, a word without a sign
    may have stood on the next line, and is no value.
    """
    run_start = run_end = 0  # the last run of characters that may be an unquoted value
    skip_until = 0  # no value begins before this position
    for name in matches_at(_NAME[folded.isascii()], folded, names):
        begin, start = name.start(), name.end()
        if start < skip_until:
            continue
        sign, said = name["sign"], name["said"] or (None if name["sign"] else name["s"])
        dashed = folded.find("--", max(0, begin - _CONTEXT_CHARS), begin) >= 0
        opening = None if generated.is_quote_of_value(plain, start) else _OPEN_QUOTE.match(plain, start)
        if opening is None and not run_start <= start < run_end:
            run_start, run_end = start, generated.bare_end(plain, start)
            if not dashed and not forms.may_be_value(plain, run_start, trimmed_end(plain, run_start, run_end)):
                skip_until = run_end  # no part of the run has the characters that a value needs
                continue
        before = folded[max(0, begin - _CONTEXT_CHARS) : begin]
        word = name["name"]
        option = (
            dashed
            and not name["plural"]
            and sign in {None, "="}
            and not said
            and _OPTION_BEFORE.search(before) is not None
        )
        identified = word.startswith("identified")
        statement = not (sign or said) and (
            before.endswith(_SQL_BEFORE)
            or (opening is not None and "#define" in before and _DEFINE_BEFORE.search(before) is not None)
            or (identified and (plain.startswith("IDENTIFIED", begin) or bool(_SQL_ACCOUNT_BEFORE.search(before))))
        )
        if _is_not_secret_name(plain, begin, before, word):
            continue
        password = is_password_name(word) or (word.startswith("key") and before.rstrip(" _-").endswith(_WIFI))
        if sign == "/" and (not password or before.endswith(_IN_PATH)):
            continue
        kind = "password" if password else "credential"
        assigned = sign in _ASSIGNMENTS or (sign is not None and sign.startswith(")"))
        bare = not (sign or said or option or statement)
        if bare and opening is None and (joined or _is_on_next_line(plain, begin, start)):
            continue
        if joined and name["clause"]:
            continue  # of another line
        aside = bare and password and _is_aside(plain, before, start)
        if said == "with" and _REPLACED.search(before) is None:
            continue  # ``hash the password with …``
        if said == "to" and " from " in (name["owner"] or ""):
            continue  # ``move the password from … to …``
        prose = (
            word in _WORDS_OF_PROSE
            and not before[-1:].isalnum()
            and before[-1:] not in {"_", "-", "."}
            and (
                plain.startswith("PASS", begin)
                or not (
                    before.endswith(_PASS_OWNERS)
                    or (before.endswith(_BETWEEN_TWO) and _ACCOUNT_BEFORE.search(before) is not None)
                )
            )
        )
        if (
            prose
            and not (assigned or option or (sign and opening is not None))
            and ((bare and not aside) or plain.startswith("PASS", begin))
        ):
            continue
        ends_line = False
        weak = bare or (sign is not None and not assigned and sign != ":")
        if opening is not None:
            start = opening.end()
            quoted_end = _quoted_end(plain, start, opening)
            if quoted_end is None:
                setting = (
                    before[-1:].isalnum() or before[-1:] in {"_", "-"} or plain[begin : name.end("name")].isupper()
                )
                accept = (
                    forms.is_value_with_blanks
                    if setting
                    else forms.is_passphrase
                    if password
                    else _has_password_among_words
                )
                if (
                    not (weak or name["plural"])
                    and sign not in _COMPARISONS
                    and (end := _phrase_end(plain, start, opening))
                    and accept(plain[start:end])
                ):
                    skip_until = end
                    yield kind, start, end
                continue
            end = quoted_end
            while end - start > 1 and quoted_end - end < _MAX_TRAILING and plain[end - 1] == "\\":
                end -= 1
            until = end
            accept = forms.is_option_value if option or statement else forms.is_value
            if sign in _COMPARISONS:
                accept = _is_compared_value
            elif not password and _PART_OF_CODE.search(name[0]):
                accept = _is_strong_or_irregular
            elif aside:
                accept = forms.is_quoted_aside
            elif bare and identified:
                accept = forms.is_signed_password
            elif bare and password and _is_of_account(name, before):
                accept = _is_quoted_of_account
            elif bare:
                accept = _is_signed_or_dense if password else forms.is_signed_credential
            elif weak:
                accept = forms.is_signed_password if password else forms.is_signed_credential
            elif said and not password:
                accept = _is_strong_or_irregular
        elif sign in _COMPARISONS:
            continue
        else:
            end = run_end
            if sign and _PARAMETER_BEFORE.search(before):
                at = plain.find("&", start, min(end, start + _MAX_PARAMETER_CHARS))
                end = at if at >= 0 else end
            start, end, until = _without_marks(plain, begin, start, end, name["mark"])
            ends_line = password and _ends_line(plain, end)
            spoken = password and (until < end or _VALUE_ENDS.match(plain, end) is not None)
            end = secret_end(plain, start, end)
            if option:
                accept = (
                    forms.is_option_value
                    if assigned and (password or not _is_name(plain[start:end]))
                    else forms.is_value
                )
            elif assigned:
                accept = forms.is_value
            elif sign == "/":
                accept = functools.partial(forms.is_users_password, path=True)
                until = end
            elif (bare or statement) and (
                (until < end and password and forms.is_word_and_number(plain[start:until]))
                or ((spoken or ends_line) and _is_of_account(name, before))
            ):
                accept = forms.is_signed_password
            elif sign in _APPOSITIONS:
                accept = (
                    forms.is_spoken_password
                    if password and _IS_SAID.match(folded, run_end)
                    else forms.is_signed_credential
                )
                until = end
            elif bare and password and (spoken or ends_line):
                accept = _is_told_in_brackets if aside else _is_signed_or_dense
            elif bare or statement or sign in _BRACKETS or (prose and said):
                accept = forms.is_signed_credential
            elif sign == ":" and ends_line and not prose:
                accept = forms.is_value
            elif weak:
                accept = forms.is_signed_password if spoken or ends_line else forms.is_signed_credential
                until = end
            elif spoken or ends_line:
                accept = forms.is_spoken_password
                until = end
            else:
                accept = _is_strong_or_irregular
        value = plain[start : min(until, start + forms.MAX_CHECKED_CHARS)]
        if ("/" in value and before.rstrip().endswith("/")) or (
            said and said == name["s"] and forms.is_id_or_place(value) and "=" in value
        ):
            continue  # ``user/password: admin/…``, a pair; ``the token's sub=…``
        if (
            value
            and not (_is_number(value) and (prose or (not password and len(value) < _MIN_CREDENTIAL_DIGITS)))
            and (
                accept(value)
                or (
                    password and generated.is_generated_at(plain, start, start + len(value), quoted=opening is not None)
                )
                or (
                    password
                    and (assigned or opening or (ends_line and not bare))
                    and sign not in _COMPARISONS
                    and (forms.is_symbol_password(value) or generated.is_joined_passphrase(value))
                )
            )
        ):
            if value[-1] not in ",;" and forms.is_base64_blob(value) and (rest := forms.BLOB_END.match(plain, end)):
                end = rest.end()
            skip_until = end
            yield kind, start, end
        elif opening is None:
            # The values of further names in the same run are parts of this one, and are not checked again.
            skip_until = min(end, start + forms.MAX_CHECKED_CHARS)


def _is_on_next_line(plain: str, name: int, value: int) -> bool:
    """Return whether the line of ``name``, which is no heading, ends before ``value``."""
    if plain.find("\n", name, value) < 0:
        return False
    line = plain.rfind("\n", max(0, name - _CONTEXT_CHARS), name) + 1
    heading = plain.startswith("#", line) and (line > 0 or name < _CONTEXT_CHARS)
    return not heading and plain[name - 1 : name] not in {"*", "_", ">"} and plain.find("</", name, value) < 0


def _without_marks(plain: str, name: int, start: int, end: int, mark: str) -> tuple[int, int, int]:
    """Return start and end of an unquoted value without the emphasis around it, and the end of what is checked.

    The emphasis may have begun before the value or before the ``name``.
    """
    until = trimmed_end(plain, start, end)
    for around in (mark, *_EMPHASES):
        if around and plain.endswith(around, start, until) and (around == mark or plain.endswith(around, 0, name)):
            end = until - len(around)
            return start, end, trimmed_end(plain, start, end)
    if len(mark) == 1:
        start -= 1  # not closed: a part of the value
    return start, end, until


def tagged_values(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
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
        value = plain[start : min(end, start + forms.MAX_CHECKED_CHARS)]
        accept = forms.is_literal_secret if tag["password"] else forms.is_value
        if " " in value:
            accept = forms.is_passphrase if tag["password"] else forms.is_value_with_blanks
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
    if before[-1].isalnum() and name.isascii() and len(name) < _COMPOUND_CHARS and not name.startswith("passw"):
        camel = plain[begin - 1].islower() and plain[begin].isupper()
        if not camel and not before.endswith(_OWNERS):
            return True
    return not is_password_name(name) and before.rstrip("_- ").endswith(_PUBLIC_NAMES)


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
        return end if end - start >= forms.MAX_CHECKED_CHARS else None
    return stop.start()


def _phrase_end(plain: str, start: int, opening: re.Match[str]) -> int | None:
    """Return the end of the words up to the closing quotation mark, or None if there is none."""
    words = _PHRASES[opening["mark"]].match(plain, start) if opening["mark"] else None
    return words.end() if words is not None else None


def _has_password_among_words(value: str) -> bool:
    return forms.is_password_with_blanks(value.split(" "))


def _is_of_account(name: re.Match[str], before: str) -> bool:
    """Return whether the password is that of an account or a network: ``sudo password``, ``user anna, password``."""
    return bool(name["whose"]) or name["name"] in _SHORT_NAMES or _ACCOUNT_BEFORE.search(before) is not None


def _is_name(value: str) -> bool:
    return all(each.isalnum() or each in _NAME_SIGNS for each in value)


def ends_there(plain: str, end: int) -> bool:
    """Return whether the line ends at ``end``, or what follows is no sentence about the value before."""
    return _ends_line(plain, end) or _VALUE_ENDS.match(plain, end) is not None


def _is_aside(plain: str, before: str, start: int) -> bool:
    """Return whether a name without a sign and its value at ``start`` are in brackets: ``(pw "…")``."""
    stop = generated.BARE_STOP.search(plain, start + 1)
    return (
        stop is not None
        and _ASIDE_BEFORE.search(before) is not None
        and _ASIDE_END.match(plain, stop.start()) is not None
    )


def _is_signed_or_dense(value: str) -> bool:
    return forms.is_signed_credential(value) or forms.is_dense(value)


def _is_quoted_of_account(value: str) -> bool:
    """Return whether it is a password; words and numbers with hyphens (``min-8-chars``) may be a name."""
    return forms.is_signed_password(value) and ("-" not in value or _is_signed_or_dense(value))


def _is_told_in_brackets(value: str) -> bool:
    return forms.is_signed_credential(value) or forms.is_told_password(value)


def _is_strong_or_irregular(value: str) -> bool:
    return forms.is_strong_value(value) or (forms.is_value(value) and forms.is_irregular(value))


def _is_compared_value(value: str) -> bool:
    """Return whether a literal compared with a token is a token itself, not the name of a token type."""
    return forms.is_strong_value(value) and (len(value) >= 20 or not value.isidentifier())


def _is_number(value: str) -> bool:
    return value.replace("_", "").isdecimal()


def _ends_line(plain: str, end: int) -> bool:
    return _END_OF_LINE.match(plain, end) is not None
