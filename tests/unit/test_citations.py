"""Everything that the code cites is in this repository or public."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = ROOT / "signet_actors" / "store" / "sqlite" / "migrations"
"""A released migration never changes, its comments neither; docs/README.md says how to read them."""
SOURCES = sorted(
    path
    for room in ("signet_actors", "tests", "bench")
    for path in (ROOT / room).rglob("*")
    if path.suffix in {".py", ".md", ".sql"} and MIGRATIONS not in path.parents and path != Path(__file__)
)
ELSEWHERE = re.compile(r"(?<![\w/.-])(?:decisions|reliability|wire|house|targets|quality|vocabulary)\.md\b")
CITED = re.compile(r'\bdocs/((?:guides/)?[\w.-]+\.md)((?:,?\s+(?:and\s+)?"[^"\n]{2,80}")*)')
NAMED = re.compile(r'"([^"\n]{2,80})"')
NUMBERED = re.compile(r"\bdocs/decisions\.md\s+(\d{1,2})\b")
LAST_DECISION = 69


def headings(document: Path) -> set[str]:
    lines = document.read_text(encoding="utf-8").splitlines()
    return {line.lstrip("# ").strip() for line in lines if line.startswith("#")}


def test_no_document_is_cited_that_is_not_in_the_repository() -> None:
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path in SOURCES for match in ELSEWHERE.finditer(text_of(path))]
    assert found == []


def test_every_cited_document_and_heading_is_there() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {citation}"
        for path in SOURCES
        if path.name != "model_answers.py"  # its texts name files of an invented project
        for citation in broken(text_of(path))
    ] == []


def broken(text: str) -> list[str]:
    """The citations that lead nowhere."""
    found = []
    for match in CITED.finditer(text):
        document = ROOT / "docs" / match[1]
        known = headings(document) if document.is_file() else set()
        wanted = NAMED.findall(match[2]) or ([] if known else [""])
        found += [
            f'{match[1]} "{name}"'
            for name in wanted
            if not any(heading == name or heading.endswith(f" {name}") for heading in known)
        ]
    return found


def test_a_broken_citation_is_found() -> None:
    assert broken("Source: docs/nothing.md.") == ['nothing.md ""']
    assert broken('Source: docs/decisions.md "No such heading".') == ['decisions.md "No such heading"']
    assert broken("Source: docs/decisions.md 3.") == []


@pytest.mark.parametrize("number", range(1, LAST_DECISION + 1))
def test_each_decision_has_an_entry_of_its_number(number: int) -> None:
    assert re.search(rf"^#+ {number}\. ", text_of(ROOT / "docs" / "decisions.md"), re.MULTILINE)


def test_no_decision_is_cited_that_does_not_exist() -> None:
    cited = {int(number) for path in SOURCES for number in NUMBERED.findall(text_of(path))}
    assert cited <= set(range(1, LAST_DECISION + 1))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")
