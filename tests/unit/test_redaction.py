"""Secrets never reach the store, and ordinary text is unchanged."""

from __future__ import annotations

import base64
import json
import random
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signet_actors.domain import windowed_search
from signet_actors.domain.normalization import collapsed, storage_content
from signet_actors.domain.redaction.scan import MAX_CACHED_TEXTS, MAX_SECRETS, Redactor, redact
from signet_actors.errors import ErrorCode, InvalidRequest

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
HEX = "0123456789abcdef"


def made(count: int, alphabet: str = ALNUM, seed: int = 7) -> str:
    """``count`` characters, always the same ones, never without a digit and a letter where the alphabet has both."""
    rng = random.Random(f"{seed}{count}{alphabet}")
    text = "".join(rng.choice(alphabet) for _ in range(count))
    wanted = [kind for kind in (DIGITS, LOWER, UPPER) if set(kind) & set(alphabet)]
    fixed = "".join(rng.choice([char for char in kind if char in alphabet]) for kind in wanted)
    return fixed + text[len(fixed) :]


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def pem(kind: str, newline: str = "\n", *, end: bool = True) -> str:
    dashes = "-" * 5
    body = newline.join(made(64, seed=line) for line in range(4))
    tail = f"{newline}{dashes}END {kind}{dashes}" if end else ""
    return f"{dashes}BEGIN {kind}{dashes}{newline}{body}{tail}"


JWT = ".".join((b64({"alg": "HS256", "typ": "JWT"}), b64({"sub": "1", "iat": 1}), made(43)))

