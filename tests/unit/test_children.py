"""The children that the supervisor needs: by configuration, and after a crash of another."""

from __future__ import annotations

from typing import Any, cast

from signet_actors.config.schema import Config
from signet_actors.protocol.control import UP
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.children import Child, Children, ChildSpec

TREE = (
    ChildSpec("extractor", "m", core=False),
    ChildSpec("quarantine", "m", core=False, after_crash_of="extractor"),
)
S = 1_000_000_000


class Living:
    exists = True
    pid = 1


def children() -> Children:
    return Children(TREE, Config(), lambda _spec, _name: cast("ChildProcess", cast("Any", Living())))


def names(found: list[Child]) -> list[str]:
    return [child.name for child in found]


def test_a_child_for_the_time_after_a_crash_is_needed_after_the_first_crash_only() -> None:
    tree = children()
    assert names(list(tree)) == ["extractor"]
    assert tree.reconfigure(Config()) == []
    assert tree.note_crash("extractor")
    assert names(tree.reconfigure(Config())) == ["quarantine"]
    assert not tree.note_crash("extractor")
    assert tree.reconfigure(Config()) == []


def test_a_crash_of_another_child_changes_nothing() -> None:
    tree = children()
    assert not tree.note_crash("quarantine")
    assert not tree.note_crash("writer")
    assert tree.reconfigure(Config()) == []


def test_it_is_stopped_when_both_have_served_long_without_a_crash() -> None:
    tree = children()
    tree.note_crash("extractor")
    tree.reconfigure(Config())
    for child, ready_s in ((tree["extractor"], 100), (tree["quarantine"], 200)):
        child.state, child.ready_ms = UP, ready_s * 1000
    assert not tree.forget_crashes(150 * S), "the quarantine itself was born again later"
    assert tree.forget_crashes(201 * S)
    tree.reconfigure(Config())
    assert names(tree.stopping()) == ["quarantine"]
    assert not tree.forget_crashes(300 * S)
    assert tree.note_crash("extractor"), "the next death calls it again"
    assert names(tree.reconfigure(Config())) == ["quarantine"]
