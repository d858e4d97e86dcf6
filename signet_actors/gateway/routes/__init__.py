"""The route table of the gateway: every endpoint there is, in the order of the API document."""

from __future__ import annotations

from signet_actors.gateway.route import Route
from signet_actors.gateway.routes import (
    api_page,
    auth,
    backup,
    changes,
    config_files,
    embeddings,
    forget,
    health,
    identity,
    jobs,
    memories,
    metrics,
    modify,
    notes,
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
    *changes.ROUTES,
    *recall.ROUTES,
    *modify.ROUTES,
    *forget.ROUTES,
    *transfer.ROUTES,
    *notes.ROUTES,
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
    *api_page.ROUTES,
)
