"""MEMORY.md made by the daemon's own model, from the stored memories to the start of a session.

Source: docs/guides/working-memory.md.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import Act, Asked, Fault, ScriptedProvider
from tests.system.test_pipeline import finished, pipeline
from tests.system.test_pipeline_commands import signet

pytestmark = pytest.mark.system

VIM = "The editor of the homelab is vim."
PORT = "The staging database listens on port 5433."
SHOP = "/p/shop"
SECRET = "ghp_" + "a1B2" * 9
SUMMARY = "The form was moved, because the old router lost the return address.\n\n## Open\nOld links are not moved yet."


UNREACHABLE = """
memory:
  pipelineV2:
    extraction:
      provider: auto
      endpoint: http://127.0.0.1:9
"""


def turns(number: int) -> list[dict[str, str]]:
    """Return a question and an answer of substance."""
    return [
        {"role": "user", "content": f"What about step {number} of the login form in the harbour office?"},
        {
            "role": "assistant",
            "content": f"Step {number} of the login form is done: file {number} is changed, tests pass.",
        },
    ]


class Answers:
    """Answers a prompt for the file as ``text`` says; a fault if it is one; by the rules if it is None."""

    def __init__(self, text: str | Act | Fault | None = None) -> None:
        self.text = text

    def __call__(self, stage: str, _asked: Asked) -> Act | Fault | None:
        if stage != "synthesis" or self.text is None:
            return None
        return self.text if isinstance(self.text, Act) else Act("ok", self.text)


def status(daemon: LiveDaemon, **parameters: Any) -> Any:
    return daemon.api.get("/api/synthesis/status", **parameters).ok()


def made(daemon: LiveDaemon, **wish: Any) -> Any:
    """Have the file made, and return the status after that."""
    eventually(lambda: status(daemon)["waiting"] is None, within_s=30, what="a model")
    daemon.api.post("/api/synthesis/trigger", wish).ok()
    agent = {"agentId": wish["agentId"]} if "agentId" in wish else {}
    eventually(lambda: not status(daemon, **agent)["running"], within_s=30, what="the end of the run")
    return status(daemon, **agent)


def text_of(daemon: LiveDaemon, *places: str) -> str:
    return Path(daemon.workspace, *places, "MEMORY.md").read_text()


def prompts(provider: ScriptedProvider) -> list[str]:
    return ["\n".join(data_of(asked.prompt)) for asked in provider.asked if stage_of(asked.prompt) == "synthesis"]


def started(daemon: LiveDaemon, **fields: Any) -> str:
    inject: str = daemon.api.post("/api/hooks/session-start", {"harness": "codex", **fields}).ok()["inject"]
    return inject


def in_short(stage: str, asked: Asked) -> Act | Fault | None:
    """Say what the memories say in other words, which a start gives beside the memories themselves."""
    if stage != "synthesis":
        return None
    short = {VIM: "- Ada edits with vim", PORT: "- 5433 is for staging"}
    return Act("ok", "\n".join(["## Global Head", *(said for text, said in short.items() if text in asked.prompt)]))


def test_what_the_model_makes_of_the_memories_reaches_the_sessions_that_it_concerns() -> None:
    with pipeline(ScriptedModel(fault=in_short)) as (daemon, provider):
        Path(daemon.workspace, "MEMORY.md").write_text("# Mine\n- Call me Ada.\n")
        daemon.api.remember(VIM)
        daemon.api.remember(PORT, project=SHOP)
        finished(daemon, count=2)
        found = made(daemon)
        assert (found["madeBy"], found["lastError"], found["model"]) == ("daemon", None, "qwen3:4b")
        general, of_shop = prompts(provider)
        assert VIM in general
        assert PORT not in general
        assert PORT in of_shop
        text = text_of(daemon)
        assert text.startswith("# Mine\n- Call me Ada.\n\n<!-- signet:")
        assert f"\n## Project: {SHOP}\n" in text
        here, elsewhere = started(daemon, project=SHOP), started(daemon, project="/p/bank")
        assert all(line in here for line in ("Call me Ada", "Ada edits with vim", "5433 is for staging"))
        assert "Ada edits with vim" in elsewhere
        assert "5433" not in elsewhere


def test_only_the_parts_whose_memories_have_changed_are_made_anew_and_a_forgotten_memory_leaves_the_file() -> None:
    with pipeline() as (daemon, provider):
        daemon.api.remember(VIM)
        port = daemon.api.remember(PORT, project=SHOP)["id"]
        finished(daemon, count=2)
        made(daemon)
        assert len(prompts(provider)) == 2
        made(daemon)
        assert len(prompts(provider)) == 2
        made(daemon, again=True)
        assert len(prompts(provider)) == 4
        daemon.api.request("DELETE", f"/api/memory/{port}?reason=r").ok()
        derived = daemon.read("SELECT id FROM memories WHERE is_deleted = 0 AND content = ?", PORT)
        for (memory_id,) in derived:
            daemon.api.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
        made(daemon)
        assert "5433" not in text_of(daemon)
        assert len(prompts(provider)) == 4


def test_no_agent_sees_a_private_memory_of_another() -> None:
    with pipeline() as (daemon, provider):
        daemon.api.remember(VIM, visibility="private")
        daemon.api.remember(PORT, agentId="reviewer", visibility="private")
        finished(daemon, count=2)
        made(daemon)
        made(daemon, agentId="reviewer")
        of_default, of_reviewer = prompts(provider)
        assert VIM in of_default
        assert PORT not in of_default
        assert PORT in of_reviewer
        assert VIM not in of_reviewer
        assert PORT in text_of(daemon, "agents", "reviewer")
        assert VIM not in started(daemon, agentId="reviewer")
        assert VIM not in started(daemon, agentId="writer")


NO_ANSWERS: tuple[tuple[str | Act, str | None], ...] = (
    ("", None),
    ("<think>I will not answer", "the model returned no text"),
    (Act("http_500"), None),
    (Act("rst"), None),
    (Act("huge"), None),
)
"""Each with the reason that the status tells, where it is always the same."""


def test_an_answer_that_is_none_leaves_the_present_file_and_is_reported() -> None:
    answers = Answers()
    with pipeline(ScriptedModel(fault=answers)) as (daemon, _):
        daemon.api.remember(VIM)
        finished(daemon)
        made(daemon)
        for answer, error in NO_ANSWERS:
            before = text_of(daemon)
            answers.text = answer
            found = made(daemon, again=True)
            assert found["lastError"] == (error or found["lastError"] or "a reason"), answer
            assert found["failures"] == 1, answer
            assert found["lastRunAt"] is not None, answer
            assert text_of(daemon) == before, answer
            health = daemon.api.get("/health").ok()["synthesis"]
            assert health == {"running": False, "failing": True, "lastError": found["lastError"]}, answer
            answers.text = None
            eventually(lambda: made(daemon, again=True)["lastError"] is None, within_s=60, what="a run that succeeds")
            assert daemon.api.get("/health").ok()["synthesis"]["failing"] is False, answer


def test_secrets_and_what_is_too_long_are_cut_out_of_an_answer() -> None:
    hostile = "\n".join(
        [f"- The token is {SECRET}", "<!-- signet: made -->", "## Project: /p/bank", *["- again"] * 9000]
    )
    with pipeline(ScriptedModel(fault=Answers(hostile))) as (daemon, _):
        daemon.api.remember(VIM)
        finished(daemon)
        assert made(daemon)["lastError"] is None
        text = text_of(daemon)
        assert SECRET not in text
        text, heading, by_date = text.partition("\n## Temporal Index\n")
        assert heading
        assert len(by_date) < 500
        assert len(text) < 4 * 4000 + 500
        assert text.endswith("- again\n")
        assert text.count("<!-- signet:") == 1
        assert "\n## Project:" not in text


def child(daemon: LiveDaemon, role: str) -> int:
    actors = daemon.api.get("/api/status").ok()["actors"]
    return next(actor["pid"] for actor in actors if actor["role"] == role)


@pytest.mark.parametrize("role", ["extractor", "gateway"])
def test_a_process_that_is_killed_in_the_middle_of_a_run_leaves_the_present_file(role: str) -> None:
    answers = Answers()
    with pipeline(ScriptedModel(fault=answers)) as (daemon, provider):
        daemon.api.remember(VIM)
        finished(daemon)
        made(daemon)
        before = text_of(daemon)
        answers.text = Act("hang")
        daemon.api.post("/api/synthesis/trigger", {"again": True}).ok()
        eventually(lambda: len(prompts(provider)) == 2, within_s=30, what="the model is asked")
        os.kill(child(daemon, role), signal.SIGKILL)
        eventually(lambda: status(daemon)["lastError"], within_s=60, what="the failure is reported")
        assert text_of(daemon) == before
        if role == "gateway":
            assert "was interrupted" in status(daemon)["lastError"]
        answers.text = "## Global Head\n- made after that"
        eventually(lambda: made(daemon, again=True)["lastError"] is None, within_s=60, what="a run that succeeds")
        assert "made after that" in text_of(daemon)


def test_without_a_model_the_sections_by_date_are_made_and_the_status_says_why_no_more() -> None:
    with pipeline(more="    synthesis: {provider: none}\n") as (daemon, provider):
        daemon.api.remember("The ports of all services", sourceType="markdown")
        daemon.api.remember(VIM)
        finished(daemon)
        eventually(lambda: "no model" in str(status(daemon)["waiting"]), within_s=30, what="the reason")
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: not status(daemon)["running"], within_s=60, what="the end of the run")
        made_part = text_of(daemon).partition("-->")[2]
        memory_id = next(each["id"] for each in daemon.api.listed() if each["content"] == VIM)
        assert "## Temporal Index" in made_part
        assert "ports" not in made_part, "imported notes are given only if they were asked for"
        assert f": {VIM} (id {memory_id[:18]})" in made_part
        assert "## Global Head" not in made_part
        assert (status(daemon)["madeBy"], status(daemon)["lastError"]) == ("daemon", None)
        assert prompts(provider) == []
        resolution = daemon.api.get("/api/status").ok()["providerResolution"]
        assert (resolution["extraction"]["effective"], resolution["synthesis"]["effective"]) == ("ollama", "none")


def test_a_model_that_does_not_answer_is_reported_and_nothing_is_made_on_request() -> None:
    with live_daemon(config=UNREACHABLE) as daemon:
        daemon.api.remember(VIM)
        eventually(lambda: "no model" in str(status(daemon)["waiting"]), within_s=60, what="the reason")
        refused = daemon.api.post("/api/synthesis/trigger", {}).refused(503)
        assert refused["error"].startswith("Synthesis worker not running: no model")
        assert not Path(daemon.workspace, "MEMORY.md").exists()


def test_ended_sessions_are_in_the_ledger_of_their_project() -> None:
    summaries = ScriptedModel(summaries={"login": {"title": "Move the login form", "summary": SUMMARY}})
    with pipeline(summaries) as (daemon, _):
        said = [turn for number in range(6) for turn in turns(number)]
        body = {"harness": "generic", "sessionKey": "s-1", "transcript": said, "project": SHOP}
        daemon.api.post("/api/hooks/session-end", body).ok()
        finished(daemon, "summarize")
        (summary,) = daemon.api.get("/api/sessions/summaries").ok()["summaries"]
        made(daemon)
        end = f"(id {summary['id'][:18]})"
        of_project = text_of(daemon).partition(f"## Project: {SHOP}\n")[2]
        heads, _, rest = of_project.partition("### Thread Heads\n")[2].partition(
            "\n\n### Session Ledger (Last 30 Days)\n"
        )
        day, shown = summary["latest_at"][:10], SUMMARY.replace("\n\n## Open\n", " Open ")
        assert heads == f"- {day}: Move the login form: {shown} {end}"
        assert rest.splitlines()[0] == f"- {day}: Move the login form {end}"
        assert "Move the login form" in started(daemon, project=SHOP)
        assert "Move the login form" not in started(daemon, project="/p/bank")


def test_a_forgotten_memory_leaves_the_file_and_its_versions_soon_and_no_model_is_asked() -> None:
    with pipeline() as (daemon, provider):
        daemon.api.remember(VIM, visibility="private")
        daemon.api.remember(PORT, agentId="reviewer")
        daemon.api.remember(PORT, project=SHOP)
        finished(daemon, count=3)
        made(daemon)
        made(daemon, agentId="reviewer")
        made(daemon, again=True)
        assert VIM in text_of(daemon)
        assert VIM not in text_of(daemon, "agents", "reviewer")
        assert text_of(daemon, "agents", "reviewer").count("5433") >= 2
        asked = len(prompts(provider))
        with Path(daemon.workspace, "MEMORY.md").open("a") as text:
            text.write("- Call me Ada.\n")
        daemon.api.forget(ids=[row["id"] for row in daemon.api.listed()])

        def texts() -> list[str]:
            return [path.read_text() for path in daemon.workspace.rglob("MEMORY*.md")]

        eventually(
            lambda: not any("5433" in text or VIM in text for text in texts()), within_s=60, what="the lines leave"
        )
        assert len(texts()) >= 3
        assert "- Call me Ada." in text_of(daemon)
        assert len(prompts(provider)) == asked
        assert "5433" not in Path(daemon.workspace, "memory", "synthesis.json").read_text()


LARGE = ("harbour crane ", "la grúa del puerto ", "港の大きな起重機 ", "🏗️ ", "- a line\n")


def test_a_forgotten_memory_leaves_the_file_and_no_session_is_given_it_however_large_the_newest_ones_are() -> None:
    slow = "gateway: {requestTimeoutMs: 120000}\nwriter: {requestTimeoutMs: 60000}\n"
    without_model = "memory:\n  pipelineV2:\n    synthesis: {provider: none}\n"
    with live_daemon(config=slow + without_model, patient=True) as daemon:
        forgotten, kept = daemon.api.remember(PORT)["id"], daemon.api.remember(VIM)["id"]
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: not status(daemon)["running"], within_s=60, what="the end of the run")
        assert PORT in text_of(daemon)
        assert VIM in text_of(daemon)
        for number in range(12):
            words = LARGE[number % len(LARGE)]
            large = f"{number} {words * (890_000 // len(words.encode()))}"
            memory_id = daemon.api.remember(f"number {number} will be large", tags=[f"{number}-{'t' * 400}"] * 99)["id"]
            daemon.api.request("PATCH", f"/api/memory/{memory_id}", {"content": large, "reason": "r"}).ok()
        refused = daemon.api.get("/api/memories", limit=500).refused(413, code="payload_too_large")
        assert "smaller limit" in refused["error"]
        daemon.api.request("DELETE", f"/api/memory/{forgotten}?reason=r").ok()
        record = Path(daemon.workspace, "memory", "synthesis.json")
        eventually(lambda: "5433" not in text_of(daemon) + record.read_text(), within_s=60, what="the line leaves")
        assert f"(id {kept[:18]})" in text_of(daemon), "the sections were made anew"
        start = daemon.api.post("/api/hooks/session-start", {"harness": "generic", "sessionKey": "s"}).ok()
        assert "5433" not in start["inject"]
        assert VIM in start["inject"]
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: not status(daemon)["running"], within_s=60, what="the end of the run")
        assert status(daemon)["lastError"] is None


def test_memories_of_an_agent_that_is_removed_from_the_roster_leave_the_files_of_others() -> None:
    without_model = "memory:\n  pipelineV2:\n    synthesis: {provider: none}\n"
    with live_daemon(config=f"{without_model}agents: {{roster: [{{name: ada}}]}}\n") as daemon:
        daemon.agent("ada").remember(PORT)
        daemon.api.remember(VIM)
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: not status(daemon)["running"], within_s=60, what="the end of the run")
        assert PORT in text_of(daemon)
        present = (daemon.workspace / "agent.yaml").read_text(encoding="utf-8")
        daemon.configure(present.replace("[{name: ada}]", "[{name: bob}]"))
        eventually(lambda: "5433" not in text_of(daemon), within_s=60, what="the line leaves")
        assert VIM in text_of(daemon)
        daemon.configure(present)
        eventually(lambda: len(daemon.api.listed()) == 2, what="the agent is back")
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: PORT in text_of(daemon), within_s=60, what="the line is back")


def test_a_changed_memory_is_shown_as_it_is_now() -> None:
    with pipeline(more="    synthesis: {provider: none}\n") as (daemon, _):
        memory_id = daemon.api.remember(VIM)["id"]
        finished(daemon)
        daemon.api.post("/api/synthesis/trigger", {}).ok()
        eventually(lambda: not status(daemon)["running"], within_s=60, what="the end of the run")
        body = {"content": "The editor of the homelab is emacs.", "reason": "r"}
        daemon.api.request("PATCH", f"/api/memory/{memory_id}", body).ok()
        eventually(lambda: "emacs" in text_of(daemon), within_s=60, what="the new text")
        assert f"{VIM} (id {memory_id[:18]})" not in text_of(daemon)


def test_a_model_of_its_own_makes_the_file() -> None:
    with (
        ScriptedProvider(script=ScriptedModel(), models=("large:70b",)) as other,
        pipeline(more=f"    synthesis: {{provider: ollama, model: 'large:70b', endpoint: '{other.url}'}}\n") as (
            daemon,
            provider,
        ),
    ):
        daemon.api.remember(VIM)
        finished(daemon)
        assert made(daemon)["model"] == "large:70b"
        assert (len(prompts(other)), len(prompts(provider))) == (1, 0)


def test_a_text_that_a_session_was_given_from_the_file_is_not_captured_again() -> None:
    with pipeline(ScriptedModel(fault=in_short)) as (daemon, provider):
        daemon.api.remember(VIM)
        finished(daemon)
        made(daemon)
        inject = daemon.api.post("/api/hooks/session-start", {"harness": "codex", "sessionKey": "s"}).ok()["inject"]
        assert "Ada edits with vim" in inject.partition("## Working Memory")[2]
        for number in range(12):  # the chunks end at other places each time
            note = f"{'Some words. ' * number}{inject}\n\nNoor moved firewall {number} to the cellar."
            daemon.agent(f"agent-{number}").remember(note)
        eventually(lambda: daemon.read("SELECT count(*) FROM memory_jobs WHERE status != 'completed'") == [(0,)])
        shown = [data_of(asked.prompt) for asked in provider.asked if stage_of(asked.prompt) == "extraction"]
        own = " ".join(line for lines in shown[1:] for line in lines)
        for number in range(12):
            assert f"Noor moved firewall {number} to the cellar." in own
            own = own.replace(f"Noor moved firewall {number} to the cellar.", "")
        assert not own.replace("Some words.", "").strip()


def test_the_command_has_the_file_made_and_shows_what_changed() -> None:
    with pipeline() as (daemon, _):
        Path(daemon.workspace, "MEMORY.md").write_text("# Mine\n")
        daemon.api.remember(VIM)
        finished(daemon)
        eventually(lambda: status(daemon)["waiting"] is None, within_s=30, what="a model")
        assert "is up to date" in signet(daemon, "synthesis", "run")
        assert "by qwen3:4b" in signet(daemon, "synthesis", "status")
        assert f"+- [fact] {VIM}" in signet(daemon, "synthesis", "diff")
