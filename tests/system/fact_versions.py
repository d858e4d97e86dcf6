"""Versions of facts, older ones first, with a question; and different facts, whose order must not follow their age."""

from __future__ import annotations

from typing import Final, NamedTuple


class Versions(NamedTuple):
    """A question, and the versions of the fact that answers it, the oldest first."""

    question: str
    texts: tuple[str, ...]


VERSIONS: Final = (
    Versions(
        "which port has the staging database?",
        ("The staging database listens on port 5433", "The staging database listens on port 5434"),
    ),
    Versions(
        "who owns the billing service?",
        ("The owner of the billing service is Ann", "The owner of the billing service is Tom"),
    ),
    Versions(
        "when does the release train of the mobile app leave?",
        tuple(f"The release train of the mobile app leaves on day {day} of the month" for day in range(3, 13)),
    ),
    Versions(
        "how many replicas has the search cluster?",
        ("The search cluster has 3 replicas", "The search cluster has 5 replicas", "The search cluster has 4 replicas"),
    ),
    Versions(
        "on which weekday is the planning meeting of the kiosk team?",
        ("The planning meeting of the kiosk team is on Tuesday", "The planning meeting of the kiosk team is on Monday"),
    ),
    Versions(
        "which python does the importer need?", ("The importer needs Python 3.10", "The importer needs Python 3.12")
    ),
    Versions(
        "what is the limit of the upload endpoint?",
        ("The limit of the upload endpoint is 20 MB", "The limit of the upload endpoint is 50 MB"),
    ),
    Versions(
        "where do the backups of the archive go?",
        ("The backups of the archive go to bucket arch-2", "The backups of the archive go to bucket arch-3"),
    ),
    Versions(
        "which color has the save button?",
        ("The color of the save button is blue", "The color of the save button is green"),
    ),
    Versions(
        "how long is the retention of the audit log?",
        ("The retention of the audit log is 90 days", "The retention of the audit log is 365 days"),
    ),
    Versions(
        "wann fährt die Fähre nach Helgoland?",
        ("Die Fähre nach Helgoland fährt um 9 Uhr", "Die Fähre nach Helgoland fährt um 10 Uhr"),
    ),
    Versions(
        "wer leitet die Werkstatt in Kiel?",
        (
            "Die Leitung der Werkstatt in Kiel ist bei Herrn Petersen",
            "Die Leitung der Werkstatt in Kiel ist bei Frau Lund",
        ),
    ),
    Versions(
        "quel est le port du serveur de fichiers?",
        ("Le port du serveur de fichiers est 2121", "Le port du serveur de fichiers est 2222"),
    ),
    Versions(
        "¿cuál es el límite de la tarjeta del taller?",
        ("El límite de la tarjeta del taller es 300 euros", "El límite de la tarjeta del taller es 500 euros"),
    ),
    Versions("图书馆几点关门", ("图书馆晚上八点关门", "图书馆晚上九点关门")),
    Versions(
        "what is the address of the print server?",
        ("The address of the print server is 10.4.1.9", "The address of the print server is 10.4.2.9"),
    ),
    Versions(
        "which version of the charts library do we pin?",
        (
            "We pin the charts library to 4.1.2",
            "We pin the charts library to 4.3.0",
            "We pin the charts library to 4.2.9",
        ),
    ),
    Versions(
        "when is the certificate of the gateway renewed?",
        ("The certificate of the gateway is renewed in March", "The certificate of the gateway is renewed in June"),
    ),
    Versions(
        "who is on call for payments?",
        ("The person on call for payments is Mia", "The person on call for payments is Tom"),
    ),
    Versions(
        "how often does the crawler run?",
        ("The crawler runs every 4 hours", "The crawler runs every 6 hours", "The crawler runs every 2 hours"),
    ),
    Versions(
        "what is the budget of the summer party?",
        ("The budget of the summer party is 2000 euros", "The budget of the summer party is 1500 euros"),
    ),
    Versions(
        "which branch is deployed to the demo box?",
        ("The branch on the demo box is called demo-7", "The branch on the demo box is called demo-9"),
    ),
)
STAGING: Final = "The staging database listens on port 5433"
FERRY: Final = "Die Fähre nach Helgoland fährt um 9 Uhr"
PAST: Final = (
    ("which port did the staging database have originally?", STAGING),
    ("which port had the staging database before?", STAGING),
    ("on which port did the staging database used to listen?", STAGING),
    ("which port had the staging database before the move?", STAGING),
    ("the previous port of the staging database?", STAGING),
    ("which port had the staging database in January 2026?", STAGING),
    ("um wie viel Uhr fuhr die Fähre nach Helgoland früher?", FERRY),
    ("wann fuhr die Fähre nach Helgoland ursprünglich?", FERRY),
    ("quel était le port du serveur de fichiers auparavant?", "Le port du serveur de fichiers est 2121"),
    ("¿cuál era antes el límite de la tarjeta del taller?", "El límite de la tarjeta del taller es 300 euros"),
)


