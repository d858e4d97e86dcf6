"""``python -m signet_actors.gateway``: the gateway process."""

from __future__ import annotations

import asyncio
import random
import sys

import uvloop

from signet_actors.gateway.actor import Gateway, preload_imports
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.processes.child_context import read_context_preloaded

_SWITCH_S = 0.002
"""How long a thread that works on a long text keeps the interpreter from the event loop, which asks for it several
times in each request. Python's own 5 ms would be most of the time in which a request is to be answered."""


def main() -> int:
    """The exit code of the gateway."""
    sys.setswitchinterval(_SWITCH_S)
    boot, preloaded = read_context_preloaded(preload_imports)
    log = configure_logging(boot)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Gateway(boot, SystemClock(), log, random.Random(), preloaded).run())


if __name__ == "__main__":
    sys.exit(main())
