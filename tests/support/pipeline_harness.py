"""A store test environment whose jobs are leased and reported as an extractor does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.domain.extraction.facts import EntityTriple, Fact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.features.runs.api import GET_RUN, UNDO_RUN, RunReply, UndoRequest
from signet_actors.features.runs.reads import get_run
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.leases import JobsLeased, LeasedJob, LeaseJobs
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Caller, Failure, Principal, message_of
from signet_actors.protocol.pipeline import AppliedProposal, ApplyProposals, ProposalsApplied
from signet_actors.store.engine import Snapshot
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, raw

LEASE_MS = 60_000


EMBEDDING = EmbeddingConfig(provider="openai", model=MODEL, dimensions=DIMENSIONS)


def configured(
    *,
    enabled: bool = True,
    shadow: bool = False,
    frozen: bool = False,
    allow_update_delete: bool = False,
    hints: bool = False,
    confirm: Literal["auto", "review"] = "auto",
) -> Config:
    """Return the default configuration with these pipeline settings and the test model for vectors."""
    config = Config()
    pipeline = config.memory.pipeline_v2
    pipeline = msgspec.structs.replace(
        pipeline,
        enabled=enabled,
        shadow_mode=shadow,
        mutations_frozen=frozen,
        autonomous=msgspec.structs.replace(pipeline.autonomous, allow_update_delete=allow_update_delete),
        hints=msgspec.structs.replace(pipeline.hints, enabled=hints),
        confirm=confirm,
    )
    memory = msgspec.structs.replace(config.memory, pipeline_v2=pipeline)
    return msgspec.structs.replace(config, memory=memory, embedding=EMBEDDING)


def add(content: str, *, confidence: float = 0.9, kind: str = "fact") -> Proposal:
    """Return a proposal for a new fact."""
    return Proposal("add", Fact(content, kind, confidence), confidence, "nothing says so yet")


def change(
    action: Any, content: str, target: tuple[str, int], *, contradiction: bool = False, confidence: float = 0.9
) -> Proposal:
    """Return an update or a deletion of ``target``: the id, and the version that the model saw."""
    return Proposal(
        action,
        Fact(content, "fact", confidence),
        confidence,
        "it says otherwise now",
        target_id=target[0],
        target_version=target[1],
        syntactic_contradiction=contradiction,
    )


def undo_run(run_id: str, principal: Principal, read: ReadScope | None = None) -> Any:
    """Return the command that undoes a run."""
    agent_id = Caller().agent_id if read is None else read.agent_id
    caller = Caller(agent_id, principal, path={"run": run_id})
    return message_of(UNDO_RUN)(caller=caller, request=UndoRequest())


class PipelineHarness(StoreRoom):
    """``take`` leases one job, ``report`` reports its result."""

    def __init__(self, directory: Path, *, config: Config | None = None) -> None:
        super().__init__(directory, config=config or configured())
        self.runs = 0

    def reconfigure(self, config: Config) -> None:
        """Make the writer use this configuration from the next commit on."""
        self.config = self.group.config = config

    def take(self, kind: str = "extract") -> LeasedJob:
        (job,) = self.take_all(kind, 1)
        return job

    def take_all(self, kind: str = "extract", limit: int = 64) -> list[LeasedJob]:
        answer = self.ask(LeaseJobs(kinds=(kind,), limit=limit, lease_ms=LEASE_MS))
        assert isinstance(answer, JobsLeased), answer
        return answer.jobs

    def report(
        self,
        job: LeasedJob,
        *proposals: Proposal,
        mode: str = "full",
        entities: Sequence[EntityTriple] = (),
        vectors: Sequence[Sequence[float] | None] = (),
        run_id: str | None = None,
        message_id: str | None = None,
        **fields: Any,
    ) -> Any:
        self.runs += run_id is None
        given = [vector for vector in vectors if vector is not None]
        places = iter(range(len(given)))
        command = ApplyProposals(
            job_id=job.id,
            lease_id=job.lease_id,
            run_id=run_id or f"run-{self.runs}",
            mode=mode,
            provider="scripted",
            model="qwen3:4b",
            proposals=proposals,
            entities=tuple(entities),
            vectors=tuple(-1 if vector is None else next(places) for vector in vectors),
            vector_model=MODEL,
            dimensions=DIMENSIONS,
            **fields,
        )
        return self.ask(command, [raw(vector) for vector in given], message_id=message_id)

    def extract(self, *proposals: Proposal, mode: str = "full", **fields: Any) -> list[AppliedProposal]:
        """Report these proposals for the longest-waiting job, and return what became of them."""
        answer = self.report(self.take(), *proposals, mode=mode, **fields)
        assert isinstance(answer, ProposalsApplied), answer
        return answer.results

    def events(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history of a memory, oldest first, with ``metadata`` decoded."""
        rows = self.connection.execute(
            "SELECT event, changed_by, actor_type, reason, old_content, new_content, job_id, metadata"
            " FROM memory_history WHERE memory_id = ? ORDER BY seq",
            (memory_id,),
        ).fetchall()
        names = ("event", "changed_by", "actor_type", "reason", "old_content", "new_content", "job_id", "metadata")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [event | {"metadata": msgspec.json.decode(event["metadata"] or "null")} for event in found]

    def memory(self, memory_id: str, columns: str) -> Any:
        return self.connection.execute(f"SELECT {columns} FROM memories WHERE id = ?", (memory_id,)).fetchone()


def refused(answer: Any) -> Failure:
    assert isinstance(answer, Failure), answer
    return answer


def run_of(view: Snapshot, run_id: str, agent_id: str = "default") -> RunReply:
    """Return the run with its proposals, as the agent reads it. Raises NotFound."""
    asked = message_of(GET_RUN)(caller=Caller(agent_id, path={"run": run_id}), request=AgentFields())
    return get_run(view, asked)
