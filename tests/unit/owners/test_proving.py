"""The proof of ownership: its line, its secret, its search, and the badge that it gives away."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.http.tokens import digest, new_token
from chalicelib.outgoing.fetching import BusyError, FetchError
from chalicelib.owners import claiming, finding, proving
from chalicelib.owners.finding import TakenError, WrongSecretError
from chalicelib.owners.proving import NotProvenError, Place, Proof, ProofSearch, TooSoonError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import Table
from simulation.clocks import NOON, Clock
from simulation.resources import Host
from simulation.storage import FaultyTable, MemoryTable, once, raising
from simulation.views import days, fold, shown, store
from tests.unit.owners.owning import LOST, change, delete, visit

ID = "octocat/hello"
PLACE = Place("https://host.example/octocat/hello/.vu-mi", is_listed=True)
KEY = "k" * 43
LOOK = Key(f"PROOF#{ID}", "PROOF")


@dataclass
class World:
    """A table, a host and a clock, and the proofs that are asked for."""

    table: Table = field(default_factory=MemoryTable)
    host: Host = field(default_factory=Host)
    clock: Clock = field(default_factory=Clock)

    def prove(self, proof: Proof, place: Place = PLACE) -> str:
        search = ProofSearch(self.table, lambda: self.host, self.clock)
        search.prove(proof, place, self.clock())
        return proof.secret

    def publish(self, *proofs: Proof) -> None:
        self.host.lines = ["# of vu-mi", *(proof.challenge for proof in proofs)]

    def wait(self, seconds: float = proving.LOOK_SECONDS) -> None:
        self.clock.now += seconds

    def owner(self, badge_id: str = ID) -> Item:
        return self.table.get(keys.owner(badge_id)) or {}


@pytest.fixture
def world() -> World:
    return World()


def proof(badge_id: str = ID, key: str = KEY, own_digest: str = "") -> Proof:
    return Proof(badge_id, key, own_digest)


# ---- the line and the secret


def test_a_challenge_and_a_secret_are_of_one_id_and_one_key() -> None:
    """The lines are fixed, because they stand in the files of owners."""
    one, others = proof(), (proof("octocat/hell0"), proof(key="l" * 43))
    assert one.challenge == "vu-mi-7c01bf9aba7505d5eb2a45b2c2346e31d448a440b9e8d176026b6c37625e55cc"
    assert proving.CHALLENGE.fullmatch(one.challenge)
    assert KEY not in one.challenge + repr(one)
    assert one.secret == "DfUXAjcGOeSmp6w4O-2-mnLaoUENbRkM"  # noqa: S105  of the key of this test
    assert one.digest == digest(one.secret)
    for other in others:
        assert one.challenge != other.challenge
        assert one.secret != other.secret
    own = proof(own_digest=digest("my own"))
    assert (own.secret, own.digest, own.challenge) == ("", digest("my own"), one.challenge)


# ---- the search


def test_a_proof_that_is_found_gives_the_secret(world: World) -> None:
    world.publish(proof())
    secret = world.prove(proof())
    assert finding.authenticate(world.table, ID, secret).proven == ID
    assert world.host.asked == [(PLACE.url, True)]
    assert world.owner() == {
        "PK": f"USER#{ID}",
        "SK": "OWNER",
        "digest": digest(secret),
        "created": int(NOON),
        "proven": ID,
    }


@pytest.mark.parametrize(
    "lines",
    [["", "  {}\t", "other"], ["vu-mi-" + "0" * 64, "{}\r"], ["\udcff\udcfe", "{}"]],
)
def test_the_challenge_is_a_line_of_the_file(world: World, lines: list[str]) -> None:
    world.host.lines = [line.format(proof().challenge) for line in lines]
    assert world.prove(proof())


@pytest.mark.parametrize("line", ["", "x{}", "{}x", "{}{}", "# {}", "{} {}"])
def test_a_part_of_a_line_proves_nothing(world: World, line: str) -> None:
    challenge = proof().challenge
    world.host.lines = [line.format(challenge, challenge), challenge.upper(), challenge[:-1]]
    with pytest.raises(NotProvenError, match="not found: the file does not have this line"):
        world.prove(proof())
    assert world.owner() == {}


def test_a_file_that_can_not_be_fetched_proves_nothing(world: World) -> None:
    world.host.failure = FetchError("there is no file (answered 404)")
    with pytest.raises(NotProvenError, match=r"not found: there is no file \(answered 404\)\. Add"):
        world.prove(proof())
    world.wait()
    world.host.failure = None
    world.publish(proof())
    assert world.prove(proof())


# ---- its limits


def test_an_id_is_looked_for_once_in_ten_seconds(world: World) -> None:
    with pytest.raises(NotProvenError):
        world.prove(proof())
    world.publish(proof())
    world.wait(9)
    with pytest.raises(TooSoonError, match="does not have this line") as refusal:
        world.prove(proof())
    assert (refusal.value.status, refusal.value.headers) == (429, {"Retry-After": "1"})
    world.wait(1)
    assert world.prove(proof())
    assert len(world.host.asked) == 2


def test_a_stranger_who_asks_all_the_time_does_not_lock_the_owner_out(world: World) -> None:
    """What the stranger's request has found counts for the owner's."""
    world.publish(proof())
    with pytest.raises(NotProvenError):
        world.prove(proof(key=new_token()))
    assert world.prove(proof())
    assert len(world.host.asked) == 1


def test_two_concurrent_requests_fetch_once(world: World) -> None:
    world.publish(proof())
    table = world.table

    def other() -> None:
        with pytest.raises(NotProvenError):
            World(table, world.host, world.clock).prove(proof(key=new_token()))

    world.table = FaultyTable(table, before_write=once(other))
    with pytest.raises(TooSoonError, match="it is being looked for"):
        world.prove(proof())
    assert len(world.host.asked) == 1


def test_a_request_during_a_fetch_must_wait(world: World) -> None:
    world.host.failure = BusyError()
    with pytest.raises(BusyError):
        world.prove(proof())
    with pytest.raises(TooSoonError, match="it is being looked for"):
        world.prove(proof())
    item = world.table.get(LOOK)
    assert item == LOOK.item(at=int(NOON), ttl=int(NOON) + 3_600)


def test_a_clock_that_is_set_back_delays_a_proof_by_seconds(world: World) -> None:
    with pytest.raises(NotProvenError):
        world.prove(proof())
    world.publish(proof())
    world.clock.now -= 86_400
    assert world.prove(proof())


def test_what_was_found_is_bounded(world: World) -> None:
    world.publish(*(proof(key=f"{place:043}") for place in range(200)), proof())
    assert world.prove(proof())
    item = world.table.get(LOOK) or {}
    assert len(cast("list[str]", item["challenges"])) == proving.MAX_CHALLENGES


# ---- the badge


def test_a_proof_keeps_everything_but_the_owner(world: World) -> None:
    """Of a badge with views, a base, names, a history and another owner."""
    table = world.table
    squatter = claiming.claim(table, ID, 7, NOON - 9 * 86_400)
    owned = finding.authenticate(table, ID, squatter)
    change(table, owned, NOON - 8 * 86_400, name="mona/hello", frozen=True)
    for back in (7, 6, 5):
        at = NOON - back * 86_400
        visit(table, at, ID)
        fold(table, at + 3_600, ID)
    before = (shown(table, ID), days(table, ID), table.get(keys.summary(ID)))
    world.publish(proof())
    secret = world.prove(proof())
    assert (shown(table, ID), days(table, ID), table.get(keys.summary(ID))) == before
    for name in (ID, "mona/hello"):
        assert finding.authenticate(table, name, secret).names == (ID, "mona/hello")
        with pytest.raises(WrongSecretError):
            finding.authenticate(table, name, squatter)


def test_a_repeated_request_has_the_same_answer_without_a_search(world: World) -> None:
    world.publish(proof())
    table = world.table
    world.table = FaultyTable(table, after_write=raising(None, None, LOST))
    with pytest.raises(UnavailableError):
        world.prove(proof())
    world.table = table
    world.host.lines = []
    assert [world.prove(proof()) for _ in range(3)] == [proof().secret] * 3
    assert len(world.host.asked) == 1


# ---- renamed badges

OTHER_KEY = "l" * 43


def rename(world: World, badge_id: str, secret: str, *names: str) -> None:
    for name in names:
        owned = finding.authenticate(world.table, badge_id, secret)
        change(world.table, owned, world.clock(), name=name)


def prove(world: World, name: str, key: str = KEY, own_digest: str = "") -> str:
    world.wait()
    world.publish(proof(name, key, own_digest))
    return world.prove(proof(name, key, own_digest))


@pytest.fixture
def renamed(world: World) -> World:
    """Return a badge whose owner claimed it and renamed it, from `ID` to `new/name`."""
    claiming.claim(world.table, ID, 7, NOON, digest("owner"))
    rename(world, ID, "owner", "new/name")
    return world


def test_a_squatter_keeps_no_name_from_whoever_proves_it(world: World) -> None:
    """A proof of a name of their own gives the squatter no other name."""
    squatted = [f"victim/{number}" for number in range(18)]
    claiming.claim(world.table, "throwaway", 10**15, NOON, digest("squatter"))
    rename(world, "throwaway", "squatter", *squatted, "squatter/own")
    prove(world, "squatter/own", own_digest=digest("squatter"))
    for name in squatted:
        secret = prove(world, name, OTHER_KEY)
        owned = finding.authenticate(world.table, name, secret)
        assert (owned.names, owned.proven, shown(world.table, name)) == ((name,), name, 0)
    left = finding.authenticate(world.table, "throwaway", "squatter")
    assert left.names == ("throwaway", "squatter/own")
    assert shown(world.table, "squatter/own") == 10**15


def test_a_view_that_was_stored_under_the_alias_counts_once_for_the_name_asked_for(
    renamed: World,
) -> None:
    """A view is stored there if the table can't be read when it is taken."""
    view = badge_count.view_of_unread("new/name", NOON + 60)
    store(renamed.table, view, now=NOON + 60)
    prove(renamed, "new/name")
    store(renamed.table, view, now=NOON + 60)
    fold(renamed.table, NOON + 3_600, "new/name")
    fold(renamed.table, NOON + 3_600, ID)
    assert [shown(renamed.table, name) for name in (ID, "new/name")] == [7, 1]


