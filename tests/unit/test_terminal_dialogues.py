"""Questions, summaries, reports and errors on a terminal: compared with screens that a person has looked at.

``python -m tests.unit.test_terminal_dialogues`` records the screens again; read the difference before you keep it.

Source: docs/cli.md "Output" and "Exit codes".
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest
from rich.cells import cell_len

from signet_actors.cli.doctor_findings import DoctorFinding
from signet_actors.cli.eval import Measured, Overrides, Plan
from signet_actors.cli.eval_run import Answers, FilledStore
from signet_actors.domain.backups import backup_name
from signet_actors.domain.evaluation.question_set import Question
from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.terminal_screen import on_screen
from tests.unit.test_terminal_screens import CONTROLS, HOSTILE, SCREENS, TEXTS, TIMES, WIDTHS, memory, memory_id

SHOWN_WORKSPACE: Final = "/home/noor/workspace"
"""Shown instead of the workspace, whose name is as long, so that lines are broken at the same words."""
CLOSED: Final = "http://127.0.0.1:9"
RUN: Final = "0b0d7c1e-13f0-4d7f-8a54-000000000001"
PROPOSAL: Final = "2d0d7c1e-13f0-4d7f-8a54-000000000002"
LINES: Final = {"media_type": {"Content-Type": "application/x-ndjson"}}


@dataclass(frozen=True)
class Stage:
    """Where a scene takes place. ``patches`` are in effect while the command runs."""

    daemon: ScriptedDaemon
    workspace: Path
    patches: contextlib.ExitStack

    def patch(self, target: str, value: Any) -> None:
        self.patches.enter_context(mock.patch(f"signet_actors.cli.{target}", value))

    def file(self, name: str, text: str) -> str:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)


@dataclass(frozen=True)
class Scene:
    """What the screen shows after ``prepare``, which returns the command, and ``typed`` answers."""

    title: str
    prepare: Callable[[Stage], Sequence[str]]
    typed: str = ""
    url: str | None = None


def refused(code: str, error: str, answered: int, **more: Any) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        body = {"error": error, "code": code, **more}
        stage.daemon.on("DELETE", f"/api/memory/{memory_id(0)}", body, status=answered)
        return ("forget", memory_id(0), "--yes")

    return prepare


def no_daemon(stage: Stage) -> Sequence[str]:
    stage.file("agent.yaml", "gateway:\n  port: 9\n")  # on the default port a daemon of this machine may listen
    return ("--workspace", str(stage.workspace), "list")


def found(count: int) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("GET", "/memory/search", {"results": [memory(number) for number in range(count)]})
        return ("search", "editor")

    return prepare


def logged(count: int) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        entries: list[dict[str, Any]] = [
            {
                "timestamp": TIMES[number % 5],
                "level": ("info", "warning", "error")[number % 3],
                "event": ("started", "provider_failed", "exception")[number % 3],
                "actor": ("supervisor", "extractor", "searcher-2")[number % 3],
                "incarnation": 1,
                "detail": TEXTS[number % len(TEXTS)],
                "took_ms": 12.5,
            }
            for number in range(count)
        ]
        for entry in entries[2::3]:
            entry["stack"] = ["File recall.py, line 12, in legs", "ValueError: " + HOSTILE]
        lines = [json.dumps(entry) for entry in entries] + ["Fatal Python error: Segmentation fault"] * (count > 1)
        if count:
            stage.file(".daemon/logs/daemon-2026-02-21.log", "\n".join([*lines, ""]))
        return ("logs",)

    return prepare


def diagnosed(count: int) -> Callable[[Stage], Sequence[str]]:
    findings = (
        DoctorFinding("daemon", "ok", "ready at http://127.0.0.1:3850 (pid 4711)"),
        DoctorFinding("disk", "warn", "0.7 GB free", "free some space soon"),
        DoctorFinding("database", "fail", TEXTS[5], "`signet restore latest` (the current file is kept)"),
        DoctorFinding("database", "fail", HOSTILE),
        DoctorFinding("workspace", "warn", f"other users may read {TEXTS[1]}", "chmod go-rwx " + "/a/long/path" * 8),
    )

    def prepare(stage: Stage) -> Sequence[str]:
        stage.patch("doctor.CHECKS", (lambda _: iter(findings[:count]),))
        return ("doctor",)

    return prepare


def temporary_daemon(_: object) -> Any:
    """Return a daemon that measures nothing."""
    daemon = mock.MagicMock(ready_s=1.234)
    daemon.__enter__.return_value = daemon
    return daemon


def measured(count: int, *, compared: bool) -> Callable[[Stage], Sequence[str]]:
    questions = [Question("which editor?", ("paraphrase", "時間")[number % 2], ("m",)) for number in range(count)]
    plans = [Plan("configured", Overrides("--set", ()))]
    if compared:
        plans.append(Plan("compared", Overrides("--compare", ("embedding.provider=none",))))
    answers = [
        Answers([((number + plan) % 2, 1.0, 1.0, 0.5 + number % 2 / 3) for number in range(count)], [3.1] * count)
        for plan in range(len(plans))
    ]

    def prepare(stage: Stage) -> Sequence[str]:
        result = Measured(FilledStore(questions, {}, count), plans, answers, 50)
        stage.patch("eval.temporary_daemon", temporary_daemon)
        stage.patch("eval.measured_mapping", lambda *_: {"embedding": {}})
        stage.patch("eval.settings_text", lambda *_: "")
        stage.patch("eval._measure", lambda *_: result)
        lines = [{"id": "m", "content": "User prefers vim"}, {"question": "which editor?", "ids": ["m"]}]
        return ("eval", stage.file("questions.jsonl", "\n".join(map(json.dumps, lines))))

    return prepare


def benched(stage: Stage) -> Sequence[str]:
    spread = mock.Mock(per_s=812.4, spread_ms={"p50": 1.25, "p95": 3.5})
    stage.patch("bench.temporary_daemon", temporary_daemon)
    stage.patch("bench._run_clients", lambda *_: spread)
    stage.patch("bench._durable_write_ms", lambda _: 0.87)
    return ("bench", "quick")


def backed_up(*more: str, success: bool = True, older: int = 0) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        names = [backup_name(1_700_000_000_000 + day * 86_400_000, 7) for day in range(older + 1)]
        for name in names:
            stage.file(f"memory/backups/{name}", "x" * 4321)
        end = {"success": success, "name": names[-1], "memories": older + 1, "message": "the database is damaged"}
        end["findings"] = [] if success else [{"kind": "rows", "text": HOSTILE}, {"kind": "rows", "text": TEXTS[5]}]
        directory = str(stage.workspace / "memory/backups")
        stage.daemon.on("POST", "/api/repair/backup", {"directory": directory, "running": None, "last": end})
        return ("backup", *more)

    return prepare


PREVIEW: Final = {
    "restored": "memories-20260220T080000000Z-schema-7.db",
    "made_at": "2026-02-20T08:00:00.000Z",
    "age_ms": 100_800_000,
    "memories_before": 12,
    "memories_after": 11,
    "missing": 1,
    "carried_over": True,
}


def restored(code: int = 0, *, database: bool = True, **more: Any) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        (stage.workspace / "memory").mkdir()
        if database:
            stage.file("memory/memories.db", "")
        results = iter([(code, {**PREVIEW, **more}), (0, {**PREVIEW, **more, "aside": "memories.db.before-restore"})])
        stage.patch("backup_commands.run_writer_tool", lambda *_: next(results))
        return ("restore", "latest")

    return prepare


def undone(count: int, kept: int = 0) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        proposals = [{"outcome": "created", "factContent": TEXTS[number]} for number in range(count)]
        run = {"id": RUN, "counts": {"created": count}}
        path = f"/api/pipeline/runs/{RUN}"
        stage.daemon.on("GET", path, {"run": run, "proposals": proposals, "entities": []})
        results = [
            {"memoryId": memory_id(number), "action": "created", "reason": "it was changed since", "status": "kept"}
            if number < kept
            else {"memoryId": memory_id(number), "action": "created", "status": "undone"}
            for number in range(count)
        ]
        stage.daemon.on("POST", f"{path}/undo", {"status": "undone", "results": results, "reviewsClosed": kept})
        return ("pipeline", "undo", RUN)

    return prepare


def forgotten(count: int, *more: str, pinned: bool | None = None) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        rows = [{**memory(number), "version": 2} for number in range(count)]
        for row in rows if pinned is not None else ():
            row["pinned"] = pinned
        for row in rows:
            stage.daemon.on("GET", f"/api/memory/{row['id']}", row)
        stage.daemon.on("DELETE", f"/api/memory/{memory_id(0)}", {"id": memory_id(0), "status": "deleted"})
        candidates = [{"id": row["id"], "pinned": row["pinned"]} for row in rows]
        results = [{"id": row["id"], "status": "pinned_requires_force" if row["pinned"] else "deleted"} for row in rows]
        stage.daemon.script(
            "POST",
            "/api/memory/forget",
            {"mode": "preview", "candidates": candidates, "confirmToken": "t"},
            {"mode": "execute", "results": results},
        )
        return ("forget", *more)

    return prepare


def decided(word: str) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        body = {"status": f"{word}d" if word == "approve" else f"{word}ed", "memoryId": memory_id(1), "newVersion": 3}
        stage.daemon.on("POST", f"/api/memory/review-queue/{PROPOSAL}/{word}", body)
        return ("review", word, PROPOSAL)

    return prepare


def remembered(**reply: Any) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("POST", "/api/memory/remember", {"id": memory_id(0), "type": "preference", **reply})
        return ("remember", TEXTS[0])

    return prepare


def exported(count: int) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        lines = b"".join(
            json.dumps(row).encode() + b"\n" for row in [{"format": "signet-memories"}, *[memory(0)] * count]
        )
        stage.daemon.on("GET", "/api/memory/export", lines, **LINES)
        return ("export", str(stage.workspace / "out.jsonl"))

    return prepare


def imported(
    lines: int, *more: str, refusals: int = 0, redacted: int = 0, notes: bool = False
) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        reply = {
            "imported": lines - refusals,
            "deduped": 1,
            "redacted": redacted,
            "receipt": "r",
            "refused": [
                {"line": number + 1, "error": (HOSTILE, TEXTS[1])[number % 2], "field": "content"}
                for number in range(refusals)
            ],
        }
        stage.daemon.on("POST", "/api/memory/import", reply)
        if notes:
            return ("import", stage.file("notes.md", "# Ports\n\nThe API listens on 8080.\n"), "--yes", *more)
        return ("import", stage.file("in.jsonl", '{"content": "x"}\n' * lines))

    return prepare


def told(*arguments: str) -> Callable[[Stage], Sequence[str]]:
    """Return a command that the daemon does not need to be prepared for."""
    return lambda _: arguments


def entity(number: int, **more: Any) -> dict[str, Any]:
    about = {"id": f"e{number}", "name": TEXTS[number % len(TEXTS)], "entityType": "project", "mentions": number * 7}
    return {"entity": {**about, "pinned": number == 1, "suppressed": number == 2, **more}}


def entities(count: int) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        counts = {"aspectCount": 1, "attributeCount": 3, "constraintCount": 0, "dependencyCount": 12}
        stage.daemon.on("GET", "/api/knowledge/entities", {"items": [entity(one) | counts for one in range(count)]})
        return ("graph",)

    return prepare


def outlined(count: int, *command: str) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("GET", "/api/knowledge/navigation/entity", entity(1))
        claims = [
            {"claimKey": ("port", None)[one % 2], "kind": ("attribute", "constraint")[one % 2], "preview": TEXTS[one]}
            for one in range(count)
        ]
        groups = [{"groupKey": "general", "claims": claims}, {"groupKey": "staging", "claims": claims[:1]}]
        tree = {"items": [{"aspect": {"name": TEXTS[2]}, "groups": groups}], "unclassifiedCount": count}
        stage.daemon.on("GET", "/api/knowledge/navigation/tree", tree)
        links = [
            {
                "target": TEXTS[one],
                "entityType": "tool",
                "type": "uses",
                "kind": "relation",
                "direction": ("outgoing", "incoming")[one % 2],
                "strength": 0.5,
            }
            for one in range(count)
        ]
        stage.daemon.on("GET", "/api/knowledge/entities/e1/neighbours", {"items": links})
        return command

    return prepare


def pathed(*, connected: bool) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("GET", "/api/knowledge/navigation/entity", entity(1))
        steps = [{"name": TEXTS[one], "type": "uses", "direction": "outgoing"} for one in range(3)]
        found = {"found": connected, "source": entity(0)["entity"], "steps": steps if connected else []}
        stage.daemon.on("POST", "/api/graph/path", found)
        return ("graph", "path", "shop", "till")

    return prepare


def ambiguous(count: int) -> Callable[[Stage], Sequence[str]]:
    def prepare(stage: Stage) -> Sequence[str]:
        rows = [{"id": memory_id(number), "content": TEXTS[number % len(TEXTS)]} for number in range(count)]
        stage.daemon.on("GET", "/api/memories/by-prefix", {"memories": rows})
        return ("show", "6f1c3b")

    return prepare


def without_model(stage: Stage) -> Sequence[str]:
    model = {
        "name": "none",
        "configured": "auto",
        "available": False,
        "reason": "Ollama at http://127.0.0.1:11434 does not answer, and no API key is set",
    }
    stage.daemon.on(
        "GET", "/api/pipeline/status", {"mode": "full", "providers": {"extraction": model, "decision": model}}
    )
    return ("providers",)


def with_model(stage: Stage) -> Sequence[str]:
    model = {
        "name": "ollama",
        "model": "qwen3:4b",
        "configured": "auto",
        "available": True,
        "reason": "the first that answers",
        "endpoint": "http://127.0.0.1:11434",
        "detail": "qwen3:4b is there",
        "calls": {
            "circuit": "half_open",
            "waitsFor": "the next attempt is in 9 s",
            "waitsMs": 9000,
            "recent": {"total": 20, "successes": 12, "failures": 7, "timeouts": 1},
            "calls": 1,
            "tokensIn": 700_000,
            "tokensOut": 100,
            "lastError": HOSTILE,
        },
    }
    budget = {"provider": "ollama", "callsToday": 1, "callsADay": 500, "tokensToday": 700_100, "tokensADay": None}
    body = {"mode": "full", "providers": {"extraction": model, "decision": model}, "budgets": [budget]}
    stage.daemon.on("GET", "/api/pipeline/status", body)
    return ("providers",)


SCENES: Final[dict[str, tuple[Scene, ...]]] = {
    "search": tuple(Scene(f"{count} results", found(count)) for count in (0, 1, 6)),
    "logs": tuple(Scene(f"{count} lines", logged(count)) for count in (0, 1, 6)),
    "doctor": tuple(Scene(f"{count} findings", diagnosed(count)) for count in (0, 1, 5)),
    "eval": (
        Scene("one question", measured(1, compared=False)),
        Scene("forty questions of two kinds, compared", measured(40, compared=True)),
    ),
    "bench": (Scene("quick", benched),),
    "providers-states": (Scene("no model", without_model), Scene("a model with errors", with_model)),
    "backup": (
        Scene("one memory", backed_up()),
        Scene("the database is damaged", backed_up(success=False)),
        Scene("nothing to prune", backed_up("--prune", "--keep", "3", older=1)),
        Scene("prune one, no", backed_up("--prune", "--keep", "1", older=1), typed="n\n"),
        Scene("prune three, yes", backed_up("--prune", "--keep", "1", older=3), typed="y\n"),
        Scene("prune three, no answer", backed_up("--prune", "--keep", "1", older=3)),
    ),
    "restore": (
        Scene("yes", restored(), typed="y\n"),
        Scene("no", restored(missing=0, carried_over=False), typed="n\n"),
        Scene("no answer", restored()),
        Scene("of unknown age, without a database", restored(database=False, age_ms=None, made_at=None)),
        Scene("the database cannot be read", restored(memories_before=None, carried_over=False), typed="y\n"),
        Scene("the backup is damaged", restored(74, findings=["the backup is damaged: " + HOSTILE], other="x.db")),
    ),
    "pipeline-undo": (
        Scene("one change, yes", undone(1), typed="y\n"),
        Scene("four changes, one kept", undone(4, kept=1), typed="y\n"),
        Scene("no", undone(2), typed="n\n"),
        Scene("no answer", undone(1)),
    ),
    "forget": (
        Scene("one, yes", forgotten(1, memory_id(0)), typed="y\n"),
        Scene("one, no", forgotten(1, memory_id(0)), typed="n\n"),
        Scene("one, no answer", forgotten(1, memory_id(0))),
        Scene("pinned", forgotten(1, memory_id(0), pinned=True)),
        Scene("the first of a selection", forgotten(2, "--type", "rule", "-n", "2", "--preview")),
        Scene("four of a selection, yes", forgotten(4, "--type", "rule"), typed="y\n"),
        Scene("four for ever, no", forgotten(4, "--type", "rule", "--permanently"), typed="n\n"),
        Scene("one for ever, no answer", forgotten(1, "--type", "rule", "--permanently")),
    ),
    "review-decide": (Scene("approve", decided("approve")), Scene("reject", decided("reject"))),
    "remember": (
        Scene("new", remembered(tags="editor,ui", pinned=True)),
        Scene("known already", remembered(deduped=True)),
        Scene("with a secret, without a vector", remembered(redacted=True, redactions=["api_key"], embedded=False)),
        Scene("a long text", remembered(chunked=True, ids=[memory_id(number) for number in range(3)])),
    ),
    "graph": (
        Scene("no entities", entities(0)),
        Scene("entities", entities(4)),
        Scene("nothing is known", outlined(0, "graph", "shop")),
        Scene("one entity", outlined(3, "graph", "shop")),
        Scene("neighbours", outlined(3, "graph", "neighbours", "shop")),
        Scene("no neighbours", outlined(0, "graph", "neighbours", "shop")),
        Scene("a path", pathed(connected=True)),
        Scene("no path", pathed(connected=False)),
        Scene("an unknown entity", told("graph", "shop")),
    ),
    "transfer": (
        Scene("export nothing", exported(0)),
        Scene("export one", exported(1)),
        Scene("export two", exported(2)),
        Scene("import one", imported(1)),
        Scene("import three, secrets in one", imported(3, redacted=1)),
        Scene("import with refused lines", imported(5, refusals=3)),
        Scene("import notes", imported(1, notes=True)),
        Scene("import notes of a project", imported(1, "--project", "/p", notes=True)),
        Scene("import a directory", lambda stage: ("import", str(stage.workspace))),
        Scene("import a missing file", told("import", "/missing/file.jsonl")),
        Scene("import a text without its format", lambda stage: ("import", stage.file("notes.txt", "Notes\n\nx"))),
    ),
    "errors": (
        Scene("not found", told("show", memory_id(0))),
        Scene("a prefix of nothing", told("show", "6f1c3b")),
        Scene("a hostile id", told("show", HOSTILE)),
        Scene("an ambiguous prefix of two", ambiguous(2)),
        Scene("an ambiguous prefix of many", ambiguous(11)),
        Scene("a run that is not found", told("pipeline", "show", RUN)),
        Scene("the daemon is away", told("list"), url=CLOSED),
        Scene("no daemon on the workspace", no_daemon, url=""),
        Scene("pinned", refused("conflict", "the memory is pinned", 409, status="pinned_requires_force")),
        Scene("changed meanwhile", refused("conflict", "version 2 is not 1", 409, status="version_conflict")),
        Scene("busy", refused("busy", "too many requests are waiting", 503)),
        Scene("disk full", refused("storage_full", "the disk is full", 507)),
        Scene("hostile words", refused("invalid_request", HOSTILE + "\nsecond line", 400)),
        Scene("an unknown command", told("remeber", "x")),
        Scene("an unknown option", told("list", "--limits", "3")),
        Scene("a missing argument", told("show")),
        Scene("a value out of range", told("list", "-n", "0")),
    ),
}


def screen(scene: Scene, width: int) -> str:
    """Return what the terminal shows."""
    workspace = Path(tempfile.mkdtemp(prefix="signet-", dir="/tmp"))
    assert len(str(workspace)) == len(SHOWN_WORKSPACE)
    daemon = ScriptedDaemon()
    try:
        with contextlib.ExitStack() as patches:
            command = scene.prepare(Stage(daemon, workspace, patches))
            url = daemon.url if scene.url is None else scene.url
            given = command if "--workspace" in command else ("--workspace", str(workspace), *command)
            code, text = on_screen(url, *given, width=width, typed=scene.typed)
    finally:
        daemon.close()
        shutil.rmtree(workspace)
    text = text.replace(str(workspace), SHOWN_WORKSPACE).replace(daemon.url, "http://127.0.0.1:38500")
    return f"exit code {code}\n{text}"


def screens(scenes: Sequence[Scene]) -> str:
    """Return the screens of the scenes; widths at which they are alike are shown once."""
    parts: list[str] = []
    for scene in scenes:
        shown = [(width, screen(scene, width)) for width in WIDTHS]
        for text, alike in itertools.groupby(shown, key=lambda pair: pair[1]):
            widths = [str(width) for width, _ in alike]
            parts.append(f"##### {scene.title}; {', '.join(widths)} columns; {text}")
    return "\n".join(parts)


@pytest.mark.parametrize("name", SCENES)
def test_the_screens_are_those_that_a_person_has_looked_at(name: str) -> None:
    assert screens(SCENES[name]) == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("prepare", [found(1000), logged(1000)], ids=["search", "logs"])
def test_a_thousand_rows_keep_to_the_width(prepare: Callable[[Stage], Sequence[str]], width: int) -> None:
    shown = screen(Scene("many", lambda stage: (*prepare(stage), "-n", "100")), width)
    assert [line for line in shown.splitlines() if cell_len(line) > width] == []
    assert not CONTROLS & set(shown.replace("\n", ""))


def record() -> Iterator[str]:
    for name in SCENES:
        (SCREENS / f"{name}.txt").write_text(screens(SCENES[name]), encoding="utf-8")
        yield name


if __name__ == "__main__":
    print(json.dumps(list(record())))
