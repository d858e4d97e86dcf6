"""The commands that ``signet connect`` writes bring the memory and end with 0 in whatever environment a harness has.

https://docs.python.org/3/using/cmdline.html#environment-variables lists what Python reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.connect_check import Canary, ServerRun, run_server
from signet_actors.cli.harnesses.hook_settings import command_words
from signet_actors.cli.harnesses.registry import CLAUDE_CODE, CODEX, HARNESSES, Harness
from signet_actors.cli.harnesses.server_entry import server_words
from signet_actors.cli.main import cli
from tests.support.bus_harness import REPOSITORY
from tests.support.harness_home import LONG_LIMITS
from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system
WITH_HOOKS = [harness for harness in HARNESSES if harness.events]
SCRIPT = f"""\
import re
import sys
{LONG_LIMITS}
from signet_actors.hook.program import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
"""As installers write it, for a busy machine."""
SIGNET = """\
import sys
from signet_actors.cli.entry import main
if __name__ == '__main__':
    sys.exit(main())
"""
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
USER_SITE = f".local/lib/{PYTHON}/site-packages"
ENDS = "raise SystemExit(3)\n"
SHADOWED = (
    *("types", "re", "enum", "json", "socket", "select", "os", "io", "abc", "codecs", "encodings", "site", "stat"),
    *("functools", "collections", "operator", "keyword", "warnings", "runpy", "selectors", "posixpath", "genericpath"),
    *(
        "sitecustomize",
        "usercustomize",
        "signet_actors",
        "importlib",
        "copyreg",
        "reprlib",
        "random",
        "fcntl",
        "signal",
    ),
)
"""Modules of the user's own project that are on PYTHONPATH."""


@dataclass(frozen=True)
class Case:
    """``variables`` may name the home directory as ``{home}``; ``files`` are in it; the hook runs in ``cwd`` of it."""

    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    cwd: str = "."


def variables(**given: str) -> tuple[str, Case]:
    return " ".join(f"{name}={value}" for name, value in given.items()), Case(given)


