"""Owners and operators and their requests: claims, proofs, changes and deletes at any point.

A client that gets no answer repeats the request until it gets one. One request is under way at a
time; visitors, deliveries and folds interleave with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Protocol

from chalicelib.api import ProcessResources
from chalicelib.counting import bans, keys
from chalicelib.counting.bans import Ban
from chalicelib.counting.milestones import Milestone
from chalicelib.counting.summary import read
from chalicelib.counting.view import Windows
from chalicelib.history import history
from chalicelib.history.history import Interval
from chalicelib.http.tokens import digest
from chalicelib.owners import changing, claiming, finding, removing
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OPERATOR, OwnedBadge
from chalicelib.owners.proving import Place, Proof, ProofSearch, TooSoonError
from chalicelib.owners.removing import HOUR, Hours, label
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, key_of, text
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds
from simulation.faults import Crash
from simulation.ledger import Ledger, Moment, Span
from simulation.milestones import MilestoneLaw
from simulation.operations import Operation
from simulation.resources import Host

BANNED = 0.15
"""The share of the requests that set or lift a ban."""
OWNED = ("mine", "yours")
TRIES = 8
NEW_OWNER = 0.3
"""The share of the requests that give a badge to another owner."""
TAKEN_NAME = 0.5
"""The share of the requests that prove an alias, if there is one: mostly of another's badge."""
OPERATED = 0.3
"""The share of the other requests for a badge without an owner that are the operator's."""
KEY = "k" * 43
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLACE = Place("https://host.example/.vu-mi", is_listed=True)


class OwnersWorld(Protocol):
    """The parts of a world that owners use."""

    random: Random
    table: Table
    engine: Table
    settings: Settings
    ledger: Ledger
    milestones: MilestoneLaw
    resources: ProcessResources

    @property
    def moment(self) -> Moment: ...
    def clock(self) -> Seconds: ...
    def start(self, run: Callable[[Operation], None]) -> None: ...


