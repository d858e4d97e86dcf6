"""Every page says what it is for, its links lead somewhere, and an example that shows something else is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.documentation import Home

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINKING = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md"))]
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names by which a link reaches a heading of the page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    found = []
    for file, anchor in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{file}#{anchor}" if anchor else file)
    return found


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n[here](#a-heading) [a](#b) [c](d.md) [e](https://example.org/f#g)\n")
    assert broken_links(page) == ["#b", "d.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_begins_with_what_its_reader_can_do(page: Path) -> None:
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert re.match(r"(With|After)( reading)? this page (you|your program|the daemon)\b", first)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_is_in_the_list_of_pages(page: Path) -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert page.name == "README.md" or f"({page.relative_to(ROOT / 'docs')})" in index


PAGE = """
```console
$ echo "{said} in 3 ms"; echo 01a208ae-6943-73ae-9885-18f1595291ef
{shown} in 12.5 ms
01a208ae-6e0f-7883-9f5d-fa88acd570dd
$ echo 01a208ae-6e0f-7883-9f5d-fa88acd570dd | cut -c 10-13
6943
```

```python
print("{said}")
```

```text
{shown}
```

```sh
false
```
"""


def test_an_output_that_differs_in_ids_and_times_only_is_the_same(tmp_path: Path) -> None:
    page = PAGE.format(said="found", shown="found")
    assert Home(tmp_path, 3850).run_page(page) == page
    assert Home(tmp_path, 3850).run_page(PAGE.format(said="1 found", shown="…")) == PAGE.format(
        said="1 found", shown="…"
    )


def test_another_output_is_replaced_by_what_was_printed(tmp_path: Path) -> None:
    page = Home(tmp_path, 3850).run_page(PAGE.format(said="0 found", shown="1 found"))
    assert "0 found in 3 ms\n" in page
    assert "```text\n0 found\n```" in page
    assert "1 found" not in page


@pytest.mark.parametrize(
    ("command", "shown", "runs"),
    [
        ("""[ -e 1 ] && echo '{"ok":true}' || echo '{"skipped":true,"reason":"timeout"}'""", '{"ok":true}', 2),
        ("[ -e 1 ] && echo found || echo nothing; : --check", "found", 2),
        ("[ -e 1 ] && echo found || echo nothing", "nothing", 1),
        ("echo found; : --check", "found", 1),
    ],
)
def test_a_command_whose_hook_was_late_is_run_again(tmp_path: Path, command: str, shown: str, runs: int) -> None:
    page = f"```console\n$ {command}; echo run >> 1\n{shown}\n```\n"
    assert Home(tmp_path, 3850).run_page(page) == page
    assert (tmp_path / "1").read_text() == "run\n" * runs


def test_a_question_is_answered_with_yes(tmp_path: Path) -> None:
    page = "```console\n$ read -p 'Sure? [y/N]: ' said; echo $said\nSure? [y/N]: y\ny\n```\n"
    assert Home(tmp_path, 3850).run_page(page) == page
