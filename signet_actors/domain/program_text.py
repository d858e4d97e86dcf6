"""Tell what the programs of agents write into a conversation from what people and agents say in it.

A program puts its own text around a prompt, or sends it as a message in the user's name: elements such as
``<system-reminder>``, or sentences that are always the same. This is the one list of them, for transcripts, prompts,
checkpoints and facts. What stands in a code fence, or within a sentence, is somebody's words about it, and stays.

Every scan takes linear time. Source: the public sources and session files of the programs named below.
"""

from __future__ import annotations

import re
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later

_ATTACHED: Final = frozenset(
    {
        "system-reminder",
        "system_reminder",
        "hook_context",
        "ide_opened_file",
        "ide_selection",
        "ide_diagnostics",
        "new-diagnostics",
        "user-prompt-submit-hook",
    }
)
"""Elements that stand before, after and between the words of a prompt, on lines of their own."""
_AROUND: Final = frozenset(
    {
        "command-name",
        "command-message",
        "command-args",
        "command-contents",
        "local-command-caveat",
        "local-command-stdout",
        "local-command-stderr",
        "bash-input",
        "bash-stdout",
        "bash-stderr",
        "user-memory-input",
        "task-notification",
        "cross-session-message",
        "teammate-message",
        "subagent-message",
        "fork-boilerplate",
        "ci-monitor-event",
        "github-webhook-activity",
        "mcp-resource-update",
        "mcp-polling-update",
        "environment_context",
        "environments_instructions",
        "turn_aborted",
        "user_shell_command",
        "subagent_notification",
        "hook_prompt",
        "codex_internal_context",
        "codex_delegation",
        "in-app-browser-context",
        "internal_model_context",
        "recommended_plugins",
        "collaboration_mode",
        "multi_agent_mode",
        "model_switch",
        "personality_spec",
        "context_window_guidance",
        "apps_instructions",
        "plugins_instructions",
        "skills_instructions",
        "session_context",
        "open_and_recently_viewed_files",
    }
)
"""Elements that stand only before or after the words of a prompt, mostly alone."""
_ALONE: Final = frozenset(
    {
        "skill",
        "tick",
        "channel",
        "channel-message",
        "agent-message",
        "ultraplan",
        "remote-review",
        "user_action",
        "user_instructions",
        "goal_context",
        "token_budget",
        "rollout_budget",
    }
)
"""Elements with names that people use too: they are the program's only if nothing else is in the message."""
_NAMES: Final = _ATTACHED | _AROUND | _ALONE
_TYPED: Final = frozenset({"command-args", "user-memory-input"})
"""Elements whose content a person typed: the words behind a command, and a note."""
_TYPED_WORDS: Final = 3
"""Fewer words behind a command are a choice (a model, a path), and say nothing later."""
OFF_MARK: Final = "[signet off]"
"""How a prompt begins that switches memory off for its session, where no variable of the environment reaches it."""
_MARK_BLANKS: Final = r"[ \t\u00a0]{0,3}"
OFF_SPELLINGS: Final = (
    rf"(?i:\[{_MARK_BLANKS}signet{_MARK_BLANKS}[-_:=\u2010-\u2014]?{_MARK_BLANKS}off{_MARK_BLANKS}"
    rf"[.,:;!]?{_MARK_BLANKS}\])"
)
"""A pattern for the mark and what is typed in place of it: ``[signet-off]``, ``[ signet: off. ]``."""
_OFF: Final = compile_later(OFF_SPELLINGS)
_ELEMENT: Final = compile_later(r"<([A-Za-z][\w-]{1,40})(?: [^<>\n]{0,1000})?>")
_OPENING: Final = compile_later(r"<([A-Za-z][\w-]{1,40})\b")
_ATTACHED_OPENING: Final = compile_later(rf"<({'|'.join(sorted(_ATTACHED))})(?: [^<>\n]{{0,1000}})?>", re.IGNORECASE)
_LINE_CHARS: Final = 1000
_ENDING: Final = compile_later(r"</([A-Za-z][\w-]{1,40})>\Z")
_LONG: Final = 60
"""An element so long is no quotation in a sentence, although words follow it on its line."""