class Facts(NamedTuple):
    """A question, the fact that answers it, and a newer one that does not."""

    question: str
    answer: str
    newer: str


DIFFERENT: Final = (
    Facts(
        "which port has the staging database?",
        "The staging database listens on port 5433",
        "The staging database was moved",
    ),
    Facts(
        "who is the owner of the billing service?",
        "The owner of the billing service is Ann",
        "The billing service was restarted",
    ),
    Facts(
        "when is the planning meeting?",
        "The planning meeting is on Tuesday at ten",
        "The planning of the party begins in May",
    ),
    Facts("where are the backups?", "The backups are in bucket arch-2", "The backup software is written in Go"),
    Facts("which python does the importer need?", "The importer needs Python 3.10", "The exporter needs no Python"),
    Facts("what color has the save button?", "The save button has the color blue", "The save dialog has no button"),
    Facts("how long is the audit log kept?", "The audit log is kept 90 days", "The audit of the log format is done"),
    Facts("how big may an upload be?", "An upload may be 20 MB big", "An upload is scanned for viruses"),
    Facts("where does worker 2 run?", "Worker 2 runs on the host heron", "Worker 3 runs on the host kestrel"),
    Facts("who likes tea?", "Ann likes tea with milk", "Bob likes coffee with milk"),
    Facts("which room has a projector?", "Room 12 has a projector", "Room 14 has a whiteboard"),
    Facts("wann fährt die Fähre?", "Die Fähre fährt um 9 Uhr", "Die Fähre ist weiß"),
    Facts("wer leitet die Werkstatt?", "Herr Petersen leitet die Werkstatt", "Die Werkstatt ist in Kiel"),
    Facts(
        "what is the limit of the cache?", "The limit of the cache is 40 entries", "The cache of the images is empty"
    ),
    Facts("who is on call?", "Mia is on call this week", "The call with the bank was long"),
    Facts("which shell does Tom use?", "Tom uses the shell fish", "Tom uses an old laptop"),
    Facts("where is the key of the archive?", "The key of the archive is at the desk", "The archive is in the cellar"),
    Facts("which disk is full?", "The disk of the build host is full", "The build host has a new fan"),
    Facts("when does the crawler run?", "The crawler runs at night", "The crawler is written in Rust"),
    Facts("¿quién tiene la llave del taller?", "Marisol tiene la llave del taller", "El taller tiene una puerta azul"),
)
SEVERAL: Final = (
    (
        "which nodes has the staging cluster?",
        ("The staging cluster has node 10.0.0.1", "The staging cluster has node 10.0.0.2"),
    ),
    (
        "which runners does the build farm have?",
        ("Our build farm contains runner mac-1", "Our build farm contains runner mac-2"),
    ),
    (
        "welche Knoten hat das Testsystem?",
        ("Das Testsystem in Halle Nord hat Knoten 10.0.0.1", "Das Testsystem in Halle Nord hat Knoten 10.0.0.2"),
    ),
    (
        "which python versions does the client library support?",
        ("The client library supports Python 3.11", "The client library supports Python 3.12"),
    ),
    (
        "which bugs were fixed in the export module?",
        ("We fixed bug 101 in the export module", "We fixed bug 102 in the export module"),
    ),
    (
        "which tickets of the importer are blocked?",
        ("The importer team is blocked by API-1412", "The importer team is blocked by API-1431"),
    ),
    (
        "which orders were refunded because of damage?",
        ("Support refunded order 55120 because of damage", "Support refunded order 55121 because of damage"),
    ),
    ("what does the user prefer?", ("The user prefers tabs in Go", "The user prefers vim as editor")),
    ("on which hosts do the workers run?", ("Worker 1 runs on the host heron", "Worker 2 runs on the host kestrel")),
    ("which rooms have a projector?", ("Room 12 has a projector on the wall", "Room 14 has a projector on the wall")),
    ("who likes tea?", ("Ann likes tea with much milk", "Bob likes tea with much milk")),
    ("which tickets are about the hook?", ("Ticket KA-6 is about the hook", "Ticket KA-7 is about the hook")),
    ("what is in the storeroom?", ("The storeroom holds a ladder", "The storeroom holds a drill")),
)
SHORT_FACTS: Final = (
    ("Python version is 3.11", "Python version is 3.12"),
    ("The Go version is 1.22", "The Go version is 1.23"),
    ("Node version is 18", "Node version is 22"),
    ("The staging host is alpha7.example.com", "The staging host is beta9.example.com"),
    ("The staging host is heron", "The staging host is kestrel"),
    ("Our staging host is heron", "Our staging host is now kestrel"),
    ("The default branch is main", "The default branch is trunk"),
    ("The package manager is npm", "The package manager is pnpm"),
    ("The team lead is Ann", "The team lead is Tom"),
    ("The team lead is Ann Meyer", "The team lead is Tom Lund"),
    ("The release day is Tuesday", "The release day is Friday"),
    ("The request timeout is 30 seconds", "The request timeout is 60 seconds"),
    ("The log level is debug", "The log level is warning"),
    ("The API port is 8080", "The API port is 9090"),
    ("The AWS region is eu-west-1", "The AWS region is eu-central-1"),
    ("The test runner is jest", "The test runner is vitest"),
    ("The billing owner is Mia", "The billing owner is Ada"),
    ("The upload limit is 20 MB", "The upload limit is 50 MB"),
    ("The project license is MIT", "The project license is Apache"),
    ("The coverage threshold is 80%", "The coverage threshold is 85%"),
    ("Die Python-Version ist 3.11", "Die Python-Version ist 3.12"),
    ("Der Staging-Host ist Reiher", "Der Staging-Host ist Falke"),
    ("Der neue Teamleiter ist Herr Petersen", "Der neue Teamleiter ist Frau Lund"),
    ("La version de Node est 18", "La version de Node est 22"),
    ("El puerto del servidor es 2121", "El puerto del servidor es 2222"),
)
"""An older and a newer version of a fact of few words."""
SHORT_OTHERS: Final = (
    ("The staging host is heron", "The staging host is slow"),
    ("The staging host is slow", "The staging host is full"),
    ("The staging host is alpha7.example.com", "The staging host is unreachable"),
    ("The staging host is alpha7.example.com", "The staging host is in Frankfurt"),
    ("The staging host is heron", "The staging host is a virtual machine"),
    ("The staging host is heron", "The production host is heron"),
    ("The staging host is heron", "The staging port is 5433"),
    ("The storeroom is dark", "The storeroom is locked"),
    ("The build host is new", "The build host is Debian"),
    ("The test suite is flaky", "The test suite is pytest"),
    ("The API is REST", "The API is versioned"),
    ("A supported language is Go", "A supported language is Rust"),
    ("One worker host is heron", "One worker host is kestrel"),
    ("Another worker host is heron", "Another worker host is kestrel"),
    ("Ann is Tom's manager", "Ann is Mia's manager"),
    ("Python version is 3.11", "Node version is 18"),
    ("The Go version is 1.22", "The Go version is not pinned"),
    ("Worker 1 is the primary", "Worker 2 is the primary"),
    ("The billing service is Java", "The billing service is critical"),
    ("Die Werkstatt ist kalt", "Die Werkstatt ist in Kiel"),
    ("Der Server ist langsam", "Der Server ist Debian"),
    ("Le serveur est rapide", "Le serveur est Debian"),
    ("El servidor es lento", "El servidor es Debian"),
    ("The user is Ann", "The user is a developer"),
)
"""Two facts of few words, of which none takes the place of the other."""

