"""Ctrl-C ends a daemon in the foreground at any moment of its start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli import lifecycle
from signet_actors.cli.invocation import Invocation

INTERRUPT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal; tests may run with SIGINT ignored

class Interrupted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # what is raised here is ignored
            pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            Interrupted()

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("module", ["signet_actors.config.load", "signet_actors.runtime.supervision.daemon", "msgspec"])
def test_an_interrupt_while_modules_are_imported_is_not_lost(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.replace("MODULE", repr(module)))
    environ = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "SIGNET_WORKSPACE": str(tmp_path / "agents"),
        "SIGNET_PORT": "0",
    }
    command = [sys.executable, "-P", "-m", "signet_actors.supervisor", "--console"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as daemon:
        try:
            assert daemon.wait(60) == -signal.SIGINT
        finally:
            daemon.kill()


def test_an_interrupt_that_comes_when_the_command_becomes_the_daemon_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *_: found.append(signal.getsignal(signal.SIGINT)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        CliRunner().invoke(lifecycle.up, obj=Invocation(workspace_option=str(tmp_path)), catch_exceptions=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [signal.SIG_DFL]
