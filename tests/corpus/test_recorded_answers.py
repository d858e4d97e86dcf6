"""Every recorded request gets the same response as when it was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.gateway.routes import ROUTES
from signet_actors.operations.page import PAGE_FILE
from tests.corpus.exchange import Scenario, play
from tests.corpus.scenarios import SCENARIOS

pytestmark = pytest.mark.system

UNREACHED = frozenset(
    {ErrorCode.UNAUTHORIZED, ErrorCode.LEASE_LOST, ErrorCode.INTERNAL, ErrorCode.NOT_IMPLEMENTED, ErrorCode.BUSY}
)
"""Codes that no request to a healthy daemon in local mode causes, with one request at a time."""


def recorded(scenario: Scenario) -> list[dict[str, Any]]:
    return [json.loads(line) for line in scenario.file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_responses_equal_the_recorded_ones(scenario: Scenario) -> None:
    expected = {item["name"]: item for item in recorded(scenario)}
    found = {item["name"]: item for item in json.loads(json.dumps(play(scenario)))}
    assert list(found) == list(expected), "other steps than those recorded"
    changed = {name: (item, expected[name]) for name, item in found.items() if item != expected[name]}
    assert not changed, "\n".join(
        f"{name}\n  now:      {json.dumps(now)}\n  recorded: {json.dumps(then)}"
        for name, (now, then) in changed.items()
    )


def test_at_least_four_hundred_answers_are_recorded() -> None:
    assert sum(len(recorded(scenario)) for scenario in SCENARIOS) >= 400


def test_every_route_has_a_recorded_success() -> None:
    answered = {
        (item["request"]["method"], item["request"]["target"].partition("?")[0])
        for scenario in SCENARIOS
        for item in recorded(scenario)
        if item["status"] < 300
    }
    missing = [
        f"{route.operation.method} {route.path}"
        for route in ROUTES
        if route.operation is not PAGE_FILE  # its address changes with the files of the page: tests/actor/test_page.py
        and not any(method == route.operation.method and _fits(route.path, target) for method, target in answered)
    ]
    assert missing == [], "add a step in tests/corpus/scenarios, then run: python -m tests.corpus.record SCENARIO"


def test_every_error_code_and_its_status_are_recorded() -> None:
    codes = {
        (item["answer"]["code"], item["status"])
        for scenario in SCENARIOS
        for item in recorded(scenario)
        if isinstance(item["answer"], dict) and "code" in item["answer"]
    }
    wanted = {(code.value, status) for code, status in HTTP_STATUS.items() if code not in UNREACHED}
    assert wanted - codes == set()


def _fits(template: str, target: str) -> bool:
    wanted, given = template.split("/"), target.split("/")
    return len(wanted) == len(given) and all(w == g or w.startswith("{") for w, g in zip(wanted, given, strict=True))
