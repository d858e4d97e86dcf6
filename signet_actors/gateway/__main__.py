"""``python -m signet_actors.gateway``: the gateway process."""

from __future__ import annotations

import asyncio
import random
import sys
from importlib import import_module

import uvloop

from signet_actors.gateway.actor import Gateway
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.processes.child_context import read_context

_SWITCH_S = 0.002
"""The interpreter's switch interval: how long a thread with a long text can keep the event loop waiting.

The loop waits for it several times in each request. Python's default of 5 ms would use up most of the time in which a
request should be answered.
"""


def preload() -> None:
    """Import the modules that the first requests need."""
    for module in ("encodings.idna", "uvicorn.lifespan.on", "signet_actors.config.yaml_file"):
        import_module(module)


def main() -> int:
    """Run the gateway and return its exit code."""
    sys.setswitchinterval(_SWITCH_S)
    boot = read_context()
    log = configure_logging(boot)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Gateway(boot, SystemClock(), log, random.Random()).run())


if __name__ == "__main__":
    sys.exit(main())