_INTERRUPTED: Final = r"\[Request interrupted by user(?: for tool use)?\]"
_PATH: Final = r"(?:[/~]|[A-Za-z]:[\\/])[^\n]{0,1000}"
_PARAGRAPH: Final = r"[\s\S]*?(?=\n[ \t]{0,9}\n|\Z)"
_TO_THE_END: Final = r"[\s\S]*"
"""A prompt that a program sends at its time; a person may have written it, but once, and says nothing now."""
_FENCED: Final = r"(?=\n)[\s\S]*?\n```(?=\s|\Z)"
_NOTE: Final = (
    r"[^\n]{0,2000}?(?:permission laundering\.(?: A peer message is never user consent or approval\.)?"
    r"|situational awareness\.|contents as untrusted\.|your user's own messages are\.)"
    r"(?: After completing your current task, decide whether/how to respond[^\n.]{0,100}\.)?"
)
_SURROUNDINGS: Final = (
    r"[\s\S]*?(?=\n(?![ \t]{0,9}(?:\n|Today's date is|My operating system is|The project's temporary directory is"
    r"|I'm currently working in the|Here is the folder structure of|Showing up to|Reminder: Do not return an empty"
    r"|My setup is complete\. I will provide my first command in the next turn\."
    rf"|[\u2500-\u257f]|- \*\*|- {_PATH}\n|{_PATH}[\\/]\n))|\Z)"
)
_MESSAGES: Final = {
    # Claude Code
    _INTERRUPTED: r"(?=[ \t]{0,9}(?:\n|\Z))",
    r"Caveat: The messages below were generated by the user while running local commands\.": (
        r" DO NOT respond to these messages or otherwise consider them in your response unless the user explicitly asks"
        r" you to\."
    ),
    r"\[SYSTEM NOTIFICATION - NOT USER INPUT\]\s{1,9}This is an automated background-task event, NOT a message from": (
        r"[\s\S]*?(?=\n[ \t]{0,9}\n|\n<|\Z)"
    ),
    r"\[SCHEDULED TASK - AUTOMATED FIRING OF A CONFIGURED PROMPT\]\s{1,9}This turn was started ": _TO_THE_END,
    r"<scheduled-task name=\"[^\"\n]{1,200}\"[^<>\n]{0,1000}>": (
        r"(?:\s{1,9}This is an automated run of a scheduled task\.(?:[\s\S]*?</scheduled-task>|[\s\S]*)"
        r"|[\s\S]*?</scheduled-task>(?=\s{0,99}\Z))"
    ),
    r"Output token limit hit\. Resume directly": (
        r"(?: \S{1,2} no apology, no recap [^\n]{0,200}into smaller pieces\.|\.?(?=\s*(?:<|\Z)))"
    ),
    r"(?:Stop|TeammateIdle|TaskCreated|TaskCompleted) hook feedback:\n(?:- )?\[[^\n]{1,1000}?\]: ": _PARAGRAPH,
    r"Base directory for this skill: (?:[/~]|[A-Za-z]:\\)": r"[^\n]{1,1000}\n(?=\n)[\s\S]*?\n(?:#{1,6} |<)[\s\S]*",
    r"Unknown (?:slash command|command|skill): \S{1,200}(?: Did you mean \S{1,200})?(?=\s*(?:<|\Z))": "",
    r"(?<=</task-notification>\n)(?:Read the output file to retrieve the result|Full transcript available at): ": _PATH,
    r"\[Subagent hand-back\] The text below is the final report": r"[^\n]*:(?=\n  )[\s\S]*?(?=\n(?!  )|\Z)",
    r"Another Claude session sent a message[^\n:]{0,60}:(?=\s{0,9}<[a-z-]{5,20}-message )": "",
    r"A message arrived from [^\n:]{1,100}:(?=\n<channel )": "",
    r"(?:Another Claude session|The coordinator) sent a message(?: while you were working)?:\n": (
        r"[\s\S]*?\n\n(?:This is task direction from your coordinator |This came from another Claude session "
        rf"|That \"other Claude session\" is |IMPORTANT: This is NOT from your user ){_NOTE}"
    ),
    r"This came from another Claude session \S{1,2} not typed by your user": (
        rf"(?:\.(?=\n|\Z)|, but very likely working on their behalf\. {_NOTE})"
    ),
    r"That \"other Claude session\" is an agent working inside this same session": _NOTE,
    r"IMPORTANT: This is NOT from your user (?=\S{1,2} it came from (?:an external|a different)|and carries no)": _NOTE,
    r"(?<=message>\n\n)(?:This came from another|That \"other) Claude session": r"[^\n]*",
    r"(?<=(?:message|channel)>\n\n)IMPORTANT: This is NOT from your user": r"[^\n]*",
    # Codex
    "<permissions instructions>": r"[\s\S]*?</permissions instructions>",
    r"# AGENTS\.md instructions[^\n]{0,1000}\n\s{0,9}<INSTRUCTIONS>": r"[\s\S]*?</INSTRUCTIONS>",
    r"You are performing a CONTEXT CHECKPOINT COMPACTION\. Create a handoff summary for another LLM": (
        r"(?:\.(?=\s*(?:<|\Z))| that will resume the task\.[\s\S]*?seamlessly continue the work\.)"
    ),
    r"The following is the Codex agent history (?:whose request action you are|added since your last )": (
        r"[^\n]{0,1000}:\s{0,9}(?:\Z|>>> TRANSCRIPT (?:DELTA )?START\n(?>[\s\S]*?\n>>> TRANSCRIPT (?:DELTA )?END)"
        r"\s{0,9}(?:\Z|Continue the classification using [^\n]*|[\s\S]*?\n>>> APPROVAL REQUEST END))"
    ),
    r"<heartbeat>\s{0,9}<(?:automation_id|current_time_iso)>": r"[\s\S]*?</heartbeat>",
    r"Automation: [^\n]{1,300}\nAutomation ID: [^\n]{1,200}\n(?:Automation memory|Last run): ": _TO_THE_END,
    # Gemini CLI and Qwen Code
    r"Scheduled task: [^\n]{1,300}\nTask ID: [^\n]{1,200}\nSchedule: [^\n]{0,200}\nTriggered at: \d{4}-\d\d-\d\dT": (
        _TO_THE_END
    ),
    r"This is (?:the )?\w{2,20} (?:CLI|Code)\. We are setting up the context for our chat\.": (
        rf"(?=\s{{1,9}}Today's date is ){_SURROUNDINGS}"
    ),
    r"I ran the following shell command:\n": (
        r"(?:```sh\n[\s\S]*?\n```\n\nThis produced the following result:\n```"
        rf"{_FENCED}|(?!```)(?:[^\n]+\n){{1,50}}\nThis produced the following result:\n(?!```){_PARAGRAPH})"
    ),
    r"Here is (?:the user's editor context as a JSON object|a summary of changes in the user's editor context)": (
        rf"(?:, in JSON format)?\. This is for your information only\.\n(?:```json{_FENCED}"
        rf"|(?=File|Active file |Cursor |Selection ){_PARAGRAPH})"
    ),
    r"System: Potential loop detected\. Details: ": (
        r"[\s\S]{0,2000}?Please take a step back and confirm you're making forward progress\."
        r"(?: If not, take a step back, [^\n.]{0,200}\.)?(?: Avoid repeating the same tool calls[^\n.]{0,100}\.)?"
    ),
    r"System: Please continue\.(?=\s*(?:<|\Z))": "",
    # Cursor
    r"The (?:beginning of the )?above subagent result is already visible to the user\. ": (
        r"(?:DO NOT reiterate or summarize its contents unless asked[^\n]*"
        r"|Perform any follow-up actions \(if needed\)\.(?: DO NOT regurgitate[^\n]*)?)"
    ),
    r"Briefly inform the user about the task result and perform any follow-up actions \(if needed\)\.": (
        r"(?: If there's no follow-ups needed, [^\n.]{0,100}\.)?"
    ),
}
"""How the messages of a program begin, and how they go on to their end. What follows is a person's words."""
_MESSAGE: Final = compile_later("|".join(f"(?:{begin}){rest}" for begin, rest in _MESSAGES.items()))
_CHANNELS: Final = (
    r"(?:BlueBubbles|Discord|Feishu|Google Chat|IRC|iMessage|LINE|Lark|Matrix|Mattermost|(?:MS |Microsoft )?Teams"
    r"|Nextcloud Talk|Nostr|QQ|SMS|Signal|Slack|Telegram|Tlon|Twitch|WeChat|WeCom|WebChat|WhatsApp|Zalo)"
)
_DAY_AND_TIME: Final = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?"
_ZONE: Final = r"(?:Z| [A-Z][\w:+\u2212-]{1,11})"
_STAMP: Final = compile_later(
    rf"\[(?:{_CHANNELS} (?:[^\[\]\n]{{0,200}}? )?{_DAY_AND_TIME}{_ZONE}?|(?=[MTWFS]){_DAY_AND_TIME}{_ZONE})\]"
    rf"(?: [^\s\[\]][^\n\[\]]{{0,80}}?:(?= {OFF_SPELLINGS}))?"
    rf"|Current time: {_DAY_AND_TIME}{_ZONE}\nDate hints: today=[^\n]{{1,200}}(?=\n)"
)
"""What OpenClaw puts before a message: its time, or the channel, the sender and the time; the name before the mark of
a member of a group, too.
"""
_MESSAGE_BEGIN: Final = compile_later("|".join(_MESSAGES))
_INTERRUPTION: Final = compile_later(_INTERRUPTED)
_REQUEST: Final = compile_later(r"^## My request(?: for Codex:|:[ \t\r]{0,9}$)", re.MULTILINE)
_BEFORE_REQUEST: Final = compile_later(
    r"# (?:Context from my IDE setup|Files (?:mentioned|pasted) by the user|In app browser|Selected text"
    r"|(?:Browser|Diff) comments|Review findings|Failing PR checks):[ \t\r]{0,9}$"
    r"|This block is automatically",
    re.MULTILINE,
)
"""Headings of what Codex's app and extension put before the request, when they stand on lines of their own."""
_COMMENTS: Final = compile_later(r"^# (?:Browser|Diff) comments:", re.MULTILINE)
_COMMENT: Final = compile_later(r"^Comment:[ \t\r]{0,9}\n([\s\S]*?)(?=\n#{1,2} |\n<|\Z)", re.MULTILINE)
"""What a person wrote beside an element of a page or a line of a diff."""
_FILES: Final = compile_later(r"^--- Content from referenced files ---\s{1,9}(?=Content from @|--- End)", re.MULTILINE)
_FILES_END: Final = compile_later(r"^--- End of content ---", re.MULTILINE)