def test_the_owner_proves_a_name_for_the_badge_with_the_digest_of_its_secret(
    renamed: World,
) -> None:
    for name in (ID, "new/name"):
        assert prove(renamed, name, own_digest=digest("owner")) == ""
    asked = len(renamed.host.asked)
    for name in (ID, "new/name"):
        renamed.prove(proof(name, own_digest=digest("owner")))
    assert len(renamed.host.asked) == asked, "repeated, without a search"
    owned = finding.authenticate(renamed.table, ID, "owner")
    assert (owned.names, owned.proven) == ((ID, "new/name"), "new/name")
    assert shown(renamed.table, "new/name") == 7


def test_the_latest_proven_name_takes_the_badge_with_all_names(renamed: World) -> None:
    """Nobody gets a badge with the name that its repository had before, whoever has it now."""
    for name in (ID, "new/name"):
        prove(renamed, name, own_digest=digest("owner"))
    asked, refusal = len(renamed.host.asked), "has proven a later name of the badge: ask the"
    with pytest.raises(TakenError, match=refusal):
        prove(renamed, ID, OTHER_KEY)
    assert len(renamed.host.asked) == asked
    assert finding.authenticate(renamed.table, ID, "owner").proven == "new/name"
    secret = prove(renamed, "new/name", OTHER_KEY)
    assert finding.authenticate(renamed.table, ID, secret).names == (ID, "new/name")
    with pytest.raises(TakenError, match=refusal):
        prove(renamed, ID, "m" * 43)


