"""Public bodies of the configuration files. Source: docs/compatibility.md "Configuration files"."""

from __future__ import annotations

import msgspec


class ConfigFile(msgspec.Struct, frozen=True):
    """A file of the workspace; ``size`` in bytes."""

    name: str
    content: str
    size: int


class SkippedFile(msgspec.Struct, frozen=True):
    """A file that exists but is not returned, and why."""

    name: str
    reason: str


class ConfigFilesReply(msgspec.Struct, frozen=True):
    """The existing files, agent.yaml first."""

    files: list[ConfigFile]
    skipped: list[SkippedFile]


class WriteConfigRequest(msgspec.Struct, frozen=True):
    """``file`` is one of the names that GET may list; ``content`` replaces the whole file."""

    file: str
    content: str


class WriteConfigReply(msgspec.Struct, frozen=True):
    """The file is on disk. ``warnings`` are those of the configuration loader, for agent.yaml."""

    success: bool
    warnings: list[str]
    message: str
