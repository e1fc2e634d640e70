"""The content of a stack, whose table has no common moment, while others write.

A badge is read with all its names between two reads of their summaries, until both are the same. So
no fold, count or owner's request comes in between: each view is in the count that was read, or it
is later than the watermark that was read.

Wallets are read as of one moment, the cut. The entries of a wallet are committed in the order of
their ids, and both sides of a transfer have one id. So the entries up to the cut, without those
after it, are a state that the wallets had: a posting in it has all earlier ones of its wallets. The
cut is later than the start by the longest difference of clocks, so that a posting that was answered
before the start is before the cut. The wallets are read when no posting of before the cut can be
under way:

    start           cut                         wallets are read
    |---- clocks ---|---- clocks + a posting ---|----------------> time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.ulids import earliest
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.wallets.wallet import Entry
from vumi.journals import query_all
from vumi.operate.admin.installation import Group, Installation, map_patiently
from vumi.operate.kinds import BADGE, BAN, ENTRY, HEADS, NONCE, STAYING, WALLET, ItemKind, kind_of

TRIES = 50
"""A try fails if another process has written the badge or the wallet meanwhile."""
UNLIMITED = 1_000_000
CLOCKS_SECONDS = 100
"""The maximum difference between the clocks of two processes that post."""
POSTING_SECONDS = 30
"""Longer than a posting takes, from its id to its commit."""
AFTER_EVERY_ID = "~"


def read_groups(installation: Installation, sleep: Callable[[Seconds], None]) -> Iterator[Group]:
    """Yield all groups of an installation, wallets last."""
    cut_at = installation.clock() + CLOCKS_SECONDS
    done: set[str] = set()
    wallets: list[Key] = []
    partitions = groupby(installation.items(), lambda item: text(item, "PK"))
    heads = (head for _, items in partitions if (head := _find_head(next(items))))

    def others() -> Iterator[Key]:
        for head in heads:
            if head.pk.startswith(WALLET.partition):
                wallets.append(head)
            else:
                yield head

    read = partial(_read, installation.table)
    for groups in map_patiently(read, others(), installation.map_parallel):
        names = {text(group.head, "PK") for group in groups}
        if not names & done:
            if len(names) > 1:
                done |= names  # another name of the badge has no groups of its own
            yield from groups
    if wallets:
        wait = cut_at + CLOCKS_SECONDS + POSTING_SECONDS - installation.clock()
        sleep(max(wait, 0))
    read = partial(read_wallet, installation.table, earliest(to_milliseconds(cut_at)))
    for groups in map_patiently(read, wallets, installation.map_parallel):
        yield from groups


def _read(table: Table, key: Key) -> list[Group]:
    """Return the groups of a badge, one for each name, of all bans, or of an event or token."""
    if key.pk.startswith(BADGE.partition):
        return read_badge(table, key.pk.removeprefix(BADGE.partition))
    if key.pk == BAN.partition:
        return [Group(ban) for ban in table.query(key.pk, limit=UNLIMITED)]
    item = table.get(key)
    return [Group(item)] if item else []


def _find_head(item: Item) -> Key | None:
    """Return the key of the head of an item's partition, or None if nothing of it moves."""
    kind = kind_of(item)
    if kind in STAYING:
        return None
    head = next(one for one in HEADS if one.partition == kind.partition)
    return Key(text(item, "PK"), head.sort)


def read_badge(table: Table, badge_id: str) -> list[Group]:
    """Return the groups of all names of a badge. Raises `StorageError`."""
    for _ in range(TRIES):
        names = _find_names(table, badge_id)
        before = _read_summaries(table, names)
        aliases = [text(before.get(keys.summary(name), {}), "alias") for name in names]
        if badge_id not in names or aliases != ["", *names[:1] * (len(names) - 1)]:
            continue  # some name is no alias of the first one, or the first one is an alias
        groups = [_read_name(table, before.get(keys.summary(name)), name) for name in names]
        if _find_names(table, badge_id) == names and _read_summaries(table, names) == before:
            return [group for group in groups if group]
    raise UnavailableError(f"{badge_id} was changed by {TRIES} other writes; try again")


def _find_names(table: Table, badge_id: str) -> list[str]:
    """Return the names of the badge that has this name, its partition first."""
    own = table.get(keys.summary(badge_id)) or {}
    place = text(own, "alias") or badge_id
    owner = table.get(keys.owner(place))
    return [place, *OwnedBadge.of(place, owner).aliases] if owner else [place]


def _read_summaries(table: Table, names: Sequence[str]) -> dict[Key, Item]:
    found = table.get_all([keys.summary(name) for name in names])
    return {key_of(item): item for item in found}


def _read_name(table: Table, head: Item | None, name: str) -> Group | None:
    """Read the live views of a name, and all items before them."""
    partition, watermark = keys.partition(name), Summary.of(name, head or {}).watermark
    first, last = keys.VIEW + earliest(watermark + 1), keys.VIEW + AFTER_EVERY_ID
    views = table.query(partition, first=first, last=last, limit=UNLIMITED, attributes=("PK", "SK"))
    others = table.query(partition, last=keys.TRAFFIC + AFTER_EVERY_ID, limit=UNLIMITED)
    if not (head or views or others):
        return None
    return Group(head or keys.summary(name).item(), [*others, *views])


def read_wallet(table: Table, cut: str, key: Key) -> list[Group]:
    """Return the group of a wallet as it was at the cut, a ULID. Raises `StorageError`.

    The entries are read after the wallet, so all that its balance contains are there, except the
    last one for a moment: the items of a transaction become visible one by one.
    """
    for _ in range(TRIES):
        head = table.get(key)
        if head is None:
            return []
        first, end = ENTRY.sort + cut, ENTRY.sort + AFTER_EVERY_ID
        entries = map(Entry.of, table.query(key.pk, first=first, last=end, limit=UNLIMITED))
        later = {entry.entry_id: entry for entry in entries}
        if (last := text(head, "last")) < cut or last in later:
            kept = (_read_kept(table, cut, key.pk, kind) for kind in (NONCE, ENTRY))
            return [Group(_undo(head, later, cut), chain.from_iterable(kept))]
    raise UnavailableError(f"{key.pk} was changed by {TRIES} other writes; try again")


def _undo(head: Item, later: Mapping[str, Entry], cut: str) -> Item:
    """Return a wallet as it was before the later entries."""
    last, wallet_id = text(head, "last"), text(head, "PK").removeprefix(WALLET.partition)
    applied = [entry.posting for entry_id, entry in later.items() if entry_id <= last]
    change = sum(-one.amount if one.source == wallet_id else one.amount for one in applied)
    return {**head, "balance": number(head, "balance") - change, "last": min(cut, last)}


def _read_kept(table: Table, cut: str, pk: str, kind: ItemKind) -> Iterator[Item]:
    """Return the nonces or the entries of before the cut, a page at a time.

    They do not change, so they need not be read together with the wallet.
    """
    for item in query_all(table, pk, kind.sort, kind.sort + "\U0010ffff"):
        # An entry has its own id, and a nonce that of the entry that it made or refused.
        if (text(item, "entry") or text(item, "SK").removeprefix(ENTRY.sort)) < cut:
            yield item
