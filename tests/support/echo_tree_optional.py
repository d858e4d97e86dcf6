"""The supervisor with echo actors and two optional roles that the configuration switches, like those of the pipeline.

``python -m tests.support.echo_tree_optional <workspace>``; configured like ``echo_tree``. With
``SIGNET_TEST_QUARANTINE`` one more child is needed after a crash of the extractor.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.daemon import run_supervisor
from signet_actors.supervisor import decider_count, extractor_count
from tests.support.echo_tree import ECHO, load

QUARANTINE = ChildSpec("quarantine", ECHO, core=False, count=extractor_count, after_crash_of="extractor")
TREE = (
    ChildSpec("writer", ECHO, core=True),
    ChildSpec("searcher", ECHO, core=True),
    ChildSpec("gateway", ECHO, core=True, listens=True),
    ChildSpec("decider", ECHO, core=False, count=decider_count),
    ChildSpec("extractor", ECHO, core=False, count=extractor_count),
    *([QUARANTINE] if "SIGNET_TEST_QUARANTINE" in os.environ else ()),
)


if __name__ == "__main__":
    sys.exit(
        run_supervisor(
            TREE,
            Path(sys.argv[1]),
            load,
            port=0,
            retry_failed_ms=int(os.environ.get("SIGNET_TEST_RETRY_FAILED_MS", "600000")),
        )
    )
