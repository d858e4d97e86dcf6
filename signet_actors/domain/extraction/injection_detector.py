"""Detect extracted facts that are instructions to an agent. What a caller stores explicitly is never checked.

Text that no ordinary note contains ("ignore the previous instructions") is always suspicious; text that a preference
may contain too ("always run ...", a URL to call) only if the source note does not support it. A suspicious fact waits
for review (``gates``). The patterns are English; the gates limit what an undetected instruction can do.

Source: docs/security.md "Poisoned memories" (orders wait), "Where the specification is unsafe" (privilege by content).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import Final

from signet_actors.domain.extraction.content_words import content_words
from signet_actors.domain.normalization import compatibility_form

MIN_SUPPORT: Final = 0.5
"""Share of the fact's content words that the source note must contain, in any order, to support the fact."""

_MAX_FACT_CHARS: Final = 2_000
_MAX_SOURCE_CHARS: Final = 12_000
"""The model is shown the same number of characters of the note."""


class InjectionKind(StrEnum):
    """The kind of instruction that was detected in a fact."""

    OVERRIDE = "override"
    MEMORY_COMMAND = "memory_command"
    EXFILTRATION = "exfiltration"
    REMOTE_CODE = "remote_code"
    SECRECY = "secrecy"
    PRIVILEGE = "privilege"
    TOOL_CALL = "tool_call"
    LINK = "link"
    IMPERATIVE = "imperative"


_DETERMINERS = r"(?:(?:the|all|any|every|each|your|my|our|their|of|these|those|this|that|other|stored|old)\s){0,5}"
_INSTRUCTION_NOUNS = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directives?|constraints?|guardrails?|polic(?:y|ies)|context)"
)
_SEND = r"(?:send|post|upload|forward|e-?mail|exfiltrate|transmit|copy|paste|share|report|submit|leak|append|curl|pipe)"
_DESTINATION = r"(?:https?://|\S@\S{1,80}\.\w|\bwebhook\b|\bpastebin\b|\bgist\b)"

_SECRETS, _RECURRING, _ADDRESSES_AGENT, _IMPERATIVE_VERB, _STANDING_ORDER = (
    "secrets",
    "habit",
    "addressed",
    "ordered",
    "standing",
)
"""Patterns that are suspicious only in combination with others, or that are reported as another kind."""

