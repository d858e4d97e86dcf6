"""Which connections are served, and who goes when there are too many."""

from __future__ import annotations

from signet_actors.gateway.server.connection_limiter import MAX_EVICTION_CHECKS, ConnectionLimiter


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


def test_a_connection_that_is_served_takes_no_second_place() -> None:
    places, client = ConnectionLimiter(), Client()
    served(places, client, client, client, most=1)
    assert places.served == {client}


def test_where_nobody_is_idle_the_newcomer_gets_no_place_until_one_leaves() -> None:
    places, first, second, newcomer = ConnectionLimiter(), Client(), Client(), Client()
    served(places, first, second)
    assert not places.acquire(newcomer, 2)
    places.add_overflow(newcomer, 2)
    places.release(first)
    assert places.acquire(newcomer, 2)
    assert (places.served, places.overflow) == ({second, newcomer}, {})
    assert first.fate == second.fate == ""


def test_the_one_that_has_been_idle_longest_makes_room_and_only_waits_to_be_closed() -> None:
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


def test_a_connection_with_something_unread_is_not_idle() -> None:
    places, speaks, silent, newcomer = ConnectionLimiter(), Client(unread=True), Client(), Client()
    served(places, speaks, silent)
    for client in (speaks, silent):
        places.mark_idle(client)
    assert places.acquire(newcomer, 2)
    assert (speaks.fate, silent.fate) == ("", "made room")


def test_not_more_than_a_few_are_asked_whether_they_are_idle() -> None:
    places, newcomer = ConnectionLimiter(), Client()
    crowd = [Client(unread=True) for _ in range(MAX_EVICTION_CHECKS)]
    served(places, *crowd, silent := Client(), most=MAX_EVICTION_CHECKS + 1)
    for client in (*crowd, silent):
        places.mark_idle(client)
    assert not places.acquire(newcomer, MAX_EVICTION_CHECKS + 1)
    assert silent.fate == ""


def test_who_has_no_place_is_none_of_those_that_make_room() -> None:
    places, client, beyond = ConnectionLimiter(), Client(), Client()
    served(places, client, most=1)
    places.add_overflow(beyond, 1)
    places.mark_idle(beyond)
    assert places.idle == {}


def test_beyond_the_places_the_oldest_go_first() -> None:
    places = ConnectionLimiter()
    crowd = [Client() for _ in range(5)]
    for client in crowd:
        places.add_overflow(client, 2)
    assert [client.fate for client in crowd] == ["gave way"] * 3 + ["", ""]
    assert list(places.overflow) == crowd[3:]


def test_the_newcomer_who_gets_a_place_is_not_the_oldest_that_must_go() -> None:
    places, idle, newcomer, other = ConnectionLimiter(), Client(), Client(), Client()
    served(places, idle, most=1)
    places.add_overflow(newcomer, 1)
    places.mark_idle(idle)
    assert places.acquire(newcomer, 1)
    assert newcomer.fate == ""
    places.add_overflow(other, 1)
    assert (idle.fate, newcomer.fate, other.fate) == ("gave way", "", "")


def test_who_leaves_is_in_none_of_the_books() -> None:
    places, client, beyond = ConnectionLimiter(), Client(), Client()
    served(places, client, most=1)
    places.mark_idle(client)
    places.add_overflow(beyond, 1)
    for one in (client, beyond, client):
        places.release(one)
    assert (places.served, places.idle, places.overflow) == (set(), {}, {})
