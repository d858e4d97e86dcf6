"""``signet`` whose ``mcp`` waits a minute for the roots of its client, so that a slow machine answers in time, too."""

from typing import Final

PATIENT: Final = (
    "import signet_actors.mcp.stdio_sdk as sdk; sdk.ROOTS_WAIT_S = 60; from signet_actors.cli.entry import main; main()"
)
"""The source of a program, for ``python -c``."""
