"""Edits of memories, past exchanges that state the former value, and others that tell something else of it.

Source: docs/concepts.md "What happens later".
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Edit(NamedTuple):
    """A memory before and after; exchanges of a question and an answer that are outdated, and that still tell more."""

    old: str
    new: str
    outdated: tuple[tuple[str, str], ...]
    telling: tuple[tuple[str, str], ...]


EDITS: Final = (
    Edit(
        "We deploy with Helm",
        "We deploy with Kustomize",
        (
            ("We deploy with Helm.", "Noted."),
            ("Which tool do we deploy with?", "We deploy with Helm."),
        ),
        (
            (
                "why did the deploy with Helm time out in CI?",
                "activeDeadlineSeconds of the hook job was 300; I raised it to 900.",
            ),
            ("The deploy with Helm failed again in CI.", "The image pull secret was missing in the namespace."),
        ),
    ),
    Edit(
        "The staging database listens on port 5433",
        "The staging database listens on port 5434",
        (
            ("Please remember: the staging database listens on port 5433.", "Noted: staging database, port 5433."),
            ("which port does the staging database listen on?", "On port 5433."),
        ),
        (
            (
                "why are connections of the staging database on port 5433 refused?",
                "The pool of 20 connections was exhausted by the report worker.",
            ),
        ),
    ),
    Edit(
        "We use Jenkins for the nightly builds",
        "We use Buildkite for the nightly builds",
        (("We use Jenkins for the nightly builds.", "Understood."),),
        (
            (
                "why did the nightly builds in Jenkins fail?",
                "The agent ran out of inodes, because node_modules was never cleaned.",
            ),
        ),
    ),
    Edit(
        "The API rate limit is 100 requests per minute",
        "The API rate limit is 250 requests per minute",
        (("The API rate limit is 100 requests per minute.", "OK, 100 requests per minute."),),
        (
            (
                "where is the API rate limit of 100 requests per minute enforced?",
                "In the gateway middleware limiter.go, with a token bucket in Redis.",
            ),
        ),
    ),
    Edit(
        "Mia has the on-call phone",
        "Tariq has the on-call phone",
        (
            ("Mia has the on-call phone now.", "Thanks."),
            ("who has the on-call phone?", "Mia has it."),
        ),
        (
            (
                "why could Mia not reach the on-call phone last night?",
                "Its SIM card was blocked by the carrier after three wrong codes.",
            ),
        ),
    ),
    Edit(
        "Logs are kept for 30 days",
        "Logs are kept for 90 days",
        (("Logs are kept for 30 days.", "Noted, 30 days."),),
        (
            (
                "Logs are kept for 30 days, so why is the disk full?",
                "The rotation skipped audit.log, because it is owned by root.",
            ),
        ),
    ),
    Edit(
        "The frontend is written in Vue",
        "The frontend is written in Svelte",
        (("The frontend is written in Vue.", "Good to know."),),
        (
            (
                "why does the Vue frontend render twice?",
                "The store watcher mutates its own source; I moved it to a computed property.",
            ),
        ),
    ),
    Edit(
        "Releases are tagged on Thursday",
        "Releases are tagged on Monday",
        (
            ("Releases are tagged on Thursday.", "Remembered."),
            ("when are releases tagged?", "On Thursday."),
        ),
        (
            (
                "the release tagged on Thursday broke the login",
                "The cookie domain changed in commit 4be1; I reverted it.",
            ),
        ),
    ),
    Edit(
        "Backups go to the bucket kestrel-archive",
        "Backups go to the bucket heron-archive",
        (("Backups go to the bucket kestrel-archive.", "Stored."),),
        (
            (
                "why is the bucket kestrel-archive with the backups so expensive?",
                "Versioning keeps every part of the incomplete multipart uploads.",
            ),
        ),
    ),
    Edit(
        "Wir deployen mit Helm",
        "Wir deployen mit Kustomize",
        (("Wir deployen mit Helm.", "Gemerkt."),),
        (
            (
                "warum lief das Deployen mit Helm in einen Timeout?",
                "Der Job hatte nur 300 Sekunden, und das Image war 4 GB gross.",
            ),
        ),
    ),
    Edit(
        "On déploie avec Helm",
        "On déploie avec Kustomize",
        (("On déploie avec Helm.", "Noté."),),
        (
            (
                "pourquoi le déploiement avec Helm a échoué ?",
                "Le secret du registre manquait dans le namespace, je l'ai ajouté.",
            ),
        ),
    ),
    Edit(
        "Desplegamos con Helm en Frankfurt",
        "Desplegamos con Kustomize en Frankfurt",
        (("Desplegamos con Helm en Frankfurt.", "Anotado."),),
        (
            (
                "¿por qué desplegamos con Helm en Frankfurt tan lento?",
                "La imagen pesa 4 GB y el registro está en otra región.",
            ),
        ),
    ),
    Edit(
        "The session cookie expires after 8 hours",
        "The session cookie expires after 2 hours",
        (
            ("The session cookie expires after 8 hours.", "OK."),
            ("when does the session cookie expire?", "After 8 hours."),
        ),
        (
            (
                "why does the session cookie not expire after 8 hours?",
                "The sliding renewal in auth.py resets it with each poll of the dashboard.",
            ),
        ),
    ),
    Edit(
        "Feature branches are squashed before the merge",
        "Feature branches are rebased before the merge",
        (("Feature branches are squashed before the merge.", "Understood."),),
        (
            (
                "Feature branches are squashed before the merge, but why did bisect miss it?",
                "The regression came in with a submodule bump, which bisect skips.",
            ),
        ),
    ),
    Edit(
        "Our CI runs on GitHub Actions",
        "Our CI runs on GitLab CI",
        (
            ("Just so you know, our CI runs on GitHub Actions.", "Thanks, noted that."),
            ("where does our CI run?", "Your CI runs on GitHub Actions."),
            ("where does our CI run?", "GitHub Actions."),
        ),
        (("why is the CI on GitHub Actions so slow?", "The cache key contains the commit hash, so it never hits."),),
    ),
    Edit(
        "The user prefers dark mode",
        "The user prefers light mode",
        (("I prefer dark mode.", "Okay, dark mode it is."),),
        (
            (
                "the dark mode has unreadable links",
                "The anchor colour was hard-coded; I replaced it with the token link-fg.",
            ),
        ),
    ),
    Edit(
        "The retry limit of the mailer is 5",
        "The retry limit of the mailer is 3",
        (
            ("Set in stone: the retry limit of the mailer is 5.", "Got it."),
            ("what is the retry limit of the mailer?", "The retry limit is 5."),
        ),
        (
            (
                "why does the mailer stop after 5 retries?",
                "The SMTP server answers 421, which counts as permanent in mailer.go.",
            ),
        ),
    ),
    Edit(
        "Prod runs Postgres 14",
        "Prod runs Postgres 16",
        (
            ("Prod runs Postgres 14.", "Noted."),
            ("which Postgres does prod run?", "Prod runs Postgres 14."),
        ),
        (
            (
                "can we use MERGE on prod with Postgres 14?",
                "No, MERGE needs 15; use INSERT ON CONFLICT with a partial index instead.",
            ),
        ),
    ),
    Edit(
        "Sarah reviews the security changes",
        "Omar reviews the security changes",
        (
            ("Sarah reviews the security changes from now on.", "Understood, I will ask Sarah."),
            ("who reviews the security changes?", "Sarah."),
        ),
        (
            (
                "Sarah rejected the security changes, why?",
                "The token was compared with ==, and she wants hmac.compare_digest.",
            ),
        ),
    ),
    Edit(
        "The cache TTL is 60 seconds",
        "The cache TTL is 300 seconds",
        (
            ("The cache TTL is 60 seconds.", "Fine."),
            ("what is the cache TTL?", "It is 60 seconds."),
        ),
        (
            (
                "users see stale prices with the cache TTL of 60 seconds",
                "The CDN adds its own max-age of 3600; purge it on each price import.",
            ),
        ),
    ),
    Edit(
        "Unsere Tests laufen mit pytest",
        "Unsere Tests laufen mit ward",
        (
            ("Unsere Tests laufen mit pytest.", "Ist notiert."),
            ("womit laufen unsere Tests?", "Mit pytest."),
        ),
        (
            (
                "warum hängen unsere Tests mit pytest?",
                "Die Fixture db schliesst ihre Verbindung nicht, solange ein Thread wartet.",
            ),
        ),
    ),
    Edit(
        "The main branch is called master",
        "The main branch is called trunk",
        (("The main branch is called master.", "OK."),),
        (
            (
                "why can nobody push to the main branch master?",
                "It is protected since the audit; two approvals and a signed commit are needed.",
            ),
        ),
    ),
    Edit(
        "The SDK supports Python 3.8",
        "The SDK supports Python 3.10",
        (("The SDK supports Python 3.8.", "Alright, Python 3.8 it is."),),
        (),
    ),
    Edit(
        "Standup is at 9:30 in the Orion room",
        "Standup is at 10:00 in the Orion room",
        (
            ("Standup is at 9:30 in the Orion room.", "Noted."),
            ("when is the standup?", "At 9:30 in the Orion room."),
        ),
        (
            (
                "why was the standup at 9:30 in the Orion room cancelled?",
                "The room was double booked by the hiring committee until December.",
            ),
        ),
    ),
    Edit(
        "Le port du serveur de staging est 8081",
        "Le port du serveur de staging est 8090",
        (
            ("Le port du serveur de staging est 8081.", "C'est noté."),
            ("quel est le port du serveur de staging ?", "Le 8081."),
        ),
        (
            (
                "pourquoi le port 8081 du serveur de staging est fermé ?",
                "Le pare-feu le bloque depuis la migration, il faut ouvrir la règle 42.",
            ),
        ),
    ),
    Edit(
        "Invoices are sent on the 1st",
        "Invoices are sent on the 15th",
        (("Invoices are sent on the 1st.", "Understood."),),
        (),
    ),
)
PARTLY: Final = (
    (
        "The staging database listens on port 5433",
        "The staging database listens on port 5434",
        "why do the migrations of the staging database hang?",
        "A lock of the report worker holds them. The staging database listens on port 5433. I ended its transaction.",
        "A lock of the report worker holds them. I ended its transaction.",
    ),
    (
        "We deploy with Helm",
        "We deploy with Kustomize",
        "what must I know to deploy the billing service?",
        "We deploy with Helm. The billing service needs the secret ledger-key in its namespace.",
        "The billing service needs the secret ledger-key in its namespace.",
    ),
    (
        "Der Abgleich der Lagerbestände läuft auf Kormoran",
        "Der Abgleich der Lagerbestände läuft auf Seeadler",
        "was ist beim Abgleich der Lagerbestände zu beachten?",
        "Der Abgleich der Lagerbestände läuft auf Kormoran. Vorher muss die Inventursperre des Lagers gesetzt sein.",
        "Vorher muss die Inventursperre des Lagers gesetzt sein.",
    ),
)
"""Former and new text, a question, an answer with the former statement among others, and what is left of the answer."""
