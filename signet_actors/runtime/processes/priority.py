"""Processes whose work hardly anybody waits for leave the processor to those that somebody waits for.

The extractor does a little for callers, too (summary cards, the vector of a remember); a model server takes far longer.

Source: docs/performance.md "Isolation targets"; docs/reliability.md R11.
"""

from __future__ import annotations

import os

_NICENESS = 5
"""A third of the weight of the others: enough for a heartbeat in time on a machine that is busy with other things."""


def lower_priority() -> None:
    """This process and its threads run when no other has more right to; for processes that make up for lost time."""
    os.nice(_NICENESS)
