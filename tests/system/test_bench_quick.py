"""``signet bench quick`` measures this machine with a temporary daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bus_harness import child_environment

pytestmark = pytest.mark.system


def test_bench_quick_measures_a_temporary_daemon_and_leaves_nothing(tmp_path: Path) -> None:
    temporary, workspace = tmp_path / "tmp", tmp_path / "mine"
    temporary.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "bench", "quick", "--memories", "60", "--seconds", "0.5", "--json"],
        env=child_environment(TMPDIR=str(temporary), SIGNET_WORKSPACE=str(workspace)),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    found = json.loads(ran.stdout)
    assert found["memories"] == 60
    for name in ("ready_s", "remember_per_s", "recall_per_s", "durable_write_ms"):
        assert found[name] > 0
    for name in ("remember_ms", "recall_ms"):
        assert 0 < found[name]["p50"] <= found[name]["p95"]
    assert list(temporary.iterdir()) == [], "the throw-away workspace is still there"
    assert not workspace.exists(), "the user's workspace was touched"
