"""Messages between the supervisor and its children, and a searcher's offer to take a query.

Source: docs/messaging.md rules 10 and 11; docs/reliability.md "Supervision policy"; docs/architecture.md "Messages".
"""

from __future__ import annotations

import msgspec

from signet_actors.protocol.message import Message, Request

STARTING = "starting"
UP = "up"
RESTARTING = "restarting"
STOPPING = "stopping"
FAILED = "failed"


class ChildState(msgspec.Struct, frozen=True):
    """One child as the supervisor sees it.

    ``state`` is one of the constants above; ``incarnation`` is that of the running process, or of the last one;
    ``restarts`` counts the processes after the first; ``pid`` is None when no process runs; ``detail`` describes what
    the child does or why it is down; ``counters`` are those of its last heartbeat.
    """

    name: str
    role: str
    state: str
    incarnation: int
    restarts: int
    pid: int | None
    detail: str = ""
    core: bool = True
    counters: dict[str, float] = {}


class Starting(Message, frozen=True, tag="control.starting"):
    """The child is still starting; ``detail`` describes its current step. Each message extends the start timeout."""

    detail: str = ""


class Ready(Message, frozen=True, tag="control.ready"):
    """The child's self-check has passed and its mailbox is open."""

    detail: str = ""


class Heartbeat(Message, frozen=True, tag="control.heartbeat"):
    """The child's work loop runs. Sent by that loop only, never by a helper thread (see ``InCall``)."""

    counters: dict[str, float] = {}


class InCall(Message, frozen=True, tag="control.in_call"):
    """The child's loop is inside a call that sends no heartbeat: ``call`` is ``sync`` or ``statement``.

    Sent by a thread of the child while the call lasts, for a limited time.
    """

    call: str
    elapsed_ms: int


class Exiting(Message, frozen=True, tag="control.leaving"):
    """Exit notice of a child: its exit code, and why it exits, as text for people."""

    code: int
    detail: str


class FileIdentity(msgspec.Struct, frozen=True):
    """The identity of an open file: the path it was opened at, its device and its inode."""

    path: str
    device: int
    inode: int


class FilesOpened(Message, frozen=True, tag="control.files_opened"):
    """The files that the child has opened and that must stay at their paths.

    ``lasting`` files for as long as the daemon runs, ``temporary`` files for as long as a process has the database
    open. Each message replaces the child's former one.
    """

    lasting: list[FileIdentity]
    temporary: list[FileIdentity]


class WalPressure(Message, frozen=True, tag="control.log_pressure"):
    """The writer cannot checkpoint the WAL because of open snapshots: readers must end theirs.

    ``severe``: the WAL has grown further after such a message; readers that still hold a snapshot are to be killed.
    """

    log_bytes: int
    severe: bool


class SnapshotsEnded(Message, frozen=True, tag="control.snapshots_ended"):
    """The reader holds no snapshot from before request number ``asked``."""

    asked: int


class TreeChanged(Message, frozen=True, tag="control.tree_changed"):
    """The state of every child in start order; sent at each change, and to each child after its first message.

    ``warning`` describes a problem of the daemon that does not stop it, ``failure`` why it is about to stop.
    """

    children: list[ChildState]
    warning: str = ""
    failure: str = ""


class GetTree(Request[TreeChanged], frozen=True, tag="control.get_tree"):
    """Ask the supervisor for the tree with current counters."""


class Drain(Message, frozen=True, tag="control.drain"):
    """Finish what was accepted, accept nothing more, and exit 0 within ``grace_ms``."""

    grace_ms: int


class Reload(Message, frozen=True, tag="control.reload"):
    """A new, valid configuration as JSON text of ``config.schema.Config``."""

    config_json: str


class EndSnapshots(Message, frozen=True, tag="control.end_snapshots"):
    """End the snapshot that you hold, at once, and reply ``SnapshotsEnded`` with the same number."""

    asked: int


class Idle(Message, frozen=True, tag="searcher.idle"):
    """The searcher holds no query; sent on every connection and repeated while it stays idle."""


ChildMessage = Starting | Ready | Heartbeat | InCall | Exiting | GetTree | WalPressure | SnapshotsEnded | FilesOpened
SupervisorMessage = TreeChanged | Drain | Reload | EndSnapshots
