"""What is live: new memories and lines of the log, one stream for all tabs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon
from tests.support.web_page import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]


def streams(visitor: Visitor) -> int:
    """Return how many streams were answered. From then on a stream has each change."""
    return sum("/api/changes" in answered for answered in visitor.answered)


def test_what_is_remembered_meanwhile_appears_in_each_of_eight_tabs_over_one_stream(
    visit: Visit, daemon: LiveDaemon
) -> None:
    visitor = visit("#/memories")
    pages = [visitor.page, *(visitor.watched(visitor.context.new_page()) for _ in range(7))]
    for page in pages:
        page.goto(f"{visitor.base}/#/memories")
        expect(page.locator(".line").first).to_be_visible()
    eventually(lambda: visitor.page.wait_for_timeout(50) or streams(visitor), what="a stream is open")
    daemon.api.remember("The kingfisher was seen at the weir")
    for page in pages:
        expect(page.locator(".line").first).to_contain_text("kingfisher")
    assert sum("/api/changes" in request for request in visitor.requests) == 1
    pages[0].close()
    eventually(lambda: pages[1].wait_for_timeout(50) or streams(visitor) == 2, what="another tab reads on")
    daemon.api.remember("The kingfisher left at noon")
    expect(pages[7].locator(".line").first).to_contain_text("left at noon")


def test_a_list_does_not_move_under_a_reader_who_has_selected_something(visit: Visit, daemon: LiveDaemon) -> None:
    visitor = visit("#/memories")
    first = visitor.page.locator(".line").first
    expect(first).to_be_visible()
    visitor.settle()
    before = first.inner_text()
    visitor.press("x")
    eventually(lambda: visitor.page.wait_for_timeout(50) or streams(visitor), what="a stream is open")
    daemon.api.remember("The stoat crossed the yard")
    expect(visitor.page.get_by_role("button", name="Something was stored")).to_be_visible()
    assert first.inner_text().split("\n")[0] == before.split("\n")[0]
    visitor.page.get_by_role("button", name="Something was stored").press("Enter")
    expect(first).to_contain_text("stoat")


def test_lines_of_the_log_are_found_by_level_process_and_text(visit: Visit) -> None:
    visitor = visit("#/logs")
    lines = visitor.page.locator(".log-line")
    expect(lines.filter(has_text="listening").first).to_be_visible()
    visitor.page.get_by_label("Process").select_option("writer")
    expect(lines.filter(has_text="store_open").first).to_be_visible()
    expect(lines.filter(has_text="listening")).to_have_count(0)
    visitor.press("/")
    visitor.page.keyboard.type("store_open")
    expect(lines).to_have_count(1)
    lines.first.locator("summary").press("Enter")
    expect(lines.first.locator("pre")).to_contain_text("schema")


def test_a_stream_that_is_refused_is_said_once_and_asked_for_later_and_later(visit: Visit) -> None:
    visitor = visit(clock=True)
    visitor.allowed = {503}
    refused: list[str] = []

    def refuse(route: Any) -> None:
        refused.append(route.request.url)
        route.fulfill(status=503, json={"error": "16 streams are open", "code": "overloaded"})

    visitor.page.route("**/api/changes*", refuse)
    visitor.open("#/memories")
    told = visitor.page.locator(".notice")
    expect(told).to_contain_text("do not appear by themselves")
    assert len(refused) == 1
    told.get_by_role("button", name="Close").press("Enter")
    visitor.pass_s(7)
    assert len(refused) == 2, "six seconds later"
    visitor.pass_s(7)
    assert len(refused) == 2
    visitor.pass_s(6)
    assert len(refused) == 3, "twelve seconds later"
    expect(told).not_to_contain_text("do not appear")
