"""Change memories: modify, forget, erase, recover.

Source: memory-api.txt "Memories", "POST /api/memory/forget"; docs/compatibility.md "Forget and modify";
docs/decisions.md 32, 33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import UNSET

from signet_actors.domain import forget_budget
from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.jobs import EXTRACT
from signet_actors.domain.memories import AGGREGATE, COMPACTION, MOVED_WITH, REPLACED, type_source
from signet_actors.domain.normalization import content_hash, normalized_content
from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES
from signet_actors.domain.said_again import Passage, says_most, statement_of
from signet_actors.domain.timestamps import iso
from signet_actors.domain.written_forms import INDEXED_CHARS, indexed_beside
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.features.aggregate_recall import writes as answer_rows
from signet_actors.features.analytics import writes as analytics
from signet_actors.features.searches import writes as searches
from signet_actors.features.session_memories import writes as session_memories
from signet_actors.features.session_scores import writes as scores
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    Forgotten,
    ManyForgotten,
    MemoryPatch,
    Modified,
    NewMemory,
    Recovered,
    RecoverMemory,
    Remembered,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.store.rows import decode_tags
from signet_actors.store.writes import chunks as chunk_rows
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes import entity_mentions, store_meta
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import proposals as proposal_rows
from signet_actors.store.writes import session_summaries as summary_rows
from signet_actors.store.writes.memories import StoredRow
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.commands import answers, deletion, embeddings, graph, history, jobs, memories
from signet_actors.writer.commands.graph import Contributor
from signet_actors.writer.commands.memories import REMEMBERED_AGAIN, restore_key

_DAY_MS = 86_400_000


def modify(
    context: CommandContext,
    patch: MemoryPatch,
    principal: Principal,
    read: ReadScope,
    *,
    evidence: history.Evidence | None = None,
    without: Collection[str] = (),
) -> Modified:
    """Apply the patch and raise the version, or return a status that tells why not.

    An agent or the pipeline cannot unpin a memory, because it could forget it then. With ``evidence`` the new content
    comes from the pipeline or was there before, so nothing is extracted from it. A memory that moves to another project
    takes along what the pipeline has made of it; ``without`` these, which have patches of their own.
    """
    row = memory_rows.readable_by_id(context.tx, patch.id, read)
    if row is None:
        return Modified(id=patch.id, status="not_found")
    if row.is_deleted:
        return Modified(id=patch.id, status="deleted", current_version=row.version)
    if patch.if_version is not None and patch.if_version != row.version:
        return Modified(id=patch.id, status="version_conflict", current_version=row.version)

    changes: dict[str, Any] = {}
    before: dict[str, Any] = {}
    tags = list(patch.tags) if patch.tags is not UNSET else None
    for column, new, old in (
        ("type", patch.type, row.type),
        ("importance", patch.importance, row.importance),
        ("who", patch.who, row.who),
        ("project", patch.project, row.project),
        ("pinned", UNSET if patch.pinned is UNSET else int(patch.pinned), row.pinned),
        ("tags", UNSET if tags is None else tags, decode_tags(row.tags)),
    ):
        if new is not UNSET and new != old:
            changes[column], before[column] = new, old
    if "pinned" in changes and row.pinned and principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        return Modified(id=patch.id, status="autonomous_unpin_denied", current_version=row.version)
    content_changed = patch.content is not UNSET and patch.content != row.content
    source = row.type_source
    if patch.type is not UNSET:
        source = type_source(patch.type, row.content, named=True)
    elif content_changed and source != "named" and isinstance(patch.content, str):
        source = type_source(row.type, patch.content, named=False)
    if not changes and not content_changed and source == row.type_source:
        return Modified(id=patch.id, status="no_changes", current_version=row.version, new_version=row.version)

    columns: dict[str, Any] = {**changes, "type": changes.get("type", row.type), "type_source": source}
    embedded = False
    moves = "project" in changes
    new_content = patch.content if isinstance(patch.content, str) else row.content
    digest = content_hash(new_content) if content_changed else row.content_hash
    if content_changed or moves:
        scope = row.scope_in(changes.get("project", row.project))
        same = memory_rows.other_live_by_hash(context.tx, scope, digest, row.seq)
        duplicate = deletion.make_room(context, same, row.source_type, principal)
        if duplicate is not None:
            return Modified(
                id=patch.id,
                status="duplicate_in_project" if moves else "duplicate_content_hash",
                current_version=row.version,
                duplicate_memory_id=duplicate.id,
            )
    if moves:
        memories.keep_key_unique(context, row, changes["project"], principal)
    if content_changed:
        embedding_rows.remove(context.tx, row.id)
        seq = None if patch.vector is None else embeddings.store(context, row.id, digest, patch.vector)
        embedded = seq is not None
        columns.update(
            content=new_content,
            content_version=row.version + 1,
            content_at=context.now,
            normalized_content=normalized_content(new_content),
            content_hash=digest,
            content_sha256=hashlib.sha256(new_content.encode()).digest(),
            cjk=indexed_beside(new_content[:INDEXED_CHARS]),
            embedding_seq=seq,
            embedding_model=patch.vector.model if patch.vector is not None and embedded else None,
        )
        kinds = jobs.required_kinds(context.config, row.source_type, embedded=embedded, derived=evidence is not None)
        if EXTRACT in kinds:
            columns["extraction_status"] = "pending"
        for kind in kinds:
            jobs.enqueue(context, kind, row.id)
    if "tags" in columns:
        columns["tags"] = msgspec.json.encode(columns["tags"]).decode()
        memory_rows.delete_tags(context.tx, row.seq, row.tags)
        memory_rows.add_tags(context.tx, row.seq, tags or ())
    context.heartbeat()
    if changes.keys() == {"project"} and not content_changed and source == row.type_source:
        project = changes["project"]
        memory_rows.move(context.tx, row.seq, project, updated_at=context.now, updated_by=principal.changed_by)
    else:
        memory_rows.update(context.tx, row.seq, columns, updated_at=context.now, updated_by=principal.changed_by)
    if moves:
        memories.restore_key(context, row._replace(project=changes["project"]), principal)
    if content_changed and row.source_type != AGGREGATE:
        graph.relink(context, Contributor(row.id, row.seq, row.agent_id, new_content, context.now))
    history.record(
        context,
        row.id,
        "updated",
        principal,
        old_content=row.content,
        new_content=new_content,
        reason=patch.reason,
        metadata={"before": before, "after": changes, "contentChanged": content_changed},
        evidence=evidence,
    )
    if content_changed:
        answers.forget_made_of(context, row, principal, answer_rows.SOURCE_CHANGED)
    moved_with = _move_made_of(context, row, changes["project"], principal, without) if moves else []
    return Modified(
        id=row.id,
        status="updated",
        current_version=row.version,
        new_version=row.version + 1,
        content_changed=content_changed,
        embedded=embedded,
        parts=chunk_rows.other_parts(context.tx, row) if content_changed or moves else [],
        moved_with=moved_with,
    )


def _move_made_of(
    context: CommandContext, source: StoredRow, project: str | None, principal: Principal, without: Collection[str]
) -> list[str]:
    """Move what was made of the memory, of which ``source`` is the row before it moved; return the ids of its facts.

    A fact that the project has already stays where it is. What was forgotten moves as well, so that it is recovered
    where its source is, and not made of it again.
    """
    answers.move_made_of(context, source, principal)
    _recover_answers(context, source, principal, MOVED_WITH)
    for fact in facts_of(context, source, deleted=True):
        if fact.project == source.project:
            context.heartbeat()
            memories.move_with_source(context, fact, project, principal)
    moved = []
    for fact in facts_of(context, source):
        if fact.project == source.project and fact.id not in without:
            context.heartbeat()
            patch = MemoryPatch(fact.id, MOVED_WITH, project=project)
            if modify(context, patch, principal, ReadScope(fact.agent_id)).status == "updated":
                moved.append(fact.id)
    return moved


def pin(context: CommandContext, stored: Remembered, agent_id: str, principal: Principal) -> Remembered:
    """Pin a memory that the agent has remembered again, now as a pinned one."""
    patch = MemoryPatch(stored.id, REMEMBERED_AGAIN, pinned=True)
    changed = modify(context, patch, principal, ReadScope(agent_id))
    return msgspec.structs.replace(stored, pinned=True, version=changed.new_version or stored.version)


def forget_with_facts(context: CommandContext, command: ForgetMemory, without: Collection[str] = ()) -> Forgotten:
    """Forget the memory and what the pipeline has made of it; ``without`` these.

    Of a part of a long text, the other parts are forgotten too if the command says so, except pinned ones; they are
    named otherwise.
    """
    row = memory_rows.readable_by_id(context.tx, command.id, command.read)
    done = _forget_one(context, command, row, without)
    if row is None or done.status != "deleted":
        return done
    parts = [part for part in chunk_rows.other_parts(context.tx, row) if part not in without]
    if not command.whole:
        return msgspec.structs.replace(done, parts=parts)
    facts, kept = list(done.facts), []
    for part in parts:
        context.heartbeat()
        other = memory_rows.readable_by_id(context.tx, part, command.read)
        outcome = _forget_one(context, msgspec.structs.replace(command, id=part, if_version=None), other, parts)
        if outcome.status == "deleted":
            facts += [part, *outcome.facts]
        else:
            kept.append(part)
    return msgspec.structs.replace(done, facts=facts, parts=kept)


def _forget_one(
    context: CommandContext, command: ForgetMemory, row: StoredRow | None, without: Collection[str]
) -> Forgotten:
    done = forget(context, command)
    if row is None or done.status != "deleted":
        return done
    facts: list[str] = []
    made: list[str] = []
    for fact in facts_of(context, row):
        if fact.id not in without:
            gone = forget(context, msgspec.structs.replace(command, id=fact.id, if_version=None))
            facts += [fact.id] if gone.status == "deleted" else []  # not one in a project that the caller may not read
            made += gone.facts
    return msgspec.structs.replace(done, facts=[*done.facts, *facts, *made])


def facts_of(context: CommandContext, source: StoredRow, *, deleted: bool = False) -> list[StoredRow]:
    """Return what the pipeline has made of the live memory; of a summary of a session, what it says itself.

    Left out is what was pinned, changed or remembered again: somebody relies on it. ``deleted``: forgotten ones.
    """
    facts = [
        fact
        for fact in memory_rows.facts_of(context.tx, source, deleted=deleted)
        if not history_rows.was_noted_after(context.tx, fact.id, REMEMBERED_AGAIN, 0)
    ]
    if source.type != SUMMARY_TYPE:
        return facts
    passage = Passage(source.content)
    return [fact for fact in facts if says_most(passage, statement_of(fact.content))]


def forget(context: CommandContext, command: ForgetMemory, *, evidence: history.Evidence | None = None) -> Forgotten:
    """Soft-delete the memory and the answers made from it, or return a status that tells why not."""
    row = memory_rows.readable_by_id(context.tx, command.id, command.read)
    if row is None:
        return Forgotten(id=command.id, status="not_found")
    if row.is_deleted:
        return Forgotten(id=command.id, status="already_deleted", current_version=row.version)
    if command.if_version is not None and command.if_version != row.version:
        return Forgotten(id=command.id, status="version_conflict", current_version=row.version)
    if command.force and command.principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        return Forgotten(id=command.id, status="autonomous_force_denied", current_version=row.version)
    if row.pinned and not command.force:
        return Forgotten(id=command.id, status="pinned_requires_force", current_version=row.version)
    deletion.soft_delete(context, row, command.principal, command.reason, evidence)
    made = answers.forget_made_of(context, row, command.principal, answer_rows.SOURCE_FORGOTTEN)
    return Forgotten(id=row.id, status="deleted", current_version=row.version, new_version=row.version + 1, facts=made)


def replace_summary(context: CommandContext, memory: NewMemory, principal: Principal, stored: Collection[str]) -> None:
    """Forget what earlier compactions of its session said, if the memory is the summary of one; not ``stored``.

    A later summary tells what the model had of the earlier one. What was changed, pinned or recovered is kept.
    """
    if memory.source_type != COMPACTION or memory.source_id is None:
        return
    for row in memory_rows.summaries_of_compactions(context.tx, memory.agent_id, memory.source_id):
        if row.version == 1 and not row.pinned and row.id not in stored:
            context.heartbeat()
            forget(context, ForgetMemory(row.id, REPLACED, principal, read=ReadScope(memory.agent_id)))


def erase(
    context: CommandContext,
    memory_id: str,
    version: int | None,
    reason: str,
    principal: Principal,
    read: ReadScope,
    budget: ByteBudget,
) -> Forgotten | None:
    """Delete the row and everything that holds its content; history keeps the events without content.

    Return None if the budget was used up before that: part of the history has lost its content, and the row stays.

    Source: docs/decisions.md 38 (batch ``force``); docs/reliability.md R23.
    """
    row = memory_rows.readable_by_id(context.tx, memory_id, read)
    if row is None:
        return Forgotten(id=memory_id, status="not_found")
    if principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        return Forgotten(id=memory_id, status="autonomous_force_denied", current_version=row.version)
    if version is not None and version != row.version:
        return Forgotten(id=memory_id, status="version_conflict", current_version=row.version)
    if not history.erase_most(context, row.id, budget):
        return None
    made = answers.forget_made_of(context, row, principal, answer_rows.SOURCE_FORGOTTEN)
    embedding_rows.remove(context.tx, row.id)
    if not row.is_deleted:
        graph.remove(context, row.id)
    remove_row(context, row.seq, row.id, row.tags)
    history.record(context, row.id, "deleted", principal, reason=reason, metadata={"hard": True})
    return Forgotten(id=row.id, status="deleted", current_version=row.version, facts=made)


def remove_row(context: CommandContext, seq: int, memory_id: str, tags: str) -> None:
    """Delete the memory's row and what depends on it; its vectors must have been removed before.

    The answers that were made from it quote it, so they are erased with it.
    """
    for answer_id in answer_rows.answers_of(context.tx, memory_id):
        answer = memory_rows.by_id(context.tx, answer_id)
        if answer is not None:
            embedding_rows.remove(context.tx, answer.id)
            remove_row(context, answer.seq, answer.id, answer.tags)
    answer_rows.forget(context.tx, memory_id)
    memory_rows.delete_tags(context.tx, seq, tags)
    memory_rows.delete_temporal_edges(context.tx, memory_id)
    entity_mentions.remove(context.tx, memory_id, context.now, context.new_id)
    job_rows.delete_pending(context.tx, memory_id)
    jobs.erase_texts(context, memory_id)
    memory_rows.delete(context.tx, seq)
    history_rows.erase_content(context.tx, memory_id, seq)
    proposal_rows.erase_texts(context.tx, memory_id, seq)
    scores.forget_quotes(context.tx, memory_id)
    session_memories.forget(context.tx, memory_id)
    searches.forget(context.tx, memory_id)
    analytics.forget(context.tx, memory_id)
    summary_rows.forget(context.tx, memory_id)


def recover_with_facts(context: CommandContext, command: RecoverMemory) -> Recovered:
    """Recover the memory and the facts that were forgotten with it; if wanted, the other parts of its long text."""
    row = memory_rows.readable_by_id(context.tx, command.id, command.read)
    done = recover(context, command)
    if row is None or done.status != "recovered":
        return done
    recovered = list(done.facts)
    others = [fact.id for fact in memory_rows.facts_of(context.tx, row)]
    others += chunk_rows.other_parts(context.tx, row, deleted=True) if command.whole else []
    for other_id in others:
        context.heartbeat()
        again = recover_with_facts(context, msgspec.structs.replace(command, id=other_id, if_version=None, whole=False))
        recovered += [other_id, *again.facts] if again.status == "recovered" else []
    return msgspec.structs.replace(done, facts=recovered)


def recover(context: CommandContext, command: RecoverMemory, *, evidence: history.Evidence | None = None) -> Recovered:
    """Make a soft-deleted memory live again in every index, or return a status that tells why not.

    With it come the answers that were forgotten because of it, if their other sources are live.
    """
    window_ms = context.config.retention.tombstone_retention_ms
    days = window_ms // _DAY_MS
    row = memory_rows.readable_by_id(context.tx, command.id, command.read)
    if row is None:
        return Recovered(id=command.id, status="not_found", retention_days=days)
    if not row.is_deleted:
        return Recovered(id=command.id, status="not_deleted", retention_days=days, current_version=row.version)
    if row.deleted_at is not None and row.deleted_at < iso(context.now_ms - window_ms):
        return Recovered(id=command.id, status="retention_expired", retention_days=days, current_version=row.version)
    if command.if_version is not None and command.if_version != row.version:
        return Recovered(id=command.id, status="version_conflict", retention_days=days, current_version=row.version)
    if row.source_type == AGGREGATE and not answer_rows.has_all_sources(context.tx, row.id):
        return Recovered(id=command.id, status="source_missing", retention_days=days, current_version=row.version)
    same = memory_rows.live_by_hash(context.tx, row.duplicate_scope, row.content_hash)
    duplicate = deletion.make_room(context, same, row.source_type, command.principal)
    if duplicate is not None:
        return Recovered(
            id=command.id,
            status="duplicate_content_hash",
            retention_days=days,
            current_version=row.version,
            duplicate_memory_id=duplicate.id,
        )
    memory_rows.mark_live(context.tx, row.seq, updated_at=context.now, updated_by=command.principal.changed_by)
    embedding_rows.show_all(context.tx, row.id, context.now)
    graph.back(context, row.id)
    key_note = restore_key(context, row, command.principal)
    history.record(
        context,
        row.id,
        "recovered",
        command.principal,
        new_content=row.content,
        reason=command.reason,
        metadata=key_note,
        evidence=evidence,
    )
    jobs.restore_jobs(context, row.id)
    made = _recover_answers(context, row, command.principal, command.reason)
    return Recovered(
        id=row.id,
        status="recovered",
        retention_days=days,
        current_version=row.version,
        new_version=row.version + 1,
        facts=made,
    )


def _recover_answers(context: CommandContext, source: StoredRow, principal: Principal, reason: str) -> list[str]:
    """Recover the answers that were forgotten because of a source, if all are live; return the ids of the agent's."""
    made = []
    for answer in answers.forgotten_with(context, source):
        context.heartbeat()
        again = RecoverMemory(answer.id, reason, principal, read=ReadScope(answer.agent_id))
        if recover(context, again).status == "recovered" and answer.agent_id == source.agent_id:
            made.append(answer.id)
    return made


