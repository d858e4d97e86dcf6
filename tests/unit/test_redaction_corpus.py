"""Every documented form of a secret is found, and ordinary developer notes are unchanged."""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

import pytest

from signet_actors.domain.redaction.labelled_values import answered_secret
from signet_actors.domain.redaction.scan import Redactor, redact, tokens
from signet_actors.domain.redaction.secret_names import LANGUAGES
from signet_actors.domain.redaction.token_format import TokenFormat
from signet_actors.domain.redaction.token_formats import FORMATS
from tests.support.pasted_credentials import (
    ASKED,
    HARMLESS,
    HEX_VALUES,
    HEXADECIMAL,
    JOINED,
    OTHER_ANSWERS,
    PASTED,
    QUESTIONS,
)
from tests.support.pasted_credentials import VALUES as PASTED_VALUES
from tests.support.secret_corpus import SHAPES, clean_notes, documented, secrets, shaped
from tests.support.secret_notes import CLEAN_TEXTS, PASSWORDS
from tests.support.set_credentials import CHANGED, CHANGED_TO, LISTS, SENTENCES, SET_NOTHING, STATEMENTS
from tests.support.told_credentials import (
    ASIDES,
    BEFORE_LABELS,
    CLAUSES,
    CONTROLS,
    CURRENT,
    IN_MARKS,
    MADE,
    OWNED,
    PARAMETERS,
    PLAIN,
    RELATIVE,
    SERVICE_KEYS,
    UNSIGNED,
    USED,
    UUID_KEYS,
)
from tests.support.written_credentials import (
    ARGUMENTS,
    BLOBS,
    CLEAN,
    CODES,
    CONTROLS_OF_CALLS,
    DEFAULTS,
    DRAWN,
    DRAWN_FORMS,
    FORMS,
    NOT_DRAWN,
    NOT_TAKEN,
    NOTED,
    OTHERS,
    SHOWN,
    STATED,
    TAKEN,
)
from tests.support.written_credentials import SHAPES as WRITTEN

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SEEDS = range(3)
MARKED = [(form, mark) for form in FORMATS for mark in form.marks]


def examples(form: TokenFormat, mark: str) -> list[tuple[str, str]]:
    """Sentences with a token of ``form`` that has ``mark``, and the token."""
    rng = random.Random(mark)
    made = [(sentence % (token := shaped(rng, shape)), token) for kind, shape, sentence in SHAPES if kind == form.kind]
    return [
        (text, token)
        for text, token in made
        if mark in (text if form.after_mark else token) and any(tokens(form, mark, text, text.lower()))
    ]


@pytest.mark.parametrize(("form", "mark"), MARKED, ids=[f"{form.kind} {mark}" for form, mark in MARKED])
def test_an_example_of_each_documented_form_is_replaced_completely(form: TokenFormat, mark: str) -> None:
    found = examples(form, mark)
    assert found
    assert form.document
    for text, token in found:
        redacted = redact(text)
        assert redacted.text == text.replace(token, f"[REDACTED:{form.kind}]")
        assert redacted.kinds == (form.kind,)


ESCAPES = (
    *("\x1b[32m%s\x1b[0m", "\x1b[1;31m%s\x1b[m", "\x1b[m%s", "\x1b[K%s", "[32m%s[0m", "[1;31m%s", "\x1b[38;5;196m%s"),
    *("\\x1b[31m%s\\x1b[0m", "\\033[0;32m%s", "\\e[32m%s", "\\u001b[32m%s", "\\u001B[32m%s", "^[[31m%s^[[0m"),
    *(
        '"loaded\\n%s\\nok"',
        '"a\\t%s\\tb"',
        '"a\\r\\n%s"',
        '"a\\u003d%s"',
        '"\\u003D%s"',
        "\\x3d%s",
        "\\075%s",
        "\\u{3d}%s",
    ),
    *("token%%3D%s&y=1", "key%%20%s%%20ok", "%%22%s%%22", "a=3D%s", "&quot;%s&quot;", "\x7f%s", "\x0b%s", "\x9b32m %s"),
)


