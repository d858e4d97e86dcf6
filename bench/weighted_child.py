"""Run a searcher with other weights of its stages, which reports CPU time instead of time.

``BENCH_WEIGHTS`` is JSON, ``{"EPISODE": 0, …}``: constants of ``signet_actors/domain/ranking/context.py``.
"""

from __future__ import annotations

import signet_actors.searcher  # noqa: F401 - first, because it decides about numpy's threads

# isort: split
import json
import os
import runpy
import time
from typing import Final

from signet_actors.domain.ranking import context
from signet_actors.searcher import recall as recipe

WEIGHTS_VARIABLE: Final = "BENCH_WEIGHTS"


def main() -> None:
    """Set the weights and run the searcher like ``python -m``; raises its SystemExit."""
    for name, value in json.loads(os.environ.get(WEIGHTS_VARIABLE, "{}")).items():
        if not isinstance(getattr(context, name), float):
            raise TypeError(f"{name} is no weight")
        setattr(context, name, float(value))
    recipe.perf_counter = time.process_time  # type: ignore[attr-defined]
    runpy.run_module("signet_actors.searcher", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
