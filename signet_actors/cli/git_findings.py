"""The check of ``signet doctor`` of the workspace's git repository.

Source: docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from signet_actors.cli.doctor_finding import OK, WARN, DoctorContext, DoctorFinding
from signet_actors.errors import SignetError

if TYPE_CHECKING:
    from collections.abc import Iterator


def git_findings(context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the daemon can commit the workspace, if it is configured to."""
    if context.config is None or not (context.config.git.enabled and context.config.git.auto_commit):
        return
    if shutil.which("git", path=context.environment.get("PATH")) is None:
        remedy = "install git, or switch it off: `signet config set git.autoCommit false`"
        yield DoctorFinding("git", WARN, "git is not installed; the workspace is not committed", remedy)
    elif context.client is None:
        yield DoctorFinding("git", OK, "the workspace is committed while the daemon runs")
    else:
        try:
            body = context.client.get("/api/git/status").body
        except SignetError as error:
            yield DoctorFinding("git", WARN, f"no answer: {error.detail}", "`signet logs --actor retention`")
            return
        problem, last = body.get("problem"), body.get("lastCommit") or {}
        if problem:
            remedy = f"`git -C {shlex.quote(str(context.workspace))} status` shows more"
            yield DoctorFinding("git", WARN, f"the workspace is not committed: {problem}", remedy)
        else:
            yield DoctorFinding(
                "git", OK, f"last commit {last['at']}" if last.get("at") else "nothing is committed yet"
            )
