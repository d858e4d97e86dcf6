"""Versions of a fact, near ties, and questions about the past."""

from __future__ import annotations

import numpy as np
import pytest

from signet_actors.domain.ranking.newest_first import near_groups, newest_first
from signet_actors.domain.temporal.past import asks_for_past
from signet_actors.domain.versions import Dated, are_versions, newest_versions
from tests.system.fact_versions import DIFFERENT, PARALLEL, SEVERAL, SHORT_FACTS, SHORT_OTHERS, VERSIONS

REPLACED = (
    ("The API base URL is https://api.old.example.com", "API base URL is https://api.new.example.com/v2"),
    ("docs are at https://docs.example.com/v1", "docs are at https://docs.example.com/v2"),
    ("The docs are at https://docs.example.com/1.4", "Docs are now at https://docs.example.com/1.5"),
    ("Our status page is at https://status.example.com", "Our status page is at https://health.example.net"),
    ("The staging URL is http://stg.example.com:8080", "The staging URL is https://staging.example.com"),
    ("The webhook URL is https://hooks.example.com/a1b2", "Our webhook URL is https://hooks.example.com/c3d4"),
    ("The specification is at https://spec.example.com/v3/", "The specification is at https://spec.example.com/v4/"),
    ("We use Postgres 14", "We use Postgres 16"),
    ("We run Node 18", "We run Node 22"),
    ("We use Django 4.2", "We now use Django 5.1"),
    ("Use Python 3.11", "Use Python 3.13"),
    ("We require Java 17", "We require Java 21"),
    ("We use Kubernetes v1.29", "We use Kubernetes v1.31"),
    ("Invoices are sent on the 3rd", "Invoices are sent on the 5th"),
    ("Salaries are paid on the 25th", "Salaries are paid on the 28th"),
    ("Use npm for installs", "Use pnpm for installs"),
    ("Use tabs for indentation", "Use spaces for indentation"),
    ("We use jest for unit tests", "We use vitest for unit tests"),
    ("Prefer pip for the virtual environments", "Prefer uv for the virtual environments"),
    ("Nutze npm für Installationen", "Nutze pnpm für Installationen"),
    ("Wir nutzen Postgres 14", "Wir nutzen Postgres 16"),
    ("Rechnungen werden am 3. verschickt", "Rechnungen werden am 5. verschickt"),
    ("Die Adresse der API ist https://api.alt.example.com", "Die Adresse der API ist https://api.neu.example.com"),
    ("Die Doku liegt unter https://docs.example.com/v1", "Die Doku liegt unter https://docs.example.com/v2"),
    ("Utilise npm pour les installations", "Utilise pnpm pour les installations"),
    ("Nous utilisons Postgres 14", "Nous utilisons Postgres 16"),
    ("Les factures sont envoyées le 3", "Les factures sont envoyées le 5"),
    ("L'adresse de l'API est https://api.a.example.com", "L'adresse de l'API est https://api.b.example.com"),
    ("Usa npm para las instalaciones", "Usa pnpm para las instalaciones"),
    ("Usamos Postgres 14", "Usamos Postgres 16"),
    ("La URL de la API es https://api.a.example.com", "La URL de la API es https://api.b.example.com"),
)
"""A tool, a version of a product, a day or an address that takes the place of another."""
BESIDE_EACH_OTHER = (
    ("Use npm for the site", "Use pnpm for the API"),
    ("Use npm for the site", "Use pip for the site"),
    ("Never use npm for installs", "Never use yarn for installs"),
    ("Do not use npm for installs", "Do not use bun for installs"),
    ("Use ruff for linting", "Use black for formatting"),
    ("Use ruff for Python", "Use mypy for Python"),
    ("Use pytest for tests", "Use hypothesis for tests"),
    ("We use Postgres", "We use Redis"),
    ("We use Postgres 14", "We use Redis 7"),
    ("We use npm", "We use pnpm in the monorepo"),
    ("We use Postgres 14 in staging", "We use Postgres 16 in production"),
    ("We use port 8080", "We use port 9090"),
    ("We use server 1", "We use server 2"),
    ("We run worker 3", "We run worker 4"),
    ("We use Postgres 14", "We use 16 replicas"),
    ("We support Python 3.11", "We support Python 3.12"),
    ("We test Node 18", "We test Node 22"),
    ("We need issue 12", "We need issue 14"),
    ("The API is at https://a.example.com", "The admin page is at https://b.example.com"),
    ("The API is at https://a.example.com in staging", "The API is at https://b.example.com in production"),
    ("The mirrors are at https://eu.example.com", "The mirrors are at https://us.example.com"),
    ("The nodes are at https://node1.example.com", "The nodes are at https://node2.example.com"),
    (
        "The bug report is at https://git.example.com/issues/12",
        "The bug report is at https://git.example.com/issues/14",
    ),
    (
        "The design discussion is at https://git.example.com/d/12",
        "The design discussion is at https://git.example.com/d/14",
    ),
    (
        "The login defect is at https://jira.example.com/browse/KA-12",
        "The login defect is at https://jira.example.com/browse/KA-14",
    ),
    (
        "The form of the month is at https://a.example.com/?id=12",
        "The form of the month is at https://a.example.com/?id=14",
    ),
    ("Docs are https://a.example.com", "Docs are https://b.example.com"),
    ("Use option 1", "Use option 2"),
    ("We use RFC 9110", "We use RFC 9457"),
    ("The release notes are at https://a.example.com/v1", "The release notes are at https://a.example.com/v2"),
    ("The issue is https://git.example.com/a/v1", "The issue is https://git.example.com/a/v2"),
    ("A mirror is at https://eu.example.com/v1", "A mirror is at https://eu.example.com/v2"),
    ("One mirror is at https://eu.example.com", "One mirror is at https://us.example.com"),
    ("We deploy to https://eu.example.com", "We deploy to https://us.example.com"),
    ("Logs go to https://a.example.com/v1", "Logs go to https://a.example.com/v2"),
    ("See https://a.example.com/v1", "See https://a.example.com/v2"),
    ("https://a.example.com/v1", "https://a.example.com/v2"),
    ("Invoices are sent on the 3rd", "Reminders are sent on the 5th"),
    ("Invoices are sent on the 3rd", "Invoices are paid on the 5th"),
    ("We met on the 3rd", "We met on the 5th"),
    ("Invoices were sent on the 3rd", "Invoices were sent on the 5th"),
    ("Ann is off on the 3rd", "Ann is off on the 5th"),
    ("Ann is booked on the 3rd", "Ann is booked on the 5th"),
    ("We fixed the 3rd bug in the export module", "We fixed the 4th bug in the export module"),
    ("In the export module we fixed the 3rd bug", "In the export module we fixed the 4th bug"),
    ("Alice owns billing", "Alice owns search"),
    ("Alice owns billing", "Bob owns billing"),
    ("Deploys go out on Monday", "Deploys go out on Thursday"),
    ("The team has Ann", "The team has Bob"),
    ("Server heron runs Postgres 14", "Server kestrel runs Postgres 16"),
    ("Ticket 12 needs a test", "Ticket 14 needs a test"),
    ("Nutze npm für die Seite", "Nutze pnpm für die API"),
    ("Nutze nie npm für Installationen", "Nutze nie yarn für Installationen"),
    ("Wir nutzen Postgres", "Wir nutzen Redis"),
    ("Alice betreut die Abrechnung", "Alice betreut die Suche"),
    ("Die API ist unter https://a.example.com", "Die Verwaltung ist unter https://b.example.com"),
    ("Die Knoten sind unter https://k1.example.com", "Die Knoten sind unter https://k2.example.com"),
    ("Utilise npm pour le site", "Utilise pnpm pour l'API"),
    ("N'utilise jamais npm pour les installations", "N'utilise jamais yarn pour les installations"),
    ("Nous utilisons Postgres", "Nous utilisons Redis"),
    ("L'API est à https://a.example.com", "Le site est à https://b.example.com"),
    ("Usa npm para el sitio", "Usa pnpm para la API"),
    ("Usamos Postgres", "Usamos Redis"),
    ("La API está en https://a.example.com", "El sitio está en https://b.example.com"),
    ("No uses npm para las instalaciones", "No uses yarn para las instalaciones"),
    ("We use VLAN 10", "We use VLAN 20"),
    ("Wir nutzen VLAN 10", "Wir nutzen VLAN 20"),
    ("We run shard 1", "We run shard 2"),
    ("We run cluster 1", "We run cluster 2"),
    ("We use bucket 1", "We use bucket 2"),
    ("Use phase 1", "Use phase 2"),
    ("Use slide 3", "Use slide 4"),
    ("We need chapter 3", "We need chapter 4"),
    ("We use TLS 1.2", "We use TLS 1.3"),
    ("We use HTTP 1.1", "We use HTTP 2"),
    ("We use AES 128", "We use AES 256"),
    ("Never use Node 16", "Never use Node 17"),
    ("We never use Node 16", "We never use Node 17"),
    ("Do not use Node 16", "Do not use Node 17"),
    ("Don't use Node 16 for the build", "Don't use Node 17 for the build"),
    ("Ann and Bob use Node 16", "Ann and Bob use Node 17 in the evening"),
    ("Meetings are held on the 3rd floor", "Meetings are held on the 5th floor"),
    ("Backups are stored on the 1st disk", "Backups are stored on the 2nd disk"),
    ("Reports are due on the 3rd of March", "Reports are due on the 5th of March"),
    ("In each row of the export, column the 2nd field", "In each row of the export, column the 3rd field"),
    ("Tests of the nightly build run on the 2nd branch", "Tests of the nightly build run on the 3rd branch"),
    ("The paper is https://arxiv.org/abs/1706.03762", "The paper is https://arxiv.org/abs/1810.04805"),
    ("Papers are at https://arxiv.org/abs/1706.03762", "Papers are at https://arxiv.org/abs/1810.04805"),
    (
        "The attention paper is at https://arxiv.org/abs/1706.03762",
        "The attention paper is at https://arxiv.org/abs/1810.04805",
    ),
    (
        "The review is at https://git.example.com/pull/12/files",
        "The review is at https://git.example.com/pull/14/files",
    ),
    ("The nodes are at http://10.0.0.1/v1", "The nodes are at http://10.0.0.2/v1"),
)
"""Facts that hold beside each other."""


