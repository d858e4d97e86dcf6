"""The comparison of two revisions: its arithmetic and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare import HERE, Measured, RevisionUnusable, checkout, commit_of, compared, range_of, runs_from
from bench.daemon import REPOSITORY


def rounds(figure: str, *values: float) -> list[Measured]:
    """A round for each value."""
    return [Measured({figure: (value, "ms")}) for value in values]


def test_a_range_has_the_median_and_both_ends() -> None:
    found = range_of([9.0, 1.0, 2.0])
    assert (found.median, found.low, found.high) == (2, 1, 9)
    assert range_of([1.0, 3.0]).median == 2


def test_the_ratio_is_that_of_the_medians() -> None:
    (line,) = compared(rounds("p50", 4.0, 2.0, 100.0), rounds("p50", 2.0, 1.0, 3.0))
    assert line.ratio == 0.5
    assert (line.a.low, line.a.high, line.b.low, line.b.high) == (2, 100, 1, 3)
    assert line.unit == "ms"


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [((1.0, 2.0), (2.1, 3.0), True), ((2.1, 3.0), (1.0, 2.0), True), ((1.0, 2.0), (2.0, 3.0), False)],
)
def test_figures_differ_if_their_ranges_do_not_overlap(a: tuple[float, ...], b: tuple[float, ...], apart: bool) -> None:
    (line,) = compared(rounds("p50", *a), rounds("p50", *b))
    assert line.apart is apart


def test_a_ratio_of_zero_is_not_computed() -> None:
    (line,) = compared(rounds("refused", 0.0, 0.0), rounds("refused", 3.0, 3.0))
    assert line.ratio is None
    assert line.apart


def test_a_figure_missing_in_one_round_is_omitted() -> None:
    a = [Measured({"p50": (1.0, "ms"), "import": (5.0, "/s")}), Measured({"p50": (1.0, "ms")})]
    b = [Measured({"p50": (1.0, "ms"), "import": (5.0, "/s")})] * 2
    assert [line.figure for line in compared(a, b)] == ["p50"]


def test_figures_keep_the_order_of_the_first_round() -> None:
    measured = [Measured({"z": (1.0, ""), "a": (2.0, "")})]
    assert [line.figure for line in compared(measured, measured)] == ["z", "a"]


def test_a_point_means_this_checkout_and_is_not_removed() -> None:
    assert commit_of(HERE) == HERE
    with checkout(HERE) as tree:
        assert tree == REPOSITORY
    assert (REPOSITORY / "supervisor.py").exists()


def test_a_revision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RevisionUnusable, match="rev-parse"):
        commit_of("no-such-revision")


def test_a_tree_whose_own_code_is_not_imported_is_refused(tmp_path: Path) -> None:
    runs_from(REPOSITORY)
    with pytest.raises(RevisionUnusable, match="not what would run"):
        runs_from(tmp_path)
