"""A remember names similar memories, so that the caller can replace one instead of adding another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

PAIRS = (
    ("The local postgres listens on port 5434", "The local postgres listens on port 5442"),
    ("We decided to use Celery for background jobs", "Background jobs run on Dramatiq, Celery is gone"),
    ("Releases are cut every Tuesday from the branch main", "Releases are cut every Thursday from the branch main"),
    ("Feature flags live in the file flags.yaml", "Feature flags live in the table switches"),
    ("Uploads are scanned by clamav before they are stored", "Uploads are no longer scanned by clamav"),
    ("Invoices are rendered by the worker billing-pdf", "Invoices are rendered by the worker pdf-two"),
    ("Rechnungen werden mit wkhtmltopdf erzeugt", "Rechnungen werden jetzt mit WeasyPrint erzeugt"),
    ("Logs werden 14 Tage in Loki aufgehoben", "Logs werden 30 Tage in Loki aufgehoben"),
    ("The login form validates with formkit", "The login form validates with zod"),
    ("The search index is rebuilt with make reindex", "The search index is rebuilt nightly, not with make reindex"),
)
NEW = (
    "The lighthouse lamp is amber",
    "Bob prefers tea in the afternoon",
    "Der Hund heisst Rex",
    "The violin costs nine hundred francs",
    "Cucumbers need much water in July",
    "The ferry to Split leaves at noon",
    "Photosynthesis needs light",
    "Grandmother's birthday is on the third",
    "The bicycle has a flat tyre",
    "Mountains are seen from the balcony",
)


def asked(room: Client, content: str, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = room.remember(content, similar=True, **fields).get("similar", [])
    return found


def test_what_a_memory_may_replace_is_named_with_its_id_its_text_and_its_time(room: Client) -> None:
    ids = {older: room.remember(older)["id"] for older, _ in PAIRS}
    named = {newer: asked(room, newer) for _, newer in PAIRS}
    for older, newer in PAIRS:
        assert [row["content"] for row in named[newer]][:1] == [older], newer
        row = named[newer][0]
        assert row["id"] == ids[older]
        assert row["relevance"] >= 0.5
        assert row["createdAt"].endswith("Z")
        assert len(named[newer]) <= 3
    assert {text: found for text in NEW if (found := asked(room, text))} == {}


def test_nothing_is_named_for_a_duplicate_or_where_nobody_asks(room: Client) -> None:
    older, newer = PAIRS[0]
    room.remember(older)
    assert asked(room, older) == []
    assert "similar" not in room.remember(newer)
    again = "The local postgres listens on port 5450"
    tool = {"x_signet_actor": "codex", "x_signet_actor_type": "agent"}
    assert room.post("/api/memory/remember", {"content": again}, **tool).ok()["similar"]
    other = "The local postgres listens on port 5451"
    assert "similar" not in room.post("/api/memory/remember", {"content": other, "similar": False}, **tool).ok()
    person = {"x_signet_actor": "cli", "x_signet_actor_type": "operator"}
    third = "The local postgres listens on port 5452"
    assert len(room.post("/api/memory/remember", {"content": third}, **person).ok()["similar"]) == 3


def test_what_the_caller_may_not_read_or_is_of_another_project_is_not_named(room: Client) -> None:
    older, newer = PAIRS[3]
    room.remember(older, project="/home/ada/other")
    assert asked(room, newer, project="/home/ada/shop") == []
    assert [
        row["content"] for row in asked(room, "Feature flags live in the file f.toml", project="/home/ada/other")
    ] == [older]
