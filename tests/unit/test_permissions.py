"""Roles and session keys."""

from __future__ import annotations

import pytest

from signet_actors.domain.permissions import ROLE_PERMISSIONS, Permission, Role
from signet_actors.domain.session_keys import agent_from_session_key

AGENT = {"remember", "recall", "modify", "forget", "recover", "documents"}


def test_there_are_ten_permissions_and_the_matrix_is_the_documented_one() -> None:
    assert len(Permission) == 10
    assert ROLE_PERMISSIONS[Role.ADMIN] == set(Permission)
    assert ROLE_PERMISSIONS[Role.OPERATOR] == set(Permission) - {Permission.ADMIN}
    assert {permission.value for permission in ROLE_PERMISSIONS[Role.AGENT]} == AGENT
    assert ROLE_PERMISSIONS[Role.READONLY] == {Permission.RECALL}


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
