"""The transcripts that sessions reported and that were refused, for health: their users believe that they are kept.

Source: docs/guides/transcripts.md "Keep a transcript".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import Final

from signet_actors.runtime.connected_harnesses import SESSION_FOLDERS

NOTED_S: Final = 86_400.0
MOST_FOLDERS: Final = 64
_MOST_NAMED: Final = 3
_NAME_CHARS: Final = 40


class SkippedTranscripts:
    """The newest refusal of each folder, until a transcript in or beside it is read, for a day at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refusals: dict[tuple[str, str], tuple[float, str]] = {}
        self._unwritten: dict[Hashable, float] = {}

    def without_space(self, name: Hashable) -> None:
        """Note that the end of a session was refused because the disk is full: its hook may not have kept it either."""
        self._unwritten[name] = self._clock()
        if len(self._unwritten) > MOST_FOLDERS:
            self._unwritten.pop(next(iter(self._unwritten)), None)

    def stored(self, name: Hashable) -> None:
        """Forget that there was no space for this one."""
        self._unwritten.pop(name, None)

    def add(self, harness: str, path: str | None, reason: str) -> None:
        """Note that a transcript is not kept."""
        at = (harness, os.path.dirname(path or ""))
        self._refusals.pop(at, None)
        self._refusals[at] = (self._clock(), reason)
        if len(self._refusals) > MOST_FOLDERS:
            self._refusals.pop(next(iter(self._refusals)), None)

    def end(self, harness: str, path: str | None) -> None:
        """Forget what was noted in the folder of a transcript that can be read, and in the folders beside it."""
        above = os.path.join(os.path.dirname(os.path.dirname(path)), "") if path else ""
        for name, folder in list(self._refusals):
            if name == harness and (os.path.join(folder, "").startswith(above) if above else not folder):
                self._refusals.pop((name, folder), None)

    def notes(self) -> list[str]:
        """Return a sentence for each harness whose latest transcripts were refused or had no space, without paths."""
        newest = {
            harness: (at, reason)
            for (harness, _), (at, reason) in list(self._refusals.items())
            if self._clock() - at < NOTED_S
        }
        told = [self._sentence(harness, *newest[harness]) for harness in list(newest)[-_MOST_NAMED:]]
        if count := sum(self._clock() - at < NOTED_S for at in list(self._unwritten.values())):
            ends = "the end of a session" if count == 1 else f"the ends of {count} sessions"
            told.append(
                f"{ends} could not be stored because the disk was full; `signet backfill` stores what is missing"
            )
        return told

    def _sentence(self, harness: str, at: float, reason: str) -> str:
        name = "".join(filter(str.isprintable, harness))[:_NAME_CHARS]
        advice = f" (`signet connect {harness} --check` says more)" if harness in SESSION_FOLDERS else ""
        minutes = int((self._clock() - at) // 60)
        return f"a session of {name} was not kept {minutes} min ago: {reason}{advice}"
