"""A prompt with pasted text is given the memory that answers it. Source: docs/guides/hooks.md "Each prompt"."""

from __future__ import annotations

import pytest

from tests.support.live_daemon import Client
from tests.system.pasted_prompts import CONTROLS, OTHERS, PASTED

pytestmark = pytest.mark.system


def given(room: Client, prompt: str) -> str:
    answer = room.post("/api/hooks/user-prompt-submit", {"harness": "t", "userPrompt": prompt}).ok()
    assert "skipped" not in answer or not answer["skipped"], answer
    inject: str = answer["inject"]
    return inject


@pytest.fixture
def stored(room: Client) -> Client:
    for text in dict.fromkeys([*OTHERS, *(pasted.memory for pasted in PASTED)]):
        room.remember(text)
    return room


def test_the_memory_that_answers_is_given_whatever_else_is_pasted(stored: Client) -> None:
    missed = [pasted for pasted in PASTED if pasted.memory not in given(stored, pasted.prompt)]
    assert missed == []


def test_pasted_text_that_no_memory_is_about_gets_none(stored: Client) -> None:
    found = {prompt[:300]: text for prompt in CONTROLS if (text := given(stored, prompt))}
    assert found == {}
