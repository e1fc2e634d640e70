"""`python -m deploy`: the steps that the Makefile's targets for AWS call."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.http import tokens
from chalicelib.lazy import lazy
from chalicelib.settings import SettingsError
from deploy import bytecode, package, stage, template

if TYPE_CHECKING:
    import boto3

    from chalicelib.events import sender
    from deploy import release
    from vumi.operate.installations import stack
else:
    boto3, sender = lazy("boto3"), lazy("chalicelib.events.sender")
    release, stack = lazy("deploy.release"), lazy("vumi.operate.installations.stack")

REPORTED_ERRORS = (
    BotoCoreError,
    ClientError,
    OSError,
    SettingsError,
    stage.IncompleteError,
    bytecode.WrongPythonError,
    package.PackagingError,
)
"""Errors reported in one line. Any other error is a bug, so it keeps its traceback."""
NO_COMPILED_FILES = (
    "The package has no compiled files, because no Python of Lambda's version was found. So each"
    " cold start compiles the sources, which about doubles its processor time. Install it: uv"
    f" python install {bytecode.VERSION}; or name it: make … {bytecode.SETTING}=/path/to/python"
)


def main(arguments: Sequence[str]) -> int:
    """Run one step and return the exit status."""
    given = _make_parser().parse_args(arguments)
    try:
        given.step(given)
    except REPORTED_ERRORS as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m deploy", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    for name, (step, options) in STEPS.items():
        adding = steps.add_parser(name, help=step.__doc__, description=step.__doc__)
        adding.set_defaults(step=step)
        for option in options.split():
            kind, words = OPTIONS[option]
            adding.add_argument(option, type=kind, required=True, help=words)
    return parser


def _package(given: argparse.Namespace) -> None:
    """Create the template, the zip and the bills of materials of one stack."""
    python = bytecode.find_python(os.environ)
    package.package(given.stage, given.out, python)
    size = (given.out / "deployment.zip").stat().st_size
    print(f"{given.out}: sam.yaml, *.cdx.json and deployment.zip, {size / 1000:.0f} KB")
    if python is None:
        print(NO_COMPILED_FILES)


def _write_resources(given: argparse.Namespace) -> None:
    """Write a template of only the table and the queues."""
    alone = template.extract_standalone(template.for_stage(template.load(), given.stage))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "resources.yaml").write_text(template.dump(alone))


def _write_names(given: argparse.Namespace) -> None:
    """Write the names of a stack's resources into .chalice/config.json."""
    found = stack.outputs(boto3.client("cloudformation"), given.stack)
    stage.write_names(given.stage, found, stage.Folder())


def _complete(given: argparse.Namespace) -> None:
    """Set the options of functions and event source mappings that Chalice does not support."""
    completed = stage.complete(given.stage, boto3.client("lambda"), stage.Folder())
    for function, options in completed.items():
        print(f"{function}: {', '.join(options)}")


def _print_url(given: argparse.Namespace) -> None:
    """Print the URL of a badge on a stage that was deployed with `chalice deploy`."""
    deployed = json.loads(stage.Folder().deployed(given.stage).read_text())["resources"]
    api = next(resource for resource in deployed if resource["resource_type"] == "rest_api")
    print(f"{api['rest_api_url']}api/v1/views?id=hello")


def _print_secrets(_: argparse.Namespace) -> None:
    """Generate an operator's API token, its digest, and a webhook secret."""
    token = tokens.new_token()
    print(f"an operator's token:  {token}")
    print(f"ApiTokenDigests={tokens.digest(token)}")
    print(f"WebhookSecrets={sender.new_secret()}")


def _release(given: argparse.Namespace) -> None:
    """Make the files of a release twice from the commit, compare them, and check them."""
    release.release(template.ROOT, given.out, given.wheels.absolute())
    print(*sorted(given.out.iterdir()), sep="\n")


OPTIONS: dict[str, tuple[type, str]] = {
    "--stage": (str, "dev, prod or another name"),
    "--out": (Path, "the output folder"),
    "--stack": (str, "the name of the stack"),
    "--wheels": (Path, "the wheels of the locks"),
}
STEPS = {
    "package": (_package, "--stage --out"),
    "resources": (_write_resources, "--stage --out"),
    "names": (_write_names, "--stage --stack"),
    "complete": (_complete, "--stage"),
    "url": (_print_url, "--stage"),
    "secrets": (_print_secrets, ""),
    "release": (_release, "--out --wheels"),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
