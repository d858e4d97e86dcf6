"""Batch changes and batch forgets: previews, tokens, limits, and the status of each item."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, Step, get, post

FORGET, MODIFY = "/api/memory/forget", "/api/memory/modify"
UNKNOWN = "01a20000-0000-7000-8000-000000000000"


def notes(count: int, tag: str) -> tuple[Step, ...]:
    """Steps that store this many memories under a tag."""
    return tuple(
        post(
            f"{tag} {number}",
            "/api/memory/remember",
            {"content": f"Note {number} about {tag}", "tags": tag, "createdAt": "2024-05-01T10:00:00.000Z"},
            save={f"{tag}{number}": "id"},
        )
        for number in range(count)
    )


MODIFIES = (
    *notes(3, "few"),
    post("modify without body", MODIFY),
    post("modify without reason", MODIFY, {"patches": [{"id": "<<few0>>", "importance": 0.5}]}),
    post("modify without patches", MODIFY, {"reason": "r"}),
    post("modify, patches empty", MODIFY, {"reason": "r", "patches": []}),
    post("modify, patches are text", MODIFY, {"reason": "r", "patches": "x"}),
    post("modify, 201 patches", MODIFY, {"reason": "r", "patches": [{"id": UNKNOWN, "importance": 0.5}] * 201}),
    post(
        "modify two",
        MODIFY,
        {
            "reason": "Bulk",
            "changed_by": "ada",
            "patches": [
                {"id": "<<few0>>", "content": "Note 0, changed", "reason": "own reason"},
                {"id": "<<few1>>", "tags": ["updated"], "importance": 0.6},
            ],
        },
    ),
    post(
        "modify with items that fail",
        MODIFY,
        {
            "reason": "Bulk",
            "patches": [
                {"id": UNKNOWN, "importance": 0.5},
                {"id": "<<few0>>"},
                {"importance": 0.5},
                {"id": "<<few1>>", "importance": 7},
                {"id": "<<few2>>", "content": "Note 0, changed"},
                {"id": "<<few0>>", "importance": 0.1, "if_version": 1},
                5,
                {"id": "<<few2>>", "pinned": True},
            ],
        },
    ),
    post(
        "modify an unknown field in an item",
        MODIFY,
        {"reason": "Bulk", "patches": [{"id": "<<few2>>", "importance": 0.5, "importanze": 1}]},
    ),
    get("the history of one", "/api/memory/<<few0>>/history"),
)

FORGETS = (
    *notes(30, "many"),
    post("forget without body", FORGET),
    post("forget without a filter", FORGET, {"mode": "preview"}),
    post("forget with limit alone", FORGET, {"limit": 5}),
    post("forget, mode unknown", FORGET, {"mode": "perhaps", "tags": "few"}),
    post("forget, if_version", FORGET, {"tags": "few", "if_version": 1}),
    post("forget, limit is a word", FORGET, {"tags": "few", "limit": "abc"}),
    post("forget, limit is a list", FORGET, {"tags": "few", "limit": []}),
    post("forget, ids are text", FORGET, {"ids": "x"}),
    post("forget, 201 ids", FORGET, {"ids": [f"id-{number}" for number in range(201)]}),
    post("forget, since is nonsense", FORGET, {"since": "yesterday"}),
    post("forget, force is a word", FORGET, {"tags": "few", "force": "maybe"}),
    post("forget, an unknown field", FORGET, {"tags": "few", "tagz": "x"}),
    post("preview by tag", FORGET, {"mode": "preview", "tags": "few"}),
    post("preview by query", FORGET, {"query": "Note 2 about few", "tags": "few"}),
    post("preview by ids", FORGET, {"ids": ["<<few0>>", UNKNOWN]}),
    post("preview by who, nothing found", FORGET, {"who": "nobody"}),
    post(
        "preview of many",
        FORGET,
        {"tags": "many", "limit": 30},
        view=lambda body: {**body, "candidates": len(body["candidates"])},
    ),
    post(
        "preview of many with a small limit",
        FORGET,
        {"tags": "many", "limit": 10},
        view=lambda body: {**body, "candidates": len(body["candidates"])},
    ),
    post(
        "preview with a limit above the cap",
        FORGET,
        {"tags": "many", "limit": 500},
        view=lambda body: {**body, "candidates": len(body["candidates"])},
    ),
    post("execute without reason", FORGET, {"mode": "execute", "tags": "few"}),
    post("execute many without token", FORGET, {"mode": "execute", "tags": "many", "limit": 30, "reason": "r"}),
    post(
        "execute a slice of many without token", FORGET, {"mode": "execute", "tags": "many", "limit": 5, "reason": "r"}
    ),
    post(
        "execute with a forged token",
        FORGET,
        {"mode": "execute", "tags": "many", "limit": 30, "reason": "r", "confirm_token": "forged"},
    ),
    post("execute by ids", FORGET, {"mode": "execute", "ids": ["<<few0>>", UNKNOWN], "reason": "Cleaning up"}),
    post("execute by tag", FORGET, {"mode": "execute", "tags": "updated", "reason": "Cleaning up"}),
    post("a pinned one among them", FORGET, {"mode": "execute", "ids": ["<<few2>>"], "reason": "r"}),
    post("force without token", FORGET, {"mode": "execute", "ids": ["<<few2>>"], "reason": "r", "force": True}),
    post(
        "force by an agent",
        FORGET,
        {"mode": "execute", "ids": ["<<few2>>"], "reason": "r", "force": True},
        headers={"x-signet-actor-type": "agent"},
    ),
    post("preview of force", FORGET, {"ids": ["<<few2>>"], "force": True}, save={"force_token": "confirmToken"}),
    post(
        "force with its token",
        FORGET,
        {"mode": "execute", "ids": ["<<few2>>"], "reason": "r", "force": True, "confirm_token": "<<force_token>>"},
    ),
    get("a memory that was removed", "/api/memory/<<few2>>"),
    get("the history of a memory that was removed", "/api/memory/<<few2>>/history"),
    post(
        "preview all of many",
        FORGET,
        {"tags": "many", "limit": 30},
        save={"token": "confirmToken"},
        view=lambda body: body["count"],
    ),
    post(
        "the token for another set",
        FORGET,
        {"mode": "execute", "tags": "many", "limit": 29, "reason": "r", "confirm_token": "<<token>>"},
    ),
    post(
        "the token for its set",
        FORGET,
        {"mode": "execute", "tags": "many", "limit": 30, "reason": "r", "confirm_token": "<<token>>"},
        view=lambda body: {**body, "results": sorted({item["status"] for item in body["results"]})},
    ),
    post(
        "the token once more",
        FORGET,
        {"mode": "execute", "tags": "many", "limit": 30, "reason": "r", "confirm_token": "<<token>>"},
    ),
    get("what is left", "/api/memories"),
)

SCENARIOS = (Scenario("batch", (*MODIFIES, *FORGETS)),)
