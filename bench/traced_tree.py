"""The daemon's process tree with gateway and writer under ``bench.traced_child``: ``python -m bench.traced_tree``."""

from __future__ import annotations

import dataclasses
import sys
from typing import Final

from bench.traced_child import MODULE_VARIABLE
from signet_actors import supervisor

TRACED: Final = ("writer", "gateway")

if __name__ == "__main__":
    tree = tuple(
        dataclasses.replace(spec, module="bench.traced_child", environ={**spec.environ, MODULE_VARIABLE: spec.module})
        if spec.role in TRACED
        else spec
        for spec in supervisor.TREE
    )
    setattr(supervisor, "TREE", tree)  # noqa: B010  its type names the exact number of children
    sys.exit(supervisor.main())
