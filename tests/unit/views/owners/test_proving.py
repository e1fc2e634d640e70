"""The proof of ownership: its line, its secret, its search, and the badge that it gives away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from chalicelib.http.tokens import digest, new_token
from chalicelib.outgoing.fetching import BusyError, FetchError
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import Table
from chalicelib.views import counting, keys
from chalicelib.views.owners import changing, claiming, deleting, finding, proving
from chalicelib.views.owners.changing import BadgeChange
from chalicelib.views.owners.errors import TakenError, WrongSecretError
from chalicelib.views.owners.places import Place
from chalicelib.views.owners.proving import NotProvenError, Proof, ProofSearch, TooSoonError
from simulation.clocks import NOON, Clock
from simulation.hosts import Host
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, once, raising
from simulation.views import WINDOWS, days, fold, put_summary, shown, store

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
        return search.prove(proof, place, self.clock()).secret

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


def test_a_challenge_is_of_one_id_and_one_key() -> None:
    """The lines are fixed, because they stand in the files of owners."""
    assert proof().challenge == (
        "vu-mi-7c01bf9aba7505d5eb2a45b2c2346e31d448a440b9e8d176026b6c37625e55cc"
    )
    assert proving.CHALLENGE.fullmatch(proof().challenge)
    others = {proof().challenge, proof("octocat/hell0").challenge, proof(key="l" * 43).challenge}
    assert len(others) == 3
    assert KEY not in proof().challenge
    assert KEY not in repr(proof())


def test_a_secret_is_of_one_id_and_one_key_and_not_in_the_challenge() -> None:
    secrets = {proof().secret, proof("octocat/hell0").secret, proof(key="l" * 43).secret}
    assert len(secrets) == 3
    assert all(re.fullmatch("[A-Za-z0-9_-]{32}", secret) for secret in secrets)
    assert proof().digest == digest(proof().secret)
    assert proof().secret == "DfUXAjcGOeSmp6w4O-2-mnLaoUENbRkM"  # noqa: S105  of the key of this test


def test_an_owner_with_a_secret_of_their_own_gets_none() -> None:
    own = proof(own_digest=digest("my own"))
    assert (own.secret, own.digest) == ("", digest("my own"))
    assert own.challenge == proof().challenge


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
    [
        ["", "  {}\t", "other"],
        ["vu-mi-" + "0" * 64, "{}\r"],
        ["\udcff\udcfe", "{}"],
    ],
)
def test_the_challenge_is_a_line_of_the_file(world: World, lines: list[str]) -> None:
    world.host.lines = [line.format(proof().challenge) for line in lines]
    assert world.prove(proof())


@pytest.mark.parametrize("line", ["", "x{}", "{}x", "{}{}", "# {}", "{} {}"])
def test_a_part_of_a_line_proves_nothing(world: World, line: str) -> None:
    challenge = proof().challenge
    world.host.lines = [line.format(challenge, challenge), challenge.upper(), challenge[:-1]]
    with pytest.raises(NotProvenError) as refusal:
        world.prove(proof())
    assert refusal.value.details == {
        "challenge": challenge,
        "url": PLACE.url,
        "found": "the file does not have this line",
    }
    assert world.owner() == {}


def test_a_file_that_can_not_be_fetched_proves_nothing(world: World) -> None:
    world.host.failure = FetchError("there is no file (answered 404)")
    with pytest.raises(NotProvenError, match=r"not found: there is no file \(answered 404\)\. Add"):
        world.prove(proof())
    world.wait()
    world.host.failure = None
    world.publish(proof())
    assert world.prove(proof())


def test_the_reader_of_the_file_can_not_use_it(world: World) -> None:
    """Another key has another line, and the challenge is no key."""
    world.publish(proof())
    for key in ("l" * 43, proof().challenge[:43]):
        with pytest.raises(NotProvenError):
            world.prove(proof(key=key))
        world.wait()
    assert world.owner() == {}


def test_the_file_of_one_id_does_not_prove_another(world: World) -> None:
    world.publish(proof("octocat/hell0"))
    with pytest.raises(NotProvenError):
        world.prove(proof())


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


def test_another_id_is_looked_for_immediately(world: World) -> None:
    with pytest.raises(NotProvenError):
        world.prove(proof())
    with pytest.raises(NotProvenError):
        world.prove(proof("octocat/other"))


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
    assert item == {**dict(zip(("PK", "SK"), LOOK, strict=True)), "at": NOON, "ttl": NOON + 3_600}


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
    squatter = claiming.claim(table, ID, 7, NOON - 9 * 86_400).secret
    owned = finding.authenticate(table, ID, squatter)
    changing.change(table, owned, BadgeChange(name="mona/hello", frozen=True), NOON - 8 * 86_400)
    for back in (7, 6, 5):
        at = NOON - back * 86_400
        assert store(table, counting.read(table, ID).view(WINDOWS, at), now=at) == {}
        fold(table, at + 3_600, ID)
    before = (shown(table, ID), days(table, ID), table.get(keys.summary(ID)))
    world.publish(proof("mona/hello"))
    secret = world.prove(proof("mona/hello"))
    assert (shown(table, ID), days(table, ID), table.get(keys.summary(ID))) == before
    for name in (ID, "mona/hello"):
        assert finding.authenticate(table, name, secret).names == (ID, "mona/hello")
        with pytest.raises(WrongSecretError):
            finding.authenticate(table, name, squatter)


@pytest.mark.parametrize(
    "attributes", [{"count": 9, "version": 3}, {"base": 5, "version": 1}, {"base": 5}]
)
def test_a_badge_without_an_owner_can_be_proven(world: World, attributes: dict[str, int]) -> None:
    put_summary(world.table, ID, **attributes)
    count = shown(world.table, ID)
    world.publish(proof())
    assert finding.authenticate(world.table, ID, world.prove(proof())).is_claimed
    assert shown(world.table, ID) == count


def test_a_badge_with_live_views_alone_can_be_proven(world: World) -> None:
    store(world.table, counting.read(world.table, ID).view(WINDOWS, NOON))
    world.publish(proof())
    assert world.prove(proof())
    assert shown(world.table, ID) == 1
    fold(world.table, NOON + 3_600, ID)
    assert shown(world.table, ID) == 1


def test_a_deleted_badge_can_be_proven_and_begins_from_0(world: World) -> None:
    secret = claiming.claim(world.table, ID, 7, NOON).secret
    owned = finding.authenticate(world.table, ID, secret)
    deleting.delete(world.table, owned, NOON, WINDOWS.retention)
    world.publish(proof())
    assert finding.authenticate(world.table, ID, world.prove(proof())).deleted is False
    summary = world.table.get(keys.summary(ID)) or {}
    assert not {"deleted", "ttl"} & summary.keys()
    assert shown(world.table, ID) == 0


def test_a_repeated_request_has_the_same_answer_without_a_search(world: World) -> None:
    world.publish(proof())
    table = world.table
    world.table = FaultyTable(table, after_write=raising(None, None, Unavailable("no answer")))
    with pytest.raises(Unavailable):
        world.prove(proof())
    world.table = table
    world.host.lines = []
    assert [world.prove(proof()) for _ in range(3)] == [proof().secret] * 3
    assert len(world.host.asked) == 1


def test_a_proof_with_a_digest_sets_the_secret_of_the_owner(world: World) -> None:
    world.publish(proof())
    assert world.prove(proof(own_digest=digest("my own"))) == ""
    assert finding.authenticate(world.table, ID, "my own").badge_id == ID


def test_a_lost_secret_is_replaced_by_another_proof(world: World) -> None:
    world.publish(proof())
    lost = world.prove(proof())
    world.wait()
    world.publish(proof(key="l" * 43))
    secret = world.prove(proof(key="l" * 43))
    assert finding.authenticate(world.table, ID, secret).proven == ID
    with pytest.raises(WrongSecretError):
        finding.authenticate(world.table, ID, lost)


def test_a_claim_that_was_proven_is_never_void(world: World) -> None:
    world.publish(proof())
    secret = world.prove(proof())
    with pytest.raises(TakenError):
        claiming.claim(world.table, ID, 0, NOON + 9 * claiming.CLAIM_SECONDS)
    assert finding.authenticate(world.table, ID, secret).is_claimed


# ---- renamed badges


@pytest.fixture
def renamed(world: World) -> Iterator[World]:
    """Yield a badge whose owner renamed it, from `ID` to `new/name`."""
    secret = claiming.claim(world.table, ID, 7, NOON).secret
    owned = finding.authenticate(world.table, ID, secret)
    changing.change(world.table, owned, BadgeChange(name="new/name"), NOON)
    yield world
    assert finding.look_up(world.table, ID).names == (ID, "new/name")
    assert shown(world.table, "new/name") == 7


@pytest.mark.parametrize("name", [ID, "new/name"])
def test_a_proof_of_any_name_takes_a_badge_whose_owner_has_proven_none(
    renamed: World, name: str
) -> None:
    """So no squatter keeps an id by renaming its badge."""
    renamed.publish(proof(name))
    secret = renamed.prove(proof(name))
    assert finding.authenticate(renamed.table, "new/name", secret).proven == name


def test_a_proof_of_an_earlier_name_does_not_take_what_a_later_one_has_proven(
    renamed: World,
) -> None:
    """So nobody gets a badge with the name that its repository had before."""
    renamed.publish(proof(ID), proof("new/name"))
    secret = renamed.prove(proof("new/name"))
    with pytest.raises(TakenError, match="has proven a later name of the badge: ask the operator"):
        renamed.prove(proof(ID))
    assert len(renamed.host.asked) == 1
    assert finding.authenticate(renamed.table, ID, secret).proven == "new/name"


def test_a_proof_of_the_later_name_takes_the_badge_back(renamed: World) -> None:
    renamed.publish(proof(ID), proof("new/name"))
    renamed.prove(proof(ID))
    secret = renamed.prove(proof("new/name"))
    assert finding.authenticate(renamed.table, ID, secret).proven == "new/name"


def test_a_name_that_is_proven_while_another_is_looked_for_is_kept(renamed: World) -> None:
    """The rank is checked in the step that writes, too."""
    renamed.publish(proof(ID), proof("new/name"))
    table, other = renamed.table, World(renamed.table, renamed.host, renamed.clock)

    def overtake(writes: object) -> None:
        if "OWNER" in str(writes):
            step(())

    step = once(lambda: other.prove(proof("new/name")))
    renamed.table = FaultyTable(table, before_write=overtake)
    with pytest.raises(TakenError):
        renamed.prove(proof(ID))
    renamed.table = table
    assert finding.look_up(table, ID).proven == "new/name"
