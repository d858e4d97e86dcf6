"""A visitor of the page at ``/``: a browser's tab that notes everything that goes wrong, and a store to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.live_daemon import LiveDaemon

SHOP, API, SITE = "/home/ada/shop", "/home/ada/api", "/home/ada/site"
SUBJECTS = ("staging", "production", "billing", "search", "mail", "login", "upload", "report", "cache", "queue")
TYPES = ("fact", "preference", "decision", "learning", "issue")
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}
SCREENS = (
    *("", "#/memories", "#/sessions", "#/map", "#/map/memories"),
    *("#/review", "#/health", "#/logs", "#/settings"),
)
"""The address of each screen that the navigation leads to, and of each view of it."""
STREAMS = ("/api/changes", "/api/logs/stream")
"""The paths of requests that do not end."""
MOST_STEPS = 60
"""How often a key is pressed to get to something, at most."""

_WATCH = """
document.addEventListener("securitypolicyviolation",
  (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
{
  const soon = new Set();
  const { setTimeout, clearTimeout } = window;
  window.setTimeout = (call, ms = 0, ...given) => {
    const id = setTimeout(() => (soon.delete(id), call(...given)), ms);
    if (ms < 1000) soon.add(id);
    return id;
  };
  window.clearTimeout = (id) => (soon.delete(id), clearTimeout(id));
  window.quiet = async () => {
    do await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))); while (soon.size);
  };
}
"""
"""``quiet()`` waits for a frame, and for timers of less than a second: a pause after a key, or what follows a frame."""


def seed(daemon: LiveDaemon) -> None:
    """Store what the tests look at."""
    api = daemon.api
    known = {
        "entities": [{"source": "Shop", "relationship": "uses", "target": "Staging", "targetType": "tool"}],
        "aspects": [{"entity": "Staging", "aspect": "database", "attributes": ["listens on port 5433"]}],
    }
    told = {"type": "fact", "tags": ["ops", "db"], "project": SHOP, "who": "user", "structured": known}
    api.remember("The staging database listens on port 5433", **told)
    api.remember("Production moved to port 5434 in March", type="fact", tags=["ops"], project=SHOP)
    api.remember("Never log access tokens, not even at debug level", type="rule", pinned=True)
    for number in range(50):
        subject = SUBJECTS[number % len(SUBJECTS)]
        api.remember(
            f"The {subject} service keeps {number + 2} days of logs and restarts within {number + 5} seconds",
            type=TYPES[number % len(TYPES)],
            tags=[subject],
            project=(SHOP, API, SITE)[number % 3],
        )
    daemon.agent("reviewer").remember("Reviews begin with the tests", visibility="private", type="preference")


SESSION = "claude-session-1"
PROMPTS = {
    "Which port has the staging database?": "It listens on port 5433.",
    "Tell me a joke about penguins": "No.",
    "And what about access tokens in the logs?": "Never log them.",
}


def converse(
    daemon: LiveDaemon,
    key: str = SESSION,
    prompts: Mapping[str, str] = PROMPTS,
    project: str = SHOP,
    harness: str = "claude-code",
) -> None:
    """Have a session: its start, its prompts, and its end with what was said."""
    base = {"harness": harness, "sessionKey": key, "project": project}
    daemon.api.post("/api/hooks/session-start", base).ok()
    for prompt in prompts:
        daemon.api.post("/api/hooks/user-prompt-submit", {**base, "userMessage": prompt}).ok()
    said = "\n".join(f"User: {prompt}\nAssistant: {answer}" for prompt, answer in prompts.items())
    daemon.api.post("/api/hooks/session-end", {**base, "transcript": said}).ok()


class Visitor:
    """A tab in a context of its own.

    ``problems`` is what must not happen; ``allowed``: statuses of responses that a test provokes. ``clock``: ``pass_s``
    can advance the time of its tabs.
    """

    def __init__(
        self,
        browser: Any,
        daemon: LiveDaemon,
        *,
        viewport: dict[str, int] | None = None,
        clock: bool = False,
        **options: Any,
    ) -> None:
        self.base = f"http://127.0.0.1:{daemon.port}"
        self.context = browser.new_context(viewport=viewport or WIDE, **options)
        if clock:
            self.context.clock.install()
        self.context.add_init_script(_WATCH)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.answered: list[str] = []
        self.pending: set[Any] = set()
        self.allowed: set[int] = set()
        self.page = self.watched(self.context.new_page())

    def watched(self, page: Any) -> Any:
        """Return the tab, which notes from now on what goes wrong in it."""
        page.set_default_timeout(60_000)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_finished)
        page.on("requestfailed", self._on_failed)
        page.on("response", self._on_response)
        return page

    def _on_console(self, message: Any) -> None:
        is_told = message.text.startswith("Failed to load resource")  # by its status, in ``_on_response``
        if message.type in {"error", "warning"} and not is_told:
            self.problems.append(f"console: {message.text}")

    def _on_request(self, request: Any) -> None:
        if not request.url.split("?")[0].endswith(STREAMS):
            self.pending.add(request)
        self.requests.append(f"{request.method} {request.url.removeprefix(self.base)}")
        if not request.url.startswith(f"{self.base}/") and not request.url.startswith("data:"):
            self.problems.append(f"foreign request: {request.url}")

    def _on_finished(self, request: Any) -> None:
        self.pending.discard(request)

    def _on_failed(self, request: Any) -> None:
        self.pending.discard(request)
        if request.failure != "net::ERR_ABORTED":  # an older search, which the page gave up
            self.problems.append(f"failed: {request.url} {request.failure}")

    def _on_response(self, response: Any) -> None:
        self.answered.append(response.url.removeprefix(self.base))
        if response.status >= 400 and response.status not in self.allowed:
            self.problems.append(f"{response.status}: {response.request.method} {response.url}")

    def pass_s(self, seconds: int) -> None:
        """Let time go by for the tabs of a visitor with a ``clock``, and wait for what they ask then."""
        self.page.clock.run_for(1000 * seconds)
        self.settle()

    def open(self, address: str = "") -> None:
        self.page.goto(f"{self.base}/{address}", wait_until="load")

    def settle(self) -> None:
        """Wait until the screen has read what it shows: neither a request nor a short timer is on its way."""
        rounds = 0
        while rounds < 2:  # what came last can ask for more
            self.page.evaluate("() => window.quiet()")
            rounds = 0 if self.pending else rounds + 1

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def follow(self, target: Any, *, by: str = "Tab") -> None:
        """Go from one thing that takes keys to the next until it is ``target``, and press Enter there."""
        for _ in range(MOST_STEPS):
            self.press(by)
            if target.evaluate("(one) => one === document.activeElement"):
                self.press("Enter")
                return
        raise AssertionError(f"not reached with {MOST_STEPS} times {by}: {target}")

    def is_too_wide(self) -> bool:
        """True if the page scrolls to the side."""
        return bool(
            self.page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
        )

    def close(self) -> list[str]:
        self.context.close()
        return self.problems
