"""Make the vector that the multilingual model subtracts: ``python -m bench.mean_vector``.

It is the mean of four means: of generated talks in English and in German, of notes of a coding agent, and of the
sentences of ``mean_texts.txt`` in 26 languages. Questions are not among these texts.

Source: docs/quality.md "The multilingual model".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bench.made_talks import ENGLISH, GERMAN, made_conversations
from bench.relevance_texts import evaluation_set
from signet_actors.providers.multilingual.embedder import MEAN, MultilingualEmbedder

TURNS: Final = 300
SEED: Final = 5
SENTENCES: Final = Path(__file__).with_name("mean_texts.txt")


def main() -> int:
    """Write the vector."""
    groups: list[Sequence[str]] = [[related.memory for related in evaluation_set().related]]
    groups.append(SENTENCES.read_text(encoding="utf-8").splitlines())
    for language in (ENGLISH, GERMAN):
        sessions = made_conversations(language, 1, SEED)[0].sessions
        groups.append([turn.content() for session in sessions for turn in session.turns][:TURNS])
    embedder = MultilingualEmbedder()
    embedder.mean = np.zeros(embedder.dimensions, np.float32)
    means = [embedder.embed(group).mean(axis=0) for group in groups]
    np.save(MEAN, np.mean(means, axis=0).astype(np.float32))
    return 0


if __name__ == "__main__":
    sys.exit(main())
