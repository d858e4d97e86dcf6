"""Metrics for Prometheus. Source: docs/compatibility.md "Health and status"; docs/metrics.md."""

from __future__ import annotations

from typing import Final

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields

METRICS_MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The Prometheus text format that every scraper reads, whatever its Accept header lists."""

METRICS: Final[Operation[NoFields, str]] = Operation(
    name="metrics.get",
    summary="Metrics for Prometheus",
    tag="status",
    method="GET",
    paths=("/metrics",),
    request=NoFields,
    replies={200: str},
    permission=Permission.DIAGNOSTICS,
    media_types=(METRICS_MEDIA_TYPE,),
    description="The text exposition format 0.0.4. A process's counters restart at 0 when it restarts.",
)
OPERATIONS: Final = (METRICS,)
