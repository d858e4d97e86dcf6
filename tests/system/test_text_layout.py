"""The layout of a memory is preserved by every way in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

CODE = """\
    def indented(first):
        if first:
            return {"a":  1,
                    "b": 2}

\tyield  # a tab, and trailing blanks:   \n
    raise SystemExit(f"{first!r:>8}")"""
YAML = """\
services:
  web:
    image: "nginx:1.27"
    command: >
      sh -c
        'exec nginx'
  # the end"""
TABLE = """\
| step   | command          |
|:-------|-----------------:|
| build  | `make  build`    |

1. First
   - nested
      * deeper

2. Second  \n   with a hard line break"""
INVISIBLE = "zero\u200bwidth\u200d joiner\ufeff, no-break\u00a0space, wide\u3000space, soft\u00adhyphen\nend\u200b"
LAYOUTS = {"code": CODE, "yaml": YAML, "table": TABLE, "invisible": INVISIBLE, "tabs": "a\t\tb\n\n\n\tc  d"}

LAID_OUT = pytest.mark.parametrize("content", LAYOUTS.values(), ids=LAYOUTS)


@pytest.fixture(scope="module")
def target() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon
        assert daemon.faults() == []
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def signet(daemon: LiveDaemon, *arguments: str, stdin: str | None = None) -> Result:
    done = CliRunner().invoke(
        cli, ["--url", f"http://127.0.0.1:{daemon.port}", *arguments], input=stdin and stdin.encode()
    )
    assert done.exit_code == 0, (done.stdout, done.stderr)
    return done


@LAID_OUT
def test_content_is_returned_unchanged(room: Client, content: str) -> None:
    answer = room.remember(content)
    assert answer["content"] == content
    assert room.memory(answer["id"])["content"] == content
    assert room.listed()[0]["content"] == content
    (event,) = room.get(f"/api/memory/{answer['id']}/history").ok()["history"]
    assert event["newContent"] == content


@LAID_OUT
def test_patched_content_is_returned_unchanged(room: Client, content: str) -> None:
    memory = room.remember("something else")["id"]
    room.request("PATCH", f"/api/memory/{memory}", {"reason": "r", "content": content}).ok()
    assert room.memory(memory)["content"] == content


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("\n \t\n    first\n  second \n\n", "    first\n  second"),
        ("one\r\n  two\r  three", "one\n  two\n  three"),
        ("a\x00b\n  c", "ab\n  c"),
        ("critical:\n    make deploy\n      --now", "    make deploy\n      --now"),
        ("[ops]: run\n    make deploy", "run\n    make deploy"),
    ],
)
def test_only_blank_ends_line_ends_and_prefixes_are_changed(room: Client, sent: str, stored: str) -> None:
    answer = room.remember(sent)
    assert answer["content"] == room.memory(answer["id"])["content"] == stored


def test_texts_that_differ_only_in_white_space_are_one_memory(room: Client) -> None:
    first = room.remember(CODE)
    for twin in (" ".join(CODE.split()), CODE.replace("\n", "\r\n"), "\ufeff" + CODE.replace("    ", "\t")):
        again = room.remember(twin)
        assert (again["id"], again["deduped"], again["content"]) == (first["id"], True, CODE)
    assert len(room.listed()) == 1


def test_a_patch_that_changes_only_the_layout_is_a_change_of_its_memory(room: Client) -> None:
    flat = " ".join(YAML.split())
    memory = room.remember(flat)["id"]
    path = f"/api/memory/{memory}"
    patched = room.request("PATCH", path, {"reason": "laid out again", "content": YAML}).ok()
    assert (patched["status"], patched["contentChanged"], patched["newVersion"]) == ("updated", True, 2)
    assert room.memory(memory)["content"] == YAML
    created, updated = room.get(f"{path}/history").ok()["history"]
    assert (created["newContent"], updated["oldContent"], updated["newContent"]) == (flat, flat, YAML)
    assert room.recalled("nginx image", limit=1) == [memory]
    unchanged = room.request("PATCH", path, {"reason": "the same", "content": f"\n{YAML}\r\n"}).ok()
    assert (unchanged["status"], unchanged["newVersion"]) == ("no_changes", 2)


def test_recall_finds_words_across_lines_and_returns_the_layout(room: Client) -> None:
    memory = room.remember(TABLE)["id"]
    room.remember("Nothing about any of this")
    (found, *_) = room.recall("nested deeper second", limit=2)["results"]
    assert (found["id"], found["content"]) == (memory, TABLE)
    assert room.get("/memory/search", q='"first nested"').ok()["results"][0]["content"] == TABLE


def test_a_secret_after_a_line_break_is_redacted_and_the_layout_stays(room: Client) -> None:
    secret = "Xk9" + "vQ2mZp7LrT4w"
    answer = room.remember(f"db:\n    password =\n\n        {secret}\n    port:  5432")
    assert answer["redacted"] is True
    assert answer["content"] == "db:\n    password =\n\n        [REDACTED:password]\n    port:  5432"


def test_chunks_of_a_long_text_keep_its_lines_whole(room: Client) -> None:
    listing = "\n".join(f"  step_{number}:\n      run: [make,  target-{number}]" for number in range(40))
    stored = room.post("/api/memory/remember", {"content": listing}).ok()
    parts = [room.memory(part)["content"] for part in stored["ids"]]
    assert "\n".join(parts) == listing


@LAID_OUT
def test_the_command_line_stores_and_shows_the_layout(daemon: LiveDaemon, room: Client, content: str) -> None:
    agent = ("--agent", room.headers["x-signet-agent-id"])
    memory = signet(daemon, "remember", "-", *agent, stdin=content + "\n").stdout.strip()
    assert room.memory(memory)["content"] == content
    assert signet(daemon, "show", memory, *agent).stdout.endswith(f"\n\n{content}\n")
    (line,) = signet(daemon, "list", *agent).stdout.splitlines()
    assert line.endswith("\t" + " ".join(content.split()))
    edited = f"{content}\n  # edited"
    signet(daemon, "edit", memory, "--content", "-", *agent, stdin=edited)
    assert room.memory(memory)["content"] == edited


def test_an_export_preserves_the_layout(daemon: LiveDaemon, room: Client, target: LiveDaemon, tmp_path: Path) -> None:
    agent = room.headers["x-signet-agent-id"]
    for content in LAYOUTS.values():
        room.remember(content)
    file = tmp_path / "memories.jsonl"
    signet(daemon, "export", str(file), "--agent", agent)
    told = json.loads(signet(target, "--json", "import", str(file), "--agent", agent).stdout)
    assert (told["imported"], told["deduped"]) == (len(LAYOUTS), 0)
    carried = target.agent(agent)
    rows: list[dict[str, Any]] = carried.listed()
    assert {row["content"] for row in rows} >= set(LAYOUTS.values())
    assert [carried.memory(row["id"])["content"] for row in rows] == [row["content"] for row in rows]
