"""The commands pipeline, its status and runs, undo and requeue, and providers, the model of each stage and its usage.

Source: memory-pipeline.txt "Worker Model", "Provider Abstraction"; docs/decisions.md 14, 16, 18 and 57;
docs/configuration.md "Languages".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonClient, DaemonReply, print_answer, print_relations
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command, group, page_options
from signet_actors.cli.memory_rows import full_id, full_pipeline_id, named_if_unknown
from signet_actors.cli.presentation import (
    ask_confirmation,
    counted,
    full_time_text,
    on_terminal,
    one_line,
    print_message,
    print_result,
    time_text,
)
from signet_actors.cli.proposals import fact_text, print_proposals, print_rejected
from signet_actors.cli.status import OPTIONAL, duration
from signet_actors.cli.tables import Column, print_fields, print_records, print_wrapped
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import mostly_foreign
from signet_actors.errors import Unavailable
from signet_actors.operations.request_path import fill_path

MAX_REQUEUED = 50


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
    if invocation.has_printed(answer):
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
    no_model = _no_model(body)
    jobs = [{**(runners.get(job.get("kind")) or {}), "noModel": no_model, **job} for job in body.get("jobs") or []]
    print_records(JOBS, jobs)
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
    if invocation.has_printed(answer):
        return
    print_records(RUNS, found, none="There are no runs.")


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
    if invocation.has_printed(answer):
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
                print_message(f"  {one_line(one['outcome'])}: {one_line(fact_text(one.get('factContent')), 200)}")
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


def _running(job: dict[str, Any]) -> str:
    return f"{job['running']} of {job.get('slots')}" if "running" in job else ""


def _pause(job: dict[str, Any]) -> Any:
    is_known = job["noModel"] and job.get("pausedBecause") == job["noModel"]
    return "no model" if is_known else job.get("pausedBecause")


def _result(run: dict[str, Any]) -> str:
    """Return what the run changed, and on a terminal when that was undone."""
    result, undone = _counts(run.get("counts")) or "nothing", time_text(run.get("undoneAt"))
    return f"{result}; undone {undone}" if undone and on_terminal() else result


def _notes(body: dict[str, Any]) -> Iterator[str]:
    for budget in body.get("budgets") or []:
        if budget.get("callsADay") or budget.get("tokensADay"):
            yield f"budget of {one_line(budget['provider'])} today: {budget_text(budget)}"
    why = _no_model(body)
    for reason in body.get("waiting") or []:
        yield f"waiting: {one_line(reason).replace(why, 'no model') if why else one_line(reason)}"
    for note in body.get("notes") or []:
        yield note_text(note)


STATUS_PATH = "/api/pipeline/status"
HOW_TO_GET_A_MODEL = "install Ollama (https://ollama.com), then `ollama pull qwen3:4b`"
STAGES = ("extraction", "decision")
USAGE = (
    "provider",
    Column("model", wrap=True),
    Column("calls", right=True),
    Column("tokens in", "tokensIn", drop=1, right=True),
    Column("tokens out", "tokensOut", drop=1, right=True),
    Column("cost", "costMicrousd", lambda micro: f"${micro / 1e6:.4f}" if micro else "", right=True),
)


@command()
def providers(invocation: Invocation) -> None:
    """Show each stage's model, its state, and today's usage.

    The exit code is 0 even if no model answers, because storing and recall work without one.
    """
    answer = pipeline_status(invocation)
    if invocation.has_printed(answer):
        return
    body: dict[str, Any] = answer.body
    models: dict[str, Any] = body.get("providers") or {}
    missing = _missing_model([models.get(stage) for stage in STAGES])
    if missing is not None:
        print_fields(
            (
                ("model", "none (optional: storing and recall work without one)"),
                ("configured", missing.get("configured")),
                ("to get one", model_remedy(missing)),
            )
        )
    for number, stage in enumerate(STAGES if missing is None else ()):
        if number:
            click.echo()
        print_fields((("stage", stage), *_about(models.get(stage), off=body.get("mode") == "off")))
    budgets, usage = body.get("budgets") or [], body.get("usageToday") or []
    if budgets or usage:
        click.echo()
    for budget in budgets:
        print_fields(((f"today's budget of {budget['provider']}", budget_text(budget)),))
    if usage:
        print_records(USAGE, usage)
    reported = [model for stage in STAGES if (model := models.get(stage)) is not None]
    if missing is None and reported and not any(is_serving(model) for model in reported):
        click.echo()
        worst = next((model for model in reported if model.get("name") == "none"), reported[0])
        print_wrapped(
            f"No model is available: storing and recall work, jobs wait. To fix it: {model_remedy(worst)}.", chop=False
        )
    for note in body.get("notes") or []:
        print_wrapped(note_text(note), indent=2)


def _missing_model(models: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the state of the first stage if no stage has a model, all for the same reason."""
    first = models[0]
    same = ("name", "configured", "reason", "detail")
    if (
        first is None
        or first.get("name") != "none"
        or any(model is None or any(model.get(name) != first.get(name) for name in same) for model in models)
    ):
        return None
    return first


def note_text(note: Any) -> str:
    """Return what a note of the daemon about one of its processes means."""
    name, _, state = one_line(note).partition(": ")
    return f"{name}: starting (optional)" if state == "starting" and name in OPTIONAL else f"unknown: {one_line(note)}"


