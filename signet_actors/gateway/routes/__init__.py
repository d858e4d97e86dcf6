"""The gateway's route table: every endpoint, in the order of the API document."""

from __future__ import annotations

from signet_actors.gateway.http.route import Route
from signet_actors.gateway.routes import (
    api_docs,
    auth,
    backup,
    batch_modify,
    codex_notes,
    config_files,
    embeddings,
    forget,
    health,
    identity,
    jobs,
    memories,
    memory_changes,
    metrics,
    pipeline,
    recall,
    remember,
    repair,
    requeue,
    reviews,
    status,
    transfer,
)

ROUTES: tuple[Route, ...] = (
    *remember.ROUTES,
    *memories.ROUTES,
    *memory_changes.ROUTES,
    *recall.ROUTES,
    *batch_modify.ROUTES,
    *forget.ROUTES,
    *transfer.ROUTES,
    *codex_notes.ROUTES,
    *jobs.ROUTES,
    *pipeline.ROUTES,
    *requeue.ROUTES,
    *reviews.ROUTES,
    *embeddings.ROUTES,
    *status.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *config_files.ROUTES,
    *identity.ROUTES,
    *repair.ROUTES,
    *backup.ROUTES,
    *auth.ROUTES,
    *api_docs.ROUTES,
)
