"""``python -m signet_actors.retention.workspace_sync WORKSPACE``: bring the files of harnesses up to date, once.

It is a process of its own because the files of other programs may be on a file system that hangs. It prints what it did
as JSON.

Source: docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from signet_actors.config.workspace import Workspace
from signet_actors.retention.work_process import WorkProcess
from signet_actors.runtime.connected_harnesses import OPENCLAW, Target, read_connected, targets_of, wanted_block
from signet_actors.runtime.harness_file import NotOurs, put_block
from signet_actors.runtime.identity_files import is_directory_name

LIMIT_S = 30


class SyncResult(msgspec.Struct):
    """The files that were changed, and for each that could not be brought up to date, why not."""

    written: list[str] = []
    problems: dict[str, str] = {}


class WorkspaceSync(WorkProcess[SyncResult]):
    """The process. It ends by itself after ``LIMIT_S``, unless a file system hangs."""

    def __init__(self, workspace: Path, *, harness_files: bool, agents: Sequence[str] = ()) -> None:
        options = ["--harness-files"] if harness_files else []
        options += [f"--agent={name}" for name in agents]
        super().__init__(
            "signet_actors.retention.workspace_sync",
            [str(workspace), *options],
            SyncResult,
            lambda reason: SyncResult(problems={"": reason}),
        )


def main(arguments: list[str]) -> int:
    """Do the work and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--harness-files", action="store_true", help="without it, our part is taken out of them")
    parser.add_argument("--agent", action="append", default=[], help="gets a directory if OpenClaw is connected")
    options = parser.parse_args(arguments)
    signal.alarm(LIMIT_S)
    result = sync_harness_files(options.workspace, wanted=options.harness_files, agents=options.agent)
    sys.stdout.buffer.write(msgspec.json.encode(result))
    return 0


def sync_harness_files(workspace: Path, *, wanted: bool = True, agents: Sequence[str] = ()) -> SyncResult:
    """Give each file of the connected harnesses the identity of its agent, or none if that is not ``wanted``.

    Each of ``agents`` gets the directory by which OpenClaw's agents are known, if OpenClaw is connected.
    """
    result = SyncResult()
    if wanted and any(row.harness == OPENCLAW for row in read_connected(workspace)):
        for name in filter(is_directory_name, agents):
            _make_directory(Workspace(workspace).agents_dir / name, result)
    targets = _targets(workspace)
    for target in targets:
        _bring_up_to_date(workspace, target, result, wanted=wanted)
    for target in set(targets) - set(_targets(workspace)):  # disconnected meanwhile; its block may be there again
        _bring_up_to_date(workspace, target, result, wanted=False)
    return result


def _make_directory(path: Path, result: SyncResult) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        result.problems[str(path)] = error.strerror or str(error)


def _targets(workspace: Path) -> list[Target]:
    return list(dict.fromkeys(target for row in read_connected(workspace) for target in targets_of(workspace, row)))


def _bring_up_to_date(workspace: Path, target: Target, result: SyncResult, *, wanted: bool) -> None:
    block = wanted_block(workspace, target) if wanted else b""
    try:
        if block and target.path.is_relative_to(workspace):
            target.path.parent.mkdir(mode=0o700, exist_ok=True)
        if put_block(target.path, block):
            result.written.append(str(target.path))
    except NotOurs as error:
        result.problems[str(target.path)] = str(error)
    except OSError as error:
        result.problems[str(target.path)] = error.strerror or str(error)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
