"""The commands setup, from an installed program to an agent that remembers, and uninstall, which takes all out again.

Source: docs/cli.md "Harnesses"; docs/guides/service.md "Uninstall".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

import signet_actors
from signet_actors.cli import connect as connecting
from signet_actors.cli import presentation as output
from signet_actors.cli.daemon_process import supervisor_pid
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.harnesses.registry import HARNESSES, Harness
from signet_actors.cli.import_progress import cache_directory
from signet_actors.cli.installed_program import other_program
from signet_actors.cli.invocation import Invocation, command, directory_named
from signet_actors.cli.lifecycle import start_daemon, stop_daemon, stop_timeout_s
from signet_actors.cli.service_managers import service_manager
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.daemon_address import logins_file, recorded_address
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.errors import ConfigError, SignetError

START_S = 120
PARTS = "hooks and memory tools"
WIDTH = max(len(harness.title) for harness in HARNESSES)


@command(agent=True)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: do what Enter would answer to each question.")
def setup(invocation: Invocation, yes: bool) -> None:
    """Set everything up: daemon, programs that run agents, notes, service.

    The first run. Starts the daemon, connects the programs that run your agents, imports notes and past sessions if you
    want that, and installs the service. Without a terminal it asks nothing and changes nothing, unless --yes is given.
    """
    found = [harness for harness in HARNESSES if harness.found_by(invocation.environ)]
    if not yes and (invocation.as_json or not can_ask()):
        _list(invocation, found)
        return
    run = _Run(invocation, yes=yes)
    run.start()
    for harness in found:
        run.connect(harness)
    if run.has_changed:
        run.offer_notes()
        run.offer_past_sessions()
    run.offer_languages()
    run.offer_service()
    run.report(found)


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class _Run:
    """One run: what was asked and done. ``summary`` has the lines that are printed at its end."""

    def __init__(self, invocation: Invocation, *, yes: bool) -> None:
        self.invocation = invocation
        self.yes = yes
        self.summary: list[tuple[str, str]] = []
        self.connected: list[str] = []
        self.has_changed = False

    def ask(self, question: str, *, default: bool) -> bool:
        if self.yes:
            return default
        return output.ask_confirmation(question, default=default, instead="`signet setup` asks again")

    def add(self, mark: str, subject: str, text: str) -> None:
        self.summary.append((f"{mark} {subject:<{WIDTH}}  ", text))

    def start(self) -> None:
        """Start the daemon, unless it runs or is one that a URL names."""
        if not self.invocation.uses_workspace_daemon:
            url = self.invocation.url or self.invocation.environ.get("SIGNET_DAEMON_URL")
            self.add("✓", "daemon", f"{url}, as SIGNET_DAEMON_URL or --url names it")
            return
        self.has_changed |= start_daemon(self.invocation, START_S) != "already runs"
        self.add("✓", "daemon", str(recorded_address(self.invocation.workspace)))

    def connect(self, harness: Harness) -> None:
        found, title = connecting.connection_of(harness, self.invocation), harness.title
        if found.text in (connecting.CONNECTED, connecting.DIFFERENT):
            self.connected.append(title)
            self.add("✓", title, found.text)
            return
        if found.text != connecting.NOT_CONNECTED and not found.other and not found.gone:
            self.add("✗", title, found.text)
            return
        question = (
            f"Connect {title}?"
            if found.text == connecting.NOT_CONNECTED
            else f"{title} is {found.text}. Connect it anew?"
        )
        if not self.ask(question, default=not found.other):
            self.add("!", title, f"{found.text}; `signet connect {harness.name}`")
            return
        try:
            _, problem = connecting.connect_harness(self.invocation, harness, None, yes=True)
        except SignetError as error:  # the others can be connected all the same
            self.add("✗", title, error.detail)
            return
        self.has_changed = True
        self.connected.append(title)
        self.add(
            "!" if problem else "✓",
            title,
            f"{problem or (PARTS if harness.events else 'memory tools')}. {harness.after_connect}",
        )

    def offer_notes(self) -> None:
        from signet_actors.cli.import_export import import_  # noqa: PLC0415 - only for this question

        if not self.ask("Import notes, a directory of Markdown files?", default=False):
            return
        try:
            directory = Path(os.path.expanduser(click.prompt("Directory", err=True)))
            named = click.prompt("For which project? (Enter: all)", default="", show_default=False, err=True)
            project = directory_named(named) if named else None
            click.get_current_context().invoke(import_, file=str(directory), format_="markdown", project=project)
        except (SignetError, click.UsageError, click.Abort, click.exceptions.Exit) as error:
            self._not_done("notes", error, "signet import DIRECTORY --from markdown")
        else:
            self.add("✓", "notes", f"imported from {output.below_home(directory)}")

    def offer_past_sessions(self) -> None:
        """Store the past sessions on this machine if there are any and the user wants that."""
        from signet_actors.cli.backfill import backfill, new_sessions  # noqa: PLC0415 - only for this question

        sessions = new_sessions(self.invocation)
        titles = {harness.name: harness.title for harness in HARNESSES}
        programs = sorted({titles.get(session.source, session.source) for session in sessions})
        size = output.size_text(sum(session.size for session in sessions))
        what = f"{output.counted(len(sessions), 'past session')} ({size})"
        if not sessions or not self.ask(f"Bring in {what} of {', '.join(programs)}?", default=False):
            return
        try:
            click.get_current_context().invoke(backfill, yes=True)
        except (SignetError, click.exceptions.Exit) as error:
            self._not_done("sessions", error, "signet backfill")
        else:
            self.add("✓", "sessions", f"{what} of {', '.join(programs)}")

    def offer_languages(self) -> None:
        """Download and configure the multilingual model if most memories are not in English and the user wants it."""
        from signet_actors.cli.config import set_  # noqa: PLC0415 - only for this question
        from signet_actors.cli.pipeline import MODELS_OF_ENGLISH, are_mostly_foreign, download  # noqa: PLC0415
        from signet_actors.cli.third_party_files import MULTILINGUAL_MB  # noqa: PLC0415
        from signet_actors.config.embedding_models import MULTILINGUAL_FILE  # noqa: PLC0415
        from signet_actors.config.load import load_config  # noqa: PLC0415

        if not self.invocation.uses_workspace_daemon:
            return
        provider = load_config(self.invocation.workspace, self.invocation.settings).config.embedding.provider
        size = "" if MULTILINGUAL_FILE.is_file() else f" ({MULTILINGUAL_MB} MB are downloaded once)"
        try:
            if provider == "multilingual" and size:
                question = f"The multilingual model is configured and not there. Get it{size}?"
            elif provider in MODELS_OF_ENGLISH and are_mostly_foreign(self.invocation.client()):
                question = f"Most memories are not in English. Use the model of a hundred languages{size}?"
            else:
                return
            if not self.ask(question, default=provider == "multilingual"):
                self.add("!", "languages", "most memories are not in English, the model is one of English")
                return
            download()
            if provider == "multilingual":
                self.add("✓", "languages", "the model is there; `signet restart` loads it")
            else:
                click.get_current_context().invoke(set_, key="embedding.provider", value="multilingual")
                self.add("✓", "languages", "the model of a hundred languages; memories get its vectors one by one")
            self.has_changed = True
        except SignetError as error:
            self._not_done("languages", error, "signet setup")

    def offer_service(self) -> None:
        from signet_actors.cli.service import install_service, service_problem  # noqa: PLC0415 - slow

        if not self.invocation.uses_workspace_daemon:
            return
        try:
            manager = service_manager(self.invocation.environ)
            found, state = manager.installed(), manager.state()
        except SignetError:  # as in a container
            self.add("!", "service", "none, so after a reboot: `signet start`")
            return
        if found is not None and (problem := service_problem(found)):
            self.add("✗", "service", problem)
        elif found is not None and state.starts_by_itself:
            self.add("✓", "service", "starts the daemon when you log in")
        elif found is not None:
            self.add("!", "service", "does not start by itself: `signet service install`")
        elif not self.ask("Have the daemon start whenever you log in?", default=True):
            self.add("!", "service", "none, so after a reboot: `signet start`, or `signet service install`")
        else:
            try:
                install_service(self.invocation, yes=True)
            except SignetError as error:
                self._not_done("service", error, "signet service install")
            else:
                self.has_changed = True
                self.add("✓", "service", "starts the daemon when you log in")

    def report(self, found: list[Harness]) -> None:
        if self.invocation.as_json:
            _list(self.invocation, found)
            return
        if not found:
            programs = ", ".join(harness.program for harness in HARNESSES)
            self.add("!", "agents", f"none of {programs} is on this machine; `signet connect` lists them")
        for lead, text in self.summary:
            print_wrapped(text, lead=lead, indent=len(lead), chop=False)
        if not self.has_changed:
            output.print_result("There is nothing to do.")
        elif self.connected:
            *others, last = self.connected
            agents = f"{', '.join(others)} or {last}" if others else last
            output.print_result(f"Next: `signet connect --check`, then a new session of {agents}.")
        else:
            output.print_result('Next: `signet remember "The staging database listens on port 5433"`')

    def _not_done(self, subject: str, error: Exception, command: str) -> None:
        said = error.detail if isinstance(error, SignetError) else getattr(error, "message", "")
        self.add("✗", subject, f"{said.rstrip('.')}; `{command}`" if said else f"not complete; `{command}`")


def _list(invocation: Invocation, found: list[Harness]) -> None:
    states = {harness.name: connecting.connection_of(harness, invocation).text for harness in found}
    if invocation.as_json:
        output.print_json({"harnesses": [{"harness": name, "state": state} for name, state in states.items()]})
        return
    if not found:
        output.print_result("None of the harnesses that `signet connect` knows was found on this machine.")
    for harness in found:
        state = states[harness.name]
        advice = f"; `signet connect {harness.name}` connects it" if state == connecting.NOT_CONNECTED else ""
        output.print_result(output.printable(f"{harness.title}: {state}{advice}"))
    output.print_message(
        "Nothing was changed: `signet setup` asks on a terminal, `signet setup --yes` does what Enter answers."
    )


_DATABASE: Final = r"memories\.db(\.incoming)?(-wal|-shm|-journal)?"
_IN_MEMORY: Final = (
    r"MEMORY\.backup-\d{8}T\d{9}Z(-edited)?\.md(\.new)?",
    r"synthesis\.json(\.new)?",
    _DATABASE,
    r"memories\.db-runs",
    rf"aside-\d+/{_DATABASE}",
    r"backups/memories-\d{8}T\d{9}Z-schema-\d{1,6}\.db(\.partial(-\w+)?)?",
    r"harnesses\.json(\.new)?",
    r"spool/\d+-[^/]*\.json(\.rejected|\.\d+\.draft)?",
    r"\d[^/]*\.md",
)
_IN_DAEMON: Final = (
    r"address ballast claims\.json index(/.*)? integrity-check lock logs(/.*)? owner-token pid poison-commands.*"
    r" previous(/.*)? refusal restore run(/.*)? secret suspect token-secret writer\.lock database"
)
_MADE: Final = tuple(
    re.compile(path, re.DOTALL)
    for path in (
        r"agent\.yaml",
        *(rf"agents/[^/]+/memory/{name}" for name in _IN_MEMORY[:2]),
        *(rf"memory/{name}" for name in _IN_MEMORY),
        *(rf"\.daemon/{name}" for name in _IN_DAEMON.split(" ")),
    )
)
"""The files that the daemon and the commands make. The mark that the workspace is ours comes last."""
_DIRECTORIES: Final = tuple(
    f"{within}/{name}"
    for within, names in (("memory", "backups spool"), (".daemon", "index logs previous run"))
    for name in names.split()
)
_PLACES: Final = ("agent.yaml", "agents/*/memory/*", "memory/*", "memory/*/*", ".daemon/**/*")
_SUMMARY: Final = b'---\nsession: "'
"""How the file of a session's summary begins."""
_MOST_NAMED: Final = 10
"""The files that lie among ours come first."""


