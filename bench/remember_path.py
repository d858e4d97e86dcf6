"""Which modules a warm remember passes: those with a function that is called in gateway or writer while it is served.

``python -m bench.remember_path`` starts a daemon on a throw-away workspace, sends remembers one after another, and
counts the modules that are called during at least half of them, so that heartbeats and other duties do not count.
"""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from bench.daemon import Daemon
from bench.traced_child import DIRECTORY_VARIABLE

WARM: Final = 50
MEASURED: Final = 40

Window = tuple[int, int]


def modules_in(calls: list[tuple[int, str]], windows: list[Window]) -> set[str]:
    """Return the files that are called in at least half of the ``windows`` (monotonic nanoseconds)."""
    seen: Counter[str] = Counter()
    for begin, end in windows:
        seen.update({file for at, file in calls if begin <= at <= end})
    return {file for file, count in seen.items() if 2 * count >= len(windows)}


def measure(directory: Path) -> dict[str, set[str]]:
    """Return the modules of a warm remember by process."""
    windows: list[Window] = []
    workspace = directory / "workspace"
    environment = {DIRECTORY_VARIABLE: str(directory)}
    with Daemon(workspace, module="bench.traced_tree", environment=environment) as daemon:
        client = http.client.HTTPConnection(daemon.address.host, daemon.address.port, timeout=30)
        for number in range(WARM + MEASURED):
            # Each content is new, and consists of words that the gateway has embedded before.
            body = json.dumps({"content": f"The deploy of service {number % 10} takes {number // 10} minutes"})
            begin = time.monotonic_ns()
            client.request("POST", "/api/memory/remember", body, {"content-type": "application/json"})
            answer = client.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            if number >= WARM:
                windows.append((begin, time.monotonic_ns()))
        client.close()
    found: dict[str, set[str]] = {}
    for path in directory.glob("*.json"):
        process = path.name.partition("-")[0]
        found.setdefault(process, set()).update(modules_in(json.loads(path.read_text(encoding="utf-8")), windows))
    return found


def main() -> int:
    """Print the modules by process, and how many there are."""
    with tempfile.TemporaryDirectory(prefix="signet-path-") as directory:
        found = measure(Path(directory))
    for process, modules in sorted(found.items()):
        sys.stdout.write(f"{process}: {len(modules)} modules\n" + "".join(f"  {name}\n" for name in sorted(modules)))
    sys.stdout.write(f"{len(set().union(*found.values()))} modules in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
