"""The extractor's mailbox. Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 14 and 23."""

from __future__ import annotations

from typing import Literal

from signet_actors.domain.providers import ModelState, UsageStage
from signet_actors.operations.embeddings import Tracker
from signet_actors.operations.pipeline import JobRunnerReport
from signet_actors.protocol.message import Failure, Message, Request


class ExtractorStatus(Message, frozen=True, tag="extractor.status"):
    """The extractor's status. ``mode`` of the pipeline: off, shadow, frozen, controlled_write or full.

    ``synthesis``: the model that makes ``MEMORY.md``, None if that is switched off.
    """

    mode: str
    model: ModelState
    runners: list[JobRunnerReport]
    rejected: dict[str, int]
    tracker: Tracker = Tracker()
    synthesis: ModelState | None = None


class GetExtractorStatus(Request[ExtractorStatus], frozen=True, tag="extractor.get_status"):
    """Ask for the status."""


class Summarized(Message, frozen=True, tag="extractor.summarized"):
    """A few sentences by ``model``; None if its answer was empty or unreadable."""

    summary: str | None
    model: str


class Summarize(Request[Summarized], frozen=True, tag="extractor.summarize"):
    """Summarise ``texts``, best first, in answer to ``query``: the result of a recall, which its caller may read.

    Nothing is stored. The reply comes before the message's deadline or is a ``Failure``.
    """

    query: str
    texts: tuple[str, ...]


class AggregateAnswered(Message, frozen=True, tag="extractor.aggregate_answered"):
    """What the model said: ``queries`` of the planning; ``answer``, and the numbers of the results that it cites.

    ``answer`` None: there is none, or the call failed. ``usage`` None: no call was made, since no model can be called.
    """

    usage: UsageStage | None = None
    queries: tuple[str, ...] = ()
    answer: str | None = None
    cited: tuple[int, ...] = ()


class AskAggregate(Request[AggregateAnswered], frozen=True, tag="extractor.ask_aggregate"):
    """Ask the model for at most ``most`` further queries, or for an answer to ``query`` from ``texts``, best first.

    Nothing is stored. The reply comes before the message's deadline or is a ``Failure``.
    """

    stage: Literal["planning", "synthesis"]
    query: str
    texts: tuple[str, ...]
    most: int = 0


class Synthesized(Message, frozen=True, tag="extractor.synthesized"):
    """The answer of ``model``, as it came."""

    text: str
    model: str


class Synthesize(Request[Synthesized], frozen=True, tag="extractor.synthesize"):
    """Have the model that makes ``MEMORY.md`` answer ``prompt``, in at most ``max_tokens``. Nothing is stored.

    The reply comes before the message's deadline or is a ``Failure``.
    """

    prompt: str
    max_tokens: int


class VectorsAwaited(Message, frozen=True, tag="extractor.vectors_awaited"):
    """The memories whose vectors are committed; those of the others are not expected soon, or are ``late``."""

    stored: list[str]
    late: bool = False


class AwaitVectors(Request[VectorsAwaited], frozen=True, tag="extractor.await_vectors"):
    """Wait at most ``wait_ms`` until memories have vectors for these ``versions`` of them, or later ones.

    This starts no work: the ``embed`` jobs exist already. Replied to at once while no such jobs are taken.
    """

    versions: dict[str, int]
    wait_ms: int


ExtractorRequest = GetExtractorStatus | Summarize | AskAggregate | Synthesize | AwaitVectors
ExtractorReply = ExtractorStatus | Summarized | AggregateAnswered | Synthesized | VectorsAwaited | Failure
