"""A secret that was recognised once is replaced wherever else it stands in the same text."""

from __future__ import annotations

import pytest

from signet_actors.domain.redaction.scan import Redactor
from signet_actors.gateway.transcript_capture import without_secrets

VALUE = "Tr0ub4dor&3x"
NAMED = (
    f"my password is {VALUE}",
    f"DB_PASSWORD={VALUE}",
    f"Das Passwort lautet {VALUE}.",
    f"password: {VALUE}",
    f'"password": "{VALUE}"',
    f"curl -u anna:{VALUE} https://example.org",
)
AGAIN = (
    f"I have put {VALUE} into the file.",
    f"It is {VALUE}, as you said.",
    f"Done: `{VALUE}`",
    f"({VALUE})",
    f"{VALUE} works, {VALUE} was wrong before",
    f"the hash of {VALUE}: 0",
)


@pytest.mark.parametrize("named", NAMED)
def test_a_recognised_secret_is_replaced_wherever_it_is_repeated(named: str) -> None:
    for again in AGAIN:
        for text in (f"User: {named}\n\nAssistant: {again}", f"Assistant: {again}\n\nUser: {named}"):
            clean, kinds = Redactor().clean(text)
            assert VALUE not in clean, text
            assert kinds
            assert VALUE not in without_secrets(Redactor(), text, {})[0]
            assert Redactor().clean(clean)[0] == clean


@pytest.mark.parametrize(
    ("named", "again"),
    [
        ("password: database", "the database is down"),
        ("password=production", "deploy to production"),
        ("my password is swordfish", "a swordfish swims"),
        ("my password is 12345678", "id 912345678 of 12345678 rows"),
        (f"my password is {VALUE}", "another Tr0ub4dor stays"),
    ],
)
def test_ordinary_words_and_numbers_that_were_once_a_secret_stay(named: str, again: str) -> None:
    clean, _ = Redactor().clean(f"{named}\n{again}")
    assert clean.endswith(f"\n{again}")
