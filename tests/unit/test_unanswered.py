"""A question without an answer, and what answers a plain one, are told from what was said.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import pytest

from signet_actors.domain.transcripts.unanswered import answers_question, plain_question, tells_nothing

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


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("who is our designer?", ("who", "designer")),
        ("do you know who our notary is", ("who", "notary")),
        ("when is the release?", ("when", "release")),
        ("how big is the budget?", ("amount", "budget")),
        ("where is the wiki?", ("where", "wiki")),
        ("how is the wiki?", None),
        ("may I use unsafe here?", ("may", "unsafe")),
        ("darf ich Umlaute benutzen?", ("may", "umlaute")),
        *(
            (prompt, None)
            for prompt in (
                "",
                "can",
                "may",
                "may?",
                "tests?",
                "deploy",
                "release it",
                "why?",
                "what changed?",
                "is it slow?",
            )
        ),
        *(
            (prompt, None)
            for prompt in ("can you deploy?", "what does this crate do?", "what is a mutex?", "what is slow?")
        ),
        *(
            (prompt, None)
            for prompt in ("where are the tests?", "fix the designer page", "who owns the billing service?")
        ),
    ],
)
def test_a_plain_question_has_a_kind_and_one_telling_word(prompt: str, asked: tuple[str, str] | None) -> None:
    assert plain_question(prompt) == asked


@pytest.mark.parametrize(
    ("question", "user", "answer", "expected"),
    [
        ("where is the wiki?", "the wiki is at wiki.example.com", "OK.", True),
        ("where is the wiki?", "where is the wiki", "At wiki.example.com.", True),
        ("where is the wiki?", "where is the wiki", "I have no record of the wiki.", False),
        ("where is the wiki?", "Is the wiki down?", "The wiki moved to heron.", True),
        ("where is the wiki?", "open the wiki", "The wiki is open.", False),
        ("where is the wiki?", "the links in the wiki are dead", "OK.", False),
        ("where is the wiki?", "the wiki page is broken", "OK.", False),
        ("where is the wiki?", "grep the wiki", "OK.", False),
        ("where is the wiki?", "hm, our wiki is at wiki.example.com", "OK.", True),
        ("where is the wiki?", "we keep the wiki on heron", "OK.", True),
        ("who is our designer?", "ping the designer about Safari", "OK.", False),
        ("who is our designer?", "we hired Maria as designer", "OK.", True),
        ("who is our designer?", "the designer called, Maria wants bigger buttons", "OK.", False),
        ("who is our designer?", "who is our designer?", "Maria.", True),
        ("who is our designer?", "we pay the designer", "OK.", False),
        ("when is the release?", "the release is late", "OK.", False),
        ("may I use unsafe?", "we use unsafe", "OK.", False),
        ("may I use unsafe?", "use unsafe only in ffi.rs", "OK.", True),
        ("when is the release?", "the release is on Friday", "OK.", True),
        ("when is the release?", "our release: May 3", "OK.", True),
        ("when is the release?", "the release party is on Friday", "OK.", False),
        ("when is the release?", "the release is blocked by 3 bugs", "OK.", False),
        ("when is the release?", "the release is blocked since Friday", "OK.", False),
        ("when is the release?", "the release is what you may call big", "OK.", False),
        ("when is the release?", "the release is 1.2", "OK.", False),
        ("how big is the budget?", "the budget is about 40k", "OK.", True),
        ("how big is the budget?", "the budget meeting is at 9:15", "OK.", False),
        ("how big is the budget?", "the budget is at 9:15", "OK.", False),
        ("how many servers do we have?", "we have 3 servers", "OK.", True),
        ("when is standup?", "we have standup at 9:15", "OK.", True),
        ("when is standup?", "standup took 40 minutes", "OK.", False),
        ("who is our designer?", "Maria is our designer", "OK.", True),
        ("who is our designer?", "Our designer is allergic to nuts", "OK.", False),
        ("who is our designer?", "our designer is sick", "OK.", False),
        ("who is our designer?", "our designer is not Maria", "OK.", False),
        ("who is our designer?", "Maria is angry with the designer", "OK.", False),
        ("who is the translator?", "the translator crashed on Windows", "OK.", False),
        ("where is the wiki?", "the staging wiki is at stg.example.com", "OK.", False),
        ("where is the wiki?", "the wiki is slow today", "OK.", False),
        ("where is the wiki?", "the wiki is hosted on heron", "OK.", True),
        ("where is the archive?", "the archive job is broken", "OK.", False),
        ("where is the archive?", "the archive is broken on Windows", "OK.", False),
        ("where is the password?", "the password is wrong", "OK.", False),
        ("where is the password?", "the password is in the vault", "OK.", True),
        ("when is the release?", "the release got stuck on Friday", "OK.", False),
        ("how big is the budget?", "the budget is 3 weeks late", "OK.", False),
        ("where is the archive?", "the archive is 3.5 GB", "OK.", False),
        ("can I use lodash?", "don't you see lodash", "OK.", False),
        ("may I use unsafe?", "never use unsafe in this crate", "OK.", True),
        ("what is Kestrel?", "Kestrel is slow", "OK.", False),
        ("what is Kestrel?", "Kestrel is failing again", "OK.", False),
        ("can I use lodash?", "lodash is not installed", "OK.", False),
        ("can I use lodash?", "lodash is not allowed", "OK.", True),
        ("can I use lodash?", "I don't see lodash", "OK.", False),
        ("can I use lodash?", "the tests only fail with lodash", "OK.", False),
        ("can I deploy?", "deploy is not working, error 3", "OK.", False),
        ("can I deploy?", "we only deploy on Tuesdays", "OK.", True),
    ],
)
def test_a_statement_answers_a_plain_question_if_it_is_about_the_word(
    question: str, user: str, answer: str, expected: bool
) -> None:
    asked = plain_question(question)
    assert asked is not None
    assert answers_question(asked, [("user", user), ("assistant", answer)]) is expected
