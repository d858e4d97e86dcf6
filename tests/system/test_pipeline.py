"""The pipeline as a user meets it: the real daemon, a model server on loopback, and what is remembered in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.bus_room import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider

NOTE = (
    "The homelab uses Traefik for its certificates. Noor prefers four spaces for indentation."
    " The site is released from the release branch."
)
SENTENCES = [f"{sentence}." for sentence in NOTE.rstrip(".").split(". ")]


def config_for(provider: ScriptedProvider, more: str = "", extraction: str = "") -> str:
    return f"""
memory:
  pipelineV2:
    extraction:
      provider: ollama
      endpoint: {provider.url}
{extraction}
{more}
"""


@contextmanager
def pipeline(model: ScriptedModel | None = None, more: str = "", extraction: str = "") -> Iterator[Any]:
    with (
        ScriptedProvider(script=model or ScriptedModel()) as provider,
        live_daemon(config=config_for(provider, more, extraction)) as daemon,
    ):
        yield daemon, provider
        assert daemon.broken_invariants() == []


def finished(daemon: LiveDaemon, kind: str = "extract", state: str = "completed", count: int = 1) -> None:
    """So many jobs of the kind have come to the state."""
    sql = "SELECT count(*) FROM memory_jobs WHERE job_type = ? AND status = ?"
    eventually(lambda: daemon.read(sql, kind, state)[0][0] >= count, within_s=30, what=f"{count} {kind} jobs {state}")


def derived(daemon: LiveDaemon) -> list[str]:
    return [row[0] for row in daemon.read("SELECT content FROM memories WHERE who = 'pipeline-v2' ORDER BY seq")]


def test_a_memory_of_three_sentences_becomes_three_facts_and_its_entities_are_kept_with_the_job() -> None:
    with pipeline() as (daemon, provider):
        source = daemon.api.remember(NOTE)["id"]
        finished(daemon)
        assert derived(daemon) == SENTENCES
        ((result,),) = daemon.read("SELECT result FROM memory_jobs WHERE job_type = 'extract' AND memory_id = ?", source)
        assert '"target":"Traefik"' in result.replace(" ", "")
        events = daemon.read(
            "SELECT event, changed_by FROM memory_history WHERE memory_id IN"
            " (SELECT id FROM memories WHERE who = 'pipeline-v2')"
        )
        assert events == [("created", "pipeline-v2")] * 3
        assert daemon.memory(source)["extraction_status"] == "completed" if hasattr(daemon, "memory") else True


def test_in_shadow_mode_there_is_history_and_nothing_else() -> None:
    with pipeline(more="    shadowMode: true\n") as (daemon, provider):
        daemon.api.remember(NOTE)
        finished(daemon)
        assert derived(daemon) == []
        assert daemon.read("SELECT count(*) FROM memories") == [(1,)]
        assert daemon.read("SELECT changed_by, count(*) FROM memory_history WHERE event = 'none' GROUP BY 1") == [
            ("pipeline-shadow", 3)
        ]
