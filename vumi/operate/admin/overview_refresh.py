"""The overview of one machine's badges: its file, and the process that makes it again when asked.

It is also made once an hour, to log the badges whose last full hour is a burst.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from chalicelib import telemetry
from chalicelib.units import Seconds, to_iso8601
from vumi.operate.admin import overview_file
from vumi.operate.admin.overview import Periods
from vumi.operate.admin.overview_file import BadgePage, BadgeQuery, Made

FRESH_SECONDS = 5.0
"""An overview that is younger is not made again."""
FRESH_FACTOR = 10.0
"""An overview is fresh for at least this many times as long as it took to make."""
AGAIN_SECONDS = 60.0
"""The time until the next try after a failure."""
OLD_SECONDS = 60.0
"""Instead of an older overview, whoever asks waits for the new one."""
HOUR_SECONDS = 3_600
WATCH_SECONDS = 5.0
"""The time until an overview that is being made is looked at again."""
WAIT_SECONDS = 2.0
"""The longest wait for a new overview."""


class Overview:
    """The overview of the badges in a folder."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], Seconds],
        command: Sequence[str] = (sys.executable, "-m", "vumi.operate.admin.overview_file"),
    ) -> None:
        self.path = folder / overview_file.FILE
        self.failure = ""
        self._folder = folder
        self._clock = clock
        self._command = command
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._failed_at: Seconds | None = None
        self._logged: set[tuple[str, str]] = set()
        """The bursts of the latest hour that are logged, each with the hour."""

    @property
    def is_making(self) -> bool:
        """Return whether a process makes the next overview."""
        return self._process is not None

    def refresh(self, now: Seconds) -> Made | None:
        """Return the latest overview, if there is one, and begin the next unless it is fresh.

        `now` is the clock of views.
        """
        with self._lock:
            self._collect()
            made = overview_file.read_made(self.path)
            if self._process is None and self._is_due(made):
                self._process = self._start(now)
            if self._process and (made is None or self._clock() - made.at > OLD_SECONDS):
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(WAIT_SECONDS)
                self._collect()
                made = overview_file.read_made(self.path)
        return made

    def watch(self, now: Seconds) -> Seconds:
        """Make an overview each hour, which logs the bursts; return the time until the next step.

        `now` is the clock of views.
        """
        self.refresh(now)
        return WATCH_SECONDS if self.is_making else HOUR_SECONDS - now % HOUR_SECONDS + 60

    def read(self, query: BadgeQuery) -> BadgePage:
        """Return a page of the latest overview, which must exist."""
        return overview_file.read_page(self.path, query)

    def stop(self) -> None:
        """End the process that makes an overview, if there is one."""
        with self._lock:
            if self._process:
                self._process.kill()
                self._process.communicate()
                self._process = None

    def _is_due(self, made: Made | None) -> bool:
        now = self._clock()
        if self._failed_at is not None and 0 <= now - self._failed_at < AGAIN_SECONDS:
            return False
        if made is None:
            return True
        # A clock that was set back must not keep an overview for long.
        return not 0 <= now - made.at < max(FRESH_SECONDS, FRESH_FACTOR * made.took)

    def _start(self, now: Seconds) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603  our own command
            (*self._command, str(self._folder), str(now)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _collect(self) -> None:
        """Note the result of a process that has ended."""
        if self._process is None or self._process.poll() is None:
            return
        _, said = self._process.communicate()
        failed = self._process.returncode != 0
        self._process = None
        self._failed_at = self._clock() if failed else None
        self.failure = (said.strip().splitlines() or ["it was ended"])[-1] if failed else ""
        if failed:
            telemetry.event(logging.ERROR, "overview_failed", reason=self.failure)
        else:
            self._log_bursts()

    def _log_bursts(self) -> None:
        """Log each burst of the last full hour once, the highest ones."""
        made = overview_file.read_made(self.path)
        if made is None:
            return
        hour = to_iso8601(Periods.of(made.at).hour_began)
        self._logged = {one for one in self._logged if one[1] == hour}
        for badge in self.read(BadgeQuery(limit=1)).bursts:
            if (badge.name, hour) not in self._logged:
                self._logged.add((badge.name, hour))
                mean = round(badge.mean_hour, 2)
                fields = {"hour": hour, "views": badge.hour, "mean_hour": mean}
                telemetry.event(logging.WARNING, "badge_burst", badge=badge.name, **fields)