# (sentence with %s, secret): the secret is built here, so that no complete one is in the repository.
SECRETS = [
    ("the deploy key is %s, rotate it", "AK" + "IA" + made(16, UPPER + DIGITS)),
    ("temporary key %s", "AS" + "IA" + made(16, UPPER + DIGITS)),
    ('aws_secret_access_key = "%s"', made(40)),
    ("export AWS_SECRET_ACCESS_KEY=%s", made(38) + "/+"),
    ("CI clones with %s", "gh" + "p_" + made(36)),
    ("server token %s.", "gh" + "s_" + made(36)),
    ("refresh with %s!", "gh" + "r_" + made(76)),
    ("fine-grained: %s", "github" + "_pat_" + made(22) + "_" + made(59)),
    ("gitlab runner uses %s", "gl" + "pat-" + made(20)),
    ("slack bot %s", "xo" + "xb-" + made(12, DIGITS) + "-" + made(12, DIGITS) + "-" + made(24, LOWER + DIGITS)),
    (
        "post to %s",
        "https://hooks.slack" + ".com/services/T" + made(8, UPPER) + "/B" + made(8, UPPER) + "/" + made(24),
    ),
    ("stripe %s", "sk_" + "live_" + made(24)),
    ("stripe test %s", "sk_" + "test_" + made(24)),
    ("restricted %s", "rk_" + "live_" + made(24)),
    ("webhook signing %s", "wh" + "sec_" + made(32)),
    ("openai %s", "sk-" + made(20) + "T3Blbk" + "FJ" + made(20)),
    ("openai project %s", "sk-" + "proj-" + made(48)),
    ("anthropic %s", "sk-" + "ant-api03-" + made(90)),
    ("router %s", "sk-" + "or-v1-" + made(64, HEX)),
    ("groq %s", "gs" + "k_" + made(52)),
    ("pypi %s", "pypi-" + "AgEIcHlwaS5vcmc" + made(80)),
    ("npm %s", "np" + "m_" + made(36)),
    ("//registry.npmjs.org/:_authToken=%s", made(36, HEX)),
    ("sendgrid %s", "S" + "G." + made(22) + "." + made(43)),
    ("telegram bot %s", made(9, DIGITS) + ":" + made(35)),
    ("twilio %s", "S" + "K" + made(32, HEX)),
    ("mailchimp %s", made(32, HEX) + "-us" + "12"),
    ("square %s", "sq0" + "csp-" + made(43)),
    ("discord %s", "M" + made(23) + "." + made(6) + "." + made(27)),
    ("AccountName=x;AccountKey=%s;", made(86) + "=="),
    ("google maps %s", "AI" + "za" + made(35)),
    ("oauth %s", "GOC" + "SPX-" + made(28)),
    ("hugging face %s", "h" + "f_" + made(34)),
    ("digital ocean %s", "do" + "p_v1_" + made(64, HEX)),
    ("shopify %s", "shp" + "at_" + made(32, HEX)),
    ("vault %s", "hv" + "s." + made(24)),
    ("linear %s", "lin_" + "api_" + made(40)),
    ("docker %s", "dckr" + "_pat_" + made(27)),
    ("grafana %s", "gl" + "sa_" + made(32) + "_" + made(8, HEX)),
    ("age %s", "AGE-" + "SECRET-KEY-1" + made(58, UPPER + DIGITS)),
    ("the session is %s", JWT),
    ("curl -H 'Authorization: Bearer %s' localhost", made(40)),
    ("Authorization: Basic %s", base64.b64encode(b"admin:" + made(12).encode()).decode()),
    ("Authorization: token %s", made(40, HEX)),
    ("connect to postgres://app:%s@db.internal:5432/main", "s3" + "cr" + "ETpw"),
    ("redis://:%s@cache:6379/0", "hun" + "ter2!x"),
    ("mongodb+srv://root:%s@cluster0.mongodb.net", "p4" + "ss-w" + "0rd"),
    ("curl -u admin:%s https://ci.internal/job", "Tr0ub" + "4dor&3"),
    ("password=%s", "hun" + "ter2xyz"),
    ('password = "%s"', "hun" + "ter2!"),
    ("the staging password: %s", "hun" + "ter22"),
    ("the root password is %s", "Tr0ub" + "4dor&3"),
    ("password: %s for the staging db", "hun" + "ter2"),
    ("The staging password: %s, user: deploy", "hun" + "ter2"),
    ("Passwort: %s für die Datenbank, Port 5433", "hun" + "ter2"),
    ("staging (password: %s) listens on 5433", "hun" + "ter2"),
    ("db password: %s (rotates in May)", "s3" + "same"),
    ("ssh passphrase: %s - ask Ann before you use it", "k1tt" + "ens"),
    ("wifi password: %s. The router is in the hall.", "sun" + "flower7"),
    ("pwd: %s user: admin", "ab" + "c123x"),
    ("DB_PASSWORD=%s in .env", "x9$k" + "Lm2qQ"),
    ("PGPASSWORD='%s' psql", "x9k" + "Lm2qQ"),
    ('{"client_secret": "%s"}', made(32)),
    ("api_key: %s", made(32)),
    ("apiKey=%s", made(24)),
    ("X-Api-Key: %s", made(32, HEX)),
    ("service run --token %s", made(24)),
    ("spring.datasource.password=%s", "w3" + "lc0me!"),
    ("signing_key := '%s'", made(32, HEX)),
    ("%s", pem("RSA PRIVATE KEY")),
    ("key file: %s and then", pem("OPENSSH PRIVATE KEY")),
    ("%s", pem("PRIVATE KEY", " ")),
    ('"private_key": "%s"', pem("PRIVATE KEY", "\\n")),
    ("cut off: %s", pem("EC PRIVATE KEY", end=False)),
    ("%s", pem("PGP PRIVATE KEY BLOCK")),
]

