"""A checker that a history can be that of an exact counter, similar to Jepsen's checkers.

    acknowledged <= shown <= attempted

A badge shows the views that were put; an acknowledged view is put a moment later. A badge has
lives: a reset ends one and begins the next. A hit that was answered before the reset began belongs
to the old life. A hit that was requested after the reset's answer belongs to the new life. A hit in
between may belong to either. The checker applies these rules to each answer, with the operations of
its life:

- OVER: the answer shows no more than the hits that were attempted before it ended, without its own,
  because a visitor sees the count before their view. Otherwise a view was doubled, belongs to an
  earlier life, or is from the future.
- DOWN: the answer shows no less than any answer that ended before it began. A hit that was put
  counts for one more than its answer showed.
- LOST: the answer shows no less than the acknowledged hits that were put before it began.
- UNEQUAL: at rest, acknowledged <= shown <= acknowledged + unknown, and every answer shows the same
  count, before the fold of the last views and after it.
- DAY_DOWN: a history shows no less on any day than any history that ended before it began.
- DAY_UNEQUAL: at rest, each view is on a day on which it may count: on no day before it was taken,
  and on none after it was counted.

LOST and UNEQUAL together guarantee that no view was lost and none counted twice. The sum of a
history's days is an answer like any other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from chaos.checker.days import Highest, find_misplaced
from chaos.checker.history import Kind, Operation, Outcome, in_order

EXCERPT = 12
"""The most operations of an excerpt."""


class Flaw(StrEnum):
    """The rule that an answer breaks; the docstring of the module has the rules."""

    OVER = "over"
    DOWN = "down"
    LOST = "lost"
    UNEQUAL = "unequal"
    UNREAD = "unread"
    DAY_DOWN = "day down"
    DAY_UNEQUAL = "day unequal"


@dataclass(frozen=True, slots=True)
class Violation:
    """An answer that no exact counter gives, and operations of its badge as evidence."""

    flaw: Flaw
    operation: Operation
    says: str
    excerpt: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.flaw}: {self.says}", *(f"    {one}" for one in self.excerpt)]
        return "\n".join([*lines, f"  > {self.operation}"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The violations in a history; `lost` and `doubled` are views at the end."""

    violations: tuple[Violation, ...]
    answers: int
    lost: int = 0
    doubled: int = 0

    def plus(self, other: Verdict) -> Verdict:
        """Return the verdict of two histories."""
        return Verdict(
            self.violations + other.violations,
            self.answers + other.answers,
            self.lost + other.lost,
            self.doubled + other.doubled,
        )


CLEAN = Verdict((), 0)


def check(operations: Iterable[Operation]) -> Verdict:
    """Judge a history, each badge by itself."""
    badges: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in in_order(operations):
        badges[operation.badge_id].append(operation)
    verdict = CLEAN
    for own in badges.values():
        verdict = verdict.plus(_Badge(own).verdict())
    return verdict


class _Lives:
    """The lives of a badge, separated by its resets, which never overlap."""

    def __init__(self, resets: Iterable[Operation]) -> None:
        ordered = sorted(resets, key=lambda reset: reset.invoked)
        self._begun = [reset.invoked for reset in ordered]
        self._ended = [
            reset.completed if reset.outcome is Outcome.ACKNOWLEDGED else float("inf")
            for reset in ordered
        ]

    def of(self, operation: Operation) -> int | None:
        """Return the number of the life that an operation belongs to, None between two."""
        number = self.least(operation)
        later = bisect_left(self._begun, operation.completed)
        return number if number == later else None

    def least(self, operation: Operation) -> int:
        """Return the first life that an operation may belong to."""
        return bisect_right(self._ended, operation.invoked)

    def beginning(self, number: int) -> float:
        """Return the beginning of a life: no hit answered earlier belongs to it."""
        return self._begun[number - 1] if number else float("-inf")


@dataclass(frozen=True, slots=True)
class _Life:
    """The facts of one life: acknowledged hits, the times of their puts, and counts shown.

    `days` has the counts shown on each day.
    """

    acknowledged: Sequence[Operation] = ()
    put: Sequence[float] = ()
    shown: Highest = field(default_factory=Highest)
    promised: Highest = field(default_factory=Highest)
    days: Mapping[str, Highest] = field(default_factory=dict)

    @classmethod
    def of(cls, operations: Sequence[Operation], *, first: bool) -> _Life:
        """Return the facts that the operations of a life show.

        A hit without a count was taken while the table could not be read. Its view has only the
        clock's time, and may belong to the previous life, unless this is the first life.
        """
        hits = [op for op in operations if op.acknowledged and (first or op.shown is not None)]
        put = [(op.put_by, op) for op in hits if op.put_by is not None]
        histories = [(op.completed, op.days) for op in operations if op.days]
        every = {day for _, days in histories for day in days}
        return cls(
            hits,
            sorted(at for at, _ in put),
            Highest((op.completed, op.shown) for op in operations if op.shown is not None),
            Highest((at, op.shown + 1) for at, op in put if op.shown is not None),
            {day: Highest((at, days.get(day, 0)) for at, days in histories) for day in every},
        )


NOTHING = _Life()


