"""How ``agent.yaml`` and the environment become a configuration, and all errors."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from signet_actors.config.field_forms import KEY_VARIABLES
from signet_actors.config.load import LoadedConfig, effective_mapping, load_config
from signet_actors.config.schema import Config, RosterEntry
from signet_actors.config.workspace import workspace_from
from signet_actors.config.yaml_file import MAX_FILE_BYTES, UnreadableYaml, parse_yaml
from signet_actors.errors import ConfigError
from tests.support.bus_harness import REPOSITORY


def load(workspace: Path, text: str, **environ: str) -> LoadedConfig:
    (workspace / "agent.yaml").write_text(textwrap.dedent(text))
    return load_config(workspace, environ)


def problems(workspace: Path, text: str, **environ: str) -> list[str]:
    """Return what a strict reading refuses."""
    (workspace / "agent.yaml").write_text(textwrap.dedent(text))
    with pytest.raises(ConfigError) as refused:
        load_config(workspace, environ, strict=True)
    return refused.value.detail.split("\n")


# What is accepted


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    loaded = load_config(tmp_path, {})
    assert loaded == LoadedConfig(Config(), [], None, is_empty=True)


@pytest.mark.parametrize("text", ["", "---\n", "# only a comment\n", "memory:\ngateway:\n  port:\n"])
def test_an_empty_file_changes_nothing(tmp_path: Path, text: str) -> None:
    loaded = load(tmp_path, text)
    assert loaded.config == Config()
    assert loaded.warnings == []
    assert loaded.source == tmp_path / "agent.yaml"


def test_a_given_key_is_used_and_the_others_keep_their_defaults(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        search: {alpha: 1, min_score: 0.25}
        memory:
          decay_rate: 0.99
          pipelineV2:
            guardrails: {maxContentChars: 1000}
        auth: {rateLimits: {forceDelete: {windowMs: 30000}}}
        gateway: {allowedHosts: [signet.local, "signet.local:3850", "[::1]:3850"]}
        """,
    ).config
    assert config.search.alpha == 1.0
    assert type(config.search.alpha) is float
    assert config.search.min_score == 0.25
    assert config.search.pool == Config().search.pool
    assert config.memory.decay_rate == 0.99
    assert config.memory.pipeline_v2.guardrails.max_content_chars == 1000
    assert config.memory.pipeline_v2.guardrails.chunk_target_chars == 300
    assert config.auth.rate_limits.force_delete.window_ms == 30_000
    assert config.auth.rate_limits.force_delete.max_count == 3
    assert config.gateway.allowed_hosts == ("signet.local", "signet.local:3850", "[::1]:3850")


def test_both_spellings_of_a_key_are_accepted(tmp_path: Path) -> None:
    config = load(tmp_path, "memory: {pipeline_v2: {worker: {poll_ms: 300}}, decayRate: 0.5}").config
    assert config.memory.pipeline_v2.worker.poll_ms == 300
    assert config.memory.decay_rate == 0.5


@pytest.mark.parametrize("name", ["endpoint", "baseUrl", "base_url"])
def test_the_endpoint_of_a_provider_has_three_names(tmp_path: Path, name: str) -> None:
    config = load(tmp_path, f"embedding: {{{name}: 'http://127.0.0.1:11434'}}").config
    assert config.embedding.endpoint == "http://127.0.0.1:11434"


def test_flat_keys_of_older_files_are_accepted(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        """
        authMode: local
        search: {reranking: true}
        memory:
          pipelineV2:
            workerPollMs: 300
            minFactConfidenceForWrite: 0.8
            graphEnabled: false
            autonomousFrozen: true
            maintenanceMode: observe
            documentChunkSize: 900
        """,
    )
    pipeline = loaded.config.memory.pipeline_v2
    assert pipeline.worker.poll_ms == 300
    assert pipeline.extraction.min_confidence == 0.8
    assert not pipeline.graph.enabled
    assert pipeline.autonomous.frozen
    assert pipeline.autonomous.maintenance_mode == "observe"
    assert pipeline.documents.chunk_size_chars == 900
    assert pipeline.reranker.enabled
    assert loaded.warnings == []


def test_a_nested_key_wins_over_its_flat_form_with_a_warning(tmp_path: Path) -> None:
    loaded = load(tmp_path, "memory: {pipelineV2: {graphEnabled: false, graph: {enabled: true}}}")
    assert loaded.config.memory.pipeline_v2.graph.enabled
    assert loaded.warnings == [
        "agent.yaml: memory.pipelineV2.graphEnabled: ignored, because memory.pipelineV2.graph.enabled is given"
    ]


def test_a_nested_key_without_a_value_does_not_override_the_flat_form(tmp_path: Path) -> None:
    loaded = load(tmp_path, "memory: {pipelineV2: {graphEnabled: false, graph: {enabled: }}}")
    assert not loaded.config.memory.pipeline_v2.graph.enabled


