"""What plain sentences without a word such as *prefer* or *must* are stored as, in four languages."""

from __future__ import annotations

from signet_actors.domain.memories import infer_type, type_source

DECISIONS = """
We chose Postgres over MySQL because of JSONB
We went with Vite for the bundler
Decision: REST instead of GraphQL
We settled on trunk-based development
The team opted for Tailwind
We picked Fly.io over Heroku for the preview apps
Final decision: the worker stays a single process
We standardized on OpenTelemetry for tracing
We finally settled on UUIDv7 for ids
I chose sqlite instead of DuckDB for the local cache
We are going with server-side rendering.
We opted against a monorepo
We use pnpm instead of npm
We chose Terraform.
Wir haben uns auf Kotlin geeinigt
Wir haben Postgres statt MySQL gewählt
Wir setzen auf Playwright für die Oberfläche
Wir nehmen Vite statt Webpack
Nous avons opté pour Symfony
On a choisi Postgres plutôt que MySQL
On part sur une seule base par client
Elegimos Postgres en vez de MySQL
Hemos optado por Astro para la web
El equipo optó por Kafka
"""
PREFERENCES = """
Use pnpm instead of npm
Run prettier before each commit
Avoid default exports
Ask before deleting files
No emojis in commit messages
From now on write tests first
Please use named exports rather than default exports
Run the type checker after every refactoring
Use dark mode by default
Ask me before you touch the schema
Use tabs, not spaces
Keep commits small
Stick to British spelling
Use early returns wherever possible
Throw errors instead of returning null
In this repo, use just instead of make
Squash commits before merging
Write tests first
Going forward, answer with the diff only
No deploys on Fridays
Nutze pnpm statt npm
Vor jedem Commit prettier laufen lassen
Vermeide Default-Exports
Ab jetzt bitte zuerst die Tests schreiben
Frag mich, bevor du Dateien löschst
Keine Emojis in Commit-Nachrichten
pnpm statt npm verwenden
Utilise pnpm au lieu de npm
Lance prettier avant chaque commit
Évite les exports par défaut
Désormais, écris les tests en premier
Demande avant de supprimer des fichiers
Pas d'emojis dans les messages de commit
Usa pnpm en lugar de npm
Ejecuta prettier antes de cada commit
Evita los exports por defecto
A partir de ahora escribe primero los tests
Pregunta antes de borrar archivos
Nada de emojis en los mensajes de commit
"""
RULES = """
Every PR needs two approvals
Only Miguel may merge to release
Every migration requires a rollback
All public functions need docstrings
Each endpoint needs an integration test
Every commit has to be signed
All hotfixes have to go through staging
Only the release team can deploy
Only admins are allowed to rotate keys
Only Anna and Miguel can approve releases
Every feature needs a changelog entry
All database migrations need a review by Sofia
Jeder PR braucht zwei Freigaben
Alle Migrationen brauchen ein Review
Jede öffentliche Funktion benötigt einen Test
Chaque PR nécessite deux approbations
Toutes les migrations ont besoin d'une relecture
Seul Miguel peut fusionner dans release
Seuls les admins ont le droit de déployer
Cada PR necesita dos aprobaciones
Todos los cambios requieren una revisión
Solo Miguel puede fusionar en release
"""
NEITHER = """
Run the smoke test with make smoke
Use of the API is limited to 100 calls
We use Node 18 in the legacy app
The team chose a new logo colour on Monday
No tests in CI yet
Every request takes 20 ms
Only two people know the password process
Never mind the old scripts in legacy/
Nevermind, the flag was renamed
We chose the wrong index last week
I went with Bob to the standup
We have not settled on a name
The dust settled on the fans of the old rack
Decision: pending
The decision log is in docs/adr
Use the --force flag to fix the lock
Run make gen after pulling
Run lsof instead of netstat if it hangs
Use by default returns the last value
Every request needs 20 ms of CPU
All services need Node 20
Every pod requires 512 MB
Every test takes a second
All commits are on main
Only Chrome can render the chart
Only port 80 is open
Only the cache may be stale
From now on the server listens on 8081
No errors in the log today
No users in the EU
No changes in the repo
Should we use pnpm instead of npm?
The build runs prettier before each commit
The avoidance of locks made it slow
Avoidance of default exports is discussed in the guide
The linter runs by default
Test data is reset after each run
Log files are rotated after each deploy by logrotate
Tag v2 was moved after every attempt
We went with it
Call rates after each retry are in the dashboard of the team
Test runs before each deploy are stored in S3 and kept for a month
Keep-alive is 60 seconds
The keeper of the keys is Sofia
Nutzer sehen statt der Karte eine Liste
Der Job läuft vor jedem Deploy
Jeder Request braucht 20 ms
Alle Dienste brauchen Node 20
Wir setzen auf dem Server cron ein
Wir nutzen Node 18 in der alten App
Ab jetzt hört der Server auf Port 8081
Keine Fehler in den Tests
Le serveur utilise Redis au lieu de Memcached
Désormais, le serveur écoute sur le port 8081
Chaque requête prend 20 ms
Seuls deux clients sont actifs
Pas d'erreurs dans les tests
L'évitement des verrous est documenté
El servidor usa Redis en lugar de Memcached
A partir de ahora el servidor escucha en 8081
Cada petición tarda 20 ms
Solo dos clientes están activos
Sin errores en los tests
"""


def texts_of(data: str) -> list[str]:
    """Return the lines of the data."""
    return data.strip().splitlines()


def others_than(kind: str, data: str) -> list[str]:
    """Return the texts that are of another type."""
    return [f"{infer_type(text)}: {text}" for text in texts_of(data) if infer_type(text) != kind]


def test_a_choice_that_a_sentence_tells_is_a_decision() -> None:
    assert others_than("decision", DECISIONS) == []


def test_an_imperative_with_an_alternative_a_habit_or_a_default_is_a_preference() -> None:
    assert others_than("preference", PREFERENCES) == []


def test_what_all_need_and_only_some_may_is_a_rule() -> None:
    assert others_than("rule", RULES) == []


def test_facts_reports_and_instructions_are_facts() -> None:
    assert others_than("fact", NEITHER) == []


def test_what_is_no_order_in_form_is_no_constraint() -> None:
    texts = texts_of(f"{DECISIONS}{PREFERENCES}Every PR needs two approvals")
    assert [text for text in texts if type_source(infer_type(text), text, named=False) is not None] == []


def test_only_the_first_sentence_of_a_short_text_tells() -> None:
    told = "Use pnpm instead of npm."
    assert infer_type(f"{told} The lock file is checked in CI.") == "preference"
    assert infer_type(f"The lock file is checked in CI. {told}") == "fact"
    assert infer_type(f"{told} {'The lock file is checked in CI. ' * 20}") == "fact"
    assert infer_type(f"{told}\n```sh\npnpm install\n```") == "fact"
