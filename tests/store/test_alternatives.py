"""Terms of a query that no memory holds: typing errors, and identifiers by their parts."""

from __future__ import annotations

import pytest

from tests.support.store_room import StoreRoom


def found(room: StoreRoom, query: str) -> list[str]:
    return [row.content for row in room.recall(query).rows]


@pytest.mark.parametrize(
    "query", ["databse", "datbaase", "dattabase", "databasw", "databases?", "which databse", "kuberntes", "kuberentse"]
)
def test_a_word_with_a_typing_error_is_found(room: StoreRoom, query: str) -> None:
    wanted = room.remember("the database runs on kubernetes")
    room.remember("dates of the base camp")
    assert [row.id for row in room.recall(query).rows] == [wanted.id]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("at night", "the nightly export ran out of memory"),
        ("nightly", "the export runs at night"),
        ("config", "the configuration of the proxy"),
        ("dockerized", "run it in docker"),
    ],
)
def test_another_form_of_a_word_is_found(room: StoreRoom, query: str, content: str) -> None:
    room.remember(content)
    room.remember("an unrelated remark about boats")
    assert found(room, query) == [content]


def test_the_form_with_the_most_similar_length_comes_first(room: StoreRoom) -> None:
    for word in ("nightfall", "nightly", "nights", "nightclub"):
        room.remember(f"{word} in town")
    assert found(room, "nighty")[0] == "nights in town"


def test_a_word_that_some_memory_holds_is_searched_as_it_is(room: StoreRoom) -> None:
    room.remember("the planet is far")
    room.remember("the planes are late")
    assert found(room, "planet") == ["the planet is far"]


@pytest.mark.parametrize("query", ["cot", "dogg", "grean", "2o26", "xatabase", "data", "databasefields"])
def test_short_words_numbers_and_other_first_letters_have_no_alternatives(room: StoreRoom, query: str) -> None:
    room.remember("the green cat and the dog read the database of 2026")
    assert found(room, query) == []


def test_a_memory_with_the_word_itself_is_stronger_than_one_with_a_similar_word(room: StoreRoom) -> None:
    room.remember("a database of boats")
    room.remember("harbours, boats")
    rows = room.recall("databse harbours").rows
    assert [row.content for row in rows] == ["harbours, boats", "a database of boats"]
    assert rows[1].score < 0.7 * rows[0].score


@pytest.mark.parametrize("query", ["getUserName", "get_user_name", "user_name.py", "UserNameField"])
def test_an_identifier_that_no_memory_holds_is_searched_by_its_parts(room: StoreRoom, query: str) -> None:
    room.remember("the name of a user is read from the session")
    room.remember("an unrelated remark")
    assert found(room, query) == ["the name of a user is read from the session"]


def test_an_identifier_that_a_memory_holds_is_not_split(room: StoreRoom) -> None:
    room.remember("call get_user_name first")
    room.remember("the name of a user")
    assert found(room, "get_user_name") == ["call get_user_name first"]


def test_only_the_first_unknown_words_of_a_query_have_alternatives(room: StoreRoom) -> None:
    room.remember("the database runs")
    unknown = ["zanzibarian", "quixotical", "xylophonist", "wistfulness"]
    assert found(room, " ".join(["databse", *unknown])) == ["the database runs"]
    assert found(room, " ".join([*unknown, "databse"])) == []
