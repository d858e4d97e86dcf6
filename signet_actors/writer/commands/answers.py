"""Store the answers of aggregate recalls, and forget them with the memories that they were made from.

Source: memory-api.txt "POST /api/memory/recall" (``saveAggregate``); docs/guides/aggregate-recall.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from signet_actors.domain.memories import AGGREGATE
from signet_actors.features.aggregate_recall import writes as answers
from signet_actors.features.aggregate_recall.api import AnswerSaved, SaveAnswer
from signet_actors.features.aggregate_recall.rules import shared_project, visibility_of
from signet_actors.protocol.message import Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.memories import StoredRow
from signet_actors.writer.commands import deletion, memories


def save(context: CommandContext, command: SaveAnswer) -> AnswerSaved:
    """Store the answer, or return the one that it duplicates; nothing if a source is not what the model was shown.

    A caller that may not read one of its sources must not read it either. So it has their project, its scope is that of
    the request, and it is private if a source is. ``who`` is nobody, except for a token that reads the memories of one
    user alone. Nothing is stored that is made of memories of another agent, because these can be withdrawn later.
    """
    found = [(source, answers.source_row(context.tx, source, command.read)) for source in command.sources]
    sources = [(source, row) for source, row in found if row is not None]
    if len(sources) < len(found) or not sources:
        return AnswerSaved()
    rows = [row for _, row in sources]
    if any(row.agent_id != command.memory.agent_id for row in rows):
        return AnswerSaved(foreign=True)
    memory = msgspec.structs.replace(
        command.memory,
        visibility=visibility_of(row.visibility for row in rows),
        project=shared_project([row.project for row in rows]),
        scope=command.read.scope,
        who=command.read.user or AGGREGATE,
        source_type=AGGREGATE,
    )
    ids = [source.id for source, _ in sources]
    metadata = {**command.made_by, "sourceMemoryIds": ids}
    stored = memories.remember(context, memory, command.principal, metadata=metadata)
    row = memory_rows.by_id(context.tx, stored.id)
    cited = [source.id for source, _ in sources if source.cited]
    if row is not None and row.source_type == AGGREGATE:
        cited = answers.name_sources(context.tx, stored.id, sources)
    return AnswerSaved(stored.id, stored.content, stored.deduped, cited)


def forget_made_of(context: CommandContext, source: StoredRow, principal: Principal, reason: str) -> list[str]:
    """Forget the answers that were made from the memory, also pinned ones; return their ids."""
    forgotten: list[str] = []
    for answer_id in answers.answers_of(context.tx, source.id):
        row = memory_rows.by_id(context.tx, answer_id)
        if row is None or row.is_deleted:
            continue
        context.heartbeat()
        deletion.soft_delete(context, row, principal, reason)
        forgotten.append(answer_id)
    return forgotten


def move_made_of(context: CommandContext, source: StoredRow, principal: Principal) -> None:
    """Move the answers that were made from the memory, live and deleted, to the project that their sources share now.

    An answer whose text the project has already is forgotten as if a source had changed, and comes back with a move to
    a project that does not have it.
    """
    for answer_id in answers.answers_of(context.tx, source.id):
        row = memory_rows.by_id(context.tx, answer_id)
        project = shared_project(answers.projects_of_sources(context.tx, answer_id))
        if row is None or row.project == project:
            continue
        context.heartbeat()
        scope = row.scope_in(project)
        if not row.is_deleted and memory_rows.other_live_by_hash(context.tx, scope, row.content_hash, row.seq):
            deletion.soft_delete(context, row, principal, answers.SOURCE_CHANGED)
            row = row._replace(is_deleted=1)
        memories.move_with_source(context, row, project, principal)


def forgotten_with(context: CommandContext, source: StoredRow) -> Sequence[StoredRow]:
    """Return the answers that were forgotten because of the memory, and whose sources are all live again."""
    ids = [each for each in answers.forgotten_with(context.tx, source.id) if answers.has_all_sources(context.tx, each)]
    rows = [memory_rows.by_id(context.tx, answer_id) for answer_id in ids]
    return [row for row in rows if row is not None and row.is_deleted]
