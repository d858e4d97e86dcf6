"""Token codes: which word pieces of a text are stored, and what the query's are."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from signet_actors.config.embedding_models import EMBEDDED_FOLDER, MAX_TOKEN_CODES
from signet_actors.providers.embedded import TOKENIZER, EmbeddedEmbedder

CODES = EmbeddedEmbedder().token_codes


def pieces(codes: bytes) -> list[str]:
    tokenizer = Tokenizer.from_file(str(EMBEDDED_FOLDER / TOKENIZER))
    return [tokenizer.id_to_token(number).strip("\u2581") for number in np.frombuffer(codes, np.uint16).tolist()]


def test_only_telling_pieces_are_stored() -> None:
    assert pieces(CODES.of_text("The doctor didn't see us, and we'll go!")) == ["doctor", "didn", "see", "go"]


def test_a_text_of_stop_words_keeps_them() -> None:
    assert pieces(CODES.of_text("to be or not")) == ["to", "be", "or", "not"]


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_text_without_tokens_has_no_codes(text: str) -> None:
    assert CODES.of_text(text) == b""
    assert CODES.of_query(text) == []


def test_line_breaks_separate_words_like_blanks() -> None:
    assert CODES.of_text("red\n\n  fox\tden") == CODES.of_text("red fox den")


def test_the_first_pieces_of_a_long_text_are_stored() -> None:
    words = [f"{first}{second}ing" for first in "bcdfghklmp" for second in "bcdfghklmp"]
    assert len(CODES.of_text(" ".join(words))) == 2 * MAX_TOKEN_CODES
    assert CODES.of_text(" ".join(words)).startswith(CODES.of_text(" ".join(words[:10])))


def test_bytes_of_characters_that_the_model_does_not_know_are_not_compared() -> None:
    assert pieces(CODES.of_text("river \U0001f9ff")) == ["river"]


def test_digits_are_not_compared() -> None:
    assert pieces(CODES.of_text("port 5433 of 2024")) == ["port"]


def test_the_words_of_a_query_come_with_their_pieces() -> None:
    words = CODES.of_query("What did the doctor's dog eat? The dog!")
    assert [(word, pieces(codes)) for word, codes in words] == [
        ("doctor's", ["doctor"]),
        ("dog", ["dog"]),
        ("eat?", ["eat"]),
        ("dog!", ["dog"]),
    ]


def test_a_query_of_stop_words_keeps_them() -> None:
    assert [word for word, _ in CODES.of_query("what is it")] == ["what", "is", "it"]
