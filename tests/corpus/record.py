"""Record the corpus of requests and responses again: ``python -m tests.corpus.record [SCENARIO …]``.

``tests/corpus/test_recorded_answers.py`` compares every later revision with it. Record only intended changes, and read
the difference (``git diff tests/corpus/answers``) before you commit it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.corpus.exchange import ANSWERS, Scenario, play
from tests.corpus.scenarios import SCENARIOS


def lines(recorded: list[dict[str, Any]]) -> str:
    """Return one JSON object per line, as it is committed."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in recorded)


def record(scenario: Scenario) -> int:
    """Record the responses of ``scenario`` and return their number."""
    recorded = play(scenario)
    ANSWERS.mkdir(exist_ok=True)
    scenario.file.write_text(lines(recorded), encoding="utf-8")
    return len(recorded)


def main(names: list[str]) -> int:
    """Record the named scenarios, or all."""
    unknown = set(names) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        sys.stderr.write(f"no scenario {', '.join(sorted(unknown))}\n")
        return 64
    total = 0
    for scenario in SCENARIOS:
        if not names or scenario.name in names:
            count = record(scenario)
            total += count
            print(f"{scenario.name}: {count}", flush=True)
    print(f"{total} answers recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
