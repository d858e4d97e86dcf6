"""Reading by id, lists, history, legacy search, neighbours and embeddings."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, get, post

FIXED = {"createdAt": "2024-05-01T10:00:00.000Z"}
MEMORIES = (
    post(
        "a first memory",
        "/api/memory/remember",
        {"content": "The staging database listens on port 5433", "tags": "ops,db", "who": "ada", **FIXED},
        save={"one": "id"},
    ),
    post(
        "a second memory",
        "/api/memory/remember",
        {
            "content": "Deploys go out on Tuesdays",
            "type": "rule",
            "tags": "ops",
            "who": "ben",
            "importance": 0.95,
            "createdAt": "2024-05-02T10:00:00.000Z",
        },
        save={"two": "id"},
    ),
    post(
        "a third memory",
        "/api/memory/remember",
        {
            "content": "Ada prefers dark mode in her editor",
            "pinned": True,
            "who": "ada",
            "project": "ui",
            "createdAt": "2024-05-03T10:00:00.000Z",
        },
        save={"three": "id"},
    ),
    post(
        "a fourth memory",
        "/api/memory/remember",
        {
            "content": "The replica of the database listens on port 5434",
            "tags": "ops,db",
            "createdAt": "2024-05-04T10:00:00.000Z",
        },
        save={"four": "id"},
    ),
)
UNKNOWN = "01a20000-0000-7000-8000-000000000000"
STEPS = (
    *MEMORIES,
    get("by id", "/api/memory/<<one>>"),
    get("an unknown id", f"/api/memory/{UNKNOWN}"),
    get("an id that is none", "/api/memory/nonsense"),
    get("deleted rows on request, but it is not deleted", "/api/memory/<<one>>?deleted=true"),
    get("includeDeleted is no boolean", "/api/memory/<<one>>?include_deleted=maybe"),
    get("history", "/api/memory/<<one>>/history"),
    get("history with a limit", "/api/memory/<<one>>/history?limit=1"),
    get("history with a limit of 0", "/api/memory/<<one>>/history?limit=0"),
    get("history with a limit of nonsense", "/api/memory/<<one>>/history?limit=abc"),
    get("history of an unknown id", f"/api/memory/{UNKNOWN}/history"),
    get("the list", "/api/memories"),
    get("the list's first page", "/api/memories?limit=2"),
    get("the list's second page", "/api/memories?limit=2&offset=2"),
    get("the list with 12abc as limit", "/api/memories?limit=3abc"),
    get("the list with abc as limit", "/api/memories?limit=abc"),
    get("the list with abc as offset", "/api/memories?offset=abc"),
    get("the list beyond its end", "/api/memories?offset=1000"),
    get("the most used", "/api/memories/most-used?limit=2"),
    get("by the beginning of an id", "/api/memories/by-prefix?prefix=no-such"),
    get("by too short a beginning of an id", "/api/memories/by-prefix?prefix=12345"),
    get("by no beginning of an id", "/api/memories/by-prefix"),
    get("the list by type", "/api/memories?type=rule"),
    get("the list by a type that is no name", "/api/memories?type=no%20name!"),
    get("the list of tombstones", "/api/memories?deleted=true"),
    get("the list with an unknown parameter", "/api/memories?lmit=2"),
    get("an agent that is too long", "/api/memories?agentId=" + "a" * 129),
    get("a query string with NUL", "/api/memories?who=%00"),
    get("a repeated parameter counts once", "/api/memories?limit=1&limit=4"),
    get("legacy search", "/memory/search?q=database"),
    get("legacy search with FTS5 syntax", "/memory/search?q=database%20AND%20replica"),
    get("legacy search with a syntax error", "/memory/search?q=%22open"),
    get("legacy search by filters alone", "/memory/search?who=ada"),
    get("legacy search by tags", "/memory/search?tags=db"),
    get("legacy search by pinned", "/memory/search?pinned=1"),
    get("legacy search, pinned=yes", "/memory/search?pinned=yes"),
    get("legacy search by importance", "/memory/search?importance_min=0.9"),
    get("legacy search, importance_min=x", "/memory/search?importance_min=x"),
    get("legacy search since", "/memory/search?since=2024-05-03"),
    get("legacy search since nonsense", "/memory/search?since=yesterday"),
    get("legacy search, distinct authors", "/memory/search?distinct=who"),
    get("legacy search with a limit", "/memory/search?limit=1"),
    get("neighbours", "/memory/similar?id=<<one>>"),
    get("neighbours, k", "/memory/similar?id=<<one>>&k=1"),
    get("neighbours by type", "/memory/similar?id=<<one>>&type=rule"),
    get("neighbours without id", "/memory/similar"),
    get("neighbours of an unknown id", f"/memory/similar?id={UNKNOWN}"),
    get("embeddings", "/api/embeddings"),
    get(
        "embeddings with vectors",
        "/api/embeddings?vectors=true",
        view=lambda body: [len(row["vector"]) for row in body["embeddings"]],
    ),
    get("embeddings, vectors=perhaps", "/api/embeddings?vectors=perhaps"),
    get("embeddings with a limit below the range", "/api/embeddings?limit=1"),
    get("embeddings beyond the end", "/api/embeddings?offset=100"),
    get("embedding status", "/api/embeddings/status"),
    get("embedding health", "/api/embeddings/health"),
    get("an unknown job", f"/api/memory/jobs/{UNKNOWN}"),
)

SCENARIOS = (Scenario("read", STEPS),)
