"""Whether a text is an order in form, so that it may become a constraint of every session."""

from __future__ import annotations

import pytest

from signet_actors.domain.orders import is_order

ORDERS = """
Never push to main without a green build
Always squash before merging
Always run the migrations first
Please never log access tokens
Never ever commit secrets
Never embed credentials in an image
Always address the user by name
Always pass the deadline on
Do not deploy on Fridays
Don't use tabs
Don\u2019t merge your own pull request
- Never rebase a shared branch
1. Always sign commits
Rule: never delete a migration
In this repository, always use uv
When deploying, never skip the smoke test
Before a release, always update the changelog
Remember: always quote paths
The build broke again. Never push to main without running it.
You must run the tests before you commit
Commits must be signed
Every endpoint must return JSON
Secrets must not be logged
Code mustn't depend on the clock
Migrations must never be edited
All services must always expose /health
A reviewer should never approve unread code
Tests should always be deterministic
Nie direkt auf main pushen
Niemals Passw\u00f6rter einchecken
Immer Tests schreiben
Bitte nie am Freitag deployen
Verwende immer Ruff
Pushe niemals auf main
Verwenden Sie immer UTC
Keine Secrets committen
Jeder Commit muss signiert sein
Passw\u00f6rter d\u00fcrfen nie im Log stehen
Wir m\u00fcssen immer zuerst testen
Ne jamais pousser sur main
Toujours signer les commits
N'utilisez jamais eval
Utilisez toujours des requ\u00eates pr\u00e9par\u00e9es
Ne poussez pas le vendredi
Il ne faut jamais committer de secrets
Chaque commit doit passer la CI
Les secrets ne doivent jamais appara\u00eetre dans les logs
Nunca hagas push a main
Siempre firma los commits
Nunca subir secretos
Siempre ejecutar las pruebas antes de subir
No uses eval
Cada commit debe pasar la CI
Hay que revisar siempre los cambios
Los secretos nunca deben guardarse en el repositorio
"""

NO_ORDERS = """
I never liked that movie
Never liked that movie
Always loved the old office
Never again
Never mind
Never been to Oslo
Never worked on Mondays
Always fails on Mondays
Always a pleasure to work with Dana
Always late
The build always fails on Mondays when the cache is cold
The load test must have run on the old cluster because the graph always shows it
Bob must have left early
It must be the cache
He must be tired
That must be a mistake
She said that we must hurry
Dana thinks the server must be restarted
We left because the train must leave at nine
I must admit that it works
We never had an outage in March
The server never answered
Bob is always late
Ada has always used vim
The must-have feature is search
Must we sign every commit?
Should we always squash?
Why must it be signed?
Don't know why it fails
Do not remember the port
The mustard is yellow
There must be an easier way
Das hat nie funktioniert
Nie gesehen
Er muss krank sein
Es muss am Cache liegen
Der Server antwortet nie
Anna kommt immer zu sp\u00e4t
Immer wenn es regnet, f\u00e4llt der Router aus
Das muss gestern passiert sein
Keine Ahnung
Je n'ai jamais aim\u00e9 ce film
Le serveur est toujours en panne
Il doit avoir oubli\u00e9
\u00c7a marche toujours
Jamais vu
Bob arrive toujours en retard
Nunca me gust\u00f3 esa pel\u00edcula
El servidor siempre falla los lunes
Siempre que llueve se cae la red
Nunca hab\u00eda visto eso
Debe haber salido temprano
Nunca funciona
\u00bfDebemos firmar siempre?
Signet stores data in SQLite
"""


@pytest.mark.parametrize("text", ORDERS.strip().splitlines())
def test_an_order_is_recognized_by_its_form(text: str) -> None:
    assert is_order(text)


@pytest.mark.parametrize("text", NO_ORDERS.strip().splitlines())
def test_what_was_or_is_said_or_supposed_is_no_order(text: str) -> None:
    assert not is_order(text)
