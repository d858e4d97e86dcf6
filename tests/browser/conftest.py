"""The page in a real browser, under its real policy, on a real daemon.

Each test fails on an error in the console, an exception, a request that fails or leaves the machine, and a violation of
the policy. The policy is never bypassed. With ``SIGNET_BROWSER=required`` a missing browser is a failure, not a skip.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.web_page import Visitor, converse, seed

CHROMIUM = "/usr/bin/chromium"
HANG_MS = 60_000
PICTURES = Path(__file__).resolve().parents[2] / "build" / "pictures"


def _missing() -> str | None:
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError:
        return "no playwright: make test-browser installs it"
    return None if Path(CHROMIUM).exists() else f"no {CHROMIUM}: apt-get install chromium fonts-dejavu-core"


if os.environ.get("SIGNET_BROWSER") == "required" and _missing() is not None:
    raise pytest.UsageError(f"the tests of the page cannot run: {_missing()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=HANG_MS)
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def daemon(browser: Any) -> Iterator[LiveDaemon]:
    """A daemon with 60 memories in three projects and of two agents, and a session.

    Tests that change something make memories of their own.
    """
    with live_daemon(patient=True) as started:
        seed(started)
        converse(started)
        yield started


@pytest.fixture
def visit(browser: Any, daemon: LiveDaemon) -> Iterator[Any]:
    """Return a function that opens an address of the page in a new context and returns its ``Visitor``."""
    visitors: list[Visitor] = []

    def opened(address: str = "", **options: Any) -> Visitor:
        visitor = Visitor(browser, daemon, **options)
        visitors.append(visitor)
        visitor.open(address)
        return visitor

    yield opened
    problems = [problem for visitor in visitors for problem in visitor.close()]
    assert problems == []
