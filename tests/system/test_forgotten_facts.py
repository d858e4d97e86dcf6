"""The facts that a model extracted from a memory are forgotten and recovered with it.

Source: docs/pipeline.md "Forgetting"; docs/concepts.md "What happens later".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import Client
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system
NOTES = (
    (
        "Maria Lopez earns 84000 euros a year. She works as a designer in Hamburg",
        "what does Maria Lopez earn?",
        "84000",
    ),
    (
        "The deal with Initech closes on March 3. Its code name is Falcon",
        "when does the deal with Initech close?",
        "March",
    ),
    ("The client Brightwater is bankrupt. The invoice goes to Oslo", "is the client Brightwater bankrupt?", "bankrupt"),
    ("The vault opens with the code word Wolverine. It is in the cellar", "what opens the vault?", "Wolverine"),
    ("Tom is paid 950 euros a day. Tom writes the parser", "what is Tom paid a day?", "950"),
    ("The layoffs hit the platform team. They are announced in spring", "whom do the layoffs hit?", "platform"),
    ("Karen Holt leaves the finance team. She moves to Bergen", "does Karen Holt leave the finance team?", "finance"),
    ("The staging database listens on port 5433. It has a replica", "on which port is the staging database?", "5433"),
    ("Jana Petersen verdient 71000 Euro im Jahr. Sie leitet das Lager", "was verdient Jana Petersen?", "71000"),
    ("Der Tresor hat den Code 4711. Er steht im Keller", "welchen Code hat der Tresor?", "4711"),
    ("Der Kunde Brandt kündigt den Vertrag. Er geht zu Nordwind", "kündigt der Kunde Brandt den Vertrag?", "Brandt"),
    ("Die Vertretung von Lund ist Frau Kamp. Sie beginnt am Montag", "wer ist die Vertretung von Lund?", "Kamp"),
    ("Das Projekt Seeadler wird verkauft. Die Liste ist geheim", "wird das Projekt Seeadler verkauft?", "verkauft"),
    ("Claire Dubois gagne 52000 euros par an. Elle dirige l'atelier", "combien gagne Claire Dubois par an?", "52000"),
    ("Le coffre a le code 9182. Il est dans la cave", "quel code a le coffre?", "9182"),
    ("Le client Moreau quitte le contrat. Il part en juin", "le client Moreau quitte le contrat?", "Moreau"),
    ("Lucía Ortega gana 43000 euros al año. Dirige el taller", "¿cuánto gana Lucía Ortega al año?", "43000"),
    ("La caja fuerte tiene el código 7345. Está en el sótano", "¿qué código tiene la caja fuerte?", "7345"),
    ("El cliente Robles deja el contrato. Se va en junio", "¿el cliente Robles deja el contrato?", "Robles"),
    ("El proyecto Halcón se vende a Nordwind. Es secreto", "¿a quién se vende el proyecto Halcón?", "Nordwind"),
)
"""A note of two facts, a question about the first, and a word of the answer."""


def ask(api: Client, project: str, question: str) -> str:
    session = f"{project}-{question}"
    body = {"harness": "claude-code", "sessionKey": session, "project": project}
    start = api.post("/api/hooks/session-start", body).ok()["inject"]
    given: str = api.post("/api/hooks/user-prompt-submit", {**body, "userPrompt": question}).ok()["inject"]
    return f"{start}\n{given}"


def test_facts_are_forgotten_and_recovered_with_their_memory_unless_they_are_relied_upon() -> None:
    wrong: list[Any] = []
    with pipeline() as (daemon, _):
        api = daemon.api
        sources = [
            api.remember(note, project=f"/home/ada/note-{number}")["id"] for number, (note, *_) in enumerate(NOTES)
        ]
        finished(daemon, count=len(NOTES))
        for number, (source, (_, question, word)) in enumerate(zip(sources, NOTES, strict=True)):
            project = f"/home/ada/note-{number}"
            facts = daemon.read("SELECT id FROM memories WHERE source_id = ? ORDER BY seq", source)
            gone, kept = sorted(fact for (fact,) in facts)
            before = ask(api, project, f"{question} (1)")
            answer = api.request("DELETE", f"/api/memory/{source}", {"reason": "wrong"}).ok()
            after = ask(api, project, f"{question} (2)")
            back = api.post(f"/api/memory/{source}/recover", {"reason": "right"}).ok()
            again = ask(api, project, f"{question} (3)")
            api.request("PATCH", f"/api/memory/{kept}", {"pinned": True, "reason": "mine"}).ok()
            last = api.request("DELETE", f"/api/memory/{source}", {"reason": "wrong"}).ok()
            named = (
                sorted(answer["forgottenWith"]),
                answer.get("saidBy"),
                sorted(back["recoveredWith"]),
                last["forgottenWith"],
                last["saidBy"],
            )
            told = [word in text for text in (before, after, again)]
            if told != [True, False, True] or named != ([gone, kept], None, [gone, kept], [gone], [kept]):
                wrong.append((word, told, named, after))
    assert wrong == []
