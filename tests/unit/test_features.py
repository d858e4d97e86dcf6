"""The parts of a feature fit together: each operation is served by one function, and its requests reach it whole."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

import signet_actors.features
from signet_actors.features import FEATURES
from signet_actors.gateway.routes import HANDLERS
from signet_actors.operations.operation import Operation
from signet_actors.operations.registry import SUBJECTS
from signet_actors.operations.request_reader import read_request
from signet_actors.protocol.message import Caller, message_of
from signet_actors.searcher import actor as searcher
from signet_actors.writer import dispatch as writer

OPERATIONS: list[Operation[Any]] = [
    operation for feature in FEATURES for operation in import_module(f"signet_actors.features.{feature}.api").OPERATIONS
]
SERVED = {"writer": writer.HANDLERS, "searcher": searcher.HANDLERS}
TRAVELLING = [operation for operation in OPERATIONS if message_of(operation) in SERVED.get(operation.served_by, {})]
MAILBOXES = {"writer": writer.MAILBOX, "searcher": searcher.MAILBOX}


def test_every_folder_is_a_feature_and_a_subject_of_the_api() -> None:
    folders = {path.parent.name for path in Path(signet_actors.features.__path__[0]).glob("*/__init__.py")}
    subjects = {subject.__name__ for subject in SUBJECTS if ".features." in subject.__name__}
    assert folders == set(FEATURES)
    assert subjects == {f"signet_actors.features.{feature}.api" for feature in FEATURES}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_is_served_by_its_process_and_by_no_other(operation: Operation[Any]) -> None:
    servers = [server for server, served in SERVED.items() if message_of(operation) in served]
    assert servers == [operation.served_by] or (servers == [] and operation in HANDLERS)


@pytest.mark.parametrize("operation", TRAVELLING, ids=lambda operation: operation.name)
def test_the_example_of_an_operation_arrives_as_it_was_read(operation: Operation[Any]) -> None:
    request = read_request(operation.request, body=operation.example, now_ms=0, warnings=[])
    asked = message_of(operation)(caller=Caller("cleo"), request=request)
    mailbox: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(MAILBOXES[operation.served_by])
    assert mailbox.decode(msgspec.msgpack.encode(asked)) == asked
