"""Secrets are redacted in every field of a memory, and a long text does not block the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import Config, RedactionConfig
from signet_actors.errors import Busy
from signet_actors.gateway import ingest as stored_text
from signet_actors.gateway.ingest import MAX_UNBOUNDED_CHARS
from signet_actors.gateway.limits import TextExecutor
from signet_actors.protocol.searcher import CommonWords, GetCommonWords
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMemory,
    Forgotten,
    ManyModified,
    Modified,
    ModifyMany,
    ModifyMemory,
    Recovered,
    RecoverMemory,
    Remember,
    RememberChunks,
    Remembered,
)
from tests.support.memory_api import MemoryApi

# built here, so that no complete one is in the repository
TOKEN = "gh" + "p_" + "aB3dE5fG7h" * 3 + "J9kL2m"
PASSWORD = "s3cr" + "3tP4ss" + "w0rd!x"
BEARER = "q7Rt" + "Zx81mN" + "04vBc9Lk2w"
LONG = "A plain sentence of a long text. " * (MAX_UNBOUNDED_CHARS // 30)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Remember] = _remembered
    made.bus.script[RememberChunks] = lambda asked: ChunksRemembered(
        group_id="g", ids=[str(at) for at, _ in enumerate(asked.chunks)], deduped=False
    )
    done = Modified("m1", "updated", 2, 3, content_changed=True, embedded=True)
    made.bus.script[ModifyMemory] = done
    made.bus.script[ModifyMany] = lambda asked: ManyModified(results=[done] * len(asked.patches))
    return made


def _remembered(asked: Remember) -> Remembered:
    kept = asked.memory
    return Remembered(
        "new", kept.type, list(kept.tags), kept.pinned, kept.importance, kept.content, False, False, kept.importance
    )


def _sent(api: MemoryApi, kind: type) -> str:
    return msgspec.json.encode(api.bus.only(kind).body).decode().lower()


FIELDS: list[dict[str, Any]] = [
    {"tags": ["a", TOKEN]},
    {"tags": f"a,{TOKEN}"},
    {"who": TOKEN},
    {"project": f"/srv/{TOKEN}"},
    {"sourceType": TOKEN},
    {"sourceId": TOKEN},
    {"source_path": f"/files/{TOKEN}.md"},
    {"runtimePath": f"/files/{TOKEN}"},
    {"metadata": {"sourcePath": f"/files/{TOKEN}", "runtime_path": TOKEN, "idempotencyKey": TOKEN}},
    {"idempotencyKey": TOKEN},
    {"changed_by": TOKEN},
]


@pytest.mark.parametrize("fields", FIELDS, ids="-".join)
def test_a_secret_beside_the_content_is_cut_too(api: MemoryApi, fields: dict[str, Any]) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": "some text", **fields})
    assert answer.status == 200
    assert TOKEN.lower() not in _sent(api, Remember)
    assert TOKEN.lower() not in answer.raw.decode().lower()
    assert answer.json.get("redacted") is (None if "changed_by" in fields else True)


@pytest.mark.parametrize("prefix", [f"[{TOKEN}]: ", f"critical: [auth,{TOKEN}]: "])
def test_a_secret_in_a_prefix_is_no_tag(api: MemoryApi, prefix: str) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": f"{prefix}some text"})
    kept = api.bus.only(Remember).body.memory
    assert TOKEN.lower() not in _sent(api, Remember)
    assert (kept.content, kept.tags[-1]) == ("some text", "[redacted:github-token]")
    assert (answer.json["redacted"], kept.pinned) == (True, prefix.startswith("critical"))


def test_the_name_of_a_secret_may_stand_in_the_prefix(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": f"[db password]:      {PASSWORD}"})
    assert PASSWORD.lower() not in _sent(api, Remember)


def test_a_type_that_is_a_secret_is_refused(api: MemoryApi) -> None:
    for method, target in (("POST", "/api/memory/remember"), ("PATCH", "/api/memory/m1")):
        answer = api.request(method, target, {"content": "c", "reason": "r", "type": TOKEN})
        assert (answer.status, answer.json["field"]) == (400, "type")


@pytest.mark.parametrize("field", ["scope", "agentId"])
def test_an_identifier_that_holds_a_secret_is_refused_and_nothing_is_stored(api: MemoryApi, field: str) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": "c", field: TOKEN})
    assert (answer.status, answer.json["field"]) == (400, field)
    assert TOKEN not in answer.raw.decode()
    assert [sent for sent in api.bus.asked if isinstance(sent.body, Remember)] == []


def test_different_keys_with_secrets_stay_different(api: MemoryApi) -> None:
    other = TOKEN[:-1] + "x"
    for key in (TOKEN, other, TOKEN, "plain"):
        api.request("POST", "/api/memory/remember", {"content": "c", "idempotencyKey": key})
    keys = [sent.body.memory.idempotency_key for sent in api.bus.asked if isinstance(sent.body, Remember)]
    assert keys[0] == keys[2] != keys[1]
    assert keys[3] == "plain"


@pytest.mark.parametrize("fields", [{"reason": f"because {TOKEN}"}, {"reason": "r", "tags": [TOKEN]}])
def test_a_patch_takes_no_secret_along(api: MemoryApi, fields: dict[str, Any]) -> None:
    answer = api.request("PATCH", "/api/memory/m1", {"importance": 0.5, **fields})
    assert answer.json["redacted"] is True
    assert TOKEN.lower() not in _sent(api, ModifyMemory)


def test_a_batch_takes_no_secret_along(api: MemoryApi) -> None:
    patches = [
        {"id": "a", "importance": 0.5},
        {"id": "b", "importance": 0.5, "reason": TOKEN},
        {"id": "c", "who": TOKEN, "reason": "r"},
        {"id": "d", "tags": [TOKEN], "reason": "r"},
        {"id": "e", "importance": 0.5, "reason": "r"},
    ]
    answer = api.request("POST", "/api/memory/modify", {"reason": f"because {TOKEN}", "patches": patches})
    assert [result.get("redacted", False) for result in answer.json["results"]] == [True, True, True, True, False]
    assert TOKEN.lower() not in _sent(api, ModifyMany)


def test_the_reason_of_a_deletion_or_recovery_holds_no_secret(api: MemoryApi) -> None:
    api.bus.script[ForgetMemory] = Forgotten("m1", "deleted", 1, 2)
    api.bus.script[RecoverMemory] = Recovered("m1", "recovered", 2, 3)
    api.request("DELETE", "/api/memory/m1", {"reason": TOKEN})
    api.request("POST", "/api/memory/m1/recover", {"reason": TOKEN})
    assert TOKEN.lower() not in _sent(api, ForgetMemory) + _sent(api, RecoverMemory)


def test_each_answer_names_the_kinds_of_secrets_that_were_replaced(api: MemoryApi) -> None:
    content = f"password={PASSWORD} and Authorization: Bearer {BEARER}, password={PASSWORD}"
    kinds = ["password", "bearer-token"]
    remembered = api.request("POST", "/api/memory/remember", {"content": content, "who": TOKEN})
    assert (remembered.json["redacted"], remembered.json["redactions"]) == (True, [*kinds, "github-token"])
    oversized = api.request("POST", "/api/memory/remember", {"content": f"{LONG} {content}"})
    assert (oversized.json["chunked"], oversized.json["redactions"]) == (True, kinds)
    patched = api.request("PATCH", "/api/memory/m1", {"content": content, "reason": "r"})
    assert (patched.json["redacted"], patched.json["redactions"]) == (True, kinds)
    patches = [{"id": "a", "content": content}, {"id": "b", "importance": 0.5}]
    changed = api.request("POST", "/api/memory/modify", {"reason": "r", "patches": patches}).json["results"]
    assert [result.get("redactions") for result in changed] == [kinds, None]
    clean = api.request("POST", "/api/memory/remember", {"content": "no secret"})
    assert not {"redacted", "redactions"} & set(clean.json)


HIDDEN = [
    (f"db password:           {PASSWORD}", PASSWORD),
    (f"db password:\n\n\n\n\n{PASSWORD}\n", PASSWORD),
    (f"db password\t\t\t\t=\t\t\t\t\t{PASSWORD}", PASSWORD),
    (f"Authorization:        Bearer      {BEARER}", BEARER),
    (f"Authorization: Bearer\r\n\r\n\r\n {BEARER}", BEARER),
    (f"Authorization:\u00a0\u2003\u00a0\u2003\u00a0Bearer {BEARER}", BEARER),
    (f"first line\npassword: {PASSWORD[:6]}1\nnext line", PASSWORD[:6] + "1"),
]


@pytest.mark.parametrize(("content", "secret"), HIDDEN, ids=range(len(HIDDEN)))
def test_white_space_hides_no_secret(api: MemoryApi, content: str, secret: str) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": content, "who": content})
    api.request("PATCH", "/api/memory/m1", {"content": content, "reason": content})
    assert answer.json["redacted"] is True
    assert secret.lower() not in _sent(api, Remember) + _sent(api, ModifyMemory)


def test_switched_off_means_no_field_is_changed(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=False)))
    api.bus.script[Remember] = _remembered
    answer = api.request("POST", "/api/memory/remember", {"content": "c", "who": TOKEN})
    assert (api.bus.only(Remember).body.memory.who, "redacted" in answer.json) == (TOKEN, False)


class _Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})

    debug = info = warning


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_failed_embedding_is_logged_without_the_text(api: MemoryApi, kind: type[Exception]) -> None:
    log = _Log()
    api.state.log = log  # type: ignore[assignment]
    api.embedder.failure = kind("cannot embed 'a private thought'")
    api.bus.script[GetCommonWords] = CommonWords(scope_key="k", version=0, words=[])
    api.request("POST", "/api/memory/remember", {"content": "a private thought"})
    api.request("POST", "/api/memory/recall", {"query": "a private thought"})
    failures = [line for line in log.lines if "embedding_failed" in line["event"]]
    assert len(failures) == 2
    assert {line["error"] for line in failures} == {kind.__name__}
    assert "private" not in str(log.lines)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which texts were worked on."""
    seen: list[str] = []

    def noted(name: str) -> None:
        inner = getattr(stored_text, name)

        def call(*args: Any) -> Any:
            seen.append(threading.current_thread().name)
            return inner(*args)

        monkeypatch.setattr(stored_text, name, call)

    for name in ("storage_content", "infer_type", "distinct_chunks"):
        noted(name)
    return seen


