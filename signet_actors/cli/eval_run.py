"""Fill the measured daemon and ask it the questions, over HTTP like any client.

Memories are imported with their ids, so that the results can be compared with the evidence. A text that the store keeps
only once is sent once, and counts for each memory that has it.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_actors.cli.connection import DaemonClient, DaemonReply
from signet_actors.cli.export import export_lines
from signet_actors.cli.import_export import CLIENT_WAIT_S, batches, send_batch
from signet_actors.cli.presentation import one_line, print_message, progress_bar
from signet_actors.domain.evaluation.measures import scores
from signet_actors.domain.evaluation.question_set import Question, QuestionSet, StoredText
from signet_actors.errors import InvalidRequest, Unavailable

IDLE_S = 20.0
"""Vectors that do not come within this time after the last one are not waited for."""
SETTLE_S = 30.0
POLL_S = 0.25
SETTLE_QUESTIONS = 10
SECOND_STAGE = "second_vector_knn"
"""The stage of a recall that compares the second vectors."""
SHOWN_REFUSALS = 5
_NAMESPACE = uuid.UUID("6b4cb2a5-60f5-4a4c-9a0e-0f6c6b8f3d21")


@dataclass(frozen=True, slots=True)
class FilledStore:
    """The questions of a store that has been filled, and the ids of each memory's row by its key."""

    questions: Sequence[Question]
    rows: Mapping[str, frozenset[str]]
    memories: int


@dataclass(frozen=True, slots=True)
class Answers:
    """For each question, in order: its scores, the milliseconds that its recall took, and the ids of its results.

    ``stages_ms`` has the total of each stage of the recalls, as the daemon reports it.
    """

    scores: list[tuple[float, ...]] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)
    found: list[list[str]] = field(default_factory=list)
    stages_ms: dict[str, float] = field(default_factory=dict)

    def mean_stages_ms(self) -> dict[str, float]:
        return {name: round(total / len(self.found), 4) for name, total in self.stages_ms.items()}


def export_memories(client: DaemonClient) -> list[StoredText]:
    """Return all memories that the agent may read. Nothing is written to that store."""
    exported = io.BytesIO()
    export_lines(client, exported.write, None, lambda _: None)
    lines = (json.loads(line) for line in exported.getvalue().splitlines() if line)
    return [StoredText(line["id"], line) for line in lines if "content" in line]


def fill(client: DaemonClient, asked: QuestionSet) -> FilledStore:
    """Import the memories; return the questions that these answer. Raises InvalidRequest if there are none."""
    client.retry_window_s = CLIENT_WAIT_S
    ids, lines = _with_ids(asked.memories)
    payload = b"\n".join(json.dumps(line, ensure_ascii=False).encode() for line in lines.values())
    keys = list(lines)
    missing: set[str] = set()
    with progress_bar("storing", len(keys)) as advance:
        for batch in batches(io.BytesIO(payload), 0, 1):
            _, refused = send_batch(client, batch, {})
            _report_refused(refused, len(missing))
            missing |= {keys[int(line["line"]) - 1] for line in refused}
            advance(batch.first_line + len(batch.lines) - 1)
    rows = {key: found - missing for key, found in ids.items() if found - missing}
    stored = QuestionSet([memory for memory in asked.memories if memory.key in rows], asked.questions).answerable()
    if not stored.questions:
        raise InvalidRequest("no question is left: none of their memories could be stored")
    return FilledStore(stored.questions, rows, len(keys) - len(missing))


def wait_for_vectors(client: DaemonClient) -> bool:
    """Wait until every memory has all its vectors; print a message and return False if some do not get one."""
    with progress_bar("embedding", None) as advance:
        most, until = -1, time.monotonic() + IDLE_S
        while True:
            health = client.request("GET", "/api/embeddings/health").body
            total, current = int(health["total"]), health["config"]["model"]
            detail = {check["name"]: check["detail"] for check in health["checks"]}
            embedded = int(detail["model-drift"]["byModel"].get(current, 0))
            second = detail["coverage"].get("second", embedded)
            if health["config"]["provider"] == "none" or (embedded >= total and second >= embedded):
                return True
            if embedded + second > most:
                most, until = embedded + second, time.monotonic() + IDLE_S
                advance(min(embedded, second))
            if time.monotonic() > until:
                which = f"a vector of {current}" if embedded < total else "both vectors"
                print_message(f"Only {min(embedded, second)} of {total} memories have {which}; measured as they are.")
                return False
            time.sleep(POLL_S)


