"""The command `import`: its options, the counts of other counters, its progress and its reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from chalicelib.outgoing.http_client import HttpClient
from chalicelib.outgoing.urls import Allowed
from vumi.cli.options import BADGE_ID, Invocation, confirm, dry_run, examples, on_installation, yes
from vumi.cli.output import as_json, log_change, print_json, print_result, until_stopped, wants_json
from vumi.errors import ReportedError, plural
from vumi.operate.admin import counts, other_counters
from vumi.operate.admin.counts import Import, ImportedCount, ImportOutcome, ImportResult
from vumi.operate.admin.installation import Installation
from vumi.operate.admin.other_counters import Client
from vumi.operate.exchange import files
from vumi.operate.exchange.files import ExportFile
from vumi.operate.exchange.restoring import Restore, RestoreOutcome
from vumi.operate.installations.file import make_file

MAX_REPORTED = 100
"""Kept groups that are named; the number of all follows."""


def _make_file(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  of click's interface
    """Make the file before the command opens it."""
    invocation = context.find_object(Invocation)
    if value and invocation and not context.resilient_parsing:
        if context.params["dry_run"]:
            raise click.UsageError("--new makes a file, but --dry-run changes nothing; give one")
        make_file(invocation.settings.folder)


def _find_file(context: click.Context, _: click.Parameter, given: tuple[str, ...]) -> object:
    """Refuse a missing file before the command opens DATA."""
    is_file = not context.params["service"] and len(given) == 1 and given[0] != "-"
    if is_file and not Path(given[0]).exists():
        raise ReportedError(f"{given[0]} does not exist: name a file, or - for standard input")
    return given


@click.command(
    "import",
    epilog=examples(
        "vumi import vu-mi.jsonl.gz --dry-run",
        "vumi import vu-mi.jsonl.gz --stack vu-mi-prod",
        "DATA=/var/lib/vu-mi vumi import --new vu-mi.jsonl.gz",
        "vumi import counts.csv",
        "vumi import --leancloud Counter.jsonl --site me.example",
        "vumi import --from komarev octocat --dry-run",
        "vumi import --from hits.sh github.com/octocat/hello --as octocat/hello",
    ),
)
@click.argument("sources", metavar="FILE | NAME...", nargs=-1, callback=_find_file)
@click.option(
    "--from",
    "service",
    is_eager=True,
    type=click.Choice(list(other_counters.COUNTERS)),
    help="Read the count of each NAME once from this service, instead of a file.",
)
@click.option(
    "--as", "badge_id", type=BADGE_ID, metavar="ID", help="The badge for the count of one NAME."
)
@click.option(
    "--at",
    "address",
    default="",
    metavar="URL",
    help="The address of your own copy of the service, like https://counter.example.com.",
)
@click.option(
    "--leancloud",
    default="",
    metavar="FILE",
    help="Import the class Counter of an export of LeanCloud, with --site.",
)
@click.option("--site", default="", metavar="ID", help="The site of its pages, like me.example.")
@yes
@dry_run
@click.option(
    "--replace",
    is_flag=True,
    help="Also replace the base of a badge that has another one, or that its owner has reset.",
)
@click.option("--tokens", is_flag=True, help="Also import the API tokens of an export.")
@click.option(
    "--new",
    is_flag=True,
    expose_value=False,
    callback=_make_file,
    help="Make the file in DATA first, where there is none yet.",
)
@as_json
@on_installation
def import_(  # noqa: PLR0913  its options
    installation: Installation,
    sources: Sequence[str],
    *,
    service: str | None,
    badge_id: str | None,
    address: str,
    leancloud: str,
    site: str,
    yes: bool,
    dry_run: bool,
    replace: bool,
    tokens: bool,
) -> None:
    """Import an export, a file of counts, or another counter.

    FILE is - for standard input; it may be compressed by gzip. A CSV file has one line id,count per
    badge. With --from, a NAME is the page in the service's own form: docs/moving-here.md. With
    --leancloud, the pages get the ids of docs/web-pages.md, and the site the sum of them. Each
    count becomes the base of its badge, to which views are added. Of an export, what is missing
    here is imported, and what is here stays. To import again is safe.
    """
    job = Import(
        installation.table, installation.map_parallel, installation.clock, replace, dry_run
    )
    others = sources or service or badge_id or address
    if (others or not site) if leancloud else (site or not sources):
        raise click.UsageError("give a FILE, or names with --from, or --leancloud FILE --site ID")
    if leancloud:
        with files.open_input(leancloud) as opened:
            rows = counts.read_leancloud(leancloud, opened, site)
        run(rows, job)
        return
    if service:
        pages = name_badges(service, sources, badge_id)
        # It calls private networks only if `WEBHOOK_ALLOW` has them.
        allowed = Allowed.parse(installation.settings.webhook_allow)
        client = HttpClient(allowed, max_bytes=other_counters.MAX_REPLY_BYTES)
        if other_counters.COUNTERS[service].counts and not yes:
            _say(f"{service} counts a view for each reading of a count.")
            confirm(yes=False)
        import_from(service, pages, job, client, address)
        return
    if badge_id or address:
        raise click.UsageError("--as and --at need --from, because a file has its own ids")
    if len(sources) > 1:
        raise click.UsageError(f"give one FILE, not {len(sources)}; names need --from")
    _import_file(sources[0], Restore(installation, dry_run, tokens), job)


def _import_file(file: str, whole: Restore, job: Import) -> None:
    with files.open_input(file) as opened:
        if files.is_export(opened):
            if job.replace:
                raise click.UsageError("--replace is for counts; of an export, nothing is replaced")
            restore(files.read(file, opened), whole)
            return
        rows = counts.read(file, opened)
    run(rows, job)


def name_badges(service: str, pages: Sequence[str], badge_id: str | None) -> dict[str, str]:
    """Return the pages of a service by the ids of their badges; `badge_id` is that of the only one.

    Raises `UsageError` and `BadIdError`.
    """
    if badge_id and len(pages) > 1:
        raise click.UsageError(f"--as takes one NAME, not {len(pages)}")
    named: dict[str, str] = {}
    for page in pages:
        one = badge_id or other_counters.badge_id_of(service, page)
        if named.setdefault(one, page) != page:
            raise click.UsageError(
                f"{page} and {named[one]} are both {one} here; import one of them"
            )
    return named


def import_from(
    service: str, pages: Mapping[str, str], job: Import, client: Client, address: str
) -> None:
    """Read each count of another counter once, print it, and import those that were read.

    `address` is that of a copy of the service. Raises `ReportedError` after that, if some could not
    be read.
    """
    rows: list[ImportedCount] = []
    failures: list[str] = []
    for number, (badge_id, page) in enumerate(pages.items(), 1):
        try:
            count = other_counters.read(client, service, page, address)
        except ReportedError as failure:
            failures.append(str(failure))
            continue
        _say(f"{service} shows {count:,} for {page}, which is {badge_id} here")
        rows.append(ImportedCount(number, badge_id, count))
    if rows:
        run(rows, job)
    if failures:
        raise ReportedError("; ".join(failures))


def _say(text: str) -> None:
    """Print a text for people, whose standard output may be for a program."""
    click.echo(text, err=wants_json())


def restore(file: ExportFile, job: Restore) -> None:
    """Import an export and print a report. Raises `ReportedError` if not all was imported."""
    outcomes: Counter[tuple[str, RestoreOutcome]] = Counter()
    kept = 0
    with until_stopped(f"importing {file.count:,} lines") as line:
        for result in job.run(file):
            outcomes[result.kind, result.outcome] += 1
            kept += result.outcome is RestoreOutcome.KEPT
            if result.reason and kept <= MAX_REPORTED:
                text = f"{result.kind} {result.name} is kept: {result.reason}"
                fields = {"kind": result.kind, "name": result.name, "kept": result.reason}
                line.hide()
                print_result(text, fields)
            line.done = result.line
    if not job.dry_run:
        log_change(file.name)
    _report_dry_run(job)
    for (kind, outcome), count in sorted(outcomes.items()):
        print_result(f"{kind}: {count:,} {outcome}", {"kind": kind, outcome.name.lower(): count})
    if kept:
        raise ReportedError(
            f"{plural(kept, 'group')} not imported, and what is here stays: to have all of the"
            " export, import it into a new installation"
        )


def run(rows: Sequence[ImportedCount], job: Import) -> None:
    """Import counts and print a report, with each badge that had another base.

    Raises `ReportedError` if it is interrupted or the storage fails for a minute.
    """
    outcomes: Counter[ImportOutcome] = Counter()
    with until_stopped(f"importing {plural(len(rows), 'badge')}") as line:
        for result in line.count(job.run(rows)):
            outcome = result.outcome
            outcomes[outcome] += 1
            if not job.dry_run and outcome in {ImportOutcome.IMPORTED, ImportOutcome.REPLACED}:
                log_change(result.row.badge_id, {"base": result.before})
            if outcome in {ImportOutcome.REPLACED, ImportOutcome.KEPT}:
                line.hide()
                _report(result)
    _report_dry_run(job)
    if wants_json():
        print_json({one.value: outcomes[one] for one in ImportOutcome})
        return
    for outcome in ImportOutcome:
        click.echo(f"{outcomes[outcome]:,} {outcome.value}")


def _report(result: ImportResult) -> None:
    badge_id, count, outcome = result.row.badge_id, result.row.count, result.outcome.value
    was = "is" if result.outcome is ImportOutcome.KEPT else "was"
    print_result(
        f"{badge_id} {outcome}: its base {was} {result.before:,}, and the import has {count:,}",
        {"id": badge_id, "outcome": outcome, "before": result.before, "count": count},
    )


def _report_dry_run(job: Import | Restore) -> None:
    if job.dry_run and not wants_json():
        click.echo("dry run: nothing was changed; without --dry-run:")
