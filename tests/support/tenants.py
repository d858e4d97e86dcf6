"""Two agents with objects of every kind, in two projects and for two users, and the words by which each is known.

Every object has a word of its own that stands nowhere else. A token may be told the words of what is in its scope, so a
reply with any other one is a leak.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.bus_harness import eventually
from tests.support.live_daemon import CLIENT_WAIT_S, Answer, Client, LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider
from tests.support.team import Team

TWINS = ("amy", "ann")
"""Agents with the same words, whose replies are the same as long as they have sent the same."""
AGENTS = ("ada", "bob", *TWINS)
PROJECTS = ("/srv/shop", "/srv/farm", None)
USERS = ("una", "vic")
VISIBILITIES = ("private", "global")
QUERY = "harbour gate"
"""Words that every memory and every session has, so that each search would find all of them."""
CONFIG = """
embedding: {{provider: embedded}}
agents:
  roster:
    - {{name: ada, read_policy: isolated}}
    - {{name: bob, read_policy: isolated}}
    - {{name: amy, read_policy: isolated}}
    - {{name: ann, read_policy: isolated}}
auth:
  mode: {mode}
  rateLimits:
    {{admin: {{max: 1000000}}, modify: {{max: 1000000}}, forget: {{max: 1000000}}, batchForget: {{max: 1000000}},
      forceDelete: {{max: 1000000}}, recallLlm: {{max: 1000000}}, wrongTokens: {{max: 1000000}}}}
memory:
  pipelineV2:
    confirm: review
    autonomous: {{enabled: false}}
    extraction: {{provider: ollama, endpoint: "{url}"}}
"""


MADE_OF_MEMORIES = {"entities", "entity_aspects", "entity_attributes", "entity_dependencies", "umap_cache"}
"""Tables of an agent's graph and map: what its memories say counts there, also those that a limited token stores."""


class Scope(dict[str, str]):
    """What a token is limited to: of ``agent``, ``project`` and ``user``, those that it has."""

    def admits(self, canary: Canary) -> bool:
        """Return whether the bearer may be told the canary."""
        if self.get("agent") not in {None, canary.agent}:
            return False
        if canary.is_memory:
            return self.get("project") in {None, canary.project} and self.get("user") in {None, canary.user}
        return not {"project", "user"} & self.keys()

    @property
    def agent(self) -> str:
        """The agent as which requests without a name are made."""
        return self.get("agent", "default")


@dataclass(frozen=True)
class Canary:
    """A word, and the object that has it. A memory belongs to a project and a user, anything else to an agent."""

    word: str
    agent: str
    is_memory: bool = False
    project: str | None = None
    user: str | None = None


@dataclass
class Tenants:
    """The daemon with what was stored in it. ``ids``: by their kind, each with the canary of its object."""

    team: Team
    canaries: list[Canary] = field(default_factory=list)
    ids: list[tuple[str, str, Canary]] = field(default_factory=list)

    @property
    def daemon(self) -> LiveDaemon:
        return self.team.daemon

    def token(self, role: str, scope: Mapping[str, str]) -> Connection:
        """Return a connection with a new token."""
        return Connection(self.daemon, {"Authorization": f"Bearer {self.team.issue(role, **scope)['token']}"})

    def hidden(self, scope: Scope) -> set[str]:
        """Return the words that a token with this scope must not be told."""
        told = {canary.word for canary in self.canaries if scope.admits(canary)}
        return {canary.word for canary in self.canaries} - told

    def rows(self, scope: Scope) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of ada and bob that are outside of the scope, by table. Nothing that it does changes them."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for (table,) in self.daemon.read("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE%'"):
            columns = [row[0] for row in self.daemon.read("SELECT name FROM pragma_table_info(?)", table)]
            owner = next((name for name in ("agent_id", "memory_id", "source_memory_id") if name in columns), None)
            if owner is None or table in {"auth_tokens", "agents", "request_replies"}:
                continue
            if table in MADE_OF_MEMORIES and {"project", "user"} & scope.keys():
                continue
            outside = "agent_id IN ('ada', 'bob') AND NOT coalesce(" + self._inside(scope, table, columns) + ", 0)"
            where = outside if owner == "agent_id" else f"{owner} IN (SELECT id FROM memories WHERE {outside})"
            if owner != "agent_id":
                where = where.replace(outside, self._outside_memories(scope))
            found[table] = sorted(self.daemon.read(f"SELECT * FROM {table} WHERE {where}"), key=repr)
        return found

    def _outside_memories(self, scope: Scope) -> str:
        columns = ["agent_id", "project", "who"]
        return "agent_id IN ('ada', 'bob') AND NOT coalesce(" + self._inside(scope, "memories", columns) + ", 0)"

    @staticmethod
    def _inside(scope: Scope, table: str, columns: list[str]) -> str:
        """Return the condition of rows that the scope admits; of rows that are no memories, a limit admits none."""
        names = {"agent": "agent_id", "project": "project", "user": "who"}
        if table != "memories" and {"project", "user"} & scope.keys():
            return "0"
        parts = [f"{names[limit]} = '{value}'" for limit, value in scope.items() if names[limit] in columns]
        return " AND ".join(parts) or "1"


