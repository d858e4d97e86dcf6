"""Every pattern and scanner for outside text takes linear time on the worst text; the list is complete."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from signet_actors.cli.harnesses import hook_settings
from signet_actors.domain import (
    chunking,
    directives,
    exact_names,
    memories,
    near_duplicates,
    normalization,
    orders,
    program_text,
    prompt_terms,
    query_words,
    timestamps,
    working_memory,
    written_forms,
)
from signet_actors.domain.dated_sections import are_in_lines, unrepeated
from signet_actors.domain.extraction import (
    contradiction,
    injected_text,
    injection_detector,
    junk_filter,
    llm_output,
    prompts,
)
from signet_actors.domain.graph.candidates import clauses
from signet_actors.domain.graph.decisions import is_decision_content
from signet_actors.domain.graph.names import NameIndex
from signet_actors.domain.redaction import scan, values
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.domain.session_inject import Line, memory_lines
from signet_actors.domain.temporal.intent import intent_of_query
from signet_actors.domain.transcripts import cursor, dialogue, excerpts, parse, turns
from signet_actors.domain.versions import Dated, newest_versions
from signet_actors.errors import InvalidRequest
from signet_actors.gateway import transcript_capture
from signet_actors.gateway.server import framing
from signet_actors.hook.injected_text import fitted
from signet_actors.providers.embedded import EmbeddedEmbedder
from signet_actors.providers.minilm.embedder import VOCABULARY
from signet_actors.providers.minilm.word_pieces import WordPieces
from signet_actors.providers.multilingual.unigram import Pieces, Unigram
from tests.support.program_messages import ENDLESS_FORMS, FILES, WHOLE_FORMS
from tests.support.pump_texts import most_needed, pump_texts

PACKAGE: Final = Path(__file__).parents[2] / "signet_actors"

SEARCHED, MATCHED, WHOLE, FIXED = "searched", "matched", "whole", "fixed"
"""How a pattern is used: all over a text, at one place, on all of it; or never on outside text."""

PATTERNS: Final[dict[str, dict[str, str]]] = {
    "cli.invocation": {"_COMMAND": SEARCHED},
    "cli.mcp": {"_FILE_URI": WHOLE},
    "cli.memory_rows": {"_UUID": WHOLE, "_FENCE": MATCHED, "_HEADING": WHOLE},
    "cli.presentation": {
        "_UNSAFE": SEARCHED,
        "_UNSAFE_IN_JSON": SEARCHED,
        "_SPACE": SEARCHED,
        "below_home:sub": FIXED,
        "_COMMAND": SEARCHED,
    },
    "cli.connect_check": {"_QUOTES": SEARCHED},
    "features.checkpoints.rules": {"_SENTENCE_END": SEARCHED},
    "features.conversation.rules": {"_WORD": SEARCHED},
    "domain.lazy_patterns": {"__getattr__": FIXED},
    "cli.harnesses.json_text": {
        **dict.fromkeys(("_SPACE", "_COMMENTS", "_UNTIL_COMMA"), MATCHED),
        **dict.fromkeys(("_STRING_OR_COMMENT", "_STRING_OR_COMMA", "_NOT_LINE_END"), SEARCHED),
    },
    "cli.harnesses.server_entry": {"_LINE_OF_ERROR": SEARCHED},
    "cli.import_export": {"_LINE": SEARCHED},
    "cli.setup": {"_MADE": WHOLE},
    "cli.past_sessions.chat_export": {"_BLANKS": MATCHED},
    "cli.importers.markdown": {"_SHOWN_ID": SEARCHED},
    "cli.importers.codex_memory": {"_UPDATED": SEARCHED},
    "config.keys": {"snake:sub": FIXED, "camel:sub": FIXED},
    "config.yaml_file": {"_INT": MATCHED, "_FLOAT": MATCHED},
    "config.load": {"_read_text:search": FIXED, "_with_environment:fullmatch": FIXED},
    "domain.backups": {"_PATTERN": WHOLE},
    "domain.chunking": {"_SENTENCE_END": SEARCHED, "_LIST_NUMBER": WHOLE},
    "domain.evaluation.locomo": {"_DIA_ID": SEARCHED},
    "domain.graph.names": {"_TOKEN": SEARCHED},
    "domain.graph.decisions": {"DECISION_PATTERNS": SEARCHED},
    "domain.graph.candidates": {
        **dict.fromkeys(("_CLAUSE", "_NAME"), SEARCHED),
        "_MARKED": SEARCHED,
        "_STATES": MATCHED,
        "ASPECT_VERBS": SEARCHED,
    },
    "domain.ranking.dampening": {"_DATED": SEARCHED},
    "domain.ranking.text_flags": {
        **dict.fromkeys(("_ASKS", "_TOKEN"), SEARCHED),
        "_ORDINAL": WHOLE,
        **dict.fromkeys(("_SPEAKER", "_FIRST_WORD", "_WHEN", "_HOW_MANY"), MATCHED),
    },
    "domain.session_summaries": {"_WORD": SEARCHED},
    "domain.extraction.contradiction": {"_APOSTROPHE": SEARCHED, "_TOKEN": SEARCHED},
    "domain.extraction.junk_filter": {
        **dict.fromkeys(("_MARK", "_CHAT_MARK", "_SENTENCE_END", "_ANSI", "_UNBROKEN"), SEARCHED),
        **dict.fromkeys(("_QUESTION", "_PROMPT", "_COURTESY", "_TOOL"), MATCHED),
    },
    "domain.extraction.injected_text": {
        **dict.fromkeys(
            ("_MARK", "_MARK_START", "_TAG", "_RESULTS", "_ITEM_END", "_MEMORY_END", "_SENTENCE_END", "_NEXT_ITEM"),
            SEARCHED,
        ),
        **dict.fromkeys(
            ("_DATE_LINE", "_DATE_WORDS", "_FULL_DATE", "_BULLET", "_ROLE", "_HEADING", "_BEFORE_SECTIONS"), MATCHED
        ),
        "_HARNESS_TAGS": WHOLE,
        "_TEMPLATE_MARK": SEARCHED,
    },
    "domain.extraction.injection_detector": {"_URL_HOST": SEARCHED, "_patterns": SEARCHED},
    "domain.extraction.llm_output": {"_TAG": SEARCHED, "_START": SEARCHED},
    "domain.extraction.prompts": {"_NONCE": WHOLE, "_SLOT": FIXED, "_TURN": SEARCHED, "between_marks:sub": FIXED},
    "domain.extraction.content_words": {"_WORDS": SEARCHED},
    "domain.extraction.tolerant_json": {
        **dict.fromkeys(("MORE_MEMBERS", "_AFTER_ITEM", "_AFTER_KEY", "_AFTER_MEMBER", "_BARE", "_HEX4"), MATCHED),
        **dict.fromkeys(("_KEY_WORD", "_SPACE"), MATCHED),
        **dict.fromkeys(("_STOP", "_TRAILING_COMMENT"), SEARCHED),
        "_NUMBER": WHOLE,
    },
    "cli.call": {"_option:sub": FIXED},  # of declared operations
    "domain.fts_limits": {"_LEXEME": SEARCHED},
    "domain.said_again": {
        "_CLAUSE": SEARCHED,
        "_CLOCK": SEARCHED,
        "_DATE": SEARCHED,
        "_DAY": SEARCHED,
        "_DIGIT": SEARCHED,
        "_GROUPED": SEARCHED,
        "_HOUR": WHOLE,
        "_LABEL": WHOLE,
        "_SENTENCE": SEARCHED,
        "_THOUSAND": SEARCHED,
        "_YEAR": WHOLE,
    },
    "domain.identity": {"_LINE": MATCHED},
    "domain.identity_block": {"_MARKS": SEARCHED},
    "domain.code_fences": {"_FENCES": SEARCHED},
    "domain.prompt_terms": {
        **dict.fromkeys(("_MENTION", "_METADATA", "_SENTENCE_END", "_LOG_END", "_PAIR", "_MARKS", "_QUOTED"), SEARCHED),
        **dict.fromkeys(("_OFF_REQUEST", "_SHORT_NAME"), SEARCHED),
        **dict.fromkeys(("_LOG_START", "_OFF"), MATCHED),
    },
    "domain.transcripts.excerpts": {"_SENTENCE_END": SEARCHED},
    "domain.exact_names": {
        **dict.fromkeys(
            ("_MAY_HAVE_NAMES", "_WORD", "_NAME_WORD", "_FILE", "_ADDRESS", "_ARTIFACT", "_HOST"), SEARCHED
        ),
        **dict.fromkeys(("_PACKAGE", "_FLAG"), SEARCHED),
        **dict.fromkeys(("_NUMBER", "_BEFORE_CODE", "_SYMBOLS", "_ABOUT_CODES"), SEARCHED),
        **dict.fromkeys(("_TICKET", "_REASON"), MATCHED),
        **dict.fromkeys(("_UUID", "_NUMBERED", "_HEX", "_HASH", "_CODE", "_CAMEL", "_ERROR_NAME"), WHOLE),
    },
    "domain.written_forms": {
        **dict.fromkeys(("_SPECIAL", "_CAMEL", "_INNER_CAPITAL", "_WORD_OF_CAMEL", "_EMOJI", "_PICTURES"), SEARCHED),
        **dict.fromkeys(("_PART", "_LETTERS_DIGITS", "_JOINED", "_HEX"), WHOLE),
    },
    "domain.directives": {
        **dict.fromkeys(("_DECISION", "_PREFERENCE", "_RULE"), MATCHED),
        "_INSTRUCTS": SEARCHED,
    },
    "domain.orders": {
        "_SENTENCE": SEARCHED,
        **dict.fromkeys(("_LEAD", "_ENGLISH", "_MUST", "_GERMAN", "_FRENCH", "_SPANISH"), MATCHED),
        **dict.fromkeys(("_SUPPOSED", "_REPORTED"), SEARCHED),
        **dict.fromkeys(("_NO_VERB", "_VERB_IN_ED"), WHOLE),
    },
    "domain.memories": {
        "_NO_PERSON": SEARCHED,
        "_TAGS": WHOLE,
        "_TAG_NAME": WHOLE,
        "_NO_TAG": WHOLE,
        "_LINK_TARGET": WHOLE,
        "_NEVER_MIND": SEARCHED,
        "_TYPE_NAME": WHOLE,
        "_TYPE_RULES": SEARCHED,
    },
    "domain.near_duplicates": {
        "_OPENING": MATCHED,
        **dict.fromkeys(("_QUOTED", "_SENTENCE_END", "_FIRST_LETTER", "_VALUE", "_BRACKETS"), SEARCHED),
    },
    "domain.normalization": dict.fromkeys(
        ("_SURROGATE", "_CJK_OR_NOT", "CJK_RUN", "MAYBE_CJK", "_INVISIBLE", "_CASED", "CONTROL"), SEARCHED
    ),
    "domain.query_words": {
        **dict.fromkeys(
            ("_ASCII_WORD", "_CONTRACTION", "_PIECE", "_WORD_OF_CAMEL", "_INNER_CAPITAL"),
            SEARCHED,
        ),
        **dict.fromkeys(("_HYPHENATED_QUANTITY", "_CAMEL", "_QUANTITY", "_TICKET"), WHOLE),
        **dict.fromkeys(("_words_of_hyphenated:search", "match_terms:split"), FIXED),  # one character
    },
    "domain.redaction.commands": {
        **dict.fromkeys(("_ADDRESS", "_BEARER", "_COOKIES", "_COOKIE_NAME", "_EVENT", "_KEY_LINE", "_PUTTY"), SEARCHED),
        **dict.fromkeys(
            (
                "_KNOWN_COOKIE",
                "_SESSION",
                "_NETRC",
                "_OPENSSL",
                "_PGPASS",
                "_INPUT",
                "_TOKEN_COMMAND",
                "_AUTH_PAIR",
                "_AUTH",
                "_ARGUMENT",
            ),
            SEARCHED,
        ),
        **dict.fromkeys(("_VARIABLE", "_NO_WORD", "_TOKEN_AS_USER", "_PARAMETERS", "_SECRET_PARAMETER"), SEARCHED),
        **dict.fromkeys(("_BEARER_END", "_COOKIE", "_KEY_END", "_KEY_HEAD", "_KEY_LINES", "_OPTION_END"), MATCHED),
        **dict.fromkeys(("_LAST_LINE", "_SETS", "_SET"), SEARCHED),
        "_COMMAND_LINE": MATCHED,
        "_PRODUCTS": WHOLE,
        "_KEY_TAIL": MATCHED,
        **dict.fromkeys(("_MORE_ARGUMENTS", "_USER_AND_PASSWORD", "_PARAMETER"), MATCHED),
        **dict.fromkeys(("_BEFORE_COMMAND", "_SHA1", "_PORTS", "_WORD"), WHOLE),
        "_OPTION_BEFORE": SEARCHED,
    },
    "domain.redaction.named_values": {
        **dict.fromkeys(("_NAME", "_CLOSING_TAG", "_ENTITY_STOP", "_STOPS", "_ESCAPED_STOPS"), SEARCHED),
        **dict.fromkeys(("_END_OF_LINE", "_OPEN_QUOTE", "_PHRASES", "_VALUE_ENDS", "_IS_SAID"), MATCHED),
        **dict.fromkeys(("_OPTION_BEFORE", "_PARAMETER_BEFORE", "_ACCOUNT_BEFORE", "_SQL_ACCOUNT_BEFORE"), SEARCHED),
        **dict.fromkeys(("_REPLACED", "_PART_OF_CODE", "_ASIDE_BEFORE", "_DEFINE_BEFORE"), SEARCHED),
        "_ASIDE_END": MATCHED,
    },
    "domain.redaction.secret_names": {"_ANY_NAME": SEARCHED},
    "domain.redaction.clauses": {
        **dict.fromkeys(("_IT_IS", "_CHANGED", "_BESIDE", "_LISTED", "_FROM_TO", "_CHANGING"), SEARCHED),
        **dict.fromkeys(("_CLAUSE_ENDS", "_FOR_EACH", "_LABELLED", "_OF_EACH"), MATCHED),
    },
    "domain.redaction.lists": {
        "_HEADING": SEARCHED,
        "_ASIDE": SEARCHED,
        **dict.fromkeys(("_LINE", "_GLUED", "_SIGNED"), MATCHED),
    },
    "domain.redaction.statements": {"_STATEMENT": SEARCHED, "_ENDS": MATCHED},
    "domain.redaction.url_parameters": {
        "_PARAMETER": SEARCHED,
        **dict.fromkeys(("_HEX_SIGNATURE", "_DIGEST"), WHOLE),
    },
    "domain.redaction.labelled_values": {
        **dict.fromkeys(("_VARIABLE", "_MANAGED", "_OF_PARTS", "_LABEL", "_SECTION", "_LIST", "_INSERT"), SEARCHED),
        **dict.fromkeys(("_ALIAS", "_ANCHOR", "_ASKED", "_SAID_KEY", "_SERVICE_KEY", "_BRACED", "_ASKS"), SEARCHED),
        **dict.fromkeys(("_VALUE_FIRST", "_CHANGED", "_NAMED_BEFORE", "_SHOWN"), SEARCHED),
        **dict.fromkeys(("_ENTRY", "_ITEM", "_SQL_PART", "_ANSWERS"), MATCHED),
        **dict.fromkeys(("_COLUMN", "_TOKEN"), WHOLE),
    },
    "domain.redaction.written_credentials": {
        **dict.fromkeys(("_PAIR", "_PIN", "_PASSPHRASE", "_WIFI", "_BLOB", "_SAID_LAST"), SEARCHED),
        **dict.fromkeys(("_ACCOUNT", "_BOT_TOKEN", "_TO_LOG_IN", "_PAIR_BEFORE", "_OTP", "_RECOVERY"), SEARCHED),
        **dict.fromkeys(("_LOGGED_IN", "_HARDWARE", "_DEFAULT_BEFORE"), SEARCHED),
        **dict.fromkeys(("_PASSWORD_NAMED", "_PAT", "_TOLD_LATER", "_NAMED", "_UUID_KEY"), SEARCHED),
        "_VERSIONS": WHOLE,
        **dict.fromkeys(("_USER", "_LINE_END", "_SURE_PAIR", "_CODE", "_GROUPS"), MATCHED),
        "_BETWEEN_WORDS": SEARCHED,
    },
    "domain.redaction.said_values": {
        **dict.fromkeys(("_SAID_BEFORE", "_USED_BEFORE", "_ENTERED", "_ASKED", "_WHOSE", "_FOR_BEFORE"), SEARCHED),
        **dict.fromkeys(("_LAST_NAME", "_TOLD"), SEARCHED),
        "_ENDS": MATCHED,
    },
    "domain.redaction.tables": {
        **dict.fromkeys(("_COLUMN", "_CELL", "_RULE"), WHOLE),
        "_QUOTED_CELL": MATCHED,
        "_WORDS": SEARCHED,
    },
    "domain.redaction.token_formats": {
        "FORMATS": MATCHED,
        "AWS_SECRET": SEARCHED,
    },
    "domain.redaction.token_format": {
        **dict.fromkeys(("BASE64_END", "TOKEN_END"), MATCHED),
        "token_format": FIXED,  # makes FORMATS
    },
    "domain.redaction.line_prefixes": {"_PREFIX": MATCHED, "_CELLS": MATCHED},
    "domain.redaction.letters": {"_ESCAPED": SEARCHED, "_IMITATING": SEARCHED},
    "domain.redaction.scan": {
        "_WORD": SEARCHED,
        "_PERCENT": FIXED,
        "_TELLING": SEARCHED,
        **dict.fromkeys(("_ESCAPE_END", "_NAME_BEFORE", "_NAME_BEHIND"), FIXED),
    },  # in 32 characters
    "domain.redaction.generated": {
        **dict.fromkeys(("BARE_STOP", "_ODD", "_WORDS", "_LETTERS", "_MADE_UP", "_ENDS"), SEARCHED),
        **dict.fromkeys(("_CAPITAL", "_SMALL", "_DIGIT", "_SIGN"), SEARCHED),
        **dict.fromkeys(("_WORD", "_UNCLOSED", "_CODE_BEHIND"), MATCHED),
        **dict.fromkeys(("_JOINED_WORDS", "_OPENED"), WHOLE),
    },
    "domain.redaction.kubernetes": {
        **dict.fromkeys(("_KIND", "_SECTION", "_PAIR", "_KEY"), WHOLE),
        **dict.fromkeys(("_KIND_OF_SECRET", "_FLOW_PAIR", "_COMMENT", "_JSON_START", "_JSON_TOKEN"), SEARCHED),
        "_BARE_KEY": MATCHED,
    },
    "domain.redaction.letter_pairs": {
        "_RUN": SEARCHED,
        **dict.fromkeys(("_FOURS", "_ABBREVIATIONS", "_CHANGE", "_BETWEEN_FOURS"), SEARCHED),
        "_HEX": WHOLE,
    },
    "domain.redaction.values": {
        **dict.fromkeys(("_DIGIT", "_LOWER", "_UPPER", "_SPECIAL", "_LETTER_OR_DIGIT", "_WORD_MARK"), SEARCHED),
        **dict.fromkeys(("_YOUR", "_SAME_CHARACTER", "_CHANGES", "_DIGIT_FOR_LETTER"), SEARCHED),
        **dict.fromkeys(("_CASE_CHANGE", "_TWO_CAPITALS"), SEARCHED),
        **dict.fromkeys(("_CAPITALS_AND_NUMBER", "_HEX", "_ULID"), WHOLE),
        **dict.fromkeys(("_SYMBOL", "_SYMBOL_OF_NO_PATH", "_PART_OF_PATH", "_SIGN_IN_WORD", "_WORD_END"), SEARCHED),
        "BLOB_END": MATCHED,
        **dict.fromkeys(("_ID_OR_PLACE", "_BASE64_TEXT"), WHOLE),
        **dict.fromkeys(
            ("_TOKEN_LIKE", "_PLACEHOLDER", "_STAND_IN", "_BASE64", "_ALGORITHM", "_WORDS_AND_NUMBER"), WHOLE
        ),
        "_IN_STATEMENT": SEARCHED,
        **dict.fromkeys(("_WORDS_AND_INDEX", "_NAME_IN_CODE", "_REFERENCE", "_COUNTED_OR_NUMBERED"), WHOLE),
        **dict.fromkeys(("_AFTER_SYMBOL", "_PHRASE", "_WORD_WITH_DIGITS", "_WORD_AND_NUMBER"), WHOLE),
        "_PORT": MATCHED,
        "_CHARACTER_CODE": MATCHED,
    },
    "domain.dated_sections": {**dict.fromkeys(("_AROUND", "_WORD"), SEARCHED), "_HEADING": MATCHED},
    "domain.temporal.full_dates": dict.fromkeys(
        ("_YEAR", "_YEAR_FIRST", "_MONTH_FIRST", "_DAY_FIRST", "_DAY_FIRST_NUMBERS", "_SLASHED"), SEARCHED
    ),
    "domain.temporal.other_languages": {"_PHRASE": SEARCHED},
    "domain.temporal.in_text": {"_NAMED": SEARCHED},
    "domain.temporal.phrases": {"_LOCAL_TIME": WHOLE},
    "domain.temporal.questions": {"_WHAT_WAS_DONE": MATCHED, "_FOLLOWED": SEARCHED},
    "domain.temporal.relative_dates": dict.fromkeys(("_WORD", "_ISO_MONTH"), SEARCHED),
    "domain.program_text": {
        **dict.fromkeys(("_ATTACHED_OPENING", "_DRAFT_END", "_ENDING", "_FOLDED", "_HEADING", "_ORDERS"), SEARCHED),
        **dict.fromkeys(("_FILES", "_FILES_END", "_PLANNED_IN", "_REQUEST", "_SUMMARY", "_SUMMARY_END"), SEARCHED),
        **dict.fromkeys(("_COMMENT", "_COMMENTS"), SEARCHED),
        **dict.fromkeys(("_AGENT_ERROR", "_DRAFT", "_ELEMENT", "_HAND_OVER", "_OPENING", "_CONTINUED"), MATCHED),
        **dict.fromkeys(("_BEFORE_REQUEST", "_MESSAGE", "_MESSAGE_BEGIN", "_PLAN_OF_CODEX", "_STAMP", "_OFF"), MATCHED),
        "_INTERRUPTION": WHOLE,
    },
    "domain.transcripts.answers": {"_ANSWER": SEARCHED, "_CLARIFY": MATCHED, "_REFUSED": MATCHED},
    "domain.transcripts.cursor": {"_TIME": SEARCHED, "_WHOLE_TIME": SEARCHED},
    "domain.transcripts.dialogue": {"_MAY_SPEAK": SEARCHED},
    "domain.transcripts.gemini": dict.fromkeys(("_COMMAND", "_PLAN_REFUSED", "_SNAPSHOT"), MATCHED),
    "domain.transcripts.marked": {"MAY_BE_MARK": SEARCHED},
    "domain.transcripts.opencode": {"_OWN_NAME": MATCHED, "_REFUSED": MATCHED},
    "domain.transcripts.parse": {"_NOT_BLANK": FIXED},  # one byte
    "domain.windowed_search": {"_BLANK": SEARCHED},
    "domain.working_memory": {"_MARK": SEARCHED, "_HEADING": MATCHED, "_FENCE": WHOLE},
    "domain.timestamps": {"_ISO": WHOLE, "_STORED": WHOLE},
    "operations.field_types": {"LEADING_INTEGER": MATCHED, "NUMBER": WHOLE, "WHOLE_INTEGER": WHOLE},
    "operations.mcp": {"_ESCAPE": SEARCHED},
    "operations.request_path": {"PARAMETER": FIXED},  # of declared operations
    "operations.tools": {"_CONTROL": SEARCHED},
    "operations.request_reader": {"_AFTER_UNDERSCORE": SEARCHED, "_CAPITAL": SEARCHED},
    "gateway.auth.request_guard": {"_HOST": WHOLE},
    "gateway.synthesis.memory_file": {"_VERSION": WHOLE},
    "gateway.http.openapi": {"operation_id:sub": FIXED, "_path_names:findall": FIXED},
    "gateway.server.framing": {"_HEAD": MATCHED, "_UNUSUAL": SEARCHED},
    "features.auth_tokens.api": {"_AGENT_NAME": WHOLE},
    "gateway.http.request_texts": {"_AGENT_NAME": WHOLE, "_CONTROL": SEARCHED},
    "gateway.http.route_table": {"_ESCAPED_SLASH": SEARCHED, "_SLASHES": SEARCHED},
    "gateway.routes.codex_notes": {"_NOT_SLUG": SEARCHED},
    "cli.importers.signet_markdown": {"_TAG_LIKE": WHOLE, "_UNSAFE": SEARCHED},
    "cli.service_managers": {"_PLAIN": WHOLE, "_words:sub": FIXED, "state:findall": FIXED},  # bounded parts
    "cli.past_sessions.line_files": {"_UUID": WHOLE},
    "gateway.routes.import_export": {"_UUID": WHOLE},
    "providers.byte_pairs": {"_SPECIAL": SEARCHED},
    "providers.llm.cli_provider": {"_RATE_LIMITED": SEARCHED, "_UNAUTHORIZED": SEARCHED},
    "providers.log_sanitizing": {"_BLANKS": SEARCHED, "_KEY_LIKE": SEARCHED, "_SEPARATORS": SEARCHED},
    "searcher.exact_matches": {"lift_exact_matches": FIXED},  # escaped names, with nothing repeated
    "searcher.graph.beside": {"_REASON": SEARCHED},
    "store.vector_file": {"vector_file:sub": FIXED},
    "store.sqlite.migrate": {"_WHOLE_WORD": SEARCHED},
    "writer.restore": {"_DECISION": MATCHED},
}

HANG_S: Final = 30
"""A quadratic scanner would take minutes, an exponential one years."""
T3: Final = "T3Blbk" + "FJ"
UNITS: Final = (
    *(
        "a",
        "A",
        "1",
        "_",
        " ",
        "\ufeff \n",
        "\u0300\u0316",
        "\u4e00\u0300\u0316",
        "\t",
        "\n",
        "\r\n",
        '"',
        "'",
        "\\",
        '\\"',
        "`",
        "<",
        "</",
        ">",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
    ),
    *(
        "a.",
        "a-",
        "a/",
        "a: ",
        "1.",
        "1e",
        "1 ",
        "12:",
        "::",
        ":",
        "://",
        "://a:",
        "@",
        "=",
        "-",
        "--",
        "#",
        "//",
        "/*",
        "*",
    ),
    *(
        ".",
        "!",
        "? ",
        ". ",
        "%",
        "&",
        "|",
        ";",
        ",",
        "\u00e9",
        "\u4e2d",
        "\uff41",
        "\u0430",
        "\u200b",
        "\u200d",
        "\x00",
        "\x1b[",
        "\u0130",
    ),
    *(
        "+/",
        "Ab",
        "a_",
        "A-1",
        "1-a",
        "T1",
        "the ",
        "what ",
        "don't ",
        "...",
        "- ",
        "\u2022 ",
        "\\u0041",
        "$",
        "^",
        "\ud800",
    ),
    *(
        "<think>",
        "<thinking ",
        "</think>",
        "<memory-feedback>",
        "[signet:recall |",
        "[REDACTED:a]",
        "## ",
        "{{a}}",
        "```",
    ),
    *(
        "ignore all ",
        "send the ",
        "delete memory ",
        "always run ",
        "user: you are a",
        "at a(",
        "INFO ",
        "https://a",
        "a@b.",
    ),
    *(
        "pass" + "word=",
        "pwd=",
        "PWD=",
        "key=",
        "token: ",
        "secret is ",
        "api_key=",
        'pwd="',
        "pwd='",
        'pwd=\\"',
        "--token ",
    ),
    *(
        "Passwort: ",
        "\u0440\u0430ssword=",
        "<password>",
        "</password>",
        "]]></token>",
        "&quot;password&quot;:",
        "?token=&",
    ),
    *(
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "Private-Lines: 1 ",
        "eyJ",
        "-eyJ",
        ".eyJ",
    ),
    *(
        "sk-",
        f"sk-{T3}",
        "sk-ant-",
        "gh" + "p_",
        "-gh" + "p_",
        "AK" + "IA",
        "AK" + "IAIOSFODNN7EXAMPLE ",
        "xo" + "xb-1-1-",
    ),
    *(
        "mysql -p",
        "mysql ",
        "curl -u a ",
        "sshpass -p ",
        "cookie: a=",
        "cookie:a=",
        "a=b; ",
        "a:5432:",
        "*:*:",
        "login a ",
        "a_token=",
        "?token=",
        "password:",
        'token="',
        'password="a ',
        "mysql \\\n",
        "machine a login a ",
    ),
    *(
        "creds: a / ",
        "recovery codes: ",
        "1234 5678 ",
        "my pin is ",
        "otp key ",
        "admin/",
        "root:a1!",
        "a / b1 to log in ",
    ),
    *("bearer a", "authorization: ", "connect.sid=", "AccountKey=", "S" + "G.", "-us1", "hooks.slack.com/services/a/"),
    *("2026-", "2026-1-1/", "may 1 ", "may  ", "1 may ", "1.1.", "last 3 ", "a few ", "in the "),
    *("0123456789abcdef0123456789abcdef-us1 twilio ", "discord M", "123456789:", "ldap -w ", "-p a -pa "),
)


def compiled(module: str, name: str) -> list[re.Pattern[Any]]:
    """The patterns that a name of a module holds."""
    value = getattr(importlib.import_module(f"signet_actors.{module}"), name)
    return list(_patterns_in(value() if callable(value) else value))


def _patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif hasattr(value, "compiled"):
        yield value.compiled
    elif isinstance(value, dict):
        yield from _patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _patterns_in(getattr(item, "pattern", item) if hasattr(item, "marks") else item)


def used_patterns() -> set[tuple[str, str]]:
    """Module and name of each use of ``re`` in the package: a constant, the function around it, or function:method."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found |= {(module, name) for name in _uses(ast.parse(path.read_text()), "")}
    return found


