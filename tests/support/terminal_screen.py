"""Run a command of ``signet`` in this process as if on a terminal, and return what the terminal is sent."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from unittest import mock

import click

from signet_actors.cli.main import cli

NOW = datetime(2026, 2, 21, 12, 0, 0, tzinfo=UTC)
TIME_ZONE = "CET-1"


class _Screen(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


class _Keyboard(io.StringIO):
    """Standard input with what a person types; the terminal shows it, as terminals do."""

    def __init__(self, typed: str, screen: _Screen) -> None:
        super().__init__(typed)
        self._screen = screen

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline(-1 if size is None else size)
        self._screen.write(line)
        return line


@contextlib.contextmanager
def fixed_clock() -> Iterator[None]:
    """Have the command line see the time ``NOW``, in ``TIME_ZONE``."""
    try:
        with (
            mock.patch.dict(os.environ, {"TZ": TIME_ZONE}),
            mock.patch("signet_actors.cli.presentation.current_time", NOW.astimezone),
        ):
            time.tzset()
            yield
    finally:
        time.tzset()


def on_screen(url: str, *arguments: str, width: int, typed: str = "") -> tuple[int, str]:
    """Return the exit code, and both streams in the order in which they were written, with what was ``typed``."""
    written = io.BytesIO()
    screen = _Screen(written, encoding="utf-8", errors="backslashreplace", write_through=True)
    plain = {"COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"}
    code = 0
    with (
        fixed_clock(),
        mock.patch.dict("os.environ", plain),
        mock.patch("signet_actors.cli.invocation.Invocation.advice", lambda _, text: text),  # as without --url
        mock.patch("sys.stdin", _Keyboard(typed, screen)),
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
    ):
        try:
            code = cli.main(["--url", url, *arguments], prog_name="signet", standalone_mode=False) or 0
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        except click.ClickException as refused:
            refused.show()
            code = refused.exit_code
    return code, written.getvalue().decode()
