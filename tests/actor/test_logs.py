"""The log file: whole lines, reopened after rotation, bounded, and without stored contents."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.schema import Config, LoggingConfig
from signet_actors.errors import InvalidRequest
from signet_actors.runtime.logging.configuration import DailyFile, configure_logging, log_path, set_level
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.supervision.upkeep import rotate_logs
from tests.support.bus_harness import REPOSITORY, child_environment

NOON_MS = 1_771_675_200_000  # 2026-02-21T12:00:00Z


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[ChildContext]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield ChildContext("writer", "writer", 3, "b", os.getppid(), str(tmp_path), str(tmp_path), Config())
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def written(boot: ChildContext) -> list[dict[str, Any]]:
    (path,) = (Path(boot.workspace) / ".daemon" / "logs").glob("*.log")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_log_line_has_time_actor_incarnation_and_trace(boot: ChildContext) -> None:
    log = configure_logging(boot)
    log.info("committed", rows=3, trace="trace-7")
    log.debug("not at this level")
    (line,) = written(boot)
    assert list(line)[:5] == ["timestamp", "level", "event", "actor", "incarnation"]
    assert (line["level"], line["event"], line["actor"], line["incarnation"]) == ("info", "committed", "writer", 3)
    assert (line["trace"], line["rows"]) == ("trace-7", 3)


def test_exceptions_are_logged_by_type_and_place_and_only_our_own_with_their_message(boot: ChildContext) -> None:
    log = configure_logging(boot)
    for error in (KeyError("what somebody stored"), InvalidRequest("limit must be an integer")):
        try:
            raise error
        except (KeyError, InvalidRequest):
            log.exception("failed")
    foreign, ours = written(boot)
    assert foreign["error"] == "KeyError"
    assert "somebody" not in json.dumps({**foreign, "stack": []})
    assert any("test_logs.py" in frame for frame in foreign["stack"])
    assert ours["error_detail"] == "limit must be an integer"


def test_library_messages_are_logged_in_the_same_form(boot: ChildContext) -> None:
    configure_logging(boot)
    logging.getLogger("uvicorn.error").error("cannot serve %s", "somebody's text")
    (line,) = written(boot)
    assert (line["level"], line["library"], line["event"]) == ("error", "uvicorn.error", "cannot serve %s")


def test_only_the_first_line_of_a_library_message_is_logged(boot: ChildContext) -> None:
    configure_logging(boot)
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: KeyError('what somebody stored')")
    (line,) = written(boot)
    assert line["event"] == "Task exception was never retrieved"
    assert "somebody" not in json.dumps(line)


def test_a_new_level_applies_to_existing_loggers(boot: ChildContext) -> None:
    log = configure_logging(boot).bind(part="x")
    set_level(LoggingConfig(level="debug"))
    log.debug("seen")
    set_level(LoggingConfig(level="error"))
    log.warning("unseen")
    log.error("seen too")
    set_level(LoggingConfig())
    assert [line["event"] for line in written(boot)] == ["seen", "seen too"]


def test_the_file_is_private(boot: ChildContext) -> None:
    configure_logging(boot).info("x")
    (path,) = (Path(boot.workspace) / ".daemon" / "logs").glob("*.log")
    assert path.stat().st_mode & 0o777 == 0o600


def test_after_a_rotation_lines_go_to_the_new_file(tmp_path: Path) -> None:
    file = DailyFile(tmp_path)
    file.write(b"before\n")
    (path,) = tmp_path.glob("*.log")
    path.rename(tmp_path / "daemon-2000-01-01.1.log")
    file._checked = float("-inf")  # a second has passed
    file.write(b"after\n")
    assert path.read_bytes() == b"after\n"
    assert (tmp_path / "daemon-2000-01-01.1.log").read_bytes() == b"before\n"
    assert file.lost_lines == 0
    file.close()


def test_an_unwritable_log_only_loses_lines(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    file = DailyFile(blocked)
    file.write(b"x\n")
    assert file.lost_lines == 1


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from signet_actors.runtime.logging.configuration import DailyFile\n"
        "file = DailyFile(Path(sys.argv[1]))\n"
        "for _ in range(300): file.write(sys.argv[2].encode() * 3000 + b'\\n')\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), letter], env=child_environment(), cwd=REPOSITORY)
        for letter in "ab"
    ]
    assert [process.wait(30) for process in processes] == [0, 0]
    lines = [line for path in tmp_path.glob("*.log") for line in path.read_text(encoding="ascii").splitlines()]
    assert sorted(lines) == ["a" * 3000] * 300 + ["b" * 3000] * 300


def make_log(directory: Path, name: str, size: int, age_days: float) -> Path:
    path = directory / name
    path.write_bytes(b"x" * size)
    at = NOON_MS / 1000 - age_days * 86_400
    os.utime(path, (at, at))
    return path


def test_a_full_file_is_renamed_and_numbered(tmp_path: Path) -> None:
    limits = LoggingConfig(max_file_bytes=65_536)
    current = log_path(tmp_path, NOON_MS)
    for number in (1, 2):
        make_log(tmp_path, current.name, 70_000, 0)
        rotate_logs(tmp_path, limits, NOON_MS)
        assert not current.exists()
        assert current.with_name(f"daemon-2026-02-21.{number}.log").exists()
    make_log(tmp_path, current.name, 100, 0)
    rotate_logs(tmp_path, limits, NOON_MS)
    assert current.exists()


def test_old_files_and_files_beyond_the_total_size_are_deleted(tmp_path: Path) -> None:
    limits = LoggingConfig(retention_days=7, max_total_bytes=1_048_576)
    ancient = make_log(tmp_path, "daemon-2026-01-01.log", 10, 51)
    older = make_log(tmp_path, "daemon-2026-02-19.log", 600_000, 2)
    newer = make_log(tmp_path, "daemon-2026-02-20.log", 600_000, 1)
    today = make_log(tmp_path, "daemon-2026-02-21.log", 1_000, 0)
    other = make_log(tmp_path, "notes.txt", 10, 51)
    rotate_logs(tmp_path, limits, NOON_MS)
    assert [path.exists() for path in (ancient, older, newer, today, other)] == [False, False, True, True, True]


class Unreadable:
    """An object of which nothing can be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no representation")

    __str__ = __repr__


