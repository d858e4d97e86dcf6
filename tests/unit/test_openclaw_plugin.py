"""The plugin of OpenClaw: what it reports, what reaches the model, and its tools."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness_home import Home, make_home
from tests.support.plugin_hosts import NODE, needs_node, play_openclaw

RECORDING = """#!/bin/sh
printf '%s\\t%s\\n' "$*" "$(cat)" >> LOG
case "$1" in
  session-start) said="the start" ;;
  user-prompt-submit) said="an answer" ;;
  *) exit 0 ;;
esac
printf '{"hookSpecificOutput": {"additionalContext": "%s"}}' "$said"
"""
SERVER = f"""#!{sys.executable}
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    said = {{"words": sys.argv[1:], "asked": asked["params"]}}
    result = {{}} if asked["method"] == "initialize" else {{"content": [{{"type": "text", "text": json.dumps(said)}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = make_home(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", f"{made.program.parent}{os.pathsep}{os.environ['PATH']}")
    made.program.write_text(RECORDING.replace("LOG", str(made.root / "hooks.log")))
    assert made.run("connect", "openclaw", "--plugin", str(made.root / "plugin")).exit_code == 0
    signet = made.program.with_name("signet")
    signet.write_text(SERVER)
    signet.chmod(0o755)
    return made


def play(home: Home, *steps: dict[str, Any]) -> dict[str, Any]:
    """Return what the model and the tools got."""
    found = play_openclaw(home.root / "plugin", "/srv/shop", *steps)
    assert found["problems"] == []
    return found


def reports(home: Home) -> list[tuple[str, dict[str, Any]]]:
    """Return the name of each hook that ran, with what it got."""
    log = home.root / "hooks.log"
    lines = [line.split("\t", 1) for line in log.read_text().splitlines()] if log.exists() else []
    assert all(options.endswith(" -H openclaw") for options, _ in lines)
    return [(options.partition(" ")[0], json.loads(event)) for options, event in lines]


SAID = [
    {"role": "user", "content": "Which port?", "timestamp": 1_790_000_000_000},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Port 5433."}]},
    {"role": "toolResult", "content": [{"type": "text", "text": "5433"}]},
]


@needs_node
def test_a_session_is_reported_and_each_prompt_has_what_came_back(home: Home) -> None:
    found = play(
        home, {"prompt": "Which port?"}, {"end": SAID}, {"prompt": "And now?"}, {"over": "new"}, {"stop": True}
    )
    assert found["given"] == [
        {"appendSystemContext": "the start\n\nan answer"},
        {"appendSystemContext": "the start\n\nan answer\n\nan answer"},
    ]
    names, events = zip(*reports(home), strict=True)
    assert names == ("session-start", "user-prompt-submit", "checkpoint", "user-prompt-submit", "session-end")
    assert {event["session_id"] for event in events} == {"agent:main:main:s-1"}
    assert {event["cwd"] for event in events} == {"/srv/shop"}
    assert (events[0]["source"], events[1]["prompt"], events[4]["reason"]) == ("startup", "Which port?", "new")
    turns = json.loads(events[2]["transcript"])["messages"]
    assert [(turn["info"]["role"], turn["parts"][0]["text"]) for turn in turns] == [
        ("user", "Which port?"),
        ("assistant", "Port 5433."),
    ]


@needs_node
def test_a_prompt_that_is_built_anew_is_asked_once(home: Home) -> None:
    found = play(home, {"prompt": "x"}, {"prompt": "x", "again": True})
    assert found["given"][0] == found["given"][1]
    assert [name for name, _ in reports(home)] == ["session-start", "user-prompt-submit"]


@needs_node
def test_a_session_that_went_on_elsewhere_gets_everything_again(home: Home) -> None:
    play(home, {"prompt": "x", "history": SAID}, {"prompt": "y", "session": "s-2"})
    assert [event["source"] for name, event in reports(home) if name == "session-start"] == ["compact", "startup"]


@needs_node
def test_after_a_compaction_the_session_starts_anew(home: Home) -> None:
    play(home, {"prompt": "x"}, {"compact": True}, {"prompt": "y"})
    assert [name for name, _ in reports(home)] == [
        "session-start",
        "user-prompt-submit",
        "pre-compaction",
        "compaction-complete",
        "session-start",
        "user-prompt-submit",
    ]


@needs_node
def test_subagents_and_heartbeats_ask_for_no_memories(home: Home) -> None:
    play(home, {"prompt": "x", "key": "agent:main:subagent:1"}, {"prompt": "beat", "trigger": "heartbeat"})
    assert [name for name, _ in reports(home)] == ["session-start"]


@needs_node
def test_the_tools_are_those_of_the_manifest_and_act_for_the_agent(home: Home) -> None:
    step = {"tool": "signet_memory_search", "params": {"query": "port"}}
    found = play(home, {**step, "key": "agent:alice:main"}, {**step, "key": "agent:bob:main"}, {"stop": True})
    manifest = json.loads((home.root / "plugin" / "openclaw.plugin.json").read_text())
    assert found["tools"] == manifest["contracts"]["tools"]
    for (content,), agent in zip((given["content"] for given in found["given"]), ("alice", "bob"), strict=True):
        said = json.loads(content["text"])
        assert said["words"] == ["mcp", "--harness", "openclaw", "--agent", agent]
        assert said["asked"] == {"name": "memory_search", "arguments": {"query": "port"}}


@needs_node
@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 3\n", None])
def test_a_server_that_does_not_start_is_an_error_of_the_tool(home: Home, program: str | None) -> None:
    signet = home.program.with_name("signet")
    signet.unlink()
    if program is not None:
        signet.write_text(program)
        signet.chmod(0o755)
    else:
        os.environ["PATH"] = os.path.dirname(NODE or "")  # monkeypatch restores it
    (given,) = play(home, {"tool": "signet_memory_list", "params": {}})["given"]
    assert given == {"failed": "signet mcp: it ended, or cannot be started"}


@needs_node
def test_a_failing_hook_leaves_the_prompt_as_it_is(home: Home) -> None:
    home.program.write_text("#!/bin/sh\nexit 3\n")
    assert play(home, {"prompt": "x"}, {"end": SAID}, {"compact": True}, {"over": "idle"})["given"] == [None]