def forget_many(context: CommandContext, command: ForgetMany) -> ManyForgotten:
    """Return one outcome for each target, as far as one transaction may go, and the remaining targets.

    The count of deletions is stored in the database, so that it survives restarts, and compared in the transaction, so
    that concurrent requests cannot exceed the limit together. Raises a ``SignetError`` if a required confirmation is
    missing.
    """
    deletions = forget_budget.parse_deletions(store_meta.value(context.tx, forget_budget.STORE_KEY))
    matching = max(command.matching, len(command.targets))
    recent = forget_budget.recently_deleted(deletions, context.now_ms)
    if not command.confirmed and forget_budget.needs_confirmation(matching, recent):
        raise SignetError("confirm_token is required", code=ErrorCode.CONFIRM_REQUIRED)
    results: list[Forgotten] = []
    budget = ByteBudget()
    for target in command.targets:
        context.heartbeat()
        size = memory_rows.content_bytes(context.tx, target.id)
        outcome = None if budget.used_up else _forget_target(context, command, target, budget)
        if outcome is None:
            break
        results.append(outcome)
        budget.spend(size)
        budget.spend_indexed(min(size, 3 * INDEXED_CHARS))  # of Chinese, three bytes each
    deleted = sum(outcome.status == "deleted" for outcome in results)
    if deleted:
        kept = forget_budget.with_deletion(deletions, context.now_ms, deleted)
        store_meta.put(context.tx, forget_budget.STORE_KEY, forget_budget.deletions_text(kept))
    return ManyForgotten(results=results, remaining=list(command.targets[len(results) :]))