@pytest.mark.parametrize("around", ESCAPES)
def test_a_token_behind_the_escape_of_a_character_is_replaced(around: str) -> None:
    for form, mark in MARKED:
        if form.back or form.context or form.after_mark or mark in around:
            continue
        for _, token in examples(form, mark)[:1]:
            assert token not in redact(around % token).text, (form.kind, mark)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[36mpassword\x1b[0m: Tr0ub4dor&3x",
        "password: \x1b[33mTr0ub4dor&3x\x1b[0m",
        "\x1b[1mDB_\x1b[1mPASSWORD\x1b[m=\x1b[32mTr0ub4dor&3x",
        "the pass\x7fword is Tr0ub4dor&3x",
        "password: Tr0u\x1b[31mb4dor&3x",
        "callback?password%3DTr0ub4dor%263x%3B",
        "https%3A%2F%2Fuser%3ATr0ub4dor%263x%40host%2F",
        "spring.datasource.password\\:Tr0ub4dor&3x",
        "db.password\\=Tr0ub4dor&3x",
        '{"a": "--password\\u003dTr0ub4dor&3x"}',
        "pass\\x77ord=Tr0ub4dor&3x",
    ],
)
def test_a_password_in_colours_or_with_escaped_characters_is_replaced(text: str) -> None:
    replaced = redact(text).text
    assert "b4dor" not in replaced
    assert "password]" in replaced


