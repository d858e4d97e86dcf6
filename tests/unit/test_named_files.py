"""The files that the documentation names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/DESIGN.md"), *ROOT.glob("signet_actors/*/DESIGN.md")]
)
_NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|md|toml|txt))(?:::[^`]*)?`")
_BARE = re.compile(r"`(\w+\.py)`")
_OF_THE_REPOSITORY = {
    path.name
    for room in ("signet_actors", "tests", "bench", ".")
    for path in (ROOT / room).glob("**/*.py" if room != "." else "*.py")
}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_named_in_a_document_exists(document: Path) -> None:
    named = [
        name
        for name in _NAMED.findall(document.read_text(encoding="utf-8"))
        if "SUBJECT" not in name and not name.startswith("src/")
    ]
    places = (ROOT, ROOT / "signet_actors", ROOT / "docs", document.parent, ROOT / "tests")
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    missing += [name for name in _BARE.findall(document.read_text(encoding="utf-8")) if name not in _OF_THE_REPOSITORY]
    assert missing == []


def test_the_names_of_test_files_are_unique() -> None:
    """Pytest collects no second module of a name, since the directories are no packages."""
    names = [path.name for path in (ROOT / "tests").glob("*/test_*.py")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
