"""Uses of skills are counted for each agent, and an agent has a bounded number of skills."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from signet_actors.errors import ErrorCode
from signet_actors.features.skills import reads, writes
from signet_actors.features.skills.api import (
    LIST,
    RECORD,
    ListSkillsReply,
    ListSkillsRequest,
    SkillInvocationReply,
    SkillInvocationRequest,
)
from signet_actors.protocol.message import Answered, Caller, Failure, Idempotency, message_of
from tests.support.store_room import StoreRoom, plan_of


def use(
    room: StoreRoom, skill: str, agent: str = "default", idempotency: Idempotency | None = None, **fields: Any
) -> int:
    """Report a use; return how often the agent has used the skill."""
    room.clock.advance(1000)
    request = SkillInvocationRequest(harness="codex", skill=skill, **fields)
    reply = room.ask(message_of(RECORD)(caller=Caller(agent), request=request, idempotency=idempotency))
    assert reply == Answered(msgspec.json.encode(SkillInvocationReply(recorded=True)))
    return next(each.use_count for each in listed(room, agent).skills if each.skill_name == skill)


def listed(room: StoreRoom, agent: str = "default", limit: int = 100, offset: int = 0) -> ListSkillsReply:
    request = ListSkillsRequest(limit=limit, offset=offset)
    with room.reader.open_snapshot() as snapshot:
        return reads.listed(snapshot, message_of(LIST)(caller=Caller(agent), request=request))


def names(room: StoreRoom, agent: str = "default") -> list[str]:
    return [skill.skill_name for skill in listed(room, agent).skills]


def test_each_use_of_a_skill_is_counted_for_its_agent(room: StoreRoom) -> None:
    assert [use(room, "pdf"), use(room, "pdf", duration_ms=7), use(room, "pdf", success=False)] == [1, 2, 3]
    assert use(room, "pdf", "cleo") == 1
    (skill,) = listed(room).skills
    assert (skill.skill_name, skill.use_count, skill.failure_count, skill.last_duration_ms) == ("pdf", 3, 1, 7)
    assert skill.created_at < skill.last_used_at
    assert listed(room, "a third one") == ListSkillsReply([], 0)


def test_the_most_used_skills_are_listed_first_by_pages(room: StoreRoom) -> None:
    for skill in ("rare", "often", "often", "often", "new", "new", "newer", "newer"):
        use(room, skill)
    assert names(room) == ["often", "newer", "new", "rare"]
    page = listed(room, limit=2, offset=1)
    assert ([skill.skill_name for skill in page.skills], page.total) == (["newer", "new"], 4)


def test_a_use_with_the_same_key_is_counted_once(room: StoreRoom) -> None:
    key = Idempotency("key", "body")
    assert [use(room, "pdf", idempotency=key) for _ in range(3)] == [1, 1, 1]
    assert use(room, "pdf", idempotency=Idempotency("other", "body")) == 2


def test_a_use_whose_reply_an_earlier_release_stored_in_its_form_is_not_counted_again(room: StoreRoom) -> None:
    key = Idempotency("key", "body")
    use(room, "pdf", idempotency=key)
    former = msgspec.msgpack.encode({"t": "writer.skill_use_recorded", "use_count": 1})
    room.connection.execute("UPDATE request_replies SET reply = ?", (former,))
    request = SkillInvocationRequest(harness="codex", skill="pdf")
    reply = room.ask(message_of(RECORD)(request=request, idempotency=key))
    assert (type(reply), reply.code) == (Failure, ErrorCode.OUTCOME_UNKNOWN)
    assert [skill.use_count for skill in listed(room).skills] == [1]


def test_of_too_many_skills_the_one_used_longest_ago_is_dropped(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "MAX_SKILLS", 3)
    for skill in ("a", "b", "c", "a", "d"):
        use(room, skill)
    use(room, "b", "cleo")
    assert sorted(names(room)) == ["a", "c", "d"]
    assert names(room, "cleo") == ["b"]


def test_a_new_skill_stays_even_after_the_clock_went_back(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MAX_SKILLS", 1)
    use(room, "old")
    room.connection.execute("UPDATE skill_meta SET last_used_at = '2030-01-01T00:00:00.000Z'")
    use(room, "new")
    assert names(room) == ["new"]


def test_skills_to_drop_are_found_by_index(room: StoreRoom) -> None:
    use(room, "pdf")
    for sql in (
        "SELECT count(*) FROM skill_meta WHERE agent_id = 'default'",
        "SELECT skill_name FROM skill_meta WHERE agent_id = 'default' ORDER BY last_used_at LIMIT 1",
    ):
        assert all(step.startswith("SEARCH") for step in plan_of(room.connection, sql))
