"""README.md: short, in its order, and without a command or a figure that nothing checks.

`tests/end_to_end/test_readme.py` runs what needs a server.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePath

import pytest

from bench.speed import hits
from chalicelib.settings import settings_of
from chalicelib.version import VERSION
from tests import readme
from tests.readme import Command
from vumi.cli.program import vumi
from vumi.settings import StandaloneSettings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MOST_WORDS = 900
SCREEN = 30
"""The lines of a first screen."""
HEADINGS = [
    "vu-mi",
    "A badge in 60 seconds",
    "Put it into your README",
    "Run it for real",
    "Guarantees and limits",
    "Measured beside others",
    "Where to go on",
]
NAMES = ("boto3",)
"""The names with a digit that is no figure."""
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
ALTERNATIVES = "## Alternatives, and where the reads take over"
A_MILLION = "$ per million views: 10 live, 1,000 a day"
IDLE = "## $ a month of a stack that nobody uses: {}"


def test_it_has_at_most_900_words() -> None:
    assert readme.words(readme.TEXT) <= MOST_WORDS


def test_it_has_its_sections_in_order() -> None:
    assert readme.headings() == HEADINGS


def test_make_run_and_make_test_are_on_the_first_screen() -> None:
    first = readme.TEXT.splitlines()[:SCREEN]
    shown = [line.partition("#")[0].strip() for line in first]
    assert shown.index("make run") + 1 == shown.index("make test")


def test_our_own_badge_comes_before_that_of_shields() -> None:
    lines = readme.markdown_lines()
    assert [line for line in lines if "img.shields.io" in line] == lines[-1:]
    assert "/api/v1/views.svg?" in lines[0]


# ---- figures


def cell(document: str, heading: str, row: str, column: int) -> str:
    """Return a cell of the table under a heading, of the row that begins so."""
    section = (DOCS / document).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    [found] = [
        line for line in section.partition("\n## ")[0].splitlines() if line.startswith(f"| {row}")
    ]
    return found.strip("|").split("|")[column].strip()


def number(text: str) -> float:
    """Return the number of a cell, without its unit."""
    return float(re.findall(r"[\d,.]+", text)[0].replace(",", ""))


def compared(subject: str, ours: str, other: str, beside: str) -> str:
    """Return a row of the table of ratios, whose subject names the unit."""
    shown = [figure.removesuffix(" ms") for figure in (ours, other)]
    return f"{subject} | {' | '.join(shown)}, {beside} | {ratio(ours, other)}"


def ratio(ours: str, other: str) -> str:
    return f"{number(ours) / number(other):.2g}"


def rows() -> Iterator[str]:
    """Yield the rows of the table as the documents of the programs have their figures."""
    get, cold, busy = (
        partial(cell, "benchmarks.md", heading)
        for heading in ("## A GET on Lambda", "## Cold starts", "## A busy badge")
    )
    yield compared(
        "ms of processor time for a GET on Lambda, 1,000 live views",
        get("1,000", 1),
        get("1,000", 2),
        "decoding by boto3.resource",
    )
    yield compared(
        "ms of processor time for a cold start of get_views",
        cold("`get_views`", 1),
        cold("`get_views`", 3),
        "with boto3.resource",
    )
    yield compared(
        "$ per million views on AWS, 1,000 a day",
        cell("cost.md", ALTERNATIVES, A_MILLION, 1),
        cell("cost.md", ALTERNATIVES, A_MILLION, 2),
        "the original design behind a REST API",
    )
    yield compared(
        "$ of DynamoDB per million views of a busy badge",
        busy("$ of all units", 1),
        busy("$ of all units", 2),
        "storing each view",
    )


def sentences() -> Iterator[str]:
    """Yield the parts of the texts that have figures, as other files have them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield f"Python {project['requires-python'].removeprefix('>=')} or newer"
    default = {setting.name: setting.default for _, setting in settings_of(StandaloneSettings)}
    yield f"serves badges on http://{default['HOST']}:{default['PORT']}"
    million = cell("cost.md", ALTERNATIVES, A_MILLION, 1)
    yield f"A million views cost ${million}, if each badge has 1,000 a day."
    idle = cell("cost.md", IDLE.format("events and wallets too"), "together", 4)
    alone = cell("cost.md", IDLE.format("badges alone"), "together", 4)
    yield f"costs ${idle} a month beyond what AWS gives for free, and ${alone} with badges alone"
    cached = cell("limits.md", "## Badges", "through shields.io", 1)
    minutes = re.findall(r"at most one view per (\d+) minutes", cached)[0]
    yield f"at most one view in {minutes} minutes"
    exact = re.findall(r"up to (\d+) views", cell("limits.md", "## AWS", "one badge", 1))[0]
    yield f"up to {exact} views a second"
    rate, yardstick = (
        cell("benchmarks.md", "## Hits", row, 1) for row in (hits.MANY, f"`{hits.YARDSTICK}`")
    )
    yield f"stores and answers {rate} views a second"
    yield f"which stores nothing, answers {yardstick}: the ratio is {ratio(rate, yardstick)}."
    yield f"the next visitor sees {readme.continues_at()}."
    yield from (text for text, _ in alternatives())