CLEAN = """\
The password field is required and must be at least 12 characters long.
Tokens are counted with tiktoken; the context window is 128000 tokens.
Set max_tokens=4096 and temperature=0.2 for the extraction call.
The API key is read from OPENAI_API_KEY at start-up.
api_key = os.environ["OPENAI_API_KEY_2"]
apiKey: process.env.ANTHROPIC_API_KEY
token = settings.github_token2
password: required, secret: optional
The secret is to keep transactions short.
Our password policy: bcrypt with 12 rounds.
password: argon2id with 64 MiB and 3 passes
password: ask Bob for it
password: see the vault, section 3, for the staging db
password: 10-digit or longer, with a symbol
password: 16chars at least
password: OPS-1234 and OPS-1235 track the rotation
password: server12 has the old one
password: level2 users need a second factor
password: cache-server-12, cache-server-13 and the bastion
password: python3 for the hash, openssl for the rest
password: sha256 and a salt, then base64 for transport
password: none for the local db
password: v2 for new users, v1 until May
password: changed on 2024-05-01, next in May
password: 2024-05-01 or later needs a reset
password: bcrypt for the web, argon2id for the app
The wifi password: ask at the desk, room12 or room13.
The signing key is derived with HKDF-SHA256 from the master secret.
secret=sha256 of the body
Bearer authentication is required for every route in team mode.
The Authorization: Bearer header must have exactly two parts.
Use "Authorization: Bearer <token>" in every request.
curl -H "Authorization: Bearer $TOKEN" http://localhost:3850/health
Call login(password="password") in the fixture.
postgres://user:password@localhost:5432/db is the shape of the URL.
postgres://user:${DB_PASSWORD}@localhost/db is expanded by compose.
The daemon listens on http://localhost:3850 and answers /health.
git clone git@github.com:acme/widgets.git over ssh.
See https://example.com:8443/docs/@scope/package for details.
The primary key is (agent_id, session_key) and the foreign key points at memories.id.
session_key: agent:alice:main-2 is routed to the agent alice.
The key files are search.py, recall.py and keyword.py.
Press the key combination Ctrl+K2 twice.
The idempotency_key=import-2024-05-01 makes the retry harmless.
Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the build.
The sha256 of the file is b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9.
Job 550e8400-e29b-41d4-a716-446655440000 went to the dead letters.
Trace id 018f2b6a-1c1d-7a3e-8b1a-2f4c5d6e7f80 shows the slow commit.
-----BEGIN CERTIFICATE----- is public and may be committed.
The file starts with -----BEGIN PRIVATE KEY----- and ends with the matching line.
The public key is ssh-ed25519 and lives in authorized_keys.
The user prefers sk-learn over xgboost for the baseline.
We use task-queue-manager-for-background-jobs as the service name.
The token bucket refills at 10 tokens per second.
Next page token: 2 and page size: 50.
next_page_token=abc123def456 goes back as a query parameter.
confirm_token=abcdefgh12345678 comes from the preview.
fencing_token=184467 is checked in the same transaction.
The password was changed on 2024-05-01 by the operator.
The secret santa list has 12 people.
Secrets are redacted before anything is committed.
The access key rotates every 90 days.
Credential helpers: osxkeychain, libsecret, manager-core.
token_type: "Bearer", expires_in: 3600
"token": "string", "password": "string"
The passphrase prompt hangs when stdin is closed.
bypass: set SIGNET_BYPASS=1 to skip the hooks.
Passing tests: 1284, failing: 3.
The compass app uses AKCelerate as its engine.
APACHEKAFKA topics are named orders.v2 and payments.v3.
ACCOUNTING reports are due on 2024-06-30.
The SG.1 release notes mention eyJ only as an example prefix.
My password manager is 1Password 8 on macOS 14.
secret: see the vault at /run/secrets/db_password_1
password_file=/etc/signet/password1.txt
--token FILE reads the token from a file.
The webhook secret is stored in .daemon/secret with mode 0600.
private_key_path: ~/.ssh/id_ed25519
The encryption key: AES-256-GCM, rotated by KMS.
Use OAuth2 tokens; the token is JWT-encoded and short-lived.
The auth token: OAuth2Bearer as RFC6750 says.
The license key: none; the code is MIT licensed.
uses a token=HS256 header
if (token === "EOF") then the parser stops: tokenizer, lexer, parser.
v1.2.3-beta.4+build.567 is the version of the client.
ERR_4821 appears when the writer's mailbox is full.
The model is qwen3:4b and the endpoint is http://127.0.0.1:11434/v1.
User said: I always forget where the spare key is; it is under the pot.
The ratio is 3:1, the meeting at 10:30, the score 21:19.
Email max.mustermann@example.org about the invoice 2024-0815.
""".splitlines()


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor()


def test_the_corpora_are_as_large_as_promised() -> None:
    assert len(SECRETS) >= 40
    assert len(CLEAN) >= 60


