"""Transcripts of sessions: capture, read, search, forget."""

from __future__ import annotations

import json

from tests.corpus.exchange import Scenario, delete, get, post
from tests.corpus.scenarios.recall import without_timings

KEEP = "/api/hooks/session-checkpoint-extract"
END = "/api/hooks/session-end"
TALK = "User: On which port does the staging database listen?\nAssistant: On port 5433."
LINES = "".join(
    json.dumps(
        {
            "type": role,
            "sessionId": "from-the-file",
            "timestamp": f"2026-11-20T09:00:0{second}.000Z",
            "message": {"role": role, "content": content},
        }
    )
    + "\n"
    for second, (role, content) in enumerate(
        [
            ("user", "How often does the upload worker retry?"),
            ("assistant", [{"type": "text", "text": "Four times."}, {"type": "tool_use", "name": "Read", "input": {}}]),
        ]
    )
)


STEPS = (
    post("a session without a harness", END, {"transcript": TALK}),
    post("a session without a transcript", END, {"harness": "codex", "sessionKey": "s-1"}),
    post("a session", END, {"harness": "codex", "sessionKey": "s-1", "transcript": TALK, "cwd": "/home/ada/ferry"}),
    post("the same session", END, {"harness": "codex", "sessionKey": "session:s-1", "transcript": TALK}),
    post("the session goes on", END, {"harness": "codex", "sessionKey": "s-1", "transcript": f"{TALK}\nUser: Thanks"}),
    post("a session that its lines name", END, {"harness": "claude-code", "transcript": LINES, "reason": "clear"}),
    post("a session in an unknown format", END, {"harness": "other", "sessionKey": "s-2", "transcript": "Notes"}),
    post("an empty transcript", END, {"harness": "other", "sessionKey": "s-3", "transcript": ""}),
    post("a transcript that is no text", END, {"harness": "other", "sessionKey": "s-3", "transcript": 5}),
    post(
        "a transcript in JSON",
        END,
        {"harness": "other", "sessionKey": "s-6", "transcript": [{"role": "user", "content": "Which port?"}]},
    ),
    post("a path outside", END, {"harness": "codex", "sessionKey": "s-3", "transcriptPath": "/etc/passwd"}),
    post("a relative path", END, {"harness": "codex", "sessionKey": "s-3", "transcriptPath": "session.jsonl"}),
    post(
        "a secret",
        END,
        {"harness": "codex", "sessionKey": "s-4", "transcript": "User: password=hunter2hunter2\nAssistant: ok"},
    ),
    post(
        "hooks are off",
        END,
        {"harness": "codex", "sessionKey": "s-5", "transcript": TALK},
        headers={"x-signet-no-hooks": "1"},
    ),
    post("a session of an agent", END, {"harness": "openclaw", "sessionKey": "agent:ann:main", "transcript": TALK}),
    post("a session that goes on", KEEP, {"harness": "codex", "sessionKey": "s-7", "transcript": TALK}),
    post("a session that goes on without a key", KEEP, {"harness": "codex", "transcript": TALK}),
    get("the transcript", "/api/sessions/s-1/transcript"),
    get("the transcript as turns", "/api/sessions/from-the-file/transcript?view=turns"),
    get("the transcript in another view", "/api/sessions/s-1/transcript?view=nonsense"),
    get("the transcript with a secret", "/api/sessions/s-4/transcript"),
    get("a transcript of an agent by its session key", "/api/sessions/agent:ann:main/transcript"),
    get("a transcript of another agent", "/api/sessions/s-1/transcript?agentId=ann"),
    get("a session turn by turn", "/api/sessions/s-1/conversation?limit=2"),
    get("the rest of it", "/api/sessions/s-1/conversation?after=2"),
    get("an unknown transcript", "/api/sessions/unknown/transcript"),
    post("a search", "/api/sessions/search", {"query": "port of the staging database"}),
    get("past sessions", "/api/sessions/past?limit=2"),
    post("a search in one session", "/api/sessions/search", {"query": "worker retries", "sessionKey": "from-the-file"}),
    post("a search without the current session", "/api/sessions/search", {"query": "port", "currentSessionKey": "s-1"}),
    post("a search in a project", "/api/sessions/search", {"query": "port", "project": "/home/ada/ferry"}),
    post("a search of another agent", "/api/sessions/search", {"query": "thanks", "agentId": "ann"}),
    get("summaries", "/api/sessions/summaries?limit=5"),
    get("summaries of a level that does not exist", "/api/sessions/summaries?depth=1"),
    get("summaries of an invalid level", "/api/sessions/summaries?depth=-1"),
    post("a summary without its id", "/api/sessions/summaries/expand", {}),
    post("a summary that does not exist", "/api/sessions/summaries/expand", {"id": "no-summary"}),
    get("scores of sessions", "/api/analytics/continuity?limit=5"),
    get("the latest score of each project", "/api/analytics/continuity/latest"),
    post("a search without a query", "/api/sessions/search", {}),
    post("a search for nothing", "/api/sessions/search", {"query": "?!"}),
    delete("forget for an autonomous actor", "/api/sessions/s-1/transcript", headers={"x-signet-actor-type": "agent"}),
    delete("forget", "/api/sessions/s-1/transcript"),
    get("the forgotten transcript", "/api/sessions/s-1/transcript"),
    post("the forgotten session again", END, {"harness": "codex", "sessionKey": "s-1", "transcript": TALK}),
    delete("forget an unknown transcript", "/api/sessions/unknown/transcript"),
    post(
        "a memory with its transcript",
        "/api/memory/remember",
        {"content": "The staging database listens on port 5433", "sourceId": "s-7", "transcript": TALK},
    ),
    post(
        "a recall with transcripts",
        "/api/memory/recall",
        {"query": "port of the staging database", "expand": True},
        view=without_timings,
    ),
    post(
        "a recall of what was said",
        "/api/memory/recall",
        {"query": "how often does the upload worker retry?", "limit": 2},
        view=without_timings,
    ),
)

SCENARIOS = (Scenario("transcripts", STEPS),)
