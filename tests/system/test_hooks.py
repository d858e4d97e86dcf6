"""The hooks of a real daemon: what a session receives, what it does not, and what happens when processes are killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon
from tests.support.program_messages import ENDLESS_FORMS, WHOLE_FORMS

HERE, ELSEWHERE = "/home/ada/shop", "/home/ada/other"
FACTS = (
    "The staging database listens on port 5433",
    "Releases are cut every Monday from the branch main",
    "The login form validates its fields with the library formkit",
    "Invoices are rendered by the worker billing-pdf",
    "The search index is rebuilt with make reindex",
    "Feature flags live in the file flags.yaml",
    "The mobile client talks to the gateway over gRPC",
    "Uploads are scanned by clamav before they are stored",
)
UNRELATED = (
    "write a haiku about autumn leaves",
    "what is the capital of Mongolia?",
    "convert 30 degrees celsius to fahrenheit",
    "explain how photosynthesis works",
    "suggest a name for my cat",
    "how do I boil an egg?",
    "translate good morning into Portuguese",
    "who painted the Mona Lisa?",
    "sort these colours by wavelength",
    "what rhymes with orange?",
    "tell me about the history of chess",
    "recommend a novel by a Japanese author",
    "how far away is the moon?",
    "plan a weekend trip to Lisbon",
    "what does a violin cost?",
    "explain quantum entanglement to a child",
    "how many players has a rugby team?",
    "when was the Eiffel tower built?",
    "give me a recipe for lentil soup",
    "how do bees make honey?",
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        for fact in FACTS:
            started.api.remember(fact, project=HERE, type="decision")
        yield started


@pytest.fixture(scope="module")
def with_real_limits() -> Iterator[LiveDaemon]:
    with live_daemon() as started:
        started.api.remember("Feature flags live in the file flags.yaml", project=HERE)
        yield started


def hook(client: Client, name: str, **fields: Any) -> Any:
    return client.post(f"/api/hooks/{name}", {"harness": "claude-code", **fields}).ok()


def prompt(client: Client, text: str, **fields: Any) -> Any:
    return hook(client, "user-prompt-submit", userPrompt=text, **fields)


def test_unrelated_prompts_get_nothing(daemon: LiveDaemon) -> None:
    answers = [prompt(daemon.api, text, project=HERE, sessionKey="unrelated") for text in UNRELATED]
    assert [answer["inject"] for answer in answers] == [""] * len(UNRELATED)
    assert [answer["memoryCount"] for answer in answers] == [0] * len(UNRELATED)


def test_a_written_memory_reaches_the_very_next_prompt_that_needs_it(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", project=HERE, sessionKey="next")
    written = "The canary deployment runs on the host kestrel-7"
    stored = hook(daemon.api, "remember", content=written, project=HERE, sessionKey="next")
    answer = prompt(daemon.api, "on which host does the canary deployment run?", project=HERE, sessionKey="next")
    assert written in answer["inject"]
    short = answer["inject"].split("(id ")[1].split(")")[0]
    (found,) = daemon.api.get("/api/memories/by-prefix", prefix=short).ok()["memories"]
    assert found["id"] == stored["id"]
    daemon.api.request("DELETE", f"/api/memory/{stored['id']}?reason=test").ok()
    assert prompt(daemon.api, "on which host does the canary deployment run?", project=HERE)["memoryCount"] == 0


def test_what_the_agent_has_stored_for_the_project_is_not_stored_again(daemon: LiveDaemon) -> None:
    first = hook(daemon.api, "remember", content="The ferry to Orkney leaves from pier four at noon", project=HERE)
    assert first["deduped"] is False
    said = "Note: our ferry to Orkney leaves from pier four at noon!"
    again = hook(daemon.api, "remember", content=said, project=HERE)
    assert (again["id"], again["deduped"], again["saved"]) == (first["id"], True, True)
    for content, project in ((said, ELSEWHERE), (said.replace("noon", "dusk"), HERE), (said, None)):
        assert hook(daemon.api, "remember", content=content, project=project)["deduped"] is False


def test_nothing_of_another_project_is_injected(daemon: LiveDaemon) -> None:
    lines = "\n".join(
        f'{{"content": "The robot krait{number} of the warehouse charges at dock {number}",'
        f' "project": "{ELSEWHERE}", "importance": 1.0}}'
        for number in range(1000)
    )
    daemon.api.request("POST", "/api/memory/import", lines.encode()).ok()
    started = hook(daemon.api, "session-start", project=HERE, sessionKey="foreign")
    assert "warehouse" not in started["inject"]
    for number in range(0, 1000, 20):
        question = f"at which dock does the robot krait{number} charge?"
        assert "warehouse" not in prompt(daemon.api, question, project=HERE, sessionKey="foreign")["inject"]
    assert prompt(daemon.api, question)["inject"] == ""
    assert f"krait{number} " in prompt(daemon.api, question, project=ELSEWHERE)["inject"]


def test_worktrees_and_subdirectories_of_a_repository_share_their_memories(daemon: LiveDaemon, tmp_path: Path) -> None:
    shop, feature = tmp_path / "shop", tmp_path / "feature"
    (shop / "src").mkdir(parents=True)
    for arguments in (
        ["init", "--quiet"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "first"],
        ["worktree", "add", "--quiet", str(feature)],
    ):
        subprocess.run(["git", *arguments], cwd=shop, check=True)
    where = {shop: "The walrus cache is filled at six", feature: "The walrus cache has a limit of 40 entries"}
    for number, (directory, text) in enumerate(where.items()):
        hook(daemon.api, "remember", content=text, project=str(directory), sessionKey=f"tree-{number}")
    for directory in (shop, feature, shop / "src"):
        answer = prompt(daemon.api, "what about the walrus cache?", project=str(directory), sessionKey=str(directory))
        assert all(text in answer["inject"] for text in where.values()), directory
    asked = daemon.api.post("/api/memory/recall", {"query": "walrus cache", "project": str(feature / "src")})
    assert len(asked.ok()["results"]) == len(where), "a directory that is gone is still of its repository"
    answer = prompt(daemon.api, "what about the walrus cache?", project=HERE, sessionKey="not here")
    assert "walrus" not in answer["inject"]


def test_projects_can_be_separated_by_directory(tmp_path: Path) -> None:
    (tmp_path / "shop" / "src").mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    with live_daemon(config="projects: {identity: path}\n") as daemon:
        daemon.api.remember("The walrus cache is filled at six", project=str(tmp_path / "shop"))
        for directory, found in ((tmp_path / "shop", 1), (tmp_path / "shop" / "src", 0)):
            asked = {"query": "walrus cache", "project": str(directory)}
            assert len(daemon.api.post("/api/memory/recall", asked).ok()["results"]) == found


def test_a_private_memory_of_another_agent_is_never_injected(daemon: LiveDaemon) -> None:
    daemon.agent("bob").remember("The vault code of the osprey project is 9911", visibility="private", project=HERE)
    question = "what is the vault code of the osprey project?"
    assert "osprey" not in prompt(daemon.api, question, project=HERE)["inject"]
    assert "osprey" in prompt(daemon.api, question, project=HERE, sessionKey="agent:bob:main")["inject"]


def test_the_summary_of_a_compaction_is_kept_without_the_draft_and_the_tags_of_the_model(daemon: LiveDaemon) -> None:
    drafted = "<analysis>\n1. DRAFT of the quay.\n</analysis>\n\n<summary>\nThe quay crane was greased.\n</summary>"
    done = hook(daemon.api, "compaction-complete", summary=drafted, sessionKey="drafted", project=HERE)
    assert daemon.api.memory(done["memoryId"])["content"] == "The quay crane was greased."
    draft = hook(daemon.api, "compaction-complete", summary="<analysis>\nDRAFT", sessionKey="drafted", project=HERE)
    assert draft.get("memoryId") is None


def test_nothing_is_injected_twice_in_an_epoch_and_everything_may_be_after_a_compaction(daemon: LiveDaemon) -> None:
    question = "which worker renders the invoices?"
    assert "billing-pdf" in hook(daemon.api, "session-start", project=HERE, sessionKey="epochs")["inject"]
    assert prompt(daemon.api, question, project=HERE, sessionKey="epochs")["inject"] == ""
    done = hook(daemon.api, "compaction-complete", summary="We fixed the printer.", sessionKey="epochs", project=HERE)
    assert (done["success"], done["contextEpoch"]) == (True, 1)
    assert daemon.api.memory(done["memoryId"])["type"] == "session_summary"
    assert "billing-pdf" in prompt(daemon.api, question, project=HERE, sessionKey="epochs")["inject"]
    assert prompt(daemon.api, question, project=HERE, sessionKey="epochs")["inject"] == ""


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("session-start", {}),
        ("user-prompt-submit", {"userMessage": "which worker renders the invoices?"}),
        ("recall", {"query": "invoices"}),
        ("pre-compaction", {}),
    ],
)
def test_a_hook_answers_200_in_its_time_while_the_searchers_are_stopped(
    with_real_limits: LiveDaemon, name: str, body: dict[str, Any]
) -> None:
    daemon = with_real_limits
    stopped = [daemon.kill(child, signal.SIGSTOP) for child in daemon.children() if child.startswith("searcher")]
    try:
        sent = {"harness": "x", "sessionKey": f"stopped-{name}", **body}
        answer = daemon.api.request("POST", f"/api/hooks/{name}", sent)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # the supervisor replaces a process that is silent
                os.kill(pid, signal.SIGCONT)
    assert answer.ok().get("inject", "") == ""
    daemon.wait_ready()


@pytest.mark.parametrize("victim", ["searcher-1", "writer"])
def test_a_hook_answers_200_when_a_process_is_killed(with_real_limits: LiveDaemon, victim: str) -> None:
    daemon = with_real_limits
    daemon.kill(victim)
    for name, body in (
        ("session-start", {}),
        ("user-prompt-submit", {"userMessage": "which worker renders the invoices?"}),
        ("recall", {"query": "invoices"}),
        ("remember", {"content": f"The {victim} was killed once"}),
        ("compaction-complete", {"summary": f"We killed the {victim}."}),
    ):
        answer = daemon.api.request("POST", f"/api/hooks/{name}", {"harness": "x", "sessionKey": victim, **body}).ok()
        assert answer.get("skipped", False) in (True, False)
        if name == "remember" and answer["saved"]:
            assert daemon.api.memory(answer["id"])["content"] == f"The {victim} was killed once"
    daemon.wait_ready()


def test_what_a_session_received_survives_a_kill_of_every_process(daemon: LiveDaemon) -> None:
    question = "with what is the search index rebuilt?"
    assert "make reindex" in prompt(daemon.api, question, project=HERE, sessionKey="kept")["inject"]
    daemon.api.post("/api/hooks/session-start", {"harness": "x", "sessionKey": "off"}).ok()
    daemon.api.post("/api/sessions/off/bypass", {"enabled": True}).ok()

    def stored() -> bool:
        received = daemon.read("SELECT count(*) FROM session_recalls WHERE session_key = 'kept'")
        bypassed = daemon.read("SELECT count(*) FROM session_contexts WHERE session_key = 'off' AND bypassed = 1")
        return received[0][0] > 0 and bypassed[0][0] > 0

    eventually(stored, what="stored")
    daemon.kill("gateway")
    daemon.kill("writer")
    daemon.wait_ready()
    assert prompt(daemon.api, question, project=HERE, sessionKey="kept")["inject"] == ""
    assert prompt(daemon.api, question, project=HERE, sessionKey="off")["bypassed"] is True
    assert "make reindex" in prompt(daemon.api, question, project=HERE, sessionKey="another")["inject"]


def test_a_bypass_holds_after_a_kill_that_follows_its_answer_at_once(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", sessionKey="secret")
    hook(daemon.api, "session-start", sessionKey="secret", agentId="bob")
    daemon.api.post("/api/sessions/secret/bypass", {"enabled": True}).ok()
    daemon.kill("gateway")
    daemon.kill("writer")
    daemon.wait_ready()
    for agent in ("default", "bob", "a third one"):
        answer = prompt(daemon.api, "which worker renders the invoices?", sessionKey="secret", agentId=agent)
        assert answer["bypassed"] is True
    daemon.api.post("/api/sessions/secret/bypass", {"enabled": False}).ok()
    daemon.kill("gateway")
    daemon.wait_ready()
    for agent in ("default", "bob", "a third one"):
        answer = prompt(daemon.api, "which worker renders the invoices?", sessionKey="secret", agentId=agent)
        assert "bypassed" not in answer


def test_a_session_can_be_switched_off_right_after_a_restart(daemon: LiveDaemon) -> None:
    sessions = {"early": "default", "early-too": "default", "agent:bob:early": "bob", "ended-early": "default"}
    for key, agent in sessions.items():
        hook(daemon.api, "session-start", sessionKey=key, agentId=agent)
    hook(daemon.api, "session-end", sessionKey="ended-early", transcript="User: hello")
    sql = "SELECT count(*) FROM session_contexts WHERE session_key LIKE '%early%'"
    eventually(lambda: daemon.read(sql) == [(len(sessions),)], what="stored")
    daemon.kill("gateway")
    daemon.wait_ready()
    for key, body, status in (
        ("early", {"enabled": True}, 200),
        ("early", {"enabled": True, "agentId": "carol"}, 404),
        ("early-too", {"enabled": True, "agentId": "carol"}, 404),
        ("early-too", {"enabled": False}, 200),
        ("early-too", {"enabled": True, "agentId": "default"}, 200),
        ("agent:bob:early", {"enabled": True}, 200),
        ("never-heard-of", {"enabled": True}, 404),
    ):
        answer = daemon.api.post(f"/api/sessions/{key}/bypass", body)
        assert answer.status == status, (key, body, answer)
    for key, agent in sessions.items():
        answer = prompt(daemon.api, "which worker renders the invoices?", sessionKey=key, agentId=agent)
        assert answer.get("bypassed", False) is (key != "ended-early"), key


def test_what_is_said_while_memory_is_off_stays_out_over_kills(daemon: LiveDaemon) -> None:
    def record(word: str, hours: int, session: str) -> str:
        time = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        message = {"role": "user", "content": f"We speak of the {word}"}
        return json.dumps(
            {"type": "user", "sessionId": session, "uuid": f"uuid-of-{word}", "timestamp": time, "message": message}
        )

    def kill() -> None:
        daemon.kill("gateway")
        daemon.kill("writer")
        daemon.wait_ready()

    said = [record("beforeword", -1, "paused")]
    hook(daemon.api, "session-start", sessionKey="paused")
    daemon.api.post("/api/sessions/paused/bypass", {"enabled": True}).ok()
    kill()
    said.append(record("hiddenword", 0, "paused"))
    assert hook(daemon.api, "session-checkpoint-extract", sessionKey="paused", transcript="\n".join(said))["bypassed"]
    kill()
    assert daemon.api.post("/api/memory/recall", {"query": "fax", "sessionKey": "paused"}).status == 403
    daemon.api.post("/api/sessions/paused/bypass", {"enabled": False}).ok()
    kill()
    said.append(record("afterword", 1, "paused"))
    for key in ("paused", "forked"):
        hook(daemon.api, "session-end", sessionKey=key, transcript="\n".join(said).replace("paused", key))
        stored = daemon.api.get(f"/api/sessions/{key}/transcript").ok()["content"]
        assert [word in stored for word in ("beforeword", "hiddenword", "afterword")] == [True, False, True]


def test_a_restart_does_not_change_what_a_start_gets(daemon: LiveDaemon) -> None:
    def started(key: str) -> str:
        body = {"harness": "x", "sessionKey": "restarted", "project": HERE}
        text: str = daemon.api.post("/api/hooks/session-start", body, Idempotency_Key=key).ok()["inject"]
        return text

    def restart(column: str, value: Any) -> None:
        sql = f"SELECT count(*) FROM session_contexts WHERE session_key = 'restarted' AND {column} = ?"
        eventually(lambda: daemon.read(sql, value) == [(1,)], what="stored")
        daemon.kill("gateway")
        daemon.wait_ready()

    assert "billing-pdf" in started("first")
    restart("started_epoch", 0)
    assert "billing-pdf" in started("first"), "a retry gets the same"
    assert "billing-pdf" not in started("second"), "the session has it already"
    hook(daemon.api, "compaction-complete", summary="We fixed the fax.", sessionKey="restarted", project=HERE)
    restart("context_epoch", 1)
    assert "billing-pdf" in started("third"), "the model no longer has it"


def test_a_secret_in_the_name_of_a_harness_leaves_no_trace(daemon: LiveDaemon) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    texts = {"userPrompt": "which port?", "content": "A port", "summary": "We chose a port.", "query": "which port?"}
    for name in (
        *("session-start", "user-prompt-submit", "remember", "recall", "pre-compaction", "compaction-complete"),
        *("session-checkpoint-extract", "session-end"),
    ):
        for path in ("/nowhere/s.jsonl", "s.jsonl"):
            body = {"harness": token, "sessionKey": f"s:{token}", "transcriptPath": path, "project": f"/{token}"}
            daemon.api.post(f"/api/hooks/{name}", {**body, **texts}).ok()
    assert token not in json.dumps([daemon.api.get(path).ok() for path in ("/health", "/api/status", "/api/sessions")])
    for log in (daemon.workspace / ".daemon" / "logs").iterdir():
        assert token not in log.read_text()
    tables = {table for (table,) in daemon.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in sorted(tables & {"session_contexts", "session_transcripts", "session_checkpoints", "memories"}):
        found = [[str(c) for c in row if token in str(c)] for row in daemon.read(f"SELECT * FROM {table}")]
        assert not [row for row in found if row], table


def test_a_memory_is_stored_once_however_often_a_hook_is_repeated(daemon: LiveDaemon) -> None:
    body = {"harness": "x", "content": "The spool is drained every minute", "idempotencyKey": "spool-1"}
    answers = [daemon.api.post("/api/hooks/remember", body, Idempotency_Key="spool-1").ok() for _ in range(3)]
    assert len({answer["id"] for answer in answers}) == 1
    assert daemon.read("SELECT count(*) FROM memories WHERE content = ?", body["content"]) == [(1,)]


def test_hooks_do_not_wait_for_a_stopped_writer(with_real_limits: LiveDaemon) -> None:
    daemon = with_real_limits
    sessions = itertools.count()

    def is_offered() -> bool:
        """Whether a prompt gets its memory while the writer is stopped; on a busy machine one may be late."""
        key = f"w-{next(sessions)}"
        stopped = daemon.kill("writer", signal.SIGSTOP)
        try:
            offered = prompt(daemon.api, "in which file are the feature flags?", sessionKey=key, project=HERE)
            skipped = hook(daemon.api, "remember", content="The writer was stopped", sessionKey=key)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGCONT)
        assert skipped["saved"] or skipped["skipped"]
        daemon.wait_ready()
        return "flags.yaml" in offered["inject"]

    eventually(is_offered)


def test_a_harness_can_have_the_text_of_the_start_with_its_first_prompt(daemon: LiveDaemon) -> None:
    client = daemon.agent("with-prompt")
    client.remember("Never deploy the kiosk on a Friday", pinned=True, importance=1.0)
    client.remember("The kiosk of the museum is switched on at seven", project=HERE, type="decision")
    about = {"harness": "gemini", "sessionKey": "with-prompt", "project": HERE}
    ask = {**about, "withStart": True, "userPrompt": "when is the kiosk of the museum switched on?"}

    def started(source: str, **more: Any) -> str:
        answer = client.post("/api/hooks/session-start", {**about, "source": source, "deferred": True, **more}).ok()
        assert answer.get("inject", "") == ""
        return str(client.post("/api/hooks/user-prompt-submit", ask).ok()["inject"])

    first = started("startup")
    for text in ("[memory active |", "Never deploy the kiosk on a Friday", "switched on at seven"):
        assert first.count(text) == 1, text
    assert client.post("/api/hooks/user-prompt-submit", ask).ok()["inject"] == "", "the session has it all"
    assert started("startup") == ""
    assert started("resume") == "", "the model of Gemini CLI keeps what came with a prompt"
    resumed = client.post("/api/hooks/session-start", {**about, "source": "resume"}).ok()["inject"]
    assert "Never deploy" in resumed, "it has lost what came at a start"
    for source in ("compact", "clear"):
        assert "Never deploy" in started(source), source
    client.remember("The kiosk of the museum is cleaned by the night shift", project=HERE)
    later = client.post("/api/hooks/user-prompt-submit", {**ask, "userPrompt": "who cleans the kiosk of the museum?"})
    assert "night shift" in later.ok()["inject"]
    assert "Never deploy" not in later.ok()["inject"]
    for unsaid in ("go on", "/greet Bob"):
        other = {**ask, "sessionKey": f"with-{unsaid}", "userPrompt": unsaid}
        assert "Never deploy" in client.post("/api/hooks/user-prompt-submit", other).ok()["inject"], unsaid
    assert client.post("/api/hooks/user-prompt-submit", {**ask, "withStart": False, "sessionKey": "w2"}).ok()["inject"]
    missed = {**ask, "harness": "claude-code", "sessionKey": "w4"}
    given = client.post("/api/hooks/user-prompt-submit", missed).ok()["inject"]
    assert "Never deploy" in given, "the daemon did not run when the session began"
    assert "This session goes on" not in given, "its first prompt is nothing that it goes on with"
    resumed = {**about, "harness": "claude-code", "sessionKey": "w3"}
    assert "Never deploy" in client.post("/api/hooks/session-start", resumed).ok()["inject"]
    again = client.post("/api/hooks/session-start", {**resumed, "source": "resume"}).ok()["inject"]
    assert "Never deploy" not in again, "Claude Code keeps it"


WRAPPED = (
    "<hook_context>{start}</hook_context>\n\n{prompt}",
    "<hook_context>\n{start}\n</hook_context>\n{prompt}",
    "<hook_context>{start}</hook_context>\n\n<hook_context>more of it</hook_context>\n\n{prompt}",
    "<system-reminder>\n{start}\n</system-reminder>\n{prompt}",
    "{prompt}\n\n<system-reminder>\n{start}\n</system-reminder>",
    "<system-reminder>SessionStart hook additional context: {start}</system-reminder>\n\n{prompt}",
    "<user-prompt-submit-hook>{start}</user-prompt-submit-hook>\n{prompt}",
    "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>\n{prompt}",
    "<ide_opened_file>The user opened the file /srv/a.py in the IDE.</ide_opened_file>\n{prompt}",
    "Stop hook feedback:\n[hook.sh]: the context is not loaded\n\n{prompt}",
    (
        "I ran the following shell command:\n```sh\ncat hook\n```\n\nThis produced the following result:\n```\n"
        "loaded\n```\n\n{prompt}"
    ),
    "{prompt}",
)


def test_what_a_program_puts_around_a_prompt_is_neither_searched_for_nor_in_a_checkpoint(daemon: LiveDaemon) -> None:
    client = daemon.agent("wrapped")
    fact = "The emu paddock is mown by the day shift"
    client.remember(fact)
    start = client.post("/api/hooks/session-start", {"harness": "gemini"}).ok()["inject"]
    for number, form in enumerate(WRAPPED):
        for prompt in ("who mows the paddock of the emu?", "emu paddock mown: <b>who</b> does it, x < 3?"):
            key = f"wrapped-{number}-{len(prompt)}"
            body = {"harness": "gemini", "sessionKey": key, "userPrompt": form.format(start=start, prompt=prompt)}
            answer = client.post("/api/hooks/user-prompt-submit", body).ok()
            assert fact in answer["inject"], body
            assert not {"hook", "context", "loaded", "reminder"} & set(answer["queryTerms"]), answer["queryTerms"]
            made = client.post("/api/checkpoints", {"sessionKey": key, "context": "x"}).ok()
            (kept,) = client.get(f"/api/checkpoints/{key}", limit=1).ok()["checkpoints"]
            assert made["id"] == kept["id"]
            assert "hook_context" not in kept["digest"]
            assert "memory active" not in kept["digest"]
            assert prompt[:20] in kept["digest"]


def test_a_transcript_of_messages_that_programs_wrote_has_the_words_of_people_alone(daemon: LiveDaemon) -> None:
    client = daemon.agent("of-programs")
    records = [
        {"type": "user", "uuid": f"p-{number}", "message": {"role": "user", "content": form}}
        for number, form in enumerate((*WHOLE_FORMS, *ENDLESS_FORMS))
    ]
    records.append({"type": "user", "message": {"role": "user", "content": "done"}, "origin": {"kind": "coordinator"}})
    records.append({"type": "user", "message": {"role": "user", "content": "Which okapi is that?"}})
    about = {"harness": "claude-code", "sessionKey": "of-programs", "transcript": "\n".join(map(json.dumps, records))}
    assert client.post("/api/hooks/session-end", about).ok()["newTurns"] == 1
    assert client.get("/api/sessions/of-programs/transcript").ok()["content"] == "User: Which okapi is that?"


def refused_tool(said: str) -> dict[str, Any]:
    refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    return {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": f"{refused}{said}"}


def test_what_a_person_answers_to_tools_is_found_like_what_they_typed(daemon: LiveDaemon) -> None:
    client = daemon.agent("answers-to-tools")
    result = {"type": "tool_result", "tool_use_id": "q", "content": "The user answered: \u2026"}
    records: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": "Move the sailings to the new table."}},
        {"type": "user", "message": {"role": "user", "content": [refused_tool("never edit quaggas.ts by hand")]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": {"questions": [], "answers": {"Which pier do okapis board at?": "Pier 12"}},
        },
    ]
    about = {"harness": "claude-code", "sessionKey": "answered", "transcript": "\n".join(map(json.dumps, records))}
    assert client.post("/api/hooks/session-end", about).ok()["newTurns"] == 3
    asked = "> Which pier do okapis board at?\nPier 12"
    for query, found in (("who edits quaggas.ts?", "never edit quaggas.ts by hand"), ("okapis pier", asked)):
        recalled = client.post("/api/memory/recall", {"query": query}).ok()["results"]
        assert any(f"User: {found}" in result["content"] for result in recalled), (query, recalled)
    assert client.post("/api/hooks/session-end", {**about, "sessionKey": "answered"}).ok()["newTurns"] == 0


STAMP = "[Wed 2026-01-28 20:30 EST] "


def test_a_transcript_with_a_prompt_that_switches_memory_off_is_not_stored(daemon: LiveDaemon) -> None:
    """The daemon was away at the prompt, or the session is a fork of that one; in any route that takes a transcript."""
    client = daemon.agent("off-by-transcript")
    prompts = [
        "[signet off] zorilla",
        "  [Signet OFF]\nzorilla",
        "<hook_context>x</hook_context>\n[signet off] zorilla",
        "# In app browser:\n- Current URL: http://zoo.invalid\n\n## My request:\n[signet off] zorilla",
        "[Image #1] **[signet off]** zorilla",
        "[Telegram Anna id:1 +2m Wed 2026-01-28 20:30 EST] [signet off] zorilla",
    ]
    for number, prompt in enumerate(prompts):
        for form in ("claude", "queued", "refused", "text"):
            key = f"off-away-{number}-{form}"
            lines = [
                ("user", "what is a zorilla?"),
                ("assistant", "a polecat"),
                ("user", prompt),
                ("assistant", "Fine."),
            ]
            records: list[dict[str, Any]] = [
                {"type": role, "message": {"role": role, "content": text}} for role, text in lines
            ]
            if form == "queued":  # typed while the agent worked
                queued = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
                records[2] = {"type": "attachment", "attachment": queued}
            if form == "refused":  # typed to say why a tool may not run
                records[2]["message"]["content"] = [refused_tool(prompt)]
            transcript = "\n".join(map(json.dumps, records))
            if form == "text":
                transcript = "\n\n".join(f"{role.capitalize()}: {text}" for role, text in lines)
            body = {"harness": "codex", "sessionKey": key, "transcript": transcript}
            kept = client.post("/api/hooks/session-checkpoint-extract", body).ok()
            assert kept.get("newTurns", 0) == 0
            client.post("/api/hooks/session-end", body).ok()
            named = client.post(
                "/api/memory/remember", {"content": f"note {key}", "transcript": transcript, "sourceId": key}
            )
            assert any("switched off" in warning for warning in named.ok()["warnings"])
            assert client.get(f"/api/sessions/{key}/transcript").status == 404, (prompt, form)
            asked = {**body, "sessionKey": f"{key}-later", "userPrompt": "what is a zorilla?"}
            assert "polecat" not in client.post("/api/hooks/user-prompt-submit", asked).ok()["inject"]
    about = {"harness": "codex", "sessionKey": "off-question"}
    text = "User: what does [signet off] do to a zorilla?\n\nAssistant: It switches memory off."
    assert client.post("/api/hooks/session-end", {**about, "transcript": text}).ok()["newTurns"] == 2


def test_the_time_that_openclaw_puts_before_a_prompt_is_not_kept_with_it(daemon: LiveDaemon) -> None:
    client = daemon.agent("stamped")
    about = {"harness": "openclaw", "sessionKey": "agent:main:stamped"}
    prompt = "which crane lifts the okapi?"
    client.post("/api/hooks/user-prompt-submit", {**about, "userPrompt": STAMP + prompt}).ok()
    client.post("/api/hooks/pre-compaction", about).ok()
    (kept,) = client.get("/api/checkpoints/agent:main:stamped").ok()["checkpoints"]
    assert (f"Recent prompt: {prompt}" in kept["digest"], "2026" in json.dumps(kept["memory_queries"])) == (True, False)
    transcript = json.dumps({"role": "user", "content": STAMP + prompt})
    assert client.post("/api/hooks/session-end", {**about, "transcript": transcript}).ok()["stored"] is True
    assert client.get("/api/sessions/agent:main:stamped/transcript").ok()["content"].strip() == f"User: {prompt}"


def test_a_prompt_can_switch_memory_off_for_its_session(daemon: LiveDaemon) -> None:
    client = daemon.agent("off-by-prompt")
    client.remember("The owl tower is locked at dusk")
    behind = '<in-app-browser-context source="a">\n# In app browser:\n</in-app-browser-context>\n\n## My request:\n'
    for number, mark in enumerate(
        (
            "[signet off] ",
            "[Signet off]\n",
            "  [SIGNET OFF]",
            f"{behind}[signet off] ",
            "/plan @a.md [signet off] ",
            f"{STAMP}[signet off] ",
        )
    ):
        about = {"harness": "codex", "sessionKey": f"off-{number}"}
        ask = {**about, "userPrompt": f"{mark}when is the owl tower locked?"}
        told = client.post("/api/hooks/user-prompt-submit", ask).ok()
        assert "switched it off for this session" in told["inject"]
        assert "dusk" not in told["inject"]
        later = client.post("/api/hooks/user-prompt-submit", {**about, "userPrompt": "when is the owl tower locked?"})
        assert later.ok()["reason"] == "bypassed"
        end = client.post("/api/hooks/session-end", {**about, "transcript": "User: the owl\n\nAssistant: at dusk"}).ok()
        assert end["reason"] == "bypassed"
        assert client.get(f"/api/checkpoints/off-{number}").ok()["checkpoints"] == []
    for plain in (
        "what does [signet off] do to the owl tower, locked when?",
        "when is the owl tower locked, signet off?",
    ):
        body = {"harness": "codex", "sessionKey": plain, "userPrompt": plain}
        assert "switched it off" not in client.post("/api/hooks/user-prompt-submit", body).ok()["inject"], plain
        assert client.get(f"/api/sessions/{quote(plain)}").ok()["bypassed"] is False


def test_a_resumed_session_is_told_the_constraints_that_were_stored_since_once(daemon: LiveDaemon) -> None:
    room = daemon.agent("resumed")
    known, new = "Never force-push to main", "Never call the billing API from tests"
    room.remember(f"critical: {known}", project="/srv/ledger")
    about = {"harness": "claude-code", "sessionKey": "resumed-1", "project": "/srv/ledger"}
    assert known in room.post("/api/hooks/session-start", about).ok()["inject"]

    def resumed() -> str:
        inject: str = room.post("/api/hooks/session-start", {**about, "source": "resume"}).ok()["inject"]
        return inject

    before = resumed()
    assert known not in before, "the conversation has it"
    room.remember(f"critical: {new}", project="/srv/ledger")
    room.remember("critical: Never eat the stock", project="/srv/kitchen")
    room.remember("The ledger closes at nine", project="/srv/ledger")
    told = resumed()
    assert new in told
    assert "## Active Constraints" in told
    assert all(text not in told for text in (known, "stock", "closes"))
    assert resumed() == before, "it is told once"
    prompt = {**about, "userPrompt": "may I call the billing API from tests?"}
    assert new not in room.post("/api/hooks/user-prompt-submit", prompt).ok()["inject"]
