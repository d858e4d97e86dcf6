"""The agent's identity in the user's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_actors.domain.identity import MAX_VALUE_CHARS, identity_of_document, identity_of_text
from signet_actors.gateway.synthesis.memory_file import working_memory
from signet_actors.runtime.identity_files import MAX_FILE_BYTES, read_identity


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


PRIVATE = ("id_rsa", ".env", "credentials", "key.pem", "config.json", "shadow", "md", "notes.md.gpg", "a.MD~", ".netrc")
PROSE = ("AGENTS.md", "rules.MD", "rules.markdown", "rules.mdx", "rules.txt", "hash-source-AGENTS.md", "my rules.md")


@pytest.mark.parametrize("name", ["AGENTS.md", "agents/bob/SOUL.md", "MEMORY.md"])
def test_a_link_in_place_of_an_identity_file_is_followed_to_a_text_only(tmp_path: Path, name: str) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (workspace / "agents" / "bob").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "hop.md").symlink_to(elsewhere / "hop")

    def shown() -> str:
        texts = [text for _, text in read_identity(workspace, "bob")]
        return " ".join([*texts, working_memory(workspace, "default", None)])

    for target in (*PRIVATE, *PROSE):
        (elsewhere / target).write_text(f"What {target} says.")
        (elsewhere / "hop").unlink(missing_ok=True)
        (elsewhere / "hop").symlink_to(target)
        for way in (
            elsewhere / target,
            elsewhere / "hop.md",
            Path("../" * (name.count("/") + 1)) / "elsewhere" / target,
        ):
            (workspace / name).unlink(missing_ok=True)
            (workspace / name).symlink_to(way)
            assert (f"What {target} says." in shown()) is (target in PROSE), (target, way)
    (workspace / name).unlink()
    (workspace / name).write_text("A file of its own.")
    assert "A file of its own." in shown()


def test_a_file_of_more_than_a_megabyte_is_cut_and_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("My name is Ada.\n" + "x" * (2 * MAX_FILE_BYTES))
    ((file, text),) = read_identity(tmp_path, "default")
    assert (file.name, len(text)) == ("USER.md", MAX_FILE_BYTES)
    assert text.startswith("My name is Ada.")
