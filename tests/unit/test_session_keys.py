"""A session key may name its agent."""

from __future__ import annotations

import pytest

from signet_actors.domain.session_keys import agent_from_session_key


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
