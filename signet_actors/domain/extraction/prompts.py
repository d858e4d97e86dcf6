"""A prompt is its template with texts put in as data, and no text can end the place that it stands in.

Each text stands between two lines that bear a mark, which the caller draws at random for each call; wherever a text
holds the mark itself, it is taken out. Candidates and results are fenced one by one with their number outside, so that
no text can make up another candidate. Sequences that chat templates read as the end of a turn are broken up, because
some servers tokenise them inside of texts too.

The templates are files; whoever asks the model reads them. Slots are ``{{name}}``; they are filled in one pass, so that
a slot in a text stays text.

Source: docs/decisions.md 19; docs/security.md "Poisoned memories".
Departs: from memory-pipeline.txt, which shows ids to the model: a number cannot be made up from another text, and costs
fewer tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from signet_actors.domain.extraction.facts import MAX_FACT_CHARS, TRUNCATED, Fact, prompt_input
from signet_actors.domain.extraction.proposals import MAX_CANDIDATES, Candidate
from signet_actors.domain.memories import DEFAULT_TYPE, MEMORY_TYPES
from signet_actors.domain.normalization import collapsed, sanitize_text

MAX_CANDIDATE_CHARS: Final = 600
MAX_RESULT_CHARS: Final = 600
MAX_RESULTS: Final = 20
MAX_QUERY_CHARS: Final = 1_000

_NONCE = re.compile(r"[0-9a-z]{16,64}")
_SLOT = re.compile(r"\{\{([a-z_]{1,40})\}\}")
# The places inside of such a sequence where a space breaks it.
_TURN = re.compile(
    r"""(?<=<)(?=[|\uff5c]) | (?<=[|\uff5c])(?=>)
      | (?<=<)(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)>) | (?<=<)(?=</?SYS>>)
      | (?<=\[)(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\])""",
    re.IGNORECASE | re.VERBOSE,
)


class TemplateMismatch(ValueError):
    """A template and the values for it do not fit; a mistake in the program, never in a text."""


def mark(random_bits: int) -> str:
    """The mark of one call, from 128 random bits."""
    return f"{random_bits:032x}"


def fenced(text: str, nonce: str) -> str:
    """``text`` between its two marked lines; the second cannot occur in it."""
    if not _NONCE.fullmatch(nonce):
        raise TemplateMismatch("a mark is 16 to 64 lower-case letters and digits")
    body = _TURN.sub(" ", sanitize_text(text))
    if nonce in body.casefold():  # a pattern that is used once costs more than all the rest to compile
        body = re.sub(nonce, "[removed]", body, flags=re.IGNORECASE)
    return f"<data {nonce}>\n{body}\n</data {nonce}>"


def render(template: str, nonce: str, texts: Mapping[str, str], trusted: Mapping[str, str] | None = None) -> str:
    """``template`` with each of ``texts`` fenced in its slot, ``trusted`` values as they are, and the mark in
    ``{{nonce}}``.

    Raises TemplateMismatch for a slot without a value, a value without a slot, and a mark that is not random enough.
    """
    values = {"nonce": nonce, **(trusted or {}), **{name: fenced(text, nonce) for name, text in texts.items()}}
    slots = set(_SLOT.findall(template))
    if slots != set(values):
        raise TemplateMismatch(f"slots and values differ: {', '.join(sorted(slots ^ set(values)))}")
    return _SLOT.sub(lambda slot: values[slot[1]], template)


def extraction_prompt(template: str, nonce: str, content: str) -> str:
    """The question for the facts of ``content``, of which at most 12,000 characters are shown."""
    return render(template, nonce, {"content": prompt_input(content)})


def decision_prompt(template: str, nonce: str, fact: Fact, candidates: Sequence[Candidate]) -> str:
    """The question what ``fact`` means for ``candidates``, which are numbered from 1 in their order."""
    blocks = [
        f"Memory {number} ({_known_type(candidate.type)}):\n"
        + fenced(_capped(candidate.content, MAX_CANDIDATE_CHARS), nonce)
        for number, candidate in enumerate(candidates[:MAX_CANDIDATES], 1)
    ]
    return render(
        template,
        nonce,
        {"fact": _capped(fact.content, MAX_FACT_CHARS)},
        {"fact_type": _known_type(fact.type), "candidates": "\n\n".join(blocks)},
    )


def semantic_prompt(template: str, nonce: str, first: str, second: str) -> str:
    """The question whether both statements can hold."""
    texts = {"first": _capped(first, MAX_FACT_CHARS), "second": _capped(second, MAX_FACT_CHARS)}
    return render(template, nonce, texts)


def hints_prompt(template: str, nonce: str, content: str, max_count: int) -> str:
    """The question for the questions that ``content`` answers."""
    return render(template, nonce, {"content": prompt_input(content)}, {"max_count": str(max_count)})


def summary_prompt(template: str, nonce: str, query: str, results: Sequence[str]) -> str:
    """The question for a summary of ``results``, best first."""
    blocks = [
        f"Result {number}:\n" + fenced(_capped(text, MAX_RESULT_CHARS), nonce)
        for number, text in enumerate(results[:MAX_RESULTS], 1)
    ]
    return render(template, nonce, {"query": _capped(query, MAX_QUERY_CHARS)}, {"results": "\n\n".join(blocks)})


def _known_type(name: str) -> str:
    """A type stands outside of the fence, and clients invent types: one that we do not know is not shown."""
    return name if name in MEMORY_TYPES else DEFAULT_TYPE


def _capped(text: str, max_chars: int) -> str:
    text = collapsed(text[: 2 * max_chars])
    return text if len(text) <= max_chars else text[:max_chars] + TRUNCATED
