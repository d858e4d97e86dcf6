"""Structured logs: one JSON object per line, all processes into one file per day, no text of memories.

Each line is one ``write`` to a file opened with O_APPEND, so that lines of different processes never mix. The
supervisor renames a full file; the other processes notice by its inode and reopen.

Every line has ``timestamp``, ``level``, ``event``, ``actor``, ``incarnation``, and ``trace`` if it is about one
message. Exceptions appear as type and stack. Their message appears only for our own and the operating system's
exceptions: other messages may quote stored text. No call of a logger raises, whatever its arguments and the disk.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from signet_actors.config.regular_file import open_regular
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ConfigError, SignetError
from signet_actors.runtime.processes.terminal import STANDARD_ERROR, write_line

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

    from signet_actors.config.schema import LoggingConfig
    from signet_actors.runtime.processes.child_context import ChildContext


_MAX_REPLACED_CHARS = 1000
_FIRST = ("timestamp", "level", "event", "actor", "incarnation")


def json_line(event: Mapping[str, Any]) -> bytes:
    """Return the event as one line of JSON, well-known fields first; a value that JSON cannot hold is described."""
    ordered = {key: event[key] for key in _FIRST if key in event} | dict(event)
    try:
        return msgspec.json.encode(ordered, enc_hook=repr) + b"\n"
    except Exception:  # noqa: BLE001 - whatever a value's own code raises
        plain = {_text(key): _plain(value) for key, value in ordered.items()}
        return msgspec.json.encode(plain) + b"\n"


def text_line(event: Mapping[str, Any], *, bold: bool = False) -> str:
    """Return the event as text for a person; a stack follows on lines of its own."""
    shown = {key: _shown(value) for key, value in event.items() if key not in {*_FIRST, "stack"}}
    level, what = _shown(event.get("level", "")), _shown(event.get("event", ""))
    if bold:
        what = f"\x1b[1m{what}\x1b[0m"
    who = f"{_shown(event.get('actor', ''))}/{_shown(event.get('incarnation', ''))}"
    details = "".join(f" {_text(key)}={repr(value) if ' ' in value else value}" for key, value in shown.items())
    lines = [f"{_shown(event.get('timestamp', ''))} {level:<8} {who:<14} {what}{details}"]
    stack = event.get("stack")
    if isinstance(stack, (list, tuple)):
        lines += [f"    {_shown(frame)}" for frame in stack]
    elif stack is not None:
        lines.append(f"    {_shown(stack)}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return ``value`` if JSON can hold it, else a text that describes it."""
    try:
        msgspec.json.encode(value, enc_hook=repr)
    except Exception:  # noqa: BLE001 - see json_line
        return _text(value)
    return value


def _text(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
        return text.encode("utf-8", "backslashreplace").decode()[:_MAX_REPLACED_CHARS]
    except Exception:  # noqa: BLE001 - see json_line
        return f"<{type(value).__name__} without a readable representation>"


def _shown(value: Any) -> str:
    """Return a value on one line, without characters that steer a terminal."""
    text = _text(value)
    return text if text.isprintable() else ascii(text)


@contextlib.contextmanager
def _without_unused_imports() -> Iterator[None]:
    """Import without ``rich`` and ``asyncio``, unless the process has them already.

    structlog imports ``rich``, if installed, for tracebacks that are not used here (3 to 4 MB and 80 ms in every
    process), and ``asyncio`` for awaitable loggers that are not used here (4 MB and 30 ms in each synchronous process).
    If one is awaited all the same, the stand-in loads the real module then.
    """
    later = ModuleType("asyncio", "Placeholder of the real class until its first use.")
    later.__dict__["__getattr__"] = lambda name: getattr(importlib.import_module("asyncio"), name)
    absent = [name for name in ("rich", "asyncio") if name not in sys.modules]
    for name in absent:
        sys.modules[name] = later if name == "asyncio" else None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


with _without_unused_imports():
    import structlog

_REOPEN_CHECK_S = 1.0
_LEVELS = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "critical": 50}


def log_path(directory: Path, wall_ms: int) -> Path:
    """Return the file of the (UTC) day of ``wall_ms``."""
    return directory / f"daemon-{iso(wall_ms)[:10]}.log"


