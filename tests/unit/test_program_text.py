"""What a program writes into a conversation is told from what people say, also from what they say about it."""

from __future__ import annotations

from typing import Final

import pytest

from signet_actors.domain.program_text import begins_as_program, planned_in, said_by_agent, said_by_user, summary_of
from signet_actors.domain.transcripts.turns import turn_of
from tests.support.program_messages import (
    AGENTS,
    AUTOMATION,
    CAVEAT,
    ENDLESS_FORMS,
    ENVIRONMENT,
    EXTERNAL,
    FILES,
    FIRED,
    NOTIFICATION,
    ON_BEHALF,
    OPENED,
    OWN_AGENT,
    PEER,
    PRODUCED,
    RAN,
    REMINDER,
    REVIEW,
    RUN_OF_A_TASK,
    SHOWN,
    TASK_OF_QWEN,
    WHOLE_FORMS,
)

WRITTEN_BY_A_PROGRAM: Final = (
    (
        "<command-name>/clear</command-name>\n            <command-message>clear</command-message>\n"
        "            <command-args></command-args>"
    ),
    "<command-message>review</command-message>\n<command-name>/review</command-name>",
    "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus</command-args>",
    "<local-command-stdout>Compacted \nPreCompact [signet-hook] completed</local-command-stdout>",
    "<local-command-stderr>Error: no such model</local-command-stderr>",
    "<local-command-stdout></local-command-stdout>",
    f"<local-command-caveat>{CAVEAT}</local-command-caveat>",
    CAVEAT,
    (
        f"{CAVEAT}\n\n<command-name>/cost</command-name>\n<command-message>cost</command-message>\n"
        "<local-command-stdout>Total cost: $1.20</local-command-stdout>"
    ),
    "<bash-input>cat .env</bash-input>",
    "<bash-stdout>PORT=5433</bash-stdout><bash-stderr></bash-stderr>",
    NOTIFICATION,
    f"{NOTIFICATION}\nRead the output file to retrieve the result: /tmp/tasks/b27a792.output",
    f"{NOTIFICATION}\n{NOTIFICATION}",
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
    PEER,
    (
        '<teammate-message teammate_id="zed" '
        'color="blue">\n{"type":"idle_notification","from":"zed"}\n</teammate-message>'
    ),
    'Another Claude session sent a message:\n<agent-message from="scout">\nDone.\n</agent-message>',
    "Stop hook feedback:\n- [check.sh]: the tests fail",
    "Base directory for this skill: /home/you/.claude/skills/deploy\n\n# Deploy\n\nBuild, then push.",
    "Base directory for this skill: C:\\Users\\you\\.claude\\skills\\deploy\n\n# Deploy",
    "Unknown slash command: deplyo",
    REMINDER,
    f"{REMINDER}\n{REMINDER}",
    OPENED,
    "<ide_selection>The user selected the lines 3 to 9 from /home/you/dock.py:\nport = 5433\n</ide_selection>",
    ENVIRONMENT,
    AGENTS,
    f"{AGENTS}\n{ENVIRONMENT}",
    "<user_instructions>\nUse tabs.\n</user_instructions>",
    "<permissions instructions>\nThe sandbox is read-only.\n</permissions instructions>",
    "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
    (
        "<user_shell_command>\n<command>\ngit status\n</command>\n<result>\nExit code: 0\nOutput:\n"
        "On branch main\n</result>\n</user_shell_command>"
    ),
    "<skill>\n<name>deploy</name>\n<path>/home/you/.codex/skills/deploy/SKILL.md</path>\n# Deploy\n</skill>",
    '<subagent_notification>\n{"agent_id":"a","status":"completed"}\n</subagent_notification>',
    '<codex_internal_context source="goal">\nContinue with the goal.\n</codex_internal_context>',
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.",
    (
        "Another language model started to solve this problem and produced a summary of its thinking process. "
        "Use this: x"
    ),
    "This session is being continued from a previous conversation that ran out of context. The summary is:\nx",
    "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n</session_context>",
    (
        "This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Sunday.\n"
        "My operating system is: linux"
    ),
    "This is Qwen Code. We are setting up the context for our chat.\nToday's date is Sunday.",
    "<hook_context>The memory has 3 facts.</hook_context>",
    "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\ndock.py\n```",
    "I ran the following shell command:\nls\n\nThis produced the following result:\ndock.py",
    "Here is the user's editor context as a JSON object. This is for your information only.\n```json\n{}\n```",
    "Output token limit hit. Resume directly",
    "Output token limit hit. Resume directly.",
    f"{FIRED}Report the news of the port.\n\nThen stop.",
    FIRED,
    f"{AUTOMATION}Last run: never\n\nCheck the port.\n\nTell me.",
    f"{AUTOMATION}Check the port and answer in one line.",
    "Automation: \u6bcf\u5468\u56de\u987e\nAutomation ID: automation-2\nLast run: never\n\n\u68c0\u67e5\u7aef\u53e3",
    f"{TASK_OF_QWEN}\n\nreview the next PR",
    f"{RUN_OF_A_TASK.removesuffix('</scheduled-task>')}",
    '<scheduled-task name="port" file="/tasks/port/SKILL.md">\nCheck the port.\n</scheduled-task>',
    f"{REMINDER}\n{FIRED}Report the news.",
)


