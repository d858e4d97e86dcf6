"""The map: the list beside it has every point, and what keys or a lasso select is changed, and changed back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.web_page import NARROW, WIDE, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]
EXTENT = 230
"""Half of what the map shows at first in its shorter direction."""
MEMORIES = 230
PROJECT = "/home/ada/harbour"
SAID = (
    "Ship number {0} has {1} masts and moors at pier {2}",
    "The bakery of street {0} sells {1} kinds of bread until {2} o'clock",
    "Ticket {0}: the login form forgets the password after {1} tries and {2} minutes",
    "Professor {0} explains the {1} moons of planet {2}",
)


@pytest.fixture(scope="module")
def daemon(browser: Any) -> Iterator[LiveDaemon]:
    """A daemon with more memories than the list has at first, three of them in a project, and a small graph."""
    with live_daemon(patient=True) as started:
        client = started.api
        crane = {
            "entities": [{"source": "Crane", "relationship": "uses", "target": "Diesel", "targetType": "tool"}],
            "aspects": [{"entity": "Crane", "aspect": "load", "attributes": ["lifts 40 tons", "stands on pier 3"]}],
        }
        client.remember("The crane lifts ships of 40 tons", structured=crane, project=PROJECT)
        for number in range(1, MEMORIES):
            place = {"project": PROJECT} if number < 3 else {}
            client.remember(SAID[number % len(SAID)].format(number, number % 7, number % 11), **place)
        eventually(
            lambda: client.get("/api/repair/embedding-gaps").ok()["unembedded"] == 0, within_s=120, what="vectors"
        )
        yield started


def lines(visitor: Visitor) -> Any:
    return visitor.page.get_by_label("In view").locator(".line")


def in_view(visitor: Visitor) -> Any:
    return visitor.page.get_by_label("In view").get_by_role("status")


def opened(visit: Visit) -> Visitor:
    visitor = visit("#/map")
    expect(in_view(visitor)).to_contain_text("in view", timeout=60_000)
    return visitor


def drag(visitor: Visitor, *path: tuple[float, float]) -> None:
    """Press the mouse, go along the path, and release it. A position is a share of the drawing's width and height."""
    box = visitor.page.locator("canvas").bounding_box()
    mouse = visitor.page.mouse
    places = [(box["x"] + across * (box["width"] - 1), box["y"] + down * (box["height"] - 1)) for across, down in path]
    mouse.move(*places[0])
    mouse.down()
    for place in places[1:]:
        mouse.move(*place, steps=8)
    mouse.up()


def test_the_first_map_is_announced_while_it_is_made(visit: Visit) -> None:
    visitor = visit("#/map/names")
    visitor.press("v")
    expect(visitor.page.get_by_text(f"The map of {MEMORIES} memories is being made")).to_be_visible()
    expect(in_view(visitor)).to_have_text(f"{MEMORIES} of {MEMORIES} memories in view", timeout=60_000)


def test_the_list_has_every_point_two_hundred_at_first(visit: Visit, daemon: LiveDaemon) -> None:
    visitor = opened(visit)
    expect(lines(visitor)).to_have_count(200)
    visitor.follow(visitor.page.get_by_role("button", name="Show more"), by="Shift+Tab")
    expect(lines(visitor)).to_have_count(MEMORIES)
    nodes = daemon.api.get("/api/embeddings/projection").ok()["nodes"]
    assert sorted(lines(visitor).locator(".words").all_text_contents()) == sorted(node["content"] for node in nodes)


def test_memories_are_selected_forgotten_and_brought_back_by_keys(visit: Visit, daemon: LiveDaemon) -> None:
    visitor = visit("#/memories?project=/home/ada/harbour")
    visitor.press("g", "p")
    expect(visitor.page.get_by_role("link", name="Map", exact=True)).to_have_attribute("aria-current", "page")
    expect(in_view(visitor)).to_have_text("3 of 3 memories in view", timeout=60_000)
    ids = [node["id"] for node in daemon.api.get("/api/embeddings/projection", project=PROJECT).ok()["nodes"]]
    visitor.press("x", "j", "X", "f")
    expect(visitor.page.locator(".notice")).to_contain_text("Forgotten: 2 memories")
    expect(in_view(visitor)).to_have_text("1 of 1 memory in view")
    assert [daemon.api.get(f"/api/memory/{one}").status for one in ids] == [404, 404, 200]
    visitor.press("u")
    expect(visitor.page.locator(".notice")).to_contain_text("Recovered: 2 memories")
    expect(in_view(visitor)).to_have_text("3 of 3 memories in view")
    visitor.press("a")
    expect(visitor.page.get_by_role("toolbar")).to_contain_text("3 selected")
    visitor.press("Escape")
    expect(visitor.page.get_by_role("toolbar")).to_have_count(0)
    visitor.press("?")
    texts = ("go to Map", "select with a lasso", "select all in view", "enlarge the map", "move the map")
    for text in (*texts, "move to a project"):
        expect(visitor.page.get_by_role("dialog")).to_contain_text(text)


