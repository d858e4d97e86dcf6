"""Changing agent.yaml from the command line: comments stay, and a file that is not valid is never stored.

Source: docs/cli.md "Maintenance".
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema_rs
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.cli import config as config_commands
from signet_actors.config.load import LoadedConfig, load_config
from signet_actors.config.schema import Config
from signet_actors.config.yaml_edit import with_value
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.runtime.supervision.reload import Reloader, loader_that_logs
from tests.support.bus_harness import eventually

NAMES = st.sampled_from(["a", "b", "c", "ä"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text("ab:#'\" \n{}[]-", max_size=6))
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("", "search.alpha", "search:\n  alpha: 0.5\n"),
        ("# mine\n", "search.alpha", "# mine\nsearch:\n  alpha: 0.5\n"),
        ("search:\n  alpha: 0.1 # why\n", "search.alpha", "search:\n  alpha: 0.5 # why\n"),
        ("search:\n    pool: 9\n", "search.alpha", "search:\n    alpha: 0.5\n    pool: 9\n"),
        ("search: {pool: 9}\n", "search.alpha", "search: {alpha: 0.5, pool: 9}\n"),
        ("search: {}\n", "search.alpha", 'search: {"alpha": 0.5}\n'),
        ("search:\nother: 1\n", "search.alpha", 'search: {"alpha": 0.5}\nother: 1\n'),
        ("# top\nother: 1", "search.alpha", "# top\nsearch:\n  alpha: 0.5\nother: 1"),
        ("search:\n  alpha: |\n    x\n  pool: 1\n", "search.alpha", "search:\n  alpha: 0.5\n  pool: 1\n"),
        ("search:\n  alpha: [1, 2]\n", "search.alpha", "search:\n  alpha: 0.5\n"),
    ],
)
def test_one_key_is_set_and_everything_else_stays(before: str, path: str, after: str) -> None:
    assert with_value(before, path.split("."), 0.5) == after


@pytest.mark.parametrize("text", ["search: text\n", "search:\n  alpha:\n    x: 1\n", "- a\n", "a: [\n", "a: 1\na: 2\n"])
def test_a_place_that_cannot_be_set_is_refused(text: str) -> None:
    with pytest.raises(UnreadableYaml):
        with_value(text, ("search", "alpha"), 1)


@given(tree=st.dictionaries(NAMES, TREES, max_size=3), path=st.lists(NAMES, min_size=1, max_size=3), value=SCALARS)
def test_the_result_is_the_same_tree_with_the_value(tree: dict[str, Any], path: list[str], value: Any) -> None:
    import yaml

    for flow in (False, True):
        text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow) if tree else ""
        try:
            changed = with_value(text, path, value)
        except UnreadableYaml:
            continue
        expected = parse_yaml(text.encode()) or {}
        place = expected
        for name in path[:-1]:
            if not isinstance(place.get(name), dict):
                place[name] = {}
            place = place[name]
        place[path[-1]] = value
        assert parse_yaml(changed.encode()) == expected, (text, changed)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIGNET_WORKSPACE", str(tmp_path / "w"))
    return tmp_path / "w"


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Set the user's editor to a shell script, and return the directory in which texts are edited."""

    def script(commands: str) -> Path:
        file, drafts = tmp_path / "editor", tmp_path / "drafts"
        drafts.mkdir()
        file.write_text(f"#!/bin/sh\n{commands}\n")
        file.chmod(0o700)
        monkeypatch.setenv("VISUAL", str(file))
        monkeypatch.setattr(tempfile, "tempdir", str(drafts))
        return drafts

    return script


def test_config_set_stores_a_valid_file(signet: Callable[..., Result], workspace: Path) -> None:
    assert signet("config", "set", "search.alpha", "0.6").exit_code == 0
    assert signet("config", "set", "gateway.port", "4000").exit_code == 0
    assert signet("config", "set", "memory.pipelineV2.extraction.model", "qwen3:4b").exit_code == 0
    config = load_config(workspace, {}).config
    found = (config.search.alpha, config.gateway.port, config.memory.pipeline_v2.extraction.model)
    assert found == (0.6, 4000, "qwen3:4b")


