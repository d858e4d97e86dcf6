"""Units, forms and descriptions of the values in the configuration.

Source: docs/configuration.md.
"""

from __future__ import annotations

from typing import Final

from msgspec import Meta

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
KIB: Final = 1024
MIB: Final = 1024 * KIB
MAX_NAME_CHARS: Final = 200
MAX_URL_CHARS: Final = 2000
MAX_PATH_CHARS: Final = 1000
KEY_VARIABLES: Final = (
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "JINA_API_KEY",
    "MISTRAL_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "VOYAGE_API_KEY",
    "XAI_API_KEY",
)
"""The environment variables that model providers document for their keys. Apart from these, only ``SIGNET_*`` is
accepted.
"""
KEY_VARIABLE_PATTERN: Final = rf"^(SIGNET_[A-Za-z0-9_]+|{'|'.join(KEY_VARIABLES)})?\Z"
HOST_PATTERN: Final = r"^[A-Za-z0-9._:-]+\Z"
USER_PATTERN: Final = r"^(\*|[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?)\Z"
USER_FORM: Final = "a user's name or number, or `*` for all users"
ALLOWED_HOST_PATTERN: Final = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?\Z"
ENDPOINT_PATTERN: Final = r"^(https?://[^\s/?#@]+[^\s?#@]*)?\Z"
"""No user, password, query or fragment, so that an endpoint never contains a secret."""
KEY_VARIABLE_FORM: Final = (
    'a name that begins with SIGNET_, or one of docs/configuration.md, "Keys of providers", such as OPENAI_API_KEY'
)
ENDPOINT_FORM: Final = "an http:// or https:// URL without user, query or fragment"
ADDRESS_PATTERN: Final = r"^[0-9A-Fa-f.:]{2,45}\Z"
HOST_FORM: Final = "a host name or an IP address without brackets and port"
ALLOWED_HOST_FORM: Final = "a host name, with or without a port, without wildcards"
DIRECTORY_PATTERN: Final = r"\A(/|~/|~\Z)[^\x00-\x1f\x7f-\x9f]*\Z"
DIRECTORY_FORM: Final = "an absolute path, or one that begins with ~/"
NAME_PATTERN: Final = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"
MODEL_PATTERN: Final = r"\A(?!-)[^\x00-\x1f\x7f-\x9f]*\Z"
MODEL_FORM: Final = "a name that does not begin with -"
PROGRAM_MODEL_PATTERN: Final = r"\A(?!-)[^\s\x00-\x1f\x7f-\x9f]*\Z"
PROGRAM_MODEL_FORM: Final = "a name without spaces that does not begin with -"
"""The model becomes a command-line argument, which the program must not parse as an option."""


def described(meaning: str) -> Meta:
    return Meta(description=meaning)


def ranged(low: float, high: float, meaning: str) -> Meta:
    return Meta(ge=low, le=high, description=meaning)


def text(
    meaning: str, *, chars: int = MAX_NAME_CHARS, pattern: str | None = None, form: str = "text", least: int = 0
) -> Meta:
    """``form`` describes ``pattern`` in words."""
    return Meta(title=form, min_length=least, max_length=chars, pattern=pattern, description=meaning)


def model_name(meaning: str) -> Meta:
    return text(meaning, pattern=PROGRAM_MODEL_PATTERN, form=PROGRAM_MODEL_FORM)


def endpoint_url(meaning: str) -> Meta:
    return text(meaning, chars=MAX_URL_CHARS, pattern=ENDPOINT_PATTERN, form=ENDPOINT_FORM)


def key_variable(meaning: str) -> Meta:
    return text(meaning, pattern=KEY_VARIABLE_PATTERN, form=KEY_VARIABLE_FORM)


def directory_path(meaning: str) -> Meta:
    return text(meaning, chars=MAX_PATH_CHARS, pattern=DIRECTORY_PATTERN, form=DIRECTORY_FORM, least=1)
