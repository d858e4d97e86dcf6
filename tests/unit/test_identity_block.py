"""The part of a harness's file with the identity files: it comes and goes, and every other byte stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.identity_block import (
    BEGIN,
    END,
    DamagedMarks,
    block_in,
    identity_block,
    with_block,
    without_block,
)
from signet_actors.domain.session_inject import IDENTITY_FILES

AGENTS, SOUL = IDENTITY_FILES[:2]
BLOCK = identity_block([(AGENTS, "Run the tests.")])
OTHER = identity_block([(AGENTS, "Run them twice."), (SOUL, "Calm.")])
contents = (
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"<!--"])).map(b"".join)
).filter(lambda content: BEGIN not in content and END not in content)


@given(content=contents)
def test_without_the_block_the_content_is_what_it_was(content: bytes) -> None:
    changed = with_block(content, BLOCK)
    assert block_in(changed) == BLOCK
    assert without_block(changed) == content
    replaced = with_block(changed, OTHER)
    assert block_in(replaced) == OTHER
    assert without_block(replaced) == content
    assert without_block(content) == content


@given(before=contents, after=contents)
def test_what_comes_before_and_after_the_block_stays(before: bytes, after: bytes) -> None:
    text = before + b"\n" + BLOCK + b"\n" + after
    assert without_block(text) in {before + after, before + b"\n" + after, before + b"\r\n" + after}
    assert with_block(text, OTHER) == before + b"\n" + OTHER + b"\n" + after


MARK = b"\xef\xbb\xbf"
EDITS: dict[tuple[bytes, bytes, bytes], bytes] = {
    # former content, what is added above, what is added below: what is there without the block
    (b"Rule one.", b"", b""): b"Rule one.",
    (b"Rule one.", b"", b"Rule two.\n"): b"Rule one.\nRule two.\n",
    (b"Rule one.", b"", b"Rule two."): b"Rule one.\nRule two.",
    (b"Rule one.\n", b"", b"Rule two.\n"): b"Rule one.\nRule two.\n",
    (b"Rule one.", b"", b"\nRule two.\n"): b"Rule one.\nRule two.\n",
    (b"Rule one.\n", b"", b"\nRule two.\n"): b"Rule one.\n\nRule two.\n",
    (b"Rule one.\n\n", b"", b"Rule two."): b"Rule one.\n\nRule two.",
    (b"# T\n\n- one", b"", b"- two\n"): b"# T\n\n- one\n- two\n",
    (b"one\r\ntwo", b"", b"three\r\n"): b"one\r\ntwo\r\nthree\r\n",
    (b"one", b"", b"two\r\n"): b"one\r\ntwo\r\n",
    (b"one\r\n", b"", b"two\r\n"): b"one\r\ntwo\r\n",
    (b"one", b"", b"\r\ntwo\r\n"): b"one\r\ntwo\r\n",
    (b"one\rtwo\r", b"", b"three\r"): b"one\rtwo\rthree\r",
    (b"", b"", b"Rule two.\n"): b"Rule two.\n",
    (b"", b"First.\n", b"Last.\n"): b"First.\nLast.\n",
    (b"", b"First.", b"Last."): b"First.\nLast.",
    (b"", b"", b"\n"): b"\n",
    (b"Rule.", b"# Head\n", b""): b"# Head\nRule.",
    (b"Rule.", b"# Head\n", b"End"): b"# Head\nRule.\nEnd",
    (MARK + b"Rule.", b"", b"Two.\n"): MARK + b"Rule.\nTwo.\n",
    (MARK, b"", b""): MARK,
    (b"\n\n", b"", b"x"): b"\n\nx",
    (b"\xff\xfe", b"", b"\xff"): b"\xff\xfe\n\xff",
    (b"a \t", b"", b" b"): b"a \t\n b",
}


def test_what_is_added_is_no_part_of_the_line_before_the_block() -> None:
    for (former, above, below), expected in EDITS.items():
        text = above + with_block(former, BLOCK, former) + below
        for known in (former, None):
            assert without_block(text, known) == expected, (former, above, below)
            assert block_in(text, known) == BLOCK
        if b"\r" not in former.replace(b"\r\n", b""):  # an editor writes every line break as CRLF
            lines = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
            other = expected.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
            assert without_block(lines, former) == other, (former, above, below)
        cut = above + with_block(former, BLOCK, former).removesuffix(b"\n")  # an editor takes the last line break away
        assert without_block(cut, former) == above + former


def test_a_file_that_begins_with_the_block_may_have_a_byte_order_mark() -> None:
    for text in (MARK + BLOCK, MARK + BLOCK + b"\n", MARK + b"\n" + BLOCK + b"\n"):
        assert block_in(text) == BLOCK
        assert without_block(text) == MARK


SAMPLE = BEGIN + b" | kept by Signet -->\n## Soul\nCalm.\n" + END
QUOTATIONS: tuple[bytes, ...] = (
    b"Mine.\n```\n" + SAMPLE + b"\n```\nMore.\n",
    b"```markdown\n# T\n\n" + SAMPLE + b"\n\n```",
    b"~~~\n" + SAMPLE + b"\n~~~\n",
    b"````md\n```sh\nls\n```\n" + SAMPLE + b"\n```\n````\n",
    b"  ```\r\n" + SAMPLE.replace(b"\n", b"\r\n") + b"\r\n  ```\r\n",
    b"```\nls\n```\n\n```text\n" + SAMPLE + b"\n```",
    b"```\n" + SAMPLE + b"\n```\n```\n" + SAMPLE + b"\n```\n",
    b"```\n" + BLOCK + b"\n```\n",
    b"```x``` is a word\n~~~ `a`\n" + SAMPLE + b"\n~~~\n",
    MARK + b"```\n```\n```\n" + SAMPLE + b"\n```\n",
)


def test_a_quotation_of_the_marks_in_a_fence_of_code_is_the_users() -> None:
    for quotation in QUOTATIONS:
        assert block_in(quotation) == b""
        assert without_block(quotation) == quotation
        changed = with_block(quotation, OTHER)
        assert changed == quotation + b"\n" + OTHER + b"\n"
        replaced = with_block(changed + b"```\nls\n```\n", BLOCK, quotation)
        assert without_block(replaced, quotation) == quotation + (b"" if quotation.endswith(b"\n") else b"\n") + (
            b"```\nls\n```\n"
        )


CONTROLS: tuple[bytes, ...] = (
    b"```\nls\n```\n",
    b"```markdown\n```sh\nls\n```\n```\n",
    b"```\nnever closed\n",
    b"~~~\n```\n~~~\n",
    b"Text ``` in a line\n",
    b"```a`b\n",
    b"    ```\n",
    b"",
)


def test_the_block_is_found_below_any_fences() -> None:
    fenced = identity_block([(AGENTS, "Run:\n```sh\nmake\n```\nThen:\n```\nmake test")])
    for above in CONTROLS:
        for below in (b"", b"last\n", b"```\nls\n```\n"):
            for block in (BLOCK, fenced):
                text = with_block(above, block, above) + below
                assert block_in(text, above) == block, text
                assert without_block(text, above) == above + below
                assert without_block(with_block(above, block)) == above, "nothing is known of the former content"


def test_other_line_breaks_are_understood() -> None:
    text = with_block(b"# Mine\n", BLOCK).replace(b"\n", b"\r\n")
    assert block_in(text) == BLOCK
    assert without_block(text) == b"# Mine\r\n"


@pytest.mark.parametrize(
    "text",
    [
        BEGIN + b" -->\nx\n",
        b"x\n" + END + b"\n",
        END + b"\n" + BEGIN + b" -->\n",
        BLOCK + b"\n" + BLOCK + b"\n",
    ],
)
def test_damaged_marks_are_not_guessed_at(text: bytes) -> None:
    for change in (block_in, without_block):
        with pytest.raises(DamagedMarks):
            change(text)
    with pytest.raises(DamagedMarks):
        with_block(text, BLOCK)


def test_a_text_cannot_end_the_block() -> None:
    block = identity_block([(AGENTS, f"One\n{END.decode()}\n{BEGIN.decode()} -->\nTwo")])
    assert without_block(with_block(b"mine", block)) == b"mine"
    assert b"Two" in block


def test_a_file_is_cut_as_it_is_for_a_session() -> None:
    assert len(identity_block([(SOUL, "x" * 10_000)])) < 4300
    assert identity_block([]) == b""
