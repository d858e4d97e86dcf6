"""Note a hook or a recall in the search log when its answer was sent. Source: docs/guides/hooks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from signet_actors.errors import SignetError
from signet_actors.features.searches.api import ConsideredMemory, Kind
from signet_actors.gateway.http.route import Call, HttpResponse
from signet_actors.gateway.sessions.hook_runner import OTHER_PROJECT, HookSession
from signet_actors.operations.hooks import HookOutcome

UNNOTED: Final = ("no_hooks", "bypassed", OTHER_PROJECT, "no_session")
"""Reasons of hooks of which nothing is kept: memory is not to work there."""


async def note_search(
    call: Call[Any],
    kind: Kind,
    session: HookSession,
    considered: Callable[[], Iterable[ConsideredMemory]] = tuple,
    *,
    text: str | None = None,
    known: Mapping[str, str] | None = None,
    project: str | None = None,
    skipped: str | None = None,
    characters: int = 0,
    answered: bool | None = None,
) -> None:
    """Note a search when its answer was sent, for the owner; a retry of it is the same search.

    For the rest see ``SearchLog.add``. What others ask, and who may only read, is not kept.
    """
    if not (call.state.config.search.ledger and call.identity.has_sessions and await _is_owner(call)):
        return
    context = session.context
    epoch = None if context is None else context.epoch
    harness = getattr(call.request, "harness", None) or (call.headers.get("x-signet-actor") if kind == "tool" else None)
    call.when_sent(
        lambda: call.state.searches.add(
            kind,
            call.agent_id,
            considered(),
            text=text,
            known=known,
            session_key=session.key,
            context_epoch=epoch,
            project=getattr(call.request, "project", None) or project,
            harness=harness,
            skipped=skipped,
            characters=characters,
            answered=answered,
            began_ns=call.began_ns,
            id_=None if call.request_key is None or skipped else f"{kind}-{call.request_key}",
        )
    )


async def _is_owner(call: Call[Any]) -> bool:
    """As ``Call.is_owner``, without a warning: nothing is left out of the answer."""
    try:
        await call.check_owner()
    except SignetError:
        return False
    return True


async def note_skipped(call: Call[Any], kind: Kind, response: HttpResponse) -> None:
    """Note a hook that did nothing, without its words, unless memory is not to work there."""
    outcome = response.body
    if isinstance(outcome, HookOutcome) and isinstance(outcome.reason, str) and outcome.reason not in UNNOTED:
        await note_search(call, kind, HookSession(call.session_key), skipped=outcome.reason)
