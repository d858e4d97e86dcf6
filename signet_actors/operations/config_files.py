"""Read and replace whole files that the user edits. Source: docs/compatibility.md "Configuration files"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import FieldType, Given
from signet_actors.operations.operation import ADMIN_CHANGE, Operation
from signet_actors.operations.problem import Problem
from signet_actors.operations.request_fields import NoFields


@dataclass(frozen=True, kw_only=True)
class Verbatim(FieldType):
    """A string exactly as given: blank, with white space, with any secret."""

    missing: str = "Invalid request"

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, str):
            raise InvalidRequest(self.missing, field=given.name)
        return given.value


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


class WriteConfigRequest(msgspec.Struct, frozen=True, kw_only=True):
    """``file`` is one of the names that GET may list; ``content`` replaces the whole file.

    ``former``: the text that the file must still have ("" without a file), so that no other change is overwritten.
    """

    file: Annotated[str, Verbatim()]
    content: Annotated[str, Verbatim()]
    former: Annotated[str, Verbatim()] | None = None


class WriteConfigReply(msgspec.Struct, frozen=True):
    """The file is on disk. ``warnings`` are those of the configuration loader, for agent.yaml."""

    success: bool
    warnings: list[str]
    message: str


class CheckConfigRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The text of an agent.yaml."""

    content: Annotated[str, Verbatim()]


class SetKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the text whose ``value`` is not the default. ``meaning`` and ``values``: as in the reference."""

    key: str
    value: Any
    default: Any
    meaning: str
    values: str


class CheckConfigReply(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the daemon would accept the text, and why not. ``needs_restart``: a reload would not apply all of it."""

    valid: bool
    problems: list[str]
    warnings: list[str]
    needs_restart: bool
    keys: list[SetKey]


READ_CONFIG: Final[Operation[NoFields, ConfigFilesReply]] = Operation(
    name="config.read",
    summary="The configuration and identity files",
    tag="config",
    paths=("/api/config",),
    replies={200: ConfigFilesReply},
    permission=Permission.ADMIN,
    owner_only=True,
)
WRITE_CONFIG: Final[Operation[WriteConfigRequest, WriteConfigReply]] = Operation(
    name="config.write",
    summary="Replace a configuration or identity file",
    tag="config",
    method="POST",
    paths=("/api/config",),
    request=WriteConfigRequest,
    example={"file": "agent.yaml", "content": "search:\n  alpha: 0.6\n"},
    replies={200: WriteConfigReply, 409: Problem},
    **ADMIN_CHANGE,
    keyed=False,
    description=(
        "agent.yaml is replaced only if the daemon could start with it, and takes effect within two "
        "seconds. The previous file is kept in .daemon/previous. Settings that control where texts and keys are "
        "sent, or that protect them, can be changed only in the file (403)."
    ),
)
CHECK_CONFIG: Final[Operation[CheckConfigRequest, CheckConfigReply]] = Operation(
    name="config.check",
    summary="Check a configuration file without storing it",
    tag="config",
    method="POST",
    paths=("/api/config/check",),
    request=CheckConfigRequest,
    example={"content": "search:\n  alpha: 0.6\n"},
    replies={200: CheckConfigReply},
    permission=Permission.ADMIN,
    rate="admin",
    owner_only=True,
    description="By the same rules as `POST /api/config`, which refuses what has a problem here.",
)
OPERATIONS: Final = (READ_CONFIG, WRITE_CONFIG, CHECK_CONFIG)
