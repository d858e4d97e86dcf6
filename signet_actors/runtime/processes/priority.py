"""Lower the scheduling priority of background processes.

The extractor serves callers, too (summary cards, the vector of a remember), but a model server takes far longer anyway.

Source: docs/performance.md "Isolation targets"; docs/reliability.md R11.
"""

from __future__ import annotations

import os

_NICENESS = 5
"""A third of the others' CPU weight: enough to send heartbeats in time on a busy machine."""


def lower_priority() -> None:
    """Lower the priority of this process and its threads, for work that may be delayed."""
    os.nice(_NICENESS)
