"""How fast the page is in a browser, and what it costs: ``python -m bench.page --memories 100000``.

Chromium (Debian's, with software drawing) opens the page of a daemon with so many memories. Measured are the time from
the request of the page to the first memory of the list, the time from the last key of a search to its results and the
daemon's part of it, the time of the counts of the filters, and the CPU time of the gateway and the searcher while the
page of today is open, is hidden, and without a page; last, frames a second while the maps of 500 names with 4,500 facts
and of up to 10,000 memories are moved and enlarged. Needs ``make test-browser`` to have been run once.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.client import BlockingClient
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm
from bench.figures import circumstances, spread, write_result
from bench.recall_in_process import fill
from bench.texts import Texts
from signet_actors.providers.embedded import EmbeddedEmbedder

CHROMIUM: Final = "/usr/bin/chromium"
SETTINGS: Final = "backup: {intervalMs: 0, keep: 1}\nembedding: {provider: embedded}\n"
SETTLE_S: Final = 45.0
"""After a start the writer optimizes the text index, which takes 40 s with 100,000 memories."""
IDLE_S: Final = 20.0
REPEATS: Final = 10
NAMES: Final = 500
FACTS: Final = 9
"""Of each name."""
MAP_S: Final = 180.0
MOVES: Final = 240
_COUNT_FRAMES: Final = """() => {
  window.frames_at = [];
  const seen = (at) => { window.frames_at.push(at); requestAnimationFrame(seen); };
  requestAnimationFrame(seen);
}"""
_FIRST_ROW: Final = """async () => {
  const seen = () => document.querySelector("main .line .words");
  while (!seen()) await new Promise(requestAnimationFrame);
  return performance.now();
}"""
_RESULTS: Final = """async (query) => {
  const field = document.querySelector("main input[type=search]");
  field.focus();
  const before = document.querySelector("main")?.innerText;
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, query);
  const began = performance.now();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const done = () => [...performance.getEntriesByType("resource")].some(
    (one) => one.startTime >= began && one.responseEnd > 0 && /recall|search/.test(one.name));
  while (!done() || document.querySelector("main").innerText === before) await new Promise(requestAnimationFrame);
  const request = [...performance.getEntriesByType("resource")].filter((one) => one.startTime >= began)
    .find((one) => /recall|search/.test(one.name));
  return [performance.now() - began, request.responseEnd - request.requestStart, request.startTime - began];
}"""


def measure_page(browser: Any, base: str, queries: Sequence[str]) -> dict[str, Any]:
    """Return the milliseconds to the first row and from a key to its results."""
    first = []
    for _ in range(REPEATS):
        page = browser.new_context().new_page()
        page.goto(f"{base}/#/memories", wait_until="commit")
        first.append(page.evaluate(_FIRST_ROW))
        page.context.close()
    page = browser.new_context().new_page()
    page.goto(f"{base}/#/memories")
    page.evaluate(_FIRST_ROW)
    times = [page.evaluate(_RESULTS, query) for query in queries]
    page.context.close()
    return {
        "first_row_ms": spread(first),
        "key_to_results_ms": spread([whole for whole, _, _ in times]),
        "of_it_daemon_ms": spread([daemon for _, daemon, _ in times]),
        "of_it_waiting_for_another_key_ms": spread([waiting for _, _, waiting in times]),
    }


def idle_cpu(browser: Any, daemon: Daemon, base: str) -> dict[str, float]:
    """Return the share of a core, in percent, that the daemon takes without a page, with one, and with a hidden one."""
    found = {}
    for name in ("without a page", "today", "hidden"):
        page = browser.new_context().new_page() if name != "without a page" else None
        if page is not None:
            page.goto(f"{base}/")
            page.wait_for_timeout(3000)
        if page is not None and name == "hidden":
            page.evaluate("""() => {
              Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
              document.dispatchEvent(new Event("visibilitychange"));
            }""")
        usage = CpuUsage(daemon.processes())
        with usage.measured():
            time.sleep(IDLE_S)
        found[name] = round(sum(usage.tree_ms.values()) / IDLE_S / 10, 2)
        if page is not None:
            page.context.close()
    return found


def facets_ms(daemon: Daemon) -> list[float]:
    """Return the milliseconds of the counts, the first of which are not kept yet."""
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        daemon.get("/api/memories/facets")
        took.append(round((time.perf_counter() - began) * 1000, 1))
    return took


def state_names(daemon: Daemon) -> None:
    """Store what makes a graph of as many names as a map has at most, each with facts and what it depends on."""
    client = BlockingClient(daemon.address.host, daemon.address.port)
    for number in range(NAMES):
        name, other = f"Service {number}", f"Service {(number * 7 + 1) % NAMES}"
        facts = [f"fact {at} of {name}" for at in range(FACTS)]
        known = {
            "entities": [{"source": name, "relationship": "depends_on", "target": other}],
            "aspects": [{"entity": name, "aspect": "operation", "attributes": facts}],
        }
        body = msgspec.json.encode({"content": f"{name} is one of the services", "structured": known})
        status, answer = client.exchange("POST", "/api/memory/remember", body=body)
        if status != 200:
            raise DaemonFailed(f"a name could not be stored: {status} {answer[:200]!r}")


def map_frames(browser: Any, base: str, address: str) -> dict[str, Any]:
    """Return how many points a map has, and the frames a second while it is moved, and while it is enlarged.

    The longest frame afterwards has the whole drawing and the list of what is in view.
    """
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(f"{base}/{address}")
    page.wait_for_selector(".frame canvas", timeout=MAP_S * 1000)
    page.wait_for_timeout(2000)
    found: dict[str, Any] = {"shown": page.get_by_role("status").filter(has_text="in view").inner_text()}
    box = page.locator(".frame").bounding_box()
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(across, down)
    page.evaluate(_COUNT_FRAMES)
    for name in ("moved", "enlarged"):
        page.evaluate("() => { window.frames_at = []; }")
        if name == "moved":
            page.mouse.down()
        for at in range(MOVES):
            if name == "moved":
                page.mouse.move(across + 150 * math.sin(at / 20), down + 100 * math.cos(at / 20))
            else:
                page.mouse.wheel(0, -100 if at % 40 < 20 else 100)
        if name == "moved":
            page.mouse.up()
        frames: list[float] = page.evaluate("() => window.frames_at")
        apart = [after - before for before, after in itertools.pairwise(frames)]
        found[f"{name}_frames_per_s"] = round(1000 * len(apart) / (frames[-1] - frames[0]), 1)
        found[f"{name}_longest_frame_ms"] = round(max(apart), 1)
        page.wait_for_timeout(1000)
        frames = page.evaluate("() => window.frames_at")[len(frames) - 1 :]
        found[f"{name}_then_drawn_anew_ms"] = round(max(after - before for before, after in itertools.pairwise(frames)))
    page.context.close()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only installed for the tests of the page

    parser = argparse.ArgumentParser(prog="python -m bench.page", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    console = Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory(prefix="signet-bench-", ignore_cleanup_errors=True) as place:
        known = fill(Path(place) / "memory", options.memories, options.seed, EmbeddedEmbedder(), Console(stderr=True))
        asked = Texts(options.seed + 1).questions(known, 3 * REPEATS)
        with Daemon(Path(place), settings=SETTINGS) as daemon, sync_playwright() as started:
            time.sleep(SETTLE_S)
            while daemon.get("/health")["indexing"]["pending"]:
                time.sleep(1)
            base = f"http://{daemon.address.host}:{daemon.address.port}"
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            found: dict[str, Any] = {"facets_ms": facets_ms(daemon)}
            found |= measure_page(browser, base, [str(each.body["query"]) for each in asked])
            found["cpu_percent"] = idle_cpu(browser, daemon, base)
            state_names(daemon)
            found["map_of_names"] = map_frames(browser, base, "#/map/names")
            found["map_of_memories"] = map_frames(browser, base, "#/map")
            browser.close()
        found["circumstances"] = circumstances()
    for name, figures in found.items():
        console.print(f"{name}: {figures}", highlight=False)
    console.print(str(write_result("page", found)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
