"""What `signet doctor` says about the installed files.

Source: PEP 3147; docs/operations.md "Installation".
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import signet_actors
from signet_actors.cli.doctor_finding import WARN, DoctorContext, DoctorFinding

if TYPE_CHECKING:
    from collections.abc import Iterator


def installation_findings(_context: DoctorContext) -> Iterator[DoctorFinding]:
    """Check that the modules are compiled; if the interpreter keeps none, every start compiles all of them anew."""
    own = [module.__spec__ for name, module in sys.modules.items() if name.partition(".")[0] == signet_actors.__name__]
    if not any(spec.cached and Path(spec.cached).is_file() for spec in own if spec is not None):
        package = shlex.quote(str(Path(signet_actors.__file__).parent))
        unset = "env -u PYTHONDONTWRITEBYTECODE -u PYTHONPYCACHEPREFIX"
        yield DoctorFinding(
            "installation",
            WARN,
            "its modules are not compiled, so each command and each process takes twice as long to start",
            f"as the owner of the files: {unset} {shlex.quote(sys.executable)} -m compileall -q {package}",
        )
