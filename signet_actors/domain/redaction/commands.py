"""Find secrets in command lines, request headers, cookies, URLs, key blocks and password files.

Every scanner starts at a literal mark and reads the text once.

Source: mysql(1), sshpass(1), curl(1), redis-cli(1), docker login, sqlcmd, smbclient(1), ldapsearch(1), openssl(1) for
the options; PostgreSQL documentation "The Password File"; netrc(5); RFC 6265 for cookies; RFC 6750 and RFC 7617 for
authorization headers; RFC 3986 section 3.2.1 for addresses; RFC 7468 for key blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.generated import is_generated
from signet_actors.domain.redaction.named_values import ends_there, secret_end, trimmed_end
from signet_actors.domain.windowed_search import windowed_matches

COMMAND_OPTIONS: Final[tuple[tuple[tuple[str, ...], str, str], ...]] = (
    (("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mysqlpump"), "p", "glued"),
    (("mariadb", "mariadb-dump", "mariadb-admin", "mariadb-backup", "xtrabackup"), "p", "glued"),
    (("sshpass",), "p", "either"),
    (("redis-cli", "keydb-cli", "valkey-cli"), "a", "either"),
    (("docker login", "podman login", "skopeo login", "buildah login", "az login", "oc login"), "p", "apart"),
    (("helm registry login", "expo login", "mongo", "mongosh", "mongodump", "mongorestore"), "p", "apart"),
    (("sqlcmd", "bcp", "unzip", "zip"), "P", "either"),
    (("plink", "pscp", "psftp"), "pw", "apart"),
    (("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldappasswd"), "w", "either"),
    (("7z", "7za", "unrar", "rar"), "p", "glued"),
    (("keytool", "jarsigner"), "storepass", "apart"),
    (("keytool", "jarsigner"), "keypass", "apart"),
    (("curl",), "u", "user"),
    (("curl",), "-user", "user"),
    (("curl",), "U", "user"),
    (("curl",), "-proxy-user", "user"),
    (("smbclient", "rpcclient", "smbmap"), "U", "user"),
    (("http", "https", "xh", "xhs"), "a", "user"),
    (("http", "https", "xh", "xhs"), "-auth", "user"),
    (("mosquitto_pub", "mosquitto_sub", "mosquitto_rr", "ssh-keygen"), "P", "apart"),
    (("ssh-keygen",), "N", "apart"),
    (("openssl enc", "openssl aes-256-cbc"), "k", "apart"),
    (("psexec", "psexec64", "rdesktop", "twine upload", "snowsql", "usermod", "useradd"), "p", "apart"),
)
"""Commands, their password option, and its form: in the same word, in the next word, either, or ``user:pass``."""

_OPTIONS: Final = {
    command: {option: how for names, option, how in COMMAND_OPTIONS if command in names}
    for commands, _, _ in COMMAND_OPTIONS
    for command in commands
}
COMMAND_MARKS: Final = (
    *("mysql", "mariadb", "xtrabackup", "sshpass", "-cli", " login", "mongo", "sqlcmd", "bcp ", "zip ", "plink"),
    *("pscp", "psftp", "ldap", "7z", "rar ", "keytool", "jarsigner", "curl", "smbclient", "rpcclient", "smbmap"),
    *("http ", "https ", "xh ", "xhs ", "psexec", "rdesktop", "twine"),
    *("snowsql", "usermod", "useradd", "mosquitto", "ssh-keygen", "openssl"),
)
_READERS: Final = (
    *("sudo", "passwd", "-token", "requirepass", "masterauth", "kinit", "cryptsetup", "secret", "stdin", "-fd"),
    *("sqlplus", "sqlldr", "sqlcl", "pdp ", "rman ", "conn", "net use", "-securestring", " on >"),
    *("wpa_passphrase", "xfreerdp", "schtasks", "rabbitmqctl", "mosquitto_passwd", "mc ", "vault login"),
    *("pass insert", "jdbc:oracle", "securestring"),
)
_TOKEN_MARKS: Final = (
    *("unlock", "obscure", "apikey", "api=", "hex.user", "service install", "auth", "login", "token"),
    "-secrets",
)
OPTION_MARKS: Final = (" -", "\t-", *_READERS, *_TOKEN_MARKS)
"""Texts without these have no command with a password."""
_COMMAND_NAMES: Final = "|".join(
    re.escape(command).replace(r"\ ", r"\s{1,3}+") for command in sorted(_OPTIONS, key=len, reverse=True)
)
_GAP: Final = r"(?>(?:[ \t]|\\\r?\n){1,40})"  # a backslash joins lines
_EVENT = compile_later(
    r"(?P<end>(?<!\\)(?<!\\\r)\n|[;|]|&&)"
    rf"|(?<![\w.-])(?P<command>{_COMMAND_NAMES})(?:\.exe)?(?=(?P<arguments>{_GAP}(?:-|https?://))|\s)"
    r"|(?<=\s)-(?P<flags>[#0-9A-Za-z]{0,8}?)(?P<option>storepass|keypass|pw|-(?:proxy-)?user|-auth|[pPaUuw]|[Nk](?=\s))"
    rf"(?P<between>=|{_GAP}|(?=[^\s=]))(?P<quote>[\"']?+)(?!-)(?P<value>[^\s\"'`]{{1,256}}+)"
)
_FLAGS: Final = frozenset("#012346789BGIJLNORSVZabefgijklnoqrsvxz")
"""Short options without a value of curl, zip, ldapsearch, sshpass and http: one word may hold them and the option."""
_BEFORE_CHARS: Final = 160
_BEFORE_COMMAND = compile_later(
    r"(?:.{0,160}[`\"'(:$#%>])?\s*+(?:[-*+]\s|\d{1,3}[.)]\s|sudo\s|[A-Za-z_]\w{0,40}=\S{0,99}\s){0,5}\s*+(?:[\w./~-]{0,99}/)?",
    re.DOTALL,
)
"""What may precede a command on its line: a prompt, a quote, a bullet, ``sudo``, variables, a directory."""
_OPTION_BEFORE = compile_later(r"(?:^|\s)--?[A-Za-z][\w-]{0,40}[\s=]+$")
_PORTS = compile_later(r"[\d.:\-]{0,64}:\d{1,5}(?:-\d{1,5})?(?:/\w{3,4})?")
_WORD = compile_later(r"[a-z]{1,256}+")
_MORE_ARGUMENTS = compile_later(rf"{_GAP}(?:-|(?:ssh|scp|sftp|rsync|ping)\b|[\w-]{{0,64}}+[.@:/])")
"""Matches if the command continues after the option, unlike a sentence about it: ``sshpass -p leaks the …``."""
_REACH: Final = 1024
_MAX_OPTION_CHARS: Final = 256
_OPTION_END = compile_later(r"[^\s\"'`]*+")
_USER_AND_PASSWORD = compile_later(r"[^\s:%]{1,128}+[:%]")

_OPENSSL = compile_later(r"(?<=\s)-pass(?:in|out)?\s{1,3}+[\"']?pass:([^\s\"']{1,256}+)")
_NETRC = compile_later(
    r"\b(?:machine\s{1,9}+\S{1,253}+|default)\s{1,9}+login\s{1,9}+\S{1,128}+\s{1,9}+password\s{1,9}+(\S{1,256}+)"
)
_PGPASS = compile_later(
    r"(?:^[ \t]{0,40}+|(?<=[\"'`]))(?!arn:)[^\s:\\\"'`]{1,253}+:(?:[1-6]?54\d\d|6432|6543|\*)"
    r":(?P<base>[^\s:\"'`]{1,63}+):[^\s:\"'`]{1,63}+:(?P<password>[^\s:\"'`]{1,256}+)(?:[ \t\r]{0,40}+$|[\"'`])",
    re.MULTILINE,
)
"""A whole line, or all text between quotes: exactly five fields, of which the second is a PostgreSQL port."""

_AUTHORIZATION: Final = (
    r"\bauthorization(?>(?:\\{0,8}+[\"'])?)\s{0,40}+(?:[:=]|(?=[\"']?(?:basic|bearer)\s))"
    r"\s{0,40}+(?>(?:\\{0,8}+[\"'])?)"
)
_BEARER = compile_later(
    rf"(?:\bbearer\s{{1,40}}+|{_AUTHORIZATION}"
    r"(?:(?:(?P<known>(?:[a-z][\w.-]{0,32})?(?:token|key|auth|bot)|basic|digest|negotiate|bearer|ntlm|aws|ssws|splunk|vault)"
    r"|(?P<other>[a-z][\w.-]{1,40}))[ \t]{1,40}+)?)([a-z0-9\-._~+/:]{8,512}+={0,2}+)"
)
_PARAMETERS = compile_later(rf"{_AUTHORIZATION}[a-z][\w.-]{{1,40}}[ \t]{{1,40}}+(?=[\w-]{{1,40}}\s?=\s?[^\s=])")
_PARAMETER = compile_later(r"([\w-]{1,40}+)\s?=\s?(?>(?:\\{0,8}+[\"'])?)([^\s\"',\\]{0,4096}+)[\"'\\]{0,8}+[\s,]{0,8}+")
_SECRET_PARAMETER = compile_later(r"response|signature|mac|token|auth$|key$|secret|password|hash", re.IGNORECASE)
"""``Digest username="anna", response="…"``: who asks, of what and when is no secret."""
_MIN_TOKEN_CHARS: Final = 16
_BEARER_END = compile_later(r"[A-Za-z0-9\-._~+/=]*+")
_INPUT = compile_later(
    r"\b(?:echo|printf)\s{1,9}+(?:-\w\s{1,9}|[\"']?%s(?:\\n)?[\"']?\s{1,9})?(?P<quote>[\"'])?(?:[\w.-]{1,64}:)?"
    r"((?(quote)[^\s\"']|[^\s\"'|;&:]){4,256})[\"']?\s{0,9}+\|\s{0,9}+"
    r"(?:sudo\s{1,9}+)?(?:-\w{0,4}s\b|(?:/[\w/]{1,40})?(?:chpasswd|passwd|smbpasswd|kinit|cryptsetup)\b|[^\n|;]{1,120}(?:--(?:password-stdin|with-token"
    r"|passphrase-fd)\b|\bsecrets?\s{1,3}(?:put|set|create|add|import)\b|\bcreate\s{1,3}secret\b|(?:secret|pass|key)[^\n|;]{0,60}/dev/stdin\b|-pass\s{1,3}stdin\b))"
    r"|(?:--(?:password-stdin|with-token)|\b(?:kinit|cryptsetup|sudo\s{1,3}-s)\b[^\n|;<>]{0,80}?)\s{1,9}<<<\s{0,9}[\"']?([^\s\"'|;&]{4,256})"
    r"|\b(?:requirepass|masterauth)[ \t]{1,9}[\"']?([^\s\"'|;&]{4,256})"
    r"|\bhtpasswd\s{1,9}(?:(?P<shown>(?=(?:-\w{1,9}\s{1,9}){0,3}-\w{0,9}n))|)(?:-\w{1,9}\s{1,9}){0,3}-\w{0,9}b\w{0,9}\s{1,9}"
    r"(?:\d\d?\s{1,9})?(?(shown)|\S{1,200}\s{1,9})\S{1,64}\s{1,9}[\"']?([^\s\"'|;&]{4,256})"
    r"|\bchpasswd\s{0,9}<<-?<?\s{0,9}[\"']?(?:eof[\"']?\s{1,9})?[\w.-]{1,64}:([^\s\"'|;&]{4,256})"
    r"|\b(?:(?P<sql>(?:sqlplus|sqlldr|sqlcl|(?:imp|exp)dp|rman\s{1,9}target)\s|jdbc:oracle:\w{2,5}:)|conn(?:ect)?\s)\s{0,8}"
    r"(?:-\w{1,9}\s{1,9}){0,3}[\"']?(?:userid=)?[\w$#.]{1,30}/[\"']?(?P<pass>[^\s@\"'/]{4,64})"
    r"(?=[\"']?(?(sql)(?:@[\w/(]|\s|\Z)|@[\w/(][^\s\"'`]{0,200}[\"'`]?[ \t]{0,3}(?:[\n;]|\Z)))"
    r"|\bnet\s{1,3}use\s{1,9}(?:\S{1,20}\s{1,9})?\\\\\S{1,120}\s{1,9}(?:/u(?:ser)?:\S{1,64}\s{1,9})?[\"']?([^\s\"'/*]{4,256})"
    r"|\b(?:setuser|user)\s{1,3}\S{1,64}\s{1,3}on\s{1,3}>(?!=)([^\s\"'|;&]{4,256})"
    r"|\b(?:wpa_passphrase|net[ \t]{1,3}user|rabbitmqctl[ \t]{1,3}(?:add_user|change_password)"
    r"|mosquitto_passwd[ \t]{1,3}-\w{1,3}[ \t]{1,3}\S{1,99}"
    r"|mc[ \t]{1,3}(?:alias[ \t]{1,3}set|config[ \t]{1,3}host[ \t]{1,3}add)[ \t]{1,3}\S{1,64}[ \t]{1,3}\S{1,99})"
    r"[ \t]{1,9}\S{1,64}[ \t]{1,9}[\"']?([^\s\"'/*]{4,256})"
    r"|\bvault[ \t]{1,3}login[ \t]{1,3}(?:-\S{1,64}[ \t]{1,3}){0,3}[\"']?([^\s\"'|;&=-][^\s\"'|;&=]{3,256})"
    r"|\b(?:xfreerdp|schtasks)\b[^\n]{0,200}?\s/(?:p:|rp\s{1,9})[\"']?([^\s\"']{4,256})"
    r"|\bconvertto-securestring\s{1,9}(?:-string\s{1,9})?[\"']([^\s\"'|;&]{4,256})"
    r"|\b(?:secrets?\s{1,3}(?:set|put)|pass\s{1,3}insert)\s{1,3}\S{1,64}\s{1,3}(?:(?:-b|--body)[ =]?|<<<\s{0,9})"
    r"[\"']?([^\s\"'|;&]{4,256})"
    r"|\b(?:keyvault\s{1,3}secret\s{1,3}set\b|ssm\s{1,3}put-parameter(?=[^\n]{0,400}securestring))"
    r"[^\n|;]{0,200}?\s--value[ =][\"']?([^\s\"'|;&]{4,256})"
)
_SETS = compile_later(r"\b(?:create\s{1,3}secret|secrets?\s{1,3}(?:set|put|create))(?=\s)")
_COMMAND_LINE = compile_later(r"(?>(?:[^\\\n]|\\\r?\n|\\.)*)")
_SET = compile_later(r"(?<=\s)(?:(?:--from-literal|--env|-e)[ =])?[\"']?[A-Za-z][\w.]{0,64}=[\"']?([^\s\"'|;&]{6,256})")
"""A command that sets secrets by name, and each of what it sets: ``fly secrets set X=…``."""
_TOKEN_COMMAND = compile_later(
    r"(?<![\w.-])(?:(?:algolia|bw|cargo|cloudflared|composer|consul|doctl|eas|flyctl|fly|heroku|hf|huggingface-cli|mix"
    r"|ngrok|netlify|poetry|pulumi|railway|rclone|sentry-cli|snyk|supabase|terraform|vercel|wandb)"
    r"(?=[ \t])[ \t\w:.-]{0,80}?[ \t]"
    r"(?:login|auth|unlock|authtoken|add-authtoken|obscure|apikey|authorizations:create|init|install|key|token"
    r"|[\w.-]{0,60}(?:api|auth|key|token)[\w.-]{0,60})"
    r"|[a-z][\w-]{1,30}[ \t]user-secrets[ \t]{1,3}set[ \t]{1,3}[\w:.-]{1,64})"
    r"(?:[ \t]{1,3}[\w.+-]{1,64}@[\w.-]{1,64})?(?:[ \t]{1,3}--?[a-z][\w-]{0,20}(?:=\S{1,99})?){0,2}"
    r"(?:[ \t=]|\\\r?\n){1,9}"
    r"[\"']?(?P<value>[\w.+=-]{16,256})(?=[\s\"'`,;|&)]|\Z)"
)
"""A token as the argument of a program: ``wandb login …``, ``ngrok config add-authtoken …``."""
_SHA1 = compile_later(r"[0-9a-f]{40}")
"""Such a key looks like a commit; none of these programs takes one."""
_AUTH = compile_later(
    r"(?:(?P<alone>(?:^|[\n>`]|-cli)[ \t]{0,4})|(?<![\w-]))AUTH[ \t]{1,4}"
    r"[\"']?([^\s\"'`]{2,256})[\"']?(?:[ \t]{1,4}[\"']?([^\s\"'`]{6,256}))?"
)
_PRODUCTS = compile_later(
    r"(?:[A-Z][A-Za-z-]{1,30}|[A-Za-z-]{2,30}(?=\d{0,2}[+@/]))\d{0,2}(?:\.\d{1,2})?(?:[+@/][A-Za-z-]{0,30}\d{0,2}(?:\.\d{1,2})?){0,3}"
)
"""What follows the heading ``AUTH``: ``OAuth2.1``, ``WebAuthn/FIDO2``, ``next-auth@5``."""
"""The command of Redis and of mail servers: a password, or a user or mechanism and a password."""
"""What a command is given to read, or the next words of one that takes no option for it."""
_OF_PROSE_TOO: Final = ("requirepass", "masterauth", "conn", "net", "vault", "mc")
"""The word after these may be one of a sentence: ``requirepass must …``."""
_AUTH_PAIR = compile_later(
    r"(?:\b(?:auth[\"']?\s{0,3}+[:=]\s{0,3}+(?:\(|(?P<list>\[))|(?:(?:http)?basicauth|passwordauthentication|usernamepasswordcredentials"
    r"|pscredential|networkcredential|(?:smtp|imap|server|mail|ftp|client)\.login)\s{0,3}+\()\s{0,9}+"
    r"|\b(?:getconnection|pdo|mysqli(?:_connect)?|mysql_connect|(?:py)?mysql(?:db)?\.connect|new\s{1,9}sequelize|ftp_login|ssh2_auth_password)"
    r"\s{0,3}+\([^,()\n]{1,200}+,\s{0,9}+|\b(?:oci_connect|(?:cx_oracle|oracledb)\.connect)\s{0,3}+\(\s{0,9}+"
    r"|\b(?P<told>create_(?:super)?user\(\s{0,9}+[^,()\n]{1,200}+,\s{0,9}+|\w{4,16}with_?email_?and_?password\(\s{0,9}+(?:[^,\"'\n]{1,60}+,\s{0,9}+)?"
    r"|(?:emailauthprovider\.credential|auth\.sign(?:in|up))\(\s{0,9}+))"
    r"(?:(?P<literal>[\"'])[^\"'\s]{1,128}+[\"']|\$?[\w.]{1,64}+)\s{0,9}+,\s{0,9}+[\"'](?P<value>[^\"'\s]{1,256}+)[\"']"
)
PAIR_MARKS: Final = (
    *("auth", "credential", "create_", "emailandpassword", "email_and_password", "getconnection", "pdo", "mysqli"),
    *(".connect(", "mysql_connect", "sequelize", ".login", "ftp_login", "oci_connect"),
)
"""The literal password in ``auth=("anna", "…")`` and in the constructors of credentials."""
_ARGUMENT = compile_later(
    r"(?:\b(?:bcrypt(?:js)?(?:\.(?:hash|compare|gen|check|verify)\w{0,20}|::password\.create)?|hash::(?:make|check)|argon2(?:id)?\.(?:hash|verify)"
    r"|password_(?:hash|verify)|(?:generate|check|get|make|create)_?password_?hash|(?:pwd_context|password_?hasher|ph)\.(?:hash|verify)"
    r")\s?\(|(?<=passwordencoder)(?:\(\))?\.(?:encode|matches)\("
    r"|by_?[a-z_]{2,24}\((?:[^()\n]{0,60}?[\W_])?(?:password|passwort|passphrase|kennwort|pwd|mot\sde\spasse|contrase\u00f1a|senha)(?![a-z])[^()\n]{0,40}\)"
    r"\s?,\s{0,9}(?:\{\s?target:\s?\{\s?value:)?)"
    r"\s{0,9}b?[\"'`](?P<value>[^\"'`\s]{6,128})[\"'`]"
)
ARGUMENT_MARKS: Final = (
    *("bcrypt", "hash", "argon2", "encode", "matches(", "verify", "getby", "findby", "queryby", "by_"),
)
_VARIABLE = compile_later(
    r"(?:^|[\s'\"`])[A-Z0-9_]{0,64}?(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|PWD|SECRET(?:_KEY)?|TOKEN|API_?KEY|ACCESS_KEY)"
    r"(?:_[A-Z0-9]{1,16})?=([\"']?)([A-Za-z]{8,128}+)\1(?=\s|[\"'`]|\Z)"
)
"""An environment variable, in capitals, with a value of letters alone; ``named_values`` finds the others."""
_NO_WORD = compile_later(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_COOKIES = compile_later(
    r"(?:\b(?:set-)?cookie(?>(?:\\{0,8}+[\"'])?)(?:\s{0,3}+(?:,\s{0,40}+\\{0,8}+[\"']value\\{0,8}+[\"']\s{0,3}+)?[:=]\s{0,3}+|(?<=--cookie)\s{1,3}+)|(?<=\s-b)\s{1,3}+)"
    r"(?>(?:\\{0,8}+[\"'])?)(?=[\w.\-]{1,64}=)"
)
_COOKIE = compile_later(r"([^\s=;,\"']{1,128}+)=([^\s;,\"'\\]{0,4096}+)(?>(?:;\s{0,3}+)?)")
_COOKIE_NAME = compile_later(r"sess|sid|auth|token|jwt|login|remember|csrf|xsrf|identity|ticket|\.aspx", re.IGNORECASE)
_KNOWN_COOKIE = compile_later(
    r"(?<![\w.\-])(?:phpsessid|jsessionid|asp\.net_sessionid|\.aspxauth|\.aspnetcore\.cookies|connect\.sid|laravel_session"
    r"|_gitlab_session|wordpress_logged_in_[0-9a-f]{32})(?>(?:\\{0,8}+[\"'])?)\s?[=:]\s?(?>(?:\\{0,8}+[\"'])?)([^\s;,\"'\\]{8,4096}+)"
)
_SESSION = compile_later(r"(?<![\w.\-])(?:sessionid|session|sid)=[\"']?(?P<value>[\w+/=.%:-]{16,4096}+)")
"""The cookie of Django or Spring outside a header; the name or the id of a session may stand there, too."""

COOKIE_MARKS: Final = ("cookie", "sess", "sid=", "srf", "connect.sid", ".aspx")
_ADDRESS = compile_later(r"://[^\s/?#:@\"'<>]{0,128}+:(?:([^\s/\"'<>]{1,2048})|(?P<drawn>[!-~]{8,64}?))@(?=[^\s@])")
_TOKEN_AS_USER = compile_later(
    r"://([A-Za-z0-9_-]{32,256}+)@(?![\w.-]{0,64}sentry)"
)  # what Sentry's addresses hold is public

_KEY_BEGIN: Final = "-----BEGIN"
_KEY_HEAD = compile_later(r"-----BEGIN[ A-Z0-9]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = compile_later(r"-----END[ A-Z0-9]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_LAST_LINE = compile_later(rf"{_KEY_END.pattern}|Private-MAC:")
_KEY_LINE = compile_later(r"[A-Za-z0-9+/=]{16}")
_BEFORE_KEY_LINE: Final = r"(?>(?:[^A-Za-z+/=\\]|\\[nr]){0,12})"
"""Line ends (also escaped ones), and characters that quote or number a line."""
_KEY_LINES = compile_later(
    rf"(?>(?:{_BEFORE_KEY_LINE}(?>(?:(?:Proc-Type|DEK-Info|Comment|Version)[^\r\n]{{0,200}}[\r\n]{{1,4}}){{0,4}})"
    rf"{_BEFORE_KEY_LINE}[A-Za-z0-9+/=]{{16,4096}}+)+)"
)
_MAX_KEY_CHARS: Final = 65_536
_MIN_TAIL_CHARS: Final = 16
_LINE_SIGNS: Final = r"(?>(?:[^A-Za-z+/=]|[nr]\\){0,12})"
_KEY_TAIL = compile_later(
    rf"(?>(?P<below>{_LINE_SIGNS})(?:[A-Za-z0-9+/]{{4}}=(?=[nr]\\|[^A-Za-z0-9+/=]){_LINE_SIGNS})?"
    rf"[A-Za-z0-9+/=]{{1,4096}}+(?>(?:{_LINE_SIGNS}[A-Za-z0-9+/=]{{40,4096}}+)*))"
    rf"(?>(?:{_LINE_SIGNS}[A-Za-z0-9+/=]{{16,39}}+)?)"
)
"""The lines before the end of a key, read backwards: a checksum, the last one, whole ones, and one that is cut."""
_PUTTY = compile_later(r"Private-Lines:\s{0,4}+\d{1,4}+((?>(?:\s{1,4}+[A-Za-z0-9+/=]{16,4096}+)+))")


def key_blocks(plain: str) -> Iterator[forms.SecretSpan]:
    """Yield private keys: from BEGIN to END, or the base64 lines behind BEGIN or before END if the other is missing."""
    at = plain.find(_KEY_BEGIN)
    while at >= 0:
        head = _KEY_HEAD.match(plain, at)
        after = at + len(_KEY_BEGIN)
        if head is not None:
            after = head.end()
            following = plain.find(_KEY_BEGIN, after)
            limit = min(len(plain) if following < 0 else following, after + _MAX_KEY_CHARS)
            tail = _KEY_END.search(plain, after, limit)
            if tail is not None and _KEY_LINE.search(plain, after, tail.start()):
                yield "private-key", at, (after := tail.end())
            elif lines := _KEY_LINES.match(plain, after):
                yield "private-key", at, (after := lines.end())
        at = plain.find(_KEY_BEGIN, after)
    least = 0
    for last in _LAST_LINE.finditer(plain):  # whose beginning may not be in the text: what ``tail`` shows
        lines = _KEY_TAIL.match(plain[max(least, last.start() - _MAX_KEY_CHARS) : last.start()][::-1])
        least = last.end()
        if lines is not None and lines.end() >= _MIN_TAIL_CHARS and forms.is_mixed(lines[0]):
            end = least if plain[last.start()] == "-" else last.start() - len(lines["below"])
            start = last.start() - lines.end()
            start += plain[start - 1 : start] == "\\" and plain[start] in "nr"  # the letter of an escaped line end
            yield "private-key", start, end
    for match in _PUTTY.finditer(plain) if "Private-Lines:" in plain else ():
        yield "private-key", *match.span(1)


def command_options(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield passwords in command options. An option belongs to the preceding command on its line."""
    if any(mark in folded for mark in COMMAND_MARKS):
        options: dict[str, str] = {}
        begin = 0  # where the command's line begins
        sure = False
        for event in windowed_matches(_EVENT, plain, _REACH):
            if event["command"]:
                arguments = event["arguments"] is not None
                if _is_command(plain, begin, event.start(), arguments=arguments):
                    options, sure = _OPTIONS[" ".join(event["command"].split())], arguments
            elif event["end"]:
                options, begin = {}, event.end()
            elif (how := options.get(event["option"])) and (
                not event["flags"] or (_FLAGS.issuperset(event["flags"]) and (how == "user" or event["between"]))
            ):
                yield from _option_value(how, event, plain, sure=sure)
    for marks, pattern in (
        (("pass:",), _OPENSSL),
        (("login",), _NETRC),
        (_READERS, _INPUT),
    ):
        for found in windowed_matches(pattern, folded, _REACH) if any(mark in folded for mark in marks) else ():
            start, end = found.span(found.lastindex or 0)
            if (forms.is_value if found[0].startswith(_OF_PROSE_TOO) else forms.is_literal_secret)(plain[start:end]):
                yield "password", start, end
    for found in (
        windowed_matches(_TOKEN_COMMAND, folded, _REACH) if any(map(folded.__contains__, _TOKEN_MARKS)) else ()
    ):
        start, end = found.span("value")
        if forms.is_token(plain[start:end]) or _SHA1.fullmatch(folded, start, end):
            yield "credential", start, end
    done = 0
    for found in windowed_matches(_SETS, folded, _REACH) if "secret" in folded else ():
        line = None if found.start() < done else _COMMAND_LINE.match(plain, found.end(), found.end() + _REACH)
        done = line.end() if line else done
        for each in _SET.finditer(plain, found.end(), line.end()) if line else ():
            if forms.is_value(each[1]):
                yield "password", *each.span(1)
    for found in windowed_matches(_AUTH, plain, _REACH) if "AUTH" in plain else ():
        alone = found["alone"] is not None and ends_there(plain, found.end())
        for group in (2, 3):
            if (
                (found[group] and not found[group].endswith(":"))
                and (
                    forms.is_signed_credential(found[group])
                    or (alone and forms.is_spoken_password(found[group]) and not found[group].isupper())
                )
                and not _PRODUCTS.fullmatch(found[group])
            ):
                yield "password", *found.span(group)


