"""The prompts of the decider: templates beside this file, filled in by ``domain.extraction.prompts``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from signet_actors.domain.extraction import prompts
from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.proposals import Candidate


@cache
def _template(name: str) -> str:
    return (files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


def decision_prompt(fact: Fact, candidates: Sequence[Candidate], rng: random.Random) -> str:
    """Return the prompt that asks what ``fact`` means for ``candidates``."""
    return prompts.decision_prompt(_template("decision"), prompts.mark(rng.getrandbits(128)), fact, candidates)


def contradiction_prompt(first: str, second: str, rng: random.Random) -> str:
    """Return the prompt that asks whether both statements can be true."""
    template = _template("semantic_contradiction")
    return prompts.semantic_prompt(template, prompts.mark(rng.getrandbits(128)), first, second)