@pytest.mark.parametrize(("sentence", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_replaced_completely(redactor: Redactor, sentence: str, secret: str) -> None:
    redacted, count, _ = redact(sentence % secret)
    assert count == 1
    assert "[REDACTED:" in redacted
    assert secret not in redacted
    assert not any(secret[at : at + 8] in redacted for at in range(0, len(secret) - 8, 4))


@pytest.mark.parametrize(("sentence", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_redaction_is_idempotent(redactor: Redactor, sentence: str, secret: str) -> None:
    redacted, _, _ = redact(sentence % secret)
    assert redact(redacted) == (redacted, 0, ())


@pytest.mark.parametrize("sentence", CLEAN)
def test_technical_prose_without_secrets_is_unchanged(redactor: Redactor, sentence: str) -> None:
    assert redact(sentence) == (sentence, 0, ())


def test_the_text_around_a_secret_is_unchanged(redactor: Redactor) -> None:
    redacted, _, _ = redact("connect to postgres://app:" + "s3cr" + "ETpw@db.internal:5432/main today")
    assert redacted == "connect to postgres://app:[REDACTED:url-password]@db.internal:5432/main today"


def test_several_secrets_are_counted_one_by_one(redactor: Redactor) -> None:
    text = f"first {'gh' + 'p_' + made(36)}, then {'AK' + 'IA' + made(16, UPPER + DIGITS)}; api_key={made(24)}"
    redacted, count, _ = redact(text)
    assert count == 3
    assert redacted == "first [REDACTED:github-token], then [REDACTED:aws-key]; api_key=[REDACTED:credential]"


def test_all_secrets_in_one_text_are_found(redactor: Redactor) -> None:
    text = "\n".join(sentence % secret for sentence, secret in SECRETS)
    redacted, count, _ = redact(text)
    assert count >= len(SECRETS) - 2
    assert not any(secret in redacted for _, secret in SECRETS)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_no_text_raises_an_error(text: str) -> None:
    redacted, count, _ = redact(text)
    assert (redacted == text) == (count == 0)


@pytest.mark.parametrize(
    "text",
    [
        "password " * 3000,
        "a" * 50_000 + "password=",
        "-----BEGIN PRIVATE KEY-----" * 800,
        "://a:" * 8000,
        "key_" * 12_000,
        "eyJ" * 15_000 + "." * 1000,
        "-u a:" * 8000,
        "curl " * 8000 + "-u ",
        "Bearer " + "a" * 50_000,
        "token: " * 7000,
        "key-----" * 6000,
        "Private-Lines: 1 " + "A" * 50_000,
    ],
    ids=range(12),
)
def test_hostile_text_costs_no_more_than_linear_time(redactor: Redactor, text: str) -> None:
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 20.0


T3 = "T3Blbk" + "FJ"

# (what is repeated, what stands once at the end): each was quadratic, cubic or exponential once.
GROWING = [
    ("pass" + "word=aaaaaa1 ", ""),
    ("=eyJ", ""),
    ("=eyJ", "."),
    ("sk-", f" {T3}"),
    ("secret: " + "a" * 60 + "!A1 ", ""),
    ("softlayer_api_key" + " " * 4000, ""),
    ("cloudant_api_key" + " " * 4000, ""),
    ("ibm_api_key" + " " * 4000, ""),
    ("cos_secret_access_key" + " " * 4000, ""),
    ("a" + " " * 4000, ""),
    ("xo" + "xb-1-1-1-", "!"),
    ("curl -u a ", ""),
    ("token=" + "." * 250 + "a1 ", ""),
]


@pytest.mark.parametrize(("unit", "end"), GROWING, ids=range(len(GROWING)))
def test_four_times_the_text_takes_about_four_times_as_long(redactor: Redactor, unit: str, end: str) -> None:
    def seconds(chars: int) -> float:
        text = unit * (chars // len(unit)) + end
        spent = []
        for _ in range(3):
            started = time.process_time()
            redactor.clean(text)
            spent.append(time.process_time() - started)
        return min(spent)

    # Quadratic would be 16 times; the constant keeps the noise of very short times out. A busy machine measures again.
    assert any(seconds(120_000) < 9 * seconds(30_000) + 0.01 for _ in range(5))


def test_a_text_with_more_secrets_than_a_memory_has_is_refused(redactor: Redactor) -> None:
    unit = "pass" + "word=aaaaaa1 "
    redacted, count, _ = redact(unit * MAX_SECRETS)
    assert count == MAX_SECRETS
    assert "aaaaaa1" not in redacted
    with pytest.raises(InvalidRequest) as refused:
        redact(unit * (MAX_SECRETS + 1))
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize(("sentence", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_found_at_every_edge_of_a_window_of_a_long_text(
    redactor: Redactor, sentence: str, secret: str
) -> None:
    filler = "The harbour keeps its own calendar of tides. " * (2 * windowed_search.WINDOW // 45)
    for shift in (0, 1, len(sentence) // 2, len(sentence) - 1, len(sentence)):
        cut = windowed_search.WINDOW - shift
        clean, count, _ = redact(f"{filler[:cut]}\n{sentence % secret}\n{filler}")
        assert count >= 1
        assert secret not in clean


@pytest.mark.parametrize("length", [255, 256, 257, 400, 2000])
@pytest.mark.parametrize("padding", ["", "word " * 8000])
@pytest.mark.parametrize(
    "sentence",
    [
        "password={} and more",
        'api_key="{}" and more',
        "token: '{}' and more",
        "secret: {} and more",
        "Authorization: Bearer {} and more",
        "https://user:{}@example.org/path",
        "curl -u bob:{} https://example.org",
        "deploy --password {} now",
    ],
)
def test_a_secret_of_any_length_is_replaced_completely(
    redactor: Redactor, sentence: str, padding: str, length: int
) -> None:
    secret = made(length)
    before, after = sentence.split("{}")
    clean, _ = redactor.clean(padding + sentence.format(secret))
    assert clean.startswith(padding + before)
    assert clean.endswith("]" + after)
    assert secret[:12] not in clean
    assert secret[-12:] not in clean


def test_of_overlapping_matches_the_longest_is_replaced(redactor: Redactor) -> None:
    token = "gh" + "p_" + made(36)
    redacted, count, _ = redact(f"postgres://app:{token}@db/x and pass" + f"word={token}/more")
    assert count == 2
    assert token not in redacted
    assert "/more" not in redacted


@pytest.mark.parametrize(("sentence", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_redacted_text_has_no_secret_after_collapsing_white_space(
    redactor: Redactor, sentence: str, secret: str
) -> None:
    # A command continues on the next line only after a backslash.
    blanks = " \\\n \t  " if sentence.startswith("curl -u") else " \n \t  "
    text = (sentence % secret).replace(" ", blanks)
    clean, found = redactor.clean(text)
    assert found
    assert redact(collapsed(clean)) == (collapsed(clean), 0, ())
    if " " not in secret:
        assert secret not in collapsed(clean)


def test_a_secret_split_by_line_breaks_is_replaced_and_the_layout_stays(redactor: Redactor) -> None:
    secret = "Xk9" + "vQ2mZp7LrT4w"
    gap = "\n" * 99
    text = f"services:\n\tweb:\x00  on\n\n    password =\n{gap}      {secret}\n\ufeff  port:   8080"
    assert redact(text).found == 0
    assert redactor.clean(text) == (
        f"services:\n\tweb:  on\n\n    password =\n{gap}      [REDACTED:password]\n\ufeff  port:   8080",
        ("password",),
    )


@pytest.mark.parametrize("sentence", CLEAN)
def test_prose_in_many_lines_is_unchanged(redactor: Redactor, sentence: str) -> None:
    text = sentence.replace(" ", "  ")
    assert redactor.clean(text) == (text, ())


TEXTS = [*CLEAN, *(sentence % secret for sentence, secret in SECRETS), "", "  two  blanks ", "a\u00a0b", "\ufeff"]


@pytest.mark.parametrize("blank", [" ", "  ", " \n", "\u00a0"])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_stored_text_is_the_redacted_text_in_storage_form(redactor: Redactor, text: str, blank: str) -> None:
    text = text.replace(" ", blank)
    for _ in range(2):
        clean, found = redactor.clean(text)
        assert redactor.clean_for_storage(text) == (storage_content(clean), found)


def test_only_texts_without_secrets_are_cached() -> None:
    redactor = Redactor()
    secret = "token ghp_" + "a1B2" * 9
    for _ in range(3):
        assert redactor.clean("project-7") == ("project-7", ())
        assert redactor.clean(secret)[1]
    for number in range(2 * MAX_CACHED_TEXTS):
        redactor.clean(f"tag-{number}")
    assert len(redactor.known_clean) <= MAX_CACHED_TEXTS


KEY_LINES = tuple(made(48, seed=line) for line in range(3))
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join((BEGIN, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0011", "", *KEY_LINES)),
        "\n".join(f"> {line}" for line in (BEGIN, *KEY_LINES)),
        "\n".join(f"{number} {line}" for number, line in enumerate((BEGIN, *KEY_LINES), 1)),
        "\n".join((BEGIN, "Comment: -----x-----", *KEY_LINES, END)),
        "\n".join((BEGIN, f"  {KEY_LINES[0]}", " -- comment -----", *KEY_LINES[1:], END)),
        f'key = ("{BEGIN}\\n" "{KEY_LINES[0]}\\n"\n "{KEY_LINES[1]}\\n" "{KEY_LINES[2]}")',
    ],
    ids=["headers", "quoted", "numbered", "dashes in a header", "dashes between lines", "string literals"],
)
def test_every_line_of_a_private_key_is_replaced(text: str) -> None:
    cleaned = redact(text).text
    assert not any(line in cleaned for line in KEY_LINES)
    assert "[REDACTED:private-key]" in cleaned
