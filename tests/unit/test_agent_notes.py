"""What becomes a memory of that which Claude Code, Codex and OpenClaw note by themselves.

Source: docs/transfer.md "The memories of your agents".
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.importers import claude_memory, codex_memory, openclaw
from signet_actors.cli.importers.markdown import without_signet
from signet_actors.cli.importers.source import Findings, NotThisFormat
from tests.support import native_memories as native
from tests.support.foreign_memories import written


def read(importer: Any, path: Path) -> tuple[list[dict[str, Any]], Findings]:
    findings = Findings()
    found = list(importer.memories(path, findings))
    assert (findings.unreadable, findings.warnings) == ([], [])
    return found, findings


def test_a_file_of_claude_code_is_a_memory_with_its_project_session_and_time(tmp_path: Path) -> None:
    project = tmp_path / "ferry"
    project.mkdir()
    folder = native.claude(tmp_path, project)
    found, _ = read(claude_memory, tmp_path / ".claude")
    facts = [one for one in found if one["content"].startswith("The upload worker retries 5 times")]
    assert facts == [
        {
            "content": facts[0]["content"],
            "tags": ["project", "upload-retries"],
            "sourceType": "claude-memory",
            "sourceId": facts[0]["sourceId"],
            "supersedes": facts[0]["sourceId"].partition("@")[0] + "@",
            "sourcePath": str(folder / "upload-retries.md"),
            "sessionId": native.SESSION,
            "project": str(project),
            "createdAt": "2026-07-29T13:16:34.420000+00:00",
            "updatedAt": "2026-07-29T13:16:34.420000+00:00",
        }
    ]
    assert "three tries lost uploads" in facts[0]["content"]
    [review] = [one for one in found if "Every review names" in one["content"]]
    assert review["tags"] == ["feedback", "reviews-name-a-test"]
    assert "type" not in review


def test_of_an_index_only_what_is_no_link_to_another_file_is_a_memory(tmp_path: Path) -> None:
    folder = native.claude(tmp_path, tmp_path)
    found, _ = read(claude_memory, folder / "MEMORY.md")
    assert [one["content"] for one in found] == [
        "# Memory Index\n\n- [The port](gone.md) — staging listens on 5433",
        "## Build\n\nRun `make wheel` before the tests.",
    ]


def test_the_same_memory_has_the_same_source_from_wherever_it_is_imported(tmp_path: Path) -> None:
    folder = native.claude(tmp_path, tmp_path)
    projects = tmp_path / ".claude" / "projects"
    places = (tmp_path / ".claude", projects, folder.parent, folder)
    sources = [[one["sourceId"] for one in read(claude_memory, place)[0]] for place in places]
    assert sources.count(sources[0]) == len(places)
    assert len(set(sources[0])) == 4
    fact, _ = read(claude_memory, folder / "upload-retries.md")
    assert {one["sourceId"] for one in fact} < set(sources[0])


def test_the_project_is_found_in_a_session_else_on_the_disk_else_it_is_the_name_of_the_folder(tmp_path: Path) -> None:
    projects = [tmp_path / name for name in ("a.b", "a/b", "a-c", "gone")]
    for project in projects[:3]:
        project.mkdir(parents=True)
    folders = [native.claude(tmp_path / str(number), project) for number, project in enumerate(projects)]

    def project_of(folder: Path) -> set[str]:
        return {one["project"] for one in read(claude_memory, folder)[0]}

    assert project_of(folders[2]) == {str(projects[2])}
    assert project_of(folders[0]) == {folders[0].parent.name}, "two directories are written so"
    written(folders[0].parent / f"{native.SESSION}.jsonl", json.dumps({"type": "user", "cwd": str(projects[1])}) + "\n")
    assert project_of(folders[0]) == {str(projects[1])}
    assert project_of(folders[3]) == {folders[3].parent.name}


def test_the_handbook_of_codex_is_read_without_what_leads_elsewhere(tmp_path: Path) -> None:
    folder = native.codex(tmp_path)
    found, _ = read(codex_memory, folder)
    assert [(one["content"].split("\n")[2], one.get("project")) for one in found] == [
        ('- when publishing, the user asked: "never on a Sunday" [Task 1]', "/home/ada/ferry"),
        ("- `publish.sh --dry-run` prints the feed without uploading it [Task 1]", "/home/ada/ferry"),
        ("- keep reports to one page [Task 1]", None),
        ("Ada runs the ferry's servers.", None),
    ]
    assert found[0]["createdAt"] == "2026-04-22T14:31:33.000Z"
    assert found[0]["tags"] == ["task-group-ferry-timetable", "user-preferences"]
    assert {one["sourceType"] for one in found} == {"codex-memory"}


def test_what_signet_has_shown_to_openclaw_is_not_read_again(tmp_path: Path) -> None:
    found, findings = read(openclaw, native.openclaw(tmp_path))
    assert [one["content"] for one in found] == [
        "# Long-term memory\n\n- Ada likes short answers.",
        "## Servers\n\nThe backup runs at 03:00.",
    ]
    assert (findings.of_signet, {one["sourceType"] for one in found}) == (1, {"openclaw"})


@pytest.mark.parametrize(
    ("written_by_signet", "parts"),
    [
        (native.SHOWN, 1),
        ('[signet:recall | query="deploy" | results=1 | engine=hybrid]\n- Never deploy on Fridays. (Jan 2, 2026)', 1),
        ("<!-- signet: made from memories at 2026-11-24T00:00:00Z; below -->\n\n## Rules\n\n- Never on Fridays.", 1),
        ("[memory active | /remember | /recall]\n# Current Date & Time\nMonday, November 23, 2026 at 10:00 (UTC)", 2),
    ],
)
def test_what_signet_has_written_is_left_out_and_what_stands_before_it_is_kept(
    written_by_signet: str, parts: int
) -> None:
    own = "The staging port is 5433."
    kept, count = without_signet(f"{own}\n\n{written_by_signet}\n")
    assert (kept.strip(), count) == (own, parts)
    assert without_signet(own) == (own, 0)


def test_the_file_that_signet_makes_of_memories_has_none_to_import(tmp_path: Path) -> None:
    made = "<!-- signet: made from memories at 2026-11-24T00:00:00Z; what you write above this line stays -->\n"
    written(tmp_path / "MEMORY.md", f"{made}\n## Rules\n\nNever on Fridays.\n")
    found, findings = read(openclaw, tmp_path)
    assert (found, findings.of_signet, findings.without_text) == ([], 1, 1)


@pytest.mark.parametrize("importer", [claude_memory, codex_memory, openclaw])
def test_another_directory_is_refused_with_the_place_of_the_memory(tmp_path: Path, importer: Any) -> None:
    written(tmp_path / "notes.txt", "text")
    with pytest.raises(NotThisFormat, match=r"Claude Code|Codex|OpenClaw"):
        read(importer, tmp_path)


def test_a_memory_that_is_only_described_is_its_description(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    written(folder / "port.md", "---\nname: port\ndescription: The staging port is 5433\n---\n\n")
    [found], _ = read(claude_memory, folder)
    assert found["content"] == "The staging port is 5433"


def test_without_a_path_the_usual_place_of_the_program_is_read(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    folder = native.claude(tmp_path, tmp_path)
    assert claude_memory.default_path(environ) == folder.parents[1]
    assert codex_memory.default_path(environ) == native.codex(tmp_path)
    assert openclaw.default_path(environ) == native.openclaw(tmp_path)
    shutil.move(tmp_path / ".claude", tmp_path / "claude")
    assert claude_memory.default_path({"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}) == tmp_path / "claude/projects"
    assert codex_memory.default_path({"CODEX_HOME": os.sep}) == Path("/memories")
