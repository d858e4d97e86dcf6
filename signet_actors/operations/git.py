"""The workspace as a git repository: its state, its settings, and the exchange of commits with a remote.

Source: architecture.txt "HTTP API Reference" (``/api/git/*``); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.domain.workspace_git import GitExchange, GitState
from signet_actors.operations.field_types import Flag, Number, SecretRule, Text
from signet_actors.operations.operation import ADMIN_CHANGE, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields


class GitStatusReply(GitState, frozen=True, kw_only=True, rename="camel"):
    """The state of the repository, and what the daemon does with it. ``lastSync``: the last pull, push or sync."""

    enabled: bool
    auto_commit: bool
    auto_sync: bool
    last_sync: GitExchange | None


class GitExchangeReply(msgspec.Struct, frozen=True):
    """``success`` is false if nothing was exchanged, or not all; ``message`` says what was done, or why not."""

    success: bool
    message: str


class GitSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings in effect. ``syncInterval``: seconds. An empty ``branch`` is the one that is checked out."""

    enabled: bool
    auto_commit: bool
    auto_sync: bool
    sync_interval: int
    remote: str
    branch: str
    author: str


_NAME: Final = Text(max_chars=200, secret=SecretRule.KEEP)


class GitSettingsRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Settings to change; those that are not given stay."""

    enabled: Annotated[bool, Flag(), Meta(description="Allow the daemon to run git in the workspace")] | None = None
    auto_commit: Annotated[bool, Flag(), Meta(description="Commit Markdown after a change")] | None = None
    auto_sync: Annotated[bool, Flag(), Meta(description="Pull and push without a request")] | None = None
    sync_interval: (
        Annotated[float, Number(low=60, high=86_400), Meta(description="Seconds between two exchanges")] | None
    ) = None
    remote: Annotated[str, _NAME, Meta(description="Name of a remote of the repository")] | None = None
    branch: Annotated[str, _NAME, Meta(description="Branch; empty: the one that is checked out")] | None = None


class GitSettingsChanged(msgspec.Struct, frozen=True):
    """The settings were written into agent.yaml."""

    success: bool
    message: str
    config: GitSettings
    warnings: list[str]


def _exchange(verb: str, summary: str, description: str) -> Operation[NoFields, GitExchangeReply]:
    return Operation(
        name=f"git.{verb}",
        summary=summary,
        tag="git",
        method="POST",
        paths=(f"/api/git/{verb}",),
        request=NoFields,
        replies={200: GitExchangeReply, 504: Problem, **PROBLEMS},
        **ADMIN_CHANGE,
        served_by="retention",
        keyed=False,
        body_required=False,
        description=description,
    )


STATUS: Final[Operation[NoFields, GitStatusReply]] = Operation(
    name="git.status",
    summary="The workspace's git repository",
    tag="git",
    paths=("/api/git/status",),
    replies={200: GitStatusReply, **PROBLEMS},
    permission=Permission.ADMIN,
    served_by="retention",
    owner_only=True,
    description="Asks no remote: `unpulledCommits` is what is known since the last exchange.",
)
PULL: Final[Operation[NoFields, GitExchangeReply]] = _exchange(
    "pull",
    "Pull the workspace's branch",
    "Only forward: branches that have diverged, changes of agent.yaml and of files that do not belong into a repository"
    " are refused.",
)
PUSH: Final[Operation[NoFields, GitExchangeReply]] = _exchange("push", "Push the workspace's branch", "Never by force.")
SYNC: Final[Operation[NoFields, GitExchangeReply]] = _exchange(
    "sync", "Pull, then push the workspace's branch", "Nothing is pushed if the pull fails."
)
READ_SETTINGS: Final[Operation[NoFields, GitSettings]] = Operation(
    name="git.config",
    summary="The settings of the workspace's git repository",
    tag="git",
    paths=("/api/git/config",),
    replies={200: GitSettings},
    permission=Permission.ADMIN,
    owner_only=True,
)
WRITE_SETTINGS: Final[Operation[GitSettingsRequest, GitSettingsChanged]] = Operation(
    name="git.configure",
    summary="Change the settings of the workspace's git repository",
    tag="git",
    method="POST",
    paths=("/api/git/config",),
    request=GitSettingsRequest,
    example={"autoCommit": True},
    replies={200: GitSettingsChanged, 409: Problem, **PROBLEMS},
    **ADMIN_CHANGE,
    keyed=False,
    description="Writes agent.yaml; takes effect within two seconds.",
)
OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (STATUS, PULL, PUSH, SYNC, READ_SETTINGS, WRITE_SETTINGS)
