"""The contract of the memory API as a simple program with dictionaries instead of a store.

It contains no SQL, processes or ranking. Each method returns what the daemon must answer, or the set of permitted
answers.

Source: memory-api.txt; memory-system.txt "Soft-Delete and Recovery"; docs/decisions.md 4, 32, 38, 42, 50, 51.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Outcome = tuple[int, str]
"""HTTP status, and the ``status`` or error code in the body."""


@dataclass
class Row:
    """One memory; ``events`` are the (event, content) pairs that the history must contain.

    ``given_up`` is the idempotency key that a tombstone had to release for a new memory.
    """

    id: str
    content: str
    type: str
    tags: tuple[str, ...]
    importance: float
    pinned: bool
    agent: str
    visibility: str
    project: str | None
    scope: str | None
    source_id: str | None
    key: str | None
    deleted: bool = False
    version: int = 1
    given_up: str | None = None
    events: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def room(self) -> tuple[str | None, ...]:
        """The boundary within which two memories can be duplicates."""
        return (self.agent, self.visibility, self.project, self.scope)


def alike(first: str, second: str) -> bool:
    """Return whether two contents are the same memory, ignoring case and a final ``.`` or ``!``, not a ``?``."""
    return first.lower().rstrip(".!").strip() == second.lower().rstrip(".!").strip()


class ReferenceMemory:
    """All memories of some agents that share one read policy group."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def row(self, memory_id: str, agent: str) -> Row | None:
        """Return the row if the read policy permits it. A scope hides a memory only from lists and searches."""
        row = self.rows.get(memory_id)
        return row if row is not None and self._reads(agent, row) else None

    def _reads(self, agent: str, row: Row) -> bool:
        return row.agent == agent or row.visibility == "global"

    def listed(self, agent: str, scope: str | None, *, deleted: bool = False, **filters: Any) -> list[Row]:
        """Newest first."""
        found = [
            row
            for row in self.rows.values()
            if row.deleted == deleted and row.scope == scope and self._reads(agent, row)
        ]
        for name, wanted in filters.items():
            if name == "tags":
                found = [row for row in found if set(wanted) & set(row.tags)]
            elif name == "importance_min":
                found = [row for row in found if row.importance >= wanted]
            else:
                found = [row for row in found if getattr(row, name) == wanted]
        return found[::-1]

    def duplicates(self, new: Row) -> list[Row]:
        """Return the memories of which a remember of ``new`` must return one; if there are none, it is new.

        A tombstone with the same key releases it.
        """
        live = [row for row in self.rows.values() if row.room == new.room and not row.deleted]
        if new.source_id is not None and (same := [row for row in live if row.source_id == new.source_id]):
            return same
        if new.key is not None:
            for row in self.rows.values():
                if row.room == new.room and row.key == new.key:
                    if not row.deleted:
                        return [row]
                    self._give_up_key(row)
        return [row for row in live if alike(row.content, new.content)]

    def remembered_again(self, memory_id: str, new: Row) -> Row:
        """Return the memory that ``new`` duplicates; it is pinned with it, unless ``new`` is the same request again."""
        row = self.rows[memory_id]
        is_sent_again = (new.source_id is not None and self._has_source(new)) or (
            new.key is not None and any(new.key == each.key and each.room == new.room for each in self._live())
        )
        if new.pinned and not row.pinned and not is_sent_again:
            row.pinned = True
            self._changed(row, "updated", row.content)
        return row

    def _live(self) -> list[Row]:
        return [row for row in self.rows.values() if not row.deleted]

    def _has_source(self, new: Row) -> bool:
        return any(row.source_id == new.source_id and row.room == new.room for row in self._live())

    def add(self, new: Row) -> None:
        new.events.append(("created", new.content))
        self.rows[new.id] = new

    def modify(self, memory_id: str, agent: str, if_version: int | None, **changes: Any) -> Outcome:
        row = self.row(memory_id, agent)
        if row is None:
            return 404, "not_found"
        if row.deleted:
            return 409, "deleted"
        if if_version not in {None, row.version}:
            return 409, "version_conflict"
        if changes.get("pinned"):
            changes.setdefault("importance", 1.0)
        changes = {name: value for name, value in changes.items() if getattr(row, name) != value}
        if not changes:
            return 200, "no_changes"
        if "content" in changes and self._twins(row, changes["content"]):
            return 409, "duplicate_content_hash"
        for name, value in changes.items():
            setattr(row, name, value)
        self._changed(row, "updated", row.content)
        return 200, "updated"

    def forget(self, memory_id: str, agent: str, if_version: int | None, *, force: bool) -> Outcome:
        row = self.row(memory_id, agent)
        if row is None:
            return 404, "not_found"
        if row.deleted:
            return 409, "already_deleted"
        if if_version not in {None, row.version}:
            return 409, "version_conflict"
        if row.pinned and not force:
            return 409, "pinned_requires_force"
        row.deleted = True
        self._changed(row, "deleted", None)
        return 200, "deleted"

    def recover(self, memory_id: str, agent: str, if_version: int | None) -> Outcome:
        row = self.row(memory_id, agent)
        if row is None:
            return 404, "not_found"
        if not row.deleted:
            return 409, "not_deleted"
        if if_version not in {None, row.version}:
            return 409, "version_conflict"
        if self._twins(row, row.content):
            return 409, "duplicate_content_hash"
        row.deleted = False
        if row.given_up is not None:
            self._take_key_back(row, row.given_up)
        self._changed(row, "recovered", row.content)
        return 200, "recovered"

    def erase(self, memory_id: str) -> None:
        del self.rows[memory_id]

    def _give_up_key(self, row: Row) -> None:
        row.key, row.given_up = None, row.key
        row.events.append(("none", None))

    def _take_key_back(self, row: Row, key: str) -> None:
        holders = [other for other in self.rows.values() if other.room == row.room and other.key == key]
        if any(not other.deleted for other in holders):
            return
        for tombstone in holders:
            self._give_up_key(tombstone)
        row.key, row.given_up = key, None

    def _twins(self, row: Row, content: str) -> list[Row]:
        others = (other for other in self.rows.values() if other is not row and other.room == row.room)
        return [other for other in others if not other.deleted and alike(other.content, content)]

    def _changed(self, row: Row, event: str, content: str | None) -> None:
        row.version += 1
        row.events.append((event, content))
