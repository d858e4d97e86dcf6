"""``python -m signet_actors.extractor``: the extractor process."""

from __future__ import annotations

import asyncio
import random
import sys

import uvloop

from signet_actors.extractor.actor import Extractor
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.processes.async_actor import AsyncActor
from signet_actors.runtime.processes.child_context import read_context
from signet_actors.runtime.processes.priority import lower_priority


def preload() -> None:
    """Import the modules that the first model and embedding calls need."""
    import signet_actors.providers.select  # noqa: F401, PLC0415
    from signet_actors.providers.http_calls import preload as preload_http  # noqa: PLC0415

    preload_http()


def main() -> int:
    """Run the extractor and return its exit code."""
    lower_priority()
    boot = read_context()
    log = configure_logging(boot)
    actor = AsyncActor(boot, SystemClock(), log, random.Random())

    async def run_actor() -> int:
        return await actor.run(Extractor(actor))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_actor())


if __name__ == "__main__":
    sys.exit(main())
