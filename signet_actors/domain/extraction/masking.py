"""Mask secrets in what a model is sent, and in its output before it is stored or shown to a model again.

A text is masked before a model reads it, but the model may reassemble a secret that was not recognized in the text, for
example a token split by a line break.

Source: docs/security.md "Poisoned memories".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from signet_actors.domain.extraction.facts import ExtractionResult
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import InvalidRequest

_REDACTOR: Final = Redactor()


def masked(text: str) -> str:
    """Return ``text`` with each secret replaced. A text with too many secrets is replaced as a whole."""
    try:
        return _REDACTOR.clean(text)[0]
    except InvalidRequest:
        return "[REDACTED]"


def masked_all(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(masked, texts))


def masked_extraction(result: ExtractionResult) -> ExtractionResult:
    """Return ``result`` with the secrets of its facts, relations and warnings replaced."""
    return structs.replace(
        result,
        facts=tuple(structs.replace(fact, content=masked(fact.content)) for fact in result.facts),
        entities=tuple(
            structs.replace(
                triple,
                source=masked(triple.source),
                relationship=masked(triple.relationship),
                target=masked(triple.target),
            )
            for triple in result.entities
        ),
        warnings=masked_all(result.warnings),
    )


def masked_proposal(proposal: Proposal) -> Proposal:
    """Return ``proposal`` with the secrets of its reason and warnings replaced; its fact has been masked before."""
    return structs.replace(proposal, reason=masked(proposal.reason), warnings=masked_all(proposal.warnings))
