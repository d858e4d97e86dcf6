"""What the kinds of jobs that need the language model have in common: how many run at once, and when they pause."""

from __future__ import annotations

import msgspec

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.config.schema import Config
from signet_actors.domain.extraction.injected_text import InjectedParts, own_text
from signet_actors.extractor.job_runner import JobRun, Pause
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.control import UP


class ModelJob:
    """A kind of ``at_once`` jobs that pauses while its model cannot be asked."""

    at_once = 1
    needs_role = ""
    """The role of which a process must be up, because each job asks it."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def slots(self, config: Config) -> int:  # noqa: ARG002 - fixed, unless a kind says otherwise
        return self.at_once

    def limit(self) -> int:
        """Return 1 while the circuit breaker is half open, else all slots."""
        return 1 if self._resources.model.trying else self.slots(self._resources.actor.config)

    def pause(self, config: Config) -> Pause | None:
        """Return a pause while no call would be made: an outage is not a failure of the job (docs/decisions.md 14)."""
        reason = self.switched_off(config.memory.pipeline_v2)
        if reason is not None:
            return Pause(f"memory.pipelineV2.{reason}")
        children = self._resources.actor.tree.children
        if self.needs_role and not any(child.role == self.needs_role and child.state == UP for child in children):
            return Pause(f"no {self.needs_role} is up")
        waits = self._resources.model.waits()
        return None if waits is None else Pause(*waits)

    def switched_off(self, pipeline: PipelineV2Config) -> str | None:
        """Return the key and the value that switch this kind off, None if it is on."""
        return None if pipeline.enabled else "enabled is false"

    def healthy_since(self, moment_ns: int) -> bool:
        return self._resources.model.healthy_since(moment_ns)

    @staticmethod
    def own_text(run: JobRun) -> tuple[str, int]:
        """Return the memory's text without what a session start or recall injected, and the count of such blocks."""
        injected = None if run.job.payload is None else msgspec.json.decode(run.job.payload, type=InjectedParts)
        return own_text(run.subject.content, run.subject.content_hash, injected)
