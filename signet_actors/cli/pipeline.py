"""The command pipeline: show its status and runs, undo a run, requeue dead jobs.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import command, group, page_options
from signet_actors.cli.memory_ids import full_id, full_pipeline_id, named_if_unknown
from signet_actors.cli.presentation import (
    ask_confirmation,
    counted,
    on_terminal,
    one_line,
    print_message,
    print_result,
)
from signet_actors.cli.proposals import fact_text, print_proposals, print_rejected
from signet_actors.cli.providers import STAGES, budget_text, model_text, note_text, pipeline_status, provider_and_model
from signet_actors.cli.reply import print_answer, print_relations
from signet_actors.cli.status import duration
from signet_actors.cli.tables import Column, print_fields, print_table, print_wrapped
from signet_actors.cli.times import full_time_text, time_text
from signet_actors.operations.request_path import fill_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_actors.cli.invocation import Invocation

MAX_REQUEUED = 50
STATES = ("pending", "leased", "completed", "dead")


@group(invoke_without_command=True)
def pipeline() -> None:
    """Show the pipeline's status and runs; undo a run.

    Without a command: the jobs by kind and state, why they wait, and today's facts by outcome.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        _status(ctx.obj)


def _status(invocation: Invocation) -> None:
    answer = pipeline_status(invocation)
    if invocation.as_json:
        print_answer(answer)
        return
    body: dict[str, Any] = answer.body
    runs: dict[str, Any] = body.get("runs") or {}
    print_fields(
        (
            ("mode", body.get("writes") or body.get("mode")),
            *_models(body.get("providers") or {}),
            ("runs", _runs(runs)),
            ("reviews", body.get("reviewsPending")),
            ("facts today", _figures(body.get("figures"))),
        )
    )
    click.echo()
    runners = {runner.get("kind"): runner for runner in body.get("lanes") or []}
    print_table(
        (
            "kind",
            Column("pending", right=True),
            Column("leased", 3, right=True),
            Column("completed", 4, right=True),
            Column("dead", right=True),
            Column("oldest waits", 1, right=True),
            Column("running", 2, right=True),
            Column("paused because", wrap=True),
        ),
        [_kind(job, runners.get(job.get("kind"), {}), _no_model(body)) for job in body.get("jobs") or []],
    )
    for dead in body.get("dead") or []:
        which = counted(dead["count"], f"{dead['kind']} job")
        print_wrapped(f"dead: {which}: {dead['cause']} ({time_text(dead['lastAt'])})", indent=2)
    for line in _notes(body):
        print_wrapped(line, indent=2)


@command(pipeline, "runs", agent=True)
@click.option("--memory", metavar="ID", help="Only the runs on this memory.")
@page_options(500, "runs")
def runs(invocation: Invocation, memory: str | None, limit: int, offset: int) -> None:
    """List the pipeline's runs, newest first.

    On a pipe: run, when, memory, mode, model, result, when it was undone; separated by tabs.
    """
    client = invocation.client()
    memory = memory and full_id(client, memory)
    answer = client.get("/api/pipeline/runs", memory_id=memory, limit=limit, offset=offset or None)
    found = answer.records("runs")
    if invocation.as_json:
        print_answer(answer)
        return
    print_table(
        (
            "id",
            "when",
            Column("memory", 1),
            Column("mode", 3),
            Column("model", 2, wrap=True),
            Column("result", wrap=True),
        ),
        [
            (
                run.get("id"),
                time_text(run.get("createdAt")),
                run.get("memoryId"),
                run.get("mode"),
                provider_and_model(run),
                *_result(run),
            )
            for run in found
        ],
        none="There are no runs.",
    )


