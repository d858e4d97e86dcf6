"""The agent's identity in the user's files."""

from __future__ import annotations

import pytest

from signet_actors.domain.identity import MAX_VALUE_CHARS, identity_of_document, identity_of_text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- **Name:** Ada\n- **Creature:** owl\n- **Vibe:** calm", {"name": "Ada", "creature": "owl", "vibe": "calm"}),
        ("# Identity\n\nname: Ada\n", {"name": "Ada"}),
        ("---\nname: 'Ada'\ndescription: Keeps the books\n---\n", {"name": "Ada", "description": "Keeps the books"}),
        ("* Name : Ada Lovelace\r\n", {"name": "Ada Lovelace"}),
        ("name: Ada\nname: Eve", {"name": "Ada"}),
        ("name:\nname: Ada", {"name": "Ada"}),
        ("the name: of the rose", {}),
        ("", {}),
    ],
)
def test_a_name_is_found_in_each_documented_form(text: str, found: dict[str, str]) -> None:
    assert identity_of_text(text) == found


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"agent": {"name": "Ada"}, "name": "Eve"}, {"name": "Ada"}),
        ({"identity": {"name": "Ada"}}, {"name": "Ada"}),
        ({"name": "Ada", "description": "d"}, {"name": "Ada", "description": "d"}),
        ({"agent": "Ada", "name": 5}, {}),
        (None, {}),
        ([], {}),
    ],
)
def test_a_configuration_file_may_name_the_agent(document: object, found: dict[str, str]) -> None:
    assert identity_of_document(document) == found


def test_a_value_is_one_bounded_line() -> None:
    assert identity_of_text("name: " + "x" * 100_000)["name"] == "x" * MAX_VALUE_CHARS
    assert identity_of_document({"name": "a\nb\tc"}) == {"name": "a b c"}
