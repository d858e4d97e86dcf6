"""A text in the user's editor: what was typed is kept if it cannot be stored.

Source: docs/cli.md "Memories", "Maintenance".
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from signet_actors.cli.presentation import print_message


@contextmanager
def edited_text(text: str, ending: str, *, instead: str, target: Path | None = None) -> Iterator[str]:
    """Open the text in $EDITOR and yield what it became.

    If the block fails, the changed text stays in a file that only the user can read. A message names the file, and with
    a ``target`` says how to store it there. Raises click.UsageError if the text is not UTF-8, or with ``instead`` if
    there is neither a terminal nor a named editor; click.ClickException if the editor fails.
    """
    if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise click.UsageError(instead)
    descriptor, name = tempfile.mkstemp(prefix="signet-", suffix=ending)
    draft, before = Path(name), text.encode()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(before)
        with exit_on_signals():
            click.edit(filename=name)
        try:
            edited = draft.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"the edited text is not UTF-8 ({error.reason} at byte {error.start})") from error
        yield edited
    except BaseException:
        if draft.exists() and draft.read_bytes().strip() not in {b"", before.strip()}:
            advice = f" Correct it there, then `{shlex.join(['cp', name, str(target)])}`." if target else ""
            print_message(f"Your text was not stored; it is in {draft}.{advice}")
        else:
            draft.unlink(missing_ok=True)
        raise
    draft.unlink(missing_ok=True)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit at SIGTERM and SIGHUP (a closed terminal), so that the ``with`` blocks clean up."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
