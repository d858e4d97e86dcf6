"""Which FTS5 expressions are refused because they are too expensive.

Source: docs/compatibility.md "Recall"; docs/security.md A11.
"""

from __future__ import annotations

import pytest

from signet_actors.domain.fts_limits import check_fts_limits
from signet_actors.domain.query_words import words_of
from signet_actors.errors import InvalidRequest

MANY = [f"word{index}" for index in range(65)]


@pytest.mark.parametrize(
    "expression",
    [
        "vim OR emacs",
        " ".join(MANY[:64]),
        '"the dark mode of the editor" NOT light',
        " ".join(f"{letter}*" for letter in "abcdefgh"),
        "NEAR(one two three four five six seven eight, 20)",
        " OR ".join(f"NEAR({one} {two}, 10)" for one, two in zip(MANY[:20], MANY[20:40], strict=True)),
        " OR ".join(f"content : {word}" for word in MANY[:60]),
        " OR ".join(f"{{content cjk}} : {word}" for word in MANY[:60]),
        "near nothing (and or not) " + " OR ".join(MANY[:10]),
        "漢字 OR éclair",
        '"an open string',
        "",
    ],
)
def test_an_expression_of_ordinary_size_passes(expression: str) -> None:
    check_fts_limits(expression, words_of)


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        (" ".join(MANY), "64 words"),
        ('"' + " ".join(MANY) + '"', "64 words"),
        ("+".join(MANY), "64 words"),
        ("(" * 65 + ") OR (".join(MANY) + ")" * 65, "64 words"),
        ("content : (" + " OR ".join(MANY) + ")", "64 words"),
        (" OR ".join(f"{letter}*" for letter in "abcdefghi"), "8 prefixes"),
        (" ".join(f'"{letter}" *' for letter in "abcdefghi"), "8 prefixes"),
        (f"NEAR({' '.join(MANY[:9])}, 5)", "8 words in a NEAR group"),
        (f'NEAR ("{" ".join(MANY[:9])}" x)', "8 words in a NEAR group"),
        (f"a OR NEAR({' '.join(MANY[:9])}", "8 words in a NEAR group"),
        ("+".join(["a"] * 5), "4 times"),
        (" OR ".join(["a"] * 5), "4 times"),
        ('"a A" "a-a" a*', "4 times"),
        ('"say ""a"" a a a a"', "4 times"),
    ],
)
def test_an_unbounded_expression_is_refused_with_its_limit(expression: str, limit: str) -> None:
    with pytest.raises(InvalidRequest, match=limit) as refused:
        check_fts_limits(expression, words_of)
    assert refused.value.field == "q"
