"""Token formats of clouds, hosting, databases, model services and others: the continuation of ``token_formats.py``."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from signet_actors.domain.redaction.token_format import (
    ALNUM,
    ALNUM_CHARS,
    BASE64_END,
    HEX,
    HEX_CHARS,
    WORD,
    WORD_CHARS,
    TokenFormat,
    token_format,
)
from signet_actors.domain.redaction.values import has_placeholder, is_random, may_be_real_token

_UUID: Final = rf"{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}"
_AZURE_KEYS = "Microsoft Learn: Azure service keys with a signature at a fixed place"
_DOCKER_CONFIG = "Docker Docs: docker login, credential stores (config.json)"
_CHECKED_CHARS: Final = 256


def _decoded(token: str) -> bytes:
    """Return the beginning of a base64 text, b"" if it is not valid."""
    head = token.rstrip("=")[:_CHECKED_CHARS]
    try:
        return base64.b64decode(head + "=" * (-len(head) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""


def holds_private_key(token: str) -> bool:
    """Return whether ``token`` is the base64 form of a PEM private key; a certificate is public."""
    return b"PRIVATE KEY" in _decoded(token)[:64]


def is_basic_auth(token: str) -> bool:
    """Return whether ``token`` is the base64 form of ``user:password``."""
    user, colon, password = _decoded(token).partition(b":")
    text = (user + password).decode("ascii", "replace")
    return bool(user and colon and len(password) >= 4 and text.isprintable() and text.isascii()) and not (
        has_placeholder(text)
    )


SERVICE_FORMATS: Final[tuple[TokenFormat, ...]] = (
    token_format(
        "private-key",
        "RFC 7468 key blocks in base64; Kubernetes Docs: kubeconfig (client-key-data), TLS Secrets (tls.key)",
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{80,65536}+={0,2}+",
        "LS0tLS1CRUdJTi",
        accept=holds_private_key,
        ends=BASE64_END,
    ),
    token_format(
        "docker-token",
        "Kubernetes Docs: Pull an image from a private registry (.dockerconfigjson)",
        r"eyJhdXRocyI6[A-Za-z0-9+/]{20,65536}+={0,2}+",
        "eyJhdXRocyI6",
        ends=BASE64_END,
    ),
    token_format(
        "docker-token",
        _DOCKER_CONFIG,
        r"[A-Za-z0-9+/]{8,2048}+={0,2}+",
        *('"auth": "', '"auth":"'),
        accept=is_basic_auth,
        ends=None,
        after_mark=True,
    ),
    token_format(
        "npm-token",
        "npm Docs: npmrc, auth-related configuration",
        r"[A-Za-z0-9+/]{8,2048}+={0,2}+",
        *("_auth=", "_auth = "),
        accept=is_basic_auth,
        ends=None,
        after_mark=True,
    ),
    token_format(
        "kubernetes-token",
        "Kubernetes Docs: Authenticating with bootstrap tokens",
        r"(?<=[a-z0-9]{6})\.[a-z0-9]{16}(?![A-Za-z0-9])",
        ".",
        context=("kubeadm", "kubelet", "kubernetes"),
        back="abcdefghijklmnopqrstuvwxyz0123456789",
        back_chars=6,
        ends=None,
        glue=WORD_CHARS,
    ),
    token_format(
        "kubernetes-token",
        "Kubernetes Docs: kubeadm init, certificate key",
        rf"{HEX}{{64}}(?![A-Za-z0-9])",
        "--certificate-key ",
        ends=None,
        after_mark=True,
    ),
    token_format("neon-key", "Neon Docs: Connect from any application", rf"npg_{ALNUM}{{12,64}}+", "npg_"),
    token_format("neon-key", "Neon Docs: API keys", r"napi_[a-z0-9]{48,80}+", "napi_"),
    token_format(
        "azure-key",
        "Microsoft Learn: Create a service SAS; Event Hubs SharedAccessSignature; Logic Apps, callback URL",
        r"(?:[A-Za-z0-9+/_-]|%2[BbFf]){43}(?:=|%3[Dd]|(?![A-Za-z0-9+/_%-]))",
        "sig=",
        context=("sv=", "sr=", "se=", "skn=", "sp="),
        ends=None,
        after_mark=True,
    ),
    token_format(
        "azure-key",
        _AZURE_KEYS,
        rf"(?<={ALNUM}{{52}})JQQJ9[9DH]{ALNUM}{{10,30}}+",
        "JQQJ9",
        accept=lambda token: may_be_real_token(token[:52]),
        back=ALNUM_CHARS,
        back_chars=52,
    ),
    token_format(
        "azure-key",
        _AZURE_KEYS,
        rf"(?<={WORD}{{44}})AzFu{WORD}{{8}}={{0,2}}",
        "AzFu",
        back=WORD_CHARS,
        back_chars=44,
        ends=None,
    ),
    token_format(
        "azure-key", _AZURE_KEYS, rf"(?<={ALNUM}{{42}})AzSe{ALNUM}{{6}}", "AzSe", back=ALNUM_CHARS, back_chars=42
    ),
    token_format(
        "azure-key",
        _AZURE_KEYS,
        r"(?<=[A-Za-z0-9+/]{42})\+ACR[A-Za-z0-9+/]{6}",
        "+ACR",
        back=ALNUM_CHARS + "+/",
        back_chars=42,
        ends=None,
    ),
    token_format(
        "aws-key",
        "AWS IAM User Guide: Authenticating requests, query parameters; Google Cloud Docs: Signed URLs",
        rf"(?:{HEX}{{512}}|{HEX}{{64}})(?![A-Za-z0-9])",
        *("X-Amz-Signature=", "X-Goog-Signature="),
        ends=None,
        after_mark=True,
    ),
    token_format(
        "aws-session",
        "AWS STS API Reference: Credentials, SessionToken",
        r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/]{80,4096}+={0,2}+",
        *("IQoJb3JpZ2lu", "FwoGZXIvYXdz"),
        ends=BASE64_END,
    ),
    token_format(
        "aws-key",
        "AWS Bedrock User Guide: API keys, short-term",
        r"bedrock-api-key-[A-Za-z0-9+/]{60,4096}+={0,2}+",
        "bedrock-api-key-",
        ends=BASE64_END,
    ),
    token_format("google-key", "Google Cloud Docs: HMAC keys", r"GOOG1E[A-Z0-9]{50,60}+", "GOOG1E"),
    token_format(
        "slack-token", "Slack API: Token types, workflow tokens", rf"xwfp-[0-9]{{8,20}}-{ALNUM}{{20,80}}+", "xwfp-"
    ),
    token_format(
        "telegram-token",
        "Telegram Bot API: Making requests",
        rf"[0-9]{{8,10}}:{WORD}{{35}}(?![A-Za-z0-9_-])",
        "/bot",
        ends=None,
        after_mark=True,
    ),
    token_format("discord-token", "Discord: token of an account with two factors", rf"mfa\.{WORD}{{80,100}}+", "mfa."),
    token_format(
        "mailgun-key",
        "Mailgun Docs: API keys",
        rf"(?<={HEX}{{32}})-{HEX}{{8}}-{HEX}{{8}}(?![A-Za-z0-9])",
        "-",
        context=("mailgun",),
        back=HEX_CHARS,
        back_chars=32,
        ends=None,
    ),
    token_format(
        "datadog-key",
        "Datadog Docs: API and application keys",
        rf"dd(?:app|pat)_{ALNUM}{{30,80}}+",
        *("ddapp_", "ddpat_"),
    ),
    token_format(
        "vercel-token",
        "Vercel Docs: Token formats",
        rf"vc[pairk]_{ALNUM}{{24,80}}+",
        *("vcp_", "vca_", "vci_", "vcr_", "vck_"),
    ),
    token_format(
        "vercel-token", "Vercel Docs: Blob, read-write token", rf"vercel_blob_rw_{WORD}{{30,80}}+", "vercel_blob_rw_"
    ),
    token_format("heroku-key", "Heroku Dev Center: OAuth, tokens", rf"HRKU-(?:AA{WORD}{{58}}|{_UUID})", "HRKU-"),
    token_format(
        "netlify-token",
        "Netlify Docs: Personal access tokens",
        rf"nf[pcob]_{ALNUM}{{36,50}}+",
        *("nfp_", "nfc_", "nfo_", "nfb_"),
    ),
    token_format("render-key", "Render Docs: API keys", rf"rnd_{ALNUM}{{28,40}}+", "rnd_"),
    token_format("flyio-token", "Fly.io Docs: Access tokens", rf"fo1_{WORD}{{40,60}}+", "fo1_"),
    token_format("deno-token", "Deno Deploy Docs: Access tokens", rf"dd[po]_{ALNUM}{{36,50}}+", *("ddp_", "ddo_")),
    token_format("mongodb-key", "MongoDB Atlas Docs: Service accounts", rf"mdb_sa_sk_{WORD}{{32,60}}+", "mdb_sa_sk_"),
    token_format(
        "brevo-key",
        "Brevo Developers: API and SMTP keys",
        rf"x(?:key|smtp)sib-{HEX}{{64}}-{ALNUM}{{16}}",
        *("xkeysib-", "xsmtpsib-"),
    ),
    token_format(
        "snyk-token",
        "Snyk Docs: Personal access tokens",
        rf"snyk_(?:uat|sat)\.{HEX}{{8}}\.[A-Za-z0-9_.-]{{30,200}}+",
        *("snyk_uat.", "snyk_sat."),
    ),
    token_format("trello-token", "Atlassian Developer: Trello authorization", rf"ATTA{HEX}{{64,80}}+", "ATTA"),
    token_format(
        "plaid-token",
        "Plaid Docs: Access tokens",
        rf"access-(?:production|development|sandbox)-{_UUID}",
        *("access-production-", "access-development-", "access-sandbox-"),
    ),
    token_format(
        "mapbox-token", "Mapbox Docs: Secret access tokens", rf"sk\.eyJ{WORD}{{40,300}}+\.{WORD}{{20,40}}+", "sk.eyJ"
    ),
    token_format("contentful-token", "Contentful Docs: Authentication", rf"CFPAT-{WORD}{{40,60}}+", "CFPAT-"),
    token_format("typeform-token", "Typeform Developers: Personal access tokens", rf"tfp_{WORD}{{40,80}}+", "tfp_"),
    token_format(
        "langsmith-key",
        "LangSmith Docs: API keys",
        rf"lsv2_(?:pt|sk)_{HEX}{{32}}_{HEX}{{10}}",
        *("lsv2_pt_", "lsv2_sk_"),
    ),
    token_format("api-key", "Weights & Biases Docs: API keys", rf"wandb_v1_{WORD}{{60,100}}+", "wandb_v1_"),
    token_format("api-key", "Pinecone Docs: API keys", rf"pcsk_{ALNUM}{{4,8}}_{ALNUM}{{50,80}}+", "pcsk_"),
    token_format("api-key", "Together AI Docs: API keys", rf"tgp_v1_{WORD}{{40,60}}+", "tgp_v1_"),
    token_format("api-key", "Cerebras Docs: API keys", rf"csk-{ALNUM}{{40,60}}+", "csk-"),
    token_format("api-key", "Firecrawl Docs: API keys", rf"fc-{HEX}{{32}}(?![A-Za-z0-9])", "fc-"),
    token_format("api-key", "Jina AI Docs: API keys", rf"jina_{WORD}{{48,80}}+", "jina_"),
    token_format(
        "api-key", "Voyage AI Docs: API keys", rf"pa-{WORD}{{43}}(?!{WORD})", "pa-", accept=is_random, glue=WORD_CHARS
    ),
    token_format(
        "api-key", "Brave Search: API keys", rf"BSA{WORD}{{28}}(?!{WORD})", "BSA", accept=is_random, glue=WORD_CHARS
    ),
    token_format("api-key", "ElevenLabs Docs: API keys", rf"sk_{HEX}{{48}}(?![A-Za-z0-9])", "sk_"),
    token_format("api-key", "Cursor Docs: API keys", rf"key_{HEX}{{64}}(?![A-Za-z0-9])", "key_", glue=WORD_CHARS),
    token_format("api-key", "Infracost Docs: API keys", rf"ico-{ALNUM}{{32}}(?![A-Za-z0-9])", "ico-"),
    token_format("google-key", "Gemini API Docs: API keys", rf"AQ\.Ab{WORD}{{40,80}}+", "AQ.Ab"),
    token_format(
        "api-key",
        "RapidAPI Docs: API keys",
        rf"(?<={ALNUM}{{10}})msh{ALNUM}{{15}}p1{ALNUM}{{5}}jsn{ALNUM}{{12}}(?![A-Za-z0-9])",
        "msh",
        back=ALNUM_CHARS,
        back_chars=10,
    ),
    token_format(
        "api-key",
        "Ollama Docs: API keys",
        rf"(?<={HEX}{{32}})\.{ALNUM}{{24}}(?![A-Za-z0-9])",
        ".",
        context=("ollama",),
        back=HEX_CHARS,
        back_chars=32,
    ),
    token_format(
        "api-key", "ngrok Docs: Authtokens", rf"2{ALNUM}{{26}}_{ALNUM}{{21,22}}(?!{WORD})", "2", context=("ngrok",)
    ),
    token_format(
        "asana-token",
        "Asana Developers: Personal access tokens",
        rf"[12]/[0-9]{{12,20}}/[0-9]{{12,20}}:{HEX}{{32}}",
        *("1/", "2/"),
    ),
    token_format("clickup-token", "ClickUp API: Authentication", r"pk_[0-9]{5,10}_[A-Z0-9]{32}(?![A-Za-z0-9])", "pk_"),
    token_format("artifactory-token", "JFrog Help: Reference tokens", rf"cmVmdGtu{ALNUM}{{48,64}}+", "cmVmdGtu"),
    token_format("cloudflare-token", "Cloudflare Docs: Origin CA keys", rf"v1\.0-{HEX}{{24}}-{HEX}{{146}}", "v1.0-"),
    token_format(
        "webhook",
        "Zapier, Make, IFTTT, Microsoft Teams, Feishu and WeCom: addresses of webhooks",
        r"(?:hooks\.zapier\.com/hooks/(?:catch|standard)/[0-9]{3,12}/[A-Za-z0-9]{5,64}+/?|\.make\.com/[A-Za-z0-9]{28,40}+"
        r"|maker\.ifttt\.com/trigger/[\w-]{1,64}/(?:json/)?with/key/[\w-]{20,64}+"
        r"|\.webhook\.office\.com/webhookb2/[\w@/-]{60,400}+"
        r"|/(?:open-apis/bot/v2/hook/|cgi-bin/webhook/send\?key=)[\w-]{36})",
        *("hooks.zapier.com/", ".make.com/", "maker.ifttt.com/", ".webhook.office.com/"),
        *("/open-apis/bot/v2/hook/", "/cgi-bin/webhook/send?key="),
        back=ALNUM_CHARS + "-.:/",
        back_chars=80,
        ends=None,
    ),
    token_format("api-key", "E2B Docs: API keys", rf"e2b_{HEX}{{40}}", "e2b_"),
    token_format(
        "sourcegraph-token",
        "Sourcegraph Docs: Access tokens",
        rf"sgp_(?:{HEX}{{16}}_|local_)?{HEX}{{40}}",
        "sgp_",
    ),
    token_format("readme-key", "ReadMe Docs: API keys", r"rdme_[a-z0-9]{60,80}+", "rdme_"),
    token_format(
        "payment-key",
        "Flutterwave Docs: API keys",
        rf"FLWSECK(?:_TEST)?-{ALNUM}{{32,40}}+-X",
        *("FLWSECK-", "FLWSECK_TEST-"),
    ),
)
