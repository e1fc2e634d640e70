"""The checker: whether a history can be that of an exact counter, in the manner of Jepsen's.

    acknowledged <= shown <= attempted

A badge shows the views that were put; an acknowledged view is put a moment later. So for each
answer, with the hits of its badge:

- OVER: it shows no more than the hits attempted before it ended, its own apart, for a visitor sees
  the count before his view. Else a view was doubled, or the count is from the future.
- DOWN: it shows no less than any hit showed whose put was done before it began, and one.
- LOST: while nothing is between its removal and its fold, it shows no less than the acknowledged
  hits whose put was done before it began.
- DIP: nor, then, less than any answer showed that ended before it began.
- UNEQUAL: once all is quiet, acknowledged <= shown <= acknowledged and unknown, and it stays the
  same through the removal and the fold of every view.

The last three together say that no view was lost and none counted twice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from chaos.history import History, Kind, Operation, Still, in_order

EXCERPT = 12
"""Operations of an excerpt, at most."""


class Flaw(StrEnum):
    """What is wrong; the docstring of the module has the rules."""

    OVER = "over"
    DOWN = "down"
    LOST = "lost"
    DIP = "dip"
    UNEQUAL = "unequal"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Violation:
    """An answer that no exact counter gives, and operations of its badge that show it."""

    flaw: Flaw
    operation: Operation
    says: str
    excerpt: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.flaw}: {self.says}", *(f"    {one}" for one in self.excerpt)]
        return "\n".join([*lines, f"  > {self.operation}"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found; `lost` and `doubled` are views at the end, `strict` the answers in stills."""

    violations: tuple[Violation, ...]
    answers: int
    strict: int
    lost: int = 0
    doubled: int = 0

    def of(self, *flaws: Flaw) -> int:
        """How many violations are of these kinds."""
        return sum(violation.flaw in flaws for violation in self.violations)

    def plus(self, other: Verdict) -> Verdict:
        """Of two histories."""
        return Verdict(
            self.violations + other.violations,
            self.answers + other.answers,
            self.strict + other.strict,
            self.lost + other.lost,
            self.doubled + other.doubled,
        )


CLEAN = Verdict((), 0, 0)


def check(history: History) -> Verdict:
    """Judge a history, each badge by itself."""
    badges: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in in_order(history.operations):
        badges[operation.badge_id].append(operation)
    verdict = CLEAN
    for operations in badges.values():
        verdict = verdict.plus(_Badge(operations, history.stills).verdict())
    return verdict


class _Highest:
    """The highest of some values up to a time, or 0."""

    def __init__(self, values: Sequence[tuple[float, int]]) -> None:
        values = sorted(values)
        self._times = [at for at, _ in values]
        self._highest = list(accumulate((value for _, value in values), max))

    def by(self, time: float) -> int:
        place = bisect_right(self._times, time)
        return self._highest[place - 1] if place else 0


class _Badge:
    """The operations of one badge by their ends, and the bounds that follow from them."""

    def __init__(self, operations: Sequence[Operation], stills: Sequence[Still]) -> None:
        self._operations = operations
        self._stills = sorted(stills)
        self._attempted = sorted(op.invoked for op in operations if op.attempted)
        acknowledged = [op for op in operations if op.acknowledged]
        self._acknowledged = len(acknowledged)
        put = [(op.put_by, op) for op in acknowledged if op.put_by is not None]
        self._put = sorted(at for at, _ in put)
        self._promised = _Highest([(at, op.shown + 1) for at, op in put if op.shown is not None])
        self._answers = [op for op in operations if op.shown is not None]
        self._strict = [op for op in self._answers if self._is_still(op)]
        self._shown = _Highest([(op.completed, op.shown or 0) for op in self._strict])
        self._final = [op for op in self._answers if op.kind is Kind.FINAL]

    def verdict(self) -> Verdict:
        final = self._final[-1].shown or 0 if self._final else 0
        return Verdict(
            tuple(self._violations()),
            len(self._answers),
            len(self._strict),
            lost=max(0, self._acknowledged - final),
            doubled=max(0, final - len(self._attempted)),
        )

    def _violations(self) -> Iterator[Violation]:
        for operation in self._answers:
            yield from self._at_any_time(operation, operation.shown or 0)
        for operation in self._strict:
            yield from self._in_a_still(operation, operation.shown or 0)
        yield from self._at_the_end()

    def _at_any_time(self, operation: Operation, shown: int) -> Iterator[Violation]:
        most = bisect_left(self._attempted, operation.completed) - operation.attempted
        if shown > most:
            says = f"{shown} shown, {most} attempted before"
            yield self._violation(Flaw.OVER, operation, says, lambda op: op.attempted)
        least = self._promised.by(operation.invoked)
        if shown < least:
            says = f"{shown} shown, after the put of a hit that was shown {least - 1}"
            yield self._violation(Flaw.DOWN, operation, says, lambda op: op.shown == least - 1)

    def _in_a_still(self, operation: Operation, shown: int) -> Iterator[Violation]:
        put = bisect_right(self._put, operation.invoked)
        if shown < put:
            says = f"{shown} shown, {put} acknowledged and put before"
            yield self._violation(Flaw.LOST, operation, says, lambda op: op.acknowledged)
        before = self._shown.by(operation.invoked)
        if shown < before:
            says = f"{shown} shown, {before} before"
            yield self._violation(Flaw.DIP, operation, says, lambda op: op.shown == before)

    def _at_the_end(self) -> Iterator[Violation]:
        if not self._final:
            if self._attempted:
                says = f"{self._acknowledged} acknowledged, never read at the end"
                yield self._violation(Flaw.UNREAD, self._operations[-1], says, lambda _: False)
            return
        least, most = self._acknowledged, len(self._attempted)
        for operation in self._final:
            if not least <= (operation.shown or 0) <= most:
                says = f"{operation.shown} at the end, {least} acknowledged, {most} attempted"
                yield self._violation(Flaw.UNEQUAL, operation, says, lambda op: op.attempted)
            elif operation.shown != self._final[0].shown:
                says = f"{operation.shown} at the end, {self._final[0].shown} before"
                yield self._violation(
                    Flaw.UNEQUAL, operation, says, lambda op: op.kind is Kind.FINAL
                )

    def _is_still(self, operation: Operation) -> bool:
        place = bisect_right(self._stills, (operation.invoked, float("inf"))) - 1
        return place >= 0 and operation.completed <= self._stills[place].ended

    def _violation(
        self,
        flaw: Flaw,
        operation: Operation,
        says: str,
        relevant: Callable[[Operation], bool],
    ) -> Violation:
        """With the last operations before it that bear on it, as few as show it."""
        before = [
            other
            for other in self._operations
            if other is not operation and other.invoked <= operation.completed and relevant(other)
        ]
        return Violation(flaw, operation, says, tuple(before[-EXCERPT:]))
