"""What each hook sends: from the JSON that a harness writes to standard input to the request of the daemon's API.

Claude Code, Codex, Gemini CLI and our plugin of OpenCode send the same members for the same event, named in snake case;
Cursor has its own names for session and directories. A member that is missing, empty or of another type is left out of
the request.

Source: docs/guides/claude-code.md "What is sent", and the same section of the other guides.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not from typing, whose import takes longer than the request
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MESSAGE_CHARS = 20_000
PROMPT_CHARS = 40_000
"""The daemon reads no more of an assistant's message or of a prompt, half of it from the end, to find memories."""
SUMMARY_CHARS = 100_000
SKILL_CHARS = 200
TRANSCRIPT_CHARS = 1 << 20
"""A transcript in the event (of OpenCode, which has no file for a session) is never cut: a longer one is left out."""
MAX_CONTENT_CHARS = 16 << 20
"""A memory is never cut: one that is too long is refused by the daemon, with the reason."""
MAX_INJECT_CHARS = {"claude-code": 10_000, "codex": 10_000, "cursor": 10_000}
"""What a harness takes of an injected text. Claude Code counts UTF-16 units, Codex four UTF-8 bytes as a token."""
OTHER_MAX_INJECT_CHARS = 24_000
MAX_ANSWER_CHARS = 1 << 20


COMPACTIONS_WITHOUT_END = {"cursor": ("auto", "manual"), "gemini": ("manual",)}
"""Harnesses that report no end of a compaction, and the triggers of those that will most likely take place.

Gemini CLI announces one before each request to its model, and then looks whether it is needed.
"""
OFF_VARIABLES = ("SIGNET_NO_HOOKS", "SIGNET_BYPASS")


def is_switched_off(environ: Mapping[str, str]) -> bool:
    """Return whether a variable of the environment says that no hook may run: 1 or true, in any case."""
    return any(environ.get(name, "").strip().lower() in ("1", "true") for name in OFF_VARIABLES)


STARTS_WITH_PROMPT = ("gemini",)
"""Harnesses that put the text of a start before the words of the prompt: there it comes with the first prompt."""
START_LIMIT_S = 2.0
READS_GUIDELINES = ("opencode",)
"""Harnesses that take a text for the model that writes the summary of a compaction."""
GUIDELINES = "Memory keeps this summary beyond the session. Beside the state of the work it should contain:\n"


class Options:
    """The command line: the name of the hook, and what the harness does not know."""

    __slots__ = ("agent", "as_json", "drain", "harness", "help", "name", "project", "workspace")

    def __init__(self, arguments: list[str]) -> None:
        self.name = self.project = self.workspace = self.agent = ""
        self.harness = "generic"
        self.as_json = self.drain = self.help = False
        rest = iter(arguments)
        for argument in rest:
            option, has_value, value = argument.partition("=")
            member = _VALUE_OPTIONS.get(option)
            if member is not None:
                setattr(self, member, value if has_value else next(rest, ""))
            elif argument == "--json":
                self.as_json = True
            elif argument == "--drain":
                self.drain = True
            elif argument in ("-h", "--help"):
                self.help = True
            elif not argument.startswith("-") and not self.name:
                self.name = argument


_VALUE_OPTIONS = {
    "-H": "harness",
    "--harness": "harness",
    "--project": "project",
    "--workspace": "workspace",
    "--agent": "agent",
}


class Hook:
    """One hook: its route, its time limit, the members of its request, and what happens to its answer.

    ``injects``: the answer's text goes into the agent's context. ``durable``: the request is kept on disk until the
    daemon has it, if it has the member ``needs``, without which the daemon refuses it. ``answers``: the caller of the
    hook reads the daemon's answer.
    """

    __slots__ = ("answers", "build", "durable", "injects", "limit_s", "needs", "path")

    def __init__(
        self,
        route: str,
        build: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        limit_s: float,
        injects: bool = False,
        durable: bool = False,
        needs: str = "harness",
        answers: bool = False,
    ) -> None:
        self.path = f"/api/hooks/{route}"
        self.build = build
        self.limit_s = limit_s
        self.injects = injects
        self.durable = durable
        self.needs = needs
        self.answers = answers


