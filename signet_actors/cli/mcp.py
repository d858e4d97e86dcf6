"""The commands that programs start: mcp, the Model Context Protocol on standard input and output, and hook.

The handshake and the list of tools need no daemon. Each call looks for the daemon anew and is an HTTP request to it. It
never starts one.

Source: docs/guides/mcp.md; docs/cli.md "Harnesses"; Model Context Protocol, 2026-07-28 "stdio"; docs/decisions.md 61.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import click

from signet_actors.cli.exit_codes import INTERRUPTED
from signet_actors.cli.invocation import Invocation, command
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.errors import ErrorCode, InvalidRequest, RequestRefused
from signet_actors.hook.harness_events import is_switched_off
from signet_actors.runtime.local_zone import LOCAL_ZONE

if TYPE_CHECKING:
    from signet_actors.mcp.server import Performed
    from signet_actors.operations.tools import ToolRequest


ACTOR: Final = "mcp"
AT_ONCE: Final = 16
"""Requests to the daemon at the same time; more wait for their turn."""
MEMORY_IS_OFF: Final = "memory is off in this session: SIGNET_NO_HOOKS or SIGNET_BYPASS is set; go on without it"
MAX_PROJECT_CHARS: Final = 500
"""The daemon takes no longer name of a project."""
_FILE_URI: Final = re.compile("(?:file://(?:localhost)?|file:)(/(?!/).*)", re.IGNORECASE | re.DOTALL)
REFUSED: Final = 400
"""Any status of a refusal: its body has the code."""


@command(agent=True)
@click.option("--harness", metavar="NAME", help="The program that runs the agent; the history records it as author.")
@click.option(
    "--project",
    metavar="DIR",
    help="The project of the memories that are stored; default: the directory in which the program starts this command,"
    " or the first one that it shows (roots) if that is the home directory. An empty text: none.",
)
def mcp(invocation: Invocation, harness: str | None, project: str | None) -> None:
    """Serve the memory tools to a program that speaks MCP, on standard input and output.

    The program starts this command and ends it. The daemon must run (`signet start`); programs that support HTTP need
    no command: give them the daemon's address with the path /mcp. With SIGNET_NO_HOOKS=1 or SIGNET_BYPASS=1 each tool
    answers that memory is off.
    """
    from signet_actors.mcp.stdio import serve  # noqa: PLC0415 - slow; only for this command

    headers = {"x-signet-actor": _header(harness or ACTOR), "x-signet-actor-type": "agent"}
    headers["x-signet-agent-id"] = _header(invocation.agent or DEFAULT_AGENT)
    works_in = _working_directory() if project is None else _directory(project)

    def send(request: ToolRequest, roots: Sequence[str]) -> Performed:
        from signet_actors.operations.tools import with_origin, with_times  # noqa: PLC0415 - slow; loaded already

        timed = with_times(request, datetime.now(LOCAL_ZONE))
        named = with_origin(timed, harness=harness, project=_first_of(roots) if works_in is None else works_in)
        return _send(invocation, headers, named)

    # The thread that waits for the next line cannot be cancelled, so leaving the event loop would wait for that line.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    serve(send, at_once=AT_ONCE, asks_roots=works_in is None)
    os._exit(0)  # the thread of a cancelled call may still wait for the daemon


def _working_directory() -> str | None:
    """Return the directory in which the program started this command, by the name that it has there; None for none."""
    try:
        here = os.getcwd()
        named = os.environ.get("PWD", here)
        return _of_project(named if os.path.isabs(named) and os.path.samefile(named, here) else here)
    except OSError:  # it was removed
        return None


def _first_of(roots: Sequence[str]) -> str | None:
    """Return the directory of the first root that is a file of this machine; None for none."""
    files = filter(None, map(_FILE_URI.fullmatch, roots))
    return next((_of_project(os.fsdecode(unquote_to_bytes(found[1]))) for found in files), None)


def _of_project(directory: str) -> str | None:
    """Return the directory; None if it cannot be a project, as the root and the home directory, where servers start."""
    if not directory.isprintable() or len(directory) > MAX_PROJECT_CHARS:
        return None
    nowhere = (one for one in (os.path.expanduser("~"), os.sep) if os.path.exists(one) and os.path.exists(directory))
    return None if any(os.path.samefile(directory, one) for one in nowhere) else directory


def _directory(project: str) -> str:
    """Return the absolute path of the directory that ``--project`` names; empty for none. Raises InvalidRequest."""
    try:
        return os.path.abspath(os.path.expanduser(project)) if project else ""
    except OSError as error:
        raise InvalidRequest(f"--project: the current directory cannot be found: {error.strerror}") from None


def _header(name: str) -> str:
    """Return the name as the value of a header, in UTF-8. Raises InvalidRequest."""
    if not name.isprintable():
        raise InvalidRequest("--agent and --harness must be names without control characters")
    return name.encode().decode("latin-1")


def _send(invocation: Invocation, headers: Mapping[str, str], request: ToolRequest) -> Performed:
    """Send the request to the daemon, and return the reply. Raises SignetError."""
    from signet_actors.cli.connection import DaemonClient  # noqa: PLC0415 - with the first request
    from signet_actors.mcp.server import Performed  # noqa: PLC0415 - slow; loaded already
    from signet_actors.operations.request_path import fill_path  # noqa: PLC0415 - loaded already

    if is_switched_off(invocation.environ):
        raise RequestRefused(MEMORY_IS_OFF, code=ErrorCode.FORBIDDEN)
    operation = request.operation
    client = DaemonClient(
        invocation.address_of_programs(), print_warnings=False, headers=headers, environ=invocation.environ
    )
    try:
        reply = client.request(
            operation.method,
            fill_path(operation.paths[0], request.path),
            query=request.query,
            body=request.body,
            changes=operation.has_effect,
        )
        return Performed(reply.status, reply.raw)
    except RequestRefused as refused:
        if not refused.answer:
            raise
        return Performed(REFUSED, refused.answer)
    finally:
        client.close()


@command(agent=True)
@click.argument("name", required=False)
@click.option("-H", "--harness", metavar="HARNESS", help="The program that calls: claude-code, codex, or another name.")
@click.option("--project", metavar="DIR", help="The project (default: the directory that the harness names).")
def hook(invocation: Invocation, name: str | None, harness: str | None, project: str | None) -> None:
    """Send what a harness reports on standard input to the daemon.

    This is the program that `signet connect` installs; its faster name is signet-hook. NAME is session-start,
    user-prompt-submit, pre-compaction, compaction-complete, skill-invocation, checkpoint, session-end, remember or
    recall; without it, the event on standard input decides. It prints what the harness understands, and always exits
    with 0. SIGNET_NO_HOOKS=1 turns it off.
    """
    from signet_actors.hook.program import main  # noqa: PLC0415 - it ends this process

    if invocation.url:
        os.environ["SIGNET_DAEMON_URL"] = invocation.url
    given = {
        "--harness": harness,
        "--project": project,
        "--agent": invocation.agent,
        "--workspace": invocation.workspace_option,
    }
    options = [part for option, value in given.items() if value for part in (option, value)]
    main([*([name] if name else []), *options, *(["--json"] if invocation.as_json else [])])
