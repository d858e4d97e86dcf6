"""What people answer to a tool: to its questions, or why it may not run. Programs record it as the tool's result.

Each answer is a turn of the user, with the question. Nothing else that a tool returns is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from signet_actors.domain.transcripts.json_values import text_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

Exchange: TypeAlias = tuple[str, str]
"""What was asked, empty if the program does not tell, and what was answered."""

_REFUSED: Final = re.compile(r"The user doesn't want to proceed with this tool use\.[^\n]{0,300} the user said:[ \n]")
_NOTE: Final = "\n\nNote: The user's next message may contain a correction or preference."
_CLARIFY: Final = re.compile(
    r"The user (?:wants to clarify these questions|has indicated they have provided enough answers)"
)
_ANSWER: Final = re.compile(r"\"?\n[ \t]{1,9}(?:Answer|User notes): ")


def turns_of(exchanges: Iterable[Exchange], said_at: str | None) -> list[Turn]:
    """Return a turn for each answer, with the question quoted: a question alone says nothing, nor does "yes"."""
    found = []
    for question, answer in exchanges:
        said, asked = turn_of("user", answer, said_at), turn_of("assistant", question)
        if said is not None:
            lines = () if asked is None else asked.text.splitlines()
            found.append(said._replace(text="\n".join((*(f"> {line}" for line in lines), said.text))))
    return found


def exchanges_of(questions: Any, answer_to: Callable[[int, Mapping[str, Any]], Any]) -> list[Exchange]:
    """Return the questions with their answers; of a question for a secret, nothing.

    ``answer_to`` returns the text of the answer to a question with this number, or the texts.
    """
    found = []
    for number, question in enumerate(questions if isinstance(questions, list) else ()):
        if isinstance(question, dict) and not (question.get("isSecret") or question.get("is_secret")):
            answer = answer_to(number, question)
            texts = [
                text.strip() for text in (answer if isinstance(answer, list) else [answer]) if isinstance(text, str)
            ]
            found.append((text_at(question, "question") or "", "\n".join(dict.fromkeys(texts))))
    return found


def refused(text: str) -> list[Exchange]:
    """Return what a person said when they refused a tool of Claude Code, or its questions; nothing if they did not."""
    refusal = _REFUSED.match(text)
    return [] if refusal is None else feedback_in(text[refusal.end() :].partition(_NOTE)[0])


def feedback_in(said: str) -> list[Exchange]:
    """Return what a person said when they refused a tool of Claude Code, from the text that the program made of it."""
    if _CLARIFY.match(said) is None:
        return [("", said)]
    found = []
    for asked in said.split('\n- "')[1:]:
        question, *answers = _ANSWER.split(asked)
        found.append((question, "\n".join(answers)))
    return found
