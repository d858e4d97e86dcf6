"""A disk whose syncs take seconds delays writes and is reported by health; it ends no process and loses no write.

The real syncs of files whose path has a word are delayed, by a library that is loaded before the C library.

Source: docs/reliability.md R21, R22, R27.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("cc") is None, reason="the delaying library needs a C compiler"),
]

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void delay(int fd) {
    char link[64], path[4096];
    FILE *file = fopen(getenv("SLOW_SYNC_FILE"), "r");
    long ms = 0;
    ssize_t length;
    if (!file) return;
    if (fscanf(file, "%ld", &ms) != 1) ms = 0;
    fclose(file);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (strstr(path, getenv("SLOW_SYNC_PATH"))) {
        struct timespec time = {ms / 1000, (ms % 1000) * 1000000L};
        nanosleep(&time, 0);
    }
}
int fdatasync(int fd) { int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync"); delay(fd); return real(fd); }
int fsync(int fd) { int (*real)(int) = dlsym(RTLD_NEXT, "fsync"); delay(fd); return real(fd); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("slow")
    source, built = directory / "slow.c", directory / "slow.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"], check=True)
    return built


def slow(daemon: LiveDaemon, ms: int) -> None:
    """Delay every sync of the files by ``ms`` from now on."""
    draft = daemon.root / "slow.new"
    draft.write_text(f"{ms}\n")
    draft.replace(daemon.root / "slow")


def start_with(daemon: LiveDaemon, library: Path, path: str = "memories.db") -> None:
    daemon.start(LD_PRELOAD=str(library), SLOW_SYNC_FILE=str(daemon.root / "slow"), SLOW_SYNC_PATH=path)


def says(daemon: LiveDaemon, status: str, words: str) -> Callable[[], bool]:
    def check() -> bool:
        health = daemon.api.get("/health").ok()
        return health["status"] == status and words in health["detail"]

    return check


def test_a_sync_of_two_seconds_delays_writes_and_ends_no_process(library: Path) -> None:
    with live_daemon(started=False) as daemon:
        start_with(daemon, library)
        lives = daemon.children()
        slow(daemon, 2000)
        kept = [daemon.api.remember(f"note {number} on a slow disk")["id"] for number in range(3)]
        eventually(says(daemon, "degraded", "disk is slow: a sync takes"), what="health names the slow disk")
        assert daemon.api.get("/health/ready").status == 200
        assert daemon.api.recalled("slow disk"), "recall goes on"
        assert daemon.children() == lives, "a process was restarted"
        slow(daemon, 0)
        daemon.api.remember("a note on a fast disk")
        eventually(says(daemon, "healthy", ""), within_s=30, what="health is good again")
        assert {row["id"] for row in daemon.api.listed()} >= set(kept)
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_write_whose_sync_exceeds_its_deadline_is_unknown_and_its_retry_gets_the_outcome(library: Path) -> None:
    with live_daemon(config="writer:\n  requestTimeoutMs: 1000\n", started=False) as daemon:
        start_with(daemon, library)
        lives = daemon.children()
        slow(daemon, 4000)
        body, key = {"content": "a note that takes long"}, {"Idempotency-Key": "one"}
        daemon.api.request("POST", "/api/memory/remember", body, headers=key).refused(504, code="outcome_unknown")
        eventually(says(daemon, "degraded", "disk is slow"), what="health names the slow disk")
        slow(daemon, 0)

        def stored() -> bool:
            return daemon.api.request("POST", "/api/memory/remember", body, headers=key).status == 200

        eventually(stored, within_s=30, what="the retry is answered")
        assert [row["content"] for row in daemon.api.listed()] == ["a note that takes long"]
        assert daemon.children() == lives, "a process was restarted"
        assert daemon.stop() == 0


def test_a_writer_stopped_during_a_slow_sync_is_replaced(library: Path) -> None:
    with live_daemon(config="writer:\n  requestTimeoutMs: 1000\n", started=False) as daemon:
        start_with(daemon, library)
        slow(daemon, 20_000)
        daemon.api.post("/api/memory/remember", {"content": "a note that takes long"}).refused(
            504, code="outcome_unknown"
        )
        eventually(says(daemon, "degraded", "disk is slow"), what="health names the slow disk")
        slow(daemon, 0)
        os.kill(daemon.children()["writer"], signal.SIGSTOP)
        eventually(lambda: daemon.actors()["writer"]["incarnation"] == 2, within_s=60, what="a new writer")
        daemon.wait_ready()
        daemon.api.remember("a note on a fast disk")
        died = [line for line in daemon.log() if line.get("event") == "child_exited"]
        assert [line["cause"] for line in died] == ["stopped sending heartbeats"]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


PROMPT, START = "/api/hooks/user-prompt-submit", "/api/hooks/session-start"
FACT = "The fox tunnel is locked at nine"


def prompt(key: str, text: str = "when is the fox tunnel locked?") -> dict[str, Any]:
    return {"harness": "codex", "sessionKey": key, "userMessage": text}


def bypassed_in_file(daemon: LiveDaemon) -> set[str]:
    claims = json.loads((daemon.workspace / ".daemon" / "claims.json").read_text())
    return {claim["key"] if isinstance(claim, dict) else claim[0] for claim in claims if "true" in json.dumps(claim)}


def test_memory_is_off_at_once_and_the_session_is_told_if_that_is_not_on_disk_yet(library: Path) -> None:
    with live_daemon(started=False) as daemon:
        start_with(daemon, library, str(daemon.workspace))
        daemon.api.remember(FACT)
        lives = daemon.children()
        fast = daemon.api.post(PROMPT, prompt("fast", "[signet off] please")).ok()["inject"]
        assert "switched it off for this session]" in fast
        slow(daemon, 6000)
        keys = [f"slow-{number}" for number in range(6)]
        with ThreadPoolExecutor(len(keys)) as threads:
            told = list(threads.map(lambda key: daemon.api.post(PROMPT, prompt(key, "[signet off] please")).ok(), keys))
        for reply in told:
            assert "switched it off for this session; this is not on disk yet" in reply["inject"], reply
        for key in keys:
            later = daemon.api.post(PROMPT, prompt(key)).ok()
            assert (later["skipped"], later["reason"]) == (True, "bypassed")
        others = itertools.count()  # a hook that is out of time gives nothing, and the next session asks again
        eventually(lambda: FACT in daemon.api.post(PROMPT, prompt(f"other-{next(others)}")).ok()["inject"], what=FACT)
        assert daemon.api.post(START, {"harness": "codex", "sessionKey": "new", "runtimePath": "plugin"}).status == 200
        assert daemon.api.get("/health").status == 200
        assert daemon.children() == lives, "a process was restarted"
        slow(daemon, 0)
        again = daemon.api.post(PROMPT, prompt(keys[0], "[signet off]"))
        assert "switched it off for this session" in again.ok()["inject"]
        eventually(lambda: bypassed_in_file(daemon) >= {*keys, "fast"}, within_s=60, what="the file has all of them")
        daemon.kill("gateway")
        daemon.wait_ready()
        for key in (*keys, "fast"):
            assert daemon.api.post(PROMPT, prompt(key)).ok()["reason"] == "bypassed"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_no_file_that_the_gateway_writes_ends_it_on_a_slow_disk(library: Path) -> None:
    with live_daemon(started=False) as daemon:
        start_with(daemon, library, str(daemon.root))
        daemon.api.remember(FACT)
        for key in ("known", "renewed", "over"):
            daemon.api.post(START, {"harness": "codex", "sessionKey": key, "runtimePath": "plugin"}).ok()
        lives = daemon.children()
        slow(daemon, 2500)
        hook = {"harness": "codex", "runtimePath": "plugin"}
        writes: list[tuple[str, dict[str, Any]]] = [
            (PROMPT, prompt("off", "[signet off]")),
            (START, {**hook, "sessionKey": "claimed"}),
            ("/api/hooks/session-end", {**hook, "sessionKey": "over", "transcript": ""}),
            ("/api/sessions/known/bypass", {"enabled": True}),
            ("/api/sessions/renewed/renew", {}),
            ("/api/config", {"file": "SOUL.md", "content": "Be brief.\n"}),
            ("/api/config", {"file": "AGENTS.md", "content": "Be kind.\n"}),
            ("/api/hooks/synthesis/complete", {"content": "- a line", "harness": "codex"}),
            ("/api/synthesis/trigger", {}),
            ("/api/memory/codex-native-note", {"content": "a note"}),
        ]
        with ThreadPoolExecutor(len(writes)) as threads:
            asked = [(target, threads.submit(daemon.api.post, target, body)) for target, body in writes]
            while not all(answer.done() for _, answer in asked):
                assert daemon.api.get("/health").status == 200
        statuses = [(target, answer.result().status) for target, answer in asked]
        assert {status for _, status in statuses} <= {200, 202, 503, 504}, statuses
        token = daemon.workspace / ".daemon" / "owner-token"
        daemon.configure((daemon.workspace / "agent.yaml").read_text() + "gateway: {requireOwner: true}\n")
        assert daemon.process is not None
        os.kill(daemon.process.pid, signal.SIGHUP)
        eventually(
            lambda: daemon.api.get("/health").status == 200 and token.exists(), within_s=60, what="the token is made"
        )
        assert daemon.children() == lives, "a process was restarted"
        slow(daemon, 0)
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
