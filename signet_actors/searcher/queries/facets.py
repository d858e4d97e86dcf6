"""Count the memories that filters admit by their values. Source: docs/compatibility.md "Reading memories"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import Final

import msgspec
import numpy as np

from signet_actors.features.facets.api import Count, CountFacets, Facet, FacetsReply
from signet_actors.protocol.message import Answered
from signet_actors.searcher.columns import DAY_MS, Mask, MemoryColumns
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot

_MAX_KEPT: Final = 32
FILTERED: Final = {"types": ("type", None), "tags": ("tags", ()), "who": ("who", None), "pinned": ("pinned", None)}
"""The filter that a facet is about, and the value with which it admits all."""


def facets(reader: Reader, snapshot: Snapshot, query: CountFacets) -> Answered:
    """Return the counts of the snapshot. They are kept until the next commit, as many as a page asks for at once."""
    reader.columns.sync(snapshot)
    version, kept = reader.facets
    if reader.columns.version != version or len(kept) >= _MAX_KEPT:
        reader.facets = _, kept = reader.columns.version, {}
    if query not in kept:
        kept[query] = Answered(msgspec.json.encode(_counted(reader, snapshot, query)))
    return kept[query]


def _counted(reader: Reader, snapshot: Snapshot, query: CountFacets) -> FacetsReply:
    found = count_facets(reader, snapshot, query)
    if not query.alternatives:
        return found
    without = {
        facet: msgspec.structs.replace(query, filters=msgspec.structs.replace(query.filters, **{of: default}))
        for facet, (of, default) in FILTERED.items()
        if getattr(query.filters, of) != default
    }
    others = {facet: getattr(count_facets(reader, snapshot, other), facet) for facet, other in without.items()}
    return msgspec.structs.replace(found, **others)


def count_facets(reader: Reader, snapshot: Snapshot, query: CountFacets) -> FacetsReply:
    """Return the counts of the memories that the caller may read and that pass the filters."""
    columns = reader.columns
    in_any_scope = {
        state: reader.rows_in_any_scope(snapshot, query.read, query.filters, deleted=state == "deleted")
        for state in ("live", "deleted")
    }
    in_scope = columns.with_texts("scope", (query.read.scope or "",), columns.size)
    state = "deleted" if query.deleted else "live"
    chosen = in_any_scope[state] & in_scope

    def facet(counts: Mapping[str, int]) -> Facet:
        ordered = most_frequent(counts, query.top)
        return Facet([Count(value or None, number) for value, number in ordered], len(counts))

    def by(column: str, rows: Mask = chosen) -> Facet:
        return facet(columns.counts(column, rows))

    return FacetsReply(
        total=int(chosen.sum()),
        pinned=int((chosen & columns.pinned[: columns.size]).sum()),
        types=by("type"),
        projects=by("project"),
        agents=by("agent_id"),
        who=by("who"),
        tags=facet(reader.tags.counts(snapshot, chosen)),
        sources=facet(_sources(columns, chosen)),
        months=facet(_months(columns, chosen)),
        scopes=by("scope", in_any_scope[state]),
        states=facet({name: int((rows & in_scope).sum()) for name, rows in in_any_scope.items()}),
    )


def most_frequent(counts: Mapping[str, int], top: int) -> list[tuple[str, int]]:
    """Return the ``top`` values with the highest numbers, the highest first, equal ones in alphabetical order.

    Of many values, such as tags, only those in question are sorted.
    """
    items: Iterable[tuple[str, int]] = counts.items()
    if len(counts) > top:
        numbers = np.fromiter(counts.values(), np.int64, len(counts))
        least = int(np.partition(numbers, -top)[-top])
        above = [item for item in items if item[1] > least]
        equal = nsmallest(top - len(above), (value for value, number in items if number == least))
        items = (*above, *((value, least) for value in equal))
    return sorted(items, key=lambda item: (-item[1], item[0]))


def _sources(columns: MemoryColumns, rows: Mask) -> Mapping[str, int]:
    """Return how many of ``rows`` each source type finds: that of the row, or that of the text it is a part of."""
    found: Counter[str] = Counter()
    for texts, number in columns.pair_counts("source_type", "origin", rows).items():
        found.update(dict.fromkeys(texts, number))
    return found


def _months(columns: MemoryColumns, rows: Mask) -> Mapping[str, int]:
    """Return how many of ``rows`` were created in each month, by way of the days, because numpy's months are slow."""
    days, numbers = np.unique(columns.created_ms[: columns.size][rows] // DAY_MS, return_counts=True)
    found: Counter[str] = Counter()
    for month, number in zip(days.astype("datetime64[D]").astype("datetime64[M]"), numbers.tolist(), strict=True):
        found[str(month)] += number
    return found
