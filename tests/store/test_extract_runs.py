"""The report of a real extract job: with the configuration at its start, and without echoes of recall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from signet_actors.config.schema import Config
from signet_actors.domain.extraction.junk_filter import RECALL_ECHO_WINDOW_MS
from signet_actors.domain.memories import DERIVED
from signet_actors.domain.timestamps import iso
from signet_actors.features.runs.api import RunReply
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, RecoverMemory
from tests.support.injection_harness import InjectionHarness
from tests.support.pipeline_harness import configured, run_of
from tests.support.scripted_model import data_of
from tests.support.store_room import kept_sound


def frozen(config: Config, *, autonomous: bool) -> Config:
    pipeline = config.memory.pipeline_v2
    switches = msgspec.structs.replace(pipeline.autonomous, frozen=autonomous)
    pipeline = msgspec.structs.replace(pipeline, autonomous=switches)
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[InjectionHarness]:
    with kept_sound(InjectionHarness(tmp_path, config=configured(allow_update_delete=True))) as room:
        yield room


def test_a_run_begun_while_frozen_stays_frozen(room: InjectionHarness) -> None:
    free, held = room.config, frozen(room.config, autonomous=True)
    room.remember("The build uses Make on every machine.")
    room.work()
    room.reconfigure(held)
    source = room.remember("The build uses Bazel on every machine.")
    room.model.facts = ["The build uses Bazel on every machine now."]
    room.model.decides = {"action": "update", "targetId": 1, "confidence": 0.95, "reason": "It was replaced."}
    room.model.meanwhile = lambda: room.reconfigure(free)
    room.work()
    assert room.model.decisions, "the freeze ended while the run was on"
    blocked = room.events(source.id)[-1]["metadata"]
    assert (blocked["outcome"], blocked["blockedReason"]) == ("blocked", "autonomous_frozen")


TOLD = "The gateway of the homelab listens on port 3850."
NEWS = "Noor moved the firewall to the cellar on Monday."


def recall(room: InjectionHarness, memory_id: str) -> None:
    """What a recall that returned the memory leaves behind."""
    room.connection.execute(
        "UPDATE memories SET last_accessed = ? WHERE id = ?", (iso(room.clock.wall_ms()), memory_id)
    )


def rejected(room: InjectionHarness) -> dict[str, int]:
    rows = room.connection.execute("SELECT name, count FROM pipeline_counters WHERE name LIKE 'turned_away.%'")
    return {name.partition(".")[2]: count for name, count in rows}


@pytest.mark.parametrize(
    ("quoted", "reason"),
    [(TOLD, "echo_exact"), ("The homelab's gateway is listening on that port 3850", None)],
)
def test_a_fact_that_repeats_a_recalled_memory_is_rejected_without_a_model_call(
    room: InjectionHarness, quoted: str, reason: str | None
) -> None:
    told = room.remember(TOLD, source_type=DERIVED)
    recall(room, told.id)
    room.clock.advance(60_000)
    room.remember(f"You told me: {quoted} {NEWS}")
    room.model.facts = [quoted, NEWS]
    room.model.decides = {"action": "add", "targetId": None, "confidence": 0.9, "reason": "It is new."}
    room.work()
    assert rejected(room) == ({reason: 1} if reason else {})
    asked = [prompt for prompt in room.model.decisions if data_of(prompt)[0] == quoted]
    assert len(asked) == (0 if reason else 1)
    stored = [
        row[0] for row in room.connection.execute("SELECT content FROM memories WHERE source_type = ?", (DERIVED,))
    ]
    assert sorted(stored) == sorted([TOLD, NEWS] if reason else [TOLD, NEWS, quoted])


def test_a_memory_recalled_long_before_the_note_causes_no_echo(room: InjectionHarness) -> None:
    told = room.remember(TOLD, source_type=DERIVED)
    recall(room, told.id)
    room.clock.advance(RECALL_ECHO_WINDOW_MS + 60_000)
    room.remember(f"You told me: {TOLD} {NEWS}")
    room.model.facts = [TOLD, NEWS]
    room.work()
    assert rejected(room) == {}


ME = Principal(changed_by="mira", actor_type="operator")
TOKEN = "ghp_" + "a1B2" * 9


def the_run_on(room: InjectionHarness, memory_id: str) -> RunReply:
    run_id = room.value("SELECT id FROM pipeline_runs WHERE memory_id = ?", memory_id)
    with room.reader.open_snapshot() as view:
        return run_of(view, run_id)


def test_a_run_lists_the_facts_that_it_rejected_with_their_reasons(room: InjectionHarness) -> None:
    told = room.remember(TOLD, source_type=DERIVED)
    recall(room, told.id)
    room.clock.advance(60_000)
    source = room.remember(f"You told me: {TOLD} {NEWS} Then there were questions and the log of a test.")
    question = f"Where is the key {TOKEN} of the firewall used by anyone?"
    log = "PASSED tests/test_gateway.py::test_the_port " + "of the gateway " * 40
    room.model.facts = [TOLD, NEWS, question, log, NEWS]
    room.model.decides = {"action": "add", "targetId": None, "confidence": 0.9, "reason": "It is new."}
    room.work()
    found = the_run_on(room, source.id)
    assert [row.fact_content for row in found.proposals] == [NEWS]
    rejected = {row.reason: row.content for row in found.rejected}
    assert rejected.keys() == {"question", "tool_output", "echo_exact"}
    assert found.rejected_counts == {"question": 1, "tool_output": 1, "echo_exact": 1}
    assert rejected["echo_exact"] == TOLD
    assert rejected["question"].startswith("Where is the key [REDACTED")
    assert TOKEN not in str(found)
    assert (len(rejected["tool_output"]), rejected["tool_output"][-1]) == (300, "…")


def test_a_decision_that_is_unusable_once_is_asked_for_again(room: InjectionHarness) -> None:
    room.remember("The gateway of the homelab listens on some port.")
    room.work()
    add = {"action": "add", "targetId": None, "confidence": 0.9, "reason": "It is new."}
    unusable: list[str | dict[str, object]] = [
        "I would rather not say.",
        {"action": "merge", "confidence": 0.9, "reason": "An action that is none."},
        {"action": "add", "confidence": 0.9},
        {"action": "update", "confidence": 0.9, "reason": "It has no target."},
        {"action": "update", "targetId": "another", "confidence": 0.9, "reason": "Its target was not shown."},
        {"action": "delete", "targetId": 99, "confidence": 0.9, "reason": "Its target was not shown."},
    ]
    for number, first in enumerate(unusable):
        fact = f"The gateway of the homelab listens on port {3850 + number} in room {number}."
        source = room.remember(fact)
        room.model.facts, room.model.decides = [fact], first
        room.model.meanwhile = lambda: setattr(room.model, "decides", add)  # after the first answer
        room.work()
        assert [row.fact_content for row in the_run_on(room, source.id).proposals] == [fact], first


def test_a_fact_that_no_model_decides_on_is_listed_as_undecided(room: InjectionHarness) -> None:
    room.remember("The gateway of the homelab listens on some port.")
    room.work()
    source = room.remember("The gateway of the homelab listens on port 3850 now.")
    room.model.facts = ["The gateway of the homelab listens on port 3850 now."]
    room.model.decides = "I would rather not say."
    room.work()
    found = the_run_on(room, source.id)
    assert found.proposals == []
    assert [(row.reason, row.content) for row in found.rejected] == [("undecided", room.model.facts[0])]
    assert found.rejected_counts == {}
    assert found.warnings


def test_the_rejected_facts_of_a_run_are_hidden_and_erased_with_their_memory(room: InjectionHarness) -> None:
    source = room.remember("The zebra moved to quartz street, and who would have thought that?")
    room.model.facts = ["Who would have thought that the zebra moves?"]
    room.work()
    assert [row.reason for row in the_run_on(room, source.id).rejected] == ["question"]
    room.ask(ForgetMemory(id=source.id, reason="r", principal=ME))
    hidden = the_run_on(room, source.id)
    assert (hidden.rejected, hidden.rejected_counts, hidden.warnings) == ([], {}, [])
    room.ask(RecoverMemory(id=source.id, reason="r", principal=ME))
    assert len(the_run_on(room, source.id).rejected) == 1
    room.ask(ForgetMany(targets=(ForgetTarget(source.id),), reason="r", principal=ME, hard=True))
    assert room.value("SELECT count(*) FROM memory_jobs WHERE result LIKE '%zebra%'") == 0