def _uses(node: ast.AST, scope: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = child.name
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not scope:
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            inner = getattr(target, "id", "?")
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "compile_later":
            yield scope
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            module = child.func.value
            if isinstance(module, ast.Name) and module.id == "re" and child.func.attr != "escape":
                yield scope if child.func.attr == "compile" else f"{scope}:{child.func.attr}"
        yield from _uses(child, inner)


def test_every_pattern_of_the_package_is_in_the_table() -> None:
    """A new pattern is entered above with the way it is used, and is then pumped like the others."""
    listed = {(module, name) for module, names in PATTERNS.items() for name in names}
    used = used_patterns()
    assert used - listed == set()
    assert listed - used == set()


SHORT: Final = 1_100
GROWTH: Final = 8
MOST_GROWTH: Final = 17
"""Linear is 8, quadratic 64; what lies between leaves room for a busy machine, and for a linear part beside it."""
FLOOR_S: Final = 0.01
"""What takes less is not compared: the noise would decide."""


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of ``work``, without the collector, which would walk through everything that the tests hold."""
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def growth(work: Callable[[str], object], unit: str, short: int) -> float:
    """How many times as long eight times the text takes; 0 where it takes hardly any time.

    On a busy machine the long text may lose the caches that the short one has, so too large a figure is measured again.
    """
    for _ in range(6):
        found = growth_once(work, unit, short)
        if found < MOST_GROWTH:
            break
    return found


def growth_once(work: Callable[[str], object], unit: str, short: int) -> float:
    """The figure of one measurement; of the short text, which costs little, the least of three runs counts."""
    text = unit * max(1, short // len(unit))  # whole units: what is cut off must not make another case of it
    long_s = seconds(lambda: work(text * GROWTH))
    if long_s < FLOOR_S:
        return 0
    return long_s / max(min(seconds(lambda: work(text)) for _ in range(3)), FLOOR_S / MOST_GROWTH)


def growth_of_match(pattern: re.Pattern[Any], how: str, unit: str, *, before: str = "", end: str = "!") -> float:
    """The growth of the time of a match, whose long text is tried only if it can take ``FLOOR_S``.

    Matching a repeated text takes a polynomial of its length. Up to the third power, the long text takes less than
    ``FLOOR_S`` if a quarter of it takes less than a 64th of that, or the half less than an eighth.
    """

    def match(text: str) -> None:
        use(pattern, how, before + text + end)

    for times in (2, 4):
        text = (unit * (times * SHORT // len(unit) + 1))[: times * SHORT]
        if seconds(lambda: match(text)) < FLOOR_S * (times / GROWTH) ** 3:  # noqa: B023  called at once
            return 0
    return growth(match, unit, SHORT)


@contextmanager
def hang_guard(seconds: float = HANG_S) -> Iterator[None]:
    """Raise TimeoutError in a match that takes longer."""

    def interrupt(_number: int, _frame: object) -> None:
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def use(pattern: re.Pattern[Any], how: str, text: str) -> None:
    data: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
    if how == SEARCHED:
        for _ in pattern.finditer(data):
            pass
    elif how == MATCHED:
        pattern.match(data)
    else:
        pattern.fullmatch(data)


PUMPED: Final = [
    (module, name, how) for module, names in PATTERNS.items() for name, how in names.items() if how != FIXED
]


@pytest.mark.parametrize(("module", "name", "how"), PUMPED, ids=[f"{module}.{name}" for module, name, _ in PUMPED])
def test_a_pattern_takes_linear_time_on_the_worst_text(module: str, name: str, how: str) -> None:
    patterns = compiled(module, name)
    assert patterns
    for pattern in patterns:
        assert most_needed(pattern) < SHORT // 2, "the short text does not reach what repeats"
        for unit in UNITS:
            for end in ("", "!", "\n") if how == WHOLE else ("!",):
                assert growth_of_match(pattern, how, unit, end=end) < MOST_GROWTH, unit


@pytest.mark.parametrize(("module", "name", "how"), PUMPED, ids=[f"{module}.{name}" for module, name, _ in PUMPED])
def test_a_pattern_takes_linear_time_on_the_texts_that_its_own_parts_repeat(module: str, name: str, how: str) -> None:
    for pattern in compiled(module, name):
        for before, unit in pump_texts(pattern):
            with hang_guard():
                for end in ("!", "\n", "\x00"):
                    use(pattern, how, before + unit * 40 + end)
            assert growth_of_match(pattern, how, unit, before=before) < MOST_GROWTH, (before, unit)


@pytest.mark.parametrize("expression", [r"(?:A+b*)+", r"x(?:a|aa)+y", r"(?:[a-z]+\d?)*;", r"^(?:(?:ab)+,?)+$"])
def test_the_texts_of_an_expression_make_it_backtrack(expression: str) -> None:
    pattern = re.compile(expression)

    def match_all() -> None:
        for before, unit in pump_texts(pattern):
            with hang_guard(0.5):
                pattern.fullmatch(before + unit * 40 + "\x00")

    with pytest.raises(TimeoutError):
        match_all()


def redacted(text: str) -> None:
    """Look for secrets; a text with too many of them is refused in the end."""
    try:
        Redactor().clean(text)
    except InvalidRequest as refused:
        assert "secrets" in refused.detail  # noqa: PT017  the other outcome is as good


STATIC: Final = EmbeddedEmbedder()
UNIGRAM_TEXTS: Final = (
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "\u2581",
    *"abcdefghijklmnopqrstuvwxyz",
    "aa",
    "aaaa",
    "\u2581a",
)
UNIGRAM: Final = Unigram(
    Pieces(
        "".join(UNIGRAM_TEXTS).encode(),
        np.cumsum([0, *(len(text.encode()) for text in UNIGRAM_TEXTS)]),
        np.array([0.0] * 4 + [-float(at) for at in range(1, len(UNIGRAM_TEXTS) - 3)], np.float32),
        {0xFDFA: "a" * 18},
    ),
    1 << 30,
)
WORD_PIECES: Final = WordPieces(VOCABULARY.read_text(encoding="utf-8"), 1 << 30)
NOON: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
SCANNERS: Final[dict[str, Callable[[str], object]]] = {
    "redaction": redacted,
    "secrets": lambda text: scan.secrets_in(text[:4_000]),
    "model answer": lambda text: llm_output.read_json(text, ("facts",)),
    "model answer in an object": lambda text: llm_output.read_json('{"facts": [' + text, ("facts",)),
    "model answer in a string": lambda text: llm_output.read_json('{"facts": ["' + text, ("facts",)),
    "model answer in a number": lambda text: llm_output.read_json('{"facts": [1' + text + "x]}", ("facts",)),
    "junk": junk_filter.junk_reason,
    "injected blocks": injected_text.without_injected,
    "tags in a memory": injected_text.without_tags,
    "injected feedback": lambda text: injected_text.without_injected("<memory-feedback>" + text),
    "instructions": lambda text: injection_detector.detect_injection(text, text),
    "contradiction": lambda text: contradiction.syntactic_contradiction(text, text),
    "prompt": lambda text: prompts.between_marks(text, "0" * 32),
    "chunks": lambda text: chunking.distinct_chunks(text, 300),
    "chunks after a text": lambda text: chunking.distinct_chunks("A beginning. " + text, 300),
    "query": query_words.match_terms,
    "prompt terms": prompt_terms.prompt_terms,
    "mark in a prompt": lambda text: prompt_terms.switches_off(f"# Diff comments:\n{text}\n## My request:\n{text}"),
    "pictures before a mark": lambda text: prompt_terms.switches_off(f"[Image #1] > {text}[signet of"),
    "question with many words": lambda text: prompt_terms.prompt_terms(text + " ok?"),
    "names of entities": lambda text: list(NameIndex(["ab ab", "a", " ".join(["aa"] * 8), "c++"]).mentions(text)),
    "clauses with entities": clauses,
    "decisions": is_decision_content,
    "exact names": exact_names.exact_names,
    "file names": exact_names.file_names,
    "names in a memory": lambda text: exact_names.names_held(
        text.lower(), [*("ab" * count for count in range(1, 40)), *("a-" * count + "b" for count in range(1, 40))]
    ),
    "metadata in a prompt": lambda text: prompt_terms.without_metadata("untrusted metadata ```" + text),
    "identifier": query_words.identifier_parts,
    "bigrams": normalization.cjk_bigrams,
    "derived words": written_forms.indexed_beside,
    "spellings": written_forms.same_spellings,
    "bigrams beside a character": lambda text: normalization.cjk_bigrams("\u4e00" + text),
    "compatibility form": normalization.compatibility_form,
    "dense query": lambda text: query_words.dense_query(text, {"the"}),
    "storage form": normalization.storage_content,
    "hash": normalization.content_hash,
    "hash between characters": lambda text: normalization.content_hash("\u4e2d" + "\u200d" * len(text) + "\u4e2d"),
    "comparison": lambda text: near_duplicates.repeats(text, text),
    "prefixes": memories.parse_prefixes,
    "tags": lambda text: memories.parse_prefixes("[" + text),
    "type": memories.infer_type,
    "order": orders.is_order,
    "directive": directives.directive_type,
    "time": timestamps.normalize_timestamp,
    "transcript": lambda text: parse.parse_transcript(text.encode("utf-8", "replace")),
    "transcript in JSON lines": lambda text: parse.parse_transcript(
        b'{"role": "user", "content": "' + text.encode("utf-8", "replace")
    ),
    "dialogue": lambda text: dialogue.transcript("User: a\nAssistant: b\n" + text, lambda: None),
    "prompt of a program": lambda text: program_text.said_by_user(f"<skill>{text}</skill>{text}"),
    "scheduled prompt": lambda text: program_text.said_by_user(
        f'<scheduled-task name="a">{text}</scheduled-task>{text}'
    ),
    "prompt with reminders": lambda text: program_text.said_by_user(f"a\n{text}<system-reminder>{text}\n"),
    "answer of a program": lambda text: program_text.said_by_agent(f"API Error: 500 {{{text}"),
    "summary": lambda text: program_text.summary_of(f"<analysis>{text}<summary>{text}</summary"),
    "prompts of Cursor": lambda text: cursor.turn({"role": "user", "message": {"content": "<timestamp>" + text}}),
    "segments of a transcript": lambda text: list(transcript_capture.segments(text, 100)),
    "pieces of a turn": lambda text: list(turns.pieces(text * 4)),
    "excerpt": lambda text: excerpts.excerpt(text, ("nothing",)),
    "working memory": lambda text: working_memory.own_part(f"<!-- signet: {text}", (text,)),
    "answer in Markdown": lambda text: working_memory.readable_answer(text, 1000),
    "date phrase": lambda text: intent_of_query(text, NOON),
    "settings of a harness": lambda text: hook_settings.HookGroups(comments=False).connected(
        json.dumps({text: text}), {"Stop": {"hooks": []}}
    ),
    "text for a harness": lambda text: fitted(text, 1000, count_bytes=True),
    "vector of the embedded model": STATIC.embed_query,
    "pieces of MiniLM": WORD_PIECES.tokens,
    "pieces of the multilingual model": UNIGRAM.numbers,
    "request head": lambda text: framing.plain_request(b"GET /" + text.encode("utf-8", "replace")),
    "headers": lambda text: framing.plain_request(b"GET / HTTP/1.1\r\n" + text.encode("utf-8", "replace")),
}


@pytest.mark.parametrize("message", [*WHOLE_FORMS, *ENDLESS_FORMS, FILES])
def test_many_messages_of_programs_are_read_in_linear_time_whole_and_without_their_end(message: str) -> None:
    for unit in (f"{message}\n", f"{message}\n\n", *(f"{message[:-cut]}\n" for cut in (1, 4, len(message) // 2))):
        assert growth(program_text.said_by_user, unit, 8 * SHORT) < MOST_GROWTH, unit


def test_the_injected_parts_of_many_chunks_are_found_in_linear_time() -> None:
    def parts(chunks: str) -> object:
        return injected_text.injected_parts(
            "</memory-feedback>said. " * len(chunks), ["</memory-feedback>said."] * len(chunks)
        )

    assert growth(parts, "x", SHORT) < MOST_GROWTH


TOKENIZERS: Final = ("pieces of MiniLM", "pieces of the multilingual model", "vector of the embedded model")
"""They need ten times as long as the others for a text, so a text half as long shows whether its time is linear."""


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_takes_linear_time_on_the_worst_text(name: str) -> None:
    for unit in UNITS:
        assert growth(SCANNERS[name], unit, SHORT if name in TOKENIZERS else 2 * SHORT) < MOST_GROWTH, unit


SECRETS: Final = (
    *("key=", "pwd=", "PWD=", "token: ", "eyJ", "api_key=", '"', "Passwort: ", "1", "://a:"),
    *("a_token=", "?token=", "password:", "apikey=", 'token="', "mysql -p"),
    *("a:b@tcp(", "kind: Secret\ndata:\n  a: b12345\n---\n", "kind: Secret\ndata:\n a: b\n", "kubeadm a."),
    *(
        "parola a este ",
        "parola bazei ",
        "\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19\u0e01 ",
        "\u015fifre a1b2c3d dir ",
    ),
    *("wifi:", "wifi:a/", "creds:", "login=", "login: ", "user/pw:", "creds:\n", "creds: a:b1 ", "user:"),
    *("recovery codes: ", "pin ", "otp key ", "admin/", "root:", "admin / a1! to log in ", "sudo password "),
    *(
        "authorization: x a=",
        "authorization: Digest response=",
        "password, a1b2c3, is ",
        "&#61;",
        "password&amp;amp;",
    ),
    *(
        "user,password\n",
        'user,password\n"a"",',
        'password\t"""\n"',
        "kind: Secret\ndata: {a: b}\n",
        "- kind: Secret\n",
    ),
    *('{"kind":"Secret","data":{"a":"b",', '{"kind":"Secret"', '{"data":{"a":"b"},"kind":"Secret"}', "{\\n\\"),
    *("mailgun -a", "sig=sv=", "LS0tLS1CRUdJTi", '"auth": "', "-----BEGIN PRIVATE KEY-----"),
    *(
        "-----END PRIVATE KEY-----",
        "AAAA\n",
        "A1a=\n-----END PRIVATE KEY-----",
        "insert into u(password) values('",
        "log in with a / b1c2d3 ",
    ),
    *(
        "insert into u(password) values(",
        '("',
        "name | password\n",
        "---+---\n",
        "user  PASSWORD\n",
        "secrets:\n\n#\n a: b\n",
    ),
)


