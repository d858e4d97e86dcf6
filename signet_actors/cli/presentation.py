"""Output for people and for pipes: printable text, messages, questions, JSON. The tables are in ``tables.py``.

Times are local and relative on a terminal, and ISO 8601 on a pipe, as the daemon sent them.
Stored text is not trusted: control characters, escape sequences and direction overrides in a memory are printed as
escapes and never act on the terminal. Lines are broken between words and beside wide characters, by the cells of the
terminal (rich.cells), of which a CJK character takes two. Importing the tables of rich takes longer than a recall.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from signet_actors.errors import ConfigError, ErrorCode, RequestRefused, SignetError

if TYPE_CHECKING:
    from rich.console import Console


_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
LONGEST_CUT_WORD = 24
"""A longer word at the end of a shortened text is cut."""


def on_terminal() -> bool:
    return sys.stdout.isatty()


class OutputFailed(OSError):
    """Standard output takes nothing more (a full disk). A closed pipe is a BrokenPipeError instead."""


class _StandardOutput(io.FileIO):
    """The descriptor of standard output, whose errors can be told from those of other files."""

    def write(self, data: Any, /) -> int:
        """Write as ``FileIO`` does. Raises BrokenPipeError and OutputFailed."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from error


def prepare_output() -> None:
    """Have standard output raise OutputFailed, and write an escape for each character that the encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_StandardOutput(sys.stdout.fileno(), "wb", closefd=False)),
            encoding=sys.stdout.encoding,
            errors="signet" if sys.stdout.isatty() else "backslashreplace",
            line_buffering=sys.stdout.line_buffering,
        )
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="signet" if sys.stderr.isatty() else "backslashreplace")


def discard_output() -> None:
    """Lead standard output to ``/dev/null``, so that the interpreter's last flush succeeds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def in_colour() -> bool:
    """Return whether to print colours: on a terminal that is not dumb, unless NO_COLOR is set."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def emphasised(text: str, *, fg: str | None = None) -> str:
    return click.style(text, fg=fg, bold=True) if in_colour() else text


_IN_ASCII = {"✓": "ok", "✗": "fail", "●": "*", "·": "-", "…": "...", "→": "->", "─": "-"}


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace a sign of our own that the encoding lacks by ASCII, and any other character by an escape."""
    if isinstance(error, UnicodeEncodeError) and (plain := _IN_ASCII.get(error.object[error.start])):
        return plain, error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error("signet", _in_ascii)
MARKS = {
    "ok": ("✓", "green"),
    "warn": ("!", "yellow"),
    "fail": ("✗", "red"),
    "up": ("●", "green"),
    "down": ("●", "yellow"),
}


def mark(state: str) -> str:
    """Return the sign of a state on a terminal: ``✓``, ``!``, ``✗`` or ``●``; the word on a pipe."""
    sign, colour = MARKS[state]
    return emphasised(sign if on_terminal() else state, fg=colour)


def printable(text: str) -> str:
    """Return the text with all characters that could control a terminal escaped."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_bytes(data: bytes) -> None:
    """Print the bytes; on a terminal, escape what could control it, as JSON may have it."""
    click.echo(printable(data.decode(errors="backslashreplace")) if on_terminal() else data, nl=False)


def one_line(value: Any, limit: int | None = None) -> str:
    """Return the value as one printable line of at most ``limit`` characters, cut between words if they are short."""
    text = printable(_SPACE.sub(" ", "" if value is None else str(value)).strip())
    if limit is None or len(text) <= limit:
        return text
    end = text.rfind(" ", max(0, limit - 1 - LONGEST_CUT_WORD), limit)
    return text[: end if end > 0 else limit - 1] + "…"


def counted(count: Any, one: str, many: str = "") -> str:
    """Return the number with its noun: ``1 memory``, ``2 memories``. ``many`` is needed if the noun is irregular."""
    regular = f"{one[:-1]}ies" if one.endswith(("ry", "ty")) else f"{one}s"
    return f"{count} {one if count == 1 else many or regular}"


def tags_text(value: Any) -> str:
    """Return tags as comma-separated text; ``value`` is a list, a text or None."""
    if isinstance(value, list):
        return ",".join(str(tag) for tag in value)
    return "" if value is None else str(value)


def size_text(count: Any) -> str:
    """Return the number of bytes in readable form, such as ``4 MB``."""
    if not isinstance(count, int):
        return "?"
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def below_home(shown: object) -> str:
    """Return the text with ``~`` for the home directory in paths outside quotes; on a pipe whole paths."""
    home, text = os.environ.get("HOME") or os.path.expanduser("~"), str(shown)
    return re.sub(rf"(?<![^\s(`]){re.escape(home)}/", "~/", text) if on_terminal() else text


def print_message(text: str) -> None:
    """Print a message for the user to standard error. A terminal's lines are wrapped."""
    click.echo(wrapped(text) if sys.stderr.isatty() else printable(text), err=True)


def print_result(text: str) -> None:
    """Print what the command did. A terminal's lines are wrapped."""
    click.echo(wrapped(text) if on_terminal() else text)


