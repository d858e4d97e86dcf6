"""The identity files in the instructions of a harness: note it for the daemon, and take them out again.

Source: docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from signet_actors.cli.presentation import print_message, print_result, printable
from signet_actors.runtime.connected_harnesses import (
    ConnectedHarness,
    add_connected,
    read_connected,
    remove_connected,
    targets_of,
)
from signet_actors.runtime.harness_file import NotOurs, found_block, put_block
from signet_actors.runtime.identity_files import read_identity

if TYPE_CHECKING:
    from signet_actors.cli.harnesses.registry import Harness
    from signet_actors.cli.invocation import Invocation


def note_connected(invocation: Invocation, harness: Harness, agent: str | None) -> None:
    """Have the daemon of the workspace keep its identity files in the harness's instructions, too."""
    noted = harness.noted(invocation.environ, agent)
    try:
        add_connected(invocation.workspace, noted)
    except OSError as error:
        print_message(f"The daemon cannot be told of it: {error.filename}: {error.strerror}.")
        return
    if noted.identity_file and read_identity(invocation.workspace, noted.agent):
        print_message(f"The daemon keeps your identity files in {printable(noted.identity_file)}, too.")


def forget_connected(invocation: Invocation, harness: Harness, *, dry_run: bool) -> None:
    """Take the identity files out of the harness's files, and print in which they were."""
    workspace = invocation.workspace
    noted = harness.noted(invocation.environ, None)
    rows: list[ConnectedHarness] = [
        row for row in read_connected(workspace) if (row.harness, row.settings) == (noted.harness, noted.settings)
    ]
    paths = list(dict.fromkeys(target.path for row in (*rows, noted) for target in targets_of(workspace, row)))
    if dry_run:
        for path in filter(_has_block, paths):
            print_result(f"The identity files in {printable(str(path))} would be taken out.")
        return
    try:
        remove_connected(workspace, noted.harness, noted.settings)
    except OSError as error:
        print_message(f"The daemon cannot be told of it: {error.filename}: {error.strerror}.")
    for path in filter(_has_block, paths):
        try:
            put_block(path, b"")
            print_message(f"Took the identity files out of {printable(str(path))}.")
        except NotOurs as error:
            print_message(f"The identity files are still in {printable(str(path))}: {error}.")


def _has_block(path: Path) -> bool:
    try:
        return bool(found_block(path))
    except NotOurs:
        return False
