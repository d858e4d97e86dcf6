"""The ids by which a request names memories: the beginning of an id means the one readable memory that has it.

Text that a hook injects shows the beginnings of ids, so a model can correct, forget or rate what it was shown. An id
that is given in full needs no lookup.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import IdsResolved, ResolveIds

MIN_BEGINNING_CHARS: Final = 8
"""Fewer characters name nothing."""
FULL_CHARS: Final = 36
"""An id that the daemon made has so many characters."""
SHOWN_CANDIDATES: Final = 10


class FullIds(NamedTuple):
    """For each given beginning of an id the ids that it may mean."""

    meant: Mapping[str, list[str]]

    def of(self, given: str, field: str) -> str:
        """Return the id that ``given`` means; ``given`` itself if none fits. Raises InvalidRequest if several fit."""
        found = self.meant.get(given, ())
        if len(found) > 1:
            more = ", …" if len(found) > SHOWN_CANDIDATES else ""
            shown = ", ".join(found[:SHOWN_CANDIDATES])
            raise InvalidRequest(
                f"{field} {given} is the beginning of several ids; give more characters: {shown}{more}", field=field
            )
        return found[0] if found else given

    def within(self, value: Any, field: str) -> Any:
        """Return a field's value with full ids: one id, several, or a mapping by id. Raises InvalidRequest."""
        if isinstance(value, str):
            return self.of(value, field)
        if isinstance(value, Mapping):
            return {self.of(given, field): one for given, one in value.items()}
        return tuple(dict.fromkeys(self.of(given, field) for given in value))


async def full_ids(
    ask: Callable[[ResolveIds], Awaitable[IdsResolved]],
    read: ReadScope,
    given: Iterable[str],
    *,
    deleted_first: bool = False,
) -> FullIds:
    """Return what the beginnings among the ``given`` ids mean for a caller that may read ``read``. Raises SignetError.

    Live memories count before deleted ones, or after them with ``deleted_first``.
    """
    beginnings = tuple(dict.fromkeys(filter(_is_beginning, given)))
    if not beginnings:
        return FullIds({})
    found = await ask(ResolveIds(beginnings, read, SHOWN_CANDIDATES + 1, deleted_first))
    return FullIds(dict(zip(beginnings, found.ids, strict=True)))


def _is_beginning(given: str) -> bool:
    return MIN_BEGINNING_CHARS <= len(given) < FULL_CHARS and "\0" not in given
