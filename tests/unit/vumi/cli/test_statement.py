"""The command `statement`: its table, its JSON, its bounds and its exit status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.storage.items import key_of
from simulation.installation import MemoryInstallation, invoke_on
from tests.unit.vumi.operate.admin.test_statement import Bank
from vumi.cli.program import execute
from vumi.cli.statement import HEADER


@pytest.fixture
def installation() -> MemoryInstallation:
    return MemoryInstallation()


@pytest.fixture
def bank(installation: MemoryInstallation) -> Bank:
    """Return wallets with a deposit on each of two days, and a transfer on the third."""
    bank = Bank(installation.table)
    for amount in (5, 6):
        bank.post(amount, bank.a)
    bank.post(3, bank.b, bank.a)
    return bank


def test_the_entries_are_a_table(
    installation: MemoryInstallation, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["statement", bank.a], invoke_on(installation)) == 0
    assert capsys.readouterr().out.splitlines() == [
        HEADER,
        "2027-01-15T08:00:00.000Z  deposit                     +5                     5",
        "2027-01-16T08:00:00.000Z  deposit                     +6                    11",
        f"2027-01-17T08:00:00.000Z  transfer                    -3                     8  {bank.b}",
        "The balance is 8, and the journal adds up to it.",
    ]


def print_as_json(
    capsys: pytest.CaptureFixture[str], installation: MemoryInstallation, *arguments: str
) -> list[dict[str, Any]]:
    assert execute(["statement", *arguments, "--json"], invoke_on(installation)) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_has_an_entry_per_line_and_the_balance(
    installation: MemoryInstallation, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, end = print_as_json(capsys, installation, bank.b)
    assert entry.pop("id") == bank.entries(bank.b)[0]["SK"].removeprefix("TX#")  # type: ignore[union-attr]
    assert entry == {
        "at": "2027-01-17T08:00:00.000Z",
        "kind": "transfer",
        "change": "3",
        "balance": "3",
        "from": bank.a,
        "to": bank.b,
        "nonce": "nonce-1800172800.0",
    }
    assert end == {"wallet": bank.b, "balance": "3", "journal": "3"}


@pytest.mark.parametrize(
    ("bounds", "balances"),
    [
        (["--since", "2027-01-16"], ["11", "8"]),
        (["--until", "2027-01-16"], ["5"]),
        (["--since", "2027-01-15T08:00:00Z", "--until", "2027-01-17T09:00:00+01:00"], ["5", "11"]),
        (["--since", "2027-01-15T08:00:01"], ["11", "8"]),
    ],
)
def test_bounds_leave_entries_out_and_keep_the_balances(
    installation: MemoryInstallation,
    bank: Bank,
    capsys: pytest.CaptureFixture[str],
    bounds: list[str],
    balances: list[str],
) -> None:
    *entries, end = print_as_json(capsys, installation, bank.a, *bounds)
    assert [entry["balance"] for entry in entries] == balances
    assert end["journal"] == "8"


def test_a_wrong_bound_is_wrong_usage(
    installation: MemoryInstallation, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["statement", bank.a, "--since", "monday"], invoke_on(installation)) == 2
    told = "give 2026-11-22 or 2026-11-22T17:15:00Z, not 'monday'"
    assert told in capsys.readouterr().err


def test_a_balance_that_differs_from_the_journal_has_status_3(
    installation: MemoryInstallation, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    installation.memory.remove(key_of(bank.entries(bank.a)[0]))
    assert execute(["statement", bank.a], invoke_on(installation)) == 3
    assert capsys.readouterr().err == (
        f"Error: the wallet {bank.a} has 8, but its journal adds up to 3; entries reach the archive"
        " some minutes after they leave the table, so run it again in 15 minutes\n"
    )
