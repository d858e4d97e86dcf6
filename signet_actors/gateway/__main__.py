"""``python -m signet_actors.gateway``: the gateway process."""

from __future__ import annotations

import asyncio
import random
import sys

import uvloop

from signet_actors.gateway.actor import Gateway
from signet_actors.runtime.boot import read_boot
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logs import configure_logging


def main() -> int:
    """The exit code of the gateway."""
    boot = read_boot()
    log = configure_logging(boot)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Gateway(boot, SystemClock(), log, random.Random()).run())


if __name__ == "__main__":
    sys.exit(main())
