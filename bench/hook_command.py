"""How long a harness waits for ``signet-hook``: wall-clock time and CPU time of the process, from start to exit.

``python -m bench.hook_command`` starts a daemon on a temporary workspace with memories, runs each hook in turn, and
prints percentiles beside those of an interpreter that does nothing. Install the package as a wheel first to measure
what users have: an editable installation makes every start of Python slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

from bench.client import BlockingClient
from bench.daemon import Daemon
from bench.figures import spread

HOOKS: Final = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
    "user-prompt-submit": {"hook_event_name": "UserPromptSubmit", "prompt": "which port does the database use?"},
}


def run(command: list[str], event: dict[str, str], environment: dict[str, str]) -> tuple[float, float]:
    """Run the command once; return wall-clock and CPU time in milliseconds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
    assert process.stdin is not None
    process.stdin.write(json.dumps(event).encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    wall_ms = (time.perf_counter() - started) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return wall_ms, (usage.ru_utime + usage.ru_stime) * 1000


def main() -> int:
    """Measure and print; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--program", default=str(Path(sys.executable).with_name("signet-hook")))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, Daemon(Path(directory) / "workspace") as daemon:
        client = BlockingClient(daemon.address.host, daemon.address.port)
        for number in range(options.memories):
            memory = {"content": f"The database of service {number} uses port {number}"}
            client.exchange("POST", "/api/memory/remember", json.dumps(memory).encode())
        environment = {**os.environ, "SIGNET_WORKSPACE": str(daemon.workspace)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users have the compiled modules
        commands: dict[str, tuple[list[str], dict[str, str]]] = {
            "an interpreter that does nothing": ([sys.executable, "-I", "-S", "-c", "pass"], {}),
            "the same with its site packages": ([sys.executable, "-c", "pass"], {}),
        }
        for name, event in HOOKS.items():
            commands[name] = ([options.program, name, "-H", "claude-code"], {**event, "cwd": directory})
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, (command, event) in commands.items():
                times[name].append(run(command, {**event, "session_id": str(uuid.uuid4())}, environment))
    print(f"{'':34}{'wall p50':>10}{'p95':>8}{'CPU p50':>10}{'p95':>8}   ms, {options.runs} runs")
    for name, taken in times.items():
        wall, cpu = (spread([both[place] for both in taken]) for place in (0, 1))
        print(f"{name:34}{wall.p50:10.1f}{wall.p95:8.1f}{cpu.p50:10.1f}{cpu.p95:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
