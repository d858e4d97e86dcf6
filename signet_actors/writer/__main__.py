"""``python -m signet_actors.writer``: the writer process, or with an option one of its tools.

``--check [--deep] [--repair]`` and ``--restore FILE`` need the daemon to be stopped. ``--verify NAME`` turns a copy
that a running writer made into a backup. ``--check-vectors`` only reads, beside a running daemon or without one.
``--rows FILE`` prints tables of another program's database.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from pathlib import Path
from typing import Final

import msgspec

from signet_actors.errors import ExitCode
from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.messaging.mailbox import Linger
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import read_context
from signet_actors.runtime.processes.network_guard import block_network_sockets
from signet_actors.runtime.processes.parent_death import die_with_supervisor
from signet_actors.store.errors import StoreError
from signet_actors.store.sqlite.foreign import foreign_rows
from signet_actors.writer.actor import Writer
from signet_actors.writer.backup import verify_command
from signet_actors.writer.check import check_command, check_vector_files_command
from signet_actors.writer.dispatch import MAILBOX
from signet_actors.writer.restore import restore_command

ROWS_MEMORY_BYTES: Final = 512 * 1024 * 1024
ROWS_LEAST_BYTES: Final = 16 * 1024 * 1024
ROWS_PER_BYTE: Final = 8
"""A byte of a database becomes at most six of JSON, beside the names of the columns."""


def main() -> int:
    """Run the writer, or one of its tools; return the exit code."""
    block_network_sockets()
    if len(sys.argv) > 1:
        return _tool(sys.argv[1:])
    boot = read_context()
    log = configure_logging(boot)
    clock = SystemClock()
    loop = ActorLoop(boot, clock, log)
    decoder: msgspec.msgpack.Decoder[WriterCommand] = msgspec.msgpack.Decoder(MAILBOX)
    limits = boot.config.writer
    loop.bind_mailbox(
        "writer",
        decoder,
        max_items=limits.queue_limit,
        max_bytes=limits.queue_bytes,
        linger=Linger(limits.batch_limit),
    )
    loop.calls.start()
    return loop.run(Writer(boot, loop, clock, random.Random(), log))


def _tool(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m signet_actors.writer")
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--check", action="store_true", help="check whether the database is intact")
    wanted.add_argument("--check-vectors", action="store_true", help="compare the vector files with the database")
    wanted.add_argument("--restore", metavar="FILE", help="replace the database with a backup (a path, or 'latest')")
    wanted.add_argument("--rows", metavar="FILE", help="print tables of another program's database as JSON lines")
    wanted.add_argument("--verify", metavar="NAME", help="turn a complete copy into a backup")
    parser.add_argument("--table", action="append", default=[], help="with --rows: a table to print; may be repeated")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--preview", action="store_true", help="with --restore: check and compare, change nothing")
    parser.add_argument("--last-seq", type=int, default=0)
    parser.add_argument("--parent", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.restore is not None:
        return restore_command(given.restore, given.parent, preview=given.preview)
    if given.verify is not None:
        return verify_command(given.verify, given.last_seq, given.parent)
    if given.parent and not die_with_supervisor(given.parent):
        return ExitCode.GIVE_UP
    if given.rows is not None:
        return _print_rows(Path(given.rows), given.table)
    if given.check_vectors:
        return check_vector_files_command()
    return check_command(deep=given.deep or given.repair, repair=given.repair)


def _print_rows(path: Path, tables: list[str]) -> int:
    """Print ``[table, row]`` for each row; ``[table, null]`` first, for each table that exists.

    Rows that no file of this size can hold come from a hostile one, which ends here: by their sum, or by the memory
    that one of them takes.
    """
    _bound_memory()
    try:
        most = ROWS_LEAST_BYTES + ROWS_PER_BYTE * sum(
            file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()
        )
        for found in foreign_rows(path, tables):
            line = msgspec.json.encode(found) + b"\n"
            most -= len(line)
            if most < 0:
                sys.stderr.write("its rows have more text than the file can hold\n")
                return ExitCode.IO_ERROR
            sys.stdout.buffer.write(line)
    except MemoryError:
        sys.stderr.write("one of its rows is too large\n")
        return ExitCode.IO_ERROR
    except (StoreError, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.IO_ERROR
    return ExitCode.OK


def _bound_memory() -> None:
    """Let this process have ``ROWS_MEMORY_BYTES`` more than now, where the system says how much that is (Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    most = pages * resource.getpagesize() + ROWS_MEMORY_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    sys.exit(main())
