"""Secrets are replaced by ``[REDACTED:<kind>]`` before a text leaves the gateway, so that none is ever committed.

Patterns and keywords only, never entropy: a false alarm would destroy what the user wanted to remember. A rule runs
only where one of its literal marks occurs, which is what keeps ordinary text within a few microseconds. No pattern
may take more than linear time, whatever the text: every repetition is bounded, or begins at most once in a run. A
long text is searched window by window, so that no single search holds the interpreter for more than a moment.

Source: decisions.md 26; reliability.md 3.3. The patterns of known token formats come from detect-secrets; formats
that it does not know yet, bearer headers, key blocks and passwords in addresses are added here.
Departs: detect-secrets' keyword detector is replaced by a rule of the same words that also reads unquoted values
and asks that a value look like a secret, because in prose "the password: required" is no secret.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from signet_actors.domain.normalization import collapsed, safe_text, storage_content
from signet_actors.domain.text_windows import windowed_matches
from signet_actors.errors import ErrorCode, InvalidRequest
from signet_actors.gateway.secret_detectors import (
    AWSKeyDetector,
    AzureStorageKeyDetector,
    CloudantDetector,
    DiscordBotTokenDetector,
    GitHubTokenDetector,
    GitLabTokenDetector,
    IbmCloudIamDetector,
    IbmCosHmacDetector,
    JwtTokenDetector,
    MailchimpDetector,
    OpenAIDetector,
    PypiTokenDetector,
    SendGridDetector,
    SlackDetector,
    SoftlayerDetector,
    SquareOAuthDetector,
    StripeDetector,
    TelegramBotTokenDetector,
    TwilioKeyDetector,
)

REACH: Final = 4096
"""Characters that a pattern must be given to find a secret by, but for key blocks and JSON web tokens."""
LONG_REACH: Final = 24_576
MAX_FINDS: Final = 10_000
"""Secrets in one text. What holds more is a dump, not a memory, and is refused whole."""


KNOWN_CHARS: Final = 64
KNOWN_TEXTS: Final = 4096
"""Short texts that are remembered as clean, and how many of them."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """``pattern`` is tried if one of ``marks`` occurs (in the lower-cased text if ``folded``), and if one of ``names``
    does, where there are any (in the lower-cased text).

    Its last group that took part is the secret (the whole match if it has none); ``accept`` may refuse it.
    ``whole_token`` widens the find to the end of the run of token characters, and refuses one that begins inside it.
    ``reach``: see ``windowed_matches``.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] | None = None
    folded: bool = False
    whole_token: bool = False
    reach: int = REACH
    names: tuple[str, ...] = ()


def _has_digit(text: str) -> bool:
    return any("0" <= char <= "9" for char in text)


_Find = tuple[int, int, str]
"""Start, end and kind of a secret."""

_PLACEHOLDER = re.compile(
    r"(?:x{3,}|\*{3,}|\.{3,}|-{3,}|pass(?:word|wd)?|pwd|secret|token|changeme|example|redacted|null|none|true|false"
    r"|your[-_ ].*|my[-_ ].*|.*(?:example|placeholder|redacted|dummy|<|\$\{|\{\{).*)[.,;:!?)\]}]*",
    re.IGNORECASE,
)
_ALGORITHM = re.compile(
    r"(?:sha|md|base|utf|aes|des|hs|rs|es|ps|ed|rsa|argon|bcrypt|scrypt|pbkdf|hmac|oauth|http|tls|fido)[-_]?\d[-\w]*"
    r"|v\d+(?:\.\d+)*[-\w]*",
    re.IGNORECASE,
)
_NAME_IN_CODE = re.compile(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"  # GITHUB_TOKEN_2
    r"|[A-Za-z][a-z]*\d?(?:_[a-z]+\d?)+"  # openai_api_key2
    r"|[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+"  # settings.api_key, process.env.KEY2
    r"|[A-Za-z_][\w.]*[(\[].*"  # os.environ["KEY2"], token_hex(32)
)
_WORDS_AND_NUMBER = re.compile(r"[A-Za-z]+\d[-\w]*")  # OAuth2Bearer


