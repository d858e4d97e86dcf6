# ruff: noqa: RUF001  the dashes of prose are meant
"""Secrets are found in manifests, tables, HTML, request headers and sentences, and what stands beside them stays."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest

from signet_actors.domain.redaction.scan import Redactor, redact
from signet_actors.domain.text_cut import ends_of
from signet_actors.hook import harness_events
from tests.support.listed_spellings import IRREGULAR, ORDINARY, SPELLINGS
from tests.support.listed_spellings import VALUES as LISTED_VALUES


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


NAME, ADDRESS = encoded("prodb"), encoded("orders://anna@shop")
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "shop", "labels": {"team": "orders"}},
    "data": {"dbname": NAME, "dsn": ADDRESS, "tls.crt": encoded("public")},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "public-mode"}}
ITEM = "- data:\n    mode: public-mode\n  kind: ConfigMap\n"
YAML = f"kind: Secret\ndata:\n  dbname: {NAME}\n  dsn: {ADDRESS}\n"
MANIFESTS = [
    json.dumps(SECRET),
    json.dumps(SECRET, indent=2),
    json.dumps(SECRET, indent=4, sort_keys=True),
    json.dumps(SECRET, separators=(",", ":")),
    json.dumps(SECRET, indent="\t"),
    json.dumps({"apiVersion": "v1", "items": [SECRET, CONFIG], "kind": "List"}, indent=4),
    json.dumps({"kind": "SecretList", "items": [{"metadata": {}, "data": SECRET["data"]}]}),
    json.dumps([CONFIG, SECRET]),
    "$ kubectl get secret shop -o json\n" + json.dumps(SECRET, indent=4) + "\n$ kubectl get pods",
    'the 5" screen says {' + "\n" + json.dumps(SECRET),
    json.dumps({"log": json.dumps(SECRET)}),
    json.dumps({"log": json.dumps(SECRET, indent=2)}),
    json.dumps({"outer": json.dumps({"log": json.dumps(SECRET)})}),
    str(SECRET),
    json.dumps(SECRET)[:-1],
    f'{{ "data" : {{ "dbname" : "{NAME}" , "dsn" : "{ADDRESS}" }} , "kind" : "Secret" }}',
    YAML,
    YAML.replace("\n", "\r\n"),
    f"# the shop\nkind: Secret # opaque\ndata: # base64\n  # the name\n  dbname: {NAME} # short\n\n  dsn: {ADDRESS}\n",
    f"kind: Secret\ndata: {{dbname: {NAME}, dsn: {ADDRESS}}}\n",
    f"kind: Secret\ndata: {{\"dbname\": \"{NAME}\", 'dsn': '{ADDRESS}'}}\n",
    f'"kind": "Secret"\n"data":\n  "dbname": "{NAME}"\n  dsn: \'{ADDRESS}\' # quoted\n',
    f"kind: Secret\ndata:\n  dbname: >-\n    {NAME}\n  dsn:\n    {ADDRESS}\n",
    f"items:\n- data:\n    dbname: {NAME}\n    dsn: {ADDRESS}\n  kind: Secret\n{ITEM}kind: List\n",
    f"- kind: Secret\n  data:\n    dbname: {NAME}\n    dsn: {ADDRESS}\n{ITEM}",
    f"```yaml\n{YAML}```\n\n```yaml\nkind: ConfigMap\ndata:\n  mode: public-mode\n```\n",
    "\n".join("> " + line for line in YAML.splitlines()),
    "\n".join("+" + line for line in YAML.splitlines()),
    "\n".join("    " + line for line in YAML.splitlines()),
    "Apply this:\n\n" + YAML + "\nand then restart the pods.",
]
OTHER_MANIFESTS = [
    json.dumps(CONFIG),
    json.dumps({"kind": "SecretStore", "data": {"dbname": NAME}}),
    json.dumps({"kind": "ExternalSecret", "data": {"dbname": NAME}, "secretRef": "shop"}),
    json.dumps({"kind": "Secret", "data": {"tls.crt": NAME}}),
    json.dumps({"kind": "Secret", "metadata": {"name": "shop-orders"}}),
    json.dumps({"kind": "Secret", "data": {"dbname": "<base64>", "dsn": "${ADDRESS}"}}),
    json.dumps({"items": [{"kind": "Secret", "data": {}}, CONFIG]}),
    json.dumps({"event": {"kind": "Secret"}, "data": {"mode": "public-mode"}}),
    json.dumps({"data": {"mode": "public-mode"}, "note": "the kind: Secret of Kubernetes"}),
    'a text about "kind": "Secret" and "data": {"mode": "public-mode"}',
    "kind: ConfigMap\ndata:\n  mode: public-mode\n---\nkind: Secret\nmetadata:\n  name: shop\n",
    "kind: SecretStore\ndata:\n  mode: public-mode\n",
    "kind: Secret\ntype: Opaque\nmetadata:\n  name: shop\n  labels:\n    team: orders\n",
    "kind: Secret\ndata:\n  tls.crt: cHVibGlj\n",
    "kind: Secret\ndata: {}\nimmutable: true\n",
    "kind: Secret\ndata:\n# nothing yet\nother: public-mode\n",
    f"kind: List\nitems:\n- kind: Secret\n  metadata:\n    name: shop\n{ITEM}",
    "The kind: Secret needs a key. See data: and stringData: in the manual.",
    "- kind: Secret\n- kind: ConfigMap\n  data:\n    mode: public-mode",
    "We keep each `kind: Secret` in Vault\ndata:\n  mode: public-mode",
]


def test_every_value_of_a_secret_is_replaced_whatever_its_manifest_is_written_in() -> None:
    for text in MANIFESTS:
        clean, kinds = Redactor().clean(text)
        assert NAME not in clean, text
        assert ADDRESS not in clean, text
        assert kinds == ("kubernetes-secret",)
        assert clean.replace("[REDACTED:kubernetes-secret]", "").count("public-mode") == text.count("public-mode")
        assert redact(clean).text == clean
        for kept in ("tls.crt", encoded("public"), "orders", "Secret", "and then restart the pods", "get pods"):
            assert (kept in clean) == (kept in text), (kept, text)


def test_the_other_manifests_stay() -> None:
    for text in OTHER_MANIFESTS:
        assert redact(text).text == text


COLUMNS = [
    'user,password\nanna,"%s"\n',
    '"user","password"\n"anna","%s"\n',
    '"user","password"\r\n"anna","%s"\r\n',
    'name,url,username,password\nBank,https://b.example,anna,"%s"',
    'name,password,note\nBank,"%s","a, b"',
    'name,note,password\nBank,"a, b, c","%s"',
    'user , password\nanna , "%s"',
    'login,Passwort\n"Meier, Anna","%s"',
    'user;password\nanna;"%s"',
    '"login";"Kennwort"\n"anna";"%s"',
    'user\tpassword\nanna\t"%s"',
    'utilisateur,mot de passe\nanna,"%s"',
    'usuario,contraseña\nana,"%s"',
    'user,password\nbob,""\nanna,"%s"',
    'The export:\nuser,password\nanna,"%s"\nThat is all.',
]
CELLS = [
    "Fr1tz,B0x!77",
    "pa,ss word",
    "Fr1tz B0x!77",
    'Fr1tz""B0x,77',
    "ab;cd,ef9",
    "correct horse battery staple",
    "q,w|e;r,t",
]
PLAIN_COLUMNS = [
    'user,password\nanna,"reset, see the mail"',
    'user,password\nanna,"required, 8 characters"',
    'rule,password\n1,"min 8 chars, one digit"',
    'field,password\ntype,"string,required"',
    'user,password\nanna,"expired, ask Bob"',
    'user,password\nanna,"1,234"',
    'user,password\nanna,"<hidden, sorry>"',
    'user,password\nanna,"***,***"',
    'user,note\nanna,"Fr1tz,B0x!77"',
    'password,note\n,"Fr1tz,B0x!77"',
    'user,password\nanna,see "Notes, part 2"',
    '"password policy","note"\n"at least 12, with a digit","ok"',
    "user\tpassword\nanna\tsee page 12",
    '| user | password |\n|---|---|\n| anna | "see, the vault" |',
    'name,token\nmaps,"valid, until 2026"',
    'city,country\n"Bonn, NRW","Germany, EU"',
    'user,password\n"anna","Vault, item 12"',
    'user,password\n"anna","changeme"',
    'x,password_hint\n1,"a,b c9d"',
    'print("user,password")\nprint("a,b")',
]


def test_a_cell_in_quotation_marks_is_replaced_whole_below_its_heading() -> None:
    for form in COLUMNS:
        for cell in CELLS:
            clean = form.replace("%s", "[REDACTED:password]")
            assert Redactor().clean(form.replace("%s", cell)) == (clean, ("password",)), form.replace("%s", cell)


def test_other_cells_stay() -> None:
    for text in PLAIN_COLUMNS:
        assert redact(text).text == text


NAMED = [
    *('API_TOKEN: "%s"', "API_TOKEN='%s'", 'api_key: "%s"', '"api_key": "%s"', 'apiKey = "%s"', "access_token: '%s'"),
    *('client_secret="%s"', 'SECRET_KEY="%s"', 'export GITHUB_TOKEN="%s"', '"clientSecret": "%s"', 'TOKEN="%s"'),
    *('private-key: "%s"', 'bot_token := "%s"', '{\\"api_token\\": \\"%s\\"}'),
    *("<api_key>%s</api_key>", 'DB_PASSWORD="%s"', 'db_password: "%s"', "x-api-key: '%s'", 'SIGNING_SECRET = "%s"'),
    *("&quot;api_key&quot;: &quot;%s&quot;", 'const refreshToken = "%s"', "WEBHOOK_SECRET: `%s`"),
]
VALUES = ["abc def 123 GHI", "s3cr3t Tok3nX9 QW", "9f2 44c aa1 b07", "Fr1tz B0x!77"]
LABELS = [
    *('API_TOKEN: "must have 32 characters"', 'api_key: "see page 12"', '"access_token": "expires in 3600 seconds"'),
    *('client_secret: "min 16 chars"', '"api_key": "API Key 2"', '"token": "Page 2 of 3"', 'secret: "Chapter 7 intro"'),
    *('API_KEY="your key 1"', 'API_KEY="<key 1 here>"', 'api_key: "${A} ${B2}"', 'token: "Release 5 candidate"'),
    *('"secret_key": "Enter your key"', "api_key: 'not set'", 'auth_token: "is read from env 2"', 'key: "abc def 123"'),
    *('"token": "user 12 logged out"', '"page_token": "abc def 123 GHI"', 'MAX_TOKENS="abc def 123"'),
    *(
        'api_key = "example key 123"',
        'api_key: "a, b and c"',
        '"credential": "Azure AD v2"',
        'API_KEY_NAME="Prod 2 eu"',
    ),
]


def test_a_value_with_blanks_is_replaced_beside_the_name_of_a_setting() -> None:
    for form in NAMED:
        for value in VALUES:
            clean, kinds = redact(form.replace("%s", value)).text, redact(form.replace("%s", value)).kinds
            assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]"), form.replace("%s", value)
    for text in LABELS:
        assert redact(text).text == text


ENTITIES = [
    *("password&#61;%s", "password&#x3d;%s", "password&#x3D;%s", "password&#0061;%s", "password&equals;%s"),
    *("password&#58; %s", "password&colon; %s", "&quot;password&quot;:&quot;%s&quot;", "password=&apos;%s&apos;"),
    *("&#34;password&#34;: &#34;%s&#34;", "&#x22;password&#x22;: &#x22;%s&#x22;", "password=&#39;%s&#39;"),
    *("&lt;password&gt;%s&lt;/password&gt;", "&#60;password&#62;%s&#60;/password&#62;", "pass&#119;ord=%s"),
    *("?user=anna&amp;password=%s&amp;x=1", "password&nbsp;=&nbsp;%s", "password:&#32;%s", "password&colon;&Tab;%s"),
    *("&amp;quot;password&amp;quot;: &amp;quot;%s&amp;quot;", "&ldquo;password&rdquo;: %s", "contrase&ntilde;a: %s"),
    *("Passwort f&uuml;r das WLAN: %s", "hunter &gt; password: %s", "DB_PASSWORD&#61;&quot;%s&quot;"),
]
ENTITY_TEXTS = [
    *(
        "&lt;password&gt; and &lt;/password&gt;",
        "password=&lt;your-password&gt;",
        "a &amp; b",
        "AT&T; R&D;",
        "&#9731; snow",
    ),
    *(
        "password &amp; token are required",
        "if (a &lt; b &amp;&amp; c &gt; d)",
        "?page=2&amp;sort=name2",
        "&quot;ok&quot;",
    ),
    *(
        "&notanentity; password",
        "password&colon; required",
        "token&#61;&lt;token&gt;",
        "x &#61; 5",
        "&copy; 2024 Pass2U",
    ),
    *(
        "password&#58; see manual/auth2.html",
        "&nbsp;&nbsp;password",
        "&fjlig;password",
        "&#x1F600; password",
        "&#99999999;",
    ),
    *("the password &mdash; required &mdash; is long", "&amp;lt;b&amp;gt;"),
]


def test_a_secret_is_found_among_the_entities_of_html() -> None:
    for form in ENTITIES:
        for value in ("Fr1tzB0x77", "Tr0ub4dor!3x"):
            assert redact(form.replace("%s", value)).text == form.replace("%s", "[REDACTED:password]"), form
    assert redact("password: Fr1tz&#33;B0x&amp;77").text == "password: [REDACTED:password]"
    assert redact("postgres&#58;//anna:Fr1tz&amp;B0x@db/x").text == "postgres&#58;//anna:[REDACTED:url-password]@db/x"
    for text in ENTITY_TEXTS:
        assert redact(text).text == text


def test_the_last_and_short_line_of_wrapped_base64_is_replaced_with_the_others() -> None:
    blob = base64.b64encode(bytes(range(7, 107))).decode()
    readable = encoded("user=anna;password=hunter2;host=db.example.org;port=5432;mode=ro;x=1234567890")
    for text in (blob, readable):
        for width in (44, 48, 60, 64, 76):
            lines = "\n".join(text[at : at + width] for at in range(0, len(text), width))
            for name in ("credentials (base64):", "credentials:", "auth: "):
                clean = redact(f"{name} {lines}\nnext").text
                assert clean == f"{name} [REDACTED:credential]\nnext", (name, width)
    for key in ("secret_key_base: %s", "SECRET_KEY_BASE=%s", 'secret_key_base: "%s"'):
        value = "5f352379324c22463451387a0aec5d2f"
        assert redact(key.replace("%s", value)).text == key.replace("%s", "[REDACTED:credential]")


HEADERS = [
    (
        'Digest username="anna", realm="r@h.example", nonce="dcd98b71", uri="/dir", response="%s"',
        "6629fae49393a05397450978507c4ef1",
    ),
    ("Digest username=anna, qop=auth, response=%s, algorithm=MD5", "6629fae49393a05397450978507c4ef1"),
    (
        "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=%s",
        "fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024",
    ),
    ("AWS %s", "AKIB1OSFODNN7:frJIUN8DYpKDtOLCwo//yllqDzg="),
    ('OAuth realm="x", oauth_token="%s"', "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb"),
    ('OAuth oauth_version="1.0", oauth_signature="%s"', "tnnArxj06cWHq44gCs1OSKk2FjLY3D="),
    ("GoogleLogin auth=%s", "DQAAANUAAADxabcdef123456"),
    ('Hawk id="dh37fgj", ts="1353832234", nonce="j4h3g2", mac="%s"', "6R4rV5iE+NPoym+WwjeHzjAGXUtLNIxmo1vpMofpLAE="),
    ('Signature keyId="k1",algorithm="rsa-sha256",signature="%s"', "Base64RSA1234567890abcdefXYZ=="),
    ('MAC id="h480djs93hd8", mac="%s"', "bhCQXTVyfj5cmA9uKkPFx1zeOXM="),
    ('hmac username="bob", algorithm="hmac-sha1", signature="%s"', "gaweQbATuaGmLrUr3HE0DzU1keWGCt3H96M28sSHTG8="),
    ("Discogs token=%s", "abcDEF123456789012"),
    *(
        (f"{scheme} %s", "8x7DEF123a45k789012")
        for scheme in ("ApiKey", "Api-Key", "Key", "OAuth", "Token", "token", "Bot")
    ),
    *((f"{scheme} %s", "8x7DEF123a45k789012") for scheme in ("PRIVATE-TOKEN", "Zoho-oauthtoken", "Klaviyo-API-Key")),
    *((f"{scheme} %s", "8x7DEF123a45k789012") for scheme in ("Vault", "Custom", "Sso-Key", "JWT", "Session", "SSWS")),
    ("GenieKey %s", "eb243592-faa2-4ba2-a551-1afdf565c889"),
    ("Splunk %s", "12345678-1234-1234-1234-123456789abc"),
    ("SharedKey myaccount:%s", "ctzMq410TV3wS7upTBcunJTDLEJwMAZuFPfr0mrrA08="),
    ("NTLM %s", "TlRMTVNTUAADAAAAGAAYAGgAAAAYABgAgAAA"),
    ("Negotiate %s", "YIIFxAYGKwYBBQUCoIIFuDCCBbSg"),
    ("Basic %s", "YW5uYTpodW50ZXIy"),
]
AROUND = [
    "Authorization: %s",
    "Proxy-Authorization: %s\r\nHost: x",
    "curl -H 'Authorization: %s' https://x",
    "{'Authorization': '%s'}",
]
NO_HEADERS = [
    *(
        "Authorization: Digest",
        "Authorization: Digest username=anna, realm=shop2024",
        "Authorization: <scheme> <token>",
    ),
    *(
        "Authorization: required since v2.4.1",
        "authorization: see manual/authorization-2024.html",
        "Authorization: OAuth2",
    ),
    *(
        "authorization: handled by oauth2-proxy-sidecar-7",
        "Authorization: via oauth2-proxy-v7.5.1-alpine",
        "Authorization:",
    ),
    *(
        'WWW-Authenticate: Digest realm="r@h.example", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"',
        "Authorization: Bearer",
    ),
    *(
        "authorization: role=editor, scope=read-2024-reports",
        "Authorization: Token <your-token>",
        "Authorization: Basic ****",
    ),
    *(
        "Authorization: Bearer ${TOKEN_OF_THE_SHOP_2}",
        "authorization = rules.of.version2.engine",
        "Authorization: custom scheme 2",
    ),
    *("the authorization: users need the role editor2024admin", 'Authorization: Signature keyId="k1",signature="..."'),
    *("authorization: policy=default-deny-2024-05-01", "Authorization: Hawk id and mac are documented in section 12"),
]


def test_what_a_request_authorizes_itself_with_is_replaced_in_every_scheme() -> None:
    for scheme, value in HEADERS:
        for around in AROUND:
            text = around.replace("%s", scheme.replace("%s", value))
            clean = redact(text).text
            assert value.rpartition(":")[2] not in clean, text
            assert clean.split("[REDACTED:")[0] == text[: len(clean.split("[REDACTED:")[0])]
            for kept in ("anna", "r@h.example", "/dir", "MD5", "rsa-sha256", "https://x", "Host: x"):
                assert (kept in clean) == (kept in text), text
    for text in NO_HEADERS:
        assert redact(text).text == text


APPOSITIONS = [
    *("the password, %s, must be changed", "The password (%s) must be changed", "the password – %s – must be changed"),
    *(
        "the password — %s — expires",
        "the password -- %s -- works",
        "the password - %s - works",
        "the pin password, %s, is old",
    ),
    *(
        "the wifi password, %s, changes monthly",
        "Our root password, %s, is on the card.",
        "the password, i.e. %s, must go",
    ),
    *("the password, namely %s, was leaked", "the password, which is %s, must go", "My password, %s, has expired"),
    *("das Passwort, %s, muss geändert werden", "das Passwort (%s) gilt nicht mehr", "das Passwort – %s – gilt"),
    *("das Kennwort, %s, läuft ab", "Das Passwort, also %s, wird morgen geändert", "das Passwort, nämlich %s, ist alt"),
    *("le mot de passe, %s, doit être changé", "le mot de passe (%s) expire", "le mot de passe – %s – expire"),
    *("le mot de passe, c'est-à-dire %s, est vieux", "la contraseña, %s, debe cambiarse", "la contraseña (%s) caduca"),
    *("la contraseña – %s – caduca", "la contraseña, es decir %s, vence", 'the password, "%s", must be changed'),
]
SAID = ["hunter2", "Fr1tzB0x77", "Winter2025!", "Tr0ub4dor&3"]
SENTENCES = [
    "username, password, oauth2, and saml are supported",
    "the fields user, password, email2, phone2 are required",
    "the password, which must have 12 characters, is checked",
    "the password, like the token, must be changed",
    "the password (min. 12 characters) must be changed",
    "the password (argon2id) is hashed",
    "the password (varchar255) is stored",
    "the token (RFC6749) is opaque",
    "the token (OPS-1234) is tracked",
    "name, password, created_at, updated_at",
    "a password, 12 characters, is required",
    "the password – required – must match",
    "the password, see OPS-1234, must be changed",
    "login(user, password, timeout30, retries2)",
    "das Passwort, mindestens 12 Zeichen, muss geändert werden",
    "das Passwort (siehe OPS-1234) muss geändert werden",
    "das Passwort, wie immer, ist geheim",
    "le mot de passe, 12 caractères, doit être changé",
    "le mot de passe (voir page 12) expire",
    "la contraseña, 12 letras, debe cambiarse",
    "la contraseña (sha256) caduca",
    "the token, expired yesterday, must be renewed",
    "passwords, tokens2, and keys are redacted",
]


def test_a_password_in_the_middle_of_a_sentence_about_it_is_replaced() -> None:
    for form in APPOSITIONS:
        for value in SAID:
            clean, kinds = Redactor().clean(form.replace("%s", value))
            assert kinds == ("password",), form.replace("%s", value)
            assert clean == form.replace("%s", "[REDACTED:password]")
    for text in SENTENCES:
        assert Redactor().clean(text) == (text, ())


PROPERTIES = [
    *("password: &p %s", "password: &db_pw %s", 'password: &p "%s"', "password: &p '%s'", "  db_password: &a.b-c %s"),
    *(
        "password: !!str %s",
        "password: &p !!str %s",
        "password: !!str &p '%s'",
        "password: &p\n  %s",
        "api_key: &key %s",
    ),
    *("password: &p |\n  %s", "token: &t %s", "secret: &s %s # shared", "- password: &p %s", '"password": &p "%s"'),
    *("MYSQL_ROOT_PASSWORD: &root %s", "client_secret: &cs %s", "Passwort: &p %s", "mot_de_passe: &p %s"),
    *(
        "x-db: &pw %s\ndb:\n  password: *pw",
        "x: &k %s\napi_key: *k",
        "x: &pw '%s'\npassword: *pw",
        "\u5bc6\u7801: &p %s",
    ),
    *('x: &pw "%s"\nprod:\n  db_password: *pw\ntest:\n  token: *pw', "a:\n- &pw %s\n- password: *pw"),
]
ANCHORED = ["aB3dE6fGh9", "Fr1tzB0x77kQ2", "s3cr3tV4lueX9", "Tr0ub4dor3X"]
NO_ANCHORS = [
    *("password: *pw", "password: &p", "password: &p *q", "password: &p {}", "password: &policy\n  length: 12"),
    *("x: &version v1.24.3\nimage: *version", "x: &anchor hunter2secret", "fn login(password: &str, retries: u32)"),
    *(
        "fn set(password: &mut String2)",
        "fn f(token: &dyn Token2)",
        "if (password && user2name) {",
        "x = &y2z3 * token",
    ),
    *("token: &'a str = x1y2z3", "R&D2022 has the token: *kept*", "token: *pw\nx: &other hunter2secret", "a & b2c3d4"),
    *("x: &pw required\npassword: *pw", "x: &pw /run/secrets/db\npassword: *pw", "x: &pw ${DB_PASS}\npassword: *pw"),
    *("x: &pw\n  min: 12\npassword: *pw", "password: !!null", "password: &p ${DB_PASS}", "password: &p changeme"),
]
STATEMENTS = [
    *("CREATE USER bob IDENTIFIED BY '%s';", 'ALTER USER bob IDENTIFIED BY "%s" REPLACE "old"', "IDENTIFIED BY '%s'"),
    *(
        "create user bob identified by '%s';",
        "create user 'bob'@'localhost' identified by '%s'",
        "ok:\nidentified by 'x%s9'",
    ),
    *("create user if not exists bob identified by '%s'", "create or replace user bob@'%' identified by '%s'"),
    *(
        'alter user bob identified by "%s"',
        "alter user `bob`@`10.0.0.1` identified by '%s'",
        "set role app identified by '%s'",
    ),
    *("create user a identified by 'other', b identified by '%s'", "connect to scott identified by '%s'"),
    *(
        "grant usage on *.* to bob identified by '%s'",
        "GRANT ALL ON db.* TO 'bob'@'%' IDENTIFIED BY '%s' WITH GRANT OPTION",
    ),
    *(
        "grant all privileges on application_database.* to 'bob'@'10.%' identified by '%s'",
        "create role app identified by '%s'",
    ),
    *(
        "CREATE DATABASE LINK l CONNECT TO scott IDENTIFIED BY \"%s\" USING 'db'",
        "run: alter user root identified by '%s'",
    ),
    *("mysql -e \"create user bob identified by '%s'\"", "alter user if exists bob identified by '%s'"),
]
NO_STATEMENTS = [
    *("a row is identified by 'name'", "Each session is identified by `session_key`", "identified by 'name'"),
    *(
        'The column is identified by "user_id" in the schema.',
        "users are identified by 'email'",
        "it is identified by name",
    ),
    *("a user is identified by 'name'", "belongs to rows identified by 'name'", "we create rows identified by 'name'"),
    *(
        "we create user records identified by 'name'",
        "the key identified by 'kid' signs",
        "A memory identified by 'slug'",
    ),
    *(
        "the plugin, identified by 'plugin-name'",
        "a ticket identified by 'OPS-1234'",
        "one identified by 'a1b2c3d4e5f6'",
    ),
    *("set the field identified by 'path'", "the role is identified by 'role_name'", "a lake identified by 'geoname'"),
    *("connects to the host identified by 'hostname'", "grant access to the group identified by 'group'"),
    *('a file, identified by "path"', "Sessions identified by `key` are kept", "the user identified by 'login'"),
]


def test_a_value_of_yaml_is_replaced_behind_its_anchor_its_type_and_by_its_alias() -> None:
    for form in PROPERTIES:
        for value in ANCHORED:
            text = form.replace("%s", value)
            clean, kinds = Redactor().clean(text)
            assert len(kinds) == 1, text
            assert clean == form.replace("%s", f"[REDACTED:{kinds[0]}]"), text
    for text in NO_ANCHORS:
        assert Redactor().clean(text) == (text, ()), text


def test_identified_by_names_a_password_in_a_statement_and_not_in_prose() -> None:
    for form in STATEMENTS:
        for value in ("summer", "hunter2pw", "Fr1tzB0x77"):
            text = form.replace("%s", value)
            clean, kinds = Redactor().clean(text)
            assert kinds == ("password",), text
            assert value not in clean, text
    for text in NO_STATEMENTS:
        assert Redactor().clean(text) == (text, ()), text


@pytest.mark.parametrize("text", [*MANIFESTS, *COLUMNS, *NAMED, *ENTITIES, *APPOSITIONS])
def test_a_replaced_secret_is_not_replaced_again(text: str) -> None:
    clean = redact(text.replace("%s", "Fr1tz,B0x77")).text
    assert redact(clean).text == clean


LETTERS = random.Random(7)
"""A token of a provider may have no digit by chance, or by its form: those of Hugging Face are of letters alone."""
OF_LETTERS = [
    (mark, mark + "".join(LETTERS.choice(string.ascii_letters) for _ in range(count)))
    for mark, count in (
        ("hf_", 34),
        ("gsk_", 52),
        ("ghp_", 36),
        ("r8_", 37),
        ("fw_", 24),
        ("tvly-", 32),
        ("glpat-", 20),
    )
    for _ in range(8)
]
NO_TOKENS = [
    "hf_getModelCardDataFromTheHubAndStoreIt",
    "gsk_readTheWholeConfigurationFromTheRemoteServer",
    "ghp_" + "a" * 36,
    "hf_" + "your" * 9,
    "fw_updateEveryDeviceOfTheFleet",
    "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",
]


def test_a_token_without_a_digit_is_found_by_the_mark_of_its_provider() -> None:
    redactor = Redactor()
    shapes = ("use %s", "export TOKEN=%s", 'login(token="%s")', "--token %s", "%s")
    texts = {shape % token: token for _, token in OF_LETTERS for shape in shapes}
    kept = [text for text, token in texts.items() if token in redactor.clean(text)[0]]
    assert kept == []
    changed = [name for name in NO_TOKENS if redactor.clean(f"call {name} first")[0] != f"call {name} first"]
    assert changed == []


@pytest.mark.parametrize(("spellings", "values"), [(SPELLINGS, LISTED_VALUES), (IRREGULAR, LISTED_VALUES[:1])])
def test_a_listed_form_is_recognised_in_its_common_spellings(
    spellings: dict[str, list[str]], values: tuple[str, ...]
) -> None:
    """Other quotation marks and clients, clusters of options, calls beside a value: the value alone is replaced."""
    for kind, forms in spellings.items():
        for form in forms:
            for value in values:
                clean, kinds = Redactor().clean(form.replace("%s", value))
                assert clean == form.replace("%s", f"[REDACTED:{kinds[0] if kinds else None}]"), kind


def test_ordinary_texts_that_look_like_a_listed_form_stay() -> None:
    changed = [(text, clean) for text in ORDINARY if (clean := Redactor().clean(text)[0]) != text]
    assert len(ORDINARY) >= 150
    assert changed == []


KEY_LINES = [base64.b64encode(random.Random(line).randbytes(48)).decode() for line in range(12)]
KEY_ENDS = [
    *("-----END PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"),
    *("-----END EC PRIVATE KEY-----", "=aB3d\n-----END PGP PRIVATE KEY BLOCK-----", "Private-MAC: 1f"),
]


@pytest.mark.parametrize("end", KEY_ENDS)
def test_the_lines_before_the_end_of_a_private_key_are_replaced_without_its_beginning(end: str) -> None:
    """What ``tail`` shows, also quoted, numbered, escaped, and from the middle of a line."""
    for lines in (KEY_LINES, [*KEY_LINES, "xK9mQ2vL7p=="], KEY_LINES[:1], [KEY_LINES[0][30:], *KEY_LINES[1:]]):
        for line_end in ("\n", "\r\n", "\\n", "\\r\\n", "\n> ", "\n    ", "\n| ", "\n12: "):
            clean, kinds = Redactor().clean(line_end.join(["It shows", *lines, *end.splitlines(), "and more"]))
            assert kinds == ("private-key",)
            assert not any(line in clean for line in lines)
            assert clean.startswith(f"It shows{line_end}")
            assert clean.endswith("and more")


@pytest.mark.parametrize(
    "text",
    [
        "It ends with -----END PRIVATE KEY-----",
        "a line about documentation\n-----END RSA PRIVATE KEY-----\nok",
        f"{KEY_LINES[0]}\n-----END CERTIFICATE-----",
        f"{KEY_LINES[0]}\n-----END PUBLIC KEY-----",
        "see /home/anna/.ssh/id\n-----END OPENSSH PRIVATE KEY-----",
        "the line Private-MAC: of PuTTY",
    ],
)
def test_the_end_of_a_key_that_is_only_named_stays(text: str) -> None:
    assert Redactor().clean(text) == (text, ())


KEY_MARKS = [
    *(
        (f"-----BEGIN {kind}-----", f"-----END {kind}-----")
        for kind in ("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK")
    ),
    ("Private-Lines: 12", "Private-MAC: 1f"),
]


@pytest.mark.parametrize(("begin", "end"), KEY_MARKS)
def test_no_line_of_a_private_key_stays_in_a_prompt_that_is_cut_within_it(begin: str, end: str) -> None:
    """Wherever the cut falls: before, within and behind the key, and with another key behind it."""
    key = "\n".join([begin, *KEY_LINES, end])
    before = "We moved the login form to the new router today. " * 700
    for behind in range(19_000, 20_200, 173):
        for last in ("", f"\nand this one:\n{key}"):
            after = ("Then we looked at the port of the staging server. " * 500)[: behind - len(last)] + last
            prompt = f"{before}\n{key}\n{after}"
            sent = harness_events.HOOKS["user-prompt-submit"].build({"prompt": prompt})["userPrompt"]
            for cut in (ends_of(prompt, 40_000), sent):
                assert len(cut) <= 40_001
                clean = Redactor().clean(cut)[0]
                assert not any(line[-20:] in clean for line in KEY_LINES), behind
                assert "port of the staging server" in clean
                assert clean.startswith("We moved")


def test_a_prompt_that_only_names_the_beginning_of_a_key_is_cut_like_another() -> None:
    for named in ("-----BEGIN is a mark. ", "Look for -----BEGIN and -----END in it. "):
        for text in ("Some words. " * 5_000, "Some words. " * 3_000 + "\n".join([KEY_MARKS[0][0], *KEY_LINES])):
            assert len(ends_of(named + text, 20_000)) > 19_900
