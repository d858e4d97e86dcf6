"""Review, Health and Settings, by the keyboard or by one button."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.corpus.scenarios.pipeline import GARBLED, ORDER, OTHER_ORDER, with_a_model
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, run_signet
from tests.support.web_page import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]
HELD_S = 7
"""Longer than the page holds a decision."""


@pytest.fixture(scope="module")
def piped(browser: Any) -> Iterator[LiveDaemon]:
    """A daemon with a scripted model, two proposals that wait, a job that failed for good, and a prompt."""
    with with_a_model() as daemon:
        for text in (ORDER, OTHER_ORDER, GARBLED):
            daemon.api.remember(text)
        eventually(lambda: waiting(daemon) == 2, what="both proposals wait", within_s=60)
        eventually(lambda: daemon.api.get("/api/pipeline/status").ok()["dead"], what="the job is dead", within_s=60)
        asked = {"harness": "codex", "sessionKey": "codex-1", "userMessage": "Where are the vault keys?"}
        daemon.api.post("/api/hooks/user-prompt-submit", asked).ok()
        yield daemon


@pytest.fixture
def look(browser: Any, piped: LiveDaemon) -> Iterator[Any]:
    visitors: list[Visitor] = []

    def opened(address: str, **options: Any) -> Visitor:
        visitors.append(Visitor(browser, piped, **options))
        visitors[-1].open(address)
        return visitors[-1]

    yield opened
    assert [problem for visitor in visitors for problem in visitor.close()] == []


def waiting(daemon: LiveDaemon) -> int:
    total: int = daemon.api.get("/api/memory/review-queue").ok()["total"]
    return total


def test_proposals_are_decided_by_keys_and_a_decision_is_taken_back(look: Any, piped: LiveDaemon) -> None:
    visitor = look("#/review", clock=True)
    proposal = visitor.page.get_by_role("article", name="Proposal")
    expect(proposal).to_contain_text("1 of 2")
    expect(proposal).to_contain_text("vault keys")
    expect(proposal.locator("q")).to_have_text(re.compile(r"memory \d about the vault keys\.$"))
    visitor.press("r")
    expect(proposal).to_contain_text("1 of 1")
    visitor.press("u")
    expect(proposal).to_contain_text("1 of 2")
    visitor.pass_s(HELD_S)
    assert waiting(piped) == 2, "what was taken back is not sent later"
    visitor.press("r", "a")
    expect(visitor.page.get_by_text("Nothing waits for you")).to_be_visible()
    visitor.press("g", "h")
    eventually(lambda: waiting(piped) == 0, what="leaving the screen sends both")
    states = {item["review_state"] for item in piped.api.get("/api/memory/review-queue", state="all").ok()["items"]}
    assert states == {"approved", "rejected"}


def test_ten_approvals_are_followed_by_a_hint_at_the_setting(browser: Any) -> None:
    key = "memory.pipelineV2.confirm"
    with with_a_model("    confirm: review\n") as daemon:
        for tool in ("Traefik", "Postgres", "Redis", "Grafana"):
            daemon.api.remember(
                f"Noor runs {tool} at home. Noor updates {tool} on Mondays. Noor backs {tool} up to tape."
            )
        eventually(lambda: waiting(daemon) >= 11, what="eleven proposals wait", within_s=90)
        visitor = Visitor(browser, daemon)
        visitor.open("#/review")
        expect(visitor.page.get_by_role("article", name="Proposal")).to_be_visible()
        hint = visitor.page.get_by_text("Let the pipeline apply such proposals by itself?")
        visitor.press(*"a" * 9)
        visitor.press("g", "h", "g", "r")
        expect(visitor.page.get_by_role("article", name="Proposal")).to_be_visible()
        expect(hint).to_have_count(0)
        visitor.press("a", "g", "h", "g", "r")
        expect(hint).to_contain_text("You approved 10 of the last 10 proposals that waited only for you.")
        expect(hint).to_contain_text(f"signet config set {key} auto")
        hint.get_by_role("link", name="Settings").press("Enter")
        expect(visitor.page.locator(".set-keys .is-here")).to_contain_text(key)
        done = run_signet(daemon, "config", "set", key, "auto")
        assert done.returncode == 0, done.stderr
        eventually(lambda: daemon.api.get("/api/memory/review-queue").ok()["hint"] is None, what="the hint is gone")
        assert visitor.close() == []


def test_a_dead_job_is_named_in_a_sentence_and_tried_again_with_one_button(look: Any, piped: LiveDaemon) -> None:
    visitor = look("#/health")
    findings = visitor.page.locator(".findings")
    expect(findings).to_contain_text("1 job of the kind extract failed for good")
    expect(findings.get_by_text("signet repair requeue-dead")).to_have_count(1)
    again = visitor.page.get_by_role("button", name="Try the jobs again")
    expect(findings.get_by_role("listitem").filter(has=again)).to_contain_text(
        "1 job of the kind extract failed for good"
    )
    expect(findings.get_by_text("of the kind extract")).to_have_count(1)
    again.press("Enter")
    expect(visitor.page.locator(".notice")).to_contain_text("Health")
    rows = piped.api.get("/api/audit").ok()
    assert "requeueDeadJobs" in str(rows) or "repair.requeue_dead" in str(rows)


def test_calls_stand_by_model_and_day_and_rates_beside_durations(look: Any, piped: LiveDaemon) -> None:
    visitor = look("#/health")
    tiles = visitor.page.locator(".tile")
    (used, *_) = piped.api.get("/api/analytics/usage").ok()["days"]
    calls = tiles.filter(has_text="Model calls of the last seven days").locator("tbody tr").first
    expect(calls).to_contain_text(used["model"])
    expect(calls.locator("td").nth(2)).to_have_text(re.compile(r"^[1-9]\d*$"))
    prompts = tiles.filter(has_text="and how often").locator("tr").filter(has_text="prompt")
    expect(prompts.locator("td").last).to_have_text("1")


def test_a_backup_is_made_with_one_button(look: Any, piped: LiveDaemon) -> None:
    visitor = look("#/health")
    visitor.page.get_by_role("button", name="Back up now").press("Enter")
    eventually(lambda: piped.api.get("/api/repair/backup").ok()["backups"], what="a backup is there", within_s=60)


def test_settings_are_checked_compared_stored_and_taken_back(look: Any, piped: LiveDaemon) -> None:
    file = piped.workspace / "agent.yaml"
    before = file.read_text()
    visitor = look("#/settings")
    box = visitor.page.get_by_role("textbox", name="agent.yaml")
    expect(box).to_have_value(before)
    told = visitor.page.locator(".checked")
    box.fill(f"{before}\nsearch:\n  alpha: 7\n")
    expect(told).to_contain_text("search.alpha")
    expect(visitor.page.get_by_role("button", name="Compare and store")).to_be_disabled()
    box.fill(f"{before}\nsearch:\n  alpha: 0.55\n")
    expect(told).to_contain_text("Valid")
    expect(visitor.page.locator(".set-keys")).to_contain_text("search.alpha")
    expect(visitor.page.locator(".set-keys")).not_to_contain_text("`")
    box.press("Control+Enter")
    expect(visitor.page.locator(".settings ins")).to_contain_text("alpha:")
    assert file.read_text() == before
    visitor.press("Control+Enter")
    expect(visitor.page.locator(".notice")).to_contain_text("Stored")
    assert "alpha: 0.55" in file.read_text()
    visitor.press("u")
    expect(visitor.page.locator(".notice")).to_contain_text("As it was before")
    assert file.read_text() == before