def test_from_a_clone_to_a_badge_takes_less_than_the_heading_says() -> None:
    took = number(cell("install.md", "## Measured", "`git clone`, `make run`", 1))
    [seconds] = re.findall(r"A badge in (\d+) seconds", readme.TEXT)
    assert took < int(seconds)


def alternatives() -> Iterator[tuple[str, str]]:
    """Yield the alternative text of each badge, and the title that its picture has."""
    for text, name in re.findall(r"!\[([^\]]*)\]\(docs/(pictures/[\w.-]+)\)", readme.TEXT):
        [title, *_] = re.findall("<title>(.*?)</title>", (DOCS / name).read_text(encoding="utf-8"))
        yield text, title


@pytest.mark.parametrize(("text", "title"), [*alternatives()])
def test_the_text_of_a_picture_has_only_figures_of_the_picture(text: str, title: str) -> None:
    assert set(FIGURE.findall(text)) <= set(FIGURE.findall(title))


@pytest.mark.parametrize("claim", [*sentences(), *rows()])
def test_a_figure_is_that_of_its_document(claim: str) -> None:
    assert sum(claim in text for text in readme.prose()) == 1


def test_no_figure_is_without_a_document() -> None:
    """To add a figure, add its sentence to `sentences`, made of the figure of a document."""
    claims = [*sentences(), *rows(), *NAMES, HEADINGS[1]]
    for text in readme.prose():
        rest = text
        for claim in claims:
            rest = rest.replace(claim, "")
        assert not re.search(r"\d", rest), text


# ---- commands


def test_each_block_and_each_command_is_of_a_kind_that_is_checked() -> None:
    assert {fence.info for fence in readme.fences()} == readme.LANGUAGES
    assert {command.kind for command in readme.commands()} == set(readme.KINDS)


@pytest.mark.parametrize("command", readme.commands("make"), ids=str)
def test_a_target_of_make_exists_and_its_help_names_the_variables(command: Command) -> None:
    target, *variables = command.arguments
    [described] = re.findall(rf"^{target}:.*? ## (.*)$", MAKEFILE, re.MULTILINE)
    assert {variable.partition("=")[0] for variable in variables} <= set(
        re.findall(r"\b[A-Z]+(?==)", described)
    )


def test_make_builds_the_wheel_that_pipx_installs() -> None:
    """`tests/end_to_end/test_wheel.py` installs it."""
    [command] = readme.commands("pipx")
    what, wheel = command.arguments
    assert what == "install"
    assert f"--wheel-dir {PurePath(wheel).parent} ." in MAKEFILE
    assert fnmatch(f"vu_mi-{VERSION}-py3-none-any.whl", PurePath(wheel).name)


@pytest.mark.parametrize("command", readme.commands("vumi"), ids=str)
def test_the_program_takes_a_command_with_its_options(command: Command) -> None:
    context = vumi.make_context("vumi", list(command.arguments))
    name, chosen, rest = vumi.resolve_command(context, command.arguments)
    assert name
    assert chosen
    chosen.make_context(name, rest, parent=context)
    settings = {setting.name for _, setting in settings_of(StandaloneSettings)}
    assert set(command.variables) <= settings


# ---- lines to copy


def test_the_id_of_every_line_and_transcript_is_the_same() -> None:
    ids = set(re.findall(r"(?:\?|%3F)id(?:=|%3D)(\w+%(?:25)?2F\w+)[&)'\s]", readme.TEXT))
    assert ids == {"octocat%2Fhello", "octocat%252Fhello"}


def test_a_transcript_of_json_is_valid() -> None:
    answers = [
        json.loads(line) for _, output in readme.transcripts() for line in output if line[0] == "{"
    ]
    assert [answer["message"] for answer in answers] == ["0", "1"]


# ---- the benchmarks


def test_the_answers_of_the_benchmarks_are_those_of_their_tables() -> None:
    head, *sections = (DOCS / "benchmarks.md").read_text(encoding="utf-8").split("\n## ")
    figures = re.findall(r"\d[\d,.]*\d", head.partition("`make bench`")[0])
    tables = [line for part in sections for line in part.splitlines() if line.startswith("|")]
    assert len(figures) > 5
    assert set(figures) <= set(re.findall(r"\d[\d,.]*\d", "\n".join(tables)))
