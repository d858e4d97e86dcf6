"""The exact names in a text: error codes, tickets, names of code, hosts and so on, and how much each one tells.

A memory that has such a name of a pasted log, trace or listing is about it, whatever else the text says. A name that
every program may have (``KeyError``, ``user_id``, status 500) tells half as much, so a memory needs two of them.

Source: docs/quality.md "Pasted text"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

ENOUGH: Final = 1.0
"""A memory whose names of a text weigh so much together is about it."""
MAX_NAMES: Final = 400
_HALF: Final = 0.5
_ERROR: Final = 0.6
_SYMBOL: Final = 0.4
"""A standard exception tells enough together with a symbol that it names."""
_MAX_CHARS: Final = 80

_MAY_HAVE_NAMES: Final = re.compile(r"[0-9_@]|--|[A-Za-z][A-Z]|[A-Za-z]\.[a-z]")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")
_NAME_WORD: Final = re.compile("[a-z0-9_]+")
_MAX_PLACES: Final = 50
_TICKET: Final = re.compile(r"(?:CVE-\d{4}-\d{3,7}|([A-Z][A-Z0-9]{1,9})-\d{1,7})(?![A-Za-z0-9_])")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-\d{1,4}")
_HEX: Final = re.compile(r"0[xX](?!([0-9A-Fa-f])\1+$)[0-9A-Fa-f]{4,16}")
_HASH: Final = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}")
_CODE: Final = re.compile(r"([A-Z]{1,8})\d{3,6}|\d{2}[PSR]\d{2}|\d[A-Z]\d{3}")
_ERRNO_STEMS: Final = """
    ACCES ADDRINUSE ADDRNOTAVAIL AGAIN ALREADY BADF BADENGINE BUSY CONNABORTED CONNREFUSED CONNRESET DEADLK DQUOT EXIST
    FAULT FBIG HOSTDOWN HOSTUNREACH INTEGRITY INTR INVAL IO ISCONN ISDIR JSONPARSE LIFECYCLE LOOP MFILE MSGSIZE
    NAMETOOLONG NETUNREACH NFILE NOBUFS NODEV NOENT NOEXEC NOLCK NOMEM NOSPC NOSYS NOTCONN NOTDIR NOTEMPTY NOTFOUND
    NOTSUP NXIO OPNOTSUPP OVERFLOW OWNERDEAD PERM PIPE PROTO RANGE RESOLVE ROFS SOCKETTIMEDOUT SPIPE SRCH STALE TARGET
    TIMEDOUT TIMEOUT TXTBSY USAGE XDEV
