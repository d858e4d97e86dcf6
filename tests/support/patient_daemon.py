"""The daemon with ``tests.support.patient_gateway``: ``python -m tests.support.patient_daemon``.

Its processes may be silent for ten seconds: one that is killed because the machine stood still would change how often
each was started, which tests of kills count.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Final

from msgspec.structs import replace

from signet_actors import supervisor
from signet_actors.config.load import LoadedConfig, load_config

LIVENESS: Final = 20


def load(*arguments: Any) -> LoadedConfig:
    """Return the configuration of the workspace, with longer time limits."""
    loaded = load_config(*arguments)
    supervision = replace(loaded.config.supervision, liveness=max(LIVENESS, loaded.config.supervision.liveness))
    return dataclasses.replace(loaded, config=replace(loaded.config, supervision=supervision))


if __name__ == "__main__":
    tree = tuple(
        dataclasses.replace(spec, module="tests.support.patient_gateway") if spec.role == "gateway" else spec
        for spec in supervisor.TREE
    )
    setattr(supervisor, "TREE", tree)  # noqa: B010  its type names exactly these children
    setattr(supervisor, "load_config", load)  # noqa: B010
    sys.exit(supervisor.main())
