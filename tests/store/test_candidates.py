from __future__ import annotations

from typing import Any

from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import CandidatesFound, FindCandidates
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory
from signet_actors.searcher.queries import candidates
from tests.support.store_room import MODEL, StoreRoom, raw

ME = Principal()


def found(room: StoreRoom, text: str, **fields: Any) -> CandidatesFound:
    vector = fields.pop("vector", None)
    fields.setdefault("agent_id", "default")
    fields.setdefault("visibility", "global")
    query = FindCandidates(text, vector_model=None if vector is None else MODEL, **fields)
    with room.reader.open_snapshot() as view:
        return candidates.find(room.reader, view, query, [] if vector is None else [raw(vector)])


def ids(answer: CandidatesFound) -> list[str]:
    return [candidate.id for candidate in answer.candidates]


def test_a_fact_is_compared_with_what_a_recall_of_it_would_find(room: StoreRoom) -> None:
    alike = room.remember("The staging database listens on port 5433")
    room.remember("The kitchen has a new oven")
    answer = found(room, "staging database uses port 6000")
    assert ids(answer) == [alike.id]
    assert (answer.candidates[0].version, answer.candidates[0].content) == (1, alike.content)


def test_a_candidate_has_the_version_of_its_text(room: StoreRoom) -> None:
    memory = room.remember("port 5433 is staging")
    room.ask(ModifyMemory(MemoryPatch(memory.id, "moved", content="port 6000 is staging"), ME))
    (candidate,) = found(room, "staging port").candidates
    assert (candidate.version, candidate.content) == (2, "port 6000 is staging")


def test_the_source_memory_is_not_a_candidate(room: StoreRoom) -> None:
    source = room.remember("The deploy user is called carol")
    other = room.remember("carol is the deploy user of staging")
    assert ids(found(room, "deploy user carol", without=(source.id,))) == [other.id]


def test_candidates_have_the_same_agent_visibility_project_and_scope(room: StoreRoom) -> None:
    here = room.remember("apple pie recipe", agent_id="alice", visibility="private", project="cook")
    for fields in (
        {"agent_id": "bob", "visibility": "global", "project": "cook"},
        {"agent_id": "alice", "visibility": "global", "project": "cook"},
        {"agent_id": "alice", "visibility": "private", "project": "other"},
        {"agent_id": "alice", "visibility": "private"},
        {"agent_id": "alice", "visibility": "private", "project": "cook", "scope": "draft"},
    ):
        room.remember("apple pie recipe", **fields)
    assert ids(found(room, "apple pie", agent_id="alice", visibility="private", project="cook")) == [here.id]


def test_a_forgotten_memory_is_not_a_candidate(room: StoreRoom) -> None:
    memory = room.remember("apple pie recipe")
    room.ask(ForgetMemory(memory.id, "wrong", ME))
    assert found(room, "apple pie").candidates == []


def test_at_most_the_requested_number_is_returned_best_first(room: StoreRoom) -> None:
    notes = [room.remember(f"note {number} of the release", vector=[1.0, number / 10]) for number in range(8)]
    answer = ids(found(room, "note 3 of the release", vector=[1.0, 0.3], limit=5))
    assert answer[0] == notes[3].id
    assert len(answer) == 5


def test_better_matches_of_other_agents_and_projects_do_not_displace_candidates(room: StoreRoom) -> None:
    own = room.remember("an apple is mentioned in this long note of mine about many other things")
    for number in range(70):
        room.remember(f"apple pie {number}", agent_id="bob")
        room.remember(f"apple pie {number}", project="cook")
    assert ids(found(room, "apple pie")) == [own.id]
