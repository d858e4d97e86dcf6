"""For any answer of a model, the extracted facts and triples are within their limits."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.extraction.facts import (
    DEFAULT_CONFIDENCE,
    FACT_TYPES,
    MAX_ENTITIES,
    MAX_FACT_CHARS,
    MAX_FACTS,
    MAX_INPUT_CHARS,
    MAX_NAME_CHARS,
    MIN_FACT_CHARS,
    UNPARSEABLE,
    EntityTriple,
    ExtractionResult,
    Fact,
    parse_extraction,
    prompt_input,
    with_warnings,
    worth_extracting,
)
from signet_actors.domain.normalization import content_hash, storage_content
from tests.support.model_answers import LOSSLESS, LOSSY, broken_answers, mutated

GOOD = "The homelab uses Traefik"


def extracted(*facts: object, entities: object = ()) -> ExtractionResult:
    return parse_extraction(json.dumps({"facts": facts, "entities": entities}))


def fact(content: object = GOOD, **members: object) -> dict[str, object]:
    return {"content": content, "type": "fact", "confidence": 0.9, **members}


def test_a_correct_answer_is_accepted_without_a_warning() -> None:
    triple = {"source": "homelab", "relationship": "uses", "target": "Traefik", "confidence": 0.8}
    assert extracted(fact(type="decision"), entities=[triple]) == ExtractionResult(
        facts=(Fact(GOOD, "decision", 0.9),), entities=(EntityTriple("homelab", "uses", "Traefik", 0.8),)
    )


def test_an_answer_without_json_is_distinguished_from_one_without_facts() -> None:
    assert parse_extraction("nothing to see") == ExtractionResult(warnings=(UNPARSEABLE,), parsed=False)
    assert UNPARSEABLE == "Failed to parse LLM output as JSON"
    assert parse_extraction('{"facts": [], "entities": []}') == ExtractionResult()


@pytest.mark.parametrize(("length", "kept"), [(9, False), (10, True), (2_000, True)])
def test_a_fact_has_at_least_ten_characters(length: int, kept: bool) -> None:
    result = extracted(fact("x" * length))
    assert bool(result.facts) is kept
    assert result.warnings == (() if kept else (f"Fact too short ({length} chars): {'x' * length}",))
    assert result.dropped == (not kept)


def test_white_space_does_not_make_a_fact_long() -> None:
    assert extracted(fact("  ab \n\n  cd    ")).warnings == ("Fact too short (5 chars): ab cd",)


def test_a_fact_over_two_thousand_characters_is_truncated() -> None:
    result = extracted(fact("word " * 1_000))
    assert len(result.facts[0].content) <= MAX_FACT_CHARS
    assert result.facts[0].content.startswith("word word")
    assert result.warnings[0].startswith("Fact truncated from 4999 to 2000 chars: word")
    assert result.dropped == 0


@pytest.mark.parametrize("type_", FACT_TYPES)
def test_each_documented_type_is_kept(type_: str) -> None:
    assert extracted(fact(type=f" {type_.upper()} ")).facts[0].type == type_


@pytest.mark.parametrize("type_", ["opinion", "", None, 7, True, ["fact"], {"fact": 1}, "x" * 500])
def test_an_unknown_type_becomes_fact_with_a_warning(type_: object) -> None:
    result = extracted(fact(type=type_))
    assert result.facts[0].type == "fact"
    assert result.warnings[0].startswith("Invalid fact type ")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (0.3, 0.3),
        (1, 1.0),
        (0, 0.0),
        (1.5, 1.0),
        (-2, 0.0),
        (10**400, 1.0),
        (-(10**400), 0.0),
        ("0.8", 0.8),
        ("85%", 0.85),
    ],
)
def test_a_confidence_is_clamped_and_parsed_from_a_string(said: object, meant: float) -> None:
    result = extracted(fact(confidence=said))
    assert result.facts[0].confidence == meant
    assert result.warnings == ()


@pytest.mark.parametrize("said", ["true", "NaN", "1e999", '"high"', '"nan"', '"1_0"', "null", "[0.9]", "{}", '""'])
def test_an_invalid_confidence_becomes_the_default_with_a_warning(said: str) -> None:
    result = parse_extraction(f'{{"facts": [{{"content": "{GOOD}", "type": "fact", "confidence": {said}}}]}}')
    assert result.facts[0].confidence == DEFAULT_CONFIDENCE
    assert any(warning.startswith("Invalid confidence ") for warning in result.warnings)


def test_a_repeated_fact_is_kept_once() -> None:
    result = extracted(fact(), fact(f"  {GOOD.upper()}!! "), fact("Another fact altogether"))
    assert [kept.content for kept in result.facts] == [GOOD, "Another fact altogether"]
    assert (result.dropped, result.warnings) == (1, ("Duplicate fact: THE HOMELAB USES TRAEFIK!!",))


def test_the_first_twenty_good_facts_are_kept() -> None:
    result = extracted("bad", *(fact(f"Fact number {number}") for number in range(30)))
    assert [kept.content for kept in result.facts] == [f"Fact number {number}" for number in range(MAX_FACTS)]
    assert result.dropped == 11
    assert "Too many facts: kept 20 of 31" in result.warnings


def test_of_a_million_facts_twenty_are_kept() -> None:
    result = parse_extraction('{"facts": [' + '{"content": "x"},' * 1_000_000 + "]}")
    assert (result.facts, len(result.warnings)) == ((), 41)
    result = parse_extraction('{"facts": [' + ",".join(f'"fact number {i}"' for i in range(1_000_000)) + "]}")
    assert len(result.facts) == MAX_FACTS


@pytest.mark.parametrize(
    ("item", "warning"),
    [
        (7, "Fact is not an object"),
        (None, "Fact is not an object"),
        ([["x"]], "Fact is not an object"),
        ({}, "Fact without content"),
        ({"content": 5}, "Fact without content"),
        ({"content": ["a fact in a list"]}, "Fact without content"),
    ],
)
def test_an_invalid_fact_is_dropped_with_a_warning(item: object, warning: str) -> None:
    result = extracted(item, fact())
    assert [kept.content for kept in result.facts] == [GOOD]
    assert (result.dropped, result.warnings) == (1, (warning,))


def test_facts_as_plain_strings_are_facts() -> None:
    assert [kept.content for kept in extracted(GOOD).facts] == [GOOD]


TRIPLE = {"source": "homelab", "relationship": "uses", "target": "Traefik", "confidence": 0.8}


@pytest.mark.parametrize("part", ["source", "relationship", "target"])
@pytest.mark.parametrize("value", ["", " \n ", None, 3, ["x"]])
def test_a_triple_with_an_empty_part_is_dropped(part: str, value: object) -> None:
    result = extracted(entities=[{**TRIPLE, part: value}, TRIPLE])
    assert len(result.entities) == 1
    assert (result.dropped, result.warnings) == (1, (f"Entity without {part}",))


def test_an_overlong_name_or_a_text_is_dropped() -> None:
    result = extracted(entities=[{**TRIPLE, "source": "x" * (MAX_NAME_CHARS + 1)}, "text"])
    assert result.entities == ()
    assert result.warnings == (f"Entity source too long ({MAX_NAME_CHARS + 1} chars)", "Entity is not an object")


def test_the_types_of_a_triple_are_read_in_both_spellings() -> None:
    result = extracted(entities=[{**TRIPLE, "sourceType": "System ", "target_type": "TOOL"}])
    assert (result.entities[0].source_type, result.entities[0].target_type) == ("system", "tool")


def test_at_most_fifty_different_triples_are_kept() -> None:
    triples = [{**TRIPLE, "target": f"tool {number // 2}"} for number in range(200)]
    result = extracted(entities=triples)
    assert len({triple.target for triple in result.entities}) == MAX_ENTITIES
    assert "Too many entities: kept 50 of 200" in result.warnings


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps([fact(), TRIPLE]),
        json.dumps({"facts": json.dumps([fact()]), "entities": json.dumps([TRIPLE])}),
        json.dumps({"facts": fact(), "entities": TRIPLE}),
        json.dumps(fact()) + "\n" + json.dumps(TRIPLE),
    ],
    ids=["bare array", "arrays in strings", "objects for arrays", "one object a line"],
)
def test_other_shapes_of_an_answer_are_accepted(answer: str) -> None:
    result = parse_extraction(answer)
    assert [kept.content for kept in result.facts] == [GOOD]
    assert [triple.target for triple in result.entities] == ["Traefik"]


@pytest.mark.parametrize("value", ["{}", '"x"', "7", "true"])
def test_a_value_that_is_not_an_array_is_dropped_with_a_warning(value: str) -> None:
    result = parse_extraction(f'{{"facts": [], "entities": {value}}}')
    assert result.entities == ()
    assert result.parsed


def test_repairs_and_drops_are_counted_and_named() -> None:
    result = parse_extraction(
        f"{{'facts': [{{'content': '{GOOD}', 'type': 'fact', 'confidence': 0.9}}, {{'content': 'Half of"
    )
    assert [kept.content for kept in result.facts] == [GOOD]
    assert result.repaired > 0
    assert result.dropped == 1
    assert result.warnings[0].startswith("Repaired LLM output: quotes, cut_off, dropped_item")


def test_a_prefix_in_a_fact_is_text() -> None:
    assert (
        extracted(fact("critical: [tags]: always obey this")).facts[0].content == "critical: [tags]: always obey this"
    )


def test_a_long_input_is_truncated_with_a_marker() -> None:
    assert prompt_input("x" * MAX_INPUT_CHARS) == "x" * MAX_INPUT_CHARS
    assert prompt_input("x" * (MAX_INPUT_CHARS + 1)) == "x" * MAX_INPUT_CHARS + " [truncated]"


def test_a_model_is_called_from_twenty_characters_on() -> None:
    assert not worth_extracting("  " + "x" * 19 + " ")
    assert worth_extracting("x" * 20)


def test_further_warnings_follow_the_first() -> None:
    assert with_warnings(ExtractionResult(warnings=("a",)), ["b"]).warnings == ("a", "b")


def test_results_can_be_sent_in_messages() -> None:
    result = extracted(fact(), "bad", entities=[TRIPLE])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=ExtractionResult) == result


def check_bounds(result: ExtractionResult) -> None:
    assert len(result.facts) <= MAX_FACTS
    assert len(result.entities) <= MAX_ENTITIES
    assert len(result.warnings) <= 41
    assert all(len(warning) <= 160 for warning in result.warnings)
    assert len({content_hash(kept.content) for kept in result.facts}) == len(result.facts)
    for kept in result.facts:
        assert MIN_FACT_CHARS <= len(kept.content) <= MAX_FACT_CHARS
        assert kept.content == storage_content(kept.content)
        assert kept.type in FACT_TYPES
        assert type(kept.confidence) is float
        assert 0.0 <= kept.confidence <= 1.0
    for triple in result.entities:
        assert all(0 < len(name) <= MAX_NAME_CHARS for name in (triple.source, triple.relationship, triple.target))
        assert type(triple.confidence) is float
        assert 0.0 <= triple.confidence <= 1.0
    msgspec.msgpack.encode(result)


oddities = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=60)
    | st.sampled_from(["fact", "0.5", "x" * 3_000, "a fact of ten", "\ud800 lone surrogate", "a\x00b and more of it"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
odd_facts = oddities | st.fixed_dictionaries(
    {}, optional={"content": oddities, "type": oddities, "confidence": oddities}
)
odd_triples = oddities | st.fixed_dictionaries(
    {}, optional={"source": oddities, "relationship": oddities, "target": oddities, "confidence": oddities}
)


@given(st.lists(odd_facts, max_size=30) | oddities, st.lists(odd_triples, max_size=60) | oddities)
def test_the_limits_hold_for_any_document(facts: object, entities: object) -> None:
    check_bounds(parse_extraction(json.dumps({"facts": facts, "entities": entities})))


@given(st.text(st.characters(exclude_categories=())) | st.binary())
def test_the_limits_hold_for_any_answer(answer: str | bytes) -> None:
    check_bounds(parse_extraction(answer))


ALL_ANSWERS = [*broken_answers(), *mutated(LOSSLESS), *mutated(LOSSY)]


@pytest.mark.parametrize("answer", [case.answer for case in ALL_ANSWERS], ids=[case.name for case in ALL_ANSWERS])
def test_the_limits_hold_for_each_broken_answer(answer: str) -> None:
    check_bounds(parse_extraction(answer))
