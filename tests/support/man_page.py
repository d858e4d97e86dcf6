"""The manual page signet(1), made from the commands: ``python -m tests.support.man_page > docs/signet.1``.

Source: man-pages(7) "Sections within a manual page"; docs/cli.md "Exit codes".
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from signet_actors.cli.examples import EXAMPLES
from signet_actors.cli.main import cli

GLOBAL = ("json", "url", "workspace", "agent")
"""Options of every command, which the page explains once."""
EXIT_STATUS = (
    ("0", "Done."),
    ("1", "Refused, or not found."),
    ("2", "Wrong usage."),
    ("3", "No daemon runs on the workspace."),
    ("4", "Not applied: busy, frozen, or the disk is full."),
    ("5", "Outcome unknown; the same command may be repeated."),
    ("73", "A daemon runs on the workspace already."),
    ("74", "A backup is damaged, or the disk failed."),
    ("78", "The configuration is not valid."),
    ("130", "Interrupted."),
)


def page() -> str:
    """Return the page in roff."""
    root = click.Context(cli, info_name="signet", **cli.context_settings)
    lines = ['.TH SIGNET 1 "" "signet" "User Commands"', ".SH NAME", r"signet \- long-term memory for AI coding agents"]
    lines += [".SH SYNOPSIS", ".B signet", _text("[OPTIONS] COMMAND [ARGS]…"), ".SH DESCRIPTION"]
    lines += [*_description(cli), ".SH OPTIONS", *_options(root), ".SH COMMANDS"]
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        assert command is not None, "each command of the list exists"
        lines += _command(command, name, root)
    lines += [".SH EXIT STATUS", *(part for code, what in EXIT_STATUS for part in (".TP", f".B {code}", _text(what)))]
    return "\n".join(lines) + "\n"


def _command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name.rpartition(" ")[2])
    usage = " ".join(command.collect_usage_pieces(context))
    yield f'.SS "signet {name} {_text(usage)}"'
    yield from _description(command)
    yield from _options(context)
    if name in EXAMPLES:
        yield from (".PP", "Examples:", ".PP", ".nf", *(_text(f"  {line}") for line in EXAMPLES[name]), ".fi")
    if isinstance(command, click.Group) and name != "call":
        for sub_name, sub_command in command.commands.items():
            yield from _command(sub_command, f"{name} {sub_name}", context)


def _description(command: click.Command) -> Iterator[str]:
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):  # before Python 3.13 it has an indentation
        unwrapped = paragraph.startswith("\b")
        rows = [row.strip("\b") for row in paragraph.split("\n") if row.strip("\b")]
        yield ".PP"
        yield from ((".nf", *map(_text, rows), ".fi") if unwrapped else [_text(" ".join(map(str.strip, rows)).strip())])


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context)
        if record is not None and (context.parent is None or parameter.name not in GLOBAL):
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1]))


def _text(text: str) -> str:
    """Return the text in ASCII, with what roff would read as a command escaped."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(page())