@pytest.mark.parametrize(
    "text", ["\x1b[32mPASSED\x1b[0m tests/a.py", "\x1b[1mbold\x1b[m and \x7f", "[31mred[0m", "a%20b%3Dc"]
)
def test_colours_and_escapes_without_a_secret_stay(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(("form", "mark"), MARKED, ids=[f"{form.kind} {mark}" for form, mark in MARKED])
def test_a_placeholder_or_a_part_of_a_token_is_not_replaced(form: TokenFormat, mark: str) -> None:
    for text, token in examples(form, mark):
        at = 0 if form.after_mark else token.index(mark) + len(mark)
        masked = token[:at] + "".join("x" if char.isalnum() else char for char in token[at:])
        if len(token) > at + 8:
            assert not any(tokens(form, mark, text.replace(token, masked), text.lower()))
            cut = text.replace(token, token[: at + 4])
            assert not any(tokens(form, mark, cut, cut.lower()))


@pytest.mark.parametrize("seed", SEEDS)
def test_at_least_95_percent_of_the_corpus_of_secrets_are_found(seed: int) -> None:
    corpus = secrets(seed)
    assert len(corpus) >= 200
    missed = [text for text, secret in corpus if secret in redact(text).text]
    assert len(missed) <= len(corpus) * 0.05, missed


@pytest.mark.parametrize("seed", SEEDS)
def test_at_most_one_percent_of_notes_without_secrets_are_changed(seed: int) -> None:
    notes = clean_notes(seed, 2_000)
    assert len(set(notes)) >= 1_900
    changed = [(note, clean) for note in notes if (clean := Redactor().clean(note)[0]) != note]
    assert len(changed) <= len(notes) * 0.01, changed[:10]


@pytest.mark.parametrize("text", documented())
def test_a_documented_example_or_a_placeholder_is_unchanged(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(("sentence", "secret"), PASSWORDS)
def test_a_typical_password_is_replaced_completely_and_nothing_else(sentence: str, secret: str) -> None:
    assert Redactor().clean(sentence % secret) == (sentence % "[REDACTED:password]", ("password",))


@pytest.mark.parametrize("shape", WRITTEN)
def test_a_credential_is_replaced_in_every_written_form(shape: str) -> None:
    """In Markdown, tables, HTML, prose, pairs and many languages, with the value alone replaced."""
    rng = random.Random(shape)
    for form in FORMS:
        secret = shaped(rng, shape)
        clean, kinds = Redactor().clean(form.replace("%s", secret))
        assert kinds in {("password",), ("credential",)}, form
        assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]")


STATED_VALUES = ("kV8nQ3zR7tLm2XwPq9", "xK9#mQ2$vL7p", "hunter2x", "s3Cr37#K!pQ")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_language_reads_like_a_colon_states_a_password_and_a_sentence_about_passwords_stays(
    language: str,
) -> None:
    stated, about = STATED[language]
    for sentence in stated:
        for end in ("", ".", "\nnext line"):
            form = sentence + end
            for value in STATED_VALUES:
                clean = form.replace("%s", "[REDACTED:password]")
                assert Redactor().clean(form.replace("%s", value)) == (clean, ("password",))
    for sentence in about:
        assert Redactor().clean(sentence) == (sentence, ())


def test_the_documentation_names_the_languages_that_are_known() -> None:
    page = " ".join(OPERATIONS.read_text().split())
    told = page.partition("in the languages whose names are known: ")[2].partition(";")[0]
    assert told.replace(" and ", ", ").split(", ") == list(LANGUAGES) == list(STATED)


@pytest.mark.parametrize("kind", PASTED)
def test_what_is_pasted_is_replaced_whole_and_nothing_else(kind: str) -> None:
    assert len(PASTED[kind]) >= 20
    for form in PASTED[kind]:
        for value in PASTED_VALUES:
            clean, kinds = Redactor().clean(form.replace("%s", value))
            assert clean == form.replace("%s", f"[REDACTED:{kinds[0] if kinds else None}]")


@pytest.mark.parametrize("value", ["xK9mQ2vL7pR4", "Tr0ub4dor&3", "Sommer2024!", "k7Qw9ZrT2mLp4XvB8nHs"])
def test_the_answer_to_a_question_for_a_secret_is_replaced(value: str) -> None:
    assert len(ASKED) >= 20
    assert [form for form in ASKED if value in redact(form % value).text] == []


ANSWERS = {
    **dict.fromkeys(("%s", "`%s`", "it's %s, I think", "sure, use %s", "%s\n\nand the user is anna"), "xK9mQ2vL7pR4"),
    **dict.fromkeys(("anna / %s", "admin, %s", "`anna` / `%s`", "anna@example.org and %s", "bob: %s"), "uXk4mR7pQz2L"),
    "%s.": "8f14e45fceea167a5a36dedd4bea2543",
    "Ok: %s": "Tr0ub4dor&3",
    "**%s**": "k7Qw9ZrT2mLp4XvB8nHs",
}


def test_a_turn_that_answers_a_question_for_a_secret_in_the_turn_before_begins_with_it() -> None:
    assert len(QUESTIONS) >= 19
    assert len(OTHER_ANSWERS) >= 20
    for question in QUESTIONS:
        for form, value in ANSWERS.items():
            assert answered_secret(question, form % value) == value, (question, form)
    assert [each for each in OTHER_ANSWERS if answered_secret(*each)] == []


@pytest.mark.parametrize(
    "value", ["Vb3!nQz8#tRp", "k7Qw9ZrT2mLp4XvB8nHs3cYd", "x9TqLm2Wv8Ra", "Lf3!cGh5@tYk", "q8W&zP2vKd4m"]
)
@pytest.mark.parametrize("kind", PLAIN)
def test_a_secret_is_replaced_where_a_plain_sentence_tells_it_beside_its_name(kind: str, value: str) -> None:
    assert len(PLAIN[kind]) >= 20
    assert len(CONTROLS[kind]) >= 20
    for form in PLAIN[kind]:
        clean, kinds = Redactor().clean(form.replace("%s", value))
        assert kinds in {("password",), ("credential",)}, form
        assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]")


@pytest.mark.parametrize("value", HEX_VALUES)
def test_a_value_of_hexadecimal_digits_is_replaced_where_another_is(value: str) -> None:
    assert len(HEXADECIMAL) >= 20
    for form in HEXADECIMAL:
        clean, kinds = Redactor().clean(form.replace("%s", value))
        assert clean == form.replace("%s", f"[REDACTED:{kinds[0] if kinds else None}]")


