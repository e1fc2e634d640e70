"""The commands `backup`, `restore` and `check`: their usage, their output, and stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.storage.items import Item
from chalicelib.wallets import wallet as wallets
from simulation.aws_table import create_table
from tests.unit.vumi.commands import Vumi
from tests.unit.vumi.operate.check.test_check import break_page
from vumi.cli.options import Invocation
from vumi.storage.database import FILE, WAY_BACK, Database

NOW = 1_795_367_700.0
"""2026-11-22T17:15:00Z."""
STACK = "vu-mi-prod"
OUTPUTS = {"TableName": "vu-mi-table", "ArchiveBucket": "archive"}
BADGE: Item = {"PK": "USER#a", "SK": "VIEWS", "count": 1, "version": 1}


@pytest.fixture(autouse=True)
def data(vumi: Vumi, tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    vumi.invocation = Invocation({"DATA": str(data)}, lambda: NOW)
    Database(data / FILE).close()
    return data


def test_backups_and_the_restore_print_what_they_made(
    vumi: Vumi, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "all").mkdir(mode=0o700)
    older, new = (
        tmp_path / "all/vu-mi-2026-01-01T000000Z",
        tmp_path / "all/vu-mi-2026-11-22T171500Z",
    )
    complete = "has the file and 0 objects of the archive, and is correct"
    assert vumi("backup", str(older)) == 0
    assert vumi.out == f"{older} {complete}.\n"
    assert vumi("backup", "--keep", "1", str(tmp_path / "all")) == 0
    assert vumi.out == f"{new} {complete}.\nremoved {older}\n"
    assert vumi("restore", "--aside", str(new)) == 0
    before = f"The folder before is {data}.2026-11-22T171500Z; remove it when you need nothing in"
    assert vumi.out == f"{data} {complete}; start vu-mi.\n{before} it.\n"
    new, restored = tmp_path / "new", tmp_path / "restored"
    assert vumi.json("backup", str(new)) == [{"backup": str(new), "objects": 0, "removed": []}]
    vumi.invocation = Invocation({"DATA": str(restored)}, lambda: NOW)
    found = vumi.json("restore", str(new))
    assert found == [{"data": str(restored), "objects": 0, "before": None}]


def test_check_prints_findings_as_json(vumi: Vumi) -> None:
    found = {"kind": "ok", "message": "badges: each count equals the sum of its history"}
    assert found in vumi.json("check")


def test_a_broken_file_is_replaced_by_its_backup(vumi: Vumi, data: Path, tmp_path: Path) -> None:
    assert vumi("backup", str(tmp_path / "backup")) == 0
    break_page(data / FILE)
    assert vumi("check") == 3
    assert "database disk image is malformed" in vumi.out
    assert vumi.err.endswith(f"{WAY_BACK}\n")
    assert vumi("restore", "--aside", str(tmp_path / "backup")) == 0
    assert vumi("check") == 0


@pytest.fixture
def table() -> Iterator[DynamoTable]:
    """Return the table of a stack with a wallet."""
    with mock_aws():
        outputs = {name: {"Value": value} for name, value in OUTPUTS.items()}
        topic = {"Topic": {"Type": "AWS::SNS::Topic"}}
        boto3.client("cloudformation").create_stack(
            StackName=STACK, TemplateBody=json.dumps({"Resources": topic, "Outputs": outputs})
        )
        boto3.client("s3").create_bucket(Bucket=OUTPUTS["ArchiveBucket"])
        client = aws_client("dynamodb")
        create_table(client, OUTPUTS["TableName"])
        table = DynamoTable(client, OUTPUTS["TableName"])
        wallets.open_wallet(table, "u-1", 1)
        yield table
        client.close()


def test_the_check_of_a_stack_reads_its_table_or_a_restored_one_and_its_archive(
    vumi: Vumi, table: DynamoTable
) -> None:
    """An object of malformed records is not read."""
    archive = boto3.client("s3")
    malformed = "journal/malformed/x.jsonl.gz"
    archive.put_object(Bucket=OUTPUTS["ArchiveBucket"], Key=malformed, Body=b"no gzip")
    assert vumi("check", "--stack", STACK) == 0
    assert vumi.out.splitlines() == [
        "ok: items: wallet 1, wallet of a user 1",
        "ok: badges: each count equals the sum of its history",
        "ok: wallets: each balance equals its journal (1 wallet)",
        "the stack vu-mi-prod has no errors.",
    ]
    table.put_all([BADGE])
    undecoded: Any = {"PK": {"S": "x"}, "SK": {"S": "y"}, "a": {"B": b"z"}}
    boto3.client("dynamodb").put_item(TableName=OUTPUTS["TableName"], Item=undecoded)
    archive.put_object(Bucket=OUTPUTS["ArchiveBucket"], Key="journal/2027/x.gz", Body=b"no gzip")
    assert vumi("check", "--stack", STACK) == 3
    assert "wrong: the badge a has 1 view, but its history has 0" in vumi.out
    assert "wrong: x y: an attribute" in vumi.out
    assert "wrong: journal/2027/x.gz can't be read: Not a gzipped file" in vumi.out
    assert vumi.err.startswith("Error: the stack vu-mi-prod has 3 errors; docs/backups.md")
    create_table(boto3.client("dynamodb"), "restored")
    assert vumi("check", "--stack", STACK, "--table", "restored") == 3
    assert vumi.out.startswith("ok: items: none\n")
    assert vumi.err.startswith("Error: the table restored has 1 error;")
