"""Exchanges about background jobs and the proposals that wait for a review."""

from __future__ import annotations

from typing import Final

from signet_actors.client.errors import JobNotEnded
from signet_actors.client.exchange import Caller, Exchange, Pause
from signet_actors.domain.jobs import JobState
from signet_actors.operations.jobs import GET_JOB, JobReply
from signet_actors.operations.reviews import (
    APPROVE,
    LIST_REVIEWS,
    REJECT,
    ListReviewsRequest,
    ReviewListReply,
    ReviewReply,
    ReviewRequest,
)

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


def approve(caller: Caller, id: str, *, reason: str | None = None) -> Exchange[ReviewReply]:  # noqa: A002
    """Apply a proposal. Raises DoesNotExist, and Conflicting if it can no longer be applied."""
    return (yield from caller.call(APPROVE, ReviewRequest(reason=reason), id=id))


def reject(caller: Caller, id: str, *, reason: str | None = None) -> Exchange[ReviewReply]:  # noqa: A002
    """Reject a proposal. Raises DoesNotExist and Conflicting."""
    return (yield from caller.call(REJECT, ReviewRequest(reason=reason), id=id))
