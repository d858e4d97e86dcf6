"""Find the mark with which a user switches memory off for a session: in a prompt, and in the session's transcript.

The rule is the daemon's. It is imported only for a text that may have the mark, because that takes longer than a hook.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import json
import os
import time

from signet_actors.hook.daemon import open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_TRANSCRIPT_BYTES = 64 << 20
SEARCH_LIMIT_S = 0.3
"""Of the processor, to find lines and to parse them. What takes longer is left to the daemon, when it is back."""


def switches_off(prompt: str) -> bool:
    """Return whether the prompt begins with the mark."""
    behind = prompt.lower().split("gnet")[1:]  # as the mark goes on in each of its spellings
    if not any("off" in rest.partition("]")[0] for rest in behind):
        return False
    from signet_actors.domain import prompt_terms  # noqa: PLC0415

    return prompt_terms.switches_off(prompt)


def is_in_transcript(body: dict[str, Any], path: str) -> bool:
    """Return whether a prompt of the transcript has the mark: of the one in the report, else of the file."""
    from signet_actors.domain.transcripts.marked import has_mark  # noqa: PLC0415

    raw = body.get("transcript", "").encode("utf-8", "replace") or _content(path)
    try:
        return has_mark(raw, _limit())
    except TimeoutError:
        return False


def _limit() -> Callable[[], None]:
    """Return what raises TimeoutError when this thread has worked for so long from now on."""
    until = time.thread_time() + SEARCH_LIMIT_S

    def check_time() -> None:
        if time.thread_time() > until:
            raise TimeoutError

    return check_time


def switch_request(body: dict[str, Any]) -> dict[str, Any]:
    """Return the prompt that switches memory off for the session of ``body``: the mark, and nothing that was said."""
    from signet_actors.domain.program_text import OFF_MARK  # noqa: PLC0415

    return {**_session_of(body), "userPrompt": OFF_MARK}


def transcript_with_mark(body: dict[str, Any]) -> dict[str, Any]:
    """Return a report with a transcript of the mark only, which counts unless memory was switched on again since."""
    from signet_actors.domain.program_text import OFF_MARK  # noqa: PLC0415

    return {**_session_of(body), "transcript": json.dumps({"role": "user", "content": OFF_MARK}), "reason": "turn"}


def _session_of(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("harness", "project", "sessionKey", "agentId") if name in body}


def told(*, is_kept: bool) -> str:
    """Return what the model and the user read if no daemon has confirmed the switch."""
    from signet_actors.domain.prompt_terms import SWITCHED_OFF  # noqa: PLC0415

    return SWITCHED_OFF if is_kept else NOT_SWITCHED_OFF


NOT_SWITCHED_OFF = (
    "[signet: memory could not be switched off for this session, because no daemon answers, and the switch cannot be"
    " kept in memory/spool of the workspace; the user must switch it off again when the daemon runs]"
)


def _content(path: str) -> bytes:
    """Return the content of a transcript of this user, empty if there is none."""
    if not path:
        return b""
    try:
        with os.fdopen(open_own(path), "rb") as file:
            return file.read(MAX_TRANSCRIPT_BYTES)
    except (OSError, ValueError):
        return b""
