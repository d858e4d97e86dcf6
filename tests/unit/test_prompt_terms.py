"""What a prompt is about: worked examples of docs/compatibility.md, and metadata of harnesses."""

from __future__ import annotations

import pytest

from signet_actors.domain.prompt_terms import MAX_TERMS, is_pasted, prompt_terms, switches_off, without_metadata
from signet_actors.domain.transcripts.turns import turn_of
from signet_actors.features.checkpoints.rules import prompt_line
from tests.support.program_messages import WHOLE_FORMS


@pytest.mark.parametrize(
    ("prompt", "terms"),
    [
        (
            "What did we decide about the KA-6 pre-compaction hook?",
            ("ka-6", "pre-compaction", "decide", "pre", "compaction", "hook"),
        ),
        ("Please use the 2024 database 42 times", ("database", "times")),
        ("ok", ()),
        ("", ()),
        ("Wo liegen die Daten der Anwendung?", ("liegen", "daten", "anwendung")),
        ("what is our CI?", ("ci",)),
        ("what is in S3?", ("s3",)),
        ("who is in QA?", ("qa",)),
        ("which is the DB host?", ("db", "host")),
        ("what does our ci run on k8?", ("ci", "run", "k8")),
        ("wo läuft die DB?", ("läuft", "db")),
        ("quel CI pour le projet ?", ("ci", "projet")),
        ("OK DO IT", ()),
        ("can you test it?", ()),
        ("please fix that", ()),
        ("teste es", ()),
        ("can you test the importer with it?", ("test", "importer")),
        ("run the tests", ("run", "tests")),
        ("go on, we do it", ()),
        ("so, um zu mv it", ()),
    ],
)
def test_terms_are_hyphenated_names_and_then_telling_words(prompt: str, terms: tuple[str, ...]) -> None:
    assert prompt_terms(prompt).terms == terms


def test_the_assistants_last_message_supplies_at_most_as_many_terms_and_at_least_two() -> None:
    said = "We migrate the billing tables next"
    assert prompt_terms("ok", said).terms == ("migrate", "billing")
    assert prompt_terms("restore router", said).terms == ("restore", "router", "migrate", "billing")
    assert prompt_terms("restore login router", said).terms[3:] == ("migrate", "billing", "tables")


def searched(prompt: str, said: str = "") -> list[str]:
    return [search.text for search in prompt_terms(prompt, said).searches]


def test_a_prompt_with_a_subject_is_searched_for_without_the_assistants_words() -> None:
    assert searched("restore the\n login router", "We migrate the billing tables next") == ["restore the login router"]
    assert searched("go on", "We migrate the billing tables") == ["migrate billing"]
    assert searched("ok") == []


def test_of_a_long_paragraph_the_first_and_the_last_terms_are_searched_for() -> None:
    words = [f"subject{chr(97 + index // 26)}{chr(97 + index % 26)}" for index in range(40)]
    long = " ".join(words)
    assert searched(long) == [" ".join(words[-MAX_TERMS:]), " ".join(words[:MAX_TERMS]), long]


REFUSED = 'psql: error: connection to server at "localhost", port 5433 failed: Connection refused'


@pytest.mark.parametrize(
    ("prompt", "is_whole"),
    [
        (f"{REFUSED}\n\nwhat's wrong here?", True),
        (f"{REFUSED}\nIs the server running on that host?\n\nany idea?", True),
        (f"kann das jemand erkl\u00e4ren?\n{REFUSED}", True),
        (REFUSED, False),
        ("2026-11-27 12:00:01 INFO app - started\n\nwhat does this mean?", False),
        ("```python\ndef tool():\n    return 1\n```\nexplain this", False),
        (f"{REFUSED}\n" * 8 + "what's wrong here?", False),
    ],
)
def test_a_short_prompt_with_an_error_and_a_request_is_searched_for_as_a_whole_too(prompt: str, is_whole: bool) -> None:
    searches = prompt_terms(prompt).searches
    more_surely = [search.text for search in searches if search.least > 0.5 and not search.is_of_long]
    assert more_surely == [" ".join(prompt.split())] * is_whole


LOG = "2026-11-27 12:00:01 INFO [main] app - started\n2026-11-27 12:00:02 INFO [main] app - request took 3 ms"
ASKED = "which tool does the flux capacitor need?"


