"""A share of the random requests of two agents; ``python -m tests.hostile.two_tenants`` makes all."""

from __future__ import annotations

from tests.hostile.conftest import LONG
from tests.hostile.two_tenants import DEFAULT_COUNT, run
from tests.support.tenants import tenants

REQUESTS = DEFAULT_COUNT if LONG else 1_500


def test_no_reply_to_one_agent_has_a_word_of_the_other() -> None:
    with tenants() as store:
        done = run(store, REQUESTS, seed=7)
    assert (done.leaks, done.failures) == ([], [])
    assert done.own_words > REQUESTS // 10, "the requests find what the caller has"
    assert len(done.operations) > len(done.statuses) > 3
