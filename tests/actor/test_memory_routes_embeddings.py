"""The embedding routes, and the file that a note for Codex is written to."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from signet_actors.config.schema import Config, RedactionConfig
from signet_actors.domain.providers import ModelState, Selection
from signet_actors.errors import Unavailable
from signet_actors.operations.embeddings import Tracker
from signet_actors.protocol.embeddings import (
    EmbeddingHealth,
    EmbeddingRow,
    EmbeddingsExported,
    ExportEmbeddings,
    GetEmbeddingHealth,
)
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, KindQueue, PipelineStatus
from tests.support.memory_api import MemoryApi, memory

NOBODY = Selection("none", "none", "", "nobody was asked", False, "")
NOTE = "/api/memory/codex-native-note"
AWS_KEY = "AK" + "IA" + "QYLPMN5HFIQR7B2X"  # built here, so that no complete one is in the repository


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return MemoryApi(tmp_path)


# export


def test_vectors_are_exported_as_numbers_when_asked_for(api: MemoryApi) -> None:
    frame = np.array([0.1, -0.25, 1.0], dtype="<f4").tobytes()
    page = EmbeddingsExported([EmbeddingRow(memory(), 0), EmbeddingRow(memory(id="m2"), None)], total=2)
    api.bus.script[ExportEmbeddings] = (page, [frame])
    answer = api.request("GET", "/api/embeddings?vectors=true")
    first, second = answer.json["embeddings"]
    assert first["vector"] == [0.1, -0.25, 1.0]
    assert "vector" not in second
    assert answer.json["hasMore"] is False


# status


def test_the_status_shows_the_progress_of_missing_vectors(api: MemoryApi) -> None:
    tracker = Tracker(running=True, processed=5, failed=2, skipped_cycles=1, last_cycle_at="2026-02-21T09:00:00.000Z")
    api.bus.script[GetExtractorStatus] = ExtractorStatus("full", ModelState(NOBODY, None), [], {}, tracker)
    queues = [KindQueue("embed", pending=7, delayed=3, leased=4, dead=9), KindQueue("extract", pending=100)]
    api.bus.script[GetPipelineStatus] = PipelineStatus(queues, [], 0, 0, None, 0, {}, {}, [])
    assert api.request("GET", "/api/embeddings/status").json["tracker"] == {
        "running": True,
        "processed": 5,
        "failed": 2,
        "skippedCycles": 1,
        "lastCycleAt": "2026-02-21T09:00:00.000Z",
        "queueDepth": 11,
    }


def test_the_status_is_measured_at_most_every_30_seconds(api: MemoryApi) -> None:
    api.embedder.failure = RuntimeError("no model")
    first = api.request("GET", "/api/embeddings/status").json
    assert (first["available"], first["error"]) == (False, "no model")
    api.embedder.failure = None
    api.clock.now_ms += 29_999
    assert api.request("GET", "/api/embeddings/status").json == first
    api.clock.now_ms += 1
    again = api.request("GET", "/api/embeddings/status").json
    assert again["available"] is True
    assert "error" not in again


def test_the_status_shows_when_embedding_is_off(api: MemoryApi) -> None:
    api.state.embedder = None
    answer = api.request("GET", "/api/embeddings/status").json
    assert (answer["provider"], answer["available"]) == ("none", False)
    assert "switched off" in answer["error"]


# health


def health(**changes: Any) -> EmbeddingHealth:
    sound = EmbeddingHealth(
        memories=100,
        embedded=100,
        by_model={"test-model": 100},
        wrong_dimensions=0,
        null_vectors=0,
        stale=0,
        orphaned=0,
        vec_missing=0,
    )
    return msgspec.structs.replace(sound, **changes)


def test_an_empty_store_is_healthy(api: MemoryApi) -> None:
    api.bus.script[GetEmbeddingHealth] = health(memories=0, embedded=0, by_model={})
    assert api.request("GET", "/api/embeddings/health").json["status"] == "healthy"


@pytest.mark.parametrize(
    ("changes", "check", "status"),
    [
        ({"embedded": 80}, "coverage", "warn"),
        ({"embedded": 10}, "coverage", "fail"),
        ({"wrong_dimensions": 3}, "dimension-mismatch", "warn"),
        ({"by_model": {"test-model": 60, "former": 40}}, "model-drift", "warn"),
        ({"null_vectors": 50}, "null-vectors", "fail"),
        ({"vec_missing": 1}, "vec-table-sync", "warn"),
        ({"orphaned": 2}, "orphaned-embeddings", "warn"),
    ],
)
def test_each_defect_is_shown_by_its_check(api: MemoryApi, changes: dict[str, Any], check: str, status: str) -> None:
    api.bus.script[GetEmbeddingHealth] = health(**changes)
    answer = api.request("GET", "/api/embeddings/health").json
    assert {item["name"]: item["status"] for item in answer["checks"] if item["status"] != "ok"} == {check: status}
    assert answer["score"] < 1.0
    assert (answer["status"] == "healthy") is (status == "warn")


def test_an_unavailable_provider_degrades_the_health(api: MemoryApi) -> None:
    api.embedder.failure = RuntimeError("no model")
    api.bus.script[GetEmbeddingHealth] = health()
    answer = api.request("GET", "/api/embeddings/health").json
    assert (answer["status"], answer["providerAvailable"]) == ("degraded", False)


def test_requests_for_the_health_share_one_probe_and_one_count_which_is_renewed_after_ten_seconds(
    api: MemoryApi,
) -> None:
    """A searcher that counts answers no prompt, so a program that polls must not keep it busy."""
    path = "/api/embeddings/health"

    async def at_once() -> list[Any]:
        return [
            answer.json for answer in await asyncio.gather(*(api.requested("GET", path, b"", {}) for _ in range(20)))
        ]

    probed: list[str] = []
    embed = api.embedder.embed_query
    api.embedder.embed_query = lambda text: probed.append(text) or embed(text)  # type: ignore[method-assign]
    api.bus.script[GetEmbeddingHealth] = health()
    answers = [*asyncio.run(at_once()), *asyncio.run(at_once())]
    assert answers == answers[:1] * 40
    assert len(probed) == 1
    api.bus.only(GetEmbeddingHealth)
    api.clock.now_ms += 10_000
    api.bus.script[GetEmbeddingHealth] = health(stale=3)
    renewed = api.request("GET", path).json
    assert renewed["stale"] == 3
    assert renewed["checkedAt"] > answers[0]["checkedAt"]


def test_a_count_that_failed_is_tried_again(api: MemoryApi) -> None:
    api.bus.script[GetEmbeddingHealth] = Unavailable("searcher")
    assert api.request("GET", "/api/embeddings/health").status == 503
    api.bus.script[GetEmbeddingHealth] = health()
    assert api.request("GET", "/api/embeddings/health").json["status"] == "healthy"


def test_counts_that_cannot_be_renewed_are_told_with_their_age(api: MemoryApi) -> None:
    api.bus.script[GetEmbeddingHealth] = health(stale=3)
    counted = api.request("GET", "/api/embeddings/health").json
    api.bus.script[GetEmbeddingHealth] = Unavailable("searcher")
    for _ in range(2):
        api.clock.now_ms += 10_000
        told = api.request("GET", "/api/embeddings/health").json
        assert (told["stale"], told["checkedAt"]) == (3, counted["checkedAt"])
    api.bus.script[GetEmbeddingHealth] = health()
    assert api.request("GET", "/api/embeddings/health").json["checkedAt"] > counted["checkedAt"]


# codex-native-note


def test_a_note_is_written_privately_below_the_codex_folder(api: MemoryApi, tmp_path: Path) -> None:
    answer = api.request(
        "POST", NOTE, {"content": "Small scoped note\nto preserve", "title": "Über Tests & Co!", "tags": "codex,note"}
    )
    assert (answer.status, answer.json["ok"]) == (200, True)
    path = Path(answer.json["path"])
    assert path.parent == tmp_path / "codex/memories/extensions/ad_hoc/notes"
    assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}-[a-z0-9-]{0,40}\.md", path.name)
    assert path.name.endswith("-ber-tests-co.md")
    assert path.read_text() == "# Über Tests & Co!\n\nTags: codex, note\n\nSmall scoped note\nto preserve\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_notes_never_replace_each_other(api: MemoryApi) -> None:
    paths = {api.request("POST", NOTE, {"content": "same"}).json["path"] for _ in range(5)}
    assert len(paths) == 5


@pytest.mark.parametrize("title", ["../../../etc/passwd", "a/b\\c", "\0", "..", "x" * 400])
def test_a_title_never_leaves_the_folder(api: MemoryApi, tmp_path: Path, title: str) -> None:
    path = Path(api.request("POST", NOTE, {"content": "c", "title": title}).json["path"])
    assert path.parent == tmp_path / "codex/memories/extensions/ad_hoc/notes"
    assert path.is_file()


@pytest.mark.parametrize("part", ["memories", "memories/extensions", "memories/extensions/ad_hoc/notes"])
def test_a_link_below_the_codex_folder_is_not_followed(api: MemoryApi, tmp_path: Path, part: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "codex" / part
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    answer = api.request("POST", NOTE, {"content": "c"})
    assert (answer.status, answer.json["code"]) == (409, "conflict")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_503(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir(mode=0o500)
    assert api.request("POST", NOTE, {"content": "c"}).json["code"] == "not_applied"


def test_a_file_in_place_of_a_folder_is_409(api: MemoryApi, tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex/memories").write_text("")
    assert api.request("POST", NOTE, {"content": "c"}).status == 409


def test_secrets_are_cut_out_of_a_note_and_its_name(api: MemoryApi) -> None:
    answer = api.request("POST", NOTE, {"content": f"use {AWS_KEY}", "title": f"key {AWS_KEY}"}).json
    assert (answer["redacted"], answer["redactions"]) == (True, ["aws-key"])
    assert AWS_KEY.lower() not in answer["path"].lower()
    assert AWS_KEY not in Path(answer["path"]).read_text()


def test_a_note_keeps_its_secrets_when_redaction_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=False)))
    answer = api.request("POST", NOTE, {"content": f"use {AWS_KEY}"}).json
    assert "redacted" not in answer
    assert AWS_KEY in Path(answer["path"]).read_text()


def test_a_note_that_was_renamed_into_place_is_reported_as_written(
    api: MemoryApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    answer = api.request("POST", NOTE, {"content": "c"}, {"Idempotency-Key": "k"})
    assert (answer.status, answer.json["code"]) == (504, "outcome_unknown")
    folder = tmp_path / "codex/memories/extensions/ad_hoc/notes"
    assert [path.read_text() for path in folder.iterdir()] == ["c\n"]
    monkeypatch.undo()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert api.request("POST", NOTE, {"content": "c"}, {"Idempotency-Key": "k"}).status == 200
    assert len(list(folder.iterdir())) == 1


def test_a_note_that_could_not_be_renamed_leaves_no_file(
    api: MemoryApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    answer = api.request("POST", NOTE, {"content": "c"})
    assert (answer.status, answer.json["code"]) == (503, "not_applied")
    assert list((tmp_path / "codex/memories/extensions/ad_hoc/notes").iterdir()) == []