@pytest.mark.parametrize(
    "prompt",
    [
        f"{LOG}\n{ASKED}",
        f"{ASKED}\n{LOG}",
        f"{LOG}\n\n{ASKED}\n\n{LOG}",
        f"```python\ndef tool():\n    return 1\n```\n{ASKED}",
        f"{ASKED}\n```\n{LOG}\n```",
        f"{LOG}\nThis is what it says. {ASKED}",
        f"> quoted by me\n{ASKED}",
        f"<system-reminder>\n{LOG}\n</system-reminder>\n{ASKED}",
        f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n\n{ASKED}",
        f'{{"a": [1, 2],\n "b": {{}}}}\n{ASKED}',
    ],
)
def test_the_users_own_question_is_searched_for_beside_pasted_text(prompt: str) -> None:
    assert ASKED in searched(prompt)


@pytest.mark.parametrize("prompt", [LOG, f"how do I fix this?\n{LOG}", f"what does this error mean?\n{LOG}"])
def test_pasted_text_without_an_error_or_a_name_is_not_searched_for(prompt: str) -> None:
    assert searched(prompt) == []


@pytest.mark.parametrize(
    "line",
    [
        "the deploy of Friday failed again",
        "- move the button to the left",
        "1. rename the table, 2. migrate",
        "Can you look at https://example.org/a?b=c please?",
        "I get an error, see below:",
        "Die Fähre (nach Helgoland) fährt um 8.30 Uhr, oder?",
        "怎么解决这个问题",
        "Note that tests/unit holds the fast ones",
    ],
)
def test_prose_is_not_taken_for_pasted_text(line: str) -> None:
    assert not is_pasted(line)


@pytest.mark.parametrize("form", WHOLE_FORMS)
def test_a_prompt_behind_the_message_of_a_program_is_searched_for_alone(form: str) -> None:
    for asked in ("When does the last ferry leave Visby?", "Wann fährt die letzte Fähre nach Visby?"):
        assert prompt_terms(f"{form}\n\n{asked}") == prompt_terms(asked)
        assert searched(form) == []


@pytest.mark.parametrize(
    ("prompt", "terms"),
    [
        ("translate 'good morning'", ("translate",)),
        ('Translate "where were we?" into Polish', ("translate", "polish")),
        ("please translate: the harbour is closed", ("translate",)),
        ("can you translate “the port is closed” to French", ("translate", "french")),
        ("Übersetze „Guten Morgen, wo waren wir?“ ins Polnische", ("übersetze", "ins", "polnische")),
        ("übersetze bitte: der Hafen ist zu", ("übersetze", "bitte")),
        ("traduis « le port est fermé » en allemand", ("traduis", "allemand")),
        ("traduce 'el puerto' al inglés", ("traduce", "inglés")),
        ("rephrase 'the queue is full' politely", ("rephrase", "politely")),
        ("proofread this: we deploys on friday", ("proofread",)),
        ("how do you spell 'necessary'?", ("spell",)),
        ("pronounce `nginx`", ("pronounce",)),
        ("good morning, where were we?", ()),
        ("Good morning!", ()),
        ("guten Morgen", ()),
        ("Hallo", ()),
        ("bonjour, on continue", ()),
        ("mach bitte weiter", ()),
        ("ja, mach das so", ()),
        ("gut, danke!", ()),
        ("sigue por favor", ()),
        ("weiter mit dem Deploy", ("weiter", "deploy")),
        ("buenos días", ()),
        ("good evening, which port has staging?", ("port", "staging")),
        ("hi", ()),
        # what is quoted or greeted is asked about
        ("what does 'retryLimit' do?", ("retrylimit",)),
        ('where do we set "port"?', ("set", "port")),
        ("who says 'good morning' in the banner?", ("says", "good", "morning", "banner")),
        ("the good morning mail is late", ("good", "morning", "mail", "late")),
        ("where is the translation of 'Dock' kept?", ("translation", "dock", "kept")),
        ("fix this: the port is wrong", ("fix", "port", "wrong")),
        ("don't use the port's name, isn't it taken?", ("don", "port", "name", "isn", "taken")),
    ],
)
def test_a_text_that_is_only_quoted_and_a_greeting_are_not_asked_about(prompt: str, terms: tuple[str, ...]) -> None:
    found = prompt_terms(prompt)
    assert found.terms == terms
    assert all(set(prompt_terms(search.text).terms) <= set(terms) for search in found.searches)


