"""Today and Sessions, by keys: whether memory works, what a prompt was given and why, and why not another memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.web_page import PROMPTS, SESSION, SHOP, Visitor, converse

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]


def prompt(visitor: Visitor, number: int) -> Any:
    return visitor.page.locator(f"#prompt-{number}")


def test_the_first_sentence_says_when_memory_was_last_asked_and_what_it_gave(visit: Visit) -> None:
    visitor = visit()
    headline = visitor.page.locator(".headline")
    expect(headline).to_contain_text("Working")
    expect(headline).to_contain_text("from claude-code")
    feed = visitor.page.locator(".feed li")
    expect(feed.filter(has_text="Which port has the staging database?")).to_contain_text("given 1 memory")
    expect(feed.filter(has_text="joke about penguins")).to_contain_text("no memory fits")


def test_a_new_store_names_the_first_steps_and_shows_the_first_prompt_when_it_comes(browser: Any) -> None:
    with live_daemon(patient=True) as own:
        visitor = Visitor(browser, own, clock=True)
        visitor.open()
        expect(visitor.page.locator(".headline")).to_contain_text("No prompt has come yet")
        expect(visitor.page.locator(".first")).to_contain_text("signet setup")
        converse(own)
        headline = visitor.page.locator(".headline")

        def said(words: str) -> bool:
            visitor.pass_s(5)
            return words in headline.inner_text()

        eventually(lambda: said("from claude-code: no memory fits."), what="the last prompt is named")
        expect(headline).to_contain_text("Working")
        own.api.remember("The staging database listens on port 5433", project=SHOP)
        converse(own, "second", {"Which port has the staging database?": "5433.", "Tell me a joke": "No."})
        eventually(lambda: said("Before it"), what="so is the one before that was given something")
        assert visitor.close() == []


def test_a_long_session_is_shown_as_it_is_now(browser: Any) -> None:
    asked = {f"What is in crate {number}?": f"Rope {number}." for number in range(210)}
    base = {"harness": "claude-code", "sessionKey": "long", "project": SHOP}
    with live_daemon(patient=True) as own:
        visitor = Visitor(browser, own, clock=True)
        turns = visitor.page.locator(".turn .text")

        def becomes(wanted: list[str]) -> None:
            def is_shown() -> bool:
                visitor.pass_s(10)
                return bool(turns.all_inner_texts() == wanted)

            eventually(is_shown, what=f"the {len(wanted)} turns are shown")

        for each in asked:
            own.api.post("/api/hooks/user-prompt-submit", {**base, "userMessage": each}).ok()
        visitor.open("#/session/long")
        becomes(list(asked))
        seen = len(visitor.requests)
        visitor.pass_s(10)
        again = [one for one in visitor.requests[seen:] if "/conversation" in one]
        assert again
        assert all("limit=1" in one for one in again), "what is the same is not read again"
        said = "\n".join(f"User: {prompt}\nAssistant: {answer}" for prompt, answer in asked.items())
        own.api.post("/api/hooks/session-end", {**base, "transcript": said}).ok()
        whole = [text for pair in asked.items() for text in pair]
        becomes(whole)
        later = "Which crate is empty?"
        own.api.post("/api/hooks/user-prompt-submit", {**base, "userMessage": later}).ok()
        becomes([*whole, later])
        own.api.request("DELETE", "/api/sessions/long/transcript").ok()
        becomes([])
        expect(visitor.page.locator(".turn .said").last).to_contain_text("The text was erased.")
        assert visitor.close() == []


def test_a_session_is_found_by_what_was_said_in_it(visit: Visit) -> None:
    visitor = visit("#/sessions")
    expect(visitor.page.locator(".line").first).to_be_visible()
    visitor.press("/")
    visitor.page.keyboard.type("penguins")
    expect(visitor.page.locator(".line")).to_have_count(1)
    expect(visitor.page.locator(".line")).to_contain_text("joke about penguins")
    visitor.press("Control+A")
    visitor.page.keyboard.type("zeppelins")
    expect(visitor.page.locator(".empty")).to_have_text("No session has these words.")


def test_a_prompt_is_followed_to_what_it_was_given_and_why(visit: Visit) -> None:
    visitor = visit("#/sessions")
    expect(visitor.page.locator(".line").first).to_contain_text("Which port has the staging database?")
    visitor.press("Enter")
    first = prompt(visitor, 1)
    expect(first.locator(".given")).to_contain_text("Given 1 memory")
    expect(first.locator(".given")).to_contain_text("The staging database listens on port 5433")
    expect(first.locator(".given")).to_contain_text("seems used")
    expect(prompt(visitor, 2).locator(".given")).to_contain_text("No memory fits")
    visitor.press("j", "j", "j")
    expect(visitor.page).to_have_url(re.compile(rf"#/session/{SESSION}/3$"))
    third = prompt(visitor, 3)
    expect(third.locator(".given")).to_contain_text("Nothing new, because the session had what fits")
    had = third.locator(".given > ul > li")
    expect(had).to_have_count(1)
    expect(had).to_contain_text("the session already had it: it was given at its start")
    turns = visitor.page.locator(".turn .said .text").all_inner_texts()
    assert turns == [text for pair in PROMPTS.items() for text in pair]
    visitor.press("Escape")
    expect(visitor.page.get_by_role("link", name="Sessions", exact=True)).to_have_attribute("aria-current", "page")


def test_a_memory_that_was_expected_is_named_and_its_fate_is_told(visit: Visit, daemon: LiveDaemon) -> None:
    later = daemon.api.remember("Penguins joke about the staging ice in a second language")["id"]
    visitor = visit(f"#/session/{SESSION}/3")
    expect(prompt(visitor, 3)).to_be_visible()
    visitor.press("w")
    visitor.page.keyboard.type("never log access tokens")
    visitor.press("Enter")
    told = prompt(visitor, 3).locator(".why-not")
    expect(told.get_by_role("button").first).to_contain_text("Never log access tokens")
    told.get_by_role("button").first.press("Enter")
    expect(told).to_contain_text("At that time it was left out: the session already had it.")
    expect(told).to_contain_text("The same as then. How it fits:")
    expect(told).to_contain_text("It has")
    box = prompt(visitor, 2).locator(".why-not input")
    box.fill(later)
    box.press("Enter")
    second = prompt(visitor, 2).locator(".why-not")
    second.get_by_role("button").first.press("Enter")
    expect(second).to_contain_text("At that time it did not exist.")
    box.fill("never log access tokens")
    box.press("Enter")
    second.get_by_role("button", name="Never log access tokens").press("Enter")
    expect(second).to_contain_text("The session was given it at its start.")
    second.get_by_role("button", name="Close").press("Enter")
    expect(second.locator(".told")).to_have_count(0)


def test_what_a_prompt_would_be_given_today_is_compared_with_what_it_was_given(browser: Any) -> None:
    with live_daemon(patient=True) as own:
        old = own.api.remember("The heating runs on channel 11", project=SHOP)["id"]
        converse(own, prompts={"On which channel does the heating run?": "On channel 11."})
        visitor = Visitor(browser, own)
        visitor.open(f"#/session/{SESSION}/1")
        given = prompt(visitor, 1).locator(".given")
        expect(given).to_contain_text("channel 11")
        given.get_by_role("button", name="What would it be given today?").press("Enter")
        expect(given.locator(".told")).to_contain_text("given 1 memory, the same")
        own.api.request("DELETE", f"/api/memory/{old}", {"reason": "r"}).ok()
        visitor.open("#/sessions")
        visitor.open(f"#/session/{SESSION}/1")
        given.get_by_role("button", name="What would it be given today?").press("Enter")
        expect(given.locator(".told")).to_contain_text("given nothing")
        expect(given.locator(".told")).to_contain_text("a memory that is forgotten")
        assert visitor.close() == []


def test_a_session_whose_transcript_was_erased_says_so(visit: Visit, daemon: LiveDaemon) -> None:
    converse(daemon, "erased-1", {"What is the colour of the ferry?": "White."})
    daemon.api.request("DELETE", "/api/sessions/erased-1/transcript", {}).ok()
    visitor = visit("#/session/erased-1")
    expect(visitor.page.locator("main")).to_contain_text("erased")
    expect(visitor.page.locator("main")).not_to_contain_text("colour of the ferry")


def test_each_line_says_why_it_was_given(visit: Visit) -> None:
    visitor = visit(f"#/session/{SESSION}")
    visitor.settle()
    visitor.page.locator("aside.given").get_by_role("button", name="Why was it given?").first.press("Enter")
    told = visitor.page.locator("aside.given li .told").first
    expect(told).to_contain_text("At that time it was given.")
    expect(told).to_contain_text("The same as then, because:")
    expect(told).not_to_contain_text("today")


def test_a_line_keeps_the_words_that_it_had_when_it_was_given(browser: Any) -> None:
    with live_daemon(patient=True) as own:
        memory = own.api.remember("The heating runs on channel 11", project=SHOP)["id"]
        converse(own, prompts={"On which channel does the heating run?": "On channel 11."})
        own.api.request("PATCH", f"/api/memory/{memory}", {"content": "The heating runs on channel 12", "reason": "r"})
        visitor = Visitor(browser, own)
        visitor.open(f"#/session/{SESSION}/1")
        given = prompt(visitor, 1).locator(".given > ul li")
        expect(given.locator("a").first).to_have_text("The heating runs on channel 11")
        given.get_by_text("These were its words then").press("Enter")
        expect(given.locator("del")).to_have_text("11")
        expect(given.locator("ins")).to_have_text("12")
        given.get_by_role("button", name="Why was it given?").click()
        expect(given.locator(".told")).to_contain_text("At that time it was given.")
        expect(given.locator(".told")).to_contain_text("Today it would be given, because:")
        own.api.request("DELETE", f"/api/memory/{memory}", {"reason": "r"}).ok()
        visitor.open("#/sessions")
        visitor.open(f"#/session/{SESSION}/1")
        expect(given).to_contain_text("forgotten since")
        expect(given).not_to_contain_text("channel")
        assert visitor.close() == []


def test_the_start_of_a_session_says_why_it_was_given_each_memory(visit: Visit) -> None:
    visitor = visit(f"#/session/{SESSION}")
    start = visitor.page.locator(".turn").first
    expect(start.locator(".given li").filter(has_text="Never log access tokens")).to_contain_text("it is pinned")
    for line in start.locator(".given li").all():
        expect(line.locator(".meta")).to_contain_text("it ")


def test_two_sessions_with_the_same_first_prompt_are_told_apart(visit: Visit, daemon: LiveDaemon) -> None:
    question = {"Where does the ferry land?": "At the pier."}
    converse(daemon, "0192ab34-1", question, SHOP, "codex")
    converse(daemon, "0192ab34-2", question, "/home/ada/api", "cursor")
    visitor = visit("#/sessions")
    rows = visitor.page.locator(".line").filter(has_text="Where does the ferry land?")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="codex")).to_contain_text("shop")
    expect(rows.filter(has_text="cursor")).to_contain_text("api")
    expect(rows.first).not_to_contain_text("0192ab34")
    rows.filter(has_text="cursor").get_by_role("link").press("Enter")
    expect(visitor.page.get_by_role("heading", name="Where does the ferry land?")).to_be_visible()


def test_a_card_shows_one_prompt_and_what_it_was_given_without_the_path(browser: Any) -> None:
    with live_daemon(patient=True) as own:
        own.api.remember(f"The ledger of {SHOP} is kept in ledger.db", project=SHOP)
        converse(own, prompts={f"Where is the ledger of {SHOP} kept?": "In ledger.db."})
        visitor = Visitor(browser, own)
        visitor.open(f"#/session/{SESSION}/1")
        expect(prompt(visitor, 1)).to_be_visible()
        visitor.press("s")
        card = visitor.page.get_by_role("dialog")
        expect(card).to_contain_text("Where is the ledger of shop kept?")
        expect(card).to_contain_text("The ledger of shop is kept in ledger.db")
        expect(card).not_to_contain_text("/home/ada")
        visitor.press("Escape")
        expect(card).to_have_count(0)
        prompt(visitor, 1).get_by_role("button", name="Show it as a card").click()
        expect(card).to_contain_text("The ledger of shop is kept in ledger.db")
        assert visitor.close() == []


def test_a_key_copies_the_link_to_what_is_shown(visit: Visit) -> None:
    for address in (f"#/session/{SESSION}/2", "#/memories?q=port"):
        visitor = visit(address)
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visitor.press("c")
        expect(visitor.page.locator(".notice")).to_contain_text("The link is copied")
        assert visitor.page.evaluate("() => navigator.clipboard.readText()") == f"{visitor.base}/{address}"


def test_today_lists_no_check_and_names_the_hours(visit: Visit, daemon: LiveDaemon) -> None:
    asked = {"harness": "codex", "userMessage": "What answers this prompt of a check?"}
    daemon.api.post("/api/hooks/user-prompt-submit", {**asked, "sessionKey": "signet-check-1"}).ok()
    daemon.api.post("/api/hooks/user-prompt-submit", {**asked, "userMessage": "Who asks last?", "sessionKey": "c"}).ok()
    visitor = visit()
    expect(visitor.page.locator(".feed li").first).to_contain_text("Who asks last?")
    expect(visitor.page.locator(".feed")).not_to_contain_text("of a check")
    expect(visitor.page.locator(".axis")).to_contain_text("24 h ago")


def test_health_today_and_the_top_of_each_screen_say_the_same(visit: Visit) -> None:
    visitor = visit()
    word = visitor.page.locator(".headline > span")
    expect(word).to_have_text("● Working")
    state = visitor.page.locator("header.top").get_by_role("status")
    expect(state).to_have_text("● Working")
    state.get_by_role("link").press("Enter")
    expect(visitor.page.get_by_role("link", name="Health", exact=True)).to_have_attribute("aria-current", "page")
    expect(word).to_have_text("● Working")
    expect(word).to_have_class("is-ok")
    visitor.open("#/today?agent=newcomer")
    expect(word).to_have_text("○ Ready")
    expect(state).to_have_text("○ Ready")


def test_the_story_of_a_memory_names_the_sessions_that_it_was_given_to(visit: Visit, daemon: LiveDaemon) -> None:
    question = "Which colour has the boat house of the harbour?"
    memory = daemon.api.remember("The boat house of the harbour is ochre", project="/harbour")["id"]
    converse(daemon, "harbour-1", {question: "Ochre."}, "/harbour")
    daemon.api.post("/api/memory/feedback", {"sessionKey": "harbour-1", "feedback": {memory: 0.8}}).ok()
    visitor = visit(f"#/memory/{memory}")
    story = visitor.page.locator(".story")
    expect(story).to_contain_text("Rated +0.8")
    expect(story).to_contain_text("Remembered ·")
    expect(story.locator("li").filter(has_text="Given to a session")).to_contain_text("claude-code")
    story.get_by_role("link", name="claude-code").first.press("Enter")
    expect(visitor.page.get_by_role("heading", name=question)).to_be_visible()


def test_the_share_of_prompts_that_were_given_nothing_leads_to_the_sessions_of_its_project(
    visit: Visit, daemon: LiveDaemon
) -> None:
    converse(daemon, "quay-1", {"Which tune does the quay whistle?": "None."}, "/home/ada/quay")
    visitor = visit()
    shares = visitor.page.locator(".by-project")
    expect(shares).to_contain_text("100 % of 1 prompt")
    shares.get_by_role("link", name="quay").click()
    rows = visitor.page.locator(".line")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Which tune does the quay whistle?")
