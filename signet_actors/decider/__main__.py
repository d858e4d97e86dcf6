"""``python -m signet_actors.decider``: the decider process."""

from __future__ import annotations

import sys

from signet_actors.decider.actor import Decider
from signet_actors.runtime.processes.async_actor import run_role


def main() -> int:
    """Run the decider and return its exit code."""
    return run_role(Decider)


if __name__ == "__main__":
    sys.exit(main())
