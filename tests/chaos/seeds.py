"""The seed of this run of the chaos tests, and how much of them runs.

``SIGNET_CHAOS_SEED`` repeats a run; without it the commit decides, so that each commit picks other faults and the same
commit the same ones. ``SIGNET_CHAOS_FULL=1`` runs everything.
"""

from __future__ import annotations

import os
import subprocess
import zlib

from tests.support.bus_room import REPOSITORY


def _of_the_commit() -> int:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, check=False)
    return zlib.crc32(done.stdout)


SEED = int(os.environ.get("SIGNET_CHAOS_SEED") or _of_the_commit())
FULL = os.environ.get("SIGNET_CHAOS_FULL") == "1"
