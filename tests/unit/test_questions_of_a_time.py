"""Which prompts ask what was done at a time. Source: docs/guides/hooks.md "Each prompt"."""

from __future__ import annotations

from datetime import UTC, datetime

from signet_actors.domain.temporal.intent import intent_of_query
from signet_actors.domain.temporal.questions import topic_of_time

NOW = datetime(2026, 11, 29, 17, tzinfo=UTC)
"""A Sunday."""
WHAT_WAS_DONE = """
What did we change yesterday?
continue where we left off yesterday
recap yesterday's work
give me a summary of yesterday for the standup
What did I ask you on Thursday?
summarize the work of the last three days
what happened in this project over the last week?
what was the last thing we did?
What did we fix yesterday?
Which files did we touch on Friday?
what have we deployed since Monday?
what happened this week?
pick up where we left off on Friday
Was haben wir gestern geändert?
woran haben wir letzte Woche gearbeitet?
Fasse die letzten drei Tage zusammen
Was habe ich dich am Donnerstag gefragt?
Zusammenfassung von gestern für das Standup
Was haben wir zuletzt gemacht?
mach weiter, wo wir gestern stehen geblieben sind
Qu'avons-nous changé hier ?
résume le travail d'hier
on a changé quoi hier ?
Que s'est-il passé cette semaine ?
sur quoi avons-nous travaillé mardi ?
reprenons là où nous en étions hier
¿Qué cambiamos ayer?
resume el trabajo de ayer
¿Qué hemos arreglado esta semana?
¿qué pasó ayer en el proyecto?
continuemos donde nos quedamos ayer
"""
OF_A_TOPIC = {
    "what did we do with stripe on Thursday": "stripe",
    "tell me what we did about the invoice export yesterday": "invoice export",
    "What did you change on Wednesday in the parser?": "parser",
    "Was haben wir am Donnerstag mit Stripe gemacht?": "stripe",
    "Qu'est-ce qu'on a fait avec Stripe jeudi ?": "stripe",
    "¿Qué hicimos con Stripe el jueves?": "stripe",
}
SOMETHING_ELSE = """
add a test for yesterday's date
change the deadline to Thursday
the build failed yesterday, fix it
I changed it yesterday, make it work again
we did it yesterday and now the tests are red
change it for us today
we will do it on Thursday
what is yesterday in unix time?
which tests fail since Monday?
what does the cron job do on Thursday?
what should we do on Monday?
What did the parser return yesterday? Fix it
What did we break yesterday? Revert it
write a summary of yesterday's log into the report
why did the deploy fail on Thursday?
implement the recap mail of yesterday
did the migration run last week?
rename last_week to past_week
I asked you yesterday to rename it, do it now
ändere die Frist auf Donnerstag
der Build ist gestern kaputtgegangen, repariere ihn
füge einen Test für das gestrige Datum hinzu
Was liefert die Funktion für gestern?
ich habe es gestern geändert, mach es rückgängig
change l'échéance à jeudi
le build a échoué hier, corrige-le
ajoute un test pour la date d'hier
que renvoie la fonction pour hier ?
cambia la fecha al jueves
la compilación falló ayer, arréglala
añade un test para la fecha de ayer
¿qué devuelve la función para ayer?
what did we decide about the retries of the payment webhook and the queue on Thursday
what did we do with stripe?
"""


def topic(prompt: str) -> str | None:
    """Return the topic of the question, None if the prompt asks for something else."""
    return topic_of_time(prompt, intent_of_query(prompt, NOW))


def test_a_question_what_was_done_at_a_time_has_no_topic() -> None:
    assert [prompt for prompt in WHAT_WAS_DONE.strip().splitlines() if topic(prompt) != ""] == []


def test_a_question_what_was_done_with_something_has_that_as_its_topic() -> None:
    assert {prompt: topic(prompt) for prompt in OF_A_TOPIC} == OF_A_TOPIC


def test_a_prompt_that_orders_tells_or_asks_of_something_else_is_no_such_question() -> None:
    assert [prompt for prompt in SOMETHING_ELSE.strip().splitlines() if topic(prompt) is not None] == []


def test_over_the_last_week_is_up_to_today() -> None:
    over, last = (intent_of_query(f"what happened {time} last week?", NOW) for time in ("over the", "in the"))
    assert over is not None
    assert last is not None
    day_ms = 86_400_000
    assert over.window.end_ms == last.window.end_ms + 7 * day_ms
