"""The hooks by which a harness makes MEMORY.md, its status, what changed, and when the daemon makes it.

Source: docs/compatibility.md "MEMORY.md"; docs/guides/working-memory.md.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.load import load_config
from signet_actors.domain.providers import CircuitState, ModelState, OutcomeCounts, ProviderReport, Selection
from signet_actors.domain.synthesis import DAY_MS
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode, SignetError, Unavailable
from signet_actors.features.session_summaries.api import FindDated
from signet_actors.gateway.synthesis import synthesis as synthesis_module
from signet_actors.gateway.synthesis.memory_file import MemoryFile, Part, Record
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus, Synthesize, Synthesized
from signet_actors.protocol.message import Answered
from signet_actors.protocol.searcher import (
    FindForgetCandidates,
    ForgetCandidate,
    ForgetCandidatesFound,
    ListMemories,
    MemoryListed,
)
from signet_actors.protocol.sessions import FindSessionStart, SessionStartFound
from tests.support.memory_api import NOW_MS, MemoryApi, memory
from tests.support.scripted_model import data_of

HOOK, COMPLETE = "/api/hooks/synthesis", "/api/hooks/synthesis/complete"
SHOP = memory(id="s1", content="The shop listens on port 5433", project="/p/shop")
EDITOR = memory(id="e1", content="The editor is vim")
SECRET = "ghp_" + "a1B2" * 9


def synthesis_api(workspace: Path, **settings: Any) -> MemoryApi:
    """Return a gateway with these settings, whose store has two memories."""
    (workspace / "agent.yaml").write_text(json.dumps(settings))
    api = MemoryApi(workspace, config=load_config(workspace, {}).config)

    def found(query: FindSessionStart) -> SessionStartFound:
        both = [EDITOR] if query.project is None else [SHOP, EDITOR]
        return SessionStartFound([], both, {})

    api.bus.script |= {ListMemories: MemoryListed([SHOP, EDITOR], 2, 2, 0, 2), FindSessionStart: found}
    api.bus.script[FindDated] = Answered(b'{"summaries":[]}')
    return api


def ok(api: MemoryApi, method: str, target: str, body: Any = None, **headers: str) -> Any:
    answer = api.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
    assert answer.status == 200, answer.raw
    return answer.json


def test_the_configuration_says_who_makes_the_file_and_how_often(tmp_path: Path) -> None:
    api = synthesis_api(
        tmp_path,
        memory={"synthesis": {"harness": "openclaw", "model": "sonnet", "schedule": "weekly", "max_tokens": 900}},
    )
    found = ok(api, "GET", "/api/hooks/synthesis/config")
    assert found == {
        "enabled": True,
        "harness": "openclaw",
        "model": "sonnet",
        "schedule": "weekly",
        "max_tokens": 900,
        "provider": "auto",
    }


def test_a_harness_gets_the_prompt_and_the_memories_that_it_shows(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path, memory={"synthesis": {"harness": "openclaw", "model": "sonnet"}})
    found = ok(api, "POST", HOOK, b'{"trigger": "scheduled"}', content_type="text/plain")
    assert (found["harness"], found["model"], found["fileCount"]) == ("openclaw", "sonnet", 2)
    assert [shown["id"] for shown in found["memories"]] == ["e1", "s1"]
    general, heading, project = data_of(found["prompt"])
    assert "vim" in general
    assert "5433" not in general
    assert heading == "## Project: /p/shop"
    assert "5433" in project


def test_the_memories_are_those_that_the_agent_may_read(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    ok(api, "POST", HOOK, {"agentId": "reviewer"})
    asked = [
        sent.body.read.agent_id for sent in api.bus.asked if isinstance(sent.body, ListMemories | FindSessionStart)
    ]
    assert set(asked) == {"reviewer"}


def test_what_a_harness_made_is_written_without_secrets(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    done = ok(api, "POST", COMPLETE, {"content": f"```markdown\n## Now\n- token {SECRET}\n```", "harness": "openclaw"})
    assert (done["success"], done["written"], done["redacted"]) == (True, True, True)
    text = (tmp_path / "MEMORY.md").read_text()
    assert SECRET not in text
    assert "```" not in text
    status = ok(api, "GET", "/api/synthesis/status")
    assert (status["madeBy"], status["running"], status["edited"]) == ("openclaw", False, False)
    assert status["lastRunAt"] == "2026-02-21T10:00:00.000Z"


@pytest.mark.parametrize("content", ["", "  \n", "<think>only thoughts</think>", "```\n```"])
def test_an_empty_text_is_refused_and_the_present_file_stays(tmp_path: Path, content: str) -> None:
    (tmp_path / "MEMORY.md").write_text("# Mine\n")
    answer = synthesis_api(tmp_path).request("POST", COMPLETE, {"content": content})
    assert answer.status == 400
    assert answer.json["error"] == "content is required"
    assert (tmp_path / "MEMORY.md").read_text() == "# Mine\n"


def test_a_text_without_content_or_of_too_much_is_refused(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    assert api.request("POST", COMPLETE, {}).json["error"] == "content is required"
    assert api.request("POST", COMPLETE, {"content": "x" * 200_001}).status == 413


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs.md").write_text("theirs")
    (tmp_path / "MEMORY.md").symlink_to(tmp_path / "theirs.md")
    answer = synthesis_api(tmp_path).request("POST", COMPLETE, {"content": "# New"})
    assert answer.status == 409
    assert "symbolic link" in answer.json["error"]
    assert (tmp_path / "theirs.md").read_text() == "theirs"


def test_a_hook_that_is_switched_off_does_nothing_and_says_so(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path, hooks={"synthesis": {"enabled": False}})
    assert ok(api, "GET", "/api/hooks/synthesis/config")["enabled"] is False
    for path, body in ((HOOK, {}), (COMPLETE, {"content": "# New"})):
        done = ok(api, "POST", path, body)
        assert (done["skipped"], done["reason"]) == (True, "disabled")
    done = ok(synthesis_api(tmp_path), "POST", COMPLETE, {"content": "# New"}, x_signet_no_hooks="1")
    assert done["reason"] == "no_hooks"
    assert not (tmp_path / "MEMORY.md").exists()


def test_one_file_is_made_at_a_time(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    api.state.synthesis.running = "default"
    answer = api.request("POST", COMPLETE, {"content": "# New"})
    assert (answer.status, answer.json["error"]) == (409, "Synthesis already in progress")
    assert ok(api, "GET", "/api/synthesis/status")["running"] is True


def test_the_diff_shows_what_changed_since_a_version(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    assert ok(api, "GET", "/api/synthesis/diff") == {"version": None, "diff": None}
    for number in range(3):
        api.clock.now_ms = NOW_MS + number * 1000
        ok(api, "POST", COMPLETE, {"content": f"- text {number}"})
    versions = ok(api, "GET", "/api/synthesis/status")["versions"]
    assert [version["edited"] for version in versions] == [False, False]
    newest = ok(api, "GET", "/api/synthesis/diff")
    assert newest["version"] == versions[0]["name"]
    assert "-- text 1" in newest["diff"].splitlines()
    oldest = ok(api, "GET", f"/api/synthesis/diff?version={versions[1]['name']}")
    assert "-- text 0" in oldest["diff"].splitlines()
    assert api.request("GET", "/api/synthesis/diff?version=../agent.yaml").status == 404


def test_a_status_says_that_a_person_changed_the_file(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path)
    ok(api, "POST", COMPLETE, {"content": "- made"})
    with (tmp_path / "MEMORY.md").open("a") as text:
        text.write("- by hand\n")
    assert ok(api, "GET", "/api/synthesis/status")["edited"] is True
    done = ok(api, "POST", COMPLETE, {"content": "- made anew"})
    assert done["edited"] is True
    assert "-edited" in done["version"]
    assert (tmp_path / "MEMORY.md").read_text().startswith("- by hand\n")


def model_state(*, available: bool = True, waits_ms: int = 0) -> ModelState:
    counts = OutcomeCounts(0, 0, 0, 0)
    report = ProviderReport(
        "ollama", "m", CircuitState.CLOSED, waits_ms, "the circuit is open", counts, 0, 0, 0, 0, 0, {}, ""
    )
    selection = Selection("auto", "ollama" if available else "none", "m", "Ollama does not answer", available, "")
    return ModelState(selection, report if available else None)


def extractor(model: ModelState | None) -> ExtractorStatus:
    return ExtractorStatus(mode="full", model=model_state(), runners=[], rejected={}, synthesis=model)


def daemon_api(workspace: Path, model: ModelState | None = None, **settings: Any) -> MemoryApi:
    """Return a gateway whose model answers with the data of its prompt."""
    api = synthesis_api(workspace, **settings)
    api.bus.script[GetExtractorStatus] = extractor(model or model_state())
    api.bus.script[Synthesize] = lambda asked: Synthesized("\n".join(data_of(asked.prompt)), "m")
    return api


def due(api: MemoryApi) -> str | None:
    """Return why the file was not made when its time was checked, None if it was."""
    return asyncio.run(api.state.synthesis.make_if_due("default"))


def calls(api: MemoryApi) -> int:
    return sum(isinstance(sent.body, Synthesize) for sent in api.bus.asked)


@pytest.mark.parametrize(("schedule", "days"), [("daily", 1), ("weekly", 7)])
def test_the_daemon_makes_the_file_by_its_schedule_if_memories_have_changed(
    tmp_path: Path, schedule: str, days: int
) -> None:
    api = daemon_api(tmp_path, memory={"synthesis": {"schedule": schedule}})
    assert due(api) is None
    assert calls(api) == 2
    assert due(api) == "it is not due"
    api.clock.now_ms += days * DAY_MS - 1
    assert due(api) == "it is not due"
    api.clock.now_ms += 1
    assert due(api) == "no memory has changed"
    changed = msgspec.structs.replace(EDITOR, version=EDITOR.version + 1, content="The editor is emacs")
    api.bus.script[FindSessionStart] = SessionStartFound([], [changed], {})
    assert due(api) is None
    assert calls(api) == 3
    assert "emacs" in (tmp_path / "MEMORY.md").read_text()
    status = ok(api, "GET", "/api/synthesis/status")
    assert status["nextRunAt"] == iso(api.clock.now_ms + days * DAY_MS)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"memory": {"synthesis": {"schedule": "on-demand"}}}, "it is not due"),
        ({"memory": {"synthesis": {"harness": "openclaw"}}}, "openclaw makes it"),
        (
            {"memory": {"pipelineV2": {"autonomous": {"frozen": True}}}},
            "memory.pipelineV2.autonomous.frozen is set",
        ),
        (
            {"memory": {"pipelineV2": {"synthesis": {"provider": "none"}}}},
            "no model: memory.pipelineV2.synthesis.provider is none",
        ),
    ],
)
def test_the_daemon_makes_nothing_by_itself_if_the_configuration_says_so(
    tmp_path: Path, settings: Any, reason: str
) -> None:
    api = daemon_api(tmp_path, **settings)
    assert due(api) == reason
    assert calls(api) == 0


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (model_state(available=False), "no model: Ollama does not answer"),
        (model_state(waits_ms=500), "the circuit is open"),
    ],
)
def test_a_model_that_cannot_be_asked_is_waited_for_and_costs_no_attempt(
    tmp_path: Path, model: ModelState, reason: str
) -> None:
    api = daemon_api(tmp_path, model)
    assert due(api) == reason
    status = ok(api, "GET", "/api/synthesis/status")
    assert (status["waiting"], status["failures"], status["lastError"]) == (reason, 0, None)
    assert status["nextRunAt"] is None, "it waits for no time"
    refused = api.request("POST", "/api/synthesis/trigger", {})
    assert (refused.status, refused.json["error"]) == (503, f"Synthesis worker not running: {reason}")


def test_the_sections_by_date_are_renewed_once_a_day_while_no_model_can_be_asked(tmp_path: Path) -> None:
    api = daemon_api(tmp_path, model_state(available=False))
    due(api)
    text = (tmp_path / "MEMORY.md").read_text()
    assert f"## Temporal Index\n- 2026-02-21: {EDITOR.content} (id e1)" in text
    assert f"## Project: /p/shop\n\n### Temporal Index\n- 2026-02-21: {SHOP.content} (id s1)" in text
    api.bus.script[ListMemories] = MemoryListed([EDITOR], 1, 1, 0, 1)
    due(api)
    assert (tmp_path / "MEMORY.md").read_text() == text
    api.clock.now_ms += DAY_MS
    due(api)
    assert "5433" not in (tmp_path / "MEMORY.md").read_text()
    status = ok(api, "GET", "/api/synthesis/status")
    assert (status["lastRunAt"], status["failures"], len(status["versions"])) == (None, 0, 1)
    assert calls(api) == 0


@pytest.mark.parametrize("query", [ListMemories, FindDated])
def test_a_forgotten_memory_leaves_the_sections_by_date_even_if_they_cannot_be_made_anew(
    tmp_path: Path, query: type[msgspec.Struct]
) -> None:
    api = daemon_api(tmp_path, model_state(available=False))
    due(api)
    answers = api.bus.script[query]
    api.bus.script[query] = SignetError("the response would be too long", code=ErrorCode.PAYLOAD_TOO_LARGE)
    live = [ForgetCandidate("s1", 1.0, pinned=False, version=SHOP.version)]
    api.bus.script[FindForgetCandidates] = ForgetCandidatesFound(live)
    asyncio.run(api.state.synthesis.drop_forgotten("default"))
    text = (tmp_path / "MEMORY.md").read_text()
    assert EDITOR.content not in text
    assert f"{SHOP.content} (id s1)" in text
    third = memory(id="e3", content="The shell is fish")
    api.bus.script |= {query: answers, ListMemories: MemoryListed([SHOP, third], 2, 2, 0, 2)}
    due(api)
    assert f"{third.content} (id e3)" in (tmp_path / "MEMORY.md").read_text(), "they are due at once"


def test_a_line_that_several_memories_share_asks_for_a_new_run(tmp_path: Path) -> None:
    api = daemon_api(tmp_path)
    third = memory(id="e3", content="The shell is fish")
    api.bus.script[FindSessionStart] = lambda query: SessionStartFound(
        [], [EDITOR, third] if query.project is None else [SHOP], {}
    )
    api.bus.script[Synthesize] = Synthesized("- vim and fish (id e1, e3)\n- fish (id e3)", "m")
    assert due(api) is None
    live = [ForgetCandidate(each.id, 1.0, pinned=False, version=each.version) for each in (third, SHOP)]
    api.bus.script[FindForgetCandidates] = ForgetCandidatesFound(live)
    asyncio.run(api.state.synthesis.drop_forgotten("default"))
    text = (tmp_path / "MEMORY.md").read_text().partition("## Project")[0]
    assert ("- fish (id e3)" in text, "vim" in text) == (True, False)
    assert api.state.synthesis.file("default").record().stale
    assert calls(api) == 2
    assert due(api) is None, "it is due at once, not only after a day"
    assert calls(api) > 2
    assert not api.state.synthesis.file("default").record().stale


def test_what_a_harness_made_loses_the_lines_of_a_forgotten_memory_and_gets_no_others(tmp_path: Path) -> None:
    api = synthesis_api(tmp_path, memory={"synthesis": {"harness": "openclaw"}})
    ok(api, "POST", COMPLETE, {"content": "## Now\n- vim (id e1)\n- 5433 (id s1)\n- else", "harness": "openclaw"})
    live = [ForgetCandidate("e1", 1.0, pinned=False, version=EDITOR.version)]
    api.bus.script[FindForgetCandidates] = ForgetCandidatesFound(live)
    asyncio.run(api.state.synthesis.drop_forgotten("default"))
    assert (tmp_path / "MEMORY.md").read_text().partition("-->\n\n")[2] == "## Now\n- vim (id e1)\n- else\n"
    assert ok(api, "GET", "/api/synthesis/status")["madeBy"] == "openclaw"


def test_a_file_that_is_written_during_a_check_stays_and_is_checked_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis_module, "SETTLE_S", 0)
    api = synthesis_api(tmp_path)
    ok(api, "POST", COMPLETE, {"content": "- old (id e1)", "harness": "openclaw"})
    file, path, texts = api.state.synthesis.file("default"), tmp_path / "MEMORY.md", []

    def found(query: FindForgetCandidates) -> ForgetCandidatesFound:
        if not texts:
            parts = [Part("", "- new (id e1)\n- else", sources={"e1": 1})]
            file.replace(parts[0].text, Record(parts=parts, by="openclaw"), NOW_MS)
        texts.append(path.read_text())
        return ForgetCandidatesFound([])

    api.bus.script[FindForgetCandidates] = found

    async def checked() -> str:
        await api.state.synthesis.drop_forgotten("default")
        text = path.read_text()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
        return text

    assert asyncio.run(checked()) == texts[0]
    assert "- new (id e1)" in texts[0]
    assert path.read_text().endswith("-->\n\n- else\n"), "it was not checked again"


def test_after_a_failure_the_daemon_tries_again_later_and_later(tmp_path: Path) -> None:
    api = daemon_api(tmp_path)
    api.bus.script[Synthesize] = Unavailable("the model did not answer in time")
    for failures, wait_ms in ((1, 600_000), (2, 1_200_000), (3, 2_400_000)):
        assert due(api) is None
        status = ok(api, "GET", "/api/synthesis/status")
        assert (status["failures"], status["lastError"]) == (failures, "the model did not answer in time")
        assert ok(api, "GET", "/health")["synthesis"]["failing"] is True
        api.clock.now_ms += wait_ms - 1
        assert due(api) == "it is not due"
        api.clock.now_ms += 1
    assert not (tmp_path / "MEMORY.md").exists()


def test_without_a_memory_nothing_is_made(tmp_path: Path) -> None:
    api = daemon_api(tmp_path)
    api.bus.script |= {ListMemories: MemoryListed([], 0, 0, 0, 0), FindSessionStart: SessionStartFound([], [], {})}
    assert due(api) == "no memory has changed"
    asyncio.run(triggered(api))
    assert ok(api, "GET", "/api/synthesis/status")["lastError"] == "there is no memory yet"


async def triggered(api: MemoryApi, **body: Any) -> list[int]:
    """Return the statuses of two triggers, the second one during the first run, after which this returns."""
    raw = json.dumps(body).encode()
    answers = [await api.requested("POST", "/api/synthesis/trigger", raw, {}) for _ in range(2)]
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
    return [answer.status for answer in answers]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    api = daemon_api(tmp_path)
    assert asyncio.run(triggered(api)) == [200, 409]
    assert calls(api) == 2


def test_a_run_that_was_cut_off_is_reported(tmp_path: Path) -> None:
    api = daemon_api(tmp_path)
    file = api.state.synthesis.file("default")
    file.store(Record(begun_at="2026-02-21T09:00:00.000Z", failures=1))
    error = ok(api, "GET", "/api/synthesis/status")["lastError"]
    assert error == "the run that began at 2026-02-21T09:00:00.000Z was interrupted"
    assert due(api) is None
    assert ok(api, "GET", "/api/synthesis/status")["lastError"] is None


def test_the_record_is_never_read_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = daemon_api(tmp_path, model_state(available=False))
    synthesis, readers, record = api.state.synthesis, set(), MemoryFile.record

    def noted(file: MemoryFile) -> Record:
        readers.add(threading.current_thread())
        return record(file)

    monkeypatch.setattr(MemoryFile, "record", noted)

    async def all_writes() -> threading.Thread:
        await synthesis.complete("default", "- vim (id e1)", "openclaw")
        await synthesis.drop_forgotten("default")
        api.clock.now_ms += DAY_MS
        assert "Ollama does not answer" in str(await synthesis.make_if_due("default"))
        return threading.current_thread()

    api.bus.script[FindForgetCandidates] = ForgetCandidatesFound([ForgetCandidate("e1", 1.0, pinned=False, version=9)])
    assert asyncio.run(all_writes()) not in readers
    assert "## Temporal Index" in (tmp_path / "MEMORY.md").read_text(), "not all of them have written"
    assert readers
