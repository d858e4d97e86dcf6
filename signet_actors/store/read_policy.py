"""SQL predicates for the rows that an agent may read.

Every query and every mutation uses one of two: access by id applies the read policy alone (``readable_in_any_scope``);
searches and lists also hide rows of other scopes (``readable``).

Source: architecture.txt "Multi-Agent Support"; docs/compatibility.md "Recall"; docs/decisions.md 4, 35.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from signet_actors.domain.memories import AGGREGATE, CHUNK, IMPORTED_SOURCE_TYPES
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.protocol.memories import ANY_DIRECTORY, Filters, ReadScope, project_names
from signet_actors.store.engine import Dialect, Reads

ARCHIVED_AGENTS: Final = "SELECT a.id FROM agents a WHERE a.archived_at IS NOT NULL"
"""The agents that were removed from the roster; nothing of them is readable."""
_POLICY: Final = (
    "SELECT CASE WHEN a.archived_at IS NULL THEN a.read_policy ELSE 'archived' END, a.policy_group"
    " FROM agents a WHERE a.id = :agent"
)
ORIGIN: Final = (
    f"CASE WHEN m.source_type = '{CHUNK}' THEN"
    " coalesce((SELECT g.source_type FROM chunk_groups g WHERE g.id = m.source_id),"
    f" CASE WHEN m.source_path <> '' THEN '{IMPORTED_SOURCE_TYPES[0]}' END) ELSE m.source_type END"
)
"""The source type of a row of ``memories``; of a chunk, that of the whole text.

A chunk that came from another store has no text here; if it names a file, it is of an import.
"""
_MEMBERS: Final = (
    "SELECT a.id FROM agents a WHERE a.policy_group = :policy_group AND a.archived_at IS NULL ORDER BY a.id"
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a caller may read in one snapshot.

    ``kind`` of the agent's policy: isolated, shared, group, or archived, which reads nothing. ``members``: the agents
    of its group; ``archived``: the agents whose global memories ``shared`` leaves out. ``project``, ``user``: as of
    ``ReadScope``.
    """

    agent_id: str
    kind: str
    members: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    project: str | None = None
    user: str | None = None


def resolve_policy(view: Reads, read: ReadScope) -> Policy:
    """Return the policy of the agent. An agent without a row is isolated, except ``default``, which is shared."""
    row = view.one(_POLICY, {"agent": read.agent_id})
    kind, group = row or ("shared" if read.agent_id == DEFAULT_AGENT else "isolated", None)
    members: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    if kind == "group":
        kind = "isolated" if group is None else kind
        members = tuple(str(member) for (member,) in view.rows(_MEMBERS, {"policy_group": group}))
    elif kind == "shared":
        archived = tuple(str(agent) for (agent,) in view.rows(f"{ARCHIVED_AGENTS} ORDER BY a.id"))
    return Policy(read.agent_id, kind, members, archived, read.project, read.user)


def is_archived(view: Reads, agent_id: str) -> bool:
    """Return whether the agent was removed from the roster."""
    return view.one(f"{ARCHIVED_AGENTS} AND a.id = :agent", {"agent": agent_id}) is not None


def readable(view: Reads, read: ReadScope) -> tuple[str, dict[str, Any]]:
    """Return ``(predicate, bindings)`` for searches and lists: the read policy and the requested scope.

    Without a scope, only rows without a scope match. The alias of ``memories`` is ``m``. ``is_deleted`` is not tested.
    """
    predicate, bindings = readable_in_any_scope(view, read)
    if read.scope is None:
        predicate += " AND m.scope IS NULL"
    else:
        bindings["rp_scope"] = read.scope
        predicate += " AND m.scope = :rp_scope"
    return predicate, bindings


