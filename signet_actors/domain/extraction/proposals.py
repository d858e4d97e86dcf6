"""Turn a model's decision about a fact into a proposal about a memory that was shown to the model.

A target is named by its number in the prompt; a full id is accepted only if it was shown. So no text, of a model or of
a memory, can reach a memory outside the candidates. The reason, the only text of the decision that is kept, may quote
what the model was shown, and is erased together with it. Warnings stay with the job and quote nothing.

Source: memory-pipeline.txt "Decision Stage"; memory-system.txt "Decision Engine";
docs/compatibility.md "Worked examples: decision"; docs/decisions.md 19; docs/reliability.md R23.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from msgspec import Struct, structs

from signet_actors.domain.extraction.contradiction import needs_semantic_check, syntactic_contradiction
from signet_actors.domain.extraction.facts import UNPARSEABLE, Fact, Warnings, confidence_of, short
from signet_actors.domain.extraction.injection_detector import InjectionKind, detect_injection
from signet_actors.domain.extraction.llm_output import read_json

Action = Literal["add", "update", "delete", "none"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
DESTRUCTIVE: Final = ("update", "delete")

MAX_CANDIDATES: Final = 5
MAX_REASON_CHARS: Final = 500
NO_CANDIDATES_REASON: Final = "No existing memory covers this fact"
"""The reason of an addition for which no model was asked."""

_TARGET_KEYS: Final = ("targetId", "target_id", "target")


class Candidate(Struct, frozen=True):
    """A memory shown to the decider, with the version shown. ``recalled_at`` is when a recall last returned it."""

    id: str
    version: int
    type: str
    content: str
    pinned: bool = False
    recalled_at: str | None = None


class Proposal(Struct, frozen=True):
    """What to do with ``fact``. Only updates and deletions have a target.

    ``semantic_contradiction`` is None if no model was asked. ``suspicion`` is the kind of instruction that the fact
    looks like, or None.
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
    suspicion: InjectionKind | None = None

    @property
    def contradiction_risk(self) -> bool:
        """True if a contradiction is suspected, so that a person should review the proposal first."""
        return self.syntactic_contradiction or self.semantic_contradiction is True


class Decision(Struct, frozen=True):
    """The result of one answer. Without a proposal, the warnings say why; ``parsed`` is False if there was no JSON."""

    proposal: Proposal | None = None
    warnings: tuple[str, ...] = ()
    repaired: int = 0
    parsed: bool = True


def propose_add(fact: Fact) -> Proposal:
    """Return the proposal for a fact without candidates. No model is asked."""
    return Proposal("add", fact, fact.confidence, NO_CANDIDATES_REASON)


def parse_decision(answer: str | bytes, fact: Fact, candidates: Sequence[Candidate]) -> Decision:
    """Return the proposal in a model's ``answer`` about ``fact``; ``candidates`` in prompt order. Never raises."""
    output = read_json(answer, ("action",))
    value = output.value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return Decision(warnings=(UNPARSEABLE,), parsed=False)
    warnings = Warnings()
    if output.repaired or output.dropped:
        warnings.add(f"Repaired LLM output: {', '.join(output.repairs)}")
    proposal = _proposal(value, fact, candidates[:MAX_CANDIDATES], warnings)
    if proposal is not None:
        proposal = structs.replace(proposal, warnings=warnings.all())
    return Decision(proposal, warnings.all(), output.repaired)


def _proposal(
    value: dict[object, object], fact: Fact, candidates: Sequence[Candidate], warnings: Warnings
) -> Proposal | None:
    raw_action = value.get("action")
    name = raw_action.strip().lower() if isinstance(raw_action, str) and len(raw_action) < 40 else ""
    action = next((known for known in ACTIONS if known == name), None)
    if action is None:
        warnings.add(f"Unknown decision action: {type(raw_action).__name__}")
        return None
    reason = value.get("reason")
    reason = short(reason, MAX_REASON_CHARS) if isinstance(reason, str) else ""
    if not reason:
        warnings.add(f"Decision without reason: {action}")
        return None
    confidence = confidence_of(value.get("confidence"), warnings, quoted=False)
    if action not in DESTRUCTIVE:
        return Proposal(action, fact, confidence, reason)
    raw_target = next((value[key] for key in _TARGET_KEYS if value.get(key) is not None), None)
    if raw_target is None:
        warnings.add(f"Decision without target: {action}")
        return None
    target = target_of(raw_target, candidates)
    if target is None:
        warnings.add(f"Decision target is not a candidate: {type(raw_target).__name__}")
        return None
    return Proposal(
        action,
        fact,
        confidence,
        reason,
        target_id=target.id,
        target_version=target.version,
        syntactic_contradiction=syntactic_contradiction(fact.content, target.content),
    )


def target_of(raw: object, candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that ``raw`` names, by full id or by its number in the prompt, or None.

    The number may be a number or a text (``2``, ``"#2"``, ``"[2]"``). None for anything else: a list, True, part of an
    id, or a number that was not shown.
    """
    if isinstance(raw, str):
        text = raw.strip()
        for candidate in candidates:
            if candidate.id == text:
                return candidate
        text = text.strip("#[]().: ")
        if not (text.isascii() and text.isdecimal() and len(text) <= 2):
            return None
        raw = int(text)
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 1_000:
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= len(candidates):
        return None
    return candidates[raw - 1]


def proposal_target(proposal: Proposal, candidates: Sequence[Candidate]) -> Candidate | None:
    return next((candidate for candidate in candidates if candidate.id == proposal.target_id), None)


def proposal_needs_semantic_check(proposal: Proposal, candidates: Sequence[Candidate], *, enabled: bool) -> bool:
    """Return whether to ask a model if the fact contradicts the target."""
    target = proposal_target(proposal, candidates)
    return target is not None and needs_semantic_check(
        proposal.action, proposal.fact.content, target.content, enabled=enabled
    )


def with_semantic(proposal: Proposal, contradicts: bool) -> Proposal:
    return structs.replace(proposal, semantic_contradiction=contradicts)


def with_suspicion(proposal: Proposal, source: str) -> Proposal:
    """Return ``proposal``, marked as suspicious if its fact looks like an instruction.

    ``source`` is the note from which the fact was extracted.
    """
    mark = detect_injection(proposal.fact.content, source)
    if mark is None:
        return proposal
    warning = f"Looks like an instruction to an agent: {mark}"
    return structs.replace(proposal, suspicion=mark, warnings=(*proposal.warnings, warning))