_AGENT: Final = frozenset(
    (
        "No response requested.",
        "(no content)",
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
        "Got it. Thanks for the context!",
        "Got it. Thanks for the additional context!",
        "Prompt is too long",
        "Credit balance is too low",
        "Invalid API key · Please run /login",
        "OAuth token revoked · Please run /login",
    )
)
"""Whole answers that a program writes in the agent's name."""
_AGENT_ERROR: Final = compile_later(
    r"(?:Please run /login · )?API Error(?:"
    r": \d{3}(?: ?\{.*\}| (?:Overloaded|Internal server error|Bad Gateway|Service Unavailable)[^\n]{0,200})?"
    r"|: \d{3} (?:overloaded|rate_limit|api)_error"
    r"|: (?:Request timed out|Connection error|Request was aborted|Unable to connect|Request rejected \(\d{3}\))"
    r"\.?[^\n]{0,200}"
    r"| \([^\n]{1,200}\)[^\n]{0,80})\Z"
    r"|Claude(?: AI)? usage limit reached[^\n]{0,120}\Z"
    r"|You've hit your[^\n]{0,40} limit · resets[^\n]{0,80}\Z",
    re.DOTALL,
)

_PLAN: Final = "Implement the following plan:\n\n"
_AFTER_PLAN: Final = "\n\nIf you need specific details from before exiting plan mode ("
_PLANNED_IN: Final = compile_later(
    r"read the full transcript at: ((?:[^\n]{0,1000}[\\/])?([^\\/\n]{1,200})\.jsonl)(?=\s|\Z)"
)
_PLAN_OF_CODEX: Final = compile_later(
    r"PLEASE IMPLEMENT THIS PLAN:\s*\n"
    r"|A previous agent produced the plan below to accomplish the user.s task\. Implement the plan in a fresh context\."
)
_HAND_OVER: Final = compile_later(
    r"Another language model started to solve this problem and produced a summary of its thinking process\. "
    r"(?:You also have access to the |Here is the |Use this)"
)
_HAND_OVER_CHARS: Final = 800
_CONTINUED: Final = compile_later(
    r"This session is being continued from a previous conversation that ran out of context\. "
    r"The (?:conversation|summary) [^\n]{0,100}[.:][ \t]{0,9}(?:\n|\Z)"
)
_HEADING: Final = compile_later(r"^Summary:", re.MULTILINE)
_ORDERS: Final = compile_later(
    r"^(?:If you need specific details from before compaction|Please continue the conversation from where we left"
    r"|Continue the conversation from where it left off|Recent messages are preserved verbatim)",
    re.MULTILINE,
)
_TAG: Final = r"(?:\s[^<>]{0,200})?>"
_DRAFT: Final = compile_later(rf"<analysis{_TAG}", re.IGNORECASE)
_DRAFT_END: Final = compile_later(r"</analysis\s{0,9}>", re.IGNORECASE)
_SUMMARY: Final = compile_later(rf"^[ \t]{{0,9}}<summary{_TAG}", re.IGNORECASE | re.MULTILINE)
_SUMMARY_END: Final = compile_later(r"</summary\s{0,9}>", re.IGNORECASE)
_FOLDED: Final = compile_later(r"<details[^<>]{0,200}>\s{0,9}\Z", re.IGNORECASE)