def ask(client: DaemonClient, store: FilledStore, limit: int) -> Answers:
    """Ask every question and compare the results with its evidence."""
    _wait_until_settled(client, store, limit)
    answers = Answers()
    with progress_bar("asking", len(store.questions)) as advance:
        for number, question in enumerate(store.questions, start=1):
            before = time.perf_counter()
            reply = _recall(client, question, limit)
            answers.took_ms.append((time.perf_counter() - before) * 1000)
            found = _ids(reply)
            for stage in reply.body["meta"]["timings"]["stages"]:
                name = stage["name"]
                answers.stages_ms[name] = answers.stages_ms.get(name, 0.0) + stage["durationMs"]
            evidence = [store.rows[key] for key in question.evidence]
            answers.found.append(found)
            answers.scores.append(scores(found, evidence, limit))
            advance(number)
    return answers


def _with_ids(memories: Sequence[StoredText]) -> tuple[dict[str, frozenset[str]], dict[str, dict[str, Any]]]:
    """Return the ids of each memory's row by key, and the lines to import, by the id of the row."""
    ids: dict[str, frozenset[str]] = {}
    lines: dict[str, dict[str, Any]] = {}
    first: dict[tuple[object, ...], str] = {}
    for place, memory in enumerate(memories):
        row = first.setdefault(memory.identity(), _row_id(memory.key, place))
        if row not in lines:
            lines[row] = {**memory.line, "id": row}
        ids[memory.key] = ids.get(memory.key, frozenset()) | {row}
    return ids, lines


def _row_id(key: str, place: int) -> str:
    """Return the key if it is a UUID in the form that the store keeps, else a UUID made of it and its place."""
    try:
        if str(uuid.UUID(key)) == key:
            return key
    except ValueError:
        pass
    return str(uuid.uuid5(_NAMESPACE, f"{place} {key}"))


def _report_refused(refused: Sequence[Mapping[str, Any]], before: int) -> None:
    for at, line in enumerate(refused, start=before):
        if at < SHOWN_REFUSALS:
            print_message(one_line(f"memory {line.get('line')} is not stored: {line.get('error')}", 300))
        elif at == SHOWN_REFUSALS:
            print_message("… and more")


def _wait_until_settled(client: DaemonClient, store: FilledStore, limit: int) -> None:
    """Wait until some questions have the same answers twice: after an import, parts of the ranking follow later."""
    sample = store.questions[:: max(1, len(store.questions) // SETTLE_QUESTIONS)][:SETTLE_QUESTIONS]
    coverage = next(
        c for c in client.request("GET", "/api/embeddings/health").body["checks"] if c["name"] == "coverage"
    )
    both = coverage["detail"].get("second", 0) > 0
    until = time.monotonic() + SETTLE_S
    before: list[list[str]] = []
    while True:
        replies = [_recall(client, question, limit) for question in sample]
        now = [_ids(reply) for reply in replies]
        # The model of the second vectors is loaded after a first recall.
        settled = now == before and (not both or any(map(_used_second, replies)))
        if settled:
            return
        if time.monotonic() > until:
            raise Unavailable("the answers of the temporary daemon keep changing")
        before = now
        time.sleep(POLL_S)


def _recall(client: DaemonClient, question: Question, limit: int) -> DaemonReply:
    return client.ask(
        "/api/memory/recall",
        {"query": question.text, "limit": limit, "agentId": question.agent or client.agent, "scope": question.scope},
    )


def _used_second(reply: DaemonReply) -> bool:
    return any(stage["name"] == SECOND_STAGE for stage in reply.body["meta"]["timings"]["stages"])


def _ids(reply: DaemonReply) -> list[str]:
    return [str(result["id"]) for result in reply.records("results")]