"""
_ERRNOS: Final = frozenset(f"E{stem}" for stem in _ERRNO_STEMS.split())
_CAMEL: Final = re.compile(r"(?:[a-z][a-z0-9]*|[A-Z]+[a-z0-9]+)[A-Z][A-Za-z0-9]*|[A-Z]{3,}[a-z]{3,}")
_ERROR_NAME: Final = re.compile(r"([A-Za-z]*)(?:Error|Exception|Warning)")
_FILE: Final = re.compile(
    r"(?<![A-Za-z0-9_-])([A-Za-z0-9_-]{2,60})\.(?:c|cc|conf|cpp|cs|css|dart|ex|exs|fs|go|gradle|h|hpp|html|ini|ipynb|java|jinja"
    r"|jl|js|json|jsx|kt|lua|mjs|mm|php|pl|proto|py|r|rb|rs|scala|scss|sh|sol|sql|svelte|swift|tf|toml|ts|tsx|vue|xml"
    r"|yaml|yml|zig)(?![A-Za-z0-9_])"
)
_ADDRESS: Final = re.compile(r"(?<![\w.])(?!127\.|0\.)\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_HOST: Final = re.compile(r"(?<![A-Za-z0-9_.-])[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,6}(?![A-Za-z0-9_.-])")
_PRIVATE_ENDS: Final = ("internal", "local", "lan", "svc", "corp", "intern", "home", "cluster", "example")
"""What the name of a host of a private network ends in."""
_PACKAGE: Final = re.compile(r"(?<![A-Za-z0-9_.])@[a-z0-9][a-z0-9._-]{0,60}/[a-z0-9][a-z0-9._-]{0,60}")
_ARTIFACT: Final = re.compile(r"(?<![\w.])[a-z][a-z0-9_-]{1,30}(?:\.[a-z][a-z0-9_-]{1,30}){1,6}:[a-z][a-z0-9_-]{1,40}")
_FLAG: Final = re.compile(r"(?<![A-Za-z0-9_-])--[a-z][a-z0-9]{0,30}(?:-[a-z0-9]{1,30}){1,6}")
_NUMBER: Final = re.compile(r"(?<![\w.])\d{2,6}(?![\w.]*\d)")
_BEFORE_CODE: Final = re.compile(
    r"(?:(?<![a-z])(?:http(?:/\d(?:\.\d)?)?|status|code|error|err|errno|exit|exited|sqlstate|returned|responded|fehler"
    r"|fehlercode|statuscode|exitcode|código|erreur|codice)|错误码?|状态码?|代码|エラー|コード)"
    r"(?:[\s:=\[\](\"'#]{1,4}(?:with|code|status|de|mit)){0,2}[\s:=\[\](\"'#-]{0,4}$"
)
_BEFORE_CHARS: Final = 40
_REASON: Final = re.compile(r"[45]\d\d(?=[\s:\"'(-]{1,3}[A-Z][a-z]{2,12}\s[A-Z][a-z])")
_SYMBOLS: Final = re.compile(
    r"['\"`\u2018\u201c]([A-Za-z_][\w.-]{2,60})['\"`\u2019\u201d]|\b([A-Za-z_]\w{2,60}) is not (?:defined|a)"
)
_ABOUT_CODES: Final = re.compile(
    r"http|status|code|err|exit|sqlstate|respon|return|answer|fehler|antwort|repond|répond|código|devuelve|错误|状态|代码|返回|エラー",
)
"""A number of a memory is a code only beside such a word."""
_MAX_LINE: Final = 2000
_OF_ERRORS: Final = (
    "error",
    "exception",
    "undefined",
    "not defined",
    "no attribute",
    "cannot find",
    "unknown",
    "panic",
)
_TICKET_LIKE: Final = """
    AES AMD ARM BASE CP EC ED ES GMT GPT HTTP IPV ISO JDK MD MP PY RFC RSA SHA TLS UTC UTF VT X
"""
_NO_TICKETS: Final = frozenset(_TICKET_LIKE.split())
_CODE_LIKE: Final = """
    AES AMD ARM BASE CP ES FP H INT IPV ISO JDK MD MP PY Q RFC RSA SHA T TLS UINT UTC UTF WIN X Y
"""
_NO_CODES: Final = frozenset(_CODE_LIKE.split())
_NUMBERED_THINGS: Final = """
    alpine attempt batch bookworm build bullet bullseye centos chunk client core cpu debian epoch exec executor
    fedora generation go gpt gpu http https input iso item java job layer level line linux main nio node page part
    partition phase php pid pool port postgres process python python3 rank replica request retry ruby run rust
    server session shard slot stage step task test thread tier ubuntu utf version web windows worker x64 x86
"""
_NO_HOSTS: Final = frozenset(_NUMBERED_THINGS.split())
_BRAND_WORDS: Final = """
    airbnb bitbucket chatgpt cloudflare cloudfront codebase dbeaver devops dockerhub docusign dynamodb ebay
    elasticsearch facebook fastapi github gitlab graphql hubspot icloud intellij ios ipad iphone ipv javafx
    javascript jetbrains junit latex linkedin macbook macos mariadb matlab mcdonalds mongodb mysql nestjs nextjs
    nodejs numpy oauth openai openapi openssl opentelemetry paypal playstation postgresql powershell pycharm pytest
    pytorch rabbitmq scikit sharepoint sqlalchemy sqlite stackoverflow tensorflow tiktok typescript vscode vuejs
    webassembly webgl webhook webrtc websocket websockets whatsapp wifi wordpress youtube
