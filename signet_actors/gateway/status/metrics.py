"""All metrics, and their values as a page in Prometheus' text format.

The values come from the process tree that the supervisor pushes (counters as of each actor's last heartbeat), from this
process's counters, and from the sizes of three files. No request is sent. Labels come from the tree, the route table
and enumerations, never from what a client sent, so the number of series is bounded. The module is loaded at the first
scrape. Each page has its own registry; the library's global registry is not used.

Source: docs/messaging.md rule 20. docs/metrics.md lists the same metrics; a test compares the two.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

import signet_actors
from signet_actors.config.workspace import Workspace
from signet_actors.domain.extraction.gates import ProposalOutcome
from signet_actors.domain.jobs import JOB_KINDS, JobState
from signet_actors.domain.providers import CircuitState
from signet_actors.errors import ErrorCode, ProviderErrorKind
from signet_actors.gateway.status.pipeline_figures import age_s, junk_report, known_kinds, used, with_prefix
from signet_actors.gateway.status.snapshot import DaemonSnapshot
from signet_actors.protocol.control import UP, ChildState
from signet_actors.runtime.histogram import BOUNDS_S, Histogram

Values = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """A metric as in docs/metrics.md. ``name`` includes its unit, and ``_total`` for a counter."""

    name: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def kind(self) -> str:
        """The type, derived from the name: counter, histogram (a duration) or gauge."""
        if self.name.endswith("_total"):
            return "counter"
        return "histogram" if self.name.endswith("_duration_seconds") else "gauge"


_ACTOR: Final = ("actor",)

HEARTBEAT: Final[Mapping[str, MetricDescription]] = {
    figure: MetricDescription(f"signet_{name}", _ACTOR, meaning)
    for figure, name, meaning in (
        # every process
        ("cpu_seconds", "actor_cpu_seconds_total", "CPU time of the process"),
        (
            "rss_bytes",
            "actor_resident_bytes",
            "Resident memory of the process, with the pages that it shares with others (Linux only)",
        ),
        ("rss_peak_bytes", "actor_resident_peak_bytes", "Peak resident memory of the process"),
        ("hb_missed", "actor_heartbeats_missed_total", "Heartbeats sent too late or not at all"),
        ("sent", "bus_sent_total", "Messages sent to other processes"),
        ("received", "bus_received_total", "Messages received from other processes"),
        ("shed", "bus_shed_total", "Messages refused because a mailbox or queue was full"),
        ("unroutable", "bus_unroutable_total", "Messages dropped because the receiver was not connected"),
        ("expired", "bus_expired_total", "Messages whose deadline passed before they were answered"),
        ("late", "bus_late_total", "Replies that arrived after their request had timed out"),
        ("duplicate", "bus_duplicates_total", "Duplicate replies to the same message"),
        ("decode_error", "bus_decode_errors_total", "Messages that could not be decoded"),
        ("foreign", "bus_foreign_total", "Messages of another protocol version or another run of the daemon"),
        ("reconnects", "bus_reconnects_total", "Restarts of other processes that this process has detected"),
        ("resent", "bus_resent_total", "Messages sent again after their receiver restarted"),
        # the writer
        ("commits", "writer_commits_total", "Transactions committed"),
        (
            "rows",
            "writer_rows_total",
            "Requests applied by the committed transactions; divided by the commits: the group size",
        ),
        ("largest_batch", "writer_largest_batch_rows", "Requests in the largest transaction so far"),
        ("refused_full", "writer_refused_full_total", "Writes refused because the disk was full"),
        ("refused_busy", "writer_refused_busy_total", "Writes refused because another program held the database"),
        ("replayed", "writer_replays_total", "Repeated writes that were answered with the stored first reply"),
        ("storage_full", "writer_storage_full", "1 while the disk is full and writes are refused"),
        ("displaced", "writer_displaced", "1 while a database file was removed, renamed, replaced or truncated"),
        ("truncated", "writer_truncated", "1 after the database or its log was truncated in place"),
        ("sync_seconds", "writer_sync_seconds", "How long a slow sync of the disk takes; 0 while syncs are fast"),
        ("wal_frames", "writer_wal_frames", "Frames in the write-ahead log after the last commit"),
        ("wal_blocked", "writer_wal_blocked", "1 while another program keeps the write-ahead log long"),
        ("touches_dropped", "writer_touches_dropped_total", "Recorded accesses dropped because too many were queued"),
        ("fenced", "writer_fenced_total", "Job reports refused because the lease was lost"),
        ("watches", "writer_watches", "Job requests that wait for a job to become ready"),
        # the extractor
        ("summaries_made", "extractor_summaries_made_total", "Summary cards generated for recalls"),
        ("summaries_empty", "extractor_summaries_empty_total", "Summary cards that failed or were empty"),
        ("summaries_late", "extractor_summaries_late_total", "Summary cards that were not ready in time"),
        ("second_vectors_stored", "extractor_second_vectors_stored_total", "Better vectors stored beside first ones"),
        ("embedding_away", "extractor_embedding_away", "1 while memories wait because the embedding server is away"),
        # searchers
        ("served", "searcher_served_total", "Queries answered"),
        ("graph_failures", "searcher_graph_failures_total", "Recalls without the graph because its index had an error"),
        ("failed", "searcher_failed_total", "Queries that failed"),
        (
            "snapshots_ended",
            "searcher_snapshots_ended_total",
            "Queries restarted on a new snapshot so that the write-ahead log could be checkpointed",
        ),
        ("preempted", "searcher_preempted_total", "Candidate searches of the pipeline that a client's query preempted"),
        ("index_pending", "searcher_index_pending", "Memories that are not completely indexed yet"),
        # retention
        ("sweeps", "retention_sweeps_total", "Purge sweeps finished"),
        ("maintenance_cycles", "retention_maintenance_cycles_total", "Looks at the daemon's health, for repairs"),
        ("maintenance_repairs", "retention_maintenance_repairs_total", "Repairs that the daemon did by itself"),
        ("purged_rows", "retention_purged_rows_total", "Rows purged"),
        (
            "leases_requeued",
            "retention_leases_requeued_total",
            "Jobs returned to the queue because their lease expired",
        ),
        ("jobs_dead", "retention_jobs_dead_total", "Jobs marked dead after their last attempt"),
        ("jobs_reconciled", "retention_jobs_reconciled_total", "Missing jobs created for memories"),
        (
            "attributes_settled",
            "retention_attributes_settled_total",
            "Attributes of the graph that the sweep replaced, gave back or proposed to replace",
        ),
        ("community_rounds", "retention_community_rounds_total", "Times that communities of entities were stored"),
        ("projections", "retention_projections_total", "Maps of memories that were made"),
        ("backups", "retention_backups_total", "Backups created and verified"),
        ("scrub_findings", "retention_scrub_findings", "Problems found in the last verified copy of the database"),
        ("purge_suspended", "retention_suspended", "1 while purging is suspended, for example after a clock jump"),
        ("backup_problem", "retention_backup_problem", "1 while the last backup could not be made"),
        ("reports_waiting", "retention_reports_waiting", "Reports of hooks that were sent again without success"),
        ("reports_rejected", "retention_reports_rejected", "Reports of hooks that were set aside within a day"),
        ("reports_unusable", "retention_reports_unusable", "1 while reports of hooks cannot be kept in memory/spool"),
    )
}
"""Metrics that actors send with their heartbeats, by counter name."""

OWN: Final = tuple(
    MetricDescription(f"signet_{name}", labels, meaning)
    for name, labels, meaning in (
        ("build_info", ("version", "python"), "1; the versions are in the labels"),
        ("start_time_seconds", (), "Start time of the daemon, in seconds since the Unix epoch"),
        ("ready", (), "1 while memories can be written and read"),
        ("supervisor_silent_seconds", (), "Time since the supervisor's last message; the actors' figures are older"),
        ("actor_up", ("actor", "role"), "1 while the process is up"),
        ("actor_restarts_total", _ACTOR, "Number of restarts of the process"),
        ("actor_incarnation", _ACTOR, "Number of the current incarnation of the process"),
        ("queue_depth", ("queue",), "Unanswered requests to the writer, and queries that wait for a searcher"),
        ("searchers_known", (), "Searchers that are registered with the gateway"),
        (
            "http_requests_total",
            ("route", "method", "status"),
            "Requests answered by the application, and those of tool calls",
        ),
        ("http_request_duration_seconds", ("route",), "Time from the request's head to its response"),
        ("http_errors_total", ("code",), "Requests answered with an error, by error code"),
        (
            "http_refused_total",
            ("code",),
            "Requests that the HTTP server refused before the application, by error code",
        ),
        ("http_guarded_total", (), "Requests refused because of their host, origin or proxy"),
        (
            "transcripts_skipped_total",
            (),
            "Transcripts that were not stored, for a reason that a retry would meet again",
        ),
        ("http_shed_total", (), "Requests refused because of overload"),
        ("http_connections_refused_total", (), "Connections refused because the connection limit was reached"),
        ("http_connections", (), "Connections open now"),
        ("http_connections_limit", (), "Maximum number of open connections"),
        ("http_in_flight", (), "Requests being handled now"),
        ("http_streams", (), "Streams of events that are open now"),
        ("http_unanswered_bytes", (), "Bytes of the bodies of unanswered requests"),
        (
            "ask_duration_seconds",
            ("peer",),
            "Time from a request of the gateway to another process until its outcome, including failures",
        ),
        ("wal_bytes", (), "Size of the write-ahead log file"),
        ("database_bytes", (), "Size of the database file"),
        ("disk_free_bytes", (), "Free space on the workspace's file system"),
        ("memories", (), "Live memories"),
        ("tombstones", (), "Forgotten memories that can still be recovered"),
        ("jobs", ("state",), "Jobs by state"),
        ("store_figures_age_seconds", (), "Age of signet_memories, signet_tombstones and signet_jobs"),
    )
)

_KIND: Final = ("kind",)
_PROVIDER: Final = ("actor", "provider")

PIPELINE: Final = tuple(
    MetricDescription(f"signet_{name}", labels, meaning)
    for name, labels, meaning in (
        ("pipeline_jobs", ("kind", "state"), "Jobs by kind and state"),
        ("pipeline_oldest_pending_age_seconds", _KIND, "Age of the oldest pending job of the kind"),
        ("pipeline_job_slots", _KIND, "Maximum number of jobs of the kind that run at the same time"),
        ("pipeline_jobs_running", _KIND, "Jobs of the kind that are running"),
        ("pipeline_jobs_paused", _KIND, "1 while no jobs of the kind are started; `signet pipeline` shows the reason"),
        (
            "pipeline_jobs_pause_seconds",
            _KIND,
            "Minimum remaining time of the pause, 0 if unknown; absent if there is no pause",
        ),
        (
            "pipeline_attempts_total",
            ("kind", "end"),
            "Attempts by end: done, failed (counts as an attempt), returned (does not count), fenced (lease lost)",
        ),
        ("pipeline_decisions_total", ("action",), "Decisions of the decider about facts, by proposed action"),
        ("pipeline_rejected_total", ("reason",), "Texts that the extractor rejected as junk, by reason"),
        ("pipeline_facts_today", (), "Facts that became proposals in the current UTC day"),
        ("pipeline_rejected_today", ("reason",), "Texts and facts rejected in the current UTC day, by reason"),
        ("pipeline_proposals_today", ("outcome",), "Proposals of the current UTC day, by outcome"),
        ("pipeline_reviews_pending", (), "Proposals that wait for a review"),
        ("pipeline_figures_age_seconds", (), "Age of the figures that a searcher counted for these metrics"),
        ("provider_circuit", ("actor", "provider", "state"), "1 for the current state of the circuit breaker, else 0"),
        ("provider_in_flight", _PROVIDER, "Calls to the model in progress"),
        ("provider_calls_total", _PROVIDER, "Calls to the model"),
        (
            "provider_errors_total",
            ("actor", "provider", "kind"),
            "Failed calls, by kind of error; unsettled: the daily count was not corrected",
        ),
        ("provider_tokens_total", ("actor", "provider", "direction"), "Input and output tokens of the calls"),
        (
            "provider_cost_usd_total",
            _PROVIDER,
            "Cost of the calls as reported by the provider; most providers report none",
        ),
        ("provider_calls_today", ("provider",), "Calls that count against the limit of the current UTC day"),
        ("provider_tokens_today", ("provider",), "Tokens that count against the limit of the current UTC day"),
    )
)

_ENDS: Final = ("done", "failed", "returned", "fenced")
_DECISIONS: Final = ("add", "update", "delete", "none", "no_proposal")

LABELLED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{
        f"{kind.name}_{end}": ("signet_pipeline_attempts_total", (kind.name, end))
        for kind in JOB_KINDS
        for end in _ENDS
    },
    **{f"{kind.name}_running": ("signet_pipeline_jobs_running", (kind.name,)) for kind in JOB_KINDS},
    **{f"{kind.name}_pause_seconds": ("signet_pipeline_jobs_pause_seconds", (kind.name,)) for kind in JOB_KINDS},
    **{f"decided_{action}": ("signet_pipeline_decisions_total", (action,)) for action in _DECISIONS},
}
"""Counters in the heartbeats of extractor and decider, by name: the metric and its labels."""

METRICS: Final = (*OWN, *PIPELINE, *HEARTBEAT.values())
_BY_NAME: Final = {metric.name: metric for metric in METRICS}

JOB_STATES: Final = tuple(state.value for state in JobState)


def exposition(snapshot: DaemonSnapshot) -> bytes:
    """Return the page."""
    registry = CollectorRegistry()
    registry.register(_SnapshotCollector(snapshot))
    return generate_latest(registry)


class _SnapshotCollector(Collector):
    def __init__(self, snapshot: DaemonSnapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Yield one family per metric that has a value."""
        yield from self._daemon()
        yield from self._actors()
        yield from self._http()
        yield from self._files()
        yield from self._store()
        yield from self._queue()
        yield from self._job_runners()
        yield from self._models()

    def _daemon(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield _family("signet_build_info", [((signet_actors.__version__, platform.python_version()), 1)])
        yield _family("signet_start_time_seconds", _single(snapshot.started_at_ms / 1000))
        yield _family("signet_ready", _single(snapshot.readiness.ready))
        yield _family("signet_supervisor_silent_seconds", _single(snapshot.silent_ms / 1000))
        yield _family("signet_queue_depth", [((queue,), depth) for queue, depth in snapshot.backlog.items()])
        yield _family("signet_searchers_known", _single(snapshot.searchers_known))
        yield _histograms("signet_ask_duration_seconds", snapshot.ask_durations)

    def _actors(self) -> Iterator[Metric]:
        children = self._snapshot.children
        yield _family("signet_actor_up", [((child.name, child.role), child.state == UP) for child in children])
        yield _family("signet_actor_restarts_total", [((child.name,), child.restarts) for child in children])
        yield _family("signet_actor_incarnation", [((child.name,), child.incarnation) for child in children])
        figures = [(child.name, self._counters(child)) for child in children]
        for figure, metric in HEARTBEAT.items():
            values_known = [((name,), values[figure]) for name, values in figures if figure in values]
            if values_known:
                yield _family(metric.name, values_known)
        labelled: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for _, values in figures:
            for figure in values.keys() & LABELLED.keys():
                metric_name, labels = LABELLED[figure]
                labelled.setdefault(metric_name, []).append((labels, values[figure]))
        for metric_name, counted in labelled.items():
            yield _family(metric_name, sorted(counted))

    def _counters(self, child: ChildState) -> Mapping[str, float]:
        """Return the counters of the last heartbeat; for this process, the present ones."""
        if child.name == self._snapshot.gateway:
            return {**child.counters, **self._snapshot.bus}
        return child.counters

    def _http(self) -> Iterator[Metric]:
        requests, counters, refused = self._snapshot.requests, self._snapshot.counters, self._snapshot.refused
        yield _family(
            "signet_http_requests_total",
            [
                ((route, method, f"{hundreds}xx"), count)
                for (route, method, hundreds), (count, _) in requests.responses.items()
            ],
        )
        yield _histograms("signet_http_request_duration_seconds", requests.durations)
        yield _family("signet_http_errors_total", _by_code(requests.errors))
        yield _family("signet_http_guarded_total", _single(counters["guarded"]))
        yield _family("signet_transcripts_skipped_total", _single(counters["transcripts_skipped"]))
        yield _family("signet_http_in_flight", _single(counters["in_flight"]))
        yield _family("signet_http_streams", _single(counters["streams"]))
        if refused is not None:
            yield _family("signet_http_refused_total", _by_code(refused))
            yield _family("signet_http_shed_total", _single(counters["requests_shed"]))
            yield _family("signet_http_connections_refused_total", _single(counters["connections_refused"]))
            yield _family("signet_http_connections", _single(counters["connections"]))
            yield _family("signet_http_connections_limit", _single(counters["connections_most"]))
            yield _family("signet_http_unanswered_bytes", _single(counters["unanswered_bytes"]))

    def _files(self) -> Iterator[Metric]:
        """Yield file sizes, leaving out those that the file system does not report."""
        workspace = Path(self._snapshot.workspace)
        database = Workspace(workspace).database
        for name, path in (
            ("signet_database_bytes", database),
            ("signet_wal_bytes", database.with_name(f"{database.name}-wal")),
        ):
            try:
                yield _family(name, _single(path.stat().st_size))
            except OSError:
                continue
        with contextlib.suppress(OSError):
            yield _family("signet_disk_free_bytes", _single(shutil.disk_usage(workspace).free))

    def _store(self) -> Iterator[Metric]:
        store = self._snapshot.replies.store
        if store is None:
            return
        jobs = dict.fromkeys(JOB_STATES, 0) | store.jobs
        yield _family("signet_memories", _single(store.memories))
        yield _family("signet_tombstones", _single(store.tombstones))
        yield _family("signet_jobs", sorted(((name,), count) for name, count in jobs.items()))
        yield _family("signet_store_figures_age_seconds", _single(self._snapshot.store_age_ms / 1000))

    def _queue(self) -> Iterator[Metric]:
        """Yield what a searcher counted in the store: jobs, results of facts today, and use of the budgets."""
        status, now_ms = self._snapshot.replies.queues, self._snapshot.now_ms
        if status is None:
            return
        queues = known_kinds(status.queues)
        today = status.today
        rejected = junk_report(today)
        yield _family(
            "signet_pipeline_jobs",
            [((queue.kind, state), getattr(queue, state)) for queue in queues for state in JOB_STATES],
        )
        yield _family(
            "signet_pipeline_oldest_pending_age_seconds",
            [((queue.kind,), age_s(queue.oldest_pending_at, now_ms) or 0) for queue in queues],
        )
        yield _family("signet_pipeline_facts_today", _single(rejected.facts))
        yield _family("signet_pipeline_rejected_today", _by_label(rejected.by_reason))
        yield _family(
            "signet_pipeline_proposals_today",
            _by_label({outcome.value: 0 for outcome in ProposalOutcome} | with_prefix(today, "outcome.")),
        )
        yield _family("signet_pipeline_reviews_pending", _single(status.reviews_pending))
        yield _family("signet_pipeline_figures_age_seconds", _single(self._snapshot.queues_age_ms / 1000))
        usage = {row.provider: used(status.usage_today, row.provider) for row in status.usage_today}
        yield _family("signet_provider_calls_today", _by_label({name: calls for name, (calls, _) in usage.items()}))
        yield _family("signet_provider_tokens_today", _by_label({name: tokens for name, (_, tokens) in usage.items()}))

    def _job_runners(self) -> Iterator[Metric]:
        extractor = self._snapshot.replies.extractor
        if extractor is None:
            return
        runners = extractor.runners
        yield _family("signet_pipeline_job_slots", [((runner.kind,), runner.slots) for runner in runners])
        yield _family(
            "signet_pipeline_jobs_paused", [((runner.kind,), bool(runner.paused_because)) for runner in runners]
        )
        yield _family("signet_pipeline_rejected_total", _by_label(extractor.rejected))

    def _models(self) -> Iterator[Metric]:
        """Yield the model calls of each process, as it reports them."""
        figures = self._snapshot.replies
        statuses = (("extractor", figures.extractor), ("decider", figures.decider))
        reports = [(actor, status.model.report) for actor, status in statuses if status is not None]
        reporting = [((actor, report.name), report) for actor, report in reports if report is not None]
        yield _family(
            "signet_provider_circuit",
            [
                ((*labels, state.value), report.circuit is state)
                for labels, report in reporting
                for state in CircuitState
            ],
        )
        yield _family("signet_provider_in_flight", [(labels, report.in_flight) for labels, report in reporting])
        yield _family("signet_provider_calls_total", [(labels, report.calls) for labels, report in reporting])
        yield _family(
            "signet_provider_errors_total",
            [
                ((*labels, kind.value), report.errors.get(kind, 0))
                for labels, report in reporting
                for kind in ProviderErrorKind
            ],
        )
        yield _family(
            "signet_provider_tokens_total",
            [
                ((*labels, direction), count)
                for labels, report in reporting
                for direction, count in (("in", report.tokens_in), ("out", report.tokens_out))
            ],
        )
        yield _family(
            "signet_provider_cost_usd_total", [(labels, report.cost_microusd / 1e6) for labels, report in reporting]
        )


def _single(value: float) -> Values:
    return [((), value)]


def _by_code(refused: Mapping[ErrorCode, int]) -> Values:
    """Return the values with zeros, since an alert misses the first increment of a series that did not exist."""
    return [((code.value,), refused.get(code, 0)) for code in ErrorCode]


def _by_label(counts: Mapping[str, int]) -> Values:
    return [((label,), count) for label, count in sorted(counts.items())]


def _family(name: str, values: Values) -> Metric:
    metric = _BY_NAME[name]
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(name, metric.meaning, labels=metric.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histograms(name: str, histograms: Mapping[str, Histogram]) -> Metric:
    metric = _BY_NAME[name]
    family = HistogramMetricFamily(name, metric.meaning, labels=metric.labels)
    for label, histogram in histograms.items():
        below = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), histogram.counts, strict=True):
            below += count
            buckets.append((bound, below))
        family.add_metric((label,), buckets, histogram.sum_ns / 1e9)
    return family