@dataclass
class Plan:
    """What will be done, each with its words before it is done, and what stays."""

    steps: list[tuple[str, Callable[[], object]]] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)


@command()
@click.option("--data", is_flag=True, help="Also delete the memories and everything else that the daemon keeps.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def uninstall(invocation: Invocation, data: bool, yes: bool) -> None:
    """Take Signet out of this machine: service, daemon, connected programs.

    Shows what it will do, and asks. The memories stay, unless --data is given. The program itself is removed last, by
    the command that is printed.
    """
    plan = _plan(invocation, data=data)
    if not invocation.as_json:
        for text, _ in plan.steps:
            output.print_result(f"- {text}")
        for text in plan.stays:
            output.print_result(f"Stays: {text}")
    question = "Do this, and delete the memories for good?" if data else "Do this?"
    if plan.steps and not yes:
        output.require_confirmation(question, "nothing was removed")
    failed = [f"{text}: {problem}" for text, step in plan.steps if (problem := _problem(step))]
    last = _removal()
    if invocation.as_json:
        steps = [text for text, _ in plan.steps]
        output.print_json({"steps": steps, "failed": failed, "stays": plan.stays, "last": last})
    else:
        for text in failed:
            output.print_message(f"✗ {text}")
        output.print_result(
            "There is nothing to remove." if not plan.steps else "✓ Done" if not failed else "✗ Not complete"
        )
        output.print_result(f"Last, remove the program: {last}")
    if failed:
        click.get_current_context().exit(REFUSED)


def _plan(invocation: Invocation, *, data: bool) -> Plan:
    """Return what there is to do. Raises ConfigError if the data is not ours to delete."""
    plan, environ, workspace = Plan(), invocation.environ, invocation.workspace
    of_service = None
    with contextlib.suppress(SignetError):  # no service manager, or a unit that the user has made
        manager = service_manager(environ)
        found, file = manager.installed(), output.below_home(manager.file)
        if found is not None and (other := other_program([found.program], environ)):
            plan.stays.append(f"the service {file}, which runs another installation ({other})")
        elif found is not None:
            plan.steps.append((f"stop and remove the service ({file})", manager.remove))
            of_service = manager.state().pid
    if lock_held(workspace) and (pid := supervisor_pid(workspace)) != of_service:
        plan.steps.append((f"stop the daemon (pid {pid})", lambda: stop_daemon(workspace, stop_timeout_s(invocation))))
    for harness in HARNESSES:
        if not connecting.is_connected(harness, invocation):
            continue
        if other := other_program(harness.installed_programs(environ), environ):
            plan.stays.append(f"the connection of {harness.title}, by another installation ({other})")
            continue
        step = (
            f"disconnect {harness.title}",
            lambda harness=harness: connecting.disconnect_harness(invocation, harness),
        )
        plan.steps.append(step)
    cache = cache_directory(environ)
    if cache.is_dir():
        plan.steps.append(
            (f"delete {output.below_home(cache)} (how far imports have come)", lambda: shutil.rmtree(cache))
        )
    logins = logins_file(environ)
    if logins.exists():
        plan.steps.append((f"delete {output.below_home(logins)} (tokens of `signet login`)", logins.unlink))
    from signet_actors.runtime.messaging.sockets import socket_directory  # noqa: PLC0415 - loads ZeroMQ

    sockets = socket_directory(invocation.workspace)  # below /tmp if the path of the workspace is long
    if sockets.is_dir() and not sockets.is_relative_to(os.path.realpath(invocation.workspace)):
        plan.steps.append(
            (f"delete {sockets} (sockets of the daemon)", lambda: shutil.rmtree(sockets, ignore_errors=True))
        )
    _plan_data(invocation, plan, data=data)
    return plan


def _plan_data(invocation: Invocation, plan: Plan, *, data: bool) -> None:
    places = Workspace(invocation.workspace)
    made = _made(places.root)
    if not made:
        return
    shown, size = output.below_home(places.root), output.size_text(sum(path.lstat().st_size for path in made))
    if not data:
        plan.stays.append(f"your memories in {shown} ({size}); `signet uninstall --data` deletes them")
        return
    if not places.database_marker_file.exists():
        told = f"{places.root} was not made by this program, which leaves {places.database_marker_file}"
        raise ConfigError(f"{told}; nothing was removed")
    names = ", ".join(dict.fromkeys(path.relative_to(places.root).parts[0] for path in made))
    plan.steps.append((f"DELETE YOUR MEMORIES: {names} in {shown} ({size})", lambda: _delete(places.root)))
    directories = _directories(places.root, made)
    known = directories.union(made)
    found = (path for directory in directories for path in directory.iterdir() if path not in known)
    others = sorted((str(path.relative_to(places.root)) for path in found), key=lambda name: ("/" not in name, name))
    if others:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        plan.stays.append(f"other files in {shown}: {', '.join(others[:_MOST_NAMED])}{more}")


def _made(root: Path) -> list[Path]:
    """Return the files that this program has made below the workspace, but for what a person writes, too."""
    found = [path for place in _PLACES for path in sorted(root.glob(place)) if path.is_symlink() or not path.is_dir()]
    order = {path: number for path in found if (number := _number(path.relative_to(root))) is not None}
    within = [path for path in sorted(order, key=order.__getitem__) if not _is_below_link(path, root)]
    return [path for path in within if not path.name[0].isdigit() or path.suffix != ".md" or _is_summary(path)]


def _number(path: Path) -> int | None:
    """Return which pattern of what is made the path has; None if it has none."""
    return next((number for number, made in enumerate(_MADE) if made.fullmatch(str(path))), None)


def _is_below_link(path: Path, root: Path) -> bool:
    return any((root / inner).is_symlink() for inner in path.relative_to(root).parents[:-1])


def _directories(root: Path, made: Iterable[Path]) -> set[Path]:
    """Return the directories that have files of ours, or are made for them."""
    empty = {root / name for name in _DIRECTORIES if (root / name).is_dir() and not (root / name).is_symlink()}
    return empty | {root / inner for path in (*made, *empty) for inner in path.relative_to(root).parents}


def _is_summary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SUMMARY)) == _SUMMARY
    except OSError:
        return False


def _delete(root: Path) -> None:
    """Delete what was made, and the directories in which nothing else is. Raises OSError, ConfigError."""
    if lock_held(root):
        raise ConfigError("the daemon still runs")
    paths = _made(root)
    for path in paths:
        path.unlink()
    for directory in sorted(_directories(root, paths), reverse=True):
        with contextlib.suppress(OSError):  # the user's files are in it
            directory.rmdir()


def _problem(step: Callable[[], object]) -> str:
    """Take the step; return why it failed, empty if it did not."""
    try:
        step()
    except SignetError as error:
        return error.detail
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _removal() -> str:
    """Return how the program is removed, by the way in which it was installed."""
    prefix, package = Path(sys.prefix), Path(signet_actors.__file__).parent
    if "uv" in prefix.parts and "tools" in prefix.parts:
        return "uv tool uninstall signet-actors"
    if "pipx" in prefix.parts:
        return "pipx uninstall signet-actors"
    if not package.is_relative_to(prefix):
        return f"delete the checkout {package.parent}"
    return f"delete the environment {prefix}" if sys.prefix != sys.base_prefix else "pip uninstall signet-actors"
