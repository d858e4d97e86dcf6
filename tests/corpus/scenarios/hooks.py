"""The hooks of a session from its start to a compaction, odd bodies, and the requests about sessions."""

from __future__ import annotations

from typing import Any, Final

from tests.corpus.exchange import Scenario, Step, get, post

_PROJECT: Final = "/home/ada/shop"
_SESSION: Final = {"harness": "claude-code", "project": _PROJECT, "sessionKey": "session:s-1"}
_CLAIMED: Final = {"harness": "x", "sessionKey": "c"}
_TEXT: Final = {"Content-Type": "text/plain"}


def _without_date(body: Any) -> Any:
    """Return the body without the lines that hold today's date."""
    cleaned = {}
    for name in ("inject", "dynamicContext"):
        lines = body[name].split("\n")
        dated = {index + 1 for index, line in enumerate(lines) if line == "# Current Date & Time"}
        kept = [line.partition(" (id ")[0] for index, line in enumerate(lines) if index not in dated]
        cleaned[name] = "\n".join(kept)
    return {**body, **cleaned}


def _without_ids(body: Any) -> Any:
    """Return the body without the ids and dates at the ends of lines."""
    return {
        name: "\n".join(line.partition(" (id ")[0] for line in value.split("\n")) if isinstance(value, str) else value
        for name, value in body.items()
    }


def _without_numbers(body: Any) -> Any:
    """Return the body without the ids of memories."""
    return {**body, "checkpoints": [{**each, "recent_remembers": "<ids>"} for each in body["checkpoints"]]}


def _offered(body: Any) -> Any:
    """Return the body with its memories in the order of their contents, since equal ones are ordered by id."""
    return {**body, "memories": sorted(body["memories"], key=lambda memory: memory["content"])}


def _hook(name: str, hook: str, body: Any, **more: Any) -> Step:
    return post(name, f"/api/hooks/{hook}", body, **more)


