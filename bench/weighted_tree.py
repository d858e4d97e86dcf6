"""The daemon's process tree with the searcher of ``bench.weighted_child``: ``python -m bench.weighted_tree``."""

from __future__ import annotations

import dataclasses
import sys

from signet_actors import supervisor

if __name__ == "__main__":
    tree = tuple(
        dataclasses.replace(spec, module="bench.weighted_child") if spec.role == "searcher" else spec
        for spec in supervisor.TREE
    )
    setattr(supervisor, "TREE", tree)  # noqa: B010  its type names the exact number of children
    sys.exit(supervisor.main())
