"""The commands pipeline, providers and review, and doctor's check of the model, with a scripted daemon."""

from __future__ import annotations

import copy
import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATUS = "/api/pipeline/status"
RUN_ID = "01a2059b-7c1e-7e35-9d6e-000000000001"
JOB_ID = "01a2059b-7c1e-7e35-9d6e-000000000002"
OTHER_JOB = "01a2059b-7c1e-7e35-9d6e-000000000003"
PROPOSAL_ID = "01a2059b-7c1e-7e35-9d6e-000000000004"
RUN = f"/api/pipeline/runs/{RUN_ID}"
BY_PREFIX = "/api/pipeline/by-prefix"
CALLS: dict[str, Any] = {
    "circuit": "closed",
    "waitsMs": 0,
    "waitsFor": "",
    "recent": {"total": 5, "successes": 3, "failures": 1, "timeouts": 1, "availabilityRate": 0.6},
    "calls": 9,
    "inFlight": 0,
    "tokensIn": 900,
    "tokensOut": 90,
    "costMicrousd": 0,
    "errors": {"http": 1},
    "lastError": "500 of the server",
}
OLLAMA: dict[str, Any] = {
    "configured": "auto",
    "name": "ollama",
    "model": "qwen3:4b",
    "reason": "Ollama is running and has the model",
    "available": True,
    "detail": "",
    "endpoint": "http://127.0.0.1:11434",
    "mayCost": False,
    "calls": CALLS,
}
NOBODY: dict[str, Any] = {**OLLAMA, "name": "none", "model": "", "reason": "Ollama is not there", "calls": None}
UNMET: dict[str, Any] = {
    **OLLAMA,
    "configured": "ollama",
    "available": False,
    "detail": "Ollama is running but does not have the model qwen3:4b; install it with: ollama pull qwen3:4b",
    "calls": {**CALLS, "recent": {"total": 0, "successes": 0, "failures": 0, "timeouts": 0}},
}
MET: dict[str, Any] = {**UNMET, "calls": CALLS}
OPEN: dict[str, Any] = {
    **OLLAMA,
    "calls": {**CALLS, "circuit": "open", "waitsMs": 9000, "waitsFor": "is tried again in 9 s"},
}
SAID: dict[str, Any] = {
    "mode": "full",
    "jobs": [
        {"kind": "extract", "pending": 3, "leased": 1, "completed": 9, "dead": 2, "oldestPendingAgeSec": 61.5},
        {"kind": "embed", "pending": 0, "leased": 0, "completed": 0, "dead": 0, "oldestPendingAgeSec": None},
    ],
    "dead": [{"kind": "extract", "cause": "no JSON\x1b[2J", "count": 2, "lastAt": "2026-02-21T09:00:00.000Z"}],
    "lanes": [{"kind": "extract", "slots": 4, "running": 1, "pausedBecause": "ollama is tried again"}],
    "providers": {"extraction": OLLAMA, "decision": OLLAMA},
    "budgets": [{"provider": "ollama", "callsADay": 100, "tokensADay": None, "callsToday": 7, "tokensToday": 800}],
    "usageToday": [
        {
            "provider": "ollama",
            "model": "qwen3:4b",
            "calls": 7,
            "tokensIn": 700,
            "tokensOut": 100,
            "costMicrousd": 1500,
        }
    ],
    "figures": {
        "today": {
            "facts": 6,
            "outcomes": {"created": 5, "skipped": 1},
            "junk": {"rate": 0.25, "rejected": 2, "facts": 6, "byReason": {"question": 2}},
        }
    },
    "runs": {"total": 9, "undone": 1, "lastAt": "2026-02-21T09:58:00.000Z"},
    "reviewsPending": 4,
    "waiting": ["3 jobs wait"],
    "notes": ["decider: no answer within 1000 ms"],
}
PROPOSAL: dict[str, Any] = {
    "id": PROPOSAL_ID,
    "ordinal": 0,
    "action": "add",
    "outcome": "created",
    "reason": None,
    "factContent": "Noor prefers tabs",
    "resultMemoryId": "m5",
    "undoNote": None,
}
RUN_SAID: dict[str, Any] = {
    "run": {
        "id": RUN_ID,
        "jobId": JOB_ID,
        "memoryId": "m1",
        "mode": "full",
        "provider": "ollama",
        "model": "qwen3:4b",
        "counts": {"created": 1, "skipped": 0},
        "createdAt": "2026-02-21T10:00:00.000Z",
        "undoneAt": None,
        "undoneBy": None,
    },
    "proposals": [PROPOSAL],
}
UNDONE: dict[str, Any] = {
    "runId": RUN_ID,
    "status": "undone",
    "results": [{"ordinal": 0, "action": "add", "status": "undone", "memoryId": "m5", "reason": None}],
}
ITEM: dict[str, Any] = {
    "id": PROPOSAL_ID,
    "review_state": "pending",
    "action": "update",
    "reason": "contradiction",
    "memory_id": "m2",
    "current_content": "alpha",
    "fact_content": "beta",
}