@pytest.mark.parametrize(
    ("key", "value", "restart"),
    [
        ("search.alpha", "0.6", False),
        ("memory.pipelineV2.mutationsFrozen", "true", False),
        ("gateway.host", "127.0.0.2", True),
        ("gateway.port", "4000", True),
        ("searcher.processes", "3", True),
    ],
)
def test_config_set_says_whether_a_reload_is_enough(
    signet: Callable[..., Result],
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    value: str,
    restart: bool,
) -> None:
    monkeypatch.setattr(config_commands, "lock_held", lambda _: True)
    said = signet("config", "set", key, value).stdout
    assert ("`signet restart`" in said, "within two seconds" in said) == (restart, not restart)
    log = mock.Mock()
    Reloader(lambda: load_config(workspace, {}).config, Config(), workspace, mock.Mock(), log).load_again(Config())
    assert log.warning.called == restart  # what a reload does with this key


def test_the_daemon_logs_each_warning_of_its_configuration_once_until_it_changes(workspace: Path) -> None:
    log = mock.Mock()

    def load_with(text: str) -> LoadedConfig:
        workspace.mkdir(exist_ok=True)
        (workspace / "agent.yaml").write_text(text)
        return load_config(workspace, {})

    texts = iter(["serach: 1\n", "serach: 1\nwrtier: 1\n", "search: {alpha: 0.5}\n", "serach: 1\n"])
    load = loader_that_logs(lambda: load_with(next(texts)), load_with("serach: 1\n"), log)
    counts = [len(log.warning.mock_calls)]
    for _ in range(4):
        load()
        counts.append(len(log.warning.mock_calls))
    assert counts == [1, 1, 2, 2, 3]
    assert log.warning.mock_calls[0] == mock.call("configuration_warning", detail=mock.ANY)
    assert "serach" in log.warning.mock_calls[0].kwargs["detail"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("search.alpha", "7"), 78, "alpha"),
        (("search.alpha", "[1"), 78, "flow sequence"),
        (("search.alhpa", "0.5"), 2, 'did you mean "search.alpha"?'),
        (("search", "1"), 2, "is a section"),
        (("search.alpha.x", "1"), 2, "there is no key 'search.alpha.x'"),
    ],
)
def test_config_set_changes_nothing_for_a_wrong_key_or_value(
    signet: Callable[..., Result], workspace: Path, arguments: tuple[str, str], code: int, said: str
) -> None:
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("search: {alpha: 0.4} # mine\n")
    result = signet("config", "set", *arguments)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert (workspace / "agent.yaml").read_text() == "search: {alpha: 0.4} # mine\n"


@pytest.mark.parametrize(("text", "code"), [("search: {alpha: 0.7}\n", 0), ("search: {alpha: 7}\n", 78), (None, 0)])
def test_config_edit_stores_only_a_valid_file_and_keeps_the_text_of_another(
    signet: Callable[..., Result], workspace: Path, editor: Callable[[str], Path], text: str | None, code: int
) -> None:
    drafts = editor(f"echo {text.strip()!r} > $1" if text else "true")
    result = signet("config", "edit", "--json")
    file = workspace / "agent.yaml"
    assert result.exit_code == code
    if code == 0:
        assert json.loads(result.stdout) == {"path": str(file), "changed": text is not None}
    assert (file.read_text() if file.exists() else None) == (text if code == 0 else None)
    kept = list(drafts.iterdir())
    assert [(one.read_text(), one.stat().st_mode & 0o777) for one in kept] == ([(text, 0o600)] if code else [])
    assert all(f"Your text was not stored; it is in {one}." in result.stderr for one in kept)
    assert all(f"Correct it there, then `cp {one} {file}`." in result.stderr for one in kept)


