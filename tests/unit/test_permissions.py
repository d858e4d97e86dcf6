"""Roles, session keys and rate limits."""

from __future__ import annotations

import pytest

from signet_actors.domain.limits import SlidingWindow
from signet_actors.domain.permissions import ROLE_PERMISSIONS, Permission, Role, may
from signet_actors.domain.session_keys import agent_from_session_key

AGENT = {"remember", "recall", "modify", "forget", "recover", "documents"}


def test_there_are_ten_permissions_and_the_matrix_is_the_documented_one() -> None:
    assert len(Permission) == 10
    assert ROLE_PERMISSIONS[Role.ADMIN] == set(Permission)
    assert ROLE_PERMISSIONS[Role.OPERATOR] == set(Permission) - {Permission.ADMIN}
    assert {permission.value for permission in ROLE_PERMISSIONS[Role.AGENT]} == AGENT
    assert ROLE_PERMISSIONS[Role.READONLY] == {Permission.RECALL}


def test_may_reads_the_matrix() -> None:
    assert may(Role.READONLY, Permission.RECALL)
    assert not may(Role.AGENT, Permission.ADMIN)


@pytest.mark.parametrize(
    ("key", "agent"),
    [
        ("agent:alice:main", "alice"),
        ("session:agent:alice:main:thread:7", "alice"),
        ("agent:alice:", "alice"),
        (" agent: bob :x", "bob"),
        ("agent:alice", None),
        ("agent::main", None),
        ("agent: :main", None),
        ("session:550e8400", None),
        ("550e8400-e29b", None),
        ("", None),
        ("subagent:alice:main", None),
    ],
)
def test_a_session_key_may_name_its_agent(key: str, agent: str | None) -> None:
    assert agent_from_session_key(key) == agent


def test_requests_beyond_the_limit_wait_for_the_oldest_to_leave_the_window() -> None:
    window = SlidingWindow(2, 1000)
    assert window.take("a", 0) == (True, 1, 0)
    assert window.take("a", 400) == (True, 0, 0)
    assert window.take("a", 900) == (False, 0, 100)
    assert window.take("b", 900).allowed
    assert window.take("a", 1000).allowed
    assert window.take("a", 1001) == (False, 0, 399)


def test_a_refused_request_does_not_prolong_the_wait() -> None:
    window = SlidingWindow(1, 1000)
    window.take("a", 0)
    for now in range(100, 1000, 100):
        assert not window.take("a", now).allowed
    assert window.take("a", 1000).allowed


def test_invented_keys_do_not_grow_the_memory() -> None:
    window = SlidingWindow(1, 60_000, max_keys=10)
    window.take("steady", 0)
    for number in range(1000):
        window.take(f"key-{number}", 1)
        assert not window.take("steady", 2).allowed
    assert len(window) == 10


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1, "window_ms": 0}, {"limit": 1, "max_keys": 0}])
def test_a_limiter_without_room_is_a_mistake(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SlidingWindow(**wrong)