def said_by_user(text: str) -> str:
    """Return what a person typed of a message or prompt; empty if a program wrote all of it.

    A text that has nothing of a program is returned unchanged.
    """
    start, typed = _after_leading(text)
    found = _COMMENT.findall(text, 0, start) if _COMMENTS.search(text, 0, start) else ()
    comments = [comment.strip() for comment in found]
    rest = text[start:]
    if not rest.strip():
        return "\n".join((*typed, *comments)).strip()
    rest = _without_attached(_without_files(rest))
    end = _before_trailing(rest)
    if not start and not typed and end == len(rest) and len(rest) == len(text):
        return text
    return "\n".join((*typed, rest[:end].strip(), *comments)).strip()


def said_by_agent(text: str) -> str:
    """Return what an agent said; empty if its program wrote it, such as an error of the API."""
    said = text.strip()
    return "" if said in _AGENT or _AGENT_ERROR.match(said) else text


def begins_as_program(text: str) -> bool:
    """Return True if the text begins with an element or message of a program, complete or not."""
    text = text.lstrip()
    found = _OPENING.match(text)
    if found is not None and found[1].lower() in _ATTACHED | _AROUND:
        return True
    return _MESSAGE_BEGIN.match(text) is not None or is_hand_over(text)


def is_accepted_plan(text: str) -> bool:
    """Return True if the message is the plan of a model, which a program hands on when it is accepted."""
    text = text.lstrip()
    return (text.startswith(_PLAN) and _AFTER_PLAN in text) or _PLAN_OF_CODEX.match(text) is not None