def wrapped(text: str, *, taken: int = 0) -> str:
    """Return the text as printable lines that fit a terminal beside ``taken`` cells."""
    return wrap_message(printable(text), terminal_width() - taken)


def ask_confirmation(question: str, *, instead: str = "use --yes to skip the question", default: bool = False) -> bool:
    """Ask the question and return whether the answer is yes; no if there is no input. Raises KeyboardInterrupt.

    ``instead``: what the user can do if there is no input. ``default``: what Enter means.
    """
    shown = wrapped(question, taken=len(" [y/N]: ")) if sys.stderr.isatty() else printable(question)
    try:
        return click.confirm(shown, default=default, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        print_message(f"\nNo answer; {instead}.")
        return False


def json_object(raw: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object of a text; None if it is anything else."""
    try:
        decoded = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def require_confirmation(question: str, refusal: str) -> None:
    """Ask the question. Raises RequestRefused with the ``refusal`` if the answer is not yes."""
    if not ask_confirmation(question):
        raise RequestRefused(refusal, code=ErrorCode.CONFIRM_REQUIRED)


@contextlib.contextmanager
def reporting(path: Path, verb: str, kind: type[SignetError] = ConfigError) -> Iterator[None]:
    """Raise an error of this kind, that the path cannot be ``verb`` (read, written), for an OSError."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path} cannot be {verb}: {error.strerror}") from error


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the home directory that the environment names, if its path is absolute, else that of the user."""
    return Path(environ["HOME"]) if environ.get("HOME", "").startswith("/") else Path.home()


def print_json(value: Any) -> None:
    """Print the value as indented JSON, with all characters that could control a terminal escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(_UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; rich itself respects NO_COLOR and TERM."""
    from rich.console import Console  # noqa: PLC0415 - slow; needed only on a terminal

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def can_animate() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def progress_bar(verb: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if standard error is a terminal, without ``total`` what is done; yield what updates it."""
    if not can_animate():
        yield lambda _: None
        return
    from rich import progress as bars  # noqa: PLC0415 - slow; needed only on a terminal

    with bars.Progress(
        bars.SpinnerColumn(),  # it moves while a batch is being stored
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn("{task.percentage:>3.0f} %" if total is not None else "{task.completed}"),
        bars.TimeElapsedColumn(),
        *([] if total is None else [bars.TimeRemainingColumn()]),
        console=console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task(verb, total=total)
        yield lambda completed: progress.update(task, completed=completed)


LEAST_VALUE = 20
"""Fewest cells beside the names of fields; otherwise the values stand below the names."""
_HELD: Final = "\N{NO-BREAK SPACE}"
"""Stands for a space at which no line is broken, and takes a cell as that does."""
_COMMAND: Final = re.compile("`(?! )[^`]+(?<! )`")
"""A command between backquotes; not what stands between one and the next, as of a text that was cut within it."""


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    import shutil  # noqa: PLC0415 - slow; needed only on a terminal

    return max(shutil.get_terminal_size().columns, LEAST_VALUE)


def wrap_message(text: str, width: int) -> str:
    """Return the lines of a printable message, broken where they do not fit, but not in a path or a command."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        indent = " " * (len(line) - len(words))
        first, *more = wrap(words, max(width - len(indent) - 2, LEAST_VALUE), taken=-2, chop=False)
        lines += [indent + first, *(f"{indent}  {rest}" for rest in more)]
    return "\n".join(lines)


def wrap(text: str, width: int, *, taken: int = 0, chop: bool = True) -> list[str]:
    """Return the text in lines of at most ``width`` cells, broken between words and beside wide characters.

    ``taken`` cells of the first line are in use. A command between backquotes is like a word if a line holds it.
    Without ``chop`` that and a word are one line if they are longer, so that they can be copied.
    """
    if cell_count(text) + taken <= width:
        return [text]
    text = _COMMAND.sub(lambda code: _held(code[0]) if not chop or cell_count(code[0]) <= width else code[0], text)
    lines: list[str] = []
    line, used = "", taken
    for number, word in enumerate(text.split(" ")):
        space = " " if number else ""
        for piece in _pieces(word):
            if used + cell_count(space + piece) <= width:
                line += space + piece
            else:
                *full, line = [line] * (used > 0) + (_chopped(piece, width) if chop else [piece])
                lines += full
                taken = 0
            used = cell_count(line) + taken
            space = ""
    return [released(shown) for shown in (*lines, line)]


def wrap_parts(parts: Iterable[str], width: int) -> list[str]:
    """Return the parts that are not empty in lines that are broken between them, or in one that is too long."""
    held = (_held(part) if cell_count(part) <= width - 2 else part for part in parts if part)
    return [released(line) for line in wrap(f"{_HELD}· ".join(held), width)]


def hold_commands(text: str) -> str:
    """Return the text with spaces at which click breaks no line in its commands; ``released`` undoes that."""
    return _COMMAND.sub(lambda code: _held(" ".join(code[0].split())), text)


def released(text: str) -> str:
    return text.replace(_HELD, " ")


def _held(text: str) -> str:
    return text.replace(" ", _HELD)


def _pieces(word: str) -> list[str]:
    """Return the parts between which a word may be broken: each wide character is one."""
    if word.isascii() or cell_count(word) == len(word):
        return [word]
    import unicodedata  # noqa: PLC0415 - only for wide characters

    from rich.cells import split_graphemes  # noqa: PLC0415 - only for wide characters

    pieces: list[str] = []
    narrow = False
    for start, end, size in split_graphemes(word)[0]:
        closing = bool(pieces) and unicodedata.category(word[start]) in {"Pe", "Po"}  # never begins a line
        if closing or (narrow and size < 2):
            pieces[-1] += word[start:end]
        else:
            pieces.append(word[start:end])
        narrow = size < 2
    return pieces


def _chopped(piece: str, width: int) -> list[str]:
    from rich.cells import chop_cells  # noqa: PLC0415 - only for a word that is longer than a line

    return [piece] if cell_count(piece) <= width else chop_cells(piece, width)


def cut(text: str, width: int) -> str:
    """Return the text as one line of at most ``width`` cells, with an ellipsis in place of what does not fit."""
    if cell_count(text) <= width:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415 - only for a line that is too long

    return set_cell_size(text, width - 1).rstrip() + "…"


def cell_count(text: str) -> int:
    """Return the number of cells that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only for other alphabets

    return cell_len(text)


MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
RELATIVE_DAYS = 7
"""An older time is shown as a date."""
TIME_FORMS: Final = (
    "Give a date (2026-01-31), a time (2026-01-31T14:00, or 2026-01-31T14:00Z in UTC), or a phrase such as `yesterday`,"
    " `last week`, `3 days ago` or `in March`."
)


class PastTime(click.ParamType[str]):
    """A time, or a phrase that a recall understands: ``2026-01-31``, ``yesterday``, ``last week``, ``3 days ago``.

    Days are those of this machine. A day becomes its beginning, or with ``end`` its last moment.
    """

    name = "time"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time in ISO form; refuse what is neither a time nor a phrase."""
        from signet_actors.domain.temporal.phrases import limit_of  # noqa: PLC0415 - only with such an option
        from signet_actors.domain.timestamps import normalize_timestamp  # noqa: PLC0415
        from signet_actors.runtime.local_zone import LOCAL_ZONE  # noqa: PLC0415

        text = str(value)
        if not text.strip():
            return value
        found = limit_of(text, current_time().astimezone(LOCAL_ZONE), end=self._end)
        if found is None:
            self.fail(f"{one_line(text, 80)!r} is not a time. {TIME_FORMS}", parameter, ctx)
        return value if found == normalize_timestamp(text) else found


SINCE: Final = PastTime()
UNTIL: Final = PastTime(end=True)


def current_time() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC).astimezone()


def time_text(value: Any) -> str:
    """Return an ISO timestamp for a table: relative or local on a terminal, unchanged on a pipe."""
    moment = _moment(value) if on_terminal() else None
    return str(value or "") if moment is None else _relative(moment) or f"{moment:%Y-%m-%d %H:%M}"


def full_time_text(value: Any) -> str:
    """Return an ISO timestamp for a single field: local and relative on a terminal, unchanged on a pipe."""
    moment = _moment(value) if on_terminal() else None
    if moment is None:
        return str(value or "")
    relative = _relative(moment)
    return f"{moment:%Y-%m-%d %H:%M:%S}{f' ({relative})' if relative else ''}"


def clock_text(value: Any) -> str:
    """Return the time of a line of the log: on a terminal the local one, without the day if that is today."""
    moment = _moment(value) if on_terminal() else None
    if moment is None:
        return str(value or "")
    return f"{moment:%H:%M:%S}" if moment.date() == current_time().date() else f"{moment:%m-%d %H:%M:%S}"


def age_text(seconds: float) -> str:
    """Return how long ago something was, such as ``7 min ago``; in days if that is long."""
    moment = current_time() - timedelta(seconds=seconds)
    return _relative(moment) or _ago(f"{int(seconds // DAY_S)} days", past=True)


def _moment(value: Any) -> datetime | None:
    """Return the local time of an ISO timestamp; None if it is none."""
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone()
    except (TypeError, ValueError, OverflowError):
        return None


def _relative(moment: datetime) -> str:
    """Return how far the time is from now; empty if it is more than a week."""
    now = current_time()
    seconds = (now - moment).total_seconds()
    apart = abs(seconds)
    if apart < MINUTE_S:
        return "just now" if seconds >= 0 else "in a moment"
    if apart < HOUR_S:
        return _ago(f"{int(apart // MINUTE_S)} min", past=seconds > 0)
    if apart < DAY_S:
        return _ago(counted(int(apart // HOUR_S), "hour"), past=seconds > 0)
    if moment.date() == (now - timedelta(days=1)).date():
        return "yesterday"
    days = int(apart // DAY_S)
    return _ago(counted(days, "day"), past=seconds > 0) if days < RELATIVE_DAYS else ""


def _ago(text: str, *, past: bool) -> str:
    return f"{text} ago" if past else f"in {text}"
