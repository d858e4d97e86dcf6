"""Words are found in every spelling: special letters, names and their words, hashes and their short forms, emoji."""

from __future__ import annotations

import unicodedata

import pytest

from signet_actors.domain.written_forms import compound_parts
from tests.support.store_room import StoreRoom


def found(room: StoreRoom, query: str) -> list[str]:
    return [row.content for row in room.recall(query).rows]


def relevance(room: StoreRoom, query: str) -> float:
    return max((row.relevance for row in room.recall(query).rows), default=0.0)


LETTERS = [
    ("Die Stra\u00dfe zum Lager ist gesperrt", ("STRASSE", "strasse", "stra\u00dfe", "Stra\u00dfe")),
    ("Die Strasse zum Lager ist gesperrt", ("stra\u00dfe", "STRA\u1e9eE")),
    ("GRO\u1e9eE Pakete gehen per Spedition", ("grosse", "gro\u00dfe")),
    (
        "Die Gr\u00f6\u00dfe der Warteschlange ist 512",
        ("groesse", "Grosse", "gr\u00f6\u00dfe", "GROESSE", "Gr\u00f6sse"),
    ),
    ("Die Groesse der Warteschlange ist 512", ("Gr\u00f6\u00dfe", "gr\u00f6sse")),
    ("Der M\u00fcller f\u00e4hrt \u00fcber K\u00f6ln", ("mueller", "faehrt", "koeln", "muller", "M\u00dcLLER")),
    ("Der Mueller kommt aus Koeln", ("M\u00fcller", "K\u00f6ln")),
    (unicodedata.normalize("NFD", "Der M\u00fcller kommt aus K\u00f6ln"), ("mueller", "koeln", "M\u00fcller")),
    ("Biuro w \u0141odzi, \u0141\u00f3d\u017a", ("lodz", "\u0142\u00f3d\u017a", "LODZ", "lodzi")),
    ("Biuro jest w Lodz", ("\u0141\u00f3d\u017a",)),
    ("To jest g\u0142\u00f3wn\u0105 zasad\u0105", ("glowna", "g\u0142\u00f3wn\u0105")),
    ("Firmaet har kontor p\u00e5 \u00c6r\u00f8", ("aero", "\u00e6r\u00f8", "aeroe", "\u00c6R\u00d8")),
    ("Kontoret ligger i \u00c5rhus", ("aarhus", "arhus", "\u00e5rhus")),
    ("Kontoret ligger i Aarhus", ("\u00c5rhus",)),
    ("Les \u0153uvres sont au serveur", ("oeuvres", "\u0152UVRES", "\u0153uvres")),
    ("Les oeuvres sont au serveur", ("\u0153uvres",)),
    ("I\u015f\u0131k servisi kapal\u0131", ("\u0131\u015f\u0131k", "I\u015eIK", "isik", "i\u015f\u0131k")),
    ("\u0130stanbul sunucusu yava\u015f", ("istanbul", "\u0130STANBUL", "Istanbul")),
    ("M\u00e1y ch\u1ee7 \u1edf \u0110\u00e0 N\u1eb5ng", ("da nang", "\u0111\u00e0 n\u1eb5ng", "Da Nang")),
    ("\u0110okovi\u0107 owns the queue", ("djokovic", "dokovic", "\u0111okovi\u0107")),
    ("\u00de\u00f3r\u00f0ur runs the backups", ("thordur", "\u00fe\u00f3r\u00f0ur")),
    ("S\u00f8ren and J\u00f8rgen deploy", ("soren", "soeren", "jorgen", "S\u00d8REN")),
    ("The \ufb01le is in the o\ufb03ce", ("file", "office")),
    ("Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m", ("cafe", "naive", "angstrom", "aangstroem")),
]


@pytest.mark.parametrize(("content", "queries"), LETTERS)
def test_a_word_is_found_with_and_without_its_special_letters(
    room: StoreRoom, content: str, queries: tuple[str, ...]
) -> None:
    room.remember("the boats are in the harbour")
    room.remember(content)
    for query in queries:
        assert found(room, query)[:1] == [content], query
        assert relevance(room, query) > 0.5, query


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("a poet lives here", "pot"),
        ("a pot is here", "poet"),
        ("the shoes are red", "shos"),
        ("DOS is old", "does goes"),
        ("the masse of it", "ma\u00dfnahme"),
        ("blau ist gut", "blaue\u00dfe"),
        ("the duel", "dul"),
        ("ein Bus", "bu\u00dfe"),
    ],
)
def test_two_letters_that_are_no_special_letter_stay_two_letters(room: StoreRoom, content: str, query: str) -> None:
    room.remember(content)
    assert found(room, query) == []