def check_log_file(directory: Path) -> None:
    """Raise ConfigError if today's log is not a regular file with one name."""
    with contextlib.suppress(OSError):
        os.close(open_regular(log_path(directory, time.time_ns() // 1_000_000), os.O_WRONLY | os.O_APPEND))


class DailyFile:
    """Appends lines to the file of the day, also after the file was renamed or deleted, or while the disk is full."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1
        self._path = Path()
        self._checked = float("-inf")
        self._torn = False
        self.lost_lines = 0

    def write(self, line: bytes) -> None:
        """Write ``line``, or count it as lost; never raises."""
        try:
            self._reopen_if_moved()
            data = b"\n" + line if self._torn else line
            written = os.write(self._descriptor, data)
            self._torn = written < len(data)  # disk full: the next line must not continue this one
        except (OSError, ConfigError):
            self.lost_lines += 1
        else:
            self.lost_lines += self._torn

    def _reopen_if_moved(self) -> None:
        now = time.monotonic()
        if now - self._checked < _REOPEN_CHECK_S:
            return
        self._checked = now
        path = log_path(self._directory, time.time_ns() // 1_000_000)
        if self._descriptor >= 0 and path == self._path:
            try:
                there, ours = path.stat(), os.fstat(self._descriptor)
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            except FileNotFoundError:
                pass
        for directory in (self._directory.parent, self._directory):  # never the workspace: it may have been moved away
            directory.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            opened = open_regular(path, flags)
        except ConfigError:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise
            path.rename(path.with_name(f"{path.stem}.{time.time_ns()}.log"))  # a snapshot tool gave it a second name
            opened = open_regular(path, flags)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._path = opened, path

    def close(self) -> None:
        """Close the descriptor; a later line opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._checked = -1, float("-inf")


class _Threshold:
    """Drops what is below ``level``, first in the chain: a bound logger keeps the level of its class for good."""

    def __init__(self) -> None:
        self.level = logging.INFO

    def __call__(self, _logger: object, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if _LEVELS.get(name, logging.CRITICAL) < self.level:
            raise structlog.DropEvent
        return event


_threshold = _Threshold()


def set_level(limits: LoggingConfig) -> None:
    """Make every logger of this process, existing ones included, write from ``limits.level`` upwards."""
    _threshold.level = _LEVELS.get(str(limits.level).lower(), logging.INFO)


def first_line(text: object) -> str:
    return str(text).partition("\n")[0]


def _describe_exception(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    wanted = event.pop("exc_info", None)
    if not wanted:
        return event
    error = wanted if isinstance(wanted, BaseException) else sys.exc_info()[1]
    if error is None:
        return event
    event["error"] = type(error).__name__
    if isinstance(error, (SignetError, OSError)):
        event["error_detail"] = str(error)
    event["stack"] = [
        f"{frame.filename}:{frame.lineno} {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)[-30:]
    ]
    return event


def _timestamp(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = iso(time.time_ns() // 1_000_000)
    return event


class _LineWriter:
    """The last processor of the chain: renders and writes, and mirrors to the terminal if asked to."""

    def __init__(self, file: DailyFile, *, console: bool) -> None:
        self._file = file
        self._console = console
        self._bold = console and os.isatty(STANDARD_ERROR)

    def __call__(self, _logger: object, _name: str, event: MutableMapping[str, Any]) -> str:
        self._file.write(json_line(event))
        if self._console:
            write_line(text_line(event, bold=self._bold))
        raise structlog.DropEvent


_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log", "msg")


def _without_raising(base: type[Any], failed: Callable[[Exception], None]) -> type[Any]:
    """Return ``base``, a class of loggers, with methods that call ``failed`` instead of raising."""

    def guarded(method: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(method)
        def call(*arguments: Any, **values: Any) -> None:
            try:
                method(*arguments, **values)
            except Exception as error:  # noqa: BLE001 - a failed log call must not lose a reply
                failed(error)

        return call

    return type("Logger", (base,), {name: guarded(getattr(base, name)) for name in _METHODS})


class _LibraryLogHandler(logging.Handler):
    """Writes warnings and errors of libraries to the same file in the same form."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log the first line of the format string, without arguments; later ones often hold contents."""
        with contextlib.suppress(Exception):
            error = record.exc_info[1] if record.exc_info else None
            self._log.log(_known_level(record.levelno), first_line(record.msg), library=record.name, exc_info=error)


def _known_level(level: int) -> int:
    """Return the level that structlog has a name for; libraries may invent others."""
    return max((known for known in set(_LEVELS.values()) if known <= level), default=logging.DEBUG)


def configure_logging(boot: ChildContext) -> FilteringBoundLogger:
    """Return the process's logger; structlog's and the standard library's global loggers write to the same file."""
    file = DailyFile(Path(boot.workspace) / ".daemon" / "logs")
    chain: list[Processor] = [
        _threshold,
        structlog.processors.add_log_level,
        _timestamp,
        _describe_exception,
        _LineWriter(file, console=boot.console),
    ]
    set_level(boot.config.logging)

    def failed(error: Exception) -> None:
        about = {"timestamp": iso(time.time_ns() // 1_000_000), "level": "error", "event": "log_line_lost"}
        with contextlib.suppress(Exception):
            file.write(json_line({**about, "actor": boot.name, "error": type(error).__name__}))

    structlog.configure(
        processors=chain,
        wrapper_class=_without_raising(structlog.make_filtering_bound_logger(logging.DEBUG), failed),
        context_class=dict,
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    log: FilteringBoundLogger = structlog.get_logger().bind(actor=boot.name, incarnation=boot.incarnation)
    root = logging.getLogger()
    root.handlers = [_LibraryLogHandler(log)]
    root.setLevel(logging.WARNING)
    return log