@command(pipeline, "show", agent=True)
@click.argument("run_id", metavar="RUN")
def show_run(invocation: Invocation, run_id: str) -> None:
    """Show a run: its proposals, the facts that it rejected, and why; RUN is the id of the run or of its job."""
    client = invocation.client()
    run_id = full_pipeline_id(client, run_id, "run")
    with named_if_unknown(run_id, kind="run"):
        answer = client.get(_run_path(run_id))
    proposals = answer.records("proposals")
    run: dict[str, Any] = answer.body["run"]
    if not run.get("id"):
        raise answer.malformed("no run")
    if invocation.as_json:
        print_answer(answer)
        return
    undone = f"{full_time_text(run.get('undoneAt'))} by {run.get('undoneBy')}" if run.get("undoneAt") else None
    print_fields(
        (
            ("run", run["id"]),
            ("when", full_time_text(run.get("createdAt"))),
            ("memory", run.get("memoryId")),
            ("mode", run.get("mode")),
            ("model", provider_and_model(run)),
            ("job", run.get("jobId")),
            ("undone", undone),
        )
    )
    click.echo()
    print_proposals(proposals)
    print_rejected(answer.body)
    print_relations(answer)


@command(pipeline, "undo", agent=True)
@click.argument("run_id", metavar="RUN")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def undo(invocation: Invocation, run_id: str, yes: bool) -> None:
    """Undo the changes of a run.

    Memories that were changed since the run are kept and listed; then the exit code is 1.
    """
    client = invocation.client()
    run_id = full_pipeline_id(client, run_id, "run")
    if not yes:
        with named_if_unknown(run_id, kind="run"):
            found = client.get(_run_path(run_id))
        proposals = found.records("proposals")
        run_id = str(found.body["run"]["id"])
        print_message(f"Run {one_line(run_id)}: {_counts(found.body['run'].get('counts')) or 'nothing'}")
        for one in proposals:
            if one.get("outcome") in {"created", "updated", "deleted"}:
                print_message(f"  {one_line(one['outcome'])}: {one_line(fact_text(one), 200)}")
        if not ask_confirmation("Undo it?"):
            print_message("Nothing was undone.")
            click.get_current_context().exit(REFUSED)
    with named_if_unknown(run_id, kind="run"):
        answer = client.request(
            "POST", _run_path(run_id, "/undo"), query={"agentId": client.agent} if client.agent else None, body={}
        )
    answer.confirm("status", "undone", "already_undone")
    results = answer.records("results")
    if invocation.as_json:
        print_answer(answer)
    else:
        kept = [result for result in results if result.get("status") != "undone"]
        for result in kept:
            print_message(
                f"{one_line(result.get('memoryId'))} ({one_line(result.get('action'))}) was kept:"
                f" {one_line(result.get('reason'))}"
            )
        done = "Already undone earlier:" if answer.body["status"] == "already_undone" else "Undid"
        closed = answer.body.get("reviewsClosed")
        also = f"; {closed} of its reviews closed" if closed else ""
        print_result(f"{done} {len(results) - len(kept)} of {counted(len(results), 'change')}{also}.")
    if any(result.get("status") != "undone" for result in results):
        click.get_current_context().exit(REFUSED)


@command(pipeline, "requeue", agent=True)
@click.argument("ids", metavar="[JOB]...", nargs=-1)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only dead jobs of this kind.")
@page_options(MAX_REQUEUED, "jobs, oldest first", default=MAX_REQUEUED, offset=False)
def requeue(invocation: Invocation, ids: tuple[str, ...], kinds: tuple[str, ...], limit: int) -> None:
    """Give dead jobs all their attempts again.

    Without JOB: all dead jobs, or those of a kind, except jobs that were requeued before; these must be named. On a
    pipe: the ids of the requeued jobs. Exit code 1 if a named job was not requeued; a job of a memory that the agent
    may not read is not found.
    """
    if ids and kinds:
        raise click.UsageError("give jobs or kinds, not both")
    if len(ids) > MAX_REQUEUED:
        raise click.UsageError(f"at most {MAX_REQUEUED} jobs at a time")
    client = invocation.client()
    ids = tuple(full_pipeline_id(client, given, "dead_job", "job") for given in ids)
    chosen = {"ids": list(ids) or None, "kinds": list(kinds) or None}
    body = {**chosen, "limit": None if ids else limit}
    answer = client.send("POST", "/api/pipeline/requeue", body)
    answer.confirm("success", True)
    refused = answer.records("refused")
    requeued = answer.body["requeued"]
    if invocation.as_json:
        print_answer(answer)
    else:
        for job_id in requeued:
            click.echo(one_line(job_id))
        for job in refused:
            print_message(f"{one_line(job.get('jobId'))} was not requeued: {one_line(job.get('reason'))}")
        if not requeued and not refused:
            print_message("There are no dead jobs.")
        if answer.body.get("more"):
            print_message("There are more dead jobs; run the command again.")
    if refused and ids:
        click.get_current_context().exit(REFUSED)