class Owners:
    """The secrets of claimed badges; the table shows which requests were applied."""

    removals = 0.1
    """The share of the requests that remove hours."""

    def __init__(self, world: OwnersWorld, ids: tuple[str, ...]) -> None:
        self._world = world
        self._claims = 0
        self._secrets: dict[str, str] = {}
        self.request = Span(Moment(0), Moment(0))
        self._hours = Hours(EPOCH, EPOCH)
        self.requests: list[Span] = []
        self.ids = list(ids)

    def ask(self) -> None:
        """Start an owner's request, if none is under way."""
        if self.request.ended < self._world.moment:
            random, place = self._world.random, self._world.ledger.place
            badge_id = random.choice(self.ids)
            if random.random() < BANNED:
                self._ban(random.choice([badge_id, f"{badge_id[:1]}*"]))
                return
            if random.random() < self.removals:
                self._remove(badge_id, random.choice([None, self._secrets.get(badge_id)]))
                return
            aliases = [name for name in self.ids if place(name) != name]
            if aliases and random.random() < TAKEN_NAME:
                badge_id = random.choice(aliases)
                self._prove(badge_id, self._new_secret())
                return
            secret = self._secrets.get(badge_id)
            if self._world.random.random() < NEW_OWNER:
                self._replace_owner(badge_id, secret)
            elif secret or self._world.random.random() < OPERATED:
                self._change(badge_id, secret)
            else:
                self._claim(badge_id)

    def _ban(self, pattern: str) -> None:
        """Lift all bans, or set one. It is no owner's request, so numbers may not change by it."""
        table, patterns = (
            self._world.table,
            [one.pattern for one in bans.read_all(self._world.engine)],
        )

        def run(_: Operation) -> None:
            with suppress(StorageError, Crash):
                if patterns:
                    self.lift_bans(table)
                else:
                    bans.put(table, Ban(pattern, "", "", 0))
            self._world.resources.bans.forget()

        self._world.start(run)

    def lift_bans(self, table: Table) -> None:
        for one in bans.read_all(table):
            bans.lift(table, one.pattern)
        self._world.resources.bans.forget()

    def _claim(self, badge_id: str) -> None:
        secret = self._new_secret()
        aim = self._aim(badge_id, secret)

        def do() -> None:
            now = self._world.clock()
            claiming.claim(self._world.table, badge_id, 0, now, digest(secret))
            aim()

        self._start(do, partial(self._owns, badge_id, secret), {badge_id: secret})

    def _replace_owner(self, badge_id: str, secret: str | None) -> None:
        """Give a badge to another owner, or to nobody; its count stays."""
        new, table, clock = self._new_secret(), self._world.table, self._world.clock

        def grant() -> None:
            claiming.grant(table, badge_id, clock(), digest(new))

        def release() -> None:
            claiming.release(table, badge_id)

        def hand_over() -> None:
            changing.hand_over(table, badge_id, secret or "", digest(new), clock())

        others = [hand_over, release] if secret else []
        give = self._world.random.choice([grant, None, *others])
        if give is None:
            self._prove(badge_id, self._world.random.choice([secret or new, new]))
            return
        aim = self._aim(badge_id, new)

        def do() -> None:
            give()
            if give is not release:
                aim()

        self._start(do, partial(self._owns, badge_id, new), {badge_id: new})

    def _prove(self, name: str, secret: str) -> None:
        """Prove a name, for a new secret or for the badge of a present one."""
        table, clock = self._world.table, self._world.clock
        aim = self._aim(name, secret)

        def do() -> None:
            proof = Proof(name, KEY, digest(secret))
            host = Host([proof.challenge])
            ProofSearch(table, lambda: host, clock).prove(proof, PLACE, clock())
            aim()

        def is_done() -> bool:
            item = self._world.engine.get(keys.owner(self._world.ledger.place(name))) or {}
            return text(item, "proven") == name and self._owns(name, secret)

        self._start(do, is_done, {name: secret})

    def _aim(self, badge_id: str, secret: str) -> Callable[[], None]:
        """Return the request of a new owner that sets milestones, which may be too late."""
        world, wanted = self._world, BadgeChange(milestones=self._choose_milestones(badge_id))

        def aim() -> None:
            with suppress(finding.OwnerError):
                owned = finding.authenticate(world.table, badge_id, secret)
                changing.change(world.table, owned, wanted, world.clock(), world.resources.webhooks)

        return aim

    def _choose_milestones(self, badge_id: str) -> tuple[Milestone, ...]:
        place = self._world.ledger.place(badge_id)
        return self._world.milestones.choose(self._world.engine, place, self._world.random)

    def _new_secret(self) -> str:
        self._claims += 1
        return f"secret {self._claims}"

    def _owns(self, badge_id: str, secret: str) -> bool:
        """Return whether a secret is that of a badge."""
        item = self._world.engine.get(keys.owner(self._world.ledger.place(badge_id))) or {}
        return text(item, "digest") == digest(secret)

    def _change(self, badge_id: str, secret: str | None) -> None:
        """Change or delete a badge as its owner, or as the operator if it has none."""
        random = self._world.random
        aims = self._choose_milestones(badge_id) if secret else ()
        wanted = random.choice(
            [
                *[BadgeChange(milestones=aims)] * (2 if aims else 0),
                BadgeChange(reset=True),
                BadgeChange(reset=True, base=random.choice([3, 1_020])),
                BadgeChange(base=random.choice([0, 1_000])),
                BadgeChange(frozen=random.choice([True, False, False])),
                BadgeChange(name=random.choice(self.ids)),
                BadgeChange(name=self._new_name()),
                BadgeChange(reset=True, name=self._new_name()),
                None,
            ]
        )
        table, clock = self._world.table, self._world.clock

        def do() -> None:
            owned = _find(table, badge_id, secret)
            if wanted is None:
                retention = self._world.settings.retention_seconds
                changing.delete(table, owned, clock(), retention)
            else:
                webhooks = self._world.resources.webhooks
                changing.change(table, owned, wanted, clock(), webhooks)

        def is_done() -> bool:
            engine = self._world.engine
            place = self._world.ledger.place(badge_id)
            if wanted is None:
                return read(engine, place).deleted == (digest(secret) if secret else OPERATOR)
            return bool(wanted.name) and read(engine, wanted.name or "").alias == place

        self._start(do, is_done, {})

    def _remove(self, badge_id: str, secret: str | None) -> None:
        """Remove hours as the owner or the operator; the answers meanwhile are checked."""
        table, clock = self._world.table, self._world.clock
        windows = Windows.of(self._world.settings)
        hours = self._hours = self._choose_hours(badge_id)

        def do() -> None:
            removing.remove(table, _find(table, badge_id, secret), hours, windows, clock())
            left = self.views_to_remove(self._world.ledger.place(badge_id))
            assert not left, f"removed, but there are {left}"

        self.request = Span(self._world.moment)
        self._world.start(partial(self._run, do, lambda: False, {}))

    def _choose_hours(self, badge_id: str) -> Hours:
        """Return hours to remove, the last of which has views."""
        viewed = sorted(self._read_hours(self._world.ledger.place(badge_id)))
        until = (self._world.random.choice(viewed) if viewed else EPOCH) + HOUR
        return Hours(until - self._world.random.choice([1, 30, 30, 30]) * HOUR, until)

    def _read_hours(self, badge_id: str) -> dict[datetime, int]:
        """Return the views of each hour."""
        span = history.Span(history.MAX_DAYS_BY_HOUR, by=Interval.HOUR)
        found = history.read(self._world.engine, badge_id, span, self._world.clock())
        return {hour: views for hour, views in found.buckets if views}

    def views_to_remove(self, badge_id: str) -> Counter[str]:
        """Return the views by hour that the removal under way has to remove."""
        first, until, hours = self._hours.first, self._hours.until, self._read_hours(badge_id)
        return Counter({label(one): hours[one] for one in hours if first <= one < until})

    def _new_name(self) -> str:
        name = f"n{len(self.ids)}"
        self.ids.append(name)
        return name

    def _start(
        self, do: Callable[[], None], is_done: Callable[[], bool], secrets: dict[str, str]
    ) -> None:
        self.request = Span(self._world.moment)
        self.requests.append(self.request)
        self._world.start(partial(self._run, do, is_done, secrets))

    def _run(
        self,
        do: Callable[[], None],
        is_done: Callable[[], bool],
        secrets: dict[str, str],
        _: Operation,
    ) -> None:
        try:
            for _attempt in range(TRIES):
                try:
                    do()
                except (StorageError, Crash):
                    continue
                except (finding.OwnerError, TooSoonError) as refusal:
                    if is_done():
                        raise AssertionError("applied, but refused when repeated") from refusal
                break
        finally:
            self.request.ended = self._world.moment
            self._note(secrets)

    def _note(self, secrets: dict[str, str]) -> None:
        """Read from the table which secret each badge has now, by any of its names."""
        known = {*self._secrets.values(), *secrets.values()}
        by_digest = {digest(secret): secret for secret in known}
        self._secrets = {}
        owned: set[tuple[str, str]] = set()
        for name in self.ids:
            item = self._world.engine.get(keys.owner(self._world.ledger.place(name))) or {}
            if secret := by_digest.get(text(item, "digest")):
                self._secrets[name] = secret
                owned.add(keys.owned(digest(secret), self._world.ledger.place(name)))
        found = {key_of(item) for one in by_digest for item in self._list(one)}
        assert found == owned, "a secret does not list its badges alone"

    def _list(self, secret_digest: str) -> list[Item]:
        return self._world.engine.query(keys.owned(secret_digest).pk, limit=len(self.ids) + 1)


def _find(table: Table, badge_id: str, secret: str | None) -> OwnedBadge:
    """Find a badge as its owner, or as the operator."""
    if secret:
        return finding.authenticate(table, badge_id, secret)
    return finding.look_up(table, badge_id)
