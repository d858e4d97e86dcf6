"""The gateway's route table: every endpoint, in the order of the API document.

The list of subjects is the one of ``operations/registry.py``; the module here with the subject's name has its handlers.
"""

from __future__ import annotations

from importlib import import_module

from signet_actors.gateway.http.route import Route
from signet_actors.operations.registry import SUBJECTS


def _routes(subject: str) -> tuple[Route, ...]:
    routes: tuple[Route, ...] = import_module(f"{__name__}.{subject}").ROUTES
    return routes


ROUTES: tuple[Route, ...] = tuple(
    route for subject in SUBJECTS for route in _routes(subject.__name__.rpartition(".")[2])
)