@pytest.mark.parametrize("value", ["xK9mQ2=vL7pR4", "abc=def12X!", "Zm9v=YmFy9xQ"])
def test_a_value_with_a_sign_of_equality_is_replaced_beside_its_name(value: str) -> None:
    forms = ("DB_PASSWORD=%s", "password: %s", "password = '%s'", 'API_KEY="%s"', "the password is %s", "token = '%s'")
    assert [form for form in forms if value in redact(form % value).text] == []


GLUED = (
    *("of-%s", "key-%s", "key_%s", "MY_TOKEN_%s", "a-%s", "x--%s", "__%s", "ci_%s_end", "/tmp/of-%s", "img-%s.png"),
    *("branch feature-%s", "id:key_%s", "1-%s", "user_%s@host", "-%s", "'dev-%s'", "dev/%s", "k=%s;", "(%s)", "x:%s"),
)


GLUED_TO_LETTERS = (
    *("token%s", "Token%s", "TOKEN%s", "-p%s", "n%s", "123%s", "x%s", "key%s.", "(key%s)", "ab%s", "Zugang%s", "mot%s"),
    *("value%s\n", "copied%s", "GitHub%s", "Copy%s", "a1%s", "0%s", "is%s,", "v2%s"),
)


@pytest.mark.parametrize("around", GLUED_TO_LETTERS)
def test_a_token_whose_mark_ends_no_word_is_replaced_also_behind_letters(around: str) -> None:
    seen = set()
    for form, mark in MARKED:
        for _, token in examples(form, mark)[:1] if not (form.glue or form.back) else ():
            assert token not in redact(around % token).text, (form.kind, mark)
            seen.add(form.kind)
    assert {"github-token", "gitlab-token", "slack-token", "npm-token", "pypi-token", "huggingface-token"} <= seen


@pytest.mark.parametrize("around", GLUED)
def test_a_token_behind_a_hyphen_or_an_underscore_is_replaced(around: str) -> None:
    for form, mark in MARKED:
        if "_" in form.glue or form.back or form.context or form.after_mark:
            continue
        for _, token in examples(form, mark)[:1]:
            assert token not in redact(around % token).text, (form.kind, mark)


@pytest.mark.parametrize(
    "value", ["gravel-tumbler-oxide-lantern", "Cobalt-Meadow-Thistle-Harbor", "lupine-orbit-saffron-pebble-quartz"]
)
def test_a_passphrase_of_joined_words_is_replaced_behind_the_name_of_a_password(value: str) -> None:
    assert len(JOINED) >= 20
    assert [form for form in JOINED if value in redact(form % value).text] == []


@pytest.mark.parametrize("value", DRAWN)
def test_a_password_with_punctuation_is_replaced_whole_in_the_basic_forms(value: str) -> None:
    assert len(DRAWN_FORMS) >= 20
    for form in DRAWN_FORMS:
        clean, kinds = Redactor().clean(form.replace("%s", value))
        assert len(kinds) == 1, form
        assert clean.rstrip(".") == form.replace("%s", f"[REDACTED:{kinds[0]}]").rstrip("."), form


def test_code_with_the_punctuation_of_such_passwords_stays() -> None:
    assert len(NOT_DRAWN) >= 20
    assert [(text, clean) for text in NOT_DRAWN if (clean := Redactor().clean(text)[0]) != text] == []


