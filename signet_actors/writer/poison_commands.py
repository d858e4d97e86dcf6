"""Poison commands: two writers have exited while they ran one, and no third writer runs it.

When a writer exits without a reply, its commands are sent to the next one, which runs each of them alone and writes its
key to a file beforehand. If that writer exits too, the one after it finds the key, and refuses the command when it is
sent a third time. A client that repeats its request later starts anew: both exits may have had another cause.

Source: docs/reliability.md R27 and "The writer's loop".
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import open_regular
from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.writer.idempotency import client_key, request_key

_MOST: Final = 16
_LONGEST_FILE: Final = 64 * 1024

REFUSAL: Final = Failure(
    ErrorCode.NOT_APPLIED,
    "two writer processes exited while they ran this command; nothing was applied, and it is not tried again",
    retry_after_ms=30_000,
)


class PoisonCommands:
    """The keys (``idempotency.request_key``) of the commands to refuse, and the file that holds them.

    A file that was not written for ``retention_ms`` is forgotten. Raises ``ConfigError`` if it is not a regular file.
    Without the file no command is refused.
    """

    def __init__(self, path: Path | None = None, *, now_ms: int = 0, retention_ms: int = 0) -> None:
        self._descriptor: int | None = None
        self.refused: tuple[str, ...] = ()
        if path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            weakref.finalize(self, os.close, self._descriptor)
            if now_ms - os.fstat(self._descriptor).st_mtime_ns // 1_000_000 <= retention_ms:
                keys = os.pread(self._descriptor, _LONGEST_FILE, 0).decode("utf-8", "replace").split("\n")
                self.refused = tuple(dict.fromkeys(key for key in keys if key))[-_MOST:]

    def noted(self, incoming: Incoming[WriterCommand]) -> contextlib.AbstractContextManager[None]:
        """Note a command that was sent before: a writer may have exited while it ran it."""
        key, _ = request_key(incoming.header, client_key(incoming.body))
        return self.running(key)

    @contextlib.contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Have the next writer refuse the command ``key`` if this one exits inside the block."""
        self._write((*self.refused, key))
        try:
            yield
        finally:
            self._write(self.refused)

    def _write(self, keys: tuple[str, ...]) -> None:
        if self._descriptor is None:
            return
        data = "".join(f"{key}\n" for key in keys).encode("utf-8", "replace")
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))
