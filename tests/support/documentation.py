"""Run the examples of a page of the documentation, and write what they print in their place.

Blocks of the kinds ``console``, ``python`` and ``javascript`` are run, from top to bottom. In a ``console`` block a
line ``$ …`` is a command, which runs on a terminal, and the lines below it are its output; a question (``[y/N]: n``,
``[Y/n]: y``) is answered as the page shows it. A ``text`` block directly after a program is the program's output. ``…``
in an output means any text. Other blocks are not run.

``python -m tests.support.documentation PAGE…`` runs the pages and writes them again with the output of today.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import pty
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.bus_harness import REPOSITORY
from tests.support.live_daemon import private_root
from tests.support.service_manager import install_stand_ins

WIDTH = 80
SHOWN_HOME, SHOWN_PORT = "/home/you", "3850"
SHOWN_BIN = f"{SHOWN_HOME}/.local/bin"
"""What the pages show instead of the temporary home directory, the free port and the programs of a test."""
HARNESSES = (
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".config/opencode",
    ".config/Code/User",
    ".codeium/windsurf",
    ".openclaw",
)
"""Directories by which `signet connect` finds that these programs are installed."""
HARNESSES_OF = {"README.md": (".claude",), "docs/cli.md": (".cursor", ".config/opencode")}
"""Pages that show a user with other harnesses than all of these."""
FOR_A_RUNNING_DAEMON = {
    "docs/guides/working-memory.md": "",
    "docs/operations.md": "gateway: {requireOwner: true}\n",
}
"""Pages whose examples begin when the daemon runs already, with this configuration."""
WITH_SECOND_VECTORS = {"docs/cli.md"}
"""Pages that show what `signet eval` measures, which waits for all vectors."""
PLACES = {"docs/tutorial.md": ("signet-tutorial", "3860")}
"""Pages that begin with a directory and a port of their own: the directory below the home directory, and the port."""
LATE, REPETITIONS = '"reason":"timeout"', 4
"""What a hook answers that did nothing for lack of time. Its command is repeated this often."""
PROGRAMS = {"python": (sys.executable, "-"), "javascript": ("node", "--input-type=module", "-")}
_BLOCK = re.compile(
    r"(?P<head>^```(?P<kind>console|python|javascript)\n)(?P<code>.*?)(?P<end>^```\n(?:\n```text\n)?)"
    r"(?:(?<=```text\n)(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_ANSWER = re.compile(r"\[(?:y/N|Y/n)\]: ([yn])$", re.MULTILINE)
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}(?:-7[0-9a-f]{3}(?:-[0-9a-f]{4}(?:-[0-9a-f]{12})?)?)?\b")
"""An id, or its beginning as a terminal shows it."""
_VARIES = re.compile(
    rf"{_ID.pattern}|\b[0-9a-f]{{18}}\b|\b20\d\d-\d\d-\d\d[T ][\d:.]+Z?|\b20\d{{6}}T\d+Z|\bjust now\b"
    r"|\b\d+ (?:seconds?|min|minutes?) ago\b|\b[\d.]+ (?:ms|s|kB|MB|GB)\b"
    r"|\b[\d,]+ characters\b|\bpid \d+|\bup +\d+|\bschema[ -]\d+"
)


class Home:
    """A home directory in which the examples run, with a port of its own. ``place``: as in ``PLACES``."""

    def __init__(self, root: Path, port: int, place: tuple[str, str] = ("", SHOWN_PORT)) -> None:
        self.root = root
        self.port = port
        self.directory, self.shown_port = root / place[0], place[1]
        self.directory.mkdir(exist_ok=True)
        self.anew = False
        """Whether to show what was printed now, with its times and its layout, even if the page shows the same."""
        self.ids: dict[str, str] = {}
        """The id of this run for each id that the page shows."""
        stand_ins = install_stand_ins(root / "stand-ins", "systemctl", "loginctl")
        self.environment = {
            "HOME": str(root),
            "PATH": f"{stand_ins}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "SIGNET_PORT": str(port),
            **({"SIGNET_WORKSPACE": str(self.directory / "workspace")} if place[0] else {}),
        }

    def run_page(self, text: str, kinds: Collection[str] = ("console", "python", "javascript")) -> str:
        """Run the page's blocks of these kinds. Return the page with each output that differs replaced by today's."""

        def block(match: re.Match[str]) -> str:
            head, kind, code, end, output = match.groups()
            if kind not in kinds:
                return match[0]
            if kind == "console":
                return head + _STEP.sub(step, code) + end
            printed = self.program(kind, code)
            return match[0] if output is None else f"{head}{code}{end}{self.unless_same(output, printed)}```\n"

        def step(match: re.Match[str]) -> str:
            command, output = match.groups()
            if shutil.which(command.split()[0], path=self.environment["PATH"]) is None:
                return match[0]
            answers = "".join(_ANSWER.findall(output))
            printed = self.command(command, answers)
            for _ in range(REPETITIONS):
                if not self.may_be_late(command, output, printed):
                    break
                printed = self.command(command, answers)
            return f"$ {command}\n{self.unless_same(output, printed)}"

        return _BLOCK.sub(block, text)

    def may_be_late(self, command: str, shown: str, printed: str) -> bool:
        """Return whether a hook may not have answered in its time, which a busy machine can cause."""
        return LATE in printed or ("--check" in command and not _fits(shown, self.on_a_page(printed)))

    def command(self, command: str, answers: Sequence[str] = "") -> str:
        """Return what a terminal shows after this command. Questions get these answers, then y."""
        given = itertools.chain(answers, itertools.repeat("y"))
        terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
        process = subprocess.Popen(
            ["bash", "-c", self.actual(command)],
            stdin=end,
            stdout=end,
            stderr=end,
            cwd=self.directory,
            env=self.environment,
            start_new_session=True,
        )
        os.close(end)
        printed = b""
        try:
            while data := _read(terminal):
                printed += data
                if printed.endswith((b"[y/N]: ", b"[Y/n]: ", b"Directory: ", b"(Enter: all): ")):
                    os.write(terminal, f"{next(given)}\n".encode())
        finally:
            os.close(terminal)
            process.wait()
        lines = printed.decode().replace("\r\n", "\n").replace("\x1b[K", "").splitlines()
        return "".join(f"{line.rpartition(chr(13))[2]}\n" for line in lines)

    def program(self, kind: str, code: str) -> str:
        """Return what the program prints."""
        return subprocess.run(
            PROGRAMS[kind],
            input=self.actual(code),
            capture_output=True,
            text=True,
            cwd=self.directory,
            env=self.environment,
            timeout=60,
            check=True,
        ).stdout

    def actual(self, shown: str) -> str:
        """Return a command or a program with the ids and the port of this run."""
        return _ID.sub(lambda match: self.ids.get(match[0], match[0]), shown.replace(self.shown_port, str(self.port)))

    def on_a_page(self, printed: str) -> str:
        """Return an output with the directories and the port that the pages show."""
        printed = printed.replace(str(self.root), SHOWN_HOME).replace(str(self.port), self.shown_port)
        return printed.replace(str(Path(sys.executable).parent), SHOWN_BIN)

    def unless_same(self, shown: str, printed: str) -> str:
        """Return what the page shows if it fits what was printed, else what was printed, as a page shows it."""
        printed = self.on_a_page(printed)
        same = _fits(shown, printed)
        here, now = _ID.findall(shown), _ID.findall(printed)
        if same or len(here) == len(now):  # also if other words changed, so that the commands below still work
            for page, actual in zip(here, now, strict=False):
                for end in (13, 18, 23, 36):
                    self.ids.setdefault(page[:end], actual[:end])
        if same and ("…" in shown or not self.anew):
            return shown
        back = {actual: page for page, actual in self.ids.items()}
        return _ID.sub(lambda match: back.get(match[0], match[0]), printed)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the last program has closed the terminal
        return b""


def _masked(output: str) -> str:
    """Return the words of an output, with one mark for everything that differs between runs."""
    return _VARIES.sub("#", " ".join(re.sub("─+", "─", output).split()))


def _fits(shown: str, printed: str) -> bool:
    """Return whether an output is what the page shows."""
    return re.fullmatch(re.escape(_masked(shown)).replace("…", ".*"), _masked(printed)) is not None


def unused_port() -> int:
    """Return a port at which no program listens, and which the kernel chooses for no other program meanwhile."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    below = range(max(1024, first - 10_000), first)
    for port in [*random.SystemRandom().sample(below, min(100, len(below))), 0]:
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return int(free.getsockname()[1])
    raise OSError("no port is free")