@pytest.mark.parametrize("arguments", [("edit",), ("set", "search.alpha", "0.7")])
def test_a_change_by_another_program_is_not_overwritten(
    signet: Callable[..., Result],
    workspace: Path,
    editor: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    file = workspace / "agent.yaml"
    signet("config", "set", "search.alpha", "0.4")
    drafts = editor("echo 'search: {alpha: 0.7}' > $1")

    def checked(text: str) -> None:
        file.write_text("search: {alpha: 0.5}\n")

    monkeypatch.setattr(config_commands, "checked_config", checked)
    result = signet("config", *arguments)
    assert (result.exit_code, file.read_text()) == (1, "search: {alpha: 0.5}\n")
    assert f"{file} was changed by another program in the meantime" in result.stderr
    assert [one.read_text() for one in drafts.iterdir()] == ["search: {alpha: 0.7}\n"] * (arguments == ("edit",))


@pytest.mark.parametrize("failure", ["printf '\\377' > $1", "echo x > $1; exit 1"])
def test_what_a_failing_editor_wrote_is_kept(
    signet: Callable[..., Result], workspace: Path, editor: Callable[[str], Path], failure: str
) -> None:
    drafts = editor(failure)
    result = signet("config", "edit")
    (kept,) = drafts.iterdir()
    assert (result.exit_code > 0, str(kept) in result.stderr) == (True, True), result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("typed", ["", "search: {alpha: 0.7}"])
def test_a_signal_leaves_no_draft_behind_but_what_was_typed(
    workspace: Path, editor: Callable[[str], Path], number: signal.Signals, typed: str
) -> None:
    drafts = editor(f"printf '{typed}' > $1; touch {workspace}.opened; exec sleep 600")
    command = subprocess.Popen(
        [sys.executable, "-m", "signet_actors.cli", "config", "edit"],
        env={**os.environ, "TMPDIR": str(drafts)},
        start_new_session=True,
    )
    try:
        eventually(Path(f"{workspace}.opened").exists, what="the editor")
        command.send_signal(number)
        assert command.wait(timeout=60) == 128 + number
    finally:
        os.killpg(command.pid, signal.SIGKILL)  # the editor
        command.wait(timeout=60)
    assert [one.read_text() for one in drafts.iterdir()] == [typed] * bool(typed)


def test_config_set_keeps_the_mode_of_the_file(signet: Callable[..., Result], workspace: Path) -> None:
    signet("config", "set", "search.alpha", "0.4")
    file = workspace / "agent.yaml"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    signet("config", "set", "search.alpha", "0.5")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("search:\n  alpha: 0.5\n", 0o640)


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("arguments", [("edit",), ("set", "search.alpha", "0.7")])
def test_the_configuration_of_another_user_is_not_changed(
    signet: Callable[..., Result],
    workspace: Path,
    editor: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    exists: bool,
) -> None:
    workspace.mkdir()
    file = workspace / "agent.yaml"
    if exists:
        file.write_text("# theirs\n")
    drafts = editor("echo 'search: {alpha: 0.7}' > $1")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    result = signet("config", *arguments)
    assert (result.exit_code, list(drafts.iterdir())) == (78, [])
    assert f"{file if exists else workspace} belongs to another user (uid {os.getuid()})" in result.stderr
    assert (file.read_text() if file.exists() else None) == ("# theirs\n" if exists else None)


def test_config_check_shows_misspelt_keys_together_with_the_errors(
    signet: Callable[..., Result], workspace: Path
) -> None:
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("search: {alpha: 7, alhpa: 0.5}\nserach: {}\n")
    result = signet("config", "check")
    assert result.exit_code == 78
    for said in ("search.alpha: 7 is out of range", "search.alhpa: unknown key", "serach: unknown key"):
        assert said in result.stderr


def test_without_a_terminal_no_editor_is_started(signet: Callable[..., Result]) -> None:
    with mock.patch("click.edit") as editor, mock.patch.dict("os.environ", EDITOR="", VISUAL=""):
        result = signet("config", "edit")
    assert (result.exit_code, editor.called) == (2, False)
    assert "use `signet config set KEY VALUE`" in result.stderr


def test_config_schema_accepts_the_defaults_and_refuses_what_the_daemon_refuses(
    signet: Callable[..., Result], workspace: Path
) -> None:
    schema = json.loads(signet("config", "schema").stdout)
    defaults = json.loads(signet("config", "show", "--json").stdout)
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert list(validator.iter_errors(defaults)) == []
    assert list(validator.iter_errors({"search": {"alpha": 7}})) != []
