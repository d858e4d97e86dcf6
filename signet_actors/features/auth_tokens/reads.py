"""The tokens and keys that were issued. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.auth_tokens import api
from signet_actors.features.auth_tokens.rules import COLUMNS, stored
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot

_PAGE: Final = f"SELECT {COLUMNS} FROM auth_tokens ORDER BY created_at DESC, id LIMIT :limit OFFSET :offset"
_TOTAL: Final = "SELECT count(*) FROM auth_tokens"
_KEYS: Final = f"SELECT {COLUMNS} FROM auth_tokens WHERE kind = 'api_key' ORDER BY created_at DESC, id LIMIT :limit"
_LIVE: Final = f"SELECT {COLUMNS} FROM auth_tokens WHERE revoked_at IS NULL"
MAX_KEYS: Final = 10_000
"""Keys that a list has at most."""


def listed(snapshot: Snapshot, asked: Asked[api.ListTokensRequest]) -> api.TokensReply:
    """Return a page of the tokens and keys, and their number."""
    page = asked.request
    rows = map(stored, snapshot.rows(_PAGE, {"limit": page.limit, "offset": page.offset}))
    shown = [msgspec.convert(row, api.TokenReport, from_attributes=True) for row in rows]
    return api.TokensReply(shown, snapshot.value(_TOTAL, {}))


def listed_keys(snapshot: Snapshot, _asked: Asked[OwnAgent]) -> api.ApiKeysReply:
    """Return the keys, the newest first."""
    return api.ApiKeysReply([api.issued_key(stored(row)) for row in snapshot.rows(_KEYS, {"limit": MAX_KEYS})])


def live(snapshot: Snapshot, _query: api.FindLiveTokens) -> api.LiveTokens:
    """Return what is not revoked. What has expired is refused by its own claims."""
    return api.LiveTokens([stored(row) for row in snapshot.rows(_LIVE, {})])


READS: Final = {api.LIST: listed, api.LIST_KEYS: listed_keys, api.FindLiveTokens: live}