def test_texts_that_differ_in_one_value_are_versions() -> None:
    pairs = [
        (one, other) for versions in VERSIONS for one in versions.texts for other in versions.texts if one != other
    ]
    assert [pair for pair in pairs if not are_versions(*pair)] == []


def test_facts_of_few_words_are_versions_if_what_stands_behind_is_differs() -> None:
    assert [pair for pair in SHORT_FACTS if not are_versions(*pair) or not are_versions(*reversed(pair))] == []


def test_facts_of_few_words_that_a_thing_has_beside_each_other_are_no_versions() -> None:
    assert [pair for pair in SHORT_OTHERS if are_versions(*pair) or are_versions(*reversed(pair))] == []


def test_a_tool_a_version_a_day_or_an_address_takes_the_place_of_another_in_facts_of_few_words() -> None:
    assert [pair for pair in REPLACED if not are_versions(*pair) or not are_versions(*reversed(pair))] == []


def test_facts_with_tools_versions_days_or_addresses_that_hold_beside_each_other_are_no_versions() -> None:
    assert [pair for pair in BESIDE_EACH_OTHER if are_versions(*pair) or are_versions(*reversed(pair))] == []


def test_texts_about_different_things_are_no_versions() -> None:
    pairs = [*(texts for _, texts in SEVERAL), *((facts.answer, facts.newer) for facts in DIFFERENT)]
    pairs += [
        ("The shelf in room 12 has a lamp", "The shelf in room 14 has a lamp"),
        ("Deploys go out on Monday", "Backups go out on Tuesday"),
        ("Ann owns the ferry", "Bob owns the ferry"),
        ("Port 5433 is used by the staging database", "Port 5434 is used by the staging database"),
    ]
    assert [pair for pair in pairs if are_versions(*pair)] == []


