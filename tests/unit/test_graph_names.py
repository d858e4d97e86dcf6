"""Where a text names an entity, and which entities, aspects and decisions its form shows.

Source: memory-pipeline.txt "Inline Entity Linker", "Decision Auto-Protection"; docs/decisions.md 20, 21.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.graph.candidates import clauses
from signet_actors.domain.graph.decisions import DECISION_PATTERNS, is_decision_content
from signet_actors.domain.graph.names import MAX_ALIKE, NameIndex, canonical_name, is_written_as, tokens_of
from signet_actors.domain.graph.relation_types import dependency_strength, dependency_type, relation_type

NAMES = ("go", "api gateway", "node.js", "c++", "ada lovelace", "東京", "user_id", "api")


def found(text: str) -> list[str]:
    return [mention.canonical for mention in NameIndex(NAMES).mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The API-gateway in Go", ["api gateway", "go"]),
        ("the api, then the gateway", ["api"]),
        ("Ask Ada. Lovelace is away", []),
        ("Ada\nLovelace", []),
        ("node.js and C++, not C", ["node.js", "c++"]),
        ("来週東京へ行く", ["東京"]),
        ("rename user_id", ["user_id"]),
        ("apis and gone", []),
        ("", []),
    ],
)
def test_the_longest_name_at_each_place_is_found_in_whole_words(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("name", "text", "means"),
    [
        ("Go", "go", False),
        ("Go", "Go", True),
        ("IT", "it", False),
        ("npm", "npm", True),
        ("npm", "NPM", False),
        ("Signet", "signet", True),
        ("Will", "will", False),
    ],
)
def test_short_and_common_names_count_only_as_they_are_written(name: str, text: str, means: bool) -> None:
    assert is_written_as(name, text) is means


@given(st.text(max_size=200))
def test_every_mention_is_a_part_of_the_text(text: str) -> None:
    index = NameIndex([canonical_name(text[at : at + 5]) for at in range(0, len(text), 5)])
    for mention in index.mentions(text):
        assert mention.text in text
        assert tokens_of(mention.text)


def test_names_that_begin_alike_cost_no_more_than_others() -> None:
    index = NameIndex(f"project {number}" for number in range(20_000))
    assert [m.canonical for m in index.mentions("project 7 and project 19999, not project 20000")] == [
        "project 7",
        "project 19999",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "We chose Postgres over MySQL",
        "chosen to use Go over Rust",
        "decided to ship", "decided on tabs", "decided against Kafka",
        "switched from npm to pnpm", "switched to uv",
        "migrated from Heroku", "migrated to AWS", "migrated away",
        "picked ZeroMQ over gRPC",
        "went with SQLite", "sticking with make", "committed to Python", "settled on WAL",
        "we will use uv", "will go with ruff", "will stick with mypy",
        "prefers vim over emacs", "prefer tabs instead", "prefers prose rather than lists",
        "adopted semantic versioning",
        "Architecture decision: actors", "a design decision",
    ],
)  # fmt: skip
def test_words_of_decisions(text: str) -> None:
    assert is_decision_content(text)


@pytest.mark.parametrize("text", ["uses Postgres", "the chosen one", "prefers vim", "a decision tree", "it went well"])
def test_words_that_decide_nothing(text: str) -> None:
    assert not is_decision_content(text)


def test_there_are_fourteen_decision_patterns() -> None:
    assert len(DECISION_PATTERNS) == 14


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Signet uses PostgreSQL 16", [(("Signet", "PostgreSQL"), "technology")]),
        ("The team decided to use ZeroMQ instead of gRPC", [(("ZeroMQ",), "decisions")]),
        ("Nicholai lives in Denver; it rained", [(("Nicholai", "Denver"), "location")]),
        ("We never deploy on Friday", []),
        ("Deploy to AWS", [(("AWS",), "general")]),
        ("nothing here has a name", []),
    ],
)
def test_clauses_with_their_entities_and_aspects(text: str, expected: list[tuple[tuple[str, ...], str]]) -> None:
    assert [(clause.names, clause.aspect) for clause in clauses(text)] == expected


def test_relations_and_the_dependencies_that_they_imply() -> None:
    assert relation_type("Depends  on") == relation_type("depends-on") == "depends_on"
    pairs = {"uses": "uses", "depends_on": "depends_on", "is_part_of": "part_of", "knows": "related_to"}
    assert {relation: dependency_type(relation) for relation in pairs} == pairs
    assert dependency_strength(0.5, 1) == 0.5
    assert 0.5 < dependency_strength(0.5, 2) < dependency_strength(0.5, 3) < 1.0


def test_one_place_in_a_text_means_few_of_the_names_that_differ_in_their_marks() -> None:
    names = [f"alpha{mark}beta" for mark in "!#$%&*,-./:;<=>?@^~|"]
    found = list(NameIndex(names).mentions("alpha beta"))
    assert 1 < len(found) == MAX_ALIKE