def planned_in(text: str) -> tuple[str, str] | None:
    """Return the file and the name of the session in which an accepted plan was made; None if the text names none."""
    text = text.lstrip()
    found = _PLANNED_IN.search(text, text.find(_AFTER_PLAN)) if text.startswith(_PLAN) and _AFTER_PLAN in text else None
    return None if found is None else (found[1], found[2])


def is_hand_over(text: str) -> bool:
    """Return True if the message hands a summary of the conversation to the model that goes on with it."""
    text = text.lstrip()
    return _HAND_OVER.match(text) is not None or _CONTINUED.match(text) is not None


def summary_of(text: str) -> str:
    """Return a summary of a conversation without the model's draft, tags, and a program's sentences around it.

    Only what is inside ``<summary>`` counts, also without its end; a text without tags is returned without sentences
    of a program alone.
    """
    text = text.strip()
    if _HAND_OVER.match(text):
        text = text[text.find(":", 0, _HAND_OVER_CHARS) + 1 :].strip()
    if _CONTINUED.match(text):
        heading = _HEADING.search(text)
        text = text[heading.end() :] if heading is not None else text.partition("\n")[2] or text
        orders = _ORDERS.search(text)
        text = text[: orders.start()] if orders is not None else text
    text = _without_draft(text)
    opening = _SUMMARY.search(text)
    if opening is None or _FOLDED.search(text[max(0, opening.start() - 300) : opening.start()]):
        return text.strip()
    inside = text[opening.end() :]
    ends = [ending.start() for ending in _SUMMARY_END.finditer(inside)]
    return (inside[: ends[-1]] if ends else inside).strip()


def _without_draft(text: str) -> str:
    """Return the text without ``<analysis>``; a draft without an end goes on to the summary, or to the end."""
    opening = _DRAFT.match(text.lstrip())
    if opening is None:
        return text
    text = text.lstrip()
    ending = _DRAFT_END.search(text, opening.end())
    summary = _SUMMARY.search(text, opening.end())
    if ending is not None:
        return text[ending.end() :].strip()
    return "" if summary is None else text[summary.start() :]


def _after_leading(text: str) -> tuple[int, list[str]]:
    """Return where a person's words begin, and what a person typed inside the elements before them."""
    at, size = 0, len(text)
    typed: list[str] = []
    alone: int | None = None
    while (end := _program_end(text, begin := _after_blank(text, at), typed)) is not None:
        if alone is None and _name_at(text, begin) in _ALONE and not text.endswith(":\n", 0, begin):
            alone = begin
        at = end
    begin = _after_blank(text, at)
    return begin if begin == size else at if alone is None else alone, typed