def test_metadata_and_mentions_are_not_part_of_a_prompt() -> None:
    block = 'Conversation info (untrusted metadata):\n```json\n{"sender": "mallory"}\n```\n'
    assert without_metadata(f"{block}\n<@123> fix the login") == "fix the login"
    assert without_metadata(f"hello\n{block}{block}world") == "hello\n\n\nworld"
    assert without_metadata("what is untrusted metadata?") == "what is untrusted metadata?"
    about = f"untrusted metadata {'is a word ' * 20}```code```"
    assert without_metadata(about) == about


FOLLOW_UPS = [
    (
        "hm, wasn't there a reason against that?",
        "I have moved the board to websockets. They reconnect after thirty seconds of silence.",
    ),
    ("why not there?", "The cache of the price list is kept in Redis now."),
    ("again? did we say anything about this one?", "The pipeline has failed in the test of the import."),
    ("is that safe?", "I will drop the column legacy_id of the orders table in this migration."),
    ("who decided that?", "The export has been removed from the settings page of the shop."),
    ("does it still work then?", "I replaced the queue of the mail service by a cron job."),
    ("what was the problem with it last time?", "Next I upgrade the driver of the label printer."),
    ("and how do I undo this?", "The staging database was migrated to the new schema."),
    ("(and these?)", "Both tables of the billing schema have an index on the tenant."),
    ("*why* was that?", "The worker polls the mailbox of the carrier every minute."),
    ("gab es nicht einen Grund dagegen?", "Ich habe die Anzeige der Rampen auf WebSockets umgestellt."),
    ("warum ist das so?", "Der Import der Preislisten läuft jetzt in einer Transaktion."),
    ("und wer macht das?", "Die Rechnungen der Kunden gehen ab Montag als PDF heraus."),
    ("hatten wir das schon einmal?", "Der Test des Druckers ist wieder rot geworden."),
    ("wie komme ich davon zurück?", "Die Datenbank der Abnahme hat jetzt das neue Schema."),
    ("geht es denn auch ohne?", "Für die Suche der Artikel brauchen wir einen neuen Index."),
    ("pourquoi cela ?", "La file des courriels est maintenant dans Redis."),
    ("et pour ça ?", "Le serveur des factures est redémarré chaque nuit."),
    ("¿por qué eso?", "La cola de los correos está ahora en Redis."),
    ("¿y cómo lo deshago?", "La base de datos de pruebas tiene el esquema nuevo."),
]
OTHERS = [
    *("go on", "thanks", "yes, do that", "mach das bitte", "ok, push that to main", "fix it", "sounds good to me"),
    *("what is Pluto?", "who wrote Faust?", "which port has the frontend?", "wie spät?", "where is Vilnius?"),
    "is there a reason why the nightly import of the carrier price lists fails with that message about commas?",
]


def test_a_short_question_about_what_was_said_is_searched_for_with_what_was_said() -> None:
    for question, answer in FOLLOW_UPS:
        first, *others = prompt_terms(question, "Done. " + answer + " All tests are green?").searches
        assert not first.is_part
        sentences = answer.rstrip(".").split(". ")
        assert [search.text.rstrip(".") for search in others] == sentences[-2:], question
        assert all(search.is_part and search.is_of_long for search in others)
    asked = prompt_terms(
        "what did we say about that one?", "It fails in gate_sync.py: a timeout of 5 s in the second test."
    )
    assert "gate_sync.py" in asked.names


def test_any_other_prompt_is_not_searched_for_with_the_sentences_of_the_last_answer() -> None:
    for prompt in OTHERS:
        assert len(prompt_terms(prompt, "The cache of the price list is kept in Redis now.").searches) <= 1, prompt
    assert len(prompt_terms("is that safe?", "Done.").searches) == 1
    assert len(prompt_terms("is that safe?", "Shall I move the cache of the price list to Redis?").searches) == 1


AROUND_A_QUESTION = [
    ("hey, quick one: what do we store prices as? I forgot", "quick one: what do we store prices as?"),
    ("hi! let's get the cart page going today. what do we store prices as?", "what do we store prices as?"),
    ("Guten Morgen! Wie lange dauert ein Termin? Danke dir.", "Wie lange dauert ein Termin?"),
    ("Back from lunch. Where does the staging API run now?", "Where does the staging API run now?"),
    ("¡hola! ¿dónde corre la API de pruebas? gracias", "¿dónde corre la API de pruebas?"),
]