@pytest.mark.parametrize(("signs", "most"), [("!@#$%^&*", 0.01), ("()[]{},;.<>!-_", 0.05), (string.punctuation, 0.08)])
def test_of_passwords_that_a_manager_draws_few_are_kept_whole_or_in_part(signs: str, most: float) -> None:
    rng = random.Random(1)
    kept = []
    for form in DRAWN_FORMS:
        before, after = form.split("%s")
        quote = after[:1] or "\n"
        for _ in range(50):
            value = "".join(
                rng.choice(string.ascii_letters + string.digits + signs) for _ in range(rng.randint(14, 20))
            )
            value = "".join(char for char in value if char not in quote and ("://" not in form or char not in "/@?#:"))
            clean = redact(before + value + after).text
            mark = clean.removeprefix(before).removesuffix(after)
            if any(map(str.isalnum, re.sub(r"\[REDACTED:[a-z-]+\]", "", mark))):
                kept.append((before + value + after, clean))
    assert len(kept) <= most * 50 * len(DRAWN_FORMS), kept[:20]


def test_random_values_beside_key_and_the_tokens_of_bots_are_replaced() -> None:
    """Values without a word for a secret beside them, and the argument of a format."""
    rng = random.Random(3)
    for number in range(20):
        key, bot = shaped(rng, "{a40}"), base64.b64encode(f"{10**17 * (number % 9 + 1) + number}".encode()).decode()
        bot = f"{bot.rstrip('=')}.{shaped(rng, '{w6}.{w38}')}"
        for form, value in [
            ("My key\n%s\n", key),
            ("Key\n%s", key),
            ("the key is %s", key),
            ("Use this key for maps: %s", key),
            ("| service | key |\n|---|---|\n| maps | %s |", key),
            ("service,key\nmaps,%s\n", key),
            ("printf '%%s' '%s' | kubectl create secret generic db --from-file=/dev/stdin", key),
            ("AUTH PLAIN %s", key),
            ('os.environ.get("DB_PASSWORD", "%s")', key),
            ('@click.option("--password", default="%s")', key),
            ("it runs with %s since Monday", bot),
            ("client.run('%s')", bot),
            ("https://p.westeurope.logic.azure.com/invoke?api-version=1&sp=run&sv=1.0&sig=%s", shaped(rng, "{w43}")),
        ]:
            text = form.replace("%s", value).replace("%" + value, "%s")
            clean, kinds = Redactor().clean(text)
            assert len(kinds) == 1
            assert clean == text.replace(value, f"[REDACTED:{kinds[0]}]")


def test_each_of_many_values_in_a_list_a_section_and_an_insert_is_replaced() -> None:
    rng = random.Random(1)
    values = [shaped(rng, "{a24}") for _ in range(200)]
    texts = [
        "passwords = [" + ", ".join(f"'{value}'" for value in values) + "]",
        "secrets:\n" + "".join(f"  key{number}: {value}\n" for number, value in enumerate(values)),
        "INSERT INTO u (id, password) VALUES " + ",\n".join(f"({n}, '{value}')" for n, value in enumerate(values)),
    ]
    for text in texts:
        clean = Redactor().clean(text)[0]
        assert [value for value in values if value in clean] == []


def test_what_looks_like_it_without_a_secret_stays() -> None:
    changed = [(text, clean) for text in HARMLESS if (clean := Redactor().clean(text)[0]) != text]
    assert changed == []


@pytest.mark.parametrize(("form", "secret"), OTHERS)
def test_a_pin_a_passphrase_or_a_simple_password_is_replaced(form: str, secret: str) -> None:
    assert Redactor().clean(form.replace("%s", secret)) == (form.replace("%s", "[REDACTED:password]"), ("password",))


def test_what_people_jot_down_is_replaced() -> None:
    """The whole secret, with its exclamation mark, and nothing else."""
    for form, secret in NOTED:
        clean = form.replace("%s", "[REDACTED:password]")
        assert Redactor().clean(form.replace("%s", secret)) == (clean, ("password",))


