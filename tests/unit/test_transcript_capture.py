"""A captured transcript holds no secret, and becomes parts that the writer can store one by one."""

from __future__ import annotations

import itertools
import json

import pytest

from signet_actors.domain.redaction.scan import Redactor
from signet_actors.domain.transcripts.excerpts import excerpt
from signet_actors.domain.transcripts.parse import parse_transcript
from signet_actors.domain.transcripts.turns import MAX_TEXT_CHARS, MAX_TURNS, TranscriptTooLong
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.gateway import transcript_capture
from signet_actors.gateway.transcript_capture import PART_CHARS, capture, segments, with_terms, without_secrets

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEAx5Zc\n" * 20 + "-----END RSA PRIVATE KEY-----\n"


def test_secrets_are_removed_from_every_turn() -> None:
    line = json.dumps({"role": "user", "content": f"use {KEY} and\n{BLOCK}"})
    found = capture((line + "\n").encode() * 3, Redactor(), lambda: None)
    texts = [turn.content for part in found.parts for turn in part]
    assert len(texts) == 3
    assert all(KEY not in text and "MIIE" not in text and "[REDACTED:" in text for text in texts)
    assert found.kinds


def test_a_key_block_at_the_edge_of_a_segment_is_removed_whole() -> None:
    text = "a line\n" * 37_400 + BLOCK + "the end\n" * 1000
    assert "".join(segments(text, 256 * 1024)) == text
    cleaned, kinds = without_secrets(Redactor(), text, {})
    assert "MIIE" not in cleaned
    assert cleaned.endswith("the end\n")
    assert kinds


def test_a_text_with_more_secrets_than_a_memory_may_have_is_stored_without_them() -> None:
    cleaned, _ = without_secrets(Redactor(), f"token {KEY}\n" * 5000 + "password=hunter2hunter2\n" * 9000, {})
    assert KEY not in cleaned
    assert "hunter2" not in cleaned


def test_parts_are_bounded_and_keep_the_order() -> None:
    raw = "".join(json.dumps({"role": "user", "content": f"{n} " + "word " * 2000}) + "\n" for n in range(200)).encode()
    found = capture(raw, Redactor(), lambda: None)
    assert len(found.parts) > 1
    assert all(sum(len(turn.content) for turn in part) <= PART_CHARS for part in found.parts)
    assert [int(turn.content.split()[0]) for part in found.parts for turn in part] == list(range(200))


@pytest.mark.parametrize(
    "word",
    [
        "\u6570\u636e\u5e93\u5728\u7aef\u53e3",
        "\u30c7\u30fc\u30bf",
        "\ub370\uc774\ud130",
        "stra\u00dfe ",
        "camelCase ",
        "\u6570 a ",
    ],
)
def test_parts_are_bounded_with_the_words_for_their_index(word: str) -> None:
    raw = "".join(json.dumps({"role": "user", "content": f"{n} " + word * 4000}) + "\n" for n in range(40)).encode()
    parts = capture(raw, Redactor(), lambda: None).parts
    assert len(parts) > 1
    for part in parts:
        indexed = with_terms(part, lambda: None)
        assert [turn.content for turn in indexed] == [turn.content for turn in part]
        assert all(turn.cjk == indexed_beside(turn.content) for turn in indexed)
        assert sum(len(turn.content) + len(turn.cjk or "") for turn in indexed) <= PART_CHARS


PASSWORD = "Wq7!!zKpLm93"


@pytest.mark.parametrize(
    "said",
    [
        (f"the db password: {PASSWORD}", f"I set {PASSWORD} in compose.yml", f"done, {PASSWORD}."),
        (f"I set {PASSWORD} in compose.yml", f"right, the db password: {PASSWORD}", "ok"),
        (f"export DB_PASSWORD='{PASSWORD}'", f"psql says {PASSWORD} is wrong", f"`{PASSWORD}` again"),
        (f"the db password: {PASSWORD}\n" + "words between. " * 40_000 + f"\nI have set {PASSWORD}", "ok", PASSWORD),
    ],
)
def test_a_secret_that_one_turn_names_is_in_no_turn(said: tuple[str, ...]) -> None:
    roles = itertools.cycle(("user", "assistant"))
    raw = "".join(json.dumps({"role": next(roles), "content": text}) + "\n" for text in said).encode()
    found = capture(raw, Redactor(), lambda: None)
    texts = [turn.content for part in found.parts for turn in part]
    assert not any(PASSWORD in text for text in texts)
    assert "password" in found.kinds


