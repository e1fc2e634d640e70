"""Compiled files for the zip, so that Lambda does not compile the sources at each cold start.

Compiled files work with one version of Python. So the package looks for a Python of the version
that Lambda runs, and has it run this module, which imports only the standard library:

    python3.13 deploy/bytecode.py SOURCES.zip COMPILED.zip
"""

from __future__ import annotations

import importlib.util
import marshal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile

VERSION = "3.13"
"""The version of the Python runtime in `.chalice/resources.yaml`."""
SETTING = "LAMBDA_PYTHON"
"""The environment variable that names a Python of this version."""
INSTALLED = (f".pyenv/versions/{VERSION}.*", f".local/share/uv/python/cpython-{VERSION}.*")
"""The folders below the home where pyenv and uv install this version."""
UNCHECKED_HASH = 0b01
"""The flag of a file that has a hash of its source and is never checked against it (PEP 552)."""
MARSHAL_VERSION = 2
"""The marshal format whose bytes do not depend on what was compiled before."""
PRINT_VERSION = "import sys; print(sys.implementation.name, *sys.version_info[:2])"


class WrongPythonError(Exception):
    """The setting names no Python of the version that Lambda runs."""


def find_python(environment: Mapping[str, str]) -> str | None:
    """Return a Python of the version that Lambda runs, or None. Raises `WrongPythonError`.

    A file that the search path has may be a shim of a version that is not installed.
    """
    if named := environment.get(SETTING):
        if not _is_of_lambda(named):
            raise WrongPythonError(
                f"{SETTING}={named} is no Python {VERSION}, which Lambda runs; name one, or unset"
                f" {SETTING}"
            )
        return named
    return next(filter(_is_of_lambda, _candidates(Path(environment.get("HOME", "/")))), None)


def _candidates(home: Path) -> Iterator[str]:
    yield sys.executable
    yield f"python{VERSION}"
    for folder in INSTALLED:
        yield from map(str, sorted(home.glob(f"{folder}/bin/python{VERSION}")))


def _is_of_lambda(python: str) -> bool:
    try:
        finished = subprocess.run(  # noqa: S603  fixed arguments
            [python, "-I", "-S", "-c", PRINT_VERSION], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return finished.stdout.split() == ["cpython", *VERSION.split(".")]


def compile_with(python: str, sources: Path) -> dict[str, bytes]:
    """Have a Python compile the sources of a zip; return the compiled files by name."""
    with TemporaryDirectory() as folder:
        compiled = Path(folder) / "compiled.zip"
        command = [python, "-I", "-S", __file__, str(sources), str(compiled)]
        subprocess.run(command, check=True)  # noqa: S603  fixed arguments
        with ZipFile(compiled) as made:
            return {name: made.read(name) for name in made.namelist()}


def compile_all(sources: Path, compiled: Path) -> None:
    """Write the zip of the compiled files of a zip's sources. Raises `SyntaxError`."""
    with ZipFile(sources) as given, ZipFile(compiled, "w") as written:
        for name in given.namelist():
            if name.endswith(".py"):
                # The path where Python looks for the compiled file.
                path = PurePosixPath(name)
                file = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
                place = str(path.parent / "__pycache__" / file)
                written.writestr(place, compile_source(name, given.read(name)))


def compile_source(name: str, source: bytes) -> bytes:
    """Compile a source. The bytes are the same on every machine with this version of Python.

    The format is that of PEP 3147 and PEP 552. Raises `SyntaxError`.
    """
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little")
    body = marshal.dumps(code, MARSHAL_VERSION)
    return head + importlib.util.source_hash(source) + body


if __name__ == "__main__":
    compile_all(*map(Path, sys.argv[1:]))
