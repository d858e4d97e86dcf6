"""Send service status to systemd, if systemd started the daemon.

Source: systemd's sd_notify(3) protocol; docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends sd_notify messages; does nothing without ``NOTIFY_SOCKET``.

    ``watchdog_s`` is how often to send WATCHDOG=1 (half of systemd's timeout); None = never.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        try:
            limit_us = int(environ.get("WATCHDOG_USEC", "0"))
            wanted_by = int(environ.get("WATCHDOG_PID", str(os.getpid())))
        except ValueError:
            limit_us, wanted_by = 0, 0
        wanted = bool(self._address) and limit_us > 0 and wanted_by == os.getpid()
        self.watchdog_s: float | None = limit_us / 2e6 if wanted else None

    def notify(self, *assignments: str, wait_s: float = 0.2) -> None:
        """Send the assignments; never raises. Waits at most ``wait_s`` while systemd's queue is full."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(wait_s)
                sender.sendto("\n".join(assignments).encode(), self._address)
        except OSError:
            pass
