"""The command ``signet``: a table of commands, each imported only when it is used.

Start-up time is noticeable in every call. Therefore the table holds the help lines, and ``signet --help`` imports no
command. Every error is printed as one line on standard error with advice, and ends in an exit code of
``exit_codes.py``. A malformed reply of the daemon is such an error, too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from signet_actors.cli import presentation as output
from signet_actors.cli.examples import with_examples
from signet_actors.cli.exit_codes import INTERRUPTED, exit_code, explanation, remedy
from signet_actors.cli.invocation import AGENT, SHARED, Invocation
from signet_actors.errors import ExitCode, RequestRefused, SignetError
from signet_actors.runtime.processes.terminal import open_standard_streams

COMMANDS: tuple[tuple[str, str, str, str], ...] = (
    # name, module, attribute, help line
    ("up", "lifecycle", "up", "Run the daemon in the foreground."),
    ("start", "lifecycle", "start", "Start the daemon in the background and wait until it is ready."),
    ("stop", "lifecycle", "stop", "Stop the daemon after it has finished running work."),
    ("restart", "lifecycle", "restart", "Stop the daemon if it runs, then start it."),
    ("status", "status", "status", "Show whether the daemon runs, what it holds, and what is wrong."),
    ("dashboard", "dashboard", "dashboard", "Open the page of the daemon in a browser."),
    ("top", "top", "top", "Show the daemon at work, until Ctrl-C."),
    ("remember", "memories", "remember", "Store a memory."),
    ("recall", "recall", "recall", "Find memories that answer a question."),
    ("search", "recall", "search", "Find memories that contain all the words."),
    ("list", "memories", "list_memories", "List memories, newest first."),
    ("show", "show", "show", "Show one memory in full, or what was said in a session."),
    ("sessions", "show", "sessions", "List past sessions, the latest first."),
    ("why", "why", "why", "Show what the prompts of a session were given, and why."),
    ("history", "show", "history", "Show what happened to a memory, oldest first."),
    ("timeline", "timeline", "timeline", "Show what happened to a memory or an entity, sessions and jobs included."),
    ("edit", "memory_changes", "edit", "Change a memory."),
    ("forget", "memory_changes", "forget", "Delete memories, recoverable for 30 days unless --permanently."),
    ("recover", "memory_changes", "recover", "Recover deleted memories."),
    ("graph", "graph", "graph", "Show what memory knows about people, projects and tools."),
    ("export", "export", "export", "Write memories to a file of JSON lines, or as Markdown."),
    ("import", "import_export", "import_", "Store notes (Markdown), or the memories of a file."),
    ("backfill", "backfill", "backfill", "Store the past sessions of your agents as transcripts."),
    ("pipeline", "pipeline", "pipeline", "Show the pipeline's status and runs; undo a run."),
    ("providers", "pipeline", "providers", "Show each stage's model, its state, and today's usage."),
    ("review", "proposals", "review", "Approve or reject the pipeline's proposals."),
    ("synthesis", "duties", "synthesis", "Show when MEMORY.md was made and what changed; make it now."),
    ("token", "tokens", "token", "Issue, list, replace and revoke tokens of this daemon."),
    ("login", "tokens", "login", "Store a token for the daemon at URL, for all programs of this user."),
    ("logout", "tokens", "logout", "Remove the token that is stored for the daemon at URL."),
    ("logs", "logs", "logs", "Show the daemon's log, or follow it."),
    ("config", "config", "config", "Show, check or change the configuration."),
    ("analytics", "analytics", "analytics", "Show what the daemon did: usage, errors, latency or prompts."),
    ("repair", "repair", "repair", "List what repairs would do, or run one."),
    ("retention", "duties", "retention", "Run the periodic clean-up now."),
    ("backup", "backup_commands", "backup", "Back up the database while the daemon runs."),
    ("restore", "backup_commands", "restore", "Replace the database with a backup."),
    ("doctor", "doctor", "doctor", "Check the installation and print remedies."),
    ("audit", "audit", "audit", "Show what was changed, exported or denied, newest first."),
    ("bench", "bench", "bench", "Measure how fast the daemon is on this machine."),
    ("eval", "eval", "eval_", "Measure how well recall finds the right memories."),
    ("call", "call", "call", "Call an operation of the HTTP interface by name."),
    ("mcp", "mcp", "mcp", "Serve the memory tools to a program that speaks MCP."),
    ("setup", "setup", "setup", "Set everything up: daemon, programs that run agents, notes, service."),
    ("connect", "connect", "connect", "Have a program that runs agents call Signet by itself."),
    ("disconnect", "connect", "disconnect", "Remove Signet from the settings of a program."),
    ("service", "service", "service", "Run the daemon as a service, which starts when you log in."),
    ("uninstall", "setup", "uninstall", "Take Signet out of this machine: service, daemon, connected programs."),
    ("hook", "mcp", "hook", "Send what a harness reports on standard input to the daemon."),
    ("completion", "help", "completion", "Print the completion script for a shell."),
    ("help", "help", "help_", "Explain a command."),
    ("version", "status", "version", "Print the version."),
)

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start here", ("setup", "start", "remember", "recall", "status", "help")),
    (
        "Memories",
        (
            *("list", "show", "search", "edit", "forget", "recover", "history", "timeline", "sessions", "why"),
            *("graph", "import", "export"),
        ),
    ),
    ("Agents", ("connect", "disconnect", "backfill", "mcp", "hook")),
    (
        "Daemon",
        (
            "stop",
            "restart",
            "service",
            "dashboard",
            "top",
            "doctor",
            "logs",
            "config",
            "backup",
            "restore",
            "up",
            "uninstall",
            "version",
        ),
    ),
    ("Team", ("token", "login", "logout", "audit")),
    (
        "Advanced",
        (
            *("providers", "pipeline", "review", "synthesis", "retention", "repair", "analytics", "call", "bench"),
            *("eval", "completion"),
        ),
    ),
)
"""The headings of ``signet --help``, and the commands below each."""

MALFORMED_REPLY_ERRORS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What a command raises if the members of a reply are not what the API specifies."""