_SIGNS: Final[dict[str, str]] = {
    InjectionKind.OVERRIDE: rf"""
        \b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|circumvent(?:ing)?|obey\sno)\s
          {_DETERMINERS}(?:previous|prior|above|earlier|preceding|former|foregoing|system|safety)\s
          (?:\w{{1,20}}\s){{0,2}}{_INSTRUCTION_NOUNS}\b
      | \b(?:ignore|disregard|forget|override)\s(?:all|any|every)\s(?:of\s)?(?:your\s|the\s)?(?:instructions?|prompts?
          |guidelines?|directives?)\b
      | \b(?:ignore|disregard|forget)\s(?:everything|anything|all)\s(?:you\s|that\s|above|before|prior|previous)
      | \b(?:reveal|print|repeat|show|output|leak|disclose|ignore|forget|disregard|bypass|override|drop)\s
          (?:\w{{1,20}}\s){{0,3}}your\s(?:\w{{1,20}}\s){{0,2}}(?:instructions|prompt|programming|rules|guardrails
          |restrictions|training)\b
      | \b(?:new|updated|revised|hidden|secret|real|actual)\s(?:system\s)?(?:instructions?|directives?|prompt)\s?:
      | \byou\sare\s(?:now\s(?:an?\s|in\s|the\s|free\b|allowed\b|authori[sz]ed\b|unrestricted\b|permitted\b|dan\b)
          |no\slonger\s(?:bound|restricted|limited|an?\s))
      | \b(?:dan|jailbreak)\smode\b
      | \bsystem\s?(?:override|prompt|message|notice|update|instruction)\s?:
      | <\|?/?(?:system|im_start|im_end|assistant|instructions?)\|?>
    """,
    InjectionKind.MEMORY_COMMAND: rf"""
        \b(?:delete|forget|erase|remove|purge|wipe|drop|discard|overwrite|update|replace|rewrite|modify|edit|change|supersede
          |invalidate|pin|unpin|merge|deprecate)\s{_DETERMINERS}(?:(?:existing|previous|long-term|saved|pinned)\s){{0,2}}
          (?:memories\b
          | memory\s(?:(?:\#|no\.?|number|id|entry|record|target|candidate)\s?)?\#?\d{{1,12}}\b(?!\s?[kmgt]i?b\b)
          | memory\s(?:about|that|which|with\s(?:the\s)?id|entry|entries|record|store\sof)\b
          | (?<=th(?:is|at)\s)memory(?:$|\s?[.,:;!]|\s(?:and|as|now|at)\b)
          | (?:candidate|target)s?\s\#?\d{{1,3}}\b)
      | \b(?:store|save|remember|memori[sz]e|keep|persist|pin)\s(?:this|it|that|the\sabove|the\sfollowing)\s
          (?:\w{{1,20}}\s){{0,4}}(?:as|with|at)\s(?:an?\s|the\s)?(?:\w{{1,20}}\s){{0,2}}
          (?:critical|pinned|constraint|importance|permanent|trusted|immutable)\b
      | \b(?:set|raise|change|increase)\s(?:the\s|its\s|this\s|my\s)?(?:memory\s)?(?:importance|pinned|trust)\s
          (?:\w{{1,20}}\s){{0,8}}to\s(?:\d|max|high|critical|true|the\s(?:max|high))
      | ["']?\b(?:action|proposedaction)["']?\s?[:=]\s?["']?(?:delete|update|forget|add)\b
      | \btarget_?id["']?\s?[:=]
    """,
    InjectionKind.EXFILTRATION: rf"""
        \b{_SEND}\s(?:\S{{1,30}}\s){{0,6}}(?:memories|(?:the|this|your|our|full|entire|whole)\s(?:conversation|chat\shistory
          |chat|transcript|session|context)|conversation\shistory|system\sprompt)\b.{{0,120}}{_DESTINATION}
    """,
    _SECRETS: rf"""
        \b{_SEND}\b.{{0,100}}\b(?:secrets?|credentials?|passwords?|tokens?|api\skeys?|ssh\skeys?|private\skeys?|id_rsa
          |environment\svariables|cookies?)\b.{{0,120}}{_DESTINATION}
      | \b{_SEND}\b.{{0,100}}(?:\.env\b|~/\.ssh|~/\.aws).{{0,120}}{_DESTINATION}
    """,
    InjectionKind.REMOTE_CODE: r"""
        \b(?:curl|wget|iwr|invoke-webrequest)\b.{0,200}\|\s?(?:sudo\s)?(?:(?:ba|z|da)?sh|python3?|perl|node|iex)\b
      | \b(?:ba|z)?sh\s(?:-c\s)?["']?(?:<\(|\$\()\s?(?:curl|wget)\b
      | \beval\s["'$(`]{1,3}(?:curl|wget)\b
      | \bbase64\s(?:-d|--decode)\b.{0,80}\|\s?(?:ba|z)?sh\b
      | \brm\s-[rf]{2,3}\s(?:--no-preserve-root\s)?["']?(?:/|~|\$home)(?:["'\s/*]|$)
    """,
    InjectionKind.SECRECY: r"""
        \b(?:do\snot|don['\u2019]?t|never|without)\s(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?
          |alert(?:ing)?|notify(?:ing)?|let(?:ting)?|show(?:ing)?)\s(?:\w{1,20}\s){0,4}
          (?:users?|humans?|operators?|owners?|anyone|anybody|them)\b
      | \bhide\s(?:this|it|that)\sfrom\s(?:the\s)?(?:users?|humans?|operators?|owners?)\b
    """,
    _RECURRING: r"""
        \b(?:always|(?:every|each)\stime|whenever|from\snow\son|first\sthing|before\s(?:each|every|any|answering
          |responding|replying|doing|you)|after\s(?:each|every|any)|(?:at|on)\s(?:the\sstart\sof\s)?(?:each|every)
          |in\s(?:each|every|all)|remember\sto|never\sforget\sto|be\ssure\sto|make\ssure\sto|must)\b
    """,
    _ADDRESSES_AGENT: r"""
        ^(?:dear\s|hey\s|attention\s|note\sto\s|(?:any|all|every|the|an)\s)?(?:future\s)?(?:ai|assistants?|agents?|models?
          |llms?|claude|copilot|chatgpt|gemini|codex|chatbots?)(?:\sagents?|\sassistants?|\smodels?)?(?:,|:|\swho|\sthat
          |\sreading|\s(?:must|should|shall|has\sto|have\sto|needs?\sto|is\sto|are\sto|will\s(?:always|now)))
      | \byou\s(?:must|should|shall|need\sto|have\sto|will\salways)\b
      | ^if\syou\s(?:are|read|see)\b
    """,
    _IMPERATIVE_VERB: r"""
        ^(?:please\s|now\s|then\s|first\s|next\s|important:\s|note:\s)?(?:remember|run|execute|call|invoke|send|post|upload
          |download|install|open|visit|fetch|click|delete|forget|remove|erase|update|pin|ignore|disregard|trust|approve
          |allow|grant|disable|skip|obey|follow|reply|respond|answer|tell|treat|store|save|write|append|insert|copy|push
          |merge|never|do\snot|don['\u2019]?t|ensure|make\ssure|use|add)\b
    """,
    InjectionKind.TOOL_CALL: r"""
        \bmcp__\w+ | \b(?:bash|shell|exec|subprocess|os\.system)\s?\(
      | \b(?:run_(?:shell|command|terminal)\w*|execute_(?:command|bash|shell|code|sql)|shell_exec
          |(?:write|read|edit)_file|apply_patch|web_?(?:fetch|search)|memory_(?:store|forget|modify|search|delete|recall|get)|tool_(?:call|use)
          |computer_use|str_replace\w*|todo_?write)\b
      | \b(?:call|use|invoke)\sthe\s[\w-]{1,30}\stool\b | </?(?:tool|function)_?\w{0,20}>
    """,
    InjectionKind.LINK: r"""
        \b(?:visit|open|fetch|download|install|curl|wget|get|load|import|read|follow|post|send|upload|call|query|check|clone
          |report|submit|pull|push|run|execute|trust|use)\b.{0,200}https?://\S
    """,
    InjectionKind.PRIVILEGE: r"""
    ^(?:critical|pinned|constraint)\s?: | ^\[[^\]\n]{1,80}\]\s?:
    """,
    _STANDING_ORDER: r"""
        \b(?:always|never|must|remember\sto|from\snow\son,?|(?:before|after|on|in|at)\s(?:each|every|any)\s[\w-]{1,30},?
          |(?:every|each)\stime,?|whenever\s.{1,60}?,)\s(?:be\s)?
          (?:run|execut|call|invok|send|post|upload|download|install|open|visit|fetch|delet|forget|remov|eras|ignor|trust
          |approv|allow|grant|disabl|skip|obey|follow|reply|respond|answer|tell|includ|append|insert|add|push|merg|report
          |use|give|print|reveal|start|begin)\w{0,5}\b
    """,
}
_UNLESS_SUPPORTED: Final[dict[InjectionKind, frozenset[str]]] = {
    InjectionKind.SECRECY: frozenset({InjectionKind.SECRECY}),
    InjectionKind.EXFILTRATION: frozenset({_SECRETS}),
    InjectionKind.REMOTE_CODE: frozenset({InjectionKind.REMOTE_CODE}),
    InjectionKind.PRIVILEGE: frozenset({InjectionKind.PRIVILEGE}),
    InjectionKind.TOOL_CALL: frozenset({InjectionKind.TOOL_CALL}),
    InjectionKind.LINK: frozenset({InjectionKind.LINK}),
    InjectionKind.IMPERATIVE: frozenset({_IMPERATIVE_VERB, _ADDRESSES_AGENT, _STANDING_ORDER}),
}
"""Kinds that are suspicious only if the note does not support the fact, most severe first."""

