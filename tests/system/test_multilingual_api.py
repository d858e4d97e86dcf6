"""The provider ``multilingual`` of a live daemon; and recall by words while its file is not there.

Source: docs/decisions.md 57.
"""

from __future__ import annotations

import os

import pytest

from signet_actors.config.schema import EMBEDDED_MODEL, MULTILINGUAL_MODEL
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.live_daemon import live_daemon
from tests.support.minilm import HAS_RUNTIME
from tests.support.multilingual import HAS_MODEL, WHY_NOT
from tests.system.test_minilm_api import PIPELINE, by_model

pytestmark = pytest.mark.system

CONFIG = "embedding: {provider: multilingual}\n" + PIPELINE
NOTES = {
    "Welche Haltestelle liegt neben unserer Arbeit?": "Die nächste U-Bahn-Station beim Büro ist der Moritzplatz",
    "Worüber freut sich Anna zum Geburtstag?": "Silberne Ohrringe wären ein schönes Geschenk für meine Frau",
    "¿Por qué no se puede compilar?": "El servidor de integración está roto desde el martes",
    "バックアップはどこにありますか": "夜間の控えはヘルシンキの機械に置いてある",
}
"""Questions that share no telling word with their answer."""


@pytest.mark.skipif(not HAS_MODEL, reason=WHY_NOT)
def test_notes_are_found_in_their_own_language_also_those_of_another_model() -> None:
    with live_daemon(config=PIPELINE) as daemon:
        first, *others = NOTES.values()
        daemon.api.remember(first)
        daemon.configure(CONFIG)
        eventually(
            lambda: daemon.api.get("/api/embeddings/status").ok()["model"] == MULTILINGUAL_MODEL,
            within_s=60,
            what="the gateway uses the new model",
        )
        for note in others:
            daemon.api.remember(note)
        eventually(
            lambda: by_model(daemon) == {MULTILINGUAL_MODEL: len(NOTES)},
            within_s=120,
            what="every vector is of the new model",
        )
        assert EMBEDDED_MODEL not in by_model(daemon)
        for question, note in NOTES.items():
            assert daemon.api.recall(question)["results"][0]["content"] == note
        status = daemon.api.get("/api/embeddings/status").ok()
        assert (status["provider"], status["dimensions"], status["available"]) == ("multilingual", 384, True)
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


@pytest.mark.skipif(not HAS_RUNTIME, reason=WHY_NOT)
def test_without_its_file_memories_are_found_by_words_and_the_status_says_what_to_do() -> None:
    with live_daemon(config=CONFIG, started=False) as daemon:
        elsewhere = daemon.root / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "sitecustomize.py").write_text(
            "import pathlib\n"
            "from signet_actors.config import embedding_models\n"
            "embedding_models.MULTILINGUAL_FILE = pathlib.Path('/nowhere/e5-small-q4.bin')\n"
        )
        daemon.launch(PYTHONPATH=f"{elsewhere}{os.pathsep}{REPOSITORY}")
        absent = "/nowhere/e5-small-q4.bin, which is not there"
        eventually(lambda: absent in daemon.health().get("detail", ""), within_s=60, what="health names the file")
        assert daemon.api.remember("Die nächste Station ist der Moritzplatz")["embedded"] is False
        assert len(daemon.api.recall("Moritzplatz")["results"]) == 1
        status = daemon.api.get("/api/embeddings/status").ok()
        assert (status["available"], status["model"]) == (False, MULTILINGUAL_MODEL)
        assert "/nowhere/e5-small-q4.bin, which is not there: `signet setup` downloads it" in status["error"]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