NAMES = [
    (
        "cleanupScopeMappings runs after each import",
        ("scope mappings cleanup", "cleanup_scope_mappings", "cleanup-scope-mappings"),
    ),
    (
        "the pod is in CrashLoopBackOff",
        ("crash loop back off", "crash loop backoff", "crashLoopBackOff", "crash_loop_back_off"),
    ),
    ("the pods crash loop back off at night", ("CrashLoopBackOff",)),
    ("UserService caches for an hour", ("user service", "user_service", "user-service", "userService")),
    ("the user service caches for an hour", ("UserService", "userService", "user_service")),
    ("user_service caches for an hour", ("UserService", "user service")),
    ("HTTPServer needs a restart", ("http server", "http_server", "HttpServer")),
    ("the http server needs a restart", ("HTTPServer",)),
    ("XMLHttpRequest is not used", ("xml http request", "http request")),
    ("set innerHTML never", ("inner html",)),
    ("maxRetryCount is 5", ("max_retry_count", "max retry count", "retry count", "MaxRetryCount")),
    ("max_retry_count is 5", ("maxRetryCount", "max retry count")),
    ("OAuth2Client refreshes tokens", ("oauth2 client", "OAUTH2CLIENT")),
    ("JavaScript runs in the browser", ("java script", "javascript", "JAVASCRIPT")),
    ("PAY-1234 breaks refunds", ("PAY1234", "pay 1234", "PAY-1234", "pay_1234")),
    ("PAY1234 breaks refunds", ("PAY-1234", "pay 1234", "PAY_1234")),
    ("files are in UTF-8", ("utf8", "utf 8")),
    ("files are in utf8", ("UTF-8",)),
    ("the timeout is 50 ms", ("50ms",)),
    ("the timeout is 50ms", ("50 ms",)),
    ("the database is new", ("data base",)),
    ("commit 9f2c41ab7 broke it", ("9f2c41ab7deadbeef0011223344556677889900a", "9f2c41ab", "9f2c41ab7")),
    ("commit 9f2c41ab7deadbeef0011223344556677889900a broke it", ("9f2c41ab7", "9F2C41A")),
    ("getURLFromCache is slow", ("url from cache", "get_url_from_cache")),
    ("Why no Kubernetes: three people on call", ("k8s", "K8s?", "kubernetes")),
    ("k8s was too much for three people", ("Kubernetes", "K8S")),
    ("the Postgres of the shop is read-only", ("pg", "PostgreSQL")),
    ("PostgreSQL 16 holds the invoices", ("postgres", "pg")),
    ("the db is cleared at night", ("database",)),
    ("the repository is a monorepo", ("repo",)),
    ("i18n files are made by Lokalise", ("internationalization",)),
    ("the prod credentials are in 1Password", ("creds", "production")),
]


@pytest.mark.parametrize(("content", "queries"), NAMES)
def test_a_name_is_found_by_its_words_and_the_words_by_the_name(
    room: StoreRoom, content: str, queries: tuple[str, ...]
) -> None:
    room.remember("the boats are in the harbour")
    room.remember(content)
    for query in queries:
        assert found(room, query)[:1] == [content], query
        assert relevance(room, query) > 0.5, query


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("JavaScript runs in the browser", "java"),
        ("GitHub is down", "hub"),
        ("PostgreSQL is down", "postgre"),
        ("YouTube is blocked", "tube"),
        ("an iPhone is charged", "phone"),
        ("PAY-1234 breaks refunds", "PAY1235"),
        ("PAY-12345 breaks refunds", "PAY1234"),
        ("commit 9f2c41ab7 broke it", "9f2c41ac7deadbeef0011223344556677889900a"),
        ("aGVsbG8gd29ybGQx is encoded", "gvsb ybgq"),
        ("the service of a user", "userservice"),
        ("the production line stands still", "prodigy"),
        ("the page is black", "pg13"),
        ("k9s shows the pods", "k8s"),
    ],
)
def test_a_part_of_a_word_is_not_found(room: StoreRoom, content: str, query: str) -> None:
    room.remember(content)
    assert found(room, query) == []