def test_a_question_among_other_sentences_is_searched_for_by_itself_too() -> None:
    for prompt, question in AROUND_A_QUESTION:
        whole, itself = [search.text for search in prompt_terms(prompt).searches]
        assert (prompt.endswith(whole), itself) == (True, question), prompt  # perhaps without a greeting
    for prompt in (
        "what do we store prices as?",
        "Fix the cart icon. Then run all tests.",
        "Really? Good, then go on.",
    ):
        assert len(prompt_terms(prompt).searches) == 1, prompt


CONTEXT = '<in-app-browser-context source="ambient-ui-state">\n# In app browser:\n- a page\n</in-app-browser-context>'
BEFORE_THE_MARK = [
    "",
    " \n",
    "<system-reminder>a</system-reminder>\n",
    f"{CONTEXT}\n\n",
    *(
        f"{before}\n\n{heading}"
        for heading in (
            "## My request for Codex:\n",
            "## My request:\n\n",
            "## My request for Codex: ",
            "## My request:\t",
        )
        for before in (
            CONTEXT,
            "# In app browser:\n- Current URL: http://localhost:3000/",
            "# Browser comments:\n\n## User Comment 1\nComment:\nmake it blue",
            f"# Browser comments:\n\n## User Comment 1\nComment:\nmake it blue\n\n{CONTEXT}",
            "# Diff comments:\n\n## Comment 1\nFile: a.py\nComment:\n```\nport = 1\n```",
            "# Selected text:\n\n## Selection 1\nthe port is 1",
            "# Review findings:\n\n## Finding 1\nThe port is wrong.",
            "# Files mentioned by the user:\n\n## a.png: /tmp/a.png",
            "# A heading of a release to come:\n\n- a note",
            "<context-of-a-release-to-come>\na\n</context-of-a-release-to-come>",
        )
    ),
]
IN_FRONT_OF_THE_MARK = [
    *("**", "*", "`", "```", "_", "~~", '"', "'", "\u201c", "\u201e", "\u2018", "**`"),
    *("[Image #1] ", "[Image #1][Image #2] ", "[Image #12]\n", "[image: a.png] ", "[Pasted text #1 +27 lines] "),
    *("<image name=[Image #1]>\n</image>\n[Image #1] ", "<image>\n</image>\n", "[Audio 1] "),
    *("@src/app.py ", "@src/app.py @docs/ ", '@"my notes.md" ', "@a.py\n\n", "@agent-reviewer ", "@File:a.ts "),
    *("/plan ", "/my-plugin:do-it ", "$deploy ", "/plan @a.py [Image #1] **", "/plan\n"),
    *("- ", "\u2022 ", "# ", "### ", "1. ", "2) ", "- **", "ultrathink ", "Ultrathink: ", "think hard, "),
    *("\U0001f4ce a.pdf ", "\U0001f4ce my notes.pdf\n", "\U0001f512 ", "\u26a0\ufe0f ", "/plan ultrathink ", "# - "),
    *("> Which salary?\n", "> In two\n> lines?\n", "> Which?\n\n", "<system-reminder>a</system-reminder>\n[Image #1] "),
]
STAMPS = [
    *("[Wed 2026-01-28 20:30 EST] ", "[Sat 2026-07-25 20:21 GMT+1] ", "[Mon 2026-02-02 08:00:09 UTC] "),
    *("[Fri 2026-03-13 07:05 GMT+5:30] ", "[Sun 2026-03-15 23:59 GMT\u22123] ", "[Tue 2026-11-24 00:00 CET]\n"),
    *("[Telegram Anna id:1 Wed 2026-01-28 20:30 EST] ", "[WhatsApp +491511234567 2026-01-28T20:30Z] "),
    *("[Telegram Anna (@anna) id:123456789 +2m 2026-01-28T20:30Z] ", "[Slack #ops +1h Thu 2026-01-29 09:00 CET] "),
    *("[Discord Guild #general channel id:99 Fri 2026-01-30 10:11 PST] ", "[Signal 2026-01-28 20:30] "),
    *("[Google Chat spaces/AAA 2026-01-28 20:30 UTC] ", "[iMessage +15551234 Wed 2026-01-28 20:30 EST] "),
    *("[WebChat 2026-01-28 20:30 UTC] ", "[Matrix @anna:example.org +3d Sat 2026-01-31 12:00 GMT+2] "),
    *("[Zalo Personal Anna 2026-01-28T20:30Z] ", "[MS Teams Anna host 10.0.0.2 2026-01-28T20:30Z] "),
    (
        "Current time: Wed 2026-01-28 20:30 EST\nDate hints: today=2026-01-28; yesterday=2026-01-27; use these for"
        " memory/YYYY-MM-DD.md paths.\n"
    ),
    "Current time: Wed 2026-01-28 20:30 UTC\nDate hints: today=2026-01-28; use this for memory/YYYY-MM-DD.md paths.\n",
]
"""What OpenClaw puts before a message, as its sources make it."""
NO_STAMPS = [
    *("[2026-01-28 20:30 EST] ", "[Wed 28 Jan 2026 20:30] ", "[Wed 2026-01-28] ", "[Wed 2026-01-28 20:30] ", "[Wed] "),
    *("[ERROR app 2026-01-28 20:30:11 UTC] ", "[Discord bot] ", "[Slack thread of 2026-01-28] ", "[Telegram] "),
    *("[Nest 4711 2026-01-28 20:30 UTC] ", "[Meeting Anna 2026-01-28T20:30Z] ", "Wed 2026-01-28 20:30 EST ", "[x] "),
    *("Current time: Wed 2026-01-28 20:30 EST\n", "Current time: noon\nDate hints: today=1\n", "[Slackware 15.0] "),
    *("(Wed 2026-01-28 20:30 EST) ", "[Wed 2026-01-28 20:30:11.123] ", "[Signals of 2026-01-28T20:30Z] ", "[Teams] "),
]
NO_MARKS = [
    *(
        "([signet off] is a mark)",
        "(what is [signet off]?)",
        "- see [signet off]",
        "# About [signet off]",
        "-[signet off]",
    ),
    *(
        "ultrathink about [signet off]",
        "\U0001f4ce what does [signet off] do?",
        "think of [signet off]",
        "1.[signet off]",
    ),
    *(f"{stamp}[signet off]" for stamp in NO_STAMPS),
    "[Wed 2026-01-28 20:30 EST] what does [signet off] do?",
    "[Telegram Anna 2026-01-28T20:30Z] Anna: see [signet off]",
    *("@a.py what does [signet off] do?", "[Image #1] see [signet off]", "/plan tell me of [signet off]"),
    *("> [signet on]", "> quoted\nand [signet off] is a mark", "text **[signet off]**", "a `[signet off]` b", "/plan"),
    *("[Notes] [signet off]", "[Image #1 [signet off]", "@ [signet off]", "/ [signet off]", "5 > [signet off]", "> "),
    *("/plan[signet off]", "> a\n> b", "> a\nb\n[signet off]", "-- [signet off]", "<b>[signet off]</b>", "[Image #1]"),
    "what does [signet off] do?",
    "what does this do?\n[signet off]",
    "# Notes\n\n[signet off] is a mark",
    "signet off",
    "[signet] off",
    *(
        "[signet offline]",
        "[signet official] x",
        "[signet off by one]",
        "[signet is off]",
        "[signet on/off]",
        "[signets off]",
    ),
    *(
        "[signet-off-by-one] x",
        "[signet: offset] x",
        "[cygnet off] x",
        "[a signet off]",
        "[signet off the record]",
        "[off]",
    ),
    *(
        "(signet off)",
        "{signet off}",
        "[signet\noff]",
        "[signet            off]",
        "[signet off?]",
        "[signet--off]",
        "[signet -> off]",
    ),
    *(
        "what does [signet-off] do?",
        "`[signet-off]` ought to work, too",
        "see [ signet off ]",
        '"[signet: off]" is typed',
    ),
    *("> [signet off.] was typed\n\nWhy?", "([ signet off ] is a mark)", "* [signet-off] must be known", "signet-off]"),
    f"{CONTEXT}\n\n## My request:\nwhat does [signet off] do?",
    "# Selected text:\n\n## Selection 1\n[signet off] is a mark\n\n## My request:\nwhat is that?",
    "# Diff comments:\n\n## My request:\nwhat is that?\n[signet off]",
    "## My requests:\n[signet off]",
    "### My request:\n[signet off]",
    "see ## My request: [signet off]",
    "> ## My request:\n> [signet off]",
    "Is this read?\n```\n## My request for Codex:\n[signet off] x\n```",
    "Is this read?\n```md\n## My request:\n[signet off] x\n```\nAnd\n```\n## My request:\n[signet off]\n```",
    "## My request:\n- [signet off] is not read",
    "## My request:\n`[signet off]` is not read",
    "## Your request:\n[signet off]",
    "## My request for Claude:\n[signet off]",
    "<system-reminder>\n[signet off]\n</system-reminder>\ngo on",
    "[signet on]",
    "`[signet off]` is what I type to switch off?",
    '"[signet off]" does not work in the TUI, fix it',
    "'[signet off]' ought to be documented",
    "\u201c[signet off]\u201d steht nicht in der Hilfe",
    "* [signet off] must be documented",
    "> [signet off] was typed by a user, but nothing happened\n\nWhy?",
]


