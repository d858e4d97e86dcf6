"""What is installed: the wheel, the files of third parties in it, and the locks."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import signet_actors
from signet_actors.cli import third_party_files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ops"))
third_party = importlib.import_module("third_party")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def built(tree: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the wheel of ``tree`` as an installer does: in the tree, with the backend that it names."""
    system = PYPROJECT["build-system"]
    call = f"import {system['build-backend']} as backend; print(backend.build_wheel({str(target)!r}))"
    path = f"import sys; sys.path[:0] = {system['backend-path']!r}; {call}"
    return subprocess.run([sys.executable, "-c", path], cwd=tree, capture_output=True, text=True, check=False)


def copy_of_the_package(target: Path) -> Path:
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "supervisor.py"):
        shutil.copy(ROOT / name, target)
    for name in ("ops", "signet_actors"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def test_the_wheel_contains_one_package_with_its_data_and_licences(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / done.stdout.strip()) as wheel:
        names = wheel.namelist()
    dist_info = f"signet_actors-{signet_actors.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"signet_actors", dist_info}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "signet_actors").rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} <= set(names)
    assert f"{dist_info}/licenses/LICENSE" in names
    assert {f"signet_actors/third_party/{file.place}" for each in third_party.WHEELS for file in each.files} <= set(
        names
    )


def test_a_wheel_without_a_file_of_a_third_party_is_refused_with_advice(tmp_path: Path) -> None:
    tree = copy_of_the_package(tmp_path / "tree")
    (tree / "signet_actors" / "third_party" / "minilm" / "model.onnx").write_bytes(b"cut off")
    done = built(tree, tmp_path)
    assert done.returncode != 0
    assert "lacks minilm/model.onnx. Run `make third-party`" in done.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_files_that_are_there_cost_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: object, **__: object) -> None:
        raise AssertionError("something was downloaded")

    monkeypatch.setattr(third_party_files.subprocess, "run", download)
    monkeypatch.setattr(sys, "argv", ["third_party.py"])
    third_party.main()


def test_a_python_without_pip_downloads_with_that_of_a_temporary_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(third_party_files, "find_spec", lambda _: None)
    with third_party_files.pip() as command:
        assert Path(command[0]) != Path(sys.executable)
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout[:4]) == (0, "pip "), done.stderr
    assert not Path(command[0]).exists()


@pytest.mark.parametrize(("has_pip", "reason"), [(False, "has no pip"), (True, "could not be downloaded")])
def test_a_missing_pip_is_told_from_a_failed_download(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_pip: bool, reason: str
) -> None:
    failed = subprocess.CompletedProcess[bytes]([], 1)
    monkeypatch.setattr(third_party_files, "find_spec", lambda _: sys if has_pip else None)
    monkeypatch.setattr(third_party_files.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit, match=reason), third_party_files.pip() as command:
        third_party_files.fetch(third_party.WHEELS[0], command, tmp_path)


def test_a_built_wheel_replaces_that_of_an_older_release(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\ntouch dist/signet_actors-2.0.0-py3-none-any.whl\n")
    python.chmod(0o700)
    old = tmp_path / "dist" / "signet_actors-1.0.0-py3-none-any.whl"
    old.parent.mkdir()
    old.touch()
    installed = [part for name in (".installed", ".installed-dev") for part in ("-o", f"{tmp_path}/{name}")]
    make = ["make", "-f", str(ROOT / "Makefile"), *installed, f"VENV={tmp_path}", "wheel"]
    done = subprocess.run(make, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, os.listdir(old.parent)) == (0, ["signet_actors-2.0.0-py3-none-any.whl"]), done.stderr


def test_a_wheel_with_other_content_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"model\.onnx has another hash"):
        third_party_files._put(b"something else", tmp_path / "model.onnx", "0" * 64)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wheel", [*third_party.WHEELS, third_party_files.MULTILINGUAL], ids=lambda wheel: wheel.requirement
)
def test_each_file_has_its_licence_and_its_source_beside_it(wheel: object) -> None:
    for file in wheel.files:  # type: ignore[attr-defined]
        folder = (third_party_files.FOLDER / file.place).parent
        assert (folder / "LICENSE.txt").is_file()
        notice = (folder / "NOTICE.txt").read_text(encoding="utf-8")
        assert file.sha256 in notice
        assert Path(file.place).name in notice


@pytest.mark.parametrize(
    ("name", "packages"), [("requirements.lock", 20), ("requirements-dev.lock", 20), ("requirements-browser.lock", 2)]
)
def test_a_lock_pins_by_hash_and_names_no_index(name: str, packages: int) -> None:
    entries = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    pinned = [entry for entry in entries if entry and not entry.lstrip().startswith("#")]
    assert len(pinned) > packages
    for entry in pinned:
        assert "==" in entry
        assert "--hash=sha256:" in entry
        assert "://" not in entry


def test_modules_are_compiled_whatever_the_environment_says_of_it(tmp_path: Path) -> None:
    tree = copy_of_the_package(tmp_path / "tree")
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", *words]
        return subprocess.run(command, cwd="/", env=environ | more, capture_output=True, text=True, check=False)

    def is_warned() -> bool:
        said = run("-m", "signet_actors", "--workspace", str(tmp_path / "new"), "doctor").stdout
        assert "workspace:" in said
        return "its modules are not compiled" in said

    assert is_warned()
    compiled = run(str(tree / "ops" / "compile_imported.py"), PYTHONPYCACHEPREFIX=str(tmp_path / "elsewhere"))
    assert compiled.returncode == 0, compiled.stderr
    assert not (tmp_path / "elsewhere").exists()
    modules = list((tree / "signet_actors").rglob("*.py"))
    assert all(Path(importlib.util.cache_from_source(str(module))).is_file() for module in modules)
    assert not is_warned()


def test_an_installation_in_which_nothing_can_be_compiled_fails(tmp_path: Path) -> None:
    tree = copy_of_the_package(tmp_path / "tree")
    (tree / "signet_actors" / "__pycache__").write_text("in the way")
    script, environ = str(tree / "ops" / "compile_imported.py"), {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-P", script], cwd="/", env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "was not compiled" in done.stderr


def test_every_requirement_has_a_lower_bound() -> None:
    groups = [PYPROJECT["project"]["dependencies"], *PYPROJECT["project"]["optional-dependencies"].values()]
    for requirement in (requirement for group in groups for requirement in group):
        assert ">=" in requirement, requirement


def test_the_package_runs_as_the_command_line() -> None:
    command = [sys.executable, "-P", "-m", "signet_actors", "--version"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"signet {signet_actors.__version__}\n"), done.stderr