def test_facts_about_two_things_are_no_versions_whatever_their_values() -> None:
    assert [pair for _, pair in PARALLEL if are_versions(*pair) or are_versions(*reversed(pair))] == []


def test_a_version_that_is_asked_for_by_its_value_and_one_of_another_project_are_kept() -> None:
    old, new = VERSIONS[0].texts
    assert newest_versions([Dated(old, 1), Dated(new, 9)], asked=("port", "5433")) == [0, 1]
    assert newest_versions([Dated(old, 1), Dated(new, 9)], asked=("port", "database")) == [1]
    assert newest_versions([Dated(old, 1, "/p"), Dated(new, 9)]) == [0, 1]
    assert newest_versions([Dated(old, 1, "/p"), Dated(new, 9, "/p")]) == [1]


def test_of_versions_the_newest_takes_the_best_place() -> None:
    old, new = VERSIONS[0].texts
    former, other, latest = Dated(old, 1), Dated("Something else", 5), Dated(new, 9)
    assert newest_versions([former, other, latest]) == [2, 1]
    assert newest_versions([latest, other, former]) == [0, 1]
    assert newest_versions([]) == []


def order(scores: list[float], covered: list[int], times: list[int]) -> list[int]:
    """The rows in the order of their scores after near ties were exchanged."""
    found = np.array(scores)
    for tied in near_groups(scores, covered):
        found = newest_first(found, tied, np.array(times)[tied])
    return np.argsort(-found, kind="stable").tolist()


