"""Rules about a single memory: prefixes, type, tags and importance.

Source: memory-system.txt "Memory Types", "Importance and Tags"; docs/compatibility.md "Remember";
docs/decisions.md 10, 31, 39.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeVar, get_args

import msgspec

from signet_actors.domain.directives import directive_type
from signet_actors.domain.normalization import BYTE_ORDER_MARK, collapsed, without_blank_ends
from signet_actors.domain.orders import is_order
from signet_actors.errors import InvalidRequest

TimeFacet = Literal["session", "source", "captured", "observed", "occurred", "valid"]
"""The meaning of a memory's timestamp. Source: memory-api.txt "POST /api/memory/recall" (time.facets)."""
TIME_FACETS: Final[tuple[TimeFacet, ...]] = get_args(TimeFacet)
DEFAULT_IMPORTANCE = 0.8
T = TypeVar("T")

PINNED_IMPORTANCE = 1.0
"""Importance of a pinned memory if the caller gave none."""
CRITICAL_MIN_IMPORTANCE = 0.9
"""Minimum importance of a memory that ``stats.critical`` counts.

Source: docs/compatibility.md "Reading memories".
"""

DERIVED: Final = "pipeline-v2"
"""``source_type`` and ``who`` of a memory that the pipeline created: nothing is extracted from it again."""
AGGREGATE: Final = "aggregate-recall"
"""``source_type`` and ``who`` of the answer of an aggregate recall: nothing is made from it, except its vector."""
CHUNK: Final = "chunk"
"""``source_type`` of a chunk of a long text."""
COMPACTION: Final = "compaction"
"""``source_type`` of the summary of a compaction; its ``source_id`` is the key of the session."""
INTERNAL_SOURCE_TYPES: Final = (CHUNK, DERIVED, COMPACTION)
"""Source types whose ``source_id`` is an internal id, not an external source that could be remembered again."""
MOVED_WITH: Final = "moved with the memory that it was made of"
"""Why a fact or an answer changed its project: nobody has changed what it says."""
REPLACED: Final = "replaced by a later summary of the session"
"""Why a summary of a compaction was deleted: nobody wanted to forget what it says."""

IMPORTED_SOURCE_TYPES: Final = (
    "import",
    "markdown",
    "claude-memory",
    "codex-memory",
    "claude-mem",
    "basic-memory",
    "openclaw",
    "mem0",
)
"""Source types of what ``signet import`` brings: a start shows it only if it was asked for."""
DEFAULT_TYPE = "fact"
CONSTRAINT_TYPES: Final = ("rule", "constraint")
"""Types of memories that hold in every session, if they were named or are orders in form."""
PREFERRED_TYPES: Final = (("preference",), ("decision",), CONSTRAINT_TYPES)
"""Types of memories that a start shows, the first ones before the others: the last ones by a word such as *must*."""
TypeSource = Literal["named", "order"]
MEMORY_TYPES = (
    "fact",
    "preference",
    "decision",
    "procedural",
    "semantic",
    "rule",
    "learning",
    "issue",
    "constraint",
    "rationale",
    "document_chunk",
    "session_summary",
)
"""Every type that the specification names. Clients may use others; see ``memory_type``."""

_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")

