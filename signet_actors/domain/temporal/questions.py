"""Whether a prompt asks what was done at a time, so that the sessions of that time answer it. Four languages.

Source: docs/guides/hooks.md "Each prompt"; docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

import re
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.query_words import words_of
from signet_actors.domain.temporal.intent import Intent, asks_for_last_session

MAX_CHARS: Final = 200
"""A question about a day is not longer."""
MOST_WORDS: Final = 3
"""A question with more other words asks for something of its own."""
_DOING: Final = """
    we i us our my did done happened wir ich uns passiert passierte geschah gemacht nous je fait avons passé hicimos
    hice pasó hemos
"""
_DOING_WORDS: Final = frozenset(_DOING.split())
"""Words of a question about what was done; without one it asks for a date."""
_REPORTS: Final = """
    recap summary summarize summarise standup overview zusammenfassung fasse fass überblick rückblick résumé résume
    résumer résumez bilan resumen resume resumir
"""
_REPORT_WORDS: Final = frozenset(_REPORTS.split())
_NO_REPORT: Final = frozenset(("add", "fix", "write", "implement", "test", "schreib", "schreibe", "ajoute", "añade"))
_LATER: Final = """
    should shall will must can could would need needs soll sollen sollten müssen werden wollen können devons dois faut
    allons debemos deberíamos haremos vamos
"""
_LATER_WORDS: Final = frozenset(_LATER.split())
"""With one of these, a question asks for what is to be done."""
_LEAD: Final = (
    r"[\s\u00bf\u00a1\"'*-]*(?:(?:so|ok|okay|hey|hi|and|please|standup|und|bitte|et|y|remind me(?: of)?|(?:can"
    r"|could) you (?:please )?(?:tell|remind) me"
    r"|tell me|show me|list|recap|summari[sz]e|sag mir|zeig mir|erinnere mich(?: daran)?|dis-moi|rappelle-moi|dime"
    r"|recu\u00e9rdame)[\s,:]{1,3}){0,3}"
)
_WHAT_WAS_DONE: Final = compile_later(
    rf"{_LEAD}(?:(?:what|which)(?: else| all| exactly| (?P<noun>[\w-]{{1,30}}))? (?:did|have|had|were) (?:we|i"
    rf"|you) (?!need\b|want\b|mean\b|have to\b)(?P<verb>\w{{1,30}})"
    r"|what (?:we|i|you)(?: have|['\u2019]ve)? (?!need\b|want\b|mean\b|have\b|should\b|must\b|can\b)(?P<verb2>\w{1,30})"
    r"|(?:was|woran|wor\u00fcber|wo|welche (?P<noun2>[\w-]{1,30})) (?:haben|hatten|habe|hast|hatte) (?:wir|ich"
    r"|du)\s(?=.{0,150}?(?P<verb3>[\w-]{0,30}(?:ge\w{1,20}(?:t|en)|iert|\u00e4ndert|schieden|handelt|schlossen"
    r"|worfen))[\s?.!]{0,9}$)"
    r"|(?:sur )?(?:qu(?:e |oi |['\u2019])|quels? (?P<noun3>[\w-]{1,30}) )(?:est-ce qu(?:e |['\u2019]))?(?:nous avons"
    r"|avons-nous|ai-je|j['\u2019]ai|as-tu|tu as|on a)\s(?P<verb4>\w{1,30})"
    r"|(?:on a|nous avons) (?P<verb5>\w{1,30}) quoi\b"
    r"|(?:en |sobre |de )?qu\u00e9 (?:(?P<noun4>[\w-]{1,30}) )?(?:(?:hemos|he|has) (?P<verb6>\w{1,30}[aei]d[oa]"
    r"|hecho|visto|escrito)|(?P<verb7>\w{1,30}(?:[aei]mos|ice|izo|iste)|\w{2,30}\u00e9))(?=\s|$))",
    re.IGNORECASE,
)
_FOLLOWED: Final = compile_later(r"[.!?;\n]\s{0,9}\w")
_ASKING: Final = """
    what which where how show list tell everything anything whatever remind was woran worüber worum wo welche zeig zeige
    liste alles que qu quoi quels quelles montre où qué muéstrame dónde catch continue
"""
_ASKING_WORDS: Final = frozenset(_ASKING.split()) | _REPORT_WORDS
_BESIDE: Final = frozenset(
    ("with", "about", "on", "mit", "an", "am", "avec", "sur", "con", "sobre", "exactly", "genau")
)


def topic_of_time(prompt: str, intent: Intent | None) -> str | None:
    """Return the words beside the time in a question about what was done then, which may be none (an empty text).

    None if the prompt asks for anything else. ``intent``: that of the prompt.
    """
    if intent is None or not intent.may_list or len(prompt) > MAX_CHARS:
        return None
    words = words_of(prompt)
    if asks_for_last_session(prompt) or intent.resumes:
        return ""
    question = _WHAT_WAS_DONE.match(prompt)
    if question is None or _FOLLOWED.search(prompt):
        if intent.topic or not _LATER_WORDS.isdisjoint(words):
            return None
        if _ASKING_WORDS.isdisjoint(words) and not prompt.rstrip().endswith("?"):
            return None
        if not _REPORT_WORDS.isdisjoint(words):
            return "" if _NO_REPORT.isdisjoint(words) else None
        return None if _DOING_WORDS.isdisjoint(words) else ""
    asked = {value.lower() for value in question.groupdict().values() if value}
    topic = [word for word in intent.words if word not in asked and word not in _BESIDE]
    return " ".join(topic) if len(topic) <= MOST_WORDS else None
