"""``signet eval`` measures recall with a temporary daemon, and reads the user's daemon without changing it.

Source: docs/cli.md "Measuring recall".
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.workspace_holder import lock_held
from tests.support.bus_harness import child_environment, eventually
from tests.support.live_daemon import live_daemon

pytestmark = pytest.mark.system

NOTES = {
    "boat": "The fishing boat of Ada is painted blue",
    "train": "The night train to Vienna leaves at nine",
    "garden": "Tomatoes in the garden need water every morning",
    "copy": "the fishing boat of Ada is painted  blue.",
}


def signet(tmp_path: Path, *arguments: str, workspace: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "eval", *arguments],
        env=child_environment(TMPDIR=str(temporary), SIGNET_WORKSPACE=str(workspace or tmp_path / "mine")),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert list(temporary.iterdir()) == [], "the temporary workspace is still there"
    return ran


def figures(ran: subprocess.CompletedProcess[bytes]) -> Any:
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def lines(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_a_file_of_memories_and_questions_is_measured_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        lines(
            *({"id": key, "content": content} for key, content in NOTES.items()),
            {"question": "which colour has the fishing boat?", "ids": ["boat", "copy"], "category": "boats"},
            {"question": "when does the night train leave?", "ids": ["train"], "category": "trains"},
            {"question": "the fishing boat", "ids": ["garden"], "category": "trains"},
        )
    )
    found = figures(signet(tmp_path, str(file), "--limit", "10", "--json"))
    assert (found["memories"], found["questions"]) == (3, 3), "equal texts are one memory"
    (only,) = found["configurations"]
    assert only["kinds"]["boats"]["R@10"]["mean"] == 1
    assert only["kinds"]["boats"]["hit@1"]["mean"] == 1
    assert only["kinds"]["trains"]["hit@1"]["mean"] == 0.5
    assert "difference" not in found
    assert not (tmp_path / "mine").exists(), "the user's workspace was touched"


def test_a_conversation_is_compared_with_and_without_vectors(tmp_path: Path) -> None:
    talk = {
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2024",
            "session_1": [
                {"speaker": "Ada", "dia_id": f"D1:{number}", "text": text}
                for number, text in enumerate(NOTES.values(), start=1)
            ],
        },
        "qa": [{"question": "When does the train to Vienna leave?", "evidence": ["D1:2"], "category": 4}],
    }
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([talk]))
    found = figures(signet(tmp_path, str(file), "--compare", "embedding.provider=none", "--json"))
    before, after = found["configurations"]
    assert before["kinds"]["all"]["R@50"]["mean"] == after["kinds"]["all"]["R@50"]["mean"] == 1
    assert after["overrides"] == ["embedding.provider=none"]
    assert found["difference"]["all"]["R@10"] == {"mean": 0, "low": 0, "high": 0}


def test_own_memories_are_measured_with_the_users_settings_and_stay_as_they_are(tmp_path: Path) -> None:
    with live_daemon(config="embedding: {provider: none}\n") as daemon:
        stored = {key: daemon.api.remember(content)["id"] for key, content in NOTES.items()}
        bob = daemon.agent("bob")
        bob.remember("Bob keeps a private note about the harbour", visibility="private")
        before = daemon.api.get("/api/memory/export").raw
        found = figures(signet(tmp_path, "--own", "--json", workspace=daemon.workspace))
        assert (found["memories"], found["questions"]) == (3, 3), "bob's private note is not read"
        assert found["configurations"][0]["kinds"]["all"]["hit@1"]["mean"] == 1
        file = tmp_path / "ids.jsonl"
        file.write_text(
            lines(
                {"question": "colour of the boat", "ids": [stored["boat"]]}, {"question": "forgotten", "ids": ["gone"]}
            )
        )
        ran = signet(tmp_path, str(file), workspace=daemon.workspace)
        assert ran.returncode == 0, ran.stderr.decode()
        assert ran.stdout.decode().split("\t")[:3] == ["all", "configured", "1"]
        assert "Left out: 1 question, whose memories do not exist." in ran.stderr.decode()
        assert daemon.api.get("/api/memory/export").raw == before, "the store, or its counts of access, has changed"
        assert daemon.faults() == []


def test_the_temporary_daemon_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, sys; from signet_actors.cli.bench import temporary_daemon\n"
        "with temporary_daemon(os.environ) as daemon:\n"
        "    daemon.start(); print(daemon.workspace, flush=True); sys.stdin.read()"
    )
    environ = child_environment(TMPDIR=str(tmp_path))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], env=environ, stdin=pipe, stdout=pipe) as command:
        assert command.stdout is not None
        workspace = Path(command.stdout.readline().decode().strip())
        assert lock_held(workspace)
        command.kill()
    eventually(lambda: not lock_held(workspace), within_s=60, what="the daemon ends")
