"""The commands of ``signet`` with a scripted daemon: their requests, output and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import Result

from signet_actors.cli.main import COMMANDS
from tests.support.held_workspace import held_workspace
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
OTHER = "b0b7f6f0-2a3e-4f6f-8f0a-0d0c1d2e3f40"
MEMORY: dict[str, Any] = {
    "id": ID,
    "content": "User prefers vim keybindings",
    "type": "preference",
    "importance": 0.9,
    "tags": "preference,editor",
    "pinned": 0,
    "who": "claude-code",
    "created_at": "2026-02-21T10:00:00.000Z",
    "updated_at": "2026-02-21T10:30:00.000Z",
    "is_deleted": 0,
    "version": 2,
    "agent_id": "default",
}
STORED: dict[str, Any] = {
    "id": ID,
    "type": "preference",
    "tags": "preference,editor",
    "pinned": False,
    "importance": 0.9,
    "content": "User prefers vim keybindings",
    "embedded": True,
    "deduped": False,
}


def test_remember_sends_its_options_and_prints_the_id_on_a_pipe(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("POST", "/api/memory/remember", STORED)
    result = signet(
        *("remember", "User prefers", "vim keybindings", "--type", "preference", "--tags", "preference, editor"),
        *("-t", "ui", "-i", "0.9", "--project", "p", "--pinned", "--agent", "alice", "--visibility", "private"),
        *("--idempotency-key", "k1", "--created-at", "2026-02-21"),
    )
    assert (result.exit_code, result.stdout) == (0, ID + "\n")
    asked = daemon.asked[0]
    assert asked.body == {
        "content": "User prefers vim keybindings",
        "type": "preference",
        "tags": ["preference", "editor", "ui"],
        "importance": 0.9,
        "who": "user",
        "project": "p",
        "pinned": True,
        "agentId": "alice",
        "visibility": "private",
        "idempotencyKey": "k1",
        "createdAt": "2026-02-21",
    }
    assert asked.headers["x-signet-actor"] == "cli"
    assert asked.headers["idempotency-key"].startswith("cli-")


def test_remember_reads_standard_input_for_a_dash(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", "/api/memory/remember", STORED)
    assert signet("remember", "-", stdin="zwei Zeilen\nmit Ümlaut\n").exit_code == 0
    assert daemon.asked[0].body["content"] == "zwei Zeilen\nmit Ümlaut"


def test_remember_refuses_standard_input_that_is_not_text(signet: Callable[..., Result]) -> None:
    result = signet("remember", "-", stdin=b"\xff\xfe")
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


def test_remember_prints_one_id_per_chunk_of_a_long_text(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", "/api/memory/remember", {"chunked": True, "chunk_count": 2, "ids": [ID, OTHER], "group_id": "g"})
    assert signet("remember", "long").stdout.split() == [ID, OTHER]


@pytest.mark.parametrize("place", ["before", "after"])
def test_json_prints_the_response_unchanged_at_any_position_of_the_option(
    daemon: ScriptedDaemon, signet: Callable[..., Result], place: str
) -> None:
    daemon.on("POST", "/api/memory/remember", STORED)
    arguments = ("--json", "remember", "x") if place == "before" else ("remember", "x", "--json")
    assert json.loads(signet(*arguments).stdout) == STORED


def test_recall_sends_its_filters_and_prints_tab_separated_lines(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    row = {**MEMORY, "score": 0.41, "relevance": 0.92, "source": "hybrid"}
    daemon.on("POST", "/api/memory/recall", {"results": [row], "query": "q", "method": "hybrid", "meta": {}})
    result = signet(
        "recall", "which", "editor?", "-n", "3", "--type", "preference", "--since", "2026-01-01", "--min-score", "0.2"
    )
    assert (
        result.stdout
        == f"0.92\t{ID}\tpreference\t2026-02-21T10:00:00.000Z\tpreference,editor\tUser prefers vim keybindings\n"
    )
    assert daemon.asked[0].body == {
        "query": "which editor?",
        "limit": 3,
        "type": "preference",
        "since": "2026-01-01",
        "min_score": 0.2,
    }


def test_recall_without_results_prints_a_message_to_stderr(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("POST", "/api/memory/recall", {"results": [], "query": "q", "method": "keyword"})
    result = signet("recall", "nothing")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing found.\n")


def test_control_characters_of_stored_text_are_escaped(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    evil = "a\x1b]0;owned\x07b\u202ec\x9bd\ud800"
    daemon.on("GET", f"/api/memory/{ID}", {**MEMORY, "content": evil, "who": evil})
    result = signet("show", ID)
    assert result.exit_code == 0
    assert not set(result.stdout) & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert "\\u001b" in result.stdout


def test_show_prints_fields_text_and_optionally_the_history(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", f"/api/memory/{ID}", MEMORY)
    event = {"event": "updated", "changedBy": "cli", "reason": "typo", "oldContent": "a", "newContent": "b"}
    proposed = {"event": "none", "changedBy": "pipeline-shadow", "reason": "shadow"}
    proposed["metadata"] = {"proposedAction": "add", "factContent": "Noor uses vim"}
    daemon.on("GET", f"/api/memory/{ID}/history", {"memoryId": ID, "count": 2, "history": [event, proposed]})
    run = {"id": "run-1", "mode": "full", "createdAt": "2026-02-21T10:00:00.000Z", "undoneAt": None}
    daemon.on("GET", "/api/pipeline/runs", {"runs": [run]})
    fact = {"action": "add", "outcome": "created", "resultMemoryId": "m5", "factContent": "Noor uses vim"}
    question = {"reason": "question", "content": "Does Noor use vim?"}
    relation = {"source": "Noor", "relationship": "uses", "target": "vim\x1b[2J"}
    daemon.on(
        "GET",
        "/api/pipeline/runs/run-1",
        {"run": run, "proposals": [fact], "rejected": [question], "entities": [relation]},
    )
    result = signet("show", ID, "--history", "--agent", "alice")
    assert f"id: {ID}" in result.stdout
    assert "\nUser prefers vim keybindings\n" in result.stdout
    assert "updated\tcli\ttypo\ta → b" in result.stdout
    assert "none\tpipeline-shadow\tshadow\tproposed add: Noor uses vim\n" in result.stdout
    assert "run run-1 (full, 2026-02-21T10:00:00.000Z)\nadd\tcreated\t\tm5\tNoor uses vim\n" in result.stdout
    assert "\nrejected\tquestion\tDoes Noor use vim?\n" in result.stdout
    assert "relation: Noor uses vim\\u001b[2J\n" in result.stdout
    assert [asked.query["agentId"] for asked in daemon.asked] == ["alice"] * 4
    assert daemon.asked[2].query["memory_id"] == ID
    both = json.loads(signet("show", ID, "--history", "--json").stdout)
    assert both["memory"]["id"] == both["history"]["memoryId"] == ID


@pytest.mark.parametrize("id_", ["../../api/status?x=1", "jobs/1", "review-queue"])
def test_an_id_cannot_change_the_path(daemon: ScriptedDaemon, signet: Callable[..., Result], id_: str) -> None:
    result = signet("show", id_)
    assert (result.exit_code, result.stderr) == (1, f"signet: id cannot be '{id_}'.\n")
    assert {asked.path for asked in daemon.asked} <= {FOUND}


def test_special_characters_of_an_id_are_quoted(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    signet("recover", "a?b#c%")
    assert daemon.asked[-1].path.removesuffix("/recover") == "/api/memory/a%3Fb%23c%25"


def test_a_missing_memory_ends_with_1_and_one_line(signet: Callable[..., Result]) -> None:
    result = signet("show", ID)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"signet: the memory {ID} was not found (unknown, deleted, or another agent's).\n"


FOUND = "/api/memories/by-prefix"


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("show", ID[:6]), f"/api/memory/{ID}"),
        (("history", ID[:8]), f"/api/memory/{ID}/history"),
        (("edit", ID[:35], "--type", "fact"), f"/api/memory/{ID}"),
        (("forget", ID[:6], "--yes"), f"/api/memory/{ID}"),
        (("recover", ID[:6]), f"/api/memory/{ID}/recover"),
    ],
)
def test_the_beginning_of_an_id_names_the_memory(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...], path: str
) -> None:
    daemon.on("GET", FOUND, {"memories": [MEMORY]})
    signet(*arguments, "--agent", "alice")
    assert (daemon.asked[0].path, daemon.asked[0].query["agentId"]) == (FOUND, "alice")
    assert daemon.asked[0].query["prefix"] == arguments[1]
    assert daemon.asked[1].path == path


def test_the_beginning_of_an_id_filters_runs_explains_and_selects(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", FOUND, {"memories": [MEMORY]})
    signet("pipeline", "runs", "--memory", ID[:6])
    signet("recall", "x", "--explain-id", ID[:6])
    signet("forget", ID[:6], OTHER, "--preview")
    asked = [one for one in daemon.asked if one.path != FOUND]
    assert asked[0].query["memory_id"] == asked[1].body["explainId"] == ID
    assert asked[2].body["ids"] == [ID, OTHER]


def test_an_ambiguous_beginning_of_an_id_lists_the_candidates(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    other = f"{ID[:8]}-0000"
    daemon.on("GET", FOUND, {"memories": [MEMORY, {**MEMORY, "id": other, "content": "Another\x1b[2J"}]})
    result = signet("edit", ID[:8], "--type", "fact")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"  {ID}  User prefers vim keybindings\n  {other}  Another\\u001b[2J\n" in result.stderr
    assert f"the ids of 2 memories begin with {ID[:8]}; give at least 10 characters:" in result.stderr
    assert [one.path for one in daemon.asked] == [FOUND]


def test_the_advised_number_of_characters_tells_all_candidates_apart(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    near = [f"{ID[:8]}-1111-a", f"{ID[:8]}-1111-b", f"{ID[:7]}f-2222"]
    daemon.on("GET", FOUND, {"memories": [{**MEMORY, "id": one} for one in near]})
    assert "give at least 15 characters:" in signet("show", ID[:7]).stderr


def test_a_beginning_of_more_ids_than_are_listed_is_ambiguous(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    many = [{**MEMORY, "id": f"{ID[:24]}{number:012}"} for number in range(100)]
    daemon.on("GET", FOUND, {"memories": many[:11]})
    result = signet("forget", ID[:8], "--yes")
    assert (result.exit_code, [one.path for one in daemon.asked]) == (2, [FOUND])
    assert daemon.asked[0].query["limit"] == "11"
    assert f"the ids of more than 10 memories begin with {ID[:8]}; give at least 36 characters:" in result.stderr
    assert [number for number in range(100) if many[number]["id"] in result.stderr] == list(range(10))


def test_a_beginning_of_an_id_prefers_the_memories_that_the_command_is_for(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    gone = {**MEMORY, "id": f"{ID[:8]}-0000", "deleted_at": "2026-02-21T11:00:00.000Z"}
    daemon.script("GET", FOUND, {"memories": [MEMORY]}, {"memories": [gone]}, {"memories": []}, {"memories": [gone]})
    signet("show", ID[:8])
    signet("recover", ID[:8])
    signet("history", ID[:8])
    paths = [one.path for one in daemon.asked if one.path not in {FOUND, "/api/sessions/past"}]
    assert paths == [f"/api/memory/{ID}", f"/api/memory/{gone['id']}/recover", f"/api/memory/{gone['id']}/history"]
    assert [one.query["deleted"] for one in daemon.asked if one.path == FOUND] == ["false", "true", "false", "true"]


@pytest.mark.parametrize("given", [ID, f"{ID}-and-more", "no-such"])
def test_an_id_that_is_the_beginning_of_none_is_named(
    daemon: ScriptedDaemon, signet: Callable[..., Result], given: str
) -> None:
    daemon.on("GET", FOUND, {"memories": []})
    result = signet("recover", given)
    assert result.exit_code == 1
    assert f"the memory {given} was not found" in result.stderr
    asked = [one.path for one in daemon.asked]
    assert asked == [FOUND] * (0 if given == ID else 2) + [f"/api/memory/{given}/recover"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("history",),
        ("edit", "--type", "fact"),
        ("forget", "--yes"),
        ("recover",),
        ("recall", "x", "--explain-id"),
        ("pipeline", "runs", "--memory"),
    ],
)
def test_an_id_of_fewer_than_six_characters_says_how_many_are_needed(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    result = signet(*arguments, ID[:5])
    asked = [one.path for one in daemon.asked if one.path != "/api/sessions/past"]
    assert (result.exit_code, result.stdout, asked) == (2, "", [])
    assert f"{ID[:5]} is too short for an id: give at least its first 6 characters" in result.stderr


def test_with_json_an_error_response_is_printed_too(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    refusal = {"error": "Version conflict", "code": "conflict", "id": ID, "status": "version_conflict"}
    daemon.on("PATCH", f"/api/memory/{ID}", refusal, status=409)
    result = signet("edit", ID, "--content", "x", "--if-version", "1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == refusal
    assert result.stderr.startswith("signet: Version conflict. It has changed in the meantime")


def test_edit_sends_only_what_was_given(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("PATCH", f"/api/memory/{ID}", {"id": ID, "status": "updated", "newVersion": 3})
    result = signet("edit", ID, "--tags", "", "--unpin", "--reason", "tidy")
    assert result.stdout == f"Updated {ID} (version 3).\n"
    assert daemon.asked[0].body == {"tags": [], "pinned": False, "reason": "tidy"}


def test_edit_opens_the_editor_and_stores_only_an_unchanged_version(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/vim/emacs/")
    daemon.on("GET", f"/api/memory/{ID}", MEMORY)
    daemon.on("PATCH", f"/api/memory/{ID}", {"id": ID, "status": "updated", "newVersion": 3})
    assert signet("edit", ID).exit_code == 0
    assert daemon.asked[1].body["content"] == "User prefers emacs keybindings"
    assert daemon.asked[1].body["if_version"] == 2
    monkeypatch.setenv("VISUAL", "true")
    assert signet("edit", ID).stderr == "Nothing changed.\n"


def test_an_edited_text_that_cannot_be_stored_is_kept(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/vim/emacs/")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    daemon.on("GET", f"/api/memory/{ID}", MEMORY)
    daemon.on("PATCH", f"/api/memory/{ID}", {"error": "Version conflict", "code": "conflict"}, status=409)
    result = signet("edit", ID)
    (kept,) = tmp_path.iterdir()
    assert (result.exit_code, kept.read_text()) == (1, "User prefers emacs keybindings\n")
    assert f"Your text was not stored; it is in {kept}." in result.stderr


@pytest.mark.parametrize(
    ("command", "answer", "message"),
    [
        (
            ("edit", ID, "--content", "x"),
            {"status": "duplicate_content_hash", "error": "Duplicate content hash", "duplicateMemoryId": OTHER},
            f"signet: Another memory has this text already: {OTHER}. `signet show ID` prints it.\n",
        ),
        (
            ("forget", ID, "--yes"),
            {"status": "pinned_requires_force", "error": "Pinned memories require force=true"},
            "signet: The memory is pinned. `--force` deletes it anyway.\n",
        ),
        (
            ("edit", ID, "--content", "x"),
            {"status": "deleted", "error": "Cannot modify deleted memory"},
            "signet: Cannot modify deleted memory. `signet recover ID` brings it back, then it can be changed.\n",
        ),
    ],
)
def test_a_refused_change_says_what_stands_in_its_way(
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    command: tuple[str, ...],
    answer: dict[str, Any],
    message: str,
) -> None:
    method = "PATCH" if command[0] == "edit" else "DELETE"
    daemon.on(method, f"/api/memory/{ID}", {"code": "conflict", **answer}, status=409)
    assert re.sub(r" --url \S+", "", signet(*command).stderr) == message


def test_list_has_pages_and_can_show_deleted_memories(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/memories", {"memories": [MEMORY], "stats": {"total": 1, "withEmbeddings": 1, "critical": 1}})
    result = signet("list", "-n", "5", "--offset", "10", "--type", "preference", "--deleted")
    assert result.stdout.startswith(f"{ID}\tpreference\t")
    assert daemon.asked[0].query == {"limit": "5", "offset": "10", "type": "preference", "deleted": "true"}
    daemon.script("GET", "/api/memories", {"memories": [], "stats": {}, "total": 0, "complete": False})
    result = signet("list", "--deleted", "--words", "crane")
    assert daemon.asked[1].query["words"] == "crane"
    assert result.stderr.startswith("Only those that were deleted last were searched, 20,000 at most.\n")


def test_list_counts_the_memories_by_their_values(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    types = {"values": [{"value": "fact", "count": 3}, {"value": None, "count": 1}], "distinct": 2}
    daemon.on("GET", "/api/memories/facets", {"total": 4, "pinned": 0, "types": types})
    result = signet("list", "--facets", "--project", "p", "--deleted")
    assert result.stdout == "types\tfact\t3\ntypes\t\t1\n"
    assert daemon.asked[0].query == {"project": "p", "deleted": "true"}


def test_the_timeline_of_an_entity_is_found_by_its_name(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    event = {"timestamp": "2026-01-01T00:00:00.000Z", "source": "mention", "event": "mentioned", "details": {"a": "b"}}
    daemon.on("GET", "/api/timeline/The%20shop", {"events": [event], "hasMore": True})
    result = signet("timeline", "The shop", "--newest", "-n", "1", "--offset", "3")
    assert (daemon.asked[0].query, result.exit_code) == ({"limit": "1", "offset": "3", "order": "desc"}, 0)
    assert result.stdout.endswith("\tmention\tmentioned\ta b\n")
    assert "--offset 4" in result.stderr
    daemon.on("GET", "/api/timeline/The%20shop/export", {"meta": {"version": "1.0"}, "timeline": {}})
    assert json.loads(signet("timeline", "The shop", "--export").stdout)["meta"] == {"version": "1.0"}


def test_the_timeline_of_an_entity_whose_name_has_a_slash_is_found(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", "/api/knowledge/navigation/entity", {"entity": {"id": "e-1", "name": "C++ / Qt"}})
    daemon.on("GET", "/api/timeline/e-1", {"events": [], "hasMore": False})
    assert signet("timeline", "C++ / Qt").exit_code == 0
    assert daemon.asked[0].query == {"name": "C++ / Qt"}


def test_recover_sends_a_reason(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", f"/api/memory/{ID}/recover", {"id": ID, "status": "recovered", "newVersion": 4})
    assert signet("recover", ID).exit_code == 0
    assert daemon.asked[0].body == {"reason": "recovered on the command line"}


def test_several_memories_are_recovered_at_once(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", f"/api/memory/{ID}/recover", {"id": ID, "status": "recovered", "newVersion": 4})
    daemon.on("POST", f"/api/memory/{OTHER}/recover", {"id": OTHER, "status": "recovered", "newVersion": 3})
    result = signet("recover", ID, OTHER, ID, "--reason", "tidy")
    assert result.exit_code == 0
    assert result.stdout == f"Recovered {ID} (version 4).\nRecovered {OTHER} (version 3).\n"
    assert [one.body for one in daemon.asked] == [{"reason": "tidy"}] * 2
    assert signet("recover", ID, OTHER, "--if-version", "3").exit_code == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_a_memory_that_cannot_be_recovered_does_not_stop_the_others(
    daemon: ScriptedDaemon, signet: Callable[..., Result], as_json: bool
) -> None:
    live = {"error": "Memory is not deleted", "code": "conflict", "id": ID, "status": "not_deleted"}
    daemon.on("POST", f"/api/memory/{ID}/recover", live, status=409)
    recovered = {"id": OTHER, "status": "recovered", "newVersion": 3}
    daemon.on("POST", f"/api/memory/{OTHER}/recover", recovered)
    gone = f"{ID[:-1]}0"
    result = signet("recover", ID, gone, OTHER, *(("--json",) if as_json else ()))
    assert result.exit_code == 1
    if as_json:
        told = json.loads(result.stdout)
        assert told["recovered"] == [recovered]
        assert [(one["id"], one["code"]) for one in told["refused"]] == [(ID, "conflict"), (gone, "not_found")]
    else:
        assert result.stdout == f"Recovered {OTHER} (version 3).\n"
        assert f"{ID} was not recovered: Memory is not deleted.\n" in result.stderr
        assert f"the memory {gone} was not found (unknown, deleted, or another agent's).\n" in result.stderr


def test_list_sends_its_filters(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}})
    filters = ("--tags", "a,b", "-t", "c", "--project", "p", "--who", "w", "--until", "2026-02-21", "--pinned")
    result = signet("list", *filters)
    assert result.stderr == "There are no memories that match.\n"
    assert daemon.asked[0].query == {
        "limit": "20",
        "offset": "0",
        "tags": "a,b,c",
        "project": "p",
        "who": "w",
        "until": "2026-02-21T23:59:59.999Z",
        "pinned": "true",
    }


def test_history_shows_every_value_that_an_update_changed(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    before = {"type": "fact", "tags": ["a", "b"], "importance": 0.8, "pinned": 0}
    after = {"type": "rule", "tags": [], "importance": 0.9, "pinned": 1}
    text = {"oldContent": "old", "newContent": "old"}
    events = [
        {"event": "updated", **text, "metadata": {"before": before, "after": after, "contentChanged": False}},
        {"event": "updated", "oldContent": "old", "newContent": "new", "metadata": {"before": {}, "after": {}}},
        {"event": "deleted", "oldContent": "new", "newContent": None, "metadata": "no object"},
    ]
    daemon.on("GET", f"/api/memory/{ID}/history", {"history": events})
    lines = [line.split("\t")[-1] for line in signet("history", ID).stdout.splitlines()]
    assert lines == [
        "type: fact → rule; tags: a, b → none; importance: 0.8 → 0.9; pinned: no → yes",
        "old → new",
        "new",
    ]


def test_show_prints_all_parts_of_a_long_text(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    part = {**MEMORY, "source_type": "chunk", "source_id": "g", "content": "Two.\x1b"}
    parts = [{"id": OTHER, "content": "One."}, {"id": ID, "content": "Two.\x1b"}]
    daemon.script("GET", f"/api/memory/{ID}", {**part, "parts": parts}, part, MEMORY)
    assert signet("show", ID, "--whole").stdout == "One.\nTwo.\\u001b\n"
    assert daemon.asked[0].query == {"withParts": "true"}
    shown = signet("show", ID)
    assert daemon.asked[1].query == {}
    assert f"part of a longer text; `signet --url {daemon.url} show {ID} --whole` prints all of it" in shown.stderr
    assert signet("show", ID, "--whole").stdout == "User prefers vim keybindings\n"


class TestForget:
    def test_one_id_is_deleted_after_yes_and_only_in_the_version_that_was_shown(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result]
    ) -> None:
        daemon.on("GET", f"/api/memory/{ID}", MEMORY)
        daemon.on("DELETE", f"/api/memory/{ID}", {"id": ID, "status": "deleted", "newVersion": 3})
        result = signet("forget", ID, stdin="y\n")
        assert result.exit_code == 0
        assert "vim keybindings" in result.stderr
        assert daemon.asked[1].body == {"reason": "forgotten on the command line", "force": False, "if_version": 2}

    @pytest.mark.parametrize("answer", ["n\n", "\n", ""])
    def test_anything_but_yes_deletes_nothing(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], answer: str
    ) -> None:
        daemon.on("GET", f"/api/memory/{ID}", MEMORY)
        result = signet("forget", ID, stdin=answer)
        assert result.exit_code == 1
        assert [asked.method for asked in daemon.asked] == ["GET"]

    def test_a_selection_is_executed_as_exactly_the_set_of_the_preview(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result]
    ) -> None:
        candidates = [{"id": each, "score": 0.8, "pinned": False, "version": 1} for each in (ID, OTHER)]
        preview = {
            "mode": "preview",
            "count": 2,
            "requiresConfirm": False,
            "confirmToken": "T",
            "candidates": candidates,
        }
        daemon.on("POST", "/api/memory/forget", preview)
        results = [{"id": each, "status": "deleted"} for each in (ID, OTHER)]
        daemon.on("POST", "/api/memory/forget", {"mode": "execute", "requested": 2, "deleted": 2, "results": results})
        daemon.on("GET", f"/api/memory/{ID}", MEMORY)
        daemon.on("GET", f"/api/memory/{OTHER}", {**MEMORY, "id": OTHER, "content": "other"})
        result = signet("forget", "--query", "vim", "--tags", "a,b", stdin="y\n")
        assert result.exit_code == 0, result.stderr
        assert f"{ID}\tpreference\t\tUser prefers vim keybindings" in result.stdout
        assert daemon.asked[0].body == {
            "mode": "preview",
            "query": "vim",
            "tags": ["a", "b"],
            "limit": 20,
            "force": False,
        }
        assert daemon.asked[-1].body == {
            "mode": "execute",
            "ids": [ID, OTHER],
            "limit": 200,
            "reason": "forgotten on the command line",
            "force": False,
            "confirm_token": "T",
        }

    def test_what_was_kept_is_named_and_the_exit_code_is_1(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result]
    ) -> None:
        candidates = [{"id": ID, "score": 1.0, "pinned": True, "version": 1}]
        daemon.on("POST", "/api/memory/forget", {"mode": "preview", "confirmToken": "T", "candidates": candidates})
        kept = [{"id": ID, "status": "pinned_requires_force"}]
        daemon.on("POST", "/api/memory/forget", {"mode": "execute", "requested": 1, "deleted": 0, "results": kept})
        result = signet("forget", ID, OTHER, "--yes")
        assert result.exit_code == 1
        assert f"{OTHER} was not found" in result.stderr
        assert "it is pinned" in result.stderr
        assert "Forgot 0 of 1" in result.stdout

    @pytest.mark.parametrize("arguments", [(ID,), ("--type", "fact", "--permanently")])
    def test_the_sessions_whose_transcripts_still_say_it_are_named(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...]
    ) -> None:
        sessions = ["one", "a/b c", *map(str, range(7))]
        candidates = [{"id": ID, "score": 1.0, "pinned": False, "version": 1}]
        told = {"saidIn": sessions, "mayBeSaidIn": ["other"]}
        daemon.on("DELETE", f"/api/memory/{ID}", {"id": ID, "status": "deleted", **told})
        daemon.on("POST", "/api/memory/forget", {"mode": "preview", "confirmToken": "T", "candidates": candidates})
        done = {"mode": "execute", "results": [{"id": ID, "status": "deleted"}], **told}
        daemon.on("POST", "/api/memory/forget", done)
        result = signet("forget", *arguments, "--yes")
        assert result.exit_code == 0, result.stderr
        said = "It was said in a session, whose transcript keeps it: `signet forget {}` erases that."
        named = [said.format(key) for key in ("one", "'a/b c'", "0", "1", "2")]
        lines = [line.replace(f"--url {daemon.url} ", "") for line in result.stderr.splitlines()]
        other = "A session may say it in other words (`signet show other`): `signet forget other` erases that."
        assert lines == [*named, "4 more sessions say it (--json names them).", other]

    @pytest.mark.parametrize("arguments", [(ID,), ("--type", "fact")])
    def test_what_was_forgotten_with_it_and_what_still_says_it_is_named(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...]
    ) -> None:
        named = {"forgottenWith": list("abcdefg"), "saidBy": ["one", *map(str, range(5))]}
        candidates = [{"id": ID, "score": 1.0, "pinned": False, "version": 1}]
        daemon.on("DELETE", f"/api/memory/{ID}", {"id": ID, "status": "deleted", **named})
        daemon.on("POST", "/api/memory/forget", {"mode": "preview", "confirmToken": "T", "candidates": candidates})
        done = {"mode": "execute", "results": [{"id": ID, "status": "deleted"}], **named}
        daemon.on("POST", "/api/memory/forget", done)
        result = signet("forget", *arguments, "--yes")
        assert result.exit_code == 0, result.stderr
        lines = [line.replace(f"--url {daemon.url} ", "") for line in result.stderr.splitlines()]
        says = "Another memory says it or was made of it: `signet forget {}` forgets that."
        assert lines == [
            "Forgot too, because the pipeline had made it of this: a, b, c, d, e, ….",
            *(says.format(key) for key in ("one", "0", "1", "2", "3")),
            "1 more memories say it (--json names them).",
        ]

    @pytest.mark.parametrize(
        ("memory", "told"),
        [
            ({"content": "Use the\nvault", "project": "/home/a/mob"}, "  project mob: Use the vault"),
            ({"content": "x" * 300, "project": None}, f"  {'x' * 99}…"),
        ],
    )
    def test_what_still_says_it_is_described(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], memory: dict[str, Any], told: str
    ) -> None:
        daemon.on("DELETE", f"/api/memory/{ID}", {"id": ID, "status": "deleted", "saidBy": [OTHER]})
        daemon.on("GET", f"/api/memory/{OTHER}", {"id": OTHER, **memory})
        assert signet("forget", ID, "--yes").stderr.splitlines()[1:] == [told]

    def test_the_other_parts_of_a_long_text_are_counted_with_the_command_that_forgets_them(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result]
    ) -> None:
        named = {"otherParts": ["one", "two"]}
        daemon.on("DELETE", f"/api/memory/{ID}", {"id": ID, "status": "deleted", **named})
        candidates = [{"id": ID, "score": 1.0, "pinned": False, "version": 1}]
        preview = {"mode": "preview", "confirmToken": "T", "candidates": candidates, **named}
        daemon.on("POST", "/api/memory/forget", preview)
        daemon.on("GET", f"/api/memory/{ID}", {**MEMORY, "id": ID})
        stay = f"2 other parts of a longer text stay: `signet --url {daemon.url} forget one --whole` forgets them."
        assert signet("forget", ID, "--yes").stderr.splitlines() == [stay]
        assert signet("forget", ID, "--preview").stderr.splitlines()[-1] == stay
        daemon.on("PATCH", f"/api/memory/{ID}", {"id": ID, "status": "updated", "newVersion": 2, **named})
        edited = signet("edit", ID, "--content", "x").stderr
        assert "part of a longer text, of which 2 other parts stay as they were" in edited

    @pytest.mark.parametrize("whole", [False, True])
    def test_the_question_about_a_part_of_a_long_text_says_so(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], whole: bool
    ) -> None:
        parts = [{"id": ID, "content": "One."}, {"id": OTHER, "content": "Two."}]
        daemon.on("GET", f"/api/memory/{ID}", {**MEMORY, "source_type": "chunk", "parts": parts})
        asked = signet("forget", ID, *(["--whole"] * whole), stdin="n\n")
        assert ("--whole forgets all of them" in asked.stderr) != whole
        assert ("Forget it and its 1 other part?" in asked.output) == whole

    def test_a_fact_that_was_recovered_with_its_memory_is_named_and_not_recovered_twice(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result]
    ) -> None:
        done = {"id": ID, "status": "recovered", "newVersion": 3, "recoveredWith": [OTHER]}
        daemon.on("POST", f"/api/memory/{ID}/recover", done)
        for arguments in ((ID,), (ID, OTHER)):
            result = signet("recover", *arguments)
            assert result.exit_code == 0, result.stderr
            assert result.stderr == f"Recovered too, because the pipeline had made it of this: {OTHER}.\n"

    def test_preview_deletes_nothing(self, daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
        candidates = [{"id": ID, "score": 1.0, "pinned": False, "version": 1}]
        daemon.on("POST", "/api/memory/forget", {"mode": "preview", "confirmToken": "T", "candidates": candidates})
        assert signet("forget", "--type", "fact", "--preview", "--yes").exit_code == 0
        assert [asked.body["mode"] for asked in daemon.asked if asked.body] == ["preview"]

    @pytest.mark.parametrize(
        "arguments",
        [
            (),
            (ID, "--query", "x"),
            (ID, OTHER, "--if-version", "1"),
            (ID, OTHER, "--whole"),
            ("--type", "fact", "--whole"),
            tuple(map(str, range(201))),
        ],
    )
    def test_an_unclear_wish_is_a_usage_error(
        self, daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...]
    ) -> None:
        assert signet("forget", "--yes", *arguments).exit_code == 2
        assert daemon.asked == []


def test_status_shows_the_processes_and_waiting_jobs(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    actor = {"name": "writer", "state": "up", "pid": 12, "incarnation": 1, "restarts": 0, "detail": "schema 1"}
    daemon.on(
        "GET",
        "/api/status",
        {
            "status": "running",
            "version": "0.1.0",
            "uptime": 3700,
            "host": "127.0.0.1",
            "port": 3850,
            "agentsDir": "/w",
            "actors": [actor],
            "db": {"memories": 7, "tombstones": 1, "embeddings": 7, "agents": 1, "schemaVersion": 1, "bytes": 12345},
            "jobs": {"pending": 7, "dead": 0},
            "notes": ["retention: no answer within 1000 ms"],
            "mutationsFrozen": True,
            "waiting": ["no provider for extraction is configured"],
        },
    )
    result = signet("status")
    assert result.exit_code == 0, result.output
    for text in (
        "up 1 h 1 min",
        "writer\tup\t12\t1\t0\tschema 1",
        "memories: 7 (of all agents)",
        "7 pending",
        "no provider",
        "unknown: retention",
        "frozen:",
    ):
        assert text in result.stdout


def test_retention_sweep_prints_the_counts(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    steps = [{"step": "tombstones", "count": 3, "more": False}]
    daemon.on("POST", "/api/repair/retention-sweep", {"action": "retentionSweep", "success": True, "steps": steps})
    assert signet("retention", "sweep").stdout == "tombstones\t3\t\n"


CHANGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("POST", "/api/memory/remember", ("remember", "x")),
    ("PATCH", f"/api/memory/{ID}", ("edit", ID, "--pin")),
    ("DELETE", f"/api/memory/{ID}", ("forget", ID, "--yes")),
    ("POST", f"/api/memory/{ID}/recover", ("recover", ID)),
    ("POST", "/api/repair/retention-sweep", ("retention", "sweep")),
)
READS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("GET", "/api/status", ("status",)),
    ("POST", "/api/memory/recall", ("recall", "x")),
    ("GET", "/api/memories", ("list",)),
    ("GET", "/api/memories/facets", ("list", "--facets")),
    ("GET", f"/api/timeline/{ID}", ("timeline", ID)),
    ("GET", f"/api/memory/{ID}", ("show", ID)),
    ("GET", f"/api/memory/{ID}", ("forget", ID)),
    ("GET", f"/api/memory/{ID}", ("edit", ID)),
    ("GET", f"/api/memory/{ID}/history", ("history", ID)),
    ("POST", "/api/memory/forget", ("forget", "--query", "x", "--yes")),
    ("POST", "/api/memory/forget", ("forget", "--query", "x", "--preview")),
)
SAYING_NOTHING: tuple[tuple[int, Any], ...] = (
    (302, {}),
    (200, b""),
    (200, None),
    (200, []),
    (200, {}),
    (200, {"status": "no", "id": 3, "success": "yes", "mode": 1}),
    (200, {"results": {}, "memories": [1], "history": None, "candidates": "x", "steps": 5, "actors": [[]]}),
    (200, {"chunked": True, "ids": [], "mode": "preview", "candidates": [{}]}),
)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("status", "body"), SAYING_NOTHING)
@pytest.mark.parametrize(
    ("method", "path", "arguments", "exit_code"), [(*each, 5) for each in CHANGES] + [(*each, 1) for each in READS]
)
def test_a_response_without_the_documented_fields_is_never_a_success(
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    method: str,
    path: str,
    arguments: tuple[str, ...],
    exit_code: int,
    status: int,
    body: Any,
    as_json: bool,
) -> None:
    daemon.on(method, path, body, status=status)
    result = signet(*arguments, *(["--json"] if as_json else []), stdin="y\n")
    assert result.exit_code == exit_code, (result.output, result.exception)
    assert result.stderr.startswith("signet: the answer does not come from a Signet daemon (")
    assert result.stderr.count("\n") == 1
    if not as_json:
        assert result.stdout == ""
    elif result.stdout:
        assert json.loads(result.stdout) == body


@pytest.mark.parametrize(
    ("method", "path", "arguments", "body"),
    [
        ("GET", "/api/status", ("status",), {"status": "running", "actors": [], "db": [1]}),
        ("GET", "/api/status", ("status",), {"status": "running", "actors": [], "uptime": 1e999}),
        ("GET", "/api/status", ("status",), {"status": "running", "actors": [], "jobs": 3, "waiting": 4}),
        ("GET", "/api/status", ("status",), {"status": "running", "actors": [], "embedding": "x"}),
    ],
)
def test_a_malformed_response_is_reported_in_one_line_without_a_traceback(
    daemon: ScriptedDaemon, signet: Callable[..., Result], method: str, path: str, arguments: tuple[str, ...], body: Any
) -> None:
    daemon.on(method, path, body)
    result = signet(*arguments)
    assert result.exit_code == 1, result.exception
    assert result.stderr.startswith("signet: the answer does not come from a Signet daemon (")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "executed",
    [
        {},
        {"mode": "execute", "deleted": 2, "results": []},
        {"mode": "execute", "deleted": 2, "results": [{"id": ID, "status": "deleted"}]},
        {"mode": "execute", "deleted": 2, "results": [{"id": ID}, {"id": OTHER}]},
        {"mode": "execute", "deleted": 2, "results": [{"id": [ID], "status": "deleted"}]},
        {"mode": "preview", "candidates": []},
    ],
)
def test_a_set_is_forgotten_only_if_the_response_confirms_each_id(
    daemon: ScriptedDaemon, signet: Callable[..., Result], executed: Any
) -> None:
    candidates = [{"id": each, "pinned": False, "version": 1} for each in (ID, OTHER)]
    daemon.on("POST", "/api/memory/forget", {"mode": "preview", "confirmToken": "T", "candidates": candidates})
    daemon.on("POST", "/api/memory/forget", executed)
    result = signet("forget", ID, OTHER, "--yes")
    assert (result.exit_code, result.stdout) == (5, ""), (result.output, result.exception)


def test_an_internal_error_of_the_client_is_not_reported_as_the_daemons(
    signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("signet_actors.cli.invocation.Invocation.address", broken)
    assert isinstance(signet("list").exception, KeyError)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(signet: Callable[..., Result], shell: str) -> None:
    result = signet("completion", shell)
    assert result.exit_code == 0
    assert f"_SIGNET_COMPLETE={shell}_complete" in result.stdout


def test_every_command_of_the_table_exists_under_its_name_and_help_line(signet: Callable[..., Result]) -> None:
    for name, _, _, help_line in COMMANDS:
        result = signet(name, "--help")
        assert result.exit_code == 0, name
        assert result.stdout.startswith(f"Usage: signet {name} ")
        shown = " ".join(result.stdout.split())
        assert help_line.rstrip(".") in shown, f"{name}: the docstring of the function begins with the line of COMMANDS"


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(signet: Callable[..., Result]) -> None:
    result = signet("forgte")
    assert result.exit_code == 2
    assert "Did you mean forget?" in result.stderr


@pytest.mark.parametrize("command", ["recall", "remember", "search"])
@pytest.mark.parametrize("named", ["by its URL", "by its workspace"])
def test_a_call_on_a_pipe_imports_no_slow_modules(
    daemon: ScriptedDaemon, tmp_path: Path, command: str, named: str
) -> None:
    daemon.on("POST", "/api/memory/recall", {"results": [MEMORY], "method": "hybrid", "meta": {}})
    daemon.on("POST", "/api/memory/remember", MEMORY)
    daemon.on("GET", "/memory/search", {"results": [MEMORY]})
    heavy = ["httpx", "rich", "yaml", "msgspec", "subprocess", "tempfile", "shutil", "lzma"]
    ours = [f"signet_actors.cli.{name}" for name in ("explanations", "proposals", "edited_text", "config", "forget")]
    with held_workspace(tmp_path, daemon.port):
        where = ["--url", daemon.url] if named == "by its URL" else ["--workspace", str(tmp_path)]
        program = (
            "import sys; from signet_actors.cli.main import cli\n"
            f"cli.main([*{where!r}, {command!r}, 'x'], prog_name='signet', standalone_mode=False)\n"
            f"print([name for name in {[*heavy, *ours]!r} if name in sys.modules], file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr == "[]\n"
    assert MEMORY["id"] in done.stdout


def test_help_imports_no_slow_modules() -> None:
    heavy = ["httpx", "rich", "http.client", "yaml", "msgspec", "subprocess"]
    program = (
        "import sys; from signet_actors.cli.main import cli\n"
        "cli.main(['--help'], prog_name='signet', standalone_mode=False)\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr == "[]\n"
    assert "remember" in done.stdout


@pytest.mark.parametrize("name", ["remember", "recall", "search"])
@pytest.mark.parametrize("text", ["--no-verify must never be used", "-x is slow", "--force"])
def test_a_text_that_looks_like_an_option_is_answered_with_how_to_give_it(
    daemon: ScriptedDaemon, signet: Callable[..., Result], name: str, text: str
) -> None:
    refused = signet(name, text)
    assert refused.exit_code == 2
    assert "Put `--` before a text that begins with a dash." in refused.stderr
    assert "begins with a dash" not in signet("forget", "--frce").stderr
    assert daemon.asked == []
