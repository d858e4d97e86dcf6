"""Which function serves which message of a feature. Source: docs/architecture.md "Features"."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import msgspec

from signet_actors.features import FEATURES
from signet_actors.operations.operation import Operation
from signet_actors.protocol.leases import JobReport
from signet_actors.protocol.message import Answered, message_of

Handler = Callable[[Any, Any], Any]


def handlers(file: Literal["reads", "writes"]) -> dict[type[msgspec.Struct], Handler]:
    """Return the function of each message: the tables READS or WRITES of all features that have this file.

    A key of a table is an operation, or a message between processes. The reply is encoded here; to a report of a worker
    the writer replies.
    """
    modules = [f"signet_actors.features.{feature}.{file}" for feature in FEATURES]
    found: dict[type[msgspec.Struct], Handler] = {}
    for module in modules:
        if find_spec(module) is None:
            continue
        for asked, function in getattr(import_module(module), file.upper()).items():
            message = message_of(asked) if isinstance(asked, Operation) else asked
            found[message] = function if issubclass(message, JobReport) else encoding(function)
    return found


def encoding(function: Callable[[Any, Any], Any]) -> Handler:
    """Return the function with its reply encoded."""
    return lambda context, asked: Answered(msgspec.json.encode(function(context, asked)))