@pytest.mark.parametrize(
    ("scores", "covered", "times", "expected"),
    [
        ([1.0, 0.99, 0.98], [3, 3, 3], [1, 2, 3], [2, 1, 0]),
        ([1.0, 0.96], [3, 3], [1, 2], [0, 1]),
        ([1.0, 0.99], [3, 1], [1, 2], [0, 1]),
        ([1.0, 0.99, 0.98], [3, 1, 3], [1, 2, 3], [2, 1, 0]),
        ([1.0, 0.99], [3, 3], [5, 5], [0, 1]),
        ([1.0, 0.98, 0.96, 0.94, 0.92], [3] * 5, [1, 2, 3, 4, 5], [1, 0, 3, 2, 4]),
        ([0.0, 0.0], [3, 3], [1, 2], [0, 1]),
        ([1.0, 0.99], [0, 0], [1, 2], [0, 1]),
        ([1.0], [3], [1], [0]),
    ],
)
def test_near_ties_that_cover_the_same_words_are_ordered_by_time(
    scores: list[float], covered: list[int], times: list[int], expected: list[int]
) -> None:
    assert order(scores, covered, times) == expected


@pytest.mark.parametrize(
    "query",
    [
        "what was the port originally?",
        "which port did we use before?",
        "which port did we use before the move?",
        "who used to own the ferry?",
        "the previous port",
        "our old port",
        "which port had it at first?",
        "wie hieß der Server früher?",
        "welcher Port war vorher eingestellt?",
        "ursprünglicher Port der Datenbank",
        "quel était le port avant la migration?",
        "le port du serveur autrefois",
        "¿qué puerto usaba antes?",
        "el puerto original era anteriormente",
    ],
)
def test_a_question_about_the_past_is_recognised(query: str) -> None:
    assert asks_for_past(query)


@pytest.mark.parametrize(
    "query",
    [
        "which port has the staging database?",
        "what do I run before the deploy?",
        "how old is the server?",
        "was muss ich vor dem Deploy tun?",
        "que faire avant le déploiement?",
        "¿qué hago antes de desplegar?",
        "who was on call?",
        "what did we decide about the port?",
        "",
    ],
)
def test_another_question_is_not_about_the_past(query: str) -> None:
    assert not asks_for_past(query)
