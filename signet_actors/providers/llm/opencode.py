"""opencode's command line: ``opencode run``, which reads its message from stdin and prints the answer's text.

Source: memory-pipeline.txt "Configuration Reference" (extraction.provider); docs/decisions.md 18 and 19; opencode's
manual, "CLI" and "Config".
Departs: its tools are denied and its sharing and updating switched off, for the reasons that ``claude_code`` gives. It
keeps a session for each call in its own data directory: it has no option against that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from signet_actors.providers.llm.cli_provider import CliProvider, Finder

PROGRAM: Final = "opencode"
_CONFIG: Final = (
    '{"permission":{"*":"deny","edit":"deny","bash":"deny","webfetch":"deny"},"share":"disabled","autoupdate":false}'
)


class OpencodeProvider(CliProvider):
    """One model behind ``opencode run``; without one, the model that opencode's own configuration names."""

    def __init__(
        self, model: str, *, environment: Mapping[str, str], key_variable: str = "", find: Finder | None = None
    ) -> None:
        # A title of our own saves the call that would make one up.
        chosen = (f"--model={model}",) if model else ()
        super().__init__(
            "opencode",
            PROGRAM,
            model or "default",
            ("run", *chosen, "--title", "signet", "--format", "default"),
            environment=environment,
            key_variable=key_variable,
            passed_on=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
            settings={"OPENCODE_CONFIG_CONTENT": _CONFIG, "OPENCODE_DISABLE_AUTOUPDATE": "1"},
            find=find,
        )
