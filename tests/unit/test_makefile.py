"""`make help` lists every documented target, and programs of AWS get their region."""

from __future__ import annotations

import os
import re
import subprocess

from simulation.environment import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_documented_target_is_in_a_group() -> None:
    """It is listed once, in the order of the Makefile, and each is a phony target."""
    documented = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.check_output(command, cwd=ROOT, text=True)  # noqa: S603  fixed arguments
    assert re.findall(r"^  make (\S+)", shown, re.MULTILINE) == documented
    phony = " ".join(re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)).split()
    assert set(documented) <= set(phony)
    assert len(set(documented)) == len(documented)


def test_programs_get_the_region_by_the_name_that_they_know() -> None:
    command = ["make", "--no-print-directory", "--eval", "shown: ; @echo $$AWS_DEFAULT_REGION"]
    region = subprocess.run(  # noqa: S603  fixed arguments
        [*command, "shown"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "AWS_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert region.stdout == "eu-central-1\n"
