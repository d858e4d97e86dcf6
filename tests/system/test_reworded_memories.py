"""A memory that changed its words, or was recovered, reaches the sessions again that had received it before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon
from tests.support.scripted_model import ScriptedModel
from tests.system.test_pipeline import MUTATING, about, pipeline

MODEL = ScriptedModel({"since May": about("update"), "disabled": about("update")})


class Memory(NamedTuple):
    """A memory of the daemon, alone in its project, and the sessions that have received it."""

    daemon: LiveDaemon
    id: str
    topic: str
    sessions: tuple[str, ...]

    @property
    def project(self) -> str:
        return f"/home/ada/{self.topic}"

    @property
    def words(self) -> str:
        return str(self.daemon.api.memory(self.id)["content"])

    @property
    def reworded(self) -> str:
        return f"The {self.topic} service listens on port 4200"

    def patch(self, **fields: Any) -> None:
        self.daemon.api.request("PATCH", f"/api/memory/{self.id}", {"reason": "it was wrong", **fields}).ok()

    def modify(self, **fields: Any) -> None:
        patch = {"id": self.id, "reason": "it was wrong", **fields}
        self.daemon.api.post("/api/memory/modify", {"patches": [patch]}).ok()

    def signet(self, *arguments: str) -> None:
        done = CliRunner().invoke(cli, ["--url", f"http://127.0.0.1:{self.daemon.port}", *arguments])
        assert done.exit_code == 0, done.output

    def forget(self) -> None:
        self.daemon.api.request("DELETE", f"/api/memory/{self.id}?reason=outdated").ok()

    def recover(self) -> None:
        self.daemon.api.post(f"/api/memory/{self.id}/recover", {"reason": "it holds after all"}).ok()

    def hook(self, name: str, session: str, **fields: Any) -> Any:
        body = {"harness": "codex", "project": self.project, "sessionKey": session, **fields}
        return self.daemon.api.post(f"/api/hooks/{name}", body).ok()

    def learn(self, fact: str) -> None:
        """Have the pipeline learn the newer fact from a note."""
        self.daemon.api.remember(f"{fact} The invoices of {self.topic} are kept in a folder.", project=self.project)

    def ask(self, way: str, session: str) -> bool:
        """Return whether the session is given the memory in the words that it has now."""
        words = self.words
        question = f"on which port does the {self.topic} service listen?"
        if way == "recall":
            fields = {"project": self.project, "sessionKey": session, "min_score": 0}
            return words in [row["content"] for row in self.daemon.api.recall(question, **fields)["results"]]
        if way == "start":
            return words in self.hook("session-start", session)["inject"]
        return words in self.hook("user-prompt-submit", session, userPrompt=question)["inject"]


def edit_there_and_back(memory: Memory) -> None:
    before = memory.words
    memory.patch(content=memory.reworded)
    memory.patch(content=before)


def forget_and_recover(memory: Memory) -> None:
    memory.forget()
    memory.recover()


def edit_all_but_the_words(memory: Memory) -> None:
    memory.patch(content=memory.words, importance=0.9, type="decision", who="ada")


def compact(memory: Memory) -> None:
    for session in memory.sessions:
        memory.hook("compaction-complete", session, summary="We talked about a port.")


def update_by_the_pipeline(memory: Memory) -> None:
    memory.learn(f"The {memory.topic} service listens on port 4300 since May.")
    eventually(lambda: "since May" in memory.words, within_s=120, what="the pipeline has updated the memory")


def approve_an_update(memory: Memory) -> None:
    memory.patch(content=f"The {memory.topic} service is enabled on its port.")
    for session in memory.sessions:
        assert memory.ask("recall", session)
    memory.learn(f"The {memory.topic} service is disabled on its port.")
    queue = "/api/memory/review-queue"

    def waiting() -> list[str]:
        items = memory.daemon.api.get(queue).ok()["items"]
        return [item["id"] for item in items if item["memory_id"] == memory.id]

    eventually(waiting, within_s=120, what="the update waits for a person")
    memory.daemon.api.post(f"{queue}/{waiting()[0]}/approve", {}).ok()
    assert "disabled" in memory.words


def undo_the_run(memory: Memory) -> None:
    update_by_the_pipeline(memory)
    for session in memory.sessions:
        assert memory.ask("recall", session)
    runs = memory.daemon.api.get("/api/pipeline/runs").ok()["runs"]
    history = memory.daemon.api.get(f"/api/memory/{memory.id}/history").ok()["history"]
    (mine,) = [run["id"] for run in runs if run["id"] in str(history) and run["counts"].get("updated")]
    memory.daemon.api.post(f"/api/pipeline/runs/{mine}/undo", {"reason": "wrong"}).ok()


class Case(NamedTuple):
    topic: str
    given_by: str
    change: Callable[[Memory], object]
    asked_by: str
    again: bool


CASES = (
    Case("amber", "recall", lambda memory: memory.patch(content=memory.reworded), "recall", True),
    Case("basalt", "recall", lambda memory: memory.patch(content=memory.reworded), "prompt", True),
    Case("cobalt", "prompt", lambda memory: memory.patch(content=memory.reworded), "prompt", True),
    Case("dolomite", "prompt", lambda memory: memory.patch(content=memory.reworded), "recall", True),
    Case("emerald", "start", lambda memory: memory.patch(content=memory.reworded), "prompt", True),
    Case("feldspar", "start", lambda memory: memory.patch(content=memory.reworded), "recall", True),
    Case("garnet", "recall", lambda memory: memory.modify(content=memory.reworded), "recall", True),
    Case("hematite", "prompt", lambda memory: memory.modify(content=memory.reworded), "prompt", True),
    Case("iolite", "start", lambda memory: memory.signet("edit", memory.id, "-c", memory.reworded), "prompt", True),
    Case("jasper", "recall", update_by_the_pipeline, "recall", True),
    Case("kyanite", "prompt", approve_an_update, "recall", True),
    Case("larimar", "start", undo_the_run, "recall", True),
    Case("malachite", "recall", forget_and_recover, "recall", True),
    Case("nephrite", "prompt", forget_and_recover, "prompt", True),
    Case("obsidian", "start", forget_and_recover, "recall", True),
    Case("peridot", "recall", edit_there_and_back, "recall", True),
    Case("quartz", "recall", compact, "recall", True),
    Case("rhodonite", "recall", lambda memory: memory.patch(tags=["ops"]), "recall", False),
    Case("sapphire", "prompt", lambda memory: memory.patch(tags=["ops"]), "prompt", False),
    Case("topaz", "recall", lambda memory: memory.patch(pinned=True), "recall", False),
    Case("ulexite", "start", lambda memory: memory.patch(pinned=True), "prompt", False),
    Case("variscite", "recall", lambda memory: memory.patch(content=memory.words), "recall", False),
    Case("wolframite", "prompt", lambda memory: memory.modify(content=memory.words), "prompt", False),
    Case("xenotime", "recall", edit_all_but_the_words, "recall", False),
    Case("yttrium", "start", edit_all_but_the_words, "prompt", False),
    Case("zircon", "recall", lambda memory: memory.ask("recall", "another session"), "recall", False),
    Case("agate", "prompt", lambda memory: None, "prompt", False),
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with pipeline(MODEL, MUTATING) as (started, _):
        yield started


def test_a_session_receives_a_memory_again_only_when_its_words_changed_or_it_was_recovered(daemon: LiveDaemon) -> None:
    wrong: list[str] = []
    memories = {}

    def check(case: Case, session: str, again: bool, when: str) -> None:
        if memories[case.topic].ask(case.asked_by, session) is not again:
            wrong.append(f"{case.topic} {when}: {'not given' if again else 'given'} again")

    for case in CASES:
        topic = case.topic
        content = f"The {topic} service listens on port 4100"
        made = daemon.api.remember(content, project=f"/home/ada/{topic}", tags=["net"], type="decision")["id"]
        memories[topic] = memory = Memory(daemon, made, topic, (f"{topic}, running", f"{topic}, killed"))
        for session in memory.sessions:
            assert memory.ask(case.given_by, session), topic
            check(case, session, False, "before a change")
    received = "SELECT count(DISTINCT session_key) FROM session_recalls"
    eventually(lambda: daemon.read(received)[0][0] == 2 * len(CASES), what="what each session received is stored")
    for case in CASES:
        case.change(memories[case.topic])
        running, _ = memories[case.topic].sessions
        check(case, running, case.again, "after the change")
        check(case, running, False, "after that")
    epochs = "SELECT sum(context_epoch) FROM session_contexts WHERE session_key LIKE 'quartz, %'"
    eventually(lambda: daemon.read(epochs)[0][0] == 2, what="the epoch of both sessions is stored")
    daemon.kill("gateway")
    daemon.wait_ready()
    for case in CASES:
        _, killed = memories[case.topic].sessions
        check(case, killed, case.again, "after a restart")
        check(case, killed, False, "after a restart and that")
    assert wrong == []