def test_a_proof_of_the_first_name_leaves_the_owner_what_they_have_proven(renamed: World) -> None:
    """The badge is stored under its first name, so it goes to whoever proves that."""
    rename(renamed, ID, "owner", "third/name")
    for name in ("new/name", "third/name"):
        prove(renamed, name, own_digest=digest("owner"))
    secret = prove(renamed, ID)
    assert finding.authenticate(renamed.table, ID, secret).names == (ID,)
    for name in ("new/name", "third/name"):
        owned = finding.authenticate(renamed.table, name, "owner")
        assert (owned.names, owned.proven) == ((name,), name)
        assert shown(renamed.table, name) == 0
    assert shown(renamed.table, ID) == 7


def test_a_proof_of_the_first_name_of_an_unproven_badge_takes_all_names(renamed: World) -> None:
    secret = prove(renamed, ID)
    assert finding.authenticate(renamed.table, "new/name", secret).names == (ID, "new/name")
    later = prove(renamed, "new/name", OTHER_KEY)
    assert finding.authenticate(renamed.table, "new/name", later).names == ("new/name",)
    assert finding.authenticate(renamed.table, ID, secret).names == (ID,)


def test_a_badge_that_nobody_owns_is_taken_by_any_name(renamed: World) -> None:
    claiming.release(renamed.table, ID)
    secret = prove(renamed, "new/name")
    assert finding.authenticate(renamed.table, ID, secret).names == (ID, "new/name")


def overtake(world: World, act: Callable[[World], object]) -> None:
    table = world.table
    step = once(lambda: act(World(table, world.host, world.clock)))
    world.table = FaultyTable(
        table, before_write=lambda writes: step(()) if "OWNER" in str(writes) else None
    )


@pytest.mark.parametrize("name", [ID, "new/name"])
def test_what_the_owner_does_while_a_name_is_looked_for_is_not_undone(
    renamed: World, name: str
) -> None:
    """The write requires the state that the rules were applied to."""
    overtake(renamed, lambda other: rename(other, ID, "owner", "third/name"))
    secret = prove(renamed, name)
    assert finding.authenticate(renamed.table, name, secret).proven == name
    kept = (ID, "new/name", "third/name") if name == ID else (ID, "third/name")
    for one in (ID, "third/name"):
        assert finding.look_up(renamed.table, one).names == kept


def test_a_name_that_its_owner_proves_while_the_first_one_is_looked_for_stays_theirs(
    renamed: World,
) -> None:
    """The digest of the owner is the same before and after."""
    overtake(renamed, lambda other: prove(other, "new/name", own_digest=digest("owner")))
    prove(renamed, ID, OTHER_KEY)
    assert finding.authenticate(renamed.table, "new/name", "owner").names == ("new/name",)


def test_a_badge_that_is_deleted_while_its_name_is_looked_for_leaves_the_name_alone(
    renamed: World,
) -> None:
    """The prover of an alias gets no other id."""
    owned = finding.authenticate(renamed.table, ID, "owner")
    table, reads = renamed.table, itertools.count(1)

    def delete_between_reads(_: str) -> None:
        if renamed.host.asked and next(reads) == 2:
            delete(table, owned)

    renamed.table = FaultyTable(table, before_read=delete_between_reads)
    secret = prove(renamed, "new/name")
    assert finding.authenticate(table, "new/name", secret).names == ("new/name",)
    assert finding.look_up(table, ID).deleted
