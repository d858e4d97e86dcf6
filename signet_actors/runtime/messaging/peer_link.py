"""The connection to one peer's mailbox: detect that nothing answers, and reconnect.

ZeroMQ gives up a connection for good when its handshake meets an unknown process. A connection whose peer answers no
probe for longer than any batch may take is of no use either. Both are closed and opened again.

Only probes are expected to be answered soon: some messages have no reply, and some requests wait for half a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.async_socket import AsyncSocket
from signet_actors.runtime.messaging.envelope import PING, MessageFactory

_S: Final = 1_000_000_000
_PROBE_AFTER_NS: Final = _S * 9 // 10
"""Every second heartbeat at the default interval: a probe wakes two processes that may be idle."""
_REOPEN_UNCONNECTED_NS: Final = 1 * _S
_REOPEN_SILENT_NS: Final = 12 * _S
"""Longer than the writer may work on a batch: messages queued in a connection are lost when it is closed."""
UNCONNECTED_NS: Final = 2 * _S
SILENT_NS: Final = 6 * _S
"""From then on the peer counts as not answering. Longer than it may wait for another program's lock."""


class PeerLink:
    """The connection to one peer. With ``probe`` it sends a probe when there is no other traffic."""

    def __init__(
        self, clock: Clock, message_factory: MessageFactory, connect: Callable[[], AsyncSocket], *, probe: bool
    ) -> None:
        self._clock = clock
        self._message_factory = message_factory
        self._connect = connect
        self._probe = probe
        self._socket = connect()
        self._opened_ns = self._last_message_ns = clock.monotonic_ns()
        self._probe_is_out = False
        self._unconnected_since_ns: int | None = None
        self._unanswered_since_ns: int | None = None
        """When the first probe that is still unanswered was sent."""

    def send(self, parts: list[bytes]) -> bool:
        """Send the frames; return False when the peer is not connected or reads nothing."""
        if self._socket.send(parts):
            self._unconnected_since_ns = None
            return True
        if self._unconnected_since_ns is None:
            self._unconnected_since_ns = self._clock.monotonic_ns()
        return False

    def on_message(self) -> None:
        """Note that the peer has sent something."""
        self._last_message_ns = self._clock.monotonic_ns()
        self._unanswered_since_ns = None
        self._probe_is_out = False

    def check(self, *, is_up: bool) -> None:
        """Probe and reconnect as needed; called with each heartbeat. Nothing is expected of a peer that is not up."""
        now_ns = self._clock.monotonic_ns()
        if not is_up:
            self._unconnected_since_ns = self._unanswered_since_ns = None
            self._probe_is_out = False
            return
        if self._probe and not self._probe_is_out and now_ns - self._last_message_ns >= _PROBE_AFTER_NS:
            self._send_probe(now_ns)
        unconnected = self._exceeds(self._unconnected_since_ns, _REOPEN_UNCONNECTED_NS, now_ns)
        silent = self._exceeds(self._unanswered_since_ns, _REOPEN_SILENT_NS, now_ns)
        if (unconnected and now_ns - self._opened_ns > _REOPEN_UNCONNECTED_NS) or (
            silent and now_ns - self._opened_ns > _REOPEN_SILENT_NS
        ):
            self._socket.discard()
            self._socket = self._connect()
            self._opened_ns = now_ns
            self._probe_is_out = False
            if not self._probe:
                self._unconnected_since_ns = None  # set again by the next failed send

    def problem(self) -> str | None:
        """Return why the peer counts as not answering, None while it answers or no probe was sent."""
        now_ns = self._clock.monotonic_ns()
        if self._exceeds(self._unconnected_since_ns, UNCONNECTED_NS, now_ns):
            return "cannot be reached: no process of this daemon responds at its socket"
        if self._exceeds(self._unanswered_since_ns, SILENT_NS, now_ns):
            return f"has not responded for {(now_ns - self._last_message_ns) // _S} s"
        return None

    def _send_probe(self, now_ns: int) -> None:
        self._probe_is_out = self.send([self._message_factory.header(self._message_factory.next_id(), "", 0), PING])
        if self._probe_is_out and self._unanswered_since_ns is None:
            self._unanswered_since_ns = now_ns

    @staticmethod
    def _exceeds(since_ns: int | None, longer_than_ns: int, now_ns: int) -> bool:
        return since_ns is not None and now_ns - since_ns > longer_than_ns
