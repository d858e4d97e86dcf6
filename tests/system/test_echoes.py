"""Recalled memories in a note are not stored again, and recall blocks never reach a model."""

from __future__ import annotations

import pytest

from tests.support.bus_harness import eventually
from tests.support.scripted_model import data_of, stage_of
from tests.system.test_pipeline import derived, finished, pipeline

pytestmark = pytest.mark.system

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
