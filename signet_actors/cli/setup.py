"""The command setup: the first run, from an installed program to an agent that remembers.

Source: docs/cli.md "Harnesses".
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signet_actors.cli.connect import CONNECTED, DIFFERENT, NOT_CONNECTED, connect_harness, connection_of
from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.cli.invocation import command, directory_named
from signet_actors.cli.lifecycle import start_daemon
from signet_actors.cli.presentation import (
    ask_confirmation,
    below_home,
    counted,
    print_json,
    print_message,
    print_result,
    printable,
    size_text,
)
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.daemon_address import recorded_address
from signet_actors.errors import SignetError

if TYPE_CHECKING:
    from signet_actors.cli.harnesses.registry import Harness
    from signet_actors.cli.invocation import Invocation

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
    """Return whether a question can be asked and answered: on a terminal."""
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
        return ask_confirmation(question, default=default, instead="`signet setup` asks again")

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
        """Connect the harness if the user wants that."""
        found, title = connection_of(harness, self.invocation), harness.title
        if found.text in (CONNECTED, DIFFERENT):
            self.connected.append(title)
            self.add("✓", title, found.text)
            return
        if found.text != NOT_CONNECTED and not found.other and not found.gone:
            self.add("✗", title, found.text)
            return
        question = f"Connect {title}?" if found.text == NOT_CONNECTED else f"{title} is {found.text}. Connect it anew?"
        if not self.ask(question, default=not found.other):
            self.add("!", title, f"{found.text}; `signet connect {harness.name}`")
            return
        try:
            _, problem = connect_harness(self.invocation, harness, None, yes=True)
        except SignetError as error:  # the others can be connected all the same
            self.add("✗", title, error.detail)
            return
        self.has_changed = True
        self.connected.append(title)
        self.add("!" if problem else "✓", title, f"{problem or _parts(harness)}. {harness.after_connect}")

    def offer_notes(self) -> None:
        """Import a directory of Markdown if the user names one."""
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
            self.add("✓", "notes", f"imported from {below_home(str(directory), self.invocation.environ)}")

    def offer_past_sessions(self) -> None:
        """Store the past sessions on this machine if there are any and the user wants that."""
        from signet_actors.cli.backfill import backfill, new_sessions  # noqa: PLC0415 - only for this question

        sessions = new_sessions(self.invocation)
        titles = {harness.name: harness.title for harness in HARNESSES}
        programs = sorted({titles.get(session.source, session.source) for session in sessions})
        what = f"{counted(len(sessions), 'past session')} ({size_text(sum(session.size for session in sessions))})"
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
        from signet_actors.cli.providers import MODELS_OF_ENGLISH, are_mostly_foreign, download, is_downloaded  # noqa: PLC0415
        from signet_actors.cli.third_party_files import MULTILINGUAL_MB  # noqa: PLC0415
        from signet_actors.config.load import load_config  # noqa: PLC0415

        if not self.invocation.uses_workspace_daemon:
            return
        provider = load_config(self.invocation.workspace, self.invocation.settings).config.embedding.provider
        size = "" if is_downloaded() else f" ({MULTILINGUAL_MB} MB are downloaded once)"
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
        """Install the service if there is a service manager and the user wants that."""
        from signet_actors.cli.service import install_service, service_problem  # noqa: PLC0415 - slow
        from signet_actors.cli.service_managers import service_manager  # noqa: PLC0415 - slow

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
        """Print the summary and the next command."""
        if self.invocation.as_json:
            _list(self.invocation, found)
            return
        if not found:
            programs = ", ".join(harness.program for harness in HARNESSES)
            self.add("!", "agents", f"none of {programs} is on this machine; `signet connect` lists them")
        for lead, text in self.summary:
            print_wrapped(text, lead=lead, indent=len(lead), chop=False)
        if not self.has_changed:
            print_result("There is nothing to do.")
        elif self.connected:
            *others, last = self.connected
            agents = f"{', '.join(others)} or {last}" if others else last
            print_result(f"Next: `signet connect --check`, then a new session of {agents}.")
        else:
            print_result('Next: `signet remember "The staging database listens on port 5433"`')

    def _not_done(self, subject: str, error: Exception, command: str) -> None:
        said = error.detail if isinstance(error, SignetError) else getattr(error, "message", "")
        self.add("✗", subject, f"{said.rstrip('.')}; `{command}`" if said else f"not complete; `{command}`")


def _parts(harness: Harness) -> str:
    return PARTS if harness.events else "memory tools"


def _list(invocation: Invocation, found: list[Harness]) -> None:
    """Print which harnesses were found, and whether they are connected."""
    states = {harness.name: connection_of(harness, invocation).text for harness in found}
    if invocation.as_json:
        print_json({"harnesses": [{"harness": name, "state": state} for name, state in states.items()]})
        return
    if not found:
        print_result("None of the harnesses that `signet connect` knows was found on this machine.")
    for harness in found:
        state = states[harness.name]
        advice = f"; `signet connect {harness.name}` connects it" if state == NOT_CONNECTED else ""
        print_result(printable(f"{harness.title}: {state}{advice}"))
    print_message(
        "Nothing was changed: `signet setup` asks on a terminal, `signet setup --yes` does what Enter answers."
    )
