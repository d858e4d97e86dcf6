"""A running daemon follows changes of its configuration file, and its status shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.system

NOTE = "The homelab uses Traefik for its certificates. Noor prefers four spaces for indentation."
LATER = "The staging host listens on port 5433. Ravi reviews every change to the schema."


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(script=ScriptedModel()) as running:
        yield running


def configured(provider: ScriptedProvider, *, pipeline: bool, tracker: bool = False) -> str:
    return f"""
memory:
  pipelineV2:
    enabled: {str(pipeline).lower()}
    embeddingTracker: {{enabled: {str(tracker).lower()}}}
    extraction: {{provider: ollama, endpoint: "{provider.url}"}}
"""


def derived(daemon: LiveDaemon) -> list[str]:
    return [row[0] for row in daemon.read("SELECT content FROM memories WHERE who = 'pipeline-v2' ORDER BY seq")]


def words(daemon: LiveDaemon) -> tuple[str, list[str], list[str]]:
    """The mode, why jobs wait as the pipeline's status says, and as the daemon's status does."""
    pipeline = daemon.api.get("/api/pipeline/status").ok()
    return pipeline["mode"], pipeline["waiting"], daemon.api.get("/api/status").ok()["waiting"]


def await_words(daemon: LiveDaemon, mode: str, *waiting: str) -> None:
    wanted = (mode, list(waiting), list(waiting))
    eventually(lambda: words(daemon) == wanted, within_s=60, what=f"these words: {wanted}, not {words(daemon)}")


WAITS = "1 job waits: the pipeline is switched off (memory.pipelineV2.enabled); memories stay searchable"


def test_an_enabled_pipeline_extracts_memories_stored_from_then_on(provider: ScriptedProvider) -> None:
    with live_daemon(config=configured(provider, pipeline=False)) as daemon:
        assert {"decider", "extractor"}.isdisjoint(daemon.every_process())
        daemon.api.remember(NOTE)
        await_words(daemon, "disabled")
        daemon.configure(configured(provider, pipeline=True))
        await_words(daemon, "controlled-write")
        daemon.api.remember(LATER)
        eventually(lambda: len(derived(daemon)) == 2, within_s=60, what="the facts of the later memory")
        assert all(fact in LATER for fact in derived(daemon)), "what was stored while it was off is not extracted"
        actors = daemon.every_process()
        assert (actors["decider"]["state"], actors["extractor"]["state"]) == ("up", "up")
        assert daemon.api.get("/health").ok()["status"] == "healthy"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_pending_job_waits_while_the_pipeline_is_off_and_is_completed_later(
    provider: ScriptedProvider,
) -> None:
    provider.stuck = "http_503"
    with live_daemon(config=configured(provider, pipeline=True)) as daemon:
        daemon.api.remember(NOTE)
        eventually(lambda: words(daemon)[1], within_s=60, what="that the model is away")
        daemon.configure(configured(provider, pipeline=False))
        eventually(lambda: {"decider", "extractor"}.isdisjoint(daemon.every_process()), within_s=30, what="both gone")
        assert daemon.api.get("/health").ok()["status"] == "healthy", "nobody is missed who is not wanted"
        await_words(daemon, "disabled", WAITS)
        provider.stuck = None
        daemon.configure(configured(provider, pipeline=True))
        eventually(lambda: len(derived(daemon)) == 2, within_s=60, what="the facts of what waited")
        await_words(daemon, "controlled-write")
        assert daemon.every_process()["extractor"]["restarts"] == 0
        assert daemon.read("SELECT attempts FROM memory_jobs WHERE job_type = 'extract'") == [(1,)]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_the_embedding_tracker_works_with_the_pipeline_off(
    provider: ScriptedProvider,
) -> None:
    def vectors(daemon: LiveDaemon) -> int:
        return int(daemon.read("SELECT count(*) FROM embeddings")[0][0])

    without = configured(provider, pipeline=False) + "embedding: {provider: none}\n"
    quick = "embeddingTracker: {enabled: true, pollMs: 1000}"
    with live_daemon(config=without) as daemon:
        daemon.api.remember(NOTE)
        assert vectors(daemon) == 0
        daemon.configure(configured(provider, pipeline=False))
        daemon.configure(configured(provider, pipeline=False).replace("embeddingTracker: {enabled: false}", quick))
        eventually(lambda: vectors(daemon) == 1, within_s=60, what="a vector")
        assert "decider" not in daemon.every_process()
        assert words(daemon)[0] == "disabled"
        assert provider.prompts == []
        assert daemon.stop() == 0


def test_an_invalid_or_removed_file_changes_nothing_and_is_named_until_it_is_mended() -> None:
    frozen = "memory: {pipelineV2: {mutationsFrozen: true}}"
    with live_daemon(config=frozen) as daemon:
        refused = {"content": "The staging host listens on port 5433"}
        assert daemon.api.post("/api/memory/remember", refused).status == 503

        def warning() -> str:
            return str(daemon.api.get("/health").json["detail"])

        daemon.configure("gateway: {host: 0.0.0.0}")
        eventually(lambda: "gateway.host" in warning(), what="the invalid file is named")
        assert daemon.api.post("/api/memory/remember", refused).status == 503
        (daemon.workspace / "agent.yaml").unlink()
        eventually(lambda: "is missing" in warning(), what="the missing file is named")
        for useless, named in (("", "no values"), ("memory:\n  # cut\n", "no values"), ("search: {alpha: 7}", "alpha")):
            daemon.configure(useless)
            eventually(lambda named=named: named in warning(), what=f"{named} is named")  # type: ignore[misc]
        assert daemon.api.post("/api/memory/remember", refused).status == 503
        written = daemon.api.post("/api/config", {"file": "agent.yaml", "content": "search: {alpha: 0.4}\n"})
        assert written.refused(403)["field"] == "memory.pipelineV2.mutationsFrozen"
        daemon.configure("search: {alpha: 0.7}")
        eventually(lambda: warning() == "" and daemon.api.post("/api/memory/remember", refused).status == 200)
        assert daemon.api.post("/api/config", {"file": "agent.yaml", "content": "search: {alpha: 9}\n"}).status == 400
        assert daemon.api.post(
            "/api/config", {"file": "agent.yaml", "content": "memory: {pipelineV2: {enabled: false}}"}
        ).ok()
        eventually(lambda: daemon.api.get("/api/pipeline/status").ok()["mode"] == "disabled", what="the posted file")


def test_a_configuration_that_was_changed_meanwhile_is_not_overwritten() -> None:
    with live_daemon() as daemon:
        read = next(
            each["content"] for each in daemon.api.get("/api/config").ok()["files"] if each["name"] == "agent.yaml"
        )
        mine, theirs = f"{read}\n# mine\n", f"{read}\n# theirs\n"
        daemon.api.post("/api/config", {"file": "agent.yaml", "content": theirs, "former": read}).ok()
        refused = daemon.api.post("/api/config", {"file": "agent.yaml", "content": mine, "former": read})
        assert "has changed" in refused.refused(409)["error"]
        assert (daemon.workspace / "agent.yaml").read_text() == theirs
        daemon.api.post("/api/config", {"file": "USER.md", "content": "# Me", "former": ""}).ok()
        daemon.api.post("/api/config", {"file": "USER.md", "content": "# You", "former": ""}).refused(409)
