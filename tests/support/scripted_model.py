"""A language model that follows a few rules, so that a test knows its answer to each of our prompts.

It extracts each sentence of a note as a fact, and ``A uses B`` as a relation. It decides about a fact by ``decisions``,
using the first key that the fact contains. It reads prompts like a model: the data is the text between the marked
lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_provider import Act, Asked, Fault

_DATA = re.compile(r"^<data ([0-9a-z]+)>\n(.*?)\n</data \1>$", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"[^.!]+[.!]?")
_JUDGED = re.compile(r"^Memory ([0-9a-f]{8}):$", re.MULTILINE)
_USES = re.compile(r"(?:The |the )?(\w[\w ]*?) uses (?:the )?(\w+)")


@dataclass
class ScriptedModel:
    """A script for ``ScriptedProvider``.

    ``decisions`` maps part of a fact to the decision about it; any other fact is added. ``aspects`` maps part of a fact
    to the name of its aspect, which is `general` for any other. ``summaries`` maps part of a session to its summary;
    any other one begins like the session. ``plan``: the further queries of an aggregate recall, whose answer repeats
    what it was shown and names the sources ``cites``. ``fault`` is called first, with the stage and the request.
    """

    decisions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    summaries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plan: Sequence[str] = ()
    cites: Sequence[Any] = ()
    aspects: Mapping[str, str] = field(default_factory=dict)
    contradicts: bool = False
    confidence: float = 0.9
    fault: Callable[[str, Asked], Act | Fault | None] = lambda _stage, _asked: None

    def __call__(self, asked: Asked) -> Act | Fault:
        stage = stage_of(asked.prompt)
        fault = self.fault(stage, asked)
        if fault is not None and fault != "ok":
            return fault
        texts = data_of(asked.prompt)
        match stage:
            case "extraction":
                return Act("ok", json.dumps(self._extracted(texts[-1])))
            case "decision":
                return Act("ok", json.dumps(self._decided(texts[0])))
            case "contradiction":
                said = {"contradicts": self.contradicts, "confidence": 0.9, "reasoning": "by the rules"}
                return Act("ok", json.dumps(said))
            case "hints":
                hints = [f"What is said about {word}?" for word in texts[-1].split()[:3]]
                return Act("ok", json.dumps({"hints": hints}))
            case "planning":
                return Act("ok", json.dumps({"queries": list(self.plan)}))
            case "aggregate":
                answer = " + ".join(text[13:] for text in texts[1:]) if len(texts) > 1 else ""
                return Act("ok", json.dumps({"answer": f"In short: {answer}", "sources": list(self.cites)}))
            case "classification":
                return Act("ok", json.dumps(self._classified(texts[2:])))
            case "summary":
                return Act("ok", json.dumps({"summary": f"{len(texts) - 1} found for {texts[0]}"}))
            case "synthesis":
                lines = [line for text in texts for line in text.splitlines()]
                return Act("ok", "\n".join(["## Global Head", *lines]))
            case "session_score":
                return Act("ok", json.dumps(self._scored(asked.prompt)))
            case "session_parts":
                return Act("ok", json.dumps(self._summarized("\n".join(texts))))
            case "session_summary":
                return Act("ok", json.dumps(self._summarized(texts[-1])))
            case _:
                return Act("ok", "I do not understand")

    def _extracted(self, note: str) -> dict[str, Any]:
        sentences = [found.strip() for found in _SENTENCE.findall(note) if found.strip()]
        facts = [{"content": text, "type": "fact", "confidence": self.confidence} for text in sentences]
        entities = [
            {"source": found[1], "relationship": "uses", "target": found[2], "confidence": 0.9}
            for found in _USES.finditer(note)
        ]
        return {"facts": facts, "entities": entities}

    def _classified(self, facts: list[str]) -> dict[str, Any]:
        said = [
            {"i": at, "aspect": next((aspect for part, aspect in self.aspects.items() if part in fact), "general")}
            for at, fact in enumerate(facts, 1)
        ]
        return {"type": "system", "facts": [{**one, "kind": "attribute", "new": True} for one in said]}

    def _scored(self, prompt: str) -> dict[str, Any]:
        ids = _JUDGED.findall(prompt)
        return {
            "score": 0.75,
            "confidence": 0.9,
            "memories_used": len(ids),
            "novel_context_count": 1,
            "reasoning": "By the rules.",
            "per_memory": [{"id": short_id, "relevance": 0.5} for short_id in ids],
        }

    def _summarized(self, session: str) -> Mapping[str, Any]:
        for part, answer in self.summaries.items():
            if part in session:
                return answer
        first = " ".join(session.split()[:12])
        return {"title": first, "summary": f"The session began with: {first}. It has {len(session)} characters."}

    def _decided(self, fact: str) -> Mapping[str, Any]:
        for part, answer in self.decisions.items():
            if part in fact:
                return answer
        return {"action": "add", "targetId": None, "confidence": 0.9, "reason": "not stored yet"}


def stage_of(prompt: str) -> str:
    """Return which of our prompts this is."""
    for opening, stage in (
        ("You turn a note into facts", "extraction"),
        ("You decide what a new fact means", "decision"),
        ("You judge whether two statements", "contradiction"),
        ("You sort facts about one entity", "classification"),
        ("You sum up what a search", "summary"),
        ("You plan further searches", "planning"),
        ("You answer a query from memories", "aggregate"),
        ("You write the working memory", "synthesis"),
        ("You write the minutes of a finished session", "session_summary"),
        ("You join the minutes of the parts", "session_parts"),
        ("You judge how well the memories", "session_score"),
    ):
        if prompt.startswith(opening):
            return stage
    return "hints" if "questions" in prompt[:400] else "unknown"


def data_of(prompt: str) -> list[str]:
    """Return the texts that the prompt contains as data, in order."""
    return [found[2] for found in _DATA.finditer(prompt)]
