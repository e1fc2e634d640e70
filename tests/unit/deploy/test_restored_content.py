"""The check of a restored table finds what a half-restored transaction leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
from moto import mock_aws

from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.counting import keys
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete, Put
from chalicelib.wallets import opening
from chalicelib.wallets.archive import EntryRemoval, batches
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import ENTRY, Posting
from deploy.restore import ContentCheck
from deploy.restored_table import NotRestoredError
from simulation.aws_table import create_table
from vumi.operate.check.report import Finding, FindingKind
from vumi.operate.installations.stack import in_bucket, stored_items

NOW = 1_800_000_000.0
USER, ANOTHER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11", "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d12"
BUCKET = "archive"
SUMMARY: Item = {
    "PK": keys.partition("a/b"),
    "SK": keys.SUMMARY,
    "count": 5,
    "watermark": int(NOW * 1000),
    "today": {"day": "2027-01-15", "h07": 3},
    "version": 2,
}
DAY: Item = {
    "PK": keys.partition("a/b"),
    "SK": keys.DAY + "2027-01-14",
    "views": 2,
    "h08": 2,
    "version": 1,
    "reset": 0,
}


@dataclass
class Restored:
    """A restored table on moto, with a badge, two wallets and the archive."""

    table: DynamoTable
    source: str
    target: str
    findings: list[Finding] = field(default_factory=list)

    def check(self, *, accept: bool = False) -> list[str]:
        """Return what is wrong. Raises `NotRestoredError`."""
        self.findings.clear()
        stored = partial(stored_items, aws_client("dynamodb"))
        archived = in_bucket(aws_client("s3"), BUCKET)
        ContentCheck(stored, archived, self.findings.append, accept).run("vu-mi")
        return self.wrong

    @property
    def wrong(self) -> list[str]:
        return [one.message for one in self.findings if one.kind is FindingKind.WRONG]

    def refused(self) -> list[str]:
        with pytest.raises(NotRestoredError, match=r"vu-mi is wrong .* restore to another time"):
            self.check()
        return self.wrong

    def delete(self, partition: str, sort: str) -> Item:
        [item] = self.table.query(partition, limit=1, first=sort, last=f"{sort}~")
        self.table.write(Delete(Key(str(item["PK"]), str(item["SK"]))))
        return item

    def archive(self, *entries: Item) -> None:
        """Archive removed entries as the consumer does."""
        removals = [EntryRemoval.of(entry, 1 + n, NOW) for n, entry in enumerate(entries)]
        for batch in batches(removals):
            aws_client("s3").put_object(Bucket=BUCKET, Key=batch.name, Body=batch.body)


@pytest.fixture
def restored() -> Iterator[Restored]:
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, "vu-mi")
        aws_client("s3").create_bucket(Bucket=BUCKET)
        table = DynamoTable(client, "vu-mi")
        table.put_all([SUMMARY, DAY])
        source, target = (opening.open_wallet(table, user, 1).wallet_id for user in (USER, ANOTHER))
        ledger = Ledger(table, lambda: NOW)
        ledger.post(Posting("n-1", 500, source))
        ledger.post(Posting("n-2", 200, target, source))
        yield Restored(table, source, target)
        client.close()


def test_a_consistent_table_is_accepted(restored: Restored) -> None:
    assert restored.check() == []
    assert [str(one) for one in restored.findings][1:] == [
        "ok: badges: each count equals the sum of its history",
        "ok: wallets: 2 balances equal their journals",
    ]


def test_entries_that_only_the_archive_has_are_counted(restored: Restored) -> None:
    """TTL had removed them before the restored time; the archive may repeat them."""
    entry = restored.delete(f"WALLET#{restored.target}", ENTRY)
    assert restored.refused() == [
        f"the wallet {restored.target} has 200, but its journal adds up to 0"
    ]
    restored.archive(entry)
    restored.archive(entry, entry)
    assert restored.check() == []


def test_archived_entries_of_after_the_restored_time_are_ignored(restored: Restored) -> None:
    """No balance contains them."""
    [entry] = restored.table.query(f"WALLET#{restored.target}", limit=1, first=ENTRY, last="TX~")
    later: Item = {**entry, "SK": f"{ENTRY}7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "nonce": "n-3"}
    restored.archive(later, {**later, "PK": "WALLET#7ZZZZZZZZZZZZZZZZZZZZZZZZZ"})
    assert restored.check() == []


def test_a_half_transfer_is_found(restored: Restored) -> None:
    """The entry is in both journals, but one wallet has its earlier balance."""
    key = Key(f"WALLET#{restored.target}", "WALLET")
    wallet = restored.table.get(key)
    assert wallet is not None
    restored.table.write(Put({**wallet, "balance": 0}))
    assert restored.refused() == [
        f"the wallet {restored.target} has 0, but its journal adds up to 200"
    ]


def test_a_posting_without_its_nonce_is_found(restored: Restored) -> None:
    """The same request would move the money again."""
    restored.delete(f"WALLET#{restored.source}", "NONCE#n-2")
    assert [message.split(" of ")[0].split(" 0")[0] for message in restored.refused()] == [
        "the entry"
    ] * 2


def test_a_count_that_differs_from_its_history_is_found(restored: Restored) -> None:
    restored.table.write(Put({**SUMMARY, "count": 6}))
    assert restored.refused() == ["the badge a/b has 6 views, but its history has 5"]


def test_an_item_of_another_program_is_found(restored: Restored) -> None:
    aws_client("dynamodb").put_item(
        TableName="vu-mi", Item={"PK": {"S": "x"}, "SK": {"S": "y"}, "a": {"B": b"z"}}
    )
    restored.table.write(Put({"PK": "x", "SK": "z"}))
    undecoded, unknown = restored.refused()
    assert undecoded.startswith("x y: an attribute")
    assert unknown == "x z: vu-mi writes no item with this key"


def test_a_damaged_object_of_the_archive_is_found_and_a_malformed_record_is_not(
    restored: Restored,
) -> None:
    objects = aws_client("s3")
    objects.put_object(Bucket=BUCKET, Key="journal/malformed/x.jsonl.gz", Body=b"no gzip")
    assert restored.check() == []
    objects.put_object(Bucket=BUCKET, Key="journal/2027/01/15/x.jsonl.gz", Body=b"no gzip")
    [message] = restored.refused()
    assert message.startswith("journal/2027/01/15/x.jsonl.gz can't be read: Not a gzipped file")


def test_an_operator_can_accept_wrong_content(restored: Restored) -> None:
    restored.table.write(Put({**SUMMARY, "count": 6}))
    assert len(restored.check(accept=True)) == 1


def test_a_stack_without_wallets_has_no_archive_to_read(restored: Restored) -> None:
    stored = partial(stored_items, aws_client("dynamodb"))
    ContentCheck(stored, in_bucket(None, ""), restored.findings.append).run("vu-mi")
    assert restored.wrong == []