class Connection(Client):
    """A client that keeps its connection, and notes the words that it has said itself."""

    def __init__(self, daemon: LiveDaemon, headers: Mapping[str, str]) -> None:
        super().__init__(daemon, headers)
        self._http: http.client.HTTPConnection | None = None
        self.said = ""

    def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = CLIENT_WAIT_S,
    ) -> Answer:
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**({} if raw is None else {"Content-Type": "application/json"}), **self.headers, **(headers or {})}
        self.said += f"{target} {(raw or b'').decode('utf-8', 'replace')} {headers or ''}\n"
        connection = self._http or http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=timeout)
        self._http = None
        connection.request(method, target, raw, sent)
        response = connection.getresponse()
        read = response.read()
        answer = Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, read)
        if response.will_close:
            connection.close()
        else:
            self._http = connection
        return answer

    def close(self) -> None:
        if self._http is not None:
            self._http.close()


WORD = re.compile(r"[a-z]+")


def leaked(answer: Answer, hidden: set[str], said: str) -> set[str]:
    """Return the hidden words in the reply, in its body or its headers, that the caller has not said itself."""
    text = f"{answer.headers} {answer.raw.decode('utf-8', 'replace')}".lower()
    return {word for word in hidden & set(WORD.findall(text)) if word not in said}


@contextmanager
def tenants(mode: str = "team") -> Iterator[Tenants]:
    """Run a daemon in which both agents have objects of every kind."""
    with ScriptedProvider(script=ScriptedModel()) as provider:
        config = CONFIG.format(mode=mode, url=provider.url)
        with live_daemon(config=config, pipeline=True, patient=True) as daemon:
            found = Tenants(Team(daemon))
            for agent in AGENTS:
                _fill(found, agent)
            waiting = "SELECT count(*) FROM memory_jobs WHERE status IN ('pending', 'leased')"
            eventually(lambda: daemon.read(waiting)[0][0] == 0, within_s=120, what="jobs are done")
            _note_ids(found)
            daemon.configure(config.replace("confirm: review", "enabled: false"))
            jobs = "SELECT count(*) FROM memory_jobs"
            eventually(lambda: _adds_no_job(found, jobs), within_s=60, what="the pipeline is off")
            yield found


def _adds_no_job(found: Tenants, jobs: str) -> bool:
    before = found.daemon.read(jobs)
    found.daemon.owner.remember(f"Probe {secrets.token_hex(4)}", agentId="probe")
    return found.daemon.read(jobs) == before


