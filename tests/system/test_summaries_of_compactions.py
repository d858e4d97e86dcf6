"""The last summary of a session's compactions is kept as its only one, and is nothing new for the session itself.

Source: docs/guides/hooks.md "What a session has received"; docs/concepts.md "What happens later".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
NUMBERS = count()


class Work(NamedTuple):
    """A piece of work, what was done last at each of three compactions, and one fact that all summaries have."""

    subject: str
    steps: tuple[str, str, str]
    fact: str


WORK: Final = (
    Work("invoice PDF export", ("footer with bank details", "e-mail delivery", "QR code"), "WeasyPrint renders it"),
    Work("harbour tide dashboard", ("axis labels", "storm warnings", "moon phases"), "uPlot draws the curves"),
    Work("payroll import", ("column mapping", "duplicate detection", "rollback"), "Polars reads the sheets"),
    Work("login page redesign", ("password meter", "passkey button", "dark theme"), "Svelte renders the form"),
    Work("parcel label printer", ("barcode width", "paper jam alarm", "duplex mode"), "CUPS queues the labels"),
    Work("chess engine tuning", ("opening book", "endgame tables", "time control"), "Stockfish is the opponent"),
    Work("greenhouse controller", ("valve timing", "frost alarm", "lamp schedule"), "MQTT carries the readings"),
    Work("museum audio guide", ("Basque narration", "offline maps", "volume levelling"), "Opus encodes the tracks"),
    Work("Lagerverwaltung Umbau", ("Regalnummern", "Inventurliste", "Mahnlauf"), "Firebird speichert die Artikel"),
    Work(
        "refonte du catalogue",
        ("filtres de taille", "photos en zoom", "panier partagé"),
        "Meilisearch trouve les pièces",
    ),
)
FILLER: Final = "The tests of this part were run and are green; nothing of it is open any more and the notes are filed."


def long_summary(work: Work, at: int) -> str:
    """Return what Claude Code writes at a compaction: headings, what was done, and what is done now."""
    done = "\n".join(f"   - {step} of the {work.subject}: finished. {FILLER}" for step in work.steps[:at])
    return (
        f"1. Primary Request and Intent:\n   The user asked for the {work.subject}. {FILLER}\n\n"
        f"2. Key Technical Concepts:\n   - {work.subject}: {work.fact}. {FILLER}\n\n"
        f"3. Problem Solving:\n{done or '   - nothing yet'}\n\n"
        f"4. Current Work: pending in the {work.subject} is now the {work.steps[at]}. {FILLER}\n\n"
        f"5. Optional Next Step: go on with the {work.steps[at]} of the {work.subject}, round {at}.\n"
    )


def short_summary(work: Work, at: int) -> str:
    return f"Pending in the {work.subject} is now the {work.steps[at]}. {work.fact}."


FORMS: Final = pytest.mark.parametrize("write", [long_summary, short_summary])


def hook(client: Client, name: str, session: str, project: str, **fields: Any) -> dict[str, Any]:
    body = {"harness": "claude-code", "sessionKey": session, "project": project, **fields}
    answer: dict[str, Any] = client.post(f"/api/hooks/{name}", body).ok()
    return answer


def compact(client: Client, session: str, project: str, summary: str) -> str:
    """Report a compaction as Claude Code does: its end, and then the start after it. Return what holds the summary."""
    told = hook(client, "compaction-complete", session, project, summary=summary)
    assert told["success"] is True, told
    hook(client, "session-start", session, project, source="compact")
    return str(told["memoryId"])


def place() -> tuple[str, str]:
    number = next(NUMBERS)
    return f"compacted-{number}", f"/home/ada/compacted-work-{number}"


def asked(client: Client, work: Work, project: str, session: str | None = None) -> str:
    prompt = f"what is pending in the {work.subject} now?"
    inject: str = hook(client, "user-prompt-submit", session or place()[0], project, userPrompt=prompt)["inject"]
    return inject


def texts(client: Client, project: str) -> str:
    return "\n".join(row["content"] for row in client.listed() if row["project"] == project)


@FORMS
def test_the_summary_of_the_last_compaction_replaces_the_earlier_ones(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    wrong = []
    for work in WORK:
        session, project = place()
        for at in range(3):
            compact(room, session, project, write(work, at))
        pending = [f"is now the {step}" for step in work.steps]
        prompt = asked(room, work, project)
        start = hook(room, "session-start", place()[0], project)["inject"]
        seen = [[each in text for each in pending] for text in (texts(room, project), prompt)]
        if seen != [[False, False, True]] * 2 or any(each in start for each in pending[:2]):
            wrong.append((work, seen, start))
    assert wrong == []


@FORMS
def test_summaries_of_other_sessions_and_agents_and_what_somebody_relies_on_are_kept(
    empty_rooms: Callable[[], Client], write: Callable[[Work, int], str]
) -> None:
    room, other = empty_rooms(), empty_rooms()
    for work in WORK:
        session, project = place()
        compact(other, session, project, write(work, 0))
        compact(room, place()[0], project, write(work, 1))
        compact(room, session, project, write(work, 0))
        kept = next(row for row in room.listed() if row["project"] == project and work.steps[0] in row["content"])
        room.request("PATCH", f"/api/memory/{kept['id']}", {"reason": "I need it", "pinned": True}).ok()
        compact(room, session, project, write(work, 2))
        assert f"is now the {work.steps[1]}" in texts(room, project), "of another session"
        assert kept["content"] in texts(room, project), "pinned"
        assert f"is now the {work.steps[2]}" in texts(room, project)
        assert f"is now the {work.steps[0]}" in texts(other, project), "of another agent"


@FORMS
def test_a_replaced_summary_can_be_recovered_and_is_then_kept(room: Client, write: Callable[[Work, int], str]) -> None:
    for work in WORK:
        session, project = place()
        compact(room, session, project, write(work, 0))
        (first,) = [
            row["id"]
            for row in room.listed()
            if row["project"] == project and f"is now the {work.steps[0]}" in row["content"]
        ]
        compact(room, session, project, write(work, 1))
        events = room.get(f"/api/memory/{first}/history").ok()["history"]
        assert [each["reason"] for each in events if each["event"] == "deleted"] == [
            "replaced by a later summary of the session"
        ]
        room.post(f"/api/memory/{first}/recover", {"reason": "I need it"}).ok()
        compact(room, session, project, write(work, 2))
        found = texts(room, project)
        assert [f"is now the {step}" in found for step in work.steps] == [True, False, True]


@FORMS
def test_the_same_summary_again_is_the_one_that_is_kept(room: Client, write: Callable[[Work, int], str]) -> None:
    for work in WORK:
        session, project = place()
        stored = compact(room, session, project, write(work, 0))
        before = sorted(row["id"] for row in room.listed())
        assert compact(room, session, project, write(work, 0)) == stored
        assert sorted(row["id"] for row in room.listed()) == before


def late(client: Client, session: str, project: str, summary: str, at: int, **fields: Any) -> dict[str, Any]:
    """Send the report of the compaction ``at`` minutes after the first one, which had to wait."""
    compacted = {"capturedAt": f"2024-03-04T10:{at:02}:00.000Z", "summary": summary, **fields}
    body = {"harness": "claude-code", "sessionKey": session, "project": project, **compacted}
    told: dict[str, Any] = client.post("/api/hooks/compaction-complete", body, x_signet_late="1").ok()
    assert told["success"] is True, told
    return told


@FORMS
@pytest.mark.parametrize("order", [(0, 2), (2, 0), (2, 1, 0), (1, 2, 0, 1, 2), (1, 0, 2)])
def test_of_late_reports_the_summary_of_the_latest_compaction_is_kept(
    room: Client, write: Callable[[Work, int], str], order: tuple[int, ...]
) -> None:
    wrong = []
    for work in WORK[:4]:
        session, project = place()
        for at in order:
            late(room, session, project, write(work, at), at, idempotencyKey=f"{session}-{at}")
        found = texts(room, project)
        if [f"is now the {step}" in found for step in work.steps] != [at == max(order) for at in range(3)]:
            wrong.append((work, found))
    assert wrong == []


@FORMS
def test_a_late_report_of_an_earlier_compaction_stores_nothing_beside_one_that_came_in_time(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    for work in WORK:
        session, project = place()
        late(room, session, project, write(work, 0), 0)
        compact(room, session, project, write(work, 1))
        before = texts(room, project)
        late(room, session, project, write(work, 2), 2)
        assert texts(room, project) == before
        compact(room, session, project, write(work, 2))
        found = texts(room, project)
        assert [f"is now the {step}" in found for step in work.steps] == [False, False, True]


@FORMS
@pytest.mark.parametrize("headers", [{}, {"x_signet_late": "1"}])
def test_a_repeated_report_stores_nothing_after_a_later_compaction_or_once_it_is_forgotten(
    room: Client, write: Callable[[Work, int], str], headers: dict[str, str]
) -> None:
    for work in WORK:
        session, project = place()
        body = {"harness": "claude-code", "sessionKey": session, "project": project, "idempotencyKey": f"r-{session}"}
        body["summary"] = write(work, 0)
        first = room.post("/api/hooks/compaction-complete", body, **headers).ok()["memoryId"]
        before = texts(room, project)
        assert room.post("/api/hooks/compaction-complete", body, **headers).ok()["success"] is True
        assert texts(room, project) == before, first
        compact(room, session, project, write(work, 1))
        before = texts(room, project)
        assert room.post("/api/hooks/compaction-complete", body, **headers).ok()["success"] is True
        assert texts(room, project) == before
        for row in [row for row in room.listed() if row["project"] == project]:
            room.request("DELETE", f"/api/memory/{row['id']}", {"reason": "wrong"}).ok()
        assert room.post("/api/hooks/compaction-complete", body, **headers).ok()["success"] is True
        assert texts(room, project) == ""


@FORMS
def test_what_a_replaced_summary_says_is_not_taken_for_forgotten(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    untold = []
    for work in WORK:
        session, project = place()
        talk = f"User: Which part does the job in the {work.subject}?\nAssistant: {work.fact}."
        hook(room, "session-end", place()[0], project, transcript=talk, reason="logout")
        compact(room, session, project, write(work, 0))
        compact(room, session, project, "The whole wiki was moved.")
        prompt = f"which part does the job in the {work.subject}?"
        inject = hook(room, "user-prompt-submit", place()[0], project, userPrompt=prompt)["inject"]
        if work.fact not in inject:
            untold.append((work, inject))
    assert untold == []


@FORMS
def test_a_session_is_not_given_the_summary_with_which_its_context_begins(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    wrong = []
    for work in WORK:
        session, project = place()
        room.remember(f"The {work.subject} is paid by the customer Lindqvist", project=project)
        hook(room, "session-start", session, project)
        own = []
        for at in range(3):
            hook(room, "compaction-complete", session, project, summary=write(work, at))
            epoch = hook(room, "session-start", session, project, source="compact")
            own += [epoch["inject"], asked(room, work, project, session)]
        again = hook(room, "user-prompt-submit", session, project, userPrompt=f"who pays the {work.subject}?")
        another = asked(room, work, project)
        told = [work.fact in text or any(f"the {step}" in text for step in work.steps) for text in own]
        paid = sum("Lindqvist" in text for text in (*own, again["inject"]))
        if any(told) or work.steps[2] not in another or not paid:
            wrong.append((work, told, paid, another))
    assert wrong == []


@FORMS
def test_both_events_of_a_compaction_begin_one_epoch_whichever_comes_first(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    epochs, told = [], []
    for work in WORK:
        session, project = place()
        hook(room, "session-start", session, project)
        for at, is_start_first in enumerate((False, True, False)):
            if is_start_first:
                hook(room, "session-start", session, project, source="compact")
            done = hook(room, "compaction-complete", session, project, summary=write(work, at))
            if not is_start_first:
                hook(room, "session-start", session, project, source="compact")
            prompt = asked(room, work, project, session)
            told += [prompt for step in work.steps if f"the {step}" in prompt]
            epochs.append(done["contextEpoch"])
    assert (epochs, told) == ([1, 2, 3] * len(WORK), [])


@FORMS
def test_a_session_that_is_cleared_is_given_its_summary_again(room: Client, write: Callable[[Work, int], str]) -> None:
    untold = []
    for work in WORK:
        session, project = place()
        compact(room, session, project, write(work, 0))
        hook(room, "session-start", session, project, source="clear")
        prompt = f"how is the {work.steps[0]} of the {work.subject}?"
        inject = hook(room, "user-prompt-submit", session, project, userPrompt=prompt)["inject"]
        start = hook(room, "session-start", session, project, source="clear")["inject"]
        if work.steps[0] not in inject + start:
            untold.append((work, inject))
    assert untold == []


@FORMS
def test_what_is_left_of_an_erased_session_is_named_and_can_be_forgotten(
    room: Client, write: Callable[[Work, int], str]
) -> None:
    wrong = []
    for work in WORK:
        session, project = place()
        talk = f"User: Which part does the job in the {work.subject}?\nAssistant: {work.fact}."
        hook(room, "session-end", session, project, transcript=talk, reason="logout")
        compact(room, place()[0], project, "Another session moved the wiki.")
        compact(room, session, project, write(work, 0))
        compact(room, session, project, write(work, 1))
        of_session = [row["id"] for row in room.listed() if row["project"] == project and "wiki" not in row["content"]]
        erased = room.request("DELETE", f"/api/sessions/{session}/transcript").ok()
        named = erased.get("saidBy", [])
        for each in named:
            room.request("DELETE", f"/api/memory/{each}", {"reason": "the session is forgotten"}).ok()
        given = asked(room, work, project) + hook(room, "session-start", place()[0], project)["inject"]
        again = room.request("DELETE", f"/api/sessions/{session}/transcript").ok()
        if sorted(named) != sorted(of_session) or work.fact in given or "saidBy" in again:
            wrong.append((work, named, of_session, given, again))
    assert wrong == []
