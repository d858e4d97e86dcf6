"""The options that all commands share, and access to the daemon.

``--json``, ``--url``, ``--workspace`` and ``--agent`` may stand before or after the name of the command.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from signet_actors.cli.presentation import SINCE, UNTIL, on_terminal, one_line, print_json, print_message, print_result
from signet_actors.config import daemon_address as addresses
from signet_actors.config.suggest import closest
from signet_actors.config.workspace import workspace_from

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient, DaemonReply

F = TypeVar("F", bound="Callable[..., Any]")

AGENT_COMMANDS = frozenset(
    ("remember", "recall", "search", "list", "show", "history", "edit", "forget", "recover", "sessions")
)
LOCAL_COMMANDS = frozenset(
    ("up", "start", "stop", "restart", "restore", "doctor", "logs", "config", "help", "service", "uninstall")
)
"""They work on a workspace, not on a daemon's address."""
_COMMAND = re.compile(r"((?:^|[`(])(?:[A-Z_]{1,32}=[^\s`]{1,64} )?signet )([a-z]{1,16})")


@dataclass
class Invocation:
    """One call of ``signet``. ``last_client`` is the client that the command uses, once it has one.

    ``names_agent``: the command has ``--agent``, so that its requests name the agent.
    """

    as_json: bool = False
    url: str | None = None
    workspace_option: str | None = None
    agent: str | None = None
    names_agent: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    last_client: DaemonClient | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment for a child process, with the value of ``--workspace``."""
        environment = dict(self.environ)
        if self.workspace_option is not None:
            environment["SIGNET_WORKSPACE"] = str(Path(self.workspace_option).expanduser().absolute())
        return environment

    @property
    def settings(self) -> dict[str, str]:
        """The environment for the configuration, without port 0, which only the supervisor understands."""
        return {name: value for name, value in self.environment.items() if (name, value) != ("SIGNET_PORT", "0")}

    @property
    def workspace(self) -> Path:
        return workspace_from(self.environment)

    def address(self) -> addresses.Address:
        """Return the daemon's address: from ``--url``, else by the rule of all programs, else the configured one.

        Of a workspace that was named with ``--workspace``, only its own daemon counts. Raises DaemonNotRunning if only
        the address file of a running daemon could name it.
        """
        if self.url:
            return addresses.address_from_url(self.url)
        named = self.workspace_option is not None
        return self._find(
            {name: value for name, value in self.environ.items() if not named or name != addresses.URL_VARIABLE}
        )

    def address_of_programs(self) -> addresses.Address:
        """Return the address that the installed programs use, ``signet-hook`` and ``signet mcp``.

        `signet connect` adds ``--workspace`` to their commands in the place of SIGNET_WORKSPACE, so the environment may
        name another daemon.
        """
        return addresses.address_from_url(self.url) if self.url else self._find(self.environ)

    def _find(self, environ: Mapping[str, str]) -> addresses.Address:
        from signet_actors.cli import connection  # noqa: PLC0415 - same reason

        named = addresses.address_of_url_variable(environ)
        if named is not None:  # the workspace may be on the daemon's machine only
            return named
        workspace = self.workspace
        found = addresses.find_daemon(environ, workspace) or addresses.recorded_address(workspace)
        if found is not None:
            return found
        if addresses.is_any_port(environ):
            raise connection.no_daemon(workspace)
        return connection.configured_address(workspace, self.settings)

    @property
    def uses_workspace_daemon(self) -> bool:
        """Whether the command speaks with a daemon of the workspace, and not with one that a URL names."""
        return not self.url and (self.workspace_option is not None or not self.environ.get("SIGNET_DAEMON_URL"))

    def advice(self, text: str) -> str:
        """Return the text with this call's options in each command that it names, so that the advice works there."""
        workspace = ["--workspace", self.workspace_option] if self.workspace_option is not None else []
        url = ["--url", self.url] if self.url else []
        agent = ["--agent", self.agent] if self.agent else []

        def with_options(command: re.Match[str]) -> str:
            options = workspace + ([] if command[2] in LOCAL_COMMANDS else url)
            options += agent if command[2] in AGENT_COMMANDS else []
            return command[1] + "".join(f"{shlex.quote(option)} " for option in options) + command[2]

        return _COMMAND.sub(with_options, text)

    def has_printed(self, answer: DaemonReply) -> bool:
        """Print the daemon's reply if JSON is wanted; return whether it is."""
        from signet_actors.cli.connection import print_answer  # noqa: PLC0415 - same reason

        if self.as_json:
            print_answer(answer)
        return self.as_json

    def print_done(self, done: DaemonReply | Mapping[str, Any], text: str) -> None:
        """Print what the command did: the reply or the mapping if JSON is wanted, else the text."""
        if not self.as_json:
            print_result(text)
        elif isinstance(done, Mapping):
            print_json(done)
        else:
            self.has_printed(done)

    def client(self, address: addresses.Address | None = None, *, timeout_s: float = 30.0) -> DaemonClient:
        """Return a client of the daemon, closed when the command ends; raise DaemonNotRunning if there is no daemon."""
        from signet_actors.cli.connection import DaemonClient  # noqa: PLC0415 - same reason

        agent = self.agent if self.names_agent else None
        client = DaemonClient(address or self.address(), timeout_s=timeout_s, environ=self.environ, agent=agent)
        click.get_current_context().call_on_close(client.close)
        self.last_client = client
        return client


