"""The public token formats, one entry each, with the document that describes the format.

A token is found by a literal mark (``str.find``); its pattern is then matched at that position only. Each pattern is a
bounded run, and the search continues after the characters read, so scanning takes linear time.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from signet_actors.domain.redaction.values import may_be_real_token

_MAX: Final = 4096
_ALNUM: Final = "[A-Za-z0-9]"
_WORD: Final = "[A-Za-z0-9_-]"
_HEX: Final = "[a-f0-9]"
_ALNUM_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
WORD_CHARS: Final = _ALNUM_CHARS + "_-"


@dataclass(frozen=True, slots=True)
class TokenFormat:
    """A documented token format.

    ``pattern`` is matched where a mark is found. ``back`` lists characters before the mark that belong to the token, at
    most ``back_chars`` of them. If ``context`` is given, one of its words (lower case) must occur within
    ``CONTEXT_CHARS`` of the token, because harmless text can have the same format. ``accept`` checks the token.
    ``ends`` matches the rest of a token after its pattern. A token never starts directly after a character of ``glue``,
    because that would be inside another run.
    """

    kind: str
    document: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = may_be_real_token
    context: tuple[str, ...] = ()
    back: str = ""
    back_chars: int = 0
    ends: re.Pattern[str] | None = None
    glue: str = WORD_CHARS


CONTEXT_CHARS: Final = 100
_TOKEN_END: Final = re.compile(r"[A-Za-z0-9_-]*+")
_BASE64_END: Final = re.compile(r"[A-Za-z0-9+/=_-]*+")
_DIGITS: Final = "0123456789"
_HEX_CHARS: Final = "0123456789abcdef"


def _form(
    kind: str,
    document: str,
    pattern: str,
    *marks: str,
    accept: Callable[[str], bool] = may_be_real_token,
    context: tuple[str, ...] = (),
    back: str = "",
    back_chars: int = 0,
    ends: re.Pattern[str] | None = _TOKEN_END,
    glue: str = WORD_CHARS,
) -> TokenFormat:
    return TokenFormat(kind, document, marks, re.compile(pattern), accept, context, back, back_chars, ends, glue)


def is_jwt(token: str) -> bool:
    """Return whether the first part of ``token`` is the JSON header of a signed or encrypted token."""
    head = token.partition(".")[0].rstrip("=")
    try:
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return False
    return isinstance(header, dict) and ("alg" in header or "typ" in header or "kid" in header)


def is_aws_secret(token: str) -> bool:
    """Return whether ``token`` has the letters of a secret access key. A digest has no capitals."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return all(any(map(kind, token)) for kind in kinds) and may_be_real_token(token)


AWS_SECRET: Final = re.compile(r"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}+(?![A-Za-z0-9/+=_-])")
"""The secret of an access key id. Searched only close to an id, because a digest has the same format."""
AWS_SECRET_CHARS: Final = 200

_GITHUB = "GitHub Docs: About authentication to GitHub, token formats"
_GITLAB = "GitLab Docs: Token overview, token prefixes"
_SLACK = "Slack API: Token types"
_STRIPE = "Stripe Docs: API keys"
_SHOPIFY = "Shopify Dev Docs: Access tokens"
_ATLASSIAN = "Atlassian Support: Manage API tokens"
_VAULT = "HashiCorp Vault Docs: Tokens"
_GOOGLE = "Google Cloud Docs: API keys; OAuth 2.0 client secrets"
_GRAFANA = "Grafana Docs: Service account tokens; Access policies"

