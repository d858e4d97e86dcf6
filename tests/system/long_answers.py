"""Long answers of agents, and what is asked later about a part of them."""

from __future__ import annotations

from typing import Final, NamedTuple


class LongAnswer(NamedTuple):
    """``asked``: later questions, each with words of the only sentence that answers it."""

    prompt: str
    answer: str
    asked: tuple[tuple[str, str], ...]


LONG_ANSWERS: Final = (
    LongAnswer(
        "The nightly import of the parcel prices fails since Tuesday, can you find out why?",
        "I started with the log of the nightly import and the three tickets that mention parcel prices. The"
        " import reads a CSV file that the carrier puts on an SFTP server at about half past two. The nightly"
        " import then loads the rows into a staging table, compares them with the parcel prices of the day"
        " before, and swaps the tables. I ran the import with the files of Monday and Tuesday on my side, and"
        " only the one of Tuesday failed. The log of the import says only that a row was refused, without its"
        " number, so I added the number to the message first.\n\n"
        "The carrier renamed the column weight_kg to gross_weight_kg, and our parser takes a missing column"
        " for zero. Rows with a weight of zero break the constraint positive_weight.\n\n"
        "What I did:\n"
        "- loader/columns.yaml knows both names now\n"
        "- the parser stops with MissingColumn instead of filling in zeros\n"
        "- an alert goes to the channel #pricing if the file has an unknown header\n\n"
        "The import of Tuesday was repeated by hand with the flag --as-of, and 48,211 parcel prices were"
        " stored. Somebody should tell Petra at the carrier that we need two weeks of notice.",
        (
            ("which column did the carrier rename for the parcel prices?", "gross_weight_kg"),
            ("which constraint broke in the import of parcel prices?", "positive_weight"),
            ("where does the alert about an unknown header of the import go?", "#pricing"),
            ("with which flag was the import of parcel prices repeated by hand?", "--as-of"),
            ("whom should we tell about the notice of the carrier?", "Petra"),
        ),
    ),
    LongAnswer(
        "Bitte richte die Anmeldung mit Einmalpasswörtern für das Kundenportal ein",
        "Ich habe mir zuerst angesehen, wie die Anmeldung im Kundenportal heute funktioniert. Das"
        " Kundenportal prüft Name und Passwort in auth/login.py und legt danach eine Sitzung an. Für die"
        " Anmeldung mit Einmalpasswörtern gibt es zwei übliche Verfahren, TOTP nach RFC 6238 und per SMS. Das"
        " Kundenportal hat schon einen Vertrag mit einem Anbieter für SMS, die Kosten wären aber etwa 900 Euro"
        " im Monat. Außerdem haben viele Kunden im Ausland schlechten Empfang, wie der Support schreibt.\n\n"
        "Ich habe TOTP genommen. Das Geheimnis liegt verschlüsselt in der Tabelle otp_seeds, der Schlüssel"
        " dazu kommt aus Vault.\n\n"
        "Wer sein Gerät verliert, bekommt zehn Notfallcodes, die nur als Hash gespeichert sind. Nach fünf"
        " falschen Codes sperrt das Portal die Anmeldung für 15 Minuten.\n\n"
        "Noch offen: die Übersetzung der neuen Seite ins Polnische, und ein Eintrag im"
        " Datenschutzverzeichnis, den Frau Wessel machen will.",
        (
            ("in welcher Tabelle liegt das Geheimnis der Einmalpasswörter?", "otp_seeds"),
            ("wie lange sperrt das Kundenportal nach falschen Codes?", "15 Minuten"),
            ("wer macht den Eintrag im Datenschutzverzeichnis zum Kundenportal?", "Wessel"),
            ("wie viele Notfallcodes bekommt man im Kundenportal?", "zehn"),
        ),
    ),
    LongAnswer(
        "Our integration tests of the booking service are flaky, please make them stable",
        "I ran the integration tests of the booking service forty times over lunch and wrote down each"
        " failure. The integration tests start Postgres, Kafka and a fake of the hotel API in containers. Out"
        " of forty runs of the booking service tests eleven failed, in four different tests, and never the"
        " same two together. That points to order and time rather than to one broken test. I read the fixtures"
        " next, then the fake of the hotel API, then the consumers of the booking service.\n\n"
        "Two causes explain all eleven failures. The fake listens before its routes are registered, so an"
        " early request gets 404. And the consumers share one group id, so a test receives the messages of"
        " another one.\n\n"
        "The fixture wait_for_routes polls /ready now, and each test has a group id of its own made from its"
        " name. I did not use retries, because they would have hidden the second cause, which can happen in"
        " production too.\n\n"
        "After the change 200 runs passed. They take 41 seconds instead of 55, because the sleeps are gone."
        " One thing is left: Kafka 4 needs another image, see the branch try-kafka-4.",
        (
            ("why did we not use retries in the integration tests of the booking service?", "hidden the second cause"),
            ("which fixture polls for the routes of the fake hotel API?", "wait_for_routes"),
            ("how long do the integration tests of the booking service take now?", "41 seconds"),
            ("on which branch is the image for Kafka 4?", "try-kafka-4"),
            ("what do the consumers of the booking service share?", "group id"),
        ),
    ),
)
