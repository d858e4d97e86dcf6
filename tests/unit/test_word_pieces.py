"""The word pieces of both models are those of the package tokenizers, in the same order and for every text.

The package reads the models' own files; it is not part of the installation.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from signet_actors.config.embedding_models import EMBEDDED_FOLDER
from signet_actors.providers.byte_pairs import BytePairs
from signet_actors.providers.embedded import TOKENIZER
from signet_actors.providers.minilm.embedder import MAX_TOKENS, VOCABULARY
from signet_actors.providers.minilm.word_pieces import BEGIN, END, UNKNOWN, WordPieces

CONTENT = (EMBEDDED_FOLDER / TOKENIZER).read_text(encoding="utf-8")
LLAMA_PIECES: dict[str, int] = msgspec.json.decode(CONTENT)["model"]["vocab"]
BERT_PIECES = VOCABULARY.read_text(encoding="utf-8").split()
PROSE = [
    line
    for path in sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
CHARACTERS = (
    "ab \u2581\n\t\u00e9\u6f22\U0001f642<s>/unk0x41ing\u00c5\u0301\u0327\uac01"
    "\ud55c\u0130\u00df\ufb01\u03a3\u03c2\u200b\u00ad'`\u00b4"
)


def generated(pieces: list[str]) -> list[str]:
    """Texts of few characters, of any characters, and of pieces side by side."""
    chosen = random.Random(11)
    few = ["".join(chosen.choices(CHARACTERS, k=chosen.randrange(1, 40))) for _ in range(1500)]
    blocks = [range(0x20, 0x250), range(0x250, 0x2000), range(0x2000, 0xD800), range(0xE000, 0x20000)]
    wide = ["".join(chr(chosen.choice(chosen.choice(blocks))) for _ in range(12)) for _ in range(1500)]
    side_by_side = ["".join(chosen.choices(pieces, k=6)).replace("##", "") for _ in range(1500)]
    return few + wide + side_by_side


@pytest.fixture(scope="module")
def byte_pairs() -> BytePairs:
    return BytePairs(LLAMA_PIECES)


@pytest.fixture(scope="module")
def llama() -> Tokenizer:
    tokenizer = Tokenizer.from_str(CONTENT)
    tokenizer.no_truncation()
    return tokenizer


@pytest.fixture(scope="module")
def word_pieces() -> WordPieces:
    return WordPieces(VOCABULARY.read_text(encoding="utf-8"), MAX_TOKENS)


@pytest.fixture(scope="module")
def bert() -> Tokenizer:
    """The tokenizer of BERT base uncased."""
    numbers = {piece: number for number, piece in enumerate(BERT_PIECES)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((END, numbers[END]), (BEGIN, numbers[BEGIN]))
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


@pytest.mark.parametrize(
    "texts",
    [PROSE, generated(list(LLAMA_PIECES)), ["", " ", "a" * 16_384, " " * 5000 + "x", "<s></s><unk> <s", "<0x41>"]],
    ids=["prose", "generated", "odd"],
)
def test_the_embedded_models_pieces_are_those_of_the_package(
    byte_pairs: BytePairs, llama: Tokenizer, texts: list[str]
) -> None:
    for text in texts:
        assert byte_pairs.numbers_of_text(text) == llama.encode(text, add_special_tokens=False).ids, text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_the_packages_pieces(
    byte_pairs: BytePairs, llama: Tokenizer, word_pieces: WordPieces, bert: Tokenizer, text: str
) -> None:
    assert byte_pairs.numbers_of_text(text) == llama.encode(text, add_special_tokens=False).ids
    assert [token.piece for token in word_pieces.tokens(text)] == bert.encode(text).tokens


@pytest.mark.parametrize(
    "texts",
    [PROSE, generated(BERT_PIECES), ["", " ", "x" * 100, "x" * 101, "\u00e9" * 100, "many " * 500, "\u6f22" * 300]],
    ids=["prose", "generated", "odd"],
)
def test_minilms_pieces_are_those_of_the_package(word_pieces: WordPieces, bert: Tokenizer, texts: list[str]) -> None:
    for text in texts:
        found = word_pieces.tokens(text)
        expected = bert.encode(text)
        assert [token.piece for token in found] == expected.tokens, text
        assert [word_pieces.numbers[token.piece] for token in found] == expected.ids


def test_every_character_within_a_word_is_treated_as_by_the_package(word_pieces: WordPieces, bert: Tokenizer) -> None:
    every = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200))]
    for text in (f"a{character}b" for character in every):
        assert [token.piece for token in word_pieces.tokens(text)] == bert.encode(text).tokens, ascii(text)


def test_a_piece_begins_where_its_first_character_is(word_pieces: WordPieces) -> None:
    text = "\u200bCaf\u00e9\n\nu\u0301nbelievably!  \u65e5\u65e5"
    found = [(piece, text[begin:][:2]) for piece, begin in word_pieces.tokens(text)[1:-1]]
    assert found == [
        ("cafe", "Ca"),
        ("un", "u\u0301"),
        ("##bel", "be"),
        ("##ie", "ie"),
        ("##va", "va"),
        ("##bly", "bl"),
        ("!", "! "),
        ("\u65e5", "\u65e5\u65e5"),
        ("\u65e5", "\u65e5"),
    ]


def test_half_a_surrogate_pair_has_pieces_too(byte_pairs: BytePairs, word_pieces: WordPieces) -> None:
    assert byte_pairs.pieces("\ud800") == ["<0xED>", "<0xA0>", "<0x80>"]
    assert [token.piece for token in word_pieces.tokens("a \ud800")] == [BEGIN, "a", UNKNOWN, END]


def test_a_vocabulary_without_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks bytes"):
        BytePairs({"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3})
