"""The dependency rules hold, and each of them detects a violation.

Source: docs/architecture.md "Dependency rules"; pyproject.toml ``[tool.importlinter]``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.bus_harness import REPOSITORY

pytestmark = pytest.mark.slow

PLANTS = (
    ("directories are layered", "signet_actors/protocol/header.py", "import signet_actors.runtime.clock"),
    (
        "directories are layered",
        "signet_actors/store/command_context.py",
        "import signet_actors.gateway.auth.request_guard",
    ),
    ("directories are layered", "signet_actors/store/rows.py", "import signet_actors.providers.select"),
    ("directories are layered", "signet_actors/errors.py", "import signet_actors.domain.confirm"),
    (
        "no model call and no HTTP client near a write lock",
        "signet_actors/writer/commands/memories.py",
        "import urllib.request",
    ),
    ("no model call and no HTTP client near a write lock", "signet_actors/searcher/recall.py", "import onnxruntime"),
    ("no model call and no HTTP client near a write lock", "signet_actors/retention/actor.py", "import http.client"),
    (
        "only writer and searcher touch the store",
        "signet_actors/gateway/state.py",
        "import signet_actors.store.sqlite.connect",
    ),
    ("only the writer may write", "signet_actors/searcher/reader.py", "import signet_actors.store.sqlite.writer"),
    ("only the writer may write", "signet_actors/searcher/reader.py", "import signet_actors.store.writes.history"),
    ("only the writer may write", "signet_actors/searcher/reader.py", "import signet_actors.store.sqlite.migrate"),
    ("statements know no engine", "signet_actors/store/writes/jobs.py", "import signet_actors.store.sqlite.connect"),
    ("statements know no engine", "signet_actors/store/engine.py", "import signet_actors.store.errors"),
    ("statements know no engine", "signet_actors/store/reads/memories.py", "import apsw"),
    ("directories are layered", "signet_actors/features/skills/writes.py", "import signet_actors.writer.dispatch"),
    ("directories are layered", "signet_actors/store/rows.py", "import signet_actors.features.handlers"),
    (
        "no model call and no HTTP client near a write lock",
        "signet_actors/features/skills/writes.py",
        "import signet_actors.providers.select",
    ),
    (
        "only writer and searcher touch the store",
        "signet_actors/gateway/routes/hooks.py",
        "import signet_actors.features.skills.reads",
    ),
    ("only the writer may write", "signet_actors/searcher/recall.py", "import signet_actors.features.skills.writes"),
    ("statements know no engine", "signet_actors/features/skills/reads.py", "import apsw"),
    ("a feature is layered", "signet_actors/features/skills/reads.py", "import signet_actors.features.skills.writes"),
    ("a feature is layered", "signet_actors/features/skills/api.py", "import signet_actors.features.skills.reads"),
    ("declarations and rules of features are pure", "signet_actors/features/skills/api.py", "import time"),
    (
        "declarations and rules of features are pure",
        "signet_actors/features/session_scores/rules.py",
        "import signet_actors.store.rows",
    ),
    ("the domain is pure", "signet_actors/domain/retention.py", "import time"),
    ("the domain is pure", "signet_actors/domain/ranking/fusion.py", "import logging"),
    ("the command line is a client", "signet_actors/cli/doctor.py", "import signet_actors.writer.check"),
    ("the hook command imports almost nothing", "signet_actors/hook/program.py", "import http.client"),
    ("the hook command imports almost nothing", "signet_actors/hook/spool.py", "import signet_actors.config.workspace"),
    (
        "the Python client imports no part of the daemon",
        "signet_actors/client/exchange.py",
        "import signet_actors.runtime.clock",
    ),
    ("the Python client imports no part of the daemon", "signet_actors/operations/recall.py", "import numpy"),
    ("directories are layered", "signet_actors/client/exchange.py", "import signet_actors.cli.connection"),
    ("only the runtime imports ZeroMQ", "signet_actors/gateway/actor.py", "import zmq"),
    ("only the SQLite engine imports SQLite", "signet_actors/writer/actor.py", "import apsw"),
    ("only the SQLite engine imports SQLite", "signet_actors/store/vector_file.py", "import apsw"),
    ("only the SQLite engine imports SQLite", "signet_actors/cli/doctor.py", "import sqlite3"),
    ("the web framework stays in the gateway", "signet_actors/runtime/supervision/listener.py", "import uvicorn"),
    ("the SDK of MCP stays in its adapter", "signet_actors/gateway/routes/mcp.py", "import mcp"),
    ("YAML stays in config", "signet_actors/gateway/routes/config_files.py", "import yaml"),
)


def lint(tree: Path) -> tuple[int, str]:
    """The exit code and the output of import-linter on ``tree``."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the code that a test may spoil."""
    shutil.copytree(
        REPOSITORY / "signet_actors", tmp_path / "signet_actors", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copyfile(REPOSITORY / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def contract_names() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


def test_the_code_keeps_every_contract(tree: Path) -> None:
    code, said = lint(tree)
    assert code == 0, said
    for name in contract_names():
        assert f"{name} KEPT" in said


def test_every_contract_has_a_planted_violation() -> None:
    assert {name for name, _, _ in PLANTS} == set(contract_names())


def explained(said: str) -> dict[str, str]:
    """Return how each broken contract is broken, from the end of import-linter's output."""
    _, *parts = re.split(r"\n(.+)\n-+\n", said.partition("Broken contracts")[2])
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_a_planted_violation_of_each_kind_is_detected(tree: Path) -> None:
    for _, path, line in PLANTS:
        file = tree / path
        file.write_text(f"{file.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    code, said = lint(tree)
    assert code != 0
    broken, missed = explained(said), []
    for name, path, line in PLANTS:
        imported = line.removeprefix("import ")
        shown = imported if imported.startswith("signet_actors.") else imported.partition(".")[0]
        found = f"{path.removesuffix('.py').replace('/', '.')} -> {shown} (l."
        if f"{name} BROKEN" not in said or found not in broken.get(name, ""):
            missed.append((name, found))
    assert missed == [], said


def test_a_directory_that_no_contract_names_is_detected(tree: Path) -> None:
    (tree / "signet_actors" / "attic").mkdir()
    (tree / "signet_actors" / "attic" / "__init__.py").write_text('"""Of no layer."""\n', encoding="utf-8")
    code, said = lint(tree)
    assert code != 0
    assert "attic" in said


@pytest.mark.parametrize(
    ("role", "refused"),
    [("writer", True), ("searcher", True), ("gateway", False)],
    ids=["writer", "searcher", "gateway"],
)
def test_a_network_connection_in_writer_or_searcher_is_refused(tree: Path, role: str, *, refused: bool) -> None:
    """The real entry point arms the refusal before the planted code, the first that it calls, is run."""
    boot = tree / "signet_actors" / "runtime" / "processes" / "child_context.py"
    planted = "def read_context():\n    import socket\n    socket.create_connection(('127.0.0.1', 9))\n"
    boot.write_text(f"{boot.read_text(encoding='utf-8')}\n\n{planted}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", f"signet_actors.{role}"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert ("PermissionError" in done.stderr) is refused, done.stderr
