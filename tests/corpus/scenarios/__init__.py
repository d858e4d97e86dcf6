"""Every scenario of the corpus, in playing order."""

from __future__ import annotations

from tests.corpus.exchange import Scenario
from tests.corpus.scenarios import (
    agents,
    batch,
    change,
    edge,
    faults,
    graph,
    hooks,
    import_export,
    operations,
    pipeline,
    read,
    recall,
    remember,
    synthesis,
    tokens,
    transcripts,
)

SCENARIOS: tuple[Scenario, ...] = (
    *remember.SCENARIOS,
    *read.SCENARIOS,
    *change.SCENARIOS,
    *batch.SCENARIOS,
    *recall.SCENARIOS,
    *hooks.SCENARIOS,
    *agents.SCENARIOS,
    *import_export.SCENARIOS,
    *transcripts.SCENARIOS,
    *synthesis.SCENARIOS,
    *edge.SCENARIOS,
    *operations.SCENARIOS,
    *pipeline.SCENARIOS,
    *graph.SCENARIOS,
    *tokens.SCENARIOS,
    *faults.SCENARIOS,
)
