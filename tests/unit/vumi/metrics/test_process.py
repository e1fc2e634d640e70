"""The metrics of the process."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.vumi.metrics.reading import samples
from vumi.metrics.process import ProcessMetrics


def test_a_process_has_its_start_memory_and_files() -> None:
    found = samples(ProcessMetrics("1.2", 1_000.5).families())
    [build] = (name for name in found if name.startswith("vumi_build_info"))
    assert 'version="1.2"' in build
    assert found["process_start_time_seconds"] == 1_000.5
    assert found["process_cpu_seconds_total"] > 0
    assert 10e6 < found["process_resident_memory_bytes"] < 10e9
    assert 3 <= found["process_open_fds"] <= found["process_max_fds"]
    with Path(os.devnull).open():
        more = samples(ProcessMetrics("1.2", 0).families())
    assert more["process_open_fds"] == found["process_open_fds"] + 1


def test_a_system_without_proc_has_the_other_metrics(tmp_path: Path) -> None:
    found = samples(ProcessMetrics("1.2", 0, tmp_path / "proc").families())
    assert "process_resident_memory_bytes" not in found
    assert "process_start_time_seconds" in found
