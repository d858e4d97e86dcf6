"""What holds for every screen: hostile texts stay texts, nothing is inaccessible, looking changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("playwright", reason="make test-browser installs it")
from playwright.sync_api import expect

from tests.browser.conftest import PICTURES
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.web_page import NARROW, SCREENS, SESSION, SHOP, WIDE, Visitor, converse, seed

pytestmark = [pytest.mark.browser, pytest.mark.system]

Visit = Callable[..., Visitor]

MARKUP = '"><img src=x onerror=alert(1)><script>alert(2)</script><a href="javascript:alert(3)">x</a>{{1+1}}${1}'
HIDDEN = "start \u202egnp.exe\u202c end \u2066\u200b\U000e0041 עברית 👩‍💻"
LONG = "w" * 100_000
HOSTILE = (MARKUP, HIDDEN, LONG)
MAX_NAME = 200
MODEL_USED = "INSERT INTO provider_usage (day, provider, model, calls) VALUES (date('now'), 'openai', ?, 1)"
MODEL_RUN = """
    INSERT INTO pipeline_runs (id, job_id, memory_id, agent_id, mode, provider, model, proposals, counts, created_at)
    VALUES (?, ?, ?, 'default', 'full', 'openai', ?, 0, '{}', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
"""
SEEN = """(state) => {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""The rules of axe whose outcome depends on colours, all that differs between the two schemes."""
VIOLATIONS = "(options) => axe.run(options).then((result) => result.violations)"
STATES: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((screen, ()) for screen in SCREENS),
    (f"#/session/{SESSION}/1", ("w",)),
    ("#/memories?q=port", ("Enter",)),
    ("#/map/names", ("Enter",)),
    ("#/map", ("x", "j", "x")),
    (f"#/memories?project={SHOP}", ("x", "t")),
    ("#/review", ("?",)),
)
"""What is looked at, one after the other in one tab: a screen, and the keys that are pressed on it."""


@pytest.fixture(scope="module")
def hostile(browser: Any) -> Iterator[LiveDaemon]:
    """A daemon with markup, hidden characters and words without an end in what callers choose, and in its log.

    What the API refuses (a type that is no name) is written into the database of the stopped daemon.
    """
    with live_daemon(patient=True) as daemon:
        for number, text in enumerate(HOSTILE):
            names = {"project": f"/home/{text[:MAX_NAME]}", "who": text[:MAX_NAME], "tags": [text[:80]]}
            entities = [{"source": text[:MAX_NAME], "relationship": text[:60], "target": f"{number} {text[:120]}"}]
            kept = daemon.api.remember(
                f"{text[:300]} {number}", pinned=number == 0, structured={"entities": entities}, **names
            )["id"]
            change = {"content": f"{text[:300]} changed {number}", "reason": text[:900]}
            daemon.api.request("PATCH", f"/api/memory/{kept}", change)
            daemon.api.remember(f"Known {text[:300]} {number}", structured=hostile_graph(text[:80], text[:300]))
            gone = daemon.api.remember(f"Forgotten {text[:300]} {number}")["id"]
            daemon.api.request("DELETE", f"/api/memory/{gone}", {"reason": text[:900]})
            converse(daemon, text[:120], {text[:2000]: text[:2000]}, f"/home/{text[:MAX_NAME]}", text[:60])
        assert daemon.stop() == 0
        daemon.edit("UPDATE memories SET type = ?, who = ? WHERE pinned = 1", MARKUP, HIDDEN)
        daemon.edit("UPDATE memories SET content = ?, type = ? WHERE content LIKE 'www%'", LONG, LONG)
        daemon.edit("UPDATE entities SET name = ?, entity_type = ? WHERE name LIKE 'www%'", LONG, LONG)
        daemon.edit("UPDATE entity_attributes SET content = ? WHERE content LIKE 'www%'", LONG)
        daemon.edit("UPDATE memory_history SET new_content = ?, changed_by = ? WHERE reason LIKE 'www%'", LONG, LONG)
        for text in HOSTILE:
            daemon.edit(MODEL_USED, text[:MAX_NAME])
            daemon.edit(MODEL_RUN, f"run-{text[:9]}", f"job-{text[:9]}", kept, text[:MAX_NAME])
        daemon.start()
        log = max((daemon.workspace / ".daemon" / "logs").glob("daemon-*.log"))
        with log.open("a") as file:
            for text in HOSTILE:
                line = {"timestamp": text[:40], "level": "error", "event": text, "actor": text[:80], "model": text}
                file.write(json.dumps(line) + "\n")
        yield daemon


def hostile_graph(name: str, text: str) -> dict[str, Any]:
    """Return what states an entity with such a name, a fact about it in such words, and what it is to another one."""
    return {
        "entities": [{"source": name, "relationship": "uses", "target": "Target"}],
        "aspects": [{"entity": name, "aspect": name, "attributes": [text]}],
    }


def hostile_addresses(daemon: LiveDaemon) -> list[str]:
    memories = [row["id"] for row in daemon.api.get("/api/memories", limit=50).ok()["memories"]]
    gone = [row["id"] for row in daemon.api.get("/api/memories", limit=50, deleted="true").ok()["memories"]]
    opened = [f"#/memory/{one}" for one in (*memories[:4], *gone[:2])]
    searched = "#/memories?q=" + "img+src+start+end"
    sessions = [quote(row["sessionKey"], safe="") for row in daemon.api.get("/api/sessions/past").ok()["sessions"]]
    assert len(sessions) == 3
    known = [row["id"] for row in daemon.api.get("/api/knowledge/constellation").ok()["entities"]]
    assert len(known) >= 4
    return [
        *SCREENS,
        *(f"#/map/names?open={one}" for one in known),
        *(f"#/session/{key}/1" for key in sessions),
        searched,
        f"{searched}&open={memories[-1]}",
        "#/memories?deleted=1",
        *opened,
        "#/%3Cimg%3E",
        "#/memory/%E0%A4%A",
    ]


def test_hostile_texts_stay_texts_on_all_screens(browser: Any, hostile: LiveDaemon) -> None:
    visitor = Visitor(browser, hostile)
    visitor.allowed = {404}  # the screen of a memory that does not exist
    for address in hostile_addresses(hostile):
        visitor.open(address)
        visitor.settle()
        for viewport in (NARROW, WIDE):
            visitor.page.set_viewport_size(viewport)
            assert not visitor.is_too_wide(), (address, viewport)
        assert (
            visitor.page.evaluate("() => document.querySelectorAll('main img, main script, main iframe').length") == 0
        )
        links = visitor.page.evaluate("() => [...document.links].map((one) => one.getAttribute('href'))")
        assert [link for link in links if not link.startswith("#")] == [], address
    shown = visitor.page.locator("main")
    visitor.open("#/memories")
    expect(visitor.page.locator(".line").filter(has_text="<img src=x onerror=alert(1)>").first).to_be_visible()
    expect(visitor.page.locator(".line").filter(has_text="⟦U+202E⟧gnp.exe").first).to_be_visible()
    for address in ("#/logs", "#/health", "#/review"):  # lines of the log, and names of models
        visitor.open(address)
        expect(shown.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
        expect(shown.get_by_text("⟦U+202E⟧gnp.exe").first).to_be_visible()
    assert visitor.close() == []


def test_nothing_on_any_screen_is_inaccessible(visit: Visit) -> None:
    """In both sizes and colour schemes, all of which style sheets alone decide, so each state is opened once."""
    from axe_playwright_python.base import AXE_SCRIPT

    visitor = visit(reduced_motion="reduce")  # no colour is on its way from one scheme to the other
    visitor.context.add_init_script(AXE_SCRIPT)
    found = []
    PICTURES.mkdir(parents=True, exist_ok=True)
    for number, (address, keys) in enumerate(STATES):
        visitor.open(address)
        visitor.settle()
        if keys:
            visitor.press(*keys)
            visitor.settle()
        for viewport in (NARROW, WIDE):
            visitor.page.set_viewport_size(viewport)
            for scheme, rules in (("light", None), ("dark", COLOUR_RULES)):
                visitor.page.emulate_media(color_scheme=scheme)
                visitor.page.screenshot(path=PICTURES / f"{number:02}-{scheme}-{viewport['width']}.png")
                options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
                found += [
                    (
                        address,
                        keys,
                        scheme,
                        viewport,
                        violation["id"],
                        [node["target"] for node in violation["nodes"]][:3],
                    )
                    for violation in visitor.page.evaluate(VIOLATIONS, options)
                    if violation["impact"] in {"serious", "critical"}
                ]
    assert found == []


def state_of(daemon: LiveDaemon) -> Any:
    """Return everything of the store that looking could change."""
    memories = daemon.read("SELECT id, access_count, last_accessed, version, updated_at FROM memories ORDER BY id")
    history = daemon.read("SELECT count(*) FROM memory_history")
    sessions = daemon.read("SELECT count(*) FROM session_memories")
    asked = (
        daemon.read("SELECT * FROM searches ORDER BY id"),
        daemon.read("SELECT * FROM session_contexts ORDER BY 1, 2"),
    )
    return memories, history, sessions, asked


def test_a_tour_of_all_screens_changes_nothing(browser: Any) -> None:
    with live_daemon(patient=True) as daemon:
        seed(daemon)
        converse(daemon)
        assert daemon.stop() == 0  # what is written behind is written now
        before = state_of(daemon)
        daemon.start()
        visitor = Visitor(browser, daemon)
        for address in (*SCREENS, f"#/session/{SESSION}/1", "#/memories?q=port+of+staging", "#/memories?deleted=1"):
            visitor.open(address)
            visitor.settle()
            visitor.press("j", "Enter")
            visitor.settle()
        visitor.open(f"#/session/{SESSION}/1")
        visitor.page.get_by_role("button", name="What would it be given today?").first.press("Enter")
        expect(visitor.page.locator(".told")).to_contain_text("Today it would be given")
        assert visitor.close() == []
        assert daemon.stop() == 0
        assert state_of(daemon) == before


def test_hidden_tabs_ask_nothing_until_they_are_seen_again(visit: Visit) -> None:
    """One of two tabs with memories reads the stream for both; today, health and sessions ask now and then."""
    visitor = visit("#/health", clock=True)
    pages = [visitor.page]
    for address in ("", "#/sessions", "#/memories", "#/memories"):
        pages.append(visitor.watched(visitor.context.new_page()))
        pages[-1].goto(f"{visitor.base}/{address}")
    for page in pages[3:]:
        expect(page.locator(".line").first).to_be_visible()
    visitor.settle()
    for page in pages:
        page.evaluate(SEEN, "hidden")
    for _ in range(2):
        visitor.pass_s(60)  # the stream is read a while longer
    visitor.requests.clear()
    for _ in range(10):
        visitor.pass_s(60)
    assert visitor.requests == []
    visitor.page.evaluate(SEEN, "visible")
    eventually(lambda: visitor.settle() or visitor.requests, what="a tab that is seen again asks")
