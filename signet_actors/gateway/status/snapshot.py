"""The snapshot of the daemon that the metrics, ``/api/status`` and the pipeline's status render.

It holds what the supervisor reports, what this process counts, and the replies of the other processes.

Source: docs/compatibility.md "Health and status"; docs/decisions.md 14.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode
from signet_actors.gateway.state import GatewayState
from signet_actors.gateway.status.readiness import Readiness
from signet_actors.gateway.status.replies import Replies
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.protocol.control import ChildState, TreeChanged
from signet_actors.providers.embedding import Embedder
from signet_actors.runtime.histogram import Histogram


class DaemonSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state at ``now_ms``. ``gateway`` is the name of this process, ``workspace`` its directory.

    - ``children``: the processes, with the counters of their last heartbeats; ``silent_ms`` is the age of that report.
    - ``requests``, ``counters``: what this process answered since it started; ``refused``, by code: what the server
      refused before the application ran, None until the server exists.
    - ``bus``, ``backlog``, ``ask_durations``: messages to the other processes.
    - ``replies``: None for a part that was not asked for or did not reply; ``notes`` gives the reasons.
    - ``active_sessions``, ``bypassed_sessions``: the sessions of harnesses that this process knows.
    - ``store_age_ms``, ``queues_age_ms``: the ages of these two replies, which may be kept ones.
    """

    now_ms: int
    started_at_ms: int
    gateway: str
    supervisor_pid: int
    workspace: str
    port: int
    config: Config
    embedder: Embedder | None
    draining: bool
    readiness: Readiness
    children: Sequence[ChildState]
    silent_ms: int
    requests: RequestMetrics
    counters: Mapping[str, int]
    refused: Mapping[ErrorCode, int] | None
    bus: Mapping[str, int]
    backlog: Mapping[str, int]
    searchers_known: int
    ask_durations: Mapping[str, Histogram]
    replies: Replies
    notes: Sequence[str]
    store_age_ms: int
    queues_age_ms: int
    active_sessions: int = 0
    bypassed_sessions: int = 0

    @property
    def uptime_s(self) -> float:
        return max(0, self.now_ms - self.started_at_ms) / 1000


def take_snapshot(
    state: GatewayState,
    replies: Replies | None = None,
    notes: Sequence[str] = (),
    *,
    tree: TreeChanged | None = None,
) -> DaemonSnapshot:
    """Return the snapshot with these replies, and with the processes of ``tree``; without them, with the latest."""
    sessions = state.sessions.active()
    bus, server, requests = state.bus, state.server_context, state.status_requests
    return DaemonSnapshot(
        now_ms=state.clock.wall_ms(),
        started_at_ms=state.started_at_ms,
        gateway=state.boot.name,
        supervisor_pid=state.boot.supervisor_pid,
        workspace=state.boot.workspace,
        port=state.port,
        config=state.config,
        embedder=state.embedder,
        draining=state.draining,
        readiness=state.readiness(),
        children=(tree or bus.tree).children,
        silent_ms=state.supervisor_silent_ms(),
        requests=state.request_metrics,
        counters=state.counter_values(),
        refused=None if server is None else server.rejections.by_code,
        bus=dict(bus.counters),
        backlog={"writer": bus.writer_backlog, "search": bus.search_backlog},
        searchers_known=bus.searchers_known,
        ask_durations=bus.latency,
        replies=requests.latest if replies is None else replies,
        notes=list(dict.fromkeys(notes)),
        store_age_ms=requests.age_ms("store"),
        queues_age_ms=requests.age_ms("queues"),
        active_sessions=len(sessions),
        bypassed_sessions=sum(session.bypassed for session in sessions),
    )
