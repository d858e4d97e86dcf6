"""Requests with recorded responses, and how they are replayed against a live daemon.

A scenario is a daemon with its configuration and a list of steps, each one HTTP request. A response is recorded as
status, some headers and body. Values that differ between runs (ids, times, sizes) are replaced by names, the same id
always by the same name, so that two runs of the same revision record the same text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, Client, LiveDaemon, live_daemon

RETENTION_DAYS: Final = 30
"""How long a deleted memory can be recovered, by default."""
ANSWERS: Final = Path(__file__).parent / "answers"

_HEADERS: Final = ("allow", "content-type", "location", "retry-after", "x-signet-next-cursor")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|\+00:00)?")
_VOLATILE_TEXT: Final = (
    (re.compile(r"[0-9]{13}\.[0-9a-f]{64}|[0-9a-z]+\.[0-9a-f]{32,64}"), "<token>"),
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "<ulid>"),
    (re.compile(r"memories-\d{8}T\d{6}\d*Z?-v\d+\.sqlite|memories-[0-9TZ.-]+(?:-v?\d+)?\.(?:db|sqlite)"), "<backup>"),
    (re.compile(r"\b[0-9]+(?:\.[0-9]+)? ms\b"), "<number> ms"),
)
_VOLATILE_KEYS: Final = frozenset(
    {
        "pid",
        "port",
        "uptime",
        "version_of_daemon",
        "confirmToken",
        "checkpointId",
        "durationMs",
        "ms",
        "characters",  # of a text with a date: the day has one digit or two
        "totalMs",
        "bytes",
        "size",
        "seconds",
        "ageSeconds",
        "oldestAgeSec",
    }
)
"""Fields whose values differ between two runs of the same requests."""

_EVENTUAL_KEYS: Final = frozenset({"access_count", "last_accessed"})
"""Fields written up to seconds after the recall that changes them: present or not yet, as the machine is busy or not.

``tests/system`` waits for their values.
"""


@dataclass(frozen=True)
class Step:
    """One request. ``<<name>>`` in target, body and headers is a value that an earlier step saved under that name.

    ``save`` maps a name to the dotted path of a value in the response. ``until`` repeats the request until its response
    is as required. ``view`` selects the part of a successful body to record.
    """

    name: str
    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    save: Mapping[str, str] = field(default_factory=dict)
    until: Callable[[Any], bool] | None = None
    view: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Scenario:
    """A daemon and its requests, in order. ``around`` prepares the daemon if a configuration is not enough."""

    name: str
    steps: Sequence[Step]
    config: str = ""
    pipeline: bool = False
    around: Callable[[LiveDaemon], contextlib.AbstractContextManager[object]] | None = None
    daemon: Callable[[], contextlib.AbstractContextManager[LiveDaemon]] | None = None

    @property
    def file(self) -> Path:
        """The file of its recorded responses, one JSON object per line."""
        return ANSWERS / f"{self.name}.jsonl"


def get(name: str, target: str, **more: Any) -> Step:
    """A GET request."""
    return Step(name, "GET", target, **more)


def post(name: str, target: str, body: Any = None, **more: Any) -> Step:
    """A POST request with JSON, or with ``body`` unchanged if it is bytes."""
    return Step(name, "POST", target, body, **more)


def patch(name: str, target: str, body: Any = None, **more: Any) -> Step:
    """A PATCH request."""
    return Step(name, "PATCH", target, body, **more)


def delete(name: str, target: str, body: Any = None, **more: Any) -> Step:
    """A DELETE request."""
    return Step(name, "DELETE", target, body, **more)


def play(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the recorded form of each step's request and response, on a fresh daemon."""
    names = [step.name for step in scenario.steps]
    assert len(set(names)) == len(names), f"{scenario.name}: two steps of one name"
    started = scenario.daemon or (lambda: live_daemon(config=scenario.config, pipeline=scenario.pipeline, patient=True))
    with started() as daemon, (scenario.around or _as_it_is)(daemon):
        player = _Player(daemon)
        return [player.step(step) for step in scenario.steps]


