"""The command hook: another name of the program ``signet-hook``.

Source: docs/cli.md "Harnesses".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from signet_actors.cli.invocation import agent_option, shared_options

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.command()
@click.argument("name", required=False)
@click.option("-H", "--harness", metavar="HARNESS", help="The program that calls: claude-code, codex, or another name.")
@click.option("--project", metavar="DIR", help="The project (default: the directory that the harness names).")
@agent_option
@shared_options
@click.pass_obj
def hook(invocation: Invocation, name: str | None, harness: str | None, project: str | None, agent: str | None) -> None:
    """Send what a harness reports on standard input to the daemon.

    This is the program that `signet connect` installs; its faster name is signet-hook. NAME is session-start,
    user-prompt-submit, pre-compaction, compaction-complete, skill-invocation, checkpoint, session-end, remember or
    recall; without it, the event on standard input decides. It prints what the harness understands, and always exits
    with 0. SIGNET_NO_HOOKS=1 turns it off.
    """
    from signet_actors.hook.program import main  # noqa: PLC0415 - it ends this process

    if invocation.url:
        os.environ["SIGNET_DAEMON_URL"] = invocation.url
    given = {"--harness": harness, "--project": project, "--agent": agent, "--workspace": invocation.workspace_option}
    options = [part for option, value in given.items() if value for part in (option, value)]
    main([*([name] if name else []), *options, *(["--json"] if invocation.as_json else [])])
