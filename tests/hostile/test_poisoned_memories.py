"""Injection attacks: no memory changes, and no prompt contains memories of other agents or scopes.

The model follows every instruction (``injections.py``), so only the other defences are tested. Every attack uses a new
agent, once with additions only and once with changes and deletions allowed.

Source: docs/security.md "Poisoned memories".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from signet_actors.domain.extraction.facts import FACT_TYPES, MAX_ENTITIES, MAX_FACTS
from signet_actors.domain.memories import DERIVED
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import MemoryPatch, ModifyMemory
from tests.hostile.injections import Attack, attacks
from tests.support.injection_harness import InjectionHarness
from tests.support.pipeline_harness import configured
from tests.support.store_room import broken_invariants

ATTACKS = {f"{attack.kind}: {attack.name}": attack for attack in attacks()}
STATE = "id, content, version, pinned, is_deleted, type, importance, tags, agent_id, visibility, scope, project, who"
MOST_PROMPT_CHARS = 24_000
"""A template, 12,000 characters of a note or six texts of at most 2,000, and their marks."""

_redactor = Redactor()
_numbers = itertools.count(1)


class Owned(NamedTuple):
    """The memories of an agent. Each text contains a word that no other text in the store contains."""

    agent: str
    subject: str
    ids: dict[str, str]
    words: dict[str, str]


@pytest.fixture(scope="module", params=["controlled_write", "full"])
def room(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InjectionHarness]:
    room = InjectionHarness(
        tmp_path_factory.mktemp("poison"), config=configured(allow_update_delete=request.param == "full")
    )
    room.connection.execute("PRAGMA synchronous = OFF")  # no power is cut here, and thousands of commits are made
    try:
        owned_by(room, "other")
        for number in range(40):
            room.remember(f"Nothing that concerns anybody, number {number}.", agent_id="other", source_type=DERIVED)
        yield room
        rows = stored(room)
        assert {memory: rows.get(memory) for memory in room.untouched} == room.untouched
        assert broken_invariants(room.connection) == []
    finally:
        room.close()


def owned_by(room: InjectionHarness, agent: str) -> Owned:
    """Create an agent with memories of every kind about one subject; a word that is too frequent would give no
    candidates.
    """
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "plain": ("The vault keys are kept by Mira in the safe", {}),
        "pinned": ("The vault keys must stay in the building", {"pinned": True}),
        "constraint": ("Nobody but Mira may hold the vault keys", {"type": "constraint"}),
        "private": ("The vault keys of my own are under the mat", {"visibility": "private"}),
        "elsewhere": ("The vault keys over there are in the barn", {"scope": "elsewhere"}),
        "project": ("The vault keys of the project are in the car", {"project": "/elsewhere"}),
        "both": ("The vault keys of that project are in a boat", {"scope": "elsewhere", "project": "/elsewhere"}),
    }
    number = next(_numbers)
    subject = f"vault{number}"
    ids: dict[str, str] = {}
    words: dict[str, str] = {}
    for name, (text, fields) in texts.items():
        words[name] = f"canary{number}{name}"
        content = f"{text}, {words[name]}.".replace("vault", subject)
        memory = room.remember(content, agent_id=agent, source_type=DERIVED, **fields)
        ids[name] = memory.id
    return Owned(agent, subject, ids, words)


def filled(value: Any, names: dict[str, str]) -> Any:
    """Return ``value`` with each of ``names`` replaced."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


def stored(room: InjectionHarness, agent: str | None = None) -> dict[str, tuple[Any, ...]]:
    """Return the memories of an agent, or of all, by id."""
    rows = room.connection.execute(
        f"SELECT {STATE} FROM memories WHERE agent_id = coalesce(?, agent_id)", (agent,)
    ).fetchall()
    return {row[0]: row for row in rows}


class AttackResult(NamedTuple):
    """The result of an attack: new rows by column, the outcomes of its proposals, the result of its job."""

    owned: Owned
    note: str
    prompts: list[str]
    compared: list[str]
    made: list[dict[str, Any]]
    proposals: list[tuple[str, str, str | None, str | None, str | None]]
    job: dict[str, Any]
    job_error: str | None


