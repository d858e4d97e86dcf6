"""Random sequences of operations on memories, compared step by step with a small reference model.

One daemon serves all examples; each example has two agents and scopes of its own.

Source: docs/reliability.md R24; docs/decisions.md 3, 4, 35, 38, 42.
"""

from __future__ import annotations

import http.client
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.hostile.conftest import LONG, SEED, scale
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.reference_model import Outcome, ReferenceMemory, Row

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(4 * 3600)]

EXAMPLES = scale(15, 2_000)
STEPS = 50
PAIRS = 400
ROSTER = "agents:\n  roster:\n" + "".join(
    f"    - {{name: {name}-{pair}, read_policy: group, policy_group: pair-{pair}}}\n"
    for pair in range(PAIRS)
    for name in ("ada", "bob")
)

PATIENT = "writer:\n  requestTimeoutMs: 30000\ngateway:\n  requestTimeoutMs: 40000\n"
BUSY_S = 30.0
"""How long a request is repeated that a busy daemon refuses."""
ONE = st.sampled_from([0, 0, 0, 1])
"""Mostly the same agent and scope: otherwise duplicates would be rare."""
CONTENTS = st.sampled_from(
    ["Quartz vein", "quartz vein.", "Basalt", "basalt!?", "always Flint", "Mica, feldspar", 'user\'s "flint" & <石英>']
)
TAGS = st.lists(st.sampled_from(["red", "blue", "Green"]), unique=True, max_size=2).map(tuple)
VERSIONS = st.one_of(st.none(), st.none(), st.integers(1, 5))
IMPORTANCES = st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0])
TYPES = st.sampled_from(["fact", "rule", "own-type"])
WISHES = st.fixed_dictionaries(
    {
        "content": CONTENTS,
        "visibility": st.sampled_from(["global", "global", "private"]),
        "project": st.sampled_from([None, None, "p1"]),
        "source_id": st.sampled_from([None, None, "source-1"]),
        "key": st.sampled_from([None, None, "key-1", "key-2"]),
        "type": TYPES,
        "tags": TAGS,
        "importance": IMPORTANCES,
        "pinned": st.booleans(),
    }
)


