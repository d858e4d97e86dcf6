"""Credentials that people write into notes are redacted by every way in, before anything is on disk."""

from __future__ import annotations

import json
import random

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon
from tests.support.secret_corpus import shaped
from tests.support.written_credentials import CLEAN, CODES, NOTED, SHAPES

FORMS = [
    "**Password:** {}",
    "| user | password |\n|---|---|\n| admin | {} |",
    "creds: admin / {}",
    "Das Passwort für das WLAN ist {}",
    "数据库密码是{}。",
    "user anna, password {}",
]


def test_no_way_in_brings_a_written_credential_to_the_disk(daemon: LiveDaemon, room: Client) -> None:
    rng = random.Random(21)
    given: list[str] = []

    def note() -> str:
        """Return a note with a new credential in each form."""
        made = []
        for form in FORMS:
            given.append(shaped(rng, rng.choice(SHAPES)))
            made.append(form.format(given[-1]))
        return "\n\n".join(made)

    def hook(name: str, **fields: str) -> None:
        room.post(f"/api/hooks/{name}", {"harness": "generic", "sessionKey": "s-written", **fields}).ok()

    memory = room.remember(note())
    assert memory["redactions"] == ["password"]
    path = f"/api/memory/{memory['id']}"
    assert room.request("PATCH", path, {"content": note(), "reason": note()}).ok()["redacted"]
    room.post("/api/memory/modify", {"reason": "r", "patches": [{"id": memory["id"], "content": note()}]}).ok()
    lines = [json.dumps({"format": "signet-memories", "version": 1}), json.dumps({"content": note()})]
    assert room.request("POST", "/api/memory/import", "\n".join(lines).encode()).ok()["redacted"] == 1
    hook("remember", content=note())
    hook("user-prompt-submit", userPrompt=note())
    hook("pre-compaction", sessionContext=note())
    hook("session-end", transcript=f"User: {note()}\nAssistant: {note()}\n")
    turns = eventually(
        lambda: room.get("/api/sessions/s-written/transcript").json.get("content"), what="the transcript"
    )

    assert len(given) == 10 * len(FORMS)
    shown = str((turns, room.listed(), room.get(f"{path}/history").json))
    assert [secret for secret in given if secret in shown] == []
    files = [file.read_bytes() for file in daemon.workspace.rglob("*") if file.is_file() and not file.is_symlink()]
    assert [secret for secret in given if any(secret.encode() in content for content in files)] == []


def test_what_people_jot_down_is_stored_without_its_secrets_and_other_notes_whole(room: Client) -> None:
    given = [(text, text) for text in CLEAN]
    given += [(form.replace("%s", secret), form.replace("%s", "[REDACTED:password]")) for form, secret in NOTED]
    given += [(form % tuple(secrets), form.replace("%s", "[REDACTED:credential]")) for form, secrets in CODES]
    for at in range(0, len(given), 3):
        texts, clean = zip(*given[at : at + 3], strict=True)
        memory = room.remember("\n\n".join(texts))
        assert room.get(f"/api/memory/{memory['id']}").json["content"] == "\n\n".join(clean).strip()
        assert memory.get("redacted", False) is (texts != clean)
