"""The API document names the headers about the caller that an operation reads, for every operation.

A header that is read is refused if its value is not valid (a hook ignores it with a warning).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from signet_actors.gateway.http.openapi import openapi_document
from signet_actors.operations.operation import Operation
from signet_actors.operations.registry import OPERATIONS
from tests.support.memory_api import Answer, MemoryApi

DOCUMENT = openapi_document(OPERATIONS)
DIRECT = [operation for operation in OPERATIONS if not operation.performs]
"""Without those that pass the headers on to the operations that they perform."""


def documented(operation: Operation[Any]) -> set[str]:
    described = DOCUMENT["paths"][operation.paths[0]][operation.method.lower()]
    return {entry["name"] for entry in described["parameters"] if entry["in"] == "header"}


def send(api: MemoryApi, operation: Operation[Any], headers: dict[str, str]) -> Answer:
    """Send the example of the operation with the headers."""
    fields = dict(operation.example)
    target = re.sub(r"\{(\w+)\}", lambda name: str(fields.pop(name[1])), operation.paths[0])
    if operation.in_body:
        return api.request(operation.method, target, fields, headers)
    return api.request(operation.method, f"{target}?{urlencode(fields)}", None, headers)


def reads(api: MemoryApi, operation: Operation[Any], header: str, invalid: str) -> bool:
    answer = send(api, operation, {header: invalid})
    named = header.lower() in answer.raw.decode("utf-8", "replace").lower()
    return named and (answer.status == 400 or operation.lenient)


@pytest.mark.parametrize("operation", DIRECT, ids=lambda operation: operation.name)
def test_the_agent_that_an_operation_reads_is_in_the_document(tmp_path: Path, operation: Operation[Any]) -> None:
    if reads(MemoryApi(tmp_path), operation, "x-signet-agent-id", "a/b"):
        assert {"x-signet-agent-id", "x-signet-session-key"} <= documented(operation)


@pytest.mark.parametrize("operation", DIRECT, ids=lambda operation: operation.name)
def test_an_operation_with_an_effect_documents_its_author_and_only_such_a_one(
    tmp_path: Path, operation: Operation[Any]
) -> None:
    assert ("x-signet-actor" in documented(operation)) is operation.has_effect
    if not operation.lenient:  # a hook ignores an invalid name, also where it is not used
        assert reads(MemoryApi(tmp_path), operation, "x-signet-actor", "a" * 201) is operation.has_effect


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_document_offers_a_key_where_a_repeated_request_gets_the_first_reply(operation: Operation[Any]) -> None:
    assert ("Idempotency-Key" in documented(operation)) is (operation.has_effect and operation.keyed)


def test_a_read_that_names_no_agent_documents_no_header() -> None:
    unnamed = {operation.name for operation in OPERATIONS if not documented(operation)}
    assert {"health.get", "status.get", "pipeline.status"} <= unnamed
    assert "memories.recall" not in unnamed
