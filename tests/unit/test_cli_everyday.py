"""Times in words, search, help, Ctrl-C, and the status without a model, with a scripted daemon."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest import mock

import click
import pytest
from click.testing import CliRunner, Result

from signet_actors.cli import entry
from signet_actors.cli.main import COMMANDS, cli
from tests.support.held_workspace import held_workspace
from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.terminal_screen import fixed_clock, on_screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
NOTHING: dict[str, Any] = {"results": [], "method": "keyword"}
CLIENT = "signet_actors.cli.invocation.Invocation.client"


@pytest.mark.parametrize(
    ("phrase", "since", "until"),
    [
        ("yesterday", "2026-02-19T23:00:00.000Z", "2026-02-20T22:59:59.999Z"),
        ("gestern", "2026-02-19T23:00:00.000Z", "2026-02-20T22:59:59.999Z"),
        ("3 days ago", "2026-02-17T23:00:00.000Z", "2026-02-18T22:59:59.999Z"),
        ("January 2026", "2025-12-31T23:00:00.000Z", "2026-01-31T22:59:59.999Z"),
        ("2026-01-01", "2025-12-31T23:00:00.000Z", "2026-01-01T22:59:59.999Z"),
        ("2026-01-01T10:00", "2026-01-01T09:00:00.000Z", "2026-01-01T09:00:00.000Z"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
    ],
)
def test_a_time_in_words_is_a_day_of_the_caller(
    daemon: ScriptedDaemon, signet: Callable[..., Result], phrase: str, since: str, until: str
) -> None:
    daemon.on("POST", "/api/memory/recall", NOTHING)
    daemon.on("POST", "/api/memory/forget", {"mode": "preview", "candidates": []})
    daemon.on("GET", "/memory/search", {"results": []})
    with fixed_clock():  # noon of 2026-02-21 (UTC), an hour later in the caller's zone
        signet("recall", "x", "--since", phrase, "--until", phrase)
        signet("forget", "--since", phrase, "--until", phrase, "--preview")
        signet("search", "x", "--since", phrase, "--until", phrase, "--project", "p")
        signet("list", "--since", phrase, "--until", phrase)
    assert [(one.body["since"], one.body["until"]) for one in daemon.asked[:2]] == [(since, until)] * 2
    assert [(one.query["since"], one.query["until"]) for one in daemon.asked[2:]] == [(since, until)] * 2
    assert daemon.asked[2].query["project"] == "p"


@pytest.mark.parametrize("given", ["blub", "yesterday at noon", "2026-02-30", "20260101"])
@pytest.mark.parametrize(
    "arguments", [("recall", "x"), ("search", "x"), ("list",), ("forget", "--preview")], ids=lambda given: given[0]
)
def test_what_is_no_time_is_refused_with_the_accepted_forms(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...], given: str
) -> None:
    for option in ("--since", "--until"):
        result = signet(*arguments, option, given)
        assert (result.exit_code, daemon.asked) == (2, [])
        said = " ".join(result.stderr.split())
        assert f"Invalid value for '{option}': '{given}' is not a time. Give a date (2026-01-31)" in said
        assert "`yesterday`" in said


def test_a_day_of_the_caller_has_the_daylight_saving_time_of_its_date(
    daemon: ScriptedDaemon, signet: Callable[..., Result], berlin: None
) -> None:
    july = datetime(2026, 7, 15, 10, tzinfo=UTC)
    daemon.on("POST", "/api/memory/recall", NOTHING)
    with mock.patch("signet_actors.cli.presentation.current_time", july.astimezone):
        signet("recall", "x", "--since", "in March", "--until", "in March")
        signet("recall", "x", "--since", "yesterday", "--until", "yesterday")
    assert [(one.body["since"], one.body["until"]) for one in daemon.asked] == [
        ("2026-02-28T23:00:00.000Z", "2026-03-31T21:59:59.999Z"),
        ("2026-07-13T22:00:00.000Z", "2026-07-14T21:59:59.999Z"),
    ]


def test_search_finds_all_words_as_they_are(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    row = {"id": "m1", "type": "fact", "created_at": "t", "tags": "a,b", "content": "C++ on Fridays", "score": 0.5}
    daemon.on("GET", "/memory/search", {"results": [row]})
    result = signet("search", "C++", 'say "no" --', "-n", "3", "--tags", "a,b", "--pinned", "--agent", "alice")
    assert result.stdout == "0.5\tm1\tfact\tt\ta,b\tC++ on Fridays\n"
    filters = {"limit": "3", "tags": "a,b", "pinned": "true", "agentId": "alice"}
    assert daemon.asked[0].query == {"q": '"C++" "say" "no" "--"', **filters}
    signet("search", "--expression", "deploy*", "NOT", "friday")
    assert daemon.asked[1].query["q"] == "deploy* NOT friday"


def test_search_without_results_prints_a_message_to_stderr(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", "/memory/search", {"results": []})
    result = signet("search", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing found.\n")


@pytest.mark.parametrize("command", [(), *((name,) for name, *_ in COMMANDS), ("pipeline", "undo"), ("config", "show")])
def test_help_prints_what_the_option_prints(signet: Callable[..., Result], command: tuple[str, ...]) -> None:
    explained = signet("help", *command)
    assert explained.exit_code == 0
    assert explained.stdout == signet(*command, "--help").stdout


def test_help_on_an_unknown_command_is_wrong_usage(signet: Callable[..., Result]) -> None:
    assert signet("help", "nonsense").exit_code == signet("help", "list", "more").exit_code == 2


@pytest.mark.parametrize("arguments", [("list",), ("pipeline", "runs"), ("recall", "x")])
def test_ctrl_c_ends_with_130(signet: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    with mock.patch(CLIENT, side_effect=KeyboardInterrupt):
        result = signet(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "\n")


def test_ctrl_c_while_the_modules_are_imported_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "gc", mock.Mock())  # the collector of the tests stays as it is
    monkeypatch.setitem(sys.modules, "signet_actors.cli.main", mock.Mock(main=mock.Mock(side_effect=KeyboardInterrupt)))
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130


@pytest.mark.parametrize(
    "command",
    [
        ("config", "path"),
        ("review", "list"),
        ("retention", "sweep"),
        ("call", "memories.list"),
        ("pipeline", "runs"),
    ],
)
def test_the_options_of_all_commands_may_stand_between_a_group_and_its_command(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, command: tuple[str, str]
) -> None:
    daemon.on("GET", "/api/memory/review-queue", {"items": [], "total": 0})
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}})
    daemon.on("GET", "/api/pipeline/runs", {"runs": []})
    daemon.on("POST", "/api/repair/retention-sweep", {"success": True, "steps": []})
    group, name = command
    given = ("--json", "--workspace", str(tmp_path / "w"))
    orders = ((*given, group, name), (group, *given, name), (group, name, *given))
    results = [signet(*arguments) for arguments in orders]
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert json.loads(results[0].stdout) == json.loads(results[1].stdout) == json.loads(results[2].stdout)


@pytest.mark.parametrize("command", [("help", "list"), ("completion", "bash"), ("version",)])
def test_the_options_of_all_commands_may_stand_after_a_command_that_needs_none(
    signet: Callable[..., Result], command: tuple[str, ...]
) -> None:
    assert signet(*command, "--workspace", "/w", "--url", "http://127.0.0.1:9").exit_code == 0


def test_an_edit_that_changes_nothing_prints_one_json_document(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", f"/api/memory/{ID}", {"id": ID, "content": "x", "version": 1})
    with mock.patch("click.edit", return_value="x\n"), mock.patch.dict("os.environ", EDITOR="true"):
        result = signet("edit", ID, "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"id": ID, "status": "no_changes"})
    assert [one.method for one in daemon.asked] == ["GET"]


def test_ctrl_c_at_a_question_ends_with_130_and_deletes_nothing(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", f"/api/memory/{ID}", {"id": ID, "content": "x", "version": 1})
    with mock.patch("signet_actors.cli.presentation.click.confirm", side_effect=_interrupted):
        assert signet("forget", ID).exit_code == 130
    assert [one.method for one in daemon.asked] == ["GET"]


def test_the_question_of_doctor_is_one_like_the_others(signet: Callable[..., Result], tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    repair = ("--workspace", str(tmp_path / "new"), "--json", "doctor", "--repair")
    unanswered = signet(*repair, stdin="")
    assert "No answer; use --yes to skip the question." in unanswered.stderr
    assert unanswered.exit_code == 1 - json.loads(unanswered.stdout)["ok"]
    with mock.patch("signet_actors.cli.presentation.click.confirm", side_effect=_interrupted):
        assert signet(*repair).exit_code == 130


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list",), "There are no memories."),
        (("list", "--type", "rule"), "There are no memories of the type rule."),
        (("list", "--deleted"), "There are no deleted memories."),
        (("list", "--offset", "20"), "There are no more memories."),
        (("review", "list"), "There are no proposals for review."),
        (("review", "list", "--state", "rejected"), "There are no proposals that were rejected."),
        (("review", "list", "--offset", "20"), "There are no more proposals."),
    ],
)
def test_an_empty_list_says_what_there_is_not(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...], said: str
) -> None:
    daemon.on("GET", "/api/memories", {"memories": [], "stats": {}})
    daemon.on("GET", "/api/memory/review-queue", {"items": [], "total": 0})
    result = signet(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{said}\n")


def _interrupted(*_arguments: Any, **_options: Any) -> bool:
    """Raise what click raises at Ctrl-C."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise click.Abort from None


