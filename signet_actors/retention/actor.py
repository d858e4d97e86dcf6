"""The retention actor: runs every periodic duty. It has no database handle; it sends the writer bounded requests.

Source: docs/architecture.md "Directories"; docs/reliability.md "Supervision policy", R16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode
from signet_actors.protocol import retention as messages
from signet_actors.protocol.message import Failure
from signet_actors.retention.periodic.backup import Backup
from signet_actors.retention.periodic.git_commits import GitCommits
from signet_actors.retention.periodic.graph_upkeep import CommunityDuty, SupersessionSweep
from signet_actors.retention.periodic.idle_sessions import IdleSessions
from signet_actors.retention.periodic.lease_reaper import LeaseReaper
from signet_actors.retention.periodic.maintenance import Maintenance
from signet_actors.retention.periodic.projections import Projections
from signet_actors.retention.periodic.purge import Purge
from signet_actors.retention.periodic.reconciliation import Reconciliation
from signet_actors.retention.periodic.session_notes import SessionNotes
from signet_actors.retention.periodic.spool_drain import SpoolDrain
from signet_actors.retention.periodic.workspace_files import WorkspaceFiles
from signet_actors.retention.writer_ref import WriterRef
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_REPLY_MARGIN_NS = 250_000_000
"""A caller whose deadline comes first gets what has been done so far, while the sweep goes on."""


class Retention:
    """Run the duties when they are due, and a sweep when one is requested."""

    def __init__(
        self,
        writer: WriterRef,
        clock: Clock,
        log: FilteringBoundLogger,
        config: Config,
        backup: Backup,
        spool_drain: SpoolDrain,
        workspace_files: WorkspaceFiles,
        session_notes: SessionNotes,
        git_commits: GitCommits,
        communities: CommunityDuty,
        projections: Projections,
    ) -> None:
        self._clock = clock
        self._log = log
        self._reaper = LeaseReaper(writer, clock, log)
        self._reconciliation = Reconciliation(writer, clock, log, config)
        self._purge = Purge(writer, clock, log, config)
        self._maintenance = Maintenance(writer, clock, log, config, self._purge)
        self._idle_sessions = IdleSessions(writer, clock, log, config)
        self._backup = backup
        self._spool_drain = spool_drain
        self._workspace_files = workspace_files
        self._session_notes = session_notes
        self._git_commits = git_commits
        self._communities = communities
        self._projections = projections
        self._supersession = SupersessionSweep(writer, clock, log, config)
        self._sync_waiters: list[tuple[int, Incoming[messages.RetentionRequest]]] = []
        """Requests for a sync of files, each with the number of the run that answers it."""
        self._sweep_requests: list[Incoming[messages.RetentionRequest]] = []
        """Requests for a sweep that has not started yet."""
        self._sweep_waiters: list[Incoming[messages.RetentionRequest]] = []
        """Requests that wait for the sweep in progress."""
        self._reaped = (0, 0)

    def start(self) -> None:
        """Do nothing: if the writer is not reachable, the duties retry."""

    def handle(self, batch: list[Incoming[messages.RetentionRequest]]) -> None:
        """Reply to queries and queue requests for a sweep; ``tick``, which is called next, starts the sweep."""
        for incoming in batch:
            match incoming.body:
                case messages.SweepNow():
                    self._sweep_requests.append(incoming)
                case messages.GetRetentionStatus():
                    incoming.reply(self._status())
                case messages.BackUpNow():
                    incoming.reply(self._backup.begin() or self._backup.state())
                case messages.GetBackups():
                    incoming.reply(self._backup.state())
                case messages.SyncHarnessFiles():
                    self._sync_waiters.append((self._workspace_files.sync_now(), incoming))
                case messages.RunGit(action=action):
                    self._git_commits.request(action, incoming.reply)
                case messages.MakeProjection(agent_id=agent_id, dimensions=dimensions):
                    incoming.reply(messages.ProjectionWanted(self._projections.request(agent_id, dimensions)))
                case _:
                    assert_never(incoming.body)

    def tick(self) -> float | None:
        """Do one step of each duty that is due; return the seconds until the next step."""
        now_ns = self._clock.monotonic_ns()
        if self._sweep_requests and not self._purge.running:
            self._begin_requested_sweep()
        elif now_ns >= self._reaper.due_ns:
            self._reaper.step()
        if self._purge.due_ns <= self._clock.monotonic_ns() and self._purge.step():
            self._reply_swept(self._sweep_waiters)
            self._sweep_waiters = []
            if self._sweep_requests:
                return 0.0
        duties = (
            *(self._backup, self._reconciliation, self._spool_drain, self._workspace_files),
            *(self._session_notes, self._idle_sessions, self._git_commits, self._supersession, self._communities),
            *(self._maintenance, self._projections),
        )
        for duty in duties:
            if duty.due_ns <= self._clock.monotonic_ns():
                duty.step()
        self._reply_synced()
        self._reply_before_deadline()
        next_due_ns = min(duty.due_ns for duty in (self._reaper, self._purge, *duties)) - self._clock.monotonic_ns()
        return max(0.0, next_due_ns / 1e9)

    def counters(self) -> dict[str, float]:
        return {
            "sweeps": self._purge.sweeps,
            "purged_rows": self._purge.rows,
            "leases_requeued": self._reaper.requeued,
            "jobs_dead": self._reaper.dead,
            "jobs_reconciled": self._reconciliation.enqueued,
            "attributes_settled": self._supersession.settled,
            "community_rounds": self._communities.rounds,
            "projections": self._projections.made,
            "backups": self._backup.made,
            "scrub_findings": len(self._backup.findings),
            "maintenance_cycles": self._maintenance.cycles,
            "maintenance_repairs": self._maintenance.repairs,
            "purge_suspended": float(self._purge.suspended_reason is not None),
            "backup_problem": float(self._backup.problem is not None),
            "reports_waiting": self._spool_drain.waiting,
            "reports_rejected": self._spool_drain.rejected,
            "reports_unusable": float(self._spool_drain.is_unusable),
        }

    def drain(self) -> None:
        """Stop a sweep between two batches, reply to its callers with what was done, and abandon a backup."""
        self._backup.stop()
        self._spool_drain.stop()
        self._workspace_files.stop()
        self._git_commits.stop()
        self._communities.stop()
        self._projections.stop()
        self._purge.stop()
        self._reply_swept(self._sweep_waiters)
        for incoming in self._sweep_requests:
            incoming.reply(Failure(ErrorCode.UNAVAILABLE, "the daemon is stopping; nothing was purged"))
        self._sweep_waiters, self._sweep_requests = [], []

    def reload(self, config: Config) -> None:
        """Apply the new windows and intervals."""
        self._purge.reload(config)
        self._maintenance.reload(config)
        self._backup.reload(config)
        self._reconciliation.reload(config)
        self._idle_sessions.reload(config)
        self._workspace_files.reload(config)
        self._git_commits.reload(config)
        self._supersession.reload(config)
        self._communities.reload(config)

    def _begin_requested_sweep(self) -> None:
        """Reap leases and start one sweep for all pending requests."""
        now_ns = self._clock.monotonic_ns()
        self._sweep_waiters = [incoming for incoming in self._sweep_requests if not incoming.expired(now_ns)]
        self._sweep_requests = []
        if not self._sweep_waiters:
            return
        operator_confirmed = any(
            isinstance(asked.body, messages.SweepNow) and asked.body.confirm_clock for asked in self._sweep_waiters
        )
        reaped = self._reaper.step()
        self._reaped = (0, 0) if isinstance(reaped, Failure) else (reaped.requeued, reaped.dead)
        self._purge.begin(operator_confirmed=operator_confirmed, on_demand=True)

    def _reply_before_deadline(self) -> None:
        soon_ns = self._clock.monotonic_ns() + _REPLY_MARGIN_NS
        near_deadline = [incoming for incoming in self._sweep_waiters if incoming.expired(soon_ns)]
        if near_deadline:
            self._reply_swept(near_deadline, "the sweep is still running; these are its results so far")
            self._sweep_waiters = [incoming for incoming in self._sweep_waiters if not incoming.expired(soon_ns)]

    def _reply_swept(self, callers: list[Incoming[messages.RetentionRequest]], reason: str | None = None) -> None:
        requeued, dead = self._reaped
        for incoming in callers:
            incoming.reply(
                messages.Swept(list(self._purge.steps), requeued, dead, reason or self._purge.skipped_reason)
            )

    def _reply_synced(self) -> None:
        """Answer those whose run has ended, and forget those that wait no longer."""
        now_ns, last, runs = self._clock.monotonic_ns(), self._workspace_files.last, self._workspace_files.runs
        for number, incoming in self._sync_waiters:
            if number <= runs:
                incoming.reply(messages.HarnessFilesSynced(last.written, last.problems))
        self._sync_waiters = [
            (number, incoming)
            for number, incoming in self._sync_waiters
            if number > runs and not incoming.expired(now_ns)
        ]

    def _status(self) -> messages.RetentionStatus:
        until_ns = self._purge.due_ns - self._clock.monotonic_ns()
        return messages.RetentionStatus(
            last_sweep_at=self._purge.last_sweep_at,
            next_sweep_in_ms=0 if self._purge.running else max(0, until_ns // 1_000_000),
            last_counts=dict(self._purge.last_counts),
            suspended_reason=self._purge.suspended_reason,
            last_backup_at=self._backup.newest_at(),
            backup_problem=self._backup.problem,
            scrub_findings=list(self._backup.findings),
        )
