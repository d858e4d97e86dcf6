"""The exact names of a text, and what each tells."""

from __future__ import annotations

import pytest

from signet_actors.domain.exact_names import ENOUGH, exact_names, names_held

ENOUGH_ALONE = (
    ("error TS2345: Argument of type", "ts2345"),
    ("error[E0502]: cannot borrow", "e0502"),
    ("ORA-01555: snapshot too old", "ora-01555"),
    ("(SQLSTATE 42P01)", "42p01"),
    ("SQLSTATE[40001]", "#40001"),
    ("ERROR 1213 (40001): Deadlock", "#1213"),
    ("HTTP/1.1 429", "#429"),
    ('"GET / HTTP/1.1" 502 12', "#502"),
    ("502 Bad Gateway", "#502"),
    ("exited with code 137", "#137"),
    ("0x8007045D", "0x8007045d"),
    ("code: 'ECONNRESET'", "econnreset"),
    ("npm ERR! code ERESOLVE", "eresolve"),
    ("PGRST301", "pgrst301"),
    ("CVE-2026-12345", "cve-2026-12345"),
    ("feature/KA-6-fix-login", "ka-6"),
    ("CrashLoopBackOff", "crashloopbackoff"),
    ("com.acme.TariffMapper.map(TariffMapper.java:7)", "tariffmapper"),
    ("LedgerMismatchError: 3", "ledgermismatcherror"),
    ("undefined reference to `calibrate_gyro'", "calibrate_gyro"),
    ("$LEDGER_TOKEN is not set", "ledger_token"),
    ("at src/checkout.tsx:42", "checkout.tsx"),
    ("from kestrel-7", "kestrel-7"),
    ("db1.billing.internal refused", "db1.billing.internal"),
    ("10.2.3.4:443", "10.2.3.4"),
    ("@acme/charts@2.0.1", "@acme/charts"),
    ("pass --legacy-peer-deps", "--legacy-peer-deps"),
    ("commit 9f2c41ab7", "9f2c41ab7"),
    ("错误码 45021", "#45021"),
    ("TS2345是故意忽略的", "ts2345"),
)
NOT_ENOUGH = (
    ("KeyError: x", "keyerror"),
    ("java.lang.NullPointerException", "nullpointerexception"),
    ("HTTP/1.1 500", "#500"),
    ("user_id = 7", "user_id"),
    ("useEffect(() => {})", "useeffect"),
    ("src/index.js:3", "index.js"),
    ("KeyError: 'tariff'", "tariff"),
)
NONE = (
    "which port does the staging database use?",
    "2026-11-27T12:00:01.123Z",
    "12:03:44",
    "UTF-8 and SHA-256 and ISO-8859",
    "worker-3 thread-12 pool-1-thread-3",
    "HTTP/1.1 200",
    "exit code 1",
    "GitHub JavaScript PostgreSQL YouTube",
    "python3 x64 v2",
    "127.0.0.1 0.0.0.0",
    "user.name = value",
    "42 ms, 118 rules, 8080",
    "0xffffffff",
    "Straße, größer, naïve",
    "deadbeef",
)


@pytest.mark.parametrize(("text", "name"), ENOUGH_ALONE)
def test_a_name_of_one_thing_tells_enough_alone(text: str, name: str) -> None:
    assert exact_names(text).get(name, 0.0) >= ENOUGH


@pytest.mark.parametrize(("text", "name"), NOT_ENOUGH)
def test_a_name_that_every_program_may_have_does_not_tell_enough_alone(text: str, name: str) -> None:
    assert 0.0 < exact_names(text)[name] < ENOUGH


def test_a_standard_exception_and_its_symbol_tell_enough_together() -> None:
    names = exact_names("KeyError: 'tariff'")
    assert names["keyerror"] + names["tariff"] >= ENOUGH


@pytest.mark.parametrize("text", NONE)
def test_ordinary_text_has_no_names(text: str) -> None:
    assert exact_names(text) == {}


@pytest.mark.parametrize(
    ("memory", "name", "has"),
    [
        ("ts2345 in checkout.tsx", "ts2345", True),
        ("ts2345是故意忽略的", "ts2345", True),
        ("ticket ka-61", "ka-6", False),
        ("read_configs twice", "read_config", False),
        ("a 429 is answered by the geocoder", "#429", True),
        ("the flat has 429 square feet", "#429", False),
        ("status 4290", "#429", False),
        ("(calibrate_gyro)", "calibrate_gyro", True),
        ("see econnrefused there", "econnrefused", True),
        ("see econnrefused2 there", "econnrefused", False),
        ("read_config", "read_config", True),
        ("read_configs and pread_config", "read_config", False),
        ("ka-61 and xka-6", "ka-6", False),
        ("ka-61, then ka-6.", "ka-6", True),
        ("ka-6", "ka-6", True),
        ("use --dry-run here", "--dry-run", True),
        ("use dry-run here", "--dry-run", False),
        ("a verbose log", "--verbose", False),
        ("token_store.py holds it", "token_store.py", True),
        ("token_store.pyc holds it", "token_store.py", False),
        ("10.0.0.12 is up", "10.0.0.1", False),
        ("at 10.0.0.1: up", "10.0.0.1", True),
        ("status 502 again", "#502", True),
        ("status 5020 again", "#502", False),
        ("we have 502 cows", "#502", False),
        ("db.prod.internal", "db.prod.internal", True),
        ("mydb.prod.internal", "db.prod.internal", False),
        ("@acme/ui 2", "@acme/ui", True),
        ("@acme/uikit", "@acme/ui", False),
        ("x" + "ka-6x " * 40 + "ka-6", "ka-6", True),
        ("", "ka-6", False),
    ],
)
def test_a_memory_has_a_name_as_a_whole(memory: str, name: str, has: bool) -> None:
    assert names_held(memory, {name}) == ({name} if has else set())
