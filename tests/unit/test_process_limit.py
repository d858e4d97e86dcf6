"""A user who may run too few processes is told so before the daemon starts."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli import lifecycle
from signet_actors.errors import ConfigError
from signet_actors.runtime.processes import descriptor_limit

USER = 12_345


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of a user with ten threads; the last one counts."""
    made = [(32, 32)]
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    monkeypatch.setattr(resource, "getrlimit", lambda _: made[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, values: made.append(values))
    monkeypatch.setattr(descriptor_limit, "_running_threads", lambda: 10)
    return made


@pytest.mark.parametrize("hard", [1, 2, 8, 16, 63, 64, 73])
def test_too_few_processes_are_named_with_what_raises_the_limit(limits: list[tuple[int, int]], hard: int) -> None:
    limits.append((hard, hard))
    with pytest.raises(ConfigError, match=f"only {hard} processes and threads, of which 10 run already.*ulimit -u"):
        descriptor_limit.raise_process_limit()


@pytest.mark.parametrize("hard", [74, 100, 4095, 4096, 63_000, resource.RLIM_INFINITY])
def test_enough_processes_are_taken_up_to_the_hard_limit(limits: list[tuple[int, int]], hard: int) -> None:
    limits.append((16, hard))
    descriptor_limit.raise_process_limit()
    assert limits[-1] == (hard, hard)


def test_root_has_no_limit(limits: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    descriptor_limit.raise_process_limit()
    assert limits[-1] == (32, 32)


def test_a_start_for_which_no_process_is_left_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(ConfigError, match="no more processes may run for this user"):
        lifecycle.launch(tmp_path, {})