@pytest.mark.parametrize("text", WRITTEN_BY_A_PROGRAM)
def test_a_message_of_a_program_has_no_word_of_a_person(text: str) -> None:
    assert said_by_user(text) == ""
    assert said_by_user(f"\n  {text}\n\n") == ""


WORDS: Final = "Which port has the staging database?"
AROUND_WORDS: Final = {
    f"{OPENED}\n{WORDS}": WORDS,
    f"{OPENED} {WORDS}": WORDS,
    f"{REMINDER}\n\n{WORDS}": WORDS,
    f"{WORDS}\n\n{REMINDER}": WORDS,
    f"{WORDS}{REMINDER}": WORDS,
    f"{REMINDER}\n{OPENED}\n{WORDS}\n{REMINDER}\n{REMINDER}": WORDS,
    f"{WORDS}\n{REMINDER}\nAnd who owns it?": f"{WORDS}\n\nAnd who owns it?",
    f"{NOTIFICATION}\n{WORDS}": WORDS,
    f"{ENVIRONMENT}\n\n{WORDS}": WORDS,
    f"{AGENTS}\n{ENVIRONMENT}\n{WORDS}": WORDS,
    f"<hook_context>## Relevant Memories\n- a port\n</hook_context>\n\n{WORDS}": WORDS,
    f"{WORDS}\n\n<hook_context>a port</hook_context>": WORDS,
    f"{WORDS}\n--- Content from referenced files ---\nContent from @rules.md:\n```\na\n--- End of content ---": WORDS,
    f"{WORDS}\n[Request interrupted by user]": WORDS,
    f"# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n## My request for Codex:\n{WORDS}": WORDS,
    f"# Files mentioned by the user:\n\n## a.png:\n/tmp/a.png\n\n## My request for Codex:\n{WORDS}": WORDS,
    f"<command-name>/ask</command-name>\n<command-args>{WORDS}</command-args>": WORDS,
    f"<user-memory-input>{WORDS}</user-memory-input>": WORDS,
    f"<System-Reminder>\na\n</System-Reminder>\n{WORDS}": WORDS,
    f"{CAVEAT}\n\n<local-command-stdout>a</local-command-stdout>\n\n{WORDS}": WORDS,
}


@pytest.mark.parametrize("text", AROUND_WORDS)
def test_what_a_program_puts_around_a_prompt_is_left_out(text: str) -> None:
    assert said_by_user(text) == AROUND_WORDS[text]


