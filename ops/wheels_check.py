"""Find out for which platforms and versions of Python every package of ``requirements.lock`` has a wheel.

``python ops/wheels_check.py`` prints a table, and fails if a supported platform would need a compiler. uv evaluates the
markers of the lock for each target and looks up the wheels by hash; it reads their metadata and does not download them.
Linux is taken to have glibc 2.28 or newer, macOS to be 14 or newer.

Source: uv's documentation, "uv pip install", --python-platform; docs/operations.md "Installation".
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SUPPORTED = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM": "aarch64-manylinux_2_28",
    "macOS ARM": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
}
UNSUPPORTED = {"musl x86-64": "x86_64-unknown-linux-musl", "musl ARM": "aarch64-unknown-linux-musl"}


def installable(platform: str, python: str) -> tuple[int, str]:
    """Return the number of packages that would be installed, or 0 and uv's reason why not."""
    with tempfile.TemporaryDirectory() as target:
        install = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--dry-run", "--target", target]
        wheels = ["--no-deps", "--require-hashes", "--only-binary=:all:", "-r", str(ROOT / "requirements.lock")]
        done = subprocess.run(
            [*install, f"--python-platform={platform}", f"--python-version={python}", *wheels],
            env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        return 0, " ".join(done.stderr.split())
    return sum(line.startswith(" + ") for line in done.stderr.splitlines()), ""


def main() -> int:
    """Print a row for each platform; return 1 if a supported one lacks a wheel."""
    refused: list[str] = []
    sys.stdout.write(f"{'':14}{''.join(f'{python:>8}' for python in PYTHONS)}\n")
    for name, platform in {**SUPPORTED, **UNSUPPORTED}.items():
        sys.stdout.write(f"{name:14}")
        for python in PYTHONS:
            count, reason = installable(platform, python)
            sys.stdout.write(f"{count or '-':>8}")
            sys.stdout.flush()
            if reason and name in SUPPORTED:
                refused.append(f"{name}, Python {python}: {reason}")
        sys.stdout.write("\n")
    sys.stdout.write("".join(f"{line}\n" for line in refused))
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
