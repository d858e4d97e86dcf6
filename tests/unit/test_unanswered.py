"""A question without an answer is told from what was said.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import pytest

from signet_actors.domain.transcripts.unanswered import tells_nothing

ASKED = "how long takes the smoke test?"


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        (ASKED, ()),
        ("how long takes the smoke test?\nand where does it run?", ()),
        (ASKED, ("I could not find anything about it.",)),
        (ASKED, ("I couldn't find any information about how long the smoke test takes. Shall I look in CI?",)),
        (ASKED, ("I don't know.",)),
        (ASKED, ("Sorry, I have no record of that.", "Let me check.")),
        (ASKED, ("Which smoke test do you mean?",)),
        ("wie lange dauert der Rauchtest?", ("Dazu habe ich leider nichts gefunden.",)),
        ("wie lange dauert der Rauchtest?", ("Das weiß ich nicht.",)),
        ("combien de temps dure le test ?", ("Je n'ai rien trouvé là-dessus.",)),
        ("¿cuánto dura la prueba?", ("No encontré nada sobre eso.",)),
    ],
)
def test_a_question_without_an_answer_tells_nothing(question: str, answers: tuple[str, ...]) -> None:
    assert tells_nothing([("user", question), *(("assistant", text) for text in answers)])


@pytest.mark.parametrize(
    ("user", "answers"),
    [
        (ASKED, ("12 minutes.",)),
        (ASKED, ("I could not find anything about it.", "By the log of CI it takes 12 minutes.")),
        (ASKED, ("I could not find anything about it, but the lint takes 3 minutes.",)),
        ("is the smoke test slow?", ("Yes.",)),
        ("is the smoke test slow?", ("No.",)),
        ("do we store passwords?", ("They are not stored.",)),
        ("do we have a cache?", ("No, we don't have a cache.",)),
        ("are there leaks?", ("I found nothing suspicious in the logs.",)),
        ("what does the hook run?", ("The check.",)),
        ("do we use npm?", ("No, pnpm.",)),
        ("The smoke test takes 12 minutes, right?", ()),
        ("Can you note that the smoke test takes 12 minutes?", ()),
        ("The smoke test takes 12 minutes. Where does it run?", ("I don't know.",)),
        ("The smoke test takes 12 minutes", ()),
    ],
)
def test_what_says_or_answers_something_is_kept(user: str, answers: tuple[str, ...]) -> None:
    assert not tells_nothing([("user", user), *(("assistant", text) for text in answers)])
