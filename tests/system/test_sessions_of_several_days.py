"""Of a session that went on for days, a question about a day is given what was said on that day.

Source: docs/guides/hooks.md "Each prompt"; docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
PROJECT = "/home/ada/tiles"
SAID = {
    5: (("Set up the tile server", "The tile server runs on port 8099."), ("Tag it as 0.1", "Tagged v0.1.")),
    3: (("Add the layer with the contours", "The contours come from the file dem.tif."), ("Tag 0.2", "Tagged v0.2.")),
    1: (("Cache the tiles in Varnish", "Varnish keeps each tile for a day."), ("Tag 0.3", "Tagged v0.3.")),
}
"""By the number of days ago; all in one session, which was resumed."""
WORDS = {5: ("tile server", "v0.1"), 3: ("contours", "v0.2"), 1: ("Varnish", "v0.3")}


def day(days_ago: int) -> datetime:
    """Return the noon of that day. It is computed anew in each test, because the suite may run past midnight."""
    today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days_ago)


def weekday(days_ago: int) -> str:
    return f"{day(days_ago):%A}"


def transcript(key: str, said: dict[int, tuple[tuple[str, str], ...]]) -> str:
    records = []
    for days, exchanges in said.items():
        at = day(days)
        for number, (prompt, answer) in enumerate(exchanges):
            for role, text in (("user", prompt), ("assistant", answer)):
                at += timedelta(minutes=5)
                records.append(
                    {
                        "type": role,
                        "sessionId": key,
                        "uuid": f"{key}-{days}-{number}-{role}",
                        "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                        "message": {"role": role, "content": text},
                    }
                )
    return "\n".join(map(json.dumps, records))


def hook(client: Client, name: str, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(
        f"/api/hooks/{name}", {"harness": "claude-code", "project": PROJECT, **fields}
    ).ok()
    return answer


@pytest.fixture
def resumed(empty_rooms: Callable[[], Client]) -> Client:
    """An agent with a session that was resumed on two more days, and three short ones between."""
    room = empty_rooms()
    hook(room, "session-end", sessionKey="resumed", transcript=transcript("resumed", SAID), reason="logout")
    for days, color in ((4, "red"), (2, "green"), (6, "blue")):
        said = {days: ((f"Make the logo {color}", f"The logo is {color}."),)}
        hook(room, "session-end", sessionKey=color, transcript=transcript(color, said), reason="logout")
    return room


def asked(room: Client, prompt: str) -> str:
    inject: str = hook(room, "user-prompt-submit", sessionKey=f"new {prompt}", userPrompt=prompt)["inject"]
    return inject


@pytest.mark.parametrize("days", [5, 3, 1])
def test_a_prompt_about_a_day_is_given_what_was_said_on_it(resumed: Client, days: int) -> None:
    inject = asked(resumed, f"what did we do on {weekday(days)}?" if days > 1 else "what did we do yesterday?")
    assert [word for word in WORDS[days] if word not in inject] == []
    assert [word for other in WORDS if other != days for word in WORDS[other] if word in inject] == []
    assert f"{day(days):%b} {day(days).day}" in inject


@pytest.mark.parametrize("days", [5, 3, 1])
def test_a_recall_about_a_day_has_what_was_said_on_it(resumed: Client, days: int) -> None:
    found = resumed.recall(f"what did we do on {weekday(days)}?")["results"]
    told = "\n".join(row["content"] for row in found if ":resumed:" in row["id"])
    assert [word for word in WORDS[days] if word not in told] == []
    assert [word for other in WORDS if other != days for word in WORDS[other] if word in told] == []


def test_a_day_on_which_a_session_slept_has_only_what_others_said(resumed: Client) -> None:
    inject = asked(resumed, f"what did we do on {weekday(4)}?")
    assert "logo red" in inject
    assert not any(word in inject for words in WORDS.values() for word in words)


def test_the_latest_session_is_the_one_that_went_on_last(resumed: Client) -> None:
    inject = asked(resumed, "where were we?")
    assert "v0.3" in inject
    assert inject.index("v0.3") < (inject.index("green") if "green" in inject else len(inject))


def test_a_topic_counts_on_its_day_only(resumed: Client) -> None:
    inject = asked(resumed, f"what did we do with the contours on {weekday(3)}?")
    assert "dem.tif" in inject
    assert "Varnish" not in inject
