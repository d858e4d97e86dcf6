"""The error texts of a provider are quoted, unless they repeat the prompt."""

from __future__ import annotations

import pytest

from signet_actors.providers.log_sanitizing import ECHO_CHARS, drop_if_echoed

PROMPT = "You turn a note into facts.\n<data>\nThe code word of the vault is Wolverine-7731.\n</data>"


@pytest.mark.parametrize(
    "said",
    [
        "cannot read: The code word of the vault is Wol",
        "THE CODE\\nWORD OF THE\\tVAULT",
        "bad token near 'wolverine 7731'",
        PROMPT,
    ],
)
def test_a_repeated_prompt_is_not_quoted_in_any_form(said: str) -> None:
    assert drop_if_echoed(said, ["something else", PROMPT]) == ""


@pytest.mark.parametrize(
    "said",
    ["", "model 'qwen3:4b' not found, try pulling it first", "the vault", "context length exceeded", "12 of the"],
)
def test_a_message_without_parts_of_the_prompt_is_quoted(said: str) -> None:
    assert drop_if_echoed(said, ["", PROMPT]) == said


@pytest.mark.parametrize(("sent", "quoted"), [("PIN 4711", False), ("ab", True), ("", True), ("PIN 0815", True)])
def test_a_short_text_counts_as_repeated_only_as_a_whole(sent: str, quoted: bool) -> None:
    said = "no vector for pin-4711, nor for ab"
    assert drop_if_echoed(said, [sent]) == (said if quoted else "")


def test_two_texts_are_compared_separately() -> None:
    said = "a" * ECHO_CHARS
    assert drop_if_echoed(said, ["x" + "a" * (ECHO_CHARS - 1), "a" * 3 + "x" * ECHO_CHARS]) == said