def _forget_target(
    context: CommandContext, command: ForgetMany, target: ForgetTarget, budget: ByteBudget
) -> Forgotten | None:
    targets = {other.id for other in command.targets}
    if command.hard:
        with context.tx.savepoint():
            return _erase_target(context, command, target, budget, without=targets)
    with context.tx.savepoint():
        return forget_with_facts(
            context,
            ForgetMemory(
                id=target.id,
                reason=command.reason,
                principal=command.principal,
                if_version=target.version,
                read=command.read,
            ),
            without=targets,
        )


def _erase_target(
    context: CommandContext, command: ForgetMany, target: ForgetTarget, budget: ByteBudget, without: Collection[str]
) -> Forgotten | None:
    """Erase what the pipeline has made of the memory, then the memory; None if the budget was used up before that."""
    read, row = command.read, memory_rows.readable_by_id(context.tx, target.id, command.read)
    facts: list[str] = []
    parts = [] if row is None else [part for part in chunk_rows.other_parts(context.tx, row) if part not in without]
    if row is not None and target.version in {None, row.version}:
        facts = [fact.id for fact in facts_of(context, row) if fact.id not in without]
    for fact_id in tuple(facts):
        gone = erase(context, fact_id, None, command.reason, command.principal, read, budget)
        if gone is None:
            return None
        if gone.status != "deleted":  # it is in a project that the caller may not read
            facts.remove(fact_id)
    version, principal = target.version, command.principal
    done = erase(context, target.id, version, command.reason, principal, read, budget)
    return None if done is None else msgspec.structs.replace(done, facts=[*facts, *done.facts], parts=parts)
