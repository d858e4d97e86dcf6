"""The retention actor's mailbox: sweeps, backups, their status, and the files of the workspace.

Source: memory-pipeline.txt "Retention Worker"; architecture.txt "/api/repair/retention-sweep"; docs/reliability.md R16.
"""

from __future__ import annotations

from signet_actors.domain.workspace_git import GitAction, GitExchange, GitState
from signet_actors.operations.repair import BackupReply
from signet_actors.operations.status import RetentionReport
from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.protocol.writer import Purged


class Swept(Message, frozen=True, tag="retention.swept"):
    """What a sweep removed, one entry per step in order; ``more`` means that rows remain for the next sweep.

    ``requeued`` and ``dead`` count the expired job leases that returned to the queue and the jobs that became dead.
    ``skipped_reason`` describes why nothing, or not everything, was purged.
    """

    steps: list[Purged]
    requeued: int
    dead: int
    skipped_reason: str | None = None


class SweepNow(Request[Swept], frozen=True, tag="retention.sweep_now"):
    """Sweep at once instead of at the next interval.

    ``confirm_clock`` confirms the wall clock after a jump (docs/reliability.md R16); otherwise it is trusted only at a
    second sweep.
    """

    confirm_clock: bool = False


class RetentionStatus(RetentionReport, Message, frozen=True, tag="retention.status"):
    """The reply to ``GetRetentionStatus``."""


class GetRetentionStatus(Request[RetentionStatus], frozen=True, tag="retention.get_status"):
    """Ask how the last sweep went and when the next one is due."""


class BackupState(BackupReply, Message, frozen=True, tag="retention.backup_state"):
    """The backups, and how far the one in progress is."""


class BackUpNow(Request[BackupState], frozen=True, tag="retention.back_up_now"):
    """Begin or queue a backup; answered at once. It is the one ``running``, or if ``queued`` the one after it."""


class GetBackups(Request[BackupState], frozen=True, tag="retention.get_backups"):
    """Ask for the list of backups and the progress of the current one."""


class HarnessFilesSynced(Message, frozen=True, tag="retention.harness_files_synced"):
    """The files that were changed, and for each that could not be brought up to date, why not."""

    written: list[str]
    problems: dict[str, str]


class SyncHarnessFiles(Request[HarnessFilesSynced], frozen=True, tag="retention.sync_harness_files"):
    """Bring the identity files in the files of harnesses up to date at once; answered when that is done."""


class GitDone(Message, frozen=True, tag="retention.git_done"):
    """The repository of the workspace after a request, and whether that succeeded; ``message`` says what was done.

    ``problem``: why the daemon cannot commit at present.
    """

    state: GitState
    success: bool
    message: str
    last_exchange: GitExchange | None
    problem: str | None


class RunGit(Request[GitDone], frozen=True, tag="retention.run_git"):
    """Read the state of the workspace's repository, or exchange commits with its remote; answered when that is done."""

    action: GitAction


class ProjectionWanted(Message, frozen=True, tag="retention.projection_wanted"):
    """The map is being made; ``problem``: why it cannot be made at present."""

    problem: str | None = None


class MakeProjection(Request[ProjectionWanted], frozen=True, tag="retention.make_projection"):
    """Have the map of an agent's memories made, unless that is under way; answered at once."""

    agent_id: str
    dimensions: int


RetentionRequest = SweepNow | GetRetentionStatus | BackUpNow | GetBackups | SyncHarnessFiles | RunGit | MakeProjection
RetentionReply = Swept | RetentionStatus | BackupState | HarnessFilesSynced | GitDone | ProjectionWanted | Failure
