"""What a prompt is about, without its secrets. A long text is looked at in a thread.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.prompt_terms import PromptTerms, prompt_terms
from signet_actors.domain.redaction.labelled_values import answered_secret
from signet_actors.domain.redaction.scan import Redactor, without_known
from signet_actors.domain.text_cut import ends_of
from signet_actors.gateway.limits import TEXT_EXECUTOR
from signet_actors.operations.field_types import MAX_QUERY_CHARS

_SHORT_CHARS: Final = 2000


async def terms_of_prompt(
    redactor: Redactor, prompt: str, last_assistant_message: str, known: dict[str, str], asked: str
) -> PromptTerms:
    """Return the terms of a prompt. They are stored with the checkpoint.

    ``known``: secrets that were recognised in the session; it receives those of the two texts. ``asked``: what was said
    before the prompt, perhaps a question for a secret.
    """

    def work() -> PromptTerms:
        if secret := answered_secret(asked, prompt):
            known[secret] = "credential"
        prompt_text = _without_secrets(redactor, prompt, known)
        return prompt_terms(prompt_text, _without_secrets(redactor, last_assistant_message, known))

    if len(prompt) + len(last_assistant_message) <= _SHORT_CHARS:
        return work()
    return await TEXT_EXECUTOR.run_unbounded(work)


def _without_secrets(redactor: Redactor, text: str, known: dict[str, str]) -> str:
    """Return a text, or the ends of a long one, without secrets."""
    found, kinds = redactor.clean(text, known)
    found = without_known(found, known)
    for kind in {*kinds, *known.values()}:
        found = found.replace(f"[REDACTED:{kind}]", " ")
    return ends_of(found, 2 * MAX_QUERY_CHARS)