def max_inject_chars(harness: str) -> int:
    return MAX_INJECT_CHARS.get(harness, OTHER_MAX_INJECT_CHARS)


def request_of(hook: Hook, event: dict[str, Any], options: Options) -> dict[str, Any]:
    """Return the body of the hook's request."""
    session = _text(event, "session_id") or _text(event, "sessionKey") or _text(event, "conversation_id")
    session = session.strip().removeprefix("session:").strip()  # as the daemon names it
    project = options.project or _text(event, "cwd") or _text(event, "project") or _first_root(event)
    if project in (".", "..") or project.startswith(("./", "../")):
        project = os.path.join(os.environ.get("PWD", ""), project)  # os.getcwd fails in a directory that was removed
    body: dict[str, Any] = {"harness": options.harness, "project": project, "sessionKey": session}
    body["agentId"] = options.agent
    if hook is not HOOKS["recall"]:
        body["transcriptPath"] = _text(event, "transcript_path")  # which tells where the session began
    body.update(hook.build(event))
    if hook is HOOKS["pre-compaction"] and event.get("trigger") in COMPACTIONS_WITHOUT_END.get(options.harness, ()):
        body["beginsEpoch"] = True
    if hook is HOOKS["session-start"] and is_start_deferred(event, options.harness):
        body["deferred"] = True
    if hook is HOOKS["user-prompt-submit"] and event.get("hook_event_name"):
        body["withStart"] = True  # also if the daemon did not run when the session began
    if hook.injects:
        body["maxInjectChars"] = max_inject_chars(options.harness)
    return {name: value for name, value in body.items() if value not in ("", None)}


def limit_of(hook: Hook, harness: str) -> float:
    return max(hook.limit_s, START_LIMIT_S) if hook.injects and harness in STARTS_WITH_PROMPT else hook.limit_s


def is_start_deferred(event: dict[str, Any], harness: str) -> bool:
    """Return whether the harness gets the text of a start with the first prompt; any other caller gets it at once."""
    return harness in STARTS_WITH_PROMPT and bool(event.get("hook_event_name"))


def is_first_prompt(event: dict[str, Any]) -> bool:
    """Return whether the session's file has no answer of the model yet; the program's own messages are the user's."""
    try:
        with open(_text(event, "transcript_path"), "rb") as file:
            return b'"type":"gemini"' not in file.read(TRANSCRIPT_CHARS).replace(b" ", b"")
    except (OSError, ValueError):
        return True


def text_for_agent(hook: Hook, answer: dict[str, Any], harness: str) -> str:
    """Return what the daemon's answer has for the agent, in a form that the harness takes; empty if nothing."""
    if hook.injects:
        return _text(answer, "inject", MAX_ANSWER_CHARS)
    if hook is HOOKS["pre-compaction"] and harness in READS_GUIDELINES:
        guidelines = _text(answer, "guidelines", MAX_ANSWER_CHARS)
        return GUIDELINES + guidelines if guidelines else ""
    return ""


def prompt_of(event: dict[str, Any]) -> str:
    """Return what the user sent, in any length."""
    value = event.get("prompt") or event.get("userMessage")
    return value if isinstance(value, str) else ""


def _text(event: dict[str, Any], name: str, limit: int = 4096) -> str:
    value = event.get(name)
    return value[:limit] if isinstance(value, str) else ""


def _first_root(event: dict[str, Any]) -> str:
    """Return the first directory of a workspace that has several, as Cursor names them."""
    roots = event.get("workspace_roots")
    return roots[0][:4096] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""


def _session_start(event: dict[str, Any]) -> dict[str, Any]:
    return {"source": _text(event, "source")}


def _user_prompt_submit(event: dict[str, Any]) -> dict[str, Any]:
    prompt, half = prompt_of(event), PROMPT_CHARS // 2
    at = len(prompt) - half
    key = prompt.rfind("-----BEGIN", 0, max(at, 0))
    if key >= 0 and prompt.find("-----END", key, at) < 0:  # a private key is only known by its beginning and its end
        at = max(at, prompt.find("-----END", at))
    return {
        "userPrompt": prompt if len(prompt) <= PROMPT_CHARS else f"{prompt[:half]}\n{prompt[at:]}",
        "lastAssistantMessage": _text(event, "last_assistant_message", MESSAGE_CHARS),
    }