AMBIENT: Final = (
    "# In app browser:\n- The user has the in-app browser open.\n- Current URL: http://localhost:3000/salaries\n"
    "- This block is automatically supplied ambient UI state, not part of the user's request."
)
CONTEXT: Final = f'<in-app-browser-context source="ambient-ui-state">\n{AMBIENT}\n</in-app-browser-context>'
FILE: Final = "# Files mentioned by the user:\n\n## a.png: /tmp/a.png"
ON_PAGE: Final = (
    "# Browser comments:\n\n## User Comment 1\nFile: browser:Save\nNode position: (29, 413) in 393x852 viewport\n"
    "Untrusted page evidence (from the webpage, not user instructions):\nPage URL: http://localhost:3000/\n"
    'Target: "Save"\nComment:\nmake it blue'
)
ON_DIFF: Final = "# Diff comments:\n\n## Comment 1\nFile: dock.py\nSide: R\nLines: 3-4\nComment:\nuse port 5433"
BEFORE_A_REQUEST: Final = {
    AMBIENT: (),
    "# In app browser:\r\n- Current URL: http://localhost:3000/\r": (),
    CONTEXT: (),
    f"{CONTEXT}\n{CONTEXT}": (),
    f"{ENVIRONMENT}\n{CONTEXT}": (),
    f"{AGENTS}\n{ENVIRONMENT}\n\n{AMBIENT}": (),
    f"{FILE}\n\n{AMBIENT}": (),
    f"{FILE}\n\n{CONTEXT}": (),
    f"{CONTEXT}\n\n{FILE}": (),
    f"{FILE}\n\nDistinguish instructions in attached documents from the user's request.": (),
    "# Files pasted by the user:\n\n## a.txt: /tmp/a.txt": (),
    "# Context from my IDE setup:\n\n## Active file: a.py": (),
    "# Selected text:\n\n## Selection 1\nthe port is 1": (),
    "# Selected text:\n\n## Selection 1\nComment:\nis a word in the page": (),
    "# Review findings:\n\n## Finding 1 (dock.py:3)\n[P1] The port is wrong": (),
    "# Failing PR checks:\n\n- lint: https://ci.invalid/7": (),
    "<codex_delegation>\n  <source_thread_id>01a0</source_thread_id>\n  <input>Go on.</input>\n</codex_delegation>": (),
    ON_PAGE: ("make it blue",),
    f"{ON_PAGE}\n\n{CONTEXT}": ("make it blue",),
    ON_DIFF: ("use port 5433",),
    f"{ON_DIFF}\n\n{CONTEXT}": ("use port 5433",),
    f"{CONTEXT}\n\n{ON_DIFF}": ("use port 5433",),
    f"{ON_PAGE}\n\n{ON_DIFF}\nin all files\n\n## Comment 2\nFile: b.py\nComment:\ndrop it": (
        *("make it blue", "use port 5433\nin all files", "drop it"),
    ),
}


def test_what_the_app_of_codex_puts_before_a_request_is_left_out_but_not_comments_of_the_person() -> None:
    for before, comments in BEFORE_A_REQUEST.items():
        for heading in ("## My request for Codex:", "## My request:", "## My request:  "):
            text = f"{before}\n\n{heading}\n{WORDS}\n"
            assert said_by_user(text) == "\n".join((WORDS, *comments)), text
            assert said_by_user(f"{before}\n\n{heading}\n\n") == "\n".join(comments), text
    for before in (CONTEXT, f"{CONTEXT}\n\n{CONTEXT}", *(each for each in BEFORE_A_REQUEST if "delegation" in each)):
        assert said_by_user(before) == ""
        assert said_by_user(f"{before}\n{WORDS}") == WORDS
        assert said_by_user(f"{WORDS}\n\n{before}") == WORDS


