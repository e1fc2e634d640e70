"""The command `import --from`: the counts of other counters, read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from chalicelib.outgoing.addresses import Allowed
from chalicelib.outgoing.http_client import HttpClient
from chalicelib.settings import Settings
from vumi.cli.options import confirm
from vumi.operate.admin import other_counters
from vumi.operate.admin.counts_file import ImportedCount
from vumi.operate.admin.other_counters import Client, NotReadError, ReadCount


@dataclass(frozen=True, slots=True)
class Source:
    """The pages of a service, and the options of their reading.

    `badge_id` replaces the id of the only page. `address` is that of a copy of the service. With
    `as_json`, the standard output is for a program. Raises `UsageError` and `BadIdError`.
    """

    service: str
    pages: Sequence[str]
    badge_id: str | None = None
    address: str = ""
    yes: bool = False
    as_json: bool = False

    def __post_init__(self) -> None:
        if self.badge_id and len(self.pages) > 1:
            raise click.UsageError(f"--as takes one NAME, not {len(self.pages)}")
        taken: dict[str, str] = {}
        for page, badge_id in self.badges():
            if taken.setdefault(badge_id, page) != page:
                raise click.UsageError(
                    f"{page} and {taken[badge_id]} are both {badge_id} here; import one of them"
                )

    def badges(self) -> Iterator[tuple[str, str]]:
        """Yield each page with the id of its badge. Raises `BadIdError`."""
        for page in dict.fromkeys(self.pages):
            yield page, self.badge_id or other_counters.badge_id_of(self.service, page)


def client_of(settings: Settings) -> HttpClient:
    """Return the client, which calls private networks only if `WEBHOOK_ALLOW` has them."""
    allowed = Allowed.parse(settings.webhook_allow)
    return HttpClient(allowed, max_bytes=other_counters.MAX_REPLY_BYTES)


def read(source: Source, client: Client) -> tuple[list[ImportedCount], list[NotReadError]]:
    """Read each count once, and print it; return the counts, and the errors of the others.

    Asks first if the service counts a reading. Raises `UsageError` without a terminal to ask on.
    """
    if other_counters.COUNTERS[source.service].counts and not source.yes:
        click.echo(
            f"{source.service} counts a view for each reading of a count.", err=source.as_json
        )
        confirm(yes=False)
    rows: list[ImportedCount] = []
    failures: list[NotReadError] = []
    for number, (page, badge_id) in enumerate(source.badges(), 1):
        try:
            found = other_counters.read(client, source.service, page, badge_id, source.address)
        except NotReadError as failure:
            failures.append(failure)
            continue
        click.echo(_describe(source.service, found), err=source.as_json)
        rows.append(ImportedCount(number, found.badge_id, found.count))
    return rows, failures


def _describe(service: str, found: ReadCount) -> str:
    return f"{service} shows {found.count:,} for {found.page}, which is {found.badge_id} here"