def _pre_compaction(event: dict[str, Any]) -> dict[str, Any]:
    return {"sessionContext": _text(event, "custom_instructions", MESSAGE_CHARS)}


def _compaction_complete(event: dict[str, Any]) -> dict[str, Any]:
    return {"summary": _text(event, "compact_summary", SUMMARY_CHARS) or _text(event, "summary", SUMMARY_CHARS)}


def _skill_invocation(event: dict[str, Any]) -> dict[str, Any]:
    given = event.get("tool_input")
    duration_ms = event.get("duration_ms")
    return {
        "skill": _text(given, "skill", SKILL_CHARS) if isinstance(given, dict) else "",
        "toolUseId": _text(event, "tool_use_id"),
        "durationMs": duration_ms if isinstance(duration_ms, int) else None,
    }


def _session_end(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "sessionId": _text(event, "session_id") or _text(event, "conversation_id"),
        "cwd": _text(event, "cwd") or _first_root(event),
        "reason": _text(event, "reason"),
    }


def _checkpoint(event: dict[str, Any]) -> dict[str, Any]:
    transcript = event.get("transcript")
    is_given = isinstance(transcript, str) and len(transcript) <= TRANSCRIPT_CHARS
    return {"transcript": transcript if is_given else "", "reason": "turn"}


def _remember(event: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {
        name: event[name] for name in ("type", "tags", "importance", "idempotencyKey") if name in event
    }
    return {"content": _text(event, "content", MAX_CONTENT_CHARS), "who": _text(event, "who"), **kept}


def _recall(event: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: event[name] for name in ("limit",) if name in event}
    return {"query": _text(event, "query", MESSAGE_CHARS), **kept}


HOOKS = {
    "session-start": Hook("session-start", _session_start, limit_s=2.0, injects=True),
    "user-prompt-submit": Hook("user-prompt-submit", _user_prompt_submit, limit_s=1.0, injects=True),
    "pre-compaction": Hook("pre-compaction", _pre_compaction, limit_s=2.0),
    "compaction-complete": Hook(
        "compaction-complete", _compaction_complete, limit_s=2.0, durable=True, needs="summary"
    ),
    "skill-invocation": Hook("skill-invocation", _skill_invocation, limit_s=1.0),
    # The session goes on: the daemon stores what its transcript has so far. One that is in no file is kept until then.
    "checkpoint": Hook("session-checkpoint-extract", _checkpoint, limit_s=1.0, durable=True, needs="transcript"),
    # Claude Code gives all hooks of this event 1.5 s together; what has no answer by then stays in the spool.
    "session-end": Hook("session-end", _session_end, limit_s=1.4, durable=True),
    "remember": Hook("remember", _remember, limit_s=5.0, durable=True, needs="content", answers=True),
    "recall": Hook("recall", _recall, limit_s=3.0, answers=True),
}

NAME_OF_EVENT = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PreCompact": "pre-compaction",
    "PostCompact": "compaction-complete",
    "PostToolUse": "skill-invocation",
    "Stop": "checkpoint",
    "SessionEnd": "session-end",
    # Gemini CLI
    "BeforeAgent": "user-prompt-submit",
    "PreCompress": "pre-compaction",
    "AfterAgent": "checkpoint",
    # Cursor
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "user-prompt-submit",
    "preCompact": "pre-compaction",
    "stop": "checkpoint",
    "sessionEnd": "session-end",
    # OpenCode, by our plugin
    "session.created": "session-start",
    "chat.message": "user-prompt-submit",
    "experimental.session.compacting": "pre-compaction",
    "session.compacted": "compaction-complete",
    "session.idle": "checkpoint",
    "session.deleted": "session-end",
    # OpenClaw, by our plugin
    "session_start": "session-start",
    "before_prompt_build": "user-prompt-submit",
    "before_compaction": "pre-compaction",
    "after_compaction": "compaction-complete",
    "agent_end": "checkpoint",
    "session_end": "session-end",
}
"""The hook of each event of a harness, for a call that does not name the hook."""