def _run_path(run_id: str, tail: str = "") -> str:
    return fill_path(f"/api/pipeline/runs/{{run}}{tail}", {"run": run_id})


def _result(run: dict[str, Any]) -> tuple[str, ...]:
    """Return what the run changed and when that was undone: in one column on a terminal, in two on a pipe."""
    result, undone = _counts(run.get("counts")) or "nothing", time_text(run.get("undoneAt"))
    return (f"{result}; undone {undone}" if undone else result,) if on_terminal() else (result, undone)


def _counts(counts: Any) -> str:
    return ", ".join(f"{count} {name}" for name, count in (counts or {}).items() if count)


def _models(models: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the model of each stage; one line if there is none at all."""
    named = [models.get(stage) for stage in STAGES]
    if named[0] is not None and all(model is not None and model.get("name") == "none" for model in named):
        yield "facts", "off, needs a model (`signet providers`)"
    else:
        yield from ((f"model of the {stage}", model_text(models.get(stage))) for stage in STAGES)


def _no_model(body: dict[str, Any]) -> str:
    """Return why there is no model, which a terminal shows once; empty if there is one, and on a pipe."""
    if not on_terminal():
        return ""
    model: dict[str, Any] = (body.get("providers") or {}).get("extraction") or {}
    return str(model.get("reason") or "") if model.get("name") == "none" else ""


def _runs(runs: dict[str, Any]) -> str | None:
    if not runs:
        return None
    if not runs.get("total"):
        return "none yet"
    return f"{runs.get('total')}, {runs.get('undone')} undone, the last {time_text(runs.get('lastAt'))}"


def _figures(figures: dict[str, Any] | None) -> str | None:
    if not figures:
        return None
    today: dict[str, Any] = figures["today"]
    junk: dict[str, Any] = today["junk"]
    parts = [str(today["facts"])]
    if today.get("outcomes"):
        parts.append(f"({_counts(today['outcomes'])})")
    if junk.get("rejected"):
        parts.append(f"and {junk['rate']:.0%} rejected as junk ({_counts(junk['byReason'])})")
    return " ".join(parts)


def _kind(job: dict[str, Any], runner: dict[str, Any], no_model: str) -> tuple[Any, ...]:
    waits = job.get("oldestPendingAgeSec")
    return (
        job.get("kind"),
        *(job.get(state) for state in STATES),
        "" if waits is None else duration(waits),
        f"{runner.get('running')} of {runner.get('slots')}" if runner else "",
        "no model" if no_model and runner.get("pausedBecause") == no_model else runner.get("pausedBecause"),
    )


def _notes(body: dict[str, Any]) -> Iterator[str]:
    for budget in body.get("budgets") or []:
        if budget.get("callsADay") or budget.get("tokensADay"):
            yield f"budget of {one_line(budget['provider'])} today: {budget_text(budget)}"
    why = _no_model(body)
    for reason in body.get("waiting") or []:
        yield f"waiting: {one_line(reason).replace(why, 'no model') if why else one_line(reason)}"
    for note in body.get("notes") or []:
        yield note_text(note)