def with_models(extraction: Any, decision: Any) -> dict[str, Any]:
    said = copy.deepcopy(SAID)
    said["providers"] = {"extraction": extraction, "decision": decision}
    return said


def test_pipeline_shows_jobs_by_kind_why_they_wait_and_outcomes_of_facts(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", STATUS, SAID)
    result = signet("pipeline")
    assert result.exit_code == 0, result.output
    for text in (
        "mode: full",
        "model of the extraction: ollama qwen3:4b\n",
        "facts today: 6 (5 created, 1 skipped) and 25% rejected as junk (2 question)",
        "extract\t3\t1\t9\t2\t1 min 1 s\t1 of 4\tollama is tried again\n",
        "embed\t0\t0\t0\t0\t\t\t\n",
        "dead: 2 extract jobs: no JSON\\u001b[2J",
        "budget of ollama today: 7 calls (at most 100), 800 tokens (no limit)",
        "waiting: 3 jobs wait",
        "unknown: decider",
        "reviews: 4",
    ):
        assert text in result.stdout
    assert "\x1b" not in result.stdout


def test_providers_shows_the_selection_its_reason_and_todays_usage(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", STATUS, with_models(OPEN, None))
    result = signet("providers")
    assert result.exit_code == 0, result.output
    for text in (
        "chosen: ollama qwen3:4b",
        "reason: Ollama is running and has the model",
        "circuit: open, is tried again in 9 s",
        "last calls: 5: 3 answered, 1 failed, 1 timed out",
        "last error: 500 of the server",
        "today's budget of ollama: 7 calls (at most 100)",
        "ollama\tqwen3:4b\t7\t700\t100\t$0.0015",
        "stage: decision\nmodel: unknown: its process does not respond",
    ):
        assert text in result.stdout
    assert (
        "No model is available: storing and recall work, jobs wait. To fix it: check that its server" in result.stdout
    )


@pytest.mark.parametrize(
    ("extraction", "decision", "told"),
    [
        (NOBODY, NOBODY, True),
        (OPEN, NOBODY, True),
        (UNMET, UNMET, True),
        (OLLAMA, NOBODY, False),
        (OLLAMA, OPEN, False),
        (MET, MET, False),
        (None, None, False),
    ],
)
def test_providers_explains_how_to_get_a_model_only_if_none_responds(
    daemon: ScriptedDaemon, signet: Callable[..., Result], extraction: Any, decision: Any, told: bool
) -> None:
    daemon.on("GET", STATUS, with_models(extraction, decision))
    result = signet("providers")
    assert result.exit_code == 0, result.output
    assert ("To fix it: " in result.stdout or "to get one: " in result.stdout) is told
    assert result.stdout.count("Ollama is not there") <= 2 - (extraction == decision)
    if told:
        assert "ollama pull qwen3:4b" in result.stdout


@pytest.mark.parametrize(
    ("path", "arguments", "body"),
    [
        (STATUS, ("pipeline",), SAID),
        (STATUS, ("providers",), SAID),
        ("/api/pipeline/runs", ("pipeline", "runs"), {"runs": [RUN_SAID["run"]]}),
        (RUN, ("pipeline", "show", RUN_ID), RUN_SAID),
        ("/api/memory/review-queue", ("review", "list"), {"items": [ITEM], "total": 1}),
    ],
)
def test_with_json_the_response_is_printed_unchanged(
    daemon: ScriptedDaemon, signet: Callable[..., Result], path: str, arguments: tuple[str, ...], body: Any
) -> None:
    daemon.on("GET", path, body)
    for asked in ((*arguments, "--json"), ("--json", *arguments)):
        assert json.loads(signet(*asked).stdout) == body


@pytest.mark.parametrize("items", [[], [ITEM]])
def test_a_person_is_told_the_setting_that_the_last_decisions_speak_for(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, items: list[Any]
) -> None:
    hint = {"text": "You approved all.", "key": "memory.pipelineV2.confirm", "value": "auto"}
    daemon.on("GET", "/api/memory/review-queue", {"items": items, "total": len(items), "hint": hint})
    told = "You approved all. `signet config set memory.pipelineV2.confirm auto`"
    assert told not in signet("review", "list").stdout
    monkeypatch.setattr("signet_actors.cli.proposals.on_terminal", lambda: True)
    assert told in signet("review", "list").stdout


def test_providers_reports_a_pipeline_that_is_off(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", STATUS, {**with_models(None, None), "mode": "off"})
    result = signet("providers")
    assert result.stdout.count("model: none: the pipeline is switched off (memory.pipelineV2.enabled)") == 2


def test_without_runs_the_list_is_empty(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", STATUS, {**SAID, "runs": {"total": 0, "undone": 0, "lastAt": None}})
    assert "runs: none yet\n" in signet("pipeline").stdout


def test_runs_are_listed_one_per_line(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/pipeline/runs", {"runs": [RUN_SAID["run"]]})
    result = signet("pipeline", "runs", "--memory", "memory-1", "-n", "5", "--agent", "a")
    assert result.stdout == f"{RUN_ID}\t2026-02-21T10:00:00.000Z\tm1\tfull\tollama qwen3:4b\t1 created\t\n"
    assert daemon.asked[-1].query == {"memory_id": "memory-1", "limit": "5", "agentId": "a"}


def test_a_run_is_shown_with_the_outcome_of_each_proposal(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    erased = {**PROPOSAL, "ordinal": 1, "outcome": "blocked", "reason": "pinned", "factContent": None}
    daemon.on("GET", RUN, {**RUN_SAID, "proposals": [PROPOSAL, erased]})
    result = signet("pipeline", "show", RUN_ID)
    assert "model: ollama qwen3:4b" in result.stdout
    assert "0\tadd\tcreated\t\tm5\tNoor prefers tabs\n" in result.stdout
    assert "1\tadd\tblocked\tpinned\tm5\t(erased)\n" in result.stdout


def test_a_run_is_shown_with_the_facts_that_it_rejected(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    rejected = [{"content": "Is it\x1b[2J raining?", "type": "fact", "confidence": 0.9, "reason": "question"}]
    said = {**RUN_SAID, "rejected": rejected, "rejectedCounts": {"question": 1}, "warnings": ["Fact too short: vim"]}
    too_short = {**RUN_SAID, "proposals": [], "rejected": [], "rejectedCounts": {"too_short": 1}}
    daemon.script("GET", RUN, said, too_short)
    result = signet("pipeline", "show", RUN_ID)
    assert "0\tadd\tcreated\t\tm5\tNoor prefers tabs\nrejected\tquestion\tIs it\\u001b[2J raining?\n" in result.stdout
    assert "warning: Fact too short: vim\n" in result.stdout
    result = signet("pipeline", "show", RUN_ID)
    assert result.stdout.endswith("\nrejected: 1 too_short\n")
    assert result.stderr == "It proposed nothing.\n"


def test_an_undo_shows_the_changes_and_asks_first(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", RUN, RUN_SAID)
    daemon.on("POST", f"{RUN}/undo", UNDONE)
    declined = signet("pipeline", "undo", RUN_ID, stdin="n\n")
    assert declined.exit_code == 1
    assert "created: Noor prefers tabs" in declined.stderr
    assert [asked.method for asked in daemon.asked] == ["GET"]
    result = signet("pipeline", "undo", RUN_ID, stdin="y\n")
    assert (result.exit_code, result.stdout) == (0, "Undid 1 of 1 change.\n")


def test_an_undo_lists_the_reviews_that_it_closes(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", f"{RUN}/undo", {**UNDONE, "reviewsClosed": 2})
    assert signet("pipeline", "undo", RUN_ID, "--yes").stdout == "Undid 1 of 1 change; 2 of its reviews closed.\n"


def test_an_undo_that_kept_changes_lists_them_and_ends_with_1(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    kept = {"ordinal": 1, "action": "update", "status": "kept", "memoryId": "m6", "reason": "changed_since"}
    daemon.on("POST", f"{RUN}/undo", {**UNDONE, "status": "already_undone", "results": [*UNDONE["results"], kept]})
    result = signet("pipeline", "undo", RUN_ID, "--yes", "--agent", "a")
    assert result.exit_code == 1
    assert result.stdout == "Already undone earlier: 1 of 2 changes.\n"
    assert "m6 (update) was kept: changed_since" in result.stderr
    assert daemon.asked[0].query == {"agentId": "a"}


def test_an_id_of_a_run_cannot_change_the_path(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    result = signet("pipeline", "show", "../../status")
    assert (result.exit_code, result.stderr) == (1, "signet: run cannot be '../../status'.\n")
    assert [one.path for one in daemon.asked] == [BY_PREFIX], "where it is a value of the query"


@pytest.mark.parametrize(
    ("arguments", "kind", "whole", "path"),
    [
        (("pipeline", "show"), "run", RUN_ID, RUN),
        (("pipeline", "undo", "--yes"), "run", RUN_ID, f"{RUN}/undo"),
        (("review", "approve"), "proposal", PROPOSAL_ID, f"/api/memory/review-queue/{PROPOSAL_ID}/approve"),
        (("review", "reject"), "proposal", PROPOSAL_ID, f"/api/memory/review-queue/{PROPOSAL_ID}/reject"),
    ],
)
def test_the_beginning_of_an_id_names_a_run_or_a_proposal(
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    arguments: tuple[str, ...],
    kind: str,
    whole: str,
    path: str,
) -> None:
    daemon.on("GET", BY_PREFIX, {"found": [{"id": whole, "about": "x", "createdAt": "2026-02-21T10:00:00.000Z"}]})
    signet(*arguments, whole[:35], "--agent", "alice")
    assert daemon.asked[0].query == {"kind": kind, "prefix": whole[:35], "limit": "11", "agentId": "alice"}
    assert daemon.asked[1].path == path


def test_the_beginning_of_an_id_names_a_dead_job_before_any_other(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    job = {"id": JOB_ID, "about": "extract, dead", "createdAt": "2026-02-21T10:00:00.000Z"}
    daemon.script("GET", BY_PREFIX, {"found": [job]}, {"found": []}, {"found": [{**job, "id": OTHER_JOB}]})
    signet("pipeline", "requeue", JOB_ID[:8], OTHER_JOB[:35])
    assert [one.query.get("kind") for one in daemon.asked] == ["dead_job", "dead_job", "job", None]
    assert daemon.asked[-1].body == {"ids": [JOB_ID, OTHER_JOB]}


def test_an_ambiguous_beginning_of_an_id_lists_what_it_may_mean(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    when = "2026-02-21T10:00:00.000Z"
    two = [
        {"id": JOB_ID, "about": "embed, dead", "createdAt": when},
        {"id": OTHER_JOB, "about": None, "createdAt": when},
    ]
    daemon.on("GET", BY_PREFIX, {"found": two})
    result = signet("pipeline", "requeue", JOB_ID[:6])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"signet: the ids of 2 jobs begin with {JOB_ID[:6]}; give at least 36 characters:\n"
        f"  {JOB_ID}  {when}, embed, dead\n  {OTHER_JOB}  {when}, (erased)\n"
    )
    assert "of 2 runs begin" in signet("pipeline", "show", RUN_ID[:6]).stderr
    assert "of 2 proposals begin" in signet("review", "approve", PROPOSAL_ID[:6]).stderr


def test_too_short_a_beginning_of_an_id_is_refused_with_the_command_that_shows_ids(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    result = signet("review", "reject", "01a20")
    assert (result.exit_code, daemon.asked) == (2, [])
    assert "give at least its first 6 characters (`signet review list` shows the ids)" in result.stderr


def test_requeue_prints_requeued_jobs_and_reports_the_others(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    refused = [{"jobId": OTHER_JOB, "reason": "not_dead"}]
    daemon.on(
        "POST", "/api/pipeline/requeue", {"success": True, "requeued": [JOB_ID], "refused": refused, "more": True}
    )
    result = signet("pipeline", "requeue", JOB_ID, OTHER_JOB)
    assert (result.exit_code, result.stdout) == (1, f"{JOB_ID}\n")
    assert f"{OTHER_JOB} was not requeued: not_dead" in result.stderr
    assert daemon.asked[0].body == {"ids": [JOB_ID, OTHER_JOB]}
    result = signet("pipeline", "requeue", "--kind", "extract", "-n", "3")
    assert (result.exit_code, result.stdout) == (0, f"{JOB_ID}\n")
    assert "There are more dead jobs" in result.stderr
    assert daemon.asked[1].body == {"kinds": ["extract"], "limit": 3}
    assert signet("pipeline", "requeue", JOB_ID, "--agent", "alice").exit_code == 1
    assert daemon.asked[2].body == {"ids": [JOB_ID], "agentId": "alice"}
    assert signet("pipeline", "requeue", JOB_ID, "--kind", "extract").exit_code == 2


def test_reviews_are_listed_with_both_texts(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", "/api/memory/review-queue", {"items": [ITEM], "total": 1})
    result = signet("review", "list", "--state", "all")
    assert result.stdout == f"{PROPOSAL_ID}\tpending\tupdate\tcontradiction\tm2\talpha\tbeta\n"
    assert daemon.asked[0].query["state"] == "all"


@pytest.mark.parametrize(("word", "said"), [("approve", "approved"), ("reject", "rejected")])
def test_a_review_is_decided_with_a_reason(
    daemon: ScriptedDaemon, signet: Callable[..., Result], word: str, said: str
) -> None:
    path = f"/api/memory/review-queue/{PROPOSAL_ID}/{word}"
    daemon.on("POST", path, {"id": PROPOSAL_ID, "status": said, "already": False, "memoryId": "m2", "newVersion": 4})
    result = signet("review", word, PROPOSAL_ID, "-r", "checked", "--agent", "a")
    assert result.exit_code == 0, result.output
    assert f"{PROPOSAL_ID} is {said}" in result.stdout
    assert daemon.asked[0].body == {"reason": "checked", "agentId": "a"}
    assert daemon.asked[0].headers["idempotency-key"]


def test_a_refused_approval_is_reported_with_reason_and_remedy(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    refusal = {"id": PROPOSAL_ID, "status": "pinned", "error": "The memory is pinned", "code": "conflict"}
    daemon.on("POST", f"/api/memory/review-queue/{PROPOSAL_ID}/approve", refusal, status=409)
    result = signet("review", "approve", PROPOSAL_ID)
    assert result.exit_code == 1
    edit = f"signet --url http://127.0.0.1:{daemon.port} edit ID"
    assert result.stderr.startswith(f"signet: The memory is pinned. Change it yourself with `{edit}`")


CHANGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"{RUN}/undo", ("pipeline", "undo", RUN_ID, "--yes")),
    ("/api/pipeline/requeue", ("pipeline", "requeue")),
    (f"/api/memory/review-queue/{PROPOSAL_ID}/approve", ("review", "approve", PROPOSAL_ID)),
    (f"/api/memory/review-queue/{PROPOSAL_ID}/reject", ("review", "reject", PROPOSAL_ID)),
)
READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (STATUS, ("pipeline",)),
    (STATUS, ("providers",)),
    ("/api/pipeline/runs", ("pipeline", "runs")),
    (RUN, ("pipeline", "show", RUN_ID)),
    (RUN, ("pipeline", "undo", RUN_ID)),
    ("/api/memory/review-queue", ("review", "list")),
)
SAYING_NOTHING: tuple[Any, ...] = (
    {},
    [],
    {"status": "no", "success": "yes", "mode": 1, "items": {}, "runs": [1], "proposals": "x", "results": 5},
    {"success": True, "status": "undone"},
    {"proposals": []},
)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("body", SAYING_NOTHING)
@pytest.mark.parametrize(
    ("method", "path", "arguments", "exit_code"),
    [("POST", *each, 5) for each in CHANGES] + [("GET", *each, 1) for each in READS],
)
def test_a_response_without_the_documented_fields_is_never_a_success(
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    method: str,
    path: str,
    arguments: tuple[str, ...],
    exit_code: int,
    body: Any,
    as_json: bool,
) -> None:
    daemon.on(method, path, body)
    result = signet(*arguments, *(["--json"] if as_json else []), stdin="y\n")
    assert result.exit_code == exit_code, (result.output, result.exception)
    assert result.stderr.startswith("signet: the answer does not come from a Signet daemon (")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "odd"),
    [
        (("pipeline",), {"mode": "full", "jobs": 3}),
        (("pipeline",), {"mode": "full", "figures": {"today": 3}}),
        (("pipeline",), {"mode": "full", "dead": [{}]}),
        (("providers",), {"mode": "full", "providers": {"extraction": {"calls": {}}}}),
        (("providers",), {"mode": "full", "budgets": [3]}),
    ],
)
def test_a_malformed_status_is_reported_in_one_line_without_a_traceback(
    daemon: ScriptedDaemon, signet: Callable[..., Result], arguments: tuple[str, ...], odd: Any
) -> None:
    daemon.on("GET", STATUS, odd)
    result = signet(*arguments)
    assert result.exit_code == 1, result.exception
    assert result.stderr.startswith("signet: the answer does not come from a Signet daemon (")
    assert result.stderr.count("\n") == 1


def model_finding(workspace: Path, daemon: ScriptedDaemon) -> dict[str, Any]:
    """What doctor finds of the model beside a daemon that runs on the workspace."""
    home = workspace / ".daemon"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "address").write_text(json.dumps({"host": "127.0.0.1", "port": daemon.port, "pid": 1}))
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, b"1\n")  # the holder, as the address names it
    try:
        result = CliRunner().invoke(cli, ["--workspace", str(workspace), "doctor", "--json"], prog_name="signet")
    finally:
        os.close(descriptor)
    (found,) = [finding for finding in json.loads(result.stdout)["findings"] if finding["subject"] == "model"]
    return dict(found)


@pytest.mark.parametrize(
    ("model", "state", "detail", "remedy"),
    [
        (OLLAMA, "ok", "ollama qwen3:4b", ""),
        (NOBODY, "ok", "none (optional, extracts facts)", "ollama pull qwen3:4b"),
        (OPEN, "warn", "ollama qwen3:4b, is tried again in 9 s; jobs wait", "check that its server is running"),
        (UNMET, "warn", "ollama qwen3:4b, was not available when it was chosen; jobs wait", "ollama pull qwen3:4b"),
        (MET, "ok", "ollama qwen3:4b", ""),
        (None, "warn", "the extractor does not respond", "signet status"),
    ],
)
def test_doctor_reports_a_missing_model_as_information(
    tmp_path: Path, daemon: ScriptedDaemon, model: Any, state: str, detail: str, remedy: str
) -> None:
    daemon.on("GET", STATUS, with_models(model, model))
    found = model_finding(tmp_path, daemon)
    assert found["state"] == state
    assert detail in found["detail"]
    assert remedy in found["remedy"].replace(f"signet --workspace {tmp_path} ", "signet ")
    assert bool(found["remedy"]) == bool(remedy)


def test_subcommands_are_completed(signet: Callable[..., Result]) -> None:
    environment = {"_SIGNET_COMPLETE": "bash_complete", "COMP_WORDS": "signet pipeline ", "COMP_CWORD": "2"}
    result = CliRunner().invoke(cli, [], prog_name="signet", env=environment)
    assert {line.partition(",")[2] for line in result.stdout.split()} >= {"runs", "show", "undo", "requeue"}
