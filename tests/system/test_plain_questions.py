"""A question with one telling word is given the statement of an earlier session that answers it, and nothing else.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.live_daemon import Client
from tests.system.test_prompts_of_work import OTHER_WORK, SAID, given, told

pytestmark = pytest.mark.system
QUESTIONS = {
    "who is our designer?": "Our designer is Maria Lopez",
    "who is the translator": "our translator is Jean Petit from Lyon",
    "do you know who our notary is?": "our notary is Dr. Wolff",
    "who's our landlord?": "Landlord: Mrs Abbott, call before noon",
    "when is the release?": "the release got moved to April 2",
    "when is standup?": "standup is every day at 9:15",
    "and when is the fair?": "the fair starts on September 3",
    "may I use unsafe here?": "never use unsafe in this crate",
    "can I use lodash?": "please don't add lodash, we have our own helpers",
    "should I squash?": "always squash before merging",
    "where is the wiki?": "the wiki is at wiki.quay.example.com",
    "where do the screenshots go?": "Screenshots belong in docs/img",
    "what is Kestrel?": "Kestrel is the codename of the new billing engine",
    "what is our domain": "our domain is quay-harbour.example",
    "which linter do we use?": "our linter is biome",
    "how big is the budget?": "the budget is 40k for this quarter",
    "wer ist unsere Steuerberaterin?": "Unsere Steuerberaterin ist Frau Krüger",
    "wann ist die Inventur?": "Die Inventur ist am 12. Juni",
    "wo liegt das Archiv?": "Das Archiv liegt auf dem NAS unter /mnt/alt",
    "wer ist der Hausmeister": "Herr Albers ist der Hausmeister, Durchwahl 17",
    "darf ich Umlaute benutzen?": "Umlaute sind in Bezeichnern verboten",
    "wie hoch ist der Stundensatz?": "der Stundensatz ist 95 Euro",
    "was ist Pegelwacht?": "Pegelwacht ist der Dienst, der die Wasserstände abfragt",
    "quand est la livraison ?": "la livraison est prévue le 14 mars",
    "¿quién es nuestra abogada?": "nuestra abogada es Lucía Vega",
}
MORE_SAID = (
    ("the payment page is broken on Safari", "Fixed: the date input needs a polyfill there."),
    ("The demo of the harbour board is next Thursday", "All right."),
    ("I think the first change is the best", "All right."),
    ("grep the journal for timeouts", "Three timeouts, all on March 3."),
    ("lösch die alten Bilder", "Gelöscht: 412 Dateien."),
    ("the invoice script is slow", "It runs one query per invoice; now it is one query."),
    ("why does the crawler crash?", "It reads past the end of the sitemap when the last entry is empty."),
    ("when is the hackathon?", "I have no record of that."),
    ("where is the attic of 2019", "I could not find the attic of 2019."),
    ("remove the carousel from the landing page", "Removed the carousel and its 3 images."),
)
NOTHING = (
    *(
        "fix the designer page",
        "run the release script",
        "deploy",
        "tests?",
        "release it",
        "squash the commits",
        "release",
    ),
    *(
        "add a designer field to the form",
        "what changed?",
        "can you deploy?",
        "what's wrong?",
        "where is the bug?",
        "why?",
    ),
    *("what is a mutex?", "what is an engine?", "when is the hackathon?", "where is the attic?", "who is the plumber?"),
    *("what is Safari?", "where is Safari?", "who is Safari?", "what does the invoice do?", "what does this crate do?"),
    *("what should we do next?", "what did you change?", "what do you think?", "what is first?", "what is left?"),
    *("where is the journal?", "when is the journal?", "wo sind die Bilder?", "what are the timeouts?"),
    *("what is the carousel?", "when is the payment?", "how many berths?", "wie wird das Wetter?", "was ist los?"),
)


def test_a_question_with_one_telling_word_is_given_the_statement_that_answers_it(room: Client) -> None:
    facts = [(text, "All right.") for text in QUESTIONS.values()]
    for day in range(6):
        when = datetime(2026, 3, 1 + day, 9, tzinfo=UTC)
        told(room, when, [*facts[day::6], *SAID[day::6], *MORE_SAID[day::6]])
    answers = {question: given(room, question) for question in QUESTIONS}
    assert [(question, text) for question, text in answers.items() if QUESTIONS[question] not in text] == []
    assert [(question, text) for question, text in answers.items() if text.count("From an earlier session") > 1] == []
    assert [(prompt, text) for prompt in (*NOTHING, *OTHER_WORK) if (text := given(room, prompt))] == []


def test_a_word_that_many_turns_have_leads_to_none(room: Client) -> None:
    begin = datetime(2026, 3, 1, 9, tzinfo=UTC)
    told(room, begin, [("Our designer is Maria Lopez", "All right.")])
    assert "Maria Lopez" in given(room, "who is our designer?")
    for day in range(1, 10):
        turn = (f"I have shown draft {day} to the designer", "Fine.")
        told(room, begin + timedelta(days=day), [turn])
    assert given(room, "who is our designer?") == ""


def test_the_latest_answer_is_given(room: Client) -> None:
    begin = datetime(2026, 3, 1, 9, tzinfo=UTC)
    told(room, begin, [("the release is on March 20", "All right.")])
    told(room, begin + timedelta(days=3), [("the release got moved to April 2", "All right.")])
    text = given(room, "when is the release?")
    assert "April 2" in text
    assert "March 20" not in text


def test_what_a_forgotten_memory_says_is_not_given(room: Client) -> None:
    told(room, datetime(2026, 3, 1, 9, tzinfo=UTC), [("Our designer is Maria Lopez", "All right.")])
    memory = room.remember("Our designer is Maria Lopez")["id"]
    room.request("DELETE", f"/api/memory/{memory}?reason=wrong").ok()
    assert given(room, "who is our designer?") == ""
