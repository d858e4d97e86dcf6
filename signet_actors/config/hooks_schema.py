"""The section ``hooks`` of agent.yaml: what each hook of a harness receives and stores.

Source: docs/compatibility.md "Hooks and sessions"; docs/guides/hooks.md.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from signet_actors.config.field_forms import described, ranged, text

MAX_GUIDELINES_CHARS = 4000


class SessionStartConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs when a session begins."""

    enabled: Annotated[bool, described("Give a session memories and files at its start")] = True
    recall_limit: Annotated[int, ranged(0, 200, "Maximum number of memories, besides constraints")] = 50
    candidate_pool_limit: Annotated[
        int,
        ranged(10, 2000, "Memories of the highest importance, and as many recalled last, that are compared exactly"),
    ] = 200
    max_inject_chars: Annotated[int, ranged(200, 24_000, "Maximum length of the text; a harness may allow less")] = (
        24_000
    )
    recency_bias: Annotated[
        float, ranged(0.0, 1.0, "How much the age of a memory counts for its place, instead of its importance")
    ] = 0.0
    include_identity: Annotated[
        bool, described("Include `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md` and `MEMORY.md` of the workspace")
    ] = True
    include_recent_context: Annotated[
        bool, described("Include `MEMORY.md`, and the line about what is new since the last session")
    ] = True


class UserPromptSubmitConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs at each prompt."""

    enabled: Annotated[bool, described("Offer memories at each prompt")] = True
    recall_limit: Annotated[int, ranged(1, 20, "Maximum number of memories that a prompt is offered")] = 5
    max_inject_chars: Annotated[int, ranged(100, 10_000, "Maximum length of the lines with these memories")] = 500
    min_score: Annotated[float, ranged(0.0, 1.0, "Relevance from which on a memory is offered")] = 0.5


class SessionEndConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs when a session ends."""

    enabled: Annotated[bool, described("Store the transcript of a session")] = True


class PreCompactionConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs before the context of a session is compacted."""

    enabled: Annotated[bool, described("Tell the model what to store before a compaction")] = True
    include_recent_memories: Annotated[bool, described("Show it memories that need not be stored again")] = True
    memory_limit: Annotated[int, ranged(1, 100, "Maximum number of these memories")] = 10
    summary_guidelines: Annotated[
        str, text("What to store, on one line; empty means the built-in guidelines", chars=MAX_GUIDELINES_CHARS)
    ] = ""


class CompactionCompleteConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs after a compaction."""

    enabled: Annotated[bool, described("Store the summary as a memory; a new context epoch begins in either case")] = (
        True
    )


class SynthesisHookConfig(Struct, frozen=True, rename="camel"):
    """The hook by which a harness makes `MEMORY.md`."""

    enabled: Annotated[bool, described("Give a harness the prompt for `MEMORY.md`, and take the text that it made")] = (
        True
    )


class HooksConfig(Struct, frozen=True, rename="camel"):
    session_start: SessionStartConfig = SessionStartConfig()
    user_prompt_submit: UserPromptSubmitConfig = UserPromptSubmitConfig()
    session_end: SessionEndConfig = SessionEndConfig()
    pre_compaction: PreCompactionConfig = PreCompactionConfig()
    compaction_complete: CompactionCompleteConfig = CompactionCompleteConfig()
    synthesis: SynthesisHookConfig = SynthesisHookConfig()
