"""The commands backup and restore.

The running daemon makes a backup while it keeps serving. A restore needs the daemon stopped. It runs as a process of
the writer's own tool, because the command line never opens the database.

Source: docs/reliability.md R17, R18, R23; docs/architecture.md "Dependency rules" 5.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from signet_actors.cli import presentation as output
from signet_actors.cli.connection import DaemonClient, DaemonReply
from signet_actors.cli.daemon_process import refuse_locked
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.export import new_output, refuse_target
from signet_actors.cli.importers.source import is_database
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.status import duration
from signet_actors.cli.tables import Column, print_records
from signet_actors.config.load import load_config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import parse_backup_name, surplus
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ExitCode, InvalidRequest, SignetError, Unavailable
from signet_actors.runtime.file_draft import fsync_path

POLL_S = 0.2
WRITER = (sys.executable, "-P", "-m", "signet_actors.writer")


@command()
@click.option("--to", "target", metavar="DIR|FILE", help="Also copy the backup there.")
@click.option("--list", "only_list", is_flag=True, help="Only list the existing backups.")
@click.option("--prune", is_flag=True, help="Afterwards delete the oldest backups of the workspace, after asking.")
@click.option(
    "--keep", type=click.IntRange(1, 1000), metavar="N", help="With --prune: keep N backups (default: backup.keep)."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--timeout", type=click.FloatRange(1), default=3600, show_default=True, help="Seconds to wait.")
def backup(
    invocation: Invocation,
    target: str | None,
    only_list: bool,
    prune: bool,
    keep: int | None,
    yes: bool,
    timeout: float,
) -> None:
    """Back up the database while the daemon runs, and check the copy.

    The copy holds everything that was stored before the command started. Exit code 1 if the copy fails its check: the
    database is damaged, and `signet doctor --deep` shows the details.
    """
    if keep is not None and not prune:
        raise click.UsageError("--keep goes with --prune")
    if prune and keep is None:
        keep = load_config(invocation.workspace, invocation.settings).config.backup.keep
    client = invocation.client()
    if only_list:
        _print_backups(invocation, client.get("/api/repair/backup"))
        return
    if target is not None:
        _refuse_copy(_copy_path(target, "signet-backup"), invocation.workspace)
    end, directory = back_up(client, timeout)
    if not end.get("success"):
        if invocation.as_json:
            output.print_json(end)
        else:
            output.print_message(f"No backup was made: {output.one_line(end.get('message'))}.")
            for finding in end.get("findings") or []:
                output.print_message(f"  {output.one_line(finding.get('text'))}")
        click.get_current_context().exit(REFUSED)
    made = Path(directory) / str(end["name"])
    path = made if target is None else copy_out(made, target, invocation.workspace)
    if not invocation.as_json:
        click.echo(output.below_home(path))
        output.print_message(f"Verified: {_memories(end.get('memories'))}.")
    old = surplus(os.listdir(made.parent), keep, made=made.name, now_ms=int(time.time() * 1000)) if keep else []
    agreed = _delete_backups(made.parent, old, yes=yes)
    if invocation.as_json:
        output.print_json({**end, "path": str(path), "pruned": old if agreed else []})
    if not agreed:
        click.get_current_context().exit(REFUSED)


def _delete_backups(directory: Path, names: list[str], *, yes: bool) -> bool:
    """Show the backups, ask unless ``yes``, and delete them; return False if the answer is no."""
    if not names:
        return True
    if not yes:
        for name in names:
            found = parse_backup_name(name)
            made_at = "" if found is None else f", made {output.time_text(iso(found.made_ms))}"
            path = directory / name
            output.print_message(f"  {output.below_home(path)} ({output.size_text(_file_size(path))}{made_at})")
        count = f"these {len(names)} backups" if len(names) > 1 else "this backup"
        if not output.ask_confirmation(f"Delete {count}?"):
            output.print_message("No backup was deleted.")
            return False
    for name in names:
        (directory / name).unlink(missing_ok=True)
    output.print_message(f"Deleted {output.counted(len(names), 'older backup')}.")
    return True


def _file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def back_up(client: DaemonClient, timeout_s: float) -> tuple[dict[str, Any], str]:
    """Make a backup begun after the request; return how it ended and its directory. Raises Unavailable."""
    answer = client.send("POST", "/api/repair/backup", {})
    directory = answer.text("directory")
    older = {(answer.body.get("last") or {}).get("name")} if answer.body.get("running") is not None else set()
    if answer.body.get("queued") is True:
        older.add(answer.body.get("running"))  # its copy may lack what was stored just before the command
    until = time.monotonic() + timeout_s
    while True:
        last = answer.body.get("last")
        if isinstance(last, dict) and last.get("name") not in older:
            return last, directory
        if answer.body.get("running") is None and answer.body.get("queued") is not True:
            raise Unavailable("the daemon's retention process was restarted during the backup; no backup was made")
        if time.monotonic() > until:
            raise Unavailable(
                f"the backup did not finish within {timeout_s:.0f} s; `signet backup --list` shows its progress"
            )
        time.sleep(POLL_S)
        answer = client.get("/api/repair/backup")


def copy_out(made: Path, target: str, workspace: Path) -> Path:
    """Copy the backup to ``target``, or into it if it is a directory, and return the path of the copy.

    The copy is private, verified byte by byte, and appears under its name only when it is complete. Raises
    SignetError if it cannot be made there.
    """
    path = _copy_path(target, made.name)
    try:
        _refuse_copy(path, workspace)
        with new_output(path) as draft:
            with made.open("rb") as source:
                shutil.copyfileobj(source, draft.file, 1 << 20)
            draft.sync()
            if _digest(draft.path) != _digest(made):
                raise OSError(f"the copy {draft.path} differs from the backup")
            draft.replace()
        fsync_path(path.parent)
    except (OSError, click.UsageError) as error:
        reason = error.message if isinstance(error, click.UsageError) else error
        raise SignetError(f"the backup {made} was made, but not copied to {path}: {reason}") from error
    return path


def _copy_path(target: str, name: str) -> Path:
    """Return the path of the copy: ``target``, or a file of this name in it if it is a directory or ends with ``/``."""
    path = Path(target).expanduser()
    return path / name if target.endswith("/") or os.path.isdir(path) else path


def _refuse_copy(path: Path, workspace: Path) -> None:
    """Raise click.UsageError for a refused path, and for a missing directory: its disk may not be mounted."""
    refuse_target(path, workspace)
    if path.exists() and path.stat().st_size and not is_database(path):
        raise click.UsageError(f"cannot write {path}: it is no backup; choose another path, or delete it first")
    if not os.path.isdir(path.parent):
        raise click.UsageError(
            f"cannot write {path}: there is no directory {path.parent}; mount its disk, or create it"
        )


@command()
@click.argument("source", metavar="FILE|latest")
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(invocation: Invocation, source: str, yes: bool) -> None:
    """Replace the database with a backup, while no daemon runs.

    FILE is a path, or the name of a backup in the workspace; `latest` is the newest of these. The backup is checked
    first. The current database is moved aside, never deleted. Exit code 73 if a daemon runs, 74 if the backup is
    damaged.
    """
    workspace = invocation.workspace
    refuse_locked(workspace, f"a daemon runs on {workspace}", "stop it with `signet stop`, then restore")
    if not Workspace(workspace).memory_dir.is_dir() and source == "latest":
        raise InvalidRequest(f"{workspace} holds no database and no backups")
    chosen = source if source == "latest" else _resolve_source(source)
    if yes:
        code, result = run_writer_tool(invocation.environment, "--restore", chosen)
    else:
        code, result = run_writer_tool(invocation.environment, "--restore", chosen, "--preview")
        if code == ExitCode.OK:
            question = _restore_question(workspace, result)
            if not output.ask_confirmation(output.below_home(question)):
                output.print_message("Nothing was changed.")
                click.get_current_context().exit(REFUSED)
            passed_over = {"ahead": result["ahead"]} if result.get("ahead") else {}
            code, result = run_writer_tool(invocation.environment, "--restore", str(result["restored"]))
            result |= passed_over  # of `latest`; the second call was given the file
    if invocation.as_json:
        output.print_json(result)
    elif code == ExitCode.OK:
        _print_restored(result)
    else:
        for text in result.get("findings") or ["the restore failed"]:
            output.print_message(output.one_line(text))
        if result.get("other"):
            output.print_message(f"Another backup: `signet restore {result['other']}`.")
        output.print_message("The database was not changed.")
    if code != ExitCode.OK:
        click.get_current_context().exit(code)


def _resolve_source(source: str) -> str:
    """Return the absolute path of a file; as it is a bare name, which names a backup in the workspace."""
    try:
        path = Path(source).expanduser()
        return str(path.absolute()) if path.exists() or path.name != source else source
    except (OSError, RuntimeError):  # name too long, or no such user: the writer's tool reports it
        return source


_MAY_COME_BACK: Final = ", and what was forgotten or erased since, or said while memory was switched off, may come back"
_CARRIED: Final = (
    "What was forgotten or erased since then, or said while memory was switched off, does not come back (`signet"
    " recover` brings a memory back, also one that was deleted permanently)."
)
_NOT_CARRIED: Final = (
    "What was forgotten or erased since then may be there again: forget or erase it once more, also after"
    " `signet backfill`. That memory was switched off for a session since then is not known any more: what was said in"
    " it may be stored. Tokens and API keys that it has are revoked, because some may have been since then."
)


def _restore_question(workspace: Path, found: dict[str, Any]) -> str:
    age = _age(found)
    made = f"made {age} ago" if age else "of unknown age"
    before, missing = found.get("memories_before"), found.get("missing")
    if not Workspace(workspace).database.exists():
        lost = "There is no database yet."
    elif before is None:
        lost = "The database cannot be read. It is moved aside, not deleted."
    else:
        lacking = "an unknown number (their ids cannot be read)" if missing is None else missing or "none"
        lost = (
            f"Of the {_memories(before)} in the database, the backup lacks {lacking}; changes since it"
            f" was made are not in it either{'' if found.get('carried_over') else _MAY_COME_BACK}. The database is"
            " moved aside, not deleted."
        )
    for name in found.get("ahead") or []:
        lost += f"\n{_not_used(name)}"
    memories = _memories(found.get("memories_after", 0))
    return f"{lost}\nReplace the database of {workspace} with {found.get('restored')} ({memories}, {made})?"


def _memories(count: Any) -> str:
    return output.counted(count, "memory")


def _age(result: dict[str, Any]) -> str:
    """Return the age of the backup in readable form; empty if it is unknown."""
    age_ms = result.get("age_ms")
    return duration(age_ms / 1000) if isinstance(age_ms, int) else ""


def _print_restored(result: dict[str, Any]) -> None:
    restored = output.below_home(result.get("restored"))
    output.print_result(f"Restored {restored}: {_memories(result.get('memories_after', 0))}.")
    age = _age(result)
    if age:
        made = output.full_time_text(result.get("made_at"))
        output.print_result(f"It was made at {made}; changes of the {age} since then are not in it.")
        output.print_result(_CARRIED if result.get("carried_over") else _NOT_CARRIED)
    elif result.get("made_at"):
        output.print_result(
            f"By its name it was made at {result['made_at']}, in the future: the clock was wrong then, or is now."
        )
    for name in result.get("ahead") or []:
        output.print_result(_not_used(name))
    if result.get("aside"):
        before = result.get("memories_before")
        content = _memories(before) if before is not None else "unreadable"
        output.print_result(f"The previous database ({content}) is in {output.below_home(result['aside'])}.")
    output.print_result("Start the daemon with `signet start`.")


def _not_used(name: str) -> str:
    return f"Not used: {name}, whose name is in the future. `signet restore {name}` restores it."


def start_writer_tool(
    environment: dict[str, str], *arguments: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run one of the writer's tools, which is killed if this process exits. Raises TimeoutExpired."""
    return subprocess.run(
        [*WRITER, *arguments, "--parent", str(os.getpid())],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout_s,
    )


