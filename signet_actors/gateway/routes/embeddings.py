"""Stored embeddings: export them, report the provider's state and how many memories have an embedding."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple, cast
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import UNSET

from signet_actors.config.embedding_models import second_space
from signet_actors.domain.jobs import EMBED
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.state import GatewayState
from signet_actors.operations import embeddings as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.embeddings import EmbeddingHealth, EmbeddingRow, ExportEmbeddings, GetEmbeddingHealth
from signet_actors.providers.embedding import Embedder
from signet_actors.providers.remote_embedder import PROBE_TEXT

PROBE_TTL_MS: Final = 30_000
PROBE_TIMEOUT_S: Final = 5.0
VECTOR_DECIMALS: Final = 8
"""More precision than a float32 has below 1, and fewer digits than printing it as a float64 would give."""

HEALTHY_FROM: Final = 0.8
DEGRADED_FROM: Final = 0.5
COVERAGE_OK: Final = 0.9
COVERAGE_WARN: Final = 0.5
DISABLED: Final = "embedding is switched off (embedding.provider: none)"


class _Probe(NamedTuple):
    at_ms: int
    error: str | None


# Keyed by embedder, so that a new one is probed at once after a reload. Used by one event loop only.
_probes: WeakKeyDictionary[Embedder, tuple[int, asyncio.Task[str | None]]] = WeakKeyDictionary()


async def export_embeddings(call: Call[api.ExportEmbeddingsRequest]) -> HttpResponse:
    """Return a page of stored embeddings with their memories, and the raw vectors with ``vectors=true``."""
    limit, offset = call.request.limit, call.request.offset
    page, frames = await call.state.bus.ask_searcher(
        ExportEmbeddings(read=call.read, limit=limit, offset=offset, vectors=call.request.vectors),
        trace_id=call.trace_id,
    )
    # A full page of vectors is a million numbers; encode them in a thread to keep the event loop free.
    rows = await asyncio.to_thread(lambda: [_export_row(row, frames) for row in page.rows])
    return HttpResponse(
        api.EmbeddingsReply(
            embeddings=rows,
            count=len(rows),
            total=page.total,
            limit=limit,
            offset=offset,
            has_more=offset + len(rows) < page.total,
        )
    )


def _export_row(row: EmbeddingRow, frames: list[bytes]) -> api.ExportedEmbedding:
    memory = row.memory
    return fill(
        api.ExportedEmbedding,
        memory,
        text=memory.content,
        source_type="memory",
        source_id=memory.id,
        vector=UNSET if row.frame is None else _encode_vector(frames[row.frame]),
    )


def _encode_vector(frame: bytes) -> list[float]:
    """Encode the vector as JSON numbers. The cast keeps the declared type, from which the API document is made."""
    numbers = np.frombuffer(frame, dtype="<f4").astype(np.float64).round(VECTOR_DECIMALS)
    return cast("list[float]", msgspec.Raw(msgspec.json.encode(numbers.tolist())))


async def embedding_status(call: Call[NoFields]) -> HttpResponse:
    """Report whether the provider answers, probing it at most every 30 seconds."""
    embedder = call.state.embedder
    probe, tracker = await asyncio.gather(_recent_probe(call.state), _tracker(call))
    return HttpResponse(
        api.EmbeddingStatusReply(
            provider="none" if embedder is None else embedder.provider,
            model=None if embedder is None else embedder.model,
            available=probe.error is None,
            dimensions=None if embedder is None else embedder.dimensions,
            base_url=None if embedder is None else embedder.endpoint,
            checked_at=iso(probe.at_ms),
            tracker=tracker,
            error=UNSET if probe.error is None else probe.error,
            second=second[0] if (second := second_space(call.state.config.embedding)) else UNSET,
        )
    )


async def _tracker(call: Call[Any]) -> api.Tracker:
    """Return the extractor's and the queue's counts; zeros for the part that does not answer in time."""
    replies = await call.state.status_requests.ask(("extractor", "queues"), call.trace_id, [])
    tracker = api.Tracker() if replies.extractor is None else replies.extractor.tracker
    waiting = [] if replies.queues is None else [kind for kind in replies.queues.queues if kind.kind == EMBED]
    return msgspec.structs.replace(tracker, queue_depth=sum(kind.pending + kind.leased for kind in waiting))


async def _recent_probe(state: GatewayState) -> _Probe:
    """Return the last probe if it is recent, else probe again, once for all. Failures are cached like successes."""
    embedder = state.embedder
    now_ms = state.clock.wall_ms()
    if problem := state.embedding_problem():
        return _Probe(now_ms, problem)
    if embedder is None:
        return _Probe(now_ms, DISABLED)
    at_ms, probing = _probes.get(embedder, (0, None))
    if probing is None or (probing.done() and not 0 <= now_ms - at_ms < PROBE_TTL_MS):
        at_ms, probing = _probes[embedder] = (now_ms, asyncio.create_task(_probe(embedder)))
    return _Probe(at_ms, await asyncio.shield(probing))


async def _probe(embedder: Embedder) -> str | None:
    """Return why the provider does not answer, None if it does."""
    try:
        vector = await asyncio.wait_for(asyncio.to_thread(embedder.embed_query, PROBE_TEXT), timeout=PROBE_TIMEOUT_S)
    except TimeoutError:
        return f"the provider did not answer within {PROBE_TIMEOUT_S:g} s"
    except (SignetError, OSError, ValueError, RuntimeError) as failure:
        return str(failure)
    return None if vector.any() else "the provider returned no vector"


async def embedding_health(call: Call[NoFields]) -> HttpResponse:
    """Run seven checks over all live memories, counted at most ten seconds ago, and combine them into one score."""
    state = call.state
    embedder = state.embedder
    config = state.config.embedding
    probe = await _recent_probe(state)
    query = GetEmbeddingHealth(
        model=config.model if embedder is None else embedder.model,
        dimensions=config.dimensions if embedder is None else embedder.dimensions,
        second=None if (space := second_space(config)) is None else space[0],
    )
    counts, counted_ms = await state.status_requests.embedding_health(query, call.trace_id)
    current = None if embedder is None else embedder.model
    weighted = _checks(counts, probe, current, second=query.second)
    checks = [check for check, _ in weighted]
    score = sum(check.score * weight for check, weight in weighted) / sum(weight for _, weight in weighted)
    failed = any(check.status == "fail" for check in checks)
    return HttpResponse(
        api.EmbeddingHealthReply(
            status="unhealthy"
            if score < DEGRADED_FROM
            else "degraded"
            if failed or score < HEALTHY_FROM
            else "healthy",
            score=round(score, 4),
            checked_at=iso(counted_ms),
            coverage=round(100 * _ratio(counts.embedded, counts.memories), 1),
            total=counts.memories,
            embedded=counts.embedded,
            stale=counts.stale,
            provider_available=probe.error is None,
            config=api.EmbeddingSettings(
                provider="none" if embedder is None else embedder.provider,
                model=current,
                dimensions=None if embedder is None else embedder.dimensions,
            ),
            checks=checks,
        )
    )


def _checks(
    counts: EmbeddingHealth, probe: _Probe, model: str | None, *, second: str | None
) -> list[tuple[api.EmbeddingCheck, int]]:
    """Return each check with its weight. ``second`` is the model of the better vectors, which follow."""
    followed: dict[str, int | float | str | dict[str, int]] = {} if second is None else {"second": counts.second}
    stored = sum(counts.by_model.values())
    coverage = _ratio(counts.embedded, counts.memories)
    foreign = {name: rows for name, rows in counts.by_model.items() if name != model}
    return [
        (
            api.EmbeddingCheck(
                name="provider-available",
                status="ok" if probe.error is None else "warn" if model is None else "fail",
                score=1.0 if probe.error is None else 0.5 if model is None else 0.0,
                message=probe.error or "The embedding provider answers",
                detail={},
            ),
            5,
        ),
        (
            api.EmbeddingCheck(
                name="coverage",
                status="ok" if coverage >= COVERAGE_OK else "warn" if coverage >= COVERAGE_WARN else "fail",
                score=round(coverage, 4),
                message=f"{counts.embedded} of {counts.memories} memories have an embedding",
                detail={"embedded": counts.embedded, "total": counts.memories, "stale": counts.stale, **followed},
            ),
            5,
        ),
        (
            _defect_check(
                "dimension-mismatch", counts.wrong_dimensions, stored, "embeddings have the wrong dimensions"
            ),
            3,
        ),
        (
            api.EmbeddingCheck(
                name="model-drift",
                status="warn" if foreign else "ok",
                score=round(1 - _ratio(sum(foreign.values()), stored, empty=0.0), 4),
                message=f"{sum(foreign.values())} embeddings are of another model",
                detail={"byModel": counts.by_model},
            ),
            2,
        ),
        (_defect_check("null-vectors", counts.null_vectors, stored, "embeddings have no vector"), 2),
        (
            _defect_check("vec-table-sync", counts.vec_missing, stored, "embeddings are missing from the vector index"),
            2,
        ),
        (_defect_check("orphaned-embeddings", counts.orphaned, stored, "embeddings belong to no memory"), 1),
    ]


def _defect_check(name: str, count: int, of: int, message: str) -> api.EmbeddingCheck:
    """Return a check for a defect: ``warn`` if there is any, ``fail`` from one in ten."""
    share = min(1.0, _ratio(count, max(of, count), empty=0.0))
    return api.EmbeddingCheck(
        name=name,
        status="ok" if not count else "warn" if share < 0.1 else "fail",
        score=round(1 - share, 4),
        message=f"{count} {message}",
        detail={"count": count},
    )


def _ratio(part: int, whole: int, *, empty: float = 1.0) -> float:
    return part / whole if whole else empty


ROUTES: tuple[Route, ...] = (
    *serve(api.EXPORT_EMBEDDINGS, export_embeddings),
    *serve(api.EMBEDDING_STATUS, embedding_status),
    *serve(api.EMBEDDING_HEALTH, embedding_health),
)