PARALLEL: Final = (
    (
        "on which port does the API listen in dev?",
        ("The API listens on port 8080 in dev", "The API listens on port 80 in prod"),
    ),
    ("which Node has the legacy app?", ("Use Node 18 for the legacy app", "Use Node 22 for the new app")),
    (
        "what is the max file size for images?",
        ("The max file size is 10 MB for images", "The max file size is 50 MB for videos"),
    ),
    (
        "what is the rate limit for free users?",
        ("The rate limit is 100 per minute for free users", "The rate limit is 1000 per minute for paid users"),
    ),
    (
        "what is the connection pool size in production?",
        ("The connection pool size is 20 in production", "The connection pool size is 5 in staging"),
    ),
    (
        "which Python do we use for the worker?",
        ("We decided to use Python 3.11 for the worker", "We decided to use Python 3.13 for the backend"),
    ),
    (
        "when does the nightly backup run on db1?",
        ("The nightly backup runs at 02:00 on db1", "The nightly backup runs at 04:00 on db2"),
    ),
    (
        "which line length do I prefer in python?",
        ("I prefer line length 100 in python", "I prefer line length 120 in typescript"),
    ),
    (
        "what is our AWS account id for staging?",
        ("Our AWS account id for staging is 111122223333", "Our AWS account id for production is 444455556666"),
    ),
    (
        "what is the AWS account id of staging?",
        ("AWS account id is 111122223333 (staging)", "AWS account id is 444455556666 (production)"),
    ),
    (
        "which log level in kubernetes for dev?",
        ("The log level in kubernetes is debug for dev", "The log level in kubernetes is warn for prod"),
    ),
    (
        "what is the preferred test framework for web?",
        ("The preferred test framework is vitest for web", "The preferred test framework is pytest for api"),
    ),
    (
        "does the billing service need the env var STRIPE_KEY_V1?",
        ("The billing service needs env var STRIPE_KEY_V1", "The billing service needs env var SMTP_HOST2"),
    ),
    (
        "did we fix bug #101 in the export module?",
        ("We fixed bug #101 in the export module", "We fixed bug #102 in the export module"),
    ),
    (
        "auf welchem Port lauscht die Datenbank in Staging?",
        ("Die Datenbank lauscht auf Port 5433 in Staging", "Die Datenbank lauscht auf Port 5432 in Produktion"),
    ),
    (
        "what is the cache TTL for products?",
        ("Cache TTL is 60 seconds for products", "Cache TTL is 300 seconds for categories"),
    ),
    (
        "how often do we retry the payment webhook in prod?",
        ("Retry the payment webhook 5 times in prod", "Retry the payment webhook 1 time in dev"),
    ),
    (
        "what must the test coverage be in api?",
        ("The test coverage must be 80 % in api", "The test coverage must be 60 % in web"),
    ),
    (
        "on which port does the database run in production?",
        ("The database runs on port 5432 in production", "The database runs on port 5433 in staging"),
    ),
    (
        "what is the timeout of the gateway for uploads?",
        ("Timeout of the gateway is 30s for uploads", "Timeout of the gateway is 10s for downloads"),
    ),
    ("quel est le port de l'API en dev?", ("Le port de l'API est 8080 en dev", "Le port de l'API est 80 en prod")),
    (
        "¿cuál es el puerto de la API en pruebas?",
        ("El puerto de la API es 8080 en pruebas", "El puerto de la API es 80 en producción"),
    ),
    (
        "wie groß darf ein Bild im Shop sein?",
        ("Im Shop darf ein Bild 5 MB groß sein", "Im Shop darf ein Film 90 MB groß sein"),
    ),
)
"""Of two things of one kind, each with its value: the question is about the first one."""
