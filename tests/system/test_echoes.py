"""Recalled memories in a note are not stored again, and recall blocks never reach a model."""

from __future__ import annotations

import itertools

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client
from tests.support.scripted_model import data_of, stage_of
from tests.system.test_pipeline import derived, finished, pipeline

pytestmark = pytest.mark.system

LAST = "## From Memory: Last Session"
TOLD = "The gateway of the homelab listens on port 3850."
NEWS = "Noor moved the firewall to the cellar on Monday."
MARKS = """[signet:recall | query="gateway port" | results=1 | engine=hybrid]
- The gateway of the homelab listens on port 3850. (Nov 2, 2026)
<memory-feedback>
Rate what you were told.
</memory-feedback>"""


@pytest.mark.parametrize(
    ("quoted", "reason"),
    [(TOLD, "echo_exact"), ("The homelab gateway listens on the port 3850.", "echo_near")],
)
def test_a_note_that_quotes_what_recall_returned_adds_only_what_is_new(quoted: str, reason: str) -> None:
    told = "The homelab gateway listens on port 3850." if reason == "echo_near" else TOLD
    with pipeline() as (daemon, _):
        daemon.api.remember(told)
        finished(daemon)
        found = daemon.api.post("/api/memory/recall", {"query": "gateway port"}).ok()["results"]
        assert told in [row["content"] for row in found]
        marked = "SELECT count(*) FROM memories WHERE content = ? AND last_accessed IS NOT NULL"
        eventually(lambda: daemon.read(marked, told)[0][0] > 0, within_s=30, what="the recall on record")
        before = derived(daemon)
        daemon.api.remember(f"{quoted} {NEWS}")
        finished(daemon, count=2)
        assert [text for text in derived(daemon) if text not in before] == [NEWS]
        figures = daemon.api.get("/api/pipeline/status").ok()["figures"]["today"]["junk"]
        assert figures["byReason"] == {reason: 1}


@pytest.mark.parametrize("shape", ["lines", "one line"])
def test_recall_blocks_in_a_note_are_removed_before_the_model_reads_it(shape: str) -> None:
    note = f"{MARKS}\n{NEWS}"
    with pipeline() as (daemon, provider):
        daemon.api.remember(note if shape == "lines" else " ".join(note.split()))
        finished(daemon)
        (asked,) = [asked for asked in provider.asked if stage_of(asked.prompt) == "extraction"]
        assert data_of(asked.prompt) == [NEWS]
        assert derived(daemon) == [NEWS]


def test_hints_are_generated_from_the_users_text_only() -> None:
    with pipeline(more="    hints: {enabled: true}\n") as (daemon, provider):
        daemon.api.remember(f"{MARKS}\n{NEWS}")
        daemon.api.remember(MARKS)
        finished(daemon, kind="prospective_index", count=2)
        asked = [data_of(asked.prompt)[-1] for asked in provider.asked if stage_of(asked.prompt) == "hints"]
        assert asked[0] == NEWS
        assert not [text for text in asked if "3850" in text]


@pytest.mark.parametrize(
    "own",
    [
        *("1. rename the module\n2. run the tests", "- rename it\n- test it", "Please rename it."),
        "Here is the design.\n\n## Active Constraints\n- no GPU\n\n# Current Date & Time\nnoon\n\nGo",
    ],
)
def test_what_a_person_writes_behind_the_start_of_a_session_is_stored_without_the_start(room: Client, own: str) -> None:
    about = {"harness": "x", "project": "/srv/quay"}
    room.remember("Never push to the branch quay", type="rule", project="/srv/quay")
    room.remember("We decided to use four cranes", type="decision", project="/srv/quay")
    said = [{"role": "user", "content": "Where is the crane?"}, {"role": "assistant", "content": "At the quay."}]
    keys = (f"echo-{number}" for number in itertools.count())

    def started() -> tuple[str, str]:
        key = next(keys)
        return key, room.post("/api/hooks/session-start", {**about, "sessionKey": key}).ok()["inject"]

    first, _ = started()
    room.post("/api/hooks/session-end", {**about, "sessionKey": first, "transcript": said}).ok()
    key, start = eventually(lambda: (found := started()) and LAST in found[1] and found, what="the last session")
    for mark in ("## Active Constraints", "## From Memory: Preferences and Decisions"):
        assert mark in start
    words = [{"role": "user", "content": f"{start}\n\n{own}"}, said[1]]
    room.post("/api/hooks/session-end", {**about, "sessionKey": key, "transcript": words}).ok()
    turns = room.get(f"/api/sessions/{key}/transcript", view="turns").ok()["turns"]
    assert [turn["content"] for turn in turns] == [own, said[1]["content"]]
    summary = {**about, "sessionKey": key, "summary": f"1. Request:\n   cranes\n\n{start}\n\n{own}"}
    stored = room.post("/api/hooks/compaction-complete", summary).ok()["memoryId"]
    assert room.memory(stored)["content"].split() == f"1. Request: cranes {own}".split()