def _is_value(value: str) -> bool:
    """Whether what stands after ``password=`` is a value: no placeholder, reference, path or plain word."""
    return (
        len(value) >= 6
        and value[0] not in "/~.$<{%([@&*"
        and "://" not in value
        and _PLACEHOLDER.fullmatch(value) is None
        and _NAME_IN_CODE.fullmatch(value) is None
        and not (len(value) < 20 and _ALGORITHM.fullmatch(value))
        and not (len(value) < 8 and value.isdecimal())
        and any(map(str.isalnum, value))
        and (_has_digit(value) or _kinds_of_characters(value) >= 3)
    )


def _kinds_of_characters(value: str) -> int:
    return sum(
        (
            any(map(str.islower, value)),
            any(map(str.isupper, value)),
            _has_digit(value),
            any(not char.isalnum() and char not in "-_./" for char in value),
        )
    )


def _is_strong_value(value: str) -> bool:
    """A value that looks like nothing but a secret; asked for where ``:`` may be a colon of prose."""
    if not _is_value(value):
        return False
    if len(value) >= 20 and _has_digit(value) and re.fullmatch(r"[A-Za-z0-9+/=_\-]+", value):
        return len(re.findall(r"[-_/]", value)) <= 4 or _kinds_of_characters(value) >= 3
    return len(value) >= 8 and _kinds_of_characters(value) >= 3 and _WORDS_AND_NUMBER.fullmatch(value) is None


def _is_url_password(value: str) -> bool:
    return not value.startswith(("[", "<", "$", "{", "%")) and _PLACEHOLDER.fullmatch(value) is None


def _is_jwt(token: str) -> bool:
    return bool(JwtTokenDetector.is_formally_valid(token))


def _known(
    kind: str,
    marks: tuple[str, ...],
    patterns: Iterable[re.Pattern[str]],
    *,
    folded: bool = False,
    token: bool = True,
    names: tuple[str, ...] = (),
) -> tuple[_Rule, ...]:
    """Rules from a detect-secrets detector. Its groups do not always mark the secret, so groups count only where
    the pattern is an assignment (``token`` False)."""
    return tuple(_Rule(kind, marks, _linear(p, token=token), None, folded, token, names=names) for p in patterns)


_KEY_NAMES = ("key", "pw", "pa", "token")
"""One of these stands in each assignment that detect-secrets knows for a cloud's keys ("pa": to a pattern that ignores
case a long s is an s, to lower-casing it is not)."""


def _linear(pattern: re.Pattern[str], *, token: bool) -> re.Pattern[str]:
    """``pattern`` with at most three blanks where it allows any number: three such runs side by side are cubic."""
    source = pattern.pattern.replace(" *", " {0,3}").replace(" +", " {1,3}")
    return re.compile(f"(?:{source})" if token else source, pattern.flags)


_KEYWORD = re.compile(
    r"(pass(?:word|wd|phrase|code)?|pwd|contrase(?:\u00f1|n)a)|secret|token|credentials?|(key)", re.IGNORECASE
)
_KEYWORD_REACH = 32
_KEY_OF_WHAT = re.compile(
    r"(?:api|auth|service|account|access|secret|db|database|priv|private|client|encryption|signing|master|license)"
    r"[_\- ]?$",
    re.IGNORECASE,
)
_PUBLIC_NAME = re.compile(
    r"(?:idempotency|confirm|confirmation|page|continuation|cursor|fencing|cancel)[_\- ]?$", re.IGNORECASE
)
_LONG: Final = 256
"""A value that is as long as this is judged by so much of it, and goes on to the end of its run of characters."""
_QUOTED = r"""(?:"([^"\s]{1,256})"|'([^'\s]{1,256})'|`([^`\s]{1,256})`)"""
_BARE = r"""([^\s"'`,;|<>\])}]{1,256})"""
_BEFORE_SIGN = r"[\"'`]?\]?\s{0,3}"
_QUOTED_VALUE = re.compile(_BEFORE_SIGN + r"(?::=|=>|={1,3}|!==?|:)\s{0,3}" + _QUOTED)
_ASSIGNED_VALUE = re.compile(_BEFORE_SIGN + r"(?::=|=>|=(?!=))\s{0,3}" + _BARE)
_SAID_VALUE = re.compile(r"(?:" + _BEFORE_SIGN + r":\s{0,3}|\s{1,3}(?:is:?|was)\s{1,3})" + _BARE)
_LONG_QUOTED_VALUE = re.compile(_BEFORE_SIGN + r"""(?::=|=>|={1,3}|!==?|:)\s{0,3}["'`]([^\s"'`]{256})""")
_END_OF_BARE = re.compile(r"""[\s"'`,;|<>\])}]""")
_END_OF_QUOTED = re.compile(r"""[\s"'`]""")
_OPTION_VALUE = re.compile(r"\s{1,3}" + _BARE)
_END_OF_LINE = re.compile(r"[.,;)\]}\"'`]{0,2}[ \t]{0,8}(?:[\r\n]|$)")

