"""The Python client against real daemons, also while these are killed, stopped, busy or away.

Source: docs/guides/python.md; docs/reliability.md R1, "HTTP outcomes"; docs/decisions.md 3, 59.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from signet_actors.client import (
    AsyncClient,
    Client,
    Conflicting,
    DaemonUnreachable,
    DoesNotExist,
    Limits,
    MemoryLine,
    ModifyPatch,
    NoReply,
    NotPermitted,
    Refused,
    TemporarilyRefused,
)
from signet_actors.operations.auth import WHO_AM_I
from signet_actors.operations.hooks import MemoryFate
from signet_actors.operations.operation import EXAMPLE_MEMORY, Operation
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.remember import RememberReply
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client as HttpClient
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

LONG = Limits(total_s=60, attempt_s=30, start_s=60)
"""For tests that restart daemons on a busy machine."""


def url_of(daemon: LiveDaemon) -> str:
    return f"http://127.0.0.1:{daemon.port}"


@pytest.fixture
def client(daemon: LiveDaemon, room: HttpClient) -> Iterator[Client]:
    """A client that acts for an agent with an empty store."""
    agent = room.headers["x-signet-agent-id"]
    with Client(url_of(daemon), agent=agent, session="s1", actor="builder", limits=LONG) as made:
        yield made


def stored(client: Client, content: str, **fields: Any) -> str:
    reply = client.remember(content, **fields)
    assert isinstance(reply, RememberReply)
    return reply.id


def test_a_program_reads_what_was_asked_and_given_and_tries_a_prompt(client: Client) -> None:
    assert client.sessions(limit=1).sessions == []
    note = stored(client, "The client note says that the pump room is locked at night", project="/srv/pumps")
    other = stored(client, "Another note of the client is about valves", type="rule", project="/srv/pumps")
    asked = "when is the pump room locked, says the client note?"
    tried = client.try_prompt(asked, project="/srv/pumps", session="s1", explain_id=other)
    assert (tried.dry_run, tried.memory_count) == (True, 1)
    assert isinstance(tried.considered, list)
    assert [row.id for row in tried.considered if row.given] == [note]
    assert isinstance(tried.explained, MemoryFate)
    assert client.searches().searches == [], "a try is not kept"
    assert client.recall("which pump room is locked at night?").results
    (row,) = client.searches(kind="recall", no_hits=False).searches
    assert (row.prompt, next(each.id for each in row.memories if each.given)) == (
        "which pump room is locked at night?",
        note,
    )
    assert client.searches(since="2100-01-01").searches == []
    counted = client.prompts(hours=2)
    assert (counted.prompts, counted.by_hour, counted.complete) == (0, [0, 0], True)
    assert counted.characters == row.characters
    assert client.searches(session="s1", kind="prompt", number=1).searches == []
    (said,) = client.conversation("s1", limit=1).rows
    assert said.search is not None
    assert (said.turn, said.search.id, said.search.memories[0].seems_used) == (None, row.id, False)
    assert (client.findings().verdict.word, client.findings().findings) == ("Ready", [])
    assert [kept.key for kept in client.sessions(limit=1).sessions] == ["s1"]
    facets = client.facets(project="/srv/pumps", top=1)
    assert (facets.total, facets.types.distinct, len(facets.types.values)) == (2, 2, 1)
    assert [event.event for event in client.timeline(note, order="desc", limit=1).events] != []
    with pytest.raises(DoesNotExist):
        client.timeline("no such name")


def test_a_memory_moves_to_another_project_and_out_of_it(client: Client) -> None:
    stored = client.remember("The moved client note", project="/srv/quay").id
    for number, (project, expected) in enumerate((("/srv/pier", "/srv/pier"), ("", None)), start=2):
        assert client.update(stored, reason="sorted", project=project).new_version == number
        assert client.get(stored).project == expected
    (moved,) = client.update_many([ModifyPatch(id=stored, to_project="/srv/quay")], reason="back").results
    assert (moved.status, client.get(stored).project) == ("updated", "/srv/quay")
    assert client.forget(stored, reason="done").success


def test_a_memory_is_stored_found_changed_forgotten_and_recovered(client: Client) -> None:
    first = client.remember("The staging database listens on port 5433", tags=["ops", "db"], importance=0.9)
    assert isinstance(first, RememberReply)
    assert (first.deduped, first.tags, first.importance) == (False, "ops,db", 0.9)
    (found,) = client.recall("which port does the staging database use?", tags="ops", limit=5).results
    assert found.id == first.id
    assert [row.id for row in client.search("staging database").results] == [first.id]
    assert client.search("staging nowhere").results == []

    version = client.get(first.id).version
    changed = client.update(first.id, reason="moved", content="The staging database listens on port 5434", tags=[])
    assert changed.new_version == version + 1
    assert client.get(first.id).tags is None
    with pytest.raises(Conflicting, match="Version conflict") as conflict:
        client.update(first.id, reason="late", content="x", if_version=version)
    assert conflict.value.body["currentVersion"] == version + 1

    assert client.forget(first.id, reason="obsolete").success
    with pytest.raises(DoesNotExist):
        client.get(first.id)
    assert client.get(first.id, include_deleted=True).is_deleted == 1
    assert [row.id for row in client.list(deleted=True).memories] == [first.id]
    assert client.recover(first.id, reason="needed").status == "recovered"
    assert [row.id for row in client.list(type=first.type).memories] == [first.id]

    events = client.history(first.id).history
    assert [event.event for event in events] == ["created", "updated", "deleted", "recovered"]
    assert {(event.changed_by, event.actor_type, event.session_id) for event in events} == {("builder", "sdk", "s1")}
    assert len({event.request_id for event in events}) == 4
    assert conflict.value.request_id not in {event.request_id for event in events}


def test_many_memories_are_changed_and_forgotten_after_a_confirmation(client: Client) -> None:
    ids = [stored(client, f"scratch note number {number}", tags=["scratch"]) for number in range(3)]
    done = client.update_many([ModifyPatch(id=id_, pinned=True) for id_ in ids], reason="kept")
    assert (done.total, done.updated) == (3, 3)
    assert [memory.pinned for memory in client.list(pinned=True).memories] == [1, 1, 1]

    preview = client.preview_forget(tags=["scratch"], force=True)
    assert (preview.count, {one.id for one in preview.candidates}) == (3, set(ids))
    with pytest.raises(Refused) as refused:
        client.forget_many(tags=["scratch"], force=True, reason="tidy")
    assert refused.value.code == "confirm_required"
    gone = client.forget_many(tags=["scratch"], force=True, reason="tidy", confirm_token=preview.confirm_token)
    assert gone.deleted == 3
    assert client.list().total == 0


def test_memories_are_exported_and_imported(client: Client, daemon: LiveDaemon, empty_rooms: Callable[[], Any]) -> None:
    for number in range(3):
        stored(client, f"fact number {number} of the export", tags=["moved"])
    memories = list(client.export_memories())
    assert [memory.content for memory in memories] == [f"fact number {number} of the export" for number in range(3)]

    other = empty_rooms().headers["x-signet-agent-id"]
    with Client(url_of(daemon), agent=other, limits=LONG) as importer:
        lines = [MemoryLine(content=memory.content, tags=memory.tags) for memory in memories]
        done = importer.import_memories([*lines, MemoryLine(content="x", created_at="never")])
        assert (done.imported, done.deduped) == (3, 0)
        assert [(line.line, line.field) for line in done.refused] == [(4, "createdAt")]
        assert importer.import_memories(lines).deduped == 3
        assert {memory.tags for memory in importer.list().memories} == {"moved"}


def test_the_daemon_tells_about_itself(client: Client) -> None:
    assert client.health().status == "healthy"
    assert client.ready().ready
    assert {actor.name for actor in client.status().actors} >= {"writer", "gateway"}
    assert client.pipeline_status() is not None
    assert client.reviews().items == []
    assert client.call(WHO_AM_I).mode == "local"
    assert client.similar(stored(client, "a lonely memory")).results == []
    assert [row.access_count for row in client.most_used().memories] == [0]
    for look in (client.job, client.wait_for_job):
        with pytest.raises(DoesNotExist, match="Job not found"):
            look("0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50")


def test_fifty_calls_at_once_are_all_answered(daemon: LiveDaemon, room: HttpClient) -> None:
    agent = room.headers["x-signet-agent-id"]

    async def go() -> tuple[list[Any], list[Any]]:
        async with AsyncClient(url_of(daemon), agent=agent, limits=LONG) as client:
            written = await asyncio.gather(*(client.remember(f"parallel fact number {n}") for n in range(50)))
            read = await asyncio.gather(*(client.get(reply.id) for reply in written))
            return written, read

    written, read = asyncio.run(go())
    assert [memory.content for memory in read] == [f"parallel fact number {n}" for n in range(50)]
    assert len({reply.id for reply in written}) == 50
    assert len(room.listed()) == 50


def contents(daemon: LiveDaemon) -> list[str]:
    return [content for (content,) in daemon.read("SELECT content FROM memories ORDER BY content")]


def test_a_memory_whose_answer_was_lost_with_the_gateway_is_stored_once() -> None:
    """The gateway is killed after the writer has committed and before the client is answered."""
    killed = {"SIGNET_SYNC_POINTS": "gateway.reply_received=kill@1/1"}
    with live_daemon(environ=killed) as daemon, Client(url_of(daemon), limits=LONG) as client:
        reply = client.remember("stored once")
        assert isinstance(reply, RememberReply)
        assert daemon.every_process()["gateway"]["incarnation"] == 2
        assert contents(daemon) == ["stored once"]
        assert not reply.deduped
        assert client.get(reply.id).version == 1


def test_a_memory_whose_answer_was_lost_with_the_whole_daemon_is_stored_once() -> None:
    """The daemon is killed between the commit and the answer, and is back later at another port."""
    with live_daemon(started=False) as daemon, ThreadPoolExecutor(1) as thread:
        daemon.start(SIGNET_SYNC_POINTS="gateway.reply_received=sleep:20000@1/1")
        with Client(workspace=daemon.workspace, limits=LONG) as client:
            waiting = thread.submit(client.remember, "stored once")
            eventually(lambda: contents(daemon) == ["stored once"], within_s=30, what="the commit")
            daemon.kill_supervisor()
            daemon.gone()
            assert not waiting.done()
            daemon.start()
            reply = waiting.result(60)
            assert isinstance(reply, RememberReply)
            assert contents(daemon) == ["stored once"]
            assert client.get(reply.id).content == "stored once"


def test_a_write_while_the_writer_restarts_is_repeated_until_it_is_back() -> None:
    with live_daemon() as daemon, Client(url_of(daemon), limits=LONG) as client:
        for number in range(3):
            daemon.kill("writer")
            stored(client, f"note number {number}")
        assert contents(daemon) == [f"note number {number}" for number in range(3)]


def test_a_daemon_that_hangs_is_reported_in_time_and_served_again_after_its_replacement() -> None:
    with live_daemon() as daemon, Client(url_of(daemon), limits=LONG) as client:
        daemon.kill("gateway", signal.SIGSTOP)
        with (
            Client(url_of(daemon), limits=Limits(total_s=0.4, attempt_s=0.2)) as short,
            pytest.raises(NoReply, match="whether the change was applied is unknown"),
        ):
            short.remember("perhaps")
        stored(client, "certainly")
        assert "certainly" in contents(daemon)


def test_a_frozen_daemon_refuses_at_once_with_its_sentence() -> None:
    frozen = "memory: {pipelineV2: {enabled: false, mutationsFrozen: true}}"
    with live_daemon(config=frozen) as daemon, Client(url_of(daemon)) as client:
        with pytest.raises(TemporarilyRefused, match="Mutations are frozen") as refused:
            client.remember("x")
        assert (refused.value.status, refused.value.code) == (503, "mutations_frozen")
        assert refused.value.retry_after_ms == 60_000
        assert client.recall("x").results == []


def test_a_daemon_that_is_not_there_is_a_clear_error() -> None:
    with live_daemon() as daemon:
        url, workspace = url_of(daemon), daemon.workspace
        assert daemon.stop() == 0
        short = Limits(start_s=0.2)
        with (
            Client(url, limits=short) as client,
            pytest.raises(DaemonUnreachable, match=f"no daemon answers at {url}; start it with `signet start`"),
        ):
            client.recall("x")
        with (
            Client(workspace=workspace, limits=short) as client,
            pytest.raises(DaemonUnreachable, match=f"no daemon runs on {workspace}; start it with `signet start`"),
        ):
            client.recall("x")


def test_only_the_owner_may_do_what_needs_the_owner_token() -> None:
    with (
        live_daemon(config="gateway: {requireOwner: true}\n") as daemon,
        Client(workspace=daemon.workspace) as owner,
        Client(url_of(daemon), token="wrong") as stranger,
    ):
        owner.remember("mine")
        assert [memory.content for memory in owner.export_memories()] == ["mine"]
        with pytest.raises(NotPermitted) as refused:
            stranger.export_page()
        assert refused.value.status == 403
        assert refused.value.trace_id


FIRST_BODY: dict[str, dict[str, Any]] = {"memories.forget": {"mode": "execute", "reason": "r", "tags": ["scratch"]}}
"""Where the example changes nothing."""
OTHER_BODY: dict[str, dict[str, Any]] = {"codex.write_note": {"content": "another note"}}
"""Where it is not the body, but what it asks for, that must be the same."""


def body_of(operation: Operation) -> dict[str, Any]:
    names = {name for name in operation.example if "{" + name + "}" in operation.paths[0]}
    return {name: value for name, value in operation.example.items() if name not in names}


def test_the_daemon_knows_the_keys_of_the_operations_that_are_declared_so() -> None:
    """The same key with another request is refused, if the first one was applied under it."""
    with live_daemon(pipeline=True) as daemon:
        memory = {"id": EXAMPLE_MEMORY, "content": "Deployments are blocked on Fridays after 14:00"}
        daemon.api.post("/api/memory/import", memory).ok()
        daemon.api.remember("a scratch note", tags=["scratch"])
        known: dict[str, bool] = {}
        for operation in OPERATIONS:
            if not operation.has_effect or operation.name.startswith("hooks."):  # a hook refuses nothing
                continue
            path = operation.paths[0].format(**operation.example)
            key = {"Idempotency-Key": f"key-of-{operation.name}"}
            body = {**body_of(operation), **FIRST_BODY.get(operation.name, {})}
            other = {**body, **OTHER_BODY.get(operation.name, {"of_no_effect": 1})}
            first = daemon.api.request(operation.method, path, body, key)
            second = daemon.api.request(operation.method, path, other, key)
            if first.status == 200:
                known[operation.name] = second.status == 409 and second.json["code"] == "idempotency_conflict"
        assert known == {operation.name: operation.keyed for operation in OPERATIONS if operation.name in known}
        assert {"memories.remember", "memories.patch", "memories.delete", "memories.import"} <= set(known)
