"""Each problem that `signet doctor` can find, and what it says mends it. The last test names those without a row here.

Source: docs/cli.md "Maintenance"; docs/troubleshooting.md.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import click
import msgspec
import pytest
from click.testing import CliRunner

from signet_actors.cli import doctor, doctor_findings, installed_program
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.doctor_findings import DoctorContext, DoctorFinding
from signet_actors.cli.main import cli
from signet_actors.config.daemon_address import Address
from signet_actors.config.load import load_config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import backup_name
from signet_actors.errors import ExitCode, SignetError
from signet_actors.runtime.connected_harnesses import ConnectedHarness, add_connected
from signet_actors.runtime.identity_files import MAX_FILE_BYTES
from tests.support.scripted_daemon import ScriptedDaemon

MODULES: Final = (doctor, doctor_findings)
WITHOUT_COMMAND: Final = (
    "shorten it",
    "free some space soon",
    "free some space: a full disk refuses writes, recall still works",
    "give this user access to it",
    "move it away or set SIGNET_WORKSPACE",
    "where it is now: SIGNET_WORKSPACE=DIRECTORY signet start",
    "wait until it has ended",
    "wait some seconds, and check again",
    "wait for the other check or daemon to end",
    "remove one of the two, or use their whole paths",
    "report this error",
    "set SIGNET_WORKSPACE to a separate directory; the file was not changed",
)
"""Findings for which there is no command."""
DAY_S: Final = 86_400


@dataclass
class Stage:
    """The machine of one row: a private workspace, a daemon that answers by script, and what is patched for the row."""

    workspace: Path
    daemon: ScriptedDaemon
    patch: pytest.MonkeyPatch
    clients: contextlib.ExitStack
    yaml: str = ""

    def context(self, **changes: Any) -> DoctorContext:
        (self.workspace / "agent.yaml").write_text(self.yaml)
        environ = {"HOME": str(self.workspace.parent), "PATH": "/usr/bin:/bin"}
        config = load_config(self.workspace, environ).config
        return replace(DoctorContext(self.workspace, environ, config, running=False, client=None), **changes)

    def running(self, **changes: Any) -> DoctorContext:
        client = DaemonClient(Address("127.0.0.1", self.daemon.port), timeout_s=10, retry_window_s=0, environ={})
        self.clients.callback(client.close)
        return self.context(running=True, client=client, **changes)

    def database(self) -> None:
        memory = self.workspace / "memory"
        memory.mkdir(exist_ok=True)
        (memory / "memories.db").write_bytes(b"x")

    def set(self, module: ModuleType, **values: Any) -> None:
        for name, value in values.items():
            self.patch.setattr(module, name, value)


Prepare = Callable[[Stage], Any]
CASES: Final[list[tuple[Prepare, str, str, str, str]]] = []
"""What to examine, and of the finding the subject, the state, and words of its text and of its remedy."""


def case(subject: str, state: str, detail: str, remedy: str = "") -> Callable[[Prepare], Prepare]:
    def add(prepare: Prepare) -> Prepare:
        CASES.append((prepare, subject, state, detail, remedy))
        return prepare

    return add


def whole_doctor(stage: Stage) -> list[DoctorFinding]:
    """Return what the command finds before its checks."""
    (stage.workspace / "agent.yaml").write_text(stage.yaml)
    stage.set(doctor, CHECKS=())
    shown = CliRunner().invoke(cli, ["--workspace", str(stage.workspace), "doctor", "--json"], env={"SIGNET_PORT": "0"})
    return [DoctorFinding(**row) for row in json.loads(shown.stdout)["findings"]]


@case("configuration", "fail", "gateway.port", "`signet --workspace {w} config edit`")
def _(stage: Stage) -> Any:
    stage.yaml = "gateway:\n  port: x\n"
    return whole_doctor(stage)


@case("configuration", "warn", "the file is empty: the defaults are in effect", "`signet --workspace {w} config edit`")
def _(stage: Stage) -> Any:
    stage.yaml = ""
    return whole_doctor(stage)


@case("configuration", "warn", "search.alpha", "`signet --workspace {w} config edit`")
def _(stage: Stage) -> Any:
    stage.yaml = "search:\n  alpha: 7\n"
    return whole_doctor(stage)


@case("lock", "fail", "lock", "move it away; `signet --workspace {w} start` makes a new one")
def _(stage: Stage) -> Any:
    (stage.workspace / ".daemon" / "lock").mkdir(parents=True)
    return whole_doctor(stage)


@case("workspace", "ok", "does not exist yet; the first start creates it")
def _(stage: Stage) -> Any:
    return doctor.workspace_findings(stage.context(workspace=stage.workspace / "new"))


@case("workspace", "warn", "does not exist yet, although A and B are connected: was it moved?", "where it is now: ")
def _(stage: Stage) -> Any:
    stage.set(doctor, connected_titles=lambda _: ["A", "B"])
    return doctor.workspace_findings(stage.context(workspace=stage.workspace / "new"))


@case("workspace", "fail", "File name too long", "give this user access to it")
def _(stage: Stage) -> Any:
    return doctor.workspace_findings(stage.context(workspace=stage.workspace / ("x" * 300)))


@case("workspace", "fail", "is not a directory", "move it away or set SIGNET_WORKSPACE")
def _(stage: Stage) -> Any:
    context = stage.context()
    return doctor.workspace_findings(replace(context, workspace=stage.workspace / "agent.yaml"))


@case("workspace", "fail", "belongs to user", "`sudo chown -R 4711 '{w}/a b'`")
def _(stage: Stage) -> Any:
    (stage.workspace / "a b").mkdir(mode=0o700)
    stage.patch.setattr(os, "getuid", lambda: 4711)
    return doctor.workspace_findings(stage.context(workspace=stage.workspace / "a b"))


@case("workspace", "fail", "is not writable", "`chmod u+rwx {w}`")
def _(stage: Stage) -> Any:
    stage.patch.setattr(os, "access", lambda *_: False)
    return doctor.workspace_findings(stage.context())


@case("workspace", "warn", "other users may read {w} {w}/memory", "`chmod go-rwx {w} {w}/memory`")
def _(stage: Stage) -> Any:
    (stage.workspace / "memory").mkdir(mode=0o755)
    stage.workspace.chmod(0o755)
    return doctor.workspace_findings(stage.context())


@case("daemon", "warn", "hooks and commands use http://127.0.0.1:1", "`unset SIGNET_DAEMON_URL`")
def _(stage: Stage) -> Any:
    context = stage.running()
    return doctor.daemon_findings(
        replace(context, environment=context.environment | {"SIGNET_DAEMON_URL": "http://127.0.0.1:1"})
    )


@case("daemon", "ok", "not running (`signet start` starts it)")
def _(stage: Stage) -> Any:
    stage.set(doctor, connected_titles=lambda _: [])
    return doctor.daemon_findings(stage.context())


@case("daemon", "warn", "not running: Codex has no memory until it does", "`signet start` starts it")
def _(stage: Stage) -> Any:
    stage.set(doctor, connected_titles=lambda _: ["Codex"])
    return doctor.daemon_findings(stage.context())


@case("daemon", "warn", "not running: Codex and Cursor have no memory until it does", "`signet start` starts it")
def _(stage: Stage) -> Any:
    stage.set(doctor, connected_titles=lambda _: ["Codex", "Cursor"])
    return doctor.daemon_findings(stage.context())


@case("daemon", "warn", "not running, but a restore is", "wait until it has ended")
def _(stage: Stage) -> Any:
    stage.set(doctor.daemon_process, running_tool=lambda _: "a restore")
    return doctor.daemon_findings(stage.context(running=True))


@case("daemon", "warn", "runs but does not listen yet", "`signet logs`")
def _(stage: Stage) -> Any:
    return doctor.daemon_findings(stage.context(running=True))


@case("daemon", "fail", "is not ready: the writer starts", "`signet status`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/health/ready", {"error": "Not ready: the writer starts"}, status=503)
    stage.daemon.on("GET", "/api/status", {"actors": []})
    return doctor.daemon_findings(stage.running())


@case("daemon", "warn", "degraded: the disk is slow", "`signet status`")
def _(stage: Stage) -> Any:
    ready(stage, status="degraded", detail="the disk is slow")
    stage.daemon.on("GET", "/api/status", {"actors": []})
    return doctor.daemon_findings(stage.running())


@case("daemon", "warn", "the installation has changed since the daemon started", "`signet restart`")
def _(stage: Stage) -> Any:
    ready(stage)
    stage.daemon.on("GET", "/api/status", {"actors": []})
    pid_file = Workspace(stage.workspace).pid_file
    pid_file.parent.mkdir(parents=True, exist_ok=True)
    pid_file.write_text("1")
    os.utime(pid_file, (0, 0))
    return doctor.daemon_findings(stage.running())


@case("daemon", "warn", "no status: ", "`signet logs --actor gateway`")
def _(stage: Stage) -> Any:
    ready(stage)
    stage.daemon.on("GET", "/api/status", {"error": "broken"}, status=400)
    return doctor.daemon_findings(stage.running())


@case("daemon", "warn", "writer is restarting: exit code 74", "`signet logs --actor writer`")
def _(stage: Stage) -> Any:
    ready(stage)
    writer = {"name": "writer", "state": "restarting", "detail": "exit code 74"}
    stage.daemon.on("GET", "/api/status", {"actors": [writer]})
    return doctor.daemon_findings(stage.running())


@case("daemon", "warn", "writer is starting", "wait some seconds, and check again")
def _(stage: Stage) -> Any:
    ready(stage)
    stage.daemon.on("GET", "/api/status", {"actors": [{"name": "writer", "state": "starting"}]})
    return doctor.daemon_findings(stage.running())


def ready(stage: Stage, **more: str) -> None:
    stage.daemon.on("GET", "/health/ready", {"ready": True, **more})


@case("port", "fail", "is in use by ", "signet config set gateway.port ")
def _(stage: Stage) -> Any:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        stage.yaml = f"gateway:\n  port: {holder.getsockname()[1]}\n"
        return list(doctor.port_findings(stage.context()))


@case("port", "fail", "Cannot assign requested address", "`signet config set gateway.host 127.0.0.1`")
def _(stage: Stage) -> Any:
    config = load_config(stage.workspace, {}).config
    elsewhere = msgspec.structs.replace(config.gateway, host="203.0.113.1", port=0)
    return doctor.port_findings(stage.context(config=msgspec.structs.replace(config, gateway=elsewhere)))


@case(
    "port",
    "warn",
    "a program of another user listens on [::1]:3850, and may get what is sent to localhost:3850",
    "name 127.0.0.1:3850 in its place, or choose another port: `signet config set gateway.port 3851`",
)
def _(stage: Stage) -> Any:
    stage.set(doctor, listener_uids=lambda *where: {os.geteuid() + 1} if where == (3850, "::1") else set())
    return doctor.port_findings(stage.running())


@case("open files", "warn", "at most 256 per process", "`ulimit -n 4096`")
def _(stage: Stage) -> Any:
    stage.patch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    return doctor.descriptor_findings(stage.context())


@case("embedding", "warn", "off: recall uses keywords only", "`signet config set embedding.provider auto`")
def _(stage: Stage) -> Any:
    stage.yaml = "embedding:\n  provider: none\n"
    return doctor.provider_findings(stage.context())


@case("embedding", "warn", "no answer: ", "`signet logs --actor gateway`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/embeddings/status", {"error": "broken"}, status=400)
    return doctor.provider_findings(stage.running())


@case(
    "embedding",
    "warn",
    "no module; until that is mended, what needs a vector is found by its words only",
    "`signet logs --actor gateway`",
)
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/embeddings/status", {"available": False, "error": "no module"})
    return doctor.provider_findings(stage.running())


@case(
    "embedding",
    "warn",
    "embedding.apiKeyEnv: ",
    "set the variable where the daemon is started, then `signet restart`; or",
)
def _(stage: Stage) -> Any:
    stage.yaml = "embedding:\n  provider: ollama\n"
    stage.daemon.on("GET", "/api/embeddings/status", {"available": False, "error": "embedding.apiKeyEnv: X is not set"})
    return doctor.provider_findings(stage.running())


@case(
    "embedding",
    "warn",
    "refused; until that is mended",
    "start its server, or use the built-in one: `signet config set ",
)
def _(stage: Stage) -> Any:
    stage.yaml = "embedding:\n  provider: ollama\n"
    stage.daemon.on("GET", "/api/embeddings/status", {"available": False, "error": "refused"})
    return doctor.provider_findings(stage.running())


def refused_embedding(stage: Stage, problem: str) -> Any:
    stage.yaml = "embedding:\n  provider: ollama\n"
    stage.daemon.on("GET", "/api/embeddings/status", {"available": False, "error": problem})
    return doctor.provider_findings(stage.running())


@case(
    "embedding", "warn", "answered 429: slow down", "wait, or `signet restart` asks its server again at once; or use "
)
def _(stage: Stage) -> Any:
    return refused_embedding(stage, "the OpenAI-compatible server answered 429: slow down")


@case("embedding", "warn", "answered 401: no such key", "its server refuses: `signet config show` has ")
def _(stage: Stage) -> Any:
    return refused_embedding(stage, "the OpenAI-compatible server answered 401: no such key")


@case(
    "embedding",
    "warn",
    "returns vectors with 768 dimensions",
    "`signet config set embedding.dimensions 768`, or another",
)
def _(stage: Stage) -> Any:
    problem = "a returns vectors with 768 dimensions, but embedding.dimensions is 512: set it to 768, or choose another"
    return refused_embedding(stage, problem)


@case(
    "embedding",
    "warn",
    "a has 768 dimensions",
    "`signet config set embedding.dimensions 768`, or another embedding.model",
)
def _(stage: Stage) -> Any:
    return refused_embedding(stage, "embedding.dimensions 512: a has 768 dimensions; set it to 768")


@case(
    "embedding",
    "warn",
    "not there; until that is mended",
    "`signet setup` downloads it, then `signet restart`; or `signet config",
)
def _(stage: Stage) -> Any:
    stage.yaml = "embedding:\n  provider: multilingual\n"
    stage.daemon.on("GET", "/api/embeddings/status", {"available": False, "error": "the model is not there"})
    return doctor.provider_findings(stage.running())


@case("embedding", "ok", "embedded a, 256 dimensions; better vectors of b follow", "")
def _(stage: Stage) -> Any:
    body = {"available": True, "provider": "embedded", "model": "a", "dimensions": 256, "second": "b"}
    stage.daemon.on("GET", "/api/embeddings/status", body)
    return doctor.provider_findings(stage.running())


@case("languages", "ok", "most memories are not in English", "`signet setup` offers a model for that")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/embeddings/status", {"available": True})
    notes = [{"content": f"Der Schrank steht in Raum {number} und ist abgeschlossen"} for number in range(12)]
    stage.daemon.on("GET", "/api/memories", {"memories": notes})
    return doctor.provider_findings(stage.running())


@case("model", "warn", "no answer: ", "`signet logs --actor extractor`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/pipeline/status", {"error": "broken"}, status=400)
    return doctor.model_findings(stage.running())


@case("model", "warn", "the extractor does not respond", "`signet status`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/pipeline/status", {"mode": "full", "providers": {}})
    return doctor.model_findings(stage.running())


@case("model", "warn", "jobs wait", "`signet providers`")
def _(stage: Stage) -> Any:
    model = {"name": "ollama", "model": "qwen3:4b", "available": False, "detail": "`ollama serve` starts it"}
    stage.daemon.on("GET", "/api/pipeline/status", {"mode": "full", "providers": {"extraction": model}})
    return doctor.model_findings(stage.running())


@case("identity", "warn", "AGENTS.md is over 1 MB", "shorten it")
def _(stage: Stage) -> Any:
    (stage.workspace / "AGENTS.md").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    return doctor.harness_findings(stage.context())


@case("harness", "warn", "`signet connect codex` moves them")
def _(stage: Stage) -> Any:
    stage.set(doctor, unread_files=lambda *_: ["Codex does not read x; `signet connect codex` moves them."])
    return doctor.harness_findings(stage.context())


def reports(stage: Stage, *names: str) -> Any:
    spool = stage.workspace / "memory" / "spool"
    spool.mkdir(parents=True)
    for name in names:
        (spool / name).write_text("{}")
    return doctor.report_findings(stage.context(running=True))


@case("reports", "ok", "2 reports of hooks wait in {w}/memory/spool for the daemon")
def _(stage: Stage) -> Any:
    return reports(stage, "1-7.json", "2-8.json")


@case("reports", "warn", "1 report of a hook waits in {w}/memory/spool, because sending failed", "`signet logs ")
def _(stage: Stage) -> Any:
    return reports(stage, "1-7-2.json")


@case("reports", "warn", "1 report of a hook was set aside: {w}/memory/spool/*.rejected", "`signet logs ")
def _(stage: Stage) -> Any:
    return reports(stage, "1-7.json.rejected")


@case("reports", "fail", "{w}/memory/spool: Not a directory; what hooks report", "`mv {w}/memory/spool ")
def _(stage: Stage) -> Any:
    (stage.workspace / "memory").mkdir()
    (stage.workspace / "memory" / "spool").touch()
    return doctor.report_findings(stage.context())


@case("reports", "fail", "{w}/memory/spool has files of another user", "`sudo chown -R 4711:4712 {w}/memory/spool`")
def _(stage: Stage) -> Any:
    (stage.workspace / "memory" / "spool").mkdir(parents=True)
    real = os.stat(stage.workspace)
    owner = SimpleNamespace(st_uid=4711, st_gid=4712, st_mode=real.st_mode)
    lstat = os.lstat
    stage.patch.setattr(os, "stat", lambda path, **given: owner)
    stage.patch.setattr(os, "lstat", lambda path, **given: owner if str(path).endswith("memory") else lstat(path))
    return list(doctor.report_findings(stage.context()))


@case("disk", "fail", "1 MB free", "free some space")
def _(stage: Stage) -> Any:
    stage.patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    return doctor.disk_findings(stage.context())


@case("disk", "warn", "MB free", "free some space soon")
def _(stage: Stage) -> Any:
    stage.patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=doctor.LOW_DISK_BYTES - 1_000_000))
    return doctor.disk_findings(stage.context())


@case("disk", "warn", "the workspace is in a folder of Dropbox", "troubleshooting.md")
def _(stage: Stage) -> Any:
    stage.set(doctor, shared_storage=lambda _: "is in a folder of Dropbox")
    return doctor.disk_findings(stage.context())


@case("installation", "warn", "its modules are not compiled", "`env -u PYTHONDONTWRITEBYTECODE ")
def _(stage: Stage) -> Any:
    bare = SimpleNamespace(modules={"signet_actors": SimpleNamespace(__spec__=None)}, executable=sys.executable)
    stage.set(doctor_findings, sys=bare)
    return doctor_findings._module_findings()


@case("installation", "warn", "another program signet is on PATH: /other/bin/signet", "remove one of the two")
def _(stage: Stage) -> Any:
    stage.set(doctor_findings, is_program=lambda _: True)
    return doctor_findings._path_findings(stage.context(environment={"PATH": "/other/bin"}))


CODEX_EVENTS: Final = ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd")


def program(stage: Stage, name: str, first: str = "") -> str:
    path = stage.workspace / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(first)
    path.chmod(0o755)
    return str(path)


def settings(stage: Stage, content: str | None, *, directory: str = "home/.codex", noted: bool = True) -> Any:
    """Return the findings about a connected Codex whose hooks are in a file with this content."""
    path = stage.workspace / directory / "hooks.json"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    if noted:
        add_connected(stage.workspace, ConnectedHarness("codex", "Codex", str(path)))
    environ = {"HOME": str(stage.workspace / "home"), "PATH": str(stage.workspace / "bin")}
    return doctor_findings._connection_findings(stage.context(environment=environ))


def hooks(command: str, events: Iterable[str] = CODEX_EVENTS, **more: Any) -> str:
    entry = [{"hooks": [{"type": "command", "command": command}]}]
    return json.dumps({"hooks": dict.fromkeys(events, entry), **more})


def tools(stage: Stage, words: str) -> Any:
    (stage.workspace / "home" / ".codex").mkdir(parents=True)
    server = f'[mcp_servers.signet]\ncommand = "{words}"\nargs = ["mcp"]\n'
    (stage.workspace / "home" / ".codex" / "config.toml").write_text(server)
    environ = {"HOME": str(stage.workspace / "home"), "PATH": ""}
    return doctor_findings._connection_findings(stage.context(environment=environ))


@case("codex", "fail", "its hook /gone/signet-hook does not exist", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, hooks("/gone/signet-hook session-start"), noted=False)


@case("codex", "fail", "its program /gone/python does not exist", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, hooks(f"/gone/python -I {program(stage, 'signet-hook')} session-start"))


@case("codex", "fail", "its program /gone/python3 does not exist", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, hooks(program(stage, "signet-hook", "#!/gone/python3\n")))


@case("codex", "fail", "its program of the memory tools, /gone/signet does not exist", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return tools(stage, "/gone/signet")


@case("codex", "fail", "its program /gone/python does not exist", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return tools(stage, program(stage, "signet", "#!/gone/python -sE\n"))


@case("codex", "fail", "hooks.json, line 1: ", "correct it, then `signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, "{ broken")


@case("codex", "warn", "hooks.json has no hook of Signet for Stop and SessionEnd", "`signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, hooks(program(stage, "signet-hook"), CODEX_EVENTS[:3]))


@case("codex", "warn", "no longer connected: {w}/home/.codex/hooks.json has no entries", "`signet disconnect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, None)


@case("codex", "warn", "Codex runs no hooks: disableAllHooks is true", "`signet connect codex --check`")
def _(stage: Stage) -> Any:
    return settings(stage, hooks(program(stage, "signet-hook"), disableAllHooks=True))


@case("codex", "fail", "elsewhere/hooks.json, line 1: ", "`CODEX_HOME={w}/elsewhere signet connect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, "{ broken", directory="elsewhere")


@case("codex", "warn", "no longer connected: {w}/b c/hooks.json", "`CODEX_HOME='{w}/b c' signet disconnect codex`")
def _(stage: Stage) -> Any:
    return settings(stage, "{}", directory="b c")


@case("codex", "warn", "runs another installation ({w}/bin/signet-hook)", "`signet connect codex`")
def _(stage: Stage) -> Any:
    stage.set(doctor_findings, installed_program=lambda name, _: f"/other/{name}")
    stage.patch.setattr(installed_program, "installed_program", lambda name, _: f"/other/{name}")
    return settings(stage, hooks(program(stage, "signet-hook")))


def connected_with(stage: Stage, *words: str) -> Any:
    stage.patch.setattr(installed_program, "installed_program", lambda name, _: str(stage.workspace / "bin" / name))
    command = [program(stage, "python"), "-I", program(stage, "signet-hook"), "x", *words]
    return settings(stage, hooks(shlex.join(command)))


@case("codex", "ok", "connected")
def _(stage: Stage) -> Any:
    return connected_with(stage)


@case("codex", "ok", "connected")
def _(stage: Stage) -> Any:
    (stage.workspace / "link").symlink_to(stage.workspace)
    return connected_with(stage, "--workspace", str(stage.workspace / "link"))


@case(
    "codex",
    "warn",
    "connected to another workspace, /home/you/my work",
    "to connect it to this one: `signet connect codex`",
)
def _(stage: Stage) -> Any:
    return connected_with(stage, "-H", "codex", "--workspace", "/home/you/my work")


def test_settings_that_are_not_valid_are_no_finding_if_the_program_was_never_connected(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as clients:
        stage = Stage(tmp_path, ScriptedDaemon(), patch, clients)
        clients.callback(stage.daemon.close)
        assert list(settings(stage, "{ broken", noted=False)) == []


@case("access", "warn", "a proxy is named, but no token was ever issued", "`signet token create --role agent`")
def _(stage: Stage) -> Any:
    stage.yaml = "auth: {mode: hybrid}\ngateway: {trustedProxies: [127.0.0.1]}\n"
    stage.daemon.on("GET", "/api/auth/tokens", {"tokens": [], "total": 0})
    return doctor_findings.token_findings(stage.running())


def logged_in(stage: Stage, token: str) -> Any:
    directory = stage.workspace / ".config" / "signet"
    directory.mkdir(parents=True)
    (directory / "logins.json").write_text(json.dumps({stage.daemon.url: token}))
    return doctor_findings.token_findings(stage.context(environment={"HOME": str(stage.workspace)}))


@case("login", "warn", "does not accept the stored token: token expired", "`signet login http://127.0.0.1:")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/auth/whoami", {"error": "token expired", "code": "unauthorized"}, status=401)
    return logged_in(stage, "t")


@case("login", "ok", "cannot be asked now")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/auth/whoami", {"error": "busy"}, status=503)
    return logged_in(stage, "t")


@case("login", "ok", "accepts the stored token")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/auth/whoami", {"authenticated": True, "claims": None, "mode": "team"})
    return logged_in(stage, "t")


@case("service", "fail", "its program /gone/signet does not exist", "`signet service install`")
def _(stage: Stage) -> Any:
    manager = SimpleNamespace(installed=lambda: SimpleNamespace(program="/gone/signet"), file="signet.service")
    stage.set(doctor_findings, service_manager=lambda _: manager)
    return doctor_findings._service_findings(stage.context())


@case("database", "warn", "the check took longer", "`signet doctor`")
def _(stage: Stage) -> Any:
    def late(*_: Any, **__: Any) -> Any:
        raise subprocess.TimeoutExpired("check", 600)

    stage.set(doctor_findings, start_writer_tool=late)
    stage.database()
    return doctor_findings.database_findings(stage.context())


def backed_up(stage: Stage, end: Any, vectors: tuple[int, Any] = (0, {})) -> Any:
    def back_up(*_: Any) -> Any:
        if isinstance(end, SignetError):
            raise end
        return end, ""

    stage.set(doctor_findings, back_up=back_up, run_writer_tool=lambda *_, **__: vectors)
    stage.database()
    return doctor_findings.database_findings(stage.running(deep=True))


@case("database", "warn", "not checked: no answer", "`signet logs --actor retention`")
def _(stage: Stage) -> Any:
    return backed_up(stage, SignetError("no answer"))


@case("database", "warn", "not checked: the disk is full", "`signet logs --actor retention`")
def _(stage: Stage) -> Any:
    return backed_up(stage, {"success": False, "message": "the disk is full"})


@case("database", "fail", "page 7 is torn", "`signet restore latest`")
def _(stage: Stage) -> Any:
    return backed_up(stage, {"success": False, "findings": [{"kind": "structure", "text": "page 7 is torn"}]})


@case("database", "fail", "the vector files could not be compared (exit code 1)", "`signet doctor --repair`")
def _(stage: Stage) -> Any:
    return backed_up(stage, {"success": True, "memories": 3, "name": "memories-1.db"}, (1, {}))


def checked(code: int, *kinds: str) -> Any:
    found = {"findings": [f"finding {number}" for number in range(len(kinds))], "kinds": kinds, "memories": 0}
    return doctor_findings.parse_database_check(code, json.dumps(found), "")


@case("database", "fail", "the check failed (exit code 1): ImportError: no apsw", "report this error")
def _(_: Stage) -> Any:
    return doctor_findings.parse_database_check(1, "", "Traceback …\nImportError: no apsw\n")


@case("database", "fail", "finding 0", "`signet edit ID`")
def _(_: Stage) -> Any:
    return checked(74, "content")


@case("database", "fail", "2 more findings of this kind")
def _(_: Stage) -> Any:
    return checked(74, *["rows"] * 12)


@case("database", "fail", "finding 0", "SIGNET_WORKSPACE to a separate directory")
def _(_: Stage) -> Any:
    return checked(ExitCode.CONFIG, "structure")


@case("database", "fail", "1 more finding of this kind")
def _(_: Stage) -> Any:
    return checked(ExitCode.IN_USE, *["structure"] * 11)


def without_backup(stage: Stage, age_s: float, yaml: str = "") -> Any:
    stage.database()
    (stage.workspace / ".daemon").mkdir()
    secret = stage.workspace / ".daemon" / "secret"
    secret.write_bytes(b"x")
    os.utime(secret, (time.time() - age_s,) * 2)
    stage.yaml = yaml
    return doctor_findings.backup_findings(stage.context())


@case("backup", "ok", "no backup exists yet")
def _(stage: Stage) -> Any:
    return without_backup(stage, DAY_S - 600)


@case("backup", "warn", "no backup exists yet", "`signet backup` makes one")
def _(stage: Stage) -> Any:
    return without_backup(stage, DAY_S + 600)


@case("backup", "warn", "no backup exists yet", "`signet backup` makes one")
def _(stage: Stage) -> Any:
    return without_backup(stage, 60, "backup:\n  intervalMs: 0\n")


@case("backup", "fail", "/memory/backups cannot be used: Not a directory", "move or delete it, then `signet backup`")
def _(stage: Stage) -> Any:
    stage.database()
    (stage.workspace / "memory" / "backups").write_text("mine")
    return doctor_findings.backup_findings(stage.context())


@case(
    "backup", "warn", "the last one could not be made: it needs 70 MB of free disk", "`signet backup` makes one at once"
)
def _(stage: Stage) -> Any:
    stage.database()
    stage.daemon.on("GET", "/api/status", {"retention": {"backupProblem": "it needs 70 MB of free disk"}})
    [found] = doctor_findings.backup_findings(stage.running())
    return [found]


def with_backup(stage: Stage, age_s: float) -> Any:
    stage.database()
    backups = stage.workspace / "memory" / "backups"
    backups.mkdir()
    (backups / backup_name(int((time.time() - age_s) * 1000), 20)).write_bytes(b"x")
    return doctor_findings.backup_findings(stage.context(running=True))


@case("backup", "warn", "1 of 1 have a name in the future", "`signet restore NAME` restores one of these")
def _(stage: Stage) -> Any:
    return with_backup(stage, -10 * DAY_S)


@case("backup", "warn", "1, the newest ", "`signet backup` makes one now")
def _(stage: Stage) -> Any:
    return with_backup(stage, 30 * DAY_S)


@case("backup", "ok", "1, the newest ")
def _(stage: Stage) -> Any:
    return with_backup(stage, 60)


def committed(stage: Stage, **changes: Any) -> Any:
    stage.yaml = "git:\n  autoCommit: true\n"
    return doctor.git_findings(stage.running(**changes))


@case("git", "warn", "git is not installed", "`signet config set git.autoCommit false`")
def _(stage: Stage) -> Any:
    return committed(stage, environment={"PATH": "/nowhere"})


@case("git", "warn", "no answer: ", "`signet logs --actor retention`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/git/status", {"error": "broken"}, status=400)
    return committed(stage)


@case("git", "warn", "not committed: a merge is in progress", "`git -C {w} status`")
def _(stage: Stage) -> Any:
    stage.daemon.on("GET", "/api/git/status", {"problem": "a merge is in progress"})
    return committed(stage)


def test_each_problem_that_doctor_finds_is_told_with_what_mends_it(tmp_path: Path) -> None:
    reached: set[tuple[str, int]] = set()
    for number, (prepare, subject, state, *expected) in enumerate(CASES):
        workspace = tmp_path / str(number)
        workspace.mkdir(mode=0o700)
        daemon = ScriptedDaemon()
        try:
            with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as clients:
                for module in MODULES:
                    patch.setattr(module, "DoctorFinding", noting(reached))
                found = list(prepare(Stage(workspace, daemon, patch, clients)))
        finally:
            daemon.close()
        detail, remedy = (text.replace("{w}", str(workspace)) for text in expected)
        same = [one for one in found if (one.subject, one.state) == (subject, state) and detail in one.detail]
        assert same, (subject, state, detail, found)
        assert remedy in same[-1].remedy, (detail, same)
        for one in found:
            told = f"{one.detail} {one.remedy}"
            is_mended = re.search("`[^`]+`", told) or one.remedy in WITHOUT_COMMAND or "troubleshooting.md" in told
            assert one.state == "ok" or is_mended or "of this kind" in told or not first_of_kind(one, found), one
            for command in re.findall(r"`(?:[A-Z_]+=\S+ )?signet ([^`]+)`", told):
                exists(shlex.split(command))
    assert written_problems() - reached == set(), "these findings have no row"


def first_of_kind(one: DoctorFinding, found: list[DoctorFinding]) -> bool:
    """Several findings of the database have one remedy, which the first one names."""
    return next(other for other in found if other.subject == one.subject) is one


def noting(reached: set[tuple[str, int]]) -> Callable[..., DoctorFinding]:
    def make(*arguments: Any) -> DoctorFinding:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        reached.add((Path(frame.f_back.f_code.co_filename).name, frame.f_back.f_lineno))
        return DoctorFinding(*arguments)

    return make


def written_problems() -> set[tuple[str, int]]:
    """Return the places of the code that say that something is not in order."""
    places = set()
    for module in MODULES:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DoctorFinding":
                state = ast.unparse(node.args[1])
                if state not in ("OK", "found.state"):
                    places.add((Path(str(module.__file__)).name, node.lineno))
    return places


def exists(words: list[str]) -> None:
    """Have click read the command, which must have such a subcommand and such options."""
    group, context = cli, cli.make_context("signet", ["status"])
    command: click.Command = cli
    while isinstance(command, click.Group):
        while words[0].startswith("--"):
            del words[:2]
        found = command.get_command(context, words.pop(0))
        assert found is not None, (group, words)
        command = found
    command.make_context(command.name, words, parent=context)


@pytest.fixture(autouse=True)
def _no_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGNET_DAEMON_URL", "SIGNET_WORKSPACE", "SIGNET_PORT"):
        monkeypatch.delenv(name, raising=False)
