"""Queries become search terms; the expressions run against a real FTS5 table with the store's schema."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signet_actors.domain.normalization import cjk_bigrams, storage_content
from signet_actors.domain.query_words import (
    STOP_WORDS,
    dense_query,
    fts_match,
    match_terms,
    query_terms,
)

anything = st.text(st.characters(exclude_categories=()), max_size=200)
tricky = st.text(st.sampled_from("aA1 \"'():^*-+{}.,;/\\_#@~NEAR\x00\ud800\u4e2d\u306b\uac00\u0301\u200d\U0001f389"))


def table(*contents: str) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE memories_fts USING fts5(content, cjk, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    for content in contents:
        stored = storage_content(content)
        connection.execute("INSERT INTO memories_fts (content, cjk) VALUES (?, ?)", (stored, cjk_bigrams(stored)))
    return connection


def found(connection: apsw.Connection, query: str) -> list[str]:
    expression = fts_match(query)
    if expression is None:
        return []
    rows = connection.execute(
        "SELECT content FROM memories_fts WHERE memories_fts MATCH ? ORDER BY bm25(memories_fts)", (expression,)
    )
    return [str(content) for (content,) in rows]


EMPTY = table()


@settings(max_examples=400)
@given(st.one_of(anything, tricky))
def test_no_text_makes_a_syntax_error(text: str) -> None:
    expression = fts_match(text)
    if expression is not None:
        EMPTY.execute("SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?", (expression,)).fetchall()


@settings(max_examples=400)
@given(st.one_of(anything, tricky))
def test_a_text_with_a_term_finds_itself(text: str) -> None:
    stored = storage_content(text)
    expression = fts_match(stored)
    # What Python takes for letters but SQLite's older Unicode tables do not is the one way to miss.
    if expression is None or not all(ord(char) < 0x2000 or "\u4e00" <= char <= "\u9fff" for char in stored):
        return
    hits = table(stored).execute("SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?", (expression,))
    assert hits.fetchall() == [(1,)]


@pytest.mark.parametrize("terms", [0, 1, 2, 64, 500])
def test_the_number_of_terms_is_bounded(terms: int) -> None:
    text = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}" for n in range(600)) + " 数据库系统"
    expression = fts_match(text, max_terms=terms)
    found = match_terms(text, max_terms=terms)
    assert len(found.phrases) + len(found.pairs) == terms
    if expression:
        EMPTY.execute("SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?", (expression,)).fetchall()


def test_stop_words_are_removed_unless_no_other_word_is_left() -> None:
    assert query_terms("What did we decide about the hook?").words == ("decide", "hook")
    assert query_terms("who are we").words == ("who", "are", "we")
    assert query_terms("What is KA-6?") == ((), ("KA-6",), ())
    assert query_terms("?! ...") == ((), (), ())
    assert fts_match("?!") is None
    assert fts_match("") is None


def test_contractions_keep_their_word() -> None:
    assert query_terms("Why doesn't Caroline's parser work? It's John's, we'll see").words == (
        "caroline",
        "parser",
        "work",
        "john",
        "see",
    )


def test_the_stop_words_are_similar_to_the_classic_list() -> None:
    assert 120 <= len(STOP_WORDS) <= 140
    assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("ticket KA-6, please", ("KA-6",)),
        ("see src/gateway/redaction.py:12.", ("src/gateway/redaction.py:12",)),
        ("(memory_search)", ("memory_search",)),
        ("error E0412 and ENOENT", ("E0412",)),
        ("release v1.2.3-beta", ("v1.2.3-beta",)),
        ("std::vector or os.path.join", ("std::vector", "os.path.join")),
        ("call getUserName()", ("getUserName",)),
        ("raise NotFoundError on YouTube, GitHub, iPhone", ("NotFoundError",)),
        ("pass --no-verify to it", ("--no-verify",)),
        ("mail max@example.org", ("max@example.org",)),
        ("fix #123", ("#123",)),
        ("/etc/hosts and ~/.ssh and C:\\temp\\x.log", ("/etc/hosts", "~/.ssh", "C:\\temp\\x.log")),
        ("on 2026-05-03 at 10:30", ("2026-05-03", "10:30")),
        ("GPT-4 with utf-8", ("GPT-4", "utf-8")),
        ("the config.yaml's key", ("config.yaml",)),
        ("key=MAX_SIZE, a=b", ("MAX_SIZE",)),
        ("修复KA-6错误", ("KA-6",)),
        ("a 20-year-old and/or state-of-the-art client/server, 3rd 5pm 20 e.g. this. That", ()),
        ("KA-6 ka-6", ("KA-6",)),
    ],
)
def test_identifiers_are_recognised(text: str, identifiers: tuple[str, ...]) -> None:
    assert query_terms(text).identifiers == identifiers


def test_an_identifier_is_searched_as_one_phrase() -> None:
    rows = table("KA-6 is fixed", "KA-61 is open", "6 people met KA", "the KA team has 6 members")
    assert found(rows, "what about KA-6?") == ["KA-6 is fixed"]


def test_a_file_is_found_by_its_path_or_name_or_line() -> None:
    rows = table("gateway/redaction.py holds the redactor", "redaction of names is planned")
    assert found(rows, "/home/me/signet/gateway/redaction.py:12") == ["gateway/redaction.py holds the redactor"]


def test_words_are_joined_by_or_and_stemmed() -> None:
    rows = table("the caches were invalidated", "unrelated")
    assert found(rows, "invalidating a cache in the morning") == ["the caches were invalidated"]


def test_quotes_and_operators_are_only_text() -> None:
    rows = table('say "hello" NEAR me', "content : x")
    assert found(rows, '"hello" NEAR(x)') == ['say "hello" NEAR me', "content : x"]
    assert found(rows, 'cjk : "nothing*" ^') == []


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("数据库", "我们决定使用PostgreSQL数据库来存储记忆"),
        ("使用数据", "我们决定使用PostgreSQL数据库来存储记忆"),
        ("postgresql", "我们决定使用PostgreSQL数据库来存储记忆"),
        ("データベース", "ユーザーはデータベースを好む"),
        ("ﾃﾞｰﾀﾍﾞｰｽ", "ユーザーはデータベースを好む"),
        ("猫", "家里有一只黑猫"),
        ("黑", "家里有一只黑猫"),
        ("데이터베이스", "데이터베이스를 사용한다"),
        ("\u1103\u1166\u110b\u1175\u1110\u1165", "데이터베이스를 사용한다"),
        ("KA-6", "修复KA-6错误"),
    ],
)
def test_chinese_japanese_and_korean_text_is_found(query: str, hit: str) -> None:
    rows = table(
        "我们决定使用PostgreSQL数据库来存储记忆",
        "ユーザーはデータベースを好む",
        "家里有一只黑猫",
        "데이터베이스를 사용한다",
        "修复KA-6错误",
        "plain English",
    )
    assert found(rows, query)[0] == hit


def test_bigrams_overlap_end_with_the_last_character_and_keep_what_touches_them() -> None:
    assert cjk_bigrams("数据库") == "数据 据库 库"
    assert cjk_bigrams("猫") == "猫"
    assert cjk_bigrams("用PostgreSQL库, ok") == "用 PostgreSQL 库"
    assert cjk_bigrams("plain, ünïcode") is None


@pytest.mark.parametrize(
    ("text", "common", "expected"),
    [
        ("What did Caroline paint?", {"caroline"}, "What did paint?"),
        ("What did Caroline's dog eat", {"caroline"}, "What did dog eat"),
        ("Where is Caroline?", {"caroline"}, "Where is Caroline?"),
        ("anything", set(), "anything"),
        ("the user's project-x build", {"user", "project", "x"}, "the build"),
        ("Caroline 猫", {"caroline"}, "猫"),
        ("🎉 Caroline", {"caroline"}, "🎉 Caroline"),
    ],
)
def test_common_words_are_removed_from_the_embedded_query(text: str, common: set[str], expected: str) -> None:
    assert dense_query(text, common) == expected


def test_a_very_long_question_is_truncated() -> None:
    assert fts_match("a" * 5_000_000) is not None
    assert fts_match("a/" * 2_000_000) is not None


def test_an_identifier_of_very_many_parts_is_searched_by_its_words() -> None:
    assert match_terms("a_" * 10_000).phrases == ("a",)
    assert match_terms("_".join(["part"] * 33)).phrases == ("part",)
    whole = "_".join(["part"] * 32)
    assert match_terms(whole).phrases[0] == whole


def test_characters_that_decompose_into_many_are_indexed_up_to_a_limit() -> None:
    """One sign of three bytes becomes six kana; a megabyte of them would hold the writer for seconds."""
    column = cjk_bigrams("漢字 " + "㌖" * 330_000)
    assert column is not None
    assert column.startswith("漢字")
    assert len(column.split()) < 510_000
    whole = cjk_bigrams("漢" * 333_000)
    assert whole is not None
    assert len(whole.split()) == 333_000
