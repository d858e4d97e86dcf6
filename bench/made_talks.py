"""Generated conversations with labelled questions, in English and German: for measurements without a data set.

Two people talk about something different in each session: one asks, the other one answers with a detail that no later
question repeats, so that an answer is found through the row before it. The same seed makes the same conversations, in
the form in which LoCoMo's are read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from signet_actors.domain.evaluation.locomo import Conversation, LabelledQuestion, Session, Turn

SESSIONS: Final = 25
_SINGLE_HOP: Final = 4
_TEMPORAL: Final = 2


class Language(msgspec.Struct, frozen=True):
    """Words and sentences. In a template, a and b are the speakers; the other slots are named after the lists."""

    names: tuple[str, ...]
    friends: tuple[str, ...]
    events: tuple[str, ...]
    places: tuple[str, ...]
    deeds: tuple[str, ...]
    things: tuple[str, ...]
    projects: tuple[str, ...]
    turns: tuple[str, ...]
    facts: tuple[tuple[str, int], ...]
    questions: tuple[tuple[str, int, int], ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


ENGLISH: Final = Language(
    names=_list("Alma|Bruno|Celia|Dario|Edith|Farid|Greta|Henry"),
    friends=_list("Ivan|Judith|Kofi|Lena|Malik|Nora|Otis|Paula|Quinn|Rosa|Samir|Tilda"),
    events=_list(
        "street festival|pottery class|half marathon|book fair|choir weekend|cooking contest|flea market|chess open"
    ),
    places=_list("the old harbour|Linz|the botanical garden|Brighton|the town hall|Porto|the railway museum|Graz"),
    deeds=_list(
        "baked forty pretzels|photographed herons|repaired a tandem|learned two folk dances|sold our surfboards"
        "|built a kite|painted the fence turquoise|recorded a podcast|tasted smoked cheese|carved a wooden owl"
    ),
    things=_list("a telescope|an accordion|homemade lemonade|a puppy|board games|a drone|woollen blankets|a tent"),
    projects=_list("the greenhouse|a crossword app|the attic|a sailing licence|the family tree|a quilt|the darkroom"),
    turns=_list(
        "Hi {b}! How was the {event} in {place}?|Wonderful, we {deed} until {clock}."
        "|Did you go to the {event} in {place} alone?|No, {friend} joined us at {clock} and brought {thing}."
        "|That sounds fun. I missed the {event} in {place} and stayed at home."
        "|What kept you from coming to {place} for the {event}?|I finally finished {project}, which took {hours} hours."
        "|{hours} hours well spent, {a}, I hope to see it after the {event}!"
    ),
    facts=(
        ("{b} and company {deed} at the {event} in {place}.", 2),
        ("{friend} brought {thing}.", 4),
        ("{a} finished {project} in {hours} hours.", 7),
    ),
    questions=(
        ("What did {b} do at the {event} in {place}?", 2, _SINGLE_HOP),
        ("Who joined {b} at the {event}?", 4, 1),
        ("How many hours did {a} need for {project}?", 7, _TEMPORAL),
        ("What did {friend} bring along to {place}?", 4, _SINGLE_HOP),
    ),
)
GERMAN: Final = Language(
    names=_list("Anke|Bernd|Carla|Detlef|Elif|Frieder|Gesa|Hannes"),
    friends=_list("Ivo|Jutta|Kemal|Lore|Mirko|Nele|Olaf|Petra|Ruth|Selma|Tarek|Uwe"),
    events=_list(
        "Straßenfest|Töpferkurs|Halbmarathon|Büchermarkt|Chorwochenende|Kochwettbewerb|Flohmarkt|Schachturnier"
    ),
    places=_list("Lübeck|Görlitz|Bamberg|Freiburg|Husum|Weimar|Konstanz|Celle"),
    deeds=_list(
        "vierzig Brezeln gebacken|Reiher fotografiert|ein Tandem repariert|zwei Volkstänze gelernt|Surfbretter verkauft"
        "|einen Drachen gebaut|den Zaun türkis gestrichen|einen Podcast aufgenommen|Räucherkäse gekostet"
        "|eine Eule geschnitzt"
    ),
    things=_list("ein Fernrohr|ein Akkordeon|selbstgemachte Limonade|einen Welpen|Brettspiele|eine Drohne|Wolldecken"),
    projects=_list("das Gewächshaus|ein Kreuzworträtsel|den Dachboden|den Segelschein|den Stammbaum|eine Steppdecke"),
    turns=_list(
        "Hallo {b}! Wie war der Ausflug zum {event} nach {place}?|Herrlich, wir haben bis {clock} Uhr {deed}."
        "|Warst du beim {event} in {place} allein?|Nein, {friend} kam um {clock} Uhr dazu und brachte {thing} mit."
        "|Klingt schön. Ich war beim {event} in {place} nicht dabei und blieb daheim."
        "|Warum kamst du nicht mit nach {place} zum {event}?|Ich habe endlich {project} geschafft, in {hours} Stunden."
        "|{hours} Stunden, Respekt, {a}, das zeigst du mir nach dem {event}!"
    ),
    facts=(
        ("{b} und andere haben beim {event} in {place} {deed}.", 2),
        ("{friend} brachte {thing} mit.", 4),
        ("{a} hat {project} in {hours} Stunden geschafft.", 7),
    ),
    questions=(
        ("Was hat {b} beim {event} in {place} gemacht?", 2, _SINGLE_HOP),
        ("Wer begleitete {b} zum {event}?", 4, 1),
        ("Wie viele Stunden brauchte {a} für {project}?", 7, _TEMPORAL),
        ("Was hatte {friend} in {place} dabei?", 4, _SINGLE_HOP),
    ),
)


def made_conversations(language: Language, count: int, seed: int) -> list[Conversation]:
    """Return ``count`` conversations of ``SESSIONS`` sessions each."""
    rng = random.Random(seed)
    return [Conversation(number, *_sessions(language, rng)) for number in range(count)]


def _sessions(language: Language, rng: random.Random) -> tuple[list[Session], list[LabelledQuestion]]:
    a, b = rng.sample(language.names, 2)
    date = datetime(2024, 1, 8, 9, 30, tzinfo=UTC)
    sessions, questions = [], []
    for number, (event, place) in enumerate(_pairs(language.events, language.places, rng), start=1):
        date += timedelta(days=rng.randint(2, 9), minutes=rng.randint(0, 400))
        words = {"a": a, "b": b, "event": event, "place": place, "hours": str(rng.randint(3, 90))}
        words["clock"] = f"{rng.randint(17, 23)}:{rng.randint(10, 59)}"
        for slot in ("friend", "deed", "thing", "project"):
            words[slot] = rng.choice(getattr(language, f"{slot}s"))
        turns = [
            Turn((a, b)[at % 2], f"D{number}:{at + 1}", text.format(**words)) for at, text in enumerate(language.turns)
        ]
        facts = [(text.format(**words), [f"D{number}:{turn}"]) for text, turn in language.facts]
        sessions.append(Session(date, turns, facts))
        questions += [
            LabelledQuestion(text.format(**words), category, [f"D{number}:{turn}"])
            for text, turn, category in language.questions
        ]
    return sessions, questions


def _pairs(events: Sequence[str], places: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield different pairs of an event and a place."""
    every = [(event, place) for event in events for place in places]
    return iter(rng.sample(every, SESSIONS))