HOSTILE = dict(
    [
        variables(PYTHONHOME="/nonexistent"),
        variables(PYTHONHOME="{home}"),
        variables(PYTHONHOME="/usr:/nonexistent"),
        variables(PYTHONHOME="/nonexistent", PYTHONPATH="/nonexistent", PYTHONPLATLIBDIR="nowhere"),
        variables(PYTHONPATH="/dev/null"),
        variables(PYTHONPATH=":"),
        variables(PYTHONPATH="lib:/nonexistent"),
        variables(PYTHONSAFEPATH="1"),
        variables(PYTHONNOUSERSITE="1"),
        variables(PYTHONUSERBASE="/nonexistent"),
        variables(PYTHONWARNINGS="error"),
        variables(PYTHONWARNINGS="nonsense::,error"),
        variables(PYTHONINSPECT="1"),
        variables(PYTHONIOENCODING="nonsense"),
        variables(PYTHONIOENCODING="ascii:strict"),
        variables(PYTHONIOENCODING="utf-16"),
        variables(PYTHONUTF8="nonsense"),
        variables(PYTHONUTF8="0", LC_ALL="C"),
        variables(PYTHONHASHSEED="nonsense"),
        variables(PYTHONMALLOC="nonsense"),
        variables(PYTHONMALLOC="debug", PYTHONMALLOCSTATS="1"),
        variables(PYTHONTRACEMALLOC="nonsense"),
        variables(PYTHONINTMAXSTRDIGITS="1"),
        variables(PYTHONPLATLIBDIR="nowhere"),
        variables(PYTHONVERBOSE="2"),
        variables(PYTHONPROFILEIMPORTTIME="1"),
        variables(PYTHONDEBUG="1", PYTHONDEVMODE="1"),
        variables(PYTHONOPTIMIZE="2"),
        variables(PYTHONPYCACHEPREFIX="/nonexistent"),
        variables(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1"),
        variables(PYTHONFAULTHANDLER="1", PYTHONASYNCIODEBUG="1", PYTHONBREAKPOINT="nonsense"),
        variables(PYTHONCOERCECLOCALE="warn", LC_ALL="C"),
        variables(PYTHON_CPU_COUNT="nonsense", PYTHON_FROZEN_MODULES="off", PYTHON_COLORS="1"),
        variables(VIRTUAL_ENV="/nonexistent", CONDA_PREFIX="/nonexistent"),
        variables(LC_ALL="nonsense", LANG="nonsense"),
        variables(PATH="/nonexistent"),
        variables(TMPDIR="/nonexistent", TZ="nonsense"),
        ("PYTHONSTARTUP", Case({"PYTHONSTARTUP": "{home}/start.py", "PYTHONINSPECT": "1"}, {"start.py": ENDS})),
        ("a file on PYTHONPATH", Case({"PYTHONPATH": "{home}/x.zip"}, {"x.zip": "no archive"})),
        *((f"{name}.py on PYTHONPATH", Case({"PYTHONPATH": "{home}"}, {f"{name}.py": ENDS})) for name in SHADOWED),
        *(
            (f"the package {name} on PYTHONPATH", Case({"PYTHONPATH": "{home}"}, {f"{name}/__init__.py": ENDS}))
            for name in ("json", "signet_actors")
        ),
        ("modules on a relative PYTHONPATH", Case({"PYTHONPATH": "lib"}, {"lib/json.py": ENDS, "lib/re.py": ENDS})),
        ("modules in the working directory", Case({}, {f"w/{name}.py": ENDS for name in SHADOWED}, "w")),
        ("usercustomize.py in the user's site", Case({}, {f"{USER_SITE}/usercustomize.py": ENDS})),
        ("a .pth file in the user's site", Case({}, {f"{USER_SITE}/x.pth": "import os; os._exit(3)\n"})),
        (
            "another user base",
            Case({"PYTHONUSERBASE": "{home}/b"}, {f"b/lib/{PYTHON}/site-packages/usercustomize.py": ENDS}),
        ),
    ]
)
WORST = (
    "PYTHONHOME=/nonexistent",
    "PYTHONIOENCODING=nonsense",
    "types.py on PYTHONPATH",
    "modules in the working directory",
)
SESSIONS = count()
CANARY = Canary("4711", "lighthouse")


@dataclass(frozen=True)
class Installed:
    """Harnesses that are connected to an agent who remembers one thing. ``environ`` finds their settings."""

    environ: dict[str, str]
    program: Path

    def connect(self, harness: Harness, *options: str) -> None:
        done = CliRunner().invoke(
            cli,
            ["connect", harness.name, "--command", str(self.program), *options],
            prog_name="signet",
            env={**dict.fromkeys(os.environ), **self.environ},
        )
        assert done.exit_code == 0, done.output

    def command(self, harness: Harness) -> list[str]:
        """The command of a prompt, as the harness starts it."""
        event = harness.event_of("user-prompt-submit")
        assert event is not None
        handler = {"type": "command", **harness.installed_hooks(self.environ)[event]}
        return command_words(handler) if "args" in handler else ["/bin/sh", "-c", handler["command"]]


@pytest.fixture(scope="module")
def installed(
    daemon: LiveDaemon, empty_rooms: Callable[[], Client], tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    root = tmp_path_factory.mktemp("connected")
    venv.create(root / "my tools", symlinks=True)
    packages = f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n"
    (root / "my tools" / "lib" / PYTHON / "site-packages" / "editable.pth").write_text(packages)
    program = root / "my tools" / "bin" / "signet-hook"
    start = f"#!/bin/sh\n'''exec' \"{program.with_name('python')}\" \"$0\" \"$@\"\n' '''\n"
    for script, text in ((program, SCRIPT), (program.with_name("signet"), SIGNET)):
        script.write_text(start + text)
        script.chmod(0o755)
    room = empty_rooms()
    room.remember("The staging database listens on port 5433")
    room.remember(CANARY.memory)
    connected = Installed({"HOME": str(root), "PATH": "/usr/bin:/bin"}, program)
    for harness in WITH_HOOKS:
        connected.connect(harness, "--agent", room.headers["x-signet-agent-id"], "--workspace", str(daemon.workspace))
    return connected


def prepared(case: Case, home: Path) -> dict[str, str]:
    """Write the files of the case; return its environment."""
    for name, text in case.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    given = {name: value.format(home=home) for name, value in case.variables.items()}
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), **given}