_URL_HOST = re.compile(r"https?://([^\s/?#'\"<>)\]]{1,253})")
_INVISIBLE: Final = dict.fromkeys((0xAD, 0x34F, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0xFEFF))
_INVISIBLE.update(dict.fromkeys(range(0x2060, 0x2070)))
_INSTRUCTION_WORDS: Final = frozenset(
    content_words(
        "always never every each time whenever now on must remember make sure before after not please first next run"
        " execute call use invoke agent agents assistant assistants ai model note important critical"
    )
)
"""Words that turn a statement into an instruction. They say nothing about its content."""


def detect_injection(fact: str, source: str = "") -> InjectionKind | None:
    """Return the kind of instruction that ``fact`` looks like, or None.

    ``source`` is the note from which a model extracted the fact. Reads at most 2,000 characters of the fact and 12,000
    of the source.
    """
    text = _one_line(fact[:_MAX_FACT_CHARS])
    found = {sign for sign, pattern in _patterns().items() if pattern.search(text)}
    if not found:
        return None
    mark = _always_suspicious(found)
    if mark is not None:
        return mark
    doubtful = next((mark for mark, signs in _UNLESS_SUPPORTED.items() if found & signs), None)
    return None if doubtful is None or supported(text, source) else doubtful


def supported(fact: str, source: str) -> bool:
    """Return whether ``source`` supports ``fact``.

    It does if it contains the fact word for word. Otherwise it must contain half of the fact's content words and every
    host, tool and prefix that the fact names, because these are the subject of an instruction.
    """
    text, note = _one_line(fact), _one_line(source[:_MAX_SOURCE_CHARS])
    if text in note:
        return True
    patterns = _patterns()
    named = _URL_HOST.findall(text)
    named += [found[0] for found in patterns[InjectionKind.TOOL_CALL].finditer(text) if " " not in found[0]]
    named += [found[0] for found in patterns[InjectionKind.PRIVILEGE].finditer(text)]
    if any(name not in note for name in named):
        return False
    words = frozenset(content_words(text)) - _INSTRUCTION_WORDS
    return bool(words) and len(words & frozenset(content_words(note))) >= MIN_SUPPORT * len(words)


def _always_suspicious(found: set[str]) -> InjectionKind | None:
    """Return the kind that is suspicious even if the source supports the fact, or None."""
    for mark in (InjectionKind.OVERRIDE, InjectionKind.MEMORY_COMMAND, InjectionKind.EXFILTRATION):
        if mark in found:
            return mark
    if found & {_RECURRING, _ADDRESSES_AGENT}:
        if _SECRETS in found:
            return InjectionKind.EXFILTRATION
        if InjectionKind.REMOTE_CODE in found:
            return InjectionKind.REMOTE_CODE
    if InjectionKind.SECRECY in found and found & {
        _SECRETS,
        InjectionKind.REMOTE_CODE,
        InjectionKind.LINK,
        InjectionKind.TOOL_CALL,
    }:
        return InjectionKind.SECRECY
    return None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Compile the patterns on first use, so that processes that check no facts do not pay for it."""
    return {sign: re.compile(pattern, re.VERBOSE) for sign, pattern in _SIGNS.items()}


def _one_line(text: str) -> str:
    """Normalize ``text`` for matching: NFKC, lower case, single spaces, no invisible characters."""
    return " ".join(compatibility_form(text).translate(_INVISIBLE).lower().split())