class _Badge:
    """The operations of one badge by their ends, and the bounds that follow from them."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._lives = _Lives(op for op in operations if op.kind is Kind.RESET)
        self._attempted = sorted(op.invoked for op in operations if op.attempted)
        self._answered = [op.completed for op in operations if op.acknowledged]
        self._answers = [op for op in operations if op.shown is not None]
        self._final = [op for op in self._answers if op.kind is Kind.FINAL]
        own: defaultdict[int | None, list[Operation]] = defaultdict(list)
        for op in operations:
            own[self._lives.of(op)].append(op)
        own.pop(None, None)
        self._certain = {number: _Life.of(ops, first=number == 0) for number, ops in own.items()}

    def verdict(self) -> Verdict:
        lost = doubled = 0
        if self._final:
            final = self._final[-1]
            lost = max(0, len(self._life(final).acknowledged) - (final.shown or 0))
            doubled = max(0, (final.shown or 0) - self._most(final))
        return Verdict(tuple(self._violations()), len(self._answers), lost, doubled)

    def _violations(self) -> Iterator[Violation]:
        for operation in self._answers:
            shown, life = operation.shown or 0, self._life(operation)
            yield from self._over(operation, shown)
            yield from self._down(operation, shown, life)
            yield from self._lost(operation, shown, life)
            yield from self._day_down(operation, life)
        yield from self._at_the_end()

    def _life(self, operation: Operation) -> _Life:
        """Return the facts of an operation's life, or no facts if the life is not certain."""
        return self._certain.get(self._lives.of(operation), NOTHING)

    def _most(self, operation: Operation) -> int:
        """Return the most hits that an answer may show: all but those of earlier lives."""
        begun = self._lives.beginning(self._lives.least(operation))
        earlier = bisect_left(self._answered, begun)
        attempted = bisect_left(self._attempted, operation.completed) - operation.attempted
        return attempted - earlier

    def _over(self, operation: Operation, shown: int) -> Iterator[Violation]:
        most = self._most(operation)
        if shown > most:
            says = f"{shown} shown, {most} attempted before"
            yield self._violation(Flaw.OVER, operation, says, lambda op: op.attempted)

    def _down(self, operation: Operation, shown: int, life: _Life) -> Iterator[Violation]:
        before, promised = (
            highest.by(operation.invoked) for highest in (life.shown, life.promised)
        )
        if shown < before:
            says = f"{shown} shown, {before} before"
            yield self._violation(Flaw.DOWN, operation, says, lambda op: op.shown == before)
        elif shown < promised:
            says = f"{shown} shown, after the put of a hit that was shown {promised - 1}"
            yield self._violation(Flaw.DOWN, operation, says, lambda op: op.shown == promised - 1)

    def _lost(self, operation: Operation, shown: int, life: _Life) -> Iterator[Violation]:
        put = bisect_right(life.put, operation.invoked)
        if shown < put:
            says = f"{shown} shown, {put} acknowledged and put before"
            yield self._violation(Flaw.LOST, operation, says, lambda op: op.acknowledged)

    def _day_down(self, operation: Operation, life: _Life) -> Iterator[Violation]:
        if operation.days is None:
            return
        for day, shown in life.days.items():
            views, before = operation.days.get(day, 0), shown.by(operation.invoked)
            if views < before:
                says = f"{views} on {day}, {before} before"
                yield self._violation(Flaw.DAY_DOWN, operation, says, lambda op: bool(op.days))

    def _day_unequal(self, operation: Operation) -> Iterator[Violation]:
        begun = self._lives.beginning(self._lives.least(operation))
        hits = [op for op in self._operations if op.attempted]
        possible = [op for op in hits if not op.acknowledged or op.completed >= begun]
        certain = self._life(operation).acknowledged
        days = operation.days or {}
        if says := find_misplaced(days, (op.span for op in certain), (op.span for op in possible)):
            yield self._violation(Flaw.DAY_UNEQUAL, operation, says, lambda _: False)

    def _at_the_end(self) -> Iterator[Violation]:
        if not self._final:
            if self._attempted:
                says = f"{len(self._attempted)} attempted, never read at the end"
                yield self._violation(Flaw.UNREAD, self._operations[-1], says, lambda _: False)
            return
        for operation in self._final:
            least, most = len(self._life(operation).acknowledged), self._most(operation)
            if not least <= (operation.shown or 0) <= most:
                says = f"{operation.shown} at the end, {least} acknowledged, {most} attempted"
                yield self._violation(Flaw.UNEQUAL, operation, says, lambda op: op.attempted)
            elif operation.shown != self._final[0].shown:
                says = f"{operation.shown} at the end, {self._final[0].shown} before"
                yield self._violation(
                    Flaw.UNEQUAL, operation, says, lambda op: op.kind is Kind.FINAL
                )
            elif operation.days is not None:
                yield from self._day_unequal(operation)

    def _violation(
        self, flaw: Flaw, operation: Operation, says: str, relevant: Callable[[Operation], bool]
    ) -> Violation:
        """Return a violation with the last relevant operations before it, and the resets."""
        before = [
            other
            for other in self._operations
            if other is not operation
            and other.invoked <= operation.completed
            and (other.kind is Kind.RESET or relevant(other))
        ]
        return Violation(flaw, operation, says, tuple(before[-EXCERPT:]))
