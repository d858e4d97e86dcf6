"""The multilingual model for the user's own memories: whether it would help, and its download.

Source: docs/decisions.md 57; docs/configuration.md "Languages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.config.embedding_models import MULTILINGUAL_FILE
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import mostly_foreign
from signet_actors.errors import Unavailable

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient

SAMPLE = 200
"""So many of the newest memories show the language."""
MODELS_OF_ENGLISH = ("auto", "embedded", "minilm")


def is_downloaded() -> bool:
    return MULTILINGUAL_FILE.is_file()


def are_mostly_foreign(client: DaemonClient, agent: str | None = None) -> bool:
    """Return whether most of the newest memories are in other languages than English. Raises ``SignetError``."""
    found = client.get("/api/memories", limit=SAMPLE, agentId=agent).records("memories")
    return mostly_foreign(words_of(str(memory["content"])) for memory in found)


def download() -> None:
    """Download the model with pip, by hash. Raises ``Unavailable``."""
    from signet_actors.cli.third_party_files import MULTILINGUAL, fetch_absent  # noqa: PLC0415 - only for a download

    try:
        fetch_absent([MULTILINGUAL])
    except SystemExit as error:
        raise Unavailable(str(error)) from error
    except OSError as error:
        raise Unavailable(f"the model cannot be stored in the installation: {error}") from error
