"""The plugin of OpenCode: what it reports, what reaches the model, and that it never disturbs a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.harnesses.registry import OPENCODE
from signet_actors.domain.transcripts.parse import parse_transcript
from tests.support.harness_home import Home, make_home
from tests.support.plugin_hosts import needs_node, play

PLUGIN = ".config/opencode/plugins/signet.js"
both = pytest.mark.parametrize("api", [1, 2], ids=["opencode-1", "opencode-2"])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("OPENCODE_CONFIG_DIR", raising=False)
    made = make_home(tmp_path, monkeypatch)
    made.install_signet()
    assert made.connect(OPENCODE, "--agent", "alice").exit_code == 0
    made.program.write_text(RECORDING.replace("LOG", str(log(made))))
    return made


RECORDING = """#!/bin/sh
printf '%s\\t%s\\n' "$*" "$(cat)" >> LOG
case "$1" in
  session-start) said="the start" ;;
  user-prompt-submit) said="an answer" ;;
  pre-compaction) said="what to keep" ;;
  *) exit 0 ;;
esac
printf '{"hookSpecificOutput": {"additionalContext": "%s"}}' "$said"
"""


def log(home: Home) -> Path:
    return home.root / "hooks.log"


def reports(home: Home) -> list[tuple[str, dict[str, Any]]]:
    """Return the name of each hook that ran, with what it got."""
    lines = [line.split("\t", 1) for line in log(home).read_text().splitlines()] if log(home).exists() else []
    assert all(" -H opencode --agent alice" in options for options, _ in lines)
    return [(options.partition(" ")[0], json.loads(event)) for options, event in lines]


@needs_node
@both
def test_a_session_is_reported_and_each_request_has_what_came_back(home: Home, api: int) -> None:
    found = play(
        home.root / PLUGIN,
        api,
        {"prompt": "Which port has the database?"},
        {"request": True},
        {"prompt": "And the cache?"},
        {"request": True},
        {"event": "session.idle"},
        {"end": True},
    )
    assert found["problems"] == []
    assert found["requests"] == [["the start", "an answer"], ["the start", "an answer", "an answer"]]
    names, events = zip(*reports(home), strict=True)
    assert names == ("session-start", "user-prompt-submit", "user-prompt-submit", "checkpoint", "session-end")
    assert {event["session_id"] for event in events} == {"ses_1"}
    assert {event["cwd"] for event in events} == {"/srv/shop"}
    assert events[0]["source"] == "startup"
    assert [event["prompt"] for event in events[1:3]] == ["Which port has the database?", "And the cache?"]
    assert events[4]["reason"] == "exit"


@needs_node
@both
def test_hooks_that_an_isolated_python_starts_run_as_well(home: Home, api: int) -> None:
    (home.root / "pyvenv.cfg").write_text("")
    python = home.program.with_name("python")
    python.write_text('#!/bin/sh\n[ "$1" = -I ] && shift && exec "$@"\n')
    python.chmod(0o755)
    assert "✓ Connected" in home.connect(OPENCODE, "--agent", "alice").output
    found = play(home.root / PLUGIN, api, {"prompt": "Which port?"}, {"request": True}, {"end": True})
    assert (found["problems"], found["requests"]) == ([], [["the start", "an answer"]])
    assert [name for name, _ in reports(home)] == ["session-start", "user-prompt-submit", "session-end"]


@needs_node
@both
def test_the_transcript_has_what_was_said_and_nothing_else(home: Home, api: int) -> None:
    play(home.root / PLUGIN, api, {"prompt": "x"}, {"event": "session.idle"}, {"request": True})
    transcript = json.loads(reports(home)[-1][1]["transcript"])
    assert transcript["info"] == {"id": "ses_1"}
    assert [(turn["info"], turn["parts"]) for turn in transcript["messages"]] == [
        ({"role": "user", "time": {"created": 1_790_000_000_000}}, [text("Which port has the database?")]),
        ({"role": "assistant", "time": {"created": 1_790_000_001_000}}, [text("It is port 5433.")]),
    ]


ODD_ERRORS: tuple[Any, ...] = (
    *({}, {"name": "Aborted", "data": {}}, {"name": "Aborted", "data": {"message": "a file"}}, {"message": None}),
    *({"message": 5}, {"message": {}}, {"message": ["with the following feedback: "]}, {"toString": 1}, [], [[]]),
    *(["with the following feedback: "], [None], 5, 0, -1.5, True, False, None, "", {"message": ""}, {"message": []}),
)


@needs_node
@both
def test_the_transcript_has_what_the_user_answered_to_tools(home: Home, api: int) -> None:
    asked, said = {"questions": [{"question": "Which pier?"}]}, {"answers": [["pier 12"]]}
    feedback = "The user rejected permission to use this specific tool call with the following feedback: use pnpm"
    tools = [
        (
            "question",
            {"status": "completed", "input": {**asked, "x": 1}, "metadata": {**said, "x": 1}, "output": "long"},
        ),
        ("bash", {"status": "error", "input": {"command": "npm i"}, "error": feedback}),
        ("bash", {"status": "error", "input": {"command": "npm i"}, "error": "Exit 1"}),
        ("read", {"status": "completed", "input": {"path": "a"}, "output": "a file"}),
        ("read", {"status": "pending", "input": "half"}),
        *(("bash", {"status": "error", "error": error}) for error in ODD_ERRORS),
    ]
    named = "tool" if api == 1 else "name"
    parts = [{"type": "tool", named: name, "state": state} for name, state in tools]
    if api == 2:
        parts[1]["state"] = {"status": "error", "error": {"type": "Rejected", "message": feedback}}
    said_then: dict[str, Any] = {"info": {"role": "assistant", "time": {"created": 1}}, "parts": parts}
    if api == 2:
        said_then = {"type": "assistant", "content": parts, "time": {"created": 1}}
    play(home.root / PLUGIN, api, {"prompt": "x"}, {"event": "session.idle"}, {"request": True}, messages=[said_then])
    transcript = reports(home)[-1][1]["transcript"]
    assert "long" not in transcript
    assert "a file" not in transcript
    found = [(turn.role, turn.text) for turn in parse_transcript(transcript.encode()).turns]
    assert found == [("user", "> Which pier?\npier 12"), ("user", "use pnpm")]


@needs_node
@both
@pytest.mark.parametrize(
    ("title", "directory", "is_own"),
    [
        ("signet", "/tmp/signet-cli-x1_y2z3w", True),
        ("signet", "/private/var/folders/x/T/signet-cli-abcdefgh", True),
        ("signet", "/home/ada/signet-cli-x", False),
        ("signet", "/home/ada/signet", False),
        ("signet", None, False),
        ("Signet", "/tmp/signet-cli-x1_y2z3w", False),
        ("Fix the login", "/tmp/signet-cli-x1_y2z3w", False),
        (None, "/tmp/signet-cli-x1_y2z3w", False),
    ],
)
def test_a_session_that_the_daemon_itself_has_is_left_alone(
    home: Home, api: int, title: str | None, directory: str | None, is_own: bool
) -> None:
    place = {"directory": directory} if api == 1 else {"location": {"directory": directory}}
    steps = ({"prompt": "Extract facts"}, {"request": True}, {"event": "session.idle"}, {"end": True})
    play(home.root / PLUGIN, api, *steps, session={"title": title, **place})
    assert (reports(home) == []) == is_own


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


@needs_node
@pytest.mark.parametrize(("api", "old"), [(1, False), (2, False), (2, True)])
def test_after_a_compaction_the_session_starts_anew(home: Home, api: int, old: bool) -> None:
    steps = ({"prompt": "x"}, {"request": True}, {"compact": "They looked for a port."}, {"request": True})
    found = play(home.root / PLUGIN, api, *steps, old=old)
    assert found["requests"] == [["the start", "an answer"], ["the start"]]
    assert found["compactions"] == [[] if old else ["what to keep"]]
    done = reports(home)[2:]
    assert [name for name, _ in done] == ["pre-compaction", "compaction-complete", "session-start"][int(old) :]
    assert done[-2][1]["compact_summary"] == ("" if api == 1 else "They looked for a port.")
    assert done[-1][1]["source"] == "compact"


@needs_node
def test_the_summary_of_a_compaction_is_reported_and_is_no_turn(home: Home) -> None:
    summary = {
        "info": {"id": "msg_3", "role": "assistant", "summary": True, "time": {"created": 1}},
        "parts": [text("They looked for a port.")],
    }
    play(home.root / PLUGIN, 1, {"compact": ""}, {"event": "session.idle"}, {"request": True}, messages=[summary])
    assert {name: event.get("compact_summary") for name, event in reports(home)} == {
        "pre-compaction": None,
        "compaction-complete": "They looked for a port.",
        "session-start": None,
    }


@needs_node
@both
def test_a_session_of_an_earlier_process_gets_everything_again(home: Home, api: int) -> None:
    """What was in its system prompt is gone, so the daemon must begin a new context epoch."""
    play(home.root / PLUGIN, api, {"prompt": "x"}, {"request": True}, created_ms=1_790_000_000_000)
    assert reports(home)[0][1]["source"] == "compact"


@needs_node
@both
def test_a_subagent_is_left_alone(home: Home, api: int) -> None:
    found = play(
        home.root / PLUGIN,
        api,
        {"prompt": "x"},
        {"request": True},
        {"event": "session.idle"},
        {"end": True},
        session={"parentID": "ses_0"},
    )
    assert (found["requests"], found["problems"], reports(home)) == ([[]], [], [])


@needs_node
@both
@pytest.mark.parametrize("host", ["fails", "hangs"])
def test_an_opencode_that_tells_nothing_does_not_keep_the_prompt_waiting(home: Home, api: int, host: str) -> None:
    found = play(
        home.root / PLUGIN, api, {"prompt": "x"}, {"request": True}, {"event": "session.idle"}, {"end": True}, host=host
    )
    assert found["requests"] == [["the start", "an answer"]]
    assert found["problems"] == []
    assert "checkpoint" not in [name for name, _ in reports(home)]


@needs_node
@both
@pytest.mark.parametrize(
    "program", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho no JSON\n", "#!/bin/sh\necho '[]'\n", None]
)
def test_a_program_that_fails_leaves_the_session_as_it_is(home: Home, api: int, program: str | None) -> None:
    home.program.unlink()
    if program is not None:
        home.program.write_text(program)
        home.program.chmod(0o755)
    steps = ({"prompt": "x"}, {"request": True}, {"compact": ""}, {"event": "session.idle"}, {"end": True})
    found = play(home.root / PLUGIN, api, *steps)
    assert (found["requests"], found["problems"], found["warnings"]) == ([[]], [], [])
    assert found["compactions"] == [[]]


@needs_node
@both
def test_a_program_that_hangs_is_ended_at_its_limit(home: Home, api: int) -> None:
    home.program.write_text("#!/bin/sh\nexec sleep 600\n")
    plugin = home.root / PLUGIN
    plugin.write_text(plugin.read_text().replace('"timeout": 5', '"timeout": 0.1'))
    found = play(plugin, api, {"prompt": "x"}, {"request": True}, {"end": True})
    assert (found["requests"], found["problems"]) == ([[]], [])


@needs_node
@both
@pytest.mark.parametrize(("name", "value"), [("SIGNET_NO_HOOKS", "1"), ("SIGNET_BYPASS", "True")])
def test_a_switched_off_session_runs_nothing(
    home: Home, api: int, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    found = play(home.root / PLUGIN, api, {"prompt": "x"}, {"request": True}, {"event": "session.idle"}, {"end": True})
    assert (found["requests"], found["problems"], reports(home)) == ([[]], [], [])


@needs_node
def test_of_a_long_conversation_the_end_is_sent(home: Home) -> None:
    turns = [
        {"info": {"id": f"msg_{number}", "role": "user", "time": {"created": number}}, "parts": [text("x" * 100_000)]}
        for number in range(1, 9)
    ]
    play(home.root / PLUGIN, 1, {"event": "session.idle"}, {"request": True}, messages=turns)
    transcript = reports(home)[0][1]["transcript"]
    assert len(transcript) < 1 << 20
    assert [turn["info"]["time"]["created"] for turn in json.loads(transcript)["messages"]] == [5, 6, 7, 8]


@needs_node
def test_a_line_for_the_user_is_shown(home: Home) -> None:
    """Memory is never silently off."""
    line = "Signet: no memory in this session"
    answer = {"systemMessage": line, "hookSpecificOutput": {"additionalContext": line}}
    home.program.write_text(f"#!/bin/sh\ncat > /dev/null\n[ $1 = session-start ] && echo '{json.dumps(answer)}'\n")
    found = play(home.root / PLUGIN, 1, {"prompt": "x"}, {"request": True})
    assert (found["warnings"], found["requests"]) == ([line], [[line]])


def test_a_plugin_of_the_same_name_that_is_not_ours_stays(home: Home) -> None:
    assert home.disconnect(OPENCODE).exit_code == 0
    own = "export const Mine = async () => ({})\n"
    (home.root / PLUGIN).parent.mkdir(parents=True)
    (home.root / PLUGIN).write_text(own)
    done = home.connect(OPENCODE)
    assert done.exit_code == 0
    assert f"{home.root / PLUGIN} is a plugin that `signet connect` did not make; it stays" in done.output
    assert (home.root / PLUGIN).read_text() == own
    assert home.disconnect(OPENCODE).exit_code == 0
    assert (home.root / PLUGIN).read_text() == own


def test_connect_renews_a_plugin_that_was_changed(home: Home) -> None:
    plugin = home.root / PLUGIN
    made = plugin.read_text()
    plugin.write_text(made + "// a note\n")
    assert "Connected OpenCode" in home.connect(OPENCODE, "--agent", "alice").output
    assert plugin.read_text() == made
    plugin.write_text("\n" + made.partition("\n")[0] + "\nsomething else\n")
    assert "did not make; it stays" in home.connect(OPENCODE, "--agent", "alice").output


def test_the_plugin_goes_even_if_it_was_changed(home: Home) -> None:
    plugin = home.root / PLUGIN
    plugin.write_text(plugin.read_text() + "// a note\n")
    assert home.disconnect(OPENCODE).exit_code == 0
    assert not plugin.exists()
    assert not plugin.parent.exists()
