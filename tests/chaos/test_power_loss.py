"""After a power failure at any moment the database opens, and contains whole transactions and every acknowledged write.

``SIGNET_CRASH_IMAGES`` crash images are checked (2,500 unless set; 200,000 in a full run), with seeds from
``SIGNET_CRASH_SEED`` on.

Source: docs/reliability.md R2, R17.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.seeds import FULL
from tests.support.power_cut import DATABASE, Survivors, Violation, fast_directory, record, violations

IMAGES = int(os.environ.get("SIGNET_CRASH_IMAGES", "200000" if FULL else "2500"))
FIRST_SEED = int(os.environ.get("SIGNET_CRASH_SEED", "1"))


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with fast_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def base(directory: Path) -> Path:
    """Return a cleanly closed database with memories."""
    record(0, directory / "base", turns=4)
    return directory / "base" / "memory" / DATABASE


@pytest.fixture
def survivors(directory: Path, tmp_path: Path) -> Survivors:
    images = directory / tmp_path.name
    images.mkdir()
    return Survivors(images)


def report(found: list[Violation], test: str) -> str:
    seed = found[0].seed
    return (
        f"{len(found)} crash images are not what they must be, first: {found[0]}\n"
        f"replay: SIGNET_CRASH_SEED={seed} SIGNET_CRASH_IMAGES=1"
        f" python -m pytest tests/chaos/test_power_loss.py -k {test}"
    )


def test_a_power_cut_while_the_first_database_is_created_leaves_none_or_a_complete_one(survivors: Survivors) -> None:
    found = list(violations(FIRST_SEED, survivors, turns=0))
    assert not found, report(found, "first_database")
    assert survivors.count > 1000


@pytest.mark.slow
@pytest.mark.timeout(60 + IMAGES // 20)
def test_no_power_cut_loses_acknowledged_writes_or_leaves_a_partial_transaction(
    survivors: Survivors, base: Path
) -> None:
    seed = FIRST_SEED
    while survivors.count < IMAGES:
        found = list(violations(seed, survivors, base=base))
        assert not found, report(found, "partial_transaction")
        seed += 1
    print(f"{survivors.count} crash images of seeds {FIRST_SEED} to {seed - 1}, 0 violations")
