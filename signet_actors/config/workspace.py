"""The paths in a workspace.

Source: architecture.txt "User Data Layout"; docs/decisions.md 28 and 45; docs/security.md "Local mode".
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import refuse_irregular
from signet_actors.config.shown_value import shown_value
from signet_actors.errors import ConfigError

CONFIG_FILE_NAME: Final = "agent.yaml"
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
"""System directories, which cannot be a workspace: it needs a directory of its own, because its mode is set to 0700."""

_SYSTEM_TREES: Final = ("/bin", "/boot", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System")
"""System directories whose subdirectories cannot be a workspace either, because they contain no user data."""


class Workspace:
    """The paths below one root; only ``is_unused``, ``ensure`` and the ``refuse_`` methods access the file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config_file = root / CONFIG_FILE_NAME
        """``agent.yaml``; may be missing."""
        self.agents_dir = root / "agents"
        """Directories of agents that have files of their own, by the names of the agents. Created by the user."""
        self.memory_dir = root / "memory"
        self.database = self.memory_dir / DATABASE_NAME
        """The database, the source of truth. SQLite keeps its -wal and -shm files next to it."""
        self.backup_dir = self.memory_dir / "backups"
        """Verified backups, named by time and schema. Created with the first backup."""
        self.spool_dir = self.memory_dir / "spool"
        """Reports that hooks could not deliver yet. Created by the hook program."""
        self.harnesses_file = self.memory_dir / "harnesses.json"
        """The connected harnesses as JSON. Created by ``signet connect``."""
        self.daemon_dir = root / ".daemon"
        """Files that only the daemon reads and writes."""
        self.pid_file = self.daemon_dir / "pid"
        """The supervisor's pid as decimal text."""
        self.address_file = self.daemon_dir / "address"
        """The daemon's listen address as JSON: host, port, pid."""
        self.refusal_file = self.daemon_dir / "refusal"
        """Why the last start was refused, for hooks, which cannot read the configuration; none after a good start."""
        self.lock_file = self.daemon_dir / "lock"
        """Locked while a daemon, a check or a restore uses the workspace."""
        self.secret_file = self.daemon_dir / "secret"
        """The key that signs confirm tokens, mode 0600, created once."""
        self.token_secret_file = self.daemon_dir / "token-secret"
        """The key that signs tokens of `auth.mode` team and hybrid: 32 bytes, mode 0600, created once."""
        self.owner_token_file = self.daemon_dir / "owner-token"
        """The token that ``gateway.requireOwner`` requires: 64 hexadecimal digits, mode 0600, created once."""
        self.claims_file = self.daemon_dir / "claims.json"
        """Which path of a harness has claimed or ended each session; without it, the next hook claims."""
        self.database_marker_file = self.daemon_dir / "database"
        """Exists once the workspace has had a database. A missing database is then not mistaken for a first start."""
        self.disk_reserve_file = self.daemon_dir / "ballast"
        """Reserved disk space, which is released when the disk is full."""
        self.restore_file = self.daemon_dir / "restore"
        """Exists while a restore has been decided but is not complete; see ``writer.restore``."""
        self.integrity_check_file = self.daemon_dir / "integrity-check"
        """Exists if the database was found damaged while in use. The next start then runs a full integrity check."""
        self.log_dir = self.daemon_dir / "logs"
        """``daemon-YYYY-MM-DD.log`` files."""
        self.index_dir = self.daemon_dir / "index"
        """Indexes that can be rebuilt from the database."""
        self.run_dir = self.daemon_dir / "run"
        """Sockets, unless this path is too long for them."""

    @property
    def is_unused(self) -> bool:
        """Whether it does not exist, or has only what hooks have kept there; False if it cannot be read."""
        try:
            return {*os.listdir(self.root)} <= {self.memory_dir.name} and (
                {*os.listdir(self.memory_dir)} <= {self.spool_dir.name}
            )
        except OSError as error:
            return isinstance(error, FileNotFoundError)

    def ensure(self) -> None:
        """Create the directories; they must belong to this user and are made private (0700).

        The root may be a symbolic link to a directory of this user. Nothing below it may be a link: its creator could
        redirect the daemon's writes, and SQLite opens no database through a link. Raises ``ConfigError``.
        """
        try:
            if _is_system_directory(self.root.resolve()):
                raise ConfigError(
                    f"the workspace {self.root} is a system directory; set {WORKSPACE_VARIABLE} to a separate directory"
                )
            self.root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            real = self.root.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"the workspace {self.root} cannot be created: {_reason(error)}") from None
        _make_private(real, follow=True)
        for directory in (self.memory_dir, self.daemon_dir, self.log_dir, self.index_dir, self.run_dir):
            try:
                directory.mkdir(mode=_PRIVATE, exist_ok=True)
            except FileExistsError:
                raise ConfigError(
                    f"{directory} is not a directory; remove or rename it, because the daemon needs a directory there"
                ) from None
            except OSError as error:
                raise ConfigError(f"{directory} cannot be created: {_reason(error)}") from None
            _make_private(directory, follow=False)
        try:
            (self.daemon_dir / "suspect").rename(self.integrity_check_file)  # its name in earlier releases
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ConfigError(f"{self.daemon_dir / 'suspect'} cannot be renamed: {_reason(error)}") from None

    def refuse_other_owner(self) -> None:
        """Raise ConfigError if the workspace exists and belongs to another user."""
        try:
            status = self.root.stat()
        except OSError:
            return
        _refuse_other_owner(self.root, status)

    def refuse_irregular_files(self) -> None:
        """Refuse anything but regular files for those in ``.daemon``, the lock apart. Raises ConfigError."""
        for path in (
            self.pid_file,
            self.address_file,
            self.secret_file,
            self.token_secret_file,
            self.owner_token_file,
            self.database_marker_file,
            self.disk_reserve_file,
            self.restore_file,
            self.integrity_check_file,
        ):
            refuse_irregular(path)


