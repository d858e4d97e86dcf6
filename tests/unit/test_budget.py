"""No room of the package grows without a decision: ``[tool.signet.budget]`` in pyproject.toml bounds its lines.

Raising a number there is an edit that its commit explains. A room that has become smaller gets the smaller number.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "signet_actors"
SLACK_LINES: Final = 200
"""A number that is larger than the room by more than this bounds nothing."""


def budget() -> dict[str, Any]:
    """Return the table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["signet"]["budget"]
    return table


def lines_by_room(package: Path) -> dict[str, int]:
    """Return the lines of code, comments and blanks of each directory of the package, and of each feature."""
    rooms: dict[str, int] = {}
    for path in package.rglob("*.py"):
        place = path.relative_to(package).parts
        room = "/".join(place[:2] if place[0] == "features" and len(place) > 2 else place[:1] if place[1:] else ["."])
        rooms[room] = rooms.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return rooms


def over_budget(package: Path, limits: dict[str, Any]) -> list[str]:
    """Return what exceeds its limit, or has none."""
    lines: dict[str, int] = limits["lines"]
    found = [
        f"{room}: {count} lines, {lines.get(room, 'no number')} in pyproject.toml"
        for room, count in sorted(lines_by_room(package).items())
        if count > lines.get(room, 0)
    ]
    modules = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(package.rglob("*.py"))}
    return found + [
        f"{path.relative_to(package)}: {count} lines, {limits['module']} for a module"
        for path, count in modules.items()
        if count > limits["module"]
    ]


def test_every_room_and_every_module_is_within_its_budget() -> None:
    limits = budget()
    assert over_budget(PACKAGE, limits) == [], "a new directory needs a number, a larger one a reason in the commit"
    rooms = lines_by_room(PACKAGE)
    assert set(limits["lines"]) == set(rooms), "a room that is gone needs no number"
    loose = {room: number for room, number in limits["lines"].items() if number - rooms[room] > SLACK_LINES}
    assert loose == {}, "these became smaller: lower their numbers"


@pytest.mark.parametrize(
    ("place", "lines", "told"),
    [
        ("searcher/legs/new_leg.py", 11, "searcher: 11 lines, 10 in pyproject.toml"),
        ("features/graph/api.py", 6, "features/graph: 6 lines, 5 in pyproject.toml"),
        ("telepathy/mind.py", 1, "telepathy: 1 lines, no number in pyproject.toml"),
        ("supervisor.py", 4, ".: 4 lines, 3 in pyproject.toml"),
        ("writer/actor.py", 21, "writer/actor.py: 21 lines, 20 for a module"),
    ],
)
def test_what_is_over_its_budget_is_named(tmp_path: Path, place: str, lines: int, told: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n" * lines)
    limits = {"module": 20, "lines": {"searcher": 10, "features/graph": 5, "writer": 30, ".": 3}}
    assert over_budget(tmp_path, limits) == [told]
