"""The command `export`: everything as lines of JSON, or the counts as CSV."""

from __future__ import annotations

from typing import IO

import click

from vumi.cli.options import examples, on_installation
from vumi.cli.progress import progress
from vumi.errors import plural
from vumi.operate.admin import counts_file
from vumi.operate.admin.counts_file import CountsExport, format_row
from vumi.operate.admin.installation import Installation, Source
from vumi.operate.exchange import files
from vumi.operate.kinds import TOKEN


@click.command(
    epilog=examples(
        "vumi export vu-mi.jsonl.gz",
        "vumi export --counts counts.csv",
        "vumi export - --stack vu-mi-prod | gzip > vu-mi.jsonl.gz",
    )
)
@click.argument("file")
@click.option("--counts", is_flag=True, help="Export the counts alone, as CSV for any counter.")
@on_installation
def export(installation: Installation, file: str, *, counts: bool) -> None:
    """Export everything as lines of JSON.

    It writes a new FILE, or - for standard output. A FILE whose name ends in .gz is compressed. An
    export of one machine is of one moment. With wallets, an export of a stack waits up to four
    minutes, so that their balances are of one moment too.
    """
    with installation.open_source() as source, files.create(file) as opened:
        if counts:
            _export_counts(CountsExport(source), opened)
        else:
            _export_all(installation, source, opened)


def _export_counts(job: CountsExport, file: IO[bytes]) -> None:
    file.write(format_row(*counts_file.HEADER).encode())
    with progress("exporting counts") as line:
        for name, count in line.count(job.run()):
            file.write(format_row(name, count).encode())
    click.echo(f"exported {plural(line.done, 'count')}", err=True)


def _export_all(installation: Installation, source: Source, file: IO[bytes]) -> None:
    writer, now = files.LineWriter(file), installation.clock()
    exported = files.export(source, installation.settings, now, writer)
    with progress("exporting") as line:
        for _ in line.count(exported):
            pass
    for kind, lines in sorted(writer.counts.items()):
        if kind != files.HEADER:
            note = ", which only import --tokens imports" if kind == TOKEN.name else ""
            click.echo(f"exported {plural(lines, 'line')} of the type {kind}{note}", err=True)
    for reason in source.left_out():
        click.echo(f"not exported: {reason}", err=True)
