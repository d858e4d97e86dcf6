"""Limits on jobs that need the language model, by the state of its provider."""

from __future__ import annotations

from signet_actors.extractor.job_runner import Pause
from signet_actors.providers.llm.provider_manager import ProviderManager


def model_pause(model: ProviderManager) -> Pause | None:
    """Return a pause while no call would be made: an outage is not a failure of the job (docs/decisions.md 14)."""
    waits = model.waits()
    return None if waits is None else Pause(*waits)


def model_limit(model: ProviderManager, slots: int) -> int:
    """Return 1 while the circuit breaker is half open, else ``slots``."""
    return 1 if model.trying else slots
