"""Memories of other programs, imported into a live daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.foreign_memories import COFFEE, MEM0, NOTE, OBSERVATION, REFERENCE_ROW, SUMMARY, database, written
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def source(name: str, tmp_path: Path) -> Path:
    """A sample of the format."""
    if name == "text":
        return written(tmp_path / "notes.txt", "The first paragraph.\n\nThe second paragraph.\n")
    if name == "markdown":
        return written(tmp_path / "deploy.md", NOTE)
    if name == "basic-memory":
        return written(tmp_path / "coffee.md", COFFEE)
    if name == "mem0":
        return written(tmp_path / "all.json", MEM0)
    if name == "claude-mem":
        return database(tmp_path / "claude-mem.db", observations=[OBSERVATION], session_summaries=[SUMMARY])
    return database(tmp_path / "memories.db", memories=[REFERENCE_ROW])


@pytest.mark.parametrize(
    ("name", "count", "query", "expected"),
    [
        ("text", 2, "second paragraph", {"content": "The second paragraph.", "source_type": "markdown"}),
        (
            "markdown",
            5,
            "never on fridays",
            {"content": "# When\n\nNever on Fridays.", "tags": "ops,C++,deployments,when"},
        ),
        ("basic-memory", 6, "water 93 degrees", {"type": "decision", "tags": "coffee,brewing,decision"}),
        ("mem0", 1, "pizza", {"who": "alice", "source_type": "mem0", "created_at": "2026-01-02T18:00:00.123Z"}),
        ("claude-mem", 2, "backoff", {"project": "orderdesk", "type": "decision", "session_id": "session-1"}),
        ("reference", 1, "vim", {"id": REFERENCE_ROW["id"], "pinned": 1, "importance": 0.9, "access_count": 4}),
    ],
)
def test_a_sample_is_imported_found_and_not_stored_twice(
    daemon: LiveDaemon, tmp_path: Path, name: str, count: int, query: str, expected: dict[str, Any]
) -> None:
    path = source(name, tmp_path)

    def imported() -> dict[str, Any]:
        arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(path), "--from", name, "--json"]
        result = CliRunner(env={"XDG_CACHE_HOME": str(tmp_path / "cache")}).invoke(
            cli, [*arguments, "--agent", f"of-{name}"]
        )
        assert result.exit_code == 0, (result.stdout, result.stderr)
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    agent = daemon.agent(f"of-{name}")
    first = imported()
    assert (first["imported"], first["deduped"], first["refused"]) == (count, 0, [])
    again = imported()
    assert (again["imported"], again["deduped"]) == (0, count)
    stored = {row["id"]: agent.memory(row["id"]) for row in agent.listed()}  # before a recall counts as an access
    found = stored[agent.recalled(query)[0]]
    assert {member: found[member] for member in expected} == expected


def test_a_memory_that_changed_in_its_source_is_named_and_left_as_it_is(daemon: LiveDaemon, tmp_path: Path) -> None:
    agent = daemon.agent("of-changes")
    long_text = " ".join(f"Sentence {number} of the long one is here." for number in range(40))
    file = tmp_path / "all.json"
    before = len(daemon.agent("default").listed())  # an agent that has stored nothing reads its own memories only

    def imported(*texts: str) -> Any:
        file.write_text(json.dumps([{"id": str(number), "memory": text} for number, text in enumerate(texts)]))
        arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(file), "--from", "mem0", "--json"]
        cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return json.loads(CliRunner(env=cache).invoke(cli, [*arguments, "--agent", "of-changes"]).stdout)

    first = imported("Likes tea", "Lives in Bremen", long_text)
    assert (first["imported"], first["memories"], first["differing"]) == (3, len(agent.listed()) - before, [])
    assert first["memories"] > 3
    again = imported("Likes coffee", "lives in  Bremen.", long_text + " One more.")
    assert (again["imported"], again["memories"], again["deduped"]) == (0, 0, 3)
    assert [line["source"] for line in again["differing"]] == ["mem0:0", "mem0:2"]
    assert agent.memory(again["differing"][0]["id"])["content"] == "Likes tea"
    assert len(agent.listed()) - before == first["memories"]


def test_what_another_project_has_of_the_same_files_is_stored_again_only_if_one_agrees(
    daemon: LiveDaemon, tmp_path: Path
) -> None:
    agent = daemon.agent("of-projects")
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(20):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nThe buoy {number} of this harbour is green.\n\n\n")

    def imported(*options: str, answer: str = "") -> tuple[int, str]:
        arguments = [
            "--url",
            f"http://127.0.0.1:{daemon.port}",
            "import",
            str(notes),
            "--agent",
            "of-projects",
            *options,
        ]
        result = CliRunner(env={"XDG_CACHE_HOME": str(tmp_path / "cache")}).invoke(cli, arguments, input=answer)
        return result.exit_code, " ".join(result.output.split())

    def count() -> int:  # a daemon's agents read the memories of others, too
        return sum("The buoy" in row["content"] for row in agent.listed())

    assert imported("--project", "/home/you/quay")[0] == 0
    stored = count()
    assert stored == 20
    for options, place in (
        ((), "for all projects"),
        (("--project", "/home/you/pier"), "in the project /home/you/pier"),
    ):
        for answer in ("", "n\n"):
            code, told = imported(*options, answer=answer)
            assert code != 0
            assert "20 memories of these files exist already in the project /home/you/quay" in told
            assert f"once more, {place}." in told
    assert count() == stored
    assert imported("--project", "/home/you/quay") == (0, "Imported 0 memories, 20 existed already, 0 refused.")
    assert imported("--yes")[0] == 0
    assert count() == stored + 20
    assert imported()[0] == imported("--project", "/home/you/quay")[0] == 0
    assert imported("--project", "/home/you/pier", answer="y\n")[0] == 0
    assert count() == stored + 40


def test_an_import_is_repeated_without_a_question_however_the_directory_of_its_project_is_spelled(
    daemon: LiveDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, barn = tmp_path / "shop", tmp_path / "barn"
    for each in (shop / "src", barn):
        each.mkdir(parents=True)
    (shop / ".git").mkdir()
    (tmp_path / "link").symlink_to(shop)
    notes = tmp_path / "heron.md"
    notes.write_text("# Heron\n\nThe heron of this harbour nests in May.\n")

    def imported(directory: Path, project: str) -> str:
        monkeypatch.chdir(directory)
        where = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(notes), "--agent", "of-herons"]
        result = CliRunner(env={"XDG_CACHE_HOME": str(tmp_path / "cache")}).invoke(cli, [*where, "--project", project])
        return " ".join(result.output.split())

    assert "Imported 1 memory" in imported(shop, ".")
    spellings = (
        *((shop, each) for each in (".", "./", "./.", "./src", "src/..", "../shop", "../shop/", "../barn/../shop")),
        *((shop / "src", each) for each in ("..", ".", "../", "./..", "../src/.")),
        *(
            (barn, each)
            for each in ("../shop", "../link", "../link/src", f"{shop}/", f"{shop}//src", f"{shop}/./src/..")
        ),
        *((tmp_path, each) for each in ("shop/", "link/", "link/src", "./shop/src")),
    )
    for directory, project in spellings:
        assert imported(directory, project) == "Imported 0 memories, 1 existed already, 0 refused.", (
            directory,
            project,
        )
    for project in (".", "../barn", str(barn)):
        assert "exists already in the project" in imported(barn, project), project


OWN = ("Never push to main; open a pull request", "User prefers pnpm over npm", "We decided to use Postgres 16")
QUOKKA = "The quokka page tells how. Never feed the quokka by hand. We prefer quokka shoes, and decided on quokka hats."


def test_imported_notes_push_no_memory_of_the_user_out_of_a_start_or_the_list_by_dates(tmp_path: Path) -> None:
    """Source: docs/guides/hooks.md "The start of a session"; docs/guides/working-memory.md "Temporal Index"."""
    notes, project = tmp_path / "notes", tmp_path / "shop"
    notes.mkdir()
    project.mkdir()
    for number in range(12):
        sections = (f"## Part {part}\n\n{QUOKKA} {number}.{part}\n\n" + f"{QUOKKA} " * 8 for part in range(4))
        (notes / f"{number}.md").write_text(f"# {number}\n\nAlways greet quokka {number}.\n\n" + "\n\n".join(sections))
    with live_daemon(config="memory: {pipelineV2: {synthesis: {provider: none}}}\n", patient=True) as daemon:
        for text in OWN:
            daemon.api.remember(text, project=str(project), createdAt="2026-10-01T08:00:00Z")
        for where in ((), ("--project", str(project))):
            url = f"http://127.0.0.1:{daemon.port}"
            answer = CliRunner().invoke(cli, ["--url", url, "import", str(notes), "--yes", *where])
            assert answer.exit_code == 0, answer.output
        stored = daemon.read("SELECT count(*), sum(source_type = 'chunk'), sum(type <> 'fact') FROM memories")[0]
        assert min(stored) > 50, "the notes have long parts, rules and preferences"
        notes_of_project = {"source_type": "markdown", "project": str(project), "limit": 500}
        listed = daemon.api.get("/api/memories", **notes_of_project).ok()["memories"]
        assert len(listed) == (stored[0] - len(OWN)) / 2, "long sections are of the import, too"
        start = {"harness": "codex", "project": str(project), "sessionKey": "s"}
        told = daemon.api.post("/api/hooks/session-start", start).ok()["inject"]
        assert [text for text in OWN if text not in told] == []
        assert "quokka" not in told
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        index = eventually(lambda: told_by(daemon.workspace / "MEMORY.md"), what="MEMORY.md is written")
        assert "Postgres 16" in index
        assert "quokka" not in index
        exported = CliRunner().invoke(cli, ["--url", url, "export", str(tmp_path / "all.jsonl")])
        assert exported.exit_code == 0, exported.output
        found = daemon.api.recall("quokka shoes", **notes_of_project)["results"]  # last: now they were asked for
        assert {row["source_type"] for row in found} == {"markdown", "chunk"}
    with live_daemon(patient=True) as other:
        url = f"http://127.0.0.1:{other.port}"
        brought = CliRunner().invoke(cli, ["--url", url, "import", str(tmp_path / "all.jsonl")])
        assert brought.exit_code == 0, brought.output
        told = other.api.post("/api/hooks/session-start", start).ok()["inject"]
        assert [text for text in OWN if text not in told] == []
        assert "quokka" not in told, "chunks from another store are of an import, too"


def told_by(path: Path) -> str:
    return path.read_text() if path.exists() else ""


LONG = " ".join(f"Sentence {number} of the long section is here." for number in range(40))
PIN, EDIT, FORGET, TAG = "pin", "edit", "forget", "tag"


class Edited(NamedTuple):
    """Texts of a file, one import each; between the last two, ``done`` is done to each memory. ``left``: what is live.

    A heading that is left stands for its section.
    """

    files: tuple[str, ...]
    left: tuple[str, ...]
    superseded: int = 0
    done: str = ""
    name: str = "notes.md"


EDITED = {
    "one section": Edited(("# A\n\none", "# A\n\ntwo"), ("# A\n\ntwo",), 1),
    "one of two": Edited(("# A\n\none\n# B\n\nb", "# A\n\ntwo\n# B\n\nb"), ("# A\n\ntwo", "# B\n\nb"), 1),
    "both": Edited(("# A\n\none\n# B\n\nb", "# A\n\ntwo\n# B\n\nc"), ("# A\n\ntwo", "# B\n\nc"), 2),
    "twice": Edited(("# A\n\none", "# A\n\ntwo", "# A\n\nthree"), ("# A\n\nthree",), 1),
    "and back": Edited(("# A\n\none", "# A\n\ntwo", "# A\n\none"), ("# A\n\none",), 1),
    "back and forth": Edited(("# A\n\none", "# A\n\ntwo", "# A\n\none", "# A\n\ntwo"), ("# A\n\ntwo",), 1),
    "below a heading": Edited(("# A\n\n## B\n\none", "# A\n\n## B\n\ntwo"), ("## B\n\ntwo",), 1),
    "moved in the file": Edited(("# A\n\none\n# B\n\nb", "# B\n\nb\n# A\n\ntwo"), ("# A\n\ntwo", "# B\n\nb"), 1),
    "same name below others": Edited(
        ("# A\n## X\n\none\n# B\n## X\n\nb", "# A\n## X\n\ntwo\n# B\n## X\n\nb"), ("## X\n\ntwo", "## X\n\nb"), 1
    ),
    "text before headings": Edited(("one\n# A\n\na", "two\n# A\n\na"), ("two", "# A\n\na"), 1),
    "front matter": Edited(("---\ntags: x\n---\n# A\n\none", "---\ntags: x\n---\n# A\n\ntwo"), ("# A\n\ntwo",), 1),
    "a text of one paragraph": Edited(("one", "two"), ("two",), 1, name="notes.txt"),
    "unchanged": Edited(("# A\n\none", "# A\n\none"), ("# A\n\none",)),
    "only case and point": Edited(("# A\n\nThe one.", "# A\n\nthe one"), ("# A\n\nThe one.",)),
    "a new section": Edited(("# A\n\none", "# A\n\none\n# B\n\nb"), ("# A\n\none", "# B\n\nb")),
    "another heading": Edited(("# A\n\none", "# B\n\ntwo"), ("# A\n\none", "# B\n\ntwo")),
    "a removed section": Edited(("# A\n\none\n# B\n\nb", "# A\n\none"), ("# A\n\none", "# B\n\nb")),
    "one heading twice": Edited(
        ("# A\n\none\n# A\n\nb", "# A\n\ntwo\n# A\n\nb"), ("# A\n\none", "# A\n\ntwo", "# A\n\nb")
    ),
    "paragraphs": Edited(("one\n\nb", "two\n\nb"), ("one", "two", "b"), name="notes.txt"),
    "pinned": Edited(("# A\n\none", "# A\n\ntwo"), ("# A\n\none", "# A\n\ntwo"), done=PIN),
    "corrected here": Edited(("# A\n\none", "# A\n\ntwo"), ("corrected", "# A\n\ntwo"), done=EDIT),
    "tagged here": Edited(("# A\n\none", "# A\n\ntwo"), ("# A\n\none", "# A\n\ntwo"), done=TAG),
    "forgotten here": Edited(("# A\n\none", "# A\n\none"), (), done=FORGET),
    "replaced, then forgotten": Edited(("# A\n\none", "# A\n\ntwo", "# A\n\ntwo"), (), done=FORGET),
}


def test_a_changed_section_of_a_note_replaces_the_one_that_it_was(daemon: LiveDaemon, tmp_path: Path) -> None:
    wrong = []
    for number, (name, case) in enumerate(EDITED.items()):
        agent, file = daemon.agent(f"edits-{number}"), tmp_path / str(number) / case.name
        agent.remember("beside all notes")
        before = {row["id"] for row in agent.listed()}
        told: Any = {}
        for at, text in enumerate(case.files):
            mine = [row["id"] for row in agent.listed() if row["id"] not in before]
            if at == len(case.files) - 1 and case.done:
                for memory in mine:
                    change(agent, memory, case.done)
            told = imported_notes(daemon, file, text, f"edits-{number}")
        left = {agent.memory(row["id"])["content"] for row in agent.listed() if row["id"] not in before}
        if left != set(case.left) or told["superseded"] != case.superseded:
            wrong.append(f"{name}: {sorted(left)}, {told}")
        kept = case.done in {PIN, EDIT, TAG}
        if [line["source"][:11] for line in told["differing"]] != ["notes.md#a@"] * kept:
            wrong.append(f"{name}: {told['differing']}")
    assert wrong == []


def change(agent: Client, memory: str, what: str) -> None:
    """Do to the memory what a person may do."""
    if what == FORGET:
        agent.request("DELETE", f"/api/memory/{memory}?reason=test").ok()
        return
    fields = {PIN: {"pinned": True}, EDIT: {"content": "corrected"}, TAG: {"tags": ["mine"]}}[what]
    agent.request("PATCH", f"/api/memory/{memory}", {**fields, "reason": "test"}).ok()


def imported_notes(daemon: LiveDaemon, file: Path, text: str, agent: str) -> Any:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(file), "--from", "markdown", "--json"]
    cache = {"XDG_CACHE_HOME": str(file.parent / "cache")}
    result = CliRunner(env=cache).invoke(cli, [*arguments, "--agent", agent])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_long_section_is_replaced_with_all_its_parts_and_can_be_recovered(daemon: LiveDaemon, tmp_path: Path) -> None:
    agent, file = daemon.agent("long-edits"), tmp_path / "long.md"
    agent.remember("An agent that has stored nothing reads its own memories only")
    before = {row["id"] for row in agent.listed()}
    imported_notes(daemon, file, f"# A\n\n{LONG}", "long-edits")
    former = [row["id"] for row in agent.listed() if row["id"] not in before]
    told = imported_notes(daemon, file, f"# A\n\n{LONG.replace('Sentence 3 of', 'Number 3 of')}", "long-edits")
    assert told["superseded"] == len(former) > 1
    live = " ".join(agent.memory(row["id"])["content"] for row in agent.listed() if row["id"] not in before)
    assert "Number 3 of" in live
    assert "Sentence 3 of" not in live
    assert all(f"Sentence {number} of" in live for number in range(40) if number != 3)
    history = agent.get(f"/api/memory/{former[0]}/history").ok()["history"]
    assert [(event["event"], event["reason"]) for event in history][-1] == (
        "deleted",
        "imported again with another text",
    )
    assert imported_notes(daemon, file, f"# A\n\n{LONG}", "long-edits")["imported"] == 1


def test_the_same_section_of_another_file_or_project_stays(daemon: LiveDaemon, tmp_path: Path) -> None:
    agent = daemon.agent("two-files")
    agent.remember("This agent reads the shared memories of others, too")
    before = len(agent.listed())
    for directory in ("one", "two"):
        imported_notes(daemon, tmp_path / directory / "notes.md", f"# A\n\nof {directory}", "two-files")
    line = {"content": "# A\n\nchanged", "sourceId": "notes.md#a@1", "supersedes": "notes.md#a@", "project": "/p"}
    line["sourcePath"] = str(tmp_path / "one" / "notes.md")
    told = agent.post("/api/memory/import", json.dumps(line).encode()).ok()
    assert (told["imported"], "superseded" in told) == (1, False)
    assert len(agent.listed()) - before == 3
    for wrong in ({"supersedes": "notes.md#b@"}, {"supersedes": "notes.md#a"}, {"sourcePath": None}):
        told = agent.post("/api/memory/import", json.dumps({**line, **wrong}).encode()).ok()
        assert [refused["field"] for refused in told["refused"]] == ["supersedes"]
