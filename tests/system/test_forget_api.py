"""The batch forget and the batch modify against a live daemon.

Source: memory-api.txt "POST /api/memory/forget", "POST /api/memory/modify"; docs/decisions.md 38, 42;
docs/reliability.md R23.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MISSING = "00000000-0000-7000-8000-000000000000"
FORGET = "/api/memory/forget"
MODIFY = "/api/memory/modify"


def preview(client: Client, **body: Any) -> Any:
    return client.post(FORGET, {"mode": "preview", **body}).ok()


def execute(client: Client, **body: Any) -> Answer:
    return client.post(FORGET, {"mode": "execute", "reason": "cleaning up", **body})


def many(client: Client, count: int, word: str = "stale") -> list[str]:
    """``count`` memories tagged ``word``."""
    return [client.remember(f"{word} note number {number}", tags=[word])["id"] for number in range(count)]


def live_ids(client: Client) -> set[str]:
    return {row["id"] for row in client.listed()}


@pytest.fixture(scope="module")
def brisk() -> Iterator[LiveDaemon]:
    """A daemon whose confirm tokens expire after a second."""
    with live_daemon(config="gateway:\n  confirmTtlMs: 1000\n") as daemon:
        yield daemon


def test_a_short_id_of_many_live_memories_forgets_none_of_them(room: Client) -> None:
    ids = [f"01a2007a-0000-7000-8000-{number:012}" for number in range(20)]
    lines = "\n".join(json.dumps({"id": memory_id, "content": memory_id}) for memory_id in ids)
    room.request("POST", "/api/memory/import", lines.encode(), {"Content-Type": "application/x-ndjson"}).ok()
    for memory_id in ids[:10]:
        room.forget(ids=[memory_id])
    arguments = ["--url", f"http://127.0.0.1:{room.daemon.port}", "forget", ids[0][:8], "--yes"]
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, all(memory_id in result.stderr for memory_id in ids[10:])) == (2, True), result.stderr
    assert live_ids(room) == set(ids[10:])


def test_a_preview_shows_the_candidates_and_changes_nothing(room: Client) -> None:
    kept = room.remember("The editor is vim")["id"]
    pinned = room.remember("critical: outdated preferences of the pinned kind")["id"]
    plain = room.remember("Outdated preferences of the plain kind")["id"]
    answer = preview(room, query="outdated preferences")
    assert sorted(answer) == ["candidates", "confirmToken", "count", "mode", "requiresConfirm"]
    assert (answer["mode"], answer["count"], answer["requiresConfirm"]) == ("preview", 2, False)
    shown = {candidate["id"]: candidate for candidate in answer["candidates"]}
    assert set(shown) == {pinned, plain}
    assert (shown[pinned]["pinned"], shown[plain]["pinned"]) == (True, False)
    assert all(0 <= candidate["score"] <= 1 and candidate["version"] == 1 for candidate in shown.values())
    assert live_ids(room) == {kept, pinned, plain}
    assert preview(room, ids=[plain])["count"] == 1


def test_without_a_mode_it_is_a_preview(room: Client) -> None:
    many(room, 1)
    assert room.post(FORGET, {"tags": "stale"}).ok()["mode"] == "preview"


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        ({"type": "preference"}, {"type": "decision"}),
        ({"tags": "old"}, {"tags": "new"}),
        ({"who": "claude-code"}, {"who": "codex"}),
        ({"source_type": "import"}, {"source_type": "manual"}),
    ],
)
def test_each_filter_selects(room: Client, wanted: dict[str, str], other: dict[str, str]) -> None:
    chosen = room.remember("Selected by its filter", **wanted)["id"]
    room.remember("Not selected by it", **other)
    assert [candidate["id"] for candidate in preview(room, **wanted)["candidates"]] == [chosen]


def test_times_filter_a_forget(room: Client) -> None:
    ids = [room.remember(f"Of {year}", createdAt=f"{year}-06-01T00:00:00Z")["id"] for year in (2023, 2024, 2025)]
    for body, expected in (
        ({"since": "2024-01-01T00:00:00Z"}, ids[1:]),
        ({"until": "2025-01-01"}, ids[:2]),
        ({"since": "2024-01-01", "until": "2025-01-01"}, ids[1:2]),
    ):
        assert sorted(c["id"] for c in preview(room, **body)["candidates"]) == sorted(expected)


def test_executing_soft_deletes_and_skips_pinned_memories(room: Client) -> None:
    pinned = room.remember("critical: stale but pinned", tags="stale")["id"]
    ids = many(room, 3)
    answer = execute(room, tags="stale", confirm_token=preview(room, tags="stale")["confirmToken"]).ok()
    assert (answer["mode"], answer["requested"], answer["deleted"]) == ("execute", 4, 3)
    results = {result["id"]: result for result in answer["results"]}
    for memory_id in ids:
        assert results[memory_id] == {"id": memory_id, "status": "deleted", "currentVersion": 1, "newVersion": 2}
    assert results[pinned]["status"] == "pinned_requires_force"
    assert live_ids(room) == {pinned}
    assert room.post(f"/api/memory/{ids[0]}/recover", {"reason": "r"}).ok()["status"] == "recovered"
    history = room.get(f"/api/memory/{ids[1]}/history").ok()["history"]
    assert (history[-1]["event"], history[-1]["reason"]) == ("deleted", "cleaning up")


@pytest.fixture
def fresh() -> Iterator[LiveDaemon]:
    """A daemon on which nothing was forgotten lately: all callers of a daemon share what may go without a token."""
    with live_daemon() as daemon:
        yield daemon


def test_a_limit_does_not_get_around_the_token(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 26)
    selections: tuple[dict[str, Any], ...] = ({"tags": "stale"}, {"query": "stale"})
    for limit in (1, 20, 25):
        for selection in selections:
            seen = preview(fresh.api, **selection, limit=limit)
            assert (seen["count"], seen["requiresConfirm"]) == (limit, True)
            execute(fresh.api, **selection, limit=limit).refused(
                400, code="confirm_required", requiresConfirm=True, count=limit
            )
    assert live_ids(fresh.api) == set(ids)
    confirmed = {"query": "stale", "limit": 25, "confirm_token": seen["confirmToken"]}
    assert execute(fresh.api, **confirmed).ok()["deleted"] == 25


def test_slices_by_ids_are_counted_together_for_all_principals(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 31)
    assert execute(fresh.api, ids=ids[:20]).ok()["deleted"] == 20
    assert execute(fresh.api.acting(x_signet_actor="another"), ids=ids[20:25]).ok()["deleted"] == 5
    assert preview(fresh.api, ids=ids[25:26])["requiresConfirm"] is True
    for client in (
        fresh.api,
        fresh.api.acting(x_signet_actor="third", x_signet_actor_type="sdk", x_signet_session_id="s"),
    ):
        execute(client, ids=ids[25:26]).refused(400, code="confirm_required", requiresConfirm=True, count=1)
    assert live_ids(fresh.api) == set(ids[25:])


def replaced(daemon: LiveDaemon, name: str) -> None:
    """Kill the process and wait for its next life."""
    pid = daemon.kill(name)
    eventually(lambda: daemon.is_ready() and daemon.every_process()[name]["pid"] != pid, what=f"{name} is back")


def test_up_to_25_memories_need_no_token_and_no_death_or_restart_resets_the_count(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 26)
    answer = execute(fresh.api, ids=ids[:25]).ok()
    assert (answer["requested"], answer["deleted"]) == (25, 25)
    for killed in ("writer", "gateway", "searcher-1"):
        replaced(fresh, killed)
        execute(fresh.api, ids=ids[25:]).refused(400, requiresConfirm=True)
    assert fresh.stop() == 0
    fresh.start()
    execute(fresh.api, ids=ids[25:]).refused(400, requiresConfirm=True)
    assert live_ids(fresh.api) == {ids[25]}


def test_confirmed_batches_count_too_and_single_deletions_do_not(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 40)
    for memory_id in ids[:10]:
        fresh.api.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    token = preview(fresh.api, ids=ids[10:36])["confirmToken"]
    assert execute(fresh.api, ids=ids[10:36], confirm_token=token).ok()["deleted"] == 26
    execute(fresh.api, ids=ids[36:37]).refused(400, requiresConfirm=True)


def test_concurrent_slices_cannot_exceed_the_limit_together(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 60)
    with ThreadPoolExecutor(12) as callers:
        slices = [ids[start : start + 5] for start in range(0, 60, 5)]
        answers = list(callers.map(lambda part: execute(fresh.api, ids=part), slices))
    assert sorted(answer.status for answer in answers) == [200] * 5 + [400] * 7
    assert len(live_ids(fresh.api)) == 35


def test_a_retry_of_the_last_permitted_slice_gets_the_first_answer(fresh: LiveDaemon) -> None:
    ids = many(fresh.api, 26)
    body = {"mode": "execute", "reason": "r", "ids": ids[:25]}
    first = fresh.api.post(FORGET, body, Idempotency_Key="slice").ok()
    assert first["deleted"] == 25
    assert fresh.api.post(FORGET, body, Idempotency_Key="slice").ok() == first
    next_slice = {**body, "ids": ids[25:]}
    fresh.api.post(FORGET, next_slice, Idempotency_Key="next").refused(400, requiresConfirm=True)
    token = preview(fresh.api, ids=ids[25:])["confirmToken"]
    confirmed = {**next_slice, "confirm_token": token}
    assert fresh.api.post(FORGET, confirmed, Idempotency_Key="next").ok()["deleted"] == 1


def test_more_than_25_memories_need_the_token_of_their_preview(room: Client) -> None:
    ids = many(room, 26)
    refused = execute(room, tags="stale", limit=200).refused(400, requiresConfirm=True, count=26)
    assert live_ids(room) == set(ids)
    seen = preview(room, tags="stale", limit=200)
    assert (seen["requiresConfirm"], seen["count"]) == (True, 26)
    assert isinstance(refused["confirmToken"], str)
    assert execute(room, tags="stale", limit=200, confirm_token=seen["confirmToken"]).ok()["deleted"] == 26
    assert live_ids(room) == set()


def test_the_default_limit_is_20_and_the_cap_200(room: Client) -> None:
    many(room, 201)
    assert preview(room, tags="stale")["count"] == 20
    assert preview(room, tags="stale", limit=200)["count"] == 200
    assert preview(room, tags="stale", limit=1000)["count"] == 200
    seen = preview(room, tags="stale", limit=1000)
    done = execute(room, tags="stale", limit=1000, confirm_token=seen["confirmToken"]).ok()
    assert done["deleted"] == 200
    assert len(live_ids(room)) == 1
    room.post(FORGET, {"ids": [f"id-{number}" for number in range(201)]}).refused(400, field="ids")


def test_a_forged_token_deletes_nothing(room: Client) -> None:
    ids = many(room, 26)
    body = {"tags": "stale", "limit": 200}
    token = preview(room, **body)["confirmToken"]
    other = base64.urlsafe_b64encode(bytes(40)).rstrip(b"=").decode()
    for forged in ("forged", token[:-1], token[::-1], f"{token}A", other, "a" * 32, "é" * 54, token.swapcase()):
        answer = execute(room, **body, confirm_token=forged)
        assert answer.status in {400, 409}, forged
    for wrong in (7, ["a"], {"a": 1}):
        execute(room, **body, confirm_token=wrong).refused(400)
    assert live_ids(room) == set(ids)


@pytest.mark.parametrize("change", ["more", "fewer", "edited", "another set", "force"])
def test_a_token_is_valid_for_exactly_the_previewed_set(room: Client, change: str) -> None:
    ids = many(room, 26)
    body: dict[str, Any] = {"tags": "stale", "limit": 200}
    body["confirm_token"] = preview(room, **body)["confirmToken"]
    match change:
        case "more":
            room.remember("One more stale note", tags="stale")
        case "fewer":
            room.request("DELETE", f"/api/memory/{ids[0]}?reason=r").ok()
        case "edited":
            room.request("PATCH", f"/api/memory/{ids[0]}", {"importance": 0.1, "reason": "r"}).ok()
        case "another set":
            body = {"ids": ids[:1], "confirm_token": body["confirm_token"]}
        case _:
            body["force"] = True
    before = live_ids(room)
    refused = execute(room, **body).refused(409, field="confirm_token")
    assert "preview" in refused["error"]
    assert live_ids(room) == before


def test_an_expired_token_deletes_nothing(brisk: LiveDaemon) -> None:
    room = brisk.api
    ids = many(room, 26, "expiring")
    body = {"tags": "expiring", "limit": 200}
    token = preview(room, **body)["confirmToken"]
    # Another set: until the token expires it is refused for that, afterwards for its age.
    expired = {"ids": ids[:1], "confirm_token": token}
    eventually(lambda: "expired" in execute(room, **expired).refused(409)["error"], what="expired")
    refused = execute(room, **body, confirm_token=token).refused(409, field="confirm_token")
    assert "expired" in refused["error"]
    assert set(ids) <= live_ids(room)


def test_force_deletes_permanently_and_always_needs_a_token(room: Client) -> None:
    pinned = room.remember("critical: forced out although pinned")["id"]
    execute(room, ids=[pinned], force=True).refused(400, requiresConfirm=True)
    seen = preview(room, ids=[pinned], force=True)
    assert seen["requiresConfirm"] is True
    for actor in ("agent", "pipeline"):
        robot = room.acting(x_signet_actor_type=actor)
        execute(robot, ids=[pinned], force=True, confirm_token=seen["confirmToken"]).refused(403, code="forbidden")
    done = execute(room, ids=[pinned], force=True, confirm_token=seen["confirmToken"]).ok()
    assert (done["deleted"], done["results"][0]["status"]) == (1, "deleted")
    room.get(f"/api/memory/{pinned}", include_deleted="true").refused(404)
    room.post(f"/api/memory/{pinned}/recover", {"reason": "r"}).refused(404)


def test_a_memory_deleted_with_force_is_nowhere_on_disk() -> None:
    with live_daemon() as daemon:
        room = daemon.api
        memory_id = room.remember("The word is xylophonist", tags="secretive")["id"]
        room.request("PATCH", f"/api/memory/{memory_id}", {"content": "It was xylophonist", "reason": "r"}).ok()
        room.recall("xylophonist")
        seen = preview(room, ids=[memory_id], force=True)
        execute(room, ids=[memory_id], force=True, confirm_token=seen["confirmToken"]).ok()
        assert daemon.stop() == 0
        holders = [
            str(path.relative_to(daemon.workspace))
            for path in daemon.workspace.rglob("*")
            if path.is_file() and b"xylophonist" in path.read_bytes().lower()
        ]
        assert holders == []


def test_unknown_ids_and_ids_of_other_agents_are_not_found(room: Client, daemon: LiveDaemon) -> None:
    private = daemon.agent("wide").remember("Private to somebody else", visibility="private")["id"]
    mine = room.remember("Mine to forget")["id"]
    ids = [mine, private, MISSING]
    answer = execute(room, ids=ids, confirm_token=preview(room, ids=ids)["confirmToken"]).ok()
    statuses = {result["id"]: result["status"] for result in answer["results"]}
    assert statuses == {mine: "deleted", private: "not_found", MISSING: "not_found"}
    assert daemon.agent("wide").memory(private)["is_deleted"] == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"mode": "preview"}, "query, ids, or at least one filter is required"),
        ({"mode": "execute", "reason": "r"}, "query, ids, or at least one filter is required"),
        ({"mode": "execute", "reason": "r", "ids": []}, "query, ids, or at least one filter is required"),
        ({"ids": [], "query": " ", "tags": ""}, "query, ids, or at least one filter is required"),
        ({"pinned": True}, "query, ids, or at least one filter is required"),
        ({"project": "p"}, "query, ids, or at least one filter is required"),
        ({"mode": "execute", "tags": "stale"}, "reason is required"),
        ({"mode": "explode", "tags": "stale"}, "mode must be one of: preview, execute"),
        ({"mode": "preview", "ids": "*"}, "ids must be an array of strings"),
        ({"mode": "preview", "ids": [1]}, "ids must be an array of strings"),
        ({"mode": "preview", "query": 5}, "query must be a string"),
        ({"mode": "preview", "tags": "stale", "limit": "all of it"}, "limit must be a number"),
        ({"mode": "preview", "since": "yesterday"}, "since must be a valid ISO timestamp"),
        ({"mode": "execute", "tags": "stale", "reason": "r", "force": "maybe"}, "force must be a boolean"),
    ],
)
def test_an_invalid_forget_is_refused_with_a_reason(room: Client, body: Any, text: str) -> None:
    ids = many(room, 1)
    room.post(FORGET, body).refused(400, error=text, code="invalid_request")
    assert live_ids(room) == set(ids)


def test_a_batch_forget_accepts_no_version(room: Client) -> None:
    ids = many(room, 1)
    execute(room, ids=ids, if_version=1).refused(400, field="if_version")
    assert live_ids(room) == set(ids)


def test_an_idempotency_key_does_not_make_a_token_good_for_another_set(room: Client) -> None:
    ids = many(room, 2)
    body = {"mode": "execute", "reason": "r", "tags": "stale"}
    body["confirm_token"] = preview(room, tags="stale")["confirmToken"]
    ids += many(room, 1, "stale too")
    room.request("PATCH", f"/api/memory/{ids[-1]}", {"tags": "stale", "reason": "r"}).ok()
    room.post(FORGET, body, Idempotency_Key="changed").refused(409, field="confirm_token")
    assert live_ids(room) == set(ids)


def test_a_selection_of_nothing_deletes_nothing(room: Client) -> None:
    assert execute(room, tags="stale").ok() == {"mode": "execute", "requested": 0, "deleted": 0, "results": []}


def test_a_retried_execute_gets_the_first_answer(room: Client) -> None:
    many(room, 26)
    body = {"mode": "execute", "reason": "r", "tags": "stale", "limit": 200}
    body["confirm_token"] = preview(room, tags="stale", limit=200)["confirmToken"]
    first = room.post(FORGET, body, Idempotency_Key="sweep").ok()
    assert first["deleted"] == 26
    assert room.post(FORGET, body, Idempotency_Key="sweep").ok() == first


# modify


def test_valid_patches_of_a_batch_are_applied(room: Client) -> None:
    first, second, third, fourth = many(room, 4)
    gone = many(room, 1, "gone")[0]
    room.request("DELETE", f"/api/memory/{gone}?reason=r").ok()
    answer = room.post(
        MODIFY,
        {
            "reason": "Bulk correction",
            "changed_by": "operator",
            "patches": [
                {"id": first, "content": "Updated content", "reason": "Per-patch reason override", "if_version": 1},
                {"id": second, "tags": ["updated"], "importance": 0.6},
                {"id": third, "importance": 0.5, "if_version": 7},
                {"id": fourth, "content": "updated CONTENT"},
                {"id": MISSING, "importance": 0.5},
                {"id": gone, "importance": 0.5},
                {"id": third, "importance": 9},
                {"id": third},
                {"importance": 0.5},
                "no object",
                {"id": third, "importance": 0.8},
            ],
        },
    ).ok()
    assert (answer["total"], answer["updated"]) == (11, 2)
    results = answer["results"]
    assert results[0] == {
        "id": first,
        "status": "updated",
        "currentVersion": 1,
        "newVersion": 2,
        "contentChanged": True,
        "embedded": True,
    }
    assert results[1] == {
        "id": second,
        "status": "updated",
        "currentVersion": 1,
        "newVersion": 2,
        "contentChanged": False,
    }
    assert [result["status"] for result in results[2:]] == [
        "version_conflict",
        "duplicate_content_hash",
        "not_found",
        "deleted",
        "invalid_request",
        "invalid_request",
        "invalid_request",
        "invalid_request",
        "no_changes",
    ]
    assert results[3]["duplicateMemoryId"] == first
    assert all(result["error"] for result in results[2:10])
    trail = [room.get(f"/api/memory/{memory_id}/history").ok()["history"][-1] for memory_id in (first, second)]
    assert [event["reason"] for event in trail] == ["Per-patch reason override", "Bulk correction"]
    assert {event["changedBy"] for event in trail} == {"operator"}


def test_200_patches_are_one_request_and_201_too_many(room: Client) -> None:
    ids = many(room, 200)
    patches = [{"id": memory_id, "importance": 0.1} for memory_id in ids]
    room.post(MODIFY, {"reason": "r", "patches": [*patches, patches[0]]}).refused(400, field="patches")
    assert room.post(MODIFY, {"reason": "r", "patches": patches}).ok()["updated"] == 200


@pytest.mark.parametrize("patches", [None, [], {}, "all", 5])
def test_a_batch_without_patches_is_refused(room: Client, patches: Any) -> None:
    room.post(MODIFY, {"reason": "r", "patches": patches}).refused(400, field="patches")


def test_a_patch_without_any_reason_is_refused(room: Client) -> None:
    (memory_id,) = many(room, 1)
    answer = room.post(MODIFY, {"patches": [{"id": memory_id, "importance": 0.1}]}).ok()
    assert answer["updated"] == 0
    assert (answer["results"][0]["status"], answer["results"][0]["error"]) == ("invalid_request", "reason is required")


def test_many_long_memories_are_forgotten_in_parts_and_a_retry_gets_the_same_answer(brisk: LiveDaemon) -> None:
    ids = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(8)]
    for one in ids:  # a line with an id is one row, however long
        line = {"id": one, "content": f"volume {one} " + "long chapter " * 20_000}
        brisk.api.post("/api/memory/import", line).ok()
    body = {"mode": "execute", "reason": "cleaning up", "ids": ids}
    answer = brisk.api.request("POST", FORGET, body, {"Idempotency-Key": "volumes"}).ok()
    assert (answer["requested"], answer["deleted"]) == (8, 8)
    assert {result["id"]: result["status"] for result in answer["results"]} == dict.fromkeys(ids, "deleted")
    assert not live_ids(brisk.api) & set(ids)
    assert brisk.api.request("POST", FORGET, body, {"Idempotency-Key": "volumes"}).ok() == answer
    assert brisk.read("SELECT 1 FROM request_replies WHERE request_id LIKE 'key:%#%'"), "it was one transaction"


def test_a_memory_with_a_long_history_is_reported_deleted_when_no_event_has_its_text(brisk: LiveDaemon) -> None:
    client = brisk.api
    memory_id = client.remember("the journal")["id"]
    for number in range(8):
        text = f"entry {number} " + "of the journal " * 60_000
        client.request("PATCH", f"/api/memory/{memory_id}", {"content": text, "reason": "another day"}).ok()
    token = preview(client, ids=[memory_id], force=True)["confirmToken"]
    done = execute(client, ids=[memory_id], force=True, confirm_token=token).ok()
    assert [(result["id"], result["status"]) for result in done["results"]] == [(memory_id, "deleted")]
    sql = "SELECT count(*), count(old_content), count(new_content) FROM memory_history"
    assert brisk.read(f"{sql} WHERE memory_id = '{memory_id}'") == [(10, 0, 0)]
