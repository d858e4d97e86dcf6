"""MEMORY.md: the prompt for it, what a harness made of that, its status and what changed."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.corpus.exchange import Scenario, get, post
from tests.corpus.scenarios.pipeline import with_a_model

_PROJECT: Final = "/home/ada/shop"
_COMPLETE: Final = "/api/hooks/synthesis/complete"
_NAME: Final = re.compile(r"MEMORY\.backup-\d{8}T\d{9}Z")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_VARYING: Final = ("path", "bytes", "chars", "waiting")
_MARK: Final = re.compile(r"(</?data )[0-9a-f]{32}|the mark [0-9a-f]{32}")


def _without_times(body: Any) -> Any:
    """Return the body without dates, the names that contain one, sizes, and the state of the extractor."""
    if isinstance(body, dict):
        return {name: _without_times(value) for name, value in body.items() if name not in _VARYING}
    if isinstance(body, list):
        return [_without_times(item) for item in body]
    return _MOMENT.sub("<time>", _NAME.sub("<version>", body)) if isinstance(body, str) else body


def _prompt(body: Any) -> Any:
    """Return the body with the lines of its prompt, without what changes from day to day."""
    prompt = re.sub(r"\(\d{4}-\d\d-\d\d\)", "(<day>)", _MARK.sub("<mark>", body["prompt"]))
    prompt = re.sub(r"\(id [0-9a-f-]{18}\)", "(id <id>)", prompt)
    return {
        **body,
        "prompt": prompt.split("\n"),
        "memories": [memory["content"] for memory in body["memories"]],
    }


def _ended(body: Any) -> bool:
    return body["lastRunAt"] is not None and not body["running"]


_SYNTHESIS: Final = Scenario(
    "synthesis",
    (
        get("who makes it", "/api/hooks/synthesis/config"),
        get("nothing made yet", "/api/synthesis/status", view=_without_times),
        get("no version to compare with", "/api/synthesis/diff"),
        post("a fact", "/api/memory/remember", {"content": "The editor is vim"}),
        post(
            "a fact of a project",
            "/api/memory/remember",
            {"content": "The staging database listens on port 5433", "project": _PROJECT},
        ),
        post("the prompt", "/api/hooks/synthesis", {"trigger": "manual"}, view=_prompt),
        post("the prompt for an agent without memories", "/api/hooks/synthesis?agentId=ann", view=_prompt),
        post("no content", _COMPLETE, {}),
        post("blank content", _COMPLETE, {"content": " \n"}),
        post("odd types", _COMPLETE, {"content": "- a", "harness": 5, "agentId": ".x"}),
        post(
            "a text", _COMPLETE, {"content": "# Now\n- The editor is vim.", "harness": "openclaw"}, view=_without_times
        ),
        post("another text", _COMPLETE, {"content": "# Now\n- The editor is emacs."}, view=_without_times),
        post("the same text", _COMPLETE, {"content": "# Now\n- The editor is emacs."}, view=_without_times),
        get("its status", "/api/synthesis/status", view=_without_times),
        get("what changed", "/api/synthesis/diff", view=_without_times),
        get("an unknown version", "/api/synthesis/diff?version=nothing"),
        get("the status of another agent", "/api/synthesis/status?agentId=ann", view=_without_times),
        get("an agent without a directory", "/api/synthesis/status?agentId=.x"),
    ),
)
_BY_THE_DAEMON: Final = Scenario(
    "synthesis-by-the-daemon",
    (
        post("a fact", "/api/memory/remember", {"content": "The editor is vim"}),
        get("a model", "/api/synthesis/status", until=lambda body: body["waiting"] is None, view=lambda _: None),
        post("a run", "/api/synthesis/trigger", {"again": True}),
        get("its end", "/api/synthesis/status", until=_ended, view=_without_times),
    ),
    daemon=with_a_model,
)
SCENARIOS = (_SYNTHESIS, _BY_THE_DAEMON)
