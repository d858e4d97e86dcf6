"""What a session says becomes summaries and facts also if it never reports an end, each part once, and after any kill.

Source: docs/guides/transcripts.md "Summaries"; docs/decisions.md 65.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import ScriptedProvider
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system

KEEP = "/api/hooks/session-checkpoint-extract"
SILENT_MINUTES = 45
SUBJECTS = ("login form", "price list", "night ferry", "prüfung", "港の倉庫", "deploy of the shop")


def said(*subjects: str) -> list[dict[str, str]]:
    """Return two turns about each subject, with more than 500 characters together."""
    return [
        {"role": role, "content": f"The {role} speaks about the {subject}. " + f"More of the {subject} follows. " * 12}
        for subject in subjects
        for role in ("user", "assistant")
    ]


def keep(daemon: LiveDaemon, key: str, *subjects: str, **fields: Any) -> Any:
    body = {"harness": "hermes", "sessionKey": key, "project": "/srv/shop", "transcript": said(*subjects), **fields}
    return daemon.api.post(KEEP, body).ok()


def shown(provider: ScriptedProvider) -> str:
    """Return all that the model was asked to summarize."""
    prompts = [asked.prompt for asked in provider.asked if stage_of(asked.prompt) == "session_summary"]
    return "\n".join(text for prompt in prompts for text in data_of(prompt))


def long_ago(minutes: int = SILENT_MINUTES) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def open_or_ended(daemon: LiveDaemon, key: str) -> tuple[bool, str | None]:
    sql = "SELECT open_at IS NOT NULL, end_reason FROM session_transcripts WHERE session_key = ?"
    ((is_open, reason),) = daemon.read(sql, key)
    return bool(is_open), reason


def idle_ends(daemon: LiveDaemon) -> list[str]:
    return [line["session"] for line in daemon.log() if line["event"] == "session_ended" and line["reason"] == "idle"]


def test_a_session_is_extracted_while_it_goes_on_and_no_text_twice() -> None:
    with pipeline(ScriptedModel()) as (daemon, provider):
        assert not keep(daemon, "s", transcript="User: Hello\nAssistant: Hello!")["queued"], "500 characters and more"
        jobs = []
        for number in range(1, 4):
            kept = keep(daemon, "s", *SUBJECTS[:number])
            assert kept["queued"] is True
            jobs.append(kept["jobId"])
            assert daemon.api.get(f"/api/memory/jobs/{kept['jobId']}").ok()["job_type"] == "summarize"
            assert not keep(daemon, "s", *SUBJECTS[:number])["queued"], "the same again"
            daemon.kill_supervisor()
            daemon.gone()
            daemon.start()
            assert not keep(daemon, "s", *SUBJECTS[:number])["queued"], "the cursor is on disk"
        assert len(set(jobs)) == 3
        finished(daemon, "summarize", count=3)
        ended = daemon.api.post("/api/hooks/session-end", {"harness": "hermes", "sessionKey": "s"}).ok()
        assert not ended["queued"], "all of it has been summarized"
        more = {"harness": "hermes", "sessionKey": "s", "transcript": said(*SUBJECTS[:4]), "reason": "exit"}
        assert daemon.api.post("/api/hooks/session-end", more).ok()["queued"]
        finished(daemon, "summarize", count=4)
        finished(daemon, "extract", count=4)
        seen = shown(provider)
        assert [seen.count(f"The user speaks about the {subject}.") for subject in SUBJECTS] == [1, 1, 1, 1, 0, 0]
        facts = daemon.read("SELECT count(*) FROM memories WHERE who = 'pipeline-v2'")
        assert facts[0][0] > 0


def test_a_session_that_falls_silent_is_ended_and_summarized_and_goes_on_when_it_speaks_again() -> None:
    with pipeline(ScriptedModel()) as (daemon, provider):
        keep(daemon, "silent", *SUBJECTS[:2], reason="turn", capturedAt=long_ago())
        keep(daemon, "alive", SUBJECTS[2], reason="turn")
        keep(daemon, "cleared", SUBJECTS[3], reason="turn", capturedAt=long_ago())
        daemon.api.post(
            "/api/hooks/session-end", {"harness": "hermes", "sessionKey": "cleared", "reason": "clear"}
        ).ok()
        past = {"harness": "hermes", "sessionKey": "past", "transcript": said(SUBJECTS[4]), "capturedAt": long_ago()}
        daemon.api.post("/api/hooks/session-end", {**past, "reason": "backfill"}).ok()
        daemon.kill_supervisor()
        daemon.gone()
        # Each report is a sign of life, whenever it was captured; when that was noted, the gateway decides.
        daemon.edit("UPDATE session_contexts SET last_active_at = ? WHERE session_key = 'silent'", long_ago())
        daemon.start()
        eventually(lambda: open_or_ended(daemon, "silent") == (False, "idle"), within_s=120, what="the silent one ends")
        finished(daemon, "summarize")
        keep(daemon, "silent", *SUBJECTS[:2], SUBJECTS[5], reason="turn", capturedAt=long_ago(SILENT_MINUTES + 9))
        assert open_or_ended(daemon, "silent")[0] is False, "said before that end"
        keep(daemon, "silent", *SUBJECTS[:2], SUBJECTS[5], reason="turn")
        assert open_or_ended(daemon, "silent")[0] is True, "it goes on"
        daemon.api.post("/api/hooks/session-end", {"harness": "hermes", "sessionKey": "silent"}).ok()
        finished(daemon, "summarize", count=2)
        seen = shown(provider)
        assert [seen.count(f"The user speaks about the {subject}.") for subject in SUBJECTS] == [1, 1, 0, 0, 0, 1]
        assert open_or_ended(daemon, "alive") == (True, None)
        assert open_or_ended(daemon, "cleared") == (False, None)
        assert open_or_ended(daemon, "past") == (False, None)
        assert idle_ends(daemon) == ["silent"]
