"""The decider: for each fact, search candidates, ask a model, and reply with a proposal. It writes nothing.

Source: memory-pipeline.txt "Decision Stage", "Semantic Contradiction Detection"; docs/architecture.md
"The path of a remember".
"""

from __future__ import annotations

from collections import Counter
from typing import assert_never

import msgspec

from signet_actors.config.schema import Config
from signet_actors.decider.fact_decider import FactDecider
from signet_actors.protocol import decider as messages
from signet_actors.protocol.writer import WriterReply
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.async_actor import AsyncActor

_MAX_UNANSWERED = 256
_WRITER_ASKS = 64


class Decider:
    def __init__(self, actor: AsyncActor) -> None:
        self._actor = actor
        self._decisions: Counter[str] = Counter()

    async def start(self) -> None:
        """Open the mailbox. A model need not be available: requests then fail with an error."""
        actor = self._actor
        replies: msgspec.msgpack.Decoder[WriterReply] = msgspec.msgpack.Decoder(WriterReply)
        writer = actor.connect("writer", replies, max_items=_WRITER_ASKS, resend=True)
        extraction = actor.config.memory.pipeline_v2.extraction
        self._model = ProviderManager(extraction, actor.clock, actor.log, writer)
        self._fact_decider = FactDecider(actor, self._model)
        actor.spawn(self._model.run())
        requests: msgspec.msgpack.Decoder[messages.DeciderRequest] = msgspec.msgpack.Decoder(messages.DeciderRequest)
        actor.open_mailbox("decider", requests, self._answer, max_unanswered=_MAX_UNANSWERED)

    def counters(self) -> dict[str, float]:
        return {f"decided_{name}": count for name, count in self._decisions.items()}

    async def reload(self, config: Config) -> None:
        self._model.reconfigure(config.memory.pipeline_v2.extraction)

    async def drain(self, grace_s: float) -> None:  # noqa: ARG002 - nothing is waited for
        """Close the model. The extractor, the only client, has stopped before; closing the mailbox rejects the rest."""
        await self._model.close()

    async def _answer(
        self, incoming: Incoming[messages.DeciderRequest]
    ) -> messages.Decided | messages.ContradictionChecked | messages.DeciderStatus:
        match incoming.body:
            case messages.Decide() as asked:
                decided = await self._fact_decider.decide(asked, incoming.frames, incoming.header)
                proposal = decided.proposal
                action = "echo" if decided.echo is not None else "no_proposal"
                self._decisions[action if proposal is None else proposal.action] += 1
                return decided
            case messages.CheckContradiction(first=first, second=second):
                said = await self._fact_decider.ask_contradiction(first, second)
                return messages.ContradictionChecked(said.contradicts, said.confidence)
            case messages.GetDeciderStatus():
                return messages.DeciderStatus(self._model.state(), dict(self._decisions))
            case _:
                assert_never(incoming.body)
