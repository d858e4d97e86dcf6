"""What the supervisor and its children say to each other, and how a searcher offers itself for work.

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
CHILD_STATES = (STARTING, UP, RESTARTING, STOPPING, FAILED)


class ChildState(msgspec.Struct, frozen=True):
    """One child as the supervisor sees it.

    ``state`` is one of ``CHILD_STATES``; ``incarnation`` is the life that is running, or the last one that ran;
    ``restarts`` counts all lives after the first; ``pid`` is None when no process exists; ``detail`` says in words
    what the child does or why it is away; ``counters`` are those of its last heartbeat.
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
    """The child works towards Ready; ``detail`` says on what. Each one extends the start timeout."""

    detail: str = ""


class Ready(Message, frozen=True, tag="control.ready"):
    """The child's self-check has passed and its mailbox is open."""

    detail: str = ""


class Heartbeat(Message, frozen=True, tag="control.heartbeat"):
    """The child's work loop turns. Sent by that loop only, never by a helper thread."""

    counters: dict[str, float] = {}


class Exiting(Message, frozen=True, tag="control.leaving"):
    """The child's last words: the exit code it is about to leave with, and why, in words for a person."""

    code: int
    detail: str


class FileIdentity(msgspec.Struct, frozen=True):
    """The file that stood at ``path`` when it was opened, as the file system knows it."""

    path: str
    device: int
    inode: int


class FilesOpened(Message, frozen=True, tag="control.files_opened"):
    """The files that the child has opened and that must stay at their paths.

    ``lasting`` for as long as the daemon runs, ``temporary`` for as long as a process has the database open; each
    message replaces the child's former one.
    """

    lasting: list[FileIdentity]
    temporary: list[FileIdentity]


class WalPressure(Message, frozen=True, tag="control.log_pressure"):
    """The writer cannot fold the write-ahead log back, because snapshots are in the way: readers must end theirs.

    ``severe`` when that was said before and the log went on growing: who still holds one is to be killed.
    """

    log_bytes: int
    severe: bool


class SnapshotsEnded(Message, frozen=True, tag="control.snapshots_ended"):
    """The reader holds no snapshot from before it was asked for the ``asked``-th time."""

    asked: int


class TreeChanged(Message, frozen=True, tag="control.tree_changed"):
    """Every child's state, in start order; sent at each change and to each child when it first speaks.

    ``warning`` tells what is wrong with the daemon as a whole while it goes on, ``failure`` why it cannot go on.
    """

    children: list[ChildState]
    warning: str = ""
    failure: str = ""


class GetTree(Request[TreeChanged], frozen=True, tag="control.get_tree"):
    """Ask the supervisor for the tree with fresh counters."""


class Drain(Message, frozen=True, tag="control.drain"):
    """Finish what was accepted, accept nothing more, and exit 0 within ``grace_ms``."""

    grace_ms: int


class Reload(Message, frozen=True, tag="control.reload"):
    """A new, valid configuration as JSON text of ``config.schema.Config``."""

    config_json: str


class EndSnapshots(Message, frozen=True, tag="control.end_snapshots"):
    """A reader ends the snapshot that it holds, at once, and says ``SnapshotsEnded`` with the same number."""

    asked: int


class Idle(Message, frozen=True, tag="searcher.idle"):
    """The searcher holds no query; said on every connection and repeated while it stays idle."""


ChildMessage = Starting | Ready | Heartbeat | Exiting | GetTree | WalPressure | SnapshotsEnded | FilesOpened
SupervisorMessage = TreeChanged | Drain | Reload | EndSnapshots
