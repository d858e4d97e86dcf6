"""Memories, by the keyboard alone: find, open, edit, pin, tag, forget, recover, undo."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.support.live_daemon import LiveDaemon
from tests.support.web_page import NARROW, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]


def lines(visitor: Visitor) -> Any:
    return visitor.page.locator("section.list .line")


def notice(visitor: Visitor) -> Any:
    return visitor.page.get_by_role("status").filter(has=visitor.page.get_by_role("button", name="Close"))


def search(visitor: Visitor, words: str) -> None:
    """Type into the search, and leave it when the results are there."""
    visitor.press("/")
    visitor.page.keyboard.type(words)
    expect(visitor.page.locator(".found")).to_contain_text("found in")
    visitor.press("Escape")


def test_a_search_answers_while_it_is_typed_and_says_why(visit: Visit) -> None:
    visitor = visit("#/memories")
    search(visitor, "port of the staging database")
    expect(lines(visitor).first).to_contain_text("listens on port 5433")
    expect(lines(visitor).first.locator(".relevance")).to_have_attribute(
        "aria-label", "relevance 1.00, most likely answers"
    )
    visitor.press("Enter")
    why = visitor.page.locator(".why")
    expect(why).to_contain_text("words that were asked for")
    expect(visitor.page).to_have_url(re.compile("q=port"))
    assert not any("staging" in request for request in visitor.requests), "no question is part of an address"


def test_a_memory_is_corrected_in_place_and_the_correction_is_undone(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The wiki of the aquarium is at port 8801")["id"]
    visitor = visit("#/memories")
    search(visitor, "wiki of the aquarium")
    visitor.press("Enter")
    expect(visitor.page.locator(".detail > .text")).to_be_visible()
    visitor.press("e")
    box = visitor.page.get_by_role("textbox", name="Text", exact=True)
    expect(box).to_be_focused()
    visitor.press("Control+A")
    visitor.page.keyboard.type("The wiki of the aquarium is at port 8802")
    visitor.press("Control+Enter")
    expect(notice(visitor)).to_contain_text("Saved.")
    expect(visitor.page.locator(".detail > .text")).to_have_text("The wiki of the aquarium is at port 8802")
    story = visitor.page.locator(".story")
    expect(story.locator("del")).to_have_text("8801")
    expect(story.locator("ins")).to_have_text("8802")
    assert daemon.api.memory(memory)["content"].endswith("8802")
    visitor.press("u")
    expect(notice(visitor)).to_contain_text("As it was before")
    expect(visitor.page.locator(".detail > .text")).to_have_text("The wiki of the aquarium is at port 8801")
    assert daemon.api.memory(memory)["content"].endswith("8801")


def test_an_edit_of_a_memory_that_was_changed_meanwhile_loses_neither_text(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The lighthouse has a red lamp")["id"]
    visitor = visit(f"#/memory/{memory}")
    visitor.allowed = {409}
    expect(visitor.page.locator(".detail > .text")).to_be_visible()
    visitor.press("e")
    daemon.api.request("PATCH", f"/api/memory/{memory}", {"content": "The lighthouse has a green lamp", "reason": "x"})
    visitor.page.keyboard.type(" and a horn")
    visitor.press("Control+Enter")
    editor = visitor.page.locator(".editor")
    expect(editor).to_contain_text("It was changed meanwhile")
    expect(editor.locator("ins")).to_contain_text("green")
    assert daemon.api.memory(memory)["content"] == "The lighthouse has a green lamp"
    editor.get_by_role("button", name="Keep mine").press("Enter")
    editor.get_by_role("button", name="Save").press("Enter")
    expect(notice(visitor)).to_contain_text("Saved.")
    assert daemon.api.memory(memory)["content"] == "The lighthouse has a red lamp and a horn"


def test_three_memories_are_forgotten_and_come_back(visit: Visit, daemon: LiveDaemon) -> None:
    ids = [
        daemon.api.remember(f"Penguin number {number} is called Pip", project="/zoo", pinned=number == 1)["id"]
        for number in (1, 2, 3)
    ]
    visitor = visit("#/memories?project=/zoo")
    expect(lines(visitor)).to_have_count(3)
    visitor.press("x", "j", "j", "X")
    expect(visitor.page.get_by_role("toolbar")).to_contain_text("3 selected")
    visitor.press("f")
    expect(notice(visitor)).to_contain_text("Forgotten: 3 memories")
    expect(lines(visitor)).to_have_count(0)
    assert [daemon.api.get(f"/api/memory/{one}").status for one in ids] == [404] * 3
    visitor.press("u")
    expect(notice(visitor)).to_contain_text("Recovered: 3 memories")
    expect(lines(visitor)).to_have_count(3)
    assert [daemon.api.get(f"/api/memory/{one}").status for one in ids] == [200] * 3


def test_a_memory_that_is_edited_stays_in_the_list_of_the_search(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The lighthouse has 212 steps", project="/lamps")["id"]
    visitor = visit("#/memories?project=/lamps&q=212+steps")
    expect(lines(visitor)).to_have_count(1)
    visitor.press("Enter")
    expect(visitor.page.locator(".detail > .text")).to_be_visible()
    visitor.press("e", "Control+A")
    visitor.page.keyboard.type("Nobody climbs up there")
    visitor.press("Control+Enter")
    expect(notice(visitor)).to_contain_text("Saved")
    expect(lines(visitor)).to_contain_text("Nobody climbs up there")
    expect(lines(visitor)).to_contain_text("does not fit the search")
    assert daemon.api.memory(memory)["content"] == "Nobody climbs up there"
    visitor.press("f")
    expect(lines(visitor)).to_have_count(0)


def test_a_memory_that_was_forgotten_before_is_found_and_recovered(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The otter sleeps at noon", project="/otters")["id"]
    daemon.api.request("DELETE", f"/api/memory/{memory}", {"reason": "r"})
    visitor = visit("#/memories?project=/otters&q=when+does+the+otter+sleep")
    visitor.page.get_by_role("button", name="Show what is forgotten").press("Enter")
    expect(lines(visitor)).to_contain_text("recoverable until")
    visitor.press("/")
    visitor.page.keyboard.type("OTTER moon")
    expect(visitor.page.locator(".empty")).to_have_text("Nothing with these words is forgotten in otters.")
    visitor.press("Control+A")
    visitor.page.keyboard.type("OTTER noo")
    expect(lines(visitor)).to_have_count(1)
    visitor.press("Escape", "r")
    expect(notice(visitor)).to_contain_text("Recovered")
    assert daemon.api.get(f"/api/memory/{memory}").status == 200


def test_pins_and_tags_are_set_and_taken_back(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The heron stands still", project="/herons", tags=["bird"])["id"]
    visitor = visit("#/memories?project=/herons")
    expect(lines(visitor)).to_have_count(1)
    visitor.press("p")
    expect(lines(visitor)).to_contain_text("pinned")
    visitor.press("u")
    expect(lines(visitor)).not_to_contain_text("pinned")
    visitor.press("t")
    expect(visitor.page.get_by_label("Add tags to 1 memory")).to_be_focused()
    visitor.page.keyboard.type("grey, still")
    visitor.press("Enter")
    expect(notice(visitor)).to_contain_text("Tagged")
    assert daemon.api.memory(memory)["tags"] == "bird,grey,still"
    visitor.press("u")
    expect(notice(visitor)).to_contain_text("As it was before")
    assert daemon.api.memory(memory)["tags"] == "bird"


def test_an_empty_list_says_how_many_are_outside_of_the_scope(visit: Visit) -> None:
    visitor = visit("#/memories?project=/empty")
    expect(visitor.page.locator(".empty")).to_contain_text("are outside of this project")
    visitor.page.get_by_role("button", name="Show", exact=True).press("Enter")
    expect(lines(visitor)).not_to_have_count(0)


def test_the_scope_is_in_every_link_and_another_agent_has_its_own_memories(visit: Visit) -> None:
    visitor = visit("#/memories?agent=reviewer&type=preference")
    expect(lines(visitor).filter(has_text="Reviews begin with the tests")).to_have_count(1)
    expect(visitor.page.get_by_role("link", name="Memories")).to_have_attribute("href", "#/memories?agent=reviewer")
    other = visit("#/memories?type=preference")
    expect(lines(other)).not_to_have_count(0)
    expect(lines(other).filter(has_text="Reviews begin with the tests")).to_have_count(0)


def test_the_daemon_stops_during_an_edit_and_the_text_is_kept(browser: Any, daemon: LiveDaemon) -> None:
    from tests.support.live_daemon import live_daemon

    with live_daemon() as own:
        memory = own.api.remember("The barn owl hunts at dusk")["id"]
        visitor = Visitor(browser, own)
        visitor.open(f"#/memory/{memory}")
        expect(visitor.page.locator(".detail > .text")).to_be_visible()
        visitor.press("e")
        visitor.page.keyboard.type(", and at dawn")
        own.kill_supervisor()
        visitor.press("Control+Enter")
        expect(visitor.page.locator(".editor")).to_contain_text("Not saved")
        expect(visitor.page.get_by_role("textbox", name="Text", exact=True)).to_have_value(
            "The barn owl hunts at dusk, and at dawn"
        )
        visitor.close()


def test_keys_are_listed_and_can_be_switched_off(visit: Visit) -> None:
    visitor = visit("#/memories")
    expect(lines(visitor)).not_to_have_count(0)
    visitor.press("?")
    dialog = visitor.page.get_by_role("dialog")
    for text in ("forget", "pin or unpin", "undo the last change", "go to Memories"):
        expect(dialog).to_contain_text(text)
    dialog.get_by_label("Single letters as keys").select_option("off")
    visitor.press("Escape")
    expect(dialog).to_have_count(0)
    visitor.press("t")
    expect(visitor.page.get_by_label("Add tags to 1 memory")).to_have_count(0)
    visitor.press("?")
    expect(dialog).to_have_count(1)


def test_a_slash_leads_to_the_search_from_any_screen(visit: Visit) -> None:
    visitor = visit()
    expect(visitor.page.locator(".headline")).to_be_visible()
    visitor.press("/")
    expect(visitor.page.get_by_role("searchbox", name="Search memories")).to_be_focused()
    visitor.page.keyboard.type("port of the staging database")
    expect(lines(visitor).first).to_contain_text("listens on port 5433")


def test_an_id_leads_to_its_memory_by_ctrl_k(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The badger digs")["id"]
    visitor = visit("#/memories")
    visitor.press("Control+k")
    visitor.page.keyboard.type(memory[:18])
    expect(visitor.page.get_by_role("dialog")).to_contain_text("The badger digs")
    visitor.press("Enter")
    expect(visitor.page.locator(".detail > .text")).to_have_text("The badger digs")


def test_on_a_telephone_a_memory_opens_over_the_list(visit: Visit) -> None:
    visitor = visit("#/memories?q=port", viewport=NARROW)
    lines(visitor).first.locator("a").click()
    expect(visitor.page.locator(".detail > .text")).to_be_visible()
    assert not visitor.is_too_wide()
    visitor.press("Escape")
    expect(visitor.page.locator(".detail")).to_have_count(0)


def test_what_probably_does_not_answer_is_folded_and_unfolded_by_a_key(visit: Visit) -> None:
    visitor = visit("#/memories")
    search(visitor, "port of the staging database")
    expect(lines(visitor)).to_have_count(1)
    fold = visitor.page.get_by_role("button", name="more that probably do not answer")
    expect(fold).to_be_visible()
    visitor.press("v")
    expect(fold).to_have_count(0)
    expect(lines(visitor)).not_to_have_count(1)
    shown = [float(text) for text in visitor.page.locator("section.list .relevance .digits").all_text_contents()]
    assert shown == sorted(shown, reverse=True)
    assert all(value < 0.5 for value in shown[1:])


def test_a_chip_counts_what_it_leaves_under_the_other_conditions(visit: Visit, daemon: LiveDaemon) -> None:
    base = {"project": "/fields"}
    for number, (kind, tag) in enumerate([("fact", "hay"), ("fact", "oats"), ("rule", "hay")]):
        daemon.api.remember(f"Field {number} was mown in week {number + 20}", type=kind, tags=[tag], **base)
    gone = daemon.api.remember("Field 9 was sold to the mill", type="rule", tags=["hay"], **base)["id"]
    daemon.api.request("DELETE", f"/api/memory/{gone}", {"reason": "r"}).ok()
    visitor = visit("#/memories?project=/fields&tags=hay")
    expect(lines(visitor)).to_have_count(2)
    chips = visitor.page.get_by_role("group", name="Filters")
    expect(chips.get_by_role("button", name="fact 1")).to_be_visible()
    visitor.press("f")
    expect(chips.get_by_role("button", name="Forgotten 2")).to_be_visible()
    visitor.press("u")
    expect(chips.get_by_role("button", name="Forgotten 1")).to_be_visible()
    chips.get_by_role("button", name="rule 1").press("Enter")
    expect(lines(visitor)).to_have_count(1)
    expect(chips.get_by_role("button", name="fact 1")).to_be_visible()
    chips.get_by_role("button", name="Forgotten 1").press("Enter")
    expect(lines(visitor)).to_have_count(1)
    expect(lines(visitor)).to_contain_text("Field 9")


def test_a_change_of_this_page_is_not_announced_to_it(visit: Visit, daemon: LiveDaemon) -> None:
    daemon.api.remember("The kestrel hovers over field 4", project="/kestrels")
    visitor = visit("#/memories?project=/kestrels", clock=True)
    beside = visitor.watched(visitor.context.new_page())
    beside.goto(f"{visitor.base}/#/memories?project=/kestrels")
    expect(beside.locator(".line")).to_have_count(1)
    expect(lines(visitor)).to_have_count(1)
    visitor.press("Enter")
    expect(visitor.page.locator(".detail > .text")).to_be_visible()
    visitor.press("e")
    visitor.page.keyboard.type(", at noon")
    visitor.press("Control+Enter")
    expect(notice(visitor)).to_contain_text("Saved.")
    expect(visitor.page.locator(".detail > .text")).to_contain_text("at noon")
    expect(beside.locator(".line")).to_contain_text("at noon")  # so both tabs have heard of the change
    visitor.pass_s(2)
    told = visitor.page.get_by_role("button", name="Something was stored")
    expect(told).to_have_count(0)
    daemon.api.remember("Another kestrel came", project="/kestrels")
    expect(told).to_be_visible()


def test_memories_move_to_another_project_and_back(visit: Visit, daemon: LiveDaemon) -> None:
    first = daemon.api.remember("The millstone turns at dawn", project="/mill")["id"]
    second = daemon.api.remember("The miller rests on Sunday", project="/mill")["id"]
    visitor = visit("#/memories?project=/mill")
    expect(lines(visitor)).to_have_count(2)
    visitor.press("x", "j", "x", "m")
    expect(visitor.page.get_by_label("Move 2 memories to the project")).to_be_focused()
    visitor.page.keyboard.type("/home/ada/shop")
    visitor.press("Enter")
    expect(notice(visitor)).to_contain_text("Moved 2 memories to shop")
    expect(lines(visitor)).to_have_count(0)
    assert {daemon.api.memory(one)["project"] for one in (first, second)} == {"/home/ada/shop"}
    visitor.press("u")
    expect(lines(visitor)).to_have_count(2)
    visitor.open(f"#/memory/{first}")
    expect(visitor.page.get_by_label("Project").last).to_have_value("/mill")
    visitor.press("m", "Delete", "Enter")
    expect(notice(visitor)).to_contain_text("to no project")
    assert daemon.api.memory(first)["project"] is None
    visitor.press("Escape")
    expect(visitor.page.locator("#project:focus")).to_have_count(0)
    visitor.press("u")
    expect(notice(visitor)).to_contain_text("As it was before")
    assert daemon.api.memory(first)["project"] == "/mill"


def test_a_memory_stays_where_it_is_when_the_field_of_its_project_is_left(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The weir opens in April", project="/weir", tags=["river"])["id"]
    for left in ("Tab", "Escape"):
        visitor = visit(f"#/memory/{memory}")
        expect(visitor.page.locator("#project")).to_have_value("/weir")
        visitor.press("m", "Delete")
        visitor.page.keyboard.type("/ty")
        visitor.press(left)
        expect(visitor.page.locator("#project:focus")).to_have_count(0)
    visitor = visit(f"#/memory/{memory}")
    tags = visitor.page.get_by_label("Tags", exact=True)
    tags.fill("half")
    tags.press("Escape")
    expect(tags).to_have_count(0)
    visitor.settle()
    kept = daemon.api.memory(memory)
    assert (kept["project"], kept["tags"], kept["version"]) == ("/weir", "river", 1)


def test_a_tag_is_added_to_those_that_an_agent_has_set_meanwhile(visit: Visit, daemon: LiveDaemon) -> None:
    memory = daemon.api.remember("The sluice leaks a little", project="/sluice", tags=["water"])["id"]
    visitor = visit("#/memories?project=/sluice")
    expect(lines(visitor)).to_have_count(1)
    visitor.press("t")
    expect(visitor.page.get_by_label("Add tags to 1 memory")).to_be_focused()
    daemon.api.request("PATCH", f"/api/memory/{memory}", {"tags": ["water", "urgent"], "reason": "r"}).ok()
    visitor.page.keyboard.type("mine")
    visitor.press("Enter")
    expect(notice(visitor)).to_contain_text("Tagged")
    assert set(daemon.api.memory(memory)["tags"].split(",")) == {"water", "urgent", "mine"}
    visitor.press("u")
    expect(notice(visitor)).to_contain_text("As it was before")
    assert set(daemon.api.memory(memory)["tags"].split(",")) == {"water", "urgent"}


def test_the_change_of_a_very_long_memory_is_shown_soon(visit: Visit, daemon: LiveDaemon) -> None:
    text = " ".join(f"step{number}" for number in range(25_000))
    memory = daemon.api.remember("A short text at first", project="/long")["id"]
    for last in ("one", "two"):
        daemon.api.request("PATCH", f"/api/memory/{memory}", {"content": f"{text} {last}", "reason": "r"}).ok()
    visitor = visit(f"#/memory/{memory}")
    expect(visitor.page.locator("main ins").first).to_have_text("two", timeout=20_000)
