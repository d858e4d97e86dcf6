"""A day is one of the reader's calendar, in the time zone of the machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import LiveDaemon, live_daemon

ZONE = "Asia/Kathmandu"  # 5:45 hours before UTC
LATE = "2026-11-26T20:00:00Z"  # November 27, 01:45 there


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    """A daemon in another time zone, which is one of its processes."""
    with live_daemon(environ={"TZ": ZONE}, patient=True) as daemon:
        yield daemon


def test_injected_lines_carry_the_day_of_the_reader(daemon: LiveDaemon) -> None:
    text = "Always deploy the ferry timetable with two reviewers"
    daemon.api.remember(text, type="rule", createdAt=LATE)
    start = daemon.api.post("/api/hooks/session-start", {"harness": "generic", "sessionKey": "s"}).ok()["inject"]
    body = {"harness": "generic", "sessionKey": "t", "userPrompt": "how do we deploy the ferry timetable?"}
    prompt = daemon.api.post("/api/hooks/user-prompt-submit", body).ok()["inject"]
    for shown in (start, prompt):
        assert text in shown
        assert "Nov 27, 2026" in shown
        assert "Nov 26, 2026" not in shown


# A zone, a day, the first and last seconds of that day, and those beside it.
DAYS = [
    ("Asia/Tokyo", "2026-11-27", "2026-11-26T15:00Z 2026-11-27T14:59:59Z", "2026-11-26T14:59:59Z 2026-11-27T15:00Z"),
    (
        "America/New_York",
        "2026-11-01",
        "2026-11-01T04:00Z 2026-11-02T04:59:59Z",
        "2026-11-01T03:59:59Z 2026-11-02T05:00Z",
    ),
    (
        "America/New_York",
        "2026-03-08",
        "2026-03-08T05:00Z 2026-03-09T03:59:59Z",
        "2026-03-08T04:59:59Z 2026-03-09T04:00Z",
    ),
    (ZONE, "2026-11-27", "2026-11-26T18:15Z 2026-11-27T18:14:59Z", "2026-11-26T18:14:59Z 2026-11-27T18:15Z"),
]


@pytest.mark.parametrize(("zone", "day", "inside", "outside"), DAYS)
def test_the_days_of_the_command_line_are_whole_days_of_its_reader(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch, zone: str, day: str, inside: str, outside: str
) -> None:
    agent = f"{zone}-{day}".replace("/", "-").lower()
    client = daemon.agent(agent)
    moments = {}
    for moment in f"{inside} {outside}".split():
        stored = client.remember(f"tide table {moment}", createdAt=moment, visibility="private", type="daily-log")
        moments[stored["id"]] = moment
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    def found(*arguments: str) -> set[str]:
        """Return the moments of the memories that a command names."""
        where = ("--url", f"http://127.0.0.1:{daemon.port}", "--json")
        filters = ("--agent", agent, "--since", day, "--until", day, "--type", "daily-log")
        result = CliRunner().invoke(cli, [*where, *arguments, *filters], prog_name="signet")
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        rows = next(told[key] for key in ("results", "memories", "candidates") if key in told)
        return {moments[row["id"]] for row in rows}

    try:
        for command in (["list"], ["recall", "tide table"], ["search", "tide"], ["forget", "--preview"]):
            assert found(*command) == set(inside.split()), command
    finally:
        monkeypatch.undo()
        time.tzset()