def run_writer_tool(
    environment: dict[str, str], *arguments: str, timeout_s: float = 3600
) -> tuple[int, dict[str, Any]]:
    """Run one of the writer's tools; return its exit code and the JSON object that it printed, empty if none."""
    try:
        ran = start_writer_tool(environment, *arguments, timeout_s=timeout_s)
    except subprocess.TimeoutExpired:
        return ExitCode.GIVE_UP, {"findings": [f"it took longer than {timeout_s:.0f} s"]}
    try:
        result = json.loads(ran.stdout)
    except ValueError:
        result = {"findings": ran.stderr.strip().splitlines()[-1:]}
    return ran.returncode, result if isinstance(result, dict) else {}


BACKUPS: Final = (
    Column("backup", "name"),
    Column("made", "madeAt", output.time_text),
    Column("schema", "schemaVersion", drop=1, right=True),
    Column("size", "bytes", lambda size: output.size_text(size) if output.on_terminal() else size, right=True),
)


def _print_backups(invocation: Invocation, answer: DaemonReply) -> None:
    rows = answer.records("backups")
    if invocation.as_json:
        output.print_json(answer.body)
        return
    print_records(BACKUPS, rows, none="There are no backups.")
    running = answer.body.get("running")
    if running:
        output.print_message(f"{running} is in progress: {answer.body.get('phase')}.")


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