class UnreadableError(OSError):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
ODD_VALUES = (
    ["a.py:1 f: x", "b.py:2 g: y"],
    Unreadable(),
    [Unreadable()],
    {Unreadable(): 1},
    CIRCLE,
    "\ud800 alone",
    b"\xff\x00",
    10**400,
    float("nan"),
    {1, 2},
)


@pytest.mark.parametrize("console", [False, True])
@pytest.mark.parametrize("key", ["stack", "exception", "value", "exc_info", "level", "timestamp"])
def test_no_value_makes_a_log_call_raise(
    boot: ChildContext, capfd: pytest.CaptureFixture[str], key: str, *, console: bool
) -> None:
    log = configure_logging(msgspec.structs.replace(boot, console=console))
    for value in ODD_VALUES:
        log.error("odd", **{key: value})
        log.exception("odd", **{key: value})
    told = [line for line in written(boot) if line["event"] in {"odd", "log_line_lost"}]
    assert len(told) == 2 * len(ODD_VALUES), "a line is missing"
    assert ("odd" in capfd.readouterr().err) == console


@pytest.mark.parametrize("console", [False, True])
def test_an_exception_is_logged_with_its_stack_also_to_the_terminal(
    boot: ChildContext, capfd: pytest.CaptureFixture[str], *, console: bool
) -> None:
    log = configure_logging(msgspec.structs.replace(boot, console=console))
    for error in (KeyError("k"), UnreadableError(5, "x")):
        try:
            raise error
        except (KeyError, OSError):
            log.exception("failed", trace="t")
    assert written(boot)[0]["error"] == "KeyError"
    assert len(written(boot)) == 2
    assert ("test_logs.py" in capfd.readouterr().err) == console


