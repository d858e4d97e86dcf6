"""The daemon with ``tests.support.patient_gateway``: ``python -m tests.support.patient_daemon``."""

from __future__ import annotations

import dataclasses
import sys

from signet_actors import supervisor

if __name__ == "__main__":
    tree = tuple(
        dataclasses.replace(spec, module="tests.support.patient_gateway") if spec.role == "gateway" else spec
        for spec in supervisor.TREE
    )
    setattr(supervisor, "TREE", tree)  # noqa: B010  its type names exactly these children
    sys.exit(supervisor.main())