"""
_BRANDS: Final = frozenset(_BRAND_WORDS.split())
_ERRORS_OF_LIBRARIES: Final = """
    abstractmethod access aggregate api application argument argumentnull arithmetic arrayindexoutofbounds assertion
    attribute axios base blockingio brokenpipe buffer bufferoverflow checked childprocess classcast classnotfound
    client compile concurrentmodification connection connectionaborted connectionrefused connectionreset
    constraintviolation dataaccess database decode deprecation destination eof error eval execution fetch fileexists
    filenotfound filesystem floatingpoint format future generic http httpstatus illegalargument illegalstate import
    indentation index indexoutofbounds inner instantiation integrity internal internalserver interrupted
    invalidargument invalidoperation invocationtarget io json jsondecode key keynotfound lookup memory method
    missing module modulenotfound name nameerror negativearraysize network noclassdeffound nomethod nosuchelement
    nosuchfield nosuchmethod notfound notimplemented notsupported nullpointer nullreference numberformat
    objectdisposed operation operational os outofmemory overflow parse parser permission process programming range
    recursion reference request resource resourcewarning response rpc runtime security server serversocket service
    servlet socket sql stackoverflow standard stopiteration stringindexoutofbounds syntax system tab task
    taskcanceled thread timeout timeouterror transaction type typeerror unauthorized unboundlocal unchecked
    undeclaredthrowable unhandled unicode unicodedecode unicodeencode unknownhost unsupportedoperation uri url user
    validation value web zerodivision
"""
_COMMON_ERRORS: Final = frozenset(_ERRORS_OF_LIBRARIES.split())
_NAMES_OF_ALL: Final = """
    aarch64_linux access_token addeventlistener amd64_linux api_key app_name appendchild auth_token base_url
    classname client_id client_secret content_type contenttype created_at createdat createelement database_url
    date_time datetime db_url deleted_at display_name end_date error_code error_message errorcode errormessage
    exit_code exitcode file_name file_path filename first_name full_name getelementbyid getlogger getmessage
    github_actions github_token hasownproperty http_proxy httpclient httprequest httpresponse https_proxy innerhtml
    int32_t int64_t is_active is_deleted isempty java_home java_opts last_name line_number localstorage log_level
    max_length max_value node_env node_modules nonetype object_id onchange onclick order_by page_size parsefloat
    parseint password_hash primary_key println push_back queryselector queryselectorall readfile req_id request_id
    requestid retry_count return_value search_path secret_key session_id setinterval setstate settimeout shared_ptr
    site_packages size_t start_date start_time static_cast status_code statuscode stringbuilder task_id thread_id
    threadpool time_zone tojson tostring total_count type_name uint32_t uint64_t uint8_t unique_ptr updated_at
    updatedat usecallback usecontext useeffect usememo user_agent user_id user_name useref userid username usestate
    utf_8 virtual_env x86_64
"""
_COMMON_NAMES: Final = frozenset(_NAMES_OF_ALL.split())
_FILES_OF_ALL: Final = """
    __init__ __main__ adapters api app application build bundle cli client common compose config connection
    connectionpool core database db docker-compose error errors exceptions functools handler helpers index init lib
    loader logger main manage manifest middleware mod model models module node object package package-lock page pom
    pyproject request requirements response route router routes run runpy schema server service session sessions
    settings setup socket store string subprocess test tests thread threading tsconfig types urls util utils version
    view views worker
"""
_COMMON_FILES: Final = frozenset(_FILES_OF_ALL.split())
_COMMON_NUMBERS: Final = frozenset(range(101)) | {127, 200, 201, 202, 204, 255, 301, 302, 304, 307, 308}
_HALF_NUMBERS: Final = frozenset({400, 401, 403, 404, 500, 503})
_SYMBOLS_OF_ALL: Final = """
    address args array body bool boolean children class code content count data default description email error
    false file float function get headers host html id index info input int integer item items json key length level
    line list local main map message method module name new node nonetype null number object options output params
    password path port post props result return root self size source start state status str string success test
    text the this time title token true type types undefined unknown update url user username utf-8 value version
    warning