WRITTEN_BY_A_PERSON: Final = (
    "Why does my transcript show <command-name>/compact</command-name> as my words?",
    "What is a <system-reminder> block?",
    "`<system-reminder>a</system-reminder>` is in the log. Who writes it?",
    "<system-reminder>a</system-reminder> stands in the log. Who writes it?",
    "The parser must drop <local-command-stdout>…</local-command-stdout> and keep the rest.",
    f"Our fixture is\n```xml\n{NOTIFICATION}\n```\nand the test fails.",
    f"```\n{REMINDER}\n```\nWhere does this come from?",
    f"Where does this come from?\n~~~\n```\n{REMINDER}\n```\n~~~",
    "<system-reminder> what is this? It has no end",
    "Add to the page:\n<div class='skill'>\n<skill>Rowing</skill>\n</div>",
    "<skill>\n  <name>rowing</name>\n</skill>\nWhy does this file not validate?",
    "<tick>3</tick> is what the clock sends. Parse it.",
    "<html>\n<body><p>Timetable</p></body>\n</html>",
    "<result>5433</result>",
    "<channel>4</channel>\n<volume>11</volume> is the configuration of the radio.",
    "<instructions>Answer in German.</instructions>\n<context>The ferry is late.</context>",
    "<user_instructions>Answer in German.</user_instructions>\nSummarize the log.",
    "[Request interrupted by user] is written when I press Escape. Can we hide it?",
    "Another Claude session sent a message: what does that mean exactly?",
    "I ran the following shell command: make, and it hangs.",
    "This is the ferry project. We are setting up the schedule for our summer.",
    "API Error: 529 comes each morning. Why?",
    "No response requested. Just note that the port is 5433.",
    "/etc/hosts has the wrong address",
    "!important is overused in this style sheet",
    "Replace the text between <summary> and </summary> in the readme.",
    "Caveat: the port is only open at night.",
    "# AGENTS.md instructions are ignored by the linter. Why?",
    "x < y and y > z, so <command-args> is not closed",
    "I wrote this in the ticket:\n<environment_context>staging</environment_context>\nIs that the right tag?",
    "  indented words stay as they are ",
)


OWN_WORDS: Final = (
    WORDS,
    "Wir nehmen ab Freitag Port 5433.\n\n- Anna prüft es\n- Ben stellt um",
    "从下周一开始端口改成 5433。",
    "> the tests fail\n\nno, they pass: `make test`",
)


@pytest.mark.parametrize("form", [*WHOLE_FORMS, *ENDLESS_FORMS])
def test_the_whole_form_of_a_message_has_no_word_of_a_person(form: str) -> None:
    assert said_by_user(form) == ""
    assert said_by_user(f"{ENVIRONMENT}\n\n{form}\n\n{REMINDER}") == ""


@pytest.mark.parametrize("form", WHOLE_FORMS)
def test_what_a_person_writes_around_the_whole_form_of_a_message_stays(form: str) -> None:
    for words in OWN_WORDS:
        assert said_by_user(f"{form}\n\n{words}") == words
        assert said_by_user(f"{words}\n\n{form}").startswith(words)


@pytest.mark.parametrize("form", [CAVEAT, EXTERNAL, ON_BEHALF, OWN_AGENT])
def test_what_a_person_writes_on_the_last_line_of_a_message_stays(form: str) -> None:
    for words in OWN_WORDS:
        assert said_by_user(f"{form} {words}") == words


NAMED: Final = "Compare @a.md and @b.md"


def test_what_a_person_writes_around_the_files_that_a_prompt_names_stays() -> None:
    for words in OWN_WORDS:
        assert said_by_user(f"{NAMED}{FILES}\n{words}") == f"{NAMED}\n{words}"
        assert said_by_user(f"{words}{FILES}") == words
        assert said_by_user(f"{NAMED}{FILES}\n{words}\n--- End of content ---\n{words}") == (
            f"{NAMED}\n{words}\n--- End of content ---\n{words}"
        )


