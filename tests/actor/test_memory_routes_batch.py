"""The batch routes: their messages to writer and searchers, and their responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import FindForgetCandidates, ForgetCandidate, ForgetCandidatesFound
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetTarget,
    Forgotten,
    ManyForgotten,
    ManyModified,
    Modified,
    ModifyMany,
)
from tests.support.memory_api import MemoryApi

FORGET = "/api/memory/forget"
MODIFY = "/api/memory/modify"


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    offer(made, 3)
    made.bus.script[ForgetMany] = all_deleted
    made.bus.script[ModifyMany] = all_updated
    return made


def offer(api: MemoryApi, count: int, *, version: int = 2) -> None:
    """The searchers find ``count`` candidates m0, m1, …"""
    api.bus.script[FindForgetCandidates] = ForgetCandidatesFound(
        [ForgetCandidate(f"m{index}", 0.85432, pinned=False, version=version) for index in range(count)]
    )


def all_deleted(request: ForgetMany) -> ManyForgotten:
    return ManyForgotten([Forgotten(t.id, "deleted", t.version, (t.version or 0) + 1) for t in request.targets])


def all_updated(request: ModifyMany) -> ManyModified:
    return ManyModified(
        [
            Modified(p.id, "updated", 1, 2, content_changed=p.content is not UNSET, embedded=p.vector is not None)
            for p in request.patches
        ]
    )


def preview_token(api: MemoryApi, **body: Any) -> str:
    token = api.request("POST", FORGET, {"mode": "preview", "query": "old", **body}).json["confirmToken"]
    assert isinstance(token, str)
    return token


# forget: preview


def test_a_preview_answers_the_documented_shape_and_deletes_nothing(api: MemoryApi) -> None:
    answer = api.request("POST", FORGET, {"mode": "preview", "query": "old"})
    assert answer.status == 200
    token = answer.json["confirmToken"]
    assert isinstance(token, str)
    assert token
    assert {name: value for name, value in answer.json.items() if name != "confirmToken"} == {
        "mode": "preview",
        "count": 3,
        "requiresConfirm": False,
        "candidates": [{"id": f"m{i}", "score": 0.854, "pinned": False, "version": 2} for i in range(3)],
    }
    assert [type(sent.body) for sent in api.bus.asked] == [FindForgetCandidates]


def test_preview_is_the_default_mode(api: MemoryApi) -> None:
    assert api.request("POST", FORGET, {"query": "old"}).json["mode"] == "preview"


def test_a_selection_by_query_and_filters_is_sent_as_given(api: MemoryApi) -> None:
    api.request(
        "POST",
        FORGET,
        {
            "query": "outdated",
            "type": "preference",
            "tags": "old, ui",
            "who": "me",
            "source_type": "manual",
            "since": "2025-01-01T00:00:00Z",
            "until": "2026-01-01",
            "agentId": "bob",
        },
    )
    assert api.bus.only(FindForgetCandidates).body == FindForgetCandidates(
        read=ReadScope("bob"),
        query="outdated",
        filters=Filters(
            type="preference",
            tags=("old", "ui"),
            who="me",
            source_type="manual",
            since="2025-01-01T00:00:00.000Z",
            until="2026-01-01T00:00:00.000Z",
        ),
        limit=20,
    )


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({"query": "q"}, 20),
        ({"query": "q", "limit": 1000}, 200),
        ({"query": "q", "limit": 0}, 1),
        ({"query": "q", "limit": "7"}, 7),
        ({"ids": [f"i{n}" for n in range(60)]}, 60),
    ],
)
def test_the_limit_defaults_to_20_or_to_the_ids_and_is_capped(api: MemoryApi, body: Any, limit: int) -> None:
    api.request("POST", FORGET, body)
    assert api.bus.only(FindForgetCandidates).body.limit == limit


@pytest.mark.parametrize(("count", "force", "required"), [(25, False, False), (26, False, True), (1, True, True)])
def test_more_than_25_candidates_or_force_require_a_confirmation(
    api: MemoryApi, count: int, force: bool, required: bool
) -> None:
    offer(api, count)
    answer = api.request("POST", FORGET, {"query": "old", "limit": 200, "force": force})
    assert answer.json["requiresConfirm"] is required


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "query, ids, or at least one filter is required"),
        ({"ids": [], "query": " ", "tags": ""}, "query, ids, or at least one filter is required"),
        ({"pinned": True}, "query, ids, or at least one filter is required"),
        ({"project": "p"}, "query, ids, or at least one filter is required"),
        ({"mode": "execute", "reason": "r"}, "query, ids, or at least one filter is required"),
        ({"mode": "delete", "query": "q"}, "mode must be one of: preview, execute"),
        ({"query": "q", "if_version": 3}, "if_version is not supported for batch forget"),
        ({"query": "q", "mode": "execute"}, "reason is required"),
        ({"query": "q", "force": "maybe"}, "force must be a boolean"),
        ({"ids": "*"}, "ids must be an array of strings"),
        ({"ids": [1]}, "ids must be an array of strings"),
        ({"ids": [f"i{n}" for n in range(201)]}, "ids must be at most 200"),
        ({"query": 5}, "query must be a string"),
        ({"query": "q", "limit": {}}, "limit must be a number"),
        ({"query": "q", "since": "soon"}, "since must be a valid ISO timestamp"),
    ],
)
def test_invalid_batch_forgets_are_refused(api: MemoryApi, body: Any, error: str) -> None:
    answer = api.request("POST", FORGET, body)
    assert answer.status == 400
    assert answer.json["error"].startswith(error)
    assert api.bus.asked == []


# forget: execute


def test_a_small_batch_is_executed_without_a_token(api: MemoryApi) -> None:
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "tidy"})
    assert (answer.status, answer.json) == (
        200,
        {
            "mode": "execute",
            "requested": 3,
            "deleted": 3,
            "results": [{"id": f"m{i}", "status": "deleted", "currentVersion": 2, "newVersion": 3} for i in range(3)],
        },
    )
    sent = api.bus.only(ForgetMany).body
    assert sent.targets == tuple(ForgetTarget(f"m{i}", 2) for i in range(3))
    assert (sent.reason, sent.hard) == ("tidy", False)


def test_a_large_batch_without_a_token_is_400_with_a_token(api: MemoryApi) -> None:
    offer(api, 26)
    wish = {"mode": "execute", "query": "old", "reason": "tidy", "limit": 100}
    refused = api.request("POST", FORGET, wish)
    assert (refused.status, refused.json["code"], refused.json["requiresConfirm"], refused.json["count"]) == (
        400,
        "confirm_required",
        True,
        26,
    )
    done = api.request("POST", FORGET, {**wish, "confirm_token": refused.json["confirmToken"]})
    assert (done.status, done.json["deleted"]) == (200, 26)


def test_the_previews_token_confirms_the_same_set(api: MemoryApi) -> None:
    offer(api, 30)
    token = preview_token(api, limit=200)
    body = {"mode": "execute", "query": "old", "limit": 200, "reason": "r", "confirmToken": token}
    assert api.request("POST", FORGET, body).json["deleted"] == 30


@pytest.mark.parametrize("count", [2, 30])
def test_a_changed_set_asks_for_a_new_preview(api: MemoryApi, count: int) -> None:
    offer(api, count)
    token = preview_token(api)
    offer(api, count, version=3)
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "r", "confirm_token": token})
    assert (answer.status, answer.json["code"], answer.json["count"]) == (409, "conflict", count)
    assert "new preview" in answer.json["error"]
    assert not [sent for sent in api.bus.asked if isinstance(sent.body, ForgetMany)]


def test_an_expired_token_asks_for_a_new_preview(api: MemoryApi) -> None:
    token = preview_token(api)
    api.clock.now_ms += api.state.config.gateway.confirm_ttl_ms + 1
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "r", "confirm_token": token})
    assert (answer.status, "expired" in answer.json["error"]) == (409, True)


@pytest.mark.parametrize("token", ["x", "AAAA", "é" * 54])
def test_a_forged_token_is_refused(api: MemoryApi, token: str) -> None:
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "r", "confirm_token": token})
    assert (answer.status, answer.json["error"]) == (400, "confirm_token is not valid")


def test_force_deletes_hard_and_always_needs_a_token_of_its_own(api: MemoryApi) -> None:
    wish = {"mode": "execute", "query": "old", "reason": "r", "force": True}
    assert api.request("POST", FORGET, wish).json["code"] == "confirm_required"
    soft = preview_token(api)
    assert api.request("POST", FORGET, {**wish, "confirm_token": soft}).status == 409
    hard = preview_token(api, force=True)
    assert api.request("POST", FORGET, {**wish, "confirm_token": hard}).status == 200
    assert api.bus.only(ForgetMany).body.hard is True


@pytest.mark.parametrize("actor_type", ["pipeline", "agent"])
def test_an_autonomous_actor_may_not_force(api: MemoryApi, actor_type: str) -> None:
    answer = api.request("POST", FORGET, {"query": "old", "force": True}, {"x-signet-actor-type": actor_type})
    assert (answer.status, answer.json["code"]) == (403, "forbidden")
    assert api.bus.asked == []


def test_every_refused_item_has_a_reason(api: MemoryApi) -> None:
    api.bus.script[ForgetMany] = ManyForgotten(
        [
            Forgotten("m0", "pinned_requires_force", 2),
            Forgotten("m1", "version_conflict", 5),
            Forgotten("m2", "already_deleted", 3),
        ]
    )
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "r"}).json
    assert (answer["requested"], answer["deleted"]) == (3, 0)
    assert [(item["status"], item["currentVersion"], item["error"]) for item in answer["results"]] == [
        ("pinned_requires_force", 2, "Pinned memories require force=true"),
        ("version_conflict", 5, "Version conflict"),
        ("already_deleted", 3, "Memory is already deleted"),
    ]


def test_an_unknown_id_is_reported(api: MemoryApi) -> None:
    offer(api, 1)
    answer = api.request("POST", FORGET, {"mode": "execute", "ids": ["m0", "nope", "m0"], "reason": "r"}).json
    assert (answer["requested"], answer["deleted"]) == (2, 1)
    assert answer["results"][1] == {"id": "nope", "status": "not_found", "error": "Not found"}


def test_nothing_to_forget_is_200(api: MemoryApi) -> None:
    offer(api, 0)
    answer = api.request("POST", FORGET, {"mode": "execute", "query": "old", "reason": "r"})
    assert (answer.status, answer.json) == (200, {"mode": "execute", "requested": 0, "deleted": 0, "results": []})


def test_a_retry_with_its_idempotency_key_gets_the_first_answer(api: MemoryApi) -> None:
    kept: dict[str, ManyForgotten] = {}

    def exactly_once(request: ForgetMany) -> ManyForgotten:
        assert request.idempotency is not None
        return kept.setdefault(request.idempotency.key, all_deleted(request))

    api.bus.script[ForgetMany] = exactly_once
    token = preview_token(api)
    wish = {"mode": "execute", "query": "old", "reason": "r", "confirm_token": token}
    first = api.request("POST", FORGET, wish, {"Idempotency-Key": "k"})
    offer(api, 0)  # they are gone now, and the token fits no more
    second = api.request("POST", FORGET, wish, {"Idempotency-Key": "k"})
    assert (second.status, second.json) == (first.status, first.json) == (200, first.json)


def test_a_first_try_on_a_changed_set_is_refused_with_a_key_too(api: MemoryApi) -> None:
    token = preview_token(api)
    offer(api, 4)
    wish = {"mode": "execute", "query": "old", "reason": "r", "confirm_token": token}
    assert api.request("POST", FORGET, wish, {"Idempotency-Key": "k"}).status == 409
    assert api.bus.only(ForgetMany).body.targets == ()


# modify


def test_a_batch_of_patches_answers_the_documented_shape(api: MemoryApi) -> None:
    answer = api.request(
        "POST",
        MODIFY,
        {
            "reason": "Bulk correction",
            "changed_by": "operator",
            "patches": [
                {"id": "u1", "content": "Updated content", "reason": "own", "if_version": 2},
                {"id": "u2", "tags": ["updated"], "importance": 0.6, "who": "me"},
            ],
        },
    )
    assert (answer.status, answer.json) == (
        200,
        {
            "total": 2,
            "updated": 2,
            "results": [
                {
                    "id": "u1",
                    "status": "updated",
                    "currentVersion": 1,
                    "newVersion": 2,
                    "contentChanged": True,
                    "embedded": True,
                },
                {"id": "u2", "status": "updated", "currentVersion": 1, "newVersion": 2, "contentChanged": False},
            ],
        },
    )
    sent = api.bus.only(ModifyMany)
    first, second = sent.body.patches
    assert (first.reason, first.if_version, second.reason, second.tags) == ("own", 2, "Bulk correction", ("updated",))
    assert (second.importance, second.who, second.content) == (0.6, "me", UNSET)
    assert sent.body.principal.changed_by == "operator"
    assert len(sent.frames) == 1


def test_an_invalid_patch_does_not_stop_the_others(api: MemoryApi) -> None:
    answer = api.request(
        "POST",
        MODIFY,
        {
            "patches": [
                {"id": "u1", "pinned": True},
                {"id": "u2", "pinned": True, "reason": "r"},
                {"id": "u3", "reason": "r", "importance": 7},
                {"reason": "r", "pinned": True},
                "no object",
                {"id": "u4", "reason": "r"},
            ]
        },
    ).json
    assert (answer["total"], answer["updated"]) == (6, 1)
    assert [(item["id"], item["status"], item.get("error")) for item in answer["results"]] == [
        ("u1", "invalid_request", "reason is required"),
        ("u2", "updated", None),
        ("u3", "invalid_request", "importance must be a number between 0 and 1"),
        (None, "invalid_request", "id is required"),
        (None, "invalid_request", "each patch must be an object"),
        ("u4", "invalid_request", "at least one of content, type, tags, importance, pinned is required"),
    ]
    assert [patch.id for patch in api.bus.only(ModifyMany).body.patches] == ["u2"]


def test_a_batch_without_a_valid_patch_sends_no_message(api: MemoryApi) -> None:
    assert api.request("POST", MODIFY, {"patches": [{"id": "u1"}]}).status == 200
    assert api.bus.asked == []


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Modified("u1", "no_changes", 1), None),
        (Modified("u1", "not_found"), "Not found"),
        (Modified("u1", "deleted", 1), "Cannot modify deleted memory"),
        (Modified("u1", "version_conflict", 4), "Version conflict"),
        (Modified("u1", "duplicate_content_hash", 4, duplicate_memory_id="u9"), "Duplicate content hash"),
    ],
)
def test_every_outcome_of_a_batched_patch_is_200(api: MemoryApi, outcome: Modified, error: str | None) -> None:
    api.bus.script[ModifyMany] = ManyModified([outcome])
    answer = api.request("POST", MODIFY, {"reason": "r", "patches": [{"id": "u1", "pinned": True}]})
    (item,) = answer.json["results"]
    assert (answer.status, answer.json["updated"]) == (200, 0)
    assert (item["status"], item.get("error"), item.get("currentVersion"), item.get("duplicateMemoryId")) == (
        outcome.status,
        error,
        outcome.current_version,
        outcome.duplicate_memory_id,
    )


@pytest.mark.parametrize(
    ("patches", "error"),
    [
        (None, "patches must be a non-empty array"),
        ([], "patches must be a non-empty array"),
        ({"id": "u1"}, "patches must be a non-empty array"),
        ([{"id": "u1", "pinned": True}] * 201, "patches must be at most 200"),
    ],
)
def test_a_batch_has_1_to_200_patches(api: MemoryApi, patches: Any, error: str) -> None:
    answer = api.request("POST", MODIFY, {"reason": "r", "patches": patches})
    assert (answer.status, answer.json["error"]) == (400, error)
