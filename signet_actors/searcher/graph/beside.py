"""What a recall adds beside its results: constraints of the focal entities, reasons of decisions, facts of entities.

Source: memory-api.txt "recall" (``meta.hasSupplementary``); architecture.txt (constraints always surface);
knowledge-graph.txt "API"; docs/guides/hooks.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

import numpy as np

from signet_actors.domain.graph.names import name_tokens
from signet_actors.domain.ranking.dampening import RESOLVED_TYPES
from signet_actors.protocol.searcher import EntityFact, NamedEntity, Recall, RecalledRow
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.graph.graph_index import NO_ASPECT, is_in
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
    shown = {row.seq for row in rows}
    binding = _constraints(reader, command, graph, shown)
    reasons = _reasons(reader, command, rows, shown.union(binding), allowed)
    found = recalled_by_seq(snapshot, command.read, command.filters, [*binding, *reasons])
    given = [seq for seq in reasons if seq in found and _REASON.search(found[seq].content)][:MOST_REASONS]
    beside = [(seq, "constraint") for seq in binding if seq in found] + [(seq, "rationale") for seq in given]
    versions = reader.columns.content_version
    return [
        recalled_row(found[seq], command, RowScores(0.0, 0.0, "graph", seq, 0, int(versions[seq]), why))
        for seq, why in beside
    ]


def _constraints(reader: Reader, command: Recall, graph: GraphFound, shown: AbstractSet[int]) -> list[int]:
    """Return the constraints of the focal entities that are not ``shown``: those of a person first, at most a few."""
    found = graph.walked.constraints
    if not len(found):
        return []
    found = found[found["near"] < 0]
    seqs = found["seq"]
    ranks = reader.columns.constraint_ranks(seqs)
    best_first = seqs[np.lexsort((-seqs, -found["importance"], -ranks))].tolist()
    left_out = shown | set(reader.columns.unchanged(command.received).tolist()) if command.received else shown
    return [seq for seq in dict.fromkeys(best_first) if seq not in left_out][:MOST_CONSTRAINTS]


def _reasons(
    reader: Reader, command: Recall, rows: Sequence[RecalledRow], shown: AbstractSet[int], allowed: Mask
) -> list[int]:
    """Return memories that may give the reason of a decision among the results: of the same aspect of its entity.

    Those of the first decision come first, of these the newest ones.
    """
    index, agent = reader.graph, reader.graph.agent(command.read.agent_id)
    is_limited = command.read.project is not None or command.read.user is not None
    decisions = [row.seq for row in rows if row.type in RESOLVED_TYPES]
    if command.graph is None or is_limited or not index.complete or not decisions:
        return []
    own = np.concatenate([index.attributes.of(seq) for seq in decisions])
    own = own[own["aspect"] != NO_ASPECT]
    own = own[[index.belongs_to(index.resolved(each), agent) for each in own["target"].tolist()]]
    if not len(own):
        return []
    others, place = index.attributes.to_each(own["target"].tolist())
    near = (others["aspect"] == own["aspect"][place]) & is_in(allowed, others["owner"])
    seqs, place = others["owner"][near], place[near]
    ordered = dict.fromkeys(seqs[np.lexsort((-seqs, place))].tolist())
    return list(islice((seq for seq in ordered if seq not in shown), _MOST_READ))


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
            EntityFact(memory_id, content, kind_of_fact, aspect, seq, int(reader.columns.content_version[seq]))
            for memory_id, content, kind_of_fact, aspect, seq in facts
            if kind_of_fact == "constraint" or asked.intersection(name_tokens(content))
        ]
        found.append(NamedEntity(index.ids[entity], name, kind, told[: command.facts]))
    return found
