"""What a model proposes for one fact, already validated against the candidates that it was shown.

Source: memory-pipeline.txt "Decision Stage"; decisions.md 16, 19.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from signet_actors.domain.extraction.facts import Fact

Action = Literal["add", "update", "delete", "none"]


class Proposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """``target_version`` is the version that the candidate had when the model saw it.

    ``semantic_contradiction`` is None where no model was asked.
    """

    action: Action
    fact: Fact
    confidence: float
    reason: str
    target_id: str | None = None
    target_version: int | None = None
    syntactic_contradiction: bool = False
    semantic_contradiction: bool | None = None
    warnings: tuple[str, ...] = ()

    @property
    def contradiction_risk(self) -> bool:
        """Whether either detector saw a contradiction between the fact and its target."""
        return self.syntactic_contradiction or bool(self.semantic_contradiction)
