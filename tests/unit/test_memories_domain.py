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
        ("critical:no blank", ("no blank", True, ())),
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
        ("[api-v2, web.client, ci_cd]: text", ("text", False, ("api-v2", "web.client", "ci_cd"))),
        ("[gr\u00f6\u00dfe,\u043a\u044d\u0448]: text", ("text", False, ("gr\u00f6\u00dfe", "\u043a\u044d\u0448"))),
        ("[Maybe,January,Octopus2]: text", ("text", False, ("maybe", "january", "octopus2"))),
        ("[Debugging]: attach to the worker", ("attach to the worker", False, ("debugging",))),
        (
            "[sso]: https://login.example.org is the only way in",
            ("https://login.example.org is the only way in", False, ("sso",)),
        ),
        ("[ops]: see /etc/hosts first", ("see /etc/hosts first", False, ("ops",))),
        ("[ops]: note: the pager is on the desk", ("note: the pager is on the desk", False, ("ops",))),
        ("critical: [ERROR]: means a page", ("[ERROR]: means a page", True, ())),
    ],
)
def test_prefixes_are_removed_and_applied(text: str, expected: tuple[str, bool, tuple[str, ...]]) -> None:
    assert parse_prefixes(text) == expected


NO_PREFIXES = """
[ERROR]: connection refused by upstream
[error]: connection refused by upstream
[Warn]: disk is almost full
[WARNING ]: disk is almost full
[info]: listening on 8080
[DEBUG]: retry 3
[E]: no such file
[CRITICAL]: database down
[FEHLER]: Verbindung abgelehnt
[AVERTISSEMENT]: disque presque plein
[nginx,error]: upstream timed out
[PASS]: test_login
[1]: https://example.org/spec
[0]: first element of the list
[^1]: a footnote
[2024-05-01 10:00:00]: Server started
[2024-05-01T10:00:00Z]: Server started
[01.05.2024]: Server gestartet
[10:00:00]: Server started
[May-01]: Server started
[28/Nov/2026:10:00:00 +0000]: GET /
[a-z]: lower-case letters
[a-z,0-9]: letters and digits
[//]: # (comment)
[comment]: # (this is not shown)
[docs]: https://example.org/spec
[docs]: https://example.org/spec "The specification"
[docs]: <https://example.org/a b>
[docs]: ./docs/index.html
[docs]: #section
[mail]: mailto:ada@example.org
[my tag]: text
[x y,z]: text
[pid=17]: started
[-]: dash
[ ]: an empty box
CRITICAL: database down at 03:12, recovered by itself
Critical: the review of the book was harsh
CRITICAL - the disk failed
"""


@pytest.mark.parametrize("text", NO_PREFIXES.strip().splitlines())
def test_log_lines_and_markdown_keep_their_beginning(text: str) -> None:
    assert parse_prefixes(text) == (text, False, ())


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
        # A part of a path, an address or a file name is no word.
        ("look in /x/bugs/notes.txt", "fact"),
        ("look in C:\\bugs\\notes.txt", "fact"),
        ("it is at https://bugs.example.org/show", "fact"),
        ("read issues.md first", "fact"),
        ("see github.com/acme/shop/issues/12", "fact"),
        ("the table is called open_issues", "fact"),
        ("config/always/on.yaml is read", "fact"),
        ("the bug is in /x/parser.py", "issue"),
        ("two issues: slow and wrong", "issue"),
        ("a bug.", "issue"),
        # What a thing wants, or the reader may want, is nobody's preference.
        ("the build wants Node 20", "fact"),
        ("the new parser wants a semicolon", "fact"),
        ("it likes to crash at night", "fact"),
        ("this server always wants a restart", "rule"),
        ("run make if you want the docs", "fact"),
        ("the user wants short answers", "preference"),
        ("our customer wants invoices as PDF", "preference"),
        ("the product manager wants weekly notes", "preference"),
        ("I want tabs", "preference"),
        ("Bob likes short reviews", "preference"),
        ("we want fewer meetings", "preference"),
        # An order in form is a rule in other languages, too.
        ("Do not deploy on Fridays", "rule"),
        ("Nie direkt auf main pushen", "rule"),
        ("Ne jamais pousser sur main", "rule"),
        ("Nunca hagas push a main", "rule"),
        ("Der Server antwortet nie", "fact"),
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


OF_OTHER_LANGUAGES = {
    "preference": [
        *("Antworte mir immer auf Deutsch, Kommentare bitte auf Englisch", "Ich bevorzuge kurze Antworten"),
        *("Ich mag keine langen Erklärungen", "Bitte antworte immer auf Deutsch", "Der Nutzer mag Tabs"),
        *("Wir nehmen lieber pnpm", "Am liebsten arbeite ich morgens", "Je préfère les petits commits"),
        *(
            "Prefiero respuestas cortas",
            "I like small commits",
            "I don't like emoji",
            "Please answer in German",
            "Antworten bitte auf Deutsch",
        ),
    ],
    "decision": [
        *("Wir haben uns für htmx entschieden, weil es klein ist", "Entscheidung: htmx statt React"),
        *("Das Team hat gestern beschlossen, freitags nicht zu deployen", "Nous avons décidé d'utiliser Postgres"),
        *("Hemos decidido usar Redis", "Décision : on garde Angular", "Es wurde entschieden, dass wir UTC speichern"),
    ],
    "fact": [
        *("Der Server antwortet auf Port 80", "Das lehnen wir entschieden ab", "Die Entscheidung steht noch aus"),
        *("Der Mag. Huber kommt", "Der Dienst antwortet in 20 ms", "Staging läuft auf Port 8080"),
        *(
            "Tools like Ansible",
            "I looked at it",
            "The API replies in JSON",
            "La décision n'est pas prise",
            "La base está en el puerto 5433",
        ),
    ],
}


def test_preferences_and_decisions_are_recognised_in_other_languages() -> None:
    for kind, texts in OF_OTHER_LANGUAGES.items():
        assert [text for text in texts if infer_type(text) != kind] == []
