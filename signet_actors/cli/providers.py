"""The command providers: show each stage's model, why it was chosen, its state, and today's usage.

Source: memory-pipeline.txt "Provider Abstraction"; docs/decisions.md 14, 18 and 57; docs/configuration.md "Languages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.invocation import command
from signet_actors.cli.presentation import counted, one_line
from signet_actors.cli.reply import print_answer
from signet_actors.cli.status import OPTIONAL
from signet_actors.cli.tables import Column, print_fields, print_table, print_wrapped
from signet_actors.config.embedding_models import MULTILINGUAL_FILE
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import mostly_foreign
from signet_actors.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply


STATUS_PATH = "/api/pipeline/status"
HOW_TO_GET_A_MODEL = "install Ollama (https://ollama.com), then `ollama pull qwen3:4b`"
STAGES = ("extraction", "decision")


@command()
def providers(invocation: Invocation) -> None:
    """Show each stage's model, its state, and today's usage.

    The exit code is 0 even if no model answers, because storing and recall work without one.
    """
    answer = pipeline_status(invocation)
    if invocation.as_json:
        print_answer(answer)
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
        print_table(
            (
                "provider",
                Column("model", wrap=True),
                Column("calls", right=True),
                Column("tokens in", 1, right=True),
                Column("tokens out", 1, right=True),
                Column("cost", right=True),
            ),
            [
                (
                    row.get("provider"),
                    row.get("model"),
                    row.get("calls"),
                    row.get("tokensIn"),
                    row.get("tokensOut"),
                    _dollars(row.get("costMicrousd")),
                )
                for row in usage
            ],
        )
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
    """Return the names of the provider and the model, as far as they are known."""
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


def _dollars(micro: Any) -> str:
    return f"${micro / 1e6:.4f}" if micro else ""


SAMPLE = 200
"""So many of the newest memories show the language."""
MODELS_OF_ENGLISH = ("auto", "embedded", "minilm")


def is_downloaded() -> bool:
    return MULTILINGUAL_FILE.is_file()


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