SPELLINGS = [
    *(
        "[signet  off]",
        "[ signet off ]",
        "[signet-off]",
        "[signet off.]",
        "[signet: off]",
        "[signet off:]",
        "[signet_off]",
    ),
    *(
        "[Signet-Off]",
        "[signet off !]",
        "[signet off;]",
        "[signet off,]",
        "[signet\u00a0off]",
        "[signet=off]",
        "[signet :off]",
    ),
    *(
        "[signetoff]",
        "[signet - off]",
        "[signet \u2013 off]",
        "[signet\u2011off]",
        "[\tsignet off]",
        "[SIGNET  OFF.]",
        "[signet off! ]",
    ),
    "[ Signet: Off. ]",
]


def test_the_mark_counts_in_the_spellings_in_which_it_is_typed() -> None:
    assert len(SPELLINGS) >= 20
    for mark in SPELLINGS:
        for prompt in (
            mark,
            f"{mark} we plan",
            f"**{mark}** we plan",
            f"[Image #1] {mark}\nwe plan",
            f"({mark}) we plan",
        ):
            stored = turn_of("user", prompt)
            assert switches_off(prompt), prompt
            assert stored is not None, prompt
            assert switches_off(stored.text), prompt
        assert switches_off(f"{CONTEXT}\n\n## My request for Codex:\n{mark}"), mark


