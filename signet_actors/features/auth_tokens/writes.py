"""Store and revoke tokens and keys. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Final

from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import Conflict, NotFound
from signet_actors.features.auth_tokens import api
from signet_actors.features.auth_tokens.rules import COLUMNS, stored
from signet_actors.store.command_context import CommandContext

KEPT_MS: Final = 30 * 86_400_000
"""What is over is listed for so long."""
_INSERT: Final = (
    f"INSERT INTO auth_tokens ({COLUMNS})"
    f" VALUES ({', '.join(f':{name}' for name in api.StoredToken.__struct_fields__)})"
)
_LIVE: Final = "SELECT count(*) FROM auth_tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"
_ONE: Final = f"SELECT {COLUMNS} FROM auth_tokens WHERE id = :id AND kind = :kind"
_REVOKE: Final = "UPDATE auth_tokens SET revoked_at = coalesce(revoked_at, :now) WHERE id = :id AND kind = :kind"
_PURGE: Final = "DELETE FROM auth_tokens WHERE expires_at < :now OR (expires_at IS NULL AND revoked_at < :now)"
"""What is not there is not accepted, so a row that is over is needed for lists only, and makes room for new ones."""


def store(context: CommandContext, command: api.StoreToken) -> api.StoredToken:
    """Store what was issued. Raises Conflict, NotFound."""
    tx, now = context.tx, context.now
    if command.replaces is not None:
        revoke(context, api.RevokeToken(id=command.replaces, kind=command.row.kind))
    if tx.value(_LIVE, {"now": now}) >= api.MAX_LIVE:
        raise Conflict(f"{api.MAX_LIVE} tokens and keys are valid; revoke those that are not needed")
    tx.execute(_PURGE, {"now": iso((epoch_ms(now) or 0) - KEPT_MS)})
    values = {name: getattr(command.row, name) for name in api.StoredToken.__struct_fields__}
    tx.execute(_INSERT, {**values, "role": command.row.role.value})
    return command.row


def revoke(context: CommandContext, command: api.RevokeToken) -> api.StoredToken:
    """Revoke a token or key; a second time it keeps its time. Raises NotFound."""
    named = {"id": command.id, "kind": command.kind}
    context.tx.execute(_REVOKE, {**named, "now": context.now})
    row = context.tx.one(_ONE, named)
    if row is None:
        raise NotFound("Token not found")
    return stored(row)


WRITES: Final = {api.StoreToken: store, api.RevokeToken: revoke}
