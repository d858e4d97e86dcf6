"""The commands help, the same text as ``--help``, and completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from signet_actors.cli.invocation import Invocation, command


@command(name="help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
def help_(_invocation: Invocation, names: tuple[str, ...]) -> None:
    """Explain a command: `signet help pipeline undo`."""
    ctx = click.get_current_context()
    place = ctx.find_root()
    for name in names:
        command = place.command.get_command(place, name) if isinstance(place.command, click.Group) else None
        if command is None:
            raise click.UsageError(f"there is no command {name!r} in `{place.command_path}`", ctx)
        place = click.Context(command, parent=place, info_name=name, **command.context_settings)
    click.echo(place.command.get_help(place))


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(_invocation: Invocation, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash   eval "$(signet completion bash)"               in ~/.bashrc
    zsh    eval "$(signet completion zsh)"                in ~/.zshrc
    fish   signet completion fish > ~/.config/fish/completions/signet.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(click.get_current_context().find_root().command, {}, "signet", "_SIGNET_COMPLETE").source())
