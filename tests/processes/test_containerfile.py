"""The Containerfile: its steps run in a folder, which takes seconds and needs no rights.

Each path of the image is that path in the folder. `.ci/image` builds and runs the image itself, and
`make audit` checks the file by checkov.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulation.environment import NO_CLIENT_LIMITS, ROOT, free_port
from tests.processes.programs import finish, offline_pip, serving, succeed

IMAGE_PATH = re.compile(r"(?<![\w./])/(?=(?:app|data|src|wheels)\b)")
"""The beginning of a path that the Containerfile makes."""


@dataclass(frozen=True)
class Instruction:
    """An instruction of the Containerfile and its arguments."""

    name: str
    arguments: str

    def step(self) -> str:
        """Return the line of a shell that does the same."""
        match self.name:
            case "RUN":
                return self.arguments
            case "WORKDIR":
                return f"mkdir {self.arguments} && cd {self.arguments}"
            case "COPY":
                *names, target = self.words()
                folder = target if target.endswith("/") else "."
                sources = " ".join(f"$ROOT/{name}" for name in names)
                return f"mkdir -p {folder} && cp -r {sources} {target}"
        return ""

    def words(self) -> list[str]:
        """Return the arguments without options."""
        return [word for word in self.arguments.split() if not word.startswith("--")]

    def command(self) -> list[str]:
        """Return the command of a HEALTHCHECK, an ENTRYPOINT or a CMD, which needs no shell."""
        command = json.loads(self.arguments[self.arguments.index("[") :])
        assert isinstance(command, list)
        return command


def read() -> list[list[Instruction]]:
    """Return the instructions of each stage; the first ones are before all stages."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
    stages: list[list[Instruction]] = [[]]
    for line in filter(None, text.replace("\\\n", "").splitlines()):
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, arguments))
    return stages


_, BUILD, FINAL = read()


def only(name: str) -> Instruction:
    [instruction] = [one for one in FINAL if one.name == name]
    return instruction


def test_the_image_runs_as_a_user_to_whom_only_its_volume_belongs() -> None:
    user, _, group = only("USER").arguments.partition(":")
    assert min(int(user), int(group)) > 0
    owned = [one.words() for one in FINAL if one.name == "COPY" and "--chown" in one.arguments]
    assert owned == [["/data", only("VOLUME").arguments]]


@dataclass(frozen=True)
class Image:
    """A folder in which the steps of the Containerfile ran."""

    root: Path

    def here(self, text: str) -> str:
        """Return a text with the image's paths as paths of the folder."""
        return IMAGE_PATH.sub(f"{self.root}/", text)

    def build(self) -> None:
        script = "\n".join(self.here(one.step()) for one in BUILD)
        succeed("sh", "-exc", script, env={**offline_pip(), "ROOT": str(ROOT)})

    def environment(self) -> dict[str, str]:
        """Return the environment of the container, on a free port of loopback."""
        given = dict(word.split("=", 1) for word in shlex.split(self.here(only("ENV").arguments)))
        path = given.pop("PATH").replace("$PATH", os.environ["PATH"])
        assert (given.pop("HOST"), given.pop("PORT")) == ("0.0.0.0", only("EXPOSE").arguments)  # noqa: S104
        own = {"HOST": "127.0.0.1", "PORT": str(free_port())}
        return {**given, "PATH": path, **own, **NO_CLIENT_LIMITS}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    built = Image(tmp_path_factory.mktemp("image"))
    built.build()
    return built


def is_healthy(image: Image, environment: Mapping[str, str]) -> bool:
    command = map(image.here, only("HEALTHCHECK").command())
    return finish(*command, env=environment).returncode == 0


def test_the_steps_make_a_server_that_is_healthy_until_it_stops(image: Image) -> None:
    environment = image.environment()
    command = map(image.here, only("ENTRYPOINT").command() + only("CMD").command())
    place = Path(image.here(only("WORKDIR").arguments))
    with serving(*command, cwd=place, env=environment) as server:
        server.visit("in a container", 2)
        assert server.request("/api/v1/views.svg?id=a&logo=github")[0] == 200
        assert server.request("/")[2][:15].lower() == b"<!doctype html>"
        assert is_healthy(image, environment)
        assert (image.root / "data" / "vu-mi" / "vu-mi.sqlite3").exists()
        assert (image.root / "data" / "vu-mi").stat().st_mode & 0o777 == 0o700
        assert server.stop(signal.Signals[only("STOPSIGNAL").arguments])[0] == 0
        assert not is_healthy(image, environment)


def test_the_image_needs_no_file_outside_its_volume(image: Image) -> None:
    """The root of a container can be read-only: all bytecode was compiled by pip."""
    sources = list((image.root / "app").rglob("vumi/**/*.py"))
    assert sources
    for source in sources:
        assert list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")), source