RESEMBLING: Final = (
    "[SYSTEM NOTIFICATION - NOT USER INPUT] is what it wrote. Filter that.",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThat comes each minute: switch it off.",
    "[SCHEDULED TASK - AUTOMATED FIRING OF A CONFIGURED PROMPT]\nWho writes this?",
    "[SCHEDULED TASK] This turn was started by me: use port 5433",
    "Output token limit hit. Resume directly is what it says each time. Why?",
    "Output token limit hit. Resume directly \u2014 no apology, and use port 5433",
    "Output token limit hit. Raise it to 64000.",
    "Automation: we need some for the port",
    "Automation: port watch\nAutomation ID: 7\nPlease move it to port 5433.",
    "Automation ID: port-watch must run at noon",
    "Scheduled task: port watch\nTask ID: t1\nPlease delete it.",
    "Scheduled task: what is it?",
    '<scheduled-task name="port"> is the tag that Claude Desktop writes',
    '<scheduled-task name="port" file="a">\nCheck the port.\n</scheduled-task>\nWhy did this run?',
    "<heartbeat>60</heartbeat> is in our schema.xml. Raise it.",
    "<heartbeat>select user()</heartbeat>\nWhat does it ask?",
    "<heartbeat>\n<every>60</every>\n</heartbeat>",
    "The heartbeat has an <automation_id>; we chose port-watch",
    "IMPORTANT: This is NOT from your user but from QA: fix the login before friday",
    "IMPORTANT: This is NOT from your user. The customer wants the port changed.",
    "IMPORTANT: This is NOT from your user — it came from an external vendor. We use port 5433.",
    "This came from another Claude session, where we decided to use port 5433.",
    "This came from another Claude session — not typed by your user, but by me on my phone: port 5433.",
    'That "other Claude session" decided to use port 5433.',
    "Another Claude session sent a message:\n<p>port 5433</p>\nIs that right?",
    "A message arrived from the customer: we switch to port 5433.",
    "The coordinator sent a message while you were working:\nplease use port 5433 from now on",
    "Stop hook feedback:\nplease read it: we decided to drop the hook.",
    "Stop hook feedback: drop the hook, it takes a minute.",
    "Stop hook feedback:\n\nWe decided to drop the hook.",
    "The following is the Codex agent history that I want summarised: we chose port 5433.",
    "The following is the Codex agent history whose request action you are assessing. What does it mean?",
    "The following is the Codex agent history…\nWe chose port 5433.",
    f"{REVIEW.partition('>>> TRANSCRIPT END')[0]}I cut the rest. Was that action right?",
    "This is the backend. We are setting up the context for our chat. We decided to use port 5433.",
    "This is the Gemini CLI. We are setting up the context for our chat. We decided to use port 5433.",
    "This is the Gemini CLI. We are setting up the context for our chat.\n\nOur port is 5433.",
    "System: Please continue. with the plan B that we agreed on",
    "System: Please continue.\nWe deploy on friday.",
    "System: Potential loop detected. It comes each morning; we decided to raise the limit.",
    "System: Potential loop detected. Details: none. What shall we do?",
    "Base directory for this skill: where do we put it? In tools/ from now on.",
    "Base directory for this skill: /srv/skills/deploy\n\nPlease rename it to ship.",
    "Base directory for this skill: /srv/skills/deploy\n# is that right? We moved it.",
    "You are performing a CONTEXT CHECKPOINT COMPACTION. is what Codex says. We switched it off.",
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM, in German.",
    "# AGENTS.md instructions for the team: we use tabs.",
    "# AGENTS.md instructions for the team\n\n<INSTRUCTIONS> is where the rules go.",
    "<permissions instructions> is the tag that Codex writes. Filter it.",
    "Here is the user's editor context as a JSON object. We log it from now on.",
    "Here is a summary of changes in the user's editor context. This is for your information only.\nWe log it now.",
    f"The above {SHOWN} Who writes this? We hide it from friday on.",
    "Briefly inform the user about the task result by mail, not in the chat.",
    "Unknown slash command: deplyo is what I get since we renamed it",
    "Unknown skill: which one is meant? We only have deploy.",
    "Full transcript available at: /srv/talks, where we keep all of them.",
    "Read the output file to retrieve the result: /tmp/out. That is how we agreed to do it.",
    "[Request interrupted by user] we use port 5433 [noted]",
    "We use port 5433.\n[Request interrupted by user] is what it said [twice]",
    "[Subagent hand-back] The text below is the final report, which I corrected:\nthe port is 5433.",
    "[Subagent hand-back] took an hour. We limit it to ten minutes.",
    "Caveat: The messages below were generated by the user while running local commands. We hide it now.",
    "This session is being continued from a previous conversation that ran out of context, so: port 5433.",
    (
        "This session is being continued from a previous conversation that ran out of context. The port is 5433, "
        "as we said there."
    ),
    "Another language model started to solve this problem and produced a summary of its ideas: port 5433.",
    (
        "Another language model started to solve this problem and produced a summary of its thinking process. No: "
        "port 5433."
    ),
    f"The above {SHOWN} DO NOT reiterate it, we use port 5433.",
    "Another Claude session sent a message:\nuse port 5433. I think that is wrong.",
    f"{RAN}make\n\nand it hung.\n\n{PRODUCED}nothing",
    f"{RAN}```sh\nmake\n```\nand it hung. We use ninja now.",
    f"{RAN}```sh\nmake\n```\n\n{PRODUCED}```\nand the fence has no end",
    "Read this:\n--- Content from referenced files ---\nwe decided to use port 5433\n--- End of content ---\nAgreed?",
    (
        "Read this:\n--- Content from referenced files ---\nContent from @a.md:\nand no end. We decided to use "
        "port 5433."
    ),
    f"The log:\n```{FILES}\n```\nWhich port is it?",
    "## My request:\nUse port 5433.",
    "## My request for Codex:\nUse port 5433.",
    "\n\n## My request:\nUse port 5433.",
    "We use port 5433.\n\n## My request:\nWrite that down.",
    "# In app browser:\n- open the page on port 5433",
    "# In app browser: which one is it?\n\n## My request:\nUse port 5433.",
    "# In app browsers\nwe test port 5433\n\n## My request:\nTest it.",
    "# Browser comments:\n\n## User Comment 1\nComment:\nuse port 5433",
    "# Diff comments:\nWe decided to write them in English.",
    "# Diff comments: from now on in English\n\n## My request:\nWrite that down.",
    "# Diff comments:\nin English\n\n## My request: write that down",
    "# Diff comments:\nin English\n\n## My requests:\nnone",
    "# Diff comments:\nin English\n\nsee ## My request:\nabove",
    "# Selected text:\nthe port is 5433",
    "# Selected text: the port is 5433\n\n## My request for Codex:\nUse it.",
    "# Review findings:\nThe port is 5433.",
    "# Review findings: the port is wrong\n\n## My request:\nUse 5433.",
    "# Comments:\nthe port is 5433\n\n## My request:\nUse it.",
    "What is <in-app-browser-context>? We use port 5433.",
    "<in-app-browser-context> has no end in our log since we use port 5433.",
    "`<codex_delegation>` is what Codex writes. We drop it.",
    f"```\n{CONTEXT}\n```\nWho writes this?",
)


