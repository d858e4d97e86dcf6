"""What a changed ``agents.roster`` means for what agents read and store, in a daemon that runs.

Source: architecture.txt "Multi-Agent Support"; docs/compatibility.md "Actors and agents".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import ONE_VECTOR, WITHOUT_PIPELINE, Client, LiveDaemon, live_daemon

NAMES = ("ada", "ben", "cleo", "wide", "guest")
RED, BLUE = "{read_policy: group, policy_group: red, name: %s}", "{read_policy: group, policy_group: blue, name: %s}"
WIDE = "{name: wide, read_policy: shared}"
QUERY = "Which gate does the harbour ferry use?"
GONE = "agent 'ben' was removed from agents.roster; add it again to use its memories"


def roster(*entries: str) -> str:
    return "agents:\n  roster:\n" + "".join(f"    - {entry}\n" for entry in (*entries, WIDE))


BEFORE = roster(RED % "ada", RED % "ben", BLUE % "cleo")
MOVED = roster(RED % "ada", BLUE % "ben", BLUE % "cleo")
REMOVED = roster(RED % "ada", BLUE % "cleo")


@pytest.fixture(scope="module")
def team() -> Iterator[LiveDaemon]:
    with live_daemon(config=WITHOUT_PIPELINE + ONE_VECTOR + BEFORE, patient=True) as daemon:
        for name in NAMES:
            for visibility in ("global", "private"):
                text = f"The harbour ferry of {name} uses the {visibility} gate"
                daemon.agent(name).remember(text, visibility=visibility)
        yield daemon
        assert daemon.faults() == []


def reads(client: Client, known: Sequence[str]) -> list[str]:
    """Return the texts that the client reads, which are the same by every path."""
    listed = {row["id"]: row["content"] for row in client.listed()}
    lines = map(json.loads, client.get("/api/memory/export").raw.splitlines())
    exported = [line["id"] for line in lines if "id" in line]
    got = [memory_id for memory_id in known if client.get(f"/api/memory/{memory_id}").status == 200]
    similar = {
        row["id"] for memory_id in listed for row in client.get("/memory/similar", id=memory_id, k=50).ok()["results"]
    }
    recalled = [found for found in client.recalled(QUERY, limit=50) if not found.startswith("turn:")]
    assert sorted(recalled) == sorted(exported) == sorted(got) == sorted(listed)
    assert similar == (set(listed) if len(listed) > 1 else set())
    return sorted(listed.values())


def own(name: str) -> list[str]:
    return [f"The harbour ferry of {name} uses the {visibility} gate" for visibility in ("global", "private")]


def shared(*names: str) -> list[str]:
    return [own(name)[0] for name in names]


def reconfigure(daemon: LiveDaemon, text: str, client: Client, known: str, status: int) -> None:
    """Change the roster, and wait until the client reads the memory ``known`` or not, as ``status`` says."""
    present = (daemon.workspace / "agent.yaml").read_text(encoding="utf-8")
    daemon.configure(present[: present.index("agents:\n")] + text)
    eventually(lambda: client.get(f"/api/memory/{known}").status == status, what="the new roster")


def test_a_changed_group_is_what_every_read_follows_at_once(team: LiveDaemon) -> None:
    ada, ben, cleo = (team.agent(name) for name in NAMES[:3])
    ids = [memory_id for (memory_id,) in team.read("SELECT id FROM memories")]
    of_ben = str(team.read("SELECT id FROM memories WHERE agent_id = 'ben' AND visibility = 'global'")[0][0])

    def each() -> list[list[str]]:
        return [reads(agent, ids) for agent in (ada, ben, cleo)]

    together = [sorted(own("ada") + shared("ben")), sorted(own("ben") + shared("ada")), own("cleo")]
    assert each() == together
    reconfigure(team, MOVED, ada, of_ben, 404)
    assert each() == [own("ada"), sorted(own("ben") + shared("cleo")), sorted(own("cleo") + shared("ben"))]
    reconfigure(team, BEFORE, ada, of_ben, 200)
    assert each() == together


def test_an_agent_that_is_removed_is_archived_until_it_is_in_the_roster_again(team: LiveDaemon) -> None:
    ada, ben, wide, guest = (team.agent(name) for name in ("ada", "ben", "wide", "guest"))
    session = {"harness": "codex", "sessionKey": "before", "project": "/harbour"}
    said = '{"role": "user", "content": "Which gate does my ferry use?"}'
    ben.post("/api/hooks/session-start", session).ok()
    ben.post("/api/hooks/session-end", {**session, "transcript": said}).ok()
    ids = [memory_id for (memory_id,) in team.read("SELECT id FROM memories")]
    of_ben = str(team.read("SELECT id FROM memories WHERE agent_id = 'ben' AND visibility = 'global'")[0][0])
    agents = (ada, ben, wide, guest)
    before = [reads(agent, ids) for agent in agents]
    assert all(set(shared("ben")) <= set(texts) for texts in before)

    reconfigure(team, REMOVED, wide, of_ben, 404)
    assert [reads(agent, ids) for agent in agents] == [
        [text for text in texts if " of ben " not in text] if agent is not ben else []
        for agent, texts in zip(agents, before, strict=True)
    ]
    assert ben.recalled(QUERY, limit=50) == []
    assert ben.get("/api/sessions/before/transcript").status == 404
    refused = ben.post("/api/memory/remember", {"content": own("ben")[0]}).refused(409)
    assert refused["error"] == GONE
    kept = ben.post("/api/hooks/remember", {"harness": "codex", "content": "The ferry is late"}).ok()
    assert (kept["skipped"], kept["reason"], kept["warnings"]) == (True, "conflict", [GONE])
    assert (
        ben.post("/api/hooks/session-end", {**session, "transcript": said + "\n" + said}).refused(409)["error"] == GONE
    )
    started = ben.post("/api/hooks/session-start", {**session, "sessionKey": "later"}).ok()
    assert "gate" not in started["inject"]
    assert started["memories"] == []
    asked = ben.post("/api/hooks/user-prompt-submit", {**session, "sessionKey": "later", "userMessage": QUERY}).ok()
    assert asked["inject"] == ""

    reconfigure(team, BEFORE, wide, of_ben, 200)
    assert [reads(agent, ids) for agent in agents] == before
    assert ben.get("/api/sessions/before/transcript").status == 200
    ben.remember(own("ben")[0])
