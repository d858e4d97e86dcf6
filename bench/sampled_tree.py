"""The daemon's process tree with its busy children under ``bench.sampling``: ``python -m bench.sampled_tree``."""

from __future__ import annotations

import dataclasses
import sys
from typing import Final

from signet_actors import supervisor

SAMPLED: Final = ("writer", "searcher", "gateway")

if __name__ == "__main__":
    tree = tuple(
        dataclasses.replace(spec, module=f"bench.sampled_{spec.role}") if spec.role in SAMPLED else spec
        for spec in supervisor.TREE
    )
    setattr(supervisor, "TREE", tree)  # noqa: B010  its type names exactly four children
    sys.exit(supervisor.main())
