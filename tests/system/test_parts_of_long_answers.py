"""Of a long answer of an earlier session a prompt and a search are given the part that was asked for.

Source: docs/guides/transcripts.md "In every recall"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live_daemon import Client
from tests.system.long_answers import LONG_ANSWERS

pytestmark = pytest.mark.system
PROJECT = "/home/ada/harbour"


def hook(client: Client, name: str, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(f"/api/hooks/{name}", {"harness": "codex", "project": PROJECT, **fields}).ok()
    return answer


@pytest.fixture
def answered(empty_rooms: Callable[[], Client]) -> Client:
    """An agent that has had a session with each of the long answers."""
    room = empty_rooms()
    for number, each in enumerate(LONG_ANSWERS):
        said = f"User: {each.prompt}\nAssistant: {each.answer}\nUser: thanks, commit it\nAssistant: Committed."
        hook(room, "session-end", sessionKey=f"long-{number}", transcript=said, reason="logout")
    return room


def test_a_prompt_is_given_the_part_of_a_long_answer_that_answers_it(answered: Client) -> None:
    asked = [each for answer in LONG_ANSWERS for each in answer.asked]
    given = {
        question: hook(answered, "user-prompt-submit", sessionKey=f"new-{number}", userPrompt=question)["inject"]
        for number, (question, _) in enumerate(asked)
    }
    missed = [(question, given[question]) for question, words in asked if words not in given[question]]
    assert len(missed) <= 1, missed  # of 14


def test_a_search_finds_the_part_of_a_long_answer_that_answers_it(answered: Client) -> None:
    asked = [each for answer in LONG_ANSWERS for each in answer.asked]
    missed = [
        question
        for question, words in asked
        if not any(words in result["content"] for result in answered.recall(question)["results"][:2])
    ]
    assert len(missed) <= 1, missed


def test_a_session_that_was_told_one_part_is_told_another_one_but_none_again(answered: Client) -> None:
    (first, words), (second, others), *_ = LONG_ANSWERS[0].asked
    assert words in hook(answered, "user-prompt-submit", sessionKey="asks-on", userPrompt=first)["inject"]
    assert hook(answered, "user-prompt-submit", sessionKey="asks-on", userPrompt=first)["inject"] == ""
    assert others in hook(answered, "user-prompt-submit", sessionKey="asks-on", userPrompt=second)["inject"]
