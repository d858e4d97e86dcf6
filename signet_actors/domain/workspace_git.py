"""The workspace as a git repository: which files the daemon commits, which must never be in it, and its state.

Source: docs/guides/identity.md "Former versions with git"; docs/decisions.md 28.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

GitAction = Literal["status", "commit", "pull", "push", "sync"]

EXCLUDE_BEGIN: Final = "# signet: begin (kept by Signet)"
EXCLUDE_END: Final = "# signet: end"
CONFIG_FILE: Final = "agent.yaml"
ATTRIBUTES: Final = (f"/{CONFIG_FILE} !working-tree-encoding !filter !ident !text !eol",)
"""Git writes the file as it is in the commit, whatever attributes that commit has: the incoming text is checked."""
EXCLUDED: Final = (
    "/.daemon/",
    "/.secrets/",
    "/secrets/",
    "/memory/*",
    "!/memory/*.md",
    "/memory/MEMORY.backup-*.md",
    "/agents/*/memory/",
    "/export/",
    "/exports/",
    "*.db",
    "*.db-*",
    "*.sqlite*",
    "*.sock",
    ".env",
)
"""What a person's own ``git add`` leaves out, too."""
PROGRAMS: Final = (
    r"^(filter\..*\.(clean|smudge|process)|core\.(sshcommand|gitproxy|alternaterefscommand)|gc\.recentobjectshook"
    r"|remote\..*\.(vcs|promisor)|extensions\.partialclone|credential\.(.*\.)?helper)$"
)
"""Keys that have git run a program, beside those that each call of git switches off."""
_HARMLESS: Final = {
    "sshcommand": "ssh",
    "alternaterefscommand": "true",
    "vcs": "",
}
"""Values instead of those of the repository, where the configuration of the user has none."""
_OF_REPOSITORY: Final = ("local", "worktree")
_PRIVATE_DIRECTORIES: Final = (".daemon", ".secrets", "secrets")
_PRIVATE_ENDS: Final = (".db", ".db-wal", ".db-shm", ".sqlite", ".sqlite3", ".sock")
_LEFT_OUT: Final = ("secrets", "export", "exports", "backups", "spool", "node_modules")
_KEPT_VERSION: Final = "MEMORY.backup-"
_MAX_SUBJECT_CHARS: Final = 60
_MAX_LISTED: Final = 100
_MAX_LISTED_CHARS: Final = 240
"""Of each name; the whole message stays below the 128 KiB that Linux allows for one argument."""


class LastCommit(msgspec.Struct, frozen=True):
    """The newest commit of the branch that is checked out; ``at`` is ISO text with an offset."""

    id: str
    at: str
    author: str
    subject: str


class GitState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The repository of the workspace.

    ``hasCredentials``: git can reach the remote without asking, as far as its configuration shows. ``remote`` is its
    address without credentials. ``uncommittedChanges``: files that the daemon would commit. Commits that the branch has
    more or fewer than the remote had at the last exchange; null if that is not known. ``problem``: why nothing can be
    committed at present.
    """

    is_repo: bool = False
    branch: str | None = None
    remote: str | None = None
    has_credentials: bool = False
    uncommitted_changes: int = 0
    unpushed_commits: int | None = None
    unpulled_commits: int | None = None
    last_commit: LastCommit | None = None
    problem: str | None = None


class GitExchange(msgspec.Struct, frozen=True):
    """How the last pull, push or sync ended; ``at`` is ISO text."""

    action: str
    at: str
    success: bool
    message: str


class GitOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and the state after it. ``message`` says why not if ``success`` is false.

    ``committed``: the number of files in the new commit.
    """

    state: GitState = GitState()
    success: bool = True
    message: str = ""
    committed: int = 0


def is_versioned(path: str) -> bool:
    """Return whether the daemon commits the file: the configuration, and Markdown.

    Hidden Markdown, exports and kept versions are left out.
    """
    if path == CONFIG_FILE:
        return True
    *directories, name = path.split("/")
    if not name.endswith(".md") or name.startswith((".", _KEPT_VERSION)):
        return False
    plain = [comparable(each) for each in directories]
    if len(plain) >= 3 and plain[0] == "agents" and plain[2] == "memory":
        return False
    return not any(each.startswith(".") or each in _LEFT_OUT for each in plain)