def asked(command: list[str], harness: Harness, case: Case, home: Path) -> subprocess.CompletedProcess[str]:
    """Ask for the memory in the environment of the case, in a session of its own."""
    event = {
        "session_id": f"hostile-{next(SESSIONS)}",
        "cwd": "/srv/shop",
        "hook_event_name": harness.event_of("user-prompt-submit"),
        "prompt": "Which port does the staging database use?",
    }
    return subprocess.run(
        command,
        input=json.dumps(event),
        env=prepared(case, home),
        cwd=home / case.cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_the_memory_comes_in_any_environment(installed: Installed, tmp_path: Path, name: str) -> None:
    done = asked(installed.command(CLAUDE_CODE), CLAUDE_CODE, HOSTILE[name], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5433" in done.stdout


@pytest.mark.parametrize("harness", WITH_HOOKS, ids=lambda harness: harness.name)
@pytest.mark.parametrize("name", WORST)
def test_the_memory_comes_in_every_harness(installed: Installed, tmp_path: Path, harness: Harness, name: str) -> None:
    done = asked(installed.command(harness), harness, HOSTILE[name], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5433" in done.stdout


def test_a_directory_that_was_removed_is_no_reason_to_fail(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    leave = ["/bin/sh", "-c", f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && exec "$@"', "sh"]
    case = Case({"PYTHONPATH": "lib:/nonexistent"})
    done = asked([*leave, *installed.command(CLAUDE_CODE)], CLAUDE_CODE, case, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5433" in done.stdout


@pytest.mark.parametrize("module", ["json", "socket", "select", "random", "selectors"])
def test_a_program_that_is_started_by_itself_takes_its_modules_from_the_standard_library(
    installed: Installed, tmp_path: Path, module: str
) -> None:
    _, _, *plain = installed.command(CLAUDE_CODE)
    assert plain[0] == str(installed.program)
    done = asked(plain, CLAUDE_CODE, HOSTILE[f"{module}.py on PYTHONPATH"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5433" in done.stdout


ALL_SHADOWED = Case({"PYTHONPATH": "{home}"}, {f"{name}.py": ENDS for name in SHADOWED})


def searched(entry: dict[str, Any], case: Case, home: Path, monkeypatch: pytest.MonkeyPatch) -> ServerRun:
    """Have the memory tools search for the memory in the environment of the case."""
    given = prepared(case, home)
    monkeypatch.chdir(home / case.cwd)
    return run_server(entry, CANARY, given)


@pytest.mark.parametrize(
    "case",
    [*(HOSTILE[name] for name in WORST), HOSTILE["usercustomize.py in the user's site"], ALL_SHADOWED],
    ids=[*WORST, "usercustomize.py in the user's site", "all modules on PYTHONPATH"],
)
@pytest.mark.parametrize("harness", [CLAUDE_CODE, CODEX], ids=lambda harness: harness.name)
def test_the_tools_find_the_memory_in_any_environment(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Harness, case: Case
) -> None:
    found = searched(harness.installed_server(installed.environ), case, tmp_path, monkeypatch)
    assert (found.problem, found.tools > 0) == ("", True)


@pytest.mark.parametrize("module", ["json", "socket", "select", "random", "selectors"])
def test_tools_that_are_started_by_themselves_take_their_modules_from_the_standard_library(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    _, _, *plain = server_words(CLAUDE_CODE.installed_server(installed.environ))
    assert plain[0] == str(installed.program.with_name("signet"))
    case = HOSTILE[f"{module}.py on PYTHONPATH"]
    assert searched({"command": plain}, case, tmp_path, monkeypatch).problem == ""
