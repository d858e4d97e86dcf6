"""What a program drew at random is replaced where it is said to be a secret; words, names and ids there stay."""

from __future__ import annotations

import random
import string

import pytest

from signet_actors.domain.redaction.letter_pairs import is_random_letters
from signet_actors.domain.redaction.scan import Redactor, redact
from signet_actors.domain.redaction.values import is_no_name
from tests.support.random_credentials import FOUND, GROUPED, KEPT, LETTERS, LOGINS

_WORDS = """
    administration authentication configuration documentation internationalization misunderstanding thoughtfulness
    straightforward acknowledgement hypothetically psychologically rhythmically lengthwise strengthening
    neighbourhoods cryptography photosynthesis transcontinental unquestionably correcthorsebatterystaple
    Rechtsschutzversicherung Donaudampfschifffahrt Hauptbahnhof Kraftfahrzeugsteuer Geschwindigkeitsbegrenzung
    Schifffahrtsgesellschaft Arbeitsunfaehigkeit Zwischenpruefung Sechzigjaehriger Wachstumsbeschleunigung
    anticonstitutionnellement developpement malheureusement electroencefalografista desafortunadamente
    precipitevolissimevolmente onafhankelijkheid arbeidsongeschiktheid rettighetshaver sjuksköterska
    kubernetescluster postgresqlpassword springframework elasticsearch httpclientfactory xmlhttprequest
    rabbitmqmgmtpwd xmlrpcphpjsonrpc ldapbindpwdfile strncpystrncatmemcpy sqlalchemypsycopg mysqlpgbouncercluster
    getElementsByClassName HttpServletRequestWrapper NSManagedObjectContext SecretKeyFactory PasswordEncoder
    qwertyuiopasdfgh abcdefghijklmnop xxxxxxxxxxxxxxxx aaaaaaaaaaaaaaaa mvmvmvmvmvmvmvmv
"""
LONG_WORDS = _WORDS.split()
ACCOUNTS_OF_AZURE = (
    "azure devops pat %s",
    "az devops login with %s",
    "%s",
    "git clone https://anna:%s@dev.azure.com/o/p/_git/r",
)


def test_letters_drawn_at_random_are_told_from_words_in_most_cases() -> None:
    rng = random.Random(7)
    for size, least in ((12, 0.87), (16, 0.94), (20, 0.95), (32, 0.98)):
        for letters in (string.ascii_lowercase, string.ascii_letters):
            drawn = ["".join(rng.choices(letters, k=size)) for _ in range(1000)]
            assert sum(map(is_random_letters, drawn)) >= least * len(drawn)
    grouped = ["".join(rng.choices(string.ascii_lowercase, k=16)) for _ in range(1000)]
    shown = [" ".join(each[at : at + 4] for at in range(0, 16, 4)) for each in grouped]
    assert sum(redact(f"app password: {each}").found for each in shown) >= 0.94 * len(shown)


def test_words_names_of_variables_and_rows_of_a_keyboard_are_no_random_letters() -> None:
    assert [word for word in LONG_WORDS if is_random_letters(word)] == []


@pytest.mark.parametrize("kind", FOUND)
def test_a_random_credential_is_replaced_whole_and_nothing_else(kind: str) -> None:
    values, forms = FOUND[kind]
    assert len(forms) >= 20
    for form in forms:
        for value in values:
            clean, kinds = Redactor().clean(form.replace("%s", value))
            assert clean == form.replace("%s", f"[REDACTED:{kinds[0] if kinds else None}]")


def test_the_password_of_a_login_in_words_is_replaced() -> None:
    assert len(LOGINS) >= 20
    for form, value in LOGINS:
        clean = form.replace("%s", "[REDACTED:password]")
        assert Redactor().clean(form.replace("%s", value)) == (clean, ("password",))


@pytest.mark.parametrize("kind", KEPT)
def test_what_looks_like_a_random_credential_stays(kind: str) -> None:
    assert len(KEPT[kind]) >= 20
    assert [(text, clean) for text in KEPT[kind] if (clean := Redactor().clean(text)[0]) != text] == []


@pytest.mark.parametrize("form", ACCOUNTS_OF_AZURE)
def test_a_token_of_azure_devops_is_replaced_although_it_has_a_row_of_one_letter(form: str) -> None:
    drawn = "".join(random.Random(9).choices(string.ascii_letters + string.digits, k=52))
    token = f"{drawn}JQQJ99BACAAAAAAAAAAAAAAS" + "AZDO" + "bjV0"
    assert "BACAAAA" not in redact(form % token).text


@pytest.mark.parametrize("value", [*LETTERS, *GROUPED])
def test_an_app_password_is_replaced_wherever_else_it_stands(value: str) -> None:
    clean = redact(f"SMTP_PASSWORD='{value}'\nThe server is set up.\n" + "-" * 200 + f"\nI wrote {value} into it.").text
    assert value not in clean
    assert is_no_name(value)
