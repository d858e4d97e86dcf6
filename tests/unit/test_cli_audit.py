"""The command audit: what was recorded, as columns, and whether the log is whole. Source: docs/cli.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from tests.support.scripted_daemon import ScriptedDaemon

LIST, VERIFY = "/api/audit", "/api/audit/verify"
WHEN = "2026-11-24T06:00:00.000Z"


def event(seq: int, kind: str, detail: dict[str, Any], count: int = 1) -> dict[str, Any]:
    made = {"seq": seq, "createdAt": WHEN, "kind": kind, "actor": "alice", "outcome": "done"}
    return {**made, "detail": detail, "count": count, "hash": "00"}


EVENTS = [
    event(3, "change", {"operation": "memories.forget", "deleted": 2}),
    event(2, "configuration", {"keys": ["search.alpha", "gateway.port"]}),
    event(1, "denied", {"reason": "Duplicate browser header"}, 7),
]


def test_events_are_printed_one_a_line_with_what_they_are_about(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", LIST, {"events": EVENTS, "total": 3})
    said = signet("audit", "--kind", "denied", "--since", WHEN, "-n", "5", "--offset", "2")
    assert said.exit_code == 0
    assert said.stdout.splitlines() == [
        f"3\t{WHEN}\tchange\talice\tdone\t1\tmemories.forget\tdeleted 2",
        f"2\t{WHEN}\tconfiguration\talice\tdone\t1\tsearch.alpha, gateway.port\t",
        f"1\t{WHEN}\tdenied\talice\tdone\t7\tDuplicate browser header\t",
    ]
    assert daemon.asked[-1].query == {"kind": "denied", "since": WHEN, "limit": "5", "offset": "2"}


def test_the_answer_of_the_daemon_is_printed_as_it_is_with_json(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", LIST, {"events": EVENTS, "total": 3})
    assert json.loads(signet("audit", "--json").stdout) == {"events": EVENTS, "total": 3}


def test_an_empty_log_and_an_unknown_kind_are_said(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", LIST, {"events": [], "total": 0})
    assert signet("audit").stderr == "Nothing was recorded.\n"
    assert signet("audit", "--kind", "gossip").exit_code == 2


@pytest.mark.parametrize(
    ("last", "code", "text"),
    [
        ({"intact": True, "rows": 5, "brokenAt": None}, 0, "The log is intact: 15 rows."),
        (
            {"intact": False, "rows": 3, "brokenAt": 14},
            1,
            "Row 14 was changed or is missing; the 13 rows before it fit.",
        ),
    ],
)
def test_the_whole_log_is_verified_part_by_part(
    daemon: ScriptedDaemon, signet: Callable[..., Result], last: dict[str, Any], code: int, text: str
) -> None:
    parts = [{"intact": True, "rows": 10, "brokenAt": None, "next": 10}, {**last, "next": None}]
    daemon.script("GET", VERIFY, *parts)
    said = signet("audit", "--verify")
    assert (said.stdout, said.exit_code) == (text + "\n", code)
    assert [asked.query for asked in daemon.asked[-2:]] == [{}, {"after": "10"}]
    daemon.script("GET", VERIFY, *parts)
    done = signet("audit", "--verify", "--json")
    assert (json.loads(done.stdout), done.exit_code) == ({**last, "rows": 10 + last["rows"]}, code)
