"""Compile the modules that the processes and the command line import when they start.

The installation may belong to another user than the daemon, which then could not keep what it compiles.

Source: PEP 3147; docs/operations.md "Processes".
"""

from __future__ import annotations

import importlib
import os

ACTORS = ("writer", "searcher", "retention", "gateway", "extractor", "decider")
LATER = (
    *(
        "supervisor",
        "hook.program",
        "cli.main",
        "cli.lifecycle",
        "cli.memories",
        "cli.recall",
        "cli.status",
        "cli.presentation",
    ),
    *("config.load", "providers.embedded", "providers.minilm.embedder", "providers.llm.select"),
    *("store.sqlite.connect", "gateway.routes"),
)
"""Imported when their process has started."""
EXTRAS = ("signet_actors.mcp.http", "signet_actors.mcp.stdio")
"""Imported where the extra is installed."""
LIBRARIES = ("rich.console", "rich.table", "rich.progress", "httpx", "prometheus_client", "numpy", "onnxruntime")


def main() -> None:
    """Import all of them; the interpreter keeps what it compiles."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # docs/decisions.md 27: onnxruntime would send events when it is imported
    for name in (*(f"{actor}.__main__" for actor in ACTORS), *LATER):
        importlib.import_module(f"signet_actors.{name}")
    for name in (*LIBRARIES, *EXTRAS):
        try:
            importlib.import_module(name)
        except ImportError:
            if name not in {"onnxruntime", *EXTRAS}:  # which does not exist for every platform
                raise


if __name__ == "__main__":
    main()
