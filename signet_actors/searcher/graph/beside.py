"""What a recall adds beside its results: constraints of the focal entities, reasons of decisions, facts of entities.

Source: memory-api.txt "recall" (``meta.hasSupplementary``); architecture.txt (constraints always surface);
knowledge-graph.txt "API"; docs/guides/hooks.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from signet_actors.domain.graph.names import name_tokens
from signet_actors.domain.ranking.dampening import RESOLVED_TYPES
from signet_actors.protocol.searcher import EntityFact, NamedEntity, Recall, RecalledRow
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.graph.graph_index import NO_ASPECT
from signet_actors.searcher.graph.stage import GraphFound
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recalled_rows import RowScores, recalled_row
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import graph_index as stored
from signet_actors.store.reads.contents import recalled_by_seq

MOST_CONSTRAINTS: Final = 3
MOST_REASONS: Final = 2
MOST_ENTITIES: Final = 3
SURE: Final = 0.5
"""The weight of a focal entity from which on its facts are told."""
_MOST_READ: Final = 10
_REASON: Final = re.compile(
    r"\b(?:because|since|due to|so that|in order to|reasons?|rationale|otherwise|instead of|weil|damit|wegen|sonst"
    r"|parce que|afin de|porque|debido a)\b",
    re.IGNORECASE,
)


def beside_rows(
    reader: Reader, snapshot: Snapshot, command: Recall, graph: GraphFound, rows: Sequence[RecalledRow], allowed: Mask
) -> list[RecalledRow]:
    """Return what is shown beside the results ``rows``, each memory once."""
    binding = _constraints(reader, snapshot, command, graph, {row.seq for row in rows})
    return [*binding, *_reasons(reader, snapshot, command, [*rows, *binding], allowed)]


def _constraints(
    reader: Reader, snapshot: Snapshot, command: Recall, graph: GraphFound, shown: Collection[int]
) -> list[RecalledRow]:
    """Return the constraints of the focal entities that are not ``shown``: those of a person first, at most a few."""
    focal = {each.entity for each in graph.focal}
    found = graph.walked.constraints
    found = found[np.isin(found["entity"], list(focal)) & ~np.isin(found["seq"], list(shown))]
    ranks = reader.columns.constraint_ranks(found["seq"])
    order = np.lexsort((-found["seq"], -found["importance"], -ranks))
    seqs = list(dict.fromkeys(found["seq"][order].tolist()))
    received = set(reader.columns.unchanged(command.received).tolist()) if command.received else set()
    fresh = [seq for seq in seqs if seq not in received]
    return _rows(reader, snapshot, command, fresh[:MOST_CONSTRAINTS], "constraint")


def _reasons(
    reader: Reader, snapshot: Snapshot, command: Recall, rows: Sequence[RecalledRow], allowed: Mask
) -> list[RecalledRow]:
    """Return memories that give the reason of a decision among the results, from the same aspect of the same entity."""
    index, agent = reader.graph, reader.graph.agent(command.read.agent_id)
    decisions = [row.seq for row in rows if row.type in RESOLVED_TYPES]
    is_limited = command.read.project is not None or command.read.user is not None
    if command.graph is None or is_limited or not index.complete or not decisions:
        return []
    near: dict[int, None] = {}
    for seq in decisions:
        own = index.attributes.of(seq)
        for link in own[own["aspect"] != NO_ASPECT]:
            if index.belongs_to(index.resolved(int(link["target"])), agent):
                others = index.attributes.to(int(link["target"]))
                near |= dict.fromkeys(others["owner"][others["aspect"] == link["aspect"]][::-1].tolist())
    shown = {row.seq for row in rows}
    seqs = [seq for seq in near if seq not in shown and seq < len(allowed) and allowed[seq]][:_MOST_READ]
    return [row for row in _rows(reader, snapshot, command, seqs, "rationale") if _REASON.search(row.content)][
        :MOST_REASONS
    ]


def named_entities(reader: Reader, snapshot: Snapshot, command: Recall, graph: GraphFound) -> list[NamedEntity]:
    """Return the entities that the query surely names, with some facts if the request wants them.

    Constraints come first; other facts must have a word of the query beside the entity's name.
    """
    sure = [each.entity for each in graph.focal if each.source == "query" and each.weight >= SURE][:MOST_ENTITIES]
    index = reader.graph
    described = stored.described(snapshot, [index.ids[each] for each in sure])
    found = []
    for entity in sure:
        name, kind = described.get(index.ids[entity], ("", ""))
        members = [index.ids[each] for each in index.with_members(entity)]
        facts = stored.facts(snapshot, command.read, command.filters, members, _MOST_READ) if command.facts else []
        asked = set(name_tokens(command.query)).difference(name_tokens(name)) if facts else set()
        told = [
            EntityFact(memory_id, content, kind_of_fact, aspect)
            for memory_id, content, kind_of_fact, aspect in facts
            if kind_of_fact == "constraint" or asked.intersection(name_tokens(content))
        ]
        found.append(NamedEntity(index.ids[entity], name, kind, told[: command.facts]))
    return found


def _rows(reader: Reader, snapshot: Snapshot, command: Recall, seqs: Sequence[int], why: str) -> list[RecalledRow]:
    """Return the readable ones of the memories as rows after the results."""
    found = recalled_by_seq(snapshot, command.read, command.filters, seqs)
    versions = reader.columns.content_version
    rows = []
    for seq in seqs:
        if seq in found:
            measured = RowScores(0.0, 0.0, "graph", seq, 0, int(versions[seq]), why)
            rows.append(recalled_row(found[seq], command, measured))
    return rows
