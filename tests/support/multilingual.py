"""Whether the multilingual model can run here: its runtime and its file are not everywhere."""

from __future__ import annotations

from signet_actors.config.embedding_models import MULTILINGUAL_FILE
from tests.support.minilm import HAS_RUNTIME

HAS_MODEL = HAS_RUNTIME and MULTILINGUAL_FILE.is_file()
WHY_NOT = "no runtime, or the model was not fetched: python ops/third_party.py --multilingual"
