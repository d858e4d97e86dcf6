"""Limit on deletions by batch forgets without a confirm token: 25 in 5 minutes, over any number of requests.

Recent deletions are kept as ``[[began_ms, count], …]``, one pair per ten seconds, so the list stays short. All
callers share one list, because in local mode they are not authenticated.

Source: memory-api.txt "POST /api/memory/forget".
Departs: the documented threshold counts the candidates of one request, which a caller can avoid with a smaller
``limit``. Here matches are counted before ``limit``, and over five minutes.
"""

from __future__ import annotations

import json
from typing import Final

CONFIRM_ABOVE: Final = 25
STORE_KEY: Final = "batch_forgets"
"""The key of the list in ``store_meta``."""
WINDOW_MS: Final = 5 * 60 * 1000
_STEP_MS: Final = 10_000

Deletions = list[tuple[int, int]]


def needs_confirmation(matching: int, recently_deleted: int) -> bool:
    """Return whether forgetting ``matching`` more memories requires a token."""
    return matching > 0 and matching + recently_deleted > CONFIRM_ABOVE


def recently_deleted(deletions: Deletions, now_ms: int) -> int:
    """Return the number deleted within the window. Deletions dated far in the future by a wrong clock do not count."""
    return sum(count for began_ms, count in deletions if abs(now_ms - began_ms) < WINDOW_MS + _STEP_MS)


def with_deletion(deletions: Deletions, now_ms: int, count: int) -> Deletions:
    """Return the deletions within the window, plus ``count`` deletions now."""
    step_ms = now_ms - now_ms % _STEP_MS
    kept = {began_ms: former for began_ms, former in deletions if abs(now_ms - began_ms) < WINDOW_MS + _STEP_MS}
    kept[step_ms] = kept.get(step_ms, 0) + count
    return sorted(kept.items())


def parse_deletions(text: str | None) -> Deletions:
    """Parse the output of ``deletions_text``. None gives an empty list."""
    return [] if text is None else [(int(began_ms), int(count)) for began_ms, count in json.loads(text)]


def deletions_text(deletions: Deletions) -> str:
    return json.dumps(deletions, separators=(",", ":"))
