"""The interface of language model back ends.

Source: memory-pipeline.txt "Provider Abstraction"; docs/decisions.md 18; docs/reliability.md R11.
Departs: ``generate`` returns token counts and ``available`` returns a reason, because daily caps and
``signet providers`` need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from signet_actors.domain.extraction.answers import AnswerFormat

MAX_ANSWER_BYTES: Final = 4 << 20
"""No valid answer is longer: twenty facts and fifty entities are 60 kB, a long chain of thought some hundred."""
AVAILABILITY_TIMEOUT_MS: Final = 3000
_CHARS_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Reported:
    """What the provider says that a call used; None where it says nothing."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cache_read_tokens: int | None = None
    cost_microusd: int | None = None


@dataclass(frozen=True, slots=True)
class Generated:
    """A model's answer. ``cost_microusd`` is None if the provider does not report it.

    ``estimated``: the token counts are estimated from the characters, because the provider reports none.
    """

    text: str
    tokens_in: int
    tokens_out: int
    cost_microusd: int | None = None
    estimated: bool = False
    reported: Reported = Reported()


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether the provider and its model are available; ``detail`` gives the reason and the remedy if not."""

    ok: bool
    detail: str


class LlmProvider(Protocol):
    """A language model that answers prompts. For one event loop."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def endpoint(self) -> str | None:
        """The address to which prompts are sent, None for a local program."""

    @property
    def structured(self) -> bool:
        """Whether the next request carries the schema of its answer; false if the server does not support it."""

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """Return the model's answer to ``prompt``; ``timeout_ms`` bounds the whole call.

        ``answer`` is the format of the answer, if the server can enforce one. Raises only ``ProviderError``. No socket
        and no process of the call is left in any case.
        """

    async def available(self) -> Availability:
        """Check the provider; never raises, takes at most three seconds, costs nothing."""

    async def close(self) -> None:
        """Close all sockets, processes and files of the provider."""


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of ``text``: a quarter per ASCII character, one per other character."""
    ascii_chars = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return -(-ascii_chars // _CHARS_A_TOKEN) + (len(text) - ascii_chars)


def counted(
    prompt: str,
    text: str,
    prompt_tokens: object,
    text_tokens: object,
    *,
    cost_microusd: int | None,
    cached_tokens: object = None,
    reports_cost: bool = True,
) -> Generated:
    """Return the answer ``text`` with the server's token counts, or with estimates if they are not valid."""
    known = _token_count(prompt_tokens), _token_count(text_tokens)
    return Generated(
        text,
        estimated_tokens(prompt) if known[0] is None else known[0],
        estimated_tokens(text) if known[1] is None else known[1],
        cost_microusd=cost_microusd,
        estimated=None in known,
        reported=Reported(*known, _token_count(cached_tokens), cost_microusd if reports_cost else None),
    )


def _token_count(value: object) -> int | None:
    """Return a token count from a server, None if it is not a valid count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else None