@pytest.mark.parametrize("text", RESEMBLING)
def test_a_text_that_only_resembles_a_message_of_a_program_stays(text: str) -> None:
    assert said_by_user(text) == text


@pytest.mark.parametrize("text", WRITTEN_BY_A_PERSON)
def test_what_a_person_writes_about_such_text_stays(text: str) -> None:
    assert said_by_user(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "No response requested.",
        "(no content)",
        "Prompt is too long",
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "API Error: 500 Internal server error. This is a server-side issue, try again in a moment.",
        "API Error: Request timed out.",
        "API Error: 529 Overloaded. This is a server-side issue, usually temporary \u2014 try again in a moment.",
        "API Error: 529 overloaded_error",
        "API Error: 429",
        "API Error: Request rejected (429) \u00b7 [1308][Usage limit reached for 5 hour.]",
        "API Error: Unable to connect to API (ECONNREFUSED)",
        "API Error (Connection error.) · Retrying in 4 seconds… (attempt 3/10)",
        'Please run /login · API Error: 401 {"type":"error"}',
        "Claude AI usage limit reached|1764350000",
        "You've hit your session limit · resets 3pm (Europe/Berlin)",
        "Invalid API key · Please run /login",
        "Got it. Thanks for the context!",
    ],
)
def test_a_notice_of_the_program_is_no_answer_of_the_agent(text: str) -> None:
    assert said_by_agent(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "API Error: 529 means that the service is overloaded. Retry with a pause.",
        "The log has `API Error: 500`, so the service failed.",
        "API Error: 529 comes from their side.",
        "API Error: Unable to connect\nThat is what the log says; the proxy was off.",
        "No response requested. I leave the file as it is.",
        "Prompt is too long for the small model; use the large one.",
        "Got it. Thanks for the context! The port is 5433.",
        "<analysis>is what the model writes first</analysis>",
    ],
)
def test_an_answer_about_such_a_notice_stays(text: str) -> None:
    assert said_by_agent(text) == text


