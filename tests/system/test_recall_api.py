"""Recall, the other searches and the embeddings of a live daemon.

Source: memory-api.txt "POST /api/memory/recall" to "Embeddings"; docs/compatibility.md "Recall"; docs/decisions.md 8,
30, 31, 35.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MISSING = "00000000-0000-7000-8000-000000000000"
RECALL = "/api/memory/recall"


@pytest.fixture(scope="module")
def library(daemon: LiveDaemon) -> dict[str, str]:
    """Ids by name of a few memories that the agent ``wide`` owns, in a project of their own."""
    client = daemon.agent("wide")
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "vim": (
            "User prefers vim keybindings in every editor",
            {"type": "preference", "tags": "preference,editor", "importance": 0.9, "who": "claude-code"},
        ),
        "port": (
            "The staging database listens on port 5433",
            {"type": "fact", "tags": "database,ops", "importance": 0.4, "who": "codex", "pinned": True},
        ),
        "ticket": ("Ticket KA-6 broke the pre-compaction hook", {"type": "issue", "createdAt": "2026-05-13T12:00:00Z"}),
        "other ticket": ("Ticket KA-61 renamed the login button", {"type": "issue"}),
        "path": ("The handler lives in src/app/read_config.py since March", {"type": "fact"}),
        "error": ("The build failed with error E0425 in the parser crate", {"type": "issue"}),
        "chinese": ("用户喜欢在早上喝绿茶", {"type": "preference"}),
        "japanese": ("東京タワーの近くに住んでいます", {}),
        "korean": ("회의는 매주 화요일 오전에 있습니다", {}),
        "old": ("The office was painted blue in spring", {"createdAt": "2024-04-01T00:00:00Z"}),
        "dog": ("Nora adopted a puppy named Biscuit last summer", {}),
    }
    return {name: client.remember(text, project="library", **fields)["id"] for name, (text, fields) in texts.items()}


@pytest.fixture
def reader(daemon: LiveDaemon, library: dict[str, str]) -> Client:
    """A client that may read the library."""
    return daemon.agent("wide")


def names(library: dict[str, str], ids: list[str]) -> list[str]:
    back = {memory_id: name for name, memory_id in library.items()}
    return [back[memory_id] for memory_id in ids if memory_id in back]


def recalled(client: Client, library: dict[str, str], query: str, **fields: Any) -> list[str]:
    return names(library, client.recalled(query, project="library", **fields))


def test_a_recall_has_the_documented_shape(reader: Client, library: dict[str, str]) -> None:
    answer = reader.recall("user preferences for editor", project="library", limit=3)
    assert (answer["query"], answer["method"]) == ("user preferences for editor", "hybrid")
    row = answer["results"][0]
    expected = {
        "id": library["vim"],
        "content": "User prefers vim keybindings in every editor",
        "source": "hybrid",
        "type": "preference",
        "tags": "preference,editor",
        "pinned": False,
        "importance": 0.9,
        "who": "claude-code",
        "project": "library",
        "visibility": "global",
    }
    assert {name: row[name] for name in expected} == expected
    assert 0 < row["score"] <= 1
    assert isinstance(row["created_at"], str)
    scores = [result["score"] for result in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    meta = answer["meta"]
    assert (meta["totalReturned"], meta["hasSupplementary"], meta["noHits"]) == (len(scores), False, False)
    assert meta["timings"]["totalMs"] >= 0
    stages = {stage["name"]: stage["durationMs"] for stage in meta["timings"]["stages"]}
    assert {"query_embedding_wait", "memory_fts", "final_rank"} <= set(stages)
    assert all(duration >= 0 for duration in stages.values())
    assert set(meta["dedupe"]) == {"enabled", "contextEpoch", "suppressed", "repeatedReturned"}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which editor keybindings does the user like?", "vim"),
        ("On what port does the staging database run?", "port"),
        ("What did we say about the pre-compaction hook?", "ticket"),
        ("What is the name of Nora's dog?", "dog"),
        ("When was the office painted?", "old"),
    ],
)
def test_a_natural_question_finds_its_memory_first(
    reader: Client, library: dict[str, str], question: str, expected: str
) -> None:
    assert recalled(reader, library, question)[0] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("KA-6", "ticket"),
        ("ka-61", "other ticket"),
        ("read_config", "path"),
        ("src/app/read_config.py", "path"),
        ("E0425", "error"),
        ("What about KA-6?", "ticket"),
        ("5433", "port"),
    ],
)
def test_an_identifier_is_found_first(reader: Client, library: dict[str, str], query: str, expected: str) -> None:
    assert recalled(reader, library, query)[0] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [("绿茶", "chinese"), ("用户早上喝什么", "chinese"), ("東京タワー", "japanese"), ("화요일 회의", "korean")],
)
def test_chinese_japanese_and_korean_are_found(
    reader: Client, library: dict[str, str], query: str, expected: str
) -> None:
    assert recalled(reader, library, query)[0] == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"type": "preference"}, {"vim", "chinese"}),
        ({"tags": "editor,ui"}, {"vim"}),
        ({"tags": ["ops", "editor"]}, {"vim", "port"}),
        ({"who": "codex"}, {"port"}),
        ({"pinned": True}, {"port"}),
        ({"importance_min": 0.85}, {"vim"}),
        ({"importanceMin": 0.85}, {"vim"}),
        ({"until": "2025-01-01"}, {"old"}),
        ({"since": "2026-05-13T00:00:00Z", "until": "2026-05-14T00:00:00Z"}, {"ticket"}),
        ({"time": {"start": "2026-05-13", "end": "2026-05-14", "facets": ["captured"], "mode": "filter"}}, {"ticket"}),
        ({"time": {"start": "2026-05-13"}}, {"ticket"}),
        ({"type": "preference", "who": "codex"}, set()),
    ],
)
def test_each_filter_narrows_both_legs(
    reader: Client, library: dict[str, str], filters: dict[str, Any], expected: set[str]
) -> None:
    query = "user vim port database ticket office spring hook 绿茶"
    found = reader.recall(query, project="library", limit=100, min_score=0, **filters)
    assert set(names(library, [row["id"] for row in found["results"]])) == expected
    assert found["meta"]["noHits"] is (not expected)
    assert found["meta"]["totalReturned"] == len(expected)


def test_project_and_scope_separate_rows(room: Client) -> None:
    here = room.remember("The kettle is in the kitchen", project="home")["id"]
    scoped = room.remember("The kettle is in the attic", scope="attic")["id"]
    assert room.recalled("kettle") == [here]
    assert room.recalled("kettle", project="elsewhere") == []
    assert scoped in room.recalled("kettle", scope="attic")
    assert here not in room.recalled("kettle", scope="attic")


def test_the_limit_is_truncated_and_clamped(room: Client) -> None:
    for number in range(105):
        room.remember(f"Clamped row {number}")
    for limit, expected in ((1000, 100), (0, 1), (-5, 1), (2.9, 2), ("3", 3)):
        assert len(room.recalled("clamped row", limit=limit, min_score=0)) == expected
    assert len(room.recalled("clamped row", min_score=0)) == 10
    room.post(RECALL, {"query": "x", "limit": True}).refused(400, field="limit")


@pytest.mark.parametrize("spelling", ["min_score", "minScore"])
def test_min_score_removes_weak_results(reader: Client, library: dict[str, str], spelling: str) -> None:
    every = reader.recall("vim keybindings editor", project="library", limit=100, **{spelling: 0})["results"]
    assert len(every) > 1
    bar = every[0]["score"] - 1e-6
    strong = reader.recall("vim keybindings editor", project="library", limit=100, **{spelling: bar})["results"]
    assert [row["id"] for row in strong] == [row["id"] for row in every if row["score"] >= bar]


def test_an_embedded_memory_is_found_by_the_next_recall(room: Client) -> None:
    for number in range(40):
        answer = room.remember(f"Unrelated remark {number} on the weather")
        assert answer["embedded"] is True
        own = room.remember(f"Veterinary appointment {number} of the kitten at the clinic")
        assert own["embedded"] is True
        found = room.recall(f"Veterinary appointment {number} of the kitten", limit=3)
        assert (found["method"], found["results"][0]["id"]) == ("hybrid", own["id"])
        assert found["results"][0]["source"] == "hybrid"
    cats = room.recall("feline doctor", limit=5)["results"]
    assert cats
    assert cats[0]["source"] == "vector"
    assert "kitten" in cats[0]["content"]


def test_recalled_memories_are_marked_as_accessed(room: Client) -> None:
    memory_id = room.remember("Accessed by a recall")["id"]
    room.recall("accessed")
    eventually(lambda: room.memory(memory_id)["access_count"] == 1, what="the access is recorded")
    assert isinstance(room.memory(memory_id)["last_accessed"], str)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "query is required"),
        ({"query": "  "}, "query is required"),
        ({"query": 5}, "query must be a string"),
        ({"query": "q" * 20_001}, "query must be at most 20000 characters"),
        ({"query": "x", "limit": []}, "limit must be a number"),
        ({"query": "x", "includeRecalled": "perhaps"}, "includeRecalled must be a boolean"),
        ({"query": "x", "aggregate": "perhaps"}, "aggregate must be a boolean"),
        ({"query": "x", "aggregateBudget": "huge"}, "aggregateBudget must be one of: small, medium, large"),
        ({"query": "x", "aggregate_budget": "huge"}, "aggregate_budget must be one of: small, medium, large"),
        ({"query": "x", "scope": 1}, "scope must be a string"),
        ({"query": "x", "type": 5}, "type must be a string"),
        ({"query": "x", "pinned": "perhaps"}, "pinned must be a boolean"),
        ({"query": "x", "importance_min": "high"}, "importance_min must be a number"),
        ({"query": "x", "min_score": "high"}, "min_score must be a number"),
        ({"query": "x", "since": "no"}, "since must be a valid ISO timestamp"),
        ({"query": "x", "agentId": 5}, "agentId must be a string"),
        ({"query": "x", "time": "now"}, "time must be an object"),
        ({"query": "x", "time": {}}, "time.start is required when time is provided"),
        ({"query": "x", "time": {"start": "no"}}, "time.start must be a valid ISO timestamp"),
        ({"query": "x", "time": {"start": "2026-01-01", "end": "no"}}, "time.end must be a valid ISO timestamp"),
        ({"query": "x", "time": {"start": "2026-01-02", "end": "2026-01-02"}}, "time.end must be after time.start"),
        ({"query": "x", "time": {"start": "2026-01-01", "facets": "all"}}, "time.facets must be an array"),
        (
            {"query": "x", "time": {"start": "2026-01-01", "facets": ["dreamt"]}},
            "time.facets entries must be one of: session, source, captured, observed, occurred, valid",
        ),
        (
            {"query": "x", "time": {"start": "2026-01-01", "mode": "loop"}},
            "time.mode must be one of: auto, timeline, filter",
        ),
    ],
)
def test_an_invalid_recall_is_refused_with_a_reason(room: Client, body: Any, text: str) -> None:
    room.post(RECALL, body).refused(400, error=text, code="invalid_request")


def test_an_aggregate_recall_without_a_router_returns_no_results(room: Client) -> None:
    room.remember("Evidence for an aggregate")
    for query, reason in (("evidence", "router_unavailable"), ("zzzz", "no_evidence")):
        answer = room.recall(query, aggregate=True, saveAggregate=False, min_score=0.9)
        assert answer["results"] == []
        assert answer["meta"]["noHits"] is True
        assert (answer["aggregate"]["stoppedReason"], answer["aggregate"]["saved"]) == (reason, False)


def test_recall_is_private_by_policy(daemon: LiveDaemon) -> None:
    word = "persimmon"
    owned = {
        (name, visibility): daemon.agent(name).remember(f"{word} of {name} kept {visibility}", visibility=visibility)[
            "id"
        ]
        for name in ("lone", "wide", "cleo", "dan", "eve")
        for visibility in ("global", "private")
    }
    shown = {
        "lone": {("lone", "global"), ("lone", "private")},
        "wide": {key for key in owned if key[1] == "global" or key[0] == "wide"},
        "cleo": {("cleo", "global"), ("cleo", "private"), ("dan", "global")},
        "dan": {("dan", "global"), ("dan", "private"), ("cleo", "global")},
        "eve": {("eve", "global"), ("eve", "private")},
        "default": {key for key in owned if key[1] == "global"},
        "never seen before": set(),
    }
    for name, keys in shown.items():
        client = daemon.agent(name)
        expected = {owned[key] for key in keys}
        surfaces = {
            "recall": set(client.recalled(word, limit=100, min_score=0)),
            "recall by body": set(daemon.api.recalled(word, limit=100, min_score=0, agentId=name)),
            "search": {row["id"] for row in client.get("/api/memory/search", q=word, limit=100).ok()["results"]},
            "legacy": {row["id"] for row in client.get("/memory/search", q=word, limit=100).ok()["results"]},
            "list": {row["id"] for row in client.listed()},
            "export": {row["id"] for row in client.get("/api/embeddings", limit=5000).ok()["embeddings"]},
            "forget": {
                row["id"] for row in client.post("/api/memory/forget", {"query": word, "limit": 200}).ok()["candidates"]
            },
            "get": {key for key in owned.values() if client.get(f"/api/memory/{key}").status == 200},
            "history": {key for key in owned.values() if client.get(f"/api/memory/{key}/history").status == 200},
        }
        for surface, ids in surfaces.items():
            assert ids & set(owned.values()) == expected, f"{surface} of {name}"
        for key in set(owned.values()) - expected:
            target = f"/api/memory/{key}"
            assert client.request("PATCH", target, {"importance": 0.1, "reason": "r"}).status == 404
            assert client.request("DELETE", f"{target}?reason=r&force=true").status == 404
            assert client.get("/memory/similar", id=key).status == 404


# GET aliases


def test_the_search_alias_answers_like_recall(reader: Client, library: dict[str, str]) -> None:
    by_post = reader.recall(
        "vim keybindings", project="library", limit=5, type="preference", tags="editor", sessionKey="by-post"
    )
    by_get = reader.get(
        "/api/memory/search",
        q="vim keybindings",
        project="library",
        limit=5,
        type="preference",
        tags="editor,ui",
        who="claude-code",
        pinned="0",
        importance_min="0.5",
        since="2020-01-01",
        until="2100-01-01",
        sessionKey="by-get",
        includeRecalled="1",
    ).ok()
    assert sorted(by_get) == sorted(by_post)
    assert [row["id"] for row in by_get["results"]] == [library["vim"]]
    assert by_get["results"] == by_post["results"]
    pinned = reader.get("/api/memory/search", q="database vim", project="library", pinned="1").ok()["results"]
    assert [row["id"] for row in pinned] == [library["port"]]
    assert reader.get("/api/memory/search").refused(400)["error"]


def test_an_unbounded_fts_expression_is_refused_and_ends_no_searcher(daemon: LiveDaemon, room: Client) -> None:
    row = {"id": "01a20000-0000-7000-8000-00000000a110", "content": "heron " + "a " * 400_000}
    room.post("/api/memory/import", row).ok()
    searchers = {name: pid for name, pid in daemon.children().items() if name.startswith("searcher")}
    for expression in (
        "+".join(["a"] * 2000),
        "NEAR(" + " ".join(["a"] * 1500) + ",999999)",
        " ".join(f"{letter}*" for letter in "etaoinshrdlu" * 80),
        " OR ".join(f"{letter}*" for letter in "abcdefghijklmnopqrstuvwxyz" * 20),
        " ".join(f"word{number}" for number in range(65)),
        "(" * 1000 + "a" + ")" * 1000,
    ):
        assert room.get("/memory/search", q=expression).refused(400)["field"] == "q"
    for expression in ("heron", "NEAR(a a, 5)", "a+a+a+a", "content : her*", "{content cjk} : heron NOT missing"):
        (found,) = room.get("/memory/search", q=expression).ok()["results"]
        assert found["id"] == row["id"]
    assert searchers.items() <= daemon.children().items()


def test_the_legacy_search_takes_fts_syntax(reader: Client, library: dict[str, str]) -> None:
    def found(**parameters: Any) -> list[str]:
        rows = reader.get("/memory/search", project="library", **parameters).ok()["results"]
        assert all(row["project"] == "library" for row in rows)
        return names(library, [row["id"] for row in rows])

    assert set(found(q="vim OR port")) == {"vim", "port"}
    assert found(q="keybind*") == ["vim"]
    assert found(q='"staging database"') == ["port"]
    assert found(q="vim AND port") == []
    assert found(who="codex") == ["port"]
    assert found(pinned="true") == ["port"]
    assert found(type="preference", importance_min="0.85") == ["vim"]
    assert found(tags="ops,nothing") == ["port"]
    assert "old" not in found(since="2025-01-01")
    assert len(found(limit=2)) == 2
    (row,) = reader.get("/memory/search", q="keybindings", project="library").ok()["results"]
    expected = {"id", "content", "created_at", "who", "importance", "tags", "type", "pinned", "score"}
    assert expected <= set(row)


@pytest.mark.parametrize("query", ['"', "AND", "a AND", "(", "*", "nocolumn: x", "NEAR(", "a-b", "^"])
def test_an_fts_syntax_error_is_a_400(reader: Client, library: dict[str, str], query: str) -> None:
    reader.get("/memory/search", q=query).refused(400, field="q", code="invalid_request")


def test_distinct_who_lists_the_authors(room: Client) -> None:
    for who in ("zoe", "alice", "bob", "alice"):
        room.remember(f"Said by {who} {len(room.listed())}", who=who)
    assert room.get("/memory/search", distinct="who", q="((", limit="7").ok() == {"values": ["alice", "bob", "zoe"]}


# similar, embeddings


def test_similar_memories_are_ranked_by_their_vectors(room: Client) -> None:
    anchor = room.remember("The cat sleeps on the sofa", tags="pets")["id"]
    near = room.remember("A kitten naps on the couch", tags=["pets", "cosy"])["id"]
    far = room.remember("Quarterly tax forms are due in April", type="rule")["id"]
    rows = room.get("/memory/similar", id=anchor).ok()["results"]
    assert [row["id"] for row in rows] == [near, far]
    expected = {"id", "content", "type", "tags", "score", "confidence", "created_at"}
    assert expected <= set(rows[0])
    assert rows[0]["tags"] == ["pets", "cosy"]
    assert rows[0]["score"] > rows[1]["score"]
    assert [row["id"] for row in room.get("/memory/similar", id=anchor, k=1).ok()["results"]] == [near]
    assert [row["id"] for row in room.get("/memory/similar", id=anchor, type="rule").ok()["results"]] == [far]
    assert room.get("/memory/similar").refused(400, error="id is required")["results"] == []
    missing = room.get("/memory/similar", id=MISSING).refused(404, error="No embedding found for this memory")
    assert missing["results"] == []


def test_embeddings_are_exported_with_their_memories(room: Client) -> None:
    ids = [room.remember(f"Exported {number}", tags="exported,kept", who="ana")["id"] for number in range(60)]
    page = room.get("/api/embeddings", limit=50).ok()
    assert (page["count"], page["total"], page["limit"], page["offset"], page["hasMore"]) == (50, 60, 50, 0, True)
    row = page["embeddings"][0]
    assert "vector" not in row
    assert row["text"] == row["content"]
    assert (row["sourceType"], row["sourceId"], row["tags"], row["who"]) == (
        "memory",
        row["id"],
        ["exported", "kept"],
        "ana",
    )
    rest = room.get("/api/embeddings", limit=50, offset=50, vectors="true").ok()
    assert (rest["count"], rest["hasMore"]) == (10, False)
    assert {row["id"] for row in page["embeddings"]} | {row["id"] for row in rest["embeddings"]} == set(ids)
    dimensions = room.get("/api/embeddings/status").ok()["dimensions"]
    for row in rest["embeddings"]:
        assert len(row["vector"]) == dimensions
        assert math.isclose(sum(value * value for value in row["vector"]), 1.0, abs_tol=1e-3)
    assert room.get("/api/embeddings", limit=1).ok()["limit"] == 50
    assert room.get("/api/embeddings", limit=99999).ok()["limit"] == 5000


def test_the_state_of_the_embeddings_is_returned(daemon: LiveDaemon) -> None:
    status = daemon.api.get("/api/embeddings/status").ok()
    assert (status["provider"], status["available"], status["dimensions"]) == ("embedded", True, 256)
    assert {"model", "base_url", "checkedAt", "tracker"} <= set(status)
    assert "error" not in status
    assert daemon.api.get("/api/embeddings/status").ok()["checkedAt"] == status["checkedAt"]
    health = daemon.api.get("/api/embeddings/health").ok()
    assert health["status"] == "healthy"
    assert {"coverage", "stale", "score", "checkedAt", "config"} <= set(health)
    assert [check["name"] for check in health["checks"]] == [
        "provider-available",
        "coverage",
        "dimension-mismatch",
        "model-drift",
        "null-vectors",
        "vec-table-sync",
        "orphaned-embeddings",
    ]
    assert all(check["status"] == "ok" for check in health["checks"]), health["checks"]


def test_without_embeddings_recall_uses_keywords_and_reports_it() -> None:
    with live_daemon(config="embedding:\n  provider: none\n") as daemon:
        answer = daemon.api.remember("Found by its words alone")
        assert answer["embedded"] is False
        found = daemon.api.recall("words")
        assert (found["method"], found["results"][0]["source"]) == ("keyword", "keyword")
        status = daemon.api.get("/api/embeddings/status").ok()
        assert (status["provider"], status["available"]) == ("none", False)
        assert isinstance(status["error"], str)
        daemon.api.get("/memory/similar", id=answer["id"]).refused(404, error="No embedding found for this memory")
        assert daemon.api.get("/api/embeddings").ok()["total"] == 0
        stats = daemon.api.get("/api/memories").ok()["stats"]
        assert stats == {"total": 1, "withEmbeddings": 0, "critical": 0}
