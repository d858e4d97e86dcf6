"""The pipeline on the command line: with a model, in shadow mode, and without a model."""

from __future__ import annotations

import pytest

from signet_actors.domain.extraction.proposals import NO_CANDIDATES_REASON
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, signet
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.system

SENTENCES = (
    "The homelab uses Traefik for its certificates.",
    "Noor prefers four spaces for indentation.",
    "The site is released from the release branch.",
)
NOTE = " ".join(SENTENCES)


def configured(provider: ScriptedProvider, more: str = "") -> str:
    return f"""
memory:
  pipelineV2:
    extraction: {{provider: ollama, endpoint: "{provider.url}"}}
{more}
"""


def runs(daemon: LiveDaemon) -> list[str]:
    return [row[0] for row in daemon.read("SELECT id FROM pipeline_runs ORDER BY seq")]


def test_facts_relations_and_history_of_a_note_are_shown_and_undone() -> None:
    with (
        ScriptedProvider(script=ScriptedModel()) as provider,
        live_daemon(config=configured(provider)) as daemon,
    ):
        source = signet(daemon, "remember", NOTE).strip()
        (run,) = eventually(lambda: runs(daemon), within_s=60, what="a run")
        said = signet(daemon, "show", "--history", source)
        assert f"run {run} (controlled_write, " in said
        facts = [line.split("\t") for line in said.splitlines() if line.startswith("add\tcreated\t")]
        assert [fact[4] for fact in facts] == list(SENTENCES)
        assert "relation: homelab uses Traefik\n" in said
        for _, _, _, memory, text in facts:
            shown = signet(daemon, "show", "--history", memory)
            assert f"source id: {source}\n" in shown
            assert f"\n{text}\n" in shown
            assert f"\tcreated\tpipeline-v2\t{NO_CANDIDATES_REASON}\t{text}\n" in shown
        assert signet(daemon, "pipeline", "undo", run, "--yes") == "Undid 3 of 3 changes.\n"
        assert signet(daemon, "pipeline", "undo", run, "--yes") == ("Already undone earlier: 3 of 3 changes.\n")
        assert f"run {run} (controlled_write, " in signet(daemon, "show", "--history", source)
        assert [line.split("\t")[0] for line in signet(daemon, "list").splitlines()] == [source]
        assert daemon.stop() == 0


def test_in_shadow_mode_show_lists_proposed_facts_and_stores_no_memory() -> None:
    with (
        ScriptedProvider(script=ScriptedModel()) as provider,
        live_daemon(config=configured(provider, "    shadowMode: true")) as daemon,
    ):
        source = signet(daemon, "remember", NOTE).strip()
        eventually(lambda: runs(daemon), within_s=60, what="a run")
        said = signet(daemon, "show", "--history", source)
        for sentence in SENTENCES:
            assert f"\tnone\tpipeline-shadow\tshadow\tproposed add: {sentence}\n" in said
            assert f"add\trecorded\tshadow\t\t{sentence}\n" in said
        assert [line.split("\t")[0] for line in signet(daemon, "list").splitlines()] == [source]
        assert daemon.stop() == 0


NOBODY = "the provider is auto, and Ollama cannot be reached at http://127.0.0.1:9 "
WITHOUT = 'memory: {pipelineV2: {extraction: {endpoint: "http://127.0.0.1:9"}}}\n'


def test_without_a_provider_the_commands_report_the_same_reason() -> None:
    with live_daemon(config=WITHOUT) as daemon:
        source = signet(daemon, "remember", NOTE).strip()
        assert source in signet(daemon, "recall", "which indentation")
        signet(daemon, "edit", source, "--content", "The homelab uses Caddy.")
        eventually(lambda: NOBODY in str(daemon.api.get("/api/status").ok()["waiting"]), within_s=60, what="the reason")
        (waiting,) = daemon.api.get("/api/status").ok()["waiting"]
        assert waiting.startswith("1 job waits; waiting uses no attempts, and memories stay searchable. extract: ")
        assert daemon.api.get("/api/pipeline/status").ok()["waiting"] == [waiting]
        assert f"waiting: {waiting}\n" in signet(daemon, "pipeline")
        status = signet(daemon, "status")
        assert "facts: off, needs a model (`signet providers`)\n" in status
        assert "waiting: " not in status
        assert "model: none (optional: storing and recall work without one)\n" in signet(daemon, "providers")
        doctor = signet(daemon, "doctor")
        assert "model: none (optional, extracts facts)\n" in doctor
        for told in (signet(daemon, "providers"), doctor):
            assert "ollama pull qwen3:4b" in told
            assert "the daemon finds it within a minute, without a restart" in told
        signet(daemon, "forget", source, "--yes")
        signet(daemon, "recover", source)
        assert daemon.read("SELECT DISTINCT attempts FROM memory_jobs WHERE job_type = 'extract'") == [(0,)]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