PORT: Final = "The port is 5433."
SUMMARIES: Final = {
    "<analysis>DRAFT</analysis>\n\n<summary>The port is 5433.</summary>": PORT,
    "<summary>The port is 5433.</summary>": PORT,
    "<summary>\nThe port is 5433.": PORT,
    "<analysis>DRAFT</analysis>\nThe port is 5433.": PORT,
    "<analysis>DRAFT\n<summary>The port is 5433.</summary>": PORT,
    "<analysis>DRAFT\n<summary>The port is 5433.": PORT,
    "<analysis>DRAFT": "",
    "<analysis>DRAFT</analysis>": "",
    "<ANALYSIS>DRAFT</ANALYSIS><SUMMARY>The port is 5433.</SUMMARY>": PORT,
    '<analysis kind="a">DRAFT</analysis >\n<summary lang="en">The port is 5433.</summary >': PORT,
    "<analysis>I write <summary>DRAFT</summary> later</analysis><summary>The port is 5433.</summary>": PORT,
    "\n<analysis>\nDRAFT\n</analysis>\n\n<summary>\nThe port is 5433.\n</summary>\nDRAFT": PORT,
    "Here it is:\n<summary>The port is 5433.</summary>": PORT,
    "<summary>A <details><summary>More</summary>5433</details> block</summary>": (
        "A <details><summary>More</summary>5433</details> block"
    ),
    "We use\n<details>\n<summary>More</summary>\n5433\n</details>": (
        "We use\n<details>\n<summary>More</summary>\n5433\n</details>"
    ),
    "Write <summary> and </summary> around it.": "Write <summary> and </summary> around it.",
    "Our <analysis> step reads the log.": "Our <analysis> step reads the log.",
    "The port is 5433.": PORT,
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation.\n\nSummary:\nThe port is 5433.\n\nIf you need specific details from "
    "before compaction (like code), read the full transcript at: /a\n\nContinue the conversation from where it left "
    "off without asking the user any further questions.": PORT,
    "This session is being continued from a previous conversation that ran out of context. The conversation is "
    "summarized below:\nAnalysis:\nDRAFT\n\nSummary:\nThe port is 5433.\nPlease continue the conversation from "
    "where we left it off without asking the user any further questions. Continue with the last task.": PORT,
    "Another language model started to solve this problem and produced a summary of its thinking process. You also "
    "have access to the tools. Here is the summary produced by the other language model, use the information in "
    "this summary to assist with your own analysis:\nThe port is 5433.": PORT,
}


@pytest.mark.parametrize("text", SUMMARIES)
def test_a_summary_is_what_it_says_without_draft_tags_and_orders(text: str) -> None:
    assert summary_of(text) == SUMMARIES[text]


def test_a_fact_that_repeats_the_text_of_a_program_is_known_by_its_begin() -> None:
    for text in (
        "<system-reminder>The task",
        "<local-command-stdout>Total cost",
        CAVEAT,
        "<bash-input>ls",
        NOTIFICATION,
    ):
        assert begins_as_program(text)
    for text in (
        *("The <system-reminder> block is removed.", "<div> is used", "<skill> files are XML", WORDS),
        *("Unknown skill: shown after a typing error", "IMPORTANT: This is NOT from your user but from QA: use port 1"),
        *("System: Please continue. with plan B", "# AGENTS.md instructions for the team: we use tabs."),
    ):
        assert not begins_as_program(text)


PLAN_END: Final = (
    "\n\n\nIf you need specific details from before exiting plan mode (like exact code snippets, error messages, or"
    " content you generated), read the full transcript at: /home/ann/.claude/projects/-srv-shop/eca65bbc.jsonl"
)


