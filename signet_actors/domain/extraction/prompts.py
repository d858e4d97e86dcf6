"""Render prompts from templates so that no text inserted as data can break out of its place.

Each text stands between two lines with a nonce that the caller draws at random for each call. The nonce is removed from
the text itself. Candidates and results are fenced one by one, with their number outside the fence, so no text can fake
another candidate. The templates are files, which the caller reads.

Source: docs/decisions.md 19; docs/security.md "Poisoned memories".
Departs: memory-pipeline.txt shows ids to the model. A number cannot come from another text, and costs fewer tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from signet_actors.domain.extraction.facts import MAX_FACT_CHARS, TRUNCATED, Fact, prompt_input
from signet_actors.domain.extraction.masking import masked
from signet_actors.domain.extraction.proposals import MAX_CANDIDATES, Candidate
from signet_actors.domain.graph.classification import suggested_aspects
from signet_actors.domain.graph.names import ENTITY_TYPES, EXTRACTED, MAX_NAME_CHARS
from signet_actors.domain.memories import DEFAULT_TYPE, MEMORY_TYPES
from signet_actors.domain.normalization import collapsed, sanitize_text

MAX_CANDIDATE_CHARS: Final = 600
MAX_RESULT_CHARS: Final = 600
MAX_RESULTS: Final = 20
MAX_QUERY_CHARS: Final = 1_000
MAX_JUDGED_CHARS: Final = 300
MAX_PART_SUMMARY_CHARS: Final = 3_000

_NONCE = re.compile(r"[0-9a-z]{16,64}")
_SLOT = re.compile(r"\{\{([a-z_]{1,40})\}\}")
# The positions within an end-of-turn sequence at which a space breaks it up.
_TURN = re.compile(
    r"""(?<=<)(?=[|\uff5c]) | (?<=[|\uff5c])(?=>)
      | (?<=<)(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)>) | (?<=<)(?=</?SYS>>)
      | (?<=\[)(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\])""",
    re.IGNORECASE | re.VERBOSE,
)


class TemplateMismatch(ValueError):
    """The slots of a template and the given values differ. This is a programming error, never caused by a text."""


def mark(random_bits: int) -> str:
    """Return the nonce of one call, from 128 random bits."""
    return f"{random_bits:032x}"


def between_marks(text: str, nonce: str) -> str:
    """Return ``text`` without secrets between its two nonce lines; it cannot contain the closing one.

    End-of-turn sequences of chat templates are broken up, because some servers tokenize them inside texts too.
    """
    if not _NONCE.fullmatch(nonce):
        raise TemplateMismatch("a mark is 16 to 64 lower-case letters and digits")
    body = _TURN.sub(" ", sanitize_text(masked(text)))
    if nonce in body.casefold():  # compiling a pattern for one use costs more than all the rest
        body = re.sub(nonce, "[removed]", body, flags=re.IGNORECASE)
    return f"<data {nonce}>\n{body}\n</data {nonce}>"


def render(template: str, nonce: str, texts: Mapping[str, str], trusted: Mapping[str, str] | None = None) -> str:
    """Return ``template`` with ``texts`` fenced in their slots, ``trusted`` values inserted as they are, and the nonce.

    Slots are ``{{name}}`` and are filled in one pass, so a slot inside a text stays text. Raises TemplateMismatch for a
    slot without a value, a value without a slot, or an invalid nonce.
    """
    values = {"nonce": nonce, **(trusted or {}), **{name: between_marks(text, nonce) for name, text in texts.items()}}
    slots = set(_SLOT.findall(template))
    if slots != set(values):
        raise TemplateMismatch(f"slots and values differ: {', '.join(sorted(slots ^ set(values)))}")
    return _SLOT.sub(lambda slot: values[slot[1]], template)


def extraction_prompt(template: str, nonce: str, content: str) -> str:
    """Return the prompt for the facts of ``content``, of which at most 12,000 characters are shown."""
    return render(template, nonce, {"content": prompt_input(content)})


def decision_prompt(template: str, nonce: str, fact: Fact, candidates: Sequence[Candidate]) -> str:
    """Return the prompt for the decision about ``fact``, with ``candidates`` numbered from 1 in their order."""
    blocks = [
        f"Memory {number} ({_known_type(candidate.type)}):\n"
        + between_marks(_capped(candidate.content, MAX_CANDIDATE_CHARS), nonce)
        for number, candidate in enumerate(candidates[:MAX_CANDIDATES], 1)
    ]
    return render(
        template,
        nonce,
        {"fact": _capped(fact.content, MAX_FACT_CHARS)},
        {"fact_type": _known_type(fact.type), "candidates": "\n\n".join(blocks)},
    )


def semantic_prompt(template: str, nonce: str, first: str, second: str) -> str:
    """Return the prompt that asks whether the two statements contradict each other."""
    texts = {"first": _capped(first, MAX_FACT_CHARS), "second": _capped(second, MAX_FACT_CHARS)}
    return render(template, nonce, texts)


def hints_prompt(template: str, nonce: str, content: str, max_count: int) -> str:
    """Return the prompt for questions that ``content`` answers."""
    return render(template, nonce, {"content": prompt_input(content)}, {"max_count": str(max_count)})


def summary_prompt(template: str, nonce: str, query: str, results: Sequence[str], **trusted: str) -> str:
    """Return the prompt for a summary of ``results``, best first, or another one about them."""
    blocks = [
        f"Result {number}:\n" + between_marks(_capped(text, MAX_RESULT_CHARS), nonce)
        for number, text in enumerate(results[:MAX_RESULTS], 1)
    ]
    shown = {"results": "\n\n".join(blocks), **trusted}
    return render(template, nonce, {"query": _capped(query, MAX_QUERY_CHARS)}, shown)


def session_score_prompt(template: str, nonce: str, summary: str, end: str, memories: Sequence[tuple[str, str]]) -> str:
    """Return the prompt that asks how well ``memories``, short ids with contents, served a session."""
    blocks = [
        f"Memory {short_id}:\n" + between_marks(_capped(text, MAX_JUDGED_CHARS), nonce) for short_id, text in memories
    ]
    return render(
        template,
        nonce,
        {"summary": _capped(summary, MAX_FACT_CHARS), "conversation": end},
        {"count": str(len(blocks)), "memories": "\n\n".join(blocks) or "none"},
    )


def session_summary_prompt(template: str, nonce: str, shown: str, number: int = 1, parts: int = 1) -> str:
    """Return the prompt for the summary of a session, or of one of the ``parts`` of a long one."""
    part = f" The session is long: this is part {number} of {parts}. Write only about it." if parts > 1 else ""
    return render(template, nonce, {"conversation": shown}, {"part": part})


def session_parts_prompt(template: str, nonce: str, summaries: Mapping[int, str], parts: int) -> str:
    """Return the prompt that joins the ``summaries`` of the parts of a session, by the number of the part, in order."""
    blocks = [
        f"Part {number} of {parts}:\n" + between_marks(text[:MAX_PART_SUMMARY_CHARS], nonce)
        for number, text in summaries.items()
    ]
    return render(template, nonce, {}, {"summaries": "\n\n".join(blocks)})


def classification_prompt(
    template: str, nonce: str, name: str, entity_type: str, aspects: Sequence[str], facts: Sequence[str]
) -> str:
    """Return the prompt for the aspects of the entity's ``facts``, and for its type if nothing says what it is."""
    blocks = [
        f"Fact {number}:\n" + between_marks(_capped(text, MAX_CANDIDATE_CHARS), nonce)
        for number, text in enumerate(facts, 1)
    ]
    is_known = entity_type in ENTITY_TYPES
    asked = f"what the entity is, one of {', '.join(ENTITY_TYPES)}."
    return render(
        template,
        nonce,
        {"name": _capped(name, MAX_NAME_CHARS), "aspects": "\n".join(aspects) or "none"},
        {
            "entity_type": entity_type if is_known else "not known yet",
            "type_rule": asked if entity_type == EXTRACTED else "leave it empty.",
            "suggestions": ", ".join(suggested_aspects(entity_type)),
            "count": str(len(blocks)),
            "facts": "\n\n".join(blocks),
        },
    )


def _known_type(name: str) -> str:
    """Return ``name`` if it is a known type, else the default.

    The type stands outside the fence, and clients may invent types.
    """
    return name if name in MEMORY_TYPES else DEFAULT_TYPE


def _capped(text: str, max_chars: int) -> str:
    text = collapsed(masked(text[: 2 * max_chars]))
    return text if len(text) <= max_chars else text[:max_chars] + TRUNCATED
