"""When a job that needs the language model is not taken, and how many at once are."""

from __future__ import annotations

from signet_actors.extractor.job_runner import Pause
from signet_actors.providers.llm.provider_manager import ProviderManager


def model_pause(model: ProviderManager) -> Pause | None:
    """No job is taken while no call would be made: an outage is not the job's failure (docs/decisions.md 14)."""
    waits = model.waits()
    return None if waits is None else Pause(*waits)


def model_limit(model: ProviderManager, slots: int) -> int:
    """One job at a time while the circuit tries whether the provider is back."""
    return 1 if model.trying else slots