def test_the_list_has_what_is_in_view_while_the_map_is_moved_and_enlarged_by_keys(visit: Visit) -> None:
    visitor = opened(visit)
    visitor.press("+", "+", "+", "+")
    expect(in_view(visitor)).not_to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")
    visitor.press(*["ArrowRight"] * 60)
    expect(in_view(visitor)).to_have_text(f"0 of {MEMORIES} memories in view")
    visitor.press("0")
    expect(in_view(visitor)).to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")
    visitor.page.set_viewport_size(NARROW)
    visitor.settle()  # a drawing that is no longer whole would have said so
    expect(in_view(visitor)).to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")
    visitor.page.set_viewport_size(WIDE)
    box = visitor.page.locator("canvas").bounding_box()
    visitor.page.mouse.move(box["x"] + 5, box["y"] + 5)
    visitor.page.mouse.wheel(0, -2000)
    visitor.page.mouse.wheel(0, -2000)
    expect(in_view(visitor)).not_to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")


def test_a_map_that_is_enlarged_by_keys_keeps_something_in_view(visit: Visit) -> None:
    visitor = opened(visit)
    expect(in_view(visitor)).to_contain_text(f"{MEMORIES} of {MEMORIES}")
    visitor.press(*["+"] * 8)
    expect(in_view(visitor)).not_to_contain_text(f"{MEMORIES} of")
    expect(lines(visitor).first).to_be_visible()


@pytest.mark.parametrize("how", ["shift", "key"])
def test_a_lasso_selects_the_points_within_it_and_no_others(visit: Visit, daemon: LiveDaemon, how: str) -> None:
    visitor = opened(visit)
    box = visitor.page.locator("canvas").bounding_box()
    scale = min(box["width"], box["height"]) / (2 * EXTENT)
    places = sorted(node["x"] * scale for node in daemon.api.get("/api/embeddings/projection").ok()["nodes"])
    within = max(range(5, 20), key=lambda count: places[count] - places[count - 1])
    edge = 0.5 + (places[within - 1] + places[within]) / 2 / box["width"]
    assert 0 < edge < 0.5
    if how == "shift":
        visitor.page.keyboard.down("Shift")
    else:
        visitor.press("l")
    drag(visitor, (0, 0), (edge, 0), (edge, 1), (0, 1))
    visitor.page.keyboard.up("Shift")
    expect(visitor.page.get_by_role("toolbar")).to_contain_text(f"{within} selected")
    visitor.press("t")
    visitor.page.keyboard.type("left")
    visitor.press("Enter")
    expect(visitor.page.locator(".notice")).to_contain_text("Tagged")
    assert len(daemon.api.get("/api/memories", tags="left", limit=500).ok()["memories"]) == within
    visitor.press("u")
    expect(visitor.page.locator(".notice")).to_contain_text("As it was before")
    assert daemon.api.get("/api/memories", tags="left").ok()["memories"] == []


def test_a_point_is_opened_by_a_click_and_a_drag_moves_the_map(visit: Visit, daemon: LiveDaemon) -> None:
    visitor = opened(visit)
    box = visitor.page.locator("canvas").bounding_box()
    scale = min(box["width"], box["height"]) / (2 * EXTENT)
    node = max(daemon.api.get("/api/embeddings/projection").ok()["nodes"], key=lambda node: node["x"])
    across, down = 0.5 + node["x"] * scale / box["width"], 0.5 + node["y"] * scale / box["height"]
    drag(visitor, (across, down))
    expect(visitor.page.locator(".detail > .text")).to_have_text(node["content"])
    visitor.press("Escape")
    expect(visitor.page.locator(".detail")).to_have_count(0)
    drag(visitor, (0.1, 0.9), (0.9, 0.9))
    expect(in_view(visitor)).not_to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")