class _HelpFormatter(click.HelpFormatter):
    """Breaks no command between backquotes, so that it can be copied."""

    def write_text(self, text: str) -> None:
        super().write_text(output.hold_commands(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, output.hold_commands(text)) for name, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return output.released(super().getvalue())


click.Context.formatter_class = _HelpFormatter


class SignetGroup(click.Group):
    """The commands of ``COMMANDS``, in that order, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for name, *_ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command's module and return the command; None for an unknown name."""
        for name, module, attribute, _ in COMMANDS:
            if name == cmd_name:
                command: click.Command = getattr(importlib.import_module(f"signet_actors.cli.{module}"), attribute)
                return with_examples(command, name)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the commands in groups from the table, without importing any of them."""
        lines = {name: help_line for name, _, _, help_line in COMMANDS}
        for heading, names in GROUPS:
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<10}", lines[name]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command; for an unknown name raise a usage error that suggests similar ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # noqa: PLC0415 - needed only for a mistyped command

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=2)
            hint = f" Did you mean {' or '.join(close)}?" if close else " `signet --help` lists the commands."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn an error into one line on standard error and its documented exit code."""
        invocation = ctx.ensure_object(Invocation)
        failure: SignetError
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo(err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except click.exceptions.NoArgsIsHelpError:  # its message is the help of the group, which click has laid out
            raise
        except click.UsageError as error:
            message = error.format_message() + _similar_choice(error) + _before_dash(error)
            shown = output.wrapped(message, taken=len("Error: ")) if sys.stderr.isatty() else message
            raise click.UsageError(shown, error.ctx) from error
        except SignetError as error:
            failure = error
        except UnicodeEncodeError:  # a limit of standard output, not a malformed reply
            raise
        except MALFORMED_REPLY_ERRORS as error:
            last = invocation.last_client.last if invocation.last_client else None
            if last is None:
                raise  # no reply yet: this is a bug of the command line, so show its traceback
            failure = last.malformed(f"{type(error).__name__} while printing the reply")
        report(failure, invocation)
        raise click.exceptions.Exit(exit_code(failure))


def _similar_choice(error: click.UsageError) -> str:
    """Return ``Did you mean …?`` for an argument or option that has nearly one of the values that it may have."""
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    if not isinstance(kind, click.Choice) or "' is not one of " not in error.message:
        return ""
    given = error.message.split("'")[1]
    import difflib  # noqa: PLC0415 - only for a mistyped value

    choices = [str(choice) for choice in kind.choices]
    close = [choice for choice in choices if given and choice.startswith(given)][:1]
    close = close or difflib.get_close_matches(given, choices, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _before_dash(error: click.UsageError) -> str:
    """Return how to give a text that begins with a dash, to a command that takes a text."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    given = {each.name for each in error.ctx.command.params if isinstance(each, click.Argument) and each.nargs == -1}
    return " Put `--` before a text that begins with a dash." if given & {"text", "query", "words"} else ""


def report(error: SignetError, invocation: Invocation) -> None:
    """Print the error to standard error; with ``--json`` also the daemon's own reply to standard output."""
    if invocation.as_json and isinstance(error, RequestRefused) and error.answer:
        output.print_bytes(error.answer.rstrip(b"\n") + b"\n")
    advice = invocation.advice(remedy(error))
    lines = [line.rstrip(".") for line in output.printable(invocation.advice(explanation(error))).split("\n")]
    output.print_message(f"signet: {lines[0]}.{' ' + advice if advice and len(lines) == 1 else ''}")
    for line in lines[1:]:
        output.print_message(f"        {line}.")
    if advice and len(lines) > 1:
        output.print_message(advice)


@click.group(
    cls=SignetGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="`signet COMMAND --help` explains a command. Exit codes: docs/cli.md.",
)
@click.version_option(package_name="signet-actors", prog_name="signet", message="%(prog)s %(version)s")
def cli() -> None:
    """Long-term memory for AI coding agents: talk to the Signet daemon of this machine."""


cli.params += [AGENT, *SHARED]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its exit code.

    Characters that the output encoding lacks (``LC_ALL=C``) are written as escapes. Closed standard streams (``2>&-``)
    lead to ``/dev/null``.
    """
    _open_closed_streams()
    output.prepare_output()
    try:
        cli.main(args=arguments, prog_name="signet")
    except BrokenPipeError:
        # The reader of our output has exited (`signet list | head`). That is not an error.
        output.discard_output()
        sys.exit(0)
    except output.OutputFailed as error:
        output.discard_output()
        output.print_message(
            f"signet: standard output cannot be written: {error.strerror}. What the command did is not undone."
        )
        sys.exit(ExitCode.IO_ERROR)


def _open_closed_streams() -> None:
    """Open the standard streams that were closed when this process started. Python sets them to None."""
    open_standard_streams()
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as this process
            setattr(sys, name, stream)