@pytest.mark.parametrize(
    "forms",
    [
        CLAUSES,
        UNSIGNED,
        IN_MARKS,
        ASIDES,
        PARAMETERS,
        UUID_KEYS,
        RELATIVE,
        OWNED,
        MADE,
        SERVICE_KEYS,
        USED,
        CURRENT,
        BEFORE_LABELS,
        ARGUMENTS,
        SHOWN,
        DEFAULTS,
        TAKEN,
    ],
    ids=[
        "clauses",
        "unsigned",
        "marked",
        "asides",
        "urls",
        "uuids",
        "relative",
        "owned",
        "made",
        "service keys",
        "used",
        "current",
        "labels",
        "calls",
        "shown",
        "defaults",
        "taken",
    ],
)
def test_what_a_clause_brackets_or_a_url_hold_is_replaced_whole_and_nothing_else(forms: list[tuple[str, str]]) -> None:
    assert len(forms) >= 20
    for form, secret in forms:
        clean, kinds = Redactor().clean(form.replace("%s", secret))
        assert kinds in {("password",), ("credential",), ("aws-key",)}, form
        assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]")


@pytest.mark.parametrize("kind", [*CONTROLS, *CONTROLS_OF_CALLS])
def test_what_is_said_of_a_password_in_a_clause_brackets_or_a_url_stays(kind: str) -> None:
    texts = (CONTROLS | CONTROLS_OF_CALLS)[kind]
    assert len(texts) >= 20
    assert [(text, clean) for text in texts if (clean := Redactor().clean(text)[0]) != text] == []


def test_commands_without_a_token_stay() -> None:
    assert [(text, clean) for text in NOT_TAKEN if (clean := Redactor().clean(text)[0]) != text] == []


def test_a_password_that_a_statement_sets_is_replaced_whole_and_nothing_else() -> None:
    assert len(STATEMENTS) >= 30
    for form, secret in STATEMENTS:
        assert Redactor().clean(form.replace("%s", secret)) == (
            form.replace("%s", "[REDACTED:password]"),
            ("password",),
        )


@pytest.mark.parametrize("forms", [LISTS, SENTENCES, CHANGED, CHANGED_TO], ids=["lists", "sentences", "changed", "new"])
def test_each_secret_of_a_list_or_a_sentence_is_replaced_and_nothing_else(
    forms: list[tuple[str, tuple[str, ...]]],
) -> None:
    assert len(forms) >= 12
    for form, secrets_of_form in forms:
        text = form
        for secret in secrets_of_form:
            text = text.replace("%s", secret, 1)
        clean, kinds = Redactor().clean(text)
        assert kinds in {("password",), ("credential",)}, text
        assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]")


@pytest.mark.parametrize("kind", SET_NOTHING)
def test_placeholders_and_what_is_said_of_secrets_in_statements_stay(kind: str) -> None:
    assert len(SET_NOTHING[kind]) >= 12
    assert [(text, clean) for text in SET_NOTHING[kind] if (clean := Redactor().clean(text)[0]) != text] == []


def test_each_recovery_code_and_the_secret_of_an_authenticator_is_replaced() -> None:
    for form, secrets_of_form in CODES:
        clean = form.replace("%s", "[REDACTED:credential]")
        assert Redactor().clean(form % tuple(secrets_of_form)) == (clean, ("credential",))


@pytest.mark.parametrize("form", BLOBS)
def test_base64_beside_a_key_word_is_replaced_with_all_of_its_lines(form: str) -> None:
    rng = random.Random(form)
    text = base64.b64encode(f"anna:{shaped(rng, '{l18}')}".encode()).decode()
    for blob in (text, base64.b64encode(rng.randbytes(33)).decode()):
        assert blob not in Redactor().clean(form.replace("%s", blob))[0]
    lines = base64.encodebytes(rng.randbytes(150)).decode().strip()
    assert not any(line in Redactor().clean("credentials: " + lines + "\nnext")[0] for line in lines.split("\n"))


def test_texts_about_credentials_are_unchanged() -> None:
    for text in CLEAN:
        assert Redactor().clean(text) == (text, ())


@pytest.mark.parametrize("text", CLEAN_TEXTS)
def test_a_note_about_commands_code_or_logs_is_unchanged(text: str) -> None:
    assert Redactor().clean(text) == (text, ())