def _program_end(text: str, at: int, typed: list[str]) -> int | None:
    """Return the end of the program's text that begins here, None if there is none; add what a person typed in it."""
    if (message := _MESSAGE.match(text, at) or _STAMP.match(text, at)) is not None:
        return message.end()
    if is_hand_over(text[at : at + 200]):
        return len(text)
    if text.startswith("<", at):
        return _element_end(text, at, typed)
    is_before = _BEFORE_REQUEST.match(text, at) is not None
    if is_before or text[max(0, at - 100) : at].strip():  # a person's own heading stays
        request = _REQUEST.search(text, at) if is_before else _REQUEST.match(text, at)
        return None if request is None else request.end()
    return None


def _name_at(text: str, at: int) -> str:
    found = _ELEMENT.match(text, at)
    return "" if found is None else found[1].lower()


def _element_end(text: str, at: int, typed: list[str]) -> int | None:
    """Return the end of the program's element that begins here, None if there is none; add what a person typed."""
    opening = _ELEMENT.match(text, at)
    if opening is None or (name := opening[1].lower()) not in _NAMES:
        return None
    closing = f"</{opening[1]}>"
    inner = text.find(closing, opening.end())
    end = inner + len(closing)
    if inner < 0 or not _ends_line(text, at, end):
        return None
    inside = text[opening.end() : inner].strip()
    is_said = len(inside.split()) >= _TYPED_WORDS or _OFF.match(inside) is not None
    if name in _TYPED and (name != "command-args" or is_said):
        typed.append(inside)
    return end


def _after_blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _without_attached(text: str) -> str:
    """Return the text without the elements that stand between words: on lines of their own, or glued to a word."""
    kept: list[str] = []
    at = counted = fences = 0
    for opening in _ATTACHED_OPENING.finditer(text):
        begin = opening.start()
        if begin < at:
            continue
        fences += text.count("```", counted, begin)
        counted = begin
        line = text.rfind("\n", max(at, begin - _LINE_CHARS), begin) + 1 or max(at, begin - _LINE_CHARS)
        before = text[line:begin]
        is_glued = before[-1:].isalnum() or before[-1:] in {".", "!", "?"}
        if fences % 2 or before.count("`") % 2 or not (is_glued or not before.strip()):
            continue
        closing = f"</{opening[1]}>"
        inner = text.find(closing, opening.end())
        if inner < 0:
            break
        end = inner + len(closing)
        if not is_glued and not _ends_line(text, begin, end):
            continue
        kept.append(text[at:begin])
        at = counted = end
    return "".join((*kept, text[at:])) if kept else text


def _ends_line(text: str, begin: int, end: int) -> bool:
    """Return True if the element is no quotation at the begin of a sentence: no word follows it after a blank."""
    rest = text[end : end + 200].lstrip(" \t")
    return not rest or rest[0] in "\r\n<" or end - begin >= _LONG or text[end].isalnum()


def _without_files(text: str) -> str:
    """Return the text without the files that Gemini CLI appends to a prompt that names them."""
    opening = _FILES.search(text)
    ending = None if opening is None else _FILES_END.search(text, opening.end())
    if opening is None or ending is None or text.count("```", 0, opening.start()) % 2:
        return text
    return text[: opening.start()].removesuffix("\n") + text[ending.end() :]


def _before_trailing(text: str) -> int:
    """Return where a person's words end before the elements of a program at the end."""
    end = len(text)
    fences = text.count("```")
    while True:
        said = end
        while said and text[said - 1].isspace():
            said -= 1
        line = text.rfind("\n", 0, said) + 1
        if _INTERRUPTION.fullmatch(text, line, said):
            end = line
            continue
        ending = _ENDING.search(text, max(0, said - 44), said)
        if ending is None or ending[1].lower() not in _ATTACHED | _AROUND:
            return end
        begin = text.rfind(f"<{ending[1]}", 0, ending.start())
        opening = _ELEMENT.match(text, begin) if begin >= 0 else None
        if opening is None:
            return end
        fences -= text.count("```", begin, end)
        own_line = not text[max(0, begin - 1) : begin].strip("\n") or text.startswith("\n", opening.end())
        if fences % 2 or not own_line:
            return end
        end = begin
