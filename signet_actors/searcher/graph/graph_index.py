"""The knowledge graph in arrays: the entities, and what live memories contribute to them.

It follows ``graph_changes``: a memory's mentions and attributes are read again together, and so are an entity's name,
pins, aspects and edges. Rows are numbers; texts are read from the store when something is shown. What belongs to a
merged entity is found under the one that it was merged into. Only active attributes are held.

Source: knowledge-graph.txt "Data Model"; the comments of migration 26.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking.traversal import telling_tokens
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.graph.links import Links, Rows, Seqs
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import graph_index as stored
from signet_actors.store.reads.graph_index import StoredAttribute, StoredEntity

NO_ASPECT: Final = -1
FEW_NAMES: Final = 3
"""A part of a name tells which entity is meant if no more names than these have it."""
PROJECT: Final = "project"

_LINK: Final = [("owner", "i4"), ("target", "i4")]
_ATTRIBUTE: Final = np.dtype(
    [*_LINK, ("aspect", "i4"), ("importance", "f4"), ("is_constraint", "?"), ("structured", "?")]
)
_EDGE: Final = np.dtype([*_LINK, ("strength", "f4")])
_PAIR: Final = np.dtype(_LINK)
_IS_PINNED: Final = 1
_IS_SUPPRESSED: Final = 2
_IS_PROJECT: Final = 4
_ALL: Final = -1
_MOST_TELLING: Final = 127
_CHANGES_PER_ROW: Final = 4
"""A memory with several links has as many changes, so more changes than rows fit into a step."""


class GraphIndex:
    """The graphs of all agents. Call ``sync`` inside a snapshot first; use the index only if it is ``complete``.

    ``version`` changes with every update.
    """

    def __init__(self) -> None:
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.version += 1
        self.complete = False
        self._last_change = -1
        self._data_version: int | None = None
        self._entities_after: str | None = ""
        self._next_seq = 1
        self._numbers: dict[str, int] = {}
        self.ids: list[str] = []
        self.names: list[str] = []
        self._agents: dict[str, int] = {"": 0}
        self._agent, self._flags, self._merged_into = array("i"), array("b"), array("i")
        self._telling = array("b")
        """How many different telling tokens each name has."""
        self._override = array("f")
        self._members: dict[int, list[int]] = {}
        self._pinned: dict[int, None] = {}
        self._aspects: dict[str, int] = {}
        self._weights = array("f")
        self.mentioned, self.attributes = Links(_PAIR), Links(_ATTRIBUTE)
        self.dependencies, self.relations = Links(_EDGE), Links(_EDGE)
        self._tokens = Links(_PAIR)

    def sync(self, snapshot: Snapshot, *, max_rows: int) -> None:
        """Bring the index nearer to ``snapshot``: at most ``max_rows`` memories and as many entities."""
        version = snapshot.data_version()
        if version == self._data_version and self.complete:
            return
        oldest, newest = stored.change_feed(snapshot)
        missed = oldest is None or oldest > self._last_change + 1
        if self._last_change < 0 or newest < self._last_change or (newest > self._last_change and missed):
            self._clear()
            self._last_change = newest
        if newest > self._last_change:
            self._apply_changes(snapshot, max_rows)
        if newest == self._last_change and self._next_seq != _ALL:
            self._load(snapshot, max_rows)
        self._data_version = version
        self.complete = newest == self._last_change and self._next_seq == _ALL

    def _load(self, snapshot: Snapshot, max_rows: int) -> None:
        """Read the next entities, or when all are read the next memories. Later changes are in the feed."""
        self.version += 1
        if self._entities_after is not None:
            ids = stored.entity_ids_after(snapshot, self._entities_after, max_rows)
            self._read_entities(snapshot, ids, _add)
            self._entities_after = ids[-1] if len(ids) == max_rows else None
        if self._entities_after is not None:
            return
        first, end = self._next_seq, self._next_seq + max_rows
        _add(self.mentioned, {}, self._mentions(stored.mentions_between(snapshot, first, end)))
        _add(self.attributes, {}, self._attributes(stored.attributes_between(snapshot, first, end)))
        self._next_seq = end
        if end > snapshot.last_number("memories"):
            self._next_seq = _ALL
            for links in (self.mentioned, self.attributes, self.dependencies, self.relations, self._tokens):
                links.settle()

    def _apply_changes(self, snapshot: Snapshot, max_rows: int) -> None:
        self.version += 1
        changes = stored.changes_after(snapshot, self._last_change, _CHANGES_PER_ROW * max_rows)
        self._read_entities(snapshot, list(dict.fromkeys(id_ for _, kind, id_ in changes if kind == "entity")), _put)
        ids = list(dict.fromkeys(id_ for _, kind, id_ in changes if kind == "memory"))
        if ids:
            owners = dict.fromkeys(stored.seqs(snapshot, ids))
            _put(self.mentioned, owners, self._mentions(stored.mentions(snapshot, ids)))
            _put(self.attributes, owners, self._attributes(stored.attributes(snapshot, ids)))
        self._last_change = changes[-1][0]

    def _mentions(self, mentions: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
        return [(seq, self._number(entity)) for seq, entity in mentions]

    def _attributes(self, attributes: Sequence[StoredAttribute]) -> list[tuple[Any, ...]]:
        return [
            (
                each.memory_seq,
                self._number(each.entity_id),
                NO_ASPECT if each.aspect_id is None else self._aspect(each.aspect_id),
                each.importance,
                bool(each.is_constraint),
                bool(each.is_structured),
            )
            for each in attributes
        ]

    def _read_entities(self, snapshot: Snapshot, ids: Sequence[str], put: Replace) -> None:
        if not ids:
            return
        found = {entity.id: entity for entity in stored.entities(snapshot, ids)}
        names = []
        for each in ids:
            if each in found or each in self._numbers:
                number = self._put_entity(found.get(each, StoredEntity(each, "", "", "", 0, None, None, None)))
                codes = {_token_code(token) for token in telling_tokens(self.names[number])}
                self._telling[number] = min(len(codes), _MOST_TELLING)
                names += [(number, code) for code in codes]
        for aspect, weight in stored.aspects(snapshot, ids):
            self._weights[self._aspect(aspect)] = weight
        owners = dict.fromkeys(self.find(ids))
        put(self._tokens, owners, names)
        for links, edges in (
            (self.dependencies, stored.dependencies(snapshot, ids)),
            (self.relations, stored.relations(snapshot, ids)),
        ):
            put(links, owners, [(self._number(a), self._number(b), strength) for a, b, strength in edges])

    def _put_entity(self, entity: StoredEntity) -> int:
        number = self._number(entity.id)
        self.names[number] = entity.canonical_name
        self._agent[number] = self._agents.setdefault(entity.agent_id, len(self._agents))
        is_suppressed = entity.pin_type == "suppress"
        self._flags[number] = (
            (_IS_PINNED if entity.pinned and not is_suppressed else 0)
            | (_IS_SUPPRESSED if is_suppressed else 0)
            | (_IS_PROJECT if entity.entity_type == PROJECT else 0)
        )
        override = entity.weight_override
        self._override[number] = np.nan if override is None else override
        if self._flags[number] & _IS_PINNED:
            self._pinned[number] = None
        else:
            self._pinned.pop(number, None)
        before = self._merged_into[number]
        if before >= 0:
            self._members[before].remove(number)
        into = self._merged_into[number] = -1 if entity.merged_into is None else self._number(entity.merged_into)
        if into >= 0:
            self._members.setdefault(into, []).append(number)
        return number

    def _number(self, entity_id: str) -> int:
        number = self._numbers.setdefault(entity_id, len(self.ids))
        if number == len(self.ids):
            self.ids.append(entity_id)
            self.names.append("")
            self._agent.append(0)
            self._telling.append(0)
            self._flags.append(0)
            self._merged_into.append(-1)
            self._override.append(np.nan)
        return number

    def _aspect(self, aspect_id: str) -> int:
        number = self._aspects.setdefault(aspect_id, len(self._weights))
        if number == len(self._weights):
            self._weights.append(0.0)
        return number

    def agent(self, name: str) -> int:
        """Return the number of an agent, -1 if it has no entity."""
        return self._agents.get(name, -1) if name else -1

    def belongs_to(self, entity: int, agent: int) -> bool:
        """Return whether the entity is the agent's, and neither suppressed nor merged into another one."""
        return (
            self._agent[entity] == agent and not self._flags[entity] & _IS_SUPPRESSED and self._merged_into[entity] < 0
        )

    def resolved(self, entity: int) -> int:
        """Return the entity that this one is another name of, else itself."""
        into = self._merged_into[entity]
        return entity if into < 0 else into

    def is_project(self, entity: int) -> bool:
        return bool(self._flags[entity] & _IS_PROJECT)

    def is_pinned(self, entity: int) -> bool:
        return bool(self._flags[entity] & _IS_PINNED)

    def pinned(self, agent: int) -> list[int]:
        """Return the pinned entities of the agent."""
        return [entity for entity in self._pinned if self.belongs_to(entity, agent)]

    def override(self, entity: int) -> float | None:
        """Return the weight that a person has given to the entity, if any."""
        weight = self._override[entity]
        return weight if weight == weight else None  # noqa: PLR0124 - NaN is unequal to itself

    def find(self, ids: Iterable[str]) -> list[int]:
        """Return the numbers of those entities that are known."""
        return [self._numbers[each] for each in ids if each in self._numbers]

    def named_with(self, agent: int, tokens: Iterable[str]) -> list[int]:
        """Return the agent's entities whose names may have only telling tokens of these, or one that few names have.

        The names decide: two tokens may have the same number.
        """
        rows, place = self._tokens.to_each([_token_code(token) for token in tokens])
        is_own = np.frombuffer(self._agent, np.int32)[rows["owner"]] == agent
        rows, place = rows[is_own], place[is_own]
        if not len(rows):
            return []
        order = np.argsort(rows["owner"], kind="stable")
        ascending, shared = rows["owner"][order], np.bincount(place)[place[order]]
        first = np.flatnonzero(np.append(-1, ascending[:-1]) != ascending)
        owners, held = ascending[first], np.diff(first, append=len(ascending))
        rarest = np.minimum.reduceat(shared, first)
        telling = np.frombuffer(self._telling, np.int8)[owners]
        found: list[int] = owners[(held >= telling) | (rarest <= FEW_NAMES)].tolist()
        return found

    def with_members(self, entity: int) -> list[int]:
        """Return the entity and those that were merged into it."""
        return [entity, *self._members.get(entity, ())]

    def linked_to(self, links: Links, entities: Sequence[int]) -> tuple[Rows, Seqs]:
        """Return the ``mentioned`` or ``attributes`` of the entities, and at which place of these each one's entity is.

        ``owner`` is the memory's ``seq``.
        """
        if self._members.keys().isdisjoint(entities):
            return links.to_each(entities)
        members = [(each, at) for at, entity in enumerate(entities) for each in self.with_members(entity)]
        rows, place = links.to_each([each for each, _ in members])
        return rows, np.array([at for _, at in members])[place]

    def outgoing(self, links: Links, entity: int) -> Rows:
        """Return the edges that leave the entity."""
        return self._joined(links.of(each) for each in self.with_members(entity))

    def incoming(self, links: Links, entity: int) -> Rows:
        """Return the edges that reach the entity."""
        return self._joined(links.to(each) for each in self.with_members(entity))

    def mentions(self, entities: Sequence[int], readable: Mask) -> list[int]:
        """Return of each entity how many of the ``readable`` memories mention it."""
        rows, place = self.linked_to(self.mentioned, entities)
        counts: list[int] = np.bincount(place[is_in(readable, rows["owner"])], minlength=len(entities)).tolist()
        return counts

    def degrees(self, agent: int, readable: Mask) -> npt.NDArray[np.int64]:
        """Return for each entity how many ``readable`` memories mention it; 0 for those of other agents."""
        rows = self.mentioned.all()
        counted = rows["target"][is_in(readable, rows["owner"])]
        degrees = np.bincount(counted, minlength=len(self.ids))
        for into, members in self._members.items():
            degrees[into] += degrees[members].sum()
            degrees[members] = 0
        degrees[np.frombuffer(self._agent, np.int32) != agent] = 0
        return degrees

    def weights(self, aspects: Any) -> Any:
        """Return the weights of aspects by their numbers; those of ``NO_ASPECT`` mean nothing."""
        return np.frombuffer(self._weights, np.float32)[aspects] if len(self._weights) else np.zeros(len(aspects))

    @staticmethod
    def _joined(found: Iterable[Rows]) -> Rows:
        first, *others = found
        return np.concatenate((first, *others)) if others else first


def is_in(mask: Mask, rows: npt.NDArray[np.int32]) -> Mask:
    """Return which of ``rows`` the mask has; a row that is newer than it is not there."""
    return (rows < len(mask)) & mask[np.minimum(rows, len(mask) - 1)]


Replace = Callable[[Links, Mapping[int, None], Sequence[tuple[Any, ...]]], None]


def _put(links: Links, owners: Mapping[int, None], rows: Sequence[tuple[Any, ...]]) -> None:
    """Replace the links of ``owners`` by ``rows``."""
    ordered = sorted(rows, key=itemgetter(0))
    found = {owner: list(of) for owner, of in groupby(ordered, key=itemgetter(0))}
    for owner in owners:
        links.put(owner, np.array(found.get(owner, []), links.row))


def _add(links: Links, owners: Mapping[int, None], rows: Sequence[tuple[Any, ...]]) -> None:  # noqa: ARG001
    """Add ``rows``, the links of owners that have none yet."""
    links.add(np.array(rows, links.row))


def _token_code(token: str) -> int:
    """Return a number of a token; different tokens may have the same."""
    return hash(token) & 0x7FFFFFFF
