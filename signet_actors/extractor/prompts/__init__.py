"""The prompts of the extractor: templates beside this file, filled in by ``domain.extraction.prompts``."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from signet_actors.domain.extraction import prompts
from signet_actors.features.classification.api import EntityFacts


@cache
def _template(name: str) -> str:
    return (files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


def extraction_prompt(content: str, rng: random.Random) -> str:
    """Return the prompt that asks for the facts in ``content``."""
    return prompts.extraction_prompt(_template("extraction"), prompts.mark(rng.getrandbits(128)), content)


def hints_prompt(content: str, max_count: int, rng: random.Random) -> str:
    """Return the prompt that asks for questions that ``content`` answers."""
    return prompts.hints_prompt(_template("hints"), prompts.mark(rng.getrandbits(128)), content, max_count)


def summary_prompt(query: str, results: Sequence[str], rng: random.Random) -> str:
    """Return the prompt that asks for a summary of recall results, best first."""
    return prompts.summary_prompt(_template("summary_card"), prompts.mark(rng.getrandbits(128)), query, results)


def recall_plan_prompt(query: str, results: Sequence[str], most: int, rng: random.Random) -> str:
    """Return the prompt that asks for further queries, at most ``most``, after a recall with these results."""
    nonce = prompts.mark(rng.getrandbits(128))
    return prompts.summary_prompt(_template("recall_plan"), nonce, query, results, most=str(most))


def recall_answer_prompt(query: str, results: Sequence[str], rng: random.Random) -> str:
    """Return the prompt that asks for an answer to the query from the results of recalls."""
    return prompts.summary_prompt(_template("recall_answer"), prompts.mark(rng.getrandbits(128)), query, results)


def session_summary_prompt(shown: str, rng: random.Random, number: int = 1, parts: int = 1) -> str:
    """Return the prompt that asks for the summary of a session, or of one of the ``parts`` of a long one."""
    nonce = prompts.mark(rng.getrandbits(128))
    return prompts.session_summary_prompt(_template("session_summary"), nonce, shown, number, parts)


def session_parts_prompt(summaries: Mapping[int, str], parts: int, rng: random.Random) -> str:
    """Return the prompt that asks for one summary made from those of the parts of a session."""
    nonce = prompts.mark(rng.getrandbits(128))
    return prompts.session_parts_prompt(_template("session_parts"), nonce, summaries, parts)


def session_score_prompt(summary: str, end: str, memories: Sequence[tuple[str, str]], rng: random.Random) -> str:
    """Return the prompt that asks how well the memories, short ids with contents, served a session."""
    nonce = prompts.mark(rng.getrandbits(128))
    return prompts.session_score_prompt(_template("session_score"), nonce, summary, end, memories)


def classification_prompt(found: EntityFacts, rng: random.Random) -> str:
    """Return the prompt that asks for the aspects of an entity's facts."""
    nonce, contents = prompts.mark(rng.getrandbits(128)), [fact.content for fact in found.facts]
    return prompts.classification_prompt(
        _template("classification"), nonce, found.name, found.entity_type, found.aspects, contents
    )
