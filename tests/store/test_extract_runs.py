"""What one real extract job reports: the configuration that its run began under counts to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from signet_actors.config.schema import Config
from tests.support.pipeline_room import configured
from tests.support.poison_room import PoisonRoom
from tests.support.store_room import kept_sound


def frozen(config: Config, *, autonomous: bool) -> Config:
    pipeline = config.memory.pipeline_v2
    switches = msgspec.structs.replace(pipeline.autonomous, frozen=autonomous)
    pipeline = msgspec.structs.replace(pipeline, autonomous=switches)
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PoisonRoom]:
    with kept_sound(PoisonRoom(tmp_path, config=configured(allow_update_delete=True))) as room:
        yield room


def test_a_run_that_began_frozen_stays_so_when_the_freeze_ends_meanwhile(room: PoisonRoom) -> None:
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
    held_back = room.events(source.id)[-1]["metadata"]
    assert (held_back["outcome"], held_back["blockedReason"]) == ("blocked", "autonomous_frozen")
