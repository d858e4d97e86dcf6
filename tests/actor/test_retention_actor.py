"""The retention actor with a scripted writer and a clock that the test sets."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest
import structlog

from signet_actors.config.embedding_models import space_name
from signet_actors.config.schema import BackupConfig, Config, EmbeddingConfig, RetentionConfig
from signet_actors.domain.backups import backup_name
from signet_actors.domain.retention import CONFIRM_AFTER_MS, HOUR_MS, STEPS
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import ErrorCode
from signet_actors.features.communities.api import (
    Communities,
    Community,
    DropCommunities,
    GetGraphStamp,
    GraphStamp,
    StoreCommunities,
    Stored,
)
from signet_actors.features.diagnostics.api import ChangeFigures, HealthFigures
from signet_actors.features.projection.api import Points, Projection, StoreProjection
from signet_actors.features.repairs.api import MeasureStore, StoreFigures
from signet_actors.operations.repair import BackupFinding
from signet_actors.protocol.backups import AdvanceBackup, BackupProgress, BackupVerification
from signet_actors.protocol.header import Header
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark, LeasesReaped, ReapLeases
from signet_actors.protocol.message import Answered, Failure, Message, Request
from signet_actors.protocol.pipeline import AttributesSettled, JobsReconciled, ReconcileJobs, SettleAttributes
from signet_actors.protocol.retention import (
    BackUpNow,
    BackupState,
    GetBackups,
    GetRetentionStatus,
    MakeProjection,
    ProjectionWanted,
    RetentionReply,
    RetentionRequest,
    RetentionStatus,
    SweepNow,
    Swept,
)
from signet_actors.protocol.session_summaries import (
    EndIdleSessions,
    FindForgottenNotes,
    IdleSessionsEnded,
    NotesFound,
)
from signet_actors.protocol.writer import GetWriterStatus, Purged, PurgeStep, ReportDamage, WriterStatus, WritesDisabled
from signet_actors.retention.actor import Retention
from signet_actors.retention.periodic import backup, purge, reconciliation
from signet_actors.retention.periodic.backup import Backup
from signet_actors.retention.periodic.git_commits import GitCommits
from signet_actors.retention.periodic.graph_upkeep import CommunityDuty
from signet_actors.retention.periodic.projections import MAX_WAITING, Projections
from signet_actors.retention.periodic.session_notes import SessionNotes
from signet_actors.retention.periodic.spool_drain import SpoolDrain
from signet_actors.retention.periodic.workspace_files import WorkspaceFiles
from signet_actors.runtime.messaging.mailbox import Incoming, Mailbox

R = TypeVar("R")

DAY = 24 * HOUR_MS
NO_BACKUPS = BackupConfig(interval_ms=0)
START = 1_771_668_000_000
HEALTHY = HealthFigures(0, 0, 0, 0.0, 0, 10, 0, 10, 10)
UNCHANGED = ChangeFigures(0, 0, 0, 0, 10)
ORDER = [step.name for step in STEPS]


class HandClock:
    """Both clocks stand until the test moves them; ``jump`` moves the wall clock alone."""

    def __init__(self) -> None:
        self.wall = START
        self.mono_ns = 1_000_000_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ns(self) -> int:
        return self.mono_ns

    def pass_ms(self, ms: float) -> None:
        self.wall += int(ms)
        self.mono_ns += int(ms * 1_000_000)

    def jump(self, ms: int) -> None:
        self.wall += ms


class ScriptedWriter:
    """Keeps a mark and rows per step as the real one does; ``refuse`` makes it answer with a failure.

    An earlier daemon has swept before: there is a mark.
    """

    def __init__(self) -> None:
        self.mark: str | None = iso(START)
        self.suspected: str | None = None
        self.rows: dict[str, int] = {}
        self.leases = (0, 0)
        self.asked: list[Request[Any]] = []
        self.damage: str | None = None
        self.more = 0
        self.missing_at = 0
        self.held_up = 0
        self.space = space_name(EmbeddingConfig())
        self.copies: list[str] = []
        self.copy_state = "copying"
        self.aspects = 0
        self.stamp = ""
        self.outdated = 0
        self.refuse: Callable[[Request[Any]], Failure | None] = lambda request: None

    def ask(self, request: Request[R], *, timeout_ms: int, trace_id: str | None = None) -> R | Failure:
        assert 0 < timeout_ms <= 5000
        self.asked.append(request)
        return self.refuse(request) or cast(R, self._answer(request))

    def _answer(self, request: Request[Any]) -> Message:
        match request:
            case MeasureStore():
                return Answered(msgspec.json.encode(StoreFigures(iso(START), HEALTHY, UNCHANGED)))
            case PurgeStep():
                count = min(self.rows.get(request.step, 0), request.limit)
                self.rows[request.step] = self.rows.get(request.step, 0) - count
                return Purged(request.step, count, more=count >= request.limit)
            case ReapLeases():
                answer, self.leases = LeasesReaped(*self.leases), (0, 0)
                return answer
            case AdvanceHighWaterMark():
                known = HighWaterMark(self.mark, self.suspected)
                self.suspected = request.suspected_jump_since
                if request.accept:
                    self.mark = request.now
                return known
            case ReconcileJobs() if self.held_up:
                self.held_up -= 1
                return JobsReconciled(0, request.after, self.space)
            case ReconcileJobs():
                looked = request.after + request.limit
                found = request.after < self.missing_at <= looked
                return JobsReconciled(int(found), looked if looked < self.more else None, self.space)
            case FindForgottenNotes():
                return NotesFound([], None)
            case EndIdleSessions():
                return IdleSessionsEnded([], more=False)
            case SettleAttributes():
                aspects = self.aspects - int(request.after or 0)
                return AttributesSettled(1, str(request.limit) if aspects > request.limit else None)
            case GetGraphStamp():
                return Answered(msgspec.json.encode(GraphStamp(self.stamp)))
            case StoreCommunities() | StoreProjection():
                return Answered(msgspec.json.encode(Stored()))
            case DropCommunities():
                self.outdated -= request.limit
                return Answered(msgspec.json.encode(Stored(more=self.outdated > 0)))
            case GetWriterStatus():
                return WriterStatus(0, 0, 0, 0, False, 1, "3", self.damage)
            case AdvanceBackup():
                self.copies.append(request.name)
                return BackupProgress(request.name, self.copy_state, 10, 5, None, 7)
            case ReportDamage():
                self.damage = request.detail
                return WritesDisabled()
        raise AssertionError(f"unexpected {request}")

    def steps(self) -> list[str]:
        return [request.step for request in self.asked if isinstance(request, PurgeStep)]


class Replies:
    """Stands where the mailbox stands, and keeps what was answered."""

    def __init__(self) -> None:
        self.sent: list[RetentionReply] = []
        self.counters = dict.fromkeys(("duplicate", "sent", "unroutable"), 0)

    def answer(self, identity: bytes | None, asked: Header, body: RetentionReply, frames: Iterable[bytes] = ()) -> None:
        self.sent.append(body)


class ScriptedCheck:
    """A check of a copy that ends when the test says how."""

    def __init__(self, name: str, last_seq: int) -> None:
        self.name = name
        self.last_seq = last_seq
        self.verdict: BackupVerification | None = None
        self.stopped = False

    def poll(self) -> BackupVerification | None:
        return self.verdict

    def stop(self) -> None:
        self.stopped = True


class ScriptedDivision:
    """Stands where the process that finds communities stands; ``found`` is its result."""

    def __init__(self) -> None:
        self.found: Communities | None = None
        self.stopped = False

    def poll(self) -> Communities | None:
        return self.found

    def stop(self) -> None:
        self.stopped = True


class ScriptedMap:
    """Stands where the process that makes a map stands; ``made`` is its result."""

    def __init__(self, agent_id: str, dimensions: int) -> None:
        self.wanted = (agent_id, dimensions)
        self.made: Projection | None = None
        self.stopped = False

    def poll(self) -> Projection | None:
        return self.made

    def stop(self) -> None:
        self.stopped = True


class Room:
    """The actor, its writer and its clock."""

    def __init__(self, config: Config | None = None) -> None:
        self.clock = HandClock()
        self.writer = ScriptedWriter()
        self.replies = Replies()
        self.log = structlog.wrap_logger(structlog.ReturnLogger())
        self.config = config or Config(backup=NO_BACKUPS)
        self.backup_dir = Path("there are no backups")
        self.notes_dir = Path("there are no notes")
        self.checks: list[ScriptedCheck] = []
        self.divisions: list[ScriptedDivision] = []
        self.maps: list[ScriptedMap] = []
        self.no_processes = False
        self.actor = self.born()

    def born(self) -> Retention:
        duty = Backup(self.writer, self.clock, self.log, self.config, self.backup_dir, self.verify)
        spool_drain = SpoolDrain(self.clock, self.log, Path("there is no workspace"))
        files = WorkspaceFiles(self.clock, self.log, self.config, Path("there is no workspace"))
        files.due_ns = backup.NEVER_NS  # it looks every second, and days pass here
        notes = SessionNotes(self.writer, self.clock, self.log, self.notes_dir)
        git = GitCommits(self.clock, self.log, self.config, Path("there is no workspace"))
        git.due_ns = backup.NEVER_NS
        groups = CommunityDuty(self.writer, self.clock, self.log, self.config, self.begin_communities)
        maps = Projections(self.writer, self.clock, self.log, self.begin_map)
        return Retention(
            *(self.writer, self.clock, self.log, self.config, duty, spool_drain, files, notes, git, groups, maps)
        )

    def begin_map(self, agent_id: str, dimensions: int) -> ScriptedMap:
        if self.no_processes:
            raise OSError(errno.EAGAIN, "no processes")
        self.maps.append(ScriptedMap(agent_id, dimensions))
        return self.maps[-1]

    def begin_communities(self) -> ScriptedDivision:
        self.divisions.append(ScriptedDivision())
        return self.divisions[-1]

    def verify(self, name: str, last_seq: int) -> ScriptedCheck:
        self.checks.append(ScriptedCheck(name, last_seq))
        return self.checks[-1]

    def say(self, body: RetentionRequest, *, deadline_in_ms: int = 0) -> None:
        deadline = self.clock.mono_ns + deadline_in_ms * 1_000_000 if deadline_in_ms else 0
        header = Header("id", "trace", "gateway", 1, deadline, 1, "boot")
        mailbox = cast("Mailbox[RetentionRequest]", self.replies)
        self.actor.handle([Incoming(mailbox, b"gateway", header, body, [], self.clock.mono_ns, 1)])

    def run_for(self, ms: int) -> None:
        """Tick whenever the actor wishes to, while ``ms`` pass."""
        left = float(ms)
        for _ in range(100_000):
            wish = self.actor.tick()
            assert wish is not None
            step = min(left, wish * 1000 + 0.001)
            self.clock.pass_ms(step)
            left -= step
            if left <= 0:
                return
        raise AssertionError("the actor never rests")

    def status(self) -> RetentionStatus:
        self.say(GetRetentionStatus())
        answer = self.replies.sent.pop()
        assert isinstance(answer, RetentionStatus)
        return answer

    def swept(self) -> Swept:
        answer = self.replies.sent.pop()
        assert isinstance(answer, Swept)
        return answer


@pytest.fixture
def room() -> Room:
    return Room()


def test_the_first_sweep_comes_a_minute_after_the_start_and_runs_in_order(room: Room) -> None:
    room.run_for(59_000)
    assert room.writer.steps() == []
    room.run_for(2_000)
    assert room.writer.steps() == ORDER
    assert room.status().last_counts == dict.fromkeys(ORDER, 0)
    assert room.status().last_sweep_at is not None
    assert room.status().suspended_reason is None


def test_the_next_sweep_comes_an_interval_later(room: Room) -> None:
    room.run_for(61_000)
    room.run_for(6 * HOUR_MS - 60_000)
    assert room.writer.steps() == ORDER
    room.run_for(120_000)
    assert room.writer.steps() == ORDER * 2


def test_each_step_purges_up_to_its_own_window(room: Room) -> None:
    room.run_for(61_000)
    cutoffs = {request.step: request.cutoff for request in room.writer.asked if isinstance(request, PurgeStep)}
    assert room.writer.mark is not None
    began = epoch_ms(room.writer.mark)
    assert began is not None
    assert abs(began - (START + 60_000)) <= 1  # the clock of the test passes in fractions of a millisecond
    days = {"graph_links": 30, "embeddings": 30, "tombstones": 30, "history": 180, "completed_jobs": 14}
    for step, window in days.items():
        assert cutoffs[step] == iso(began - window * DAY)
    assert cutoffs["dead_jobs"] == iso(began - 30 * DAY)


def test_a_full_batch_is_repeated_before_the_next_step(room: Room) -> None:
    room.writer.rows = {"embeddings": 1200, "tombstones": 500}
    room.run_for(62_000)
    assert room.writer.steps() == [
        "graph_links",
        *["embeddings"] * 3,
        *["tombstones"] * 2,
        *ORDER[3:],
    ]
    assert all(request.limit == 500 for request in room.writer.asked if isinstance(request, PurgeStep))
    assert room.status().last_counts["embeddings"] == 1200
    assert room.actor.counters()["purged_rows"] == 1700


def test_the_batches_of_a_sweep_are_bounded_and_tombstones_wait_for_what_refers_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge, "MAX_BATCHES", 3)
    room = Room(Config(retention=RetentionConfig(batch_limit=10), backup=NO_BACKUPS))
    room.writer.rows = {"graph_links": 45, "tombstones": 5, "history": 5}
    room.run_for(61_000)
    assert room.writer.steps().count("graph_links") == 3
    assert "tombstones" not in room.writer.steps()
    assert "history" in room.writer.steps()
    assert room.status().next_sweep_in_ms <= 60_000
    room.run_for(61_000)
    assert room.writer.rows == dict.fromkeys(ORDER, 0)


def test_the_actor_serves_requests_between_any_two_messages_to_the_writer(room: Room) -> None:
    room.clock.pass_ms(60_001)
    most = 0
    while room.status().last_sweep_at is None:
        before = len(room.writer.asked)
        wish = room.actor.tick()
        assert wish is not None
        most = max(most, len(room.writer.asked) - before)
        room.clock.pass_ms(wish * 1000 + 0.001)
    assert most <= 8, "one message of each duty that is due"


def test_after_a_clock_jump_nothing_is_purged_until_a_second_sweep_confirms_it(room: Room) -> None:
    room.run_for(61_000)
    room.writer.rows = {"tombstones": 7}
    room.writer.asked.clear()
    room.clock.jump(3653 * DAY)
    room.run_for(6 * HOUR_MS + 60_000)
    assert room.writer.steps() == []
    assert "3653 days ahead" in (room.status().suspended_reason or "")
    assert room.writer.suspected is not None
    assert room.actor.counters()["purge_suspended"] == 1
    room.run_for(CONFIRM_AFTER_MS)
    assert room.writer.steps() == ORDER
    assert room.writer.rows["tombstones"] == 0
    assert room.writer.suspected is None
    assert room.status().suspended_reason is None


@pytest.mark.parametrize("years", [0, 11, -11])
def test_the_first_sweep_of_all_trusts_no_clock_until_another_confirms_it(room: Room, years: int) -> None:
    room.writer.mark = None
    room.writer.rows = {"tombstones": 7, "transcripts": 3, "history": 5}
    kept = dict(room.writer.rows)
    room.clock.jump(years * 365 * DAY)
    for _ in range(3):  # each within an hour of the first one
        room.run_for(61_000)
        assert (room.writer.steps(), room.writer.rows) == ([], kept)
        assert "no sweep has seen this clock yet" in (room.status().suspended_reason or "")
        room.actor = room.born()
    room.run_for(CONFIRM_AFTER_MS)
    assert room.writer.steps() == ORDER
    assert room.writer.mark is not None
    assert room.status().suspended_reason is None


@pytest.mark.parametrize("wrong_years", [11, -11])
def test_a_clock_that_was_wrong_at_the_first_sweep_and_is_corrected_purges_nothing_too_early(
    room: Room, wrong_years: int
) -> None:
    room.writer.mark = None
    room.clock.jump(wrong_years * 365 * DAY)
    room.run_for(61_000)
    room.clock.jump(-wrong_years * 365 * DAY)
    room.run_for(CONFIRM_AFTER_MS)
    assert room.writer.steps() == []
    room.run_for(2 * CONFIRM_AFTER_MS)
    cutoffs = [request.cutoff for request in room.writer.asked if isinstance(request, PurgeStep)]
    assert cutoffs
    assert max(cutoffs) < iso(START + DAY)


def test_a_person_who_asks_for_the_first_sweep_vouches_for_the_clock(room: Room) -> None:
    room.writer.mark = None
    room.writer.rows = {"history": 12}
    room.say(SweepNow())
    room.run_for(1_000)
    assert [(step.step, step.count) for step in room.swept().steps if step.count] == [("history", 12)]


def test_a_clock_jump_that_is_corrected_in_time_has_no_effect(room: Room) -> None:
    room.run_for(61_000)
    mark = room.writer.mark
    room.clock.jump(3653 * DAY)
    room.run_for(6 * HOUR_MS)
    room.clock.jump(-3653 * DAY)
    assert room.writer.mark == mark
    room.writer.asked.clear()
    room.run_for(2 * HOUR_MS)
    cutoffs = [request.cutoff for request in room.writer.asked if isinstance(request, PurgeStep)]
    assert cutoffs
    assert max(cutoffs) < iso(START + DAY)


def test_a_suspected_clock_jump_survives_a_restart_of_the_actor(room: Room) -> None:
    room.run_for(61_000)
    room.writer.rows = {"tombstones": 7}
    room.clock.jump(365 * DAY)
    room.actor = room.born()
    room.run_for(61_000)
    assert room.writer.rows["tombstones"] == 7
    suspected = room.writer.suspected
    room.actor = room.born()
    room.run_for(61_000)
    assert room.writer.rows["tombstones"] == 7
    assert room.writer.suspected == suspected
    room.run_for(CONFIRM_AFTER_MS)
    assert room.writer.rows["tombstones"] == 0


def test_a_sweep_interval_longer_than_two_days_is_not_a_clock_jump() -> None:
    room = Room(Config(retention=RetentionConfig(interval_ms=7 * DAY), backup=NO_BACKUPS))
    room.run_for(61_000)
    room.run_for(7 * DAY)
    assert room.writer.steps() == ORDER * 2


def test_an_operator_may_confirm_the_clock(room: Room) -> None:
    room.run_for(61_000)
    room.writer.rows = {"tombstones": 7}
    room.clock.jump(365 * DAY)
    room.say(SweepNow())
    room.run_for(1_000)
    refused = room.swept()
    assert refused.steps == []
    assert "365 days ahead" in (refused.skipped_reason or "")
    room.say(SweepNow(confirm_clock=True))
    room.run_for(1_000)
    swept = room.swept()
    assert [step.step for step in swept.steps] == ORDER
    assert swept.steps[2].count == 7
    assert swept.skipped_reason is None


def test_a_sweep_on_demand_reaps_leases_and_answers_with_every_step(room: Room) -> None:
    room.writer.leases = (2, 1)
    room.writer.rows = {"history": 12}
    room.say(SweepNow())
    room.run_for(1_000)
    swept = room.swept()
    assert (swept.requeued, swept.dead) == (2, 1)
    assert [(step.step, step.count) for step in swept.steps if step.count] == [("history", 12)]
    assert room.replies.sent == []


def test_two_waiting_sweep_requests_share_one_sweep(room: Room) -> None:
    room.say(SweepNow())
    room.say(SweepNow())
    room.run_for(1_000)
    assert len(room.replies.sent) == 2
    assert room.writer.steps() == ORDER


def test_a_request_during_a_sweep_gets_another_sweep(room: Room) -> None:
    room.say(SweepNow())
    room.actor.tick()
    room.say(SweepNow(confirm_clock=True))
    room.run_for(1_000)
    assert len(room.replies.sent) == 2
    assert room.writer.steps() == ORDER * 2


def test_a_caller_whose_deadline_is_near_gets_the_results_so_far(room: Room) -> None:
    room.writer.rows = {"embeddings": 50_000}
    room.say(SweepNow(), deadline_in_ms=600)
    room.run_for(500)
    swept = room.swept()
    assert "is still running" in (swept.skipped_reason or "")
    assert swept.steps[-1].step == "embeddings"
    assert swept.steps[-1].more
    room.run_for(5_000)
    assert room.writer.rows["embeddings"] == 0
    assert room.replies.sent == []


def test_an_expired_sweep_request_is_not_executed(room: Room) -> None:
    room.say(SweepNow(), deadline_in_ms=10)
    room.clock.pass_ms(20)
    room.run_for(100)
    assert room.writer.asked == []


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.OUTCOME_UNKNOWN])
@pytest.mark.parametrize("kind", [PurgeStep, AdvanceHighWaterMark])
def test_a_sweep_waits_for_a_writer_that_is_down(room: Room, code: ErrorCode, kind: type[Request[Any]]) -> None:
    failure = Failure(code, "the writer is restarting")
    room.writer.refuse = lambda request: failure if isinstance(request, kind) else None
    room.run_for(10 * 60_000)
    tries = sum(isinstance(request, kind) for request in room.writer.asked)
    assert 4 <= tries <= 10
    assert "the writer is restarting" in (room.status().suspended_reason or "")
    assert room.status().last_sweep_at is None
    room.writer.refuse = lambda request: None
    room.run_for(6 * 60_000)
    assert room.writer.steps()[-len(ORDER) :] == ORDER
    assert room.status().suspended_reason is None


def test_a_sweep_request_while_the_writer_is_down_is_answered_with_the_reason(room: Room) -> None:
    room.writer.refuse = lambda request: Failure(ErrorCode.UNAVAILABLE, "the writer is not there")
    room.say(SweepNow())
    room.run_for(1_000)
    assert room.swept() == Swept([], 0, 0, "the writer could not purge: the writer is not there")


def test_draining_ends_a_sweep_between_two_batches(room: Room) -> None:
    room.writer.rows = {"embeddings": 5_000}
    room.say(SweepNow())
    for _ in range(4):
        room.clock.pass_ms(20)
        room.actor.tick()
    room.say(SweepNow())
    asked = len(room.writer.asked)
    room.actor.drain()
    partial, refused = room.replies.sent
    assert isinstance(partial, Swept)
    assert "stopping" in (partial.skipped_reason or "")
    assert partial.steps[-1].more
    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.UNAVAILABLE
    assert len(room.writer.asked) == asked


def test_leases_are_reaped_soon_after_the_start_and_then_every_minute(room: Room) -> None:
    room.run_for(6_000)
    assert room.writer.asked == [ReapLeases()]
    room.run_for(3 * 60_000)
    assert sum(isinstance(request, ReapLeases) for request in room.writer.asked) == 4


def test_a_full_batch_of_leases_is_followed_by_another(room: Room) -> None:
    room.writer.leases = (400, 100)
    room.run_for(6_000)
    assert room.writer.asked == [ReapLeases(), ReapLeases()]
    assert room.actor.counters()["leases_requeued"] == 400
    assert room.actor.counters()["jobs_dead"] == 100


def test_a_refused_reaping_is_tried_again_a_minute_later(room: Room) -> None:
    room.writer.refuse = lambda request: Failure(ErrorCode.BUSY, "full")
    room.run_for(6_000)
    room.writer.refuse = lambda request: None
    room.writer.leases = (1, 0)
    room.run_for(61_000)
    assert room.actor.counters()["leases_requeued"] == 1


def test_all_memories_are_checked_for_missing_jobs_in_small_steps(room: Room) -> None:
    room.writer.more, room.writer.missing_at = 1_700, 1_200
    room.run_for(reconciliation.FIRST_AFTER_MS + 2_000)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked == [0, 500, 1_000, 1_500]
    assert room.actor.counters()["jobs_reconciled"] == 1
    room.run_for(reconciliation.INTERVAL_MS)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked[4:] == [0, 500, 1_000, 1_500]


def test_a_reconciliation_that_the_writer_holds_up_asks_again_once_a_second(room: Room) -> None:
    room.writer.more, room.writer.held_up = 900, 3
    room.run_for(reconciliation.FIRST_AFTER_MS + 2 * reconciliation.WAIT_MS)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked == [0, 0]
    room.run_for(10_000)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked == [0, 0, 0, 0, 500]


def test_an_interrupted_reconciliation_continues_where_it_was(room: Room) -> None:
    room.writer.more = 1_700
    room.writer.refuse = lambda request: (
        Failure(ErrorCode.BUSY, "busy") if isinstance(request, ReconcileJobs) and request.after == 1_000 else None
    )
    room.run_for(reconciliation.FIRST_AFTER_MS + reconciliation.POSTPONED_MS)
    room.writer.refuse = lambda request: None
    room.run_for(reconciliation.POSTPONED_MS + 2_000)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked == [0, 500, 1_000, 1_000, 1_500]


def test_a_changed_embedding_model_starts_a_reconciliation_when_the_writer_has_reloaded(room: Room) -> None:
    room.writer.more = 900
    room.run_for(reconciliation.FIRST_AFTER_MS + 2_000)
    room.writer.asked.clear()
    room.actor.reload(Config(backup=NO_BACKUPS, retention=RetentionConfig(batch_limit=9)))
    room.run_for(60_000)
    assert not [request for request in room.writer.asked if isinstance(request, ReconcileJobs)], "it is the same model"
    other = EmbeddingConfig(provider="ollama", dimensions=768)
    room.actor.reload(Config(backup=NO_BACKUPS, embedding=other))
    room.run_for(11_000)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked == [0, 0], "the writer still goes by the former model"
    room.writer.space = space_name(other)
    room.run_for(6_000)
    looked = [request.after for request in room.writer.asked if isinstance(request, ReconcileJobs)]
    assert looked[2:] == [0, 500]


def test_a_shorter_interval_takes_effect_at_once_and_new_windows_with_the_next_sweep(room: Room) -> None:
    room.run_for(61_000)
    room.writer.asked.clear()
    room.actor.reload(
        Config(retention=RetentionConfig(interval_ms=10_000, history_retention_ms=DAY), backup=NO_BACKUPS)
    )
    room.run_for(11_000)
    history = [request for request in room.writer.asked if isinstance(request, PurgeStep) and request.step == "history"]
    assert [request.cutoff[:10] for request in history] == [iso(START - DAY)[:10]]


# backups


DAILY = Config(backup=BackupConfig(interval_ms=DAY, keep=2))


@pytest.fixture
def vault(tmp_path: Path) -> Room:
    """A room whose backups are kept in a directory, one a day."""
    room = Room(DAILY)
    room.backup_dir = tmp_path
    room.actor = room.born()
    return room


def keep(room: Room, name: str) -> None:
    """What the check of a copy does when the copy passes."""
    (room.backup_dir / name).write_bytes(b"a database")


def one_backup(room: Room, verdict: BackupVerification) -> str:
    """The backup that is in progress has been copied and checked, with this verdict; its name."""
    room.run_for(200)
    room.writer.copy_state = "copied"
    room.run_for(200)
    check = room.checks[-1]
    if verdict.ok:
        keep(room, check.name)
    check.verdict = verdict
    room.run_for(200)
    room.writer.copy_state = "copying"
    return check.name


def backups(room: Room) -> BackupState:
    room.say(GetBackups())
    answer = room.replies.sent.pop()
    assert isinstance(answer, BackupState)
    return answer


FINE = BackupVerification(True, [], 3)
TORN = BackupVerification(False, [("structure", "page 7 is torn")], 0)
FLIPPED = BackupVerification(False, [("content", "memory x: the content does not match its checksum")], 3)


def test_the_first_backup_is_made_soon_after_the_start_and_the_next_a_day_later(vault: Room) -> None:
    vault.run_for(backup.FIRST_AFTER_MS - 1000)
    assert vault.writer.copies == []
    vault.run_for(2000)
    first = one_backup(vault, FINE)
    assert [entry.name for entry in backups(vault).backups] == [first]
    assert vault.status().last_backup_at is not None
    assert vault.checks[-1].last_seq == 7
    vault.run_for(DAY - 10_000)
    assert set(vault.writer.copies) == {first}
    vault.run_for(20_000)
    assert set(vault.writer.copies) > {first}


@pytest.mark.parametrize("awake_ms", [backup.LOOK_MS + 1000, 8 * HOUR_MS])
def test_a_machine_that_sleeps_has_a_backup_for_each_day_that_it_is_awake(vault: Room, awake_ms: int) -> None:
    vault.run_for(backup.FIRST_AFTER_MS + 1000)
    one_backup(vault, FINE)
    made = []
    for _ in range(3):
        vault.clock.jump(DAY - awake_ms)  # asleep: the monotonic clock stands still
        vault.run_for(awake_ms)
        assert backups(vault).running is not None
        made.append(one_backup(vault, FINE))
    vault.run_for(HOUR_MS)
    assert len(set(made)) == 3
    assert backups(vault).running is None


def test_a_clock_that_jumps_ahead_and_back_makes_one_backup_too_many(vault: Room) -> None:
    vault.run_for(backup.FIRST_AFTER_MS + 1000)
    first = one_backup(vault, FINE)
    vault.clock.jump(300 * DAY)
    vault.run_for(backup.LOOK_MS + 1000)
    ahead = one_backup(vault, FINE)
    vault.clock.jump(-300 * DAY)
    vault.run_for(23 * HOUR_MS)
    assert set(vault.writer.copies) == {first, ahead}
    vault.run_for(HOUR_MS)
    third = one_backup(vault, FINE)
    vault.run_for(23 * HOUR_MS)
    assert set(vault.writer.copies) == {first, ahead, third}


def test_a_clock_that_goes_back_does_not_delay_the_next_backup_for_longer_than_a_day(vault: Room) -> None:
    vault.run_for(backup.FIRST_AFTER_MS + 1000)
    first = one_backup(vault, FINE)
    vault.clock.jump(-HOUR_MS // 2)
    vault.run_for(DAY - backup.LOOK_MS)
    assert set(vault.writer.copies) == {first}
    vault.run_for(HOUR_MS)
    assert set(vault.writer.copies) > {first}


def test_a_daemon_that_is_restarted_often_does_not_back_up_each_time(vault: Room) -> None:
    keep(vault, backup_name(START - 3 * HOUR_MS, 1))
    vault.actor = vault.born()
    vault.run_for(20 * HOUR_MS)
    assert vault.writer.copies == []
    vault.run_for(2 * HOUR_MS)
    assert vault.writer.copies != []


def test_only_the_newest_backups_are_kept_and_other_files_left_alone(vault: Room) -> None:
    old = [backup_name(START - days * DAY, 1) for days in (1, 2, 3)]
    for name in (*old, "notes.txt"):
        keep(vault, name)
    vault.say(BackUpNow())
    new = one_backup(vault, FINE)
    assert sorted(path.name for path in vault.backup_dir.iterdir()) == sorted([new, old[0], "notes.txt"])


def test_a_file_in_place_of_the_directory_of_backups_is_named_and_everything_else_goes_on(
    vault: Room, tmp_path: Path
) -> None:
    vault.backup_dir = tmp_path / "backups"
    vault.backup_dir.write_text("mine")
    vault.actor = vault.born()
    told = f"{vault.backup_dir} is not a directory; move or delete it, because backups need a directory there"
    assert vault.status().backup_problem == told, "it is told before the first backup is due"
    assert backups(vault).backups == []
    vault.run_for(2 * DAY)
    assert vault.writer.copies == []
    assert vault.status().last_sweep_at is not None
    vault.say(BackUpNow())
    refused = vault.replies.sent.pop()
    assert isinstance(refused, Failure)
    assert (refused.code, refused.detail) == (ErrorCode.CONFLICT, told)
    assert vault.backup_dir.read_text() == "mine"
    vault.backup_dir.unlink()
    vault.backup_dir.mkdir()
    vault.say(BackUpNow())
    assert one_backup(vault, FINE) in os.listdir(vault.backup_dir)
    assert vault.status().backup_problem is None


def test_a_directory_that_has_the_name_of_an_old_backup_stays(vault: Room) -> None:
    names = (backup_name(START - 90 * DAY, 1), f"{backup_name(START - 91 * DAY, 1)}.partial")
    for name in names:
        (vault.backup_dir / name).mkdir()
    vault.run_for(backup.FIRST_AFTER_MS + 1000)
    one_backup(vault, FINE)
    assert {name for name in os.listdir(vault.backup_dir) if name in names} == set(names)


def test_backups_with_future_names_are_deleted_first(vault: Room) -> None:
    ahead = [backup_name(START + (300 + days) * DAY, 1) for days in (0, 1)]
    true = backup_name(START - DAY, 1)
    for name in (*ahead, true):
        keep(vault, name)
    vault.say(BackUpNow())
    new = one_backup(vault, FINE)
    assert sorted(path.name for path in vault.backup_dir.iterdir()) == sorted([new, true])


def test_a_backup_made_after_the_clock_went_back_is_kept(vault: Room) -> None:
    ahead = [backup_name(START + (300 + days) * DAY, 1) for days in (0, 1)]
    for name in ahead:
        keep(vault, name)
    vault.say(BackUpNow())
    new = one_backup(vault, FINE)
    assert sorted(path.name for path in vault.backup_dir.iterdir()) == sorted([new, ahead[1]])


def test_files_of_interrupted_backups_are_deleted_before_the_next_backup(vault: Room) -> None:
    cut_off = backup_name(START - DAY, 1)
    for suffix in (".partial", ".partial-wal", ".partial-shm", ".partial-journal"):
        keep(vault, cut_off + suffix)
    keep(vault, "my own.partial")
    vault.say(BackUpNow())
    assert [path.name for path in vault.backup_dir.iterdir()] == ["my own.partial"]


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.NOT_APPLIED])
def test_a_backup_continues_after_a_delay_of_the_writer(vault: Room, code: ErrorCode) -> None:
    vault.say(BackUpNow())
    vault.run_for(200)
    vault.writer.refuse = lambda request: Failure(code, "the deadline passed before the request was started")
    vault.run_for(5_000)
    vault.writer.refuse = lambda request: None
    name = one_backup(vault, FINE)
    assert set(vault.writer.copies) == {name}
    assert [entry.name for entry in backups(vault).backups] == [name]


def test_a_backup_ends_when_the_writer_reports_damage(vault: Room) -> None:
    vault.say(BackUpNow())
    vault.run_for(200)
    vault.writer.damage = "torn"
    vault.writer.refuse = lambda request: (
        Failure(ErrorCode.NOT_APPLIED, "torn; nothing was applied") if isinstance(request, AdvanceBackup) else None
    )
    vault.run_for(200)
    assert backups(vault).running is None


def test_a_backup_requested_twice_is_made_once(vault: Room) -> None:
    vault.say(BackUpNow())
    vault.say(BackUpNow())
    first, second = vault.replies.sent
    assert isinstance(first, BackupState)
    assert isinstance(second, BackupState)
    assert first.running == second.running is not None
    one_backup(vault, FINE)
    assert len(vault.checks) == 1


@pytest.mark.parametrize("phase", ["copying", "copied"])
def test_a_backup_requested_during_another_is_made_after_it(vault: Room, phase: str) -> None:
    vault.say(BackUpNow())
    vault.run_for(200)
    vault.writer.copy_state = phase
    vault.run_for(200)
    for _ in range(2):
        vault.say(BackUpNow())
    assert [(state.running, state.queued) for state in vault.replies.sent if isinstance(state, BackupState)][1:] == [
        (vault.writer.copies[0], True)
    ] * 2
    first = one_backup(vault, FINE)
    vault.run_for(200)
    assert backups(vault).running not in (None, first)
    assert not backups(vault).queued
    second = one_backup(vault, FINE)
    vault.run_for(HOUR_MS)
    assert [entry.name for entry in backups(vault).backups] == [second, first]


def test_a_backup_requested_during_a_failing_one_is_made_after_it(vault: Room) -> None:
    vault.say(BackUpNow())
    vault.run_for(200)
    vault.say(BackUpNow())
    one_backup(vault, FLIPPED)
    vault.actor.reload(DAILY)
    second = one_backup(vault, FINE)
    assert [entry.name for entry in backups(vault).backups] == [second]


def test_backups_with_future_names_do_not_delay_the_next_one(vault: Room) -> None:
    ahead = backup_name(START + 300 * DAY, 1)
    keep(vault, ahead)
    vault.actor = vault.born()
    vault.run_for(HOUR_MS)
    made = one_backup(vault, FINE)
    assert (vault.status().last_backup_at or "") < iso(START + DAY)
    vault.run_for(20 * HOUR_MS)
    assert set(vault.writer.copies) == {made}


def test_structural_damage_is_confirmed_by_a_second_copy_before_writes_are_refused(vault: Room) -> None:
    vault.say(BackUpNow())
    one_backup(vault, TORN)
    assert vault.writer.damage is None
    one_backup(vault, TORN)
    assert vault.writer.damage == "page 7 is torn"
    assert vault.status().scrub_findings == ["page 7 is torn"]
    assert vault.actor.counters()["scrub_findings"] == 1
    last = backups(vault).last
    assert last is not None
    assert (last.success, last.findings) == (False, [BackupFinding("structure", "page 7 is torn")])


def test_a_copy_damaged_by_the_disk_does_not_stop_writes(vault: Room) -> None:
    vault.say(BackUpNow())
    one_backup(vault, TORN)
    one_backup(vault, FINE)
    assert vault.writer.damage is None
    assert vault.status().scrub_findings == []


def test_one_damaged_row_is_reported_and_writes_go_on(vault: Room) -> None:
    vault.say(BackUpNow())
    one_backup(vault, FLIPPED)
    assert vault.writer.damage is None
    assert vault.status().scrub_findings == [FLIPPED.findings[0][1]]
    vault.say(BackUpNow())
    one_backup(vault, FINE)
    assert vault.status().scrub_findings == []


def test_a_damaged_database_is_not_backed_up(vault: Room) -> None:
    vault.writer.damage = "torn"
    vault.say(BackUpNow())
    assert vault.writer.copies == []
    assert vault.status().backup_problem == "torn"


def test_a_backup_is_requested_again_after_a_restart_of_the_writer(vault: Room) -> None:
    vault.say(BackUpNow())
    vault.run_for(200)
    vault.writer.refuse = lambda request: Failure(ErrorCode.UNAVAILABLE, "away", retry_after_ms=1000)
    vault.run_for(1000)
    vault.writer.refuse = lambda request: None
    one_backup(vault, FINE)
    assert len(set(vault.writer.copies)) == 1


def test_a_daemon_that_stops_leaves_no_check_behind(vault: Room) -> None:
    vault.say(BackUpNow())
    vault.writer.copy_state = "copied"
    vault.run_for(200)
    vault.actor.drain()
    assert vault.checks[-1].stopped


def graph_requests(room: Room) -> list[Request[Any]]:
    kinds = (SettleAttributes, StoreCommunities, DropCommunities)
    return [request for request in room.writer.asked if isinstance(request, kinds)]


def test_all_aspects_are_settled_in_steps_once_an_hour(room: Room) -> None:
    room.writer.aspects = 60
    room.run_for(HOUR_MS / 2)
    assert graph_requests(room) == [SettleAttributes(""), SettleAttributes("50")]
    room.run_for(HOUR_MS)
    assert len(graph_requests(room)) == 4
    assert room.actor.counters()["attributes_settled"] == 4


def group(name: str, members: int) -> Community:
    return Community(name, "default", name, members, 1.0, "strong", [f"{name}-{number}" for number in range(members)])


def test_communities_are_stored_in_steps_after_a_change_and_outdated_ones_deleted(room: Room) -> None:
    room.writer.stamp, room.writer.outdated = "changed", 700
    room.run_for(2 * 60_000)
    (division,) = room.divisions
    division.found = Communities([group("one", 700), group("two", 200), group("three", 200)])
    room.run_for(60_000)
    stored = [request for request in room.writer.asked if isinstance(request, StoreCommunities)]
    dropped = [request for request in room.writer.asked if isinstance(request, DropCommunities)]
    sizes = [[(each.id, len(each.members)) for each in request.communities] for request in stored]
    assert sizes == [[("one", 500)], [("one", 200), ("two", 200)], [("three", 200)]]
    assert len(dropped) == 2
    assert len({*(each.found_at for each in stored), *(each.found_at for each in dropped)}) == 1
    room.run_for(2 * HOUR_MS)
    assert len(room.divisions) == 1, "nothing has changed since"
    room.writer.stamp = "changed again"
    room.run_for(10 * 60_000)
    assert len(room.divisions) == 2


def test_a_step_that_the_writer_refuses_is_repeated_and_no_community_is_left_out(room: Room) -> None:
    room.writer.stamp = "changed"
    room.run_for(2 * 60_000)
    room.divisions[0].found = Communities([group("one", 3)])
    refused = [Failure(ErrorCode.BUSY, "busy")]
    room.writer.refuse = lambda asked: refused.pop() if refused and isinstance(asked, StoreCommunities) else None
    room.run_for(3 * 60_000)
    stored = [request for request in graph_requests(room) if isinstance(request, StoreCommunities)]
    assert len(stored) == 2
    assert stored[0] == stored[1]


def test_a_process_that_fails_is_started_again_later_and_stores_nothing(room: Room) -> None:
    room.writer.stamp = "changed"
    room.run_for(2 * 60_000)
    room.divisions[0].found = Communities(problem="the process failed (exit code 1)")
    room.run_for(30 * 60_000)
    assert len(room.divisions) == 1
    room.run_for(HOUR_MS)
    assert len(room.divisions) == 2
    assert not any(isinstance(request, StoreCommunities) for request in room.writer.asked)
    room.actor.drain()
    assert room.divisions[1].stopped


@pytest.mark.parametrize("off", ["graph", "autonomous", "frozen"])
def test_the_graph_is_left_alone_while_the_daemon_may_not_act_on_its_own(off: str) -> None:
    base = Config(backup=NO_BACKUPS)
    pipeline = base.memory.pipeline_v2
    changed = {
        "graph": {"graph": msgspec.structs.replace(pipeline.graph, enabled=False)},
        "autonomous": {"autonomous": msgspec.structs.replace(pipeline.autonomous, enabled=False)},
        "frozen": {"autonomous": msgspec.structs.replace(pipeline.autonomous, frozen=True)},
    }[off]
    memory = msgspec.structs.replace(base.memory, pipeline_v2=msgspec.structs.replace(pipeline, **changed))
    room = Room(msgspec.structs.replace(base, memory=memory))
    room.writer.stamp = "changed"
    room.run_for(3 * HOUR_MS)
    assert graph_requests(room) == []
    assert room.divisions == []
    room.actor.reload(base)
    room.run_for(10 * 60_000)
    assert graph_requests(room) != []
    assert len(room.divisions) == 1


MAP = Projection(Points("pca", [1], [[0.0, 0.0]], []), 1, 1)


def wanted(room: Room, agent_id: str = "default", dimensions: int = 2) -> str | None:
    room.say(MakeProjection(agent_id, dimensions))
    answer = room.replies.sent.pop()
    assert isinstance(answer, ProjectionWanted)
    return answer.problem


def stored_maps(room: Room) -> list[tuple[str, int]]:
    return [(one.agent_id, one.dimensions) for one in room.writer.asked if isinstance(one, StoreProjection)]


def test_maps_are_made_one_after_the_other_and_each_once(room: Room) -> None:
    assert [wanted(room), wanted(room), wanted(room, "cleo", 3), wanted(room)] == [None] * 4
    room.run_for(500)
    assert [one.wanted for one in room.maps] == [("default", 2)]
    room.maps[0].made = MAP
    room.run_for(500)
    assert stored_maps(room) == [("default", 2)]
    assert [one.wanted for one in room.maps] == [("default", 2), ("cleo", 3)]
    room.maps[1].made = MAP
    room.run_for(500)
    assert (stored_maps(room)[1:], room.actor.counters()["projections"]) == ([("cleo", 3)], 2)
    wanted(room)
    room.run_for(500)
    assert len(room.maps) == 3, "it is made again if it is asked for again"
    room.actor.drain()
    assert room.maps[2].stopped


def test_a_map_that_cannot_be_made_is_not_tried_again_at_once(room: Room) -> None:
    wanted(room)
    room.run_for(200)
    room.maps[0].made = Projection(problem="the process failed (exit code 1)")
    room.run_for(200)
    assert wanted(room) == "the process failed (exit code 1)"
    assert wanted(room, dimensions=3) is None
    room.run_for(70_000)
    assert wanted(room) is None
    room.run_for(500)
    assert stored_maps(room) == []
    room.no_processes = True
    wanted(room, "cleo")
    room.maps[-1].made = Projection(problem="stopped")
    room.run_for(2_000)
    assert "cannot be started" in (wanted(room, "cleo") or "")


def test_a_map_that_the_writer_refuses_is_stored_later_and_not_made_again(room: Room) -> None:
    refused = [Failure(ErrorCode.BUSY, "busy")]
    room.writer.refuse = lambda asked: refused.pop() if refused and isinstance(asked, StoreProjection) else None
    wanted(room)
    room.run_for(200)
    room.maps[0].made = MAP
    room.run_for(5_000)
    assert (stored_maps(room), len(room.maps)) == ([("default", 2)] * 2, 1)


def test_no_more_maps_wait_than_the_bound(room: Room) -> None:
    answers = [wanted(room, f"agent-{number}") for number in range(MAX_WAITING + 1)]
    assert answers == [None] * MAX_WAITING + ["too many maps are waiting to be made"]
