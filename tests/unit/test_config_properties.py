"""Any number for a key is loaded if it is in range, and otherwise refused with the name of the key."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.config.keys import Key, keys
from signet_actors.config.load import effective_mapping, load_config
from signet_actors.config.schema import Config
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.errors import ConfigError

NUMBERS = [key for key in keys() if key.field.kind in {"number", "whole number"}]
BOUND_BY_RULES = {
    "embedding.dimensions",
    "gateway.maxBodyBytes",
    "writer.queueBytes",
    "memory.pipelineV2.documents.chunkSize",
    "memory.pipelineV2.documents.chunkOverlap",
    "memory.pipelineV2.extraction.breaker.cooldownMs",
    "memory.pipelineV2.extraction.breaker.maxCooldownMs",
    "supervision.backoffMinMs",
    "supervision.backoffMaxMs",
    "logging.maxFileBytes",
    "logging.maxTotalBytes",
}
RULES = (" is more than ", " must be less than ", " does not fit ")
SCALARS = [key for key in keys() if not key.field.kind.startswith("list")]


def tree(key: Key, value: object) -> dict[str, Any]:
    return functools.reduce(lambda inner, name: {name: inner}, reversed(key.path), value)  # type: ignore[arg-type]


def load(value: object) -> Config:
    with tempfile.TemporaryDirectory() as workspace:
        Path(workspace, "agent.yaml").write_text(yaml.safe_dump(value, allow_unicode=True))
        return load_config(Path(workspace), {}, strict=True).config


def outcome(value: object) -> Config | list[str]:
    """The configuration, or the lines of the refusal."""
    try:
        return load(value)
    except ConfigError as refused:
        return refused.detail.split("\n")


def refusal(value: object) -> list[str]:
    lines = outcome(value)
    assert isinstance(lines, list), f"{value} was accepted"
    return lines


def attribute(config: Config, key: Key) -> object:
    return functools.reduce(getattr, key.attributes, config)


@st.composite
def inside(draw: st.DrawFn) -> tuple[Key, int | float]:
    key = draw(st.sampled_from(NUMBERS))
    assert key.field.low is not None
    assert key.field.high is not None
    if key.field.kind == "number":
        return key, draw(st.floats(key.field.low, key.field.high, allow_nan=False))
    return key, draw(st.integers(int(key.field.low), int(key.field.high)))


@st.composite
def outside(draw: st.DrawFn) -> tuple[Key, int | float]:
    key = draw(st.sampled_from(NUMBERS))
    assert key.field.low is not None
    assert key.field.high is not None
    if key.field.kind == "number":
        below = st.floats(max_value=key.field.low, exclude_max=True, allow_nan=False)
        above = st.floats(min_value=key.field.high, exclude_min=True)
        return key, draw(st.one_of(below, above, st.just(float("nan"))))
    return key, draw(
        st.one_of(st.integers(max_value=int(key.field.low) - 1), st.integers(min_value=int(key.field.high) + 1))
    )


@given(inside())
def test_a_number_in_range_is_accepted_unless_a_rule_between_keys_refuses_it(case: tuple[Key, int | float]) -> None:
    key, value = case
    config = outcome(tree(key, value))
    if isinstance(config, Config):
        assert attribute(config, key) == value
        assert msgspec.json.decode(msgspec.json.encode(config), type=Config) == config
        assert load(effective_mapping(config)) == config
    else:
        assert key.dotted in BOUND_BY_RULES
        assert all(any(words in line for words in RULES) for line in config)


@given(outside())
def test_a_number_out_of_range_is_refused_by_name(case: tuple[Key, int | float]) -> None:
    key, value = case
    (line,) = refusal(tree(key, value))
    assert line.startswith(f"agent.yaml: {key.dotted}: ")
    assert line.endswith(f"({key.field.range_text})")


@given(
    st.sampled_from(SCALARS),
    st.one_of(st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.none(), max_size=2)),
)
def test_a_list_or_mapping_in_place_of_a_value_is_refused_by_name(key: Key, value: object) -> None:
    (line,) = refusal(tree(key, value))
    assert line.startswith(f"agent.yaml: {key.dotted}: a ")


@given(st.binary(max_size=200))
def test_no_bytes_raise_an_unexpected_exception(data: bytes) -> None:
    with contextlib.suppress(UnreadableYaml):
        parse_yaml(data)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
sections = st.sampled_from(["embedding", "search", "gateway", "memory", "agents", "auth", "hooks", "logging"])


@given(st.dictionaries(sections | st.text(max_size=6), json_like, max_size=5))
def test_any_mapping_is_a_configuration_or_a_list_of_named_problems(value: dict[str, object]) -> None:
    config = outcome(value)
    if isinstance(config, Config):
        assert msgspec.json.decode(msgspec.json.encode(config), type=Config) == config
    else:
        assert all(line.startswith("agent.yaml: ") for line in config)
