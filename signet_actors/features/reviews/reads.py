"""Proposals that wait, or waited, for a review, without texts that repeat what was forgotten."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.extraction.gates import Reason
from signet_actors.domain.query_words import words_of
from signet_actors.domain.said_again import sentences_of
from signet_actors.errors import InvalidRequest
from signet_actors.features.reviews.api import (
    LIST_REVIEWS,
    DecidedReviews,
    ListReviewsRequest,
    ReviewListReply,
    ReviewReport,
)
from signet_actors.features.reviews.rules import DECISIONS
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable
from signet_actors.store.reads.proposals import filled, proposal_columns

SENTENCE_CHARS: Final = 400
_COLUMNS: Final = proposal_columns(
    ReviewReport,
    memory_id="p.target_id",
    source_memory_id="p.memory_id",
    source_sentence="CASE WHEN m.is_deleted = 0 THEN substr(m.content, 1, 20000) END",
    event="CASE p.action WHEN 'add' THEN 'created' WHEN 'update' THEN 'updated' WHEN 'delete' THEN 'deleted'"
    " ELSE 'none' END",
    current_content="NULL",
    current_version="NULL",
)
_REVIEWED: Final = "FROM memory_proposals p JOIN memories m ON m.id = p.memory_id WHERE {}"
_PAGE: Final = f"SELECT {_COLUMNS} {_REVIEWED} ORDER BY p.seq LIMIT :limit OFFSET :offset"
_COUNT: Final = f"SELECT count(*) {_REVIEWED}"
_DECIDED: Final = f"SELECT p.review_state {_REVIEWED} ORDER BY p.reviewed_at DESC, p.seq DESC LIMIT {DECISIONS}"
_LATELY: Final = (
    "p.seq > (SELECT max(n.seq) - 2000 FROM memory_proposals n) AND p.review_state IN ('approved', 'rejected')"
    f" AND p.undo_note IS NULL AND p.reason = '{Reason.CONFIRMATION.value}'"
)
_TARGETS: Final = "SELECT m.id, m.content, m.version FROM ({}) i CROSS JOIN memories m WHERE m.id = i.value AND {}"
# The literal state lets the planner use the partial index of that state.
_IN_STATE: Final = {
    "pending": "p.review_state = 'pending'",
    "approved": "p.review_state = 'approved'",
    "rejected": "p.review_state = 'rejected'",
    "all": "p.review_state IS NOT NULL",
}


def listed(snapshot: Snapshot, asked: Asked[ListReviewsRequest]) -> ReviewListReply:
    """Return a page of proposals over memories that the caller may read, oldest first, and what was decided lately.

    Raises ``InvalidRequest`` for an unknown state.
    """
    page, dialect = asked.request, snapshot.dialect
    if page.state not in _IN_STATE:
        raise InvalidRequest(f"unknown review state {page.state!r}", field="state")
    policy = readable(snapshot, asked.caller.read)
    where, bindings = conjunction((_IN_STATE[page.state], {}), policy)
    rows = snapshot.rows(_PAGE.format(where), {**bindings, "limit": page.limit, "offset": page.offset})
    items = [filled(ReviewReport, row) for row in rows]
    total = int(snapshot.value(_COUNT.format(where), bindings))
    of_person, decisions = conjunction((_LATELY, {}), policy)
    states = [state for (state,) in snapshot.rows(_DECIDED.format(of_person), decisions)]
    made = DecidedReviews(len(states), states.count("approved"))
    ids = dialect.listed([item.memory_id for item in items if item.memory_id is not None])
    where, bindings = conjunction(("m.is_deleted = 0", {"ids": ids}), policy)
    found = snapshot.rows(_TARGETS.format(dialect.members("ids"), where), bindings)
    targets = {
        memory_id: {"current_content": content, "current_version": version} for memory_id, content, version in found
    }
    items = [msgspec.structs.replace(item, **targets.get(item.memory_id, {})) for item in items]
    return ReviewListReply([_with_sentence(item) for item in items], total, made)


def _with_sentence(item: ReviewReport) -> ReviewReport:
    """Return the proposal with one sentence in the place of the whole source."""
    wanted = set(words_of(item.fact_content or item.current_content or ""))
    shared = {each: len(wanted.intersection(words_of(each))) for each in sentences_of(item.source_sentence or "")}
    best = max(shared, key=shared.__getitem__, default="")
    sentence = short(best, SENTENCE_CHARS) if shared.get(best) else None
    return msgspec.structs.replace(item, source_sentence=sentence)


READS: Final = {LIST_REVIEWS: listed}