def test_wrong_arguments_of_a_log_call_do_not_raise(boot: ChildContext) -> None:
    log: Any = configure_logging(boot)
    log.info("%d notes", "three")
    log.info("named twice", **{"event": "again"})  # noqa: PIE804 - as a caller with a mapping would
    log.log(35, "a level without a name")
    log.info(Unreadable())
    log.info("the next line")
    assert written(boot)[-1]["event"] == "the next line"


def test_a_library_message_that_cannot_be_formatted_does_not_raise(boot: ChildContext) -> None:
    configure_logging(boot)
    logging.getLogger("uvicorn.error").error(Unreadable())
    logging.getLogger("uvicorn.error").log(35, "odd level")
    assert written(boot)[-1]["event"] == "odd level"


def test_a_missing_or_full_disk_only_loses_lines(boot: ChildContext, tmp_path: Path) -> None:
    logs = tmp_path / ".daemon" / "logs"
    logs.parent.mkdir()
    logs.write_text("not a directory")
    configure_logging(boot).error("nowhere to go", stack=["x"])

    full = DailyFile(Path("/dev/full"))
    full._reopen_if_moved = lambda: None  # type: ignore[method-assign]
    full._descriptor = os.open("/dev/full", os.O_WRONLY)
    full.write(b"x\n")
    assert full.lost_lines == 1
    full.close()


@pytest.mark.parametrize("terminal", ["closed", "without a reader", "that nobody reads"])
def test_a_blocked_terminal_does_not_stop_the_process(tmp_path: Path, terminal: str) -> None:
    """The exit code is the program's own: nothing is left in a buffer of the interpreter."""
    program = (
        "import os, sys\n"
        "from signet_actors.config.schema import Config\n"
        "from signet_actors.runtime.processes.child_context import ChildContext\n"
        "from signet_actors.runtime.logging.configuration import configure_logging\n"
        "from signet_actors.runtime.processes.terminal import open_standard_streams, write_line\n"
        "open_standard_streams()\n"
        f"context = ChildContext('w', 'w', 1, 'b', 1, {str(tmp_path)!r}, '/tmp', Config(), console=True)\n"
        "log = configure_logging(context)\n"
        "for number in range(3000):\n"
        "    log.error('line', number=number, stack=['x' * 100])\n"
        "    write_line('said')\n"
        "sys.exit(3)\n"
    )
    read_end, write_end = os.pipe()
    try:
        if terminal != "that nobody reads":
            os.close(read_end)
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env=child_environment(),
            cwd=REPOSITORY,
            stderr=write_end,
            preexec_fn=(lambda: os.close(2)) if terminal == "closed" else None,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write_end)
        if terminal == "that nobody reads":
            os.close(read_end)
    assert ended.returncode == 3
    (path,) = (tmp_path / ".daemon" / "logs").glob("*.log")
    assert len(path.read_text().splitlines()) == 3000


def test_a_log_with_a_hard_link_is_moved_aside_and_a_new_file_is_started(tmp_path: Path) -> None:
    directory = tmp_path / ".daemon" / "logs"
    directory.mkdir(parents=True)
    path = log_path(directory, time.time_ns() // 1_000_000)
    path.write_text("earlier\n")
    (tmp_path / "snapshot").hardlink_to(path)
    file = DailyFile(directory)
    file.write(b"later\n")
    file.close()
    assert (tmp_path / "snapshot").read_text() == "earlier\n"
    assert sorted(found.read_text() for found in directory.glob("daemon-*.log")) == ["earlier\n", "later\n"]
    assert file.lost_lines == 0


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_no_line_is_written_through_a_symbolic_link_or_fifo(tmp_path: Path, kind: str) -> None:
    directory = tmp_path / ".daemon" / "logs"
    directory.mkdir(parents=True)
    path = log_path(directory, time.time_ns() // 1_000_000)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not touched\n")
    path.symlink_to(elsewhere) if kind == "link" else os.mkfifo(path)
    file = DailyFile(directory)
    file.write(b"a line\n")
    file.close()
    assert (elsewhere.read_text(), file.lost_lines) == ("not touched\n", 1)