FORMATS: Final[tuple[TokenFormat, ...]] = (
    _form(
        "aws-key",
        "AWS IAM User Guide: Unique identifiers, ID prefixes",
        r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
        *("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
        accept=lambda token: "EXAMPLE" not in token and may_be_real_token(token + "0"),
        ends=None,
        glue=_ALNUM_CHARS,
    ),
    _form("aws-key", "AWS Bedrock User Guide: API keys", rf"ABSK{_ALNUM}{{60,{_MAX}}}+", "ABSK", ends=_BASE64_END),
    _form("github-token", _GITHUB, rf"gh[pousr]_{_ALNUM}{{36,255}}+", *("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    _form("github-token", _GITHUB, r"github_pat_[A-Za-z0-9_]{22,255}+", "github_pat_"),
    _form(
        "gitlab-token",
        _GITLAB,
        rf"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|wt)-{_WORD}{{20,300}}+",
        *("glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
        *("glffct-", "glwt-"),
        ends=re.compile(r"[A-Za-z0-9_.-]*+(?<!\.)"),
    ),
    _form("gitlab-token", _GITLAB, rf"gloas-{_ALNUM}{{64}}", "gloas-"),
    _form("gitlab-token", _GITLAB, rf"GR1348941{_WORD}{{20,50}}+", "GR1348941"),
    _form(
        "slack-token",
        _SLACK,
        r"xox[abcdeoprs](?:\.xox[bp])?-(?:[0-9A-Za-z%]{1,255}+-?+){1,12}+",
        *("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
        accept=lambda token: len(token) >= 20 and may_be_real_token(token),
        ends=re.compile(r"[A-Za-z0-9_%-]*+"),
    ),
    _form("slack-token", _SLACK, r"xapp-\d-[A-Za-z0-9-]{20,255}+", "xapp-"),
    _form(
        "slack-webhook",
        "Slack API: Incoming webhooks",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_]{2,40}+/[A-Za-z0-9_]{2,40}+/[A-Za-z0-9_/]{8,120}+",
        "hooks.slack.com/",
        back="htps:/",
        back_chars=8,
    ),
    _form(
        "stripe-key",
        _STRIPE,
        rf"[sr]k_(?:live|test)_{_ALNUM}{{16,255}}+",
        *("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    ),
    _form(
        "stripe-key",
        "Stripe Docs: Verify webhook signatures",
        r"whsec_[A-Za-z0-9+/]{24,255}+",
        "whsec_",
        ends=_BASE64_END,
    ),
    _form(
        "openai-key",
        "OpenAI API Reference: Authentication",
        rf"sk-(?:(?:proj|svcacct|admin|None)-{_WORD}{{20,300}}+|{_ALNUM}{{32,300}}+)",
        "sk-",
    ),
    _form(
        "anthropic-key", "Anthropic API Docs: Getting started, authentication", rf"sk-ant-{_WORD}{{20,300}}+", "sk-ant-"
    ),
    _form("api-key", "OpenRouter Docs: API authentication", rf"sk-or-{_WORD}{{20,300}}+", "sk-or-"),
    _form("api-key", "Langfuse Docs: API keys", rf"sk-lf-{_WORD}{{20,300}}+", "sk-lf-"),
    _form("api-key", "Groq Docs: API keys", rf"gsk_{_ALNUM}{{40,100}}+", "gsk_"),
    _form("api-key", "xAI Docs: API keys", rf"xai-{_ALNUM}{{60,120}}+", "xai-"),
    _form("api-key", "Replicate Docs: API tokens", rf"r8_{_ALNUM}{{36,60}}+", "r8_"),
    _form("api-key", "NVIDIA NIM Docs: API keys", rf"nvapi-{_WORD}{{50,100}}+", "nvapi-"),
    _form("api-key", "Perplexity Docs: API keys", rf"pplx-{_ALNUM}{{40,80}}+", "pplx-"),
    _form("api-key", "Fireworks AI Docs: API keys", rf"fw_{_ALNUM}{{20,60}}+", "fw_"),
    _form("api-key", "Tavily Docs: API keys", rf"tvly-(?:dev-|prod-)?{_ALNUM}{{28,60}}+", "tvly-"),
    _form("api-key", "Resend Docs: API keys", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}+", "re_"),
    _form("huggingface-token", "Hugging Face Hub Docs: User access tokens", rf"hf_{_ALNUM}{{30,60}}+", "hf_"),
    _form(
        "huggingface-token", "Hugging Face Hub Docs: Organization tokens", rf"api_org_{_ALNUM}{{30,60}}+", "api_org_"
    ),
    _form("google-key", _GOOGLE, rf"AIza{_WORD}{{35}}", "AIza"),
    _form("google-key", _GOOGLE, rf"GOCSPX-{_WORD}{{24,60}}+", "GOCSPX-"),
    _form("google-key", "Google Identity Docs: OAuth 2.0 access tokens", r"ya29\.[A-Za-z0-9_.-]{20,2048}+", "ya29."),
    _form("google-key", "Google Identity Docs: OAuth 2.0 refresh tokens", rf"1//0{_WORD}{{30,200}}+", "1//0"),
    _form(
        "azure-key",
        "Microsoft Learn: Azure Storage connection strings",
        r"AccountKey=[A-Za-z0-9+/]{86}==",
        "AccountKey=",
        accept=lambda token: may_be_real_token(token.partition("=")[2]),
        ends=None,
    ),
    _form(
        "azure-key",
        "Microsoft Learn: Service Bus and Event Hubs connection strings",
        r"SharedAccessKey=[A-Za-z0-9+/]{43}=",
        "SharedAccessKey=",
        accept=lambda token: may_be_real_token(token.partition("=")[2]),
        ends=None,
    ),
    _form(
        "azure-key",
        "Microsoft Entra documentation: client secrets",
        r"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,34}+",
        "Q~",
        back=WORD_CHARS + "~.",
        back_chars=4,
        ends=None,
    ),
    _form(
        "azure-key",
        "Azure DevOps Docs: Personal access tokens",
        r"(?<=[A-Za-z0-9]{76})AZDO[A-Za-z0-9]{4}",
        "AZDO",
        back=WORD_CHARS,
        back_chars=76,
    ),
    _form("sendgrid-key", "SendGrid Docs: API keys", rf"SG\.{_WORD}{{16,32}}+\.{_WORD}{{32,64}}+", "SG."),
    _form(
        "mailchimp-key",
        "Mailchimp Developer: API keys",
        rf"(?<={_HEX}{{32}})-us[0-9]{{1,2}}(?![A-Za-z0-9])",
        "-us",
        context=("mailchimp", "mandrill", "mc_api", "mc-api"),
        back=_HEX_CHARS,
        back_chars=32,
        ends=None,
    ),
    _form("mailgun-key", "Mailgun Docs: API keys", rf"key-{_HEX}{{32}}", "key-", context=("mailgun",)),
    _form(
        "twilio-key",
        "Twilio Docs: API keys, account SID",
        rf"(?:AC|SK){_HEX}{{32}}(?![A-Za-z0-9])",
        *("AC", "SK"),
        context=("twilio",),
        ends=None,
    ),
    _form("square-key", "Square Developer: Access tokens", rf"sq0(?:csp|atp|idp)-{_WORD}{{22,60}}+", "sq0"),
    _form("square-key", "Square Developer: Access tokens", rf"EAAA[lE]{_WORD}{{56,80}}+", *("EAAAl", "EAAAE")),
    _form(
        "facebook-token",
        "Meta for Developers: Access tokens",
        rf"EAA[CMB]{_ALNUM}{{80,{_MAX}}}+",
        *("EAAC", "EAAM", "EAAB"),
    ),
    _form(
        "telegram-token",
        "Telegram Bot API: Authorizing your bot",
        rf"(?<=[0-9]{{8}}):{_WORD}{{35}}(?![A-Za-z0-9_-])",
        ":",
        back=_DIGITS,
        back_chars=10,
        ends=None,
    ),
    _form(
        "discord-token",
        "Discord Developer Docs: Reference, authentication",
        rf"(?<=[A-Za-z0-9_-]{{23}})\.{_WORD}{{6}}\.{_WORD}{{27,60}}+",
        ".",
        context=("discord", "bot token", "bot_token", "bottoken"),
        back=WORD_CHARS,
        back_chars=28,
    ),
    _form(
        "discord-token",
        "Discord Developer Docs: Webhooks",
        rf"discord(?:app)?\.com/api/webhooks/[0-9]{{17,20}}/{_WORD}{{60,80}}+",
        *("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
    ),
    _form("npm-token", "npm Docs: About access tokens", rf"npm_{_ALNUM}{{36}}", "npm_"),
    _form("pypi-token", "PyPI Help: API tokens", rf"pypi-AgE{_WORD}{{50,{_MAX}}}+", "pypi-AgE"),
    _form("rubygems-key", "RubyGems Guides: API key scopes", rf"rubygems_{_HEX}{{48}}", "rubygems_"),
    _form(
        "crates-token",
        "The Cargo Book: cargo login",
        rf"cio{_ALNUM}{{32}}(?![A-Za-z0-9])",
        "cio",
        context=("cargo", "crates"),
    ),
    _form("nuget-key", "NuGet Docs: Scoped API keys", r"oy2[a-z0-9]{43}", "oy2"),
    _form(
        "docker-token",
        "Docker Docs: Personal access tokens",
        rf"dckr_(?:pat|oat)_{_WORD}{{24,60}}+",
        *("dckr_pat_", "dckr_oat_"),
    ),
    _form(
        "digitalocean-token",
        "DigitalOcean Docs: API tokens",
        rf"do[opr]_v1_{_HEX}{{64}}",
        *("dop_v1_", "doo_v1_", "dor_v1_"),
    ),
    _form(
        "shopify-token",
        _SHOPIFY,
        r"shp(?:at|ss|ca|pa|tka)_[a-fA-F0-9]{32}",
        *("shpat_", "shpss_", "shpca_", "shppa_", "shptka_"),
    ),
    _form("vault-token", _VAULT, rf"hv[sbr]\.{_WORD}{{24,300}}+", *("hvs.", "hvb.", "hvr.")),
    _form(
        "terraform-token",
        "HCP Terraform Docs: API tokens",
        rf"(?<={_ALNUM}{{14}})\.atlasv1\.{_WORD}{{60,70}}+",
        ".atlasv1.",
        back=WORD_CHARS,
        back_chars=14,
    ),
    _form(
        "linear-key",
        "Linear Developers: Authentication",
        rf"lin_(?:api|oauth)_{_ALNUM}{{32,64}}+",
        *("lin_api_", "lin_oauth_"),
    ),
    _form("notion-token", "Notion Developers: Authentication", rf"ntn_{_ALNUM}{{40,60}}+", "ntn_"),
    _form("notion-token", "Notion Developers: Authentication", rf"secret_{_ALNUM}{{43}}(?![A-Za-z0-9])", "secret_"),
    _form("databricks-token", "Databricks Docs: Personal access tokens", rf"dapi{_HEX}{{32}}", "dapi"),
    _form(
        "doppler-token",
        "Doppler Docs: Tokens",
        rf"dp\.(?:pt|st|sa|ct|scim|audit)\.{_ALNUM}[A-Za-z0-9_.-]{{39,80}}+",
        *("dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."),
    ),
    _form("postman-key", "Postman Docs: API keys", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}", "PMAK-"),
    _form("grafana-token", _GRAFANA, rf"glsa_{_ALNUM}{{32}}_[a-fA-F0-9]{{8}}", "glsa_"),
    _form("grafana-token", _GRAFANA, r"glc_[A-Za-z0-9+/]{32,400}+", "glc_", ends=_BASE64_END),
    _form("supabase-key", "Supabase Docs: API keys", rf"sb(?:p|_secret)_{_WORD}{{20,60}}+", *("sbp_", "sb_secret_")),
    _form(
        "sentry-token",
        "Sentry Docs: Auth tokens",
        r"sntry[su]_[A-Za-z0-9+/=_]{40,400}+",
        *("sntrys_", "sntryu_"),
        ends=_BASE64_END,
    ),
    _form("atlassian-token", _ATLASSIAN, r"ATATT3[A-Za-z0-9_=-]{60,300}+", "ATATT3", ends=_BASE64_END),
    _form("atlassian-token", "Bitbucket Cloud Docs: App passwords", rf"ATBB{_ALNUM}{{32}}", "ATBB"),
    _form("figma-token", "Figma Developers: Access tokens", rf"figd_{_WORD}{{36,60}}+", "figd_"),
    _form(
        "age-key",
        "age(1), C2SP age specification: X25519 identity",
        r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
        "AGE-SECRET-KEY-1",
    ),
    _form("pulumi-token", "Pulumi Docs: Access tokens", rf"pul-{_HEX}{{40}}", "pul-"),
    _form(
        "tailscale-key",
        "Tailscale Docs: Keys and secrets, prefixes",
        r"tskey-[a-z]{2,12}+-[A-Za-z0-9-]{20,120}+",
        "tskey-",
    ),
    _form(
        "cloudflare-token",
        "Cloudflare Docs: API token formats",
        rf"cf(?:ut|at|k)_{_WORD}{{36,60}}+",
        *("cfut_", "cfat_", "cfk_"),
    ),
    _form("posthog-key", "PostHog Docs: API keys", rf"ph[cxs]_{_ALNUM}{{40,60}}+", *("phc_", "phx_", "phs_")),
    _form("newrelic-key", "New Relic Docs: API keys", r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    _form("dynatrace-token", "Dynatrace Docs: Access tokens", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    _form(
        "planetscale-token",
        "PlanetScale Docs: Service tokens",
        rf"pscale_(?:tkn|pw|oauth)_{_WORD}{{32,64}}+",
        "pscale_",
    ),
    _form(
        "buildkite-token",
        "Buildkite Docs: Token security",
        rf"bk[uax][at]_{_ALNUM}{{40}}",
        *("bkua_", "bkaa_", "bkxt_"),
    ),
    _form(
        "circleci-token",
        "CircleCI Docs: API tokens",
        rf"CCIP(?:RJ|AT)_{_ALNUM}{{22}}_{_HEX}{{40}}",
        *("CCIPRJ_", "CCIPAT_"),
    ),
    _form(
        "flyio-token",
        "Fly.io Docs: Access tokens",
        r"fm[12][ar]?_[A-Za-z0-9+/]{60,4096}+",
        *("fm1_", "fm1a_", "fm1r_", "fm2_"),
        ends=_BASE64_END,
    ),
    _form(
        "hubspot-token",
        "HubSpot Developers: Private apps",
        rf"pat-(?:na|eu|ap)\d-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
        "pat-",
    ),
    _form("airtable-token", "Airtable Web API: Authentication", rf"pat{_ALNUM}{{14}}\.{_HEX}{{64}}", "pat"),
    _form(
        "sonar-token",
        "SonarQube Docs: Generating and using tokens",
        rf"sq[apu]_{_HEX}{{40}}",
        *("sqa_", "sqp_", "squ_"),
    ),
    _form(
        "1password-token",
        "1Password Developer: Service accounts",
        rf"ops_eyJ{_WORD}{{100,{_MAX}}}+",
        "ops_eyJ",
        ends=_BASE64_END,
    ),
    _form("artifactory-token", "JFrog Help: API key", rf"AKC{_ALNUM}{{60,80}}+", "AKC"),
    _form("adafruit-key", "Adafruit IO Docs: Authentication", rf"aio_{_ALNUM}{{28}}", "aio_"),
    _form("easypost-key", "EasyPost Docs: Authentication", rf"EZ[AT]K{_ALNUM}{{54}}", *("EZAK", "EZTK")),
    _form(
        "clerk-key",
        "Clerk Docs: Environment variables",
        rf"(?:ak|ck)_live_{_ALNUM}{{30,60}}+",
        *("ak_live_", "ck_live_"),
    ),
    _form(
        "jwt",
        "RFC 7519 JSON Web Token; RFC 7515 and 7516 compact serialization",
        rf"eyJ{_WORD}{{8,{4 * _MAX}}}+={{0,2}}+\.{_WORD}{{1,{16 * _MAX}}}+={{0,2}}+"
        rf"(?:\.[A-Za-z0-9_.+/=-]{{1,{16 * _MAX}}}+)?",
        "eyJ",
        accept=is_jwt,
    ),
)