def _is_command(plain: str, begin: int, start: int, *, arguments: bool) -> bool:
    """Return whether a command name is really a command, not a word of a sentence or another command's argument."""
    if arguments and _OPTION_BEFORE.search(plain[max(begin, start - 48) : start]) is None:
        return True
    return start - begin <= _BEFORE_CHARS and _BEFORE_COMMAND.fullmatch(plain, begin, start) is not None


def _option_value(how: str, event: re.Match[str], plain: str, *, sure: bool) -> Iterator[forms.SecretSpan]:
    """Yield the password after an option.

    Unless ``sure`` that the option belongs to the command, the value must look like a password.
    """
    start, end = event.span("value")
    if _PORTS.fullmatch(plain, start, end):
        return
    if how == "user":
        user = _USER_AND_PASSWORD.match(plain, start, end)
        accept = forms.is_url_password if sure else forms.is_value
        if user and end - user.end() >= 4 and accept(plain[user.end() : end]):
            if end - start >= _MAX_OPTION_CHARS:
                end = _end_of(_OPTION_END, plain, end)
            yield "password", user.end(), _closed(event, plain, end) or end
    elif how != ("glued" if event["between"] else "apart"):
        value = plain[start : trimmed_end(plain, start, end)]
        if event["between"] and not event["quote"] and _WORD.fullmatch(value):
            sure = sure and len(value) >= 8 and _MORE_ARGUMENTS.match(plain, end) is not None
        if (forms.is_option_value if sure else forms.is_value)(value):
            yield "password", start, _closed(event, plain, end) or secret_end(plain, start, end)