def test_without_a_model_the_status_says_so_once(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    choice = {"configured": "auto", "resolved": "none", "effective": "none"}
    status = {
        "status": "running",
        "actors": [],
        "jobs": {"pending": 3},
        "waiting": ["3 jobs wait; extract: no model is available"],
        "providerResolution": {"extraction": choice},
    }
    embed = "4 jobs wait; extract: no model is available; embed: the embedding server cannot be reached"
    daemon.script(
        "GET",
        "/api/status",
        status,
        {**status, "notes": ["extractor: no answer within 1000 ms"]},
        {**status, "waiting": [embed]},
    )
    shown = signet("status").stdout
    assert shown.count("needs a model") == 1
    assert "\nfacts: off, needs a model (`signet providers`)\njobs: 3 waiting for a model\n" in shown
    assert "facts:" not in signet("status").stdout
    assert f"\nwaiting: {embed}\n" in signet("status").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serach:\n  alpha: 0.5\n", 'configuration: agent.yaml: serach: unknown key, ignored; did you mean "search"?'),
        (
            "search:\n  alpha: 7\n",
            "configuration: agent.yaml: search.alpha: 7 is out of range (0.0 to 1.0); the ",
        ),
        ("gateway:\n  port: x\n", "configuration: it is not valid, so a restart would fail; correct it with `signet"),
        ("search:\n  alpha: 0.5\n", ""),
    ],
)
def test_the_status_names_the_problems_of_the_configuration_once(
    daemon: ScriptedDaemon, tmp_path: Path, text: str, said: str
) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    with held_workspace(workspace, daemon.port):
        (workspace / "agent.yaml").write_text(text)
        daemon.on("GET", "/api/status", {"status": "running", "actors": []})
        shown = CliRunner().invoke(cli, ["--workspace", str(workspace), "status"]).stdout
    assert shown.count("configuration: ") == bool(said)
    assert said in shown


