"""Structs of a memory that several mailboxes share.

Units: timestamps are ISO-8601 UTC text with milliseconds (``2026-02-21T10:00:00.000Z``), which sorts as text;
``importance`` and ``score`` lie in [0, 1].
"""

from __future__ import annotations

from typing import Final

import msgspec

Wording = tuple[int, int]
"""A memory in its words: ``memories.seq``, and the version since which it has these words (``content_version``)."""


class ReadScope(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the caller may read: the agent whose read policy applies, and the optional exact ``scope`` value.

    The reader looks the policy itself (isolated, shared, group) up in its own snapshot. Searches and lists hide rows
    whose ``scope`` column is not null unless ``scope`` equals it; access by id does not. ``project``, ``user``: the
    limits of the caller's token. With one, only memories of exactly this project, or with this ``who``, are readable.
    Source: architecture.txt "Multi-Agent Support", "Auth Middleware"; docs/compatibility.md "Recall".
    """

    agent_id: str = "default"
    scope: str | None = None
    project: str | None = None
    user: str | None = None


ANY_DIRECTORY: Final = "*/"
"""Begins a name of a project that means every directory with this last part."""


def project_names(project: str, former: str | None = None) -> tuple[str, ...]:
    """Return the names that mean a project: a directory has also its last part, a name also each directory of it.

    Source: docs/concepts.md "Who may see it".
    """
    path = project.replace("\\", "/")
    name = path.rpartition("/")[2]
    is_directory = path.startswith("/") or path[1:3] == ":/"
    also = (ANY_DIRECTORY + project,) if name == path else (name,) if is_directory and name else ()
    return (project, *(() if former is None else (former,)), *also)


class Filters(msgspec.Struct, frozen=True, omit_defaults=True):
    """Conditions applied before ranking; all that are set must match. ``tags``: at least one must match.

    ``owner`` is the agent that owns the memories. ``former_project``: another spelling of ``project``, under which
    older memories of it are stored. ``no_project``: only memories without a project. ``or_no_project``: memories of
    ``project`` and those without one. ``without_answers``: no answers of aggregate recalls.
    """

    type: str | None = None
    tags: tuple[str, ...] = ()
    who: str | None = None
    pinned: bool | None = None
    importance_min: float | None = None
    since: str | None = None
    until: str | None = None
    project: str | None = None
    former_project: str | None = None
    source_type: str | None = None
    owner: str | None = None
    visibility: str | None = None
    no_project: bool = False
    or_no_project: bool = False
    without_answers: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names under which memories of the project are stored; empty if there is no condition on it."""
        return () if self.project is None else project_names(self.project, self.former_project)

    @property
    def only_project(self) -> tuple[str, ...]:
        """The names of the project if only its memories pass, else none."""
        return () if self.or_no_project else self.spellings

    @property
    def projects(self) -> Filters:
        """The conditions on the project alone. Words are counted, and relevance is measured, on what passes them."""
        return Filters(
            project=self.project,
            former_project=self.former_project,
            no_project=self.no_project,
            or_no_project=self.or_no_project,
        )


class Memory(msgspec.Struct, frozen=True):
    """A whole row of ``memories``. ``is_deleted`` and ``pinned`` are 0 or 1."""

    id: str
    content: str
    type: str
    importance: float
    tags: list[str]
    pinned: int
    who: str | None
    project: str | None
    scope: str | None
    agent_id: str
    visibility: str
    source_type: str | None
    source_id: str | None
    source_path: str | None
    runtime_path: str | None
    idempotency_key: str | None
    session_id: str | None
    confidence: float | None
    access_count: int
    last_accessed: str | None
    injected_count: int
    is_deleted: int
    deleted_at: str | None
    extraction_status: str
    embedding_model: str | None
    version: int
    created_at: str
    content_at: str | None
    updated_at: str
    updated_by: str | None

    @property
    def said_at(self) -> str:
        """When somebody last gave it these words."""
        return self.content_at or self.created_at
