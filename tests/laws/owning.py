"""An owner and his one badge: what he may do to it, and what the ledger hears of it."""

from __future__ import annotations

from contextlib import suppress

from chalicelib.ports import StorageError, Table
from chalicelib.views import keys, owner
from chalicelib.views.owner import Change
from tests.laws import ledger
from tests.laws.ledger import Ledger

OWNED = "mine"
OTHER_NAME = "mine too"
CHANGES = [
    Change(reset=True),
    Change(reset=True, base=3),
    Change(base=1_000),
    Change(base=0),
    Change(frozen=True),
    Change(frozen=False),
    Change(name=OTHER_NAME),
    Change(name=OWNED),
    Change(reset=True, frozen=True, name=OTHER_NAME),
]


class Owner:
    """Whoever has the badge now; what of his doings was done, the table tells."""

    def __init__(self) -> None:
        self._owned: owner.Owned | None = None

    def claim(self, table: Table, now: float) -> None:
        """Claim the badge, if nobody has it."""
        if self._owned is None:
            with suppress(owner.TakenError, StorageError):
                secret = owner.claim(table, OWNED, 5, now)
                self._owned = owner.authenticate(table, OWNED, secret)

    def change(self, table: Table, wanted: Change, now: float) -> None:
        """Change the badge, through a table that may fail."""
        if self._owned is not None:
            with suppress(owner.TakenError, StorageError):
                owner.change(table, self._owned, wanted, now)

    def delete(self, table: Table, now: float) -> None:
        """Delete the badge, through a table that may fail."""
        if self._owned is not None:
            with suppress(owner.TakenError, StorageError):
                owner.delete(table, self._owned, now)

    def tell(self, told: Ledger, table: Table) -> None:
        """Tell the ledger what the badge and its names are now."""
        for name in (OWNED, OTHER_NAME):
            told.own(name, ledger.Owned.of(table.get(keys.user(name)) or {}))
        item = table.get(keys.owner(OWNED))
        self._owned = owner.Owned(OWNED, item) if item else None
