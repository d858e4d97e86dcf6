"""The help of every command, its examples, and the manual page made from them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from signet_actors.cli.examples import EXAMPLES
from signet_actors.cli.import_export import IMPORTERS
from signet_actors.cli.main import COMMANDS, GROUPS, cli
from tests.support import man_page

PAGE = Path(__file__).parents[2] / "docs" / "signet.1"


def names() -> list[str]:
    """Every command and subcommand."""

    def below(group: click.Group, before: str) -> Iterator[str]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            yield f"{before}{name}"
            if isinstance(command, click.Group) and name != "call":
                yield from below(command, f"{before}{name} ")

    return list(below(cli, ""))


def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(names()), "each command and subcommand has examples in cli/examples.py"


@pytest.mark.parametrize("format_", IMPORTERS)
def test_the_help_of_import_explains_each_format_with_an_example(signet: Callable[..., Result], format_: str) -> None:
    shown = signet("import", "--help").stdout
    assert f"\n    {format_} " in shown
    assert any(line.endswith(f" --from {format_}") for line in EXAMPLES["import"])


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_the_help_of_a_command_fits_a_terminal_of_80_columns_and_breaks_no_command(
    signet: Callable[..., Result], name: str
) -> None:
    shown = signet(*name.split(), "--help").stdout
    assert [line for line in shown.splitlines() if len(line) > 80 or line.count("`") % 2] == []
    assert "\N{NO-BREAK SPACE}" not in shown


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_shows_its_examples(signet: Callable[..., Result], name: str) -> None:
    shown = signet(*name.split(), "--help").stdout
    assert all(f"  {line}\n" in shown for line in EXAMPLES[name])


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_call_that_the_parser_accepts(line: str) -> None:
    words = shlex.split(line)
    end = next((place for place, word in enumerate(words) if word in {"<", ">", "|"}), len(words))
    assert words[0] == "signet"
    command: click.Command = cli
    context = click.Context(cli, info_name="signet")
    arguments = words[1:end]
    while isinstance(command, click.Group) and arguments:
        found = command.get_command(context, arguments[0])
        assert found is not None, arguments
        command, arguments = found, arguments[1:]
        context = click.Context(command, parent=context, info_name="x", obj=None)
    with command.make_context("x", list(arguments), parent=context.parent):
        pass


def test_the_manual_page_is_made_from_the_commands() -> None:
    assert man_page.page() == PAGE.read_text(encoding="utf-8"), "run: python -m tests.support.man_page > docs/signet.1"


def test_every_command_stands_below_one_heading_of_the_help(signet: Callable[..., Result]) -> None:
    grouped = [name for _, names in GROUPS for name in names]
    assert sorted(grouped) == sorted(name for name, *_ in COMMANDS), "put the command below a heading of GROUPS"
    shown = signet("--help").stdout
    places = [shown.index(f"\n{heading}:\n") for heading, _ in GROUPS]
    assert places == sorted(places)


@pytest.mark.parametrize("group", ["config", "review", "retention", "synthesis", "service"])
def test_a_group_without_a_command_prints_its_help_and_nothing_else(signet: Callable[..., Result], group: str) -> None:
    assert signet(group).output.strip() == signet(group, "--help").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("import", "x", "--from", "markdwon"), "markdown"),
        (("review", "list", "--state", "pendin"), "pending"),
        (("remember", "x", "--visibility", "privat"), "private"),
        (("review", "list", "--state", "xyzzy"), ""),
        (("list", "--limit", "x"), ""),
    ],
)
def test_a_mistyped_choice_is_refused_with_the_one_that_was_meant(
    signet: Callable[..., Result], arguments: tuple[str, ...], meant: str
) -> None:
    result = signet(*arguments)
    assert result.exit_code == 2
    assert (f"Did you mean {meant}?" in " ".join(result.stderr.split())) is bool(meant)
    assert ("Did you mean" in result.stderr) is bool(meant)
