"""The real supervisor with scripted children, as a separate process, and its output.

The children are ``echo_actor``. The orders determine what each does at its start (see there).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.bus_harness import HANGS_S, REPOSITORY, child_environment, eventually, log_lines

QUICK: dict[str, Any] = {
    "searcher": {"processes": 2},
    "supervision": {
        "heartbeatMs": 100,
        "liveness": 5,
        "backoffMinMs": 20,
        "backoffMaxMs": 100,
        "settledMs": 200,
        "budgets": {
            "writer": {"restarts": 5, "windowMs": 60000},
            "searcher": {"restarts": 5, "windowMs": 60000},
            "retention": {"restarts": 2, "windowMs": 60000},
        },
    },
}


class Daemon:
    """A supervisor process and its output."""

    def __init__(self, workspace: Path, process: subprocess.Popen[str]) -> None:
        self.workspace = workspace
        self.process = process

    def lines(self) -> list[dict[str, Any]]:
        return log_lines(self.workspace)

    def events(self, event: str, **facts: Any) -> list[dict[str, Any]]:
        return [
            line
            for line in self.lines()
            if line["event"] == event and all(line.get(key) == value for key, value in facts.items())
        ]

    def wait_for(self, event: str, *, count: int = 1, within_s: float = HANGS_S, **facts: Any) -> list[dict[str, Any]]:
        return eventually(  # type: ignore[no-any-return]
            lambda: len(found := self.events(event, **facts)) >= count and found, within_s=within_s, what=event
        )

    def pid_of(self, child: str) -> int:
        return int(self.events("spawned", child=child)[-1]["pid"])

    def exit_code(self, within_s: float = HANGS_S) -> int:
        return self.process.wait(within_s)


@contextmanager
def daemon(
    workspace: Path,
    config: dict[str, Any] | None = None,
    *,
    orders: str = "",
    serving: bool = True,
    tree: str = "tests.support.echo_tree",
    **environ: str,
) -> Iterator[Daemon]:
    """Run a supervisor for the duration of a block; ``tree`` is the program that runs it."""
    process = subprocess.Popen(
        [sys.executable, "-m", tree, str(workspace)],
        env=child_environment(
            **{
                "SIGNET_TEST_CONFIG": json.dumps(QUICK if config is None else config),
                "SIGNET_TEST_ECHO": orders,
                **environ,
            }
        ),
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    running = Daemon(workspace, process)
    try:
        if serving:
            running.wait_for("serving")
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(HANGS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(HANGS_S)
        assert process.stderr is not None
        process.stderr.close()


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def changed(config: dict[str, Any], **supervision: Any) -> dict[str, Any]:
    return {**config, "supervision": {**config["supervision"], **supervision}}