def test_a_roster_is_loaded(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        agents:
          roster:
            - name: alice
            - {name: ben, read_policy: isolated}
            - {name: cleo, readPolicy: group, policyGroup: research}
        """,
    ).config
    assert config.agents.roster == (
        RosterEntry("alice", "shared", ""),
        RosterEntry("ben", "isolated", ""),
        RosterEntry("cleo", "group", "research"),
    )


def test_keys_of_other_programs_cause_no_warning(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        """
        version: 1
        schema: signet/v1
        agent: {name: "My Agent", created: 2025-02-17T00:00:00Z}
        owner: {localId: user123}
        harnesses: [claude-code, codex]
        embedding: {provider: auto}
        search: {alpha: 0.7, top_k: 20, min_score: 0.3}
        memory:
          database: memory/memories.db
          session_budget: 2000
          pipelineV2:
            traversal: {primary: true}
            telemetry: {posthogHost: "", posthogApiKey: "phc_x"}
        hooks:
          sessionStart: {recallLimit: 10}
          userPromptSubmit: {enabled: false, recallLimit: 10}
        trust: {verification: none}
        """,
    )
    assert loaded.warnings == []
    assert loaded.config.search.alpha == 0.7
    assert not loaded.config.hooks.user_prompt_submit.enabled


# What is odd

NESTED = 'below "pipelineV2:" below "memory:"'


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("embeding: {}", 'embeding: unknown key, ignored; did you mean "embedding"?'),
        ("search: {alhpa: 1}", 'search.alhpa: unknown key, ignored; did you mean "search.alpha"?'),
        (
            "memory: {pipelineV2: {worker: {polMs: 1}}}",
            'memory.pipelineV2.worker.polMs: unknown key, ignored; did you mean "memory.pipelineV2.worker.pollMs"?',
        ),
        ("guardrails: {}", 'guardrails: unknown key, ignored; did you mean "memory.pipelineV2.guardrails"?'),
        (
            "mutationsFrozen: true",
            'mutationsFrozen: unknown key, ignored; did you mean "memory.pipelineV2.mutationsFrozen"?',
        ),
        (
            "search.alpha: 0.5",
            'search.alpha: unknown key, ignored; write "alpha:" indented below "search:"',
        ),
        (
            "memory.pipelineV2.enabled: false",
            f'memory.pipelineV2.enabled: unknown key, ignored; write "enabled:" indented {NESTED}',
        ),
        (
            "memory: {pipelineV2.enabled: false}",
            f'memory.pipelineV2.enabled: unknown key, ignored; write "enabled:" indented {NESTED}',
        ),
        ("search.nonsense: 1", 'search.nonsense: unknown key, ignored; did you mean "searcher"?'),
        ("search.: 1", 'search.: unknown key, ignored; did you mean "search"?'),
        ("zzzzzz: 1", "zzzzzz: unknown key, ignored"),
        ("3: 4", "3: unknown key, ignored"),
        (
            "agents: {roster: [{name: a, read_polcy: shared}]}",
            'agents.roster[0].read_polcy: unknown key, ignored; did you mean "agents.roster[0].read_policy"?',
        ),
    ],
)
def test_an_unknown_key_is_a_warning_with_a_suggestion(tmp_path: Path, text: str, warning: str) -> None:
    assert load(tmp_path, text).warnings == [f"agent.yaml: {warning}"]


def test_an_api_key_in_the_file_is_not_repeated_in_the_warning(tmp_path: Path) -> None:
    (warning,) = load(tmp_path, "embedding: {api_key: sk-very-secret}").warnings
    assert "sk-very-secret" not in warning
    assert "apiKeyEnv" in warning


def test_many_unknown_keys_are_summarised(tmp_path: Path) -> None:
    warnings = load(tmp_path, "\n".join(f"unknown{number}: 1" for number in range(2000))).warnings
    assert len(warnings) == 51
    assert warnings[-1] == "agent.yaml: 1950 more warnings of this kind"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "memory: {pipelineV2: {guardrails: {chunkTargetChars: 600}}}",
            "memory.pipelineV2.guardrails.chunkTargetChars: 600 is more than guardrails.maxContentChars (500)",
        ),
        ("gateway: {requestTimeoutMs: 1000}", "gateway.requestTimeoutMs: 1000 is less than writer.requestTimeoutMs"),
        ("writer: {busyTimeoutMs: 6000}", "writer.busyTimeoutMs: 6000 is not less than writer.requestTimeoutMs"),
        (
            "supervision: {budgets: {searcher: {restarts: 10, windowMs: 60000}}}",
            "supervision.budgets.searcher.windowMs: 60000 is not more than the total wait before 10 restarts (81100)",
        ),
        ("agents: {roster: [{name: a, policy_group: g}]}", 'agents.roster: the agent "a" has a policy_group'),
        (
            "memory: {pipelineV2: {extraction: {provider: openai, endpoint: 'http://localhost:1'}}}",
            "memory.pipelineV2.extraction.model: the provider openai needs a model",
        ),
        (
            "memory: {pipelineV2: {extraction: {provider: ollama, apiKeyEnv: OPENAI_API_KEY}}}",
            "memory.pipelineV2.extraction.apiKeyEnv: the provider ollama takes no key",
        ),
        (
            "memory: {pipelineV2: {extraction: {provider: opencode, endpoint: 'http://localhost:1'}}}",
            "memory.pipelineV2.extraction.endpoint: the provider opencode has no endpoint",
        ),
        (
            "memory: {pipelineV2: {synthesis: {provider: openai}}}",
            "memory.pipelineV2.synthesis.model: the provider openai needs a model",
        ),
        (
            "memory: {pipelineV2: {extraction: {provider: none}, hints: {enabled: true}}}",
            "memory.pipelineV2.hints.enabled: needs a language model, but extraction.provider is none",
        ),
    ],
)
def test_an_unfavourable_combination_of_values_is_a_warning(tmp_path: Path, text: str, part: str) -> None:
    assert any(part in warning for warning in load(tmp_path, text).warnings)


# What is refused


def test_every_problem_is_listed_at_once(tmp_path: Path) -> None:
    assert problems(
        tmp_path,
        """
        memory:
          pipelineV2:
            worker: {pollMs: 70, maxRetries: "3"}
            graphBoostWeight: 2
        search: {fusion: convx}
        redaction: {memories: "yes"}
        logging: [debug]
        """,
        SIGNET_PORT="http",
    ) == [
        'agent.yaml: search.fusion: "convx" is not one of convex, rrf; did you mean "convex"?',
        'agent.yaml: redaction.memories: "yes" is not true or false',
        "agent.yaml: memory.pipelineV2.worker.pollMs: 70 is out of range (100 to 60000)",
        'agent.yaml: memory.pipelineV2.worker.maxRetries: "3" is not a whole number (1 to 10)',
        "agent.yaml: memory.pipelineV2.graphBoostWeight: 2 is out of range (0.0 to 1.0)",
        "agent.yaml: logging: a list is not a mapping of keys",
        'environment: SIGNET_PORT: "http" is not a whole number (0 to 65535)',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("search: {alpha: .nan}", "search.alpha: nan is not a number (0.0 to 1.0)"),
        ("search: {alpha: .inf}", "search.alpha: inf is not a number (0.0 to 1.0)"),
        ("search: {alpha: true}", "search.alpha: true is not a number (0.0 to 1.0)"),
        ("search: {pool: true}", "search.pool: true is not a whole number (10 to 2000)"),
        ("search: {pool: 20.0}", "search.pool: 20.0 is not a whole number (10 to 2000)"),
        ("search: {pool: [20]}", "search.pool: a list is not a whole number (10 to 2000)"),
        ("search: {pool: 0x" + "f" * 20_000 + "}", "search.pool: a very large number is out of range (10 to 2000)"),
        (
            "embedding: {provider: null}",
            (
                "embedding.provider: null is not one of auto, embedded, minilm, multilingual, ollama, openai, "
                "fastembed, none"
            ),
        ),
        ("embedding: {model: 4}", "embedding.model: 4 is not text; put it in quotes"),
        (
            'embedding: {model: "a\\0b"}',
            "embedding.model: contains a control character or another unprintable character",
        ),
        (
            'embedding: {model: "a\\u0007"}',
            "embedding.model: contains a control character or another unprintable character",
        ),
        ("embedding: {model: " + "m" * 201 + "}", "embedding.model: is longer than 200 characters"),
        ("gateway: {host: ''}", "gateway.host: is empty"),
        ("gateway: {allowedHosts: signet.local}", 'gateway.allowedHosts: "signet.local" is not a list'),
        (
            "gateway: {allowedHosts: ['*.local']}",
            'gateway.allowedHosts[0]: "*.local" is not a host name, with or without a port, without wildcards',
        ),
        ("gateway: {allowedHosts: [1]}", "gateway.allowedHosts[0]: 1 is not text; put it in quotes"),
        (
            "gateway: {allowedHosts: [" + "a," * 65 + "]}",
            "gateway.allowedHosts: has 65 entries; at most 64 are allowed",
        ),
        ("agents: {roster: alice}", 'agents.roster: "alice" is not a list'),
        ("agents: {roster: [alice]}", 'agents.roster[0]: "alice" is not a mapping of keys'),
        ("agents: {roster: [{read_policy: shared}]}", "agents.roster[0].name: is missing"),
        ("agents: {roster: [{name: a}, {name: a}]}", 'agents.roster: the agent "a" is named twice'),
        (
            "agents: {roster: [{name: a, read_policy: group}]}",
            'agents.roster: the agent "a" has read_policy group but no policy_group',
        ),
        ("memory: {decay_rate: 0.9, decayRate: 0.8}", "memory.decayRate: is given twice (also as decay_rate)"),
        (
            "memory: {pipelineV2: {documents: {chunkSize: 500, chunkOverlap: 500}}}",
            "memory.pipelineV2.documents.chunkOverlap: 500 must be less than documents.chunkSize (500)",
        ),
        (
            "memory: {pipelineV2: {documentChunkOverlap: 2000}}",
            "memory.pipelineV2.documentChunkOverlap: 2000 must be less than documents.chunkSize (2000)",
        ),
        (
            "supervision: {backoffMinMs: 500, backoffMaxMs: 400}",
            "supervision.backoffMinMs: 500 is more than supervision.backoffMaxMs (400)",
        ),
        (
            "logging: {maxFileBytes: 4194304, maxTotalBytes: 2097152}",
            "logging.maxFileBytes: 4194304 is more than logging.maxTotalBytes (2097152)",
        ),
        (
            "retention: {tombstoneRetentionMs: 30}",
            "retention.tombstoneRetentionMs: 30 is out of range (3600000 to 315360000000)",
        ),
    ],
)
def test_an_invalid_value_is_reported_with_the_allowed_values(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(tmp_path, text) == [f"agent.yaml: {problem}"]


def test_a_body_that_the_writer_could_never_queue_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "gateway: {maxBodyBytes: 16777216}")
    assert problem.startswith("agent.yaml: gateway.maxBodyBytes: 16777216 is more than writer.queueBytes (8388608)")


@pytest.mark.parametrize("section", ["embedding", "memory: {pipelineV2: {extraction"])
@pytest.mark.parametrize("name", ["apiKeyEnv", "endpoint"])
def test_a_secret_in_the_wrong_field_is_not_repeated(tmp_path: Path, section: str, name: str) -> None:
    closing = "}" * (section.count("{") + 1)
    separator = ": {"
    (problem,) = problems(tmp_path, f"{section}{separator}{name}: 'http://me:sk-hidden@host'{closing}")
    assert "sk-hidden" not in problem
    assert f".{name}: the given value is not" in problem


@pytest.mark.parametrize("section", ["embedding: {", "memory: {pipelineV2: {extraction: {"])
@pytest.mark.parametrize("spelling", ["apiKeyEnv", "api_key_env"])
@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HOME", "SIGNET_", "openai_api_key", "XOPENAI_API_KEY"]
)
def test_an_unlisted_variable_for_a_key_is_refused(tmp_path: Path, section: str, spelling: str, name: str) -> None:
    (problem,) = problems(tmp_path, f"{section}{spelling}: {name}{'}' * section.count('{')}")
    place = section.replace(": {", ".")
    assert problem.startswith(f"agent.yaml: {place}{spelling}: the given value is not a name that begins with SIGNET_")


@pytest.mark.parametrize("name", ["", "SIGNET_MODEL_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"])
def test_documented_and_signet_variables_may_contain_a_key(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, f"embedding: {{apiKeyEnv: '{name}'}}").config.embedding.api_key_env == name


def test_every_variable_that_may_contain_a_key_is_documented() -> None:
    text = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = text[text.index("## Keys of providers") : text.index("## Who is served")]
    assert [name for name in KEY_VARIABLES if f"`{name}`" not in section] == []


@pytest.mark.parametrize("mode", ["local", "team", "hybrid"])
@pytest.mark.parametrize("text", ["auth: {{mode: {}}}", "authMode: {}"])
def test_each_mode_can_be_configured(tmp_path: Path, text: str, mode: str) -> None:
    assert load(tmp_path, text.format(mode)).config.auth.mode == mode


OTHER_ADDRESSES = ["0.0.0.0", "192.168.1.4", "::", "fe80::1", "signet.example", "127.0.0.1.nip.io", "127.1"]


@pytest.mark.parametrize("host", OTHER_ADDRESSES)
@pytest.mark.parametrize(
    "others", ["", "auth: {mode: team}\n", "auth: {mode: hybrid}\n", "gateway: {trustedProxies: ['10.0.0.2']}\n"]
)
def test_an_address_that_others_reach_needs_tokens_and_a_proxy(tmp_path: Path, host: str, others: str) -> None:
    text = others.replace("{trustedProxies", f"{{host: '{host}', trustedProxies")
    (problem,) = problems(tmp_path, text if "gateway" in text else f"{text}gateway: {{host: '{host}'}}")
    assert problem.startswith(f'agent.yaml: gateway.host: "{host}" is not a loopback address')
    assert "set auth.mode to team, and gateway.tlsCertificate and tlsKey, or name the address of a proxy" in problem


@pytest.mark.parametrize("host", OTHER_ADDRESSES)
def test_an_address_that_others_reach_is_accepted_with_tokens_and_tls(tmp_path: Path, host: str) -> None:
    text = f"auth: {{mode: hybrid}}\ngateway: {{host: '{host}', tlsCertificate: /c.pem, tlsKey: /k.pem}}"
    assert load(tmp_path, text).config.gateway.host == host
    for part in ("tlsCertificate: /c.pem, ", ", tlsKey: /k.pem"):
        assert problems(tmp_path, text.replace(part, ""))


@pytest.mark.parametrize("host", OTHER_ADDRESSES)
def test_an_address_that_others_reach_is_accepted_with_tokens_and_a_proxy(tmp_path: Path, host: str) -> None:
    text = f"auth: {{mode: team}}\ngateway: {{host: '{host}', trustedProxies: ['10.0.0.2', '::1']}}"
    assert load(tmp_path, text).config.gateway.host == host
    (problem,) = problems(tmp_path, text.replace("10.0.0.2", "10.0.0"))
    assert '"10.0.0" is not an IP address' in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost", "::ffff:127.0.0.1"])
def test_a_loopback_address_is_accepted(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, f"gateway: {{host: '{host}'}}").config.gateway.host == host


@pytest.mark.parametrize(
    "embedding",
    [
        "{provider: auto}",
        "{provider: embedded}",
        "{provider: none}",
        "{provider: minilm}",
        "{provider: multilingual}",
        "{provider: multilingual, model: multilingual-e5-small-int8, dimensions: 384}",
        "{provider: minilm, model: all-minilm-l6-v2-int8, dimensions: 384}",
        "{provider: ollama}",
        "{provider: fastembed}",
        "{provider: openai, model: text-embedding-3-small}",
        "{provider: ollama, dimensions: 768}",
        "{provider: ollama, model: 'nomic-embed-text:v1.5', dimensions: 768}",
        "{provider: ollama, model: of-my-own, dimensions: 99}",
        "{provider: openai, model: text-embedding-3-small, dimensions: 512}",
        "{provider: fastembed, dimensions: 384}",
    ],
)
def test_every_embedding_provider_is_accepted(tmp_path: Path, embedding: str) -> None:
    assert load(tmp_path, f"embedding: {embedding}").config.embedding


@pytest.mark.parametrize(
    ("embedding", "problem"),
    [
        (
            "{provider: ollama, dimensions: 256}",
            "embedding.dimensions: 256 does not fit nomic-embed-text, which has 768 dimensions; set it to 768",
        ),
        (
            "{provider: fastembed, dimensions: 768}",
            "embedding.dimensions: 768 does not fit BAAI/bge-small-en-v1.5, which has 384 dimensions; set it to 384",
        ),
        (
            "{provider: openai, model: text-embedding-3-small, dimensions: 2048}",
            "embedding.dimensions: 2048 does not fit text-embedding-3-small, which has 1536 dimensions; set it to 1536",
        ),
        (
            "{provider: minilm, dimensions: 256}",
            "embedding.dimensions: 256 does not fit the minilm model, which has 384 dimensions",
        ),
        (
            "{provider: minilm, model: wordllama}",
            'embedding.model: "wordllama" is not a model of the minilm provider; leave it out or use all-minilm',
        ),
        ("{provider: ollama, model: of-my-own, dimensions: 7}", "embedding.dimensions: 7 is less than 8"),
        (
            "{provider: openai}",
            "embedding.model: the provider openai needs a model, for example text-embedding-3-small",
        ),
    ],
)
def test_unsupported_dimensions_of_a_known_model_are_refused(tmp_path: Path, embedding: str, problem: str) -> None:
    assert [problem in line for line in problems(tmp_path, f"embedding: {embedding}")] == [True]


def test_the_first_pause_of_a_breaker_may_not_exceed_its_maximum(tmp_path: Path) -> None:
    breaker = "breaker: {cooldownMs: 20000, maxCooldownMs: 10000}"
    (problem,) = problems(tmp_path, f"memory: {{pipelineV2: {{extraction: {{{breaker}}}}}}}")
    assert "extraction.breaker.cooldownMs: 20000 is more than extraction.breaker.maxCooldownMs (10000)" in problem


def test_the_embedded_provider_has_one_model(tmp_path: Path) -> None:
    of_the_model, of_the_dimensions = problems(tmp_path, "embedding: {model: minilm, dimensions: 384}")
    assert of_the_model.startswith('agent.yaml: embedding.model: "minilm" is not a model of the embedded provider')
    assert of_the_dimensions.startswith("agent.yaml: embedding.dimensions: 384 does not fit the embedded model")


# What falls back to its default


@pytest.mark.parametrize(
    ("text", "kept", "warning"),
    [
        ("search: {alpha: 7}", "search.alpha=0.5", "search.alpha: 7 is out of range (0.0 to 1.0); the default is used"),
        ("search: {fusion: best}", "search.fusion=convex", '"best" is not one of convex, rrf'),
        ("search: {pool: many}", "search.pool=200", '"many" is not a whole number'),
        ("embedding: {provider: word2vec}", "embedding.provider=auto", '"word2vec" is not one of auto'),
        ("embedding: {provider: ollama, dimensions: 5}", "embedding.dimensions=0", "5 is less than 8"),
        ("logging: {level: chatty}", "logging.level=info", '"chatty" is not one of debug'),
        ("memory: {pipelineV2: {workerPollMs: 1}}", "memory.pipelineV2.worker.pollMs=2000", "1 is out of range"),
        ("memory: {pipelineV2: {extraction: {provider: gpt}}}", "memory.pipelineV2.extraction.provider=auto", "gpt"),
        (
            "memory: {pipelineV2: {documents: {chunkSize: 201, chunkOverlap: 400}}}",
            "memory.pipelineV2.documents.chunkOverlap=200",
            "400 must be less than documents.chunkSize (201); the default is used",
        ),
        ("writer: {queueBytes: 65536}", "writer.queueBytes=8388608", "a write of that size could never be accepted"),
    ],
)
def test_a_number_or_choice_that_is_not_valid_falls_back_to_its_default(
    tmp_path: Path, text: str, kept: str, warning: str
) -> None:
    loaded = load(tmp_path, text)
    path, _, value = kept.partition("=")
    found: Any = effective_mapping(loaded.config)
    for name in path.split("."):
        found = found[name]
    assert str(found) == value
    assert [warning in line for line in loaded.warnings].count(True) == 1, loaded.warnings
    assert any(warning.removesuffix("; the default is used") in line for line in problems(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "gateway: {host: 0.0.0.0}",
        "gateway: {port: 70000}",
        "gateway: {requireOwner: perhaps}",
        "auth: {mode: open}",
        "auth: {rateLimits: {forget: {max: -1}}}",
        "redaction: {memories: mostly}",
        "retention: {tombstoneRetentionMs: 9000000000000000}",
        "retention: {batchLimit: 0}",
        "agents: {roster: [{name: bob, read_policy: everything}]}",
        "memory: {pipelineV2: {extraction: {endpoint: 'ftp://x'}}}",
        "memory: {pipelineV2: {extraction: {dailyCallLimit: -1}}}",
        "memory: {pipelineV2: {shadowMode: 'yes'}}",
        "embedding: {apiKeyEnv: HOME}",
        "embedding: {provider: openai}",
        "git: {syncInterval: 1}",
        "backup: {keep: 2000}",
        "memory: {pipelineV2: {continuity: {retentionDays: 120}}}",
        "memory: {pipelineV2: {confirm: Review}}",
        "memory: {pipelineV2: {extraction: {minConfidence: 95}}}",
        "logging: {retentionDays: 9999}",
        "projects: {identity: folder}",
        "search: 7",
    ],
)
def test_a_value_that_concerns_access_keys_cost_deletion_or_review_stops_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        load(tmp_path, text)


# The file itself


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("search:\n  alpha: [1,\n", "line 3, column 1: while parsing a flow node"),
        ("search:\n\talpha: 1\n", "line 2, column 1: while scanning for the next token"),
        ("a: 1\na: 2\n", "line 2, column 1: 'a' is given again (first on line 1)"),
        ("s:\n  x: 1\n  y: {z: 1, z: 2}\n  x: 3\n", "line 3, column 13: 'z' is given again (first on line 3)"),
        ("- a\n", "is a list where a mapping of keys is expected"),
        ("just words\n", 'is "just words" where a mapping of keys is expected'),
        ("a: 1\n---\nb: 1\n", "line 2, column 1: expected a single document in the stream"),
        ("a: !!python/object/apply:os.system [id]\n", "line 1, column 4: could not determine a constructor"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "line 2, column 5: merge keys (<<) are not read"),
        ("a: 2024-13-45\n", "line 1, column 4: the value '2024-13-45' is not a valid number or date"),
        ("a: !!timestamp x\n", "line 1, column 4: the value 'x' is not a valid number or date"),
        ("a: !!int '1:30:00'\n", "line 1, column 4: the value '1:30:00' is not a valid number or date"),
        ("a: !!float '1:30.5'\n", "line 1, column 4: the value '1:30.5' is not a valid number or date"),
        ("a: !!int {=: '1:30'}\n", "line 1, column 4: a value is not a valid number or date"),
        ("a: !!int '1" + ":00" * 60_000 + "'\n", "line 1, column 4: the value '1:00"),
        ("a: !!bool x\n", "line 1, column 4: the value 'x' is not a valid number or date"),
        ("a: " + "1" * 5000 + "\n", "line 1, column 4: the value '1111"),
        ("a: " + "[" * 5000 + "\n", "is nested deeper than 32 levels"),
        ("? [1, 2]\n: 3\n", "line 1, column 3: a list or a mapping is used as a key"),
        ("a: \x07\n", "line 1: the character U+0007 is not allowed"),
    ],
)
def test_invalid_yaml_is_reported_with_its_position(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "agent.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path, {})
    assert refused.value.detail.startswith("agent.yaml: ")
    assert problem in refused.value.detail


def test_all_repeated_keys_are_named(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "a: 1\nb: 1\na: 2\nb: 2\n")) == 2


def test_a_file_that_is_not_utf_8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"agent\.yaml: line 2: is not UTF-8 text"):
        load_config(tmp_path, {})


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_bytes(b"\xef\xbb\xbfsearch: {alpha: 0.25}\n")
    assert load_config(tmp_path, {}).config.search.alpha == 0.25


def test_a_file_above_its_size_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="is larger than 1048576 bytes"):
        load_config(tmp_path, {})


def multiplied(width: int, levels: int, item: str = "x", *, mapping: bool = False) -> str:
    """Each level stands ``width`` times for the one before."""
    lines = [f"l0: &l0 {item}"]
    for n in range(1, levels):
        aliases = [f"k{place}: *l{n - 1}" if mapping else f"*l{n - 1}" for place in range(width)]
        lines.append(f"l{n}: &l{n} " + ("{%s}" if mapping else "[%s]") % ", ".join(aliases))
    return "\n".join(lines)


BOMBS = [
    *(multiplied(width, levels) for width in (2, 3, 9, 10) for levels in (40, 60)),
    *(multiplied(width, 60, mapping=True) for width in (2, 9)),
    *(multiplied(9, 11, item) for item in ("[lol, lol]", "{a: b}", '"a text"')),
    "a: &a " + "x" * 5000 + "\nb: [" + "*a, " * 20 + "*a]",
    "a: &a |\n  " + "x" * 60_000 + "\nb: [*a, *a]",
    "a: &a [" + "1, " * 9000 + "1]\nb:\n" + "- *a\n" * 10,
    "- &a [x, x, x, x]\n" + "- &b [*a, *a, *a, *a, *a, *a, *a, *a]\n- &a [*b, *b, *b, *b, *b, *b, *b, *b]\n" * 9,
    multiplied(9, 12) + "\ntitle: *l11",
    multiplied(1, 2, "x" * 40_000) + "\nt: [*l0, *l0]",
    multiplied(4, 30) + "\ndescription: >\n  text",
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_aliases_that_multiply_a_document_are_refused(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert re.search(r"line \d+, column \d+: aliases such as \*\w+ stand for more than 65536 characters$", problem)


@pytest.mark.parametrize("text", ["search: {pool: &x [*x]}", "a: &a {b: *a}", "a: &a [[[x, *a]]]", "&a [1, *a]"])
def test_an_alias_that_contains_itself_is_refused(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.endswith("stands within itself")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x 1\nb: *x", {"a": 1, "b": 1}),
        ("a: &x [1, 2]\nb: [*x, *x]", {"a": [1, 2], "b": [[1, 2], [1, 2]]}),
        ("a: &x {k: v}\nb: *x\nc: *x", {"a": {"k": "v"}, "b": {"k": "v"}, "c": {"k": "v"}}),
        ("a: &x 1\nb: &y [*x]\nc: *y", {"a": 1, "b": [1], "c": [1]}),
        (multiplied(2, 3), {"l0": "x", "l1": ["x", "x"], "l2": [["x", "x"], ["x", "x"]]}),
        ("a: &x " + "y" * 60_000 + "\nb: *x", {"a": "y" * 60_000, "b": "y" * 60_000}),
        ("a: &x 1\nb:\n" + "- *x\n" * 9000, {"a": 1, "b": [1] * 9000}),
        ("a: 'R&D *all*'", {"a": "R&D *all*"}),
    ],
)
def test_aliases_that_repeat_little_are_read(text: str, value: object) -> None:
    assert parse_yaml(text.encode()) == value


@pytest.mark.parametrize("text", ["1" + ":1" * 60_000, "1" + ":1" * 60_000 + ".5", "-" + "59:" * 40_000 + "59"])
def test_a_number_to_base_60_is_text_whatever_its_length(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, f"gateway: {{port: {text}}}")
    assert problem.startswith(f'agent.yaml: gateway.port: "{text[:60]}…" is not a whole number')
    assert load(tmp_path, f"name: {text}").warnings == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("8080", 8080), ("0x1F90", 8080), ("0b101", 5), ("017", 15), ("1_000", 1000), ("+7", 7), ("-0", 0)],
)
def test_numbers_to_other_bases_are_read_as_before(text: str, value: int) -> None:
    assert parse_yaml(f"a: {text}".encode()) == {"a": value}


@pytest.mark.parametrize(
    ("text", "value"), [("0.5", 0.5), (".5", 0.5), ("1.", 1.0), ("1.5e+3", 1500.0), ("-.inf", float("-inf"))]
)
def test_fractions_are_read_as_before(text: str, value: float) -> None:
    assert parse_yaml(f"a: {text}".encode()) == {"a": value}


def test_a_fifo_in_place_of_the_file_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent.yaml")
    with pytest.raises(ConfigError, match=r"agent\.yaml: is not a regular file"):
        load_config(tmp_path, {})


def test_a_dangling_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is a link to a file that does not exist"):
        load_config(tmp_path, {})


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "dotfile").write_text("search: {alpha: 0.25}")
    (tmp_path / "agent.yaml").symlink_to(tmp_path / "dotfile")
    assert load_config(tmp_path, {}).config.search.alpha == 0.25


# The environment


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = load(tmp_path, "gateway: {host: 127.0.0.1, port: 4000}", SIGNET_HOST="::1", SIGNET_PORT=" 5000 ").config
    assert (config.gateway.host, config.gateway.port) == ("::1", 5000)


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert load(tmp_path, "gateway: {port: 4000}", SIGNET_PORT="", SIGNET_HOST="").config.gateway.port == 4000


@pytest.mark.parametrize("value", ["65536", "-1", "99999999999999999"])
def test_a_port_out_of_range_names_the_variable(tmp_path: Path, value: str) -> None:
    assert problems(tmp_path, "", SIGNET_PORT=value) == [
        f"environment: SIGNET_PORT: {value} is out of range (0 to 65535)"
    ]


@pytest.mark.parametrize("value", ["http", "38 50", "3850.0", "٣٨٥٠", "9" * 30])
def test_a_port_that_is_no_number_names_the_variable(tmp_path: Path, value: str) -> None:
    assert problems(tmp_path, "", SIGNET_PORT=value) == [
        f'environment: SIGNET_PORT: "{value}" is not a whole number (0 to 65535)'
    ]


def test_a_host_beyond_this_machine_names_the_variable(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "gateway: {host: 127.0.0.1}", SIGNET_HOST="0.0.0.0")
    assert problem.startswith('environment: SIGNET_HOST: "0.0.0.0" is not a loopback address')


def test_the_variable_overrides_an_unsupported_host_of_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, "gateway: {host: 0.0.0.0}", SIGNET_HOST="127.0.0.1").config.gateway.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.agents"),
        ({"HOME": "/home/ada", "SIGNET_WORKSPACE": ""}, "/home/ada/.agents"),
        ({"HOME": "/home/ada", "SIGNET_WORKSPACE": "/srv/memory"}, "/srv/memory"),
        ({"HOME": "/home/ada", "SIGNET_WORKSPACE": "~/notes"}, "/home/ada/notes"),
    ],
)
def test_the_workspace_is_the_variable_or_below_the_home(environ: dict[str, str], path: str) -> None:
    assert workspace_from(environ) == Path(path)


def test_a_relative_workspace_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert workspace_from({"SIGNET_WORKSPACE": "here"}) == tmp_path / "here"


def test_a_workspace_that_cannot_be_a_path_names_the_variable() -> None:
    with pytest.raises(ConfigError, match="SIGNET_WORKSPACE"):
        workspace_from({"SIGNET_WORKSPACE": "/a\0b"})
    with pytest.raises(ConfigError, match="SIGNET_WORKSPACE"):
        workspace_from({"SIGNET_WORKSPACE": "~nobody-of-this-name/x"})


# What leaves the room


def test_the_configuration_can_be_sent_as_json(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "agents: {roster: [{name: a}]}\nsearch: {alpha: 1}\ngateway: {allowedHosts: ['[::1]:3850'], host: '::1'}",
    ).config
    assert msgspec.json.decode(msgspec.json.encode(config), type=Config) == config
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(config), type=Config) == config


def test_the_effective_mapping_has_the_keys_of_the_file_and_can_be_loaded(tmp_path: Path) -> None:

    config = load(tmp_path, "memory: {decay_rate: 0.9, pipelineV2: {worker: {pollMs: 500}}}").config
    mapping = effective_mapping(config)
    assert mapping["memory"]["decay_rate"] == 0.9
    assert mapping["memory"]["pipelineV2"]["worker"]["pollMs"] == 500
    assert mapping["memory"]["pipelineV2"]["extraction"]["timeout"] == 45_000
    assert mapping["search"]["min_score"] == 0.1
    again = load(tmp_path, yaml.safe_dump(mapping))
    assert again.config == config
    assert again.warnings == []


def test_the_effective_mapping_contains_no_secret(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "memory: {pipelineV2: {telemetry: {posthogApiKey: phc_hidden}, extraction: {apiKeyEnv: OPENAI_API_KEY}}}",
    ).config
    shown = repr(effective_mapping(config))
    assert "phc_hidden" not in shown
    assert "OPENAI_API_KEY" in shown


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 30_000, "- " * 50_000])
def test_depth_is_refused_before_anything_recurses(text: str) -> None:
    with pytest.raises(UnreadableYaml, match="nested deeper than 32 levels"):
        parse_yaml(text.encode())


def test_the_deepest_document_is_read() -> None:
    assert parse_yaml(b"[" * 32 + b"]" * 32) is not None
    with pytest.raises(UnreadableYaml, match="nested deeper than 32 levels"):
        parse_yaml(b"[" * 32 + b"a" + b"]" * 32)
