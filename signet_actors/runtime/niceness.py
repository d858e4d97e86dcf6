"""Work that nobody waits for leaves the processor to work that somebody waits for.

Source: targets.md "Isolation"; reliability.md R11.
"""

from __future__ import annotations

import os

_NICENESS = 5
"""A third of the weight of the others: enough to be heard in time on a machine that is busy with other things."""


def leave_the_processor_to_others() -> None:
    """This process and its threads run when no other has more right to; for processes that make up for lost time."""
    os.nice(_NICENESS)
