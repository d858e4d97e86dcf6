"""Reject extracted facts that repeat recalled memories, and texts that are not facts.

The echo checks reject a fact that contains a mark of recall (``injected_text`` removes these from the source first), or
that only repeats a recently recalled memory. The quality checks reject questions, prompts, courtesies of an assistant,
and tool output. A rejected fact is lost, so the rules match only the start of a text or unmistakable marks; at most 1
in 100 facts from clean notes may be rejected.

Source: docs/decisions.md 17, 39; docs/compatibility.md "Hooks and sessions" (the marks of what is injected).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from msgspec import Struct

from signet_actors.domain.extraction.content_words import content_words
from signet_actors.domain.extraction.contradiction import syntactic_contradiction
from signet_actors.domain.extraction.facts import Fact, RejectedFact
from signet_actors.domain.extraction.injected_text import HEADINGS, OPENINGS
from signet_actors.domain.extraction.proposals import Candidate
from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.normalization import collapsed, content_hash
from signet_actors.domain.program_text import begins_as_program
from signet_actors.domain.timestamps import epoch_ms

MAX_INJECTED: Final = 500
"""The number of most recent injected texts that a fact is compared with."""

RECALL_ECHO_WINDOW_MS: Final = 4 * 3_600_000
"""The assumed maximum length of a session: an agent may write down at its end what recall returned at its start."""

MIN_NEAR_WORDS: Final = 3
MIN_SHARED_PAIR_RATIO: Final = 0.75

_MAX_CHECKED_CHARS: Final = 4_096


def _any_whitespace(words: str) -> str:
    return r"\s".join(map(re.escape, words.split(" ")))


class JunkReason(StrEnum):
    """Why a fact was rejected; the label of the junk-rate metric."""

    ECHO_MARKED = "echo_marked"
    ECHO_EXACT = "echo_exact"
    ECHO_NEAR = "echo_near"
    REPEATED = "repeated"
    PROMPT_EXAMPLE = "prompt_example"
    PROMPT_TEMPLATE = "prompt_template"
    QUESTION = "question"
    ASSISTANT_BOILERPLATE = "assistant_boilerplate"
    TOOL_OUTPUT = "tool_output"


class FilterResult(Struct, frozen=True):
    """The facts to keep, and the rejected ones."""

    kept: tuple[Fact, ...]
    rejected: tuple[RejectedFact, ...]


PROMPT_EXAMPLES: Final = (
    "The homelab uses Traefik instead of Caddy because Caddy kept losing its certificates.",
    "Noor prefers four spaces over tabs for indentation.",
    "The site is released by running make publish from the release branch.",
)
"""The example facts of the extraction prompt, which small models copy. A test compares them with the prompt."""

# Marks are longer than a word, so that notes about this program can name them. A model may shorten a mark.
_MARK = compile_later(
    "|".join(
        (
            *(("^" if opening.startswith("#") else "") + _any_whitespace(opening) for opening in OPENINGS),
            *(rf"^{_any_whitespace(heading)}\s*$" for heading in HEADINGS),
        )
    ),
    re.MULTILINE,
)

_SENTENCE_END = compile_later(r"(?<=[.!?\u3002\uff01\uff1f])\s+")
_QUESTION = compile_later(
    r"""(?:what|who|where|when|why|how|which)\s(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have)\s
          (?:the|you|i|we|he|she|they|this|that|these|those|your|my|our|their|it|there)\b
      | (?:can|could|would|will)\s(?:you|we|i)\b | (?:please|pls)[,\s]+(?:help|explain|show|tell|write|fix|give
          |check)\b
      | (?:tell|show|give)\sme\b | do\syou\s(?:know|remember|have|think)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_PROMPT = compile_later(
    r"""(?:\#+\s*)?(?:system\sprompt|system|instructions?|human|assistant|user)\s*:\s*(?:you\sare|your\stask
          |please|ignore)\b
      | you\sare\s(?:a|an|the|now)\s[^.\n]{0,60}\b(?:assistant|chatbot|language\smodel|ai|agent|expert|bot|engine)\b
      | your\s(?:task|job|role|goal)\sis\sto\b | act\sas\s(?:a|an)\s | pretend\s(?:that\s)?you\sare\b
      | (?:please\s)?(?:ignore|disregard|forget)\s(?:all\s|any\s|the\s|your\s)*(?:previous|prior|above|earlier)\b
      | (?:return|respond|reply|answer|output)\s(?:with\s)?only\s(?:one\s|a\s|the\s|with\s|in\s|valid\s)*(?:json
          |yaml|xml|markdown|object|array)\b
      | (?:return|respond|reply)\s(?:with|in)\s(?:only\s|valid\s|a\s|one\s)*json\b
      | extract\s(?:all\s|the\s|any\s)*(?:facts|entities|memories|key\s(?:facts|points|information))\b
      | here\s(?:is|are)\sthe\s(?:note|text|conversation|transcript|memory)\sto\b
      | (?:\[|<|\{\{?)\s*(?:insert|your|enter|add|placeholder|todo|user_?input|fact|content|text
          |name)\b[^\]>}]{0,40}(?:\]|>|\}\}?)\s*\.?$
      | (?:fact|memory|candidate|note)\s?\#?\d{0,2}\s?(?:\(\w+\))?:\s*(?:\.{3}|\u2026|<[^>]{0,30}>
          |\[[^\]]{0,30}\])\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
_CHAT_MARK = compile_later(
    r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|^<(?:start|end)_of_turn>|^###\s?(?:Instruction|Response)\b",
    re.MULTILINE,
)
_COURTESY = compile_later(
    r"""as\san\s(?:ai|artificial\sintelligence|language\smodel|assistant)\b
      | i(?:['\u2019]m|\sam)\s(?:sorry|afraid|just\san?\sai|an?\sai|unable\sto|here\sto\shelp|happy\sto|glad\sto
          |ready\sto)\b
      | i\s(?:apologi[sz]e|cannot\s(?:help|assist|provide|access)|can['\u2019]?t\s(?:help|assist|provide|access)
          |don['\u2019]?t\shave\saccess)\b
      | i(?:['\u2019]d|\swould)\s(?:be\s(?:happy|glad)|love)\sto\b
      | (?:i(?:['\u2019]ll|\swill)|let\sme|let['\u2019]s)\s(?:help\syou|take\sa\slook|start\sby|go\sahead)\b
      | let\sme\s(?:now\s)?(?:check|look\sat|analy[sz]e|examine|read|explain|summari[sz]e)\b
      | (?:sure|certainly|absolutely|of\scourse|great|perfect|got\sit|understood|alright|okay|sounds\sgood
          |no\sproblem)[!.,]\s*(?:$|here|i\b|i['\u2019]|let|this|that|happy|the\sfollowing)
      | (?:great|good|excellent)\squestion\b | you(?:['\u2019]re|\sare)\s(?:absolutely\sright|right|welcome)\b[!.,]?
      | (?:thank\syou|thanks)\s(?:for|so\smuch|very\smuch|!)
      | (?:please\s)?let\sme\sknow\s(?:if|what|how|when|which)\b | (?:i\s)?hope\s(?:this|that|it)\s(?:helps
          |was\shelpful)\b
      | (?:is\sthere\sanything|feel\sfree\sto|do\snot\shesitate|happy\sto\shelp)\b
      | here(?:['\u2019]s|\sis|\sare)\s(?:the|your|a|an|my|some)\s(?:extracted\s|updated\s|requested\s
          |final\s)*(?:json|facts?|entities|summary|result|output|list|answer|response|analysis)\b
      | (?:based\son|according\sto)\sthe\s(?:provided|given|above)\s(?:note|text|conversation|context
          |information|input)\b
      | (?:the\s)?(?:note|text|conversation|input|message|provided\s\w+)\s(?:does\snot|doesn['\u2019]t|did\snot
          |contains?\sno|has\sno|is\sempty|is\stoo\sshort)\b[^.]{0,30}\b(?:facts?|information|content|contain
          |entit\w+|lasting|empty|short)\b
      | no\s(?:lasting\s|relevant\s|durable\s|extractable\s|new\s|further\s)*(?:facts?|entities
          |information)\s(?:to|were|was|could|can|found|extracted|present)\b
      | (?:the\s)?(?:ai|(?:ai\s)?assistant|chatbot)\s(?:is\sready|offered|offers|apologi[sz]ed|acknowledged
          |greeted|thanked|said\sit|asked\sif|asked\sthe\suser|responded|replied|agreed\sto\shelp|will\shelp
          |can\shelp|confirmed\sthat\sit)\b
      | (?:the\s)?user\s(?:said\s(?:hello|hi|thanks|thank)|greeted|thanked|asked\s(?:a\squestion|the\sassistant
          |for\shelp|me|you)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_TOOL = compile_later(
    r"""Traceback\s\(most\srecent\scall\slast\) | at\s[\w$.<>\[\]\s]{1,120}\(.{1,200}:\d+:\d+\)
      | File\s"[^"\n]{1,200}",\sline\s\d+
      | diff\s--git\s | @@\s-\d+ | \+\+\+\s[ab]/ | ---\s[ab]/ | index\s[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}
      | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d(?::\d\d)?\S{0,12}\]?\s+\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR
          |FATAL|CRITICAL)\b
      | \[?(?:TRACE|DEBUG|INFO|WARN|ERROR)\]?\s+\d{4}-\d\d-\d\d
      | npm\s(?:WARN|ERR!|notice) | (?:exit|exited)(?:\swith)?(?:\s(?:status|code))?:?\s*\d{1,3}\.?$
      | \(?(?:[Pp]rocess|[Cc]ommand)\sexited\swith\s(?:status|code)\s\d+
          | [-dlbcps][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-]
      | \$\s[a-z./] | \d{1,3}(?:\.\d{1,3}){3}\s-\s\S{1,40}\s\[ | \d{1,3}%\s?\|
      | =+\s(?:test\ssession\sstarts|FAILURES|ERRORS|short\stest\ssummary|\d+\s(?:passed|failed)) | (?:PASSED
          |FAILED|ERROR)\s\S+::\S+
      | <(?:tool_result|tool_use|function_calls?|function_results?)\b
      | \{\s*["'][\w$-]{1,60}["']\s*: | \[\s*\{\s*["'][\w$-]{1,60}["']\s*:""",
    re.VERBOSE,
)
_ANSI = compile_later(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_UNBROKEN = compile_later(r"[A-Za-z0-9+/=_-]{160,}")
_MIN_LETTER_RATIO: Final = 0.25


def junk_reason(text: str) -> JunkReason | None:
    """Return why ``text`` is not a fact, or None. Reads only its first 4,096 characters."""
    text = text[:_MAX_CHECKED_CHARS].strip()
    if _MARK.search(text):
        return JunkReason.ECHO_MARKED
    if _CHAT_MARK.search(text) or _PROMPT.match(text):
        return JunkReason.PROMPT_TEMPLATE
    if (
        _TOOL.match(text)
        or begins_as_program(text)
        or _ANSI.search(text)
        or _UNBROKEN.search(text)
        or _has_few_letters(text)
    ):
        return JunkReason.TOOL_OUTPUT
    if _COURTESY.match(text):
        return JunkReason.ASSISTANT_BOILERPLATE
    if _is_question(text):
        return JunkReason.QUESTION
    return None


def _has_few_letters(text: str) -> bool:
    """Return whether less than a quarter of the visible characters are letters, in any script."""
    solid = sum(not char.isspace() for char in text)
    return sum(char.isalpha() for char in text) < solid * _MIN_LETTER_RATIO


def _is_question(text: str) -> bool:
    """Return whether every sentence ends with a question mark, or the only sentence begins like a question."""
    sentences = _SENTENCE_END.split(text)
    if all(sentence.endswith(("?", "\uff1f")) for sentence in sentences):
        return True
    return len(sentences) == 1 and ":" not in text and _QUESTION.match(text) is not None


class _ComparedText(Struct, frozen=True):
    content: str
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]


class InjectedMemories:
    """Recently injected memories, prepared for comparison."""

    def __init__(self, texts: Iterable[str]) -> None:
        stored = {content_hash(text): text for text in map(collapsed, texts)}
        latest = list(stored.items())[-MAX_INJECTED:]
        self._hashes = {hash_ for hash_, _ in latest}
        self._compared = [self._compared_text(text[:_MAX_CHECKED_CHARS]) for _, text in latest]

    def add(self, text: str) -> None:
        """Add ``text`` to the texts to compare with."""
        stored = collapsed(text)
        self._hashes.add(content_hash(stored))
        self._compared.append(self._compared_text(stored[:_MAX_CHECKED_CHARS]))

    @staticmethod
    def _compared_text(text: str) -> _ComparedText:
        words = content_words(text)
        return _ComparedText(text, frozenset(words), frozenset(pairwise(words)))

    def echo_reason(self, text: str) -> JunkReason | None:
        """Return why ``text`` is an echo, or None.

        An echo is an exact repetition, or a text whose content words are all in one memory, mostly in the same order. A
        fact that adds a content word, a number or a "not" is no echo.
        """
        stored = collapsed(text)
        if content_hash(stored) in self._hashes:
            return JunkReason.ECHO_EXACT
        words = content_words(stored[:_MAX_CHECKED_CHARS])
        distinct = frozenset(words)
        if len(distinct) < MIN_NEAR_WORDS:
            return None
        pairs = frozenset(pairwise(words))
        for known in self._compared:
            if (
                distinct <= known.words
                and len(pairs & known.pairs) >= MIN_SHARED_PAIR_RATIO * len(pairs)
                and not syntactic_contradiction(stored, known.content)
            ):
                return JunkReason.ECHO_NEAR
        return None


def echo_of_recalled(fact: str, written_at: str, candidates: Iterable[Candidate]) -> JunkReason | None:
    """Return why ``fact`` only repeats a recalled memory, or None. ``written_at`` (ISO) is when its source was written.

    A recall counts if it came after the source was written, or at most ``RECALL_ECHO_WINDOW_MS`` before. Later recalls
    count because only the last recall of each memory is known.
    """
    written_ms = epoch_ms(written_at) or 0
    texts = [
        candidate.content
        for candidate in candidates
        if candidate.recalled_at is not None
        and (epoch_ms(candidate.recalled_at) or 0) >= written_ms - RECALL_ECHO_WINDOW_MS
    ]
    return InjectedMemories(texts).echo_reason(fact) if texts else None


_EXAMPLES: Final = InjectedMemories(PROMPT_EXAMPLES)


def filter_junk(facts: Sequence[Fact], source: str) -> FilterResult:
    """Separate the facts of the memory ``source`` into those to keep and those to reject, with the reason.

    A fact that repeats an example of our prompt is rejected unless at least half of its words are also in ``source``. A
    fact that repeats an earlier fact of the same run is rejected.
    """
    kept: list[Fact] = []
    kept_texts = InjectedMemories(())
    rejected: list[RejectedFact] = []
    source_words: frozenset[str] | None = None
    for fact in facts:
        reason = junk_reason(fact.content)
        if reason is None and _EXAMPLES.echo_reason(fact.content):
            source_words = frozenset(content_words(source)) if source_words is None else source_words
            words = frozenset(content_words(fact.content))
            if 2 * len(words & source_words) < len(words):
                reason = JunkReason.PROMPT_EXAMPLE
        if reason is None and kept_texts.echo_reason(fact.content):
            reason = JunkReason.REPEATED
        if reason is None:
            kept.append(fact)
            kept_texts.add(fact.content)
        else:
            rejected.append(RejectedFact(fact, reason))
    return FilterResult(tuple(kept), tuple(rejected))
