"""opencode's command line: ``opencode run`` reads the prompt from stdin and prints the answer.

Source: memory-pipeline.txt "Configuration Reference" (extraction.provider); docs/decisions.md 18 and 19; opencode's
manual, "CLI" and "Config".
Departs: tools, sharing and updates are switched off, for the reasons given in ``claude_code``. It stores a session for
each call in its own data directory; no option prevents that, so ``signet backfill`` and the plugin leave these out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from signet_actors.domain.transcripts.opencode import OWN_TITLE
from signet_actors.providers.llm.cli_provider import CliProvider

PROGRAM: Final = "opencode"
_CONFIG: Final = (
    '{"permission":{"*":"deny","edit":"deny","bash":"deny","webfetch":"deny"},"share":"disabled","autoupdate":false}'
)


class OpencodeProvider(CliProvider):
    """One model through ``opencode run``; without a model, the one in opencode's own configuration."""

    def __init__(self, model: str, environment: Mapping[str, str], key_variable: str = "") -> None:
        # A fixed title saves the model call that would generate one, and tells these sessions from a person's.
        chosen = (f"--model={model}",) if model else ()
        super().__init__(
            "opencode",
            PROGRAM,
            model or "default",
            ("run", *chosen, "--title", OWN_TITLE, "--format", "default"),
            environment=environment,
            key_variable=key_variable,
            passed_on=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
            settings={"OPENCODE_CONFIG_CONTENT": _CONFIG, "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        )
