"""One machine: the memory and disk space that the server needs for a million views.

The views are of 2,000 badges and expire after a second or two, so a million views are stored,
folded and removed during the measurement.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.speed.hits import IDS, SHORT_LIVED
from bench.speed.load import Load, Request
from bench.speed.server import CONNECTIONS, Server, running
from simulation.report import Report, judged
from vumi.storage.database import FILE

VIEWS = 1_000_000
PARTS = 20
WARM_UP = 4
"""Parts until the server has done everything once; after them nothing should grow."""
AIM_GROWTH = 1.05
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """The server's memory and file in bytes after this many views, and the last part's load."""

    views: int
    resident: int
    file: int
    load: Load


def measure() -> Report:
    """Load the server part by part, and read its sizes after each part."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), **SHORT_LIVED) as server:
        seen = [_load_part(server, part) for part in range(1, PARTS + 1)]
        settled = server.settle()
        shown = server.shown([f"bench%2F{number}" for number in range(IDS)])
    failed = sum(part.load.failed for part in seen)
    wrong = {number for number in shown.values() if number != VIEWS // IDS}
    growth = seen[-1].resident / seen[WARM_UP - 1].resident
    aim = judged(f"at most {AIM_GROWTH} times from there on", met=growth <= AIM_GROWTH)
    return Report(
        title=f"memory: {VIEWS:,} views on one machine, {CONNECTIONS} keep-alive connections",
        head=("views", "resident MB", "file MB", "per second", "aim"),
        rows=[_row(part, aim if part is seen[-1] else "") for part in _select(seen)],
        notes=(
            f"from {seen[WARM_UP - 1].views:,} views to {VIEWS:,} it grew {growth:.3f} times",
            f"all folded {settled:.1f} s after the last view; {len(wrong)} counts wrong",
        ),
        failure=f"{failed} failed, counts {sorted(wrong)}" if failed or wrong else "",
    )


def _load_part(server: Server, part: int) -> Seen:
    number = VIEWS // PARTS
    requests = [Request(f"/api/v1/views?id=bench%2F{place % IDS}") for place in range(number)]
    load = server.load(requests)
    file = sum(path.stat().st_size for path in server.folder.glob(f"{FILE}*"))
    return Seen(part * number, resident(server.process.pid), file, load)


def resident(process_id: int) -> int:
    """Return the bytes of memory of a process. Source: proc(5), `/proc/pid/statm`."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _select(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Select the first part, the one that ends the warm-up, and every fourth after it."""
    return [seen[0], *seen[WARM_UP - 1 :: WARM_UP]]


def _row(part: Seen, aim: str) -> Sequence[str]:
    sizes = (f"{size / MEGABYTE:,.1f}" for size in (part.resident, part.file))
    return (f"{part.views:,}", *sizes, f"{part.load.per_second:,.0f}", aim)
