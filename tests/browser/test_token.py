"""Where a token is needed, the page gets it for a code of the command, once, and keeps it out of every address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.support.live_daemon import LiveDaemon, live_daemon, signet
from tests.support.web_page import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.system]


@pytest.fixture(scope="module")
def team() -> Iterator[LiveDaemon]:
    with live_daemon(config="auth: {mode: team}\n") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def owned() -> Iterator[LiveDaemon]:
    with live_daemon(config="gateway: {requireOwner: true}\n") as daemon:
        yield daemon


@pytest.mark.parametrize("mode", ["team", "owned"])
def test_the_command_opens_a_page_that_may_do_everything_once(
    browser: Any, mode: str, request: pytest.FixtureRequest
) -> None:
    daemon: LiveDaemon = request.getfixturevalue(mode)
    memory = daemon.owner.remember("The pine marten climbs at night")["id"]
    address = json.loads(signet(daemon, "dashboard", "--print", "--json"))["url"]
    assert address.startswith(f"http://127.0.0.1:{daemon.port}/#/today?code=")
    visitor = Visitor(browser, daemon)
    visitor.page.goto(address)
    expect(visitor.page.locator(".headline")).to_be_visible()
    expect(visitor.page).not_to_have_url(re.compile("code="))
    visitor.open("#/settings")
    expect(visitor.page.get_by_role("textbox", name="agent.yaml")).not_to_have_value("")
    visitor.open("#/memories")
    expect(visitor.page.locator(".line")).to_contain_text("pine marten")
    visitor.press("f")
    expect(visitor.page.locator(".notice")).to_contain_text("Forgotten")
    assert daemon.owner.get(f"/api/memory/{memory}").status == 404
    token = (daemon.workspace / ".daemon" / "owner-token").read_text().strip()
    assert not any(token in request or "code=" in request for request in visitor.requests)
    assert visitor.context.cookies() == []
    assert visitor.close() == []

    other = Visitor(browser, daemon)
    other.allowed = {401, 403}
    other.page.goto(address)
    expect(other.page.locator(".notice")).to_contain_text("not valid any more")
    other.open("#/settings")
    expect(other.page.locator("main")).to_contain_text("signet dashboard")
    assert other.close() == []


def test_no_code_is_issued_where_none_is_needed_and_to_nobody_but_the_owner(
    daemon: LiveDaemon, team: LiveDaemon
) -> None:
    assert daemon.api.post("/api/auth/page-code").ok()["code"] is None
    daemon.api.post("/api/auth/page-token", {"code": "guessed"}).refused(401)
    team.api.post("/api/auth/page-code").refused(401)
    code = team.owner.post("/api/auth/page-code").ok()["code"]
    token = team.api.post("/api/auth/page-token", {"code": code}).ok()["token"]
    assert token == team.owner.headers["x-signet-owner-token"].strip()
    team.api.post("/api/auth/page-token", {"code": code}).refused(401)
