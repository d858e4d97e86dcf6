"""Where everything lies within a workspace.

Source: architecture.txt "User Data Layout"; docs/decisions.md 28 and 45; docs/security.md "Local mode".
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_actors.config.schema import CONFIG_FILE_NAME
from signet_actors.errors import ConfigError

WORKSPACE_VARIABLE: Final = "SIGNET_WORKSPACE"
DATABASE_NAME: Final = "memories.db"
DEFAULT_WORKSPACE_NAME: Final = ".agents"

IDENTITY_FILE_NAMES: Final = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")

_PRIVATE: Final = 0o700
_SYSTEM_DIRECTORIES: Final = (
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/dev/shm",  # noqa: S108 - named in order to be refused
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",  # noqa: S108 - named in order to be refused
    "/usr",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/tmp",  # noqa: S108 - named in order to be refused
    "/Applications",
    "/Library",
    "/System",
    "/Users",
)
"""Directories of the machine itself: a workspace is a folder of its own, because its mode is made 0700."""

_SYSTEM_TREES: Final = (
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/System",
)
"""The same with everything below them: nothing of a user's own lies there."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The paths below one root. Nothing is read or made except by ``ensure``."""

    root: Path

    @property
    def config_file(self) -> Path:
        """``agent.yaml``; may be missing."""
        return self.root / CONFIG_FILE_NAME

    @property
    def identity_files(self) -> tuple[Path, ...]:
        """The Markdown files that say who the agent is, in the order in which they are given to it."""
        return tuple(self.root / name for name in IDENTITY_FILE_NAMES)

    @property
    def agents_file(self) -> Path:
        """``AGENTS.md``: the agent's instructions."""
        return self.root / "AGENTS.md"

    @property
    def soul_file(self) -> Path:
        """``SOUL.md``: personality and tone."""
        return self.root / "SOUL.md"

    @property
    def identity_file(self) -> Path:
        """``IDENTITY.md``: structured identity."""
        return self.root / "IDENTITY.md"

    @property
    def user_file(self) -> Path:
        """``USER.md``: about the user."""
        return self.root / "USER.md"

    @property
    def memory_file(self) -> Path:
        """``MEMORY.md``: the generated summary."""
        return self.root / "MEMORY.md"

    @property
    def memory_dir(self) -> Path:
        """The database's directory."""
        return self.root / "memory"

    @property
    def database(self) -> Path:
        """The database, the source of truth. SQLite keeps its -wal and -shm beside it."""
        return self.memory_dir / DATABASE_NAME

    @property
    def backup_dir(self) -> Path:
        """Verified backups, named by time and schema; made with the first one."""
        return self.memory_dir / "backups"

    @property
    def daemon_dir(self) -> Path:
        """What only the daemon reads and writes."""
        return self.root / ".daemon"

    @property
    def pid_file(self) -> Path:
        """The supervisor's pid as decimal text."""
        return self.daemon_dir / "pid"

    @property
    def address_file(self) -> Path:
        """Where the daemon listens, as JSON: host, port, pid."""
        return self.daemon_dir / "address"

    @property
    def lock_file(self) -> Path:
        """Locked for as long as a daemon, or a check or restore, holds the workspace."""
        return self.daemon_dir / "lock"

    @property
    def secret_file(self) -> Path:
        """The key of confirm tokens, 0600, made once."""
        return self.daemon_dir / "secret"

    @property
    def owner_token_file(self) -> Path:
        """What ``gateway.requireOwner`` asks for: 64 hexadecimal digits, 0600, made once."""
        return self.daemon_dir / "owner-token"

    @property
    def database_marker_file(self) -> Path:
        """There as soon as the workspace has had a database: a missing one is not taken for a first start."""
        return self.daemon_dir / "database"

    @property
    def disk_reserve_file(self) -> Path:
        """Space that is given up when the disk is full."""
        return self.daemon_dir / "ballast"

    @property
    def restore_file(self) -> Path:
        """There while a restore has been decided and is not finished; see ``writer.restore``."""
        return self.daemon_dir / "restore"

    @property
    def integrity_check_file(self) -> Path:
        """There when the database was found damaged while it was in use: the next start checks it whole."""
        return self.daemon_dir / "suspect"

    @property
    def log_dir(self) -> Path:
        """``daemon-YYYY-MM-DD.log`` files."""
        return self.daemon_dir / "logs"

    @property
    def index_dir(self) -> Path:
        """Indexes that can be built anew from the database."""
        return self.daemon_dir / "index"

    @property
    def run_dir(self) -> Path:
        """Sockets, unless this path is too long for them."""
        return self.daemon_dir / "run"

    def ensure(self) -> None:
        """The directories exist, belong to this user and are closed to others (0700).

        The root may be a link to a directory of this user. Nothing below it may be one: whoever made it could have the
        daemon write elsewhere, and SQLite opens no database by a link. Raises ``ConfigError``.
        """
        try:
            if _is_system_directory(self.root.resolve()):
                raise ConfigError(
                    f"the workspace {self.root} is a directory of the system; "
                    f"set {WORKSPACE_VARIABLE} to a folder of its own"
                )
            self.root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            real = self.root.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"the workspace {self.root} cannot be made: {_reason(error)}") from None
        _make_private(real, follow=True)
        for directory in (self.memory_dir, self.daemon_dir, self.log_dir, self.index_dir, self.run_dir):
            try:
                directory.mkdir(mode=_PRIVATE, exist_ok=True)
            except FileExistsError:
                raise ConfigError(f"{directory} is in the way: a directory is needed there") from None
            except OSError as error:
                raise ConfigError(f"{directory} cannot be made: {_reason(error)}") from None
            _make_private(directory, follow=False)


def _is_system_directory(directory: Path) -> bool:
    if str(directory) in _SYSTEM_DIRECTORIES:
        return True
    return any(directory.is_relative_to(tree) for tree in _SYSTEM_TREES)


def _make_private(directory: Path, *, follow: bool) -> None:
    """The directory is 0700 and ours. It is held open meanwhile, so that what was checked is what is changed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    if not follow and directory.is_symlink():
        raise ConfigError(f"{directory} is a link; it must be a directory of its own")
    try:
        descriptor = os.open(directory, flags)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be opened: {_reason(error)}") from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise ConfigError(
                f"{directory} belongs to another user (uid {status.st_uid}, not {os.geteuid()}); "
                f"run as that user or set {WORKSPACE_VARIABLE}"
            )
        if stat.S_IMODE(status.st_mode) != _PRIVATE:
            os.fchmod(descriptor, _PRIVATE)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be closed to other users: {_reason(error)}") from None
    finally:
        os.close(descriptor)


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