def test_without_a_model_the_pipeline_says_so_once(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    none = {"name": "none", "reason": "Ollama is not there"}
    found = {"mode": "full", "providers": {"extraction": none, "decision": none}}
    daemon.script("GET", "/api/pipeline/status", found, {**found, "providers": {"extraction": none, "decision": None}})
    shown = signet("pipeline").stdout
    assert "facts: off, needs a model (`signet providers`)\n" in shown
    assert "model of the extraction: none: Ollama is not there\n" in signet("pipeline").stdout


@pytest.mark.parametrize("arguments", [("--agent", "alice", "list"), ("list", "--agent", "alice")])
def test_the_agent_may_stand_before_and_after_the_command(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    daemon.on("GET", "/api/memories", {"memories": []})
    assert signet(*arguments).exit_code == 0
    assert daemon.asked[0].query["agentId"] == "alice"


STATUS: dict[str, Any] = {
    "status": "running",
    "version": "0.1.0",
    "uptime": 60,
    "host": "127.0.0.1",
    "port": 3850,
    "agentsDir": "/home/you/.agents",
    "health": {"status": "healthy"},
    "actors": [{"name": "extractor", "state": "starting"}, {"name": "writer", "state": "up"}],
    "db": {"memories": 54, "sessions": 3},
    "retention": {"lastBackupAt": "2026-02-21T11:53:00.000Z"},
    "jobs": {"pending": 57},
    "waiting": ["57 jobs wait; extract: no model is available"],
    "providerResolution": {"extraction": {"configured": "auto", "resolved": "none", "effective": "none"}},
    "notes": [],
}


def test_the_status_is_a_sentence_and_some_lines_and_the_table_is_verbose(daemon: ScriptedDaemon) -> None:
    daemon.on("GET", "/api/status", STATUS)
    _, shown = on_screen(daemon.url, "status", width=80)
    assert shown.splitlines() == [
        "● running · 54 memories · 3 sessions · last backup 7 min ago",
        "  address:   http://127.0.0.1:3850",
        "  workspace: /home/you/.agents",
        "  version:   0.1.0, up 1 min 0 s",
        "  facts:     off, needs a model (`signet providers`)",
    ]
    verbose = on_screen(daemon.url, "status", "-v", width=80)[1]
    assert "extractor  starting (optional)" in verbose
    assert "jobs:          57 waiting for a model" in " ".join(verbose.split("\n"))


def test_that_no_sweep_has_purged_in_the_first_hour_is_for_the_verbose_status(daemon: ScriptedDaemon) -> None:
    reasons = {"no sweep has seen this clock yet": False, "the clock is 9 days ahead": True}
    answers = [{**STATUS, "retention": {"suspendedReason": f"{reason}; nothing is purged"}} for reason in reasons]
    daemon.script("GET", "/api/status", *(answer for answer in answers for _ in range(2)))
    for reason, is_short in reasons.items():
        assert (f"retention: {reason}" in on_screen(daemon.url, "status", width=80)[1]) is is_short
        assert f"retention: {reason}" in on_screen(daemon.url, "status", "-v", width=80)[1]


def test_a_start_of_the_extractor_is_no_trouble(daemon: ScriptedDaemon) -> None:
    starting = {**STATUS, "notes": ["extractor: starting"], "waiting": ["57 jobs wait: the extractor does not respond"]}
    daemon.on("GET", "/api/status", starting)
    assert "extractor" not in on_screen(daemon.url, "status", width=80)[1]


def test_no_text_is_nothing_to_remember(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    for text in ("", "  ", "\n"):
        result = signet("remember", text)
        assert (result.exit_code, result.stderr) == (1, "signet: There is no text to remember.\n")
    assert daemon.asked == []


def test_a_similar_memory_is_named_with_the_command_that_replaces_it(daemon: ScriptedDaemon) -> None:
    similar = {
        "id": "01a2222b-533e-7aaa-8bbb-000000000000",
        "content": "The local postgres port is 5434",
        "createdAt": "2026-02-21T11:57:00.000Z",
    }
    stored = {"id": ID, "type": "fact", "similar": [similar]}
    daemon.on("POST", "/api/memory/remember", stored, status=201)
    shown = on_screen(daemon.url, "remember", "My local postgres has port 5442", width=200)[1]
    assert shown.splitlines()[1] == (
        'Similar: "The local postgres port is 5434" (3 min ago).'
        ' If that is no longer true: `signet edit 01a2222b-533e-7aaa-8bbb --content "…"`'
    )


def test_several_similar_memories_are_listed_above_one_advice(daemon: ScriptedDaemon) -> None:
    ids = ("01a2222b-533e-7aaa-8bbb-000000000000", "01a2222b-533f-7aaa-8bbb-000000000000")
    similar = [{"id": id_, "content": f"Port {id_[12]}", "createdAt": "2026-02-21T11:57:00.000Z"} for id_ in ids]
    daemon.on("POST", "/api/memory/remember", {"id": ID, "type": "fact", "similar": similar}, status=201)
    assert on_screen(daemon.url, "remember", "x", width=80)[1].splitlines()[1:] == [
        'Similar: "Port e" (3 min ago). 01a2222b-533e-7aaa-8bbb',
        'Similar: "Port f" (3 min ago). 01a2222b-533f-7aaa-8bbb',
        'If one of them is no longer true: `signet edit ID --content "…"`',
    ]


def test_a_program_that_remembers_on_a_pipe_is_told_of_similar_memories_beside_the_id(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    similar = {
        "id": "01a2222b-533e-7aaa-8bbb-000000000000",
        "content": "## A single test\nRun only one: `pytest -k name`, never all of them at once",
        "createdAt": "2026-02-21T11:57:00.000Z",
    }
    with_similar = {"id": ID, "type": "fact", "similar": [similar]}
    daemon.script("POST", "/api/memory/remember", with_similar, with_similar, {"id": ID, "type": "fact"})
    result = signet("remember", "A single test is run with pytest -x")
    assert result.stdout == f"{ID}\n"
    assert result.stderr.count("Similar: ") == 1
    edit = f'`signet --url {daemon.url} edit 01a2222b-533e-7aaa-8bbb --content "…"`'
    assert f"If that is no longer true: {edit}\n" in result.stderr
    assert '`signet edit 01a2222b-533e-7aaa-8bbb --content "…"`' in on_screen(daemon.url, "remember", "x", width=80)[1]
    assert signet("remember", "y").stderr == ""


def test_the_sentence_of_the_status_is_broken_between_its_parts(daemon: ScriptedDaemon) -> None:
    daemon.on("GET", "/api/status", STATUS)
    assert on_screen(daemon.url, "status", width=50)[1].splitlines()[:2] == [
        "● running · 54 memories · 3 sessions ·",
        "  last backup 7 min ago",
    ]


def test_a_full_disk_is_told_once(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    refusal = {"error": "the disk is full; nothing was applied", "code": "storage_full"}
    daemon.on("POST", "/api/memory/remember", refusal, status=507)
    said = signet("remember", "x").stderr
    assert said == "signet: the disk is full; nothing was applied. Free some disk space. Recall still works.\n"
