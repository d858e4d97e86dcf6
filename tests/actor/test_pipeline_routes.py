"""The routes of the pipeline and the review queue: their messages to other processes, and their responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.permissions import Permission
from signet_actors.domain.providers import (
    CircuitState,
    DailyLimits,
    ModelState,
    OutcomeCounts,
    ProviderReport,
    Selection,
)
from signet_actors.errors import ErrorCode, NotFound, OutcomeUnknown, SignetError, Unavailable
from signet_actors.features.analytics.api import FindFigures, StoredFigures
from signet_actors.features.diagnostics.api import ChangeFigures, CountChanges, HealthFigures, MeasureHealth
from signet_actors.features.reviews.api import LIST_REVIEWS
from signet_actors.features.runs.api import (
    GET_RUN,
    LIST_RUNS,
    UNDO_RUN,
    ProposalReport,
    RejectedReport,
    RelationReport,
    RunListReply,
    RunReply,
    RunReport,
    UndoReply,
    UndoResult,
)
from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.status.pipeline_health import latency
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.operations.batch_modify import MODIFY_MEMORIES
from signet_actors.operations.forget import FORGET_MEMORIES
from signet_actors.operations.memory_changes import RECOVER_MEMORY
from signet_actors.operations.pipeline import DeadReport, JobRunnerReport, UsageReport
from signet_actors.operations.recall import RECALL, SEARCH
from signet_actors.operations.remember import REMEMBER
from signet_actors.operations.requeue import NotRequeued
from signet_actors.protocol.control import RESTARTING, ChildState, TreeChanged
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, Caller, Principal, message_of
from signet_actors.protocol.pipeline import (
    ApproveProposal,
    JobsRequeued,
    RejectProposal,
    RequeueJobs,
    ReviewDecided,
)
from signet_actors.protocol.pipeline_queries import (
    GetPipelineStatus,
    KindQueue,
    PipelineStatus,
)
from signet_actors.protocol.searcher import GetStoreStats, StoreStats
from tests.support.memory_api import EVERYBODY_UP, MemoryApi
from tests.support.pipeline_harness import configured

AWS_KEY = "AK" + "IA" + "QYLPMN5HFIQR7B2X"  # built here, so that no complete one is in the repository

STORE = PipelineStatus(
    queues=[
        KindQueue(
            "extract",
            pending=3,
            delayed=1,
            leased=1,
            completed=9,
            dead=2,
            oldest_pending_at="2026-02-21T09:59:00.000Z",
            next_due_at="2026-02-21T10:00:05.000Z",
            oldest_lease_at="2026-02-21T09:59:58.500Z",
        ),
        KindQueue("of_a_later_release", pending=1),
    ],
    dead_causes=[DeadReport("extract", "the answer is no JSON", 2, "2026-02-21T09:00:00.000Z")],
    runs=9,
    runs_undone=1,
    last_run_at="2026-02-21T09:58:00.000Z",
    reviews_pending=4,
    today={"facts": 6, "turned_away.question": 2, "outcome.created": 5, "reason.low_fact_confidence": 1},
    total={"facts": 60, "fenced": 1},
    usage_today=[
        UsageReport("2026-02-21", "ollama", "qwen3:4b", 7, 700, 70, 30, 0),
        UsageReport("2026-02-21", "openai", "gpt", 1, 1, 1, 0, 5),
    ],
)
ROWS = StoreStats(
    memories=6,
    tombstones=4,
    embeddings=3,
    agents=1,
    jobs={},
    oldest_pending_job=None,
    schema_version=3,
    database_bytes=4096,
)
HEALTH = HealthFigures(
    depth=4,
    completed=9,
    dead=2,
    oldest_s=60.0,
    stale_leases=0,
    memories=6,
    tombstones=4,
    embeddings=3,
    text_rows=6,
    ledger_rows=12,
)
FIGURES = StoredFigures(None, {}, [float(took) for took in range(1, 101)], [], [])
CHANGES = ChangeFigures(recovers=5, deletes=7, clusters=1, duplicates=1, memories=6)
REPORT = ProviderReport(
    name="ollama",
    model="qwen3:4b",
    circuit=CircuitState.OPEN,
    waits_ms=9000,
    waits_for="is tried again in 9 s",
    recent=OutcomeCounts(3, 2, 0, 1),
    calls=9,
    in_flight=1,
    tokens_in=900,
    tokens_out=90,
    cost_microusd=0,
    errors={"timeout": 3, "http": 1},
    last_error="no answer",
)
SELECTION = Selection("auto", "ollama", "qwen3:4b", "it answers", True, "", endpoint="http://127.0.0.1:11434")
MODEL = ModelState(SELECTION, REPORT, DailyLimits(calls=100, tokens=0))
NOBODY = ModelState(Selection("auto", "none", "", "Ollama is not there", False, "ollama pull qwen3:4b"), None)
RUNNER = JobRunnerReport("extract", 4, 1, "ollama is tried again in 9 s", done=7, failed=2, returned=1, fenced=1)
UNDONE = Answered(msgspec.json.encode(UndoReply("run-1", "undone", undone=0, kept=0, results=[])))
RUN = RunReport(
    id="run-1",
    job_id="job-1",
    memory_id="m1",
    agent_id="default",
    mode="full",
    provider="ollama",
    model="qwen3:4b",
    proposals=2,
    counts={"created": 2},
    created_at="2026-02-21T10:00:00.000Z",
    undone_at=None,
    undone_by=None,
)
PROPOSAL = ProposalReport(
    id="p1",
    ordinal=0,
    action="update",
    outcome="review",
    reason="contradiction",
    rationale="it says otherwise now",
    fact_content="The host is called beta.",
    fact_type="fact",
    fact_confidence=0.8,
    confidence=0.9,
    target_id="m2",
    target_version=3,
    result_memory_id=None,
    result_version=None,
    syntactic_contradiction=True,
    semantic_contradiction=None,
    review_state="pending",
    reviewed_by=None,
    reviewed_at=None,
    undo_note=None,
)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script |= {
        GetPipelineStatus: STORE,
        GetStoreStats: ROWS,
        MeasureHealth: Answered(msgspec.json.encode(HEALTH)),
        FindFigures: Answered(msgspec.json.encode(FIGURES)),
        CountChanges: Answered(msgspec.json.encode(CHANGES)),
        GetExtractorStatus: ExtractorStatus("full", MODEL, [RUNNER], {}),
        GetDeciderStatus: DeciderStatus(NOBODY, {"add": 3}),
    }
    return made


def status(api: MemoryApi) -> Any:
    answer = api.request("GET", "/api/pipeline/status")
    assert answer.status == 200
    return answer.json


def test_the_status_has_the_members_of_the_reference_without_invented_values(api: MemoryApi) -> None:
    said = status(api)
    assert {name for name, worker in said["workers"].items() if worker["running"]} == {
        "extraction",
        "decision",
        "retention",
        "maintenance",
        "synthesis",
        "summary",
        "structuralClassify",
        "structuralDependency",
    }
    assert {"document", "maintenance"} <= set(said["workers"])
    assert said["queues"] == {
        "memory": {"pending": 4, "leased": 1, "completed": 9, "failed": 0, "dead": 2},
        "summary": {"pending": 0, "leased": 0, "completed": 0, "failed": 0, "dead": 0},
    }
    assert said["traversal"] == {"enabled": True, "lastRun": None}
    assert said["predictor"] is None
    assert said["feedback"] == {
        "feedbackAspectsUpdated": 0,
        "feedbackFtsConfirmations": 0,
        "feedbackDecayedAspects": 0,
        "feedbackPropagatedAttributes": 0,
    }
    assert said["errorSummary"] == {"extraction": 4}
    assert (said["mode"], said["writes"]) == ("controlled-write", "full")
    assert said["notes"] == []


@pytest.mark.parametrize(
    ("writes", "mode"),
    [
        ("off", "disabled"),
        ("frozen", "frozen"),
        ("shadow", "shadow"),
        ("controlled_write", "controlled-write"),
        ("full", "controlled-write"),
    ],
)
def test_the_status_has_the_documented_mode(api: MemoryApi, writes: str, mode: str) -> None:
    api.bus.script[GetExtractorStatus] = ExtractorStatus(writes, MODEL, [RUNNER], {})
    said = status(api)
    assert (said["mode"], said["writes"]) == (mode, writes)


def test_summary_jobs_have_a_separate_queue(api: MemoryApi) -> None:
    summaries = KindQueue("summarize", pending=2, leased=1, completed=3, dead=4)
    api.bus.script[GetPipelineStatus] = msgspec.structs.replace(STORE, queues=[*STORE.queues, summaries])
    queues = status(api)["queues"]
    assert queues["summary"] == {"pending": 2, "leased": 1, "completed": 3, "failed": 0, "dead": 4}
    assert queues["memory"]["pending"] == 4


def test_the_diagnostics_follow_the_documented_rules(api: MemoryApi) -> None:
    said = status(api)["diagnostics"]
    # 2 dead of 11 that ended: more than one in a hundred; the oldest waits for a minute, no lease is ten minutes old.
    assert said["queue"] == {
        "score": 0.7,
        "status": "degraded",
        "depth": 4,
        "oldestAgeSec": 60.0,
        "deadRate": 0.1818,
        "leaseAnomalies": 0,
    }
    assert (said["storage"]["score"], said["storage"]["deletedTombstones"]) == (0.7, 4), "four rows of ten are deleted"
    assert said["storage"]["ledgerRows"] == 12
    assert said["index"] == {
        "score": 0.7,
        "status": "degraded",
        "ftsRowCount": 6,
        "memoriesRowCount": 6,
        "ftsMismatch": False,
        "embeddingCoverage": 0.5,
    }
    assert (said["provider"]["recentTotal"], said["provider"]["recentTimeouts"]) == (3, 1)
    assert said["provider"]["availabilityRate"] == 0.667
    assert said["mutation"] == {"score": 1.0, "status": "healthy", "recentRecovers": 5, "recentDeletes": 7}
    assert (said["connector"]["score"], said["connector"]["connectorCount"]) == (1.0, 0)
    assert said["update"] == {"score": None, "status": "unknown"}
    assert (said["duplicate"]["score"], said["duplicate"]["duplicateRatio"]) == (0.5, 0.1667)
    # .28 * .7 + .14 * .7 + .19 * .7 + .24 * .667 + .10 + .05
    assert said["composite"] == {"score": 0.737, "status": "degraded"}


def test_the_latency_covers_answered_requests(api: MemoryApi) -> None:
    assert status(api)["latency"]["recall"] == {"p50": 0.0, "p95": 0.0, "p99": 0.0, "count": 0, "mean": 0.0}
    for took_ms in range(1, 101):
        api.state.request_metrics.observe("/api/memory/recall", "POST", 200, took_ms * 1_000_000, None)
    recall = status(api)["latency"]["recall"]
    assert (recall["count"], recall["mean"]) == (100, 50.5)
    assert recall["p50"] == pytest.approx(50, abs=1)
    assert recall["p95"] == pytest.approx(95, abs=1)


def test_the_latency_covers_completed_jobs(api: MemoryApi) -> None:
    assert status(api)["latency"]["jobs"] == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "count": 100, "mean": 50.5}
    api.bus.script[FindFigures] = Unavailable("the searcher is away")
    assert status(api)["latency"]["jobs"] is None
    assert "the searcher is away" in " ".join(status(api)["notes"])


def test_the_latency_counts_requests_by_every_path_of_a_route() -> None:
    figures = RequestMetrics()
    paths = {
        name: {path for operation in operations for path in operation.paths}
        for name, operations in {
            "remember": (REMEMBER,),
            "recall": (RECALL, SEARCH),
            "mutate": (MODIFY_MEMORIES, FORGET_MEMORIES, RECOVER_MEMORY),
        }.items()
    }
    assert {"/api/memory/save", "/api/hook/remember"} < paths["remember"]
    assert "/api/memory/search" in paths["recall"]
    for path in set().union(*paths.values()):
        figures.observe(path, "POST", 200, 1_000_000, None)
    told = latency(figures, None)
    assert told.jobs is None
    assert {name: getattr(told, name).count for name in paths} == {name: len(found) for name, found in paths.items()}


@pytest.mark.parametrize(
    ("figures", "domain", "score"),
    [
        (msgspec.structs.replace(HEALTH, dead=0, depth=50, oldest_s=300.0), "queue", 1.0),
        (msgspec.structs.replace(HEALTH, dead=0, depth=51), "queue", 0.7),
        (msgspec.structs.replace(HEALTH, dead=0, oldest_s=301.0), "queue", 0.8),
        (msgspec.structs.replace(HEALTH, dead=0, stale_leases=42), "queue", 0.8),
        (msgspec.structs.replace(HEALTH, completed=99, dead=1), "queue", 1.0),
        (msgspec.structs.replace(HEALTH, memories=7, tombstones=3), "storage", 1.0),
        (msgspec.structs.replace(HEALTH, memories=10, text_rows=9, embeddings=8), "index", 1.0),
        (msgspec.structs.replace(HEALTH, memories=10, text_rows=12, embeddings=8), "index", 0.5),
        (msgspec.structs.replace(HEALTH, memories=10, text_rows=8, embeddings=7), "index", 0.2),
        (msgspec.structs.replace(CHANGES, recovers=6), "mutation", 0.7),
        (msgspec.structs.replace(CHANGES, duplicates=8, memories=100), "duplicate", 0.7),
        (msgspec.structs.replace(CHANGES, duplicates=5, memories=100), "duplicate", 1.0),
    ],
)
def test_each_domain_follows_its_thresholds(
    api: MemoryApi, figures: HealthFigures | ChangeFigures, domain: str, score: float
) -> None:
    question = MeasureHealth if isinstance(figures, HealthFigures) else CountChanges
    api.bus.script[question] = Answered(msgspec.json.encode(figures))
    answer = api.request("GET", f"/api/diagnostics/{domain}")
    assert (answer.status, answer.json["score"]) == (200, score)
    assert api.request("GET", "/api/diagnostics").json[domain] == answer.json == status(api)["diagnostics"][domain]


def test_a_domain_without_an_answer_is_unavailable_and_does_not_count(api: MemoryApi) -> None:
    api.bus.script[MeasureHealth] = Unavailable("the searcher is away")
    answer = api.request("GET", "/api/diagnostics/queue")
    assert (answer.status, answer.json["error"]) == (503, "searcher: the searcher is away")
    report = api.request("GET", "/api/diagnostics").json
    assert report["queue"] is report["storage"] is report["index"] is None
    # .24 * .667 + .10 + .05, of .39
    assert report["composite"] == {"score": 0.795, "status": "degraded"}


def test_an_unknown_domain_is_refused(api: MemoryApi) -> None:
    answer = api.request("GET", "/api/diagnostics/composite")
    assert (answer.status, answer.json["error"]) == (400, "Unknown domain: composite")


def test_the_status_shows_states_ages_and_errors_for_every_kind_of_job(api: MemoryApi) -> None:
    said = status(api)
    jobs = {job["kind"]: job for job in said["jobs"]}
    assert list(jobs) == [
        "extract",
        "prospective_index",
        "embed",
        "summarize",
        "score_session",
        "structural_classify",
        "of_a_later_release",
    ]
    assert jobs["extract"] == {
        "kind": "extract",
        "pending": 3,
        "delayed": 1,
        "leased": 1,
        "completed": 9,
        "dead": 2,
        "oldestPendingAt": "2026-02-21T09:59:00.000Z",
        "oldestPendingAgeSec": 60.0,
        "nextDueAt": "2026-02-21T10:00:05.000Z",
        "oldestLeaseAt": "2026-02-21T09:59:58.500Z",
        "oldestLeaseAgeSec": 1.5,
    }
    assert (jobs["embed"]["pending"], jobs["embed"]["oldestPendingAgeSec"]) == (0, None)
    assert said["dead"] == [
        {"kind": "extract", "cause": "the answer is no JSON", "count": 2, "lastAt": "2026-02-21T09:00:00.000Z"}
    ]
    assert said["lanes"][0]["pausedBecause"] == "ollama is tried again in 9 s"
    assert said["waiting"] == [
        "3 jobs wait; waiting uses no attempts, and memories stay searchable. extract: ollama is tried again in 9 s"
    ]


def test_the_status_shows_the_model_its_state_and_the_daily_budget(api: MemoryApi) -> None:
    said = status(api)
    extraction = said["providers"]["extraction"]
    assert (extraction["name"], extraction["reason"]) == ("ollama", "it answers")
    assert extraction["calls"]["circuit"] == "open"
    assert extraction["calls"]["recent"]["availabilityRate"] == 0.667
    assert said["providers"]["decision"]["calls"] is None
    assert said["decisions"] == {"add": 3}
    assert said["budgets"] == [
        {"provider": "ollama", "callsADay": 100, "tokensADay": None, "callsToday": 7, "tokensToday": 800}
    ]
    assert [row["model"] for row in said["usageToday"]] == ["qwen3:4b", "gpt"]


def test_the_junk_rate_is_the_share_of_rejected_facts(api: MemoryApi) -> None:
    figures = status(api)["figures"]
    assert figures["today"]["junk"] == {"rate": 0.25, "rejected": 2, "facts": 6, "byReason": {"question": 2}}
    assert figures["today"]["outcomes"] == {"created": 5}
    assert figures["today"]["reasons"] == {"low_fact_confidence": 1}
    assert (figures["kept"]["junk"]["rate"], figures["kept"]["fenced"]) == (0.0, 1)
    api.bus.script[GetPipelineStatus] = msgspec.structs.replace(STORE, today={})
    assert status(api)["figures"]["today"]["junk"]["rate"] is None


def test_values_of_a_process_that_is_down_are_null_and_explained_in_notes(api: MemoryApi) -> None:
    for question in (GetPipelineStatus, GetExtractorStatus, GetDeciderStatus):
        api.bus.script[question] = Unavailable("is being restarted")
    said = status(api)
    assert sorted(said["notes"]) == [f"{who}: is being restarted" for who in ("decider", "extractor", "searcher")]
    nothing = ("jobs", "dead", "lanes", "usageToday", "figures", "decisions", "runs", "reviewsPending")
    assert [said[name] for name in nothing] == [None] * len(nothing)
    assert said["providers"] == {"extraction": None, "decision": None}
    assert (said["queues"], said["budgets"], said["errorSummary"]) == ({"memory": None, "summary": None}, [], {})
    assert said["mode"] == "controlled-write", "of the configuration, where nobody can be asked"


def test_a_worker_that_is_down_is_not_running(api: MemoryApi) -> None:
    others = [child for child in EVERYBODY_UP if child.role != "decider"]
    api.bus.tree = TreeChanged([*others, ChildState("decider", "decider", RESTARTING, 2, 1, None)])
    said = status(api)
    assert (said["workers"]["extraction"], said["workers"]["decision"]) == ({"running": True}, {"running": False})
    assert said["notes"] == ["decider: restarting"]
    assert GetDeciderStatus() not in [sent.body for sent in api.bus.asked], "nobody waits for who is not there"


def test_a_disabled_pipeline_is_reported_without_requests_to_its_processes(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=configured(enabled=False))
    api.bus.tree = TreeChanged([child for child in EVERYBODY_UP if child.role not in {"extractor", "decider"}])
    api.bus.script |= {GetPipelineStatus: STORE, GetStoreStats: ROWS}
    api.bus.script |= {
        MeasureHealth: Answered(msgspec.json.encode(HEALTH)),
        FindFigures: Answered(msgspec.json.encode(FIGURES)),
        CountChanges: Answered(msgspec.json.encode(CHANGES)),
    }
    said = status(api)
    assert (said["mode"], said["workers"]["extraction"]["running"], said["notes"]) == ("disabled", False, [])
    assert said["waiting"] == [
        "4 jobs wait: the pipeline is switched off (memory.pipelineV2.enabled); memories stay searchable"
    ]
    assert {type(sent.body) for sent in api.bus.asked} == {
        GetPipelineStatus,
        GetStoreStats,
        MeasureHealth,
        CountChanges,
        FindFigures,
    }


STATS = StoreStats(7, 0, 7, 1, {"pending": 1}, None, 2, 1)
ONE_WAITS = msgspec.structs.replace(STORE, queues=[KindQueue("extract", pending=1)])


@pytest.mark.parametrize(
    ("model", "runner", "effective", "words"),
    [
        (MODEL, RUNNER, "none", "1 job waits; waiting uses no attempts"),
        (
            ModelState(SELECTION, msgspec.structs.replace(REPORT, circuit=CircuitState.CLOSED)),
            msgspec.structs.replace(RUNNER, paused_because=None),
            "ollama",
            None,
        ),
        (
            NOBODY,
            msgspec.structs.replace(RUNNER, running=0, paused_because="Ollama is not there"),
            "none",
            "extract: Ollama is not there",
        ),
    ],
)
def test_the_daemon_s_status_shows_the_provider_and_why_jobs_wait(
    api: MemoryApi, model: ModelState, runner: JobRunnerReport, effective: str, words: str | None
) -> None:
    off = JobRunnerReport("prospective_index", 2, 0, "memory.pipelineV2.hints.enabled is false", 0, 0, 0, 0)
    api.bus.script |= {GetStoreStats: STATS, GetPipelineStatus: ONE_WAITS}
    api.bus.script[GetExtractorStatus] = ExtractorStatus("full", model, [runner, off], {})
    said = api.request("GET", "/api/status").json
    resolved = model.selection.name
    assert said["providerResolution"]["extraction"] == {
        "configured": "auto",
        "resolved": resolved,
        "effective": effective,
    }
    assert len(said["waiting"]) == (words is not None)
    if words is not None:
        assert words in said["waiting"][0]
        assert "hints" not in said["waiting"][0], "no job waits for what is switched off"


def test_the_daemon_s_status_shows_that_jobs_wait_for_the_extractor(api: MemoryApi) -> None:
    api.bus.script[GetStoreStats] = STATS
    api.bus.script[GetExtractorStatus] = Unavailable("away")
    said = api.request("GET", "/api/status").json
    assert said["waiting"] == ["1 job waits: the extractor does not respond; memories stay searchable"]
    assert "extractor: away" in said["notes"]


def test_runs_are_listed_within_the_caller_s_scope(api: MemoryApi) -> None:
    api.bus.script[message_of(LIST_RUNS)] = Answered(msgspec.json.encode(RunListReply([RUN])))
    answer = api.request("GET", "/api/pipeline/runs?agentId=a&scope=s&memoryId=m1&limit=9999&offset=2")
    asked = api.bus.only(message_of(LIST_RUNS)).body
    assert (asked.caller.agent_id, asked.caller.scope) == ("a", "s")
    assert (asked.request.memory_id, asked.request.limit, asked.request.offset) == ("m1", 500, 2)
    (run,) = answer.json["runs"]
    assert (run["id"], run["jobId"], run["counts"], run["undoneAt"]) == ("run-1", "job-1", {"created": 2}, None)


def test_a_run_is_shown_with_its_proposals(api: MemoryApi) -> None:
    relations = [RelationReport("homelab", "uses", "Traefik", 0.9, "system", None)]
    rejected = [RejectedReport("Is it raining?", "fact", 0.9, "question")]
    found = RunReply(RUN, [PROPOSAL], relations, rejected, {"question": 1}, ["cut off"])
    api.bus.script[message_of(GET_RUN)] = Answered(msgspec.json.encode(found))
    said = api.request("GET", "/api/pipeline/runs/run-1").json
    assert api.bus.only(message_of(GET_RUN)).body.caller.path == {"run": "run-1"}
    assert said["run"]["provider"] == "ollama"
    (proposal,) = said["proposals"]
    assert (proposal["factContent"], proposal["targetId"], proposal["outcome"]) == (
        "The host is called beta.",
        "m2",
        "review",
    )
    assert said["entities"] == [
        {
            "source": "homelab",
            "relationship": "uses",
            "target": "Traefik",
            "confidence": 0.9,
            "sourceType": "system",
            "targetType": None,
        }
    ]
    assert said["rejected"] == [{"content": "Is it raining?", "type": "fact", "confidence": 0.9, "reason": "question"}]
    assert (said["rejectedCounts"], said["warnings"]) == ({"question": 1}, ["cut off"])


def test_a_run_that_the_caller_may_not_read_is_404(api: MemoryApi) -> None:
    api.bus.script[message_of(GET_RUN)] = NotFound("Run not found")
    api.bus.script[message_of(UNDO_RUN)] = NotFound("Run not found")
    for method, path in (("GET", "/api/pipeline/runs/run-1"), ("POST", "/api/pipeline/runs/run-1/undo")):
        answer = api.request(method, path)
        assert (answer.status, answer.json) == (404, {"error": "Run not found", "code": "not_found"})


@pytest.mark.parametrize("word", ["undone", "already_undone"])
def test_an_undo_lists_undone_and_kept_changes(api: MemoryApi, word: Any) -> None:
    results = [UndoResult(0, "add", "undone", "m5", None), UndoResult(1, "update", "kept", "m6", "changed_since")]
    reply = UndoReply("run-1", word, undone=1, kept=1, results=results, reviews_closed=2)
    api.bus.script[message_of(UNDO_RUN)] = Answered(msgspec.json.encode(reply))
    answer = api.request("POST", "/api/pipeline/runs/run-1/undo?agentId=a", headers={"x-signet-actor": "noor"})
    assert api.bus.only(message_of(UNDO_RUN)).body.caller == Caller("a", Principal("noor"), path={"run": "run-1"})
    assert answer.json == {
        "runId": "run-1",
        "status": word,
        "undone": 1,
        "kept": 1,
        "results": [
            {"ordinal": 0, "action": "add", "status": "undone", "memoryId": "m5", "reason": None},
            {"ordinal": 1, "action": "update", "status": "kept", "memoryId": "m6", "reason": "changed_since"},
        ],
        "reviewsClosed": 2,
        "success": True,
    }


def test_an_undo_of_unknown_outcome_is_a_504(api: MemoryApi) -> None:
    api.bus.script[message_of(UNDO_RUN)] = OutcomeUnknown("no answer")
    assert api.request("POST", "/api/pipeline/runs/run-1/undo").status == 504


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (None, RequeueJobs()),
        ({"ids": ["a", "b", "a"], "limit": 1}, RequeueJobs(ids=("a", "b"), limit=2)),
        ({"kinds": ["embed", "extract"], "limit": 5}, RequeueJobs(kinds=("embed", "extract"), limit=5)),
    ],
)
@pytest.mark.parametrize("path", ["/api/pipeline/requeue", "/api/repair/requeue-dead"])
def test_dead_jobs_are_requeued_by_id_by_kind_or_all(api: MemoryApi, path: str, body: Any, sent: RequeueJobs) -> None:
    api.bus.script[RequeueJobs] = JobsRequeued(["a"], [NotRequeued("b", "not_dead")], more=True)
    answer = api.request("POST", path, body)
    assert api.bus.only(RequeueJobs).body == sent
    assert answer.status == 200
    if path.startswith("/api/pipeline"):
        refused = [{"jobId": "b", "reason": "not_dead"}]
        assert answer.json == {
            "action": "requeueDeadJobs",
            "success": True,
            "affected": 1,
            "message": "Requeued 1 dead job; 1 not requeued: not_dead; there are more dead jobs",
            "requeued": ["a"],
            "refused": refused,
            "more": True,
        }
    else:
        assert answer.json == {
            "action": "requeueDeadJobs",
            "success": True,
            "affected": 1,
            "message": "Requeued 1 dead job; 1 not requeued: not_dead; there are more dead jobs",
            "steps": [{"step": "requeue", "count": 1, "more": True}],
        }


@pytest.mark.parametrize("path", ["/api/pipeline/requeue", "/api/repair/requeue-dead"])
def test_no_secret_in_the_ids_of_a_requeue_is_stored(api: MemoryApi, path: str) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    api.bus.script[RequeueJobs] = JobsRequeued([], [])
    assert api.request("POST", path, {"ids": ["01a2", token, f"job {token}"]}).status == 200
    asked = api.bus.only(RequeueJobs).body
    assert asked.ids is not None
    assert (asked.ids[0], token in str(asked)) == ("01a2", False)


def test_a_requeue_too_soon_returns_a_retry_time(api: MemoryApi) -> None:
    api.bus.script[RequeueJobs] = SignetError("too soon", code=ErrorCode.RATE_LIMITED, retry_after_ms=41_500)
    for path in ("/api/pipeline/requeue", "/api/repair/requeue-dead"):
        answer = api.request("POST", path, {})
        assert (answer.status, answer.json["error"], answer.json["code"]) == (429, "too soon", "rate_limited")
        assert answer.headers["retry-after"] == "42"
    refusal = {
        "retryAfter": 41_500,
        "action": "requeueDeadJobs",
        "success": False,
        "affected": 0,
        "message": "too soon",
    }
    assert refusal.items() <= answer.json.items(), "a repair that is refused has the members of a result, too"


@pytest.mark.parametrize(
    ("path", "kind", "done"),
    [
        ("/api/memory/review-queue/p1/approve", ApproveProposal, ReviewDecided("p1", "approved")),
        ("/api/memory/review-queue/p1/reject", RejectProposal, ReviewDecided("p1", "rejected")),
        ("/api/pipeline/runs/run-1/undo", message_of(UNDO_RUN), UNDONE),
        ("/api/pipeline/requeue", RequeueJobs, JobsRequeued([], [])),
        ("/api/repair/requeue-dead", RequeueJobs, JobsRequeued([], [])),
    ],
)
def test_every_pipeline_action_accepts_an_idempotency_key(api: MemoryApi, path: str, kind: Any, done: Any) -> None:
    """Each key is its principal's, agent's and route's own, as everywhere."""
    api.bus.script[kind] = done
    for headers in (
        {"Idempotency-Key": "k"},
        {"Idempotency-Key": "k"},
        {"Idempotency-Key": "k", "x-signet-actor": "noor"},
        {"Idempotency-Key": "l"},
        {},
    ):
        assert api.request("POST", path, {}, headers).status == 200
    asked = [sent.body for sent in api.bus.asked if isinstance(sent.body, kind)]
    first, again, somebody, other, none = (command.idempotency for command in asked)
    assert first == again
    assert none is None
    assert len({first.key, somebody.key, other.key}) == 3
    assert api.request("POST", path, {}, {"Idempotency-Key": "k" * 201}).status == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": []}, "ids"),
        ({"ids": "a"}, "ids"),
        ({"ids": [3]}, "ids"),
        ({"ids": [" "]}, "ids"),
        ({"ids": ["a"] * 51}, "ids"),
        ({"kinds": ["unheard_of"]}, "kinds"),
        ({"kinds": ["embed"], "ids": ["a"]}, "kinds"),
        ({"limit": 0}, "limit"),
        ({"limit": 51}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
    ],
)
def test_an_invalid_requeue_request_requeues_nothing(api: MemoryApi, body: Any, field: str) -> None:
    answer = api.request("POST", "/api/pipeline/requeue", body)
    assert (answer.status, answer.json["field"]) == (400, field)
    assert api.bus.asked == []


