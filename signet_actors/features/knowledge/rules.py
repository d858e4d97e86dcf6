"""The outline of an entity, what of it answers a question within a number of tokens, and walks along connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import UNSET

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.graph.names import canonical_name
from signet_actors.domain.query_words import words_of
from signet_actors.features.entities.api import Attribute, ListedAspect
from signet_actors.features.entities.rules import GENERAL
from signet_actors.features.knowledge.api import Claim, Fact, Group, Step, TreeAspect, TreeRequest

ItemT = TypeVar("ItemT")
NextSteps = Callable[[list[str], int], Iterable[Step]]
"""Returns the steps from entities to those of the next depth, which is given."""

CHARS_PER_TOKEN: Final = 4
PREVIEW_CHARS: Final = 240
SHOWN_CHARS: Final = 120
"""Of a fact where very many are shown."""


def fact(attribute: Attribute, most: int | None = None) -> Fact:
    """Return the attribute as it is shown below its aspect, with at most so many characters."""
    content = attribute.content if most is None else short(attribute.content, most)
    return Fact(
        *(attribute.id, content, attribute.kind, attribute.importance, attribute.memory_id),
        *(attribute.group_key, attribute.claim_key),
    )


def claims(attributes: Iterable[Attribute]) -> list[Claim]:
    """Return what is said now for each claim, and each active attribute without one."""
    of_claim: dict[str, list[Attribute]] = {}
    for each in attributes:
        if each.claim_key is not None or each.status == "active":
            of_claim.setdefault(f"claim {each.claim_key}" if each.claim_key else f"attribute {each.id}", []).append(
                each
            )
    found = []
    for said in of_claim.values():
        active = [each for each in said if each.status == "active"]
        if active:
            now = max(active, key=lambda each: each.source_at)
            counts = len(active), len(said) - len(active)
            found.append(Claim(now.claim_key, now.kind, short(now.content, PREVIEW_CHARS), *counts, now.updated_at))
    return found


def groups(attributes: Iterable[Attribute], request: TreeRequest) -> list[Group]:
    """Return the groups of an aspect's attributes with their claims as far as the request wants them."""
    of_group: dict[str, list[Attribute]] = {}
    for each in attributes:
        of_group.setdefault(each.group_key or GENERAL, []).append(each)
    found = []
    for key, said in list(of_group.items())[: request.max_groups]:
        kinds = [each.kind for each in said if each.status == "active"]
        named = claims(said)
        found.append(
            Group(
                group_key=key,
                attribute_count=kinds.count("attribute"),
                constraint_count=kinds.count("constraint"),
                claim_count=sum(each.claim_key is not None for each in named),
                claims=named[: request.max_claims] if request.depth > 2 else UNSET,
            )
        )
    return found


def branches(
    aspects: Sequence[ListedAspect], attributes: Sequence[Attribute], request: TreeRequest
) -> list[TreeAspect]:
    """Return the aspects, each with its groups as far as the request wants them."""
    of_aspect: dict[str | None, list[Attribute]] = {}
    for each in attributes:
        of_aspect.setdefault(each.aspect and canonical_name(each.aspect), []).append(each)
    return [
        TreeAspect(
            aspect={"id": each.aspect.id, "name": each.aspect.name, "weight": each.aspect.weight},
            attribute_count=each.attribute_count,
            constraint_count=each.constraint_count,
            groups=groups(of_aspect.get(each.aspect.canonical_name, ()), request) if request.depth > 1 else UNSET,
        )
        for each in aspects[: request.max_aspects]
    ]


def answering(items: Iterable[ItemT], question: str | None, text: Callable[[ItemT], str]) -> list[ItemT]:
    """Return the items, those first that have the most words of the question."""
    wanted = set(words_of(question)) if question else set()
    return sorted(items, key=lambda item: -len(wanted.intersection(words_of(text(item)))) if wanted else 0)


class TokenBudget:
    """Texts of together ``max_tokens``, in the order in which they are offered."""

    def __init__(self, max_tokens: int) -> None:
        self.left = max_tokens * CHARS_PER_TOKEN

    def fitting(self, items: Iterable[ItemT], text: Callable[[ItemT], str]) -> list[ItemT]:
        """Return the items whose texts still fit, up to the first one that does not."""
        found = []
        for item in items:
            length = len(text(item))
            if length > self.left:
                break
            self.left -= length
            found.append(item)
        return found


def walk(start: str, next_steps: NextSteps, depth: int, most: int) -> Iterator[Step]:
    """Yield each entity that is reached from ``start``, breadth first, by a step of least depth; at most ``most``."""
    seen, at = {start}, [start]
    for level in range(1, depth + 1):
        following = []
        for step in next_steps(at, level):
            if step.id not in seen and len(seen) <= most:
                seen.add(step.id)
                following.append(step.id)
                yield step
        at = following
        if not at:
            return