@pytest.mark.parametrize("viewport", [NARROW, {"width": 1600, "height": 900}], ids=["narrow", "wide"])
def test_a_name_leads_to_what_is_known_of_it_and_to_its_memories(visit: Visit, viewport: dict[str, int]) -> None:
    visitor = visit("#/map/names", viewport=viewport)
    expect(in_view(visitor)).to_have_text("2 of 2 names in view")
    expect(lines(visitor)).to_have_count(2)
    assert not visitor.is_too_wide()
    visitor.follow(lines(visitor).filter(has_text="Crane").locator("a"))
    known = visitor.page.get_by_label("Name", exact=True)
    expect(known).to_contain_text("lifts 40 tons")
    expect(known).to_contain_text("uses Diesel")
    expect(known.locator(".line")).to_have_count(1)
    assert not visitor.is_too_wide()
    visitor.follow(known.get_by_role("link", name="Diesel"))
    expect(known).to_contain_text("Crane uses it")
    visitor.follow(known.locator(".line a"))
    expect(visitor.page.locator(".detail > .text")).to_have_text("The crane lifts ships of 40 tons")


PIXELS = """(name) => {
  const [canvas, probe] = [document.querySelector("canvas"), document.createElement("canvas").getContext("2d")];
  canvas.style.color = `var(--${name})`;
  probe.fillStyle = getComputedStyle(canvas).color;
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data;
  const { width, height } = canvas, { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const rows = new Map();
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] === 255 && [0, 1, 2].every((part) => data[at + part] === wanted[part]))
      rows.set(Math.floor(at / 4 / width), (rows.get(Math.floor(at / 4 / width)) || 0) + 1);
  return [...rows.values()];
}"""
"""Returns how many pixels of a colour each row of the drawing has, from above; rows without any are left out."""


def test_the_legend_names_colours_and_shapes_and_a_pinned_memory_is_a_triangle(
    visit: Visit, daemon: LiveDaemon
) -> None:
    keeper = daemon.agent("keeper")
    keeper.remember("The beacon is lit at dusk", pinned=True, visibility="private")
    unread = "/api/repair/embedding-gaps"
    eventually(lambda: daemon.api.get(unread).ok()["unembedded"] == 0, within_s=60, what="its vector")
    visitor = visit("#/map?agent=keeper")
    expect(in_view(visitor)).to_contain_text(f"{MEMORIES + 1} memories in view", timeout=60_000)
    legend = visitor.page.get_by_role("list", name="Legend").get_by_role("listitem")
    texts = legend.all_text_contents()
    assert {"fact", "preference", "decision", "learning", "issue", "rule", "▲ pinned"} <= {
        each.strip() for each in texts
    }
    visitor.settle()
    widths = visitor.page.evaluate(PIXELS, "pin")
    third = len(widths) // 3
    assert sum(widths[:third]) * 2 < sum(widths[-third:]), "it is narrow above and wide below"
    names = visit("#/map/names")
    expect(names.page.get_by_role("list", name="Legend")).to_contain_text("larger if more memories mention it")


def test_an_empty_map_says_why(visit: Visit) -> None:
    visitor = visit("#/map/names?agent=nobody-yet")
    expect(visitor.page.locator(".empty")).to_contain_text("Nothing is known by name yet")
    visitor.press("v")
    expect(visitor.page.locator(".empty")).to_contain_text("No memory is on the map")
    project = visit("#/map/names?project=/home/ada/moon")
    expect(project.page.locator(".empty")).to_contain_text("Nothing in moon is known by name yet")
    project.follow(project.page.get_by_role("button", name="Show all projects"))
    expect(in_view(project)).to_have_text("2 of 2 names in view")
    other = visit("#/map?project=/home/ada/moon")
    expect(other.page.locator(".empty")).to_contain_text("No memory of moon is on the map")
    other.follow(other.page.get_by_role("button", name="Show all projects"))
    expect(in_view(other)).to_have_text(f"{MEMORIES} of {MEMORIES} memories in view")
