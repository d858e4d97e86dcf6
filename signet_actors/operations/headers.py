"""Names of Signet's own headers that the gateway and the command line both use."""

from __future__ import annotations

from typing import Final

NEXT_CURSOR_HEADER: Final = "x-signet-next-cursor"
OWNER_TOKEN_HEADER: Final = "x-signet-owner-token"  # noqa: S105 - the name of a header
