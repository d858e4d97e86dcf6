"""The checks of restart storms detect a supervisor without backoff and budget.

Source: docs/reliability.md "Mutation tests".
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.chaos.storms import MOST_IN_A_MINUTE, storm_problems
from tests.support.echo_daemon import daemon


@pytest.mark.system
def test_a_supervisor_without_backoff_is_detected() -> None:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        config = {"searcher": {"processes": 1}}
        with daemon(
            Path(directory) / "w",
            config,
            orders="retention=boot_exit:1",
            serving=False,
            tree="tests.chaos.mutant_tree",
        ) as running:
            running.wait_for("spawned", child="retention", count=MOST_IN_A_MINUTE + 1, within_s=60)
            problems = storm_problems(running, "retention")
    assert any("starts within a minute" in problem for problem in problems)
    assert any("without a wait" in problem for problem in problems)