def test_the_review_queue_is_read_within_the_caller_s_scope(api: MemoryApi) -> None:
    api.bus.script[message_of(LIST_REVIEWS)] = Answered(b'{"items":[],"total":7}')
    answer = api.request("GET", "/api/memory/review-queue?agentId=a&scope=s&state=all&limit=9999")
    asked = api.bus.only(message_of(LIST_REVIEWS)).body
    assert (asked.caller.agent_id, asked.caller.scope) == ("a", "s")
    assert (asked.request.state, asked.request.limit, asked.request.offset) == ("all", 500, 0)
    assert answer.json == {"items": [], "total": 7, "decided": {"decisions": 0, "approved": 0}, "hint": None}


@pytest.mark.parametrize(("word", "kind"), [("approve", ApproveProposal), ("reject", RejectProposal)])
def test_a_review_is_decided_in_the_caller_s_name_and_within_its_scope(
    api: MemoryApi, word: str, kind: type[Any]
) -> None:
    said = {"approve": "approved", "reject": "rejected"}[word]
    api.bus.script[kind] = ReviewDecided("p1", said, memory_id="m2", current_version=3, new_version=4)
    answer = api.request(
        "POST",
        f"/api/memory/review-queue/p1/{word}",
        {"reason": f"seen, key {AWS_KEY}", "changed_by": "noor", "agentId": "a", "scope": "s"},
    )
    sent = api.bus.only(kind).body
    assert (sent.id, sent.principal, sent.read) == ("p1", Principal("noor"), ReadScope("a", "s"))
    assert sent.reason.startswith("seen, key ")
    assert AWS_KEY not in sent.reason
    assert answer.json == {
        "id": "p1",
        "status": said,
        "already": False,
        "memoryId": "m2",
        "currentVersion": 3,
        "newVersion": 4,
        "success": True,
    }