"""
_COMMON_SYMBOLS: Final = frozenset(_SYMBOLS_OF_ALL.split())


def file_names(text: str) -> list[str]:
    """Return the files that a text names, with their directories, in its order."""
    found = []
    for match in _FILE.finditer(text):
        begin, least = match.start(), max(0, match.start() - _MAX_CHARS)
        while begin > least and (text[begin - 1].isalnum() or text[begin - 1] in "/_.-~@"):
            begin -= 1
        found.append(text[begin : match.end()].lstrip(".-@"))
    return found


def exact_names(text: str) -> dict[str, float]:
    """Return the names in ``text`` with what each one tells, at most 1; the most telling ones first.

    Names are in lower case. A number is marked by ``#``.
    """
    found: dict[str, float] = {}
    if _MAY_HAVE_NAMES.search(text) is None:
        return found
    for name, weight in _names(text):
        lower = name.lower()
        found[lower] = max(weight, found.get(lower, 0.0))
    return dict(islice(sorted(found.items(), key=lambda each: -each[1]), MAX_NAMES))


def names_held(text: str, names: Collection[str]) -> set[str]:
    """Return those names of ``exact_names`` that ``text``, in lower case, has as a whole."""
    words = set(_NAME_WORD.findall(text))
    numbers = any(name.startswith("#") for name in names) and _ABOUT_CODES.search(text) is not None
    return {
        name
        for name in names
        if (numbers or not name.startswith("#"))
        and (
            (bare := name.removeprefix("#")) in words
            or (words.issuperset(_NAME_WORD.findall(bare)) and _holds_phrase(text, bare))
        )
    }


def _holds_phrase(text: str, name: str) -> bool:
    """Return whether ``text`` has the name as a whole; only so many places are looked at."""
    at = -1
    for _ in range(_MAX_PLACES):
        at = text.find(name, at + 1)
        if at < 0:
            return False
        end = at + len(name)
        if not (_NAME_WORD.match(text[at - 1 : at]) or _NAME_WORD.match(text[end : end + 1])):
            return True
    return False


def _names(text: str) -> Iterator[tuple[str, float]]:
    """Yield the names in ``text``, some of them several times."""
    for word in dict.fromkeys(_WORD.findall(text)):
        if len(word) <= _MAX_CHARS:
            yield from _of_word(word)
    for match in _FILE.finditer(text):
        yield match[0], _HALF if match[1].lower() in _COMMON_FILES else 1.0
    for pattern in (_ADDRESS, _ARTIFACT, _PACKAGE, _FLAG):
        yield from ((match[0], 1.0) for match in pattern.finditer(text))
    for match in _HOST.finditer(text):
        host = match[0].partition(".")[0]
        if match[0].rpartition(".")[2] in _PRIVATE_ENDS:
            yield from ((name, 1.0) for name in (match[0], host) if name != host or "-" in name)
    for match in _NUMBER.finditer(text):
        before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()].lower()
        if int(match[0]) not in _COMMON_NUMBERS and (_BEFORE_CODE.search(before) or _REASON.match(text, match.start())):
            yield f"#{match[0]}", _HALF if int(match[0]) in _HALF_NUMBERS else 1.0
    for line in text.splitlines():
        if len(line) <= _MAX_LINE and any(map(line.lower().__contains__, _OF_ERRORS)):
            yield from _of_error_line(line)


def _of_word(word: str) -> Iterator[tuple[str, float]]:
    """Yield the names in a word, whose parts may be joined by hyphens."""
    if "-" in word:
        ticket = _TICKET.match(word)
        if ticket is not None and ticket[1] not in _NO_TICKETS:
            yield ticket[0], 1.0
        if _UUID.fullmatch(word):
            yield word, 1.0
            return
        if _NUMBERED.fullmatch(word) and not all(part.isdigit() or part in _NO_HOSTS for part in word.split("-")):
            yield word, 1.0
    for part in word.split("-"):
        weight = _weight_of(part)
        if weight:
            yield part, weight


def _weight_of(word: str) -> float:
    """Return what a word without hyphens tells: 0 for one that is no name."""
    lower = word.lower()
    if word.isalpha():
        error = _ERROR_NAME.fullmatch(word)
        if error is not None:
            return 0.0 if not error[1] else _ERROR if error[1].lower() in _COMMON_ERRORS else 1.0
        is_name = word in _ERRNOS or _CAMEL.fullmatch(word) is not None
    elif "_" in word.strip("_"):
        is_name = True
    elif any(map(str.isdigit, word)):
        code = _CODE.fullmatch(word)
        is_code = code is not None and code[1] not in _NO_CODES
        is_name = is_code or any(form.fullmatch(word) is not None for form in (_HEX, _HASH, _CAMEL))
    else:
        is_name = False
    if not is_name or lower in _BRANDS or lower.startswith("__"):
        return 0.0
    return _HALF if lower in _COMMON_NAMES else 1.0


def _of_error_line(line: str) -> Iterator[tuple[str, float]]:
    """Yield the symbols that a line with an error names."""
    for match in _SYMBOLS.finditer(line):
        symbol = match[1] or match[2]
        if symbol.lower() not in _COMMON_SYMBOLS:
            yield symbol, _SYMBOL
