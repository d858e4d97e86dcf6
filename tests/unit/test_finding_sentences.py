"""Sentences about processes, backups and programs that are not heard; the daemon itself is in tests/system."""

from __future__ import annotations

import pytest
from msgspec import structs

from signet_actors.config.schema import BackupConfig, Config
from signet_actors.domain.retention import FIRST_CLOCK
from signet_actors.domain.timestamps import iso
from signet_actors.features.searches.api import LastPrompts, SearchRow
from signet_actors.gateway.status import findings
from signet_actors.gateway.status.findings import SILENT_MS, SeenHarness
from signet_actors.operations.status import RetentionReport
from signet_actors.protocol.control import STARTING, UP, ChildState

NOW_MS = 1_767_225_600_000
DAY_MS = 86_400_000


def child(state: str, restarts: int = 0, detail: str = "") -> ChildState:
    return ChildState("searcher-1", "searcher", state, 1, restarts, None, detail)


def retention(**fields: str | None) -> RetentionReport:
    known: dict[str, str | None] = {"suspended_reason": None, "last_backup_at": "2026-01-01T00:00:00.000Z"}
    return RetentionReport(last_sweep_at=None, next_sweep_in_ms=0, last_counts={}, **(known | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (child(UP), []),
        (child(STARTING), []),
        (child(STARTING, 1), ["The process searcher-1 is starting."]),
        (child("failed", 3, "exit code 70"), ["The process searcher-1 is failed: exit code 70."]),
    ],
)
def test_a_process_is_a_finding_unless_it_is_up_or_starts_for_the_first_time(
    state: ChildState, told: list[str]
) -> None:
    found = list(findings._of_processes([state]))
    assert [one.text for one in found] == told
    assert all((one.severity, one.command) == ("bad", "signet logs --actor searcher-1") for one in found)


@pytest.mark.parametrize(
    ("report", "age_ms", "every_ms", "told"),
    [
        (retention(), 9 * DAY_MS, DAY_MS, []),
        (retention(last_backup_at=None), DAY_MS // 2, DAY_MS, []),
        (retention(last_backup_at=None), DAY_MS // 2, 0, ["There is no backup yet."]),
        (retention(last_backup_at=None), 2 * DAY_MS, DAY_MS, ["There is no backup yet."]),
        (
            retention(last_backup_at=None, backup_problem="the disk is full"),
            2 * DAY_MS,
            DAY_MS,
            ["The last backup failed: the disk is full."],
        ),
        (retention(suspended_reason=f"{FIRST_CLOCK}: wait"), 0, DAY_MS, []),
        (
            retention(suspended_reason="the clock jumped"),
            0,
            DAY_MS,
            ["Old data is not purged: the clock jumped."],
        ),
    ],
)
def test_a_missing_backup_is_a_finding_after_a_day(
    report: RetentionReport, age_ms: int, every_ms: int, told: list[str]
) -> None:
    config = Config(backup=BackupConfig(interval_ms=every_ms))
    assert [one.text for one in findings._of_retention(report, config, age_ms)] == told


NONE_CAME = LastPrompts(last=None, last_given=None)
ONE_CAME = LastPrompts(
    last=SearchRow(
        id="1",
        at=iso(NOW_MS),
        kind="prompt",
        session_key=None,
        context_epoch=None,
        project=None,
        harness="gemini",
        prompt=None,
        skipped=None,
        outcome="no memory fits",
        given=0,
        characters=0,
        ms=1.0,
    ),
    last_given=None,
)
NEVER = "Codex was never heard: nothing has come from it since the daemon started."


def heard(ago_ms: int) -> LastPrompts:
    return structs.replace(ONE_CAME, heard={"codex": iso(NOW_MS - ago_ms)})


@pytest.mark.parametrize(
    ("seen_ms", "prompts", "up_ms", "told"),
    [
        (NOW_MS - SILENT_MS, ONE_CAME, 9 * DAY_MS, []),
        (NOW_MS - SILENT_MS - 1, None, 9 * DAY_MS, ["Codex was not heard for 7 d."]),
        (NOW_MS - 90 * DAY_MS, ONE_CAME, 99 * DAY_MS, ["Codex was not heard for 2 mo."]),
        (None, None, 9 * DAY_MS, []),
        (None, NONE_CAME, 9 * DAY_MS, []),
        (None, ONE_CAME, DAY_MS, []),
        (None, ONE_CAME, DAY_MS + 1, [NEVER]),
        (None, heard(SILENT_MS), 9 * DAY_MS, []),
        (None, heard(9 * DAY_MS), 0, ["Codex was not heard for 9 d."]),
        (NOW_MS, heard(9 * DAY_MS), 0, []),
    ],
)
def test_a_program_is_a_finding_if_it_was_not_heard_for_a_week_or_never(
    seen_ms: int | None, prompts: LastPrompts | None, up_ms: int, told: list[str]
) -> None:
    twice = [SeenHarness("codex", "Codex", seen_ms)] * 2
    found = list(findings._of_harnesses(twice, prompts, NOW_MS, NOW_MS - up_ms))
    assert [one.text for one in found] == told
    assert all(one.command == "signet connect codex --check" for one in found)
