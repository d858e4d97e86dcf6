"""The gateway's route table: every endpoint, in the order of the API document.

The list of subjects is the one of ``operations/registry.py``. The module here with the subject's name has its handlers;
an operation of a feature needs none, unless it is in ``HANDLERS``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final

from signet_actors.features.facets.api import FACETS
from signet_actors.features.session_summaries.api import EXPAND
from signet_actors.gateway.features import answer
from signet_actors.gateway.http.route import Handler, Route, serve
from signet_actors.gateway.routes import (
    analytics,
    auth,
    checkpoints,
    diagnostics,
    duplicates,
    knowledge,
    memories,
    projection,
    repairs,
    reviews,
    streams,
    timeline,
)
from signet_actors.operations.operation import Operation
from signet_actors.operations.registry import SUBJECTS

HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    **analytics.HANDLERS,
    **auth.HANDLERS,
    **checkpoints.HANDLERS,
    **diagnostics.HANDLERS,
    **duplicates.HANDLERS,
    **knowledge.HANDLERS,
    **projection.HANDLERS,
    **repairs.HANDLERS,
    **reviews.HANDLERS,
    **streams.HANDLERS,
    **timeline.HANDLERS,
    EXPAND: memories.expand_summary,
    FACETS: memories.facets,
}
"""Of the operations of features for which the gateway does more than to ask."""


def _routes(subject: ModuleType) -> tuple[Route, ...]:
    package, _, name = subject.__name__.rpartition(".")
    if package != "signet_actors.operations":
        return tuple(
            route for operation in subject.OPERATIONS for route in serve(operation, HANDLERS.get(operation, answer))
        )
    routes: tuple[Route, ...] = import_module(f"{__name__}.{name}").ROUTES
    return routes


ROUTES: tuple[Route, ...] = tuple(route for subject in SUBJECTS for route in _routes(subject))
