"""What the command doctor finds about the disk of the workspace: its room, and whether it is of this machine."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from signet_actors.cli.doctor_finding import FAIL, OK, WARN, DoctorContext, DoctorFinding
from signet_actors.cli.presentation import size_text
from signet_actors.cli.status import LOW_DISK_BYTES
from signet_actors.config.shared_storage import ADVICE, shared_storage

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL_DISK_BYTES = 64_000_000


def disk_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the disk has room for the database and its clean-up."""
    directory = context.workspace
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    detail = f"{size_text(free)} free"
    if free < FULL_DISK_BYTES:
        yield DoctorFinding("disk", FAIL, detail, "free some space: a full disk refuses writes, recall still works")
    elif free < LOW_DISK_BYTES:
        yield DoctorFinding("disk", WARN, detail, "free some space soon")
    else:
        yield DoctorFinding("disk", OK, detail)
    shared = shared_storage(context.workspace)
    if shared is not None:
        yield DoctorFinding("disk", WARN, f"the workspace {shared}", ADVICE)