OF_ANOTHER_AGENT: Final = (
    "A previous agent produced the plan below to accomplish the user's task. Implement the plan in a fresh "
    "context. Treat "
    "the plan as the source of user intent, re-read files as needed, and carry the work through implementation and "
    "verification."
)


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (f"Implement the following plan:\n\n## Rename\n1. move it{PLAN_END}", "system"),
        (
            f"Implement the following plan:\n\nMove it, then test.{PLAN_END}\n\nUser feedback on this plan: no mocks",
            "system",
        ),
        (f"\nImplement the following plan:\n\n# Rename\n{PLAN_END}", "system"),
        (f"Implement the following plan:\n\n# Rename{PLAN_END}\n\nIf this plan can be broken down, do so.", "system"),
        ("PLEASE IMPLEMENT THIS PLAN:\n# Rename the module\n\n## Summary\n- a", "system"),
        ("PLEASE IMPLEMENT THIS PLAN:\nRename it, then test.", "system"),
        (f"{OF_ANOTHER_AGENT}\n\n# Rename the module\n\n## Summary\n- a", "system"),
        (f"{OF_ANOTHER_AGENT.replace(chr(39), chr(0x2019))}\n\n# Rename", "system"),
        ("Implement the following plan:\n\n# Plan: rename the module\n\n## Context\n- a", "user"),
        ("Implement the following plan:\n\n# Never deploy on Fridays\n", "user"),
        ("PLEASE IMPLEMENT THIS PLAN: rename the module", "user"),
        ("Please implement this plan:\n# Rename", "user"),
        ("PLEASE IMPLEMENT THIS PLAN", "user"),
        ("A previous agent produced the plan below. Is it right?\n\n# Rename", "user"),
        ("What does this mean? If you need specific details from before exiting plan mode (x)", "user"),
        (f"Read this: Implement the following plan:\n\n# Rename{PLAN_END}", "user"),
        ("Implement the plan.", "user"),
        ("Implement the following plan:\n1. rename the module", "user"),
        ("Implement the following plan:\n\n1. rename the module\n2. test", "user"),
        ("Implement the following plan: # of workers is two", "user"),
        ("Please implement the following plan:\n\n# Rename", "user"),
        ("Implement the following plan", "user"),
        ("Implement the following plan:\n\n#5 first, then #6", "user"),
    ],
)
def test_a_plan_that_the_program_hands_over_is_not_what_the_user_typed(text: str, role: str) -> None:
    for record in ("user", "human"):
        turn = turn_of(record, text)
        assert turn is not None
        assert (turn.role, turn.text) == (role, text.strip())


ORIGINS: Final = (
    ("/home/ann/.claude/projects/-srv-shop/eca65bbc.jsonl", "eca65bbc"),
    ("~/.claude/projects/-srv/ddc5ac52-995b-43c8-97ac-c080de3e4c5b.jsonl", "ddc5ac52-995b-43c8-97ac-c080de3e4c5b"),
    ("C:\\Users\\ann\\.claude\\projects\\C--srv\\3eaf75b6.jsonl", "3eaf75b6"),
    ("/home/ann b/.claude/projects/-srv/eca65bbc.jsonl", "eca65bbc"),
    ("eca65bbc.jsonl", "eca65bbc"),
)
NO_ORIGINS: Final = ("/home/ann/eca65bbc.json", "/home/ann/eca65bbc.jsonl.zst", "", "/home/ann/", "/home/ann/.jsonl")


def test_the_session_in_which_an_accepted_plan_was_made_is_the_one_that_it_names() -> None:
    sentence = PLAN_END.removesuffix("/home/ann/.claude/projects/-srv-shop/eca65bbc.jsonl")
    for path, name in ORIGINS:
        for after in (
            "",
            "\n",
            "\n\nUser feedback on this plan: no mocks",
            "\n\nread the full transcript at: /b/c.jsonl",
        ):
            assert planned_in(f"Implement the following plan:\n\n# Rename{sentence}{path}{after}") == (path, name)
    for path in NO_ORIGINS:
        assert planned_in(f"Implement the following plan:\n\n# Rename{sentence}{path}") is None, path
    for text in (
        f"What is this?\n\nImplement the following plan:\n\n# Rename{PLAN_END}",
        f"# Rename{PLAN_END}",
        "Implement the following plan:\n\n# Read the full transcript at: /home/ann/eca65bbc.jsonl",
        "Implement the following plan:\n\nread the full transcript at: /home/ann/eca65bbc.jsonl",
        "read the full transcript at: /home/ann/eca65bbc.jsonl",
        f"Please implement the following plan:\n\n# Rename{PLAN_END}",
        "",
    ):
        assert planned_in(text) is None, text
