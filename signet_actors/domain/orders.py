"""Whether a text is an order in form: what is to be done or left, always; not what was, is said or is supposed.

Only such a text may become a constraint of every session if nobody named it a rule. English, German, French, Spanish.

Source: docs/compatibility.md "Type inference".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later

MAX_SENTENCES: Final = 3
"""The sentences of a text that are looked at: an order comes first."""
MAX_CHARS: Final = 300
"""The beginning of a sentence that is looked at."""

_SENTENCE: Final = compile_later(r"[^\n.!?\u3002]+(?:\.\w[^\n.!?\u3002]*)*[.!?\u3002]*")
_LEAD: Final = compile_later(
    r"(?:[\s>*\u2022\"'\u201c\u201e\u00ab\u00a1-]|\d{1,2}[.)])*"
    r"(?:(?:please|bitte|svp|por favor|rule|regel|r\u00e8gle|regla|important|wichtig|importante?|policy|convention"
    r"|reminder|note|remember|and|but|so|und|et|y)\b[\s:,-]*){0,3}"
    r"(?:(?:in|on|at|for|when|whenever|before|after|during|with|if|unless|bei|f\u00fcr|im|in|vor|nach|wenn|dans|pour|avant|apr\u00e8s|quand|si"
    r"|en|para|antes|despu\u00e9s|cuando|with|inside|as)\b[^,:.!?]{1,80}[,:]\s*)?",
    re.IGNORECASE,
)
# English. After never and always a verb as it is in the dictionary; not: never liked, always fails, never again.
_ENGLISH: Final = compile_later(
    r"(?:never|always)\s+(?:(?:ever|directly|first|only|just|also|explicitly|manually|automatically|silently)\s+)*([a-z][a-z-]*)\b(.*)"
    r"|(?:do not|don't|don\u2019t)\s+(?:(?:ever|directly|just)\s+)*([a-z][a-z-]*)\b(.*)",
    re.IGNORECASE,
)
_NO_VERB: Final = compile_later(
    r".*(?:[^e]ed|[^sui]s|ing|ly)|again|mind|ever|before|after|the|an?|in|on|at|of|to|as|is|was|were|been|being|had|has|did|went|saw"
    r"|got|gotten|made|said|took|taken|came|knew|known|thought|felt|found|gave|given|told|left|kept|began|brought|wrote|written"
    r"|ran|slept|ate|met|seen|done|gone|lost|won|broke|broken|built|bought|caught|chose|fell|forgot|heard|held|led|paid|sent|slow"
    r"|spent|spoke|stood|taught|understood|woke|wore|wanna|gonna|i|we|you|he|she|it|they|this|that|my|our|his|her|a|good|bad"
    r"|happy|late|early|there|here|happier|better|worse|more|less|so|too|quite|much|many|any|no|not|nothing|nobody|enough|fun|sunny"
    r"|busy|tired|wrong|right|green|red|broken|down|up|out|late|know|think|care|remember|recall|believe|understand|like|love|want",
    re.IGNORECASE,
)
_VERB_IN_ED: Final = compile_later(
    r"embed|shed|shred|wed|need|feed|seed|speed|proceed|exceed|succeed|bleed|pass|process|press|access|discuss|focus|address"
    r"|express|cross|miss|guess|compress|bypass|assess|apply|rely|reply|supply|comply|bring|ring|string|ping|sing|sling",
    re.IGNORECASE,
)
_MUST: Final = compile_later(
    r"(.{0,200}?)\b(?:must(?:n't|n\u2019t)?|shall|(?:should|may|can)(?=\s+(?:never|always|only)\b))\s+(?:not\s+|never\s+|always\s+|only\s+|also\s+)*([a-z][a-z-]*)",
    re.IGNORECASE,
)
_SUPPOSED: Final = compile_later(
    r"(?:^|[\s,])(?:he|she|it|this|that|there|i|they|who|someone|somebody)\s*$", re.IGNORECASE
)
_REPORTED: Final = compile_later(
    r"\b(?:said|says|thinks?|thought|told|believes?|believed|claims?|claimed|wrote|asked|asks|wonders?|wondered|guess|suppose|because"
    r"|since|why|whether|felt|feels|noticed|learned|discovered|realized|seemed|seems|yesterday|last\s+(?:week|month|year|night))\b",
    re.IGNORECASE,
)
# German: never and always before an infinitive at the end, an imperative before them, or must and may not.
_GERMAN: Final = compile_later(
    r"(?:(?:nie|niemals|immer|stets|nicht|kein(?:e[nmrs]?)?|auf keinen fall|unter keinen umst\u00e4nden)\s+"
    r"(?!(?:wieder|noch|wenn|mehr|so|war|ist|hat|habe|hatte|haben|wird|wurde|ahnung|zeit|lust|schlecht|gut)\b)"
    r"(?:[^.!?]{0,200}\s)?(?!\w{0,60}ge\w+t\b|verstanden|gefunden|gesehen|gewesen|bekommen|gegangen|geworden|vergangen|gelesen|geschrieben"
    r"|genommen|gesprochen|gelaufen|gefallen|begriffen|bestanden)\w{1,60}(?:en|ern|eln|tun|sein)[.!\s]*$"
    r"|(?!heute|habe|hatte|hatten|wurde|w\u00fcrde|k\u00f6nnte|sollte|wollte|musste|h\u00e4tte|w\u00e4re|ohne|eine|meine|alle|viele|diese|mochte|konnte"
    r"|durfte|dachte|machte|sagte|lernte|wusste|gestern)(?!\w{0,60}(?:[^aie]ete|[gkflmnrbs]te)\b)"
    r"\w{1,60}(?:e|en\s+sie)\s+(?:bitte\s+)?(?:nie|niemals|immer|stets|nicht|kein(?:e[nmrs]?)?)\b"
    r"|(?!.{0,200}\b(?:haben|gewesen|geworden|gehabt|sagte|meinte|glaubt|weil|gestern)\b)(?!(?:er|es|das|ich|sie(?=\s+muss))\s+m)[^.!?]{0,200}\b"
    r"(?:muss|m\u00fcssen|darf|d\u00fcrfen|darfst|musst)\b\s+\S)",
    re.IGNORECASE,
)
_FRENCH: Final = compile_later(
    r"(?:(?:ne\s+(?:jamais|pas|plus|rien)|jamais|toujours)\s+(?:(?:rien|directement|d'abord)\s+)?"
    r"(?!(?:encore|hier|prendre part)\b)"
    r"(?:l'|les?\s|la\s|y\s|en\s)?\w{1,60}(?:er|ir|re)\b"
    r"|(?:ne\s+|n['\u2019])\w{1,60}(?:ez|ons)\s+(?:jamais|pas|plus|rien)\b"
    r"|(?:ne\s+(?!marche|fonctionne|passe|arrive|d\u00e9marre|compile)|n['\u2019](?!arrive|a\b|est\b))\w+es?\s+jamais\b"
    r"|(?!avez|allez|assez|chez|avons|allons)\w{1,60}(?:ez|ons)\s+(?:toujours|jamais)\b"
    r"|il\s+(?:faut|ne\s+faut)\b|(?!(?:il|elle|ce|\u00e7a|cela|je)\s)[^.!?]{0,200}\b(?:doit|doivent|devez|devons|dois)\s+(?!avoir|\u00eatre\s+l\u00e0)\S)",
    re.IGNORECASE,
)
_SPANISH: Final = compile_later(
    r"(?:(?:nunca|jam\u00e1s|siempre|no)\s+(?!\w{1,60}es\s+(?:in|on|at|to|of|for|with|are|were|have|yet|so|today|found|since|from|after|before)\b)(?!(?:me|se|nos|he|ha|han|hemos|has|hab\u00eda|hay|fue|es|eres|est\u00e1|est\u00e1s|era|que|tienes|sabes|vienes|puedes"
    r"|quieres|tiene|s\u00e9|ayer|m\u00e1s|antes)\b)(?:lo\s|la\s|los\s|las\s)?(?:\w{1,60}(?:ar|er|ir)(?:lo|la|los|las|se)?|\w{1,60}(?:as|es|\u00e9is|\u00e1is|emos))\b"
    r"|siempre\s+(?:usa|use|usen|firma|firme|ejecuta|ejecute|revisa|revise|verifica|verifique|comprueba|compruebe|escribe|escriba|a\u00f1ade"
    r"|a\u00f1ada|pide|pida|haz|haga|pon|ponga|di|diga|crea|cree|corre|corra|prueba|pruebe|guarda|guarde|cierra|cierre)\b"
    r"|(?!(?:\u00e9l|ella|eso|esto|yo)\s)(?!.{0,200}\b(?:dijo|dice|cree|pens\u00f3|porque|ayer)\b)[^.!?]{0,200}\b"
    r"(?:debe|deben|debes|debemos|hay\s+que|tienes?\s+que|tienen\s+que)\s+(?!haber|de\b|estar\b|ser\s+que)(?:no\s+|nunca\s+|siempre\s+)?\w{1,60}(?:ar|er|ir)\w*\b)",
    re.IGNORECASE,
)


def is_order(text: str) -> bool:
    """Return whether one of the first sentences is an order in form. A question is none."""
    return any(map(_is_order, sentences(text)))


def sentences(text: str) -> Iterator[str]:
    """Yield the beginnings of the first sentences without what introduces them; an empty string for a question."""
    for match in islice(_SENTENCE.finditer(text[: 4 * MAX_CHARS]), MAX_SENTENCES):
        sentence = match[0].strip()[:MAX_CHARS]
        lead = _LEAD.match(sentence)
        is_question = sentence.rstrip("\"')\u201d\u00bb ").endswith("?")
        yield "" if is_question else sentence[lead.end() if lead else 0 :]


def _is_order(said: str) -> bool:
    found = _ENGLISH.match(said)
    if found is not None:
        return _is_verb(found[1] or found[3])
    must = _MUST.match(said)
    if must is not None and must[2].lower() not in ("have", "of", "admit", "say", "confess"):
        supposed = _SUPPOSED.search(must[1]) is not None
        return not supposed and _REPORTED.search(must[1]) is None
    return any(pattern.match(said) for pattern in (_GERMAN, _FRENCH, _SPANISH))


def _is_verb(word: str) -> bool:
    return _VERB_IN_ED.fullmatch(word) is not None or _NO_VERB.fullmatch(word) is None
