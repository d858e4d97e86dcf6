"""The commands doctor and config, with and without a daemon, and with errors."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.config import yaml_lines
from signet_actors.cli.doctor_findings import parse_database_check
from signet_actors.cli.main import cli
from signet_actors.config.load import effective_mapping, load_config
from signet_actors.config.yaml_file import parse_yaml
from signet_actors.runtime.supervision import listener
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def signet(workspace: Path, *arguments: str, **environment: str) -> Result:
    clean = {"SIGNET_PORT": None, "SIGNET_HOST": None, **environment}
    return CliRunner().invoke(cli, ["--workspace", str(workspace), *arguments], env=clean)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def findings(result: Result) -> dict[str, list[dict[str, Any]]]:
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(result.stdout)["findings"]:
        by_subject.setdefault(finding["subject"], []).append(finding)
    return by_subject


def test_doctor_accepts_a_workspace_that_does_not_exist_yet(workspace: Path) -> None:
    result = signet(workspace / "new", "doctor", SIGNET_PORT=str(free_port()))
    assert result.exit_code == 0, result.output
    assert "fail" not in result.stdout
    assert not (workspace / "new").exists()


def test_doctor_reports_a_port_in_use_and_the_remedy(workspace: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        result = signet(workspace, "doctor", "--json", SIGNET_PORT=str(holder.getsockname()[1]))
    assert result.exit_code == 1
    (port,) = findings(result)["port"]
    assert port["state"] == "fail"
    assert "SIGNET_PORT" in port["remedy"]


def test_doctor_names_the_workspace_whose_daemon_has_the_port(workspace: Path) -> None:
    other = ScriptedDaemon()
    try:
        other.on("GET", "/health", {"status": "healthy", "agentsDir": "/home/you/other agents"})
        result = signet(workspace, "doctor", "--json", SIGNET_PORT=str(other.port))
    finally:
        other.close()
    (port,) = findings(result)["port"]
    assert port["state"] == "fail"
    assert "in use by the daemon of another workspace, /home/you/other agents (" in port["detail"]
    assert "use that one (--workspace '/home/you/other agents', or SIGNET_WORKSPACE)" in port["remedy"]
    assert f"`SIGNET_PORT={other.port + 1} signet --workspace {workspace} start`" in port["remedy"]


def test_a_program_that_says_it_serves_this_workspace_is_not_taken_for_a_daemon(workspace: Path) -> None:
    other = ScriptedDaemon()
    try:
        other.on("GET", "/health", {"status": "healthy", "agentsDir": str(workspace)})
        result = signet(workspace, "doctor", "--json", SIGNET_PORT=str(other.port))
    finally:
        other.close()
    (port,) = findings(result)["port"]
    assert (port["state"], "another workspace" in port["detail"]) == ("fail", False)
    assert port["remedy"].startswith("stop it, or choose another port: "), port


def test_a_port_of_another_user_is_not_to_be_used_whatever_its_program_says(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "listener_uids", lambda port, host: frozenset({os.geteuid() + 1}))
    other = ScriptedDaemon()
    try:
        other.on("GET", "/health", {"status": "healthy", "agentsDir": "/home/you/other agents"})
        result = signet(workspace, "doctor", "--json", SIGNET_PORT=str(other.port))
    finally:
        other.close()
    (port,) = findings(result)["port"]
    assert (port["state"], "/home/you" in port["detail"] + port["remedy"]) == ("fail", False)
    assert port["remedy"].startswith("choose another port: `SIGNET_PORT="), port


def test_remedies_for_another_workspace_and_agent_name_them(workspace: Path) -> None:
    asked = f"`signet --workspace {workspace} start`"
    (daemon,) = findings(signet(workspace, "doctor", "--json", SIGNET_PORT=str(free_port())))["daemon"]
    assert asked in daemon["detail"]
    refused = signet(workspace, "list", SIGNET_PORT=str(free_port()))
    assert (refused.exit_code, f"Start it with {asked}." in refused.stderr) == (3, True)
    by_environment = CliRunner().invoke(cli, ["list"], env={"SIGNET_WORKSPACE": str(workspace), "SIGNET_PORT": "1"})
    assert "Start it with `signet start`." in by_environment.stderr
    memory_id = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
    scripted = ScriptedDaemon()
    try:
        scripted.on("DELETE", f"/api/memory/{memory_id}", {"status": "deleted"})
        arguments = ["--url", scripted.url, "--agent", "alice", "forget", memory_id, "--yes"]
        forgot = CliRunner().invoke(cli, arguments).stdout
    finally:
        scripted.close()
    assert f"`signet --url {scripted.url} --agent alice recover {memory_id}` brings it back" in forgot


def test_doctor_lists_every_problem_of_the_configuration(workspace: Path) -> None:
    (workspace / "agent.yaml").write_text("gateway:\n  port: x\nredaction:\n  memories: 7\n")
    result = signet(workspace, "doctor", "--json")
    assert result.exit_code == 1
    assert [found["state"] for found in findings(result)["configuration"]] == ["fail", "fail"]


def test_doctor_warns_of_a_value_that_fell_back_to_its_default(workspace: Path) -> None:
    (workspace / "agent.yaml").write_text("search:\n  alpha: 7\n")
    found = findings(signet(workspace, "doctor", "--json"))["configuration"]
    assert [(one["state"], "search.alpha" in one["detail"]) for one in found] == [("ok", False), ("warn", True)]


def test_doctor_warns_of_files_readable_by_others(workspace: Path) -> None:
    (workspace / ".daemon").mkdir(mode=0o755)
    result = signet(workspace, "doctor", "--json", SIGNET_PORT=str(free_port()))
    (found,) = findings(result)["workspace"]
    assert found["state"] == "warn"
    assert found["remedy"] == f"`chmod go-rwx {workspace / '.daemon'}`"


def test_doctor_says_why_the_workspace_is_not_committed(
    workspace: Path, daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    assert "git" not in findings(signet(workspace, "doctor", "--json", SIGNET_PORT=port)), "it is off by default"
    (workspace / "agent.yaml").write_text("git:\n  autoCommit: true\n")
    assert findings(signet(workspace, "doctor", "--json", SIGNET_PORT=port))["git"][0]["state"] == "ok"
    with running_daemon(workspace, daemon):
        daemon.script("GET", "/api/git/status", {"problem": "a merge is in progress", "lastCommit": None})
        (found,) = findings(signet(workspace, "doctor", "--json"))["git"]
        assert (found["state"], "a merge is in progress" in found["detail"]) == ("warn", True)
        daemon.script("GET", "/api/git/status", {"problem": None, "lastCommit": {"at": "2026-11-24T09:12:44+00:00"}})
        (found,) = findings(signet(workspace, "doctor", "--json"))["git"]
        assert (found["state"], "2026-11-24" in found["detail"]) == ("ok", True)
    monkeypatch.setenv("PATH", str(workspace))
    (found,) = findings(signet(workspace, "doctor", "--json", SIGNET_PORT=port))["git"]
    assert (found["state"], "not installed" in found["detail"]) == ("warn", True)


@contextlib.contextmanager
def running_daemon(workspace: Path, daemon: ScriptedDaemon) -> Iterator[None]:
    """Make the workspace look like that of ``daemon``, which runs."""
    home = workspace / ".daemon"
    home.mkdir(mode=0o700)
    (home / "address").write_text(json.dumps({"host": "127.0.0.1", "port": daemon.port, "pid": 1}))
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, b"1\n")  # the holder, as the address names it
    try:
        yield
    finally:
        os.close(descriptor)


def test_doctor_queries_the_running_daemon(workspace: Path, daemon: ScriptedDaemon) -> None:
    not_ready = {"error": "Not ready: writer is being restarted", "code": "unavailable"}
    daemon.on("GET", "/health/ready", not_ready, status=503)
    writer = {"name": "writer", "state": "restarting", "detail": "exit code 74"}
    daemon.on("GET", "/api/status", {"actors": [writer, {"name": "extractor", "state": "starting"}]})
    unavailable = {"provider": "ollama", "model": "m", "dimensions": 768, "available": False, "error": "refused"}
    daemon.on("GET", "/api/embeddings/status", unavailable)
    with running_daemon(workspace, daemon):
        result = signet(workspace, "doctor", "--json")
    assert result.exit_code == 1
    found = findings(result)
    assert found["daemon"][0]["detail"] == "it is not ready: writer is being restarted"
    starting = found["daemon"][-1]
    assert (starting["detail"], starting["remedy"]) == ("extractor is starting (optional)", "")
    assert found["daemon"][1]["detail"] == "writer is restarting: exit code 74"
    assert (found["embedding"][0]["state"], "refused" in found["embedding"][0]["detail"]) == ("warn", True)


@pytest.mark.parametrize(
    ("exit_code", "output", "states", "text"),
    [
        (0, '{"ok": true, "findings": [], "memories": 7}', ["ok"], "7 memories"),
        (74, '{"ok": false, "findings": ["row 3 missing from index"], "memories": 7}', ["fail"], "row 3 missing"),
        (74, json.dumps({"ok": False, "findings": ["x"] * 12, "memories": 0}), ["fail"] * 11, "x"),
        (78, '{"ok": false, "findings": ["not made by this program"], "memories": 0}', ["fail"], "not made by"),
        (1, "", ["fail"], "ImportError: no apsw"),
    ],
)
def test_doctor_shows_the_result_of_the_writer_s_check(
    exit_code: int, output: str, states: list[str], text: str
) -> None:
    found = list(parse_database_check(exit_code, output, "Traceback …\nImportError: no apsw\n"))
    assert [finding.state for finding in found] == states
    assert text in found[0].detail
    assert bool(found[0].remedy) == (states[0] == "fail")


def test_config_show_prints_yaml_that_is_the_configuration(workspace: Path) -> None:
    (workspace / "agent.yaml").write_text('agents:\n  roster:\n    - name: "Zoë #1 \\"x\\""\n')
    result = signet(workspace, "config", "show")
    assert result.exit_code == 0, result.output
    loaded = load_config(workspace, {})
    as_plain = json.loads(json.dumps(effective_mapping(loaded.config)))
    assert parse_yaml(result.stdout.encode()) == as_plain
    assert json.loads(signet(workspace, "config", "show", "--json").stdout) == as_plain


def test_yaml_is_written_for_every_kind_of_value() -> None:
    mapping = {"a": {"b": {"c": 1.5, "d": None}, "e": {}}, "f": [], "g": [{"h": "#: - 'x"}], "i": "on", "j": True}
    assert parse_yaml("\n".join(yaml_lines(mapping)).encode()) == mapping


def test_config_check_prints_every_problem_and_ends_with_78(workspace: Path) -> None:
    assert signet(workspace, "config", "check").exit_code == 0
    (workspace / "agent.yaml").write_text("search:\n  alpha: 7\nwriter:\n  batchLimit: x\n")
    result = signet(workspace, "config", "check")
    assert result.exit_code == 78
    assert "search.alpha" in result.stderr
    assert "writer.batchLimit" in result.stderr


def test_config_check_reports_missing_settings_of_a_provider(workspace: Path) -> None:
    (workspace / "agent.yaml").write_text(
        "memory:\n  pipelineV2:\n    extraction:\n      provider: openai\n      apiKeyEnv: SIGNET_NO_SUCH_KEY\n"
    )
    result = signet(workspace, "config", "check")
    assert result.exit_code == 0
    assert "memory.pipelineV2.extraction.model: the provider openai needs a model" in result.stdout
    assert "memory.pipelineV2.extraction.apiKeyEnv: SIGNET_NO_SUCH_KEY is not set here" in result.stdout
    warnings = json.loads(signet(workspace, "config", "check", "--json").stdout)["warnings"]
    assert len(warnings) == 2


def test_config_path_names_the_file(workspace: Path) -> None:
    assert signet(workspace, "config", "path").stdout == f"{workspace / 'agent.yaml'}\n"


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_a_table_and_no_color_is_respected(daemon: ScriptedDaemon, no_color: bool) -> None:
    memory = {
        "id": "m1",
        "content": "vim [bold]keys[/bold]",
        "type": "fact",
        "relevance": 0.72,
        "who": "w",
        "tags": "a,b",
    }
    daemon.on("POST", "/api/memory/recall", {"results": [memory], "query": "q", "method": "hybrid"})
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "80", "HOME": "/nonexistent"}
    if no_color:
        environment["NO_COLOR"] = "1"
    ours, theirs = pty.openpty()
    process = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "--url", daemon.url, "recall", "vim"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
        timeout=30,
    )
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.returncode == 0, process.stderr
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    assert "0.72  vim [bold]keys[/bold]" in text
    assert "m1 · fact · w · a, b" in text
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9]", shown) or not no_color
