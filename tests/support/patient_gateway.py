"""The gateway with long time limits of hooks and searches: ``python -m tests.support.patient_gateway``.

A hook answers within a second or so, if need be without a memory that it would have found, and a search without a
vector that is not computed soon. A machine that stands still for that long changes the answers, so tests with another
subject use this gateway (``live_daemon(patient=True)``).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from signet_actors.gateway import __main__ as gateway
from signet_actors.gateway import common_words, projects, query_embedding
from signet_actors.gateway.routes import checkpoints as checkpoint_routes
from signet_actors.gateway.routes import hooks, notifications, remember
from signet_actors.gateway.sessions import checkpoints, hook_runner, recovery
from signet_actors.operations.registry import OPERATIONS

LIMIT_S: Final = 8
"""Less than ``REQUEST_SHARE`` of the default of ``gateway.requestTimeoutMs``, which a hook never exceeds."""
LIMITS: Final[tuple[tuple[ModuleType, str], ...]] = (
    (hooks, "READ_BUDGET_MS"),
    (hooks, "PROMPT_BUDGET_MS"),
    (hooks, "RECALL_BUDGET_MS"),
    (hooks, "WRITE_BUDGET_MS"),
    (hooks, "COMPACTION_BUDGET_MS"),
    (hooks, "REFERENCE_WAIT_S"),
    (notifications, "BUDGET_MS"),
    (remember, "SIMILAR_WAIT_S"),
    (query_embedding, "QUERY_EMBEDDING_TIMEOUT_S"),
    (query_embedding, "SECOND_TIMEOUT_S"),
    (common_words, "COMMON_WORDS_TIMEOUT_MS"),
    (checkpoint_routes, "KEEP_BUDGET_MS"),
    (hook_runner, "CONTEXT_WAIT_S"),
    (checkpoints, "STORE_WAIT_S"),
    (recovery, "WAIT_S"),
    (projects, "WAIT_S"),
)


def main() -> int:
    """Run the gateway and return its exit code."""
    for module, name in LIMITS:
        limit = LIMIT_S * 1000 if name.endswith("_MS") else LIMIT_S
        assert getattr(module, name) <= limit, name
        setattr(module, name, limit)
    for hook in (operation.hook for operation in OPERATIONS if operation.hook is not None):
        object.__setattr__(hook, "budget_ms", LIMIT_S * 1000)
    return gateway.main()


if __name__ == "__main__":
    sys.exit(main())
