"""Runs the command line: ``python -m signet_actors.cli`` is ``signet``."""

from __future__ import annotations

from signet_actors.cli.main import main

main()
