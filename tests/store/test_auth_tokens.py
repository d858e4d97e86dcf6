"""Tokens on disk: issued, replaced and revoked in transactions, bounded in number."""

from __future__ import annotations

import msgspec
import pytest

from signet_actors.domain.permissions import Role
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode
from signet_actors.features.auth_tokens import api, reads, writes
from signet_actors.protocol.message import Answered, Caller, Failure, message_of
from tests.support.store_room import StoreRoom

DAY_MS = 86_400_000


def row(room: StoreRoom, token_id: str, *, days: int | None = 7, kind: api.Kind = "token") -> api.StoredToken:
    now = room.clock.wall_ms()
    return api.StoredToken(
        id=token_id,
        kind=kind,
        name="Ada",
        role=Role.AGENT,
        agent_id="ada",
        secret_hash=b"1" * 32 if kind == "api_key" else None,
        created_at=iso(now),
        created_by="owner",
        expires_at=None if days is None else iso(now + days * DAY_MS),
    )


def stored(room: StoreRoom, token: api.StoredToken, replaces: str | None = None) -> None:
    answer = room.ask(api.StoreToken(row=token, replaces=replaces))
    assert isinstance(answer, Answered), answer
    assert answer.read(api.StoredToken) == token


def live(room: StoreRoom) -> list[str]:
    with room.reader.open_snapshot() as view:
        return sorted(each.id for each in reads.live(view, api.FindLiveTokens()).rows)


def test_what_was_issued_is_valid_until_it_is_revoked_for_good(room: StoreRoom) -> None:
    stored(room, row(room, "one"))
    stored(room, row(room, "key", days=None, kind="api_key"))
    assert live(room) == ["key", "one"]
    revoked = room.ask(api.RevokeToken(id="one", kind="token")).read(api.StoredToken)
    assert revoked.revoked_at == iso(room.clock.wall_ms())
    room.clock.advance(DAY_MS)
    assert room.ask(api.RevokeToken(id="one", kind="token")).read(api.StoredToken).revoked_at == revoked.revoked_at
    assert live(room) == ["key"]


def test_a_token_is_revoked_by_its_kind(room: StoreRoom) -> None:
    stored(room, row(room, "key", kind="api_key"))
    for token_id, kind in (("key", "token"), ("unknown", "api_key")):
        refused = room.ask(api.RevokeToken(id=token_id, kind=kind))
        assert isinstance(refused, Failure)
        assert refused.code is ErrorCode.NOT_FOUND
    assert live(room) == ["key"]


def test_a_replaced_token_is_revoked_with_the_new_one_or_not_at_all(room: StoreRoom) -> None:
    stored(room, row(room, "old"))
    stored(room, row(room, "new"), replaces="old")
    assert live(room) == ["new"]
    refused = room.ask(api.StoreToken(row=row(room, "newer"), replaces="gone"))
    assert isinstance(refused, Failure)
    assert live(room) == ["new"]


def test_the_number_of_valid_tokens_is_bounded_and_what_is_over_makes_room(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MAX_LIVE", 3)
    for number in range(3):
        stored(room, row(room, f"t{number}"))
    refused = room.ask(api.StoreToken(row=row(room, "t3")))
    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.CONFLICT
    stored(room, row(room, "t3"), replaces="t0")
    room.clock.advance(8 * DAY_MS)
    stored(room, row(room, "t4"))
    room.clock.advance(writes.KEPT_MS)
    stored(room, row(room, "t5"))
    with room.reader.open_snapshot() as view:
        reply = reads.listed(view, message_of(api.LIST)(caller=Caller(), request=api.ListTokensRequest()))
    assert [each.id for each in reply.tokens] == ["t5", "t4"]
    assert reply.total == 2
    assert b"ecret" not in msgspec.json.encode(reply)
