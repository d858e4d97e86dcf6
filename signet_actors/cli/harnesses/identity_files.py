"""The identity files in the instructions of a harness: note it and its tools for the daemon, take the files out again.

Source: docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from signet_actors.cli.harnesses.registry import Harness
from signet_actors.cli.invocation import Invocation
from signet_actors.cli.presentation import print_message, printable
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError
from signet_actors.runtime.connected_harnesses import (
    ConnectedHarness,
    Target,
    add_connected,
    read_connected,
    remove_connected,
    targets_of,
    wanted_block,
)
from signet_actors.runtime.harness_file import NotOurs, found_block, put_block


def note_connected(invocation: Invocation, harness: Harness, agent: str | None) -> None:
    """Have the daemon keep its identity files in the harness's instructions, too, and know whether it has tools.

    Raises ConfigError.
    """
    noted = harness.noted(invocation.environ, agent)._replace(servers_file=harness.tools_from(invocation.environ))
    former = _noted_rows(invocation.workspace, noted)
    try:
        add_connected(invocation.workspace, noted)
    except OSError as error:
        raise _unwritten(invocation, error) from None
    left = _targets(invocation.workspace, former) - _targets(invocation.workspace, read_connected(invocation.workspace))
    _take_out(sorted(left))
    if noted.identity_file and wanted_block(invocation.workspace, Target(Path(noted.identity_file), noted.agent)):
        print_message(f"The daemon keeps your identity files in {printable(noted.identity_file)}, too.")


def forget_connected(invocation: Invocation, harness: Harness) -> None:
    """Take the identity files out of the harness's files, and print in which they were. Raises ConfigError."""
    noted = harness.noted(invocation.environ, None)
    paths = files_with_identity(invocation, harness)
    try:
        remove_connected(invocation.workspace, noted.harness, noted.settings)
    except OSError as error:
        raise _unwritten(invocation, error) from None
    finally:
        _take_out(paths)


def _unwritten(invocation: Invocation, error: OSError) -> ConfigError:
    """Return the error for the list of connected harnesses; a write on a full disk does not name its file."""
    path = error.filename or Workspace(invocation.workspace).harnesses_file
    return ConfigError(
        f"{path}, the list of connected harnesses, cannot be written: {error.strerror}; run the command again"
    )


def files_with_identity(invocation: Invocation, harness: Harness) -> list[Path]:
    """Return the files of the harness that have the identity files in them."""
    workspace = invocation.workspace
    noted = harness.noted(invocation.environ, None)
    return sorted(filter(_has_block, _targets(workspace, [*_noted_rows(workspace, noted), noted])))


def unread_files(workspace: Path, harness: Harness, environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each file with identity files that the harness no longer reads."""
    found = []
    for row in _noted_rows(workspace, harness.noted(environ, None)):
        read_now = harness.noted(environ, row.agent)
        unread = _targets(workspace, [row]) - _targets(workspace, [read_now])
        found += [
            f"{harness.title} does not read {path}, which has your identity files"
            + (f", but {read_now.identity_file}" if read_now.identity_file else "")
            + f"; `signet connect {harness.name}` moves them."
            for path in sorted(unread)
            if _has_block(path)
        ]
    return found


def _noted_rows(workspace: Path, noted: ConnectedHarness) -> list[ConnectedHarness]:
    about = (noted.harness, noted.settings)
    return [row for row in read_connected(workspace) if (row.harness, row.settings) == about]


def _targets(workspace: Path, rows: Iterable[ConnectedHarness]) -> set[Path]:
    return {target.path for row in rows for target in targets_of(workspace, row)}


def _take_out(paths: Iterable[Path]) -> None:
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
