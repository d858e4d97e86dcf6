"""What a language model back end is, whichever it is.

Source: memory-pipeline.txt "Provider Abstraction"; docs/decisions.md 18; docs/reliability.md R11.
Departs: ``generate`` answers with its token counts and ``available`` with the reason, because daily caps and
``signet providers`` need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from signet_actors.domain.extraction.answers import AnswerFormat

MAX_ANSWER_BYTES: Final = 4 << 20
"""A longer answer is nobody's: twenty facts and fifty entities are 60 kB, a long chain of thought some hundred."""
AVAILABILITY_TIMEOUT_MS: Final = 3000
_CHARS_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Generated:
    """A model's answer. ``cost_microusd`` is None where the provider does not tell it.

    ``estimated`` says that the token counts are a guess by characters, because the provider gives none.
    """

    text: str
    tokens_in: int
    tokens_out: int
    cost_microusd: int | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a call would find the provider and its model; ``detail`` says why not, and what to do about it."""

    ok: bool
    detail: str


class LlmProvider(Protocol):
    """Answers prompts. One event loop only."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def endpoint(self) -> str | None:
        """The address that prompts go to, None for a program on this machine."""
        ...

    @property
    def structured(self) -> bool:
        """Whether the next request carries the schema of its answer; false where the server cannot or would not."""
        ...

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """The model's answer to ``prompt``, within ``timeout_ms`` from beginning to end, in the format ``answer`` where
        the server can hold its model to one.

        Raises ``ProviderError`` and nothing else; whatever happens, no socket and no process of the call is left.
        """
        ...

    async def available(self) -> Availability:
        """Never raises, takes at most three seconds, costs nothing."""
        ...

    async def close(self) -> None:
        """No socket, process or file of the provider is left."""
        ...


def estimated_tokens(text: str) -> int:
    """About as many tokens as ``text`` has: a quarter of its characters, more for scripts beyond Latin."""
    ascii_chars = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return -(-ascii_chars // _CHARS_A_TOKEN) + (len(text) - ascii_chars)
