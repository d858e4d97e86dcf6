"""What an agent is given of a project's memories, notes and sessions: ``python -m bench.first_day``.

A daemon is filled with ten weeks of a made-up project through its real interfaces and started again, as on another
day. Then a session starts, and each prompt is sent in a session of its own, which has received nothing. What was
injected is compared with what a person would want there. ``-v`` prints every prompt that fails and the start.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.daemon import DaemonFailed, leave_on_sigterm
from bench.figures import circumstances, write_result
from bench.first_day.data import DataSet, Item, data_set
from bench.first_day.judging import Judged, Start, found_at, judged, judged_start
from bench.first_day.workspace import SETTINGS, FirstDay
from signet_actors.cli.main import cli
from signet_actors.operations.tools import TOOLS

UNRELATED: Final = "unrelated"
NO_START: Final = ("junk", "wine")
"""Topics that no start of the project should have: notes without a sense, and another project."""
WIDTH: Final = 120
TARGETS: Final = {
    "answered": "≥ 54",
    "outdated": "0",
    "foreign": "≤ 1",
    "unrelated": "0",
    "share": "≥ 40 %",
}


def measure(data: DataSet, home: Path, settings: str) -> tuple[Start, list[Judged], str]:
    """Return what a start and each prompt were given, and the model of the vectors. Raises DaemonFailed."""
    now = datetime.now().astimezone()
    items = data.items(now)
    day = FirstDay(home, now, settings)
    with day.daemon:
        day.fill(data)
    with day.daemon:
        model = day.wait_for_vectors()
        text = day.hook("session-start", "first-day", source="startup")["inject"]
        start = judged_start(text, items, commands=cli.commands, tools=TOOLS, foreign=NO_START)
        found = []
        for prompt in data.prompts:
            asked = data.asked(prompt, now)
            event = {"prompt": asked[0], "last_assistant_message": prompt.last}
            answer = day.hook("user-prompt-submit", f"prompt-{prompt.label}", **event)
            skipped = str(answer.get("reason", "")) if answer.get("skipped") else ""
            found.append(judged(prompt, asked, answer["inject"], items, skipped))
        for at, one in enumerate(found):
            if not one.answered and one.prompt.expect:
                recalled = found_at(day.recall(one.asked), one.prompt.expect, items)
                found[at] = msgspec.structs.replace(one, recalled=recalled)
    return start, found, model


def prompts_table(found: Sequence[Judged]) -> Table:
    """Return the table of the prompts, by their kind."""
    table = Table(title="What prompts are given")
    for name in ("kind", "prompts", "given what they should", "outdated alone", "nothing to do with it"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    related = [one for one in found if one.prompt.kind != UNRELATED]
    for kind in dict.fromkeys(one.prompt.kind for one in related):
        table.add_row(kind, *_figures([one for one in related if one.prompt.kind == kind]))
    table.add_section()
    table.add_row("all", *_figures(related), style="bold")
    table.add_row("target", "", *(TARGETS[name] for name in ("answered", "outdated", "foreign")))
    return table


def _figures(part: Sequence[Judged]) -> tuple[str, ...]:
    counts = (
        len(part),
        sum(one.answered for one in part),
        sum(len(one.outdated) for one in part),
        sum(len(one.foreign) for one in part),
    )
    return tuple(map(str, counts))


def start_table(start: Start, data: DataSet) -> Table:
    """Return the table of the start of a session."""
    table = Table(title="What a start is given", show_header=False)
    table.add_row("characters", f"{len(start.text):,}")
    table.add_row("of them words of memories and turns", f"{start.share:.0%} (target {TARGETS['share']})")
    for name, labels in data.start.items():
        there = [label for label in labels if label in start.given.whole]
        missing = ", ".join(label for label in labels if label not in there)
        table.add_row(name, f"{len(there)} of {len(labels)}" + (f" (not {missing})" if missing else ""))
    for name, labels in (
        ("outdated without the newer one", start.outdated),
        ("junk, other projects", start.unwanted),
        ("commands and tools that do not exist", start.commands),
        ("headings of level 1", start.headings),
    ):
        table.add_row(name, ", ".join([str(len(labels)), *labels]))
    return table


def print_failing(found: Sequence[Judged], items: Mapping[str, Item], console: Console) -> None:
    """Print each prompt that was not given what it should: what was expected, and what came."""
    for one in found:
        if not one.failed:
            continue
        what = [] if one.answered else ["not given" if one.prompt.expect else "given something"]
        what += [f"outdated alone: {', '.join(one.outdated)}"] if one.outdated else []
        what += [f"nothing to do with it: {', '.join(one.foreign)}"] if one.foreign else []
        what += [f"skipped: {one.skipped}"] if one.skipped else []
        console.print(f"\n{one.prompt.label} ({one.prompt.kind}): {'; '.join(what)}", style="bold")
        console.print(textwrap.indent(one.asked, "  > "))
        if not one.answered:
            for labels in one.prompt.expect:
                console.print("  should be given: " + " + ".join(f"{one} ({items[one].text[:70]!r})" for one in labels))
            if one.recalled:
                console.print(f"  in a recall: {one.recalled}")
        console.print(textwrap.indent(one.text or "(nothing)", "  | "))


def result_of(start: Start, found: Sequence[Judged], model: str) -> dict[str, Any]:
    """Return the result to be written."""
    prompts = [
        {
            "label": one.prompt.label,
            "kind": one.prompt.kind,
            "answered": one.answered,
            "outdated": one.outdated,
            "foreign": one.foreign,
            "shown": sorted(one.given.shown),
            "skipped": one.skipped,
            "recalled": one.recalled,
            "inject": one.text,
        }
        for one in found
    ]
    return {"circumstances": circumstances(), "model": model, "start": start, "prompts": prompts}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_day", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-v", "--verbose", action="store_true", help="print the start, and each prompt that fails")
    parser.add_argument("--settings", type=Path, help="an agent.yaml to measure with, instead of the default")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    console = Console(width=WIDTH, highlight=False, markup=False, soft_wrap=True)
    data = data_set()
    settings = options.settings.read_text() if options.settings else SETTINGS
    with tempfile.TemporaryDirectory(prefix="signet-bench-", ignore_cleanup_errors=True) as directory:
        try:
            start, found, model = measure(data, Path(directory).resolve(), settings)
        except (OSError, DaemonFailed) as error:
            Console(stderr=True, markup=False).print(str(error), highlight=False)
            return 1
    if options.verbose:
        console.print(textwrap.indent(start.text, "  | "))
        print_failing(found, data.items(datetime.now().astimezone()), console)
        console.print()
    console.print(prompts_table(found))
    unrelated = [one for one in found if one.prompt.kind == UNRELATED]
    wrong = sum(not one.answered for one in unrelated)
    console.print(
        f"{wrong} of {len(unrelated)} unrelated prompts were given something (target {TARGETS['unrelated']})."
    )
    console.print(start_table(start, data))
    if skipped := [one.prompt.label for one in found if one.skipped]:
        console.print(f"Skipped by the daemon, and counted as given nothing: {', '.join(skipped)}")
    console.print(f"model of the vectors: {model}")
    console.print(str(write_result("first-day", result_of(start, found, model))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