@pytest.mark.parametrize("seed", SEEDS)
def test_joined_notes_without_secrets_are_unchanged(seed: int) -> None:
    """A word of one note never makes a secret of a word in another."""
    texts = random.Random(seed).sample(CLEAN_TEXTS, len(CLEAN_TEXTS))
    note = "\n\n".join(texts)
    assert Redactor().clean(note) == (note, ())


@pytest.mark.parametrize(
    "name", ["seed phrase: ", "Recovery phrase: ", "mnemonic: ", 'MNEMONIC="', "backup phrase is "]
)
def test_every_seed_phrase_of_a_wallet_is_replaced(name: str) -> None:
    words = [
        "witch",
        "salt",
        "key",
        "feed",
        "length",
        "again",
        "open",
        "change",
        "must",
        "road",
        "than",
        "letter",
        "symbol",
        "page",
        "text",
        "only",
        "use",
        "wrong",
    ]
    words += ["random", "empty", "field", "long", "match", "type"]
    for count in (12, 15, 18, 21, 24):
        phrase = " ".join(words[:count])
        assert phrase not in redact(f"{name}{phrase}" + ('"' if name.endswith('"') else "")).text


@pytest.mark.parametrize(
    "text",
    [
        "recovery phrase: the words are printed on the card that came with the box",
        "seed phrase: keep the twelve words safe and never show them to anyone else ever",
        "mnemonic: every good boy does fine",
        "seed phrase: required",
    ],
)
def test_a_sentence_about_seed_phrases_stays(text: str) -> None:
    assert redact(text).text == text


LETTERS_ALONE = ("OpHHdNOwDQ", "kvQwErTyUi", "aBcXyZpQrLm", "GhTTrewQsA")


