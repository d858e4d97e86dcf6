"""Exchanges about background jobs, proposals that wait for a review, sessions, and the daemon itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from signet_actors.client.errors import JobNotEnded
from signet_actors.client.exchange import Caller, Exchange, Pause
from signet_actors.domain.jobs import JobState
from signet_actors.features.analytics.api import PROMPTS as COUNT_PROMPTS
from signet_actors.features.analytics.api import PromptsReply, PromptsRequest
from signet_actors.features.conversation.api import CONVERSATION, ConversationReply, ConversationRequest
from signet_actors.features.diagnostics.api import FINDINGS as FIND_DEFECTS
from signet_actors.features.diagnostics.api import FindingsReply
from signet_actors.features.reviews.api import (
    APPROVE,
    LIST_REVIEWS,
    REJECT,
    ApproveRequest,
    ListReviewsRequest,
    ReviewListReply,
    ReviewReply,
    ReviewRequest,
)
from signet_actors.features.searches.api import LIST as LIST_SEARCHES
from signet_actors.features.searches.api import Kind, ListSearchesReply, ListSearchesRequest
from signet_actors.features.session_memories.api import (
    FEEDBACK,
    SESSION_MEMORIES,
    FeedbackReply,
    FeedbackRequest,
    ListSessionMemoriesRequest,
    SessionMemoriesReply,
)
from signet_actors.operations.health import HEALTH, READY, HealthReply, ReadyReply
from signet_actors.operations.hooks import USER_PROMPT, UserPromptReply, UserPromptRequest
from signet_actors.operations.pipeline import GET_JOB, PIPELINE_STATUS, JobReply, PipelineStatusReply
from signet_actors.operations.sessions import LIST as LIST_SESSIONS
from signet_actors.operations.sessions import KeptSessionsReply, ListSessionsRequest
from signet_actors.operations.status import STATUS, StatusReply
from signet_actors.operations.transcripts import OwnAgent

ENDED: Final = frozenset({JobState.COMPLETED.value, JobState.DEAD.value})
FIRST_LOOK_S: Final = 0.1
LONGEST_LOOK_S: Final = 2.0


def job(caller: Caller, id: str) -> Exchange[JobReply]:  # noqa: A002
    """Return the state of a job. Raises DoesNotExist."""
    return (yield from caller.call(GET_JOB, id=id))


def wait_for_job(caller: Caller, id: str, *, timeout_s: float = 60.0) -> Exchange[JobReply]:  # noqa: A002
    """Return the job once it is ``completed`` or ``dead``. Raises DoesNotExist, and JobNotEnded after ``timeout_s``."""
    until_s, look_s = caller.clock() + timeout_s, FIRST_LOOK_S
    while True:
        state = yield from caller.call(GET_JOB, id=id)
        if state.status in ENDED:
            return state
        left_s = until_s - caller.clock()
        if left_s <= 0:
            raise JobNotEnded(f"the job {id} is {state.status} after {timeout_s:g} s")
        yield Pause(min(look_s, left_s))
        look_s = min(2 * look_s, LONGEST_LOOK_S)


def reviews(caller: Caller, *, state: str = "pending", limit: int = 50, offset: int = 0) -> Exchange[ReviewListReply]:
    """Return proposals of the pipeline that wait for a decision."""
    return (yield from caller.call(LIST_REVIEWS, ListReviewsRequest(state=state, limit=limit, offset=offset)))


def approve(
    caller: Caller,
    id: str,  # noqa: A002
    *,
    reason: str | None = None,
    content: str | None = None,
) -> Exchange[ReviewReply]:
    """Apply a proposal, with ``content`` in place of its text. Raises DoesNotExist, and Conflicting if it cannot be."""
    return (yield from caller.call(APPROVE, ApproveRequest(reason=reason, content=content), id=id))


def reject(caller: Caller, id: str, *, reason: str | None = None) -> Exchange[ReviewReply]:  # noqa: A002
    """Reject a proposal. Raises DoesNotExist and Conflicting."""
    return (yield from caller.call(REJECT, ReviewRequest(reason=reason), id=id))


def rate(caller: Caller, session_key: str, ratings: Mapping[str, float]) -> Exchange[FeedbackReply]:
    """Say how useful memories were to a session: 1 helped, -1 misled, by id."""
    return (yield from caller.call(FEEDBACK, FeedbackRequest(session_key=session_key, ratings=dict(ratings))))


def session_memories(
    caller: Caller, session_key: str, *, limit: int = 100, offset: int = 0
) -> Exchange[SessionMemoriesReply]:
    """Return the memories that a session was offered, with counts over all of them. Raises DoesNotExist."""
    page = ListSessionMemoriesRequest(limit=limit, offset=offset)
    return (yield from caller.call(SESSION_MEMORIES, page, key=session_key))


def sessions(
    caller: Caller, *, project: str | None = None, before: str | None = None, limit: int = 50
) -> Exchange[KeptSessionsReply]:
    """Return the agent's sessions, also past ones, with what each asked for and was given; the last active one first.

    ``before``: the ``next`` of the page before.
    """
    asked = ListSessionsRequest(state="all", project=project, before=before, limit=limit)
    reply = yield from caller.call(LIST_SESSIONS, asked)
    # An empty page has the form of either reply.
    return reply if isinstance(reply, KeptSessionsReply) else KeptSessionsReply([], 0, None)


def searches(
    caller: Caller,
    *,
    session: str | None = None,
    project: str | None = None,
    kind: Kind | None = None,
    number: int | None = None,
    no_hits: bool | None = None,
    checks: bool | None = None,
    since: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> Exchange[ListSearchesReply]:
    """Return what sessions asked for, what each was given and what was left out and why; the last one first."""
    asked = ListSearchesRequest(
        session=session,
        project=project,
        kind=kind,
        number=number,
        no_hits=no_hits,
        checks=checks,
        since=since,
        before=before,
        limit=limit,
    )
    return (yield from caller.call(LIST_SEARCHES, asked))


def prompts(caller: Caller, *, project: str | None = None, hours: int = 24) -> Exchange[PromptsReply]:
    """Return what came of the prompts of so many last hours, at most 168: how many were given memories, and when."""
    return (yield from caller.call(COUNT_PROMPTS, PromptsRequest(project=project, hours=hours)))


def conversation(caller: Caller, session_key: str, *, after: int = 0, limit: int = 200) -> Exchange[ConversationReply]:
    """Return what was said in a session, with what each prompt was given; the oldest first.

    ``after``: the ``next`` of the page before.
    """
    return (yield from caller.call(CONVERSATION, ConversationRequest(after=after, limit=limit), key=session_key))


def findings(caller: Caller) -> Exchange[FindingsReply]:
    """Return whether memory works, and what is wrong, the worst first, each in a sentence."""
    return (yield from caller.call(FIND_DEFECTS, OwnAgent()))


def try_prompt(
    caller: Caller,
    prompt: str | None = None,
    *,
    harness: str = "python",
    project: str | None = None,
    session: str | None = None,
    explain_id: str | None = None,
    as_of: str | None = None,
) -> Exchange[UserPromptReply]:
    """Return what the prompt would be given, what would be left out and why, without any effect.

    ``explain_id``: a memory of which the reply says why it is given or not. ``as_of``: the id of a search of the
    session; then what the session received later does not count, and without a ``prompt`` it is that of then.
    """
    asked = UserPromptRequest(
        harness=harness,
        user_prompt=prompt,
        project=project,
        session_key=session,
        dry_run=True,
        explain=True,
        explain_id=explain_id,
        as_of=as_of,
    )
    return (yield from caller.call(USER_PROMPT, asked))


def status(caller: Caller) -> Exchange[StatusReply]:
    """Return a summary of processes, stored data and jobs."""
    return (yield from caller.call(STATUS))


def health(caller: Caller) -> Exchange[HealthReply]:
    """Return the health of the daemon."""
    return (yield from caller.call(HEALTH))


def ready(caller: Caller) -> Exchange[ReadyReply]:
    """Return whether memories can be written and read now; ``not_up`` names what is missing."""
    return (yield from caller.call(READY))


def pipeline_status(caller: Caller) -> Exchange[PipelineStatusReply]:
    """Return the state of the extraction of facts: queues, models, budgets."""
    return (yield from caller.call(PIPELINE_STATUS))
