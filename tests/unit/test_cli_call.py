"""``signet call`` has a command for every declared operation."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from click import Context
from click.testing import CliRunner, Result

from signet_actors.cli.call import call
from signet_actors.cli.main import cli
from signet_actors.operations.registry import OPERATIONS
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable

ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
CALLABLE = call.list_commands(None)  # type: ignore[attr-defined, arg-type]  # the group of operations needs no context


@pytest.fixture
def signet(daemon: ScriptedDaemon) -> Callable[..., Result]:
    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["--url", daemon.url, "call", *arguments], prog_name="signet")

    return run


def test_fields_of_a_read_are_query_parameters(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/memories", {"memories": [], "total": 0})
    result = signet("memories.list", "--limit", "5", "--pinned", "--source-type", "manual", "--agent", "ada")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"memories": [], "total": 0}
    asked = daemon.asked[0]
    assert asked.query == {"limit": "5", "pinned": "true", "source_type": "manual", "agentId": "ada"}


def test_fields_of_a_change_are_the_json_body(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": ID})
    result = signet(
        *("memories.remember", "--content", "Tea, not coffee", "--importance", "0.5", "--no-pinned"),
        *("--tags", "a", "--tags", "b,c", "--metadata", '{"source_path": "x.md"}'),
    )
    assert result.exit_code == 0, result.output
    assert daemon.asked[0].body == {
        "content": "Tea, not coffee",
        "importance": 0.5,
        "pinned": False,
        "tags": ["a", "b,c"],
        "metadata": {"source_path": "x.md"},
    }
    assert "idempotency-key" in daemon.asked[0].headers


def test_a_list_in_a_query_is_joined_by_commas(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/memories", {"memories": []})
    assert signet("memories.list", "--tags", "a", "--tags", "b").exit_code == 0
    assert daemon.asked[0].query == {"tags": "a,b"}


@pytest.mark.parametrize("text", ["[todo] buy milk", "42", "null", '"quoted"', "{a"])
def test_a_text_is_sent_unchanged(daemon: ScriptedDaemon, signet: Callable[..., Result], text: str) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": ID})
    assert signet("memories.remember", "--content", text, "--tags", text).exit_code == 0
    assert daemon.asked[0].body == {"content": text, "tags": [text]}
    note = next(operation for operation in OPERATIONS if operation.name == "codex.write_note")
    daemon.on(note.method, note.paths[0], {"ok": True})
    assert signet("codex.write_note", "--content", text).exit_code == 0
    assert daemon.asked[1].body == {"content": text}


def test_ids_of_jobs_are_separate_arguments(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    requeue = next(operation for operation in OPERATIONS if operation.name == "jobs.requeue")
    daemon.on(requeue.method, requeue.paths[0], {"affected": 2})
    assert signet("jobs.requeue", "--ids", "a", "--ids", "b").exit_code == 0
    assert daemon.asked[0].body == {"ids": ["a", "b"]}


def test_parameters_of_the_path_are_arguments(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", f"/api/memory/{ID}/history", {"count": 0})
    assert signet("memories.history", ID).exit_code == 0
    refused = signet("memories.history")
    assert (refused.exit_code, "ID" in refused.output) == (2, True)


def test_an_invalid_json_value_is_refused_before_the_request(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    result = signet("memories.remember", "--content", "x", "--metadata", "{")
    assert (result.exit_code, "metadata is not valid JSON" in result.output) == (2, True)
    assert daemon.asked == []


def test_an_error_of_the_daemon_gives_the_usual_exit_code(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", "/api/memories", {"error": "limit must be a number", "code": "invalid_request"}, status=400)
    result = signet("memories.list")
    assert (result.exit_code, "limit must be a number" in result.stderr) == (1, True)


@pytest.mark.parametrize("name", CALLABLE)
def test_every_operation_has_a_command_with_help(signet: Callable[..., Result], name: str) -> None:
    result = signet(name, "--help")
    assert result.exit_code == 0, result.output
    operation = next(operation for operation in OPERATIONS if operation.name == name)
    assert operation.paths[0] in result.output.replace("-\n  ", "-").replace("\n  ", " ")


@pytest.mark.parametrize("name", CALLABLE)
def test_no_field_has_the_option_of_another_or_of_all_commands(name: str) -> None:
    command = call.get_command(Context(call), name)
    assert command is not None
    given = Counter(option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts))
    assert {option for option, count in given.items() if count > 1} == set()
