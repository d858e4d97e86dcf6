"""Claude Code's command line in print mode.

Source: memory-pipeline.txt "Provider Abstraction" (ClaudeCodeProvider); docs/decisions.md 18 and 19.
Departs: the prompt is passed by stdin, not as an argument (see ``cli_process``); tools, hooks and MCP servers are
switched off, because the text of a memory must not trigger actions, and because this daemon's own hooks would turn each
answer into new memories. The timeout is ``extraction.timeout``, as for all providers, not 60 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from signet_actors.providers.llm.cli_provider import CliProvider

PROGRAM: Final = "claude"
DEFAULT_MODEL: Final = "haiku"
_SETTINGS: Final = '{"disableAllHooks":true}'


class ClaudeCodeProvider(CliProvider):
    """One model through ``claude -p``, charged to the user's subscription or key."""

    def __init__(self, model: str, environment: Mapping[str, str], key_variable: str = "") -> None:
        model = model or DEFAULT_MODEL
        super().__init__(
            "claude-code",
            PROGRAM,
            model,
            (
                "-p",
                f"--model={model}",
                "--no-session-persistence",
                "--output-format",
                "text",
                "--settings",
                _SETTINGS,
                "--strict-mcp-config",
                "--tools",
                "",
            ),
            environment=environment,
            key_variable=key_variable,
            passed_on=("CLAUDE_CONFIG_DIR",),
            settings={"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"},
        )
