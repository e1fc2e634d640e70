"""The files that GitHub and editors read agree with the project."""

from __future__ import annotations

import json
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import bytecode
from simulation.environment import ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def made_targets(command: str) -> set[str]:
    """Return the targets that a command makes, at least one."""
    found = set(re.findall(r"\bmake ([a-z-]+)", command))
    assert found
    return found


def test_the_devcontainer_installs_what_ci_does_and_makes_a_target() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    command = container["postCreateCommand"]
    packages = command.partition("--no-install-recommends ")[2].partition(" &&")[0].split()
    in_ci = re.findall(r"missing\+=\(([^)]+)\)", (ROOT / ".ci" / "run").read_text())
    assert set(packages) <= set(" ".join(in_ci).split())
    assert made_targets(command) <= TARGETS
    assert f"python:{bytecode.VERSION}-" in container["image"]


def test_editors_use_the_line_length_of_ruff() -> None:
    editors = ConfigParser()
    editors.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert int(editors["*"]["max_line_length"]) == ruff["line-length"]


def test_pre_commit_makes_a_target() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [hook] = config["repos"][0]["hooks"]
    assert made_targets(hook["entry"]) <= TARGETS


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_a_label_and_an_id_of_its_own_for_each_field(path: Path) -> None:
    form: dict[str, Any] = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "dropdown", "textarea", "checkboxes"}
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


def test_the_forms_that_support_names_exist() -> None:
    named = set(
        re.findall(r"the form \*\*(\w+)\*\*", (ROOT / ".github" / "SUPPORT.md").read_text())
    )
    assert named == {"Question", "Error"}
    assert named <= {yaml.safe_load(path.read_text())["name"] for path in FORMS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_its_actions_and_has_no_rights_by_default(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []
    assert yaml.safe_load(text)["permissions"] == {}
    [job] = yaml.safe_load(text)["jobs"].values()
    commands = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    assert made_targets(commands) <= TARGETS
