"""The fair lock: one thread at a time, in the order in which they came."""

from __future__ import annotations

import threading

import pytest

from vumi.fair_lock import FairLock

PATIENCE = 10.0
"""Seconds after which what does not come is taken for hung."""


class Takers:
    """Threads that take a turn each, one after the other is known to wait."""

    def __init__(self, lock: FairLock) -> None:
        self._lock = lock
        self._threads: list[threading.Thread] = []
        self.came: list[str] = []
        self.inside = 0
        self.most_inside = 0

    def add(self, name: str) -> None:
        thread = threading.Thread(target=self._take, args=(name,))
        self._threads.append(thread)
        before = self._lock.waiting
        thread.start()
        while self._lock.waiting == before:
            assert thread.is_alive(), "it did not wait"

    def _take(self, name: str) -> None:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self.came.append(name)
            self.inside -= 1

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_a_turn_that_nobody_has_is_taken_at_once_and_again() -> None:
    lock = FairLock()
    for _ in range(3):
        with lock:
            assert lock.waiting == 0


def test_turns_go_to_who_has_waited_longest() -> None:
    lock = FairLock()
    takers = Takers(lock)
    with lock:
        for name in "abcd":
            takers.add(name)
        assert takers.came == []
    takers.join()

    assert takers.came == ["a", "b", "c", "d"]
    assert takers.most_inside == 1


def test_who_comes_again_waits_behind_those_that_came_before() -> None:
    lock = FairLock()
    takers = Takers(lock)
    with lock:
        takers.add("a")
    with lock:
        assert takers.came == ["a"]
    takers.join()


def test_a_turn_ends_however_it_ends() -> None:
    lock = FairLock()
    with pytest.raises(KeyError), lock:
        raise KeyError

    with lock:
        assert lock.waiting == 0
