"""Run the command line: ``python -m signet_actors.cli`` is the same as ``signet``."""

from __future__ import annotations

from signet_actors.cli.main import main

main()
