"""The identity files of an agent: those of the workspace, some of which an agent can have for itself.

Source: architecture.txt "Multi-Agent Support" (identity inheritance); docs/guides/identity.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import open_regular
from signet_actors.config.workspace import Workspace
from signet_actors.domain.identity_block import DamagedMarks, without_block
from signet_actors.domain.session_inject import IDENTITY_FILES, RECENT_FILE, IdentityFile
from signet_actors.errors import ConfigError

MAX_FILE_BYTES: Final = 1024 * 1024
PROSE_ENDINGS: Final = (".md", ".markdown", ".mdx", ".txt")
OWN_FILES: Final = ("SOUL.md", "IDENTITY.md")
"""What an agent may have for itself in ``agents/NAME``; all else comes from the workspace."""
LASTING_FILES: Final = tuple(file for file in IDENTITY_FILES if file.name != RECENT_FILE)
"""What an agent is, without what is going on at present."""


def identity_path(workspace: Path, name: str, agent_id: str) -> Path:
    """Return the path of the agent's file ``name``. An agent's own file counts if it exists, even if it is blank."""
    if name in OWN_FILES and is_directory_name(agent_id):
        own = Workspace(workspace).agents_dir / agent_id / name
        if own.exists():
            return own
    return workspace / name


def is_directory_name(agent_id: str) -> bool:
    """Return whether ``agents`` may have a directory of this name; one that begins with a dot is no agent's."""
    return not agent_id.startswith(".") and "/" not in agent_id and "\0" not in agent_id


def read_prose(path: Path) -> bytes:
    """Return the content of a file that is shown to models, or its beginning. Raises ConfigError and OSError.

    A link is followed to Markdown or plain text only, by its ending: one that came with a repository may lead to a
    private key.
    """
    real = Path(os.path.realpath(path))
    if real.suffix.lower() not in PROSE_ENDINGS:
        raise ConfigError(f"{path} leads to {real}, which is not named like a text")
    with os.fdopen(open_regular(real, os.O_RDONLY), "rb") as file:
        return file.read(MAX_FILE_BYTES)


def read_identity(
    workspace: Path, agent_id: str, files: Sequence[IdentityFile] = LASTING_FILES, *, target: Path | None = None
) -> list[tuple[IdentityFile, str]]:
    """Return the texts of the agent's files that can be read and are not blank.

    A file may be a link to one of a harness. Of that, the user's own text counts; it is left out for ``target`` itself.
    """
    found = []
    for file in files:
        path = identity_path(workspace, file.name, agent_id)
        try:
            if target is not None and target.exists() and path.samefile(target):
                continue
            raw = read_prose(path)
        except (ConfigError, OSError):
            continue
        with contextlib.suppress(DamagedMarks):
            raw = without_block(raw)
        text = raw.decode("utf-8-sig", "replace").strip()
        if text:
            found.append((file, text))
    return found
