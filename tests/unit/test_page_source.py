"""Rules of the page's source: nothing becomes markup, requests go by names that exist, and no file is large."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from signet_actors.gateway.routes.page import FILES, FOLDER
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_reader import request_fields

BY_NAME = {operation.name: operation for operation in OPERATIONS}
OWN = sorted(path for path in FOLDER.iterdir() if path.suffix in {".js", ".css", ".html", ".svg"})
MODULES = [path for path in OWN if path.suffix == ".js"]
MAX_LINES = 300
MAX_SOURCE_LINES = 2_619
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|createContextualFragment",
    r"\beval\(|new Function|DOMParser|setHTML|srcdoc|javascript:",
    r"\bstyle=|\son[a-z]+=[\"']",
    r"https?://(?!www\.w3\.org/2000/svg\")",
    r"setTimeout\([\"'`]|setInterval\([\"'`]|import\(",
    r"document\.cookie",
)
CALL = re.compile(r"\b(?:api|stream)\(\s*\"([^\"]+)\"(?:,\s*\{([^{}]*)\})?")
FIELD = re.compile(r"(?:^|,)\s*(?:\.\.\.\w+|(\w+))")


def violations(text: str) -> list[str]:
    return [found[0] for rule in FORBIDDEN for found in re.finditer(rule, text)]


def unknown_calls(text: str) -> list[str]:
    """Return the operations that do not exist, and the fields that their requests do not have."""
    found = []
    for name, fields in CALL.findall(text):
        operation = BY_NAME.get(name)
        if operation is None:
            found.append(name)
            continue
        known = {spelling for field in request_fields(operation.request) for spelling in field.spellings}
        known |= set(re.findall(r"\{(\w+)\}", operation.paths[0]))
        given = [field for field in FIELD.findall(fields) if field]
        found += [f"{name}: {field}" for field in given if field not in known]
    return found


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code_and_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    assert violations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "a.innerHTML = b",
        "eval('1')",
        'html`<p style="x">`',
        '<p onclick="f()">',
        "fetch('https://example.org')",
        "setTimeout('f()')",
        "html`<a href=javascript:x>`",
        "import('./x.js')",
    ],
)
def test_what_is_forbidden_is_found(text: str) -> None:
    assert violations(text) != []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_every_request_names_an_operation_and_fields_that_it_has(path: Path) -> None:
    assert unknown_calls(path.read_text(encoding="utf-8")) == []


def test_a_wrong_name_and_a_wrong_field_are_found() -> None:
    source = 'api("memories.lost"); api("memories.get", { id, include_deleted: true, colour: 1 }, { signal });'
    assert unknown_calls(source) == ["memories.lost", "memories.get: colour"]


def test_requests_are_sent_from_one_module_and_each_of_them_by_a_written_name() -> None:
    sources = {path.name: path.read_text(encoding="utf-8") for path in MODULES}
    assert [name for name, text in sources.items() if re.search(r"\bfetch\(|XMLHttpRequest", text)] == ["api.js"]
    calls = {name: len(re.findall(r"(?<!function )\b(?:api|stream)\(", text)) for name, text in sources.items()}
    named = {name: len(re.findall(r"\b(?:api|stream)\(\s*\"", text)) for name, text in sources.items()}
    assert calls == named
    assert [name for name, text in sources.items() if "/api/" in text] == []


def test_the_page_is_small() -> None:
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in OWN}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
    assert sum(lines.values()) <= MAX_SOURCE_LINES


def test_a_module_imports_only_modules_that_are_served() -> None:
    for path in MODULES:
        for name in re.findall(r"from \"([^\"]+)\"", path.read_text(encoding="utf-8")):
            assert name.removeprefix("./") in FILES, (path.name, name)
