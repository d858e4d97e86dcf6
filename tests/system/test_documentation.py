"""The examples of the pages print what the pages show, and those of the API document are served.

Source: docs/README.md "Examples".
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from tests.support.bus_harness import REPOSITORY
from tests.support.documentation import empty_home
from tests.support.live_daemon import live_daemon

pytestmark = pytest.mark.system

RECORD = "if the new output is right: python -m tests.support.documentation {}"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/cli.md",
        "docs/operations.md",
        "docs/tutorial.md",
        "docs/guides/claude-code.md",
        "docs/guides/codex.md",
        "docs/guides/cursor.md",
        "docs/guides/editors.md",
        "docs/guides/gemini.md",
        "docs/guides/hooks.md",
        "docs/guides/http.md",
        "docs/guides/knowledge-graph.md",
        "docs/guides/opencode.md",
        "docs/guides/plugins.md",
        "docs/guides/python.md",
        "docs/guides/service.md",
        "docs/guides/team.md",
        "docs/guides/transcripts.md",
        "docs/guides/working-memory.md",
    ],
)
def test_the_commands_and_python_programs_of_a_page_print_what_it_shows(page: str) -> None:
    shown = (REPOSITORY / page).read_text(encoding="utf-8")
    with empty_home(page) as home:
        assert home.run_page(shown, kinds={"console", "python"}) == shown, RECORD.format(page)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_programs_print_what_the_guide_shows() -> None:
    shown = (REPOSITORY / "docs/guides/http.md").read_text(encoding="utf-8")
    with empty_home() as home:
        home.command("signet start")
        assert home.run_page(shown, kinds={"javascript"}) == shown, RECORD.format("docs/guides/http.md")


ORDER = {"/api/memory/import": 0, "/api/hooks/session-end": 0, "/api/sessions/{key}/transcript": 2}
"""The first store the memory and the session of the other examples, the last erases that session."""
UNKNOWN = (
    "/api/auth/tokens/",
    "/api/auth/api-keys/",
    "/api/hooks/transcript-capture/",
    "/api/memory/jobs/",
    "/api/pipeline/runs/",
    "/api/memory/review-queue/",
    "/api/sessions/summaries/expand",
    "/page/",
)
"""Below these paths an id names what a model or the daemon makes, so the example's id is unknown."""
OTHER = {
    ("POST", "/api/synthesis/trigger"): 503,
    ("POST", "/api/auth/token"): 400,
    ("POST", "/api/auth/page-token"): 401,
    ("GET", "/api/telemetry/export?limit=10"): 404,
    ("POST", "/api/auth/api-keys"): 400,
    ("GET", "/api/embeddings/projection?dimensions=2&limit=100"): 202,
}
"""Answers without a model, telemetry and a map, in local mode, in which no token is issued."""
_PLACES = ("path", "query")


class Example(NamedTuple):
    method: str
    target: str
    body: dict[str, Any] | None


def examples(document: dict[str, Any]) -> Iterator[Example]:
    """The example of each operation of the API document."""
    for path, methods in sorted(document["paths"].items(), key=lambda item: ORDER.get(item[0], 1)):
        for method, operation in methods.items():
            given = [one for one in operation["parameters"] if "example" in one]
            values = {place: {one["name"]: one["example"] for one in given if one["in"] == place} for place in _PLACES}
            query = urlencode(values["query"])
            bodies = [media["example"] for media in operation.get("requestBody", {}).get("content", {}).values()]
            body = json.loads(bodies[0]) if bodies and isinstance(bodies[0], str) else bodies[0] if bodies else None
            yield Example(method.upper(), path.format(**values["path"]) + (f"?{query}" if query else ""), body)


def test_every_example_of_the_api_document_is_served_without_a_warning() -> None:
    with live_daemon(pipeline=True) as daemon:
        answers = {}
        for example in examples(daemon.api.get("/api/openapi.json").ok()):
            answer = daemon.api.request(*example, {"Accept": "application/json, text/event-stream"})
            warned = b'"warnings":["' in answer.raw or "x-signet-warnings" in answer.headers
            answers[example.method, example.target] = (answer.status, warned)
    assert answers == {
        (method, target): (OTHER.get((method, target)) or (404 if target.startswith(UNKNOWN) else 200), False)
        for method, target in answers
    }
