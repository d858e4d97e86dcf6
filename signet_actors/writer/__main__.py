"""``python -m signet_actors.writer``: the writer process; with ``--check``, an integrity check."""

from __future__ import annotations

import random
import sys

import msgspec

from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.actor_loop import ActorLoop
from signet_actors.runtime.boot import read_boot
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.linger import Linger
from signet_actors.runtime.logs import configure_logging
from signet_actors.runtime.network_refusal import refuse_network_sockets
from signet_actors.writer.actor import Writer
from signet_actors.writer.check import check_command


def main() -> int:
    """The exit code of the writer."""
    refuse_network_sockets()
    if "--check" in sys.argv[1:]:
        return check_command()
    boot = read_boot()
    log = configure_logging(boot)
    clock = SystemClock()
    loop = ActorLoop(boot, clock, log)
    decoder: msgspec.msgpack.Decoder[WriterCommand] = msgspec.msgpack.Decoder(WriterCommand)
    limits = boot.config.writer
    loop.bind_mailbox(
        "writer",
        decoder,
        max_items=limits.queue_limit,
        max_bytes=limits.queue_bytes,
        linger=Linger(limits.batch_limit),
    )
    return loop.run(Writer(boot, loop, clock, random.Random(), log))


if __name__ == "__main__":
    sys.exit(main())
