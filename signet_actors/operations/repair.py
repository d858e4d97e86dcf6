"""Public bodies of the repairs. Source: docs/compatibility.md "Diagnostics and pipeline status"."""

from __future__ import annotations

import msgspec


class SweepRequest(msgspec.Struct, frozen=True, rename="camel"):
    """``confirm_clock`` confirms that the wall clock is right after a leap."""

    confirm_clock: bool = False


class RepairStep(msgspec.Struct, frozen=True):
    """One step of a repair; ``more`` means that rows remain for the next sweep."""

    step: str
    count: int
    more: bool


class RepairReply(msgspec.Struct, frozen=True):
    """``affected`` counts rows; ``success`` is false if the repair could not be done, and ``message`` says why."""

    action: str
    success: bool
    affected: int
    message: str
    steps: list[RepairStep]
