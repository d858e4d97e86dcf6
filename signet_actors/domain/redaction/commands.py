"""Secrets in command lines, request headers, cookies, addresses, key blocks and password files.

Every scanner begins at a literal mark and goes through the text once.

Source: mysql(1), sshpass(1), curl(1), redis-cli(1), docker login, sqlcmd, smbclient(1), ldapsearch(1), openssl(1) for
the options; PostgreSQL documentation "The Password File"; netrc(5); RFC 6265 for cookies; RFC 6750 and RFC 7617 for
authorization headers; RFC 3986 section 3.2.1 for addresses; RFC 7468 for key blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.redaction.named_values import trimmed_end
from signet_actors.domain.redaction.values import has_digit, is_given, is_option_value, is_url_password, is_value
from signet_actors.domain.text_windows import windowed_matches

Found = tuple[str, int, int]
"""Kind, start and end."""

COMMAND_OPTIONS: Final[tuple[tuple[tuple[str, ...], str, str], ...]] = (
    (("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mysqlpump"), "p", "glued"),
    (("mariadb", "mariadb-dump", "mariadb-admin", "mariadb-backup", "xtrabackup"), "p", "glued"),
    (("sshpass",), "p", "either"),
    (("redis-cli", "keydb-cli", "valkey-cli"), "a", "either"),
    (("docker login", "podman login", "skopeo login", "buildah login", "az login"), "p", "apart"),
    (("helm registry login", "mongo", "mongosh", "mongodump", "mongorestore"), "p", "apart"),
    (("sqlcmd", "bcp", "unzip", "zip"), "P", "either"),
    (("plink", "pscp", "psftp"), "pw", "apart"),
    (("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldappasswd"), "w", "either"),
    (("7z", "7za", "unrar", "rar"), "p", "glued"),
    (("keytool", "jarsigner"), "storepass", "apart"),
    (("keytool", "jarsigner"), "keypass", "apart"),
    (("curl",), "u", "user"),
    (("curl",), "-user", "user"),
    (("smbclient", "rpcclient", "smbmap"), "U", "user"),
)
"""Commands, the option that takes a password, and how it follows: in the same word, the next one, or ``user:pass``."""

_OPTIONS: Final = {
    command: {option: how for names, option, how in COMMAND_OPTIONS if command in names}
    for commands, _, _ in COMMAND_OPTIONS
    for command in commands
}
COMMAND_MARKS: Final = (
    *(
        "mysql",
        "mariadb",
        "xtrabackup",
        "sshpass",
        "-cli",
        " login",
        "mongo",
        "sqlcmd",
        "bcp ",
        "zip ",
        "plink",
        "pscp",
    ),
    *("psftp", "ldap", "7z", "rar ", "keytool", "jarsigner", "curl", "smbclient", "rpcclient", "smbmap"),
)
_COMMAND_NAMES: Final = "|".join(
    re.escape(command).replace(r"\ ", r"\s{1,3}+") for command in sorted(_OPTIONS, key=len, reverse=True)
)
_EVENT = re.compile(
    r"(?P<end>[\n;|]|&&)"
    rf"|(?<![\w.-])(?P<command>{_COMMAND_NAMES})(?=\s|\.exe\s)"
    r"|(?<=\s)-(?P<option>storepass|keypass|pw|-user|[pPaUuw])(?P<between>=|\s{1,3}+|(?=[^\s=]))"
    r"[\"']?+(?P<value>[^\s\"'`]{1,256}+)"
)
_REACH: Final = 1024
_MAX_OPTION_CHARS: Final = 256
_OPTION_END = re.compile(r"[^\s\"'`]*+")
_USER_AND_PASSWORD = re.compile(r"[^\s:%]{1,128}+[:%]")

_OPENSSL = re.compile(r"(?<=\s)-pass(?:in|out)?\s{1,3}+[\"']?pass:([^\s\"']{1,256}+)")
_NETRC = re.compile(r"\blogin\s{1,9}+\S{1,128}+\s{1,9}+password\s{1,9}+(\S{1,256}+)")
_PGPASS = re.compile(
    r"(?<!\S)(?P<host>[^\s:\\]{1,253}+):(?P<port>[0-9]{2,5}|\*):(?P<base>[^\s:]{1,63}+):(?P<user>[^\s:]{1,63}+):(?P<password>[^\s]{1,256}+)"
)
_PGPASS_PORTS = re.compile(r"54\d\d|6432|\*")

_BEARER = re.compile(
    r"(?:\bbearer\s{1,40}+|\bauthorization(?:\\{0,8}+[\"'])?+\s{0,40}+[:=]\s{0,40}+(?:\\{0,8}+[\"'])?+"
    r"(?:(?:basic|token|apikey|digest|negotiate|bearer)\s{1,40}+)?+)([a-z0-9\-._~+/]{16,512}+={0,2}+)"
)
_BEARER_END = re.compile(r"[A-Za-z0-9\-._~+/=]*+")
_COOKIES = re.compile(
    r"\b(?:set-)?cookie(?:\\{0,8}+[\"'])?+(?:\s{0,3}+[:=]\s{0,3}+|(?<=--cookie)\s{1,3}+)(?:\\{0,8}+[\"'])?+(?=[\w.\-]{1,64}=)"
)
_COOKIE = re.compile(r"([^\s=;,\"']{1,128}+)=([^\s;,\"'\\]{0,4096}+)(?:;\s{0,3}+)?+")
_COOKIE_NAME = re.compile(r"sess|sid|auth|token|jwt|login|remember|csrf|xsrf|identity|ticket|\.aspx", re.IGNORECASE)
_KNOWN_COOKIE = re.compile(
    r"(?<![\w.\-])(?:phpsessid|jsessionid|asp\.net_sessionid|\.aspxauth|\.aspnetcore\.cookies|connect\.sid|laravel_session"
    r"|_gitlab_session|wordpress_logged_in_[0-9a-f]{32})(?:\\{0,8}+[\"'])?+\s?[=:]\s?(?:\\{0,8}+[\"'])?+([^\s;,\"'\\]{8,4096}+)"
)

_ADDRESS = re.compile(r"://[^\s/?#:@\"'<>]{0,128}+:([^\s/\"'<>]{1,2048})@(?=[^\s@])")

_KEY_BEGIN: Final = "-----BEGIN"
_KEY_HEAD = re.compile(r"-----BEGIN[ A-Z0-9]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END[ A-Z0-9]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_KEY_LINES = re.compile(r"(?:\s{0,4}+(?:\\[nr]){0,4}+[A-Za-z0-9+/=]{16,4096}+)++")
_PUTTY = re.compile(r"Private-Lines:\s{0,4}+\d{1,4}+((?:\s{1,4}+[A-Za-z0-9+/=]{16,4096}+)++)")


def key_blocks(plain: str) -> Iterator[Found]:
    """Yield private keys: from BEGIN to END, or to the end of the lines of base64 where END is missing."""
    at = plain.find(_KEY_BEGIN)
    while at >= 0:
        head = _KEY_HEAD.match(plain, at)
        after = at + len(_KEY_BEGIN)
        if head is not None:
            after = head.end()
            dashes = plain.find("-----", after)
            tail = _KEY_END.match(plain, dashes) if dashes >= 0 else None
            if tail is not None and _KEY_LINE.search(plain, after, dashes):
                yield "private-key", at, (after := tail.end())
            elif lines := _KEY_LINES.match(plain, after):
                yield "private-key", at, (after := lines.end())
        at = plain.find(_KEY_BEGIN, after)
    for match in _PUTTY.finditer(plain) if "Private-Lines:" in plain else ():
        yield "private-key", *match.span(1)


def command_options(plain: str, folded: str) -> Iterator[Found]:
    """Yield passwords that a command takes as an option; an option belongs to the command before it in its line."""
    if any(mark in folded for mark in COMMAND_MARKS):
        options: dict[str, str] = {}
        for event in windowed_matches(_EVENT, plain, _REACH):
            if event["command"]:
                options = _OPTIONS[" ".join(event["command"].split())]
            elif event["end"]:
                options = {}
            elif how := options.get(event["option"]):
                yield from _option_value(how, event, plain)
    if "pass:" in folded:
        yield from _groups("password", _OPENSSL, plain)
    if "login" in folded:
        for kind, start, end in _groups("password", _NETRC, folded):
            if is_given(plain[start:end]):
                yield kind, start, end


def _option_value(how: str, event: re.Match[str], plain: str) -> Iterator[Found]:
    start, end = event.span("value")
    if how == "user":
        user = _USER_AND_PASSWORD.match(plain, start, end)
        if user and end - user.end() >= 4 and is_url_password(plain[user.end() : end]):
            if end - start >= _MAX_OPTION_CHARS:
                end = _end_of(_OPTION_END, plain, end)
            yield "password", user.end(), end
    elif how != ("glued" if event["between"] else "apart"):
        end = trimmed_end(plain, start, end)
        if is_option_value(plain[start:end]):
            yield "password", start, end


def password_file_lines(plain: str, folded: str) -> Iterator[Found]:
    """Yield the passwords of ``.pgpass`` lines: host, port, database, user and password between colons."""
    known = "pgpass" in folded or "postgres" in folded
    for line in windowed_matches(_PGPASS, plain, _REACH):
        start, end = line.span("password")
        if (known or _PGPASS_PORTS.fullmatch(line["port"])) and not line["base"].isdigit():
            end = trimmed_end(plain, start, end)
            if is_given(plain[start:end]):
                yield "password", start, end


def header_tokens(plain: str, folded: str) -> Iterator[Found]:
    """Yield what follows ``Authorization:`` or ``Bearer``."""
    for match in windowed_matches(_BEARER, folded, _REACH):
        start, end = match.span(1)
        if has_digit(match[1]) and is_given(plain[start : min(end, start + 256)]):
            if end - start >= 512:
                end = _end_of(_BEARER_END, plain, end)
            yield "bearer-token", start, trimmed_end(plain, start, end)


def cookies(plain: str, folded: str) -> Iterator[Found]:
    """Yield the values of cookies that identify a session."""
    at = 0
    for header in windowed_matches(_COOKIES, folded, _REACH):
        if header.start() < at:
            continue
        at = header.end()
        while pair := _COOKIE.match(plain, at):
            at = pair.end()
            if len(pair[2]) >= 8 and _COOKIE_NAME.search(pair[1]) and is_value(pair[2][:256]):
                yield "session-cookie", *pair.span(2)
    for cookie in windowed_matches(_KNOWN_COOKIE, folded, 2 * 4096):
        start, end = cookie.span(1)
        if is_value(plain[start : min(end, start + 256)]):
            yield "session-cookie", start, end


def address_passwords(plain: str) -> Iterator[Found]:
    """Yield the passwords of addresses: ``scheme://user:password@host``."""
    for match in windowed_matches(_ADDRESS, plain, 4096):
        start, end = match.span(1)
        if is_url_password(plain[start : min(end, start + 256)]):
            yield "url-password", start, end


def _groups(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    for match in windowed_matches(pattern, text, _REACH):
        yield kind, *match.span(1)


def _end_of(run: re.Pattern[str], text: str, at: int) -> int:
    match = run.match(text, at)
    return match.end() if match else at
