"""The command ``signet logs``: the right lines, in order, through rotation."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from signet_actors.runtime.logging.log_files import BLOCK_BYTES, LogFollower, log_files, read_backwards


def line(event: str, *, level: str = "info", actor: str = "writer", **more: Any) -> str:
    entry = {"timestamp": "2026-02-21T10:00:00.000Z", "level": level, "event": event, "actor": actor, **more}
    return json.dumps(entry) + "\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    logs = tmp_path / ".daemon" / "logs"
    logs.mkdir(parents=True)
    return logs


def write(file: Path, text: str, age: int = 0) -> None:
    with file.open("a") as stream:
        stream.write(text)
    os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))


def signet(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(directory.parent.parent), "logs", *arguments])


def test_the_last_lines_come_in_order_across_files(directory: Path) -> None:
    write(directory / "daemon-2026-02-20.log", line("one") + line("two"), age=10)
    write(directory / "daemon-2026-02-21.log", line("three", trace="t1", rows=4) + line("four"))
    result = signet(directory, "-n", "3")
    assert [shown.split()[3] for shown in result.stdout.splitlines()] == ["two", "three", "four"]
    assert "trace=t1 rows=4" in result.stdout


def test_a_filter_that_no_line_passes_says_so(directory: Path) -> None:
    write(directory / "daemon-2026-02-20.log", line("one"))
    result = signet(directory, "--actor", "nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"No line of the log in {directory} matches.\n"
    assert signet(directory, "-n", "0").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "events"),
    [
        (("--level", "warning"), ["slow", "broken", "ended"]),
        (("--level", "error"), ["broken", "ended"]),
        (("--actor", "retention", "--level", "error"), ["ended"]),
        (("--actor", "searcher"), ["slow", "broken"]),
        (("--actor", "searcher-2"), ["broken"]),
        (("--trace", "t9"), ["broken"]),
        (("--actor", "search"), []),
        (("-n", "0"), []),
    ],
)
def test_filters_select_the_requested_lines(directory: Path, arguments: tuple[str, ...], events: list[str]) -> None:
    write(
        directory / "daemon-2026-02-21.log",
        line("fine")
        + line("slow", level="warning", actor="searcher-1")
        + line("broken", level="error", actor="searcher-2", trace="t9")
        + line("ended", level="error", actor="supervisor", child="retention-1"),
    )
    assert [shown.split()[3] for shown in signet(directory, *arguments).stdout.splitlines()] == events


def test_json_prints_the_lines_unchanged(directory: Path) -> None:
    write(directory / "daemon-2026-02-21.log", line("one"))
    assert signet(directory, "--json").stdout == line("one")


def test_a_line_that_is_not_json_is_shown_escaped(directory: Path) -> None:
    write(directory / "daemon-2026-02-21.log", "Fatal Python error: \x1b[31mSegmentation fault\n")
    assert signet(directory).stdout == "Fatal Python error: \\u001b[31mSegmentation fault\n"


def test_a_missing_log_is_reported(directory: Path) -> None:
    result = signet(directory)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no log" in result.stderr


def test_lines_longer_than_a_block_are_read_completely_from_the_end(directory: Path) -> None:
    texts = ["a" * (BLOCK_BYTES + 7), "b", "c" * (3 * BLOCK_BYTES), "d" * BLOCK_BYTES]
    (directory / "daemon-2026-02-21.log").write_text("".join(f"{text}\n" for text in texts))
    found = [found.decode() for found in read_backwards(log_files(directory), {}) if found]
    assert found == texts[::-1]


def test_following_sees_each_line_once_through_a_rename_and_a_new_file(directory: Path) -> None:
    current = directory / "daemon-2026-02-21.log"
    write(current, line("before"))
    follower = LogFollower(directory)
    assert list(follower.new_lines()) == []

    write(current, line("first") + '{"event": "half')
    assert [json.loads(found)["event"] for found in follower.new_lines()] == ["first"]

    write(current, ' a line"}\n')
    current.rename(directory / "daemon-2026-02-21.1.log")
    write(current, line("after"), age=-5)
    assert [json.loads(found)["event"] for found in follower.new_lines()] == ["half a line", "after"]
    assert list(follower.new_lines()) == []


def test_a_file_that_is_emptied_in_place_is_followed_from_its_start(directory: Path) -> None:
    current = directory / "daemon-2026-02-21.log"
    write(current, line("old") * 3)
    follower = LogFollower(directory)
    current.write_text(line("new"))
    assert [json.loads(found)["event"] for found in follower.new_lines()] == ["new"]


def test_a_follower_leaves_out_a_line_that_is_very_long(directory: Path) -> None:
    file = directory / "daemon-2026-02-20.log"
    write(file, line("one") + "x" * (2 * BLOCK_BYTES))
    follower = LogFollower(directory)
    write(file, "the end of it\n" + line("two"))
    (two,) = list(follower.new_lines())
    assert b'"two"' in two
    write(file, "y" * 1000 + "\n" + line("three"))
    assert list(follower.new_lines(600)) == []
    (three,) = [found for _ in range(4) for found in follower.new_lines(600)]
    assert b'"three"' in three


def test_a_line_of_many_blocks_is_read_backwards_in_linear_time(directory: Path) -> None:
    file = directory / "daemon-2026-02-20.log"
    write(file, line("one") + "x" * (400 * BLOCK_BYTES) + "\n")
    begun = time.monotonic()
    _, long, one, *_ = read_backwards([file], {})
    assert (len(long), b'"one"' in one) == (400 * BLOCK_BYTES, True)
    assert time.monotonic() - begun < 10, "this bounds a hang"