def test_the_mark_switches_memory_off_behind_whatever_a_program_puts_before_it() -> None:
    for before in BEFORE_THE_MARK:
        for mark in ("[signet off]", "[Signet OFF] my diagnosis", "[signet off]\nmy diagnosis"):
            assert switches_off(before + mark), before + mark
            stored = turn_of("user", before + mark)
            assert stored is not None, before + mark
            assert switches_off(stored.text), stored.text
    for before in (*IN_FRONT_OF_THE_MARK, *STAMPS, *(f"{stamp}**" for stamp in STAMPS)):
        prompt = f"{before}[Signet OFF] my diagnosis is new"
        stored = turn_of("user", prompt)
        assert switches_off(prompt), prompt
        assert stored is not None, prompt
        assert switches_off(stored.text), prompt
    assert switches_off("# Diff comments:\n\n## Comment 1\nFile: a.py\nComment:\n[signet off]\n\n## My request:\n\n")
    assert switches_off("([Signet off]) my diagnosis")
    for member in ("Anna", "Anna (id:7)", "Dr. M\u00fcller"):
        assert switches_off(f"[WhatsApp Family +1m 2026-01-28T20:30Z] {member}: [Signet off] my diagnosis"), member
    for text in NO_MARKS:
        assert not switches_off(text), text


def test_what_a_program_puts_before_a_message_is_neither_searched_for_nor_stored() -> None:
    prompt = "Which crane lifts the hull in the northern dock?"
    for stamp in STAMPS:
        turn = turn_of("user", stamp + prompt)
        assert turn is not None, stamp
        assert (turn.text, prompt_terms(stamp + prompt)) == (prompt, prompt_terms(prompt)), stamp
        assert prompt_line(stamp + prompt) == prompt, stamp
        assert turn_of("user", f"{stamp}Anna: {prompt}") == turn._replace(text=f"Anna: {prompt}"), stamp
    for before in NO_STAMPS:
        turn = turn_of("user", before + prompt)
        assert turn is not None, before
        assert turn.text == before + prompt, before
