"""Exit codes of the command line, as documented in ``docs/cli.md``, and the advice printed after an error."""

from __future__ import annotations

from signet_actors.cli.presentation import json_object
from signet_actors.errors import (
    CHUNK_EXISTS,
    ConfigError,
    DaemonNotRunning,
    ErrorCode,
    ExitCode,
    OutcomeUnknown,
    RequestRefused,
    SignetError,
    WorkspaceLocked,
)

REFUSED = 1
USAGE = 2
NOT_RUNNING = 3
UNAVAILABLE = 4
OUTCOME_UNKNOWN = 5
INTERRUPTED = 130
"""After Ctrl-C, like a shell reports it."""

EXIT_CODES: dict[ErrorCode, int] = {
    ErrorCode.BUSY: UNAVAILABLE,
    ErrorCode.UNAVAILABLE: UNAVAILABLE,
    ErrorCode.NOT_APPLIED: UNAVAILABLE,
    ErrorCode.MUTATIONS_FROZEN: UNAVAILABLE,
    ErrorCode.STORAGE_FULL: UNAVAILABLE,
    ErrorCode.RATE_LIMITED: UNAVAILABLE,
    ErrorCode.OUTCOME_UNKNOWN: OUTCOME_UNKNOWN,
}
"""Exit code for each error code; ``REFUSED`` for all others."""

REMEDIES: dict[ErrorCode, str] = {
    ErrorCode.BUSY: "Nothing was applied; try again in a moment.",
    ErrorCode.UNAVAILABLE: "Nothing was applied; try again in a moment, or check `signet status`.",
    ErrorCode.NOT_APPLIED: "Nothing was applied; try again in a moment.",
    ErrorCode.MUTATIONS_FROZEN: "Set memory.pipelineV2.mutationsFrozen to false and run `signet restart`.",
    ErrorCode.STORAGE_FULL: "Nothing was applied; free some disk space. Recall still works.",
    ErrorCode.RATE_LIMITED: "Nothing was applied; wait a minute and try again.",
    ErrorCode.OUTCOME_UNKNOWN: "Run the same command again: a change that was applied is not applied twice.",
    ErrorCode.UNAUTHORIZED: "Give this machine a token of that daemon with `signet login`, or correct SIGNET_TOKEN.",
    ErrorCode.INTERNAL: "`signet logs --level error` shows the cause.",
}

NO_TOKENS = "auth secret not available (local mode?)"
"""The daemon's refusal to issue a token in local mode (docs/compatibility.md "Authentication")."""
CORRECT_CONFIG = "Correct it with `signet config edit`."

STATUS_REMEDIES: dict[str, str] = {
    "pinned_requires_force": "`--force` deletes it anyway.",
    "version_conflict": "It has changed in the meantime: check it with `signet show ID`, then decide.",
    "already_deleted": "`signet recover ID` brings it back.",
    "deleted": "`signet recover ID` brings it back, then it can be changed.",
    "not_reviewable": "`signet review list` lists the pending proposals.",
    "target_gone": "`signet review reject ID` rejects the proposal.",
    "content_gone": "`signet review reject ID` rejects the proposal.",
    "pinned": "Change it yourself with `signet edit ID`; `signet review reject ID` rejects the proposal.",
    "duplicate_content_hash": "`signet show ID` prints it.",
    "duplicate_in_project": "`signet show ID` prints it.",
}
"""Advice by the ``status`` of a refused change. It takes precedence over the advice by error code."""


def exit_code(error: SignetError) -> int:
    """Return the exit code for the error."""
    if isinstance(error, DaemonNotRunning):
        return NOT_RUNNING
    if isinstance(error, ConfigError):
        return ExitCode.CONFIG
    if isinstance(error, WorkspaceLocked):
        return ExitCode.IN_USE
    return EXIT_CODES.get(error.code, REFUSED)


def remedy(error: SignetError) -> str:
    """Return what the user can do about the error; empty if the message is enough."""
    if isinstance(error, DaemonNotRunning):
        return error.remedy
    if isinstance(error, RequestRefused):
        if error.code is ErrorCode.STORAGE_FULL and "nothing was applied" in error.detail:
            return "Free some disk space. Recall still works."
        if error.detail == CHUNK_EXISTS:
            return (
                "A part of the text is a memory already, and nothing was stored. Find it with `signet search`; then"
                " change it with `signet edit ID`, or `signet forget ID --whole` and store the text again."
            )
        if error.code is ErrorCode.FORBIDDEN:
            return _needed_token(error.detail)
        if error.detail == NO_TOKENS:
            return "`signet config set auth.mode team` turns them on."
        return STATUS_REMEDIES.get(str((json_object(error.answer) or {}).get("status"))) or REMEDIES.get(error.code, "")
    if isinstance(error, ConfigError):
        from signet_actors.config.load import InvalidConfig  # noqa: PLC0415 - slow; only for an error
        from signet_actors.config.workspace import CONFIG_FILE_NAME  # noqa: PLC0415 - likewise

        in_file = isinstance(error, InvalidConfig) and error.detail.startswith(CONFIG_FILE_NAME)
        return CORRECT_CONFIG if in_file else ""  # not of an environment variable
    return REMEDIES[error.code] if isinstance(error, OutcomeUnknown) else ""


def _needed_token(detail: str) -> str:
    """Return which token would do, if the daemon refused what the present one asked for; else an empty text."""
    from signet_actors.domain.permissions import PERMISSIONS_OF  # noqa: PLC0415 - only for this error

    needed = detail.partition("' lacks '")[2].partition("'")[0]
    *fewer, most = [str(role) for role in reversed(PERMISSIONS_OF) if needed in PERMISSIONS_OF[role]] or [""]
    if most:
        named = f"{', '.join(fewer)} or {most}" if fewer else most
        return f"It needs a token with the role {named} (`signet login`)."
    return "It needs a token without this limit (`signet login`)." if detail.startswith("scope restricted") else ""


def explanation(error: SignetError) -> str:
    """Return what went wrong, in the words of the command line where those of the daemon are about a request."""
    answer = (json_object(error.answer) or {}) if isinstance(error, RequestRefused) else {}
    if answer.get("status") == "pinned_requires_force":
        return "The memory is pinned"
    if answer.get("status") == "duplicate_content_hash":
        other = answer.get("duplicateMemoryId")
        return "Another memory has this text already" + (f": {other}" if other else "")
    if answer.get("status") == "duplicate_in_project":
        other = answer.get("duplicateMemoryId")
        return "A memory of that project has this text already" + (f": {other}" if other else "")
    return "the daemon issues no tokens while auth.mode is local" if error.detail == NO_TOKENS else error.detail