def advised(text: str) -> str:
    """Return the text with the options of the running command in each command that it names (``Invocation.advice``)."""
    context = click.get_current_context(silent=True)
    invocation = context and context.find_object(Invocation)
    return invocation.advice(text) if invocation else text


_FIELDS: Final = {"json": "as_json", "workspace": "workspace_option"}
"""The field of ``Invocation`` for each option that does not have its name."""


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value of a shared option; one that was given before the name of the command stays."""
    invocation = ctx.ensure_object(Invocation)
    name = _FIELDS.get(parameter.name or "", parameter.name or "")
    setattr(invocation, name, value or getattr(invocation, name))
    invocation.names_agent |= name == "agent" and ctx.parent is not None


def _shared(name: str, text: str, **attributes: Any) -> click.Option:
    return click.Option([name], expose_value=False, callback=_keep, help=text, **attributes)


AGENT: Final = _shared("--agent", "Act as this agent (default: the agent `default`).", metavar="NAME")
SHARED: Final = (
    _shared("--json", "Print the daemon's answer as JSON.", is_flag=True),
    _shared(
        "--url", "Address of the daemon (default: SIGNET_DAEMON_URL, else the daemon of the workspace).", metavar="URL"
    ),
    _shared(
        "--workspace",
        "Workspace of the daemon (default: SIGNET_WORKSPACE, else ~/.agents).",
        metavar="DIR",
        type=click.Path(file_okay=False),
    ),
)


def command(
    owner: click.Group | None = None, name: str | None = None, *, agent: bool = False
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return the decorator of a command with the shared options, whose function gets the Invocation.

    ``owner``: the group that it belongs to. ``agent``: it has ``--agent``, which its client names in each request.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        made = click.command(name)(click.pass_obj(function))
        made.params += [*([AGENT] if agent else []), *SHARED]
        if owner is not None:
            owner.add_command(made)
        return made

    return decorate


def group(**attributes: Any) -> Callable[[Callable[..., Any]], click.Group]:
    """Return the decorator of a group of commands with the shared options."""

    def decorate(function: Callable[..., Any]) -> click.Group:
        made: click.Group = click.group(**attributes)(function)
        made.params += SHARED
        return made

    return decorate


def page_options(most: int, what: str, *, default: int = 20, offset: bool = True) -> Callable[[F], F]:
    """Return ``--limit`` and ``--offset``: how many rows, and after how many others."""
    options = [
        click.option(
            *("--limit", "-n"),
            type=click.IntRange(1, most),
            default=default,
            show_default=True,
            help=f"Maximum number of {what}.",
        ),
        click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Skip this many."),
    ]
    return lambda function: functools.reduce(lambda made, option: option(made), options[offset::-1], function)


def reason_option(default: str | None = None) -> Callable[[F], F]:
    return click.option("--reason", "-r", default=default, show_default=True, help="Recorded in the history.")


def version_option(text: str = "Only if the memory still has this version.") -> Callable[[F], F]:
    return click.option("--if-version", type=click.IntRange(1), metavar="N", help=text)


def directory_named(name: str) -> str:
    """Return the absolute path of the directory that ``name`` is a path of; any other name of a project as it is.

    A path begins with ``.``, ``~`` or ``/``, ends with ``/``, or leads to a directory that exists. Without a slash, a
    name is that of a project, even if there is such a directory here. Raises BadParameter.
    """
    path = os.path.expanduser(name)
    is_path = path in (".", "..") or path.startswith(("./", "../", "/", "~")) or path.endswith("/")
    if not is_path and not ("/" in path and os.path.isdir(path)):
        return name
    try:
        here = os.getcwd() if not os.path.isabs(path) else ""
    except OSError as error:
        raise click.BadParameter(f"the current directory cannot be found: {error.strerror}") from None
    return os.path.join(here, path)


def project_option(text: str) -> Callable[[F], F]:
    """Return ``--project`` with the help ``text``: a directory, in any spelling, or the name of a project."""
    return click.option(
        "--project",
        metavar="DIR|NAME",
        help=text,
        callback=lambda _ctx, _parameter, value: directory_named(value) if value else value,
    )


_FILTERS: Final = (
    click.option("--type", "type_", metavar="TYPE", help="Only memories of this type."),
    click.option("--tags", "-t", multiple=True, metavar="A,B", help="Only memories with any of these tags."),
    click.option("--who", help="Only memories of this author."),
    click.option("--since", metavar="TIME", type=SINCE, help="Created then or later (ISO time, date, `yesterday`, …)."),
    click.option(
        "--until", metavar="TIME", type=UNTIL, help="Created then or earlier (ISO time, date, `yesterday`, …)."
    ),
    project_option("Only memories of this project."),
    click.option("--scope", help="Only memories of this scope (default: those without a scope)."),
    click.option("--pinned", is_flag=True, default=None, help="Only pinned memories."),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which memories; the command gets them as ``only``, by the names of the API."""

    @functools.wraps(command)
    def filtered(*args: Any, type_: str | None, tags: tuple[str, ...], **given: Any) -> None:
        only = {"type": type_, "tags": split_tags(tags)}
        only |= {name: given.pop(name) for name in ("who", "since", "until", "project", "scope", "pinned")}
        command(*args, only=only, **given)

    return functools.reduce(lambda decorated, option: option(decorated), reversed(_FILTERS), filtered)


