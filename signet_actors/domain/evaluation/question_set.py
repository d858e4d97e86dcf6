"""Memories and the questions that they answer, whatever file they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from signet_actors.domain.normalization import content_hash

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredText:
    """A memory under the ``key`` by which questions name it. ``line`` has the members of a line of an import."""

    key: str
    line: Mapping[str, Any]

    @property
    def agent(self) -> str | None:
        return self.line.get("agentId")

    def identity(self) -> tuple[object, ...]:
        """Return what two memories have in common that the store keeps as one."""
        line = self.line
        return (
            *(line.get(name) for name in ("agentId", "project", "scope")),
            line.get("visibility") or "global",
            content_hash(str(line["content"])),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its kind, and the keys of the memories that answer it. Agent and scope are those of the recall."""

    text: str
    category: str
    evidence: tuple[str, ...]
    agent: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Memories in the order in which they are stored, and questions. Without memories, keys are ids of a store."""

    memories: Sequence[StoredText]
    questions: Sequence[Question]

    def answerable(self) -> QuestionSet:
        """Return the set without the questions that no memory of the set answers, and without missing evidence."""
        known = {memory.key for memory in self.memories}
        kept = []
        for question in self.questions:
            evidence = tuple(key for key in question.evidence if key in known)
            if evidence:
                kept.append(Question(question.text, question.category, evidence, question.agent, question.scope))
        return QuestionSet(self.memories, kept)


def evenly_chosen(items: Sequence[T], count: int) -> Sequence[T]:
    """Return ``count`` items at even distances, or all if there are not more."""
    if len(items) <= count:
        return items
    return [items[at * len(items) // count] for at in range(count)]


def read_question_lines(document: bytes) -> QuestionSet:
    """Return the set of a JSON Lines file: memories have ``content``, questions ``question`` and ``ids``.

    Raises ValueError with the number of the first line that is neither.
    """
    memories: dict[str, StoredText] = {}
    questions: list[Question] = []
    for number, raw in enumerate(document.split(b"\n"), start=1):
        if not raw.strip():
            continue
        line = _object(number, raw)
        if "question" in line:
            questions.append(_question(number, line))
        elif "content" in line:
            memory = _memory(number, line)
            if memory.key in memories:
                raise ValueError(f'line {number}: the id "{memory.key[:60]}" is given twice')
            memories[memory.key] = memory
        elif "format" not in line or memories or questions:
            raise ValueError(f'line {number} has neither "question" nor "content"')
    _check_ids(memories, questions)
    return QuestionSet(list(memories.values()), questions)


def _object(number: int, raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError(f"line {number} is not JSON") from None
    if not isinstance(line, dict):
        raise ValueError(f"line {number} is not a JSON object")  # noqa: TRY004 - no caller's mistake
    return line


def _question(number: int, line: Mapping[str, Any]) -> Question:
    given = line.get("ids")
    ids = [given] if isinstance(given, str) else given
    if not isinstance(line["question"], str) or not line["question"].strip():
        raise ValueError(f"line {number}: the question is empty")
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise ValueError(f'line {number}: "ids" must list the ids of the memories that answer the question')
    texts = {name: line.get(name) for name in ("category", "agentId", "scope")}
    if any(value is not None and not isinstance(value, str) for value in texts.values()):
        raise ValueError(f"line {number}: category, agentId and scope must be text")
    return Question(
        text=line["question"],
        category=texts["category"] or "",
        evidence=tuple(dict.fromkeys(ids)),
        agent=texts["agentId"],
        scope=texts["scope"],
    )


def _memory(number: int, line: Mapping[str, Any]) -> StoredText:
    if not isinstance(line["content"], str) or not line["content"].strip():
        raise ValueError(f"line {number}: the content is empty")
    if not isinstance(line.get("id"), str) or not line["id"]:
        raise ValueError(f'line {number}: a memory needs an "id", by which the questions name it')
    return StoredText(line["id"], line)


def _check_ids(memories: Mapping[str, StoredText], questions: Sequence[Question]) -> None:
    if not questions:
        raise ValueError("it has no questions")
    if not memories:
        return
    for question in questions:
        missing = next((key for key in question.evidence if key not in memories), None)
        if missing is not None:
            raise ValueError(f'no memory of the file has the id "{missing[:60]}" of a question')
