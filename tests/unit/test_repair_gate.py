"""When repairs may run, and which of them the health of the store calls for."""

from __future__ import annotations

import msgspec
import pytest

from signet_actors.config.pipeline_schema import AutonomousConfig, RepairConfig
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.features.diagnostics.api import ChangeFigures, HealthFigures
from signet_actors.features.diagnostics.rules import report
from signet_actors.features.repairs.rules import (
    CHECK_TEXT,
    CLEAN,
    DEDUPLICATE,
    HOUR_MS,
    REEMBED,
    RELEASE,
    REQUEUE,
    SWEEP,
    Limit,
    check_gate,
    limit_of,
    recommendations,
)

LIMIT = Limit(cooldown_ms=1_000, hourly_budget=3)
HEALTHY = HealthFigures(0, 100, 0, 0.0, 0, 70, 30, 70, 70)


@pytest.mark.parametrize(
    ("actor_type", "switches", "code"),
    [
        ("operator", AutonomousConfig(), None),
        ("agent", AutonomousConfig(), None),
        ("operator", AutonomousConfig(enabled=False), None),
        ("daemon", AutonomousConfig(enabled=False), None),
        ("agent", AutonomousConfig(enabled=False), ErrorCode.FORBIDDEN),
        ("pipeline", AutonomousConfig(enabled=False), ErrorCode.FORBIDDEN),
        ("operator", AutonomousConfig(frozen=True), ErrorCode.FORBIDDEN),
        ("daemon", AutonomousConfig(frozen=True), ErrorCode.FORBIDDEN),
    ],
)
def test_the_switches_decide_before_any_limit(
    actor_type: str, switches: AutonomousConfig, code: ErrorCode | None
) -> None:
    if code is None:
        check_gate(REQUEUE, actor_type, switches, LIMIT, [])
        return
    with pytest.raises(SignetError) as refused:
        check_gate(REQUEUE, actor_type, switches, LIMIT, [0])
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("ages_ms", "wait_ms"),
    [
        ([], None),
        ([999], 1),
        ([1_000], None),
        ([1_000, 2_000], None),
        ([1_000, 2_000, 3_000], HOUR_MS - 3_000),
        ([1_000, 2_000, HOUR_MS], None),
        ([-1], None),
    ],
)
def test_an_action_has_a_cooldown_and_an_hourly_budget(ages_ms: list[int], wait_ms: int | None) -> None:
    if wait_ms is None:
        check_gate(REQUEUE, "operator", AutonomousConfig(), LIMIT, ages_ms)
        return
    with pytest.raises(SignetError) as refused:
        check_gate(REQUEUE, "operator", AutonomousConfig(), LIMIT, ages_ms)
    assert (refused.value.code, refused.value.retry_after_ms) == (ErrorCode.RATE_LIMITED, wait_ms)


def test_each_action_has_the_limits_of_the_configuration() -> None:
    limits = RepairConfig()
    assert limit_of(REEMBED, limits) == (300_000, 10)
    assert limit_of(DEDUPLICATE, limits) == (600_000, 3)
    assert {limit_of(action, limits) for action in (REQUEUE, RELEASE, CHECK_TEXT, SWEEP, CLEAN)} == {(60_000, 50)}


@pytest.mark.parametrize(
    ("change", "actions"),
    [
        ({}, []),
        ({"completed": 99, "dead": 1}, []),
        ({"completed": 98, "dead": 2}, [REQUEUE]),
        ({"stale_leases": 1}, [RELEASE]),
        ({"text_rows": 63}, []),
        ({"text_rows": 62}, [CHECK_TEXT]),
        ({"tombstones": 31}, [SWEEP]),
        ({"embeddings": 0, "depth": 99}, []),
    ],
)
def test_a_part_that_is_not_well_calls_for_its_repair(change: dict[str, int], actions: list[str]) -> None:
    figures = msgspec.structs.replace(HEALTHY, **change)
    assert list(recommendations(report(figures, ChangeFigures(0, 0, 0, 0, 70), None, (), ""))) == actions
