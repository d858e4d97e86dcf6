"""How many memories batch forgets may delete without a confirm token: 25 in 5 minutes, in one step or in slices.

The deletions of the last minutes are kept as ``[[began_ms, count], …]``, one pair for each ten seconds, so that the
list stays short whatever is deleted. In local mode no caller is authenticated, so all of them share one list.

Source: memory-api.txt "POST /api/memory/forget".
Departs: the documented threshold counts the candidates of one request, which a smaller ``limit`` gets around.
"""

from __future__ import annotations

import json
from typing import Final

CONFIRM_ABOVE: Final = 25
STORE_KEY: Final = "batch_forgets"
"""Where ``store_meta`` keeps the list."""
WINDOW_MS: Final = 5 * 60 * 1000
_STEP_MS: Final = 10_000

Deletions = list[tuple[int, int]]


def needs_confirmation(matching: int, recently_deleted: int) -> bool:
    """True if forgetting ``matching`` memories more needs a token."""
    return matching > 0 and matching + recently_deleted > CONFIRM_ABOVE


def recently_deleted(deletions: Deletions, now_ms: int) -> int:
    """Return how many were deleted within the window; deletions that a wrong clock put far ahead do not count."""
    return sum(count for began_ms, count in deletions if abs(now_ms - began_ms) < WINDOW_MS + _STEP_MS)


def with_deletion(deletions: Deletions, now_ms: int, count: int) -> Deletions:
    """Return the deletions of the window with ``count`` more of this moment."""
    step_ms = now_ms - now_ms % _STEP_MS
    kept = {began_ms: former for began_ms, former in deletions if abs(now_ms - began_ms) < WINDOW_MS + _STEP_MS}
    kept[step_ms] = kept.get(step_ms, 0) + count
    return sorted(kept.items())


def parse_deletions(text: str | None) -> Deletions:
    """Return what ``deletions_text`` wrote; nothing where there is none."""
    return [] if text is None else [(int(began_ms), int(count)) for began_ms, count in json.loads(text)]


def deletions_text(deletions: Deletions) -> str:
    """Return the deletions as they are stored."""
    return json.dumps(deletions, separators=(",", ":"))