@pytest.mark.parametrize(
    ("word", "status", "code"),
    [
        ("not_found", 404, "not_found"),
        ("not_reviewable", 409, "conflict"),
        ("decided_otherwise", 409, "conflict"),
        ("content_gone", 409, "conflict"),
        ("version_conflict", 409, "conflict"),
        ("target_gone", 409, "conflict"),
        ("source_gone", 409, "conflict"),
        ("pinned", 409, "conflict"),
        ("other_scope", 409, "conflict"),
        ("own_source", 409, "conflict"),
        ("constraint", 409, "conflict"),
        ("duplicate_content", 409, "conflict"),
        ("unchanged", 409, "conflict"),
        ("autonomous_denied", 403, "forbidden"),
        ("frozen", 503, "mutations_frozen"),
        ("a_word_of_later", 409, "conflict"),
    ],
)
def test_an_approval_that_cannot_be_applied_reports_why(api: MemoryApi, word: str, status: int, code: str) -> None:
    api.bus.script[ApproveProposal] = ReviewDecided("p1", word, memory_id="m2", current_version=4)
    answer = api.request("POST", "/api/memory/review-queue/p1/approve")
    assert answer.status == status
    assert ("retry-after" in answer.headers) == (status == 503)
    said = answer.json
    assert (said["id"], said["status"], said["code"], said["currentVersion"]) == ("p1", word, code, 4)
    assert said["error"]


