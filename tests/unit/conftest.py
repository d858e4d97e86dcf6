"""The command line against a daemon that answers by script."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from tests.support.scripted_daemon import ScriptedDaemon


@pytest.fixture
def daemon() -> Iterator[ScriptedDaemon]:
    scripted = ScriptedDaemon()
    yield scripted
    scripted.close()


@pytest.fixture
def signet(daemon: ScriptedDaemon) -> Callable[..., Result]:
    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, ["--url", daemon.url, *arguments], input=stdin, prog_name="signet")

    return run


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local time of Berlin, with its daylight saving time."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
