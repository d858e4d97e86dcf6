"""Generated memories and questions similar to an agent's: sentences with Zipf-distributed words, ticket ids, paths.

Everything follows from one seed. Words are built from syllables, so that no real text is used; function words are
English, because search treats them in a special way. A question takes its content words from one memory; an identifier
query is that identifier alone or with one more word.
"""

from __future__ import annotations

import bisect
import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

VOCABULARY: Final = 20_000
_FUNCTION_TEXT: Final = """
the of and to in is was for that with it on as are be by this have from or had at not but which all were when we there
can been has their more if will would about who then them some so because before after only other into than its no our
they she he his her you i my your over also must never always again each while where
"""
FUNCTION_WORDS: Final = tuple(_FUNCTION_TEXT.split())
_FUNCTION_SHARE: Final = 0.42
_ONSETS: Final = [
    "b",
    "br",
    "c",
    "cl",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "pr",
    "qu",
    "r",
    "s",
    "sc",
    "sh",
    "sl",
    "sp",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
]
_NUCLEI: Final = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "oa", "ou", "io"]
_CODAS: Final = ["", "", "", "n", "r", "l", "s", "t", "m", "ck", "nd", "st", "rn", "x"]
_SUFFIXES: Final = ["", "", "", "", "s", "ed", "ing", "er", "ion", "ly"]
_SERVICES: Final = ["OPS", "BILL", "AUTH", "SYNC", "DATA", "WEB", "MOB", "INFRA", "QA", "DOC"]
_FOLDERS: Final = ["src", "lib", "tests", "tools", "deploy", "docs", "config", "scripts", "internal", "web"]
_ENDINGS: Final = [".py", ".ts", ".rs", ".go", ".yaml", ".sql", ".md", ".toml"]
TYPES: Final = ("fact", "preference", "decision", "rationale", "procedural", "semantic")
PROJECTS: Final = tuple(f"project-{number}" for number in range(8))
_QUESTIONS: Final = (
    "what did we decide about {0} and {1}?",
    "which {0} {1} was it that had the {2}?",
    "why does the {0} need {1} when {2} is there?",
    "who worked on {0} {1} with the {2}",
    "how do I fix the {0} after {1}",
    "when was the {0} of {1} moved to {2}?",
    "{0} {1} {2}",
    "is there anything about {0} in our {1}?",
)
BEGIN: Final = datetime(2025, 1, 1, tzinfo=UTC)
SPAN_DAYS: Final = 400
STREAM_IDENTIFIERS: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Made:
    """A memory, and its words for questions. ``telling`` are its content words, rarest first."""

    content: str
    type: str
    tags: tuple[str, ...]
    project: str
    created_at: str
    telling: tuple[str, ...]
    identifier: str | None

    def body(self) -> dict[str, Any]:
        """Return the JSON of a remember request."""
        return {
            "content": self.content,
            "type": self.type,
            "tags": ",".join(self.tags),
            "project": self.project,
            "createdAt": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """A recall request, and the identifier that its best result must contain (None for a natural question)."""

    body: dict[str, Any]
    identifier: str | None
    filtered: bool


class Texts:
    """An endless stream of memories, the same for the same seed and stream. Streams of a seed have the same vocabulary
    and different identifiers.

    A memory takes about 0.1 ms of CPU to generate.
    """

    def __init__(self, seed: int = 7, *, stream: int = 0) -> None:
        self._rng = random.Random(seed)
        self._words = _vocabulary(self._rng)
        self._rank = {word: rank for rank, word in enumerate(self._words)}
        self._cumulative = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))
        self._tags = [f"{self._words[rank]}" for rank in range(40, 80)]
        self._tag_weights = [1 / (rank + 1) for rank in range(len(self._tags))]
        self._serial = itertools.count(1000 + stream * STREAM_IDENTIFIERS)
        if stream:
            self._rng = random.Random(f"{seed}/{stream}")

    def memory(self) -> Made:
        """Return one more memory, different from all before."""
        rng = self._rng
        words, content_words = [], []
        for _ in range(rng.randint(1, 2)):
            sentence: list[str] = []
            for _ in range(rng.randint(8, 30)):
                if rng.random() < _FUNCTION_SHARE:
                    sentence.append(rng.choice(FUNCTION_WORDS))
                else:
                    word = self._content_word()
                    sentence.append(word)
                    content_words.append(word)
            words += [sentence[0].capitalize(), *sentence[1:-1], sentence[-1] + "."]
        identifier = self._identifier() if rng.random() < 0.3 else None
        if identifier is not None:
            words.insert(rng.randint(1, len(words) - 1), identifier)
        moment = BEGIN + timedelta(milliseconds=rng.randrange(SPAN_DAYS * 86_400_000))
        return Made(
            content=" ".join(words),
            type=rng.choice(TYPES),
            tags=tuple(dict.fromkeys(rng.choices(self._tags, self._tag_weights, k=rng.randint(0, 3)))),
            project=rng.choice(PROJECTS),
            created_at=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            telling=tuple(sorted(dict.fromkeys(content_words), key=self._rank.__getitem__, reverse=True)),
            identifier=identifier,
        )

    def question(self, about: Made, *, filtered: bool, limit: int = 10) -> Asked:
        """Return a query whose result is ``about``; with ``filtered`` also a filter that ``about`` passes."""
        rng = self._rng
        by_identifier = about.identifier is not None
        if by_identifier:
            query = about.identifier or ""
            if rng.random() < 0.5 and about.telling:
                query = f"{query} {rng.choice(about.telling)}"
        else:
            telling = list(about.telling[: max(3, len(about.telling) * 2 // 3)])
            chosen = [*rng.sample(telling, min(3, len(telling))), *FUNCTION_WORDS[:3]]
            query = rng.choice(_QUESTIONS).format(*chosen)
        body: dict[str, Any] = {"query": query, "limit": limit}
        if filtered:
            match rng.randrange(3):
                case 0:
                    body["type"] = about.type
                case 1 if about.tags:
                    body["tags"] = rng.choice(about.tags)
                case _:
                    moment = datetime.fromisoformat(about.created_at)
                    back = timedelta(days=rng.uniform(0, (moment - BEGIN).days + 1))
                    body["since"] = (moment - back).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Asked(body=body, identifier=about.identifier if by_identifier else None, filtered=filtered)

    def questions(self, known: list[Made], count: int, *, limit: int = 10) -> list[Asked]:
        """Return ``count`` queries about ``known`` memories, every second one with a filter."""
        return [self.question(self._rng.choice(known), filtered=bool(at % 2), limit=limit) for at in range(count)]

    def _content_word(self) -> str:
        at = bisect.bisect_left(self._cumulative, self._rng.random() * self._cumulative[-1])
        return self._words[min(at, VOCABULARY - 1)]

    def _identifier(self) -> str:
        rng, number = self._rng, next(self._serial)
        match rng.randrange(3):
            case 0:
                return f"{rng.choice(_SERVICES)}-{number}"
            case 1:
                folders = "/".join(rng.sample(_FOLDERS, rng.randint(1, 3)))
                return f"{folders}/{self._content_word()}_{number}{rng.choice(_ENDINGS)}"
            case _:
                return f"E{number}_{self._content_word().upper()}"


def _vocabulary(rng: random.Random) -> list[str]:
    """Return distinct words of one to three syllables; frequent ranks get the short ones."""
    taken = set(FUNCTION_WORDS)
    words: list[str] = []
    while len(words) < VOCABULARY:
        syllables = 1 if len(words) < 300 else rng.choice((2, 2, 3))
        stem = "".join(rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS) for _ in range(syllables))
        word = stem + rng.choice(_SUFFIXES)
        if word not in taken:
            taken.add(word)
            words.append(word)
    return words
