"""Subjects that are one folder each: what is asked, its rules, its statements (docs/architecture.md "Features")."""

from __future__ import annotations

from typing import Final

FEATURES: Final = (
    "aggregate_recall",
    "analytics",
    "audit",
    "auth_tokens",
    "changes",
    "checkpoints",
    "diagnostics",
    "duplicates",
    "entities",
    "facets",
    "knowledge",
    "logs",
    "classification",
    "communities",
    "conversation",
    "pipeline_ids",
    "projection",
    "repairs",
    "reviews",
    "runs",
    "searches",
    "session_memories",
    "session_scores",
    "session_summaries",
    "skills",
    "telemetry",
    "timeline",
)
"""The folders of this package."""
