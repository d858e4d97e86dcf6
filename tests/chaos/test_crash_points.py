"""A kill, a stop, a failure or a delay at every sync point of the code, under traffic.

Each run fires every point with ``kill``. The other actions rotate with the seed (``SIGNET_CHAOS_SEED``, else the
commit's); ``SIGNET_CHAOS_FULL=1``, as in ``make chaos``, runs the full product.

Source: docs/reliability.md R1, R25, "The writer's loop" and "Sync points".
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from signet_actors.runtime import sync_points
from signet_actors.store.sqlite.connect import open_reader
from tests.chaos.crash_points import (
    ACTIONS,
    BACKUP_POINTS,
    CONFIG,
    GROUPS,
    START_POINTS,
    STOP_POINTS,
    SUPERVISOR_POINTS,
    environment,
    fired,
    run_group,
    run_supervisor,
    settle,
    stop_soundly,
)
from tests.chaos.seeds import FULL, SEED, share
from tests.chaos.test_pipeline_crashes import CRASHES as PIPELINE_POINTS
from tests.chaos.traffic import traffic_on
from tests.store.test_backup import POINTS as RESTORE_POINTS
from tests.support.bus_harness import REPOSITORY, child_environment
from tests.support.live_daemon import live_daemon
from tests.support.store_room import StoreRoom
from tests.system import test_session_summaries_daemon as summaries

SUMMARY_POINTS = (*summaries.KILLED_AT, summaries.PART_SUMMARIZED, summaries.NOTE_DELETED)
CASES = [(name, "kill") for name in GROUPS] + share([(name, other) for name in GROUPS for other in ACTIONS[1:]], 1)


@pytest.mark.system
@pytest.mark.parametrize(("name", "action"), CASES)
def test_no_acknowledged_write_is_lost_by_a_fault_at_any_point_of_an_actor(name: str, action: str) -> None:
    book = run_group(GROUPS[name], action, seed=SEED)
    assert book.wrong == []
    assert book.acknowledged > 0


@pytest.mark.system
@pytest.mark.parametrize("action", ACTIONS if FULL else ("kill",))
def test_no_acknowledged_write_is_lost_by_a_fault_at_any_point_of_the_supervisor(action: str) -> None:
    assert run_supervisor(action, seed=SEED).wrong == []


@pytest.mark.system
@pytest.mark.parametrize("action", ACTIONS if FULL else ("kill",))
def test_a_fault_in_the_first_migration_leaves_the_whole_schema_or_none(action: str) -> None:
    argument = {"stop": "stop:0", "raise": "raise:EIO", "sleep": "sleep:200"}.get(action, action)
    config = f"{CONFIG}  startTimeoutMs: 3000\n" if action == "stop" else CONFIG
    with live_daemon(config=config, started=False) as daemon:
        daemon.start(**environment(daemon, f"writer.mid_migration={argument}@1/1"))
        assert fired(daemon) == ["writer.mid_migration"]
        with traffic_on(daemon, seed=SEED) as traffic:
            assert settle(daemon, traffic).wrong == []
        stop_soundly(daemon)


@pytest.mark.system
@pytest.mark.parametrize("action", ["kill", *share(ACTIONS[1:], 1)])
def test_a_fault_in_the_last_checkpoint_loses_nothing(action: str) -> None:
    argument = {"stop": "stop:0", "raise": "raise:EIO", "sleep": "sleep:200"}.get(action, action)
    with live_daemon(config=CONFIG, started=False) as daemon:
        daemon.start(**environment(daemon, f"writer.mid_checkpoint={argument}@2"))  # the first is at the start
        with traffic_on(daemon, seed=SEED) as traffic:
            traffic.stop()
            assert daemon.stop() == 0
            # A searcher that reads may make the writer repeat the one at the start; the fault is then in both.
            assert set(fired(daemon)) == {"writer.mid_checkpoint"}
            assert traffic.check().wrong == []
        daemon.start()
        stop_soundly(daemon)


@pytest.mark.parametrize("point", BACKUP_POINTS)
@pytest.mark.parametrize("action", ["kill", "raise:EIO"])
def test_a_fault_in_a_backup_leaves_no_file_that_looks_like_a_backup(point: str, action: str, tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("kept")
    room.close()
    target = tmp_path / "copy.db"
    script = (
        "import sys; from pathlib import Path; from signet_actors.store.sqlite.connect import open_writer;"
        " from signet_actors.store.sqlite.online_backup import backup;"
        " from signet_actors.runtime.clock import SystemClock;"
        " backup(open_writer(Path(sys.argv[1]), busy=lambda calls: False), Path(sys.argv[2]), SystemClock())"
    )
    command = [sys.executable, "-c", script, str(room.path), str(target)]
    told = tmp_path / "fired"
    faulty = child_environment(SIGNET_SYNC_POINTS=f"{point}={action}", SIGNET_SYNC_POINTS_FIRED=str(told))
    assert subprocess.run(command, env=faulty, capture_output=True, check=False).returncode != 0
    assert told.read_text(encoding="ascii").startswith(f"{point} ")
    assert not target.exists()
    subprocess.run(command, env=child_environment(), check=True)
    reader = open_reader(target)
    assert reader.execute("SELECT content FROM memories").get == "kept"
    reader.close()


def test_every_sync_point_is_tested_here() -> None:
    met = [point for group in GROUPS.values() for point in group.points]
    met += {point for point, *_ in RESTORE_POINTS}
    met += [point for point in (*PIPELINE_POINTS, *SUMMARY_POINTS) if point not in met]
    assert sorted([*met, *SUPERVISOR_POINTS, *START_POINTS, *STOP_POINTS, *BACKUP_POINTS]) == sorted(sync_points.NAMES)


def test_the_table_of_sync_points_equals_those_in_the_code() -> None:
    patterns = [pattern for path in (REPOSITORY / "signet_actors").rglob("*.py") for pattern in points_in(path)]
    for pattern in patterns:
        assert any(re.fullmatch(pattern, name) for name in sync_points.NAMES), f"{pattern} is not in the table"
    for name in sync_points.NAMES:
        assert any(re.fullmatch(pattern, name) for pattern in patterns), f"no code has {name}"


def points_in(path: Path) -> list[str]:
    """Return the arguments of ``sync_point`` calls in this file and the values of ``..._point`` attributes, as
    patterns.
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Name(id="sync_point"), args=[argument]):
                value = argument
                if isinstance(argument, ast.Attribute):
                    assert argument.attr.endswith("_point"), f"{path}: the name of a point must be seen in the code"
                    continue
            case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=assigned) if attribute.endswith("_point"):
                value = assigned
        if isinstance(value, ast.Constant):
            found.append(re.escape(str(value.value)))
        elif isinstance(value, ast.JoinedStr):
            parts = [re.escape(part.value) if isinstance(part, ast.Constant) else r"[a-z]+" for part in value.values]
            found.append("".join(str(part) for part in parts))
        else:
            assert value is None, f"{path}: the name of a point must be seen in the code"
    return found


def test_an_unknown_sync_point_is_refused_at_start(tmp_path: Path) -> None:
    environ = {**os.environ, "SIGNET_WORKSPACE": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-m", "supervisor"],
        env={**environ, "SIGNET_SYNC_POINTS": "writer.befor_commit=kill"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "unknown sync point 'writer.befor_commit'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["writer.mid_batch=explode", "writer.mid_batch=kill@often", "writer.mid_batch"])
def test_a_malformed_sync_point_action_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        sync_points.arm(text)


def test_a_sync_point_fires_on_the_given_hit_of_the_given_incarnation() -> None:
    sync_points.arm("writer.mid_batch=raise:EIO@2/3")
    try:
        sync_points.sync_point("writer.mid_batch")
        sync_points.sync_point("writer.mid_batch")
        sync_points.begin_incarnation(3)
        sync_points.sync_point("writer.mid_batch")
        with pytest.raises(OSError, match=r"writer\.mid_batch"):
            sync_points.sync_point("writer.mid_batch")
        sync_points.sync_point("writer.mid_batch")
    finally:
        sync_points.begin_incarnation(1)
        sync_points.arm("")
