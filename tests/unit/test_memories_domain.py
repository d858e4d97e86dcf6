"""Prefixes, types, tags and decay of a memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.memories import (
    INFERENCE_CHARS,
    MEMORY_TYPES,
    importance_to_store,
    infer_type,
    memory_type,
    parse_prefixes,
    parse_tags,
)
from signet_actors.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text", ("plain text", False, ())),
        ("critical: never expose tokens", ("never expose tokens", True, ())),
        ("CRITICAL:no blank", ("no blank", True, ())),
        ("[a,B]: text", ("text", False, ("a", "b"))),
        ("[ a , a ,, B ]:text", ("text", False, ("a", "b"))),
        ("critical: [project,auth]: never expose tokens", ("never expose tokens", True, ("project", "auth"))),
        ("critical:", ("", True, ())),
        ("  critical:   ", ("", True, ())),
        ("[a]:", ("[a]:", False, ())),
        ("[ , ]: text", ("[ , ]: text", False, ())),
        ("[not a prefix] text", ("[not a prefix] text", False, ())),
        ("it is critical: think", ("it is critical: think", False, ())),
        ("[a]: line one\nline two", ("line one\nline two", False, ("a",))),
        ("    code\n  more", ("    code\n  more", False, ())),
        ("critical:\n\n    code\n  more", ("    code\n  more", True, ())),
        ("critical: \n[a]:\n    code\n\n  more", ("    code\n\n  more", True, ("a",))),
        ("critical:   text\n    code", ("text\n    code", True, ())),
        ("\ufeffcritical: text", ("text", True, ())),
        ("critically important", ("critically important", False, ())),
        ("[a,[REDACTED:api-key]]: text", ("text", False, ("a", "[redacted:api-key]"))),
        (f"[{'a' * 4097}]: text", (f"[{'a' * 4097}]: text", False, ())),
    ],
)
def test_prefixes_are_removed_and_applied(text: str, expected: tuple[str, bool, tuple[str, ...]]) -> None:
    assert parse_prefixes(text) == expected


@pytest.mark.parametrize(
    ("named", "pinned", "otherwise", "expected"),
    [
        (None, True, 0.8, 1.0),
        (None, True, None, 1.0),
        (None, False, 0.8, 0.8),
        (None, False, None, None),
        (None, None, None, None),
        (0.0, True, 0.8, 0.0),
        (0.3, None, None, 0.3),
    ],
)
def test_pinning_sets_importance_1_unless_one_is_given(
    named: float | None, pinned: bool | None, otherwise: float | None, expected: float | None
) -> None:
    assert importance_to_store(named, pinned=pinned, otherwise=otherwise) == expected


@given(st.text())
def test_prefix_parsing_never_raises_and_never_adds_text(text: str) -> None:
    prefixes = parse_prefixes(text)
    assert prefixes.content in text
    assert prefixes.content == prefixes.content.rstrip()
    assert prefixes.content.partition("\n")[0].strip() or not prefixes.content


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("User prefers dark mode", "preference"),
        ("Anna likes short answers", "preference"),
        ("the team WANTED fewer meetings", "preference"),
        ("Decided to use PostgreSQL", "decision"),
        ("we agreed on tabs", "decision"),
        ("The API will use JSON", "decision"),
        ("learned that WAL needs checkpoints", "learning"),
        ("TIL sqlite has FTS5", "learning"),
        ("til about group commit", "learning"),
        ("found a bug in the parser", "issue"),
        ("the build is broken", "issue"),
        ("the problem is the cache", "issue"),
        ("Never push to main", "rule"),
        ("you must run the tests", "rule"),
        ("always squash", "rule"),
        ("Signet stores data in SQLite", "fact"),
        ("", "fact"),
        ("she prefers that we must test", "preference"),
        ("we learned about the bug", "learning"),
        # The substrings of the reference daemon, which are no such words:
        ("until tomorrow we wait", "fact"),
        ("wait til tomorrow", "fact"),
        ("mustard is yellow", "fact"),
        ("the debugger is attached", "fact"),
        ("a tissue sample", "fact"),
        ("unbroken chain", "fact"),
    ],
)
def test_the_type_follows_the_first_matching_word(content: str, kind: str) -> None:
    assert infer_type(content) == kind


@pytest.mark.parametrize("kind", [*MEMORY_TYPES, "insight", "x", "my-type_2"])
def test_an_explicit_type_is_used(kind: str) -> None:
    assert memory_type(f" {kind.upper()} ") == kind


@pytest.mark.parametrize("kind", ["", "9lives", "with space", "a" * 65, "é", "a\nb", "a;b"])
def test_an_invalid_type_is_refused(kind: str) -> None:
    assert memory_type(kind) is None


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (None, ()),
        ("", ()),
        ("alpha, beta", ("alpha", "beta")),
        ("a,,a, A", ("a", "A")),
        (["x", " y ", "z,w"], ("x", "y", "z", "w")),
        (("one",), ("one",)),
        ("two  words", ("two words",)),
    ],
)
def test_tags_are_a_string_or_an_array(tags: str | list[object] | None, expected: tuple[str, ...]) -> None:
    assert parse_tags(tags) == expected


@pytest.mark.parametrize("tags", [1, True, {"a": 1}, ["a", 1], [None]])
def test_other_tags_are_refused_by_name(tags: object) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse_tags(tags)  # type: ignore[arg-type]
    assert refusal.value.field == "tags"


def test_a_type_is_inferred_from_the_beginning_only() -> None:
    padding = "x " * (INFERENCE_CHARS // 2)
    assert infer_type("User prefers tea. " + padding) == "preference"
    assert infer_type(padding + "User prefers tea.") == "fact"
