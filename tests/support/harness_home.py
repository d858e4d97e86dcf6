"""A home directory in which ``signet connect`` finds harnesses and the programs that it installs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.harnesses.registry import Harness
from signet_actors.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
LONG_LIMITS = (
    "from signet_actors.hook.harness_events import HOOKS; [setattr(h, 'limit_s', 60.0) for h in HOOKS.values()]"
)
"""Python that lets a hook wait for the daemon as long as a busy machine needs, for tests with another subject."""
PROGRAM = f"{LONG_LIMITS}\nfrom signet_actors.hook.program import main; main()"
"""The source of signet-hook with these limits, for ``python -c``."""

PYTHON = sys.executable
"""That of this process, which a test may replace."""


class Home:
    """A home directory with a signet-hook on its PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = self.install(root / "bin")

    def install(self, directory: Path) -> Path:
        directory.mkdir(parents=True)
        return self._program(directory / "signet-hook", "signet_actors.hook.program")

    def install_signet(self, *options: str) -> Path:
        """Install the command line beside signet-hook, which serves MCP; it is always called with these options."""
        return self._program(self.program.with_name("signet"), "signet_actors.cli.entry", *options)

    def _program(self, path: Path, module: str, *options: str) -> Path:
        path.write_text(
            f"#!{PYTHON}\nimport sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:1] = {list(options)!r}\n"
            f"{LONG_LIMITS}\nfrom {module} import main; main()\n"
        )
        path.chmod(0o755)
        return path

    def settings(self, harness: Harness) -> Path:
        return self.root / harness.directory / harness.file_name

    def write(self, harness: Harness, content: bytes) -> Path:
        path = self.settings(harness)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, prog_name="signet")

    def connect(self, harness: Harness, *options: str) -> Result:
        return self.run("connect", harness.name, "--command", str(self.program), *options)

    def disconnect(self, harness: Harness, *options: str) -> Result:
        return self.run("disconnect", harness.name, *options)

    def files(self) -> dict[str, bytes | None]:
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in self.root.rglob("*")
        }


def make_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return an empty home directory, which is that of the commands, with Claude Code installed in it."""
    for name in [name for name in os.environ if name.startswith("SIGNET_")]:
        monkeypatch.delenv(name)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "home"
    root.mkdir()
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setenv("PWD", str(root))
    monkeypatch.setenv("SHELL", "/bin/sh")
    install_claude(root / "claude", "2.1.76 (Claude Code)")
    monkeypatch.setenv("PATH", f"{root / 'claude'}{os.pathsep}{os.environ['PATH']}")
    return Home(root)


def install_claude(directory: Path, version: str) -> None:
    """Install a program that tells this version, as ``claude --version`` does."""
    directory.mkdir(exist_ok=True)
    (directory / "claude").write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}'\n")
    (directory / "claude").chmod(0o755)
