"""M2: the watchdog, by a clock that the test moves."""

import socket
import threading

from noctaya_prewarm.watch import Watchdog


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def watchdog(clock: Clock, stalls: list[int], *, window: float = 10.0, min_rate: float = 100.0) -> Watchdog:
    return Watchdog(window=window, min_rate=min_rate, on_stall=lambda: stalls.append(1), clock=clock)


def test_m2_silence_for_a_window_cuts_the_connection_and_wakes_its_reader() -> None:
    clock, stalls = Clock(), list[int]()
    dog = watchdog(clock, stalls)
    ours, theirs = socket.socketpair()
    with ours, theirs, dog.exchange() as exchange:
        exchange.attach(ours)
        got: list[bytes] = []

        def read() -> None:
            with exchange.waiting():
                waits.set()
                got.append(ours.recv(1))

        waits = threading.Event()
        reader = threading.Thread(target=read)
        reader.start()
        assert waits.wait(10)
        clock.now = 9.9
        dog.look()
        assert not stalls
        clock.now = 10.0
        dog.look()
        reader.join(10)
        assert (got, stalls, exchange.stalled) == ([b""], [1], True)


def test_m2_a_trickle_below_the_rate_is_as_bad_as_silence() -> None:
    clock, stalls = Clock(), list[int]()
    dog = watchdog(clock, stalls)
    with dog.exchange() as exchange:
        for _ in range(12):
            with exchange.waiting():
                clock.now += 1
            exchange.received += 99
            dog.look()
        assert stalls == [1]


def test_m2_enough_bytes_in_every_window_are_left_alone() -> None:
    clock, stalls = Clock(), list[int]()
    dog = watchdog(clock, stalls)
    with dog.exchange() as exchange:
        for _ in range(100):
            with exchange.waiting():
                clock.now += 1
            exchange.received += 101
            dog.look()
    assert stalls == []


def test_m2_time_that_the_disk_takes_is_not_held_against_the_network() -> None:
    clock, stalls = Clock(), list[int]()
    dog = watchdog(clock, stalls)
    with dog.exchange() as exchange:
        for _ in range(50):
            with exchange.waiting():
                clock.now += 0.1
            exchange.received += 100
            clock.now += 30
            dog.look()
    assert stalls == []


def test_an_exchange_that_ended_is_not_looked_at() -> None:
    clock, stalls = Clock(), list[int]()
    dog = watchdog(clock, stalls)
    with dog.exchange() as exchange, exchange.waiting():
        pass
    clock.now = 1000
    dog.look()
    assert stalls == []


def test_the_thread_looks_by_itself() -> None:
    stalled = threading.Event()
    dog = Watchdog(window=0.05, min_rate=1.0, on_stall=stalled.set)
    dog.start()
    try:
        with dog.exchange() as exchange, exchange.waiting():
            assert stalled.wait(10)
    finally:
        dog.stop()