@pytest.mark.parametrize("unit", SECRETS)
def test_the_parts_of_secrets_repeated_are_searched_in_linear_time(unit: str) -> None:
    assert growth(redacted, unit, 8 * SHORT) < MOST_GROWTH


@pytest.mark.parametrize("unit", ["token: ", "creds: a:b1 ", "eyJ", "sudo password ", "-----BEGIN PRIVATE KEY-----"])
def test_a_megabyte_of_the_worst_text_is_searched_for_secrets_in_seconds(unit: str) -> None:
    began = time.process_time()
    redacted(unit * (1_000_000 // len(unit)))
    assert time.process_time() - began < HANG_S


@pytest.mark.parametrize("length", [4_096, 16_384, 262_144])
@pytest.mark.parametrize("unit", ["a_token=", "?token=", "password:", "apikey=", "_token=example1", "?token=1example"])
def test_a_long_run_with_many_names_is_scanned_in_linear_time(
    unit: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name would have a value that is none: the rest of the run, with a digit at its end."""
    judged = []

    def counted(value: str) -> bool:
        judged.append(len(value))
        return placeholder(value)

    placeholder = values.has_placeholder
    monkeypatch.setattr(values, "has_placeholder", counted)
    redacted((unit * (length // len(unit) + 1))[: length - 1] + "1")
    assert sum(judged) <= 2 * length
    assert len(judged) <= length // values.MAX_CHECKED_CHARS + 2


@pytest.mark.parametrize(
    "text", ['{"facts": [' + "1" * 60_000 + "x]}", '{"facts": [' + "9" * 250_000 + "]}", "[" * 250_000]
)
def test_a_long_run_of_digits_or_brackets_in_an_answer_is_parsed_quickly(text: str) -> None:
    began = time.process_time()
    llm_output.read_json(text, ("facts",))
    assert time.process_time() - began < HANG_S


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 goes on after the part that such a group matched before it failed (gh-106052)."""
    possessive = re.compile(r"\)(?:\{\{?[0-9,]+\}\}?|[*+?])\+")
    sources = (Path(chunking.__file__).parents[1]).rglob("*.py")
    found = [path.name for path in sources if possessive.search(path.read_text(encoding="utf-8"))]
    assert found == [], "write (?>(?:...)+) instead of (?:...)++"


@pytest.mark.parametrize("unit", ["y ", "ab", "\u4e2d", "a-", "- a\n", " ", "is 5 "])
def test_a_start_with_fifty_memories_of_a_megabyte_is_made_in_seconds(unit: str) -> None:
    texts = [unit * (1_000_000 // len(unit)) + str(number) for number in range(50)]
    began = time.process_time()
    assert len(newest_versions([Dated(text, 1) for text in texts])) == len(texts)
    assert not any(are_in_lines(texts, ["- a line"]))
    assert unrepeated("- a line", [(text[-2:], text) for text in texts]) == "- a line"
    memory_lines([Line(text[-2:], text, (), "2026-03-05T10:00:00.000Z") for text in texts], 100_000)
    assert time.process_time() - began < HANG_S / 6
