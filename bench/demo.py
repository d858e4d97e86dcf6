"""A short session with the daemon on the command line, on a temporary workspace: ``make demo``.

Starts a daemon on a free port, remembers, recalls by natural questions, forgets, recovers, shows the history, and
stops. Every command is printed with its real output and its time. The daemon is always stopped and the workspace
removed, and the total time is limited. The exit code is 0 if every step gave the expected result.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET_S = 60
STOP_BUDGET_S = 15
KILL_BUDGET_S = 5

MEMORIES: tuple[tuple[str, ...], ...] = (
    ("User prefers vim keybindings in every editor, also in the browser", "--tags", "editor,preference"),
    ("We decided to use PostgreSQL 16 for the billing service because of its row-level security",),
    ("The staging deployment fails when the migration job runs before the secrets are mounted (ticket OPS-4711)",),
    ("Never push to main on Fridays; the release train leaves on Monday morning", "--importance", "0.95"),
    ("Anna Schneider leads the mobile team and reviews every change of the sync protocol", "--who", "anna"),
    ("The integration tests need SIGNET_FIXTURES=./fixtures/large and take about eleven minutes",),
    ("learned that the payment gateway rate-limits at 40 requests a second for each merchant key",),
    ("User drinks oat milk cappuccino and books team lunches at the Vietnamese place",),
)
QUESTIONS: tuple[tuple[str, str], ...] = (
    ("Which keyboard shortcuts does the user like?", "vim keybindings"),
    ("What database did we choose for billing, and why?", "PostgreSQL 16"),
    ("OPS-4711", "staging deployment"),
)


class UnexpectedResult(Exception):
    """A step of the demonstration did not give the expected result."""


class Demonstration:
    """One workspace, one daemon, and a deadline for the whole demonstration."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.began = time.monotonic()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SIGNET_")},
            "SIGNET_WORKSPACE": str(workspace),
            "SIGNET_PORT": "0",
        }

    def signet(self, *arguments: str) -> str:
        """Run and print the command and return its output; raises UnexpectedResult if it fails."""
        print(f"\n$ {shlex.join(['signet', *arguments])}", flush=True)
        left = BUDGET_S - (time.monotonic() - self.began)
        if left <= 0:
            raise UnexpectedResult(f"the demonstration took longer than {BUDGET_S} s")
        began = time.perf_counter()
        try:
            done = self._run(arguments, timeout=left)
        except subprocess.TimeoutExpired as error:
            raise UnexpectedResult(f"the command was not done in time ({left:.0f} s)") from error
        took_ms = (time.perf_counter() - began) * 1000
        print(done.stdout + done.stderr, end="")
        print(f"  [{took_ms:.0f} ms]", flush=True)
        if done.returncode != 0:
            raise UnexpectedResult(f"exit code {done.returncode}")
        return done.stdout

    def stop(self) -> None:
        """Stop the daemon and verify that no process is left."""
        print("\n$ signet stop", flush=True)
        try:
            done = self._run(("stop", "--timeout", str(STOP_BUDGET_S)), timeout=STOP_BUDGET_S + 5)
            print(done.stdout + done.stderr, end="", flush=True)
            if done.returncode == 0:
                return
        except subprocess.TimeoutExpired:
            pass
        self._kill()

    def _run(self, arguments: tuple[str, ...], *, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "signet_actors.cli", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def _kill(self) -> None:
        """Kill the supervisor of this workspace; its children exit with it."""
        try:
            pid = int((self.workspace / ".daemon" / "pid").read_text())
            os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            return
        deadline = time.monotonic() + KILL_BUDGET_S
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)


def demonstrate(demo: Demonstration) -> None:
    """Run every step; raises UnexpectedResult at the first unexpected result."""
    demo.signet("start", "--timeout", "45")
    ids = [demo.signet("remember", *arguments).strip() for arguments in MEMORIES]
    require(len(set(ids)) == len(MEMORIES), "each memory has an id of its own")

    again = demo.signet("remember", *MEMORIES[0]).strip()
    require(again == ids[0], "the same text again is the same memory")

    for question, expected in QUESTIONS:
        answers = demo.signet("recall", question, "-n", "3").splitlines()
        require(bool(answers) and expected in answers[0], f"the best answer speaks of {expected!r}")

    forgotten, text = ids[1], "PostgreSQL 16"
    demo.signet("forget", forgotten, "--yes", "--reason", "the decision was reopened")
    require(text not in demo.signet("recall", QUESTIONS[1][0], "-n", "3"), "a forgotten memory is not recalled")
    require(forgotten in demo.signet("list", "--deleted"), "it is among the deleted")
    demo.signet("recover", forgotten, "--reason", "it stands after all")
    require(text in demo.signet("recall", QUESTIONS[1][0], "-n", "1"), "a recovered memory is recalled again")
    events = [line.split("\t")[1] for line in demo.signet("history", forgotten).splitlines()]
    require(events == ["created", "deleted", "recovered"], "the history tells what happened, in order")

    require(len(demo.signet("list").splitlines()) == len(MEMORIES), "all memories are listed")
    demo.signet("status")


def require(holds: bool, claim: str) -> None:
    """Print the claim; raises UnexpectedResult if it does not hold."""
    if not holds:
        raise UnexpectedResult(f"expected: {claim}")
    print(f"  ✓ {claim}", flush=True)


def main() -> int:
    """Run the demonstration and return its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="signet-demo-", ignore_cleanup_errors=True) as directory:
        demo = Demonstration(Path(directory) / "workspace")
        print(f"A throw-away workspace: {demo.workspace}")
        try:
            demonstrate(demo)
        except UnexpectedResult as wrong:
            failure: str | None = str(wrong)
        else:
            failure = None
        finally:
            demo.stop()
    took_s = time.monotonic() - demo.began
    if failure is not None:
        print(f"\nThe demonstration failed: {failure}", file=sys.stderr)
        return 1
    print(f"\nDone in {took_s:.1f} s; the daemon is stopped and the workspace is removed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
