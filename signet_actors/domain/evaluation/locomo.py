"""Read conversations in the format of LoCoMo: each turn becomes a memory, each question names the turns that answer it.

Text ``Speaker: text [shares caption]``; one agent for each conversation, visibility private; sourceId and key
``conversation:dia_id``; createdAt is the session's date plus i seconds for its i-th turn.

Source: docs/quality.md "How it is measured"; Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM
Agents", ACL 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from signet_actors.domain.evaluation.question_set import Question, QuestionSet, StoredText

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_DATE: Final = "%I:%M %p on %d %B, %Y"
_SESSION: Final = "session_"
_DIA_ID: Final = re.compile(r"D\d{1,9}:\d{1,9}")


class Turn(msgspec.Struct, frozen=True):
    """One utterance of a speaker."""

    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None

    def content(self) -> str:
        """Return the memory's text."""
        shared = f" [shares {self.blip_caption}]" if self.blip_caption else ""
        return f"{self.speaker}: {self.text}{shared}"


class LabelledQuestion(msgspec.Struct, frozen=True):
    """A question, the turns that answer it, and its kind (see ``CATEGORIES``)."""

    question: str
    category: int
    evidence: list[str] = []

    def labels(self) -> list[str]:
        """Return the turns of the evidence; some labels of the set have several, some none."""
        return labels_in(self.evidence)


class Session(msgspec.Struct, frozen=True):
    """The turns of one date, and what the file observes about them: texts with the labels of their turns."""

    date: datetime
    turns: list[Turn]
    observations: list[tuple[str, list[str]]]


class Conversation(msgspec.Struct, frozen=True):
    """Sessions in order, and the questions about them."""

    number: int
    sessions: list[Session]
    questions: list[LabelledQuestion]

    @property
    def agent(self) -> str:
        return f"conversation-{self.number}"

    def key(self, label: str) -> str:
        return f"{self.number}:{label}"

    def memories(self) -> Iterator[StoredText]:
        """Yield each turn as a memory, in the order of the conversation."""
        for session in self.sessions:
            for at, turn in enumerate(session.turns):
                yield StoredText(
                    self.key(turn.dia_id),
                    {
                        "content": turn.content(),
                        "agentId": self.agent,
                        "visibility": "private",
                        "sourceId": self.key(turn.dia_id),
                        "createdAt": stamp(session.date + timedelta(seconds=at)),
                    },
                )

    def asked(self) -> Iterator[Question]:
        """Yield each question with the keys of its turns."""
        for question in self.questions:
            yield Question(
                text=question.question,
                category=CATEGORIES.get(question.category, str(question.category)),
                evidence=tuple(map(self.key, question.labels())),
                agent=self.agent,
            )


def stamp(moment: datetime) -> str:
    """Return the moment as a line of an import has it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def labels_in(texts: Sequence[str]) -> list[str]:
    """Return the labels of turns in the texts, each once, sorted."""
    return sorted({label for text in texts for label in _DIA_ID.findall(text)})


def read_conversations(document: bytes) -> list[Conversation]:
    """Return the conversations of a LoCoMo file; raises ValueError if it is not one."""
    try:
        raw = msgspec.json.decode(document, type=list[dict[str, Any]])
        return [_conversation(number, item) for number, item in enumerate(raw)]
    except KeyError as error:
        raise ValueError(f"not a LoCoMo file: a conversation has no {error}") from error
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise ValueError(f"not a LoCoMo file: {error}") from error


def question_set(conversations: Sequence[Conversation]) -> QuestionSet:
    """Return all turns as memories, and the questions whose evidence names at least one of them."""
    memories = [memory for conversation in conversations for memory in conversation.memories()]
    questions = [question for conversation in conversations for question in conversation.asked()]
    return QuestionSet(memories, questions).answerable()


def _conversation(number: int, item: Mapping[str, Any]) -> Conversation:
    talk = item["conversation"]
    names = [name for name in talk if name.startswith(_SESSION) and name.removeprefix(_SESSION).isdecimal()]
    observed = item.get("observation") or {}
    return Conversation(
        number=number,
        sessions=[
            Session(
                date=datetime.strptime(talk[f"{name}_date_time"], _DATE).replace(tzinfo=UTC),
                turns=msgspec.convert(talk[name], list[Turn]),
                observations=_observations(observed.get(f"{name}_observation") or {}),
            )
            for name in sorted(names, key=lambda name: int(name.removeprefix(_SESSION)))
        ],
        questions=msgspec.convert(item["qa"], list[LabelledQuestion]),
    )


def _observations(by_speaker: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the observations about a session in the order of their turns, each with the labels of these."""
    found = []
    for observations in by_speaker.values():
        for text, evidence in observations:
            labels = labels_in([evidence] if isinstance(evidence, str) else list(evidence))
            if labels:
                found.append((str(text), labels))
    return sorted(found, key=lambda one: int(one[1][0].partition(":")[2]))