def test_a_variable_of_the_environment_may_have_a_value_of_letters_alone() -> None:
    forms = [
        *("DB_PASSWORD=%s", "export PGPASSWORD=%s", "POSTGRES_PASSWORD='%s'", 'ADMIN_PASSWD="%s"', "JWT_SECRET=%s"),
        *("docker run -e MYSQL_ROOT_PASSWORD=%s mysql:8", "MAIL_PASS=%s\nMAIL_HOST=mx", "API_KEY=%s", "REDIS_PWD=%s"),
        *("set it with `NPM_TOKEN=%s npm publish`", "SECRET_KEY=%s", "SIGNING_PASSPHRASE=%s make release"),
    ]
    for form in forms:
        for value in LETTERS_ALONE:
            clean, kinds = redact(form % value).text, redact(form % value).kinds
            assert clean == form % f"[REDACTED:{kinds[0]}]"
    for text in (
        *("DB_PASSWORD=changeme", "PASSWORD=required", "PASS=TestRedact", "TOKEN=fromKeychain", "API_KEY=$OTHER"),
        *("SECRET=", "PASSWORD=string", "db_password=OurVault", "HASH=OpHHdNOwDQ", "MAX_TOKENS=fooBarBaz"),
    ):
        assert redact(text).text == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('requests.get(url, auth=("anna", "s3cr3tpw"))', "s3cr3tpw"),
        ("session.auth = ('anna@example.de', 'correcthorse')", "correcthorse"),
        ('HTTPBasicAuth("anna", "winterlake")', "winterlake"),
        ('new PasswordAuthentication("anna", "winterlake")', "winterlake"),
        ("echo hunter22 | sudo -S apt update", "hunter22"),
        ("printf 'swordfish' | sudo -S true", "swordfish"),
        ('curl -H "Authorization: Bearer Winter2025xyz" https://x', "Winter2025xyz"),
        ("Authorization: Bearer tops3cret", "tops3cret"),
        ("git clone https://8d7f6a5b4c3d2e1f8d7f6a5b4c3d2e1f8d7f6a5b@git.example.org/x.git", "8d7f6a5b4c3d2e1f"),
        ("token: MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    ],
)
def test_a_password_that_is_an_argument_or_has_no_name_beside_it_is_replaced(text: str, secret: str) -> None:
    assert secret not in redact(text).text
    assert "[REDACTED:" in redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        'auth=("user", "password")',
        "auth=(user, password)",
        'basicAuth("anna", "changeme")',
        "echo y | sudo -S",
        "echo $PW | sudo -S ls",
        "Authorization: Bearer TOKEN",
        "Authorization: Bearer <token>",
        "Authorization: Bearer required",
        "https://8d7f6a5b4c3d2e1f8d7f6a5b4c3d2e1f@o12.ingest.sentry.io/1",
        "password: settings.createHash256And.fooBar",
    ],
)
def test_a_name_or_a_placeholder_in_these_places_is_unchanged(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("form", ["seed phrase: %s", "Seed phrase:\n%s\n", "mnemonic:\n\n%s", "recovery phrase is %s"])
@pytest.mark.parametrize("between", ["%d. %s ", "%d. %s\n", "%d) %s, ", "%d: %s\n"])
def test_a_seed_phrase_with_its_words_numbered_is_replaced(form: str, between: str) -> None:
    words = [
        "witch",
        "collapse",
        "practice",
        "feed",
        "shame",
        "open",
        "despair",
        "creek",
        "road",
        "again",
        "ice",
        "least",
    ]
    phrase = "".join(between % (at, word) for at, word in enumerate(words, 1)).rstrip(" ,\n")
    clean = redact(form % phrase).text
    assert not any(word in clean for word in words[1:])
    below = redact(form % phrase + "\nplease keep this offline somewhere").text
    assert "witch" not in below
    assert "keep this offline" in below


SIGNS = [f"%{code:02X}" for code in range(0x20, 0x7F)]


@pytest.mark.parametrize("scheme", ["postgres", "mongodb+srv", "redis", "amqp", "smtps", "https", "mysql"])
def test_a_password_in_an_address_is_replaced_whatever_sign_is_written_by_its_number(scheme: str) -> None:
    for sign in SIGNS:
        for password in (f"kJ8{sign}q2LmZt9", f"{sign}kJ8q2LmZt9", f"kJ8q2LmZt9{sign}"):
            for user in ("app", f"app{sign}corp.com"):
                text = f"{scheme}://{user}:{password}@db.internal/prod"
                assert "q2LmZt9" not in redact(text).text, text
    for text in (
        "https://example.org/a%20b?page=1%2F2",
        "postgres://app:%PASSWORD%@db/x",
        "postgres://app:%s@db/x",
        "https://example.org/%40anna:8080/x",
    ):
        assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        *("?password=Fr1tz%26B0x99&x=1", "username=anna&password=Fr1tz%20B0x99", "Cookie: sessionid=Fr1tz%22B0x99ghi"),
        *('{"user":"anna","password":"Fr1tz B0x99!"}', 'password: "Fr1tz B0x99!"', "DB_PASSWORD='Fr1tz B0x99!'"),
        *("<password>Fr1tz B0x99!</password>", 'mysql -p"Fr1tz B0x99!" shop', 'sshpass -p "Fr1tz B0x99!" ssh x'),
        *("curl -u 'anna:Fr1tz B0x99' https://x", 'Passwort: "Fr1tz und B0x99!"'),
    ],
)
def test_a_password_with_a_blank_or_an_encoded_sign_is_replaced_as_a_whole(text: str) -> None:
    clean = redact(text).text
    assert "B0x99" not in clean
    assert "[REDACTED:" in clean


@pytest.mark.parametrize(
    "text",
    [
        *('password: "must have 8 characters"', 'password: "Please enter 2 digits"', 'password: "see page 12"'),
        *('error: "password too short: got 5"', '{"password": "expires in 30d"}', '{"token": "Page 2 of 3"}'),
        *('password = "OAuth2 or SAML"', "100%25 of passwords are hashed", "password%20reset%20v2"),
        *('"password": "min 8 chars"', 'mysql -u "anna" -p shop', 'curl -u "anna" https://x "a b"'),
    ],
)
def test_words_about_passwords_in_quotation_marks_are_unchanged(text: str) -> None:
    assert redact(text).text == text