@pytest.mark.parametrize("actor_type", ["agent", "Harness", "sdk", "daemon", "somebody-else", ""])
def test_only_operators_may_approve(api: MemoryApi, actor_type: str) -> None:
    api.bus.script[ApproveProposal] = ReviewDecided("p1", "approved")
    headers = {"x-signet-actor-type": actor_type}
    answer = api.request("POST", "/api/memory/review-queue/p1/approve", None, headers)
    assert (answer.status, answer.json["status"]) == (403, "autonomous_denied")
    assert not [asked for asked in api.bus.asked if isinstance(asked.body, ApproveProposal)]
    headers = {"x-signet-actor-type": "Operator"}
    assert api.request("POST", "/api/memory/review-queue/p1/approve", None, headers).status == 200


def test_while_mutations_are_frozen_only_decisions_without_a_change_are_accepted(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=configured(frozen=True))
    api.bus.script |= {
        RejectProposal: ReviewDecided("p1", "rejected"),
        RequeueJobs: JobsRequeued([], []),
        message_of(UNDO_RUN): UNDONE,
        ApproveProposal: ReviewDecided("p1", "approved"),
    }
    refused = ("/api/memory/review-queue/p1/approve", "/api/pipeline/runs/run-1/undo")
    for path in refused:
        answer = api.request("POST", path)
        assert (answer.status, answer.json["code"]) == (503, "mutations_frozen"), path
        assert answer.headers["retry-after"] == "60"
    for path in ("/api/memory/review-queue/p1/reject", "/api/pipeline/requeue", "/api/repair/requeue-dead"):
        assert api.request("POST", path).status == 200, path


def test_each_pipeline_route_requires_the_permission_of_its_effect() -> None:
    asked = {
        (route.operation.method, route.path): route.operation.permission
        for route in ROUTES
        if "pipeline" in route.path or "review-queue" in route.path or route.path == "/api/repair/requeue-dead"
    }
    assert asked == {
        ("GET", "/api/pipeline/status"): Permission.DIAGNOSTICS,
        ("GET", "/api/pipeline/by-prefix"): Permission.RECALL,
        ("GET", "/api/pipeline/runs"): Permission.RECALL,
        ("GET", "/api/pipeline/runs/{run}"): Permission.RECALL,
        ("POST", "/api/pipeline/runs/{run}/undo"): Permission.MODIFY,
        ("POST", "/api/pipeline/requeue"): Permission.ADMIN,
        ("POST", "/api/repair/requeue-dead"): Permission.ADMIN,
        ("GET", "/api/memory/review-queue"): Permission.RECALL,
        ("POST", "/api/memory/review-queue/{id}/approve"): Permission.MODIFY,
        ("POST", "/api/memory/review-queue/{id}/reject"): Permission.MODIFY,
    }
