"""Model servers over real HTTP: correct answers and every kind of server error."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from signet_actors.domain.extraction.answers import DECISION
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.ollama import OllamaProvider
from signet_actors.providers.llm.openai_compatible import OpenAiCompatibleProvider, key_from
from signet_actors.providers.llm.provider import Generated, LlmProvider
from tests.support.scripted_provider import MODEL_FAULTS, Act, Asked, Fault, ScriptedProvider

KEY = "sk-test-0123456789abcdef"
TEXT = json.dumps({"facts": [{"content": "The user prefers tabs", "type": "preference", "confidence": 0.9}]})
HANG_GUARD_S = 20.0
SHORT_MS = 400
T = TypeVar("T")

Maker = Callable[[ScriptedProvider], LlmProvider]
BACK_ENDS: dict[str, Maker] = {
    "ollama": lambda server: OllamaProvider(server.url, "qwen3:4b"),
    "openai": lambda server: OpenAiCompatibleProvider(server.url, "qwen3:4b", KEY),
}


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(text=TEXT) as running:
        yield running
        running.await_quiet()


@pytest.fixture(params=BACK_ENDS)
def make(request: pytest.FixtureRequest) -> Maker:
    return BACK_ENDS[request.param]


def using(provider: LlmProvider, work: Callable[[LlmProvider], Awaitable[T]]) -> T:
    """Return the result of ``work``; the provider is closed and nothing is left in the loop."""

    async def scenario() -> T:
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return await work(provider)
        finally:
            await provider.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not others, f"left behind: {others}"

    return asyncio.run(scenario())


def generated(provider: LlmProvider, prompt: str = "What?", timeout_ms: int = 5000) -> Generated:
    return using(provider, lambda it: it.generate(prompt, timeout_ms=timeout_ms))


def failure(provider: LlmProvider, timeout_ms: int = 5000) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        generated(provider, timeout_ms=timeout_ms)
    assert KEY not in caught.value.detail
    assert "\n" not in caught.value.detail
    return caught.value


def test_the_answer_has_the_models_text_and_the_servers_token_counts(server: ScriptedProvider, make: Maker) -> None:
    answer = generated(make(server), "Extract: ünïcode 数据库 🙂")
    assert (answer.text, answer.tokens_in, answer.tokens_out, answer.estimated) == (TEXT, 11, 7, False)
    assert server.prompts == ["Extract: ünïcode 数据库 🙂"]


def test_ollama_is_called_without_streaming_and_thinking(server: ScriptedProvider) -> None:
    using(OllamaProvider(server.url), lambda it: it.generate("p" * 60_000, timeout_ms=5000, max_tokens=100))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/generate")
    assert asked.body["stream"] is False
    assert asked.body["think"] is False
    assert asked.body["model"] == "qwen3:4b"
    assert asked.body["options"] == {"temperature": 0, "num_ctx": 16_384, "num_predict": 100}


def test_an_openai_compatible_server_is_given_the_key_and_the_limit(server: ScriptedProvider) -> None:
    provider = OpenAiCompatibleProvider(server.url + "/v1/", "m", KEY)
    using(provider, lambda it: it.generate("p", timeout_ms=5000, max_tokens=100))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "p"}],
        "stream": False,
        "max_tokens": 100,
    }


def test_openais_own_server_is_given_the_limit_under_its_newer_name() -> None:
    provider = OpenAiCompatibleProvider("", "gpt", KEY)
    assert provider.endpoint == "https://api.openai.com/v1"
    assert provider.limit_field == "max_completion_tokens"
    asyncio.run(provider.close())


def schema_in(asked: Asked) -> Any:
    """The schema that a request carries, in the wire format of its server."""
    if asked.path == "/api/generate":
        return asked.body.get("format")
    wanted = asked.body.get("response_format")
    if wanted is None:
        return None
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    assert wanted["json_schema"]["name"] == "decision"
    return wanted["json_schema"]["schema"]


def decided(provider: LlmProvider, times: int = 1) -> list[Generated]:
    async def work(it: LlmProvider) -> list[Generated]:
        return [await it.generate("p", timeout_ms=5000, answer=DECISION) for _ in range(times)]

    return using(provider, work)


def test_a_server_is_given_the_json_schema_of_the_answer(server: ScriptedProvider, make: Maker) -> None:
    decided(make(server))
    schema = schema_in(server.asked[0])
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == ["action", "targetId", "confidence", "reason"]
    assert schema["properties"]["action"] == {"enum": ["add", "delete", "none", "update"]}
    assert schema["properties"]["targetId"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_a_server_that_refuses_schemas_is_called_without_them_from_then_on(
    server: ScriptedProvider, make: Maker
) -> None:
    server.then("http_400")
    provider = make(server)
    answers = decided(provider, times=2)
    assert [answer.text for answer in answers] == [TEXT, TEXT]
    assert [schema_in(asked) is not None for asked in server.asked] == [True, False, False]
    assert not provider.structured


def test_other_errors_do_not_count_as_a_refusal_of_schemas(server: ScriptedProvider, make: Maker) -> None:
    async def work(it: LlmProvider) -> ProviderError:
        with pytest.raises(ProviderError) as caught:
            await it.generate("p", timeout_ms=5000, answer=DECISION)
        await it.generate("p", timeout_ms=5000, answer=DECISION)
        return caught.value

    server.then("http_400", "http_400")
    assert using(make(server), work).status == 400, "without a schema it was refused as well"
    server.then("http_500")
    assert using(make(server), work).status == 500
    assert [schema_in(asked) is not None for asked in server.asked] == [True, False, True, True, True]


def test_no_schema_is_sent_when_structured_output_is_off(server: ScriptedProvider) -> None:
    for provider in (
        OllamaProvider(server.url, structured=False),
        OpenAiCompatibleProvider(server.url, "m", None, structured=False),
    ):
        decided(provider)
    assert [schema_in(asked) for asked in server.asked] == [None, None]


@pytest.mark.parametrize("fault", MODEL_FAULTS)
def test_the_text_of_a_model_is_returned_unchanged(server: ScriptedProvider, make: Maker, fault: Fault) -> None:
    server.then(fault)
    assert generated(make(server)).text != TEXT


@pytest.mark.parametrize("tokens", [(None, None), ("many", -1), (True, 3), (2**70, 1.5)])
def test_invalid_token_counts_are_estimated_and_marked_as_such(
    server: ScriptedProvider, make: Maker, tokens: tuple[object, object]
) -> None:
    server.tokens = tokens
    answer = generated(make(server), "x" * 400)
    assert answer.estimated
    assert answer.tokens_in == 100
    assert answer.tokens_out > 0


@pytest.mark.parametrize(
    ("fault", "kind", "words", "costs"),
    [
        ("http_500", ProviderErrorKind.HTTP, "answered 500", True),
        ("http_400", ProviderErrorKind.HTTP, "answered 400", True),
        ("http_401", ProviderErrorKind.REFUSED, "answered 401", False),
        ("http_404", ProviderErrorKind.REFUSED, "answered 404", False),
        ("http_503", ProviderErrorKind.UNAVAILABLE, "answered 503", False),
        ("http_429", ProviderErrorKind.RATE_LIMITED, "answered 429", False),
        ("redirect", ProviderErrorKind.HTTP, "answered 307", True),
        ("rst", ProviderErrorKind.HTTP, "closed the connection before its response was complete", True),
        ("die", ProviderErrorKind.HTTP, "closed the connection before its response was complete", True),
        ("cut_off", ProviderErrorKind.HTTP, "closed the connection before its response was complete", True),
        ("not_http", ProviderErrorKind.HTTP, "closed the connection before its response was complete", True),
        ("huge", ProviderErrorKind.MALFORMED, "more than 4194304 bytes", True),
        ("bomb", ProviderErrorKind.MALFORMED, "compressed its response", True),
        ("broken_json", ProviderErrorKind.MALFORMED, "other than the expected JSON (application/json)", True),
        ("wrong_shape", ProviderErrorKind.MALFORMED, "other than the expected JSON", True),
        ("wrong_content_type", ProviderErrorKind.MALFORMED, "other than the expected JSON (text/html)", True),
        ("empty", ProviderErrorKind.MALFORMED, "no text", True),
    ],
)
def test_a_server_error_is_raised_with_its_cause(
    server: ScriptedProvider, make: Maker, fault: Fault, kind: ProviderErrorKind, words: str, costs: bool
) -> None:
    server.then(fault)
    error = failure(make(server))
    assert error.kind is kind
    assert words in error.detail
    assert error.costs_attempt is costs


def test_an_http_error_quotes_the_first_two_hundred_characters_of_the_body_without_the_key(
    server: ScriptedProvider, make: Maker
) -> None:
    server.then("http_500")
    detail = failure(make(server)).detail
    quoted = detail.partition(": ")[2]
    assert quoted.startswith('{"error": "http_500 of ')
    assert len(quoted) == 200


@pytest.mark.parametrize("fault", ["http_400", "http_500"])
def test_an_http_error_that_repeats_the_prompt_is_not_quoted(
    server: ScriptedProvider, make: Maker, fault: Fault
) -> None:
    prompt = "The code word of the vault is Wolverine-7731."
    server.then(Act(fault, f"cannot read {prompt}"), Act(fault, "cannot read it"))
    for quoted in ("", ': {"error": "cannot read it"}'):
        with pytest.raises(ProviderError) as caught:
            generated(make(server), prompt)
        assert caught.value.detail.endswith(f"answered {fault[5:]}{quoted}")


@pytest.mark.parametrize("fault", ["hang", "slow_drip"])
def test_one_deadline_covers_the_whole_call(server: ScriptedProvider, make: Maker, fault: Fault) -> None:
    """A byte now and then keeps no call alive."""
    server.then(fault)
    started = time.monotonic()
    error = failure(make(server), timeout_ms=SHORT_MS)
    assert error.kind is ProviderErrorKind.TIMEOUT
    assert f"within {SHORT_MS} ms" in error.detail
    assert time.monotonic() - started < HANG_GUARD_S


def test_a_gigabyte_is_not_read(server: ScriptedProvider, make: Maker) -> None:
    server.then("huge")
    failure(make(server))
    server.await_quiet()
    assert server.sent_bytes < 64 << 20


def test_an_unreachable_server_is_unavailable_and_costs_no_attempt(server: ScriptedProvider, make: Maker) -> None:
    server.die()
    error = failure(make(server))
    assert error.kind is ProviderErrorKind.UNAVAILABLE
    assert not error.costs_attempt
    assert server.url in error.detail


@pytest.mark.parametrize(
    ("header", "retry_after_ms"),
    [
        ("7", 7000),
        ("999999", 3_600_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
        ("-3", None),
        (None, None),
    ],
)
def test_retry_after_is_read_in_both_its_forms(
    server: ScriptedProvider, make: Maker, header: str | None, retry_after_ms: int | None
) -> None:
    server.then(Act("http_429", retry_after=header))
    assert failure(make(server)).retry_after_ms == retry_after_ms


def test_a_server_without_tls_is_unavailable(server: ScriptedProvider) -> None:
    provider = OllamaProvider(server.url.replace("http:", "https:"), "qwen3:4b")
    assert failure(provider, timeout_ms=20_000).kind is ProviderErrorKind.UNAVAILABLE


def test_a_closed_provider_raises_an_error(server: ScriptedProvider, make: Maker) -> None:
    async def work(provider: LlmProvider) -> None:
        await provider.generate("p", timeout_ms=5000)
        await provider.close()
        with pytest.raises(ProviderError, match="is no longer used"):
            await provider.generate("p", timeout_ms=5000)

    using(make(server), work)


def test_a_cancelled_call_closes_its_connection(server: ScriptedProvider, make: Maker) -> None:
    server.then("hang")

    async def work(provider: LlmProvider) -> None:
        task = asyncio.ensure_future(provider.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.await_quiet)

    using(make(server), work)


def test_a_recovered_server_is_called_again_by_the_same_provider(server: ScriptedProvider, make: Maker) -> None:
    async def work(provider: LlmProvider) -> str:
        await provider.generate("first", timeout_ms=5000)
        server.die()
        with pytest.raises(ProviderError):
            await provider.generate("second", timeout_ms=5000)
        server.revive()
        return (await provider.generate("third", timeout_ms=5000)).text

    assert using(make(server), work) == TEXT
    assert server.prompts == ["first", "third"]


def test_the_state_of_an_available_server_contains_its_address(server: ScriptedProvider, make: Maker) -> None:
    found = using(make(server), lambda it: it.available())
    assert found.ok
    assert server.url in found.detail
    assert server.asked == [], "a look costs nothing"


@pytest.mark.parametrize("fault", ["http_500", "rst", "huge", "wrong_content_type", "wrong_shape", "hang", "slow_drip"])
def test_a_server_without_a_readable_model_list_is_not_available(
    server: ScriptedProvider, make: Maker, fault: Fault
) -> None:
    server.look = fault
    server.drip_s = 0.5
    assert not using(make(server), lambda it: it.available()).ok


def test_a_missing_ollama_model_is_reported_with_the_pull_command(server: ScriptedProvider) -> None:
    found = using(OllamaProvider(server.url, "gemma3:1b"), lambda it: it.available())
    assert not found.ok
    assert found.detail.endswith("`ollama pull gemma3:1b`")


@pytest.mark.parametrize(
    ("model", "there"),
    [("nomic-embed-text", True), ("nomic-embed-text:latest", True), ("nomic-embed-text:v1", False), ("qwen3", False)],
)
def test_an_ollama_model_without_a_tag_means_latest(server: ScriptedProvider, model: str, there: bool) -> None:
    assert using(OllamaProvider(server.url, model), lambda it: it.available()).ok is there


def test_a_server_that_does_not_support_model_lists_counts_as_available(server: ScriptedProvider) -> None:
    server.look = "http_404"
    assert using(OpenAiCompatibleProvider(server.url, "m", None), lambda it: it.available()).ok


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("", "http://localhost:11434"),
        ("http://h:1/", "http://h:1"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/api/", "http://h:1"),
        ("http://h:1/behind/proxy", "http://h:1/behind/proxy"),
    ],
)
def test_the_address_of_ollama_is_taken_from_any_of_its_interfaces(given: str, called: str) -> None:
    provider = OllamaProvider(given)
    assert provider.endpoint == called
    asyncio.run(provider.close())


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "is not set"),
        ({"K": "  "}, "is not set"),
        ({"K": "two words"}, "does not contain a valid key"),
        ({"K": "a\nheader: b"}, "does not contain a valid key"),
        ({"K": "schlüssel"}, "does not contain a valid key"),
    ],
)
def test_an_invalid_key_is_refused_without_repeating_it(environment: dict[str, str], problem: str) -> None:
    with pytest.raises(ProviderError) as caught:
        key_from(environment, "K")
    assert caught.value.detail.endswith(problem)


def test_an_unset_variable_means_no_key_and_blanks_around_a_key_are_removed() -> None:
    assert key_from({"OPENAI_API_KEY": KEY}, "") is None
    assert key_from({"K": f" {KEY}\n"}, "K") == KEY


def test_local_servers_are_called_without_the_proxies_of_the_environment(
    server: ScriptedProvider, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert generated(make(server)).text == TEXT