_RULES: tuple[_Rule, ...] = (
    _Rule(
        "private-key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:(?!-----BEGIN)[\s\S]){1,20000}?-----END[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:\s{0,4}(?:\\[nr]){0,4}[A-Za-z0-9+/=]{16,})+)"
        ),
        reach=LONG_REACH,
    ),
    _Rule(
        "private-key",
        ("Private-Lines:",),
        re.compile(r"Private-Lines:\s{0,4}\d{1,4}((?:\s{1,4}[A-Za-z0-9+/=]{16,})+)"),
    ),
    *_known("aws-key", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA"), [AWSKeyDetector.denylist[0]]),
    *_known("aws-key", ("aws",), [AWSKeyDetector.denylist[1]], folded=True, token=False),
    *_known("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), GitHubTokenDetector.denylist),
    *_known("gitlab-token", ("gl", "GR1348941"), GitLabTokenDetector.denylist),
    *_known("slack-token", ("xox",), [SlackDetector.denylist[0]], folded=True),
    *_known("slack-webhook", ("hooks.slack.com",), [SlackDetector.denylist[1]], folded=True),
    *_known("stripe-key", ("k_live_",), StripeDetector.denylist),
    *_known(
        "openai-key",
        ("T3BlbkFJ",),
        # Not from within a run of token characters: each "sk-" in it would read the run to its end.
        [re.compile(rf"(?<![A-Za-z0-9_\-])(?:{p.pattern})", p.flags) for p in OpenAIDetector.denylist],
    ),
    *_known("pypi-token", ("pypi-AgE",), PypiTokenDetector.denylist),
    *_known("sendgrid-key", ("SG.",), SendGridDetector.denylist),
    *_known("square-secret", ("sq0csp-",), SquareOAuthDetector.denylist),
    *_known("azure-storage-key", ("AccountKey=",), AzureStorageKeyDetector.denylist),
    *_known("mailchimp-key", ("-us",), MailchimpDetector.denylist),
    *_known("telegram-token", (":",), TelegramBotTokenDetector.denylist),
    *_known("discord-token", (".",), DiscordBotTokenDetector.denylist),
    *(
        _Rule(rule.kind, rule.marks, rule.pattern, _has_digit, whole_token=True)
        for rule in _known("twilio-key", ("AC", "SK"), TwilioKeyDetector.denylist)
    ),
    _Rule("artifactory-token", ("AKC",), re.compile(r"AKC[a-zA-Z0-9]{10,}"), _has_digit, whole_token=True),
    *_known("softlayer-key", ("softlayer",), SoftlayerDetector.denylist, folded=True, token=False),
    *_known("cloudant-key", ("clou",), CloudantDetector.denylist[:2], folded=True, token=False, names=_KEY_NAMES),
    *(
        _Rule(rule.kind, rule.marks, rule.pattern, _has_digit, folded=True)
        for rule in _known("ibm-key", ("ibm",), IbmCloudIamDetector.denylist, token=False)
    ),
    *_known("ibm-key", ("secret",), IbmCosHmacDetector.denylist, folded=True, token=False),
    _Rule(
        "jwt",
        ("eyJ",),
        re.compile(r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]+={0,2}\.[A-Za-z0-9_\-]+={0,2}(?:\.[A-Za-z0-9_.+/=\-]+)?"),
        _is_jwt,
        reach=LONG_REACH,
    ),
    _Rule(
        "api-key",
        ("sk-", "sk_", "rk_", "whsec_", "gsk_", "xai-", "r8_", "nvapi-", "pplx-"),
        re.compile(
            r"sk-(?:ant|proj|svcacct|admin|or|lf)-[A-Za-z0-9_\-]{20,}|sk-[A-Za-z0-9]{32,}"
            r"|[sr]k_(?:live|test)_[0-9a-zA-Z]{16,}|whsec_[A-Za-z0-9+/=]{24,}|gsk_[A-Za-z0-9]{40,}"
            r"|xai-[A-Za-z0-9]{60,}|r8_[A-Za-z0-9]{36,}|nvapi-[A-Za-z0-9_\-]{50,}|pplx-[A-Za-z0-9]{40,}"
        ),
        _has_digit,
        whole_token=True,
    ),
    _Rule("github-token", ("github_pat_",), re.compile(r"github_pat_[A-Za-z0-9_]{22,}"), whole_token=True),
    _Rule(
        "google-key",
        ("AIza", "ya29.", "GOCSPX-"),
        re.compile(r"AIza[A-Za-z0-9_\-]{35}|ya29\.[A-Za-z0-9_\-]{20,}|GOCSPX-[A-Za-z0-9_\-]{24,}"),
        whole_token=True,
    ),
    _Rule(
        "slack-token",
        ("xapp-", "xoxe", "xoxc-", "xoxd-"),
        re.compile(r"xapp-\d-[A-Za-z0-9\-]{20,}|xox[ecd](?:\.xox[bp])?-[A-Za-z0-9%\-]{20,}"),
        whole_token=True,
    ),
    _Rule(
        "access-token",
        (
            *("hf_", "npm_", "dop_v1_", "doo_v1_", "shpat_", "shpss_", "shpca_", "hvs.", "hvb.", "lin_api_", "ntn_"),
            *("secret_", "dapi", "dp.pt.", "PMAK-", "glsa_", "glc_", "sbp_", "sntrys_", "ATATT3", "ATBB", "figd_"),
            *("AGE-SECRET-KEY-", "dckr_pat_", "rubygems_", "pul-", "tskey-", "cfut_", "oy2", "EAAC", "phc_", "phx_"),
        ),
        re.compile(
            r"hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|do[op]_v1_[a-f0-9]{64}|shp(?:at|ss|ca)_[a-fA-F0-9]{32}"
            r"|hv[sb]\.[A-Za-z0-9_\-]{24,}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}"
            r"|dapi[a-f0-9]{32}|dp\.pt\.[A-Za-z0-9]{40,}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}"
            r"|glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/=]{32,}|sbp_[a-f0-9]{40}|sntrys_[A-Za-z0-9+/=_]{40,}"
            r"|ATATT3[A-Za-z0-9_=\-]{60,}|ATBB[A-Za-z0-9]{32}|figd_[A-Za-z0-9_\-]{36,}"
            r"|AGE-SECRET-KEY-1[0-9A-Z]{58}|dckr_pat_[A-Za-z0-9_\-]{24,}|rubygems_[a-f0-9]{48}|pul-[a-f0-9]{40}"
            r"|tskey-[a-z]+-[A-Za-z0-9\-]{20,}|cfut_[A-Za-z0-9_\-]{36,}|oy2[a-z0-9]{43}|EAAC[A-Za-z0-9]{80,}"
            r"|ph[cx]_[A-Za-z0-9]{40,}"
        ),
        _has_digit,
        whole_token=True,
    ),
    _Rule(
        "bearer-token",
        ("bearer", "authorization"),
        re.compile(
            r"(?:\bbearer\s{1,3}|\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|digest)?\s{0,3})"
            r"([A-Za-z0-9\-._~+/]{16,}={0,2})",
            re.IGNORECASE,
        ),
        _has_digit,
        folded=True,
    ),
    _Rule(
        "url-password",
        ("://",),
        re.compile(r"://[^\s/?#:@\"'<>]{0,128}:([^\s/@\"'<>]{1,2048})@(?=[^\s@])"),
        _is_url_password,
    ),
    _Rule(
        "password",
        ("-u ", "--user "),
        re.compile(r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)\s{1,3}[\"']?[^\s:\"']{1,128}:([^\s\"']{4,})"),
        _is_url_password,
    ),
)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Marks that all hold ``gate``, so that none can occur without it; each once, with the rules that it calls for."""

    gate: str
    folded: bool
    rules_of: tuple[tuple[str, tuple[int, ...]], ...]


def _marks_by_gate() -> tuple[_Marks, ...]:
    """All marks of the rules. The gates are characters that most texts do without; "" is that of the other marks."""
    groups: dict[tuple[str, bool], dict[str, list[int]]] = {}
    for at, rule in enumerate(_RULES):
        for mark in rule.marks:
            gate = next((char for char in "_-" if char in mark), "")
            groups.setdefault((gate, rule.folded), {}).setdefault(mark, []).append(at)
    return tuple(
        _Marks(gate, folded, tuple((mark, tuple(rules)) for mark, rules in marks.items()))
        for (gate, folded), marks in groups.items()
    )


_MARKS = _marks_by_gate()
_KEYWORD_MARKS = ("pass", "pwd", "secret", "token", "key", "credential", "contrase")
_TOKEN_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_PUNCTUATION = ".,:!?"
_WORD = re.compile(r"[^\s\ufeff]+")  # what ``collapsed`` separates by one space
_QUOTES = frozenset("\"'`")


class Redactor:
    """Replaces what it finds. One serves all requests and threads.

    The short texts that were found clean last (names, tags, projects, which come again with every request) are not
    searched again: they were half of what redaction costs a remember.
    """

    def __init__(self) -> None:
        self._known_clean: set[str] = set()

    def redact(self, text: str) -> tuple[str, int]:
        """``text`` with each secret replaced by ``[REDACTED:<kind>]``, and how many were; idempotent.

        What surrounds a secret (the name before ``=``, the host of an address) stays, because it is the memory.
        Raises InvalidRequest for a text with more than ``MAX_FINDS`` of them.
        """
        found = self._find(text)
        return _cut_out(text, found), len(found)

    def _find(self, text: str) -> list[_Find]:
        """Return the secrets in ``text``, in order, none overlapping another."""
        folded = text.lower()
        found: list[_Find] = []
        for rule in _called_for(text, folded):
            _gather(found, rule.kind, _spans(rule, text, folded if rule.folded else text))
        if any(mark in folded for mark in _KEYWORD_MARKS):
            _gather(found, "credential", _assigned(text, folded))
        if not found:
            return found
        # Of overlapping finds the longest wins, of equals the rule that stands first.
        found.sort(key=lambda span: span[0] - span[1])
        taken: list[_Find] = []
        covered = bytearray(len(text))  # 1 where a find was taken; a byte search instead of a look at every find
        for start, end, kind in found:
            if covered.find(1, start, end) < 0:
                covered[start:end] = b"\x01" * (end - start)
                taken.append((start, end, kind))
        taken.sort()
        return taken

    def cleaned(self, text: str) -> tuple[str, bool]:
        """``text`` without secrets, and whether there were any, even if its white space is collapsed afterwards.

        It is read as it came, because a key block is known by its lines and a password by the end of its line, and
        then on one line, because blanks and line breaks hide a secret from patterns that the next reader of the
        collapsed text sees. What only the second look finds is cut out where it stands: the layout stays.
        """
        if text in self._known_clean:
            return text, False
        clean, count = self.redact(text)
        line = collapsed(clean)
        if line == clean:
            if not count and len(text) <= KNOWN_CHARS:
                if len(self._known_clean) >= KNOWN_TEXTS:
                    self._known_clean = set()
                self._known_clean.add(text)
            return clean, count > 0
        hidden = self._find(line)
        if not hidden:
            return clean, count > 0
        clean = safe_text(clean)  # as the collapsed form is
        return _cut_out(clean, _in_layout(clean, hidden)), True

    def stored(self, text: str) -> tuple[str, bool]:
        """What ``cleaned`` returns, in storage form."""
        clean, found = self.cleaned(text)
        return storage_content(clean), found


def _cut_out(text: str, found: Iterable[_Find]) -> str:
    """Return ``text`` with a mark in place of each find; these are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, kind in found:
        parts.append(text[at:start])
        parts.append(f"[REDACTED:{kind}]")
        at = end
    if not parts:
        return text
    parts.append(text[at:])
    return "".join(parts)


def _in_layout(text: str, found: Iterable[_Find]) -> Iterable[_Find]:
    """Yield the finds in ``collapsed(text)`` by their places in ``text``; a space there is a whole gap here."""
    words = [match.span() for match in _WORD.finditer(text)]
    starts = list(accumulate((end - start + 1 for start, end in words), initial=0))
    for start, end, kind in found:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        within = end - starts[last]
        begin, stop = words[last]
        until = begin + within if within <= stop - begin else words[last + 1][0]
        yield words[first][0] + start - starts[first], until, kind


def _called_for(text: str, folded: str) -> list[_Rule]:
    """The rules that a mark calls for, in their order."""
    called: set[int] = set()
    for marks in _MARKS:
        haystack = folded if marks.folded else text
        if marks.gate in haystack:
            for mark, at in marks.rules_of:
                if mark in haystack:
                    called.update(at)
    rules = [_RULES[at] for at in sorted(called)]
    return [rule for rule in rules if not rule.names or any(name in folded for name in rule.names)]


def _gather(found: list[_Find], kind: str, spans: Iterable[tuple[int, int]]) -> None:
    for start, end in spans:
        found.append((start, end, kind))
        if len(found) > MAX_FINDS:
            raise InvalidRequest(
                f"the text holds more than {MAX_FINDS} secrets", code=ErrorCode.PAYLOAD_TOO_LARGE, field="content"
            )


def _holds_one(marks: tuple[str, ...], text: str, haystack: str) -> Callable[[int, int], bool] | None:
    """Whether a mark stands in a stretch of ``text``; None if the stretches of ``haystack`` are not the same ones."""
    if len(haystack) != len(text):  # a letter became two when it was lower-cased
        return None
    return lambda begin, end: any(haystack.find(mark, begin, end) >= 0 for mark in marks)


def _spans(rule: _Rule, text: str, haystack: str) -> Iterable[tuple[int, int]]:
    for match in windowed_matches(rule.pattern, text, rule.reach, _holds_one(rule.marks, text, haystack)):
        group = 0 if rule.whole_token else (match.lastindex or 0)
        start, end = match.span(group)
        if rule.whole_token:
            if start and text[start] in _TOKEN_CHARS and text[start - 1] in _TOKEN_CHARS:
                continue
            while end < len(text) and text[end] in _TOKEN_CHARS:
                end += 1
        elif group:
            end = _without_punctuation(text, start, end)
        if rule.accept is None or rule.accept(text[start:end]):
            yield start, end


def _assigned(text: str, folded: str) -> Iterable[tuple[int, int]]:
    """Where the values stand of names that end in password, token, api_key and the like.

    ``name = value`` and quoted values must look like a value; after ``:`` or ``is``, which prose uses too, a bare
    value must look like nothing else, unless it is a password that ends its line.
    """
    run_end = {_END_OF_BARE: 0, _END_OF_QUOTED: 0}
    for keyword in windowed_matches(_KEYWORD, text, _KEYWORD_REACH, _holds_one(_KEYWORD_MARKS, text, folded)):
        begin, after = keyword.span()
        before = text[max(0, begin - 16) : begin]
        if keyword[2] and not _KEY_OF_WHAT.search(before):
            continue
        glued = before[-1:].isalnum() and not keyword[2]
        camel = before[-1:].islower() and text[begin].isupper()
        if (glued and not camel and not keyword[0].lower().startswith("passw")) or _PUBLIC_NAME.search(before):
            continue
        run = _END_OF_BARE
        if value := _QUOTED_VALUE.match(text, after) or _ASSIGNED_VALUE.match(text, after):
            accept = _is_value
        elif value := _LONG_QUOTED_VALUE.match(text, after):
            accept, run = _is_value, _END_OF_QUOTED
        elif value := _SAID_VALUE.match(text, after):
            ends_line = keyword[1] and _END_OF_LINE.match(text, value.end()) and ":" in value[0][: -len(value[1])]
            accept = _is_value if ends_line else _is_strong_value
        elif "--" in before[-10:] and (value := _OPTION_VALUE.match(text, after)):
            accept = _is_value
        else:
            continue
        start, end = value.span(value.lastindex or 0)
        if not accept(text[start : _without_punctuation(text, start, end)]):
            continue
        if end - start == _LONG and text[end : end + 1] not in _QUOTES:
            if end > run_end[run]:  # no run is read twice, however many names stand in it
                stop = run.search(text, end)
                run_end[run] = stop.start() if stop else len(text)
            end = run_end[run]
        yield start, _without_punctuation(text, start, end)


def _without_punctuation(text: str, start: int, end: int) -> int:
    while end - start > 1 and text[end - 1] in _PUNCTUATION:
        end -= 1
    return end