def test_the_memory_with_the_name_itself_comes_first(room: StoreRoom) -> None:
    texts = (
        "pay 1234 euros",
        "PAY1234 is a coupon",
        "PAY-1234 breaks refunds",
        "user service",
        "UserService is slow",
        "user_service",
    )
    for text in texts:
        room.remember(text)
    assert found(room, "PAY-1234")[0] == "PAY-1234 breaks refunds"
    assert found(room, "PAY1234")[0] == "PAY1234 is a coupon"
    assert found(room, "user_service")[0] == "user_service"


EMOJI = [
    (
        "\U0001f680\U0001f525 is the marker for hotfix releases",
        ("\U0001f680", "\U0001f525", "\U0001f680\U0001f525", "what does \U0001f680 mean?"),
    ),
    ("\U0001f984", ("\U0001f984",)),
    ("\U0001f44d\U0001f3fd means approved", ("\U0001f44d", "\U0001f44d\U0001f3ff", "\U0001f44d\U0001f3fd")),
    ("\U0001f44d means approved", ("\U0001f44d\U0001f3fb",)),
    ("\u2764\ufe0f is for favourites", ("\u2764", "\u2764\ufe0f")),
    ("\u2764 is for favourites", ("\u2764\ufe0f",)),
    (
        "\U0001f469\u200d\U0001f4bb writes the code",
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f3fe\u200d\U0001f4bb", "\U0001f4bb"),
    ),
    ("\U0001f1e9\U0001f1ea is the first market", ("\U0001f1e9\U0001f1ea",)),
    ("\u2705 done, \u274c failed", ("\u2705", "\u274c")),
    ("\u26a0\ufe0f marks a breaking change", ("\u26a0", "\u26a0\ufe0f")),
    ("\U0001f3f3\ufe0f\u200d\U0001f308 is on the page", ("\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f308")),
    ("ship it \U0001f6a2", ("\U0001f6a2", "ship \U0001f6a2")),
    ("\u2b50\u2b50\u2b50 is the best rating", ("\u2b50",)),
    ("\u6570\u636e\u5e93\U0001f40d", ("\U0001f40d",)),
    ("\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1 pairs on Monday", ("\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1",)),
    ("build\U0001f6a7site", ("\U0001f6a7",)),
    ("\u2600\ufe0e is day", ("\u2600\ufe0f",)),
    ("\U0001f468\u200d\U0001f469\u200d\U0001f467 plan", ("\U0001f468\u200d\U0001f469\u200d\U0001f467",)),
    ("\U0001fae1 yes", ("\U0001fae1",)),
    ("\U0001f004 game", ("\U0001f004",)),
]


@pytest.mark.parametrize(("content", "queries"), EMOJI)
def test_an_emoji_is_found(room: StoreRoom, content: str, queries: tuple[str, ...]) -> None:
    room.remember("the boats are in the harbour \U0001f422")
    room.remember(content)
    for query in queries:
        assert found(room, query)[:1] == [content], query


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("\U0001f44d is good", "\U0001f44e"),
        ("\U0001f1e9\U0001f1ea market", "\U0001f1eb\U0001f1f7"),
        ("\U0001f469 and \U0001f4bb", "\U0001f469\u200d\U0001f680"),
        ("a rocket", "\U0001f680"),
        ("\u2192 next", "\U0001f680"),
    ],
)
def test_another_emoji_is_not_found(room: StoreRoom, content: str, query: str) -> None:
    room.remember(content)
    assert found(room, query) == []


def test_an_emoji_that_no_memory_has_changes_nothing(room: StoreRoom) -> None:
    room.remember("the staging database listens on port 5433")
    plain = room.recall("which port has the staging database").rows[0]
    decorated = room.recall("which port has the staging database \U0001f64f\U0001f389").rows[0]
    assert (decorated.score, decorated.relevance) == (plain.score, plain.relevance)


def test_a_long_word_may_consist_of_two_but_encoded_data_does_not() -> None:
    assert ("zeit", "umstellung") in compound_parts("zeitumstellung")
    assert compound_parts("zeit") == compound_parts("a" * 5000) == compound_parts("umstellung-2025") == []
