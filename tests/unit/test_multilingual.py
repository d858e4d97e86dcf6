"""The multilingual model returns near vectors for texts that mean the same in different languages.

Its pieces are those of the package tokenizers, which is not part of the installation.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from signet_actors.config.embedding_models import MULTILINGUAL_FILE, configured_space, makes_token_codes
from signet_actors.config.schema import MULTILINGUAL_DIMENSIONS, MULTILINGUAL_MODEL, EmbeddingConfig
from signet_actors.errors import ConfigError
from signet_actors.providers.minilm import encoder
from signet_actors.providers.multilingual.embedder import MAX_TEXT_CHARS, MultilingualEmbedder
from signet_actors.providers.multilingual.packed_file import read
from signet_actors.providers.multilingual.unigram import BEGIN, END, Pieces, Unigram
from signet_actors.providers.select import make_embedder
from tests.support.multilingual import HAS_MODEL, WHY_NOT

needs_model = pytest.mark.skipif(not HAS_MODEL, reason=WHY_NOT)

MEANINGS = (
    ("The test server restarts every night.", "Der Testserver wird jede Nacht neu gestartet."),
    ("Le serveur de test redémarre chaque nuit.", "El servidor de pruebas se reinicia cada noche."),
    ("Тестовый сервер перезапускается каждую ночь.", "サーバーは毎晩再起動します。"),
    ("Anna is allergic to nuts.", "Anna verträgt keine Nüsse."),
    ("Anna est allergique aux noix.", "安娜对坚果过敏。"),
    ("The invoice must be paid within thirty days.", "Die Rechnung ist innerhalb von dreißig Tagen zu bezahlen."),
    ("La fattura va pagata entro trenta giorni.", "Faktura musi być zapłacona w ciągu trzydziestu dni."),
    ("We keep the backups in Helsinki.", "Unsere Sicherungen liegen in Helsinki."),
    ("Guardamos las copias de seguridad en Helsinki.", "백업은 헬싱키에 보관합니다."),
    ("The cat sleeps on the sofa.", "القطة تنام على الأريكة."),
)
PIECES_OF = {
    "The nightly build fails on ARM.": "▁The ▁night ly ▁build ▁fail s ▁on ▁ARM .",
    "Die Sicherungen liegen in Zürich.": "▁Die ▁Sicher ungen ▁liegen ▁in ▁Zürich .",
    "Резервный генератор проверяют": "▁Резерв ный ▁генератор ▁проверя ют",
    "南瓜的家常做法很简单": "▁ 南 瓜 的 家 常 做法 很简单",
    "サーバーは毎晩再起動します": "▁ サーバー は 毎 晩 再 起動 します",
    "서버는 매일 밤 다시 시작됩니다": "▁서버 는 ▁매일 ▁밤 ▁다시 ▁시작 됩니다",
    "يعاد تشغيل الخادم كل ليلة": "▁ي عاد ▁ تشغيل ▁الخ اد م ▁كل ▁ليلة",
    "השרת מופעל מחדש": "▁השר ת ▁מו פעל ▁מחדש",
    "सर्वर हर रात फिर से शुरू होता है": "▁सर्व र ▁हर ▁रात ▁फिर ▁से ▁शुरू ▁होता ▁है",
    "เซิร์ฟเวอร์เริ่มใหม่ทุกคืน": "▁เ ซิ ร์ ฟ เวอร์ เริ่ม ใหม่ ทุก คืน",
    "ξεκινά πάλι κάθε βράδυ": "▁ξεκινά ▁πάλι ▁κάθε ▁βράδυ",
    "վերագործարկվում է ամեն գիշեր": "▁վեր ագործ արկ վում ▁է ▁ամեն ▁գիշեր",
    "სერვერი ყოველ ღამე": "▁სერ ვერ ი ▁ყოველ ▁ღამე",
    "  \uff21\uff22\uff23 \u00bd \ufb01le\tx  \u200b\u00e9": "▁ABC ▁1\u20442 ▁file ▁x ▁\u00e9",
    "/usr/lib/python3.11/site-packages": "▁/ us r / lib / py thon 3.1 1/ site - pack ages",
    "<s></s> <unk>": "▁< s ></ s > ▁< unk >",
    "\U0001f642\U0001f643 \U00013000\U00013001": "▁\U0001f642 \U0001f643 ▁ <unk>",
}
"""Texts in thirteen scripts, and such as have characters that the model replaces."""


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbedder:
    return MultilingualEmbedder()


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    return read(memoryview(MULTILINGUAL_FILE.read_bytes())).pieces


def spelled(pieces: Pieces) -> list[str]:
    return [pieces.text[begin:end].decode() for begin, end in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)]


@needs_model
def test_texts_in_thirteen_scripts_have_the_models_pieces(pieces: Pieces) -> None:
    unigram, names = Unigram(pieces, 256), spelled(pieces)
    for text, expected in PIECES_OF.items():
        begin, *found, end = unigram.numbers(text)
        assert (begin, " ".join(names[number] for number in found), end) == (BEGIN, expected, END), text


@needs_model
def test_any_text_has_the_pieces_of_the_package(pieces: Pieces) -> None:
    unigram, names = Unigram(pieces, 1 << 30), spelled(pieces)
    scored = [(name, float(score)) for name, score in zip(names, pieces.scores, strict=True)]
    package = Tokenizer(models.Unigram(scored, unk_id=3))
    chosen = random.Random(3)
    side_by_side = ["".join(chosen.choices(names[4:-1], k=6)).replace("\u2581", " ") for _ in range(200)]
    blocks = [range(0x20, 0x250), range(0x250, 0x2000), range(0x2000, 0xD800), range(0xE000, 0x20000)]
    wide = ["".join(chr(chosen.choice(chosen.choice(blocks))) for _ in range(12)) for _ in range(200)]
    for text in (*side_by_side, *wide, "", " ", "a" * 300, "x " * 300):
        marked = "".join(f"\u2581{word}" for word in text.translate(pieces.changed).split(" ") if word)
        assert unigram.numbers(text)[1:-1] == package.encode(marked, add_special_tokens=False).ids, ascii(text)


@needs_model
def test_half_a_surrogate_pair_is_unknown(pieces: Pieces) -> None:
    assert len(Unigram(pieces, 256).numbers("a \ud800")) == 5


@needs_model
def test_a_text_is_nearest_to_those_that_mean_the_same_in_another_language(embedder: MultilingualEmbedder) -> None:
    first, second = (np.stack([embedder.embed_query(pair[at]) for pair in MEANINGS]) for at in (0, 1))
    cosines = first @ second.T
    meaning = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 4])
    same = meaning[:, np.newaxis] == meaning
    assert list(meaning[cosines.argmax(axis=1)]) == list(meaning)
    assert list(meaning[cosines.argmax(axis=0)]) == list(meaning)
    assert cosines[same].mean() > 0.55
    assert abs(float(cosines[~same].mean())) < 0.15, "the common direction is subtracted"


@needs_model
def test_questions_and_texts_are_embedded_differently_and_always_to_unit_vectors(
    embedder: MultilingualEmbedder,
) -> None:
    texts = [text for pair in MEANINGS for text in pair]
    stored, asked = embedder.embed(texts), np.stack([embedder.embed_query(text) for text in texts])
    assert (stored.shape, stored.dtype) == ((len(texts), MULTILINGUAL_DIMENSIONS), np.float32)
    np.testing.assert_allclose(np.linalg.norm(np.concatenate((stored, asked)), axis=1), 1, atol=1e-5)
    alike = np.einsum("ij,ij->i", stored, asked)
    assert 0.4 < alike.min() <= alike.max() < 0.9999
    assert np.array_equal(stored[3], embedder.embed(texts[3:4])[0]), "texts beside it make no difference"


@needs_model
def test_unsigned_weights_give_the_same_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    overflow, texts = encoder._sums_overflow(), [text for pair in MEANINGS for text in pair]
    made = []
    for unsigned in (True, False):
        monkeypatch.setattr(encoder, "_sums_overflow", lambda unsigned=unsigned: unsigned)
        made.append(MultilingualEmbedder().embed(texts))
    assert np.einsum("ij,ij->i", *made).min() > (0.9 if overflow else 0.999)


@needs_model
def test_only_the_beginning_of_a_long_text_counts(embedder: MultilingualEmbedder) -> None:
    long = "Die Sicherungen liegen in Helsinki. " * (MAX_TEXT_CHARS // 30)
    assert np.array_equal(embedder.embed([long])[0], embedder.embed([f"{long} Das Ende zählt nicht."])[0])
    for empty in ("", " \n"):
        assert not embedder.embed([empty]).any()


@needs_model
def test_the_provider_multilingual_is_this_model_and_stored_under_its_name() -> None:
    config = EmbeddingConfig(provider="multilingual")
    made = make_embedder(config)
    assert made is not None
    assert (made.provider, made.model, made.local, made.token_codes) == (
        "multilingual",
        MULTILINGUAL_MODEL,
        False,
        None,
    )
    assert configured_space(config) == (made.model, made.dimensions), "else all is embedded anew for ever"
    assert not makes_token_codes(config)


def test_a_missing_file_is_a_configuration_error_that_says_what_downloads_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"which is not there: `signet setup` downloads it"):
        MultilingualEmbedder(tmp_path / "e5-small-q4.bin")


def test_a_file_with_another_hash_is_a_configuration_error(tmp_path: Path) -> None:
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1" + bytes(1000))
    with pytest.raises(ConfigError, match=r"e5-small-q4.bin has another hash than this release expects"):
        MultilingualEmbedder(other)


def test_without_the_runtime_the_error_names_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"multilingual needs onnxruntime, .* for this platform; choose embedded"):
        make_embedder(EmbeddingConfig(provider="multilingual"))
