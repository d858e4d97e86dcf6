"""The files of ``signet export --markdown``: readable, and read back as they were."""

from __future__ import annotations

import stat
import uuid
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_actors.cli.importers import signet_markdown
from signet_actors.cli.importers.signet_markdown import MARK, MarkdownDirectory, digest, document, mark_as_imported
from signet_actors.cli.importers.source import Findings, NotThisFormat

ID = "01a2059b-7c1e-7e35-9f0b-2f6d6c1d7d50"
MEMORY: dict[str, Any] = {
    "id": ID,
    "content": "Deployments: never on Fridays.\n\n---\nnot: front matter",
    "type": "decision",
    "tags": ["ops", "C++", "no", "two words"],
    "importance": 0.8,
    "pinned": True,
    "project": "/home/ada/ferry: the second",
    "createdAt": "2026-01-02T18:00:00.123Z",
    "updatedAt": "2026-01-02T18:00:00.123Z",
    "times": [{"facet": "occurred", "start": "2024-02-29T00:00:00.000Z"}],
}


def read(path: Path) -> tuple[dict[str, Any], Findings]:
    findings = Findings()
    [memory] = signet_markdown.memories(path, findings)
    del memory[signet_markdown.FILE]
    return memory, findings


def test_a_file_has_front_matter_and_the_text() -> None:
    assert document(MEMORY) == (
        "---\n"
        f'id: "{ID}"\n'
        "type: decision\n"
        'tags: [ops, "C++", "no", "two words"]\n'
        "importance: 0.8\n"
        "pinned: true\n"
        'project: "/home/ada/ferry: the second"\n'
        'createdAt: "2026-01-02T18:00:00.123Z"\n'
        'updatedAt: "2026-01-02T18:00:00.123Z"\n'
        'times: [{"facet": "occurred", "start": "2024-02-29T00:00:00.000Z"}]\n'
        f"exported: {digest(MEMORY)}\n"
        "---\n\n"
        "Deployments: never on Fridays.\n\n---\nnot: front matter\n"
    )


def test_a_directory_has_a_private_file_a_memory_and_is_read_back(tmp_path: Path) -> None:
    with MarkdownDirectory(tmp_path / "memories") as directory:
        directory.add(MEMORY)
        assert not (tmp_path / "memories").exists()
        directory.finish()
    [path] = (tmp_path / "memories").rglob("*.md")
    assert path.relative_to(tmp_path) == Path("memories/decision/deployments-never-on-fridays-6c1d7d50.md")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in tmp_path.iterdir()] == ["memories"]
    memory, findings = read(tmp_path / "memories")
    assert (memory.pop(MARK), findings.warnings) == (digest(MEMORY), [])
    assert memory == MEMORY


@given(
    content=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
    who=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    tags=st.lists(
        st.text("abcDEF äß日本:#[]{}'\"\\-1é\u2028\x85", min_size=1, max_size=64).filter(str.strip), max_size=3
    ),
)
@example(content='{"a": 1}', who="ada", tags=[])
def test_whatever_is_in_a_memory_comes_back(
    tmp_path_factory: pytest.TempPathFactory, content: str, who: str, tags: list[str]
) -> None:
    path = tmp_path_factory.mktemp("one") / "one.md"
    tags = list(dict.fromkeys(tag.strip() for tag in tags))
    made = {"id": ID, "content": content, "who": who, "tags": tags}
    path.write_text(document(made), encoding="utf-8")
    memory, findings = read(path)
    assert findings.warnings == []
    assert (memory["content"].strip(), memory["who"], memory.get("tags") or []) == (content.strip(), who, tags)
    assert digest(memory) == memory[MARK]


def test_two_memories_with_equal_names_have_files_of_their_own(tmp_path: Path) -> None:
    with MarkdownDirectory(tmp_path / "memories") as directory:
        for number in range(2):
            directory.add({"id": str(uuid.UUID(int=number << 64)), "content": "../../..", "type": "fact"})
        directory.finish()
    assert len(list((tmp_path / "memories" / "fact").iterdir())) == 2


def test_a_directory_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(click.UsageError, match="give a new or an empty directory"):
        MarkdownDirectory(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.md"]


def test_other_markdown_is_refused_with_the_name_of_its_importer(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# A heading\n\nA note.\n")
    with pytest.raises(NotThisFormat, match="`--from markdown` imports any other Markdown"):
        list(signet_markdown.memories(tmp_path, Findings()))


def test_a_file_that_was_imported_has_the_mark_of_its_new_state(tmp_path: Path) -> None:
    path = tmp_path / "one.md"
    path.write_text(document(MEMORY).replace("never", "seldom"), encoding="utf-8")
    memory, _ = read(path)
    mark_as_imported(path, memory)
    assert read(path)[0][MARK] == digest(memory) != digest(MEMORY)
    assert path.read_text(encoding="utf-8") == document({**MEMORY, "content": memory["content"]})
