"""``python -m signet_actors.searcher``: a searcher process."""

from __future__ import annotations

import sys

import msgspec

from signet_actors.protocol.searcher import SearcherQuery
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import read_context
from signet_actors.runtime.processes.network_guard import block_network_sockets
from signet_actors.searcher.actor import MAILBOX, Searcher

_MAX_ITEMS = 16
_MAX_BYTES = 1024 * 1024
"""Limits of the searcher's own mailbox, which the decider uses; the gateway's queries come through the work socket.

The mailbox is read one message at a time, so these limits never reject a message. The credits of the senders bound the
number of waiting messages.
"""


def preload() -> None:
    """Import the module that the first recall needs."""
    import numpy.ma  # noqa: F401, PLC0415


def main() -> int:
    """Run the searcher and return its exit code."""
    block_network_sockets()
    boot = read_context()
    log = configure_logging(boot)
    clock = SystemClock()
    loop = ActorLoop(boot, clock, log)
    decoder: msgspec.msgpack.Decoder[SearcherQuery] = msgspec.msgpack.Decoder(MAILBOX)
    loop.bind_mailbox(boot.name, decoder, max_items=_MAX_ITEMS, max_bytes=_MAX_BYTES)
    loop.join_pool(boot.name, decoder)
    return loop.run(Searcher(boot, loop, clock, log))


if __name__ == "__main__":
    sys.exit(main())
