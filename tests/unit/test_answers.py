"""The schemas sent to models match the parsers and use only common features of servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.domain.extraction.answers import (
    CONTRADICTION,
    DECISION,
    EXTRACTION,
    HINTS,
    SUMMARY,
    AnswerFormat,
)
from signet_actors.domain.extraction.contradiction import parse_semantic
from signet_actors.domain.extraction.facts import FACT_TYPES, Fact, parse_extraction
from signet_actors.domain.extraction.hints import parse_hints
from signet_actors.domain.extraction.proposals import ACTIONS, parse_decision

FORMATS = (EXTRACTION, DECISION, CONTRADICTION, HINTS, SUMMARY)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)


@pytest.mark.parametrize("answer", FORMATS, ids=lambda answer: answer.name)
def test_a_schema_is_an_object_without_references_whose_fields_are_all_required(answer: AnswerFormat) -> None:
    assert answer.schema["type"] == "object"
    assert "$ref" not in json.dumps(answer.schema)
    for found in objects(answer.schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])


def test_the_schemas_name_every_type_of_fact_and_every_action() -> None:
    fact = EXTRACTION.schema["properties"]["facts"]["items"]
    assert set(fact["properties"]["type"]["enum"]) == set(FACT_TYPES)
    assert set(DECISION.schema["properties"]["action"]["enum"]) == set(ACTIONS)


def test_an_answer_that_matches_the_schema_is_parsed_without_repair() -> None:
    extraction = {
        "facts": [{"content": "Noor prefers four spaces.", "type": "preference", "confidence": 0.9}],
        "entities": [{"source": "Noor", "relationship": "prefers", "target": "spaces", "confidence": 0.9}],
    }
    read = parse_extraction(json.dumps(extraction))
    assert (len(read.facts), len(read.entities), read.repaired, read.dropped) == (1, 1, 0, 0)
    decision = {"action": "add", "targetId": None, "confidence": 0.9, "reason": "It is new."}
    assert parse_decision(json.dumps(decision), Fact("It is new here", "fact", 0.9), ()).proposal is not None
    assert parse_semantic(json.dumps({"contradicts": True, "confidence": 0.9, "reasoning": "so"})).contradicts
    assert parse_hints(json.dumps({"hints": ["what is new here"]}), "It is new", 5).hints == ("what is new here",)
