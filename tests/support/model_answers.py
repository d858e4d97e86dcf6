"""Model answers: a file of broken ones, each with its meaning, and mutations of correct ones.

A mutation returns None if it cannot be applied to an answer. ``LOSSLESS`` mutations keep the meaning, so the result
must equal the original. ``LOSSY`` mutations remove something, so the result must be part of the original.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

FIXTURES: Final = Path(__file__).parent.parent / "unit" / "fixtures"
NOTHING: Final = "NOTHING"


class BrokenAnswer(NamedTuple):
    """An answer and the value that it means; ``found`` is False if it means none."""

    name: str
    answer: str
    found: bool
    value: object


def broken_answers() -> list[BrokenAnswer]:
    """Return the cases of ``fixtures/broken_answers.txt``."""
    text = (FIXTURES / "broken_answers.txt").read_text(encoding="utf-8")
    cases = []
    for part in text.split("=== ")[1:]:
        name, rest = part.split("\n", 1)
        answer, meant = rest.rsplit("\n---\n", 1)
        found = meant.strip() != NOTHING
        cases.append(BrokenAnswer(name, answer, found, json.loads(meant) if found else None))
    return cases


def notes(name: str) -> list[str]:
    """Return the lines of a fixture file without empty lines and comments."""
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


CORRECT: Final[dict[str, object]] = {
    "two facts and a triple": {
        "facts": [
            {"content": "The homelab uses Traefik as its reverse proxy", "type": "decision", "confidence": 0.95},
            {"content": "Noor prefers four spaces over tabs", "type": "preference", "confidence": 0.9},
        ],
        "entities": [{"source": "homelab", "relationship": "uses", "target": "Traefik", "confidence": 1}],
    },
    "text with signs": {
        "facts": [
            {"content": "Run make publish, then wait: it takes (about) 5 minutes; see docs/release.md", "type": "fact"}
        ],
        "entities": [],
    },
    "other scripts": {
        "facts": [{"content": "备份在凌晨三点运行, täglich um 3 Uhr 🎉", "type": "procedural", "confidence": 0.5}],
        "entities": [{"source": "备份", "relationship": "läuft", "target": "3 Uhr", "confidence": 0.25}],
    },
    "nothing lasting": {"facts": [], "entities": []},
    "twenty facts": {
        "facts": [{"content": f"Service {i} listens on port {8000 + i}", "type": "fact"} for i in range(20)],
        "entities": [],
    },
    "null and truth": {
        "facts": [{"content": "The flag is on in production", "type": None, "confidence": 0.75, "sure": True}],
        "entities": None,
    },
}

Mutation = Callable[[str], str | None]


def _quoted_keys(text: str) -> str:
    return re.sub(r'"(\w+)":', r"\1:", text)


def _single_quotes(text: str) -> str | None:
    return None if "'" in text or '\\"' in text else text.replace('"', "'")


def _python_literals(text: str) -> str | None:
    changed = text.replace("null", "None").replace("true", "True").replace("false", "False")
    return None if changed == text else changed


def _trailing_commas(text: str) -> str:
    return re.sub(r'(?<=[\]}"\d])([\]}])', r",\1", text)


LOSSLESS: Final[dict[str, Mutation]] = {
    "as it is": lambda text: text,
    "indented": lambda text: json.dumps(json.loads(text), indent=2, ensure_ascii=False),
    "ASCII only": lambda text: json.dumps(json.loads(text)),
    "no spaces": lambda text: json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False),
    "think block": lambda text: f"<think>Let me see. {{'facts': [1, 2</think>\n\n{text}",
    "empty think block": lambda text: f"<think>\n\n</think>\n\n{text}",
    "nested think blocks": lambda text: f"<think>a<think>b</think>{{}}</think>{text}",
    "unclosed think block behind": lambda text: f"{text}\n<think>hm {{",
    "think end only": lambda text: f"The note says much.\n</think>\n{text}",
    "fence": lambda text: f"```json\n{text}\n```",
    "unclosed fence": lambda text: f"```\n{text}",
    "fences in fences": lambda text: f"```markdown\n```json\n{text}\n```\n```",
    "prose in front": lambda text: f"Here is the JSON [as asked] for {{the note}}:\n{text}",
    "prose behind": lambda text: f"{text}\n\nNote: I left out [two] things {{sorry}}.",
    "prose around a fence": lambda text: f"Sure!\n```json\n{text}\n```\nAnything else?",
    "encoded twice": json.dumps,
    "escaped": lambda text: None if "\\" in text else text.replace('"', '\\"'),
    "keys without quotes": _quoted_keys,
    "single quotes": _single_quotes,
    "Python literals": _python_literals,
    "Python dict": lambda text: repr(json.loads(text)),
    "trailing commas": _trailing_commas,
    "trailing commas and line ends": lambda text: (
        re.sub(r"([\]}])", r",\n\1\n", text).replace("[,", "[").replace("{,", "{")
    ),
    "line comments": lambda text: text.replace("[{", "[ // the items\n{").replace("}]", "} // the last\n]") + " // end",
    "block comments": lambda text: "/* answer */" + text.replace('": ', '": /* value */ '),
    "no commas between objects": lambda text: None if "}, {" not in text else text.replace("}, {", "}\n{"),
    "no commas between arrays": lambda text: text.replace('], "entities"', ']\n"entities"'),
    "typographic quotes": lambda text: None if "\\" in text else re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text),
    "last bracket missing": lambda text: text[:-1],
    "one bracket too many": lambda text: text + "}",
    "two brackets too many": lambda text: text + "]}",
    "doubled braces": lambda text: text.replace("{", "{{").replace("}", "}}"),
    "closed too early": lambda text: text.replace('], "entities"', ']}, "entities"'),
    "byte order mark": lambda text: "\ufeff" + text,
    "carriage returns": lambda text: json.dumps(json.loads(text), indent=1, ensure_ascii=False).replace("\n", "\r\n"),
    "no-break spaces": lambda text: text.replace(', "', ',\u00a0"'),
    "equals signs": lambda text: text.replace('": ', '" = '),
    "said twice": lambda text: f"{text}\n{text}",
    "draft first": lambda text: f'{{"facts": [{{"content": "a draft of it"}}], "entities": []}}\nFinal:\n{text}',
    "assignment": lambda text: f"result = {text};",
}

LOSSY: Final[dict[str, Mutation]] = {
    f"cut off at {percent} %": (lambda text, percent=percent: text[: len(text) * percent // 100])
    for percent in (15, 30, 45, 60, 75, 90, 97)
}


def mutated(mutations: dict[str, Mutation]) -> Iterator[BrokenAnswer]:
    """Yield each correct answer under each mutation."""
    for name, value in CORRECT.items():
        text = json.dumps(value, ensure_ascii=False)
        for mutation, change in mutations.items():
            answer = change(text)
            if answer is not None:
                yield BrokenAnswer(f"{name}: {mutation}", answer, True, value)
