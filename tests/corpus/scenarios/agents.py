"""Several agents on one store: what each may read and change."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, delete, get, patch, post
from tests.corpus.scenarios.recall import without_timings

CONFIG = """
agents:
  roster:
    - {name: lone, read_policy: isolated}
    - {name: wide, read_policy: shared}
    - {name: cleo, read_policy: group, policy_group: research}
    - {name: dan, read_policy: group, policy_group: research}
memory:
  pipelineV2:
    enabled: false
    embeddingTracker: {enabled: false}
"""
OWNERS = ("default", "lone", "wide", "cleo", "dan")
STEPS = (
    *(
        post(
            f"a {visibility} memory of {owner}",
            "/api/memory/remember",
            {"content": f"The {visibility} lighthouse note of {owner}", "agentId": owner, "visibility": visibility},
            save={f"{owner}-{visibility}": "id"},
        )
        for owner in OWNERS
        for visibility in ("global", "private")
    ),
    *(get(f"what {reader} lists", f"/api/memories?agentId={reader}") for reader in OWNERS),
    *(
        post(
            f"what {reader} recalls",
            "/api/memory/recall",
            {"query": "lighthouse note", "agent_id": reader},
            view=lambda body: sorted(row["content"] for row in body["results"]),
        )
        for reader in (*OWNERS, "somebody-new")
    ),
    get("a private memory of another agent", "/api/memory/<<lone-private>>?agentId=wide"),
    get("its history for another agent", "/api/memory/<<lone-private>>/history?agentId=wide"),
    patch(
        "its change by another agent", "/api/memory/<<lone-private>>?agentId=wide", {"importance": 0.1, "reason": "r"}
    ),
    delete("its deletion by another agent", "/api/memory/<<lone-private>>?agentId=wide", {"reason": "r"}),
    get("neighbours of it for another agent", "/memory/similar?id=<<lone-private>>&agentId=wide"),
    get("a private memory for its owner", "/api/memory/<<lone-private>>", headers={"x-signet-agent-id": "lone"}),
    get(
        "by the session key of its owner",
        "/api/memory/<<lone-private>>",
        headers={"x-signet-session-key": "agent:lone:s1"},
    ),
    post(
        "the same private text by two agents",
        "/api/memory/remember",
        {"content": "The private lighthouse note of lone", "agentId": "wide", "visibility": "private"},
    ),
    post(
        "a scoped private row",
        "/api/memory/remember",
        {"content": "Scoped and private", "agentId": "lone", "visibility": "private", "scope": "s"},
        save={"scoped": "id"},
    ),
    get("a scoped private row for its owner", "/api/memory/<<scoped>>?agentId=lone"),
    get("a scoped private row for another agent", "/api/memory/<<scoped>>?agentId=wide"),
    post(
        "scoped rows stay out of a recall",
        "/api/memory/recall",
        {"query": "scoped and private", "agentId": "lone"},
        view=lambda body: [row["content"] for row in without_timings(body)["results"]],
    ),
    post(
        "a scope in a recall",
        "/api/memory/recall",
        {"query": "scoped and private", "agentId": "lone", "scope": "s"},
        view=lambda body: [row["content"] for row in body["results"]],
    ),
    get("an agent's name with a blank", "/api/memories?agentId=a%20b"),
    get("an agent's name with a slash", "/api/memories?agentId=a%2Fb"),
    get("an agent's name in the header that is none", "/api/memories", headers={"x-signet-agent-id": "no name!"}),
)

SCENARIOS = (Scenario("agents", STEPS, config=CONFIG),)
