"""The guide of the pipeline documents every mode, reason, kind of job, provider and member of the status."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from signet_actors.config.pipeline_schema import ExtractionProvider
from signet_actors.domain.extraction.gates import PipelineMode, Reason
from signet_actors.domain.extraction.junk_filter import JunkReason
from signet_actors.domain.jobs import JOB_KINDS
from signet_actors.domain.providers import CircuitState
from signet_actors.gateway.routes import ROUTES
from signet_actors.operations.pipeline import PipelineStatusReply
from signet_actors.writer.commands.proposals import CONSTRAINT, OTHER_SCOPE, OWN_SOURCE, SOURCE_CHANGED

GUIDE = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text()
WORDS = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", GUIDE, flags=re.DOTALL)))


def section(title: str) -> set[str]:
    """What stands between backticks under the heading."""
    (text,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Modes", {mode.value for mode in PipelineMode}),
        ("The gates", {reason.value for reason in Reason}),
        ("The gates", {OWN_SOURCE, OTHER_SCOPE, CONSTRAINT, SOURCE_CHANGED}),
        ("What happens to a memory", {reason.value for reason in JunkReason}),
        ("When the model is away", {state.value for state in CircuitState}),
        ("What happens to a memory", {kind.name for kind in JOB_KINDS}),
        ("Models", set(get_args(ExtractionProvider))),
        ("Status and metrics", {field.encode_name for field in msgspec.structs.fields(PipelineStatusReply)}),
    ],
)
def test_the_guide_names_every_route_and_key(title: str, names: set[str]) -> None:
    assert names <= section(title)


def test_the_guide_names_no_missing_route() -> None:
    paths = {route.path for route in ROUTES}
    told = {match[1] for word in WORDS if (match := re.match(r"(?:(?:GET|POST) )?(/api/\S+)$", word))}
    assert told
    assert told <= paths