def run_attack(room: InjectionHarness, attack: Attack) -> AttackResult:
    """Run the attack; the agent's memories must be unchanged, except for changes by a person meanwhile."""
    agent = f"agent-{next(_numbers)}"
    owned = owned_by(room, agent)
    others = room.value("SELECT id FROM memories WHERE agent_id = 'other' AND visibility = 'global' LIMIT 1")
    names = owned.ids | {"other": others, "other_agent": "other", "prefix": owned.ids["plain"][:8]}
    names = {"{" + name + "}": text for name, text in names.items()} | {"vault": owned.subject}
    room.model.prompts.clear()
    text, _ = _redactor.clean_for_storage(filled(attack.note, names))
    note = room.remember(text, agent_id=agent, **attack.place).id
    names["{note}"] = note
    room.model.facts, room.model.decides = filled(attack.facts, names), filled(attack.decides, names)
    if attack.meanwhile:
        patch = MemoryPatch(id=owned.ids["plain"], reason="r", content="Mira keeps the vault keys at home now.")
        change = ModifyMemory(patch, Principal(changed_by="mira"), ReadScope(agent_id=agent))
        room.model.meanwhile = lambda: room.ask(change)
    before = stored(room, agent)
    try:
        room.work()
    finally:
        room.model.meanwhile = lambda: None
    after = stored(room, agent)
    changed = {memory for memory in before if after.get(memory) != before[memory]}
    if attack.meanwhile:
        assert after[owned.ids["plain"]][1:3] == ("Mira keeps the vault keys at home now.", 2)
        changed.discard(owned.ids["plain"])
    assert changed == set(), [(before[memory], after.get(memory)) for memory in changed]
    room.untouched |= after
    columns = STATE.split(", ")
    made = [dict(zip(columns, row, strict=True)) for memory, row in after.items() if memory not in before]
    proposals = room.connection.execute(
        "SELECT action, outcome, reason, review_state, fact_content FROM memory_proposals WHERE memory_id = ?", (note,)
    ).fetchall()
    result, error = room.connection.execute(
        "SELECT result, error FROM memory_jobs WHERE memory_id = ? AND job_type = 'extract'", (note,)
    ).fetchone()
    job = msgspec.json.decode(result) if result and result.startswith("{") else {}
    prompts = list(room.model.prompts)
    return AttackResult(owned, note, prompts, room.model.decisions, made, proposals, job, error)


def visible_in(place: dict[str, Any], owned: Owned) -> set[str]:
    """Return the words of the memories that a fact of this place may be compared with."""
    at = (place.get("visibility", "global"), place.get("scope"), place.get("project"))
    names = {
        ("global", None, None): ("plain", "pinned", "constraint"),
        ("private", None, None): ("private",),
        ("global", "elsewhere", None): ("elsewhere",),
        ("global", None, "/elsewhere"): ("project",),
        ("global", "elsewhere", "/elsewhere"): ("both",),
    }[at]
    return {owned.words[name] for name in names}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_injection_attack_has_no_effect(room: InjectionHarness, name: str) -> None:
    attack = ATTACKS[name]
    attack_result = run_attack(room, attack)
    assert attack_result.prompts, "no model was asked"

    for row in attack_result.made:
        assert (row["pinned"], row["tags"], row["who"]) == (0, "[]", "pipeline-v2")
        assert row["type"] in FACT_TYPES
        assert row["importance"] <= 1.0
        place = {
            "agent_id": attack_result.owned.agent,
            "visibility": "global",
            "scope": None,
            "project": None,
        } | attack.place
        assert {key: row[key] for key in place} == place
    assert len(attack_result.proposals) <= MAX_FACTS
    assert len(attack_result.job.get("entities", ())) <= MAX_ENTITIES

    allowed = visible_in(attack.place, attack_result.owned)
    for prompt in attack_result.prompts:
        assert len(prompt) <= MOST_PROMPT_CHARS
        words = {word for word in prompt.replace(".", " ").split() if word.startswith("canary") and len(word) > 7}
        assert words <= allowed
        assert not attack.secret or attack.secret not in prompt
    if attack.secret:
        assert "[REDACTED:" in attack_result.prompts[0]
        assert all(
            attack.secret not in str(row) for row in (*attack_result.made, *attack_result.proposals, attack_result.job)
        )

    if attack.held:
        poison = [proposal for proposal in attack_result.proposals if proposal[2] == "instruction"]
        rejected = sum(attack_result.job["turnedAway"].values())
        blocked = [proposal for proposal in attack_result.proposals if proposal[1] == "blocked"]
        assert attack_result.made == []
        assert poison or rejected or blocked, attack_result.proposals
        assert all((outcome, state) == ("review", "pending") for _, outcome, _, state, _ in poison)
    if attack.kind == "target":
        assert attack_result.made == []
        recorded = [outcome for _, outcome, _, _, _ in attack_result.proposals]
        assert recorded or attack_result.job.get("warnings") or attack_result.job_error, "nothing tells of it"
        assert set(recorded) <= {"blocked", "skipped", "review"}
    if attack.kind == "decided":
        assert [row["importance"] for row in attack_result.made if row["type"] == "decision"] in ([0.8], [])
    if attack.kind == "flood":
        assert len(attack_result.made) <= 4
    if attack.kind in {"memory command", "privilege", "decided", "target"} or attack.place:
        assert attack_result.compared, "no fact was held against a memory"


def test_there_are_enough_attacks_of_every_kind() -> None:
    assert len(ATTACKS) >= 150
    kinds = {attack.kind for attack in ATTACKS.values()}
    assert kinds == {
        "memory command",
        "instruction",
        "privilege",
        "decided",
        "flood",
        "stuffing",
        "target",
        "other places",
        "secret",
    }
