"""``python -m tests.chaos.run --minutes 15 --seed N``: random faults for that time, then a table and a JSON file.

The exit code is 1 if something was lost, duplicated, changed or left unexplained. Recovery times are shown with their
targets but do not change the exit code, because they depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from pathlib import Path

from tests.chaos.random_faults import TARGETS_S, Findings, run


def table(findings: Findings) -> str:
    """Return the rows of the table."""
    found = findings.summary()
    rows = [
        ("seed", found["seed"]),
        ("seconds", found["seconds"]),
        ("requests", f"{found['requests']} ({found['requests_per_s']}/s)"),
        ("statuses", ", ".join(f"{status}: {count}" for status, count in sorted(found["statuses"].items()))),
        ("acknowledged writes", found["acknowledged"]),
        ("processes killed", found["kills"]),
        ("processes stopped", found["stops"]),
        *((name, found[name]) for name in ("lost", "doubled", "changed", "phantom", "unexplained", "orphans")),
        ("one-writer violations", f"{found['one_writer']['violations']} of {found['one_writer']['looks']} looks"),
    ]
    lines = [f"{name:24}{value}" for name, value in rows]
    lines += ["", f"{'back after (s)':24}{'count':>6}{'p50':>8}{'p95':>8}{'max':>8}{'target':>8}"]
    for title, group in (("replaced", found["replaced_s"]), ("served again", found["served_again_s"])):
        for name, figures in group.items():
            target = TARGETS_S.get(name)
            shown = "" if target is None else f"{target:.1f}"
            lines.append(
                f"{f'{name}, {title}':24}{figures['count']:>6}{figures['p50']:>8}{figures['p95']:>8}"
                f"{figures['max']:>8}{shown:>8}"
            )
    return "\n".join([*lines, "", *(f"WRONG: {item}" for item in findings.wrong[:50])])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rate", type=float, default=80.0, help="steps of the clients a second")
    parser.add_argument("--json", type=Path, default=None, help="where the figures are written")
    asked = parser.parse_args()
    seed = secrets.randbits(31) if asked.seed is None else asked.seed
    sys.stdout.write(f"random faults for {asked.minutes} minutes; repeat with --seed {seed}\n")
    sys.stdout.flush()
    findings = run(asked.minutes * 60, seed, rate=asked.rate)
    sys.stdout.write(table(findings) + "\n")
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(findings.summary(), indent=1) + "\n", encoding="utf-8")
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