def is_private(path: str) -> bool:
    """Return whether the file must never be in a repository: the database, secrets, and what only the daemon reads."""
    path = comparable(path)
    first, *rest = path.split("/")
    if first in _PRIVATE_DIRECTORIES or path.endswith(_PRIVATE_ENDS) or path.rpartition("/")[2] == ".env":
        return True
    return first == "memory" and not (len(rest) == 1 and rest[0].endswith(".md"))


def comparable(path: str) -> str:
    """Return the path as a file system may compare it: case and composition of letters, and marks, do not count."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
    return "".join(each for each in folded if unicodedata.category(each) != "Cf")


def with_block(text: str, block: Sequence[str]) -> str:
    """Return the text of a file in ``info`` with our block as it is to be; every other line stays."""
    lines = text.removesuffix("\n").split("\n") if text else []
    bare = [line.removesuffix("\r") for line in lines]
    if EXCLUDE_BEGIN in bare and EXCLUDE_END in bare[bare.index(EXCLUDE_BEGIN) :]:
        begin = bare.index(EXCLUDE_BEGIN)
        del lines[begin : bare.index(EXCLUDE_END, begin) + 1]
    return "\n".join((*lines, EXCLUDE_BEGIN, *block, EXCLUDE_END)) + "\n"


def commit_message(paths: Sequence[str], at: str) -> str:
    """Return a subject with the time and the first file, and a body that lists the first hundred of several files."""
    subject = f"Auto-commit {at}: {_shortened(paths[0], _MAX_SUBJECT_CHARS)}"
    if len(paths) == 1:
        return f"{subject}\n"
    listed = [_shortened(path, _MAX_LISTED_CHARS) for path in paths[:_MAX_LISTED]]
    if len(paths) > _MAX_LISTED:
        listed.append(f"and {len(paths) - _MAX_LISTED} more")
    return "\n".join((f"{subject} and {len(paths) - 1} more", "", *listed, ""))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def without_credentials(text: str) -> str:
    """Return the text with no user and password in the addresses that it contains."""
    parts = text.split("://")
    for at, part in enumerate(parts[1:], 1):
        address = part.split(None, 1)[0] if part.split(None, 1) else ""
        authority = address.split("/", 1)[0]
        parts[at] = part[authority.rfind("@") + 1 :]
    return "://".join(parts)


def without_programs(listed: Sequence[str]) -> dict[str, str] | None:
    """Return variables by which no program of a ``.git/config`` runs; ``listed`` are scopes, each with key and value.

    No filter of any scope runs. They stay required, so a file that needs one is reported and not committed as it is,
    perhaps unencrypted. In place of the others come those of the user's own configuration. Returns None for a partial
    clone: git gets what it lacks by the program that its remote names, whatever the variables are.
    """
    found = [(scope, *entry.partition("\n")[::2]) for scope, entry in zip(listed[::2], listed[1::2], strict=True)]
    users = [(key, value) for scope, key, value in found if scope not in _OF_REPOSITORY]
    own = dict.fromkeys(key for scope, key, _ in found if scope in _OF_REPOSITORY)
    if any(key.endswith((".promisor", ".partialclone")) for key in own):
        return None
    filters = dict.fromkeys(key.rpartition(".")[0] for _, key, _ in found if key.startswith("filter."))
    switches = (("process", ""), ("clean", ""), ("smudge", ""), ("required", "true"))
    values = [(f"{each}.{key}", value) for each in filters for key, value in switches]
    for key in own:
        last = key.rpartition(".")[2]
        if last in _HARMLESS:
            values.append((key, dict(users).get(key, _HARMLESS[last])))
    if any(key.startswith("credential.") for key in own):
        values += [("credential.helper", ""), *(each for each in users if each[0].startswith("credential."))]
    if "gc.recentobjectshook" in own:
        values += [("gc.auto", "0"), ("maintenance.auto", "false")]
    switched = {"GIT_CONFIG_COUNT": str(len(values))} if values else {}
    for number, (key, value) in enumerate(values):
        switched |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return switched | ({"GIT_PROXY_COMMAND": ""} if "core.gitproxy" in own else {})
