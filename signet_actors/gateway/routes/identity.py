"""The identity of an agent, from ``IDENTITY.md``; ``agent.yaml`` supplies what is missing there.

Source: architecture.txt "HTTP API Reference" (``/api/identity``), "User Data Layout", "Multi-Agent Support".
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.domain.identity import identity_of_document, identity_of_text
from signet_actors.errors import ConfigError
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.identity import GET_IDENTITY, IdentityReply, IdentityRequest
from signet_actors.runtime.identity_files import MAX_FILE_BYTES, identity_path

DEFAULT_NAME: Final = "Agent"


async def identity(call: Call[IdentityRequest]) -> HttpResponse:
    """Return the identity, always with 200. Files that cannot be read are skipped."""
    if not await call.is_owner():
        return HttpResponse(IdentityReply(DEFAULT_NAME, None, None, None, []))
    return HttpResponse(await asyncio.to_thread(identity_of_agent, call.state.workspace, call.agent_id))


def identity_of_agent(workspace: Path, agent_id: str) -> IdentityReply:
    """Return the agent's identity in the files of the workspace. Files that cannot be read are skipped. Blocks."""
    found: dict[str, str] = {}
    source = []
    document = identity_path(workspace, "IDENTITY.md", agent_id)
    for path, read in ((document, _from_text), (Workspace(workspace).config_file, _from_yaml)):
        values = {name: value for name, value in read(path).items() if name not in found}
        if values:
            found |= values
            source.append(str(path.relative_to(workspace)))
    return IdentityReply(
        name=found.get("name", DEFAULT_NAME),
        description=found.get("description"),
        creature=found.get("creature"),
        vibe=found.get("vibe"),
        source=source,
    )


def _from_text(path: Path) -> dict[str, str]:
    data = _read_file(path)
    return {} if data is None else identity_of_text(data.decode("utf-8-sig", "replace"))


def _from_yaml(path: Path) -> dict[str, str]:
    from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml  # noqa: PLC0415 - rarely needed, and large

    data = _read_file(path)
    if data is None:
        return {}
    try:
        return identity_of_document(parse_yaml(data))
    except UnreadableYaml:
        return {}


def _read_file(path: Path) -> bytes | None:
    """Return the file's content, None if it cannot be read; follow a link, as the daemon does for ``agent.yaml``."""
    try:
        return read_regular(path, MAX_FILE_BYTES, follow=True)
    except (ConfigError, OSError):
        return None


ROUTES: tuple[Route, ...] = serve(GET_IDENTITY, identity)
