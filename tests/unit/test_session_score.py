"""What is taken from a model's judgement of a session.

Source: memory-pipeline.txt "Continuity Scoring".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from signet_actors.features.session_scores.rules import MAX_REASONING_CHARS, parse_session_score, short_ids

FIRST = "01a208b3-2318-7802-8f0e-5d1c7f2a9b60"
SECOND = "01a208b3-2319-7802-8f0e-5d1c7f2a9b61"
IDS = short_ids((FIRST, SECOND))


def parsed(**said: Any) -> Any:
    return parse_session_score(json.dumps(said), IDS, 2)


def test_memories_of_the_same_minute_have_different_short_ids() -> None:
    assert IDS == {"7f2a9b60": FIRST, "7f2a9b61": SECOND}


def test_a_short_id_that_two_memories_share_names_none() -> None:
    assert short_ids((FIRST, "01a208b3-2320-7802-8f0e-ffff7f2a9b60", SECOND)) == {"7f2a9b61": SECOND}


def test_a_whole_answer() -> None:
    score = parsed(
        score=0.8,
        confidence=0.9,
        memories_used=1,
        novel_context_count=2,
        reasoning="It knew the port.",
        per_memory=[{"id": "7f2a9b60", "relevance": 1}, {"id": "00000000", "relevance": 1}],
    )
    assert (score.score, score.confidence, score.memories_used, score.novel_context_count) == (0.8, 0.9, 1, 2)
    assert score.reasoning == "It knew the port."
    assert score.relevance == {FIRST: 1.0}, "an unknown id is ignored"


def test_missing_fields_are_zero_or_empty() -> None:
    score = parsed(score=1)
    assert (score.confidence, score.memories_used, score.novel_context_count) == (0.0, 0, 0)
    assert (score.reasoning, score.relevance) == ("", {})


@pytest.mark.parametrize(("said", "value"), [(7, 1.0), (-3, 0.0), (0.25, 0.25)])
def test_scores_are_clamped(said: float, value: float) -> None:
    score = parsed(score=said, confidence=said, per_memory=[{"id": "7F2A9B61", "relevance": said}])
    assert (score.score, score.confidence, score.relevance) == (value, value, {SECOND: value})


@pytest.mark.parametrize("score", ["0.8", None, True, [1], {}])
def test_a_score_that_is_no_number_is_rejected(score: object) -> None:
    assert parsed(score=score) is None


@pytest.mark.parametrize("answer", ["I do not know", "[]", "{}", "null", '{"score": NaN}', '{"score": Infinity}'])
def test_rubbish_is_no_score(answer: str) -> None:
    assert parse_session_score(answer, IDS, 2) is None


def test_fences_and_think_blocks_are_stripped() -> None:
    said = json.dumps({"score": 0.5, "per_memory": []})
    score = parse_session_score(f"<think>hm</think>\n```json\n{said}\n```", IDS, 2)
    assert score is not None
    assert score.score == 0.5


def test_invalid_entries_are_skipped_and_counts_and_texts_bounded() -> None:
    score = parsed(
        score=0.5,
        memories_used=99,
        novel_context_count=-1,
        reasoning="word " * 10_000,
        per_memory=["7f2a9b60", {"id": 5, "relevance": 1}, {"id": "7f2a9b60", "relevance": "high"}, {"relevance": 1}],
    )
    assert (score.memories_used, score.novel_context_count, score.relevance) == (2, 0, {})
    assert len(score.reasoning) <= MAX_REASONING_CHARS