def test_a_long_text_is_worked_on_in_a_thread_of_its_own(api: MemoryApi, threads: list[str]) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": f"{LONG} token {TOKEN}"})
    assert (answer.status, answer.json["redacted"]) == (200, True)
    assert len(set(threads)) == 1
    assert threads[0].startswith("long-text")
    assert TOKEN.lower() not in _sent(api, RememberChunks)


def test_a_short_text_is_worked_on_at_once(api: MemoryApi, threads: list[str]) -> None:
    api.request("POST", "/api/memory/remember", {"content": "short"})
    assert set(threads) == {threading.current_thread().name}


def test_long_texts_beyond_the_bound_are_refused_and_served_again_later(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = TextExecutor(threads=1, max_waiting=1)
    monkeypatch.setattr(stored_text, "TEXT_EXECUTOR", pool)
    gate, begun = threading.Event(), threading.Event()

    def hold() -> str:
        begun.set()
        gate.wait(30)
        return "done"

    async def scene() -> None:
        held = asyncio.create_task(pool.run_bounded(hold))
        abandoned = asyncio.create_task(pool.run_bounded(hold))
        await asyncio.to_thread(begun.wait, 30)
        raw = json.dumps({"content": LONG}).encode()
        answer = await api.requested("POST", "/api/memory/remember", raw, {})
        assert (answer.status, answer.json["code"]) == (503, "busy")
        assert int(answer.headers["retry-after"]) >= 1
        short = await api.requested("POST", "/api/memory/remember", b'{"content": "short"}', {})
        assert short.status == 200
        abandoned.cancel()  # waits no more, so its place is free; the one that runs keeps its own
        with pytest.raises(asyncio.CancelledError):
            await abandoned
        waiting = asyncio.create_task(pool.run_bounded(lambda: "waited"))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await pool.run_bounded(hold)
        gate.set()
        assert (await held, await waiting) == ("done", "waited")
        again = await api.requested("POST", "/api/memory/remember", raw, {})
        assert again.status == 200

    asyncio.run(scene())
    assert [type(sent.body) for sent in api.bus.asked] == [Remember, RememberChunks]
