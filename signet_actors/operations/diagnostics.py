"""Health of the parts of the daemon: scores from 0 to 1, each with a status: healthy, degraded or unhealthy.

Source: docs/compatibility.md "Diagnostics and pipeline status"; architecture.txt "Diagnostics and Repair".
"""

from __future__ import annotations

import msgspec


class CompositeHealth(msgspec.Struct, frozen=True):
    """The weighted mean of the scores of the parts."""

    score: float
    status: str


class QueueHealth(CompositeHealth, frozen=True, rename="camel"):
    """Pending jobs. ``leaseAnomalies`` counts overdue leases.

    ``deadRate`` is the share of dead jobs among the ended ones that are kept.
    """

    depth: int
    oldest_age_sec: float
    dead_rate: float
    lease_anomalies: int


class StorageHealth(CompositeHealth, frozen=True, rename="camel"):
    """Rows and the size of the database file; ``dbSizeBytes`` is null if it could not be measured.

    ``ledgerRows``: the hooks and recalls that are kept.
    """

    total_memories: int
    deleted_tombstones: int
    db_size_bytes: int | None
    ledger_rows: int = 0


class IndexHealth(CompositeHealth, frozen=True, rename="camel"):
    """Rows of the text index and of memories, and the share of the memories that have a vector.

    ``ftsMismatch``: the two numbers differ by more than a tenth of the memories.
    """

    fts_row_count: int
    memories_row_count: int
    fts_mismatch: bool
    embedding_coverage: float


class ProviderHealth(CompositeHealth, frozen=True, rename="camel"):
    """The last calls of both stages."""

    recent_total: int
    recent_successes: int
    recent_failures: int
    recent_timeouts: int
    availability_rate: float


class MutationHealth(CompositeHealth, frozen=True, rename="camel"):
    """Memories that were recovered and deleted within the last seven days."""

    recent_recovers: int
    recent_deletes: int


class DuplicateHealth(CompositeHealth, frozen=True, rename="camel"):
    """Live memories of one agent with the same content. ``exactDuplicates``: those beyond the first of each cluster."""

    exact_duplicates: int
    exact_clusters: int
    total_active: int
    duplicate_ratio: float


class ConnectorHealth(CompositeHealth, frozen=True, rename="camel"):
    """Connectors to other data sources. This daemon has none, so all counts are 0."""

    connector_count: int = 0
    syncing_count: int = 0
    error_count: int = 0
    oldest_error_age: float | None = None


class UpdateHealth(msgspec.Struct, frozen=True):
    """Not measured: this daemon does not check for updates."""

    score: None = None
    status: str = "unknown"


class DiagnosticsReport(msgspec.Struct, frozen=True):
    """The health of each part. A part that could not be measured is null and does not count."""

    timestamp: str
    composite: CompositeHealth | None
    queue: QueueHealth | None
    storage: StorageHealth | None
    index: IndexHealth | None
    provider: ProviderHealth | None
    mutation: MutationHealth | None
    duplicate: DuplicateHealth | None
    connector: ConnectorHealth
    update: UpdateHealth = UpdateHealth()
    predictor: None = None
