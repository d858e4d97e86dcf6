"""What a terminal of 60, 80, 120 and 200 columns shows: compared with screens that a person has looked at.

``python -m tests.unit.test_terminal_screens`` records the screens again; read the difference before you keep it.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from rich.cells import cell_len

from signet_actors.cli.tables import LONGEST_WORD
from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.terminal_screen import on_screen

SCREENS: Final = Path(__file__).parent / "terminal_screens"
WIDTHS: Final = (60, 80, 120, 200)
HOSTILE: Final = "before \x1b]0;owned\x07 \x1b[2J \x9b31m \u202egnp.exe \u2066x\u2069 after"
CONTROLS: Final = set(map(chr, (*range(0x0A), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), 0x2066)))
TEXTS: Final = (
    "User prefers vim keybindings",
    "デプロイは金曜日の14時以降は禁止されています。緊急の場合は当番のエンジニアに連絡してください。",
    "Ship it 🚀🚀 when the 👩‍👩‍👧 and the ☕ are ready ⚠️ and not before the tests are green everywhere",
    HOSTILE,
    "The runbook is https://wiki.example.com/operations/databases/failover/how-to-promote-a-standby.html#step-3",
    (
        "Deployments are blocked on Fridays after 14:00 because nobody watches the dashboards over the weekend, and the"
        " rollback needs two people who know the payment provider; ask Noor or Jonas if something is truly urgent."
    ),
)
TIMES: Final = (
    "2026-02-21T11:57:00.000Z",
    "2026-02-21T11:59:30.000Z",
    "2026-02-20T08:00:00.000Z",
    "2026-02-17T08:00:00.000Z",
    "2025-12-31T23:30:00.000Z",
    "not a time",
)


def memory_id(number: int) -> str:
    return f"6f1c3b52-6{number:03x}-7d10-9d6e-{number:012x}"


def memory(number: int) -> dict[str, Any]:
    which = number % len(TEXTS)
    return {
        "id": memory_id(number),
        "content": TEXTS[which],
        "type": ("preference", "rule", "decision")[number % 3],
        "tags": ("preference,editor", "", "本番,デプロイ", HOSTILE, "runbook", "a,b,c")[which],
        "who": ("claude-code", "user")[number % 2],
        "pinned": number % 4 == 1,
        "created_at": TIMES[which],
        "score": round(0.92 / (number + 1), 4),
        "relevance": round(0.8 / (number + 1), 4),
    }


def memories(count: int) -> list[dict[str, Any]]:
    return [memory(number) for number in range(count)]


def listed(daemon: ScriptedDaemon, count: int) -> None:
    stats = {"total": count, "withEmbeddings": count, "critical": 0}
    daemon.on("GET", "/api/memories", {"memories": memories(count), "stats": stats})


def listed_deleted(daemon: ScriptedDaemon, count: int) -> None:
    gone = [
        {**one, "deleted_at": one["created_at"], "recoverable_until": "2026-03-23T11:00:00.000Z"}
        for one in memories(count)
    ]
    daemon.on("GET", "/api/memories", {"memories": gone, "stats": {}})


def recalled(daemon: ScriptedDaemon, count: int) -> None:
    meta = {"timings": {"totalMs": 4.2}}
    daemon.on("POST", "/api/memory/recall", {"results": memories(count), "method": "hybrid", "meta": meta})


def explained(daemon: ScriptedDaemon, count: int) -> None:
    explanation = {
        "legs": [{"leg": "keyword", "rank": 1, "score": 7.31}, {"leg": "vector", "rank": None, "score": 0.613}],
        "terms": ["vim", "キー"],
        "similar_terms": [],
        "missing_terms": ["shortcut"],
        "base": 0.71,
        "moves": [{"stage": "neighbours", "points": 0.12}, {"stage": "scale", "points": -0.01}],
        "score": 0.82,
        "relevance": 0.7,
        "coverage": 0.66,
        "standing": 2.1,
        "because": [
            "It has 2 of 3 words that were asked for: vim, キー.",
            "It lacks shortcut.",
            "What was said right before or after it fits, too.",
        ],
    }
    rows = [{**row, "explanation": explanation} for row in memories(count)]
    daemon.on("POST", "/api/memory/recall", {"results": rows, "method": "hybrid", "meta": {}})


def events(count: int) -> list[dict[str, Any]]:
    return [
        {
            "createdAt": TIMES[number % len(TIMES)],
            "event": ("created", "updated")[number % 2],
            "changedBy": ("operator:cli", "pipeline-v2")[number % 2],
            "reason": ("", "edited on the command line")[number % 2],
            "oldContent": TEXTS[number % len(TEXTS)] if number % 2 else None,
            "newContent": TEXTS[(number + 1) % len(TEXTS)],
        }
        for number in range(count)
    ]


def proposals(count: int) -> list[dict[str, Any]]:
    return [
        {
            "ordinal": number,
            "action": ("add", "update", "none")[number % 3],
            "outcome": ("created", "review", "rejected")[number % 3],
            "reason": (None, "contradiction", "the model is not confident enough (0.42, at least 0.7)")[number % 3],
            "factContent": None if number == 4 else TEXTS[number % len(TEXTS)],
            "resultMemoryId": memory_id(number) if number % 3 == 0 else None,
            "undoNote": None,
        }
        for number in range(count)
    ]


def history(daemon: ScriptedDaemon, count: int) -> None:
    daemon.on("GET", f"/api/memory/{memory_id(0)}/history", {"history": events(count)})


def runs(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"0b0d7c1e-13f0-4d7f-8a54-{number:012x}",
            "jobId": f"1c1d7c1e-13f0-4d7f-8a54-{number:012x}",
            "createdAt": TIMES[number % len(TIMES)],
            "memoryId": memory_id(number),
            "mode": "full",
            "provider": "ollama",
            "model": "qwen3:4b-instruct-2507-q4_K_M",
            "counts": {"created": number, "skipped": 2, "rejected": number % 2},
            "undoneAt": TIMES[0] if number == 1 else None,
            "undoneBy": "operator:cli" if number == 1 else None,
        }
        for number in range(count)
    ]


def run(daemon: ScriptedDaemon, count: int) -> None:
    one = runs(2)[1]
    reasons = ("question", "assistant_boilerplate", "echo_near")
    rejected = [
        {"content": TEXTS[number % len(TEXTS)], "type": "fact", "confidence": 0.9, "reason": reasons[number % 3]}
        for number in range(count // 2)
    ]
    body = {
        "run": one,
        "proposals": proposals(count),
        "entities": [],
        "rejected": rejected,
        "rejectedCounts": {} if rejected else {"too_short": 1},
        "warnings": ["Fact too short: vim"] * min(count, 1),
    }
    daemon.on("GET", f"/api/pipeline/runs/{one['id']}", body)


def shown(daemon: ScriptedDaemon, count: int) -> None:
    more = {"importance": 0.8, "version": 2, "updated_at": TIMES[4], "is_deleted": 0, "agent_id": "default"}
    daemon.on("GET", f"/api/memory/{memory_id(0)}", {**memory(0), **more, "source_path": HOSTILE})
    history(daemon, count)
    found = runs(min(count, 2))
    daemon.on("GET", "/api/pipeline/runs", {"runs": found})
    for one in found:
        reply = {"run": one, "proposals": proposals(count), "entities": []}
        daemon.on("GET", f"/api/pipeline/runs/{one['id']}", reply)


def previewed(daemon: ScriptedDaemon, count: int) -> None:
    found = memories(count)
    candidates = [{"id": row["id"], "pinned": row["pinned"]} for row in found]
    daemon.on("POST", "/api/memory/forget", {"mode": "preview", "candidates": candidates, "confirmToken": "t"})
    for row in found:
        daemon.on("GET", f"/api/memory/{row['id']}", row)


def status(daemon: ScriptedDaemon, count: int) -> None:
    body = {
        "status": "running",
        "health": {"status": "healthy"},
        "version": "0.1.0",
        "uptime": 93784,
        "host": "127.0.0.1",
        "port": 3850,
        "agentsDir": "/home/noor/.agents",
        "db": {"memories": count, "tombstones": 0, "embeddings": count, "bytes": 4_500_000, "schemaVersion": 7},
        "embedding": {"provider": "embedded", "model": "wordllama-256"},
        "retention": {"lastBackupAt": TIMES[2], "backupProblem": HOSTILE},
        "jobs": {"pending": count, "completed": 9},
        "oldestPendingJob": TIMES[0],
        "waiting": [f"{count} jobs wait: no model is available; install Ollama (https://ollama.com), then pull one"],
        "actors": [
            {
                "name": f"searcher-{number + 1}",
                "state": ("ready", "backing off")[number % 2],
                "pid": 40_000 + number,
                "incarnation": 1 + number,
                "restarts": number,
                "detail": (None, "the last one exited with code 70; the next start is in 4 s, see the log")[number % 2],
            }
            for number in range(count)
        ],
    }
    daemon.on("GET", "/api/status", body)


def pipeline(daemon: ScriptedDaemon, count: int) -> None:
    kinds = ("extract", "embed", "summarise_session", "quarantine", "reindex", "hints")
    body = {
        "mode": "full",
        "jobs": [
            {
                "kind": kinds[number % len(kinds)],
                "pending": number,
                "leased": 1,
                "completed": 12_345,
                "dead": number % 2,
                "oldestPendingAgeSec": 4000 * number or None,
            }
            for number in range(count)
        ],
        "dead": [{"kind": "extract", "cause": HOSTILE, "count": 2, "lastAt": TIMES[2]}] * min(count, 2),
        "lanes": [{"kind": "extract", "slots": 4, "running": 1, "pausedBecause": "ollama is tried again in 9 s"}],
        "providers": {"extraction": None, "decision": None},
        "runs": {"total": count, "undone": 0, "lastAt": TIMES[0]},
        "notes": ["decider: no answer within 1000 ms"],
    }
    daemon.on("GET", "/api/pipeline/status", body)


def providers(daemon: ScriptedDaemon, count: int) -> None:
    usage = [
        {
            "provider": ("ollama", "anthropic")[number % 2],
            "model": ("qwen3:4b", "a-model-with-a-very-long-name-of-the-vendor-20260101")[number % 2],
            "calls": 7 * number,
            "tokensIn": 700_000,
            "tokensOut": 100,
            "costMicrousd": 1500 * number,
        }
        for number in range(count)
    ]
    daemon.on("GET", "/api/pipeline/status", {"mode": "full", "providers": {}, "usageToday": usage})


def reviews(daemon: ScriptedDaemon, count: int) -> None:
    items = [
        {
            "id": f"2d0d7c1e-13f0-4d7f-8a54-{number:012x}",
            "review_state": "pending",
            "action": "update",
            "reason": "contradiction",
            "memory_id": memory_id(number),
            "current_content": TEXTS[number % len(TEXTS)],
            "fact_content": TEXTS[(number + 1) % len(TEXTS)],
        }
        for number in range(count)
    ]
    daemon.on("GET", "/api/memory/review-queue", {"items": items, "total": count})


def backups(daemon: ScriptedDaemon, count: int) -> None:
    rows = [
        {
            "name": f"memories-v7-20260221T1157{number:02}000Z.db",
            "madeAt": TIMES[number % len(TIMES)],
            "schemaVersion": 7,
            "bytes": 4_500_000 * (number + 1),
        }
        for number in range(count)
    ]
    daemon.on("GET", "/api/repair/backup", {"backups": rows, "running": None})


def swept(daemon: ScriptedDaemon, count: int) -> None:
    steps = [{"step": f"step_{number}", "count": number * 100, "more": number % 2 == 1} for number in range(count)]
    daemon.on("POST", "/api/repair/retention-sweep", {"success": True, "steps": steps, "message": "done"})


Script = Callable[[ScriptedDaemon, int], None]

COMMANDS: Final[dict[str, tuple[Script, tuple[str, ...]]]] = {
    "list": (listed, ("list",)),
    "list-deleted": (listed_deleted, ("list", "--deleted")),
    "recall": (recalled, ("recall", "editor")),
    "recall-all": (recalled, ("recall", "keys", "--all")),
    "recall-explain": (explained, ("recall", "editor", "--explain")),
    "show-history": (shown, ("show", memory_id(0), "--history")),
    "history": (history, ("history", memory_id(0))),
    "forget-preview": (previewed, ("forget", "--query", "editor", "--preview")),
    "status": (status, ("status",)),
    "pipeline": (pipeline, ("pipeline",)),
    "pipeline-runs": (
        lambda daemon, count: daemon.on("GET", "/api/pipeline/runs", {"runs": runs(count)}),
        ("pipeline", "runs"),
    ),
    "pipeline-show": (run, ("pipeline", "show", runs(2)[1]["id"])),
    "providers": (providers, ("providers",)),
    "review-list": (reviews, ("review", "list")),
    "backup-list": (backups, ("backup", "--list")),
    "retention-sweep": (swept, ("retention", "sweep")),
}
"""How the daemon is to answer a command with so many rows, and the command."""


def screens(name: str) -> str:
    """Return the screens of a command, for each number of rows at each width."""
    script, arguments = COMMANDS[name]
    shown: list[str] = []
    for count in (0, 1, len(TEXTS)):
        daemon = ScriptedDaemon()
        try:
            script(daemon, count)
            for width in WIDTHS:
                code, text = on_screen(daemon.url, *arguments, width=width)
                shown.append(f"##### {count} rows, {width} columns, exit code {code}\n{text}")
        finally:
            daemon.close()
    return "\n".join(shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_screens_are_those_that_a_person_has_looked_at(name: str) -> None:
    assert screens(name) == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [WIDTHS[0], WIDTHS[-1]])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_thousand_rows_keep_to_the_width_with_their_ids_and_whole_words(name: str, width: int) -> None:
    script, arguments = COMMANDS[name]
    daemon = ScriptedDaemon()
    try:
        script(daemon, 1000)
        code, text = on_screen(daemon.url, *arguments, width=width)
    finally:
        daemon.close()
    assert code == 0
    lines = text.splitlines()
    assert [line for line in lines if cell_len(line) > width] == []
    assert not CONTROLS & set(text.replace("\n", ""))
    for number in (0, 1, 999):
        if name in {"list", "list-deleted", "recall-all", "recall-explain", "review-list"}:
            assert (memory_id(number) if name == "review-list" else memory_id(number)[:13]) in text
    if name in {"list", "list-deleted", "recall-all", "history", "review-list"}:
        words = {word for line in lines for word in line.split()}
        whole = {word for number in (0, 5) for word in TEXTS[number].split()[:20] if len(word) <= LONGEST_WORD}
        assert whole - words == set()


def record(names: Sequence[str] = tuple(COMMANDS)) -> Iterator[str]:
    SCREENS.mkdir(exist_ok=True)
    for name in names:
        (SCREENS / f"{name}.txt").write_text(screens(name), encoding="utf-8")
        yield name


if __name__ == "__main__":
    print(json.dumps(list(record())))