def query_of(only: dict[str, Any]) -> dict[str, Any]:
    return {**only, "tags": ",".join(only["tags"] or ()) or None}


def split_tags(tags: tuple[str, ...]) -> list[str] | None:
    """Return the tags of repeated and comma-separated options; None if no option was given."""
    if not tags:
        return None
    return [tag.strip() for option in tags for tag in option.split(",") if tag.strip()]


def print_unusual_type(given: str | None) -> None:
    """Tell a person that a memory has got a type that is none of the known ones, perhaps by mistake."""
    if given is None or not on_terminal():
        return
    import difflib  # noqa: PLC0415 - only for a type that is given

    from signet_actors.domain.memories import MEMORY_TYPES  # noqa: PLC0415 - likewise

    if given.strip().lower() not in MEMORY_TYPES:
        close = difflib.get_close_matches(given.strip().lower(), MEMORY_TYPES, n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        print_message(f"{one_line(given)} is an unknown type.{meant} Known: {', '.join(MEMORY_TYPES)}.")


class HarnessName(click.Choice[str]):
    """The name of a harness; its program (`claude`) and its title mean it, too, in any case."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raises BadParameter, with a name that is like the given one."""
        from signet_actors.cli.harnesses.registry import HARNESSES  # noqa: PLC0415 - slow; only for such an argument

        given = value.lower().replace(" ", "-").replace("_", "-")
        for harness in HARNESSES:
            if given in (harness.program, harness.title.lower().replace(" ", "-")):
                given = harness.name
        if given in self.choices:
            return given
        near = closest(given, self.choices)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(self.choices)}."
        raise click.BadParameter(f"{value!r} is no program that Signet knows; {hint}", ctx, param)