def is_serving(model: dict[str, Any]) -> bool:
    """Return whether there is a model, its circuit is closed, and it has answered its check or a call."""
    calls: dict[str, Any] = model.get("calls") or {}
    met = model.get("available", True) or (calls.get("recent") or {}).get("successes")
    return bool(calls.get("circuit") == "closed" and met)


def accepts_calls(model: dict[str, Any]) -> bool:
    """Return whether the model answers and takes calls now: no budget is used up and no pause is in effect."""
    return is_serving(model) and not (model.get("calls") or {}).get("waitsMs")


def model_remedy(model: dict[str, Any]) -> str:
    """Return what to do to get a working model, in the daemon's words if it gave any."""
    if model.get("name") != "none" and model.get("available"):
        return "check that its server is running (it answered when it was chosen); jobs then continue automatically"
    remedy = str(model.get("detail") or HOW_TO_GET_A_MODEL)
    if model.get("name") == "none" and model.get("configured") == "auto":
        return f"{remedy}; the daemon finds it within a minute, without a restart"
    return remedy


def pipeline_status(invocation: Invocation) -> DaemonReply:
    """Return the status of the pipeline; raise RequestRefused if it has no mode."""
    answer = invocation.client(timeout_s=10).get(STATUS_PATH)
    answer.text("mode")
    return answer


def provider_and_model(named: dict[str, Any]) -> str:
    return " ".join(str(named[name]) for name in ("provider", "model") if named.get(name))


def model_text(model: dict[str, Any] | None) -> str | None:
    """Return which model it is, and why it does not answer if it does not; None if its process did not reply."""
    if model is None:
        return None
    if model.get("name") == "none":
        return f"none: {model.get('reason')}"
    waits = (model.get("calls") or {}).get("waitsFor") or "was not available when it was chosen"
    state = "" if accepts_calls(model) else f", {waits}"
    return f"{provider_and_model({'provider': model.get('name'), 'model': model.get('model')})}{state}"


def budget_text(budget: dict[str, Any]) -> str:
    return ", ".join(
        f"{counted('?' if (used := budget.get(f'{what}sToday')) is None else used, what)}"
        f" ({f'at most {cap}' if (cap := budget.get(f'{what}sADay')) else 'no limit'})"
        for what in ("call", "token")
    )


def _about(model: dict[str, Any] | None, *, off: bool) -> Iterator[tuple[str, Any]]:
    if model is None:
        off_words = "none: the pipeline is switched off (memory.pipelineV2.enabled)"
        yield "model", off_words if off else "unknown: its process does not respond"
        return
    yield "configured", model.get("configured")
    yield "chosen", provider_and_model({"provider": model.get("name"), "model": model.get("model")})
    yield "reason", model.get("reason")
    yield "address", model.get("endpoint")
    yield "may cost money", "yes" if model.get("mayCost") else None
    detail = f": {model['detail']}" if model.get("detail") else ""
    yield "when chosen", f"{'answered' if model.get('available') else 'no answer'}{detail}"
    calls: dict[str, Any] | None = model.get("calls")
    if calls is None:
        return
    recent: dict[str, Any] = calls["recent"]
    circuit = str(calls["circuit"]).replace("_", "-")
    waits = f", {calls['waitsFor']}" if calls.get("waitsFor") else ""
    yield "circuit", f"{circuit}{waits}"
    ends = f"{recent['successes']} answered, {recent['failures']} failed, {recent['timeouts']} timed out"
    yield "last calls", f"{recent['total']}: {ends}"
    made = counted(calls["calls"], "call")
    yield "since its start", f"{made}, {calls['tokensIn']} tokens in, {calls['tokensOut']} out"
    yield "last error", calls.get("lastError")


SAMPLE = 200
"""So many of the newest memories show the language."""
MODELS_OF_ENGLISH = ("auto", "embedded", "minilm")


def are_mostly_foreign(client: DaemonClient) -> bool:
    """Return whether most of the newest memories are in other languages than English. Raises ``SignetError``."""
    found = client.get("/api/memories", limit=SAMPLE).records("memories")
    return mostly_foreign(words_of(str(memory["content"])) for memory in found)


def download() -> None:
    """Download the model with pip, by hash. Raises ``Unavailable``."""
    from signet_actors.cli.third_party_files import MULTILINGUAL, fetch_absent  # noqa: PLC0415 - only for a download

    try:
        fetch_absent([MULTILINGUAL])
    except SystemExit as error:
        raise Unavailable(str(error)) from error
    except OSError as error:
        raise Unavailable(f"the model cannot be stored in the installation: {error}") from error


JOBS: Final = (
    "kind",
    Column("pending", right=True),
    Column("leased", drop=3, right=True),
    Column("completed", drop=4, right=True),
    Column("dead", right=True),
    Column("oldest waits", "oldestPendingAgeSec", lambda age: "" if age is None else duration(age), drop=1, right=True),
    Column("running", form=_running, drop=2, right=True),
    Column("paused because", form=_pause, wrap=True),
)
RUNS: Final = (
    "id",
    Column("when", "createdAt", time_text),
    Column("memory", "memoryId", drop=1),
    Column("mode", drop=3),
    Column("model", form=provider_and_model, drop=2, wrap=True),
    Column("result", form=_result, wrap=True),
    Column("undone", "undoneAt", time_text, piped=True),
)
