"""A secret is found in a pasted block whatever stands before each of its lines, and nothing else is replaced.

Source: docs/operations.md "Secrets in memories"; the manuals of the programs named below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from signet_actors.domain.redaction.scan import Redactor, redact

LONG: Final = "Tr0ub4dor&3z1"
BLOCKS: Final = {
    "Secret of Kubernetes": (
        f"apiVersion: v1\nkind: Secret\nstringData:\n  smtp-relay: {LONG}\n\ndata:\n  main: a1Y4blEzelI3dExtMlh3UHE5",
        (LONG, "a1Y4blEzelI3dExtMlh3UHE5"),
    ),
    "Secret with a block": (
        "kind: Secret\nstringData:\n  relay: |\n    first-Half7\n    second-Half8\n  x: y1z2w3v4",
        ("first-Half7", "second-Half8", "y1z2w3v4"),
    ),
    "Secret in JSON": (
        f'{{\n  "kind": "Secret",\n  "stringData": {{\n    "smtp-relay": "{LONG}"\n  }}\n}}',
        (LONG,),
    ),
    "name and value in YAML": (
        "env:\n  - name: DB_HOST\n    value: db\n  - name: DB_PASSWORD\n    value: Fr1tzB0x!771",
        ("Fr1tzB0x!771",),
    ),
    "value and name in YAML": (
        "env:\n  - value: db\n    name: DB_HOST\n  - value: Fr1tzB0x!771\n    name: DB_PASSWORD",
        ("Fr1tzB0x!771",),
    ),
    "name and value in JSON": (
        '[\n  {\n    "name": "DB_PASSWORD",\n    "value": "Fr1tzB0x!771"\n  }\n]',
        ("Fr1tzB0x!771",),
    ),
    "value and name in JSON": (
        '[\n  {\n    "value": "Fr1tzB0x!771",\n    "name": "DB_PASSWORD"\n  }\n]',
        ("Fr1tzB0x!771",),
    ),
    "label above a value": ("Username\nanna\nPassword\nFr1tzB0x!771\nNotes\nnone", ("Fr1tzB0x!771",)),
    "recovery codes": (
        "2FA recovery codes:\n  7h2k9-m4qx8\n  p3w8z-t6vn1\n  c5r2y-j9bd4\nKeep them.",
        ("7h2k9-m4qx8", "p3w8z-t6vn1", "c5r2y-j9bd4"),
    ),
    "netrc": ("machine api.example.com\n  login anna\n  password Fr1tzB0x771\n", ("Fr1tzB0x771",)),
    "pgpass": (
        "db.example.com:5432:app:anna:Fr1tzB0x771\ndb2.example.com:5432:app:anna:W1nterM00n\n",
        ("Fr1tzB0x771",),
    ),
    "table": ("| host | password |\n|------|----------|\n| db1 | Fr1tzB0x!771 |", ("Fr1tzB0x!771",)),
}


def each_line(write: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda block: "\n".join(write(number, line) for number, line in enumerate(block.split("\n"), 1))


def numbered_unless_blank(block: str) -> str:
    """As nl(1) writes it."""
    lines, number = [], 0
    for line in block.split("\n"):
        number += bool(line)
        lines.append(f"{number:6}\t{line}" if line else " " * 7)
    return "\n".join(lines)


def boxed(block: str, edge: str = "\u2502") -> str:
    lines = block.split("\n")
    wide = max(map(len, lines))
    rows = [f"{edge} {line:{wide}} {edge}" for line in lines]
    rule = "\u2500" * (wide + 2)
    return "\n".join((f"\u256d{rule}\u256e", *rows, f"\u2570{rule}\u256f"))


BAT_RULE: Final = "\u2500" * 7 + "\u252c" + "\u2500" * 40
PREFIXES: Final[dict[str, Callable[[str], str]]] = {
    "nothing": lambda block: block,
    "cat -n": each_line(lambda n, line: f"{n:6}\t{line}"),
    "nl": numbered_unless_blank,
    "nl -ba -s': '": each_line(lambda n, line: f"{n:6}: {line}"),
    "bat": lambda block: (
        f"{BAT_RULE}\n       \u2502 File: pasted\n{BAT_RULE.replace(chr(0x252C), chr(0x253C))}\n"
        + each_line(lambda n, line: f"{n:4}   \u2502 {line}")(block)
    ),
    "bat with changes": each_line(lambda n, line: f"{n:4} {'+' if n % 2 else ' '} \u2502 {line}"),
    "less -N": each_line(lambda n, line: f"{n:7} {line}"),
    "vim :set number, trimmed": each_line(lambda n, line: f"{n:3} {line}".rstrip()),
    "an agent's read": each_line(lambda n, line: f"{n:6}\u2192{line}"),
    "a code frame": each_line(lambda n, line: f" {n:2} | {line}"),
    "grep -n": each_line(lambda n, line: f"{n}:{line}"),
    "grep -n -C": each_line(lambda n, line: f"{n}{':' if n == 2 else '-'}{line}"),
    "grep -rn": each_line(lambda n, line: f"k8s/base/db-secret.yaml:{n}:{line}"),
    "grep -rn -C": each_line(
        lambda n, line: f"k8s/db-1-x.yaml{':' if n == 2 else '-'}{n}{':' if n == 2 else '-'}{line}"
    ),
    "grep -r": each_line(lambda _, line: f"./deploy/values.yaml:{line}"),
    "git blame": each_line(lambda n, line: f"3f9d2c1a (Anna Meier 2026-11-0{n % 9 + 1} 09:12:44 +0100 {n:2}) {line}"),
    "added": each_line(lambda _, line: f"+{line}"),
    "removed": each_line(lambda _, line: f"-{line}"),
    "a whole diff": lambda block: (
        "diff --git a/x b/x\nindex 1a2b3c4..5d6e7f8 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,9 @@ spec:\n   before: 1\n"
        + each_line(lambda _, line: f"+{line}")(block)
        + "\n after: 2"
    ),
    "a diff with one changed line": lambda block: " " + block.replace("\n", "\n ") + "\n+ more: lines",
    "a new line in place of an old one": lambda block: "\n".join(
        f"-{line.replace('Fr1tz', 'Hans').replace(LONG, 'other')}\n+{line}" for line in block.split("\n")
    ),
    "quoted": each_line(lambda _, line: f"> {line}"),
    "quoted tightly": each_line(lambda _, line: f">{line}"),
    "quoted twice": each_line(lambda _, line: f"> > {line}"),
    "a quoted diff": each_line(lambda _, line: f"> +{line}"),
    "a box": boxed,
    "a box of bars": lambda block: boxed(block, "|"),
    "a left edge": each_line(lambda _, line: f"\u2502 {line}"),
    "kubectl logs --timestamps": each_line(lambda n, line: f"2026-11-29T11:30:{n:02}.123456789Z {line}"),
    "kubectl logs --prefix": each_line(lambda _, line: f"[pod/web-6f7/app] {line}"),
    "docker compose logs": each_line(lambda _, line: f"web-1  | {line}"),
    "docker compose logs -t": each_line(lambda n, line: f"web-1  | 2026-11-29T11:30:{n:02}.123456789Z {line}"),
    "journalctl": each_line(lambda n, line: f"Nov 29 11:30:{n:02} host deploy[4711]: {line}"),
    "a log with levels": each_line(lambda n, line: f"2026-11-29 11:30:{n:02},123 INFO {line}"),
    "a log in brackets": each_line(lambda n, line: f"[11:30:{n:02}] {line}"),
    "gh run view --log": each_line(lambda n, line: f"build\tShow it\t2026-11-29T11:30:{n:02}.1234567Z {line}"),
    "a log of Java": each_line(lambda n, line: f"2026-11-29 11:30:{n:02},123 INFO  [main] c.e.App - {line}"),
    "a log of Python": each_line(lambda n, line: f"2026-11-29 11:30:{n:02},123 - app - INFO - {line}"),
    "a plan": each_line(lambda _, line: f"      + {line}"),
    "diff without -u": each_line(lambda _, line: f"< {line}"),
    "a comment of several lines": lambda block: f"/**\n{each_line(lambda _, line: f' * {line}')(block)}\n */",
    "comments": each_line(lambda _, line: f"# {line}"),
    "slashes": each_line(lambda _, line: f"// {line}"),
}
BARE: Final = {"a box of bars", "a code frame"}
"""Bars of a table within these are told from theirs by nothing."""


@pytest.mark.parametrize("block", BLOCKS)
def test_a_secret_is_found_behind_whatever_stands_before_the_lines_of_a_block(block: str) -> None:
    text, secrets = BLOCKS[block]
    found = []
    for prefix, write in PREFIXES.items():
        if block == "table" and prefix in BARE:
            continue
        pasted = f"why is this refused?\n\n{write(text)}\n\nthanks"
        for clean in (redact(pasted).text, Redactor().clean(pasted)[0]):
            found += [(prefix, secret, clean) for secret in secrets if secret in clean]
    assert not found, "\n\n".join(f"{prefix}: {secret}\n{clean}" for prefix, secret, clean in found)


CONTROLS: Final = (
    "kind: ConfigMap\nmetadata:\n  name: db\ndata:\n  smtp-relay: mail.example.com\n  level: debug2",
    "env:\n  - name: DB_HOST\n    value: db17.example.com\n  - name: REPLICAS\n    value: 3",
    "env:\n  - value: db17.example.com\n    name: DB_HOST\n  - value: 3\n    name: REPLICAS",
    '[\n  {"value": "eu-central-1", "name": "REGION"},\n  {"value": "${DB_PASSWORD}", "name": "DB_PASSWORD"}\n]',
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db",
    "Password\nThe login form asks for it twice.\nNotes\nnone",
    "the password\nis stored in vault\nand not here",
    "def check(password):\n    return len(password) > 12\n",
    "the machine\n  shows its login page\n  after a password reset\n",
    "12 tests passed\n13 tests failed\n14 tests skipped",
    "Passwords are hashed.\n\nTokens expire after 15 minutes.\nKeys rotate monthly.",
    "kind: Deployment\nspec:\n  replicas: 3\n  image: web:1.2.3",
    "const token = lexer.next()\nif (token.kind === 'Secret') return\n",
    "type Props = {\n  password: string\n  onChange: () => void\n}",
    "- [ ] rotate the password\n- [x] check the token\n- [ ] write docs",
    "SELECT name FROM users\nWHERE password IS NULL\nORDER BY name",
    "2FA\nis required\nfor all of us",
    "recovery codes\nare printed once\nand kept in a safe",
    "host db1.example.com\nport 5432\nuser anna",
    "x = 1\ny = 2\nz = x + y",
    "| host | port |\n|------|------|\n| db1 | 5432 |",
)


@pytest.mark.parametrize("text", CONTROLS)
def test_a_block_without_secrets_is_unchanged_whatever_stands_before_its_lines(text: str) -> None:
    changed = [(prefix, redact(write(text)).text) for prefix, write in PREFIXES.items() if redact(write(text)).found]
    assert not changed, changed


def test_only_the_value_is_replaced_and_what_stands_before_the_lines_stays() -> None:
    pasted = f"     1\tkind: Secret\n     2\tstringData:\n     3\t  smtp-relay: {LONG}\n     4\tdone: 1"
    assert redact(pasted).text == pasted.replace(LONG, "[REDACTED:kubernetes-secret]")
    assert redact(redact(pasted).text).found == 0


def test_both_sides_of_a_diff_are_searched() -> None:
    pasted = (
        "@@ -1,4 +1,4 @@\n         - name: DB_PASSWORD\n"
        "-          value: Fr1tzB0x!771\n+          value: W1nterM00n!5\n"
        "         - name: DB_HOST\n           value: db"
    )
    found = redact(pasted)
    assert found.found == 2
    assert "Fr1tz" not in found.text
    assert "W1nter" not in found.text
    assert found.text.endswith("value: db")


def test_values_before_their_names_and_in_archives_of_requests_are_found() -> None:
    cases = (
        ('{"value": "%s", "name": "DB_PASSWORD"}', LONG, True),
        ("{'value': '%s', 'key': 'db.password'}", LONG, True),
        ('{"Value": "%s", "Name": "ADMIN_TOKEN"}', "q8Zr2LmV7xKp4TnW", True),
        ('<add value="%s" key="DbPassword"/>', LONG, True),
        ('{"ParameterValue": "%s", "ParameterKey": "MasterPassword"}', LONG, True),
        ("value: %s\nname: SMTP_PASSWORD", LONG, True),
        ("- value: '%s'\n  name: SMTP_PASSWORD", LONG, True),
        ('{"name": "Cookie", "value": "sessionid=%s; theme=dark"}', "8f3kq92mzx71bv5n", True),
        ('{"name": "Set-Cookie",\n "value": "sid=%s; Path=/"}', "8f3kq92mzx71bv5n", True),
        ("oc login -u anna -p %s https://api.example.com:6443", "W1nterM00n", True),
        ('  ~ password = "old-Value7" -> "%s"', "Fr1tzB0x!771", True),
        ('  ~ admin_password        = "W1nterM00n" -> "%s" # forces replacement', "Fr1tzB0x!771", True),
        ('  ~ "DB_PASSWORD" = "x" -> "%s"', "Fr1tzB0x!771", True),
        ('  ~ api_key = "a" -> "%s"', "q8Zr2LmV7xKp4TnW", True),
        ('  ~ password_policy = "weak" -> "%s"', "strong", False),
        ('  ~ password = "old-Value7" -> "%s"', "(known after apply)", False),
        ('  ~ instance_type = "t3.micro" -> "%s"', "t3.large2x", False),
        ('{"value": "%s", "name": "DB_HOST"}', "db17.example.com", False),
        ('{"value": "%s", "name": "PASSWORD_MIN_LENGTH"}', "12characters", False),
        ('{"value": "%s", "name": "DB_PASSWORD"}', "changeme", False),
        ("name: DB_HOST\nvalue: %s\nname: DB_PASSWORD", "db17-example", False),
        ("- name: HOST\n  value: %s\n- name: DB_PASSWORD\n  value: x", "db17-exAmple!9", False),
        ('{"name": "Cookie", "value": "theme=%s"}', "darkmode2024", False),
        ("the value: %s is the name of a password", "important", False),
        ('{"value": "%s", "name": "password"}', "$(DB_PASSWORD)", False),
        ('{"value": %s, "name": "max_tokens"}', "128000", False),
        ("oc login -u anna -p %s", "<password>", False),
    )
    wrong = [form % secret for form, secret, hidden in cases if (secret not in redact(form % secret).text) != hidden]
    assert not wrong, wrong
