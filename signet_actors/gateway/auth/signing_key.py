"""Secrets of the workspace, each created once and readable by its owner only.

``.daemon/secret``: the key that signs confirm tokens, 32 random bytes. ``.daemon/token-secret``: the same for tokens.
``.daemon/owner-token``: the token that ``gateway.requireOwner`` requires and that makes its bearer an administrator
where tokens are needed, in hexadecimal so that a person can copy it.

Source: docs/decisions.md 28, 42; docs/security.md "Where the specification is unsafe" (keys and tokens).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from signet_actors.errors import ConfigError
from signet_actors.runtime.file_draft import FileDraft, fsync_path

KEY_BYTES = 32


def signing_key(path: Path) -> bytes:
    """Return the key in ``path``; create it first if it does not exist, or is damaged, or was not private.

    A new key ends what the old one has signed: confirm tokens of the last minutes, or all tokens. A copy of the
    workspace by a medium without modes makes the old one readable. No reader sees an incomplete key: it is written to a
    temporary file and linked into place, and the first link wins. Raises ``ConfigError`` or ``OSError`` if the file
    cannot be replaced.
    """
    if os.path.lexists(path):
        try:
            return _read(path, KEY_BYTES)
        except ConfigError:
            path.unlink()
    _make(path, secrets.token_bytes(KEY_BYTES))
    return _read(path, KEY_BYTES)


def owner_token(path: Path) -> str:
    """Return the token in ``path``; create it first if it does not exist. Raises ``ConfigError``."""
    if not os.path.lexists(path):
        _make(path, secrets.token_hex(KEY_BYTES).encode())
    try:
        return _read(path, 2 * KEY_BYTES).decode("ascii")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the key is damaged; remove the file to get a new key") from None


def _make(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileDraft(path, f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}") as draft:
        draft.file.write(content)
        draft.sync()
        with contextlib.suppress(FileExistsError):
            os.link(draft.path, path)
    fsync_path(path.parent)


def _read(path: Path, size: int) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(
            f"{path}: the key cannot be read ({error.strerror}); remove the file to get a new key"
        ) from error
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            raise ConfigError(f"{path}: the key must be a regular file owned by the user that runs the daemon")
        if stat.S_IMODE(facts.st_mode) & 0o077:
            raise ConfigError(
                f"{path}: other users can read the key; set its mode to 600, or remove it to get a new key"
            )
        key = file.read(size + 1)
    if len(key) != size:
        raise ConfigError(f"{path}: the key is damaged; remove the file to get a new key")
    return key
