"""A small actor for tests of the runtime, started as a real process. Its ``role`` determines its behaviour.

The text of a request selects a failure:

    ``die_once``        SIGKILL itself on the first attempt, reply on the second
    ``die``             SIGKILL itself
    ``stop``            SIGSTOP itself
    ``crash``           raise an exception that does not belong to a single message
    ``refuse``          raise a SignetError for the message
    ``leave:<code>``    raise ActorExit
    ``sleep:<ms>``      reply late
    ``busy:<ms>``       work for this long, with heartbeats
    anything else       echo the text

``SIGNET_TEST_ECHO`` may contain ``<name>:<way>`` pairs for the start: ``boot_exit:<code>``, ``boot_sleep:<ms>``,
``boot_hang``, ``leave:<code>`` (the first incarnation exits the actor, but its process does not end),
``after:<ms>:<code>`` (exits this long after Ready), ``deaf`` (ignores the request to drain), ``holds`` (never returns
from its first duty, but sends heartbeats), ``pressure`` (reports that the write-ahead log cannot be checkpointed: once
mildly, then severely every two seconds).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ActorExit, Conflict
from signet_actors.protocol.control import WalPressure
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import CommonWords, GetCommonWords, SearcherQuery
from signet_actors.protocol.writer import WriterCommand, WriterReply
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import ChildContext, read_context


class Echo:
    """An actor that follows the instructions in its messages."""

    def __init__(self, boot: ChildContext, loop: ActorLoop) -> None:
        self.boot = boot
        self.loop = loop
        self.handled = 0
        self.largest_batch = 0
        self.ready_at = 0.0
        self.marker = ""
        orders = dict(
            order.split("=", 1) for order in os.environ.get("SIGNET_TEST_ECHO", "").split(";") if "=" in order
        )
        self.order = orders.get(boot.name, "")

    def start(self) -> None:
        way, _, rest = self.order.partition(":")
        if way == "boot_exit":
            raise ActorExit(int(rest), "told to leave at boot")
        if way == "boot_sleep":
            until = time.monotonic() + int(rest) / 1000
            while time.monotonic() < until:
                time.sleep(0.02)
                self.loop.starting("slowly")
        if way == "boot_hang":
            os.kill(os.getpid(), signal.SIGSTOP)

    def handle(self, batch: list[Incoming[Any]]) -> None:
        self.largest_batch = max(self.largest_batch, len(batch))
        for incoming in batch:
            self.handled += 1
            match incoming.body:
                case AdvanceHighWaterMark(now=text):
                    self.obey(text, incoming)
                    incoming.reply(
                        HighWaterMark(
                            previous=f"{text}@{incoming.header.message_id}", suspected_jump_since=str(os.getpid())
                        )
                    )
                case GetCommonWords(projects=Filters(project=text)):
                    self.obey(text or "", incoming)
                    incoming.reply(CommonWords(text or "", incoming.header.attempt, [self.boot.name, str(os.getpid())]))

    def obey(self, text: str, incoming: Incoming[Any]) -> None:
        way, _, rest = text.partition(":")
        if way == "die" or (way == "die_once" and incoming.header.attempt == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        elif way == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif way == "crash":
            raise RuntimeError("told to crash")
        elif way == "refuse":
            raise Conflict("told to refuse")
        elif way == "leave":
            raise ActorExit(int(rest), "told to leave")
        elif way == "sleep":
            time.sleep(int(rest) / 1000)
        elif way == "busy":
            until = time.monotonic() + int(rest) / 1000
            while time.monotonic() < until:
                self.loop.heartbeat()
                time.sleep(0.005)

    def tick(self) -> float | None:
        way, _, rest = self.order.partition(":")
        if way == "leave" and self.boot.incarnation == 1:
            raise ActorExit(int(rest), "told to leave")
        if way == "after":
            ms, _, code = rest.partition(":")
            if not self.ready_at:
                self.ready_at = time.monotonic()
            left = self.ready_at + int(ms) / 1000 - time.monotonic()
            if left <= 0:
                sys.stderr.flush()
                os._exit(int(code))
            return left
        while way == "holds":
            self.loop.heartbeat()
            time.sleep(0.005)
        if way == "pressure":
            self.loop.tell_supervisor(WalPressure(40 << 20, severe=self.ready_at > 0))
            self.ready_at = 1.0
            return 2.0
        return None

    def counters(self) -> dict[str, float]:
        return {"handled": self.handled, "largest_batch": self.largest_batch}

    def drain(self) -> None:
        if self.order == "deaf":
            time.sleep(60)
        with Path(self.boot.workspace, "drained").open("a", encoding="utf-8") as file:
            file.write(f"{self.boot.name}\n")

    def reload(self, config: Config) -> None:
        Path(self.boot.workspace, f"reloaded-{self.boot.name}").write_text(config.logging.level, encoding="utf-8")


def main() -> int:
    boot = read_context()
    log = configure_logging(boot)
    loop = ActorLoop(boot, SystemClock(), log)
    if boot.role == "writer":
        limits = boot.config.writer
        loop.bind_mailbox(
            "writer",
            msgspec.msgpack.Decoder(WriterCommand),
            max_items=limits.batch_limit,
            max_bytes=limits.queue_bytes,
        )
    elif boot.role == "searcher":
        loop.bind_mailbox(boot.name, msgspec.msgpack.Decoder(SearcherQuery), max_items=16, max_bytes=1 << 20)
        loop.join_pool(boot.name, msgspec.msgpack.Decoder(SearcherQuery))
    elif boot.role == "retention":
        loop.connect_ref("writer", msgspec.msgpack.Decoder(WriterReply))
    echo = Echo(boot, loop)
    code = loop.run(echo)
    if echo.order.startswith("leave:"):
        os.kill(os.getpid(), signal.SIGSTOP)
    return code


if __name__ == "__main__":
    sys.exit(main())
