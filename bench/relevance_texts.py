"""The evaluation set of relevance: memories of a coding agent's user, and questions that one or none answers.

``relevance_set/related.tsv`` has project, memory and question; ``unrelated.txt`` has questions that no memory answers,
``unrelated_later.txt`` further ones that were written when the constants were final.
All sentences are our own. Further memories about the same kinds of things are made from a seed, so that a question
competes with texts of its own subject. Lines with an even number calibrate, lines with an odd number are held out.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import msgspec

OTHERS: Final = 320
SEED: Final = 11
_DIRECTORY: Final = Path(__file__).resolve().parent / "relevance_set"

_WORDS: Final = {
    "service": "ingest-api mailer ledger-sync photo-cache route-planner auth-gate pdf-worker search-index quota-guard"
    " audit-log geo-lookup push-hub",
    "place": "staging production the-test-lab Oslo Hamburg the-demo-tenant preview",
    "person": "Sofie Marek Tomas Ines Amara Bruno Jonas Priya Wen Olga",
    "project": "heron lumen tundra pico gull puffin auk",
    "tool": "nginx RabbitMQ Envoy Vitest Keycloak Elasticsearch Ansible MinIO Nomad Celery Poetry Storybook",
    "unit": "requests rows messages megabytes connections files",
    "symptom": "a-memory-leak a-deadlock wrong-totals a-blank-page duplicated-rows an-expired-token a-slow-start"
    " missing-translations",
    "part": "parser exporter uploader cache-layer settings-page importer queue-consumer health-check",
    "day": "Monday Tuesday Wednesday Thursday Friday",
    "reason": "licence-costs memory-use missing-documentation poor-latency the-upgrade-path lack-of-maintainers",
}
_TEMPLATES: Final = (
    "{service} in {place} handles at most {n} {unit} per second.",
    "{person} replaced {tool} in {project} last quarter, mainly because of {reason}.",
    "Decision: {project} will not use {tool}; the reason was {reason}.",
    "TODO({person}): add a timeout of {n} seconds to the {part} of {project}.",
    "{key}-{n}: {symptom} in the {part}, seen in {place}; {person} is looking into it.",
    "{key}-{n}: closed, {symptom} came from the {part} and was fixed by {person}.",
    "The {part} of {project} is owned by {person}, with {other} as deputy.",
    "{person} is away on {day} afternoons.",
    "To restart {service} in {place}: `nk restart {service} --grace {n}`.",
    "Config of {service}: max_{unit} = {n}, log level info in {place}.",
    "Review note for {project}: the {part} should not depend on {tool}.",
    "{service} keeps its cache for {n} minutes; clear it with `nk cache drop {service}`.",
    "def load_{part_}(path: str, limit: int = {n}) -> list[dict]: ...  # {project}, used by {service}",
    "Meeting with {person} and {other} on {day}: agreed to move the {part} behind a feature flag.",
    "{tool} is pinned to version {n}.{m} in {project}, as newer ones show {symptom}.",
    "The alarm of {service} fires above {n} {unit}; {person} gets the mail.",
    "Open question for {person}: does the {part} still need {tool} in {place}?",
    "Benchmark of the {part}: {n} {unit} in {m} seconds on the old machine.",
)


class Related(msgspec.Struct, frozen=True):
    """A memory and a question that it answers."""

    project: str
    memory: str
    question: str


class EvaluationSet(msgspec.Struct, frozen=True):
    """``others`` are memories that answer no question of the set."""

    related: list[Related]
    others: list[str]
    unrelated: list[str]
    later: list[str]


def evaluation_set() -> EvaluationSet:
    """Return the set, always the same."""
    lines = (_DIRECTORY / "related.tsv").read_text().splitlines()
    return EvaluationSet(
        related=[Related(*line.split("\t")) for line in lines],
        others=_others(random.Random(SEED)),
        unrelated=(_DIRECTORY / "unrelated.txt").read_text().splitlines(),
        later=(_DIRECTORY / "unrelated_later.txt").read_text().splitlines(),
    )


def _others(source: random.Random) -> list[str]:
    texts: dict[str, None] = {}
    while len(texts) < OTHERS:
        words = {name: source.choice(values.split()).replace("-", " ") for name, values in _WORDS.items()}
        words["service"] = words["service"].replace(" ", "-")
        words["other"] = source.choice(_WORDS["person"].split())
        words["key"] = words["project"][:3].upper()
        words["part_"] = words["part"].replace(" ", "_")
        numbers = {"n": source.randrange(2, 900), "m": source.randrange(1, 30)}
        texts.setdefault(source.choice(_TEMPLATES).format(**words, **numbers))
    return list(texts)