def workspace_from(environ: Mapping[str, str]) -> Path:
    """Return the absolute path of the workspace: ``SIGNET_WORKSPACE``, else ``~/.agents``. Raises ``ConfigError``."""
    given = environ.get(WORKSPACE_VARIABLE, "")
    if "\0" in given:
        raise ConfigError(f"environment: {WORKSPACE_VARIABLE}: contains a NUL character")
    home = environ.get("HOME", "")
    try:
        base = Path(home) if home.startswith("/") else Path.home()
        if not given:
            workspace = base / DEFAULT_WORKSPACE_NAME
        elif given == "~" or given.startswith("~/"):
            workspace = base / given[2:]
        else:
            workspace = Path(given).expanduser().absolute()
        for path in (str(workspace), os.path.realpath(workspace)):
            path.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"environment: {WORKSPACE_VARIABLE}: the path is not UTF-8 text, which the daemon's messages and sockets "
            "need; choose another one"
        ) from None
    except (RuntimeError, OSError, ValueError) as error:
        raise ConfigError(
            f"environment: {WORKSPACE_VARIABLE}: {shown_value(given)} cannot be resolved: {error}"
        ) from None
    return workspace


def _is_system_directory(directory: Path) -> bool:
    if str(directory) in _SYSTEM_DIRECTORIES:
        return True
    return any(directory.is_relative_to(tree) for tree in _SYSTEM_TREES)


def _make_private(directory: Path, *, follow: bool) -> None:
    """Check the owner and set the mode to 0700, by one descriptor, so that what was checked is what is changed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    if not follow and directory.is_symlink():
        raise ConfigError(f"{directory} is a symbolic link; replace it with a real directory")
    try:
        descriptor = os.open(directory, flags)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be opened: {_reason(error)}") from None
    try:
        status = os.fstat(descriptor)
        _refuse_other_owner(directory, status)
        if stat.S_IMODE(status.st_mode) != _PRIVATE:
            os.fchmod(descriptor, _PRIVATE)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be made private to this user: {_reason(error)}") from None
    finally:
        os.close(descriptor)


def _refuse_other_owner(directory: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ConfigError(
            f"{directory} belongs to another user (uid {status.st_uid}, not {os.geteuid()}); "
            f"run as that user or set {WORKSPACE_VARIABLE}"
        )


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
