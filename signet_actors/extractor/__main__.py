"""``python -m signet_actors.extractor``: the extractor process."""

from __future__ import annotations

import sys

from signet_actors.extractor.actor import Extractor
from signet_actors.runtime.processes.async_actor import run_role


def preload() -> None:
    """Import the modules that the first model and embedding calls need."""
    import signet_actors.providers.select  # noqa: F401, PLC0415
    from signet_actors.providers.http_calls import preload as preload_http  # noqa: PLC0415

    preload_http()


def main() -> int:
    """Run the extractor and return its exit code."""
    return run_role(Extractor)


if __name__ == "__main__":
    sys.exit(main())