def variables(plain: str) -> Iterator[forms.SecretSpan]:
    """Yield values of letters alone in ``DB_PASSWORD=…`` that no word is written like: ``kvQwErTyUi``."""
    for variable in windowed_matches(_VARIABLE, plain, _REACH):
        start, end = variable.span(2)
        if len(_NO_WORD.findall(plain, start, end)) >= 2 and forms.is_literal_secret(plain[start:end]):
            yield "password" if "PASS" in variable[0] or "PWD" in variable[0] else "credential", start, end


def auth_pairs(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the literal passwords of pairs that a program logs in with: ``auth=("anna", "…")``."""
    for pair in windowed_matches(_AUTH_PAIR, folded, _REACH):
        start, end = pair.span("value")
        sure = pair["literal"] and not (pair["list"] or pair["told"])
        if (forms.is_option_value if sure else forms.is_spoken_password)(plain[start:end]):
            yield "password", start, end


def arguments(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the literal passwords that a call hashes, or that a test enters into a field named like one."""
    for call in windowed_matches(_ARGUMENT, folded, _REACH):
        if forms.is_spoken_password(plain[slice(*call.span("value"))]):
            yield "password", *call.span("value")


def _closed(event: re.Match[str], plain: str, end: int) -> int | None:
    """Return the end of a value in quotation marks that goes on behind a blank, None if it does not."""
    line = plain[end : end + _MAX_OPTION_CHARS].partition("\n")[0]
    at = line.find(event["quote"]) if event["quote"] and line.startswith(" ") else -1
    return end + at if at >= 0 else None


def password_file_lines(plain: str) -> Iterator[forms.SecretSpan]:
    """Yield the passwords of ``.pgpass`` lines: host, port, database, user and password separated by colons."""
    for line in windowed_matches(_PGPASS, plain, _REACH):
        start, end = line.span("password")
        if not line["base"].isdigit() and forms.is_literal_secret(plain[start:end]):
            yield "password", start, end


def header_tokens(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the tokens after ``Authorization:`` or ``Bearer``."""
    at = 0
    for header in windowed_matches(_PARAMETERS, folded, _REACH):
        at = max(at, header.end())
        while parameter := _PARAMETER.match(plain, at):
            at = parameter.end()
            value = parameter[2][:256]
            if (
                _SECRET_PARAMETER.search(parameter[1])
                and len(value) >= _MIN_TOKEN_CHARS
                and forms.is_literal_secret(value)
            ):
                yield "bearer-token", *parameter.span(2)
    for match in windowed_matches(_BEARER, folded, _REACH):
        start, end = match.span(3)
        value = plain[start : min(trimmed_end(plain, start, end), start + 256)]
        password = match[0].startswith("auth") and not match["other"] and forms.is_spoken_password(value)
        token = len(value) >= _MIN_TOKEN_CHARS and (
            forms.has_digit(value) or forms.is_base64_text(value) or len(_NO_WORD.findall(value)) > 2
        )
        token = token and (not match["other"] or forms.is_unmistakable(value))
        if (token or password) and forms.is_literal_secret(value):
            if end - start >= 512:
                end = _end_of(_BEARER_END, plain, end)
            yield "bearer-token", start, trimmed_end(plain, start, end)


def cookies(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the values of session cookies."""
    at = 0
    for header in windowed_matches(_COOKIES, folded, _REACH):
        if header.start() < at:
            continue
        at = header.end()
        while pair := _COOKIE.match(plain, at):
            at = pair.end()
            if len(pair[2]) >= 8 and _COOKIE_NAME.search(pair[1]) and forms.is_value(pair[2][:256]):
                yield "session-cookie", *pair.span(2)
    for cookie in windowed_matches(_KNOWN_COOKIE, folded, 2 * 4096):
        start, end = cookie.span(1)
        if forms.is_value(plain[start : min(end, start + 256)]):
            yield "session-cookie", start, end
    for cookie in windowed_matches(_SESSION, folded, 2 * 4096):
        start, end = cookie.span("value")
        end = trimmed_end(plain, start, end)
        if forms.is_token(plain[start : min(end, start + 256)]):
            yield "session-cookie", start, end


def address_passwords(plain: str) -> Iterator[forms.SecretSpan]:
    """Yield the passwords in URLs: ``scheme://user:password@host``, ``scheme://token@host``."""
    for match in windowed_matches(_ADDRESS, plain, 4096):
        start, end = match.span("drawn" if match["drawn"] else 1)
        value = plain[start : min(end, start + 256)]
        if is_generated(value) or (not match["drawn"] and forms.is_url_password(value)):
            yield "url-password", start, end
    for match in windowed_matches(_TOKEN_AS_USER, plain, _REACH):
        if forms.has_digit(match[1]) and forms.is_literal_secret(match[1]):
            yield "url-password", *match.span(1)


def data_source_passwords(plain: str) -> Iterator[forms.SecretSpan]:
    """Yield the passwords of Go's data source names: ``user:password@tcp(host:port)/database``."""
    for mark in ("@tcp(", "@unix("):
        at = plain.find(mark)
        while at >= 0:
            begin = max(0, at - _MAX_OPTION_CHARS)
            word = max(plain.rfind(stop, begin, at) for stop in " \t\r\n\"'`=") + 1
            colon = plain.find(":", max(word, begin), at)
            if colon > max(word, begin) and forms.is_url_password(plain[colon + 1 : at]):
                yield "url-password", colon + 1, at
            at = plain.find(mark, at + 1)


def _end_of(run: re.Pattern[str], text: str, at: int) -> int:
    match = run.match(text, at)
    return match.end() if match else at