@contextlib.contextmanager
def _as_it_is(daemon: LiveDaemon) -> Iterator[object]:
    yield daemon


class _Player:
    """The values saved so far, and the names that replace ids."""

    def __init__(self, daemon: LiveDaemon) -> None:
        self.client = Client(daemon)
        self.paths = (
            (str(daemon.workspace), "<workspace>"),
            (str(daemon.root), "<root>"),
            (f":{daemon.port}", ":<port>"),
        )
        self.saved: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.today = datetime.now(UTC)

    def step(self, step: Step) -> dict[str, Any]:
        target, body, headers = (self._filled(part) for part in (step.target, step.body, dict(step.headers)))

        def ask() -> Answer:
            return self.client.request(step.method, target, body, headers)

        answer = ask()
        if step.until is not None:
            reached: list[Answer] = []
            wanted = step.until

            def look() -> bool:
                reached[:] = [ask()]
                return wanted(reached[0].json)

            eventually(look, within_s=60, what=step.name)
            answer = reached[0]
        content = _content(answer)
        for name, path in step.save.items():
            self.saved[name] = str(_at(content, path))
        if step.view is not None and answer.status < 300:
            content = step.view(content)
        return {
            "name": step.name,
            "request": {
                "method": step.method,
                "target": step.target,
                **({} if step.body is None else {"body": _readable(step.body)}),
                **({"headers": dict(step.headers)} if step.headers else {}),
            },
            "status": answer.status,
            "headers": {name: self._stable(answer.headers[name]) for name in _HEADERS if name in answer.headers},
            "answer": self._stable(content),
        }

    def _filled(self, value: Any) -> Any:
        """Return ``value`` with each ``<<name>>`` replaced by the saved value."""
        if isinstance(value, str):
            for name, text in self.saved.items():
                value = value.replace(f"<<{name}>>", text)
            return value
        if isinstance(value, bytes):
            return self._filled(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return value

    def _stable(self, value: Any, key: str = "") -> Any:
        """Return ``value`` with everything that differs between two runs replaced by a name."""
        if key in _VOLATILE_KEYS and value is not None and not isinstance(value, dict | list):
            return f"<{key}>"
        if key in _EVENTUAL_KEYS:
            return f"<{key}>"
        if isinstance(value, dict):
            return {name: self._stable(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._stable(item) for item in value]
        if isinstance(value, float):
            return round(value, 3)
        return self._stable_text(value) if isinstance(value, str) else value

    def _stable_text(self, text: str) -> str:
        for path, name in self.paths:
            text = text.replace(path, name)
        text = _UUID.sub(lambda match: self.ids.setdefault(match[0], f"<id {len(self.ids) + 1}>"), text)
        text = _TIME.sub(self._time, text)
        for pattern, name in _VOLATILE_TEXT:
            text = pattern.sub(name, text)
        return text

    def _time(self, match: re.Match[str]) -> str:
        """Return a name for a current time and for the end of a retention; a time from a request is unchanged."""
        moment = datetime.fromisoformat(match[0].replace(" ", "T"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        for offset, name in ((0, "<now>"), (RETENTION_DAYS, "<now + retention>")):
            if abs((moment - self.today).total_seconds() - offset * 86400) < 2 * 86400:
                return name
        return match[0]


def _content(answer: Answer) -> Any:
    """Return the body: parsed if it is declared as JSON, else as text."""
    kind = answer.headers.get("content-type", "")
    if kind.startswith("application/json") and answer.raw:
        return answer.json
    text = answer.raw.decode("utf-8", "replace")
    if kind.startswith("application/x-ndjson"):
        return [json.loads(line) for line in text.splitlines()]
    return text


def _readable(body: Any) -> Any:
    if not isinstance(body, bytes):
        return body if len(json.dumps(body)) < 2000 else f"<JSON of {len(json.dumps(body))} characters>"
    return body.decode("utf-8", "backslashreplace") if len(body) < 2000 else f"<{len(body)} bytes>"


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
