"""``python -m signet_actors.retention``: the retention process."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from signet_actors.config.workspace import Workspace
from signet_actors.protocol.retention import RetentionRequest
from signet_actors.protocol.writer import WriterReply
from signet_actors.retention.actor import Retention
from signet_actors.retention.periodic.backup import Backup
from signet_actors.retention.periodic.git_commits import GitCommits
from signet_actors.retention.periodic.graph_upkeep import CommunityDuty, CommunityProcess
from signet_actors.retention.periodic.projections import ProjectionProcess, Projections
from signet_actors.retention.periodic.session_notes import SessionNotes
from signet_actors.retention.periodic.spool_drain import SpoolDrain
from signet_actors.retention.periodic.workspace_files import WorkspaceFiles
from signet_actors.retention.verification import Verification
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import read_context

_MAX_ITEMS = 16
_MAX_BYTES = 64 * 1024


def main() -> int:
    """Run the retention actor; return the exit code."""
    boot = read_context()
    log = configure_logging(boot)
    clock = SystemClock()
    loop = ActorLoop(boot, clock, log)
    requests: msgspec.msgpack.Decoder[RetentionRequest] = msgspec.msgpack.Decoder(RetentionRequest)
    replies: msgspec.msgpack.Decoder[WriterReply] = msgspec.msgpack.Decoder(WriterReply)
    loop.bind_mailbox("retention", requests, max_items=_MAX_ITEMS, max_bytes=_MAX_BYTES)
    writer = loop.connect_ref("writer", replies)
    backup_dir = Workspace(Path(boot.workspace)).backup_dir
    backup = Backup(writer, clock, log, boot.config, backup_dir, Verification)
    spool_drain = SpoolDrain(clock, log, Path(boot.workspace))
    workspace_files = WorkspaceFiles(clock, log, boot.config, Path(boot.workspace))
    session_notes = SessionNotes(writer, clock, log, Workspace(Path(boot.workspace)).memory_dir)
    git_commits = GitCommits(clock, log, boot.config, Path(boot.workspace))
    communities = CommunityDuty(writer, clock, log, boot.config, lambda: CommunityProcess(Path(boot.workspace)))
    projections = Projections(
        writer, clock, log, lambda agent, dimensions: ProjectionProcess(Path(boot.workspace), agent, dimensions)
    )
    retention = Retention(
        *(writer, clock, log, boot.config, backup, spool_drain, workspace_files, session_notes, git_commits),
        *(communities, projections),
    )
    return loop.run(retention)


if __name__ == "__main__":
    sys.exit(main())
