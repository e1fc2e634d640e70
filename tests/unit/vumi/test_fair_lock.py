"""The fair lock: one thread at a time, in the order of their requests."""

from __future__ import annotations

import threading

import pytest

from vumi.fair_lock import FairLock

PATIENCE = 10.0
"""Seconds after which a thread counts as hung."""


class Takers:
    """Threads that each take the lock; each starts after the one before it waits."""

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


def test_a_free_lock_is_taken_immediately_and_again() -> None:
    lock = FairLock()
    for _ in range(3):
        with lock:
            assert lock.waiting == 0


def test_the_thread_that_waited_longest_gets_the_lock() -> None:
    lock = FairLock()
    takers = Takers(lock)
    with lock:
        for name in "abcd":
            takers.add(name)
        assert takers.came == []
    takers.join()

    assert takers.came == ["a", "b", "c", "d"]
    assert takers.most_inside == 1


def test_a_thread_that_returns_waits_after_those_that_came_before() -> None:
    lock = FairLock()
    takers = Takers(lock)
    with lock:
        takers.add("a")
    with lock:
        assert takers.came == ["a"]
    takers.join()


def test_the_lock_is_released_after_an_error() -> None:
    lock = FairLock()
    with pytest.raises(KeyError), lock:
        raise KeyError

    with lock:
        assert lock.waiting == 0
