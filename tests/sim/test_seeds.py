"""The command line of the simulations tells what fails, how little is needed for it, and how to see it again."""

from __future__ import annotations

import pytest

from tests.sim.faults import Fault
from tests.sim.seeds import Run, main

FAULTS = [Fault(float(number), "kill", f"child-{number}") for number in range(5)]


def scripted(seed: int, faults: list[Fault] | None = None) -> Run:
    """Seed 3 fails by its third fault, seed 5 breaks the simulation, all others are well."""
    if seed == 5:
        raise RuntimeError("the simulation itself is broken")
    run = Run(seed, FAULTS if faults is None else faults, trace=f"{seed} {faults}", virtual_s=1.0)
    run.seen["played"] = 1
    if seed == 3 and FAULTS[2] in run.faults:
        run.trace = "of seed 3"
        run.wrong.append("child-2 never came back")
    return run


def played(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["seeds", *arguments])
    return main(scripted, "tests.sim.scripted"), capsys.readouterr().out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_failing_seeds_are_reported_with_their_smallest_faults_and_the_others_run(
    jobs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = played(["--seeds", "8", "--jobs", jobs], monkeypatch, capsys)
    assert code == 1
    assert "child-2 never came back" in told
    assert [line.strip() for line in told.splitlines() if "Fault(" in line] == [str(FAULTS[2])]
    assert "replay: python -m tests.sim.scripted --seed 3\n" in told
    assert "the simulation itself is broken" in told
    assert "replay: python -m tests.sim.scripted --seed 5\n" in told
    assert "2 of 8 seeds failed: 7 virtual seconds" in told


def test_seeds_without_violations_exit_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = played(["--seeds", "2", "--first", "6", "--jobs", "1"], monkeypatch, capsys)
    assert (code, told[:32]) == (0, "2 seeds kept every promise: 2 vi")