class Api:
    """HTTP on one kept-alive connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def request(self, method: str, target: str, body: Any = None, **parameters: Any) -> tuple[int, Any]:
        given = {name: value for name, value in parameters.items() if value is not None}
        path = f"{target}?{urlencode(given)}" if given else target
        raw = None if body is None else json.dumps(body).encode()
        until = time.monotonic() + BUSY_S
        while True:
            self._connection.request(method, path, raw, {"Content-Type": "application/json"} if raw else {})
            response = self._connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 503 or time.monotonic() > until:
                break
            time.sleep(0.1)  # nothing was applied: a busy daemon is asked again
        assert response.status < 500, answer
        return response.status, answer


class MemoryMachine(RuleBasedStateMachine):
    """``ids`` are memories that exist or have existed; ``previews`` are batch forgets that may be executed."""

    port = 0
    numbers = itertools.count()
    forgotten: ClassVar[list[tuple[float, int]]] = []
    requests = 0

    ids = Bundle("ids")
    previews = Bundle("previews")

    def __init__(self) -> None:
        super().__init__()
        number = next(self.numbers)
        pair = number % PAIRS
        self.agents = (f"ada-{pair}", f"bob-{pair}")
        self.scopes = (None, "inner") if number < PAIRS else (f"{number}-outer", f"{number}-inner")
        self.model = ReferenceMemory()
        self.api = Api(self.port)
        self.count = 0

    def teardown(self) -> None:
        """At the end each memory is read by its owner, tombstones too."""
        try:
            for row in self.model.rows.values():
                agent, scope = self.agents.index(row.agent), self.scopes.index(row.scope)
                self.shown(row.id, agent, scope, tombstones=True)
                self.told(row.id, agent, scope)
        finally:
            self.api.close()

    def ask(self, method: str, target: str, body: Any = None, **parameters: Any) -> tuple[int, Any]:
        type(self).requests += 1
        return self.api.request(method, target, body, **parameters)

    def who(self, agent: int, scope: int) -> dict[str, Any]:
        return {"agentId": self.agents[agent], "scope": self.scopes[scope]}

    # rules

    @rule(target=ids, agent=ONE, scope=ONE, wishes=st.lists(WISHES, min_size=1, max_size=4))
    def remember(self, agent: int, scope: int, wishes: list[dict[str, Any]]) -> Any:
        new = [self.remembered(agent, scope, Row(id="", agent=self.agents[agent], scope=self.scopes[scope], **wish))
               for wish in wishes]  # fmt: skip
        return multiple(*(memory_id for memory_id in new if memory_id is not None))

    def remembered(self, agent: int, scope: int, wish: Row) -> str | None:
        same = self.model.duplicates(wish)
        status, answer = self.ask(
            "POST",
            "/api/memory/remember",
            {
                **self.who(agent, scope),
                **{name: getattr(wish, name) for name in ("content", "type", "importance", "pinned", "visibility")},
                "tags": list(wish.tags),
                "project": wish.project,
                "sourceId": wish.source_id,
                "idempotencyKey": wish.key,
            },
        )
        assert status == 200, answer
        assert answer["deduped"] == bool(same)
        if same:
            assert answer["id"] in {row.id for row in same}
            wish = self.model.remembered_again(answer["id"], wish)
        assert answer["content"] == wish.content
        assert (answer["type"], answer["pinned"], answer["importance"]) == (wish.type, wish.pinned, wish.importance)
        assert answer["tags"] == (",".join(wish.tags) or None)
        if same:
            return None
        assert answer["id"] not in self.model.rows
        wish.id = answer["id"]
        self.model.add(wish)
        return wish.id

    @rule(
        memory_id=ids,
        agent=ONE,
        scope=ONE,
        if_version=VERSIONS,
        changes=st.fixed_dictionaries(
            {},
            optional={
                "content": CONTENTS, "type": TYPES, "tags": TAGS, "importance": IMPORTANCES, "pinned": st.booleans(),
            },
        ).filter(bool),
    )  # fmt: skip
    def modify(self, memory_id: str, agent: int, scope: int, if_version: int | None, changes: dict[str, Any]) -> None:
        body = {**changes, "reason": "model"}
        if if_version is not None:
            body["if_version"] = if_version
        answered = self.ask("PATCH", f"/api/memory/{memory_id}", body, **self.who(agent, scope))
        self.changed(memory_id, answered, self.model.modify(memory_id, self.agents[agent], if_version, **changes))

    @rule(
        memory_id=ids, agent=ONE, scope=ONE, if_version=VERSIONS, force=st.booleans(),
        in_query=st.booleans(),
    )  # fmt: skip
    def forget(
        self, memory_id: str, agent: int, scope: int, if_version: int | None, *, force: bool, in_query: bool
    ) -> None:
        how = {"reason": "model", "force": force, "if_version": if_version}
        if in_query:
            answered = self.ask("DELETE", f"/api/memory/{memory_id}", **self.who(agent, scope), **how)
        else:
            answered = self.ask("DELETE", f"/api/memory/{memory_id}", how, **self.who(agent, scope))
        self.changed(memory_id, answered, self.model.forget(memory_id, self.agents[agent], if_version, force=force))

    @rule(memory_id=ids, agent=ONE, scope=ONE, if_version=VERSIONS)
    def recover(self, memory_id: str, agent: int, scope: int, if_version: int | None) -> None:
        body = {"reason": "model", "if_version": if_version}
        answered = self.ask("POST", f"/api/memory/{memory_id}/recover", body, **self.who(agent, scope))
        self.changed(memory_id, answered, self.model.recover(memory_id, self.agents[agent], if_version))

    def changed(self, memory_id: str, answered: tuple[int, Any], expected: Outcome) -> None:
        status, answer = answered
        assert (status, answer["status"]) == expected, answer
        row = self.model.rows.get(memory_id)
        if expected[0] == 200:
            assert row is not None
            assert answer.get("success") is (None if expected[1] == "recovered" else True)
            assert answer["newVersion"] == row.version
        elif expected[1] != "not_found":
            assert row is not None
            assert answer["currentVersion"] == row.version
        else:
            assert "currentVersion" not in answer, "the version of a memory that the caller may not read"

    @rule(
        target=previews,
        agent=ONE,
        scope=ONE,
        chosen=st.one_of(
            TYPES.map(lambda name: {"type": name}),
            st.sampled_from(["red", "blue"]).map(lambda tag: {"tags": [tag]}),
        ),
        limit=st.sampled_from([1, 3, 200]),
        force=st.booleans(),
    )
    def preview(self, agent: int, scope: int, chosen: dict[str, Any], limit: int, *, force: bool) -> Any:
        wish = {**self.who(agent, scope), **chosen, "limit": limit, "force": force, "reason": "model"}
        status, answer = self.ask("POST", "/api/memory/forget", {**wish, "mode": "preview"})
        assert status == 200, answer
        rows = self.selected(wish)
        assert [(c["id"], c["version"], c["pinned"]) for c in answer["candidates"]] == [
            (row.id, row.version, row.pinned) for row in rows
        ]
        assert answer["count"] == len(rows)
        assert answer["requiresConfirm"] in self.needs_token(wish)
        return wish, [(row.id, row.version) for row in rows], answer["confirmToken"]

    @rule(previewed=consumes(previews), confirmed=st.sampled_from([True, True, True, False]))
    def execute(self, previewed: Any, *, confirmed: bool) -> None:
        wish, pairs, token = previewed
        rows = self.selected(wish)
        body = {**wish, "mode": "execute", **({"confirm_token": token} if confirmed else {})}
        status, answer = self.ask("POST", "/api/memory/forget", body)
        needed = self.needs_token(wish)
        if not confirmed and True in needed and (status == 400 or False not in needed):
            assert (status, answer["code"]) == (400, "confirm_required")
            return
        if confirmed and sorted(pairs) != sorted((row.id, row.version) for row in rows):
            assert (status, answer["code"]) == (409, "conflict"), "another set than the one that was previewed"
            return
        assert status == 200, answer
        assert [result["id"] for result in answer["results"]] == [row.id for row in rows]
        self.forgotten.append((time.monotonic(), sum(result["status"] == "deleted" for result in answer["results"])))
        for row, result in zip(rows, answer["results"], strict=True):
            if wish["force"]:
                assert result["status"] == "deleted"
                self.model.erase(row.id)
            else:
                expected = self.model.forget(row.id, wish["agentId"], None, force=False)
                assert result["status"] == expected[1]

    def matching(self, wish: dict[str, Any]) -> list[Row]:
        filters = {name: wish[name] for name in ("type", "tags") if name in wish}
        return self.model.listed(wish["agentId"], wish["scope"], **filters)

    def selected(self, wish: dict[str, Any]) -> list[Row]:
        return self.matching(wish)[: wish["limit"]]

    def needs_token(self, wish: dict[str, Any]) -> set[bool]:
        """Return whether a token is needed: more than 25 match, or were forgotten in bulk within five minutes.

        Return both values if the five minutes are just about to end.
        """
        matching = len(self.matching(wish))
        now = time.monotonic()
        within, about = (
            sum(count for at, count in self.forgotten if now - at < seconds) for seconds in (5 * 60 - 10, 5 * 60 + 30)
        )
        return {wish["force"] or (matching > 0 and matching + recent > 25) for recent in (within, about)}

    # the readable memories must be those of the model

    @rule(memory_id=ids, agent=ONE, scope=ONE, tombstones=st.booleans())
    def get(self, memory_id: str, agent: int, scope: int, *, tombstones: bool) -> None:
        self.shown(memory_id, agent, scope, tombstones=tombstones)

    def shown(self, memory_id: str, agent: int, scope: int, *, tombstones: bool) -> None:
        parameters = {**self.who(agent, scope), "include_deleted": str(tombstones).lower()}
        status, answer = self.ask("GET", f"/api/memory/{memory_id}", **parameters)
        row = self.model.row(memory_id, self.agents[agent])
        if row is None or (row.deleted and not tombstones):
            assert (status, answer["code"]) == (404, "not_found")
            return
        assert status == 200
        shown = {name: answer[name] for name in ("content", "type", "importance", "version", "visibility", "project")}
        assert shown == {name: getattr(row, name) for name in shown}
        assert (answer["agent_id"], answer["scope"], answer["source_id"]) == (row.agent, row.scope, row.source_id)
        assert (answer["pinned"], answer["is_deleted"]) == (int(row.pinned), int(row.deleted))
        assert answer["idempotency_key"] == row.key
        assert answer["tags"] == (",".join(row.tags) or None)

    @rule(memory_id=ids, agent=ONE, scope=ONE)
    def history(self, memory_id: str, agent: int, scope: int) -> None:
        self.told(memory_id, agent, scope)

    def told(self, memory_id: str, agent: int, scope: int) -> None:
        status, answer = self.ask("GET", f"/api/memory/{memory_id}/history", **self.who(agent, scope))
        row = self.model.row(memory_id, self.agents[agent])
        if row is None:
            assert (status, answer["code"]) == (404, "not_found")
            return
        assert status == 200
        assert [(event["event"], event["newContent"]) for event in answer["history"]] == row.events
        assert answer["count"] == len(row.events)
        assert row.version == sum(event != "none" for event, _ in row.events)

    @rule(
        agent=ONE,
        scope=ONE,
        filters=st.fixed_dictionaries(
            {}, optional={"type": TYPES, "pinned": st.just(True), "project": st.just("p1"),
                          "importance_min": st.just(0.5), "tags": st.just(("red", "blue"))},
        ),
        page=st.integers(1, 5),
    )  # fmt: skip
    def list_page_by_page(self, agent: int, scope: int, filters: dict[str, Any], page: int) -> None:
        expected = self.model.listed(self.agents[agent], self.scopes[scope], **filters)
        spelt = {name: ",".join(value) if name == "tags" else value for name, value in filters.items()}
        spelt |= {"pinned": "true"} if "pinned" in spelt else {}
        found: list[str] = []
        for offset in range(0, len(expected) + 1, page):
            parameters = {**self.who(agent, scope), **spelt, "limit": page, "offset": offset}
            status, answer = self.ask("GET", "/api/memories", **parameters)
            assert status == 200, answer
            assert answer["total"] == len(expected)
            found += [row["id"] for row in answer["memories"]]
        assert found == [row.id for row in expected]

    @rule(agent=ONE, scope=ONE, word=st.sampled_from(["quartz", "flint", "basalt", "mica"]))
    def recall(self, agent: int, scope: int, word: str) -> None:
        body = {"query": word, "limit": 100, **self.who(agent, scope)}
        status, answer = self.ask("POST", "/api/memory/recall", body)
        assert status == 200, answer
        live = {row.id: row for row in self.model.listed(self.agents[agent], self.scopes[scope])}
        found = {row["id"]: row for row in answer["results"]}
        assert set(found) <= set(live), "somebody else's memory, or a forgotten one"
        assert {row.id for row in live.values() if word in row.content.lower()} <= set(found)
        assert all(row["content"] == live[row["id"]].content for row in found.values())

    @precondition(lambda self: self.model.rows)
    @invariant()
    def counts_agree(self) -> None:
        self.count += 1
        if self.count % 5:
            return
        for agent in self.agents:
            for scope in self.scopes:
                for deleted in (False, True):
                    expected = self.model.listed(agent, scope, deleted=deleted)
                    parameters = {"agentId": agent, "scope": scope, "deleted": str(deleted).lower(), "limit": 1000}
                    _, answer = self.ask("GET", "/api/memories", **parameters)
                    shown = {row["id"]: (row["content"], row["version"]) for row in answer["memories"]}
                    assert shown == {row.id: (row.content, row.version) for row in expected}
                    assert answer["total"] == len(expected)


@pytest.fixture(scope="module")
def shared() -> Iterator[LiveDaemon]:
    with live_daemon(config=ROSTER + PATIENT) as daemon:
        yield daemon
        assert daemon.faults() == []
        assert {actor["incarnation"] for actor in daemon.actors().values()} == {1}
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_random_sequences_of_operations_agree_with_the_reference_model(shared: LiveDaemon) -> None:
    MemoryMachine.port = shared.port
    run_state_machine_as_test(
        seeded(SEED)(MemoryMachine) if LONG else MemoryMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not LONG,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"seed {SEED}: {EXAMPLES} lives of up to {STEPS} steps, {MemoryMachine.requests} requests")
