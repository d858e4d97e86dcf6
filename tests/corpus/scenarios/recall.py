"""Recall and its alias: filters, limits, times, rejections, and the texts in the specification."""

from __future__ import annotations

from typing import Any

from tests.corpus.exchange import Scenario, Step, get, post

RECALL = "/api/memory/recall"
NOTES = (
    (
        "The staging database listens on port 5433",
        {"tags": "ops,db", "who": "ada", "createdAt": "2024-05-13T08:00:00Z"},
    ),
    ("Deploys of the shop go out on Tuesdays", {"type": "rule", "who": "ben", "importance": 0.95}),
    ("Ada prefers dark mode in her editor", {"pinned": True, "project": "ui"}),
    ("Ticket KA-1042 is about the login page", {"tags": "ticket"}),
    ("The file src/auth/token_store.py holds the refresh logic", {}),
    ("Die Rechnungen werden am Monatsende verschickt", {"tags": "de"}),
    ("サーバーの設定は本番環境にあります", {"tags": "ja"}),
    ("A note in a scope about the database", {"scope": "room"}),
    ("Words that go on and on. " * 19, {"tags": "long"}),
)


def without_timings(body: Any) -> Any:
    """Return the response without the durations of the stages, but with their names."""
    meta = body.get("meta", {})
    if "timings" in meta:
        meta = {**meta, "timings": [stage["name"] for stage in meta["timings"]["stages"]]}
        return {**body, "meta": meta}
    return body


def ask(name: str, query: str, **fields: Any) -> Step:
    """A recall request."""
    return post(name, RECALL, {"query": query, **fields}, view=without_timings)


def refused(name: str, **fields: Any) -> Step:
    """A recall request that must be rejected, or that gets a warning."""
    return post(name, RECALL, {"query": "database", **fields}, view=without_timings)


STEPS = (
    *(post(f"memory {n}", "/api/memory/remember", {"content": text, **more}) for n, (text, more) in enumerate(NOTES)),
    ask("a question", "which port is the staging database on?"),
    ask("an identifier", "KA-1042"),
    ask("a path", "token_store.py"),
    ask("German", "Wann werden Rechnungen verschickt?"),
    ask("Japanese", "サーバーの設定"),
    ask("nothing that is there", "zzyzx quux"),
    ask("FTS5 syntax is text", 'database" OR NEAR(a b) *'),
    ask("stop words alone", "what is the"),
    ask("a limit", "database", limit=1),
    ask("a limit of 0", "database", limit=0),
    ask("a limit above the cap", "database", limit=1000),
    ask("a limit with a fraction", "database", limit=1.9),
    ask("a limit as text", "database", limit="2"),
    ask("by type", "deploys", type="rule"),
    ask("by tags", "database", tags="db"),
    ask("by who", "ada", who="ada"),
    ask("by pinned", "editor", pinned=True),
    ask("pinned false filters nothing", "editor", pinned=False),
    ask("by importance", "deploys", importance_min=0.9),
    ask("by importance in camelCase", "deploys", importanceMin=0.9),
    ask("since", "database", since="2024-05-01"),
    ask("until", "database", until="2024-06-01"),
    ask("by project", "editor", project="ui"),
    ask("in a scope", "database", scope="room"),
    ask("min_score", "database", min_score=0.99),
    ask("minScore", "database", minScore=0.5),
    ask("a session", "database", sessionKey="agent:default:s1"),
    ask("includeRecalled", "database", sessionKey="agent:default:s1", includeRecalled=True),
    ask("keywordQuery", "database", keywordQuery="database"),
    ask("aggregate", "database", aggregate=True),
    ask("aggregate with nothing found", "zzyzx quux", aggregate=True),
    ask("a long text is cut", "words that go on", tags="long"),
    ask("a time window", "database", time={"start": "2024-05-13T00:00:00Z", "end": "2024-05-14T00:00:00Z"}),
    ask("a time window without end", "database", time={"start": "2024-05-13T00:00:00Z"}),
    ask(
        "a time window with facets and mode",
        "database",
        time={"start": "2024-05-13", "facets": ["captured"], "mode": "filter"},
    ),
    ask("a date and a topic", "2024/05/13 database", timeZone="UTC"),
    ask("a date alone", "what were we doing on May 13, 2024?", timeZone="UTC"),
    ask("a relative time and a topic", "database of the day before yesterday", now="2024-05-15", timeZone="UTC"),
    ask(
        "a relative time alone", "what did we do last week?", now="2024-05-22T10:00:00+02:00", timeZone="Europe/Berlin"
    ),
    ask("a timeline", "database", time={"start": "2024-05-13", "mode": "timeline", "facets": ["session", "captured"]}),
    post("no query", RECALL, {}),
    post("no body", RECALL),
    post("not JSON", RECALL, b"{"),
    refused("query is a number", query=5),
    refused("query is blank", query="  "),
    refused("query is too long", query="q" * 20_001),
    refused("limit is a word", limit="abc"),
    refused("limit is a list", limit=[]),
    refused("limit is a boolean", limit=True),
    refused("type is a list", type=["fact"]),
    refused("tags are a number", tags=5),
    refused("who is a number", who=5),
    refused("pinned is a word", pinned="yes"),
    refused("importance_min is text", importance_min="x"),
    refused("min_score is text", min_score="x"),
    refused("since is nonsense", since="yesterday"),
    refused("until is nonsense", until=5),
    refused("aggregateBudget is unknown", aggregateBudget="huge"),
    refused("aggregate is a word", aggregate="perhaps"),
    refused("includeRecalled is a word", includeRecalled="perhaps"),
    refused("time is text", time="x"),
    refused("time without start", time={}),
    refused("time.start is nonsense", time={"start": "x"}),
    refused("time.end is nonsense", time={"start": "2024-05-13", "end": "x"}),
    refused("time.end before start", time={"start": "2024-05-13", "end": "2024-05-12"}),
    refused("time.facets is text", time={"start": "2024-05-13", "facets": "x"}),
    refused("time.facets is unknown", time={"start": "2024-05-13", "facets": ["x"]}),
    refused("time.mode is unknown", time={"start": "2024-05-13", "mode": "x"}),
    refused("now is nonsense", now="soon"),
    refused("timeZone is unknown", timeZone="Mars/Olympus"),
    refused("time at the end of the calendar", time={"start": "9999-12-31T12:00:00Z"}),
    refused("agentId is a number", agentId=5),
    refused("scope is a number", scope=5),
    refused("an unknown field", querry="x"),
    refused("expand", expand=True),
    refused("saveAggregate", saveAggregate=False),
    get("by GET", "/api/memory/search?q=database", view=without_timings),
    get("by GET with filters", "/api/memory/search?q=database&tags=db&limit=1", view=without_timings),
    get("by GET without query", "/api/memory/search"),
    get("by GET, pinned=1", "/api/memory/search?q=editor&pinned=1", view=without_timings),
    get("by GET, pinned=yes", "/api/memory/search?q=editor&pinned=yes", view=without_timings),
    get("by GET, importance_min=x", "/api/memory/search?q=editor&importance_min=x", view=without_timings),
    get("by GET, limit=abc", "/api/memory/search?q=database&limit=abc", view=without_timings),
    get("by GET, an unknown parameter", "/api/memory/search?q=database&lmit=1", view=without_timings),
    get("by GET, since nonsense", "/api/memory/search?q=database&since=x"),
)

SCENARIOS = (Scenario("recall", STEPS),)
