"""``/api/features`` names what this daemon serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.pipeline_schema import ExtractionConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config
from tests.support.memory_api import MemoryApi


def features(api: MemoryApi) -> Any:
    answer = api.request("GET", "/api/features")
    assert answer.status == 200
    return answer.json


def with_pipeline(**pipeline: Any) -> Config:
    return Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(**pipeline)))


def test_embeddings_are_a_feature_if_there_is_an_embedder(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path)
    assert features(api)["embeddings"] is True
    api.state.embedder = None
    assert features(api)["embeddings"] is False


@pytest.mark.parametrize(
    ("pipeline", "extracts"),
    [
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"enabled": True, "extraction": ExtractionConfig(provider="none")}, False),
    ],
)
def test_extraction_is_a_feature_if_it_is_on_and_may_use_a_model(
    tmp_path: Path, pipeline: dict[str, Any], *, extracts: bool
) -> None:
    assert features(MemoryApi(tmp_path, config=with_pipeline(**pipeline)))["extraction"] is extracts