_HOOKS: Final = Scenario(
    "hooks",
    (
        _hook("nothing to say", "session-start", {"harness": "codex"}),
        post(
            "a fact",
            "/api/memory/remember",
            {"content": "The staging database listens on port 5433", "project": _PROJECT, "importance": 0.6},
        ),
        post("a rule", "/api/memory/remember", {"content": "Never deploy on Fridays", "project": _PROJECT}),
        post("of another project", "/api/memory/remember", {"content": "The oven is on port 80", "project": "/other"}),
        _hook("a start", "session-start", _SESSION, view=_without_date),
        _hook("a second start", "session-start", _SESSION, view=_without_date),
        _hook(
            "remember",
            "remember",
            {**_SESSION, "content": "[Ops]: The canary host is kestrel-7", "idempotencyKey": "k"},
        ),
        _hook(
            "a prompt that needs it",
            "user-prompt-submit",
            {**_SESSION, "userPrompt": "which host is the canary host?"},
            view=_without_ids,
        ),
        _hook("the same prompt", "user-prompt-submit", {**_SESSION, "userPrompt": "which host is the canary host?"}),
        _hook("an unrelated prompt", "user-prompt-submit", {**_SESSION, "userPrompt": "write a haiku about autumn"}),
        _hook("a prompt without a subject", "user-prompt-submit", {**_SESSION, "userPrompt": "ok"}),
        _hook("recall", "recall", {"harness": "codex", "query": "staging database port", "limit": 1}),
        _hook("recall nothing", "recall", {"harness": "codex", "query": "penguins", "min_relevance": 0.9}),
        _hook("before a compaction", "pre-compaction", _SESSION, view=_without_ids),
        get("the checkpoints of a session", "/api/checkpoints/s-1", view=_without_numbers),
        get("the checkpoints of a project", f"/api/checkpoints?project={_PROJECT}/&limit=1", view=_without_numbers),
        get("the checkpoints of another agent", "/api/checkpoints/s-1?agentId=ann"),
        get("checkpoints by the other path", "/api/sessions/checkpoints?project=/nowhere"),
        get("checkpoints without a project", "/api/sessions/checkpoints"),
        post("a checkpoint", "/api/checkpoints", {"sessionKey": "s-9", "context": "half done"}),
        post("a checkpoint without a session", "/api/checkpoints", {}),
        _hook("after a compaction", "compaction-complete", {**_SESSION, "summary": "We moved the login form."}),
        _hook("a used skill", "skill-invocation", {**_SESSION, "skill": "release-notes", "durationMs": 42}),
        _hook("a used skill without name", "skill-invocation", _SESSION),
        get("used skills", "/api/hooks/skill-invocation"),
        get("notifications", "/api/hooks/notifications"),
        get("the job of an unknown capture", "/api/hooks/transcript-capture/01a20000-0000-7000-8000-000000000000"),
        _hook("notifications for a session", "notifications", {**_SESSION, "hook": "chat.message"}),
        get("sessions", "/api/sessions"),
        get("a session", "/api/sessions/s-1"),
        get("an unknown session", "/api/sessions/s-2"),
        post("renew", "/api/sessions/s-1/renew"),
        get("what it was offered", "/api/sessions/s-1/memories", view=_offered),
        get("what an unknown session was offered", "/api/sessions/s-2/memories"),
        post("feedback", "/api/memory/feedback", {"sessionKey": "s-1", "feedback": {"unknown": 2, "bad": "high"}}),
        post("feedback without a score", "/api/memory/feedback", {"sessionKey": "s-1", "feedback": {"bad": "high"}}),
        post("bypass without a boolean", "/api/sessions/s-1/bypass", {"enabled": "true"}),
        post("bypass of an unknown session", "/api/sessions/s-2/bypass", {"enabled": "true"}),
        post("bypass", "/api/sessions/s-1/bypass", {"enabled": True}),
        _hook("a bypassed start", "session-start", _SESSION),
        _hook("a bypassed prompt", "user-prompt-submit", {**_SESSION, "userPrompt": "which host?"}),
        _hook("a bypassed remember", "remember", {**_SESSION, "content": "x"}),
        _hook("without hooks", "session-start", _SESSION, headers={"x-signet-no-hooks": "1"}),
        _hook(
            "a claim", "session-start", {"harness": "x", "sessionKey": "c", "claimOnly": True, "runtimePath": "plugin"}
        ),
        _hook("a claim without a path", "session-start", {**_CLAIMED, "claimOnly": True}),
        _hook("a conflict", "session-start", {**_CLAIMED, "runtimePath": "legacy"}),
        _hook(
            "a prompt in conflict",
            "user-prompt-submit",
            {"harness": "x", "prompt": "y", "sessionKey": "c", "runtimePath": "legacy"},
        ),
        _hook("no harness", "session-start", {}),
        _hook("no prompt", "user-prompt-submit", {"harness": "x"}),
        _hook("no content", "remember", {"harness": "x"}),
        _hook("no summary", "compaction-complete", {"harness": "x"}),
        _hook(
            "odd types",
            "user-prompt-submit",
            {"harness": "x", "prompt": "ok", "project": 5, "sessionKey": [], "agentId": 1},
        ),
        _hook("not JSON", "session-start", b"{"),
        get("what was asked and given", "/api/telemetry/memory-search?limit=40"),
        get("what was asked and given, as lines", "/api/telemetry/memory-search/export?kind=prompt&limit=1"),
        get("all sessions", "/api/sessions?state=all&limit=2"),
        get("a session prompt by prompt", "/api/sessions/c/conversation"),
        get("a session of which nothing is kept", "/api/sessions/unknown/conversation?after=3"),
        _hook("a prompt that was not kept", "user-prompt-submit", {"sessionKey": "c", "dryRun": True, "asOf": "x"}),
        _hook("a prompt that was kept, of no session", "user-prompt-submit", {"dryRun": True, "asOf": "x"}),
        get("what was given nothing", "/api/telemetry/memory-search?no_hits=true&kind=prompt&limit=1"),
        _hook(
            "as text", "pre-compaction", b'{"harness": "x"}', headers={"Content-Type": "text/plain"}, view=_without_ids
        ),
    ),
)
SCENARIOS = (_HOOKS,)
