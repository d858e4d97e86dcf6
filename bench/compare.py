"""Compare two revisions under the same load: ``python -m bench.compare REV_A REV_B [--memories 1000] [--rounds 3]``.

Each revision is checked out into its own git worktree. The load generator of *this* checkout runs against the daemons
alternately, A B A B, so that changes of the machine's speed affect both. ``.`` is this checkout with its uncommitted
changes. Both daemons use the same virtual environment, so they must have the same dependencies. A figure whose ranges
do not overlap is marked; with three rounds that is no proof.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.daemon import REPOSITORY, Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import circumstances, write_result
from bench.load import Bench, Plan, sizes_in, text_of
from bench.report import lines_of

HERE: Final = "."
GIT_BUDGET_S: Final = 120.0
THIRD_PARTY: Final = Path("signet_actors", "third_party")


class RevisionUnusable(Exception):
    """The revision does not exist, or its daemon cannot be started from a checkout."""


class Range(msgspec.Struct, frozen=True):
    """Median, minimum and maximum of a figure over the rounds."""

    median: float
    low: float
    high: float


class Compared(msgspec.Struct, frozen=True):
    """One figure of both revisions. ``ratio`` is B's median divided by A's; None if A's is 0."""

    figure: str
    unit: str
    a: Range
    b: Range
    ratio: float | None
    apart: bool


class Measured(msgspec.Struct, frozen=True):
    """The figures of one round: value and unit by name."""

    figures: dict[str, tuple[float, str]]


def range_of(values: Sequence[float]) -> Range:
    """Return the range of at least one value."""
    return Range(median=statistics.median(values), low=min(values), high=max(values))


def compared(a: Sequence[Measured], b: Sequence[Measured]) -> list[Compared]:
    """Return every figure that all rounds of both have, in the order of A's first round.

    ``apart`` means that the ranges do not overlap: every round of one is above every round of the other.
    """
    rounds = [*a, *b]
    found = []
    for name, (_, unit) in a[0].figures.items():
        if not all(name in measured.figures for measured in rounds):
            continue
        left = range_of([measured.figures[name][0] for measured in a])
        right = range_of([measured.figures[name][0] for measured in b])
        ratio = right.median / left.median if not math.isclose(left.median, 0.0, abs_tol=1e-12) else None
        apart = left.high < right.low or right.high < left.low
        found.append(Compared(figure=name, unit=unit, a=left, b=right, ratio=ratio, apart=apart))
    return found


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Yield a directory with the code of ``revision``; its worktree is removed afterwards. Raises RevisionUnusable."""
    if revision == HERE:
        yield REPOSITORY
        return
    with tempfile.TemporaryDirectory(prefix="signet-compare-", ignore_cleanup_errors=True) as directory:
        tree = Path(directory) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
        shutil.copytree(REPOSITORY / THIRD_PARTY, tree / THIRD_PARTY, dirs_exist_ok=True)  # not in the repository
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def commit_of(revision: str) -> str:
    """Return the abbreviated commit of ``revision``, or ``.``. Raises RevisionUnusable."""
    if revision == HERE:
        return HERE
    return _git("rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")


def runs_from(tree: Path) -> None:
    """Verify that a daemon started with ``tree`` runs its code and not this checkout's; raises RevisionUnusable
    otherwise.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "import signet_actors, supervisor; print(supervisor.__file__); print(signet_actors.__file__)",
        ],
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=GIT_BUDGET_S,
        check=False,
    )
    files = [Path(line).resolve() for line in done.stdout.splitlines()]
    if done.returncode or len(files) != 2 or not all(file.is_relative_to(tree.resolve()) for file in files):
        raise RevisionUnusable(f"its code is not what would run: {done.stdout}{done.stderr}"[-1000:])


def measure(tree: Path, plan: Plan, settings: str, console: Console) -> Measured:
    """Measure one round of the daemon in ``tree`` on a new workspace; raises DaemonFailed.

    ``settings``: the text of its agent.yaml.
    """
    with throw_away_workspace() as workspace:
        bench = Bench(Daemon(workspace, settings=settings, repository=tree), plan, console)
        bench.run()
    return Measured({line.figure: (line.measured, line.unit) for line in lines_of(bench.found)})


def show(found: Sequence[Compared], names: tuple[str, str], rounds: int, console: Console) -> None:
    """Print the table."""
    table = Table(
        title=f"A = {names[0]}, B = {names[1]}: median (least to greatest) of {rounds} rounds",
        caption="apart: every round of one is above every round of the other",
    )
    table.add_column("figure")
    for column in ("A", "B", "B / A"):
        table.add_column(column, justify="right")
    table.add_column("")
    for line in found:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
        table.add_row(
            f"{line.figure} [{line.unit}]".replace(" []", "").replace("[", r"\["),
            _told(line.a),
            _told(line.b),
            ratio,
            "apart" if line.apart else "",
        )
    console.print(table)


def _told(found: Range) -> str:
    return f"{found.median:,.2f} ({found.low:,.2f} to {found.high:,.2f})"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_BUDGET_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RevisionUnusable(f"git {arguments[0]}: {error}") from error
    if done.returncode:
        raise RevisionUnusable(f"git {' '.join(arguments)}: {done.stderr.strip() or 'there is no such revision'}")
    return done.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; the exit code is 0 if both could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("a", metavar="REV_A", help="a commit, branch or tag; . is this checkout")
    parser.add_argument("b", metavar="REV_B")
    parser.add_argument("--memories", type=sizes_in, default=(1_000,), help="sizes, ascending")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each revision, in turns")
    parser.add_argument("--seconds", type=float, default=4.0, help="longest time of one measured phase")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds over which idle CPU is measured")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--settings", type=text_of, default="", metavar="FILE", help="an agent.yaml for both daemons")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 140)
    plan = Plan(options.memories, options.seconds, options.idle, options.seed, floors=False)
    rounds: tuple[list[Measured], list[Measured]] = ([], [])
    try:
        commits = (commit_of(options.a), commit_of(options.b))
        with ExitStack() as worktrees:
            trees = [worktrees.enter_context(checkout(revision)) for revision in (options.a, options.b)]
            for tree in trees:
                runs_from(tree)
            for number in range(options.rounds):
                for label, tree, measured in zip("AB", trees, rounds, strict=True):
                    progress.print(f"{label}, round {number + 1} of {options.rounds}", highlight=False)
                    measured.append(measure(tree, plan, options.settings, progress))
    except (RevisionUnusable, DaemonFailed) as error:
        progress.print(str(error), style="red", highlight=False, markup=False)
        return 1
    found = compared(*rounds)
    names = tuple(f"{name} ({commit})" for name, commit in zip((options.a, options.b), commits, strict=True))
    show(found, (names[0], names[1]), options.rounds, console)
    result: dict[str, Any] = {
        "circumstances": circumstances(),
        "revisions": {"a": commits[0], "b": commits[1]},
        "plan": plan,
        "rounds": {"a": _bare(rounds[0]), "b": _bare(rounds[1])},
        "compared": found,
    }
    console.print(str(write_result("compare", result)), highlight=False)
    return 0


def _bare(rounds: Sequence[Measured]) -> list[Mapping[str, float]]:
    return [{name: value for name, (value, _) in measured.figures.items()} for measured in rounds]


if __name__ == "__main__":
    sys.exit(main())
