"""Which connections are served, and which are closed when there are too many."""

from __future__ import annotations

from signet_actors.gateway.server.load_shedding import MAX_EVICTION_CHECKS, ConnectionLimiter


class Client:
    def __init__(self, *, unread: bool = False) -> None:
        self.unread = unread
        self.fate = ""

    def has_unread_data(self) -> bool:
        return self.unread

    def evict(self) -> None:
        self.fate = "made room"

    def abort(self) -> None:
        self.fate = "gave way"


def served(places: ConnectionLimiter, *clients: Client, most: int = 2) -> None:
    for client in clients:
        assert places.acquire(client, most)


def test_an_accepted_connection_takes_one_slot() -> None:
    places, client = ConnectionLimiter(), Client()
    served(places, client, client, client, most=1)
    assert places.served == {client}


def test_without_idle_connections_a_new_one_waits_for_a_free_slot() -> None:
    places, first, second, newcomer = ConnectionLimiter(), Client(), Client(), Client()
    served(places, first, second)
    assert not places.acquire(newcomer, 2)
    places.add_overflow(newcomer, 2)
    places.release(first)
    assert places.acquire(newcomer, 2)
    assert (places.served, places.overflow) == ({second, newcomer}, {})
    assert first.fate == second.fate == ""


def test_the_longest_idle_connection_is_evicted() -> None:
    places, shortly, longest, newcomer = ConnectionLimiter(), Client(), Client(), Client()
    served(places, shortly, longest)
    for client in (shortly, longest):
        places.mark_idle(client)
    places.mark_busy(shortly)
    places.mark_idle(shortly)
    assert places.acquire(newcomer, 2)
    assert (longest.fate, shortly.fate) == ("made room", "")
    assert places.served == {shortly, newcomer}
    assert list(places.overflow) == [longest]
    assert list(places.idle) == [shortly]


def test_a_connection_with_unread_data_is_not_idle() -> None:
    places, speaks, silent, newcomer = ConnectionLimiter(), Client(unread=True), Client(), Client()
    served(places, speaks, silent)
    for client in (speaks, silent):
        places.mark_idle(client)
    assert places.acquire(newcomer, 2)
    assert (speaks.fate, silent.fate) == ("", "made room")


def test_only_a_few_connections_are_checked_for_eviction() -> None:
    places, newcomer = ConnectionLimiter(), Client()
    crowd = [Client(unread=True) for _ in range(MAX_EVICTION_CHECKS)]
    served(places, *crowd, silent := Client(), most=MAX_EVICTION_CHECKS + 1)
    for client in (*crowd, silent):
        places.mark_idle(client)
    assert not places.acquire(newcomer, MAX_EVICTION_CHECKS + 1)
    assert silent.fate == ""


def test_an_overflow_connection_is_never_evicted_as_idle() -> None:
    places, client, beyond = ConnectionLimiter(), Client(), Client()
    served(places, client, most=1)
    places.add_overflow(beyond, 1)
    places.mark_idle(beyond)
    assert places.idle == {}


def test_the_oldest_overflow_connections_are_closed_first() -> None:
    places = ConnectionLimiter()
    crowd = [Client() for _ in range(5)]
    for client in crowd:
        places.add_overflow(client, 2)
    assert [client.fate for client in crowd] == ["gave way"] * 3 + ["", ""]
    assert list(places.overflow) == crowd[3:]


def test_a_new_connection_with_a_slot_is_not_an_overflow_connection() -> None:
    places, idle, newcomer, other = ConnectionLimiter(), Client(), Client(), Client()
    served(places, idle, most=1)
    places.add_overflow(newcomer, 1)
    places.mark_idle(idle)
    assert places.acquire(newcomer, 1)
    assert newcomer.fate == ""
    places.add_overflow(other, 1)
    assert (idle.fate, newcomer.fate, other.fate) == ("gave way", "", "")


def test_a_closed_connection_is_removed_everywhere() -> None:
    places, client, beyond = ConnectionLimiter(), Client(), Client()
    served(places, client, most=1)
    places.mark_idle(client)
    places.add_overflow(beyond, 1)
    for one in (client, beyond, client):
        places.release(one)
    assert (places.served, places.idle, places.overflow) == (set(), {}, {})