# The word is no part of a path, an address or a file name: /x/bugs/notes, bugs.example.org, issues.md.
_NO_PATH = r"(?<![/\\@._-])"
_NO_PATH_AFTER = r"(?![/\\@]|[._]\w)"
# The table of the specification, and the same for preferences and decisions in German, French and Spanish.
# A rule: the type, substrings of which every lower-cased match contains one (a far cheaper check), and the pattern.
_TYPE_RULES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "preference",
        ("prefer", "likes", "want"),
        re.compile(r"\b(?:prefer(?:s|red|ring|ence|ences|ably)?|likes|want(?:s|ed|ing)?)\b", re.IGNORECASE),
    ),
    ("decision", ("decided", "agreed", "will"), re.compile(r"\b(?:decided|agreed|will\s+use)\b", re.IGNORECASE)),
    (
        "preference",
        ("bevorzug", "lieber", "liebsten", " mag ", "antwort", "answer", "reply", "i ", "pr\u00e9f", "prefi", "gustan"),
        re.compile(
            r"\b(?:bevorzug(?:e|t|en)|am liebsten|i (?:really |do not |don['\u2019]t )?(?:like|love|dislike|hate)"
            r"|(?:ich|wir|user|nutzer|benutzer(?:in)?) (?:mag|m\u00f6gen|will|wollen|h\u00e4tte gern)"
            r"|(?:mag|m\u00f6gen|will|wollen|nimm|nehmen|arbeite[nt]?) (?:\w+ ){0,3}lieber"
            r"|(?:antworte(?:n|t)?|answer|reply|respond)(?: \w+){0,3} (?:auf|in) (?:\w+ ){0,2}"
            r"(?:deutsch|englisch|franz\u00f6sisch|spanisch|german|english|french|spanish)"
            r"|pr\u00e9f\u00e8re(?:s|nt)?|pr\u00e9f\u00e9rons|prefiero|prefiere[ns]?|preferimos|me gustan?)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "decision",
        ("entschied", "entscheidung", "beschlossen", "d\u00e9cid", "decid"),
        re.compile(
            r"\b(?:(?:haben|habe|hat|wurde|ist)\b[^.!?\n]{0,80}\b(?:entschieden|beschlossen)|entscheidung:|beschlossen:"
            r"|(?:avons|a|ai) d\u00e9cid\u00e9|d\u00e9cision ?:|(?:hemos|ha|se ha) decidido|decidimos|decisi\u00f3n:)",
            re.IGNORECASE,
        ),
    ),
    (
        "learning",
        ("learned", "discovered", "til"),
        re.compile(r"\b(?:(?i:learned|discovered)|TIL)\b|^\s*(?i:til)\b"),
    ),
    (
        "issue",
        ("bug", "issue", "broken", "problem"),
        re.compile(rf"{_NO_PATH}\b(?:bugs?|issues?|broken|problems?)\b{_NO_PATH_AFTER}", re.IGNORECASE),
    ),
    (
        "rule",
        ("never", "always", "must"),
        re.compile(rf"{_NO_PATH}\b(?:never|always|must(?:n['\u2019]t)?)\b{_NO_PATH_AFTER}", re.IGNORECASE),
    ),
)
# What a thing likes or wants, and what the reader may want, is nobody's preference.
_NO_PERSON = re.compile(
    r"\b(?:(?:it|this|that|which|if you|when you|you may|you might|should you|whenever you|nobody|anyone who"
    r"|(?:the|a|an|this|that|each|every)\s+(?!user|team|customer|client|boss|manager|owner|develop|review|lead|author|designer|product"
    r"|company|group|people|person|admin|maintainer|colleague|engineer|support|sales|friend|wife|husband|kid|child|family|man|woman|guy"
    r"|director|chief|founder|partner|teacher|student|doctor|cat|dog|other)[\w-]+(?:\s+(?!who)[\w-]+)?)"
    r"(?:\s+(?:also|always|never|only|really|still|just|now))?\s+)(?:likes|want(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)

_NEVER_MIND = re.compile(r"\bnever ?mind\b", re.IGNORECASE)
_CRITICAL = "critical:"
# A tag may contain brackets if a secret was redacted in it: [auth,[REDACTED:api-key]]: text
_TAGS = re.compile(r"\[((?:\[REDACTED:[a-z-]{1,32}\]|[^\]\n]){1,4096})\]:(?=\s*\S)")
_TAG_NAME = re.compile(r"[^\W\d_][\w.-]{0,255}|\[redacted:[a-z-]+\]", re.IGNORECASE)
# What else is in brackets at the beginning of a line: the level of a log, the result of a test, a date, a range.
_NO_TAG = re.compile(
    r"(?:trace|debug|verbose|info|information|notice|warn|warning|err|error|severe|crit|critical|alert|emerg|emergency"
    r"|panic|fatal|fail|failed|failure|pass|passed|ok|fehler|warnung|hinweis|erreur|avertissement|aviso|advertencia"
    r"|(?:jan|feb|m[a\u00e4]r|apr|ma[iy]|june?|july?|aug|sept?|o[ck]t|nov|de[cz])(?:uary|ch|il|ust|(?:t?em|o)ber)?"
    r"[._-]?\d[\d._-]*"
    r"|(?:[a-z]-[a-z])+[\d_.-]*)|(?-i:[DEFINTVW])",
    re.IGNORECASE,
)
# [label]: target "title" is the definition of a link in Markdown, [comment]: # (text) a comment.
_LINK_TARGET = re.compile(
    r"[ \t]*(?:<[^<>\n]*>|[a-z][a-z0-9+.-]*:[^\s:]\S*|www\.\S+|\.{0,2}/\S*|#\S*)"
    r"""(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*(?:\n|$)""",
    re.IGNORECASE,
)

INFERENCE_CHARS = 4096
"""Number of leading characters from which the type is inferred. A text states its subject at its beginning, and the
rules would need a third of a second for the longest content.
"""


class Prefixes(NamedTuple):
    """The parsed prefixes of an explicit remember. ``content`` is the text after them and may be empty."""

    content: str
    pinned: bool
    tags: tuple[str, ...]


def parse_prefixes(text: str) -> Prefixes:
    """Parse and remove the prefixes ``critical:`` (pins) and ``[a,b]:`` (tags); ``critical: [a,b]: text`` has both.

    Call it only for an explicit remember, never for extracted, ingested or synthesised text (docs/decisions.md 39). The
    layout of the content is kept: it begins on the line of the prefix, or on its own line with its indentation. Tags
    from a prefix are lower-cased. Brackets with anything but names stay in the text, and so does the definition of a
    link in Markdown.

    Source: memory-system.txt "Importance and Tags"; docs/compatibility.md "Remember".
    Departs: the reference daemon takes any text in brackets for tags, and ``critical:`` in any case, so log lines lose
    their beginning.
    """
    content = without_blank_ends(text)
    bare = content.lstrip().lstrip(BYTE_ORDER_MARK)
    pinned = bare.startswith(_CRITICAL)
    if pinned:
        content = _after_prefix(bare[len(_CRITICAL) :])
        bare = content.lstrip()
    match = _TAGS.match(bare)
    if match is not None and _LINK_TARGET.match(bare, match.end()) is None:
        names = parse_tags(match[1])
        if names and all(_TAG_NAME.fullmatch(name) and not _NO_TAG.fullmatch(name) for name in names):
            return Prefixes(_after_prefix(bare[match.end() :]), pinned, parse_tags(match[1].lower()))
    return Prefixes(content, pinned, ())


def _after_prefix(rest: str) -> str:
    """Return the content after a prefix: the rest of its line, stripped, or the unchanged lines below it."""
    on_its_line = rest.partition("\n")[0].strip()
    return rest.strip() if on_its_line else without_blank_ends(rest)


def is_imported(source_type: str | None, source_path: str | None) -> bool:
    """Return whether a memory is a note that was imported, or a chunk of one, which keeps its path."""
    return source_type in IMPORTED_SOURCE_TYPES or (source_type == CHUNK and bool(source_path))


def infer_type(content: str) -> str:
    """Return the type that the words of ``content`` suggest. The first matching rule wins; ``fact`` if none matches.

    Reads only the first ``INFERENCE_CHARS`` characters.

    Source: docs/compatibility.md "Type inference"; memory-system.txt "Memory Types" (``problem``).
    Departs: matches whole words with their inflections instead of substrings, so "mustard" is not a rule, "until
    tomorrow" not a learning and "debugger" not an issue. ``TIL`` counts in capitals or at the very beginning. A part of
    a path is no word, what a thing wants no preference, and an order in form is a rule in other languages, too. What no
    word tells, the form of the first sentence may (``directives``).
    """
    beginning = _NEVER_MIND.sub(" ", content[:INFERENCE_CHARS])
    return _type_by_words(beginning) or directive_type(content) or DEFAULT_TYPE


def _type_by_words(content: str) -> str | None:
    beginning = content[:INFERENCE_CHARS]
    lower = beginning.lower()
    for name, letters, pattern in _TYPE_RULES:
        if (any(part in lower for part in letters) or not lower.isascii()) and pattern.search(
            _NO_PERSON.sub("", beginning) if name == "preference" else beginning
        ):
            return name
    return "rule" if is_order(beginning) else None


def type_source(memory_type: str, content: str, *, named: bool) -> TypeSource | None:
    """Return why a memory of this type is a constraint of every session; None if it is none.

    ``named``: a person, a client, an import or a model chose the type.
    """
    if memory_type not in CONSTRAINT_TYPES:
        return None
    if named:
        return "named"
    return "order" if is_order(content) else None


def former_type_source(memory_type: str, source_type: str | None, content: str) -> TypeSource | None:
    """Return the same for a memory of a release that did not record it: named if the words do not tell the type."""
    named = source_type == DERIVED or (_type_by_words(content) or DEFAULT_TYPE) != memory_type
    return type_source(memory_type, content, named=named)


def memory_type(text: str) -> str | None:
    """Return an explicit type in its stored form, or None if it is not a valid type name.

    Types beyond ``MEMORY_TYPES`` are accepted, because real clients use their own.
    """
    name = text.strip().lower()
    return name if _TYPE_NAME.fullmatch(name) else None


def parse_tags(tags: str | Sequence[object] | None) -> tuple[str, ...]:
    """Return tags in storage form: trimmed, not empty, without duplicates, in the given order and case.

    Accepts an array, the same as JSON in a string, or a comma-separated string. A comma inside an array element also
    separates tags, because responses join tags with commas. Raises InvalidRequest (field ``tags``) for anything else.
    """
    if tags is None:
        return ()
    if isinstance(tags, str):
        array = _array_in(tags)
        tags = tags if array is None else array
    parts: list[str] = []
    if isinstance(tags, str):
        parts = tags.split(",")
    elif isinstance(tags, list | tuple):
        for tag in tags:
            if not isinstance(tag, str):
                raise InvalidRequest("tags must be a string or an array of strings", field="tags")
            parts.extend(tag.split(","))
    else:
        raise InvalidRequest("tags must be a string or an array of strings", field="tags")
    return tuple(dict.fromkeys(filter(None, map(collapsed, dict.fromkeys(parts)))))


def _array_in(text: str) -> list[str] | None:
    """Return the array of strings that the text is in JSON, as some clients send one; None for other text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        return msgspec.json.decode(text, type=list[str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def decayed_importance(importance: float, *, pinned: bool, days: float, rate: float) -> float:
    """Return what is left of ``importance`` after ``days`` without an access. A pinned memory never loses any.

    Source: memory-system.txt "Importance Decay".
    """
    return PINNED_IMPORTANCE if pinned else importance * rate**days


def start_score(importance: float, *, age_days: float, recency_bias: float) -> float:
    """Return the score by which memories are ordered at the start of a session.

    ``importance`` has decayed already. ``recency_bias``: 0 counts only the importance, 1 only how new the memory is.

    Source: docs/guides/hooks.md "The start of a session".
    """
    return importance * (1 - recency_bias) + recency_bias / (1 + age_days)


def importance_to_store(named: float | None, *, pinned: bool | None, otherwise: T) -> float | T:
    """Return the importance to store: the requested one, else 1.0 if the request pins, else ``otherwise``.

    ``otherwise`` is the default for a new memory and None (unchanged) for a patch. Unpinning does not change the
    importance.

    Source: memory-api.txt "POST /api/memory/remember"; memory-system.txt "Importance and Tags".
    """
    if named is not None:
        return named
    return PINNED_IMPORTANCE if pinned else otherwise