@contextmanager
def empty_home(page: str = "") -> Iterator[Home]:
    """Yield a home directory in which the examples of the page work. Afterwards its daemon is stopped.

    Its user has harnesses, and the files of a checkout in ``bench``.
    """
    root = private_root()
    home = Home(root, unused_port(), PLACES.get(page, ("", SHOWN_PORT)))
    if page not in WITH_SECOND_VECTORS:
        # Their vectors come some seconds later, and change what recalls print.
        (root / "one-model").mkdir()
        (root / "one-model" / "sitecustomize.py").write_text('import sys\n\nsys.modules["onnxruntime"] = None\n')
        home.environment["PYTHONPATH"] = str(root / "one-model")
    for name in HARNESSES_OF.get(page, HARNESSES):
        (root / name).mkdir(parents=True)
    (root / "bench").symlink_to(REPOSITORY / "bench")
    try:
        if page in FOR_A_RUNNING_DAEMON:
            (root / ".agents").mkdir(mode=0o700)
            (root / ".agents" / "agent.yaml").write_text(FOR_A_RUNNING_DAEMON[page], encoding="utf-8")
            home.command("signet start")
        yield home
    finally:
        home.command("signet stop --now")
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    for name in sys.argv[1:]:
        page = Path(name)
        with empty_home(name) as home:
            home.anew = True
            page.write_text(home.run_page(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