def _fill(found: Tenants, agent: str) -> None:
    """Store objects of every kind for the agent. Their words begin with its name, or that of twins."""
    client = found.token("operator", {"agent": agent})
    begin = "twin" if agent in TWINS else agent
    spell = (f"{begin}q{kind}" for kind in map("".join, itertools.product("bcdfgh", "aeiou", "klmn")))

    def canary(**of: Any) -> str:
        one = Canary(next(spell), agent, **of)
        found.canaries.append(one)
        return one.word

    for project, user, visibility in itertools.product(PROJECTS, USERS, VISIBILITIES):
        of = {"is_memory": True, "project": project, "user": user}
        word, tag = canary(**of), canary(**of)
        fields = {"project": project, "who": user, "visibility": visibility, "tags": [tag], "importance": 0.9}
        content = f"The {QUERY} of {word} opens at noon. The crane of {word} is painted red."
        stored = client.remember(content, **fields, idempotencyKey=f"key-{word}", sourceId=f"source-{word}")
        found.ids.append(("memory", stored["id"], found.canaries[-2]))
    entity, aspect, fact, other = canary(), canary(), canary(), canary()
    attribute = {"content": f"The gate is {fact}", "groupKey": aspect, "claimKey": aspect}
    structured = {
        "entities": [{"source": entity, "relationship": "uses", "target": other}],
        "aspects": [
            {"entity": entity, "aspect": aspect, "attributes": [attribute, {**attribute, "kind": "constraint"}]}
        ],
    }
    client.remember(f"The {QUERY} has a gate", structured=structured, sourceId="source-graph")
    for item in client.get("/api/knowledge/entities", q=begin).ok()["items"]:
        found.ids.append(("entity", item["entity"]["id"], found.canaries[-4]))
    doomed = client.remember(f"The {QUERY} of {canary(is_memory=True)} was sold")["id"]
    client.request("DELETE", f"/api/memory/{doomed}", {"reason": "r"}).ok()
    found.ids.append(("memory", doomed, found.canaries[-1]))
    for project in PROJECTS[:2]:
        key, turn, checkpoint = canary(), canary(), canary()
        hook = {"harness": "codex", "sessionKey": key, "project": project, "runtimePath": "plugin"}
        client.post("/api/hooks/session-start", hook).ok()
        client.post("/api/hooks/user-prompt-submit", {**hook, "userPrompt": f"where is the {QUERY} of {turn}?"}).ok()
        made = client.post("/api/checkpoints", {**hook, "context": f"The {QUERY} of {checkpoint} is half built."}).ok()
        found.ids.append(("checkpoint", made["id"], found.canaries[-1]))
        said = f"User: Where is the {QUERY} of {turn}?\nAssistant: The {QUERY} of {turn} is in the north.\n"
        client.post("/api/hooks/session-checkpoint-extract", {**hook, "transcript": said}).ok()
        client.post("/api/hooks/compaction-complete", {**hook, "summary": f"The {QUERY} of {canary()} was moved."}).ok()
        client.post("/api/hooks/skill-invocation", {**hook, "skill": f"skill-{canary()}"}).ok()
        found.ids += [("session", key, found.canaries[-5]), ("session", f"agent:{agent}:{key}", found.canaries[-5])]
        ended = {**hook, "sessionKey": f"{key}-past", "transcript": said.replace("north", "south") * 30}
        client.post("/api/hooks/session-end", ended).ok()
        found.ids.append(("session", f"agent:{agent}:{key}-past", found.canaries[-5]))
    text = f"## Open Threads\n- The {QUERY} of {canary()} is not painted."
    client.post("/api/hooks/synthesis/complete", {"harness": "codex", "content": text}).ok()
    text = f"## Open Threads\n- The {QUERY} of {canary()} is painted."
    client.post("/api/hooks/synthesis/complete", {"harness": "codex", "content": text}).ok()
    client.close()


_OF_MEMORIES = {
    "job": "SELECT id, memory_id FROM memory_jobs WHERE memory_id IS NOT NULL",
    "run": "SELECT id, memory_id FROM pipeline_runs",
    "proposal": "SELECT p.id, r.memory_id FROM memory_proposals p JOIN pipeline_runs r ON r.id = p.run_id",
}


def _note_ids(found: Tenants) -> None:
    """Note the ids of what the pipeline has made of the memories, each under the canary of its memory."""
    canary_of = {memory: canary for kind, memory, canary in found.ids if kind == "memory"}
    for kind, sql in _OF_MEMORIES.items():
        made = [(row, canary_of[memory]) for row, memory in found.daemon.read(sql) if memory in canary_of]
        assert made, kind
        found.ids += [(kind, row, canary) for row, canary in made]
