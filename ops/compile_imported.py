"""Compile the modules that the processes and the command line import when they start.

The installation may belong to another user than the daemon, which then could not keep what it compiles. Without them
each process takes twice as long to start, so this fails if they are not there afterwards.

Source: PEP 3147; docs/operations.md "Processes".
"""

from __future__ import annotations

import compileall
import importlib
import os
import sys
from pathlib import Path

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
    *("store.sqlite.connect", "gateway.routes", "mcp.http", "mcp.stdio"),
)
"""Imported when their process has started."""
LIBRARIES = ("rich.console", "rich.table", "rich.progress", "httpx", "prometheus_client", "numpy", "onnxruntime")


def main() -> None:
    """Compile our own modules, and import all of them; the interpreter keeps what it compiles of the libraries."""
    sys.dont_write_bytecode, sys.pycache_prefix = False, None  # also if the environment says otherwise
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # docs/decisions.md 27: onnxruntime would send events when it is imported
    package = Path(importlib.import_module("signet_actors").__file__ or "").parent
    if not compileall.compile_dir(package, quiet=1):
        sys.exit(f"{package} was not compiled")
    for name in (*(f"{actor}.__main__" for actor in ACTORS), *LATER):
        importlib.import_module(f"signet_actors.{name}")
    for name in LIBRARIES:
        try:
            library = importlib.import_module(name)
        except ImportError:
            if name != "onnxruntime":  # which does not exist for every platform
                raise
        else:
            if not Path(library.__cached__).is_file():
                sys.exit(f"{library.__file__} was not compiled")


if __name__ == "__main__":
    main()
