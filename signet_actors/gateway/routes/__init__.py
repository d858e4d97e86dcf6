"""The gateway's route table: every endpoint, in the order of the API document.

The list of subjects is the one of ``operations/registry.py``. The module here with the subject's name has its handlers;
an operation of a feature needs none.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from signet_actors.gateway.features import answer
from signet_actors.gateway.http.route import Route, serve
from signet_actors.operations.registry import SUBJECTS


def _routes(subject: ModuleType) -> tuple[Route, ...]:
    package, _, name = subject.__name__.rpartition(".")
    if package != "signet_actors.operations":
        return tuple(route for operation in subject.OPERATIONS for route in serve(operation, answer))
    routes: tuple[Route, ...] = import_module(f"{__name__}.{name}").ROUTES
    return routes


ROUTES: tuple[Route, ...] = tuple(route for subject in SUBJECTS for route in _routes(subject))
