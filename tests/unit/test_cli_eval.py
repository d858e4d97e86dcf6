"""``signet eval``: what it refuses, the configuration that it measures, and what it prints. No daemon is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from click.testing import Result

from signet_actors.cli import eval as eval_command
from signet_actors.cli import eval_run
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.eval import Measured, Overrides, Plan, measured_mapping, settings_text
from signet_actors.cli.eval_run import Answers, FilledStore
from signet_actors.cli.invocation import Invocation
from signet_actors.config.daemon_address import address_from_url
from signet_actors.config.load import load_config
from signet_actors.config.schema import Config
from signet_actors.domain.evaluation.question_set import Question, StoredText
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable

EXPORT = "/api/memory/export"
LINES = {"Content-Type": "application/x-ndjson"}
QUESTION = {"question": "which colour?", "ids": ["a"]}


def config_of(tmp_path: Path, text: str) -> Config:
    (tmp_path / "agent.yaml").write_text(text)
    return load_config(tmp_path, {}).config


def file_of(tmp_path: Path, *objects: object) -> str:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return str(path)


# Refusals: exit code 2, one line with the reason, and no daemon.


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "give either a FILE or --own"),
        (["file", "--own"], "give either a FILE or --own"),
        (["missing.json"], "cannot read missing.json: No such file or directory"),
        (["/dev/null"], "not a regular file"),
        (["--own", "--limit", "101"], "101 is not in the range"),
        (["--own", "--set", "search.alpha"], "expected KEY=VALUE"),
        (["--own", "--set", "search.pool="], "expected KEY=VALUE"),
        (["--own", "--set", "search.alhpa=1"], 'is no key of the configuration; did you mean "search.alpha"?'),
        (["--own", "--set", "gateway.port=1"], "gateway.port has no effect on what is measured"),
        (["--own", "--compare", "memory.pipelineV2.enabled=true"], "has no effect on what is measured"),
        (["--own", "--set", "search.alpha=[1"], "--set search.alpha=[1: "),
    ],
)
def test_a_wrong_call_is_refused(signet: Callable[..., Result], arguments: list[str], reason: str) -> None:
    result = signet("eval", *arguments)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())
    assert "remove it" not in result.stderr  # a file that the user named


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it has no questions"),
        ("not json\n", "line 1 is not JSON"),
        ("[]", "no question names a turn of the conversations"),
        ('[{"qa": []}]', "not a LoCoMo file"),
        ('{"content": "x", "id": "a"}\n{"question": "y?", "ids": ["b"]}\n', 'no memory of the file has the id "b"'),
    ],
)
def test_a_file_of_another_kind_is_refused_with_its_name(
    signet: Callable[..., Result], tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "questions"
    path.write_text(content)
    result = signet("eval", str(path))
    assert result.exit_code == 2
    assert f"questions: {reason}" in " ".join(result.stderr.split())


def test_own_questions_need_memories(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", EXPORT, b'{"format":"signet-memories","version":1}\n', media_type=LINES)
    result = signet("eval", "--own")
    assert result.exit_code == 2
    assert "the store has 0 memories" in result.stderr


def test_questions_about_unknown_ids_of_the_store_are_refused(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    daemon.on("GET", EXPORT, b'{"id":"z","content":"something"}\n', media_type=LINES)
    result = signet("eval", file_of(tmp_path, QUESTION))
    assert result.exit_code == 2
    assert "no id of its questions is one of your memories" in " ".join(result.stderr.split())
    assert {asked.method for asked in daemon.asked} == {"GET"}, "the store is only read"


def test_without_a_daemon_own_memories_cannot_be_read(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from signet_actors.cli.main import cli

    workspace = str(tmp_path / "none")
    result = CliRunner().invoke(cli, ["--workspace", workspace, "eval", "--own"], prog_name="signet")
    assert result.exit_code == 3
    assert f"signet --workspace {workspace} start" in result.stderr


# The configuration that is measured


def test_the_measured_daemon_has_the_users_search_and_no_language_model(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        "search: {alpha: 0.7}\ngateway: {port: 4000}\nembedding: {provider: none}\n"
        "agents: {roster: [{name: bob, read_policy: isolated}]}\n"
        "memory: {pipelineV2: {enabled: true, reranker: {enabled: true, useExtractionModel: true}}}\n",
    )
    overrides = Overrides("--set", ["search.pool=300", "search.fusion=rrf"])
    text = settings_text(measured_mapping(config, overrides), overrides)
    (tmp_path / "agent.yaml").write_text(text)
    measured = load_config(tmp_path, {})
    assert measured.warnings == []
    search = measured.config.search
    assert (search.alpha, search.pool, search.fusion) == (0.7, 300, "rrf")
    assert measured.config.embedding.provider == "none"
    assert [entry.name for entry in measured.config.agents.roster] == ["bob"]
    assert measured.config.gateway.port == Config().gateway.port
    pipeline = measured.config.memory.pipeline_v2
    assert not pipeline.enabled
    assert pipeline.reranker.enabled
    assert not pipeline.reranker.use_extraction_model


def test_the_defaults_can_be_measured(tmp_path: Path) -> None:
    none = Overrides("--set", [])
    text = settings_text(measured_mapping(Config(), none), none)
    assert yaml.safe_load(text)["memory"]["pipelineV2"]["enabled"] is False
    assert not (tmp_path / "agent.yaml").exists()


@pytest.mark.parametrize("override", ["search.alpha=3", "search.context=perhaps", "search.fusion=magic"])
def test_an_override_out_of_range_is_a_usage_error(tmp_path: Path, override: str) -> None:
    overrides = Overrides("--compare", [override])
    with pytest.raises(click.UsageError) as refused:
        settings_text(measured_mapping(Config(), overrides), overrides)
    assert refused.value.message.startswith(f"--compare: {override.partition('=')[0]}: ")


def test_later_overrides_win() -> None:
    both = Overrides("--set", ["search.alpha=0.1"]) + Overrides("--compare", ["search.alpha=0.2"])
    mapping: dict[str, Any] = {}
    both.apply(mapping)
    assert mapping == {"search": {"alpha": 0.2}}
    assert both.texts == ("search.alpha=0.1", "search.alpha=0.2")


# The rows of the store


def test_equal_memories_share_a_row_and_ids_of_the_store_are_kept() -> None:
    kept = "0190a1b2-0000-7000-8000-00000000000a"
    memories = [
        StoredText(kept, {"content": "The boat is blue."}),
        StoredText("b", {"content": "the  boat is blue"}),
        StoredText("c", {"content": "a red boat"}),
        StoredText("c", {"content": "a green boat"}),
        StoredText(kept.upper(), {"content": "a black boat"}),
    ]
    ids, lines = eval_run._with_ids(memories)
    assert ids[kept] == ids["b"] == {kept}
    assert len(ids["c"]) == 2
    assert ids[kept.upper()] != {kept.upper()}, "the store writes ids in lower case"
    assert len(lines) == 4
    assert [line["id"] for line in lines.values()] == list(lines)


# Vectors


def embedding_health(total: int, by_model: dict[str, int], provider: str = "ollama") -> dict[str, Any]:
    checks = [
        {"name": "coverage", "score": 1.0, "detail": {}},
        {"name": "model-drift", "score": 0.5, "detail": {"byModel": by_model}},
    ]
    return {"total": total, "embedded": total, "checks": checks, "config": {"provider": provider, "model": "new"}}


def waited(daemon: ScriptedDaemon, *health: dict[str, Any]) -> int:
    """Wait for the vectors of a daemon with these states of its embeddings; return how often it was asked."""
    daemon.script("GET", "/api/embeddings/health", *health)
    client = DaemonClient(address_from_url(daemon.url))
    try:
        eval_run.wait_for_vectors(client)
    finally:
        client.close()
    return len(daemon.asked)


def test_vectors_of_a_former_model_are_waited_for(daemon: ScriptedDaemon) -> None:
    states = [{"old": 3}, {"old": 2, "new": 1}, {"new": 3}]
    assert waited(daemon, *(embedding_health(3, by_model) for by_model in states)) == 3


def test_without_a_provider_no_vector_is_waited_for(daemon: ScriptedDaemon) -> None:
    assert waited(daemon, embedding_health(3, {}, provider="none")) == 1


def test_vectors_that_do_not_come_are_reported_and_not_waited_for(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(eval_run, "IDLE_S", 0.0)
    waited(daemon, embedding_health(3, {"new": 2}))
    assert "Only 2 of 3 memories have a vector of new" in capsys.readouterr().err


# What is printed


def answers(*hits: float) -> Answers:
    rankings = [["a"]] * len(hits)
    return Answers([(hit, hit, hit) for hit in hits], [1.0, 2.0, 3.0, 40.0][: len(hits)], rankings, {"fusion": 3.0})


def measured(*plans: Answers, kinds: tuple[str, ...]) -> Measured:
    questions = [Question("?", kind, ("a",)) for kind in kinds]
    store = FilledStore(questions, {"a": frozenset({"a"})}, 7)
    named = [Plan("configured", Overrides("--set", []))]
    if len(plans) > 1:
        named.append(Plan("compared", Overrides("--compare", ["search.alpha=1"])))
    return Measured(store, named, plans, limit=10)


def test_a_table_has_a_row_for_each_kind_and_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    eval_command._print(Invocation(), measured(answers(1, 1, 1, 1), answers(1, 1, 0, 0), kinds=("x", "x", "y", "y")))
    printed = capsys.readouterr()
    assert "compared with search.alpha=1: recall p50" in printed.err
    rows = [line.split("\t") for line in printed.out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["all", "configured", "4"],
        ["all", "compared", "4"],
        ["all", "difference", "4"],
        *(["x", name, "2"] for name in ("configured", "compared", "difference")),
        *(["y", name, "2"] for name in ("configured", "compared", "difference")),
    ]
    assert rows[0][3] == "100.0 [100.0, 100.0]"
    assert rows[1][3].startswith("50.0 [")
    assert rows[5][3] == "+0.0 [+0.0, +0.0]"
    assert rows[8][3] == "-100.0 [-100.0, -100.0] *"


def test_questions_of_one_kind_have_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    eval_command._print(Invocation(), measured(answers(1, 0), kinds=("x", "x")))
    assert capsys.readouterr().out.count("\n") == 1


def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    eval_command._print(Invocation(as_json=True), measured(answers(1, 0), answers(1, 1), kinds=("x", "")))
    found = json.loads(capsys.readouterr().out)
    assert (found["memories"], found["questions"], found["limit"]) == (7, 2, 10)
    before, after = found["configurations"]
    assert (before["overrides"], after["overrides"]) == ([], ["search.alpha=1"])
    assert set(before["kinds"]) == {"all", "x", "other"}
    assert before["kinds"]["all"]["R@10"]["mean"] == 0.5
    assert before["stages_ms"] == {"fusion": 1.5}
    assert before["recall_ms"] == {"p50": 2.0, "p95": 2.0}
    assert found["difference"]["all"]["hit@1"]["mean"] == 0.5