def readable_in_any_scope(view: Reads, read: ReadScope) -> tuple[str, dict[str, Any]]:
    """Return ``(predicate, bindings)`` of the read policy alone, over the alias ``m`` of ``memories``.

    Used for access by id, and for exports, which must not leave rows out. ``shared`` allows all global memories and the
    agent's own; ``group`` the global memories of agents with the same ``policy_group`` and the agent's own;
    ``isolated`` only the agent's own; of these, what the limits of the token admit. Archived rows, and those of
    archived agents, are never readable.
    """
    policy = resolve_policy(view, read)
    bindings: dict[str, Any] = {"rp_agent": policy.agent_id}
    if policy.kind == "shared":
        predicate = "(m.visibility = 'global' OR m.agent_id = :rp_agent)"
        if policy.archived:
            predicate += f" AND m.agent_id NOT IN ({ARCHIVED_AGENTS})"
    elif policy.kind == "archived":
        predicate = "1 = 0"
    elif policy.kind == "group":
        names = [f"rp_member_{index}" for index in range(len(policy.members))]
        bindings.update(zip(names, policy.members, strict=True))
        marks = ", ".join(f":{name}" for name in names)
        predicate = f"((m.visibility = 'global' AND m.agent_id IN ({marks})) OR m.agent_id = :rp_agent)"
    else:
        predicate = "m.agent_id = :rp_agent"
    predicate += " AND m.visibility <> 'archived'"
    for column, name, limit in (("project", "rp_project", policy.project), ("who", "rp_user", policy.user)):
        if limit is not None:
            predicate += f" AND m.{column} = :{name}"
            bindings[name] = limit
    return predicate, bindings


def matching(dialect: Dialect, filters: Filters) -> tuple[str, dict[str, Any]]:
    """Return ``(predicate, bindings)`` of the filters over the alias ``m``; always true if none is set."""
    clauses: list[str] = []
    bindings: dict[str, Any] = {}

    def add(clause: str, name: str, value: object) -> None:
        clauses.append(clause)
        bindings[name] = value

    if filters.type is not None:
        add("m.type = :f_type", "f_type", filters.type)
    if filters.who is not None:
        add("m.who = :f_who", "f_who", filters.who)
    if filters.pinned is not None:
        add("m.pinned = :f_pinned", "f_pinned", int(filters.pinned))
    if filters.importance_min is not None:
        add("m.importance >= :f_importance_min", "f_importance_min", filters.importance_min)
    if filters.since is not None:
        add("m.created_at >= :f_since", "f_since", filters.since)
    if filters.until is not None:
        add("m.created_at <= :f_until", "f_until", filters.until)
    if filters.project is not None:
        clause, named = in_project(filters.project, filters.former_project)
        clauses.append(f"({clause} OR m.project IS NULL)" if filters.or_no_project else clause)
        bindings.update(named)
    if filters.source_type is not None:
        add(f"(m.source_type = :f_source_type OR {ORIGIN} = :f_source_type)", "f_source_type", filters.source_type)
    if filters.owner is not None:
        add("m.agent_id = :f_owner", "f_owner", filters.owner)
    if filters.visibility is not None:
        add("m.visibility = :f_visibility", "f_visibility", filters.visibility)
    if filters.without_answers:
        clauses.append(f"coalesce(m.source_type, '') <> '{AGGREGATE}'")
    if filters.no_project:
        clauses.append("m.project IS NULL")
    if filters.tags:
        add(
            "EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory_seq = m.seq"
            f" AND t.tag IN ({dialect.members('f_tags')}))",
            "f_tags",
            dialect.listed(filters.tags),
        )
    return " AND ".join(clauses) or "1 = 1", bindings


def in_project(project: str, former: str | None = None, alias: str = "m") -> tuple[str, dict[str, Any]]:
    """Return ``(predicate, bindings)`` of the rows of a project; see ``project_names``."""
    names = project_names(project, former)
    whole = {f"f_project_{at}": name for at, name in enumerate(names) if not name.startswith(ANY_DIRECTORY)}
    clause = f"{alias}.project IN ({', '.join(f':{name}' for name in whole)})"
    if len(whole) == len(names):
        return clause, whole
    ending = names[-1].removeprefix("*")
    clause = f"({clause} OR substr({alias}.project, length({alias}.project) - :f_project_less) = :f_project_ending)"
    return clause, {**whole, "f_project_less": len(ending) - 1, "f_project_ending": ending}


def conjunction(*parts: tuple[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Combine predicates with AND and merge their bindings."""
    bindings: dict[str, Any] = {}
    for _, values in parts:
        bindings.update(values)
    return " AND ".join(f"({clause})" for clause, _ in parts), bindings
