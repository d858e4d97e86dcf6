"""The section ``git`` of agent.yaml: the workspace as a git repository.

Source: architecture.txt "HTTP API Reference" (``/api/git/*``); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from signet_actors.config.field_forms import described, ranged, text

REMOTE_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"
"""The name of a remote. Never an address: where a push goes is decided in the repository."""
BRANCH_PATTERN: Final = r"^([A-Za-z0-9_][A-Za-z0-9_./-]*)?\Z"
AUTHOR_PATTERN: Final = r"^[^<>\x00-\x1f\x7f]+ <[^<>\s\x00-\x1f\x7f]+>\Z"


class GitConfig(Struct, frozen=True, rename="camel"):
    """Commits of the workspace's Markdown, and the exchange with a remote repository."""

    enabled: Annotated[bool, described("Allow the daemon to run git in the workspace")] = True
    auto_commit: Annotated[
        bool, described("Commit the Markdown files of the workspace five seconds after their last change")
    ] = False
    auto_sync: Annotated[bool, described("Pull and push by itself; otherwise only on request")] = False
    sync_interval: Annotated[int, ranged(60, 86_400, "Seconds between two pulls and pushes of `autoSync`")] = 300
    remote: Annotated[
        str, text("Name of the remote in the repository", pattern=REMOTE_PATTERN, form="the name of a git remote")
    ] = "origin"
    branch: Annotated[
        str,
        text("Branch to pull and push; empty: the one that is checked out", pattern=BRANCH_PATTERN, form="a branch"),
    ] = ""
    author: Annotated[
        str,
        text("Author of the commits", pattern=AUTHOR_PATTERN, form="a name and an address: `Ada <ada@example.com>`"),
    ] = "Signet <signet@localhost>"
