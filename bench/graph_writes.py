"""``python -m bench.graph_writes``: what linking a text to the entities that it names adds to a remember.

The writer's transaction alone, without HTTP: groups of 16 memories of 30 words, beside 20,000 entities, with the graph
off and on. Prints CPU milliseconds a memory, the median of 60 groups.

Source: docs/performance.md "Speed and footprint".
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from signet_actors.config.schema import Config
from signet_actors.operations.structured import MAX_ENTITIES, read_structured
from tests.support.store_room import StoreRoom, remembering

ENTITIES = 20_000
GROUPS = 60
GROUP = 16
WORDS = [f"word{number}" for number in range(3000)]


def configured(*, enabled: bool) -> Config:
    config = Config()
    pipeline = config.memory.pipeline_v2
    pipeline = msgspec.structs.replace(pipeline, graph=msgspec.structs.replace(pipeline.graph, enabled=enabled))
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


def measured(rng: random.Random, names: list[str], mentions: int, *, enabled: bool) -> float:
    """Return the CPU milliseconds of one memory that names so many entities."""
    with tempfile.TemporaryDirectory() as directory:
        room = StoreRoom(Path(directory), config=configured(enabled=True))
        for at in range(0, len(names), MAX_ENTITIES):
            stated = read_structured({"entities": [{"name": name} for name in names[at : at + MAX_ENTITIES]]})
            room.remember(f"names from {at} on", structured=stated)
        room.group.config = configured(enabled=enabled)
        times = []
        for number in range(GROUPS):
            texts = [
                " ".join(
                    rng.sample([*rng.choices(WORDS, k=30), *rng.sample(names, mentions), f"n{number}"], 31 + mentions)
                )
                for _ in range(GROUP)
            ]
            asked = [room.asked(*remembering(text)) for text in texts]
            began = time.process_time()
            room.group.commit(asked)
            times.append(1000 * (time.process_time() - began) / GROUP)
        room.close()
        return statistics.median(times)


def main() -> None:
    rng = random.Random(7)
    names = [f"Service {rng.choice('abcdefgh')}{number}" for number in range(ENTITIES)]
    print(f"{ENTITIES} entities; CPU ms a memory")
    print(f"graph off, 2 names  {measured(rng, names, 2, enabled=False):.3f}")
    for mentions in (0, 2, 5):
        print(f"graph on,  {mentions} names  {measured(rng, names, mentions, enabled=True):.3f}")


if __name__ == "__main__":
    main()