def test_words_that_were_somebodys_password_stay_in_the_other_turns() -> None:
    said = ("the db password: production", "we deploy to production", "pin: 4821", "4821 rows")
    raw = "".join(json.dumps({"role": "user", "content": text}) + "\n" for text in said).encode()
    texts = [turn.content for part in capture(raw, Redactor(), lambda: None).parts for turn in part]
    assert texts[1] == "we deploy to production"
    assert texts[3] == "4821 rows"


def test_a_conversation_that_is_too_long_is_refused() -> None:
    line = b'{"role": "user", "content": "' + b"x" * 1_000_000 + b'"}\n'
    with pytest.raises(TranscriptTooLong, match="more than 8388608 characters"):
        capture(line * 9, Redactor(), lambda: None)
    with pytest.raises(TranscriptTooLong, match="more than 8388608 characters"):
        capture(b"x" * (MAX_TEXT_CHARS + 1), Redactor(), lambda: None)


@pytest.mark.parametrize(
    "turns",
    [
        b'{"role":"user","content":"a"}\n{"role":"user","content":"b"}\n',
        b"User: a\nAssistant: b\n",
        b'{"type":"event_msg","payload":{"type":"user_message","message":"a"}}\n' * 2,
    ],
)
def test_a_conversation_with_too_many_turns_is_refused(turns: bytes) -> None:
    assert len(parse_transcript(turns * (MAX_TURNS // 2)).turns) == MAX_TURNS
    with pytest.raises(TranscriptTooLong, match="more than 50000 turns"):
        parse_transcript(turns * (MAX_TURNS // 2 + 1))


def test_other_threads_can_run_between_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_capture, "PART_TURNS", 2)
    paused: list[int] = []
    capture(b'{"role":"user","content":"a"}\n' * 10, Redactor(), lambda: paused.append(1))
    assert len(paused) >= 20


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("short text", ["nothing"], "short text"),
        ("a " * 500 + "the ferry sails at noon " + "b " * 500, ["ferry"], "ferry sails at noon"),
        ("a " * 500 + "she deploys at noon " + "b " * 500, ["deploying"], "deploys at noon"),
    ],
)
def test_an_excerpt_shows_the_word_that_was_found(text: str, words: list[str], expected: str) -> None:
    found = excerpt(text, words)
    assert expected in found
    assert len(found) <= 260


@pytest.mark.parametrize("filler", ["x ", "x"])
@pytest.mark.parametrize("before", [-30, -5, 0, 5])
def test_a_secret_across_the_cut_of_a_long_text_is_removed(filler: str, before: int) -> None:
    cut = 256 * 1024
    text = (filler * cut)[: cut - 20 + before] + f" {KEY} " + filler * cut
    cleaned, kinds = without_secrets(Redactor(), text, {})
    assert KEY not in cleaned
    assert kinds == ["github-token"]


def test_what_memory_supplied_is_not_kept() -> None:
    told = "[signet:recall | query=ferry | results=1 | engine=hybrid]\n- The ferry leaves at nine (May 1, 2025)"
    raw = json.dumps({"role": "user", "content": told}) + "\n" + json.dumps({"role": "user", "content": "When?"}) + "\n"
    found = capture(raw.encode(), Redactor(), lambda: None)
    assert [turn.content for part in found.parts for turn in part] == ["When?"]


def test_a_secret_is_found_wherever_the_cuts_of_a_long_text_are() -> None:
    half, whole = 128 * 1024, 256 * 1024
    text = "y" * (half - 1) + "\n" + ("x " * whole)[: whole - 20] + KEY + " x" * whole
    assert text.index(KEY) < half + whole < text.index(KEY) + len(KEY), "the second cut is inside the secret"
    cleaned, kinds = without_secrets(Redactor(), text, {})
    assert KEY not in cleaned
    assert kinds == ["github-token"]
    assert cleaned.replace(cleaned[cleaned.index("[REDACTED") : cleaned.index("]") + 1], KEY) == text
