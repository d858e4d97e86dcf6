"""The command completion: print a script that makes the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from signet_actors.cli.invocation import shared_options


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@shared_options
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash   eval "$(signet completion bash)"               in ~/.bashrc
    zsh    eval "$(signet completion zsh)"                in ~/.zshrc
    fish   signet completion fish > ~/.config/fish/completions/signet.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "signet", "_SIGNET_COMPLETE").source())
