"""Each flag of the pipeline, in each of its spellings in a file, has its documented effect.

The flags are written by hand from memory-pipeline.txt "Pipeline Modes", "Controlled Writes" and "Maintenance Worker",
as changed by docs/decisions.md 16.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.keys import Key, keys
from signet_actors.config.legacy import FLAT_KEYS
from signet_actors.config.load import load_config
from signet_actors.config.schema import Config
from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.gates import Target, flags_of, gate, pipeline_mode
from signet_actors.domain.extraction.proposals import Action, Proposal
from signet_actors.supervisor import decider_count, extractor_count

BY_PATH: dict[str, Key] = {key.dotted: key for key in keys()}


def loaded(tmp_path: Path, *lines: str) -> Config:
    text = "memory:\n  pipelineV2:\n" + "".join(f"    {line}\n" for line in lines)
    (tmp_path / "agent.yaml").write_text(text, encoding="utf-8")
    return load_config(tmp_path, {}).config


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        (["enabled: true"], "controlled_write"),
        (["enabled: false"], "off"),
        (["enabled: false", "shadowMode: true", "mutationsFrozen: true"], "off"),
        (["shadowMode: true"], "shadow"),
        (["shadow_mode: true"], "shadow"),
        (["shadowMode: true", "allowUpdateDelete: true"], "shadow"),
        (["mutationsFrozen: true"], "frozen"),
        (["mutationsFrozen: true", "shadowMode: true"], "frozen"),
        (["allowUpdateDelete: true"], "full"),
        (["autonomous: {allowUpdateDelete: true}"], "full"),
        (["autonomous: {allow_update_delete: true}"], "full"),
        (["allowUpdateDelete: false"], "controlled_write"),
        (["allowUpdateDelete: true", "autonomousFrozen: true"], "controlled_write"),
        (["autonomous: {allowUpdateDelete: true, frozen: true}"], "controlled_write"),
    ],
)
def test_the_flags_of_a_file_make_the_mode(tmp_path: Path, lines: list[str], mode: str) -> None:
    assert pipeline_mode(flags_of(loaded(tmp_path, *lines).memory.pipeline_v2)) == mode


TARGET = Target("m1", 3, pinned=False, content="The cache holds a thousand rows")


@pytest.mark.parametrize(
    ("lines", "action", "outcome", "reason"),
    [
        ([], "add", "created", None),
        ([], "none", "recorded", "already_covered"),
        ([], "update", "blocked", "destructive_mutations_disabled"),
        ([], "delete", "blocked", "destructive_mutations_disabled"),
        (["allowUpdateDelete: true"], "update", "updated", None),
        (["allowUpdateDelete: true"], "delete", "deleted", None),
        (["allowUpdateDelete: true", "autonomousFrozen: true"], "update", "blocked", "autonomous_frozen"),
        (["confirm: review"], "add", "review", "confirmation"),
        (["confirm: auto"], "add", "created", None),
        (["confirm: review", "allowUpdateDelete: true"], "delete", "review", "confirmation"),
        (["confirm: review", "shadowMode: true"], "add", "recorded", "shadow"),
        (["shadowMode: true"], "add", "recorded", "shadow"),
        (["mutationsFrozen: true"], "add", "recorded", "frozen"),
        (["enabled: false"], "add", "skipped", "pipeline_disabled"),
        (["minFactConfidenceForWrite: 0.95"], "add", "skipped", "low_fact_confidence"),
        (["extraction: {minConfidence: 0.95}"], "add", "skipped", "low_fact_confidence"),
        (["minFactConfidenceForWrite: 0.9"], "add", "created", None),
        (["minFactConfidenceForWrite: 0.95", "allowUpdateDelete: true"], "delete", "skipped", "low_fact_confidence"),
    ],
)
def test_the_settings_of_a_file_set_the_gates(
    tmp_path: Path, lines: list[str], action: Action, outcome: str, reason: str | None
) -> None:
    pipeline = loaded(tmp_path, *(lines or ["enabled: true"])).memory.pipeline_v2
    named = ("m1", 3) if action in {"update", "delete"} else (None, None)
    met = gate(
        Proposal(action, Fact("The cache holds two thousand rows", "fact", 0.9), 0.96, "It grew.", *named),
        flags_of(pipeline),
        min_confidence=pipeline.extraction.min_confidence,
        target=TARGET if named[0] else None,
    )
    assert (met.outcome, met.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("lines", "deciders", "extractors"),
    [
        (["enabled: true"], 1, 1),
        (["enabled: false"], 0, 1),
        (["enabled: false", "embeddingTracker: {enabled: false}"], 0, 0),
        (["enabled: false", "embeddingTracker: {enabled: false}", "reranker: {useExtractionModel: true}"], 0, 1),
    ],
)
def test_the_settings_of_a_file_decide_which_processes_run(
    tmp_path: Path, lines: list[str], deciders: int, extractors: int
) -> None:
    config = loaded(tmp_path, *lines)
    assert (decider_count(config), extractor_count(config)) == (deciders, extractors)


def another_value(key: Key) -> Any:
    """A legal value that is not the default."""
    if key.field.kind == "true or false":
        return not key.default
    if key.field.choices:
        return next(choice for choice in key.field.choices if choice != key.default)
    if key.field.low is None:
        return "http://127.0.0.1:1" if key.dotted.endswith("endpoint") else "other"
    if key.field.kind == "whole number":
        assert isinstance(key.default, int)
        return key.default + 1  # beside its default it gets on with every other key
    return key.field.low if key.default != key.field.low else key.field.high


@pytest.mark.parametrize(("flat", "nested"), FLAT_KEYS)
def test_each_flat_spelling_of_an_older_file_gives_its_key_the_value(tmp_path: Path, flat: str, nested: str) -> None:
    key = BY_PATH[f"memory.pipelineV2.{nested}"]
    value = another_value(key)
    written = str(value).lower() if isinstance(value, bool) else value
    found: Any = loaded(tmp_path, f"{flat}: {written}").memory.pipeline_v2
    for name in nested.split("."):
        found = next(
            getattr(found, field.name) for field in msgspec.structs.fields(type(found)) if field.encode_name == name
        )
    assert found == value
