"""The public token formats, one entry each, with the document that describes the format.

``service_token_formats.py`` continues the table.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.service_token_formats import SERVICE_FORMATS
from signet_actors.domain.redaction.token_format import (
    ALNUM,
    BASE64_END,
    DIGITS,
    HEX,
    HEX_CHARS,
    MAX,
    WORD,
    WORD_CHARS,
    TokenFormat,
    token_format,
)
from signet_actors.domain.redaction.values import is_mixed, may_be_real_token


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


AWS_SECRET: Final = compile_later(r"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}+(?![A-Za-z0-9/+=_-])")
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
    token_format(
        "aws-key",
        "AWS IAM User Guide: Unique identifiers, ID prefixes",
        r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
        *("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
        accept=lambda token: "EXAMPLE" not in token and may_be_real_token(token + "0"),
        ends=None,
    ),
    token_format(
        "aws-key", "AWS Bedrock User Guide: API keys", rf"ABSK[A-Za-z0-9+/]{{60,{MAX}}}+", "ABSK", ends=BASE64_END
    ),
    token_format(
        "github-token", _GITHUB, rf"gh[pousr]_{ALNUM}{{36,255}}+", *("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), glue=""
    ),
    token_format("github-token", _GITHUB, r"github_pat_[A-Za-z0-9_]{22,255}+", "github_pat_", glue=""),
    token_format(
        "gitlab-token",
        _GITLAB,
        rf"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|wt)-{WORD}{{20,300}}+",
        *("glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
        *("glffct-", "glwt-"),
        ends=compile_later(r"[A-Za-z0-9_.-]*+(?<!\.)"),
        glue="",
    ),
    token_format("gitlab-token", _GITLAB, rf"gloas-{ALNUM}{{64}}", "gloas-"),
    token_format("gitlab-token", _GITLAB, rf"GR1348941{WORD}{{20,50}}+", "GR1348941"),
    token_format(
        "slack-token",
        _SLACK,
        r"xox[abcdeoprs](?:\.xox[bp])?-(?>(?:[0-9A-Za-z%]{1,255}+-?+){1,12})",
        *("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
        accept=lambda token: len(token) >= 20 and may_be_real_token(token),
        ends=compile_later(r"[A-Za-z0-9_%-]*+"),
        glue="",
    ),
    token_format("slack-token", _SLACK, r"xapp-\d-[A-Za-z0-9-]{20,255}+", "xapp-"),
    token_format(
        "slack-webhook",
        "Slack API: Incoming webhooks",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_]{2,40}+/[A-Za-z0-9_]{2,40}+/[A-Za-z0-9_/]{8,120}+",
        "hooks.slack.com/",
        back="htps:/",
        back_chars=8,
    ),
    token_format(
        "stripe-key",
        _STRIPE,
        rf"[sr]k_(?:org_)?(?:live|test)_{ALNUM}{{16,255}}+",
        *("sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_org_live_", "sk_org_test_"),
    ),
    token_format(
        "stripe-key",
        "Stripe Docs: Verify webhook signatures",
        r"whsec_[A-Za-z0-9+/]{24,255}+",
        "whsec_",
        ends=BASE64_END,
    ),
    token_format(
        "openai-key",
        "OpenAI API Reference: Authentication",
        rf"sk-(?:(?:proj|svcacct|admin|None)-{WORD}{{20,300}}+|{ALNUM}{{32,300}}+)",
        "sk-",
    ),
    token_format(
        "anthropic-key", "Anthropic API Docs: Getting started, authentication", rf"sk-ant-{WORD}{{20,300}}+", "sk-ant-"
    ),
    token_format(
        "api-key", 'docs/compatibility.md "Authentication"', r"signet_[0-9a-f]{18}_[0-9a-f]{64}(?![0-9a-f])", "signet_"
    ),
    token_format("api-key", "OpenRouter Docs: API authentication", rf"sk-or-{WORD}{{20,300}}+", "sk-or-"),
    token_format("api-key", "Langfuse Docs: API keys", rf"sk-lf-{WORD}{{20,300}}+", "sk-lf-"),
    token_format("api-key", "Groq Docs: API keys", rf"gsk_{ALNUM}{{40,100}}+", "gsk_"),
    token_format("api-key", "xAI Docs: API keys", rf"xai-{ALNUM}{{60,120}}+", "xai-"),
    token_format("api-key", "Replicate Docs: API tokens", rf"r8_{ALNUM}{{36,60}}+", "r8_"),
    token_format("api-key", "NVIDIA NIM Docs: API keys", rf"nvapi-{WORD}{{50,100}}+", "nvapi-"),
    token_format("api-key", "Perplexity Docs: API keys", rf"pplx-{ALNUM}{{40,80}}+", "pplx-"),
    token_format("api-key", "Fireworks AI Docs: API keys", rf"fw_{ALNUM}{{20,60}}+", "fw_", glue=WORD_CHARS),
    token_format("api-key", "Tavily Docs: API keys", rf"tvly-(?:dev-|prod-)?{ALNUM}{{28,60}}+", "tvly-"),
    token_format("api-key", "Resend Docs: API keys", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}+", "re_"),
    token_format(
        "huggingface-token", "Hugging Face Hub Docs: User access tokens", rf"hf_{ALNUM}{{30,60}}+", "hf_", glue=""
    ),
    token_format(
        "huggingface-token", "Hugging Face Hub Docs: Organization tokens", rf"api_org_{ALNUM}{{30,60}}+", "api_org_"
    ),
    token_format("google-key", _GOOGLE, rf"AIza{WORD}{{35}}", "AIza"),
    token_format("google-key", _GOOGLE, rf"GOCSPX-{WORD}{{24,60}}+", "GOCSPX-"),
    token_format(
        "google-key", "Google Identity Docs: OAuth 2.0 access tokens", r"ya29\.[A-Za-z0-9_.-]{20,2048}+", "ya29."
    ),
    token_format("google-key", "Google Identity Docs: OAuth 2.0 refresh tokens", rf"1//0{WORD}{{30,200}}+", "1//0"),
    token_format(
        "azure-key",
        "Microsoft Learn: Azure Storage connection strings",
        r"AccountKey=[A-Za-z0-9+/]{86}==",
        "AccountKey=",
        accept=lambda token: may_be_real_token(token.partition("=")[2]),
        ends=None,
    ),
    token_format(
        "azure-key",
        "Microsoft Learn: Service Bus and Event Hubs connection strings",
        r"SharedAccessKey=[A-Za-z0-9+/]{43}=",
        "SharedAccessKey=",
        accept=lambda token: may_be_real_token(token.partition("=")[2]),
        ends=None,
    ),
    token_format(
        "azure-key",
        "Microsoft Entra documentation: client secrets",
        r"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,34}+",
        "Q~",
        back=WORD_CHARS + "~.",
        back_chars=4,
        ends=None,
    ),
    token_format(
        "azure-key",
        "Azure DevOps Docs: Personal access tokens",
        r"(?<=[A-Za-z0-9]{76})AZDO[A-Za-z0-9]{4}",
        "AZDO",
        accept=lambda token: may_be_real_token(token[:52]),  # what follows tells the service, with a row of A
        back=WORD_CHARS,
        back_chars=76,
    ),
    token_format("sendgrid-key", "SendGrid Docs: API keys", rf"SG\.{WORD}{{16,32}}+\.{WORD}{{32,64}}+", "SG."),
    token_format(
        "mailchimp-key",
        "Mailchimp Developer: API keys",
        rf"(?<={HEX}{{32}})-us[0-9]{{1,2}}(?![A-Za-z0-9-]|\.\w)",
        "-us",
        context=("mailchimp", "mandrill", "mc_", "mc-", "api", "token", "secret", "mail", "newsletter"),
        back=HEX_CHARS,
        back_chars=32,
        ends=None,
    ),
    token_format(
        "mailgun-key", "Mailgun Docs: API keys", rf"key-{HEX}{{32}}(?![A-Za-z0-9])", "key-", glue=WORD_CHARS + "/"
    ),
    token_format(
        "twilio-key",
        "Twilio Docs: API keys, account SID",
        rf"AC{HEX}{{32}}(?![A-Za-z0-9])",
        "AC",
        context=("twilio",),
        ends=None,
    ),
    token_format("twilio-key", "Twilio Docs: API keys", rf"SK{HEX}{{32}}(?![A-Za-z0-9])", "SK", ends=None),
    token_format("square-key", "Square Developer: Access tokens", rf"sq0(?:csp|atp|idp)-{WORD}{{22,60}}+", "sq0"),
    token_format(
        "square-key",
        "Square Developer: Access tokens",
        rf"EAAA{WORD}{{58,64}}(?![\w+/=-])",
        "EAAA",
        accept=lambda token: is_mixed(token) and may_be_real_token(token),
        glue=WORD_CHARS + "+/",
    ),
    token_format(
        "facebook-token",
        "Meta for Developers: Access tokens",
        rf"EAA[CMB]{ALNUM}{{80,{MAX}}}+",
        *("EAAC", "EAAM", "EAAB"),
    ),
    token_format(
        "telegram-token",
        "Telegram Bot API: Authorizing your bot",
        rf"(?<=[0-9]{{8}}):{WORD}{{35}}(?![A-Za-z0-9_-])",
        ":",
        back=DIGITS,
        back_chars=10,
        ends=None,
    ),
    token_format(
        "discord-token",
        "Discord Developer Docs: Reference, authentication",
        rf"(?<=[A-Za-z0-9_-]{{23}})\.{WORD}{{6}}\.{WORD}{{27,60}}+",
        ".",
        context=("discord", "bot token", "bot_token", "bottoken"),
        back=WORD_CHARS,
        back_chars=28,
    ),
    token_format(
        "discord-token",
        "Discord Developer Docs: Webhooks",
        rf"discord(?:app)?\.com/api/(?:v[0-9]{{1,2}}/)?webhooks/[0-9]{{17,20}}/{WORD}{{60,80}}+",
        *("discord.com/api/", "discordapp.com/api/"),
    ),
    token_format("npm-token", "npm Docs: About access tokens", rf"npm_{ALNUM}{{36}}", "npm_", glue=""),
    token_format("pypi-token", "PyPI Help: API tokens", rf"pypi-AgE{WORD}{{50,{MAX}}}+", "pypi-AgE", glue=""),
    token_format("rubygems-key", "RubyGems Guides: API key scopes", rf"rubygems_{HEX}{{48}}", "rubygems_"),
    token_format(
        "crates-token",
        "The Cargo Book: cargo login",
        rf"cio{ALNUM}{{32}}(?![A-Za-z0-9+/=])",
        "cio",
        accept=lambda token: is_mixed(token) and may_be_real_token(token),
    ),
    token_format("nuget-key", "NuGet Docs: Scoped API keys", r"oy2[a-z0-9]{43}", "oy2"),
    token_format(
        "docker-token",
        "Docker Docs: Personal access tokens",
        rf"dckr_(?:pat|oat)_{WORD}{{24,60}}+",
        *("dckr_pat_", "dckr_oat_"),
    ),
    token_format(
        "digitalocean-token",
        "DigitalOcean Docs: API tokens",
        rf"do[opr]_v1_{HEX}{{64}}",
        *("dop_v1_", "doo_v1_", "dor_v1_"),
    ),
    token_format(
        "shopify-token",
        _SHOPIFY,
        r"shp(?:at|ss|ca|pa|tka|rt|ua)_[a-fA-F0-9]{32}",
        *("shpat_", "shpss_", "shpca_", "shppa_", "shptka_", "shprt_", "shpua_"),
    ),
    token_format("vault-token", _VAULT, rf"hv[sbr]\.{WORD}{{24,300}}+", *("hvs.", "hvb.", "hvr.")),
    token_format(
        "terraform-token",
        "HCP Terraform Docs: API tokens",
        rf"(?<={ALNUM}{{14}})\.atlasv1\.{WORD}{{60,70}}+",
        ".atlasv1.",
        back=WORD_CHARS,
        back_chars=14,
    ),
    token_format(
        "linear-key",
        "Linear Developers: Authentication",
        rf"lin_(?:api|oauth|wh)_{ALNUM}{{32,64}}+",
        *("lin_api_", "lin_oauth_", "lin_wh_"),
    ),
    token_format("notion-token", "Notion Developers: Authentication", rf"ntn_{ALNUM}{{40,60}}+", "ntn_"),
    token_format(
        "notion-token", "Notion Developers: Authentication", rf"secret_{ALNUM}{{43}}(?![A-Za-z0-9])", "secret_"
    ),
    token_format("databricks-token", "Databricks Docs: Personal access tokens", rf"dapi{HEX}{{32}}", "dapi"),
    token_format(
        "doppler-token",
        "Doppler Docs: Tokens",
        rf"dp\.(?:pt|st|sa|ct|scim|audit)\.{ALNUM}[A-Za-z0-9_.-]{{39,80}}+",
        *("dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."),
    ),
    token_format("postman-key", "Postman Docs: API keys", rf"PMAK-{HEX}{{24}}-{HEX}{{34}}", "PMAK-"),
    token_format("grafana-token", _GRAFANA, rf"glsa_{ALNUM}{{32}}_[a-fA-F0-9]{{8}}", "glsa_"),
    token_format("grafana-token", _GRAFANA, r"glc_[A-Za-z0-9+/]{32,400}+", "glc_", ends=BASE64_END),
    token_format(
        "supabase-key",
        "Supabase Docs: API keys",
        rf"sb(?:[ap]|_secret)_{WORD}{{20,60}}+",
        *("sbp_", "sba_", "sb_secret_"),
    ),
    token_format(
        "sentry-token",
        "Sentry Docs: Auth tokens",
        r"sntry[sua]_[A-Za-z0-9+/=_]{40,400}+",
        *("sntrys_", "sntryu_", "sntrya_"),
        ends=BASE64_END,
    ),
    token_format(
        "atlassian-token", _ATLASSIAN, r"AT[AC]TT3[A-Za-z0-9_=-]{60,300}+", *("ATATT3", "ATCTT3"), ends=BASE64_END
    ),
    token_format("atlassian-token", "Bitbucket Cloud Docs: App passwords", rf"ATBB{ALNUM}{{32}}", "ATBB"),
    token_format("figma-token", "Figma Developers: Access tokens", rf"figd_{WORD}{{36,60}}+", "figd_"),
    token_format(
        "age-key",
        "age(1), C2SP age specification: X25519 identity",
        r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58}",
        *("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"),
    ),
    token_format("pulumi-token", "Pulumi Docs: Access tokens", rf"pul-{HEX}{{40}}", "pul-"),
    token_format(
        "tailscale-key",
        "Tailscale Docs: Keys and secrets, prefixes",
        r"tskey-[a-z]{2,12}+-[A-Za-z0-9-]{20,120}+",
        "tskey-",
    ),
    token_format(
        "cloudflare-token",
        "Cloudflare Docs: API token formats",
        rf"cf(?:ut|at|k)_{WORD}{{36,60}}+",
        *("cfut_", "cfat_", "cfk_"),
    ),
    token_format("posthog-key", "PostHog Docs: API keys", rf"ph[cxs]_{ALNUM}{{40,60}}+", *("phc_", "phx_", "phs_")),
    token_format("newrelic-key", "New Relic Docs: API keys", r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    token_format(
        "dynatrace-token", "Dynatrace Docs: Access tokens", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"
    ),
    token_format(
        "planetscale-token",
        "PlanetScale Docs: Service tokens",
        rf"pscale_(?:tkn|pw|oauth)_{WORD}{{32,64}}+",
        "pscale_",
    ),
    token_format(
        "buildkite-token",
        "Buildkite Docs: Token security",
        rf"bk[uax][at]_{ALNUM}{{40}}",
        *("bkua_", "bkaa_", "bkxt_"),
    ),
    token_format(
        "circleci-token",
        "CircleCI Docs: API tokens",
        rf"CCIP(?:RJ|AT)_{ALNUM}{{22}}_{HEX}{{40}}",
        *("CCIPRJ_", "CCIPAT_"),
    ),
    token_format(
        "flyio-token",
        "Fly.io Docs: Access tokens",
        r"fm[12][ar]?_[A-Za-z0-9+/]{60,4096}+",
        *("fm1_", "fm1a_", "fm1r_", "fm2_"),
        ends=BASE64_END,
    ),
    token_format(
        "hubspot-token",
        "HubSpot Developers: Private apps",
        rf"pat-(?:na|eu|ap)\d-{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}",
        "pat-",
    ),
    token_format("airtable-token", "Airtable Web API: Authentication", rf"pat{ALNUM}{{14}}\.{HEX}{{64}}", "pat"),
    token_format(
        "sonar-token",
        "SonarQube Docs: Generating and using tokens",
        rf"sq[apu]_{HEX}{{40}}",
        *("sqa_", "sqp_", "squ_"),
    ),
    token_format(
        "1password-token",
        "1Password Developer: Service accounts",
        rf"ops_eyJ{WORD}{{100,{MAX}}}+",
        "ops_eyJ",
        ends=BASE64_END,
    ),
    token_format("artifactory-token", "JFrog Help: API key", rf"AKC{ALNUM}{{60,80}}+", "AKC"),
    token_format("adafruit-key", "Adafruit IO Docs: Authentication", rf"aio_{ALNUM}{{28}}", "aio_"),
    token_format("easypost-key", "EasyPost Docs: Authentication", rf"EZ[AT]K{ALNUM}{{54}}", *("EZAK", "EZTK")),
    token_format(
        "clerk-key",
        "Clerk Docs: Environment variables",
        rf"(?:ak|ck)_live_{ALNUM}{{30,60}}+",
        *("ak_live_", "ck_live_"),
    ),
    token_format(
        "jwt",
        "RFC 7519 JSON Web Token: the usual first names of a header, also behind a hyphen",
        rf"eyJ(?:hbGci|0eXAi|raWQi){WORD}{{8,1024}}+={{0,2}}+\.{WORD}{{1,{16 * MAX}}}+={{0,2}}+"
        rf"(?:\.[A-Za-z0-9_.+/=-]{{1,{16 * MAX}}}+)?",
        *("eyJhbGci", "eyJ0eXAi", "eyJraWQi"),
        accept=is_jwt,
    ),
    token_format(
        "jwt",
        "RFC 7519 JSON Web Token; RFC 7515 and 7516 compact serialization",
        rf"eyJ{WORD}{{8,{4 * MAX}}}+={{0,2}}+\.{WORD}{{1,{16 * MAX}}}+={{0,2}}+"
        rf"(?:\.[A-Za-z0-9_.+/=-]{{1,{16 * MAX}}}+)?",
        "eyJ",
        accept=is_jwt,
        glue=WORD_CHARS,  # the run of a token is long: it is read once
    ),
    *SERVICE_FORMATS,
)
