"""What the checks of ``signet doctor`` examine, and what they find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.config.schema import Config

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """The result of one check. ``remedy`` is empty if there is nothing to do."""

    subject: str
    state: str
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class DoctorContext:
    """What the checks examine. ``config`` is None if it is not valid, ``client`` is None if no daemon listens."""

    workspace: Path
    environment: dict[str, str]
    config: Config | None
    running: bool
    client: DaemonClient | None
    deep: bool = False
    repair: bool = False
